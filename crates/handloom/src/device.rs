//! A device, its memory, and the modules on it.

use std::marker::PhantomData;
use std::sync::Arc;

use handloom_diag::{FileId, SourceMap};
use handloom_runtime::{self as runtime, Elements};

use crate::diagnostic::Diagnostic;
use crate::element::{Element, bytes_of, from_bytes};
use crate::error::{Error, ErrorKind};
use crate::stream::Stream;

/// A device: memory, and the threads that run kernels. A clone is the same device; two devices share nothing but code.
///
/// ```
/// # fn main() -> Result<(), handloom::Error> {
/// let device = handloom::Device::new()?;
/// let x = device.copy_of(&[1_i32, 2, 3])?;
/// assert_eq!(x.to_vec(), [1, 2, 3]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Device {
    inner: runtime::Device,
    default: Stream,
}

impl Device {
    /// A device of its own. [`Device`] has an example.
    ///
    /// # Errors
    /// The host has no address space left for it, or lacks something that Handloom needs.
    pub fn new() -> Result<Device, Error> {
        let inner = runtime::Device::new()?;
        let default = Stream::new(&inner);
        Ok(Device { inner, default })
    }

    /// Loads a module from PTX. Nothing is compiled until an entry is launched.
    ///
    /// ```
    /// # fn main() -> Result<(), handloom::Error> {
    /// let device = handloom::Device::new()?;
    /// let module = device.load_module(handloom::doc::SAXPY)?;
    /// assert_eq!(module.entries(), ["saxpy"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The text is wrong, holds something that is not supported, or its variables have no room.
    pub fn load_module(&self, ptx: impl Into<Ptx>) -> Result<Module, Error> {
        let (sources, files) = ptx.into().sources();
        let sources = Arc::new(sources);
        match runtime::Module::load(&self.inner, Arc::clone(&sources), &files) {
            Ok(inner) => Ok(Module { inner, device: self.clone() }),
            Err(e) => Err(Error::of_load(&e, &sources)),
        }
    }

    /// A buffer of zeros.
    ///
    /// ```
    /// # fn main() -> Result<(), handloom::Error> {
    /// let buffer = handloom::Device::new()?.zeroed::<f32>(2)?;
    /// assert_eq!(buffer.to_vec(), [0.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is no room.
    pub fn zeroed<T: Element>(&self, len: usize) -> Result<DeviceBuffer<T>, Error> {
        Ok(DeviceBuffer::new(self.inner.zeroed(size_of_all::<T>(len)?)?, len))
    }

    /// A buffer of zeros below 4 GiB, which modules of 32-bit addresses can use too.
    ///
    /// ```
    /// # fn main() -> Result<(), handloom::Error> {
    /// let buffer = handloom::Device::new()?.zeroed_low::<u8>(16)?;
    /// assert!(buffer.address() < 1 << 32);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is no room.
    pub fn zeroed_low<T: Element>(&self, len: usize) -> Result<DeviceBuffer<T>, Error> {
        Ok(DeviceBuffer::new(self.inner.zeroed_low(size_of_all::<T>(len)?)?, len))
    }

    /// A buffer with a copy of numbers of the host. [`Device`] has an example.
    ///
    /// # Errors
    /// There is no room.
    pub fn copy_of<T: Element>(&self, data: &[T]) -> Result<DeviceBuffer<T>, Error> {
        Ok(DeviceBuffer::new(self.inner.copy_of(&bytes_of(data))?, data.len()))
    }

    /// The stream that is there from the start; always the same one. The crate's first page has an example.
    pub fn default_stream(&self) -> Stream {
        self.default.clone()
    }

    /// A stream of its own: what it is given runs beside what others are given, unless it waits for their [`Event`](crate::Event)s.
    ///
    /// ```
    /// # fn main() -> Result<(), handloom::Error> {
    /// let device = handloom::Device::new()?;
    /// let (one, two) = (device.new_stream(), device.new_stream());
    /// two.wait(&one.record()?)?;
    /// two.synchronize()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn new_stream(&self) -> Stream {
        Stream::new(&self.inner)
    }

    /// Takes the text that kernels have printed since the last call, in the order of launches and within a launch of blocks.
    ///
    /// ```
    /// # fn main() -> Result<(), handloom::Error> {
    /// assert!(handloom::Device::new()?.take_output().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn take_output(&self) -> Vec<u8> {
        self.inner.take_output()
    }
}

fn size_of_all<T: Element>(len: usize) -> Result<u64, Error> {
    let bytes = len.checked_mul(T::BYTES).and_then(|bytes| u64::try_from(bytes).ok());
    bytes.ok_or_else(|| Error::refused(ErrorKind::OutOfMemory, format!("no room for {len} elements of {}", T::NAME)))
}

