//! What compiled code must tell an audit, and what it cannot, so that the interpreter runs a checked launch.

use handloom_audit::Check;
use handloom_interp::pace::{may_pause, pauses};
use handloom_ir::simt::{self, Builtin, Function as Code, Inst, LaunchShape, Op, Pure, SymKind, Term, Transfer, Val};
use handloom_ir::types::{AtomOp, StateSpace};
use handloom_plan::access::AccessClass;
use handloom_plan::analysis::cfg::Cfg;
use handloom_plan::analysis::classes::analyse;
use handloom_plan::analysis::live::Live;
use handloom_plan::analysis::variables::{Trace, Variable, traces_of_addresses};

use super::LaunchConfig;
use super::config::shared_total;
use crate::lock::lock;
use crate::module::{Function, Named, Untold};
use crate::run::Beside;

/// Whether code of a checked launch tells what threads do. Else the code of a launch without checks does, as its traps are all that can be found.
pub(super) fn must_tell(function: &Function, config: &LaunchConfig) -> bool {
    let Some(check) = config.check else { return false };
    let has = |c| check.checks.has(c);
    let reads_own = || has(Check::Init) && untold(function, config).is_own;
    has(Check::Race)
        || has(Check::Sync)
        || follows_blank(function, config)
        || reads_own()
        || has(Check::Memory) && may_stray(function, config)
}

/// Whether a launch is held against what nobody has written of the device's memory.
pub(super) fn follows_blank(function: &Function, config: &LaunchConfig) -> bool {
    let has_init = config.check.is_some_and(|check| check.checks.has(Check::Init));
    has_init && function.module().device().inner.memory.blank().is_followed()
}

/// Whether an access through the address of a variable may lie elsewhere.
pub(super) fn may_stray(function: &Function, config: &LaunchConfig) -> bool {
    let fills_all = |offset: u64, bytes: u64| {
        let reserved = function.module_of(config).ir.shared.reserved;
        let all = shared_total(function.entry(), function.dynamic_start(), config.shared_bytes);
        (offset, u64::from(reserved)) == (0, 0) && bytes == all
    };
    let may_stray = match untold(function, config).variable {
        Named::None => false,
        Named::Shared(offset, bytes) => !fills_all(offset, bytes),
        Named::Some => true,
    };
    may_stray && !stays_in_variables(function, config)
}

/// Why bits that nobody wrote may come from elsewhere than shared memory.
pub(super) fn unknown_bits(function: &Function, config: &LaunchConfig) -> Option<&'static str> {
    untold(function, config).bits
}

/// Whether threads may begin what happens later.
pub(super) fn begins_what_comes(function: &Function, config: &LaunchConfig) -> bool {
    untold(function, config).begins
}

/// Whether threads of compiled code may keep something in local memory.
pub(super) fn keeps_local(function: &Function, config: &LaunchConfig) -> bool {
    untold(function, config).keeps_local
}

/// Whether each access through the address of a variable lies in it, whatever the kernel does: ranges of values say so for the block dimensions of the launch.
fn stays_in_variables(function: &Function, config: &LaunchConfig) -> bool {
    let module = function.module_of(config);
    let shape = config.shape();
    let mut known = lock(&module.inside);
    *known.entry((function.entry().func, shape)).or_insert_with(|| {
        let funcs = handloom_lower::as_lowered(&module.ir, function.name());
        funcs.values().all(|f| all_inside(&module.ir, f, &shape))
    })
}

fn all_inside(ir: &simt::Module, f: &Code, shape: &LaunchShape) -> bool {
    let traces = traces_of_addresses(f);
    let mut placed = f.clone();
    let Code { blocks, regs, .. } = &mut placed;
    for inst in blocks.iter_mut().flat_map(|b| &mut b.insts) {
        if let Op::SharedAddr(sym) = inst.op
            && let SymKind::Shared { offset } | SymKind::DynamicShared { offset } = ir.syms[sym.idx()].kind
        {
            let ty = regs[inst.dst[0].idx()];
            (inst.op, inst.src) = (Op::Pure(Pure::Mov(ty)), [Val::Imm(offset.into(), ty)].as_slice().into());
        }
    }
    let facts = analyse(&placed, shape, 0, false);
    let range = |address: Val| match address {
        Val::Imm(value, _) => Some((value, value)),
        Val::Reg(r) => facts.class[r.idx()].shape().map(|s| (s.low, s.high)),
    };
    let accesses = placed.blocks.iter().zip(&traces).flat_map(|(b, of)| b.insts.iter().zip(of));
    accesses.filter_map(|(inst, trace)| Some((AccessClass::of(inst)?, *trace))).all(|(access, trace)| {
        let variable = match trace {
            Trace::None | Trace::Mixed => return true,
            Trace::Unknown | Trace::Of(Variable::Slot(_)) => return false,
            Trace::Of(Variable::Symbol(sym)) => &ir.syms[sym.idx()],
        };
        let (Some((low, high)), StateSpace::Shared) = (range(access.address), access.space) else { return false };
        let SymKind::Shared { offset } = variable.kind else {
            return matches!(variable.kind, SymKind::DynamicShared { .. });
        };
        let first = i128::from(low) + i128::from(access.offset) - i128::from(offset);
        let end = i128::from(high) + i128::from(access.offset) + i128::from(access.bytes()) - i128::from(offset);
        variable.size == 0 || first >= 0 && end <= i128::from(variable.size)
    })
}

