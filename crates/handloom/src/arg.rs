//! What a launch is given for the parameters of a kernel.

use handloom_ir::simt::Param;
use handloom_ir::types::TypeClass;
use handloom_runtime as runtime;

use crate::device::DeviceBuffer;
use crate::element::{Element, bytes_of};
use crate::error::{Error, ErrorKind};

/// What can be an argument: a number of the size of its parameter, a [`DeviceBuffer`] (its address), an array, or a [`Struct`].
///
/// An integer for a float, a float for an integer and a number of another size are errors; parameters of `.b8` to `.b64` take both kinds.
///
/// ```
/// use handloom::{Device, LaunchConfig};
///
/// # fn main() -> Result<(), handloom::Error> {
/// let device = Device::new()?;
/// let kernel = device.load_module(handloom::doc::SAXPY)?.load_function("saxpy")?;
/// let x = device.zeroed::<f32>(1)?;
/// let stream = device.default_stream();
/// let told = stream.launch_builder(&kernel).arg(&1_u32).arg(&2).arg(&x).arg(&x).launch(LaunchConfig::for_num_elems(1));
/// assert_eq!(told.unwrap_err().to_string(), "argument 2: an integer (s32) for `a`, which is .f32");
/// # Ok(())
/// # }
/// ```
pub trait Arg: sealed::Value {}

pub(crate) mod sealed {
    use super::Field;

    /// How something is passed.
    pub trait Value {
        /// Itself as a field of a structure, or as a parameter.
        fn field(&self) -> Field<'_>;
    }
}

/// A value as it is passed.
#[derive(Clone, Debug)]
pub struct Field<'a> {
    bytes: Vec<u8>,
    align: usize,
    what: What<'a>,
}

#[derive(Clone, Debug)]
enum What<'a> {
    Number { name: &'static str, is_float: bool },
    Buffer(&'a runtime::DeviceBuffer),
    Bytes,
}

impl<T: Element> Arg for T {}

impl<T: Element> sealed::Value for T {
    fn field(&self) -> Field<'_> {
        let what = What::Number { name: T::NAME, is_float: T::IS_FLOAT };
        Field { bytes: bytes_of(&[*self]), align: T::BYTES, what }
    }
}

impl<T: Element> Arg for DeviceBuffer<T> {}

impl<T: Element> sealed::Value for DeviceBuffer<T> {
    fn field(&self) -> Field<'_> {
        Field { bytes: bytes_of(&[self.address()]), align: 8, what: What::Buffer(&self.inner) }
    }
}

impl<T: Element, const N: usize> Arg for [T; N] {}

impl<T: Element, const N: usize> sealed::Value for [T; N] {
    fn field(&self) -> Field<'_> {
        Field { bytes: bytes_of(self), align: T::BYTES, what: What::Bytes }
    }
}

/// A structure that is passed by value, laid out as C does: each field after the one before it at the next multiple of its alignment, and the whole rounded up to the
/// largest alignment.
///
/// ```
/// use handloom::{Device, LaunchConfig, Struct};
///
/// # fn main() -> Result<(), handloom::Error> {
/// let device = Device::new()?;
/// let module = device.load_module(handloom::doc::SCALE)?;
/// module.global::<f32>("offset")?.write(&[0.5; 4])?;
/// let (x, y) = (device.copy_of(&[1.0_f32, 2.0])?, device.zeroed::<f32>(2)?);
/// // struct { const float* x; float* y; int n; float factor; }
/// let p = Struct::new().field(&x).field(&y).field(&2_i32).field(&10.0_f32);
/// let kernel = module.load_function("scale")?;
/// let report = device.default_stream().launch_builder(&kernel).arg(&p).launch(LaunchConfig::new([1, 1, 1], [32, 1, 1]))?;
/// assert_eq!((y.to_vec(), report.blocks), (vec![10.5, 20.5], 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Struct {
    bytes: Vec<u8>,
    align: usize,
}

impl Struct {
    /// A structure without fields. [`Struct`] has an example.
    pub fn new() -> Struct {
        Struct { bytes: Vec::new(), align: 1 }
    }

    /// The same with one field more. [`Struct`] has an example.
    #[must_use]
    pub fn field(self, value: &(impl Arg + ?Sized)) -> Struct {
        let field = value.field();
        self.put(&field.bytes, field.align)
    }

    /// The same with one field more that has an alignment, as of `float4`.
    ///
    /// ```
    /// use handloom::Struct;
    ///
    /// // struct { int n; float4 v; }
    /// assert_eq!(Struct::new().field(&1_i32).aligned_field(16, &[0.0_f32; 4]).len(), 32);
    /// ```
    ///
    /// # Panics
    /// The alignment is no power of two.
    #[must_use]
    pub fn aligned_field(self, align: usize, value: &(impl Arg + ?Sized)) -> Struct {
        assert!(align.is_power_of_two(), "an alignment of {align}");
        let field = value.field();
        self.put(&field.bytes, align)
    }

    /// Its size in bytes. [`aligned_field`](Self::aligned_field) has an example.
    pub fn len(&self) -> usize {
        self.bytes.len().next_multiple_of(self.align.max(1))
    }

    /// Whether it has no byte.
    ///
    /// ```
    /// assert!(handloom::Struct::new().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn put(mut self, bytes: &[u8], align: usize) -> Struct {
        self.bytes.resize(self.bytes.len().next_multiple_of(align), 0);
        self.bytes.extend_from_slice(bytes);
        self.align = self.align.max(align);
        self
    }
}

impl Arg for Struct {}

impl sealed::Value for Struct {
    fn field(&self) -> Field<'_> {
        let mut bytes = self.bytes.clone();
        bytes.resize(self.len(), 0);
        Field { bytes, align: self.align.max(1), what: What::Bytes }
    }
}

/// An argument for a parameter, as the runtime takes it. `number` counts from 1; without a parameter the runtime says that there are too many.
pub(crate) fn bind<'a>(number: usize, p: Option<&Param>, field: &'a Field<'_>) -> Result<runtime::Arg<'a>, Error> {
    match field.what {
        What::Buffer(buffer) => Ok(runtime::Arg::from(buffer)),
        What::Bytes => Ok(runtime::Arg::Bytes(&field.bytes)),
        What::Number { name, is_float } => {
            if let Some(p) = p {
                check_number(number, p, is_float, Some(name), field.bytes.len())?;
            }
            Ok(runtime::Arg::Bytes(&field.bytes))
        }
    }
}

/// Whether a number may be passed for a parameter. `name` is that of its type. For other interfaces of Handloom too.
#[doc(hidden)]
pub fn check_number(number: usize, p: &Param, is_float: bool, name: Option<&str>, bytes: usize) -> Result<(), Error> {
    let wanted = match p.ty.class() {
        TypeClass::Bits | TypeClass::Pred => None,
        TypeClass::Unsigned | TypeClass::Signed => Some(false),
        TypeClass::Float => Some(true),
    };
    if p.is_array || p.size as usize != bytes || wanted.is_some_and(|float| float != is_float) {
        let kind = if is_float { "a float" } else { "an integer" };
        let name = name.map_or_else(|| format!("of {bytes} bytes"), |name| format!("({name})"));
        let message = format!("argument {number}: {kind} {name} for `{}`, which is {}", p.name, runtime::type_of(p));
        return Err(Error::refused(ErrorKind::ArgumentSize, message));
    }
    Ok(())
}
