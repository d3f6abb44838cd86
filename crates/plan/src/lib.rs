//! What is decided about a function before code is emitted.
//!
//! Takes: a function of SIMT IR, specialised and optimised, and [`Options`]. Returns: a [`Plan`], data that an emitter reads.
//! Does not know: PTX text, grids, streams, and how an instruction of a host is written: nothing here names Cranelift.
//!
//! How to read it: it has two parts. For every generator of code, [`abi`] is the contract between compiled code and the runtime, and [`analysis`] finds
//! facts. Others decide: [`prepare`] the form of the function, [`access`] what an access to memory is, [`order`] what the [`host`] does for its order,
//! [`nans`] where NaNs may stay as they come, [`subnormals`] where there are none of those, [`ways`] how a value op is done, [`ValueOp`] what it asks of its sources. A [`Plan`] has all of that.
//! [`packs`] is the strategy of full and masked copies, which one generator, `codegen`, reads: a [`packs::Strategy`], whose `Display` is the text of a plan.
//!
//! Invariants: a plan depends on the function and the options alone; nothing here writes tables of sites or emits code. Outside of [`packs`] nothing
//! knows how many lanes a vector has.
#![forbid(unsafe_code)]

pub mod abi;
pub mod access;
pub mod analysis;
pub mod host;
pub mod nans;
mod options;
pub mod order;
pub mod packs;
mod plan;
pub mod prepare;
pub mod subnormals;
mod value_op;
pub mod ways;

pub use host::Host;
pub use options::{Bounds, Options};
pub use plan::{Frame, Plan};
pub use value_op::ValueOp;
