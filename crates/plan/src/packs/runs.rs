//! Runs: accesses and value ops of a full copy that are done for a few packs at a time.
//!
//! Packs side by side keep eight vectors of every value alive, more than a host has registers. Within a run no load is after a store, so lanes
//! see memory as if the packs had gone side by side.

use handloom_ir::simt::{Inst, Op};
use handloom_ir::types::StateSpace;

use crate::packs::Strategy;

/// Packs done together.
pub const TOGETHER: usize = 2;

/// Steps from which a run is worth it: below, eight packs side by side fit the registers.
const WORTH: usize = 4;

impl Strategy<'_> {
    /// The end of a run that may begin at instruction `i` of block `b`, by what the instructions are. What their addresses are may end it
    /// earlier.
    pub fn run_end(&self, b: usize, i: usize) -> Option<usize> {
        let insts = &self.plan.func.blocks[b].insts;
        let mut stored = false;
        let joins = |inst: &Inst| self.plan.access(inst).is_some_and(|a| a.may_join_run());
        let fits = |inst: &Inst, stored: &mut bool| match inst.op {
            Op::Cvta { space, .. } => space != StateSpace::SharedCluster,
            Op::Pure(_) | Op::SymAddr(_) | Op::SharedAddr(_) | Op::ParamAddr { .. } => true,
            Op::Load { .. } => !*stored && joins(inst),
            Op::Store { .. } => {
                *stored = true;
                joins(inst)
            }
            _ => false,
        };
        let end = (i..insts.len()).find(|k| !fits(&insts[*k], &mut stored)).unwrap_or(insts.len());
        let accesses = insts[i..end].iter().filter(|x| !x.op.is_value()).count();
        (accesses >= 2 && end - i >= WORTH).then_some(end)
    }
}