/// Why a checked launch is run by the interpreter; `None` if compiled code tells all that the checks of the launch ask for, at least until it sees bits
/// that nobody wrote.
pub(super) fn why_interpreted(function: &Function, config: &LaunchConfig) -> Option<&'static str> {
    let checks = config.check?.checks;
    let untold = untold(function, config);
    if checks.has(Check::Init) {
        let prints = function
            .module_of(config)
            .prints(function.entry().func)
            .then_some("bits that nobody wrote are looked for, and functions print");
        // To take back what a launch wrote would take back what others wrote there too.
        let beside = (config.beside == Beside::Streams && must_tell(function, config))
            .then_some("bits that nobody wrote are looked for, and work of other streams may change memory meanwhile");
        if let Some(why) = untold.bits.or(prints).or(beside) {
            return Some(why);
        }
    }
    if !must_tell(function, config) {
        return untold.heap.filter(|_| checks.has(Check::Memory));
    }
    if config.cluster_of(function.entry()).iter().product::<u32>() > 1 {
        return Some("the launch has clusters");
    }
    let pauses = untold.pauses && checks.has(Check::Race) && pauses(config.seed);
    let paused = pauses.then_some("with its seed threads give way after strong reads");
    untold.events.or(untold.heap).or(paused).or(untold.variables.filter(|_| checks.has(Check::Memory)))
}

/// What of an entry compiled code cannot tell, looked at once.
fn untold(function: &Function, config: &LaunchConfig) -> Untold {
    let module = function.module_of(config);
    let mut known = lock(&module.untold);
    *known.entry(function.entry().func).or_insert_with(|| of_entry(&module.ir, function.name()))
}

fn of_entry(module: &simt::Module, entry: &str) -> Untold {
    let funcs = handloom_lower::as_lowered(module, entry);
    let func = module.entries[entry].func;
    let mut untold = Untold::default();
    let f = &funcs[func];
    if f.slots.len() > module.funcs[func.idx()].slots.len() {
        untold.bits = Some("bits that nobody wrote are looked for, and functions have memory of their own");
    }
    if Live::new(f, &Cfg::new(f)).entry[0].iter().next().is_some() {
        untold.bits = Some("registers may be read that nobody wrote");
    }
    let mut insts = funcs.values().flat_map(|f| &f.blocks).flat_map(|b| &b.insts);
    let names_own = insts.any(|i| match i.op {
        Op::SharedAddr(_) | Op::SlotAddr(_) | Op::ArgAddr { .. } => true,
        Op::SymAddr(sym) => {
            matches!(module.syms[sym.idx()].kind, SymKind::Shared { .. } | SymKind::DynamicShared { .. })
        }
        _ => false,
    });
    for f in funcs.values() {
        of_function(module, f, names_own, &mut untold);
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
            untold.pauses |= may_pause(inst.op);
            untold.begins |= matches!(inst.op, Op::Transfer(_) | Op::Tensor(_));
            match inst.op {
                Op::Builtin(Builtin::Malloc | Builtin::Free | Builtin::Device { .. }) => {
                    untold.heap = Some("threads allocate, free or launch");
                }
                Op::Stack(_) => {
                    untold.keeps_local = true;
                    untold.bits = Some("bits that nobody wrote are looked for, and threads take memory of their stack")
                }
                Op::Transfer(Transfer::Discard(_)) => {
                    untold.bits = Some("bits that nobody wrote are looked for, and contents of memory are given up")
                }
                Op::Shfl(_) => untold.is_own = true,
                Op::SlotAddr(_) | Op::ArgAddr { .. } => untold.keeps_local = true,
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
