//! Tensors of other packages, by the DLPack protocol: on the CPU, without a copy.

use std::ffi::{c_int, c_void};

use handloom_runtime::Elements;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::args::{Memory, Named};

/// `DLTensor`.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: [c_int; 2],
    dims: c_int,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// The beginning of `DLManagedTensorVersioned`.
#[repr(C)]
struct Versioned {
    version: [u32; 2],
    context: *mut c_void,
    deleter: *mut c_void,
    flags: u64,
    tensor: Tensor,
}

const READ_ONLY: u64 = 1;
const CPU: i64 = 1;
/// Memory of the host that CUDA pinned, which the CPU reads and writes too.
const CUDA_HOST: i64 = 3;

/// Where a tensor lies. Its capsule, which keeps it alive, goes to `alive`.
pub(crate) fn memory<'py>(
    named: &Named<'_>,
    o: &Bound<'py, PyAny>,
    alive: &mut Vec<Bound<'py, PyAny>>,
) -> PyResult<Memory> {
    let py = o.py();
    let (device, _): (i64, i64) = o.call_method0("__dlpack_device__")?.extract()?;
    if device != CPU && device != CUDA_HOST {
        return Err(named.value_error(&format!("takes memory of the CPU, not of device {device} of DLPack")));
    }
    let version = PyDict::new(py);
    version.set_item("max_version", (1, 0))?;
    let capsule = match o.call_method("__dlpack__", (), Some(&version)) {
        Err(e) if e.is_instance_of::<PyTypeError>(py) => o.call_method0("__dlpack__"),
        other => other,
    };
    // Who does not lend its memory says why.
    let capsule = capsule.map_err(|e| match e.is_instance_of::<PyBufferError>(py) {
        true => named.value_error(&format!("takes a tensor that lends its memory: {}", e.value(py))),
        false => e,
    })?;
    let capsule = capsule.cast_into::<PyCapsule>()?;
    // The capsule keeps its name, so that its own destructor frees the tensor.
    let (tensor, is_writable) = if capsule.is_valid_checked(Some(c"dltensor_versioned")) {
        let pointer = capsule.pointer_checked(Some(c"dltensor_versioned"))?.cast::<Versioned>();
        // SAFETY: DLPack says that a capsule of this name points to this structure, and it lives as long as the capsule.
        let v = unsafe { pointer.as_ref() };
        (&v.tensor, v.flags & READ_ONLY == 0)
    } else {
        let pointer = capsule.pointer_checked(Some(c"dltensor"))?.cast::<Tensor>();
        // SAFETY: the same; `DLManagedTensor` begins with its tensor.
        (unsafe { pointer.as_ref() }, true)
    };
    let dims = usize::try_from(tensor.dims).unwrap_or(0);
    // SAFETY: DLPack says that `shape` has `ndim` numbers, and `strides` too if it is not null.
    let numbers = |at: *const i64| if dims == 0 { &[] } else { unsafe { std::slice::from_raw_parts(at, dims) } };
    let shape = numbers(tensor.shape);
    if !tensor.strides.is_null() && dims > 0 {
        let strides = numbers(tensor.strides);
        let mut next = 1;
        for (n, stride) in shape.iter().zip(strides).rev() {
            if *n > 1 && *stride != next {
                let text = format!(
                    "takes a tensor whose elements lie one after another, not one of shape {shape:?} with strides {strides:?}"
                );
                return Err(named.value_error(&text));
            }
            next *= (*n).max(1);
        }
    }
    let bits = u64::from(tensor.bits) * u64::from(tensor.lanes);
    let shape: Vec<u64> = shape.iter().map(|n| u64::try_from(*n).unwrap_or(0)).collect();
    let bytes = (shape.iter().product::<u64>() * bits).div_ceil(8);
    let letter = match tensor.code {
        0 => "s",
        1 => "u",
        2 => "f",
        4 => "bf",
        5 => "c",
        6 => "bool",
        _ => "b",
    };
    let address = tensor.data.expose_provenance() as u64 + tensor.byte_offset;
    let elements = Elements { ty: format!("{letter}{bits}"), bytes: bits / 8, shape };
    alive.push(capsule.into_any());
    Ok(Memory { address, bytes, is_writable, elements })
}