/// PTX text with the name that reports use, and texts that it is linked with. A text alone becomes one by itself.
///
/// ```
/// use handloom::{Device, Ptx};
///
/// # fn main() -> Result<(), handloom::Error> {
/// let main = ".version 8.0\n.target sm_80\n.extern .func f;\n.entry k() { call f; ret; }";
/// let other = ".version 8.0\n.target sm_80\n.visible .func f { trap; }";
/// let module = Device::new()?.load_module(Ptx::new(main).named("main.ptx").link("other.ptx", other))?;
/// assert_eq!(module.entries(), ["k"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Ptx {
    texts: Vec<(String, String)>,
}

impl Ptx {
    /// A text that reports call `module.ptx`. [`Ptx`] has an example.
    pub fn new(text: impl Into<String>) -> Ptx {
        Ptx { texts: vec![("module.ptx".into(), text.into())] }
    }

    /// The same with another name. [`Ptx`] has an example.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Ptx {
        if let Some((first, _)) = self.texts.first_mut() {
            *first = name.into();
        }
        self
    }

    /// The same with another text, whose symbols it may use. [`Ptx`] has an example.
    #[must_use]
    pub fn link(mut self, name: impl Into<String>, text: impl Into<String>) -> Ptx {
        self.texts.push((name.into(), text.into()));
        self
    }

    pub(crate) fn sources(self) -> (SourceMap, Vec<FileId>) {
        let mut sources = SourceMap::new();
        let files = self.texts.into_iter().map(|(name, text)| sources.add(name, text)).collect();
        (sources, files)
    }
}

impl<T: Into<String>> From<T> for Ptx {
    fn from(text: T) -> Ptx {
        Ptx::new(text)
    }
}

/// Memory of a device that holds numbers of one type. Freed when dropped; a kernel that uses it then traps.
///
/// ```
/// use handloom::{Device, bf16, f16};
///
/// # fn main() -> Result<(), handloom::Error> {
/// let device = Device::new()?;
/// let half = device.copy_of(&[f16::from_f32(1.5), f16::NAN])?;
/// let brain = device.copy_of(&[bf16::from_f32(-2.0)])?;
/// assert_eq!((half.len(), half.to_vec()[0], brain.to_vec()[0].to_f32()), (2, f16::from_f32(1.5), -2.0));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct DeviceBuffer<T> {
    pub(crate) inner: runtime::DeviceBuffer,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Element> DeviceBuffer<T> {
    fn new(mut inner: runtime::DeviceBuffer, len: usize) -> DeviceBuffer<T> {
        let shape = vec![u64::try_from(len).unwrap_or(u64::MAX)];
        let bytes = u64::try_from(T::BYTES).unwrap_or(u64::MAX);
        inner.set_elements(Elements { ty: T::NAME.into(), bytes, shape });
        DeviceBuffer { inner, len, element: PhantomData }
    }

    /// How many numbers it holds. [`DeviceBuffer`] has an example.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none.
    ///
    /// ```
    /// # fn main() -> Result<(), handloom::Error> {
    /// assert!(handloom::Device::new()?.zeroed::<f64>(0)?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its address, as kernels see it. [`Device::zeroed_low`] has an example.
    pub fn address(&self) -> u64 {
        self.inner.address()
    }

    /// A copy of all numbers. [`Device`] has an example.
    pub fn to_vec(&self) -> Vec<T> {
        from_bytes(&self.inner.to_vec())
    }

    /// Writes numbers from the one with index `at` on.
    ///
    /// ```
    /// # fn main() -> Result<(), handloom::Error> {
    /// let mut buffer = handloom::Device::new()?.zeroed::<u16>(3)?;
    /// buffer.write(1, &[7, 8]);
    /// assert_eq!(buffer.to_vec(), [0, 7, 8]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// They do not fit.
    pub fn write(&mut self, at: usize, data: &[T]) {
        let fits = at.checked_add(data.len()).is_some_and(|end| end <= self.len);
        assert!(fits, "elements {at}..+{} of a buffer of {}", data.len(), self.len);
        self.inner.write((at * T::BYTES) as u64, &bytes_of(data));
    }

    /// Sets all numbers to one.
    ///
    /// ```
    /// # fn main() -> Result<(), handloom::Error> {
    /// let mut buffer = handloom::Device::new()?.zeroed::<f32>(2)?;
    /// buffer.fill(0.5);
    /// assert_eq!(buffer.to_vec(), [0.5, 0.5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fill(&mut self, value: T) {
        self.write(0, &vec![value; self.len]);
    }

    /// Names it for reports, which use the name where no parameter was bound to it.
    ///
    /// ```
    /// # fn main() -> Result<(), handloom::Error> {
    /// let mut table = handloom::Device::new()?.zeroed::<f32>(2)?;
    /// table.set_name("table");
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_name(&mut self, name: &str) {
        self.inner.set_name(name);
    }
}

/// A module on a device: its entries, its variables, and the code that was made for it. A clone is the same module.
///
/// [`Device::load_module`] has an example.
#[derive(Clone, Debug)]
pub struct Module {
    inner: runtime::Module,
    device: Device,
}

