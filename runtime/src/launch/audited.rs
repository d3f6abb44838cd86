//! What compiled code must tell an audit, and what it cannot, so that the interpreter runs a checked launch.

use handloom_audit::Check;
use handloom_ir::simt::{self, Builtin, Function as Code, Inst, Op, SymKind, Term};
use handloom_ir::types::{AtomOp, StateSpace};
use handloom_plan::access::AccessClass;
use handloom_plan::analysis::cfg::Cfg;
use handloom_plan::analysis::live::Live;
use handloom_plan::analysis::variables::{Trace, Variable, traces_of_addresses};

use super::LaunchConfig;
use super::config::shared_total;
use crate::lock::lock;
use crate::module::{Function, Named, Untold};

/// Whether code of a checked launch tells what threads do. Else the code of a launch without checks does, as its traps are all that can be found.
pub(super) fn must_tell(function: &Function, config: &LaunchConfig) -> bool {
    let Some(check) = config.check else { return false };
    let untold = untold(function, config);
    let fills_all = |offset: u64, bytes: u64| {
        let reserved = function.module_of(config).ir.shared.reserved;
        let all = shared_total(function.entry(), function.dynamic_start(), config.shared_bytes);
        (offset, u64::from(reserved)) == (0, 0) && bytes == all
    };
    let may_stray = match untold.variable {
        Named::None => false,
        Named::Shared(offset, bytes) => !fills_all(offset, bytes),
        Named::Some => true,
    };
    let has = |c| check.checks.has(c);
    has(Check::Race) || has(Check::Sync) || has(Check::Memory) && may_stray || has(Check::Init) && untold.is_own
}

/// Why a checked launch is run by the interpreter; `None` if compiled code tells all that the checks of the launch ask for, at least until it sees bits
/// that nobody wrote.
pub(super) fn why_interpreted(function: &Function, config: &LaunchConfig) -> Option<&'static str> {
    let checks = config.check?.checks;
    let untold = untold(function, config);
    if checks.has(Check::Init) {
        let prints =
            function.module_of(config).prints.then_some("bits that nobody wrote are looked for, and functions print");
        if let Some(why) = untold.bits.or(prints) {
            return Some(why);
        }
    }
    if !must_tell(function, config) {
        return untold.heap.filter(|_| checks.has(Check::Memory));
    }
    if config.cluster_of(function.entry()).iter().product::<u32>() > 1 {
        return Some("the launch has clusters");
    }
    untold.events.or(untold.heap).or(untold.variables.filter(|_| checks.has(Check::Memory)))
}

/// What of an entry compiled code cannot tell, looked at once.
fn untold(function: &Function, config: &LaunchConfig) -> Untold {
    let module = function.module_of(config);
    let mut known = lock(&module.untold);
    *known.entry(function.entry().func).or_insert_with(|| of_entry(&module.ir, function.name()))
}

fn of_entry(module: &simt::Module, entry: &str) -> Untold {
    let ir = handloom_lower::as_lowered(module, entry);
    let func = ir.entries[entry].func.idx();
    let mut untold = Untold::default();
    let f = &ir.funcs[func];
    if f.slots.len() > module.funcs[func].slots.len() {
        untold.bits = Some("bits that nobody wrote are looked for, and functions have memory of their own");
    }
    if Live::new(f, &Cfg::new(f)).entry[0].iter().next().is_some() {
        untold.bits = Some("registers may be read that nobody wrote");
    }
    let mut insts = ir.funcs.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.insts);
    let names_own = insts.any(|i| match i.op {
        Op::SharedAddr(_) | Op::SlotAddr(_) | Op::ArgAddr { .. } => true,
        Op::SymAddr(sym) => {
            matches!(ir.syms[sym.idx()].kind, SymKind::Shared { .. } | SymKind::DynamicShared { .. })
        }
        _ => false,
    });
    for f in &ir.funcs {
        of_function(&ir, f, names_own, &mut untold);
    }
    untold
}

fn of_function(ir: &simt::Module, f: &Code, names_own: bool, untold: &mut Untold) {
    for (block, traces) in f.blocks.iter().zip(traces_of_addresses(f)) {
        if let Term::Call { .. } = block.term {
            untold.events = Some("functions are called");
        }
        for (inst, trace) in block.insts.iter().zip(traces) {
            untold.events = untold.events.or(of_inst(inst));
            match inst.op {
                Op::Builtin(Builtin::Malloc | Builtin::Free | Builtin::Device { .. }) => {
                    untold.heap = Some("threads allocate, free or launch");
                }
                Op::Stack(_) => {
                    untold.bits = Some("bits that nobody wrote are looked for, and threads take memory of their stack")
                }
                Op::Shfl(_) => untold.is_own = true,
                _ => {}
            }
            let Some(access) = AccessClass::of(inst) else { continue };
            untold.is_own |= match access.space {
                StateSpace::Global | StateSpace::Const | StateSpace::ParamEntry => false,
                StateSpace::Generic => names_own,
                _ => true,
            };
            match trace {
                Trace::None | Trace::Mixed => {}
                Trace::Unknown => {
                    untold.variables = Some("an address is made from different variables at different times");
                    untold.variable = Named::Some;
                }
                Trace::Of(variable) => untold.variable = also(untold.variable, variable, ir),
            }
        }
    }
}

/// Why code cannot tell what an instruction does.
fn of_inst(inst: &Inst) -> Option<&'static str> {
    match inst.op {
        Op::Transfer(_) => Some("there are asynchronous copies"),
        Op::Tensor(_) => Some("tensor memory is used"),
        Op::Atom { access, .. } | Op::Red { access, .. } if access.op == AtomOp::Step => {
            Some("there are `mbarrier` objects")
        }
        _ => None,
    }
}

/// Variables and one more.
fn also(known: Named, new: Variable, ir: &simt::Module) -> Named {
    let Variable::Symbol(sym) = new else { return Named::Some };
    let symbol = &ir.syms[sym.idx()];
    let one = match symbol.kind {
        // Dynamic shared memory is one with what follows, and without a size nothing is said.
        SymKind::DynamicShared { .. } | SymKind::Func(_) => return known,
        _ if symbol.size == 0 => return known,
        SymKind::Shared { offset } => Named::Shared(offset.into(), symbol.size),
        SymKind::Global | SymKind::Const => Named::Some,
    };
    if known == Named::None || known == one { one } else { Named::Some }
}
