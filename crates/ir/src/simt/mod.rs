//! The SIMT IR: functions of blocks of ops over warp values.
//!
//! A warp value stands for 32 lanes. Guards are explicit operands. Each op has the span of its PTX statement.
//! The meaning of an op is its arm in the interpreter; its speed is its arm in the code generator.

pub mod build;
mod by_function;
mod count;
pub mod device_call;
mod dominators;
mod frame;
pub mod func;
pub mod ids;
mod image;
mod matrix;
mod modes;
pub mod op;
pub mod pure;
mod reach;
mod sites;
mod sources;
pub mod tensor;
pub mod text;
pub mod tile;
pub mod transfer;
pub mod verify;
pub mod video;
mod words;

pub use build::{Addr, Builder};
pub use by_function::ByFunction;
pub use count::{Count, CountedBlock, Counting, Counts, Does, Touch};
pub use device_call::DeviceCall;
pub use dominators::dominators;
pub use frame::FrameLayout;
pub use func::*;
pub use ids::*;
pub use image::{Fetch, Geometry, ImageOp, Lod, OutOfRange, Surface, Unit};
pub use matrix::{
    Accumulator, Addresses, Blocks, Element, HeldB, Lines, MatrixOp, Place, Product, Quads, Run, Scale, ScaleFormat,
    Sparse, Step,
};
pub use modes::{Cvt, Exactness, FMode};
pub use op::*;
pub use pure::{Facts, Pure};
pub use sites::Sites;
pub use sources::Types;
pub use tensor::TensorOp;
pub use transfer::{Begun, Bytes, Mask, Mode, ProxyFence, TensorTransfer, Transfer, Values, Wait, Way};
pub use video::{Negated, Part, SimdOp, Video, VideoEnd, VideoOp, VideoSimd, Vmad};