impl Module {
    /// An entry by its name.
    ///
    /// ```
    /// # fn main() -> Result<(), handloom::Error> {
    /// let module = handloom::Device::new()?.load_module(handloom::doc::SAXPY)?;
    /// assert_eq!(module.load_function("saxpy")?.to_string(), "saxpy(.u32 n, .f32 a, .u64 x, .u64 y)");
    /// assert!(module.load_function("daxpy").unwrap_err().to_string().contains("the module has `saxpy`"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is none; the error names those that there are.
    pub fn load_function(&self, name: &str) -> Result<Function, Error> {
        Ok(Function { inner: self.inner.function(Some(name))? })
    }

    /// The names of all entries, sorted. [`Device::load_module`] has an example.
    pub fn entries(&self) -> Vec<&str> {
        self.inner.entries().collect()
    }

    /// A variable (`.global` or `.const`) as numbers of one type.
    ///
    /// ```
    /// # fn main() -> Result<(), handloom::Error> {
    /// let module = handloom::Device::new()?.load_module(handloom::doc::SCALE)?;
    /// let offset = module.global::<f32>("offset")?;
    /// offset.write(&[1.0, 2.0, 3.0, 4.0])?;
    /// assert_eq!(offset.read(), [1.0, 2.0, 3.0, 4.0]);
    /// assert!(module.global::<f32>("offsets").unwrap_err().to_string().contains("the module has `offset`"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is none of that name, or its size is no multiple of that of the type.
    pub fn global<T: Element>(&self, name: &str) -> Result<Global<T>, Error> {
        let Some((_, bytes)) = self.inner.global(name) else {
            let all: Vec<String> = self.inner.globals().map(|name| format!("`{name}`")).collect();
            let all = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
            let message = format!("no variable `{name}`: the module has {all}");
            return Err(Error::refused(ErrorKind::NotFound, message));
        };
        let len = usize::try_from(bytes).unwrap_or(usize::MAX);
        if !len.is_multiple_of(T::BYTES) {
            let message = format!("`{name}` has {bytes} bytes, which are no whole number of {}", T::NAME);
            return Err(Error::refused(ErrorKind::InvalidValue, message));
        }
        Ok(Global { module: self.clone(), name: name.into(), len: len / T::BYTES, element: PhantomData })
    }

    /// What was warned of when it was loaded.
    ///
    /// ```
    /// # fn main() -> Result<(), handloom::Error> {
    /// let module = handloom::Device::new()?.load_module(handloom::doc::SAXPY)?;
    /// assert!(module.warnings().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn warnings(&self) -> Vec<Diagnostic> {
        self.inner.warnings().iter().map(|d| Diagnostic::of(d, self.inner.sources())).collect()
    }

    /// Its device.
    ///
    /// ```
    /// # fn main() -> Result<(), handloom::Error> {
    /// let module = handloom::Device::new()?.load_module(handloom::doc::SAXPY)?;
    /// let x = module.device().zeroed::<f32>(8)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn device(&self) -> &Device {
        &self.device
    }
}

/// A variable of a module. [`Module::global`] has an example.
#[derive(Clone, Debug)]
pub struct Global<T> {
    module: Module,
    name: String,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Element> Global<T> {
    /// Its numbers. [`Module::global`] has an example.
    pub fn read(&self) -> Vec<T> {
        from_bytes(&self.module.inner.read_global(&self.name).unwrap_or_default())
    }

    /// Writes its first numbers, or all of them. [`Module::global`] has an example.
    ///
    /// # Errors
    /// They are more than it holds.
    pub fn write(&self, data: &[T]) -> Result<(), Error> {
        if data.len() > self.len {
            let message =
                format!("{} elements of {} for `{}`, which holds {}", data.len(), T::NAME, self.name, self.len);
            return Err(Error::refused(ErrorKind::InvalidValue, message));
        }
        self.module.inner.write_global(&self.name, 0, &bytes_of(data));
        Ok(())
    }
}

/// An entry of a module. A clone is the same entry. Shown, it is its name with its parameters.
///
/// [`Module::load_function`] has an example.
#[derive(Clone, Debug)]
pub struct Function {
    pub(crate) inner: runtime::Function,
}

impl Function {
    /// Its name.
    ///
    /// ```
    /// # fn main() -> Result<(), handloom::Error> {
    /// let module = handloom::Device::new()?.load_module(handloom::doc::SAXPY)?;
    /// assert_eq!(module.load_function("saxpy")?.name(), "saxpy");
    /// # Ok(())
    /// # }
    /// ```
    pub fn name(&self) -> &str {
        self.inner.name()
    }
}

impl std::fmt::Display for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let params: Vec<String> =
            self.inner.params().iter().map(|p| format!("{} {}", runtime::type_of(p), p.name)).collect();
        write!(f, "{}({})", self.name(), params.join(", "))
    }
}
