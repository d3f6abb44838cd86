//! Value ops on scalars and on the vectors of a pack.
//!
//! A vector of type `B16` holds 32-bit lanes whose upper halves are zero; a predicate lane is 0 or all ones.

pub(crate) mod condition;
mod convert;
mod float;
mod integer;
mod scalar;
mod vector;
mod video;
mod video_simd;

use cranelift_codegen::ir::Value;

/// What is known of a source of a vector op.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// A constant.
    pub constant: Option<u64>,
    /// The same in all lanes: its scalar.
    pub scalar: Option<Value>,
}
