//! Reads and writes of bytes that passed a check: each access is one host access of its size, so it never tears.
//!
//! Copies and fills move words by instructions of the host that do not split them ([`move_words`]).
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

/// From how many bytes on a copy goes past the caches: it would drive everything else out of them.
const LARGE: u64 = 4 << 20;

/// Copies from device memory to the host, also while kernels write there: each word as it lies aligned in device memory is read at once. `whole`: bytes
/// of the copy that this is a part of.
///
/// # Safety
/// `addr ..` holds `to.len()` bytes of open memory.
pub(crate) unsafe fn read_words(mut addr: u64, mut to: &mut [u8], whole: u64) {
    while !to.is_empty() {
        if addr.is_multiple_of(8) && to.len() >= 8 {
            let (words, rest) = to.as_chunks_mut::<8>();
            let n = words.len();
            // SAFETY: by the caller's promise; host memory never overlaps a window.
            unsafe { move_words(words.as_mut_ptr().cast(), as_ptr(addr).cast(), n, whole) }
            addr += 8 * n as u64;
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

/// Copies from the host to device memory, also while kernels read there: each word as it lies aligned in device memory is written at once. `whole` as of
/// [`read_words`].
///
/// # Safety
/// As [`read_words`], and it may be written.
pub(crate) unsafe fn write_words(mut addr: u64, mut from: &[u8], whole: u64) {
    while !from.is_empty() {
        if addr.is_multiple_of(8) && from.len() >= 8 {
            let (words, rest) = from.as_chunks::<8>();
            let n = words.len();
            // SAFETY: by the caller's promise; host memory never overlaps a window.
            unsafe { move_words(as_ptr(addr).cast(), words.as_ptr().cast(), n, whole) }
            addr += 8 * n as u64;
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

/// Moves words of 8 bytes between the host and device memory, whose end of it is aligned to them; kernels may use that meanwhile.
///
/// The moves are written out as instructions, as those of compiled code are, so no rule of the language about races is touched; what counts is that no
/// aligned word is moved in parts. `rep movsq` is by its definition one move of 8 bytes after the other, of which only the order is free. The vectors of
/// the other way start at words at both ends and are made of whole words, as the vectors are by which compiled code reads and writes neighbouring lanes
/// (`plan::host` has that); its stores are in their place before the function ends.
///
/// # Safety
/// As [`read_words`] and [`write_words`]; the two ranges do not overlap.
#[cfg(target_arch = "x86_64")]
unsafe fn move_words(mut to: *mut u8, mut from: *const u8, mut words: usize, whole: u64) {
    /// Words of four pages, which are moved side by side: the host fetches them ahead beside each other.
    const BLOCK: usize = 4 * 4096 / 8;
    let is_even = to.addr() % 8 == from.addr() % 8 && to.addr().is_multiple_of(8);
    if whole >= LARGE && is_even && std::arch::is_x86_feature_detected!("avx") {
        // Whole lines: a line that is written in two parts is sent twice.
        let head = (to.addr().next_multiple_of(64) - to.addr()) / 8;
        if words >= head + BLOCK {
            // SAFETY: by the caller's promise, of the first words and then of blocks of the others. The upper halves of all vector registers are named as
            // changed, since `vzeroupper` clears them.
            unsafe {
                repeat_moves(&mut to, &mut from, head);
                words -= head;
                while words >= BLOCK {
                    std::arch::asm!(
                        "2:",
                        "vmovdqu ymm0, [{from}]",
                        "vmovdqu ymm1, [{from} + 32]",
                        "vmovdqu ymm2, [{from} + 4096]",
                        "vmovdqu ymm3, [{from} + 4128]",
                        "vmovdqu ymm4, [{from} + 8192]",
                        "vmovdqu ymm5, [{from} + 8224]",
                        "vmovdqu ymm6, [{from} + 12288]",
                        "vmovdqu ymm7, [{from} + 12320]",
                        "vmovntdq [{to}], ymm0",
                        "vmovntdq [{to} + 32], ymm1",
                        "vmovntdq [{to} + 4096], ymm2",
                        "vmovntdq [{to} + 4128], ymm3",
                        "vmovntdq [{to} + 8192], ymm4",
                        "vmovntdq [{to} + 8224], ymm5",
                        "vmovntdq [{to} + 12288], ymm6",
                        "vmovntdq [{to} + 12320], ymm7",
                        "add {from}, 64",
                        "add {to}, 64",
                        "dec {left}",
                        "jnz 2b",
                        "sfence",
                        "vzeroupper",
                        from = inout(reg) from => _,
                        to = inout(reg) to => _,
                        left = inout(reg) 4096_u64 / 64 => _,
                        out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                        out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                        out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                        out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                        options(nostack),
                    );
                    (to, from) = (to.add(8 * BLOCK), from.add(8 * BLOCK));
                    words -= BLOCK;
                }
            }
        }
    }
    // SAFETY: by the caller's promise, of the words that are left.
    unsafe { repeat_moves(&mut to, &mut from, words) }
}

/// Moves words one after the other, and the pointers behind them.
///
/// # Safety
/// As [`move_words`].
#[cfg(target_arch = "x86_64")]
unsafe fn repeat_moves(to: &mut *mut u8, from: &mut *const u8, words: usize) {
    // SAFETY: by the caller's promise. The direction flag is clear, as it is between any two instructions of Rust code.
    unsafe {
        std::arch::asm!(
            "rep movsq",
            inout("rdi") *to,
            inout("rsi") *from,
            inout("rcx") words => _,
            options(nostack, preserves_flags),
        );
    }
}

/// The same on other hosts.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn move_words(to: *mut u8, from: *const u8, words: usize, _: u64) {
    for i in 0..words {
        // SAFETY: by the caller's promise; one end is aligned, and the other one belongs to the host.
        unsafe {
            let (to, from) = (to.add(8 * i).cast::<u64>(), from.add(8 * i).cast::<u64>());
            if to.is_aligned() {
                AtomicU64::from_ptr(to).store(from.read_unaligned(), Ordering::Release);
            } else {
                to.write_unaligned(AtomicU64::from_ptr(from.cast_mut()).load(Ordering::Acquire));
            }
        }
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
        // SAFETY: by the caller's promise.
        unsafe {
            if addr.is_multiple_of(8) && end - addr >= 8 {
                let words = (end - addr) / 8;
                set_words(addr, words, pattern);
                addr += 8 * words;
                continue;
            }
            // No longer than 8 bytes, so it fits.
            let n = piece(addr, (end - addr).min(8) as usize) as u64;
            store(addr, n as u32, pattern >> (8 * (addr % 8)));
            addr += n;
        }
    }
}

/// Sets aligned words, one after the other as [`move_words`] does.
///
/// # Safety
/// As [`fill_words`].
unsafe fn set_words(addr: u64, words: u64, pattern: u64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: by the caller's promise. The direction flag is clear.
    unsafe {
        std::arch::asm!(
            "rep stosq",
            inout("rdi") as_ptr(addr) => _,
            inout("rcx") words => _,
            in("rax") pattern,
            options(nostack, preserves_flags),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    for i in 0..words {
        // SAFETY: by the caller's promise.
        unsafe { store(addr + 8 * i, 8, pattern) };
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

    /// Copies of all small sizes and offsets, and of some that go past the caches, move what they should and nothing beside it.
    #[test]
    fn words_are_copied_whole_and_alone() {
        let mut memory = vec![0_u64; (LARGE as usize + (64 << 10)) / 8];
        let base = memory.as_mut_ptr().expose_provenance() as u64;
        let host: Vec<u8> = (0..LARGE as usize + 100).map(|i| (i % 251) as u8 | 1).collect();
        let small = (0..40_usize).flat_map(|n| (0..16).flat_map(move |at| (0..9).map(move |off| (n, at, off))));
        let large = [
            (16 << 10, 0, 0),
            (LARGE as usize, 8, 16),
            (LARGE as usize, 24, 3),
            (LARGE as usize - 5, 5, 5),
            (70_001, 40, 8),
        ];
        for (i, (n, at, off)) in small.chain(large).enumerate() {
            let whole = if i % 2 == 0 || n > 64 { LARGE } else { n as u64 };
            let (from, start) = (&host[off..off + n], base + 64 + at as u64);
            // SAFETY: all lies in `memory`, which nobody else uses.
            unsafe {
                fill(base, n + 256, 0);
                write_words(start, from, whole);
                let mut around = vec![0; n + 128];
                copy_out(start - 64, &mut around);
                let is_clean = around[..64].iter().chain(&around[64 + n..]).all(|b| *b == 0);
                assert!(around[64..64 + n] == *from && is_clean, "write {n} {at} {off}");
                let mut back = vec![0; off + n + 9];
                read_words(start, &mut back[off..off + n], whole);
                let is_clean = back[..off].iter().chain(&back[off + n..]).all(|b| *b == 0);
                assert!(back[off..off + n] == *from && is_clean, "read {n} {at} {off}");
                fill(base, n + 256, 0);
                fill_words(start, n as u64, 0x0807_0605_0403_0201);
                copy_out(start - 64, &mut around);
                let byte = |i: usize| ((start as usize + i) % 8 + 1) as u8;
                assert!(around[64..64 + n].iter().enumerate().all(|(i, b)| *b == byte(i)), "fill {n} {at}");
                assert!(around[..64].iter().chain(&around[64 + n..]).all(|b| *b == 0), "beside a fill {n} {at}");
            }
        }
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
