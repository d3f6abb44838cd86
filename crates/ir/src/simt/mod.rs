//! The SIMT IR: functions of blocks of ops over warp values.
//!
//! A warp value stands for 32 lanes. Guards are explicit operands. Each op has the span of its PTX statement.
//! The meaning of an op is its arm in the interpreter; its speed is its arm in the code generator.

pub mod build;
mod frame;
pub mod func;
pub mod matrix;
pub mod op;
pub mod sig;
pub mod text;
mod text_op;
pub mod verify;
pub mod video;

pub use build::{Addr, Builder};
pub use frame::FrameLayout;
pub use func::*;
pub use matrix::{Accumulator, Addresses, Element, MatrixOp, Product, Step};
pub use op::*;
pub use video::{Negated, Part, SimdOp, Video, VideoEnd, VideoOp, VideoSimd, Vmad};
