//! Arguments from Python: what an object is for a parameter, or a sentence that names the parameter, what it takes and what came.
//!
//! Arrays are passed where they lie: their memory is lent to the kernel as long as it runs. Numbers get the type of their parameter.

use std::ffi::{c_int, c_void};

use half::{bf16, f16};
use handloom_ir::simt::Param;
use handloom_ir::types::{ScalarType, TypeClass};
use handloom_runtime::{Device, Elements, HostBuffer, type_of};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyCapsule, PyFloat, PyInt, PyType};

use crate::dlpack;

/// An argument, ready for the runtime.
pub(crate) enum Value {
    /// The bytes of a number, and how many there are.
    Number([u8; 8], usize),
    Bytes(Vec<u8>),
    Lent(HostBuffer),
}

/// Memory of an array.
pub(crate) struct Memory {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) is_writable: bool,
    pub(crate) elements: Elements,
}

/// A parameter as errors name it.
pub(crate) struct Named<'p> {
    pub(crate) number: usize,
    pub(crate) param: &'p Param,
}

impl Named<'_> {
    /// ``argument 2 (`a`, .f32)``.
    fn text(&self) -> String {
        format!("argument {} (`{}`, {})", self.number, self.param.name, type_of(self.param))
    }

    fn type_error(&self, text: &str) -> PyErr {
        PyTypeError::new_err(format!("{}: {text}", self.text()))
    }

    pub(crate) fn value_error(&self, text: &str) -> PyErr {
        PyValueError::new_err(format!("{}: {text}", self.text()))
    }

    /// What it takes.
    fn takes(&self) -> String {
        let p = self.param;
        if p.is_array {
            return format!("{} bytes: a structured scalar or an array of that size, or bytes", p.size);
        }
        match p.ty.class() {
            TypeClass::Float => "a number".to_owned(),
            _ if self.is_pointer() => "an array (its address), None, or an integer".to_owned(),
            _ => "an integer".to_owned(),
        }
    }

    fn refuse(&self, came: &str) -> PyErr {
        self.type_error(&format!("takes {}, not {came}", self.takes()))
    }

    /// Whether it can hold an address.
    fn is_pointer(&self) -> bool {
        let p = self.param;
        let is_int = matches!(p.ty.class(), TypeClass::Bits | TypeClass::Unsigned | TypeClass::Signed);
        is_int && !p.is_array && p.size == 8
    }
}

/// `numpy.ndarray` and `numpy.generic`.
static NUMPY: PyOnceLock<(Py<PyType>, Py<PyType>)> = PyOnceLock::new();

fn numpy(py: Python<'_>) -> PyResult<&(Py<PyType>, Py<PyType>)> {
    NUMPY.get_or_try_init(py, || {
        let module = py.import("numpy")?;
        let class = |name| -> PyResult<Py<PyType>> { Ok(module.getattr(name)?.cast_into::<PyType>()?.unbind()) };
        Ok((class("ndarray")?, class("generic")?))
    })
}

/// `'float'`, or what numpy says of it.
fn what(o: &Bound<'_, PyAny>) -> String {
    let class = o.get_type().name().map_or("something".to_owned(), |name| name.to_string());
    match (o.getattr("dtype"), o.getattr("shape")) {
        (Ok(dtype), Ok(shape)) => format!("{class} of {dtype} {shape}"),
        _ => match o.repr() {
            Ok(text) if text.to_string().len() <= 40 => format!("{class} {text}"),
            _ => class,
        },
    }
}

