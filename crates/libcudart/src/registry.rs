//! What a program registers before `main`: its fat binaries, and which host functions and variables stand for which device ones.
//!
//! Registering costs next to nothing: a fat binary is loaded when one of its kernels or variables is used for the first time.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use crate::cu;
use crate::device::ready;
use crate::error::{Answer, Error, driver};
use crate::types::Address;

/// A fat binary of the program.
#[derive(Debug)]
struct Binary {
    /// Address of its wrapper, which lies in the program's data until it is unregistered.
    wrapper: usize,
    /// The library that it was loaded as.
    library: OnceLock<Answer<u64>>,
    /// The variables that the host reaches by pointers of its own: name, and address of the pointer.
    managed: Mutex<Vec<(Arc<CStr>, usize)>>,
}

impl Binary {
    fn library(&self) -> Answer<u64> {
        // An error of the thread's context is no property of the binary.
        ready()?;
        *self.library.get_or_init(|| {
            let nothing = std::ptr::null;
            let mut library = 0;
            let image: Address = std::ptr::with_exposed_provenance(self.wrapper);
            // SAFETY: the compiler of the program put a wrapper there.
            driver(unsafe {
                cu::cuLibraryLoadData(&mut library, image, nothing(), nothing(), 0, nothing(), nothing(), 0)
            })?;
            // Without room for it, the process waits for its work when it ends.
            let _ = atexit(end);
            Ok(library)
        })
    }
}

/// A function that the host knows by the address of its stub.
#[derive(Debug)]
pub struct Function {
    binary: Arc<Binary>,
    name: CString,
    kernel: OnceLock<u64>,
}

impl Function {
    /// Its kernel, for which its fat binary is loaded.
    ///
    /// # Errors
    /// What loading says, or that there is no such kernel in what was loaded.
    pub fn kernel(&self) -> Answer<u64> {
        if let Some(kernel) = self.kernel.get() {
            return Ok(*kernel);
        }
        let library = self.binary.library()?;
        let mut kernel = 0;
        // SAFETY: the name ends in NUL.
        match driver(unsafe { cu::cuLibraryGetKernel(&mut kernel, library, self.name.as_ptr()) }) {
            Err(Error::SYMBOL_NOT_FOUND) => Err(Error::INVALID_DEVICE_FUNCTION),
            other => other,
        }?;
        Ok(*self.kernel.get_or_init(|| kernel))
    }
}

/// A variable that the host knows by the address of its shadow.
#[derive(Debug)]
pub struct Variable {
    binary: Arc<Binary>,
    name: Arc<CStr>,
    size: usize,
    managed: bool,
}

impl Variable {
    /// Its address on the current device and its size in bytes.
    ///
    /// # Errors
    /// What loading says, or that there is no such variable in what was loaded.
    pub fn place(&self) -> Answer<(u64, usize)> {
        let library = self.binary.library()?;
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: the name ends in NUL.
        let found = unsafe {
            if self.managed {
                cu::cuLibraryGetManaged(&mut address, &mut bytes, library, self.name.as_ptr())
            } else {
                cu::cuLibraryGetGlobal(&mut address, &mut bytes, library, self.name.as_ptr())
            }
        };
        match driver(found) {
            Err(Error::SYMBOL_NOT_FOUND) => Err(Error::INVALID_SYMBOL),
            other => other,
        }?;
        Ok((address, bytes))
    }

    /// Its size in bytes, as the program was compiled.
    pub fn size(&self) -> usize {
        self.size
    }
}

#[derive(Debug, Default)]
struct Registered {
    binaries: HashMap<usize, Arc<Binary>>,
    functions: HashMap<usize, Arc<Function>>,
    variables: HashMap<usize, Arc<Variable>>,
}

/// The process ends. Each binary that is loaded has noted this after the program has noted what unregisters the binary, so it is known before.
static ENDS: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    safe fn atexit(handler: extern "C" fn()) -> i32;
}

/// The library is never unloaded (it is linked so).
extern "C" fn end() {
    ENDS.store(true, Ordering::Relaxed);
}

static REGISTERED: RwLock<Option<Registered>> = RwLock::new(None);

fn registered() -> RwLockReadGuard<'static, Option<Registered>> {
    REGISTERED.read().unwrap_or_else(PoisonError::into_inner)
}

