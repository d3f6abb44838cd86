//! Address space: one reservation a process, windows of it for devices.
//!
//! A reservation is a range of addresses without access at a fixed base, so that pointers print the same in each run. A device claims
//! a window of it by number and gives it back when it is dropped. Programs of address size 32 use a second reservation below 4 GiB. Parts of a window
//! may be pages of a file in memory.

use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;

/// Bytes from which large pages are asked for.
const LARGE: u64 = 4 << 20;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// What a kind of reservation tries, in order.
struct Wish {
    bases: &'static [u64],
    sizes: &'static [u64],
    window: u64,
}

/// The last base is for programs under a sanitizer, which keeps the others for itself.
const WIDE: Wish = Wish {
    bases: &[0x2000_0000_0000, 0x3000_0000_0000, 0x1000_0000_0000, 0x4000_0000_0000, 0x80_0000_0000],
    sizes: &[1024 * GIB, 256 * GIB, 64 * GIB, 16 * GIB],
    window: 64 * GIB,
};

const LOW: Wish = Wish {
    bases: &[0x1000_0000, 0x2000_0000, 0x4000_0000, 0x8000_0000],
    sizes: &[3 * GIB, 2 * GIB, GIB, 512 * MIB],
    window: 512 * MIB,
};

/// A range of addresses without access, divided into windows.
#[derive(Debug)]
pub(crate) struct Reservation {
    base: u64,
    size: u64,
    window: u64,
    taken: Mutex<Vec<bool>>,
}

static WIDE_ONE: OnceLock<Option<Reservation>> = OnceLock::new();
static LOW_ONE: OnceLock<Option<Reservation>> = OnceLock::new();

/// Whether an address lies in a reservation.
pub(crate) fn is_reserved(addr: u64) -> bool {
    let mut made = [&WIDE_ONE, &LOW_ONE].into_iter().filter_map(|one| one.get()?.as_ref());
    made.any(|r| addr.wrapping_sub(r.base) < r.size)
}

/// Whether an address lies in the window of a device.
pub(crate) fn is_of_device(addr: u64) -> bool {
    let mut made = [&WIDE_ONE, &LOW_ONE].into_iter().filter_map(|one| one.get()?.as_ref());
    made.any(|r| {
        let window = as_len(addr.wrapping_sub(r.base) / r.window);
        r.taken.lock().unwrap_or_else(PoisonError::into_inner).get(window).copied().unwrap_or(false)
    })
}

impl Reservation {
    fn make(wish: &Wish) -> Option<Reservation> {
        for &size in wish.sizes {
            for &base in wish.bases {
                // SAFETY: `FIXED_NOREPLACE` never replaces a mapping that is there, and the new one has no access.
                let got = unsafe {
                    mmap_anonymous(
                        as_ptr(base),
                        as_len(size),
                        ProtFlags::empty(),
                        MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE,
                    )
                };
                let Ok(at) = got else { continue };
                if at as u64 == base {
                    let window = wish.window.min(size);
                    let n_windows = as_len(size / window);
                    return Some(Reservation { base, size, window, taken: Mutex::new(vec![false; n_windows]) });
                }
                // A kernel older than 4.17 takes the base as a hint: give the range back.
                // SAFETY: the range was mapped just above and nobody knows of it.
                let _ = unsafe { munmap(at, as_len(size)) };
            }
        }
        None
    }

    /// The reservation for programs of 64-bit addresses, if the host gave one.
    pub(crate) fn wide() -> Option<&'static Reservation> {
        WIDE_ONE.get_or_init(|| Reservation::make(&WIDE)).as_ref()
    }

    /// The reservation below 4 GiB, if the host gave one.
    pub(crate) fn low() -> Option<&'static Reservation> {
        LOW_ONE.get_or_init(|| Reservation::make(&LOW)).as_ref()
    }

    /// Takes the first free window.
    pub(crate) fn claim(&'static self) -> Option<Window> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let index = taken.iter().position(|t| !*t)?;
        taken[index] = true;
        Some(Window { base: self.base + index as u64 * self.window, size: self.window, index, from: self })
    }
}

/// A window: a range of addresses that belongs to one device. Without access until parts of it are opened.
#[derive(Debug)]
pub(crate) struct Window {
    /// First address.
    pub(crate) base: u64,
    /// Length in bytes.
    pub(crate) size: u64,
    index: usize,
    from: &'static Reservation,
}

impl Window {
    /// Makes `start .. end` readable and writable; both are multiples of the page size and lie in the window. Says whether the host did it.
    pub(crate) fn open(&self, start: u64, end: u64) -> bool {
        if start < self.base || end > self.base + self.size || start > end {
            return false;
        }
        if end - start >= LARGE {
            // Large buffers are walked from end to end: large pages save the host most of the look-ups. A host without them goes on as it is.
            // SAFETY: advice changes no contents.
            let _ =
                unsafe { rustix::mm::madvise(as_ptr(start), as_len(end - start), rustix::mm::Advice::LinuxHugepage) };
        }
        // SAFETY: the range lies in this window, which only its device uses; widening access harms no reference.
        unsafe { mprotect(as_ptr(start), as_len(end - start), MprotectFlags::READ | MprotectFlags::WRITE).is_ok() }
    }

