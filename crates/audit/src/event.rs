//! What engines tell: who did what where.

use handloom_diag::Span;
use handloom_ir::types::{Order, Scope, StateSpace};

/// A thread of a launch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Thread {
    /// Linear number of its block in the grid.
    pub cta: u32,
    /// Its warp in the block.
    pub warp: u8,
    /// Its lane.
    pub lane: u8,
}

impl Thread {
    /// By linear number in its block, below 1,024.
    pub fn new(cta: u32, number: usize) -> Thread {
        let [warp, lane] = [number / 32, number % 32].map(|n| u8::try_from(n).unwrap_or(u8::MAX));
        Thread { cta, warp, lane }
    }

    /// Linear number in its block.
    pub fn number(self) -> u32 {
        u32::from(self.warp) * 32 + u32::from(self.lane)
    }

    /// Its lane as a mask.
    pub(crate) fn bit(self) -> u32 {
        1 << (self.lane & 31)
    }
}

/// An instruction that touches memory, and how.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Site {
    /// The statement.
    pub span: Span,
    /// What it does.
    pub does: Does,
    /// How it is ordered.
    pub order: Order,
    /// Among whom, if it is strong.
    pub scope: Scope,
    /// The state space that its address lies in.
    pub space: StateSpace,
}

/// One scalar access of one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Who.
    pub thread: Thread,
    /// Generic address of its first byte, a multiple of its size.
    pub addr: u64,
    /// 1, 2, 4, 8 or 16.
    pub bytes: u8,
    /// A `cas` that found another value: it only reads.
    pub failed: bool,
    /// It writes what is there already.
    pub same_value: bool,
}

/// What an access does to memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Does {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads and writes as one.
    Update,
    /// The same without a result for the program, which forms no acquire pattern.
    Reduce,
    /// Reads and writes an `mbarrier` object.
    Step,
    /// Touches no memory: it orders what does.
    Fence,
}

impl Does {
    /// Whether bytes are written.
    pub(crate) fn writes(self) -> bool {
        matches!(self, Does::Write | Does::Update | Does::Reduce | Does::Step)
    }

    /// Whether bytes are read.
    pub(crate) fn reads(self) -> bool {
        matches!(self, Does::Read | Does::Update | Does::Reduce | Does::Step)
    }
}
