//! What a function has of results that come late.

use std::collections::BTreeMap;

use handloom_diag::Span;
use handloom_ir::simt::{BlockId, Reg};

/// What belongs to a register whose results come late.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Second {
    /// The result (the type of the register).
    pub(crate) value: Reg,
    /// Number of its group (B32), from 1; 0: there is none under way.
    pub(crate) group: Reg,
}

/// A place where results come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) block: BlockId,
    pub(crate) span: Span,
    /// Groups that may still be under way.
    pub(crate) but: u32,
}

/// What of a function comes late.
#[derive(Default, Debug)]
pub(crate) struct LateResults {
    /// By register.
    pub(crate) seconds: BTreeMap<Reg, Second>,
    /// Groups of products so far (B32).
    pub(crate) groups: Option<Reg>,
    pub(crate) arrivals: Vec<Arrival>,
    /// Instructions so far, by which the seed tells them apart.
    pub(crate) n: u32,
}
