//! The interpreter over small functions of SIMT IR.

mod barriers;
mod calls;
mod common;
mod flow;
mod memory;
mod printf;
mod stack;
mod warp_sync;