    /// Makes `start .. end` readable: the bounds are those of pages of the window. Says whether the host did it.
    pub(crate) fn open_to_read(&self, start: u64, end: u64) -> bool {
        if start < self.base || end > self.base + self.size || start > end {
            return false;
        }
        // SAFETY: as in `open`.
        unsafe { mprotect(as_ptr(start), as_len(end - start), MprotectFlags::READ).is_ok() }
    }

    /// Writes a byte of an open page that nobody uses, so that the host has one there that can be written.
    pub(crate) fn touch(&self, at: u64) {
        if (self.base..self.base + self.size).contains(&at) {
            // SAFETY: the byte lies in this window, whose caller opened the page. Nobody needs its value.
            unsafe { as_ptr(at).cast::<u8>().write_volatile(0) };
        }
    }

    /// Puts pages of a file at `start .. end`, from `offset` of it on, in place of what is there. The bounds are those of an open range, and the file is
    /// one that cannot shrink. Says whether the host did it.
    pub(crate) fn map(&self, start: u64, end: u64, file: BorrowedFd<'_>, offset: u64) -> bool {
        if start < self.base || end > self.base + self.size || start >= end {
            return false;
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the range lies in this window, which only its device uses. It stays readable and writable, and no reference into a window exists. The
        // file does not shrink, so each page of it can be touched.
        unsafe {
            mmap(as_ptr(start), as_len(end - start), access, MapFlags::SHARED | MapFlags::FIXED, file, offset).is_ok()
        }
    }

    /// Puts fresh pages of zeros at `start .. end` of an open range, in place of what is there. Says whether the host did it.
    pub(crate) fn unmap(&self, start: u64, end: u64) -> bool {
        if start < self.base || end > self.base + self.size || start >= end {
            return false;
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
        // SAFETY: as in `map`.
        unsafe { mmap_anonymous(as_ptr(start), as_len(end - start), access, flags).is_ok() }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the range is this window's, and a window outlives all that holds addresses in it: replacing its pages by pages without
        // access frees the memory and leaves the addresses reserved.
        let _ = unsafe {
            mmap_anonymous(
                as_ptr(self.base),
                as_len(self.size),
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED,
            )
        };
        let mut taken = self.from.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken[self.index] = false;
    }
}

/// Words of the process that are 0 at first. What nobody writes takes no memory.
#[derive(Debug)]
pub(crate) struct Words {
    at: *mut c_void,
    n: usize,
}

// SAFETY: the words are only reached as atomics.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    /// So many, at least one. `None`: the host has no addresses for them.
    pub(crate) fn new(n: usize) -> Option<Words> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a mapping where the host has room replaces nothing.
        let at = unsafe { mmap_anonymous(std::ptr::null_mut(), n * size_of::<AtomicU64>(), access, flags) };
        Some(Words { at: at.ok()?, n })
    }

    /// All of them.
    #[inline]
    pub(crate) fn all(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is of so many words, which any bytes are, and lasts as long as `self`.
        unsafe { std::slice::from_raw_parts(self.at.cast(), self.n) }
    }

    /// Where the first one lies.
    pub(crate) fn address(&self) -> u64 {
        self.at.expose_provenance() as u64
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and no borrow of its words is left.
        let _ = unsafe { munmap(self.at, self.n * size_of::<AtomicU64>()) };
    }
}

/// Fills with zero: whole pages are given back to the host, their edges are written.
///
/// # Safety
/// `start .. end` is open memory of a window and nobody uses it.
pub(crate) unsafe fn scrub(start: u64, end: u64) {
    let first = start.next_multiple_of(PAGE);
    let last = end / PAGE * PAGE;
    if last <= first || last - first < 16 * PAGE {
        // SAFETY: by the caller's promise.
        unsafe { std::ptr::write_bytes(as_ptr(start).cast::<u8>(), 0, as_len(end - start)) };
        return;
    }
    // SAFETY: by the caller's promise; dropping private anonymous pages makes them read as zero.
    unsafe {
        std::ptr::write_bytes(as_ptr(start).cast::<u8>(), 0, as_len(first - start));
        std::ptr::write_bytes(as_ptr(last).cast::<u8>(), 0, as_len(end - last));
        if rustix::mm::madvise(as_ptr(first), as_len(last - first), rustix::mm::Advice::LinuxDontNeed).is_err() {
            std::ptr::write_bytes(as_ptr(first).cast::<u8>(), 0, as_len(last - first));
        }
    }
}

/// An address as a pointer.
pub(crate) fn as_ptr(addr: u64) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(as_len(addr))
}

/// A size of the host. The supported hosts have 64-bit addresses.
pub(crate) const fn as_len(n: u64) -> usize {
    n as usize
}
