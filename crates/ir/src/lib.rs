//! The words that all stages share: types, value arithmetic, the SIMT IR and the table of traps.
//!
//! Takes: nothing. Gives: types, arithmetic on values ([`num`]), functions of warp values ([`simt`]), trap kinds ([`trap`]).
//! Does not know: PTX syntax, Cranelift, threads, host memory.
//!
//! Invariants: a rounding rule is written once, in [`num`]; interpreter, constant folding and row routines call it.

#![forbid(unsafe_code)]

pub mod mbarrier;
pub mod num;
pub mod simt;
pub mod tensor_map;
pub mod trap;
pub mod types;
