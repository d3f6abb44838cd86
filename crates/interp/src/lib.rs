//! The reference executor of the SIMT IR: one lane at a time, one op at a time.
//!
//! Takes: a function of a [`Module`](handloom_ir::simt::Module), the environment of one cta ([`CtaEnv`]) and its memory
//! ([`Memory`]).
//!
//! Gives: a state machine ([`Cta`]) that runs the cta until it ends, waits for others, or traps.
//!
//! Does not know: PTX text, host threads, host atomics, grids, how memory is laid out on the host.
//!
//! The model. A cta is warps of 32 consecutive threads, x fastest. A warp is lanes, and each lane has its own call
//! frames and its own place. A step takes the ready lanes of one warp that are at the earliest place, and runs them
//! together to the end of their block: op by op, and within an op lane by lane. Lanes therefore meet again where their
//! ways meet. A lane stops being ready when it is at a warp-synchronising op, at a barrier, at a yield point, or
//! when it has exited.
//!
//! Invariants:
//! - Only the module, the environment and the memory decide what happens: no clock, no hash order.
//! - Every value comes from `handloom_ir::num` or from a function of [`warp`] or [`atom`].
//! - A load, store or atomic that traps has had no effect in any lane of its group.
//!
//! [`warp`], [`atom`], [`barrier`], [`cluster`], [`builtin`], [`device_call`], [`late`], [`order`], [`pace`], [`sreg`], [`transfer`] and [`printf`] are also used by compiled code through the runtime, so
//! that a rule is written once.
//!
//! To read it: [`cta`] chooses who runs, `exec` says what an op does, `control` what the end of a block does, `access`
//! what may be touched, [`witness`] what an audit is told of it, `counted` what a counter is told, `shades` which bits nobody wrote, `traces` which variables addresses are made from.

#![forbid(unsafe_code)]
#![warn(clippy::wildcard_enum_match_arm)]

mod access;
mod arguments;
pub mod atom;
mod audited;
pub mod barrier;
pub mod builtin;
pub mod cluster;
mod control;
mod counted;
pub mod cta;
pub mod device_call;
pub mod env;
mod exec;
mod frame;
pub mod image;
mod lane;
pub mod late;
pub mod memory;
mod numbers;
pub mod order;
pub mod pace;
pub mod printf;
mod report;
mod shades;
pub mod sreg;
pub mod stack;
pub mod tensor;
mod traces;
pub mod transfer;
mod under_way;
pub mod vec_memory;
pub mod warp;
pub mod witness;

pub use audited::own_memory;
pub use cta::{Cta, Status};
pub use env::{ClusterEnv, CtaEnv};
pub use memory::{Denied, Memory};
pub use under_way::{AsyncOrder, UnderWay, Who};
pub use vec_memory::VecMemory;
pub use witness::{SharedAudit, SharedCounter};
