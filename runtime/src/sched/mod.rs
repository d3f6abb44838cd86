//! Who runs when: units of a grid over workers, warps and activations of a cta.

mod calls;
pub(crate) mod context;
mod cta;
mod deopt;
pub(crate) mod grid;
pub(crate) mod host;
mod jit;
mod rounds;
mod seats;
mod waiters;

pub(crate) use jit::{Workers, run};
pub(crate) use seats::Seats;

/// What fresh shared memory is filled with.
// Choice: shared memory is undefined when a block starts. A pattern that is neither zero nor a usual number shows a missing
// initialisation; that it is always the same keeps runs repeatable.
pub(crate) const FRESH_SHARED: u8 = 0xa5;
