//! Threads of a program that do work of ours: what they have left, and what the program may have set for them.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Whether so many bytes of the calling thread's stack are left. Where a program runs on a stack that it made itself, nobody knows.
pub(crate) fn has_stack(bytes: usize) -> bool {
    thread_local! {
        static OWN: Option<Range<usize>> = own_stack();
    }
    let here = 0_u8;
    let at = (&raw const here).addr();
    let is_left = |own: &Option<Range<usize>>| own.as_ref().is_some_and(|r| r.contains(&at) && at - r.start >= bytes);
    OWN.try_with(is_left).unwrap_or(false)
}

/// The addresses of the calling thread's stack.
fn own_stack() -> Option<Range<usize>> {
    let mut attributes = MaybeUninit::uninit();
    let (mut start, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: the first call fills the attributes of a thread that runs, the second one only if it did; then they are given back.
    let is_known = unsafe {
        libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) == 0 && {
            let is_known = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut start, &raw mut size) == 0;
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
            is_known
        }
    };
    is_known.then(|| start.addr()..start.addr() + size)
}

/// As long as this is there, the calling thread computes as values are defined: it rounds to nearest, keeps subnormal numbers, and no exception of an operation
/// stops it. A program may have asked for something else, for its threads and those that they start, and has that again afterwards.
#[derive(Debug)]
pub struct UsualFloats {
    /// What the thread has again afterwards; `None` if that is what it has.
    before: Option<u32>,
}

impl UsualFloats {
    /// Begins. What exceptions were met stays noted where the thread had the usual arithmetic: to take that back takes longer than a tenth of a small launch.
    #[inline]
    pub fn begin() -> UsualFloats {
        let before = control();
        if before & !control::EXCEPTIONS == control::USUAL { UsualFloats { before: None } } else { instead_of(before) }
    }

    /// The same for a thread of the program that is to be as it was.
    pub(crate) fn lent() -> UsualFloats {
        instead_of(control())
    }

    /// For a thread that never does anything else.
    pub(crate) fn set() {
        set_control(control::USUAL);
    }
}

#[cold]
fn instead_of(before: u32) -> UsualFloats {
    set_control(control::USUAL);
    UsualFloats { before: Some(before) }
}

impl Drop for UsualFloats {
    #[inline]
    fn drop(&mut self) {
        if let Some(before) = self.before {
            set_control(before);
        }
    }
}

/// The control word of vectors' floats.
mod control {
    /// All exceptions masked, to nearest, subnormal numbers as they are.
    pub(super) const USUAL: u32 = 0x1f80;
    /// What was met.
    pub(super) const EXCEPTIONS: u32 = 0x3f;
}

#[inline]
fn control() -> u32 {
    let mut word = control::USUAL;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it writes the word.
    unsafe {
        std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags));
    }
    word
}

#[inline]
fn set_control(word: u32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the word is the usual one, or one that the thread had. Where it had another one, that was the program's choice.
    unsafe {
        std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack, preserves_flags, readonly));
    }
}

/// Sets the control word as a program may, and gives what it was.
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) fn swap_control(word: u32) -> u32 {
    let before = control();
    set_control(word);
    before
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// `PTHREAD_CANCEL_DISABLE`.
const DISABLED: c_int = 1;

/// As long as this is there, a program that cancels the calling thread has to wait: it would end in the middle of our work.
#[derive(Debug)]
pub(crate) struct Uncancelled {
    before: c_int,
}

impl Uncancelled {
    pub(crate) fn begin() -> Uncancelled {
        let mut before = DISABLED;
        // SAFETY: it changes the calling thread's own state, and writes what that was.
        unsafe { pthread_setcancelstate(DISABLED, &raw mut before) };
        Uncancelled { before }
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        let mut ours = DISABLED;
        // SAFETY: as above.
        unsafe { pthread_setcancelstate(self.before, &raw mut ours) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_knows_its_own_stack() {
        let asked = |bytes| {
            let thread = std::thread::Builder::new().stack_size(4 << 20);
            thread.spawn(move || has_stack(bytes)).unwrap().join().unwrap()
        };
        assert!(asked(3 << 20) && !asked(5 << 20));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_program_has_its_floats_back() {
        // Upwards, no subnormal numbers, and an exception that was met.
        let own = control::USUAL | 0x8000 | 0x4000 | 0x40 | 4;
        set_control(own);
        let usual = UsualFloats::begin();
        let within = control();
        set_control(within | 1);
        drop(usual);
        let after = control();
        set_control(control::USUAL);
        assert_eq!((within, after), (control::USUAL, own));
    }
}