/// What an object is for a parameter. What is kept alive meanwhile is put into `alive`.
pub(crate) fn value<'py>(
    device: &Device,
    named: &Named<'_>,
    o: &Bound<'py, PyAny>,
    alive: &mut Vec<Bound<'py, PyAny>>,
) -> PyResult<Value> {
    let py = o.py();
    if o.is_exact_instance_of::<PyInt>() || o.is_exact_instance_of::<PyFloat>() || o.is_instance_of::<PyBool>() {
        return number(named, o);
    }
    if o.is_none() {
        return if named.is_pointer() { Ok(Value::Number([0; 8], 8)) } else { Err(named.refuse("None")) };
    }
    let (array, generic) = numpy(py)?;
    if o.is_instance(array.bind(py))? {
        return array_value(device, named, o, alive);
    }
    if o.is_instance(generic.bind(py))? {
        return scalar(named, o);
    }
    if o.hasattr("__cuda_array_interface__")? && !o.hasattr("__array_interface__")? {
        // A tensor of torch on the CPU raises where it is asked for the interface, and so does not have it.
        return Err(named.refuse(&format!("{}, whose memory is that of a GPU", what(o))));
    }
    if o.hasattr("__dlpack__")? {
        // A tensor of one number is that number, as an array is.
        let is_number = !named.is_pointer() && !named.param.is_array;
        if is_number && o.getattr("ndim").and_then(|n| n.extract::<usize>()).is_ok_and(|n| n == 0) {
            return value(device, named, &o.call_method0("item")?, alive);
        }
        let memory = dlpack::memory(named, o, alive)?;
        return memory_value(device, named, memory);
    }
    if o.is_instance_of::<PyInt>() || o.is_instance_of::<PyFloat>() {
        return number(named, o);
    }
    let module = py.import("numpy")?;
    if o.hasattr("__array_interface__")? {
        return array_value(device, named, &module.call_method1("asarray", (o,))?, alive);
    }
    // A number of C is its value, not the place where it lies.
    if o.is_instance(&py.import("ctypes")?.getattr("_SimpleCData")?)? {
        return value(device, named, &o.getattr("value")?, alive);
    }
    if let Ok(bytes) = module.call_method1("frombuffer", (o, "u1")) {
        return array_value(device, named, &bytes, alive);
    }
    if o.hasattr("__index__")? {
        return number(named, &py.import("operator")?.call_method1("index", (o,))?);
    }
    Err(named.refuse(&what(o)))
}

/// A number of Python as the type of the parameter.
fn number(named: &Named<'_>, o: &Bound<'_, PyAny>) -> PyResult<Value> {
    let p = named.param;
    if p.is_array || p.size > 8 {
        return Err(named.refuse(&what(o)));
    }
    let is_float = o.is_instance_of::<PyFloat>();
    let size = p.size as usize;
    // The first bytes of a word.
    let word = |v: u64| Some(Value::Number(v.to_le_bytes(), size));
    let float = |v: f64| match (p.ty, size) {
        (ScalarType::F16, _) => word(f16::from_f64(v).to_bits().into()),
        (ScalarType::BF16, _) => word(bf16::from_f64(v).to_bits().into()),
        (_, 4) => word((v as f32).to_bits().into()),
        (_, 8) => word(v.to_bits()),
        (_, _) => None,
    };
    let value = match p.ty.class() {
        TypeClass::Float => float(o.extract()?),
        TypeClass::Bits if is_float => {
            let value = if size >= 4 { float(o.extract()?) } else { None };
            return value.ok_or_else(|| {
                named.type_error("takes bits: pass numpy.float16(x) or ml_dtypes.bfloat16(x), which have so many")
            });
        }
        TypeClass::Bits | TypeClass::Unsigned | TypeClass::Signed if !is_float => {
            // Nearly all fit 64 bits, which are read in a step.
            let v = match o.extract::<i64>() {
                Ok(v) => i128::from(v),
                Err(_) => o.extract().map_err(|_| named.value_error(&format!("{} does not fit", what(o))))?,
            };
            let bits = 8 * p.size;
            // As in C, a negative number may be given to an unsigned parameter, and a large one to a signed parameter.
            if v < -(1_i128 << (bits - 1)) || v >= 1_i128 << bits {
                return Err(named.value_error(&format!("{v} does not fit")));
            }
            word(v as u64)
        }
        _ => None,
    };
    value.ok_or_else(|| named.refuse(&what(o)))
}

/// A scalar of numpy: a structure, a number, or bits.
fn scalar(named: &Named<'_>, o: &Bound<'_, PyAny>) -> PyResult<Value> {
    let p = named.param;
    let bytes = || -> PyResult<Vec<u8>> { o.call_method0("tobytes")?.extract() };
    let kind: String = o.getattr("dtype")?.getattr("kind")?.extract()?;
    let is_structure = kind == "V" && !o.getattr("dtype")?.getattr("names")?.is_none();
    if p.is_array || is_structure {
        return by_value(named, bytes()?, o);
    }
    let size: u32 = o.getattr("itemsize")?.extract()?;
    let is_bits = p.ty.class() == TypeClass::Bits;
    if is_bits && size == p.size {
        return Ok(Value::Bytes(bytes()?));
    }
    match kind.as_str() {
        "b" | "i" | "u" => {
            number(named, &o.py().import("operator")?.call_method1("index", (o,)).or_else(|_| o.call_method0("item"))?)
        }
        // Small floats of `ml_dtypes` are of kind `V` or `f`.
        "f" | "V" if !is_bits || size < 2 => number(named, &o.call_method0("__float__")?),
        _ => Err(named.refuse(&what(o))),
    }
}

