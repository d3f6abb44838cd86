//! Symbols, entries and source lines of a module.

use std::collections::{BTreeMap, BTreeSet};

use handloom_check::module as checked;
use handloom_check::module::{CheckedModule, SourceAt, SymbolId, SymbolKind};
use handloom_ir::simt::*;
use handloom_ir::types::StateSpace;
use handloom_isa::form::{Control, Semantics};

use crate::function::lower_function;
use crate::late;
use crate::names::Names;
use crate::peers;
use crate::shared::{SharedLayout, lay_out_shared};

/// Lowers a checked module. Symbol `i` of the result is symbol `i` of the checked module.
pub fn lower(module: &CheckedModule) -> Module {
    lower_names(Names::of(module))
}

/// The same with a mark at the begin of each statement, so that a launch can be counted.
pub fn lower_marked(module: &CheckedModule) -> Module {
    let mut names = Names::of(module);
    names.marked = true;
    let statements = names.bodies.iter().flat_map(|&id| statements(&names, id)).collect();
    Module { statements, ..lower_names(names) }
}

/// The instructions of a function.
fn statements(names: &Names, id: SymbolId) -> Vec<Statement> {
    let SymbolKind::Func(decl) = &names.symbol(id).kind else { return vec![] };
    let Some(body) = &decl.body else { return vec![] };
    let func = names.func(id);
    let statement = |stmt: &checked::Stmt| {
        let checked::Stmt::Inst(inst) = stmt else { return None };
        let ways = match inst.form.semantics {
            Semantics::Control(Control::Bra) if inst.guard.is_some() => Ways::Two,
            Semantics::Control(Control::BrxIdx) => Ways::Many(n_labels(inst)),
            _ => Ways::One,
        };
        Some(Statement { func, span: inst.span, opcode: inst.form.opcode, ways })
    };
    body.stmts.iter().filter_map(statement).collect()
}

fn n_labels(inst: &checked::Inst) -> u32 {
    let labels = inst.dst.iter().chain(&inst.src).find_map(|o| match o {
        checked::Operand::Labels(list) => Some(list.len()),
        _ => None,
    });
    labels.and_then(|n| u32::try_from(n).ok()).unwrap_or(0)
}

fn lower_names(mut names: Names<'_>) -> Module {
    let module = names.module;
    let shared = lay_out_shared(module);
    let lowered = |names: &Names<'_>| {
        let mut funcs: Vec<Function> = names.bodies.iter().map(|&s| lower_function(names, s)).collect();
        peers::reach(&mut funcs);
        funcs
    };
    let funcs = lowered(&names);
    let syms = (0..module.symbols.len()).map(|i| symbol(&names, &shared, SymbolId(i as u32))).collect();
    let (lines, line_files) = source_lines(module);
    let entries = entries(&names, &shared);
    names.late = true;
    let is_timed = |s: &SymbolId| late::is_timed(names.symbol(*s));
    let late = if names.bodies.iter().any(is_timed) { lowered(&names) } else { vec![] };
    let (address_size, shared, statements) = (module.address_size, shared.rules, vec![]);
    Module { funcs, syms, entries, address_size, lines, line_files, shared, late, statements }
}

fn symbol(names: &Names, shared: &SharedLayout, id: SymbolId) -> Symbol {
    let s = names.symbol(id);
    let SymbolKind::Var(v) = &s.kind else {
        let kind = SymKind::Func(names.func(id));
        let (name, init, relocs) = (s.name.clone(), vec![], vec![]);
        return Symbol { name, kind, size: 0, align: 1, init, relocs, managed: false, span: s.span };
    };
    let offset = shared.offsets[id.0 as usize];
    let kind = match v.space {
        StateSpace::Shared if v.unsized_array => SymKind::DynamicShared { offset: shared.dynamic },
        StateSpace::Shared => SymKind::Shared { offset },
        StateSpace::Const => SymKind::Const,
        _ => SymKind::Global,
    };
    let relocs = v.relocs.iter().map(|r| Reloc {
        offset: r.offset,
        size: r.size,
        target: SymId(r.target.0),
        addend: r.addend,
        shift: r.shift,
    });
    Symbol {
        name: s.name.clone(),
        kind,
        size: v.size,
        align: v.align,
        init: v.init.clone(),
        relocs: relocs.collect(),
        managed: v.managed,
        span: s.span,
    }
}

