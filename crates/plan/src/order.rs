//! What a host does for the order of accesses and fences.
//!
//! One host thread runs all ctas of a cluster, one after the other, so the order of its own program is all that `.cta` and `.cluster` ask for. Threads of
//! other clusters run on other host threads: between those, a load that acquires must happen before all that follows it, and a
//! store that releases after all before it. Where plain moves do not keep that, an instruction that orders all of memory stands after the
//! load or before the store. It orders more than is asked for, and one does for all lanes of a warp.
//!
//! What the host does atomically (`atomic_rmw` and its like of a generator, atomics of the runtime's routines) is ordered by itself.
//!
//! # PTX ISA
//! Memory Consistency Model: Release and Acquire Patterns, Ordering of memory operations, Fence-SC order.

use handloom_ir::types::{Order, Scope, StateSpace};

use crate::access::{AccessClass, Kind};
use crate::host::{Host, MemoryOrder};

/// What is done for the order of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessOrder {
    /// Plain moves, in the order of the program.
    Plain,
    /// A fence instruction, then plain moves.
    FenceBefore,
    /// Plain moves, then a fence instruction.
    FenceAfter,
    /// One instruction that is atomic and ordered among all host threads.
    Atomic,
    /// The routine does it in order.
    Routine,
}

/// What is done for a fence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FenceOrder {
    /// Nothing moves over this place while code is made; the host needs no instruction.
    Program,
    /// An instruction that also keeps a store before a later load, which is all that plain moves of a strong host leave open.
    Total,
    /// A fence instruction.
    Instruction,
}

/// Whether threads on other host threads are meant.
const fn is_far(scope: Scope) -> bool {
    match scope {
        Scope::Cta | Scope::Cluster => false,
        Scope::Gpu | Scope::Sys => true,
    }
}

impl FenceOrder {
    /// What a host does for a fence.
    pub fn of(order: Order, scope: Scope, host: &Host) -> FenceOrder {
        match host.order {
            MemoryOrder::Strong if order == Order::Sc && scope != Scope::Cta => FenceOrder::Total,
            MemoryOrder::Weak if is_far(scope) || order == Order::Sc && scope != Scope::Cta => FenceOrder::Instruction,
            MemoryOrder::Strong | MemoryOrder::Weak => FenceOrder::Program,
        }
    }
}

impl AccessClass {
    /// What a host does for the order of the access where it is done inline.
    pub fn order_inline(&self, host: &Host) -> AccessOrder {
        match self.kind {
            // Shared memory is one host thread's, also that of a cluster.
            Kind::Atomic(..) | Kind::Load | Kind::Store if self.space == StateSpace::Shared => AccessOrder::Plain,
            Kind::Atomic(..) => AccessOrder::Atomic,
            Kind::Load | Kind::Store if host.order == MemoryOrder::Strong || !is_far(self.scope) => AccessOrder::Plain,
            Kind::Load | Kind::Store => match self.order {
                Order::Weak | Order::Volatile | Order::Mmio | Order::Relaxed => AccessOrder::Plain,
                Order::Acquire => AccessOrder::FenceAfter,
                Order::Release => AccessOrder::FenceBefore,
                // No load or store is both.
                Order::AcqRel | Order::Sc => unreachable!("bug: a {:?} with the order {:?}", self.kind, self.order),
            },
        }
    }
}