/// Bytes that are passed by value.
fn by_value(named: &Named<'_>, bytes: Vec<u8>, o: &Bound<'_, PyAny>) -> PyResult<Value> {
    let want = named.param.size as usize;
    if bytes.len() != want {
        let came = bytes.len();
        return Err(named.value_error(&format!("takes {want} bytes, not {came} ({})", what(o))));
    }
    Ok(Value::Bytes(bytes))
}

/// An array: its address, or its bytes where the parameter holds them.
fn array_value<'py>(
    device: &Device,
    named: &Named<'_>,
    o: &Bound<'py, PyAny>,
    alive: &mut Vec<Bound<'py, PyAny>>,
) -> PyResult<Value> {
    if !named.is_pointer() {
        let dims: usize = o.getattr("ndim")?.extract()?;
        if named.param.is_array {
            return by_value(named, o.call_method0("tobytes")?.extract()?, o);
        }
        if dims == 0 {
            return scalar(named, &o.get_item(())?);
        }
        return Err(named.refuse(&what(o)));
    }
    let memory = array_memory(named, o)?;
    alive.push(o.clone());
    memory_value(device, named, memory)
}

/// Memory that is lent, for a parameter that takes an address.
fn memory_value(device: &Device, named: &Named<'_>, memory: Memory) -> PyResult<Value> {
    if !named.is_pointer() {
        let Elements { ty, shape, .. } = &memory.elements;
        return Err(named.refuse(&format!("an array of {ty} {shape:?}")));
    }
    let Memory { address, bytes, is_writable, elements } = memory;
    // SAFETY: the array says that this is its memory, which can be written if it says so, and is kept alive until the launch has ended; NumPy does not move or
    // free memory of an array that somebody holds. What others write there meanwhile they write as they would beside any other thread that uses the array.
    Ok(Value::Lent(unsafe { HostBuffer::lend(device, address, bytes, is_writable, Some(elements)) }))
}

/// What the capsule `__array_struct__` holds: `PyArrayInterface` of NumPy's C interface.
#[repr(C)]
struct ArrayStruct {
    two: c_int,
    dims: c_int,
    kind: u8,
    item_bytes: c_int,
    flags: c_int,
    shape: *const isize,
    strides: *const isize,
    data: *mut c_void,
}

const CONTIGUOUS: c_int = 1;
const NATIVE: c_int = 0x200;
const WRITABLE: c_int = 0x400;

/// Where an array lies.
fn array_memory(named: &Named<'_>, o: &Bound<'_, PyAny>) -> PyResult<Memory> {
    let capsule = o.getattr("__array_struct__")?.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(None)?.cast::<ArrayStruct>();
    // SAFETY: NumPy documents that the capsule of an `ndarray` points to this structure, and it lives as long as the capsule.
    let a = unsafe { pointer.as_ref() };
    let dims = usize::try_from(a.dims).unwrap_or(0);
    // SAFETY: NumPy documents that `shape` has `nd` numbers.
    let shape = if dims == 0 { &[] } else { unsafe { std::slice::from_raw_parts(a.shape, dims) } };
    // Fields of structures may be objects too.
    if a.kind == b'O' || a.kind == b'V' && o.getattr("dtype")?.getattr("hasobject")?.extract()? {
        return Err(named.type_error(&format!("takes numbers, not {}", what(o))));
    }
    if a.flags & CONTIGUOUS == 0 {
        let order = if o.getattr("flags")?.getattr("f_contiguous")?.extract()? { "Fortran order" } else { "strides" };
        let text = format!(
            "takes an array whose elements lie one after another in C order, not {} in {order}; numpy.ascontiguousarray makes one",
            what(o)
        );
        return Err(named.value_error(&text));
    }
    if a.flags & NATIVE == 0 {
        return Err(named.value_error(&format!("takes numbers in the byte order of the host, not {}", what(o))));
    }
    let item = u64::try_from(a.item_bytes).unwrap_or(0);
    let shape: Vec<u64> = shape.iter().map(|n| u64::try_from(*n).unwrap_or(0)).collect();
    let bytes = shape.iter().product::<u64>() * item;
    let ty = match (a.kind, item) {
        (b'i', n) => format!("s{}", 8 * n),
        (b'V', n) => format!("{n} bytes"),
        (kind, n) => format!("{}{}", char::from(kind), 8 * n),
    };
    Ok(Memory {
        address: a.data.expose_provenance() as u64,
        bytes,
        is_writable: a.flags & WRITABLE != 0,
        elements: Elements { ty, bytes: item, shape },
    })
}