fn entries(names: &Names, shared: &SharedLayout) -> BTreeMap<String, Entry> {
    let mut entries = BTreeMap::new();
    for &id in &names.bodies {
        let s = names.symbol(id);
        let SymbolKind::Func(f) = &s.kind else { continue };
        if !f.is_entry {
            continue;
        }
        let params = f.params.iter().map(|p| Param {
            name: p.name.clone(),
            offset: p.offset,
            size: p.size,
            align: p.align,
            ty: p.ty,
            is_array: p.is_array,
        });
        let entry = Entry {
            func: names.func(id),
            params: params.collect(),
            reqntid: f.reqntid,
            maxntid: f.maxntid,
            reqcluster: f.reqcluster,
            registers: f.registers,
            shared_bytes: shared.entry_end[id.0 as usize] - shared.rules.reserved,
        };
        entries.insert(s.name.clone(), entry);
    }
    entries
}

/// Deepest nesting of inlined functions that is followed.
const MAX_INLINED: u32 = 32;

/// For each place at which the `.loc` directives of a function say that something was inlined: where the code of that place was inlined itself, as often as they differ.
fn inlined_calls(stmts: &[checked::Stmt]) -> BTreeMap<SourceAt, BTreeSet<Option<SourceAt>>> {
    let locs = stmts.iter().filter_map(|stmt| match stmt {
        checked::Stmt::Loc { at, inlined_at, .. } => Some((*at, *inlined_at)),
        checked::Stmt::Label(_) | checked::Stmt::Inst(_) | checked::Stmt::Pragma(_) => None,
    });
    let mut calls: BTreeMap<SourceAt, BTreeSet<Option<SourceAt>>> =
        locs.clone().filter_map(|(_, inlined_at)| Some((inlined_at?, BTreeSet::new()))).collect();
    for (at, inlined_at) in locs {
        if let Some(all) = calls.get_mut(&at) {
            all.insert(inlined_at);
        }
    }
    calls
}

/// The outermost call of those that a call was inlined through. `None` if there may be several.
fn outermost(call: SourceAt, calls: &BTreeMap<SourceAt, BTreeSet<Option<SourceAt>>>, depth: u32) -> Option<SourceAt> {
    let depth = depth.checked_sub(1)?;
    let Some(outer) = calls.get(&call).filter(|outer| !outer.is_empty()) else { return Some(call) };
    let mut all = outer.iter().map(|outer| outer.map_or(Some(call), |outer| outermost(outer, calls, depth)));
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}

/// The `.loc` directives as a table, sorted by place. A function without one does not inherit the line of the function before it.
fn source_lines(module: &CheckedModule) -> (Vec<LineEntry>, Vec<String>) {
    let mut files: Vec<String> = module.files.iter().map(|(_, name)| name.clone()).collect();
    let mut lines = Vec::new();
    let mut unknown = None;
    for s in &module.symbols {
        let SymbolKind::Func(f) = &s.kind else { continue };
        let Some(body) = &f.body else { continue };
        lines.push(LineEntry { at: s.span, file: 0, line: 0, caller: None });
        let calls = inlined_calls(&body.stmts);
        let mut number = |file: u64| {
            let index = module.files.iter().position(|(n, _)| *n == file).unwrap_or_else(|| {
                *unknown.get_or_insert_with(|| {
                    files.push(String::new());
                    files.len() - 1
                })
            });
            index as u32
        };
        for stmt in &body.stmts {
            let checked::Stmt::Loc { at, inlined_at, span } = stmt else { continue };
            let caller = inlined_at.and_then(|call| outermost(call, &calls, MAX_INLINED));
            let caller = caller.map(|call| (number(call.file), call.line));
            lines.push(LineEntry { at: *span, file: number(at.file), line: at.line, caller });
        }
    }
    lines.sort_by_key(|l| (l.at.file, l.at.start));
    if lines.iter().all(|l| l.line == 0) {
        lines.clear();
    }
    (lines, files)
}
