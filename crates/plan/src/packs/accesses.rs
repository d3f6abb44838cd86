//! How full and masked copies do loads and stores.

use handloom_ir::types::{Order, StateSpace, Ty};

use crate::access::{AccessClass, Kind};
use crate::analysis::shape::Shape;
use crate::packs::packs_differ;

/// How a full copy does a load or store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FullWay {
    /// The range of each group of lanes is tested, then lanes are at constant distances.
    ByGroups,
    /// The addresses of all lanes are tested together, as vectors, then done one by one.
    ByLanes,
    /// The routine does it.
    Routine,
}

impl AccessClass {
    /// Whether a full copy does a load or store inline: in every space that one host address reaches.
    pub fn is_inline_in_full(&self) -> bool {
        use StateSpace::*;
        self.is_simple() && matches!(self.space, Global | Generic | Const | ParamEntry | Local | ParamFunc | Shared)
    }

    /// Whether vector code tests the addresses of all lanes. In shared memory those are sums of 32 bits, which must not wrap.
    pub fn is_tested_by_vectors(&self, address: Ty) -> bool {
        let sums = 0..=1 << 20;
        self.space != StateSpace::Shared
            || address == Ty::B32 && sums.contains(&self.offset) && self.offset % self.bytes() == 0
    }

    /// How a full copy does a load or store at an address of a type and shape. `may_start_over`: nothing has happened in the block yet.
    pub fn full_way(&self, ty: Ty, address: Option<&Shape>, may_start_over: bool) -> FullWay {
        match address {
            _ if !self.is_inline_in_full() => FullWay::Routine,
            // A range that the check passes may end in elements that nobody wants, and those may lie anywhere. What fails the check of a
            // range with gaps is found by starting over.
            Some(s) if self.wants_all() && self.is_regular(s) && (s.is_even() || may_start_over) => FullWay::ByGroups,
            _ if self.is_tested_by_vectors(ty) => FullWay::ByLanes,
            _ => FullWay::Routine,
        }
    }

    /// Whether it joins a run with an address of this shape: packs have addresses of their own, and lanes too.
    pub fn joins_run_at(&self, address: &Shape, may_start_over: bool) -> bool {
        address.stride != 0
            && packs_differ(address)
            && self.full_way(Ty::B64, Some(address), may_start_over) == FullWay::ByGroups
    }

    /// Whether some lanes do a load or store inline.
    pub fn is_inline_by_lane(&self) -> bool {
        let fits = match self.space {
            StateSpace::Global | StateSpace::Const | StateSpace::Shared => true,
            StateSpace::Generic | StateSpace::Local | StateSpace::ParamFunc => self.order == Order::Weak,
            // Parameters are read by scalars.
            StateSpace::ParamEntry => false,
            StateSpace::SharedCluster | StateSpace::Reg | StateSpace::Sreg | StateSpace::Tex => false,
        };
        self.is_simple() && self.wants_all() && fits
    }

    /// Whether it may be done a few packs at a time, between others: nobody sees the order of weak accesses.
    pub fn may_join_run(&self) -> bool {
        self.is_simple()
            && self.order == Order::Weak
            && !self.is_single
            && self.is_of_data()
            && self.wants_all()
            && !self.is_guarded
    }

    /// Whether a load fits a loop over packs: neighbouring words.
    pub fn is_by_words(&self, address: &Shape) -> bool {
        self.kind == Kind::Load
            && self.is_inline_by_lane()
            && (self.count, self.bits) == (1, 32)
            && address.is_linear()
            && address.stride == 4
    }
}
