//! One entry for one launch shape.

use handloom_ir::simt::*;
use handloom_ir::trap::TrapKind;
use handloom_ir::types::Ty;

use crate::{count, passes};

/// The entry with the constants of a launch shape folded and all passes run, and the functions that it still calls.
///
/// Functions keep their numbers, because handles are made of them; one that cannot be reached any more is a single trap, and one that never could has no blocks. Symbols keep
/// their numbers too, but not their initial bytes, and there are no source lines: both are read from the module that was lowered.
///
/// # Panics
/// When the module has no such entry.
pub fn specialise(module: &Module, entry: &str, shape: &LaunchShape) -> Module {
    specialise_extracted(extract(module, entry), module, entry, shape)
}

/// The same of functions that were taken out of a module. Which of them indirect calls reach, the initialisers of the module say.
fn specialise_extracted(mut result: Module, module: &Module, entry: &str, shape: &LaunchShape) -> Module {
    let func = result.entries[entry].func;
    for f in &mut result.funcs {
        fix_constants(f, &module.syms, shape);
    }
    let roots = roots(&result, module, func);
    passes::optimise(&mut result, &roots, shape);
    let live = reachable(&result, module, func);
    for (f, _) in result.funcs.iter_mut().zip(&live).filter(|(f, live)| !**live && !f.blocks.is_empty()) {
        *f = unreachable_function(f);
    }
    result
}

/// The same of a module whose statements are marked, with counters ([`Op::Count`]) of what it does, and what they mean.
///
/// # Panics
/// As [`specialise`].
pub fn specialise_counted(module: &Module, entry: &str, shape: &LaunchShape, level: Counting) -> (Module, Counts) {
    let mut counted = extract(module, entry);
    counted.funcs.iter_mut().for_each(|f| count::insert(f, level));
    let mut result = specialise_extracted(counted, module, entry, shape);
    let mut counts = Counts::default();
    result.funcs.iter_mut().for_each(|f| count::number(f, &mut counts));
    (result, counts)
}

/// The entry as it was lowered and the interpreter runs it, but that calls are replaced by what they call, as far as that may be.
///
/// # Panics
/// When the module has no such entry.
pub fn as_lowered(module: &Module, entry: &str) -> Module {
    let mut result = extract(module, entry);
    let func = result.entries[entry].func;
    let roots = roots(&result, module, func);
    let is_called = passes::inline::inline_calls(&mut result, &roots);
    for (f, _) in result.funcs.iter_mut().zip(is_called).filter(|(_, is_called)| !is_called) {
        *f = nobody(f);
    }
    result
}

/// The entry and the functions that it may call.
fn extract(module: &Module, entry: &str) -> Module {
    let Some(e) = module.entries.get(entry) else { panic!("bug: specialise: there is no entry `{entry}`") };
    let live = reachable(module, module, e.func);
    let funcs = module.funcs.iter().zip(&live).map(|(f, live)| if *live { f.clone() } else { nobody(f) });
    Module {
        funcs: funcs.collect(),
        syms: module.syms.iter().map(|s| symbol(s, &live)).collect(),
        entries: [(entry.to_owned(), e.clone())].into(),
        address_size: module.address_size,
        lines: vec![],
        line_files: vec![],
        shared: module.shared,
        late: vec![],
        statements: vec![],
    }
}

/// A symbol without what is read from the module that was lowered.
fn symbol(s: &Symbol, live: &[bool]) -> Symbol {
    let is_live = !matches!(s.kind, SymKind::Func(f) if !live[f.idx()]);
    let name = if is_live { s.name.clone() } else { String::new() };
    Symbol { name, kind: s.kind, size: s.size, align: s.align, init: vec![], relocs: vec![], span: s.span }
}

/// What stands for a function that an entry cannot reach: a module may have thousands of them.
fn nobody(f: &Function) -> Function {
    Function {
        name: String::new(),
        is_entry: f.is_entry,
        blocks: vec![],
        regs: vec![],
        slots: vec![],
        param_bytes: f.param_bytes,
        result_bytes: f.result_bytes,
        span: f.span,
    }
}

/// What a function becomes that nobody calls any more.
fn unreachable_function(f: &Function) -> Function {
    let end = Block { insts: vec![], term: Term::Trap(TrapKind::BadCall), term_span: f.span };
    Function {
        name: f.name.clone(),
        is_entry: f.is_entry,
        blocks: vec![end],
        regs: vec![],
        slots: vec![],
        param_bytes: f.param_bytes,
        result_bytes: f.result_bytes,
        span: f.span,
    }
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
            let ty: Ty = regs[i.dst[0].idx()];
            i.op = Op::Pure(Pure::Mov(ty));
            i.src = vec![Val::Imm(v & ty.mask(), ty)];
        }
    }
}

fn shared_offset(s: &Symbol) -> Option<u64> {
    match s.kind {
        SymKind::Shared { offset } | SymKind::DynamicShared { offset } => Some(u64::from(offset)),
        SymKind::Global | SymKind::Const | SymKind::Func(_) => None,
    }
}

/// Which functions an entry can reach. An indirect call reaches each function whose address is in reachable code or in an initialiser
/// (those are in `original`).
fn reachable(module: &Module, original: &Module, root: FuncId) -> Vec<bool> {
    let mut live = vec![false; module.funcs.len()];
    live[root.idx()] = true;
    let mut work = vec![root];
    let mut named: Vec<FuncId> = named_by_initialisers(original).collect();
    let mut calls_any = false;
    while let Some(f) = work.pop() {
        for b in &module.funcs[f.idx()].blocks {
            named.extend(named_by_code(module, b));
            match b.term {
                Term::Call { callee: Callee::Direct(c), .. } if !std::mem::replace(&mut live[c.idx()], true) => {
                    work.push(c)
                }
                Term::Call { callee: Callee::Indirect, .. } => calls_any = true,
                _ => {}
            }
        }
        if calls_any {
            for n in named.drain(..) {
                if !std::mem::replace(&mut live[n.idx()], true) {
                    work.push(n);
                }
            }
        }
    }
    live
}

/// The entry, and all functions that a pointer may lead to.
fn roots(module: &Module, original: &Module, entry: FuncId) -> Vec<FuncId> {
    let mut pointed: Vec<FuncId> = named_by_initialisers(original).collect();
    pointed.extend(module.funcs.iter().flat_map(|f| &f.blocks).flat_map(|b| named_by_code(module, b)));
    pointed.sort_unstable();
    pointed.dedup();
    std::iter::once(entry).chain(pointed.into_iter().filter(|f| *f != entry)).collect()
}

/// Functions whose address is in an initialiser.
fn named_by_initialisers(module: &Module) -> impl Iterator<Item = FuncId> + '_ {
    module.syms.iter().flat_map(|s| &s.relocs).filter_map(|r| as_func(module, r.target))
}

/// Functions whose address a block takes.
fn named_by_code<'m>(module: &'m Module, block: &'m Block) -> impl Iterator<Item = FuncId> + 'm {
    block.insts.iter().filter_map(|i| if let Op::SymAddr(s) = i.op { as_func(module, s) } else { None })
}

fn as_func(module: &Module, s: SymId) -> Option<FuncId> {
    match module.syms[s.idx()].kind {
        SymKind::Func(f) => Some(f),
        SymKind::Global | SymKind::Const | SymKind::Shared { .. } | SymKind::DynamicShared { .. } => None,
    }
}
