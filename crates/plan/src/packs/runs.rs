//! Runs: accesses and value ops of a full copy that are done for a few packs at a time.
//!
//! Packs side by side keep eight vectors of every value alive, more than a host has registers. Within a run no access is after a store: so lanes
//! see memory as if the packs had gone side by side, and an access that traps finds done what was to be done before, though the tests of a run come first.

use handloom_ir::simt::{Inst, Op};
use handloom_ir::types::StateSpace;

use crate::plan::Plan;

/// Packs done together.
pub const TOGETHER: usize = 2;

/// Steps from which a run is worth it: below, eight packs side by side fit the registers.
const WORTH: u32 = 4;

/// By block and instruction: the end of a run that may begin there, 0 for none.
pub(crate) fn run_ends(plan: &Plan) -> Vec<Vec<u32>> {
    plan.func.blocks.iter().map(|block| run_ends_of(plan, &block.insts)).collect()
}

/// Of one block. From the last instruction to the first, so that each is looked at once however long its runs are.
fn run_ends_of(plan: &Plan, insts: &[Inst]) -> Vec<u32> {
    let n = insts.len() as u32;
    let joins = |inst: &Inst| plan.access(inst).is_some_and(|a| a.may_join_run());
    let fits = |inst: &Inst| match inst.op {
        Op::Cvta { space, .. } => space != StateSpace::SharedCluster,
        Op::Pure(_) | Op::SymAddr(_) | Op::SharedAddr(_) | Op::ParamAddr { .. } => true,
        Op::Load { .. } | Op::Store { .. } => joins(inst),
        _ => false,
    };
    // Of the instructions from the one looked at on: the first that fits no run, the first access, the first access after a store.
    let (mut misfit, mut access, mut after_store) = (n, n, n);
    // By instruction: how many accesses are before it.
    let mut accesses = vec![0u32];
    for inst in insts {
        accesses.push(accesses[accesses.len() - 1] + u32::from(!inst.op.is_value()));
    }
    let mut ends = vec![0; insts.len()];
    for (i, inst) in insts.iter().enumerate().rev() {
        let at = i as u32;
        match inst.op {
            _ if !fits(inst) => misfit = at,
            Op::Store { .. } => after_store = access,
            _ => {}
        }
        if !inst.op.is_value() {
            access = at;
        }
        let end = misfit.min(after_store);
        let is_worth_it = accesses[end as usize] - accesses[i] >= 2 && end - at >= WORTH;
        ends[i] = if is_worth_it { end } else { 0 };
    }
    ends
}
