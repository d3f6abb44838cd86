//! Reads and writes of bytes that passed a check: each access is one host access of its size, so it never tears.
//!
//! All loads acquire and all stores release, whatever their order: on a host whose plain moves do that anyway (`plan::host::MemoryOrder`) it
//! costs nothing, on others it is right. The functions use atomic types so that races between threads of a kernel are no undefined behaviour of the
//! host program.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::reserve::as_ptr;

/// Reads `bytes` (1, 2, 4 or 8) at an aligned address, zero-extended.
///
/// # Safety
/// The range is open memory of a window, aligned to its size.
#[inline]
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
#[inline]
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

/// `cmpxchg16b`, written out: the standard library's form becomes a library call where the feature is not known at build time.
#[cfg(target_arch = "x86_64")]
unsafe fn cmpxchg16b(p: *mut u128, old: u128, new: u128) -> u128 {
    let (mut low, mut high) = (old as u64, (old >> 64) as u64);
    // SAFETY: the caller of `compare_exchange_16` promises an aligned, open address. The compiler keeps `rbx` for itself, so it is
    // exchanged before the instruction and put back behind it; no other register than those named changes.
    unsafe {
        std::arch::asm!(
            "xchg rsi, rbx",
            "lock cmpxchg16b [rdi]",
            "mov rbx, rsi",
            in("rdi") p,
            inout("rsi") new as u64 => _,
            in("rcx") (new >> 64) as u64,
            inout("rax") low,
            inout("rdx") high,
            options(nostack),
        );
    }
    u128::from(low) | u128::from(high) << 64
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

/// The size of the widest aligned access at `addr` that stays below `left` bytes.
fn piece(addr: u64, left: usize) -> usize {
    let aligned = 1 << addr.trailing_zeros().min(3);
    if left >= aligned { aligned } else { 1 << left.ilog2() }
}

/// Copies from device memory to the host, also while kernels write there: each word as it lies aligned in device memory is read at once.
///
/// # Safety
/// `addr ..` holds `to.len()` bytes of open memory.
pub(crate) unsafe fn read_words(mut addr: u64, mut to: &mut [u8]) {
    while !to.is_empty() {
        if addr.is_multiple_of(8) && to.len() >= 8 {
            let (words, rest) = to.as_chunks_mut::<8>();
            for word in words {
                // SAFETY: by the caller's promise.
                *word = unsafe { load(addr, 8) }.to_ne_bytes();
                addr += 8;
            }
            to = rest;
            continue;
        }
        let n = piece(addr, to.len());
        let (now, rest) = to.split_at_mut(n);
        // SAFETY: by the caller's promise.
        now.copy_from_slice(&unsafe { load(addr, n as u32) }.to_le_bytes()[..n]);
        addr += n as u64;
        to = rest;
    }
}

/// Copies from the host to device memory, also while kernels read there: each word as it lies aligned in device memory is written at once.
///
/// # Safety
/// As [`read_words`], and it may be written.
pub(crate) unsafe fn write_words(mut addr: u64, mut from: &[u8]) {
    while !from.is_empty() {
        if addr.is_multiple_of(8) && from.len() >= 8 {
            let (words, rest) = from.as_chunks::<8>();
            for word in words {
                // SAFETY: by the caller's promise.
                unsafe { store(addr, 8, u64::from_ne_bytes(*word)) };
                addr += 8;
            }
            from = rest;
            continue;
        }
        let n = piece(addr, from.len());
        let (now, rest) = from.split_at(n);
        let mut word = [0; 8];
        word[..n].copy_from_slice(now);
        // SAFETY: by the caller's promise.
        unsafe { store(addr, n as u32, u64::from_le_bytes(word)) };
        addr += n as u64;
        from = rest;
    }
}

/// Fills device memory with a pattern, also while kernels use it: aligned words of 8 bytes become `pattern`, words cut by an end the part of it
/// that lies there.
///
/// # Safety
/// As [`write_words`], for `bytes` bytes.
pub(crate) unsafe fn fill_words(mut addr: u64, bytes: u64, pattern: u64) {
    let end = addr + bytes;
    while addr < end {
        // No longer than 8 bytes, so it fits.
        let n = piece(addr, (end - addr).min(8) as usize) as u64;
        // SAFETY: by the caller's promise.
        unsafe { store(addr, n as u32, pattern >> (8 * (addr % 8))) };
        addr += n;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(16))]
    struct Cell([u64; 2]);

    #[test]
    fn sixteen_bytes_are_exchanged_as_one() {
        let mut c = Cell([1, 2]);
        let at = (&raw mut c.0).expose_provenance() as u64;
        // SAFETY: `c` is aligned to 16, alive, and used by nobody else.
        let (missed, old, done) = unsafe {
            let missed = compare_exchange_16(at, 7, 9);
            (missed, update_16(at, |v| v + 1), load(at + 8, 8))
        };
        assert_eq!((missed, old, done), (1 | 2 << 64, 1 | 2 << 64, 2));
        assert_eq!(c.0, [2, 2]);
    }

    #[test]
    fn narrow_accesses_leave_their_neighbours() {
        let mut c = Cell([u64::MAX, 0]);
        let at = (&raw mut c.0).expose_provenance() as u64;
        // SAFETY: as above.
        unsafe {
            store(at + 2, 2, 0x1234_5678);
            assert_eq!(update(at + 4, 1, |v| v ^ 0xf), 0xff);
            assert_eq!(fetch_add(at + 8, 4, u64::MAX), 0);
        }
        assert_eq!(c.0, [0xffff_fff0_5678_ffff, 0xffff_ffff]);
    }
}
