//! What code is made for.

use handloom_ir::simt::{Counting, LaunchShape};

use crate::host::Host;

/// How strictly accesses are checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Bounds {
    /// A stray of one byte traps.
    Exact,
    /// An access stays inside device memory as a whole.
    Contained,
}

/// What code is made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Options {
    /// Shape of the cta.
    pub shape: LaunchShape,
    /// How strictly accesses are tested.
    pub bounds: Bounds,
    /// Bytes of local memory of a thread: the stride between lanes. The same for all functions of a launch. A multiple of 16.
    pub local_stride: u32,
    /// Bytes of the frame as the program wrote it.
    pub frame_bytes: u64,
    /// The function is run as a callee: plain barriers leave the code too.
    pub is_callee: bool,
    /// The launch is one of clusters of more than one cta: shared memory is seen by others.
    pub cluster: bool,
    /// Blocks have masked copies. Without them, lanes that go different ways give [`crate::abi::Reason::Deopt`].
    pub masked: bool,
    /// Several warps may go side by side, in code that is made for that: a fifth of the time that wide code takes to make. Cranelift's has none.
    pub gangs: bool,
    /// The machine that runs it.
    pub host: Host,
    /// Shapes may be flipped, which only wide code knows what to do with.
    pub flips: bool,
    /// Affine values may rest on run-time tests; a failed one gives [`crate::abi::Reason::Deopt`].
    pub speculate: bool,
    /// An audit is told what threads do: what it is told of goes through routines and leaves the code, in the order of the function as it was lowered.
    pub audited: bool,
    /// Of what an audit would be told, only atomics of several lanes go through routines, so that they come in the seed's order: it is known that nothing can be found.
    pub in_order: bool,
    /// What is counted: the function has ops that do it ([`handloom_ir::simt::Count`]).
    pub counted: Counting,
}

impl Options {
    /// Whether an audit is told of fences.
    pub fn tells_fences(&self) -> bool {
        self.audited && !self.in_order
    }
}
