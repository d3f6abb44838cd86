//! Modules, their entries and their variables.

use std::ffi::c_char;
use std::sync::Arc;

use handloom::{Error, ErrorKind, Ptx};
use handloom_diag::SourceMap;
use handloom_runtime as runtime;

use crate::device::{DEVICES, DeviceHandle};
pub use crate::handle::{FunctionHandle, ModuleHandle};
use crate::handle::{Handle, Table};
use crate::launch::PREPARED;
use crate::pointer::{bytes, bytes_mut, put, put_text, text, text_or};
use crate::status::{Failure, Status, call};

/// An entry, and the handle of its module.
pub(crate) struct Function {
    pub(crate) inner: runtime::Function,
    pub(crate) module: u64,
}

static MODULES: Table<runtime::Module> = Table::new();
pub(crate) static FUNCTIONS: Table<Function> = Table::new();

/// Loads a text on a device.
pub(crate) fn load(device: &runtime::Device, name: &str, text: &str) -> Result<runtime::Module, Error> {
    let mut sources = SourceMap::new();
    let file = sources.add(name, text);
    let sources = Arc::new(sources);
    runtime::Module::load(device, Arc::clone(&sources), &[file]).map_err(|e| Error::of_load(&e, &sources))
}

/// `bytes` of a text that ends with NUL: `HANDLOOM_NUL_ENDED` of the header.
const NUL_ENDED: usize = usize::MAX;

/// PTX as a program passes it: so many bytes, or up to a NUL.
///
/// # Safety
/// As of the exported functions.
unsafe fn ptx<'a>(source: *const c_char, count: usize) -> Result<&'a str, Failure> {
    if count == NUL_ENDED {
        // SAFETY: by the caller's promise.
        return unsafe { text(source, "ptx") };
    }
    // SAFETY: the same.
    let bytes = unsafe { bytes(source.cast(), count, "ptx")? };
    std::str::from_utf8(bytes).map_err(|e| Failure::new(Status::InvalidModule, format!("`ptx` is no UTF-8: {e}")))
}

/// Loads a module from PTX: `bytes` of it, or `HANDLOOM_NUL_ENDED` for a text that ends with NUL. Reports call it `name`, or `module.ptx` if that is NULL. Nothing is
/// compiled until an entry is launched. Of wrong PTX `handloom_last_error` has all diagnostics with their places.
///
/// # Safety
/// `ptx` points to so many bytes, `name` is NULL or ends with NUL, `module` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_module_load(
    device: DeviceHandle,
    ptx: *const c_char,
    bytes: usize,
    name: *const c_char,
    module: *mut ModuleHandle,
) -> Status {
    call(|| {
        let device = DEVICES.get(device)?;
        // SAFETY: by the caller's promise.
        let (text, name) = unsafe { (self::ptx(ptx, bytes)?, text_or(name, "name", "module.ptx")?) };
        if module.is_null() {
            return Err(Failure::null("module"));
        }
        let new = load(&device.inner, name, text)?;
        // SAFETY: by the caller's promise.
        unsafe { put(module, "module", MODULES.add(new)) }
    })
}

/// Loads a module from a file of PTX, whose path reports use.
///
/// # Safety
/// `path` ends with NUL, `module` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_module_load_file(
    device: DeviceHandle,
    path: *const c_char,
    module: *mut ModuleHandle,
) -> Status {
    call(|| {
        let device = DEVICES.get(device)?;
        // SAFETY: by the caller's promise.
        let path = unsafe { text(path, "path")? };
        if module.is_null() {
            return Err(Failure::null("module"));
        }
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::new(Status::File, format!("{path} cannot be read: {e}")))?;
        let new = load(&device.inner, path, &text)?;
        // SAFETY: by the caller's promise.
        unsafe { put(module, "module", MODULES.add(new)) }
    })
}

/// Ends a module, and with it the handles of its entries and of its prepared launches. What runs of it comes to its end.
#[unsafe(no_mangle)]
pub extern "C" fn handloom_module_release(module: ModuleHandle) -> Status {
    call(|| {
        let ended = MODULES.remove(module)?;
        FUNCTIONS.remove_all(|f| f.module == module.id());
        PREPARED.remove_all(|p| p.module == module.id());
        drop(ended);
        Ok(())
    })
}

/// All diagnostics of PTX, warnings too, each as a JSON object on a line of its own; nothing if there are none. Runs nothing. The text goes to `buffer` as that of
/// `handloom_report_write` does.
///
/// # Safety
/// As of `handloom_module_load` and `handloom_report_write`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_check(
    ptx: *const c_char,
    bytes: usize,
    name: *const c_char,
    buffer: *mut c_char,
    room: usize,
    needed: *mut usize,
) -> Status {
    call(|| {
        // SAFETY: by the caller's promise.
        let (text, name) = unsafe { (self::ptx(ptx, bytes)?, text_or(name, "name", "module.ptx")?) };
        let told = handloom::check(Ptx::new(text).named(name));
        let lines: String = told.iter().flat_map(|d| [d.json.as_str(), "\n"]).collect();
        // SAFETY: the same.
        unsafe { put_text(lines.as_bytes(), buffer, room, needed) }
    })
}

