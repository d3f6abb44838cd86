//! Layout of shared memory.
//!
//! Choice: a variable has one offset in all entries, because functions that several entries call name it. Two variables get the same
//! bytes only if no entry can reach both. So a module with many kernels, each with its own large array, stays within the limit of each.
//! Dynamic shared memory starts at one offset in the whole module: after the static variables of every entry that uses it.
//! In a module that asks for the region of system software, all of them lie after it.

use std::collections::{BTreeMap, BTreeSet};

use handloom_check::module::*;
use handloom_ir::simt::SharedRules;
use handloom_ir::types::{Sreg, StateSpace};

use crate::names::resolve;

/// Where shared variables lie. The lists are indexed by symbol.
pub(crate) struct SharedLayout {
    /// Offset of each shared variable; 0 for others.
    pub(crate) offsets: Vec<u32>,
    /// Offset of dynamic shared memory.
    pub(crate) dynamic: u32,
    /// Where the static bytes of each entry end.
    pub(crate) entry_end: Vec<u32>,
    /// What the target and the module ask for.
    pub(crate) rules: SharedRules,
}

/// Dynamic shared memory is aligned at least so.
const DYNAMIC_ALIGN: u32 = 16;

/// Lays out the shared variables of a module.
pub(crate) fn lay_out_shared(module: &CheckedModule) -> SharedLayout {
    let n = module.symbols.len();
    let mentions: Vec<Mentions> = module.symbols.iter().map(|s| mentions(module, s)).collect();
    let rules = rules(module, &mentions);
    let start = rules.reserved;
    let mut layout = SharedLayout { offsets: vec![start; n], dynamic: start, entry_end: vec![start; n], rules };
    let users = users(module, &mentions);
    let mut fixed: Vec<(&SymbolId, &GlobalVar)> =
        users.keys().filter_map(|s| shared_var(module, *s).map(|v| (s, v))).filter(|(_, v)| !v.unsized_array).collect();
    // What many entries share is laid out first: it leaves no gaps then.
    fixed.sort_by_key(|(s, _)| (std::cmp::Reverse(users[s].len()), **s));
    for (s, v) in fixed {
        let top = users[s].iter().map(|e| layout.entry_end[e.0 as usize]).max().unwrap_or(start);
        let offset = top.next_multiple_of(v.align.max(1));
        layout.offsets[s.0 as usize] = offset;
        for e in &users[s] {
            layout.entry_end[e.0 as usize] = offset + u32::try_from(v.size).unwrap_or(u32::MAX - offset);
        }
    }
    place_dynamic(module, &users, &mut layout);
    layout
}

fn place_dynamic(module: &CheckedModule, users: &BTreeMap<SymbolId, BTreeSet<SymbolId>>, layout: &mut SharedLayout) {
    let dynamic =
        || users.iter().filter_map(|(s, e)| shared_var(module, *s).filter(|v| v.unsized_array).map(|v| (v, e)));
    let entries: BTreeSet<SymbolId> = dynamic().flat_map(|(_, e)| e.iter().copied()).collect();
    let align = dynamic().map(|(v, _)| v.align).max().unwrap_or(1).max(DYNAMIC_ALIGN);
    let top = entries.iter().map(|e| layout.entry_end[e.0 as usize]).max().unwrap_or(layout.rules.reserved);
    layout.dynamic = top.next_multiple_of(align);
    for e in entries {
        layout.entry_end[e.0 as usize] = layout.dynamic;
    }
}

/// The region for system software, if the module reads where it is, and the unit of sizes of the target.
fn rules(module: &CheckedModule, mentions: &[Mentions]) -> SharedRules {
    SharedRules {
        reserved: if mentions.iter().any(|m| m.reads_reserved) { SharedRules::REGION } else { 0 },
        unit: if (30..80).contains(&module.target.sm) { 256 } else { 128 },
    }
}

fn shared_var(module: &CheckedModule, s: SymbolId) -> Option<&GlobalVar> {
    match &module.symbols[s.0 as usize].kind {
        SymbolKind::Var(v) if v.space == StateSpace::Shared => Some(v),
        SymbolKind::Var(_) | SymbolKind::Func(_) | SymbolKind::Alias(_) => None,
    }
}