fn change<T>(with: impl FnOnce(&mut Registered) -> T) -> T {
    with(REGISTERED.write().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

/// The function of a host stub.
pub fn function(stub: Address) -> Option<Arc<Function>> {
    registered().as_ref()?.functions.get(&stub.addr()).cloned()
}

/// The host stub of a kernel, if it has one.
pub fn stub(kernel: u64) -> Option<Address> {
    let registered = registered();
    let mut all = registered.as_ref()?.functions.iter();
    let found = all.find(|(_, function)| kernel != 0 && function.kernel.get() == Some(&kernel))?;
    Some(std::ptr::with_exposed_provenance(*found.0))
}

/// The variable of a host shadow.
pub fn variable(shadow: Address) -> Option<Arc<Variable>> {
    registered().as_ref()?.variables.get(&shadow.addr()).cloned()
}

fn binary(handle: *mut *mut c_void) -> Option<Arc<Binary>> {
    registered().as_ref()?.binaries.get(&handle.addr()).cloned()
}

/// A name that the program passes.
fn name(text: *const c_char) -> Option<CString> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the compiler of the program wrote a name that ends in NUL.
    Some(unsafe { CStr::from_ptr(text) }.to_owned())
}

/// `__cudaRegisterFatBinary` of the runtime API. The handle is an address that means itself.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterFatBinary(wrapper: *mut c_void) -> *mut *mut c_void {
    let binary =
        Binary { wrapper: wrapper.expose_provenance(), library: OnceLock::new(), managed: Mutex::new(Vec::new()) };
    let binary = Arc::new(binary);
    let handle = Arc::as_ptr(&binary).addr();
    change(|r| r.binaries.insert(handle, binary));
    std::ptr::without_provenance_mut(handle)
}

/// `__cudaRegisterFatBinaryEnd` of the runtime API.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterFatBinaryEnd(_handle: *mut *mut c_void) {}

/// `__cudaUnregisterFatBinary` of the runtime API: at the end of the program, or when a library is closed.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaUnregisterFatBinary(handle: *mut *mut c_void) {
    // Work may still use what is in it, which must not keep a process from its end; nor must a lock that the thread has which a signal interrupted.
    if ENDS.load(Ordering::Relaxed) {
        return;
    }
    let gone = change(|r| {
        let binary = r.binaries.remove(&handle.addr())?;
        r.functions.retain(|_, f| !Arc::ptr_eq(&f.binary, &binary));
        r.variables.retain(|_, v| !Arc::ptr_eq(&v.binary, &binary));
        Some(binary)
    });
    if let Some(Ok(library)) = gone.as_ref().and_then(|binary| binary.library.get()) {
        // Nobody is left who could be told.
        let _ = cu::cuLibraryUnload(*library);
    }
}

/// `__cudaRegisterFunction` of the runtime API.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterFunction(
    handle: *mut *mut c_void,
    stub: Address,
    _device_function: *mut c_char,
    device_name: *const c_char,
    _thread_limit: i32,
    _tid: *mut c_void,
    _bid: *mut c_void,
    _block: *mut c_void,
    _grid: *mut c_void,
    _warp_size: *mut i32,
) {
    if let (Some(binary), Some(name)) = (binary(handle), name(device_name)) {
        let function = Function { binary, name, kernel: OnceLock::new() };
        change(|r| r.functions.insert(stub.addr(), Arc::new(function)));
    }
}

/// `__cudaRegisterVar` of the runtime API.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterVar(
    handle: *mut *mut c_void,
    shadow: Address,
    _device_address: *mut c_char,
    device_name: *const c_char,
    _is_extern: i32,
    size: usize,
    _is_constant: i32,
    _is_global: i32,
) {
    if let (Some(binary), Some(name)) = (binary(handle), name(device_name)) {
        let variable = Variable { binary, name: Arc::from(name), size, managed: false };
        change(|r| r.variables.insert(shadow.addr(), Arc::new(variable)));
    }
}

/// `__cudaRegisterManagedVar` of the runtime API: the program reaches the variable by a pointer of its own, which
/// [`__cudaInitModule`] fills.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterManagedVar(
    handle: *mut *mut c_void,
    pointer: *mut *mut c_void,
    _device_address: *mut c_char,
    device_name: *const c_char,
    _is_extern: i32,
    size: usize,
    _is_constant: i32,
    _is_global: i32,
) {
    if let (Some(binary), Some(name)) = (binary(handle), name(device_name)) {
        let name: Arc<CStr> = Arc::from(name);
        binary
            .managed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((Arc::clone(&name), pointer.expose_provenance()));
        let variable = Variable { binary, name, size, managed: true };
        change(|r| r.variables.insert(pointer.addr(), Arc::new(variable)));
    }
}

/// `__cudaInitModule` of the runtime API: the program is about to touch a managed variable. Returns 1 when all of them have addresses.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaInitModule(handle: *mut *mut c_void) -> c_char {
    let Some(binary) = binary(handle) else { return 0 };
    let wanted = std::mem::take(&mut *binary.managed.lock().unwrap_or_else(PoisonError::into_inner));
    let mut all = 1;
    for (name, pointer) in wanted {
        let variable = Variable { binary: Arc::clone(&binary), name, size: 0, managed: true };
        let code = crate::error::answer("__cudaInitModule", || {
            let (address, size) = variable.place()?;
            let pointer: *mut u64 = std::ptr::with_exposed_provenance_mut(pointer);
            // SAFETY: the compiler of the program registered the address of this pointer, which lies in the program's data.
            unsafe { pointer.write(address) };
            // The address itself stands for the variable, too.
            let shadow = usize::try_from(address).map_err(|_| Error::INVALID_VALUE)?;
            let known = Variable { binary: Arc::clone(&binary), name: Arc::clone(&variable.name), size, managed: true };
            change(|r| r.variables.insert(shadow, Arc::new(known)));
            Ok(())
        });
        if code != 0 {
            all = 0;
        }
    }
    all
}
