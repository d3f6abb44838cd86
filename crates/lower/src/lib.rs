//! From the checked module to SIMT IR: control-flow graph, expansion of instructions, specialisation on a launch shape, passes.
//!
//! Takes: a [`CheckedModule`](handloom_check::module::CheckedModule). Gives: a [`simt::Module`](handloom_ir::simt::Module).
//! Does not know: Cranelift, the width of a host vector, host addresses.
//!
//! How to read it: [`lower`] makes a module, once. Its steps are the files `module` (symbols, entries, source lines), `names` (numbers of functions), `shared` (layout of
//! shared memory), `function` (statements to blocks), `operand`, `control`, `call` and `late` (instructions that come later than they stand). `graph` orders blocks, `origins` and `counters` say what values of a loop are computed from, and `yields` finds the loops that
//! wait for other threads, [`float_reads`] the types that memory is read as. [`specialise()`] takes one entry of the result and a launch shape, once a shape, and runs [`passes`].
//!
//! Invariants:
//! - A `CheckedModule` has no fault of the user in it; what fails here is a bug of Handloom and panics with a text that starts with `bug:`.
//! - Each function that leaves this crate passes the verifier (asserted in debug builds), its blocks are ordered
//!   ([`order_blocks`]), and a warp-synchronising op is the last one of its block.
//! - Nothing depends on hash order or addresses: the same module gives the same IR.

#![forbid(unsafe_code)]

mod call;
mod control;
mod count;
mod counters;
mod function;
mod graph;
mod late;
mod module;
mod names;
mod operand;
mod origins;
mod params;
pub mod passes;
mod peers;
mod rank_masks;
mod reads;
mod shared;
mod short_addresses;
mod specialise;
mod yields;

pub use graph::order_blocks;
pub use module::{lower, lower_marked};
pub use params::that_count_turns;
pub use passes::may_unroll;
pub use reads::{Reads, float_reads};
pub use specialise::{as_lowered, specialise, specialise_counted};
