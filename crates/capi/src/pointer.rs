//! Pointers that a program passes: the one file that reads and writes through them.
//!
//! Every function here is for the parameters of exported functions, which are `unsafe` to call: whoever calls one promises that each of its pointers is null or
//! points to what the header says, for as long as the call lasts. Nothing is assumed of alignment.

use std::ffi::{CStr, c_char};

use crate::status::{Failure, Status};

/// Writes a result.
///
/// # Safety
/// The pointer is null or may be written.
pub(crate) unsafe fn put<T>(to: *mut T, what: &str, value: T) -> Result<(), Failure> {
    if to.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: not null, so it may be written by the caller's promise.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Reads a structure of numbers.
///
/// # Safety
/// The pointer is null or points to one.
pub(crate) unsafe fn get<T: Copy>(from: *const T, what: &str) -> Result<T, Failure> {
    if from.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: not null, so it points to a value by the caller's promise; all that is read so is numbers, of which any bits are one.
    Ok(unsafe { from.read_unaligned() })
}

/// Reads an array of structures of numbers.
///
/// # Safety
/// The pointer is null or points to so many.
pub(crate) unsafe fn list<T: Copy>(from: *const T, count: usize, what: &str) -> Result<Vec<T>, Failure> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if from.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: as in `get`, of each of the elements.
    Ok((0..count).map(|i| unsafe { from.add(i).read_unaligned() }).collect())
}

/// Bytes that are read while the call lasts.
///
/// # Safety
/// The pointer is null or so many bytes may be read there, which nobody writes meanwhile.
pub(crate) unsafe fn bytes<'a>(from: *const u8, count: usize, what: &str) -> Result<&'a [u8], Failure> {
    match (count, from.is_null()) {
        (0, _) => Ok(&[]),
        (_, true) => Err(Failure::null(what)),
        // SAFETY: not null, so the bytes are there by the caller's promise; an object of C is no larger than `isize::MAX`, which is looked at.
        (_, false) if isize::try_from(count).is_ok() => Ok(unsafe { std::slice::from_raw_parts(from, count) }),
        (_, false) => Err(Failure::new(Status::InvalidValue, format!("{count} bytes at `{what}`"))),
    }
}

/// Bytes that are written while the call lasts.
///
/// # Safety
/// The pointer is null or so many bytes may be written there, which nobody else uses meanwhile; they have been written before.
pub(crate) unsafe fn bytes_mut<'a>(to: *mut u8, count: usize, what: &str) -> Result<&'a mut [u8], Failure> {
    match (count, to.is_null()) {
        (0, _) => Ok(&mut []),
        (_, true) => Err(Failure::null(what)),
        // SAFETY: as in `bytes`.
        (_, false) if isize::try_from(count).is_ok() => Ok(unsafe { std::slice::from_raw_parts_mut(to, count) }),
        (_, false) => Err(Failure::new(Status::InvalidValue, format!("{count} bytes at `{what}`"))),
    }
}

/// A text that ends with NUL.
///
/// # Safety
/// The pointer is null or points to one.
pub(crate) unsafe fn text<'a>(from: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if from.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: not null, so a text lies there by the caller's promise, and stays while the call lasts.
    let text = unsafe { CStr::from_ptr(from) };
    text.to_str().map_err(|e| Failure::new(Status::InvalidValue, format!("`{what}` is no UTF-8: {e}")))
}

/// A text that may be missing.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn text_or<'a>(from: *const c_char, what: &str, other: &'a str) -> Result<&'a str, Failure> {
    // SAFETY: the promise is passed on.
    if from.is_null() { Ok(other) } else { unsafe { text(from, what) } }
}

/// Writes a text with its NUL to a buffer that has room for so many bytes, and how many it needs to `needed` if that is not null. With a null buffer only that.
///
/// # Safety
/// Both pointers are null or may be written.
pub(crate) unsafe fn put_text(
    text: &[u8],
    buffer: *mut c_char,
    room: usize,
    needed: *mut usize,
) -> Result<(), Failure> {
    let size = text.len() + 1;
    if !needed.is_null() {
        // SAFETY: not null, so it may be written by the caller's promise.
        unsafe { needed.write_unaligned(size) };
    }
    if buffer.is_null() {
        return if needed.is_null() { Err(Failure::null("buffer")) } else { Ok(()) };
    }
    if room < size {
        return Err(Failure::new(Status::TooSmall, format!("a buffer of {room} bytes for a text of {size}")));
    }
    // SAFETY: not null, so `room` bytes may be written by the caller's promise, which are enough; a text of ours does not overlap them.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), text.len());
        buffer.add(text.len()).write(0);
    }
    Ok(())
}
