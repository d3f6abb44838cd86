//! Devices.

use std::ffi::c_char;
use std::sync::{Mutex, PoisonError};

use handloom_runtime as runtime;
use handloom_runtime::{CodeCache, Store};

pub use crate::handle::DeviceHandle;
use crate::handle::Table;
use crate::pointer::{put, put_text};
use crate::status::{Failure, Status, call};

/// A device, with the text that its kernels printed and nobody took.
pub(crate) struct Device {
    pub(crate) inner: runtime::Device,
    printed: Mutex<Vec<u8>>,
}

pub(crate) static DEVICES: Table<Device> = Table::new();

/// Makes a device: 64 GiB of addresses of its own, and one host thread a core while kernels run. Two devices share nothing but code.
///
/// # Safety
/// `device` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_device_create(device: *mut DeviceHandle) -> Status {
    call(|| {
        if device.is_null() {
            return Err(Failure::null("device"));
        }
        let inner = runtime::Device::with_code(&CodeCache::new(Store::of_environment()))?;
        let new = DEVICES.add(Device { inner, printed: Mutex::default() });
        // SAFETY: by the caller's promise.
        unsafe { put(device, "device", new) }
    })
}

/// Ends a handle of a device. Its modules, buffers and streams live until they are released too.
#[unsafe(no_mangle)]
pub extern "C" fn handloom_device_release(device: DeviceHandle) -> Status {
    call(|| DEVICES.remove(device).map(drop))
}

/// Takes what kernels of the device have printed (`printf`) since it was taken last, as text with a NUL at its end, if there is room for all of it.
/// `needed`, unless it is NULL, gets the bytes that are needed; with a NULL `buffer` nothing is taken.
///
/// # Safety
/// `buffer` is NULL or has `room` bytes that may be written; `needed` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_device_take_output(
    device: DeviceHandle,
    buffer: *mut c_char,
    room: usize,
    needed: *mut usize,
) -> Status {
    call(|| {
        let device = DEVICES.get(device)?;
        let mut printed = device.printed.lock().unwrap_or_else(PoisonError::into_inner);
        printed.append(&mut device.inner.take_output());
        // SAFETY: by the caller's promise.
        unsafe { put_text(&printed, buffer, room, needed)? };
        if !buffer.is_null() {
            printed.clear();
        }
        Ok(())
    })
}
