//! Findings of a check as people read them: names for addresses, lines for spans.

use std::collections::{BTreeSet, HashMap};

use handloom_audit::Touched as Touches;
use handloom_audit::init::{Decides, Source, Use};
use handloom_audit::memory::{Block, Memory, Step, Stray, Variable};
use handloom_audit::misuse::{Misuse, Wrong};
use handloom_audit::proof::Area;
use handloom_audit::{Attempt, Class, Does, Finding as Race, Place, Proxy, Site, Thread};
use handloom_diag::Span;
use handloom_interp::CtaEnv;
use handloom_ir::simt::{Op, SymKind, Symbol};
use handloom_ir::trap::{AccessKind, Trap};
use handloom_ir::types::{CLUSTER_STRIDE, Order, Scope, StateSpace};

use super::Binding;
use super::describe::{index_of, name_of};
use super::report::{cuda_caller, cuda_line};
use crate::finding::{Allocated, Finding, Footprint, FoundAt, FoundIn, FoundLine, Touched, TouchedAt, opcode};
use crate::grid::Grid;
use crate::heap::Freed;
use crate::lock::lock;
use crate::memory::AllocKind;
use crate::module::ModuleInner;

/// Most blocks that a launch frees of which others are told where.
const MOST_ENDED: usize = 1 << 12;

/// Says what a race is.
pub(crate) fn race(race: &Race, grid: &Grid, bindings: &[Binding]) -> Finding {
    let data = place_of((race.addr, race.bytes), race.shared_offset, grid, bindings);
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
    let message = match race.class {
        Class::MissingProxyFence => {
            let way = if race.second.site.proxy == Proxy::TensorMap { "as a tensor map" } else { "by the async proxy" };
            format!(
                "no proxy fence stands between the {} of {name} by {a} and its {} {way} by {b}",
                first.does, second.does
            )
        }
        _ => format!("nothing orders the {} of {name} by {a} and its {} by {b}", first.does, second.does),
    };
    Finding {
        tried: race.tried.as_ref().map(|tried| attempt(tried, grid)),
        fix: fix(race),
        pairs: race.pairs,
        ..Finding::new("race", race.class.word(), message, (first, Some(second)), data)
    }
}

/// A statement and who executed it, as people read it. `does`: what it does there.
fn step_at((span, thread): Step, does: &'static str, grid: &Grid) -> FoundAt {
    let (order, scope, space) = (Order::Weak, Scope::Cta, StateSpace::Generic);
    FoundAt {
        does,
        ..at(&Place { site: Site { span, does: Does::Read, order, scope, space, ..Site::NONE }, thread }, grid)
    }
}

fn of_malloc(offset: u64, size: u64, bytes: u32) -> FoundIn {
    FoundIn { what: "memory from `malloc`".into(), size, offset, bytes: bytes.into(), element: None }
}

/// What a launch touched, but for memory that kernels allocate.
pub(crate) fn touched(all: &[Touches], module: &ModuleInner, env: &CtaEnv) -> Vec<Touched> {
    let mut places: HashMap<Span, TouchedAt> = HashMap::new();
    let mut of =
        |place: &Place| places.entry(place.site.span).or_insert_with(|| found(at_in(place, module, env))).clone();
    let all = all.iter().filter(|t| is_kept(t.addr, module));
    all.map(|t| Touched::new(t, &of(&t.place))).collect()
}

/// Where a thread of a grid gave a stream a copy or a fill, of which the bytes are read or written: `does`.
pub(crate) fn work_at(place: &Place, does: &'static str, module: &ModuleInner, env: &CtaEnv) -> TouchedAt {
    found(FoundAt { does, ..at_in(place, module, env) })
}

/// The data of two accesses to global memory.
pub(crate) fn memory_at(addr: u64, bytes: u64, grid: &Grid, bindings: &[Binding]) -> FoundIn {
    FoundIn { bytes, ..place_of((addr, 0), None, grid, bindings) }
}

