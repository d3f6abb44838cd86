//! What compiled code cannot tell an audit, so that the interpreter runs a checked launch.

use handloom_audit::Check;
use handloom_ir::simt::{self, Builtin, Op, Term};
use handloom_ir::types::AtomOp;
use handloom_plan::access::AccessClass;
use handloom_plan::analysis::variables::{Trace, traces_of_addresses};

use super::LaunchConfig;
use crate::lock::lock;
use crate::module::{Function, Untold};

/// Why a checked launch is run by the interpreter; `None` if compiled code tells all that the checks of the launch ask for.
pub(super) fn why_interpreted(function: &Function, config: &LaunchConfig) -> Option<&'static str> {
    let checks = config.check?.checks;
    if checks.has(Check::Init) {
        return Some("bits that nobody wrote are followed through registers");
    }
    if config.cluster_of(function.entry()).iter().product::<u32>() > 1 {
        return Some("the launch has clusters");
    }
    let module = function.module_of(config);
    let mut known = lock(&module.untold);
    let untold = *known.entry(function.entry().func).or_insert_with(|| of_entry(&module.ir, function.name()));
    untold.events.or(untold.variables.filter(|_| checks.has(Check::Memory)))
}

/// What of an entry compiled code cannot tell.
fn of_entry(ir: &simt::Module, entry: &str) -> Untold {
    let ir = handloom_lower::as_lowered(ir, entry);
    let f = &ir.funcs[ir.entries[entry].func.idx()];
    let of_variables = traces_of_addresses(f);
    let mut untold = Untold::default();
    for (block, traces) in f.blocks.iter().zip(&of_variables) {
        if let Term::Call { .. } = block.term {
            untold.events = Some("functions are called");
        }
        for (inst, trace) in block.insts.iter().zip(traces) {
            let what = match inst.op {
                Op::Transfer(_) => Some("there are asynchronous copies"),
                Op::Tensor(_) => Some("tensor memory is used"),
                Op::Builtin(Builtin::Malloc | Builtin::Free | Builtin::Device { .. }) => {
                    Some("threads allocate, free or launch")
                }
                Op::Atom { access, .. } | Op::Red { access, .. } if access.op == AtomOp::Step => {
                    Some("there are `mbarrier` objects")
                }
                _ => None,
            };
            untold.events = untold.events.or(what);
            if AccessClass::of(inst).is_some() && *trace == Trace::Unknown {
                untold.variables = Some("an address is made from different variables at different times");
            }
        }
    }
    untold
}
