//! Calls of compiled code, which may need more stack than threads have.
//!
//! A block of thousands of statements whose values all live at once, or of thousands of branches, has a frame of megabytes in code of Cranelift. It gets a thread with a stack
//! of its own for each call: these are few, since such code runs long.

use handloom_codegen::Code;
use handloom_plan::abi::CtaCtx;

/// Most bytes that code takes of the stack of whoever calls it. Threads have 2 MiB and more as a rule, and some half a MiB.
const ON_ANY_STACK: u32 = 128 << 10;

/// What routines take below the code that calls them.
const FOR_ROUTINES: usize = 1 << 20;

/// What [`call`] says where the host has no room for the stack that code needs. No number of a reason.
pub(super) const NO_STACK: u32 = u32::MAX;

/// Runs contexts of a cta until something happens; gives the number of a [`handloom_plan::abi::Reason`], or [`NO_STACK`].
///
/// # Safety
/// `cta` and all that it points to must be as [`handloom_plan::abi`] describes.
#[inline]
pub(super) unsafe fn call(code: &Code, cta: *mut CtaCtx) -> u32 {
    if code.stack_bytes() > ON_ANY_STACK {
        return apart(code, cta);
    }
    // SAFETY: by the caller's promise; so much of a stack every thread has that launches.
    unsafe { code.call(cta) }
}

/// The same on a thread with a stack that is large enough.
#[cold]
fn apart(code: &Code, cta: *mut CtaCtx) -> u32 {
    // A pointer can't be sent.
    let at = cta.expose_provenance();
    // SAFETY: by the promise of the caller of `call`, which waits here and uses nothing of the cta meanwhile; the stack is as large as the code says.
    let run = || unsafe { code.call(std::ptr::with_exposed_provenance_mut(at)) };
    let thread = std::thread::Builder::new().name("handloom-deep".into());
    let thread = thread.stack_size(code.stack_bytes() as usize + FOR_ROUTINES);
    std::thread::scope(|scope| thread.spawn_scoped(scope, run).ok().and_then(|thread| thread.join().ok()))
        .unwrap_or(NO_STACK)
}
