//! How full copies do atomics.
//!
//! Folding is sound: that all lanes of a warp come one directly after the other is one of the orders that the model allows.

use handloom_ir::types::{AtomOp, StateSpace};

use crate::access::{AccessClass, Kind};
use crate::analysis::shape::Shape;
use crate::packs::Strategy;

/// How the values of many lanes become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fold {
    /// Their sum.
    Sum,
    /// The bits that are set in all.
    And,
    /// The bits that are set in any.
    Or,
    /// The bits that are set in an odd number of them.
    Xor,
    /// The least.
    Least,
    /// The greatest.
    Most,
}

/// How a full copy does an atomic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtomicWay {
    /// By one operation for all lanes, which are at one location; nobody reads the old values.
    Folded(Fold),
    /// Lane after lane, in straight code.
    Straight,
    /// By a loop over the lanes that take part.
    Loop,
    /// By the routine.
    Routine,
}

impl Fold {
    /// What folds values for an operation; `None` if each lane's must be done by itself.
    pub fn of(op: AtomOp) -> Option<Fold> {
        match op {
            AtomOp::Add => Some(Fold::Sum),
            AtomOp::And => Some(Fold::And),
            AtomOp::Or => Some(Fold::Or),
            AtomOp::Xor => Some(Fold::Xor),
            AtomOp::Min => Some(Fold::Least),
            AtomOp::Max => Some(Fold::Most),
            AtomOp::Exch | AtomOp::Cas | AtomOp::Inc | AtomOp::Dec | AtomOp::Step => None,
        }
    }
}

impl Strategy<'_> {
    /// How a full copy does an atomic. `is_read`: somebody reads the old values. `address`: the shape of the address, asked for if it counts.
    pub fn atomic_way(&self, a: &AccessClass, is_read: bool, address: impl FnOnce() -> Option<Shape>) -> AtomicWay {
        let Kind::Atomic(op, _) = a.kind else { panic!("bug: {:?} is no atomic", a.kind) };
        if !a.is_inline_atomic(self.plan.options.cluster) {
            return AtomicWay::Routine;
        }
        // Functions that wait note what each lane changed.
        if a.is_in_order
            || a.is_guarded
            || self.plan.tells_dirty
            || !a.is_tested_by_vectors(self.plan.func.ty(a.address))
        {
            return AtomicWay::Loop;
        }
        let fold = Fold::of(op).filter(|_| !is_read && address().is_some_and(|s| s.is_uniform()));
        match (fold, a.space) {
            (Some(fold), _) => AtomicWay::Folded(fold),
            (None, StateSpace::Shared) => AtomicWay::Straight,
            (None, _) => AtomicWay::Loop,
        }
    }
}