/// A place that is known.
fn found(at: FoundAt) -> TouchedAt {
    TouchedAt::new(move || at)
}

/// Where the areas lie that a launch was known to touch.
pub(crate) fn places_of(known: &Footprint, grid: &Grid) {
    let at = |area: &Area| is_kept(area.first(), &grid.module).then(|| found(at(&area.place, grid)));
    known.tell_places(at);
}

/// Whether an address lies in memory that no kernel has allocated.
fn is_kept(address: u64, module: &ModuleInner) -> bool {
    module.device.inner.memory.holding(address).is_some_and(|a| a.kind != AllocKind::Malloc)
}

/// Memory that a kernel allocated.
pub(crate) fn allocated(block: &Block, grid: &Grid) -> Allocated {
    Allocated { address: block.addr, bytes: block.bytes, at: step_at(block.made, "malloc", grid) }
}

/// Memory that a kernel allocated and freed.
fn freed_of(block: &Block, grid: &Grid) -> Option<Freed> {
    block.freed.map(|step| Freed { block: allocated(block, grid), at: step_at(step, "free", grid) })
}

/// Notes what kernels of a launch have allocated and freed, for what other launches do with it.
pub(crate) fn note_heap(memory: &Memory, grid: &Grid) {
    let (live, ended, before) = (memory.live(), memory.ended(), memory.freed_before());
    let mut heap = lock(&grid.module.device.inner.heap);
    // Earlier memory went before what has its place now came.
    for (address, step) in before {
        heap.free(*address, step_at(*step, "free", grid));
    }
    for freed in ended.take(MOST_ENDED).filter_map(|block| freed_of(block, grid)) {
        let address = freed.block.address;
        heap.add(freed.block);
        heap.free(address, freed.at);
    }
    live.for_each(|block| heap.add(allocated(block, grid)));
}

/// Whether a trap is a use of memory that a kernel freed, of this launch or of one before.
pub(crate) fn after_free(trap: &Trap, memory: &Memory, grid: &Grid) -> Option<Finding> {
    let addr = trap.address?;
    let own = memory.find(addr).and_then(|block| freed_of(block, grid));
    let Freed { block, at: freed } = own.or_else(|| lock(&grid.module.device.inner.heap).find(addr).cloned())?;
    let is_free = trap.bytes == 0;
    let thread = thread_of(trap, grid);
    let does = match trap.access {
        _ if is_free => "free",
        Some(AccessKind::Read) => "read",
        Some(AccessKind::Write) => "write",
        Some(AccessKind::Atomic) | None => "atomic",
    };
    let second = step_at((trap.span, thread), does, grid);
    let data = of_malloc(addr - block.address, block.bytes, trap.bytes);
    let made = &block.at;
    let of = format!("memory of {} bytes that `malloc` returned at {}:{}", block.bytes, made.file, made.line);
    let (class, message) = if is_free {
        ("double_free", format!("{of} is freed twice"))
    } else {
        ("use", format!("{does} of {} bytes at +{} of {of}, after it was freed", trap.bytes, addr - block.address))
    };
    Some(Finding::new("freed", class, message, (freed, Some(second)), data))
}

/// The thread of a trap, as audits know it.
fn thread_of(trap: &Trap, grid: &Grid) -> Thread {
    let [x, y, z] = trap.thread;
    let [nx, ny, _] = grid.env.ntid;
    let [bx, by, bz] = trap.cta;
    let [gx, gy, _] = grid.env.nctaid;
    let number = usize::try_from(x + nx * (y + ny * z)).unwrap_or(0);
    Thread::new(bx + gx * (by + gy * bz), number)
}

