//! Findings of a check as people read them: names for addresses, lines for spans.

use handloom_audit::{Attempt, Class, Does, Finding as Race, Place, Site};
use handloom_ir::simt::SymKind;
use handloom_ir::types::{Order, Scope};

use super::Binding;
use super::describe::{index_of, name_of};
use super::report::cuda_line;
use crate::finding::{Finding, FoundAt, FoundIn, opcode};
use crate::grid::Grid;

/// Says what a race is.
pub(crate) fn race(race: &Race, grid: &Grid, bindings: &[Binding]) -> Finding {
    let data = place_of(race, grid, bindings);
    let (first, second) = (at(&race.first, grid), at(&race.second, grid));
    let who = |at: &FoundAt, other: &FoundAt| {
        let triple = |[x, y, z]: [u32; 3]| format!("({x},{y},{z})");
        if at.block == other.block {
            format!("thread {} of block {}", triple(at.thread), triple(at.block))
        } else {
            format!("block {}", triple(at.block))
        }
    };
    let (a, b) = (who(&first, &second), who(&second, &first));
    let name = format!("{}+{}", data.what, data.offset);
    let message = format!("nothing orders the {} of {name} by {a} and its {} by {b}", first.does, second.does);
    Finding {
        kind: "race",
        class: race.class.word(),
        message,
        first,
        second: Some(second),
        data,
        tried: race.tried.as_ref().map(|tried| attempt(tried, grid)),
        fix: fix(race.class),
        pairs: race.pairs,
    }
}

fn fix(class: Class) -> Option<&'static str> {
    match class {
        Class::ScopeTooNarrow => Some("give both a scope that has the other thread, as `.gpu` for another block"),
        Class::AtomicScopes => Some("give both a scope that has the other thread"),
        Class::MixedSize => Some("access the location with one size, or order the accesses"),
        Class::SameWarp => Some("put a `bar.warp.sync` between them"),
        Class::SameValue | Class::Unordered => None,
    }
}

/// `st.release.cta (k.ptx:120) -> ld.acquire.cta (k.ptx:169): cta scope does not reach another block`.
fn attempt(tried: &Attempt, grid: &Grid) -> String {
    let sources = &grid.module.sources;
    let end = |(site, _): &(Site, Scope)| {
        let line = sources.position(site.span.file, site.span.start).line;
        format!("{} ({}:{line})", opcode(sources.slice(site.span)), sources.name(site.span.file))
    };
    let narrow = tried.release.1.min(tried.acquire.1);
    let beyond = if narrow == Scope::Cta { "another block" } else { "another cluster" };
    let (from, to) = (end(&tried.release), end(&tried.acquire));
    format!("{from} -> {to}: {} scope does not reach {beyond}", scope(narrow))
}

fn at(place: &Place, grid: &Grid) -> FoundAt {
    let Place { site, thread } = place;
    let sources = &grid.module.sources;
    let position = sources.position(site.span.file, site.span.start);
    let (order, is_strong) = match site.order {
        Order::Weak => ("weak", false),
        Order::Volatile => ("volatile", false),
        Order::Mmio => ("mmio", false),
        Order::Relaxed => ("relaxed", true),
        Order::Acquire => ("acquire", true),
        Order::Release => ("release", true),
        Order::AcqRel => ("acq_rel", true),
        Order::Sc => ("sc", true),
    };
    FoundAt {
        does: match site.does {
            Does::Read => "read",
            Does::Write => "write",
            Does::Update | Does::Reduce | Does::Step => "atomic",
            Does::Fence => "fence",
        },
        file: sources.name(site.span.file).to_owned(),
        line: position.line,
        column: position.column,
        source: cuda_line(&grid.module.ir, site.span),
        statement: sources.slice(site.span).to_owned(),
        block: block_of(thread.cta, grid),
        thread: grid.env.tid(thread.number()),
        order,
        scope: is_strong.then(|| scope(site.scope)),
    }
}

fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Cta => "cta",
        Scope::Cluster => "cluster",
        Scope::Gpu => "gpu",
        Scope::Sys => "sys",
    }
}

/// Coordinates of a block by its linear number.
fn block_of(cta: u32, grid: &Grid) -> [u32; 3] {
    let [x, y, _] = grid.env.nctaid.map(|n| n.max(1));
    [cta % x, cta / x % y, cta / x / y]
}

/// The name of a variable as it was declared: those of functions carry that of the function and a number.
fn declared<'s>(name: &'s str, grid: &Grid) -> &'s str {
    let functions = grid.module.ir.funcs.iter().filter_map(|f| name.strip_prefix(f.name.as_str())?.strip_prefix('$'));
    let inner = functions.filter_map(|rest| rest.rsplit_once('$').map(|(inner, _)| inner));
    inner.min_by_key(|inner| inner.len()).unwrap_or(name)
}

/// What the program calls the memory.
fn place_of(race: &Race, grid: &Grid, bindings: &[Binding]) -> FoundIn {
    let bytes = u64::from(race.bytes);
    if let Some(offset) = race.shared_offset {
        let variables = grid.module.ir.syms.iter().filter_map(|s| match s.kind {
            SymKind::Shared { offset: start } => Some((s, u64::from(start), s.size)),
            SymKind::DynamicShared { offset: start } => Some((s, u64::from(start), u64::from(grid.env.dynamic_shared))),
            SymKind::Global | SymKind::Const | SymKind::Func(_) => None,
        });
        let hit = variables.into_iter().find(|(_, start, size)| (*start..start + size).contains(&offset));
        let Some((symbol, start, size)) = hit else {
            let reserved = u64::from(grid.env.shared_rules.reserved);
            let what = "shared memory".to_owned();
            let size = u64::from(grid.env.own_shared());
            return FoundIn { what, size, offset: offset.saturating_sub(reserved), bytes, element: None };
        };
        let what = format!("shared variable `{}`", declared(&symbol.name, grid));
        return FoundIn { what, size, offset: offset - start, bytes, element: None };
    }
    let found = grid.module.device.inner.memory.holding(race.addr);
    let Some(a) = found else {
        return FoundIn { what: "memory".into(), size: 0, offset: race.addr, bytes, element: None };
    };
    let what = match (bindings.iter().find(|b| b.base == a.base), name_of(&a, bindings)) {
        (Some(b), _) => format!("argument {} (`{}`)", b.number, b.name),
        (None, Some(name)) => format!("`{name}`"),
        (None, None) => "an allocation".into(),
    };
    FoundIn { what, size: a.size, offset: race.addr - a.base, bytes, element: index_of(&a, race.addr) }
}
