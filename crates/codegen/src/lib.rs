//! From a plan to machine code.
//!
//! Takes: a function of SIMT IR, specialised and optimised. Returns: [`Code`] with its entry and its [tables](handloom_plan::abi::Tables).
//! Does not know: PTX text, instruction records, grids, streams. The only crate that names Cranelift. What is decided about a function is
//! [`handloom_plan`]'s; this crate writes it down.
//!
//! Invariants: emitted code reads and writes device memory only behind a bounds check; a register has one home;
//! `unsafe` is in the loader only.

mod blocks;
mod compile;
mod emit;
mod failure;
mod lives;
mod load;

pub use compile::{Stage, compile, lines, print, settings_of};
pub use failure::Failure;
pub use load::Code;
