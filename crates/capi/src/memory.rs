//! Memory of devices.

use handloom::Error;
use handloom_runtime as runtime;
use handloom_runtime::DeviceBuffer;

use crate::device::{DEVICES, DeviceHandle};
pub use crate::handle::BufferHandle;
use crate::handle::Table;
use crate::pointer::{bytes, bytes_mut, put};
use crate::status::{Failure, Status, call};

/// A buffer and the device that it is of.
pub(crate) struct Buffer {
    pub(crate) inner: DeviceBuffer,
    device: runtime::Device,
}

impl Buffer {
    /// The address of its byte `offset`, if there are so many bytes from there on.
    fn range(&self, offset: u64, count: usize) -> Result<u64, Failure> {
        let len = self.inner.len();
        match offset.checked_add(count as u64) {
            Some(end) if end <= len => Ok(self.inner.address() + offset),
            _ => {
                let text = format!("{count} bytes from byte {offset} on of a buffer of {len} bytes");
                Err(Failure::new(Status::InvalidValue, text))
            }
        }
    }
}

pub(crate) static BUFFERS: Table<Buffer> = Table::new();

/// Makes a buffer of zeros.
///
/// # Safety
/// `buffer` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_buffer_create(device: DeviceHandle, bytes: u64, buffer: *mut BufferHandle) -> Status {
    call(|| {
        if buffer.is_null() {
            return Err(Failure::null("buffer"));
        }
        let device = DEVICES.get(device)?.inner.clone();
        let inner = device.zeroed(bytes)?;
        // SAFETY: by the caller's promise.
        unsafe { put(buffer, "buffer", BUFFERS.add(Buffer { inner, device })) }
    })
}

/// Frees a buffer. A kernel that uses its address later traps; one that runs with it now still may.
#[unsafe(no_mangle)]
pub extern "C" fn handloom_buffer_release(buffer: BufferHandle) -> Status {
    call(|| BUFFERS.remove(buffer).map(drop))
}

/// Writes bytes of the host to a buffer, from its byte `offset` on.
///
/// # Safety
/// At `data` so many bytes may be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_buffer_write(
    buffer: BufferHandle,
    offset: u64,
    data: *const u8,
    count: usize,
) -> Status {
    call(|| {
        let buffer = BUFFERS.get(buffer)?;
        let at = buffer.range(offset, count)?;
        // SAFETY: by the caller's promise.
        let data = unsafe { bytes(data, count, "data")? };
        buffer.device.memory().write(at, data).map_err(refused)
    })
}

/// Reads bytes of a buffer, from its byte `offset` on, to memory of the host.
///
/// # Safety
/// At `data` so many bytes may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_buffer_read(
    buffer: BufferHandle,
    offset: u64,
    data: *mut u8,
    count: usize,
) -> Status {
    call(|| {
        let buffer = BUFFERS.get(buffer)?;
        let at = buffer.range(offset, count)?;
        // SAFETY: by the caller's promise.
        let data = unsafe { bytes_mut(data, count, "data")? };
        buffer.device.memory().read(at, data).map_err(refused)
    })
}

/// The address of a buffer, as kernels see it, for structures that hold one; and its size in bytes, unless `bytes` is NULL.
///
/// # Safety
/// `address` may be written, and `bytes` unless it is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_buffer_address(buffer: BufferHandle, address: *mut u64, bytes: *mut u64) -> Status {
    call(|| {
        let buffer = BUFFERS.get(buffer)?;
        // SAFETY: by the caller's promise.
        unsafe { put(address, "address", buffer.inner.address())? };
        if bytes.is_null() {
            return Ok(());
        }
        // SAFETY: the same.
        unsafe { put(bytes, "bytes", buffer.inner.len()) }
    })
}

fn refused(e: runtime::MemoryError) -> Failure {
    Error::refused(e.kind(), e.to_string()).into()
}
