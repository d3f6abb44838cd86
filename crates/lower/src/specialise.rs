//! One entry for one launch shape.

use std::collections::BTreeSet;

use handloom_ir::simt::*;

use crate::{count, params, passes};

/// The functions that an entry may run, with the constants of a launch shape folded and all passes run; `known`: what is known of the parameters of the launches.
///
/// They keep their numbers, because handles are made of them. What else there is of a module is read from the one that was lowered.
///
/// # Panics
/// When the module has no such entry.
pub fn specialise(
    module: &Module,
    entry: &str,
    shape: &LaunchShape,
    known: &[ParamValue],
    strengths: passes::Strengths,
) -> ByFunction<Function> {
    let (func, mut funcs) = extract(module, entry);
    params::fix(&mut funcs[func], known);
    specialise_extracted(funcs, module, func, shape, strengths)
}

/// The same of functions that were taken out of a module.
fn specialise_extracted(
    mut funcs: ByFunction<Function>,
    module: &Module,
    entry: FuncId,
    shape: &LaunchShape,
    strengths: passes::Strengths,
) -> ByFunction<Function> {
    for f in funcs.values_mut() {
        fix_constants(f, &module.syms, shape);
    }
    let roots = roots(&funcs, module, entry);
    passes::optimise(&mut funcs, &roots, shape, strengths);
    keep_reachable(&mut funcs, module, entry);
    funcs
}

/// The same of a module whose statements are marked, with counters ([`Op::Count`]) of what it does, and what they mean.
///
/// # Panics
/// As [`specialise`].
pub fn specialise_counted(
    module: &Module,
    entry: &str,
    shape: &LaunchShape,
    level: Counting,
) -> (ByFunction<Function>, Counts) {
    let (func, mut counted) = extract(module, entry);
    counted.values_mut().for_each(|f| count::insert(f, level));
    let mut result = specialise_extracted(counted, module, func, shape, passes::Strengths::default());
    let mut counts = Counts::default();
    result.values_mut().for_each(|f| count::number(f, &mut counts));
    (result, counts)
}

/// The functions that an entry may run as they were lowered and the interpreter runs them, but that calls are replaced by what they call, as far as that
/// may be.
///
/// # Panics
/// When the module has no such entry.
pub fn as_lowered(module: &Module, entry: &str) -> ByFunction<Function> {
    let (func, mut funcs) = extract(module, entry);
    let roots = roots(&funcs, module, func);
    passes::inline::inline_calls(&mut funcs, &roots);
    keep_reachable(&mut funcs, module, func);
    funcs
}

/// The number of an entry, and all functions that it may run.
fn extract(module: &Module, entry: &str) -> (FuncId, ByFunction<Function>) {
    let Some(e) = module.entries.get(entry) else { panic!("bug: specialise: there is no entry `{entry}`") };
    let reach = module.reachable(e.func);
    (e.func, reach.into_iter().map(|f| (f, module.funcs[f.idx()].clone())).collect())
}

/// Forgets functions that nobody calls any more.
fn keep_reachable(funcs: &mut ByFunction<Function>, module: &Module, entry: FuncId) {
    let reach: BTreeSet<FuncId> = module.reachable_in(entry, |f| funcs.get(f)).into_iter().collect();
    funcs.retain(|f| reach.contains(&f));
}

/// The entry, and the functions that pointers may lead to, if any is called by one.
fn roots(funcs: &ByFunction<Function>, module: &Module, entry: FuncId) -> Vec<FuncId> {
    let mut terms = funcs.values().flat_map(|f| &f.blocks).map(|b| &b.term);
    let calls_pointers = terms.any(|t| matches!(t, Term::Call { callee: Callee::Indirect, .. }));
    let pointed = if calls_pointers { module.pointed() } else { Vec::new() };
    std::iter::once(entry).chain(pointed).collect()
}

/// Special registers that are constants of the shape, and offsets of shared variables.
fn fix_constants(f: &mut Function, syms: &[Symbol], shape: &LaunchShape) {
    let Function { blocks, regs, .. } = f;
    for i in blocks.iter_mut().flat_map(|b| &mut b.insts) {
        let value = if let Op::Sreg(s) = i.op {
            shape_constant(s, shape)
        } else if let Op::SharedAddr(s) = i.op {
            shared_offset(&syms[s.idx()])
        } else {
            None
        };
        if let Some(v) = value {
            params::become_constant(i, regs, v);
        }
    }
}

fn shared_offset(s: &Symbol) -> Option<u64> {
    match s.kind {
        SymKind::Shared { offset } | SymKind::DynamicShared { offset } => Some(u64::from(offset)),
        SymKind::Global | SymKind::Const | SymKind::Func(_) => None,
    }
}
