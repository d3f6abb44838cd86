//! How value ops are done.
//!
//! [`way`] is the one place that says whether there is vector code for an op, and which: an emitter matches on what it returns, so that "is it
//! done inline" and "how" cannot disagree. [`scalar()`] is the same for values that all lanes share. What neither does is done by a routine on rows.

pub mod convert;
pub mod scalar;
mod sreg;
pub mod vector;

use handloom_ir::simt::Pure;

pub use scalar::{Scalar, scalar};
pub use sreg::{SregWay, sreg_way};
pub use vector::{Each, Extend, FloatOp, Vector};

/// How a value op on lanes is done.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// By instructions on vectors.
    Vector(Vector),
    /// By the runtime, on rows.
    Routine,
}

/// How an op on lanes is done, given which of its sources are constants and which are uniform.
pub fn way(op: Pure, constant: &[Option<u64>], uniform: &[bool]) -> Way {
    vector::vector(op, constant, uniform).map_or(Way::Routine, Way::Vector)
}