/// Says how barriers or masks are misused; nothing of an instruction that may be used so.
pub(crate) fn misuse(misuse: &Misuse, grid: &Grid, bindings: &[Binding]) -> Option<Finding> {
    let (does, other) = match misuse.wrong {
        Wrong::MaskWithoutCaller
        | Wrong::DivergentWarp
        | Wrong::BarrierShared
        | Wrong::WaitWithoutArrival
        | Wrong::MbarrierCount
        | Wrong::MbarrierCompleted
        | Wrong::MbarrierPhase => ("wait", "wait"),
        Wrong::MbarrierOverwritten => ("wait", "write"),
        Wrong::AsyncUnwaited | Wrong::AsyncSource | Wrong::AsyncOpen => ("copy", "access"),
        Wrong::BlockEnded => ("access", "access"),
    };
    let first = step_at(misuse.first, does, grid);
    let second = misuse.second.map(|step| step_at(step, other, grid));
    let is_aligned = |at: &FoundAt| {
        let name = opcode(&at.statement);
        name.starts_with("bar.") || name.contains(".aligned")
    };
    if misuse.wrong == Wrong::DivergentWarp && !std::iter::once(&first).chain(&second).any(is_aligned) {
        return None;
    }
    let bytes = if misuse.wrong == Wrong::BlockEnded { 4 } else { 8 };
    let object = misuse.object.map(|(addr, offset)| place_of((addr, bytes), Some(offset), grid, bindings));
    let message = match &object {
        Some(object) => format!("{}: {}+{}", misuse.wrong.about(), object.what, object.offset),
        None => misuse.wrong.about().to_owned(),
    };
    let statement = || FoundIn { what: format!("`{}`", opcode(&first.statement)), ..FoundIn::default() };
    let data = object.unwrap_or_else(statement);
    let (kind, class) = (misuse.wrong.kind(), misuse.wrong.word());
    Some(Finding { pairs: misuse.times, ..Finding::new(kind, class, message, (first, second), data) })
}

/// Says that an access leaves the variable that its address was made from.
pub(crate) fn stray(stray: &Stray, grid: &Grid, bindings: &[Binding]) -> Finding {
    let Variable { symbol, base, bytes } = stray.variable;
    let symbol = symbol.and_then(|i| grid.module.ir.syms.get(i));
    let is_shared = stray.space == StateSpace::Shared;
    let name = symbol.map_or_else(
        || "a variable in local memory".to_owned(),
        |s| format!("{}variable `{}`", if is_shared { "shared " } else { "" }, grid.module.ir.declared_name(&s.name)),
    );
    let does = match stray.does {
        Does::Read => "read",
        Does::Write => "write",
        Does::Update | Does::Reduce | Does::Step | Does::Fence => "atomic",
    };
    let offset = stray.addr.wrapping_sub(base);
    let end = offset.wrapping_add(u64::from(stray.bytes));
    let by = if stray.addr < base {
        format!("{} bytes before its start", base - stray.addr)
    } else if offset < bytes {
        format!("the last {} bytes past its end", end - bytes)
    } else {
        format!("{} bytes past its end", offset - bytes)
    };
    // What lies there instead.
    let shared_offset = match symbol.map(|s| s.kind) {
        Some(SymKind::Shared { offset: start }) if is_shared => Some(u64::from(start).wrapping_add(offset)),
        _ => None,
    };
    let hit = symbol.map(|_| place_of((stray.addr, stray.bytes), shared_offset, grid, bindings));
    let into =
        hit.filter(|_| stray.addr < base || offset >= bytes).map_or(String::new(), |hit| format!(", in {}", hit.what));
    let message = format!("{does} of {} bytes through the address of {name}, {by}{into}", stray.bytes);
    let data = FoundIn { what: format!("{name} of {bytes} bytes"), ..FoundIn::default() };
    let first = step_at(stray.at, does, grid);
    Finding { pairs: stray.times, ..Finding::new("out_of_bounds", "variable", message, (first, None), data) }
}

