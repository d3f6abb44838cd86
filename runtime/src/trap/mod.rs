//! Stops of kernels as text and data.

mod describe;
mod report;

pub use report::TrapReport;
pub(crate) use report::compiling_trap;