/// The names of all entries of a module, each on a line of its own, sorted. The text goes to `buffer` as that of `handloom_report_write` does.
///
/// # Safety
/// As of `handloom_report_write`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_module_entries(
    module: ModuleHandle,
    buffer: *mut c_char,
    room: usize,
    needed: *mut usize,
) -> Status {
    call(|| {
        let module = MODULES.get(module)?;
        let lines: String = module.entries().flat_map(|name| [name, "\n"]).collect();
        // SAFETY: by the caller's promise.
        unsafe { put_text(lines.as_bytes(), buffer, room, needed) }
    })
}

/// An entry of a module by its name, or its only one if that is NULL.
///
/// # Safety
/// `name` is NULL or ends with NUL, `function` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_module_function(
    module: ModuleHandle,
    name: *const c_char,
    function: *mut FunctionHandle,
) -> Status {
    call(|| {
        let inner = MODULES.get(module)?;
        // SAFETY: by the caller's promise.
        let name = if name.is_null() { None } else { Some(unsafe { text(name, "name")? }) };
        if function.is_null() {
            return Err(Failure::null("function"));
        }
        let new = FUNCTIONS.add(Function { inner: inner.function(name)?, module: module.id() });
        // SAFETY: the same.
        unsafe { put(function, "function", new)? };
        // Another thread may have ended the module meanwhile: then what it made is ended too.
        MODULES.get(module).map(drop).inspect_err(|_| FUNCTIONS.remove_all(|f| f.module == module.id()))
    })
}

/// A variable, and the range of it that is asked for.
fn variable(module: &runtime::Module, name: &str, offset: u64, count: usize) -> Result<(u64, u64), Failure> {
    let Some((address, size)) = module.global(name) else {
        let all: Vec<String> = module.globals().map(|name| format!("`{name}`")).collect();
        let all = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
        return Err(Error::refused(ErrorKind::NotFound, format!("no variable `{name}`: the module has {all}")).into());
    };
    if offset.checked_add(count as u64).is_none_or(|end| end > size) {
        let text = format!("{count} bytes from byte {offset} on of `{name}`, which has {size}");
        return Err(Failure::new(Status::InvalidValue, text));
    }
    Ok((address, size))
}

/// The address and the size in bytes of a variable (`.global` or `.const`) of a module. `bytes` may be NULL.
///
/// # Safety
/// `name` ends with NUL, `address` may be written, and `bytes` unless it is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_module_variable(
    module: ModuleHandle,
    name: *const c_char,
    address: *mut u64,
    bytes: *mut u64,
) -> Status {
    call(|| {
        let module = MODULES.get(module)?;
        // SAFETY: by the caller's promise, here and below.
        let name = unsafe { text(name, "name")? };
        let (at, size) = variable(&module, name, 0, 0)?;
        // SAFETY: as above.
        unsafe { put(address, "address", at)? };
        if bytes.is_null() {
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { put(bytes, "bytes", size) }
    })
}

/// Writes bytes of the host to a variable of a module, from its byte `offset` on.
///
/// # Safety
/// `name` ends with NUL, at `data` so many bytes may be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_variable_write(
    module: ModuleHandle,
    name: *const c_char,
    offset: u64,
    data: *const u8,
    count: usize,
) -> Status {
    call(|| {
        let module = MODULES.get(module)?;
        // SAFETY: by the caller's promise.
        let (name, data) = unsafe { (text(name, "name")?, bytes(data, count, "data")?) };
        variable(&module, name, offset, count)?;
        module.write_global(name, offset, data);
        Ok(())
    })
}

/// Reads bytes of a variable of a module, from its byte `offset` on.
///
/// # Safety
/// `name` ends with NUL, at `data` so many bytes may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_variable_read(
    module: ModuleHandle,
    name: *const c_char,
    offset: u64,
    data: *mut u8,
    count: usize,
) -> Status {
    call(|| {
        let module = MODULES.get(module)?;
        // SAFETY: by the caller's promise.
        let (name, to) = unsafe { (text(name, "name")?, bytes_mut(data, count, "data")?) };
        variable(&module, name, offset, count)?;
        let all = module.read_global(name).unwrap_or_default();
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        match start.checked_add(count).and_then(|end| all.get(start..end)) {
            Some(part) => to.copy_from_slice(part),
            None => return Err(Failure::new(Status::Bug, "bug: a variable is shorter than it says")),
        }
        Ok(())
    })
}