/// Says what bytes that nobody wrote decide.
pub(crate) fn unwritten(found: &Use, memory: &Memory, grid: &Grid, bindings: &[Binding]) -> Finding {
    let place = |span, thread| step_at((span, thread), "read", grid);
    let of_register = || FoundIn { what: "a register that was never written".into(), ..FoundIn::default() };
    let data = match found.origin.map(|o| o.what) {
        Some(Source::Memory { space: StateSpace::Local | StateSpace::ParamFunc, bytes, .. }) => {
            FoundIn { what: format!("{bytes} bytes of local memory"), ..FoundIn::default() }
        }
        Some(Source::Memory { addr, bytes, .. }) if memory.find(addr).is_some() => {
            let block = memory.find(addr).copied();
            let (base, size) = block.map_or((addr, 0), |b| (b.addr, b.bytes));
            of_malloc(addr - base, size, bytes)
        }
        Some(Source::Memory { addr, bytes, shared_offset, .. }) => {
            place_of((addr, bytes), shared_offset, grid, bindings)
        }
        Some(Source::Lane) => FoundIn { what: "the value of a lane that takes no part".into(), ..FoundIn::default() },
        Some(Source::Register) | None => of_register(),
    };
    let name = match data.bytes {
        0 => data.what.clone(),
        _ => format!("{}+{}", data.what, data.offset),
    };
    let message = match (found.class, found.stored) {
        (Decides::Result, Some((addr, bytes))) => {
            let to = place_of((addr, bytes), None, grid, bindings);
            format!("what nobody wrote of {name} is stored to {}+{}, which the host reads", to.what, to.offset)
        }
        (Decides::Barrier, _) => format!("the `mbarrier` object at {name} is used before it is initialised"),
        (class, _) => format!("what nobody wrote of {name} decides {}", class.about()),
    };
    let message = match found.origin.map(|o| o.what) {
        Some(Source::Memory { .. }) => message,
        Some(Source::Register | Source::Lane) | None => message.replacen("what nobody wrote of ", "", 1),
    };
    let does = match found.class {
        Decides::Branch => "branch",
        Decides::Guard => "guard",
        Decides::Address => "access",
        Decides::Barrier | Decides::Operand => "use",
        Decides::Output => "print",
        Decides::Result => "store",
    };
    let used = FoundAt { does, ..place(found.span, found.thread) };
    let (first, second) = match found.origin {
        Some(origin) if origin.span != found.span => (place(origin.span, origin.thread), Some(used)),
        Some(_) | None => (used, None),
    };
    Finding { pairs: found.times, ..Finding::new("uninitialised", found.class.word(), message, (first, second), data) }
}

/// Whether something asynchronous does it: who comes after the thread that began it need not come after it.
fn is_copied(site: &Site) -> bool {
    match site.proxy {
        Proxy::Unsaid | Proxy::Async => true,
        Proxy::Generic | Proxy::TensorMap => false,
    }
}

fn fix(race: &Race) -> Option<&'static str> {
    const BY_VOLATILE: &str = "order them by atomics, or count `volatile` as the manual does (`--check-volatile`)";
    let are_volatile = [race.first, race.second].iter().all(|place| place.site.order == Order::Volatile);
    match race.class {
        Class::MissingProxyFence if race.second.site.proxy == Proxy::TensorMap => {
            Some("put `fence.proxy.tensormap::generic` between them, with `.release` and then with `.acquire`")
        }
        Class::ScopeTooNarrow => Some("give both a scope that has the other thread, as `.gpu` for another block"),
        Class::AtomicScopes => Some("give both a scope that has the other thread"),
        Class::MixedSize => Some("access the location with one size, or order the accesses"),
        // A lane that spins on what others change by atomics is not helped by a barrier. Two that are both `volatile` may be steps of a warp, which one keeps apart.
        Class::SameWarp if race.is_by_volatile && !are_volatile => Some(BY_VOLATILE),
        // Nothing can be put between what lanes do by one statement at once.
        Class::SameWarp if race.first.site.span == race.second.site.span => {
            Some("let one lane write or use an atomic; between rounds of a loop, put a `bar.warp.sync`")
        }
        Class::SameWarp => Some("put a `bar.warp.sync` between them"),
        Class::MissingProxyFence => Some("put a proxy fence between them, as `fence.proxy.async` behind the write"),
        Class::Unordered if race.is_by_volatile => Some(BY_VOLATILE),
        Class::Unordered if [race.first, race.second].iter().any(|place| is_copied(&place.site)) => Some(
            "order the access before what is asynchronous is begun, or after a wait for it: for its group in its thread, or at its `mbarrier` object",
        ),
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
    at_in(place, &grid.module, &grid.env)
}

