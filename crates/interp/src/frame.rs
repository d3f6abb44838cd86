//! Calls in progress.

use handloom_audit::init::Shade;
use handloom_ir::simt::{BlockId, FuncId};

/// A number of a variable, in the order in which they were met, from 1 on.
pub(crate) type Trace = u32;

/// One call in progress in one thread.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// The function.
    pub func: FuncId,
    /// Values of its registers in this thread. Choice: a register that was never written holds zero.
    pub regs: Vec<u64>,
    /// Which of their bits nobody wrote; none while nobody asks.
    pub shades: Vec<Shade>,
    /// The variables that they hold addresses of; none while nobody asks.
    pub traces: Vec<Trace>,
    /// Generic address of the first byte of the frame.
    pub base: u64,
    /// One past the last byte of the frame.
    pub end: u64,
    /// Generic address of the incoming argument block.
    pub args: u64,
    /// Block of the caller where it goes on.
    pub next: BlockId,
}
