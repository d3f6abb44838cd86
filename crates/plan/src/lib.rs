//! What is decided about a function before code is emitted.
//!
//! Takes: a function of SIMT IR, specialised and optimised, and [`Options`]. Returns: a [`Plan`], data that an emitter reads.
//! Does not know: PTX text, grids, streams, and how an instruction of a host is written: nothing here names Cranelift.
//!
//! How to read it: [`abi`] is the contract between compiled code and the runtime. [`analysis`] finds facts. The other modules decide: [`prepare`]
//! the form of the function, [`access`] what an access to memory is, [`order`] what the [`host`] does for its order, [`layout`] where values are
//! kept, [`copies`] which code a block gets, [`deferral`] what waits in a masked copy, [`nans`] where NaNs may stay as they come, [`ways`] how a
//! value op is done, [`ValueOp`] what it asks of its sources. Joint tests of bounds and runs of accesses are questions to a [`Plan`], asked where
//! an emitter comes to them; its `Display` asks them all.
//!
//! Invariants: a plan depends on the function and the options alone; nothing here writes tables of sites or emits code.
#![forbid(unsafe_code)]

pub mod abi;
pub mod access;
pub mod analysis;
pub mod copies;
pub mod deferral;
pub mod host;
mod joint;
pub mod layout;
pub mod nans;
mod options;
pub mod order;
mod plan;
pub mod prepare;
mod runs;
mod text;
mod value_op;
pub mod ways;

pub use host::Host;
pub use joint::JointTest;
pub use options::{Bounds, Options};
pub use plan::Plan;
pub use runs::TOGETHER;
pub use value_op::ValueOp;
