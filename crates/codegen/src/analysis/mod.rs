//! What is known about a function before code is emitted.
//!
//! [`mod@cfg`]: dominators, post-dominators, loops, the region of a branch. [`live`]: liveness at block ends. [`shape`]: which registers are
//! the same in all lanes or differ by constants, which branches diverge, which blocks lanes may execute in part.

pub mod cfg;
pub mod live;
pub mod shape;
pub mod transfer;