/// The entries that can reach each symbol that an entry can reach.
fn users(module: &CheckedModule, mentions: &[Mentions]) -> BTreeMap<SymbolId, BTreeSet<SymbolId>> {
    // An indirect call may reach any function whose address is anywhere.
    let is_func = |s: &SymbolId| matches!(module.symbols[s.0 as usize].kind, SymbolKind::Func(_));
    let address_taken: BTreeSet<SymbolId> =
        mentions.iter().flat_map(|m| m.named.iter().copied()).filter(is_func).collect();
    let mut users: BTreeMap<SymbolId, BTreeSet<SymbolId>> = BTreeMap::new();
    for (i, s) in module.symbols.iter().enumerate() {
        let SymbolKind::Func(f) = &s.kind else { continue };
        if !f.is_entry {
            continue;
        }
        let entry = SymbolId(i as u32);
        let mut seen = BTreeSet::from([entry]);
        let mut work = vec![entry];
        while let Some(s) = work.pop() {
            let m = &mentions[s.0 as usize];
            let reached = m.called.iter().chain(&m.named).chain(address_taken.iter().filter(|_| m.calls_any));
            work.extend(reached.copied().filter(|&r| seen.insert(r)));
        }
        for s in seen {
            users.entry(s).or_default().insert(entry);
        }
    }
    users
}

/// What a symbol's body or initialiser mentions.
#[derive(Default)]
struct Mentions {
    /// Functions that it calls by name.
    called: BTreeSet<SymbolId>,
    /// Symbols whose address it takes, and variables that it accesses.
    named: BTreeSet<SymbolId>,
    /// Whether it has an indirect call whose targets are not listed.
    calls_any: bool,
    /// Whether it reads where the region for system software lies, or how large it is.
    reads_reserved: bool,
}

fn mentions(module: &CheckedModule, symbol: &Symbol) -> Mentions {
    let mut m = Mentions::default();
    match &symbol.kind {
        SymbolKind::Var(v) => m.named.extend(v.relocs.iter().map(|r| resolve(module, r.target))),
        SymbolKind::Alias(of) => {
            m.called.insert(resolve(module, *of));
        }
        SymbolKind::Func(f) => {
            for stmt in f.body.iter().flat_map(|b| &b.stmts) {
                if let Stmt::Inst(inst) = stmt {
                    inst.dst.iter().chain(&inst.src).for_each(|o| mention_operand(module, o, &mut m));
                }
            }
        }
    }
    m
}

fn mention_operand(module: &CheckedModule, operand: &Operand, m: &mut Mentions) {
    match operand {
        Operand::Vector(parts) => parts.iter().for_each(|o| mention_operand(module, o, m)),
        Operand::Addr { base: AddrBase::Symbol(s), .. } | Operand::AddrOf { base: AddrBase::Symbol(s), .. } => {
            m.named.insert(resolve(module, *s));
        }
        Operand::Point(p) => {
            for (base, _) in std::iter::once(p.at).chain(p.sampler) {
                if let AddrBase::Symbol(s) = base {
                    m.named.insert(resolve(module, s));
                }
            }
            mention_operand(module, &p.coordinates, m);
        }
        Operand::Call(call) => match call.target {
            CallTarget::Direct(s) => {
                m.called.insert(resolve(module, s));
            }
            CallTarget::Indirect(_) => match &call.targets {
                Some(list) => m.called.extend(list.iter().map(|s| resolve(module, *s))),
                None => m.calls_any = true,
            },
            CallTarget::Builtin(_) => {}
        },
        Operand::Sreg { sreg, .. } => m.reads_reserved |= tells_of_reserved(*sreg),
        Operand::Reg { .. }
        | Operand::Imm { .. }
        | Operand::Sink
        | Operand::Addr { .. }
        | Operand::AddrOf { .. }
        | Operand::Label(_)
        | Operand::Labels(_) => {}
    }
}

/// Whether a special register tells of the region for system software.
fn tells_of_reserved(sreg: Sreg) -> bool {
    matches!(
        sreg,
        Sreg::ReservedSmemBegin
            | Sreg::ReservedSmemEnd
            | Sreg::ReservedSmemCap
            | Sreg::ReservedSmemOffset(_)
            | Sreg::AggrSmemSize
    )
}