/// The same of a grid of which no more is kept.
fn at_in(place: &Place, module: &ModuleInner, env: &CtaEnv) -> FoundAt {
    let Place { site, thread } = place;
    let sources = &module.sources;
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
        source: cuda_line(&module.ir, site.span),
        caller: cuda_caller(&module.ir, site.span).map(|(file, line)| FoundLine { file, line }),
        statement: sources.slice(site.span).to_owned(),
        block: block_of(thread.cta, env),
        thread: env.tid(thread.number()),
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
fn block_of(cta: u32, env: &CtaEnv) -> [u32; 3] {
    let [x, y, _] = env.nctaid.map(|n| n.max(1));
    [cta % x, cta / x % y, cta / x / y]
}

/// The variables of the module, those first that the kernel itself names: shared variables of several kernels lie at the same place.
fn own_symbols(grid: &Grid) -> Vec<&Symbol> {
    let module = &grid.module.ir;
    let named = module.funcs.get(grid.entry.1.idx()).map_or_else(BTreeSet::new, |f| {
        let ops = f.blocks.iter().flat_map(|b| &b.insts).map(|inst| inst.op);
        ops.filter_map(|op| if let Op::SharedAddr(sym) | Op::SymAddr(sym) = op { Some(sym.idx()) } else { None })
            .collect()
    });
    let (mut first, rest): (Vec<_>, Vec<_>) = module.syms.iter().enumerate().partition(|(i, _)| named.contains(i));
    first.extend(rest);
    first.into_iter().map(|(_, s)| s).collect()
}

/// What the program calls a byte of global memory, or at an offset of shared memory. Of what is there no longer, as shared memory of another block of a cluster and what a kernel freed, no address is
/// told: it differs from run to run.
pub(crate) fn name_at(addr: u64, grid: &Grid, bindings: &[Binding]) -> String {
    let shared_offset = (addr < CLUSTER_STRIDE).then_some(addr);
    if shared_offset.is_none() && grid.module.device.inner.memory.holding(addr).is_none() {
        return "memory that is gone".to_owned();
    }
    let place = place_of((addr, 0), shared_offset, grid, bindings);
    format!("{}+{}", place.what, place.offset)
}

/// What the program calls the memory.
fn place_of((addr, bytes): (u64, u32), shared_offset: Option<u64>, grid: &Grid, bindings: &[Binding]) -> FoundIn {
    let bytes = u64::from(bytes);
    if let Some(offset) = shared_offset {
        let variables = own_symbols(grid).into_iter().filter_map(|s| match s.kind {
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
        let what = format!("shared variable `{}`", grid.module.ir.declared_name(&symbol.name));
        return FoundIn { what, size, offset: offset - start, bytes, element: None };
    }
    let found = grid.module.device.inner.memory.holding(addr);
    let Some(a) = found else {
        return FoundIn { what: "memory".into(), size: 0, offset: addr, bytes, element: None };
    };
    let what = match (bindings.iter().find(|b| b.base == a.base), name_of(&a, bindings)) {
        (Some(b), _) => format!("argument {} (`{}`)", b.number, b.name),
        (None, Some(name)) => format!("`{name}`"),
        (None, None) if a.kind == AllocKind::Malloc => "memory from `malloc`".into(),
        (None, None) => "an allocation".into(),
    };
    FoundIn { what, size: a.size, offset: addr - a.base, bytes, element: index_of(&a, addr) }
}
