//! Stops of kernels as text and data.

mod describe;
pub(crate) mod found;
mod report;

pub use report::TrapReport;
pub(crate) use report::cuda_line;

/// A parameter that was bound to a buffer, for trap reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Binding {
    /// Position from 1.
    pub(crate) number: usize,
    /// Name of the parameter.
    pub(crate) name: String,
    /// Base of the buffer.
    pub(crate) base: u64,
}
