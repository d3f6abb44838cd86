//! Reads and writes of bytes that passed a check: each access is one host access of its size, so it never tears.
//!
//! On x86-64 a plain move of an aligned scalar is atomic and has acquire and release order, so weak, relaxed and acquire loads are the same
//! access. The functions use atomic types so that races between threads of a kernel are no undefined behaviour of the host program.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::reserve::as_ptr;

/// Reads `bytes` (1, 2, 4 or 8) at an aligned address, zero-extended.
///
/// # Safety
/// The range is open memory of a window, aligned to its size.
pub(crate) unsafe fn load(addr: u64, bytes: u32) -> u64 {
    let p = as_ptr(addr);
    // SAFETY: by the caller's promise; device memory is only accessed through atomics or as raw bytes.
    unsafe {
        match bytes {
            1 => u64::from(AtomicU8::from_ptr(p.cast()).load(Ordering::Acquire)),
            2 => u64::from(AtomicU16::from_ptr(p.cast()).load(Ordering::Acquire)),
            4 => u64::from(AtomicU32::from_ptr(p.cast()).load(Ordering::Acquire)),
            _ => AtomicU64::from_ptr(p.cast()).load(Ordering::Acquire),
        }
    }
}

/// Writes the low `bytes` (1, 2, 4 or 8) of a value at an aligned address.
///
/// # Safety
/// As [`load`], and kernels may write there.
pub(crate) unsafe fn store(addr: u64, bytes: u32, value: u64) {
    let p = as_ptr(addr);
    // SAFETY: by the caller's promise. The casts cut the value to the size of the access.
    unsafe {
        match bytes {
            1 => AtomicU8::from_ptr(p.cast()).store(value as u8, Ordering::Release),
            2 => AtomicU16::from_ptr(p.cast()).store(value as u16, Ordering::Release),
            4 => AtomicU32::from_ptr(p.cast()).store(value as u32, Ordering::Release),
            _ => AtomicU64::from_ptr(p.cast()).store(value, Ordering::Release),
        }
    }
}

/// Replaces a value by a function of it, as one atomic step among all host threads. Gives the old value.
///
/// # Safety
/// As [`store`].
pub(crate) unsafe fn update(addr: u64, bytes: u32, mut f: impl FnMut(u64) -> u64) -> u64 {
    let p = as_ptr(addr);
    let (success, failure) = (Ordering::SeqCst, Ordering::Acquire);
    // SAFETY: by the caller's promise. The function always gives a value, so the loop ends with the old one.
    unsafe {
        match bytes {
            1 => {
                let a = AtomicU8::from_ptr(p.cast());
                let r = a.fetch_update(success, failure, |v| Some(f(u64::from(v)) as u8));
                u64::from(r.unwrap_or_else(|v| v))
            }
            2 => {
                let a = AtomicU16::from_ptr(p.cast());
                let r = a.fetch_update(success, failure, |v| Some(f(u64::from(v)) as u16));
                u64::from(r.unwrap_or_else(|v| v))
            }
            4 => {
                let a = AtomicU32::from_ptr(p.cast());
                let r = a.fetch_update(success, failure, |v| Some(f(u64::from(v)) as u32));
                u64::from(r.unwrap_or_else(|v| v))
            }
            _ => {
                let a = AtomicU64::from_ptr(p.cast());
                a.fetch_update(success, failure, |v| Some(f(v))).unwrap_or_else(|v| v)
            }
        }
    }
}

/// Adds atomically; gives the old value. For the sizes that the host has an instruction for.
///
/// # Safety
/// As [`store`]; `bytes` is 4 or 8.
pub(crate) unsafe fn fetch_add(addr: u64, bytes: u32, value: u64) -> u64 {
    let p = as_ptr(addr);
    // SAFETY: by the caller's promise.
    unsafe {
        if bytes == 4 {
            u64::from(AtomicU32::from_ptr(p.cast()).fetch_add(value as u32, Ordering::SeqCst))
        } else {
            AtomicU64::from_ptr(p.cast()).fetch_add(value, Ordering::SeqCst)
        }
    }
}

/// Compares and replaces 16 bytes atomically. Gives the old value.
///
/// # Safety
/// As [`store`], for 16 bytes aligned to 16; the host has `cmpxchg16b`.
pub(crate) unsafe fn compare_exchange_16(addr: u64, old: u128, new: u128) -> u128 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: by the caller's promise.
    unsafe {
        cmpxchg16b(as_ptr(addr).cast(), old, new)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (addr, old, new);
        0
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "cmpxchg16b")]
unsafe fn cmpxchg16b(p: *mut u128, old: u128, new: u128) -> u128 {
    // SAFETY: the caller of `compare_exchange_16` promises an aligned, open address.
    unsafe { std::arch::x86_64::cmpxchg16b(p, old, new, Ordering::SeqCst, Ordering::SeqCst) }
}

/// Replaces 16 bytes by a function of them, atomically. Gives the old value.
///
/// # Safety
/// As [`compare_exchange_16`].
pub(crate) unsafe fn update_16(addr: u64, f: impl Fn(u128) -> u128) -> u128 {
    let mut seen = 0;
    loop {
        // SAFETY: by the caller's promise.
        let old = unsafe { compare_exchange_16(addr, seen, f(seen)) };
        if old == seen {
            return old;
        }
        seen = old;
    }
}

/// Copies from device memory to the host.
///
/// # Safety
/// `addr ..` holds `to.len()` bytes of open memory.
pub(crate) unsafe fn copy_out(addr: u64, to: &mut [u8]) {
    // SAFETY: by the caller's promise; host memory never overlaps a window.
    unsafe { std::ptr::copy_nonoverlapping(as_ptr(addr).cast::<u8>(), to.as_mut_ptr(), to.len()) }
}

/// Copies from the host to device memory.
///
/// # Safety
/// `addr ..` holds `from.len()` bytes of open memory.
pub(crate) unsafe fn copy_in(addr: u64, from: &[u8]) {
    // SAFETY: by the caller's promise; host memory never overlaps a window.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), as_ptr(addr).cast::<u8>(), from.len()) }
}

/// Fills device memory with a byte.
///
/// # Safety
/// `addr ..` holds `bytes` bytes of open memory.
pub(crate) unsafe fn fill(addr: u64, bytes: usize, value: u8) {
    // SAFETY: by the caller's promise.
    unsafe { std::ptr::write_bytes(as_ptr(addr).cast::<u8>(), value, bytes) }
}
