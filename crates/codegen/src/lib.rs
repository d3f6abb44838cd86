//! From SIMT IR to machine code.
//!
//! Takes: a function of SIMT IR, specialised and optimised. Gives: [`Code`] with its entry and [`abi::Tables`].
//! Does not know: PTX text, instruction records, grids, streams. The only crate that names Cranelift.
//!
//! Invariants: emitted code reads and writes device memory only behind a bounds check; a register has one home;
//! `unsafe` stands in the loader only.

pub mod abi;
pub mod analysis;
mod compile;
mod emit;
mod load;
mod prepare;

pub use compile::{Bounds, Failure, Options, Stage, compile, missing_feature, print};
pub use load::Code;
