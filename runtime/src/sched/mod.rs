//! Who runs when: units of a grid over workers, warps and activations of a cta.

mod ahead;
mod audited;
mod barriers;
mod calls;
mod clusters;
mod counted;
mod cta;
mod deep;
mod deopt;
pub(crate) mod grid;
mod jit;
mod rounds;
mod seats;
mod sites;
mod waiters;

use handloom_interp::CtaEnv;

pub(crate) use jit::{Workers, run};
pub(crate) use seats::Seats;

use crate::memory::access::fill;
use crate::memory::scrub;

/// What fresh shared memory is filled with.
// Choice: shared memory is undefined when a block starts. A pattern that is neither zero nor a usual number shows a missing
// initialisation; that it is always the same keeps runs repeatable.
const FRESH_SHARED: u8 = 0xa5;

/// Most bytes of local memory that are written with zero; of more, as of deep stacks, pages that were touched are given back.
const MOST_WRITTEN: u64 = 1 << 20;

/// Fills the shared memory of a block that starts: zero where system software keeps its barriers, the pattern elsewhere.
///
/// # Safety
/// At `env.shared_base` lies a slab that nobody else uses.
pub(crate) unsafe fn fill_shared(env: &CtaEnv) {
    let (base, reserved) = (env.shared_base, env.shared_rules.reserved);
    if reserved > 0 {
        // SAFETY: by the caller's promise; a slab is open up to the largest shared memory with what is reserved.
        unsafe { fill(base, reserved as usize, 0) }
    }
    if env.own_shared() > 0 {
        // SAFETY: as above; a launch does not pass the largest shared memory.
        unsafe { fill(base + u64::from(reserved), env.own_shared() as usize, FRESH_SHARED) }
    }
}

/// Makes the local memory of a block that starts read as zero, as that of a fresh process does. It is undefined then, but what a checked launch does with it
/// must be what the line that replays it shows.
///
/// # Safety
/// At `env.local_base` lies the local memory of a block that nobody else uses.
pub(crate) unsafe fn clear_local(env: &CtaEnv) {
    let bytes = env.local_stride * u64::from(env.threads());
    match bytes {
        0 => {}
        // SAFETY: by the caller's promise; local memory of a seat is open.
        1..=MOST_WRITTEN => unsafe { fill(env.local_base, bytes as usize, 0) },
        // SAFETY: as above.
        _ => unsafe { scrub(env.local_base, env.local_base + bytes) },
    }
}
