//! Counted launches: who counts, and what lies at the addresses that were counted.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use handloom_diag::SourceMap;
use handloom_interp::{AsyncOrder, SharedCounter};
use handloom_ir::simt::{Builtin, Counting, Counts, Does, Module, Op, Term};
use handloom_plan::analysis::shape::Shape as Places;
use handloom_profile::rules::{Lane, WORD};
use handloom_profile::{Counter, Facts, Launch, Part, Site, Space, Texts, Timelines, Traffic, Words, describe, lines};

use super::{Engine, LaunchConfig};
use crate::grid::{Ended, Grid};
use crate::lock::lock;
use crate::module::{Function, ModuleInner, Program};
use crate::run::{self, Teller};
use crate::trap::{Binding, found};

/// Counts launches that are given it ([`LaunchConfig::count`]), and those that their threads make. Launches of one shape count together. A clone counts the same.
///
/// It keeps the modules whose launches it counted.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    all: Arc<Mutex<Vec<Counted>>>,
    /// Modules that were loaded to be counted.
    modules: Arc<Mutex<Vec<Loaded>>>,
    /// Accesses and waits are left out.
    is_coverage: bool,
    /// Launches of the host that have ended.
    over: Arc<AtomicU64>,
    /// Is told that a launch was counted.
    teller: Option<Arc<Teller>>,
}

/// A module with its marks, and its texts.
#[derive(Debug)]
struct Loaded {
    ir: Module,
    sources: Arc<SourceMap>,
}

impl Loaded {
    /// The name of its first text.
    fn name(&self) -> Option<&str> {
        self.ir.statements.first().map(|s| self.sources.name(s.span.file))
    }
}

/// Why a counted launch is run by the interpreter; `None` if compiled code counts the same.
pub(super) fn why_interpreted(function: &Function, config: &LaunchConfig) -> Option<&'static str> {
    let tally = config.count.as_ref()?;
    if config.engine == Engine::Interp {
        return Some("the interpreter was asked for");
    }
    if config.cluster_of(function.entry()).iter().product::<u32>() > 1 {
        return Some("the launch has clusters");
    }
    if config.results_come() != AsyncOrder::Earliest {
        return Some("results of asynchronous operations come late");
    }
    let module = function.module_of(config);
    let (shape, level) = (config.shape(), tally.level());
    let mut known = lock(&module.uncounted);
    *known.entry((function.entry().func, shape, level)).or_insert_with(|| {
        let (funcs, _) = handloom_lower::specialise_counted(&module.ir, function.name(), &shape, level);
        let of_term = |term: &Term| match term {
            // What waits in a loop is compared with what it was.
            Term::Yield { .. } => Some("threads wait for each other in loops"),
            _ => None,
        };
        let of_op = |op: Op| match op {
            Op::Builtin(Builtin::Device { .. }) => Some("threads launch kernels"),
            _ => None,
        };
        let blocks = || funcs.values().flat_map(|f| &f.blocks);
        let found = blocks().find_map(|b| of_term(&b.term).or_else(|| b.insts.iter().find_map(|i| of_op(i.op))));
        // Passes turn those with a known index into jumps.
        let lowered = handloom_lower::as_lowered(&module.ir, function.name());
        let mut terms = lowered.values().flat_map(|f| &f.blocks).map(|b| &b.term);
        let goes_by_index = terms.any(|term| matches!(term, Term::Switch { .. }));
        found.or(goes_by_index.then_some("a branch goes by an index"))
    })
}

/// What an access of some lanes of a group comes to whose first lane is, or would be, at an address that is `base` modulo [`Counts::ACCESS`].
fn of_pattern(key: (Space, Does, u32), places: &Places, mask: u32, base: u64) -> Traffic {
    let first = places.first_lane(places.group_of(mask.trailing_zeros() as usize & 31));
    // Lanes lie on both sides of the first.
    let start = (1_u64 << 40) + base;
    let lane = |l: usize| -> Lane {
        let by = places.delta(l) - places.delta(first);
        (l, if key.0 == Space::Local { start } else { start.wrapping_add_signed(by) })
    };
    let lanes: Vec<Lane> = (0..32).filter(|l| mask >> l & 1 == 1).map(lane).collect();
    Traffic::of_request(key, &lanes)
}

/// Adds what compiled code counted.
fn add_counted(counter: &mut Counter, found: &run::Counted, counts: &Counts, program: &Program) {
    let patterns: HashMap<u32, Places> = program.tables().flat_map(|t| t.patterns.iter().copied()).collect();
    let fixed: BTreeSet<(u32, u32)> = program.tables().flat_map(|t| t.fixed.iter().copied()).collect();
    let word = |at: u32| found.words.get(at as usize).copied().unwrap_or(0);
    let mask = |at: u32| u32::try_from(word(at)).unwrap_or(u32::MAX);
    for block in &counts.blocks {
        let (full, part) = (word(block.at), word(block.at + 1));
        let (warps, lanes) = (full + part, 32 * full + word(block.at + 2));
        if warps == 0 {
            continue;
        }
        let came = if full > 0 { u32::MAX } else { mask(block.at + 3) };
        let all = Site { warps, lanes, active: lanes, came, which: came, ..Site::default() };
        block.plain.iter().for_each(|span| counter.add(*span, &all));
        block.idle.iter().for_each(|span| counter.add(*span, &Site { active: 0, which: 0, ..all.clone() }));
        for (at, span) in &block.guarded {
            let site = Site { active: word(*at), split: word(at + 1), which: mask(at + 2), ..all.clone() };
            counter.add(*span, &site);
        }
        for (touch, span) in &block.params {
            let bytes = u64::from(touch.bytes);
            let one =
                Traffic { requests: warps, lanes, bytes: lanes * bytes, touched: warps * bytes, ..Traffic::default() };
            let traffic = [((Space::Param, touch.does, touch.bytes), one)].into();
            counter.add(*span, &Site { traffic, ..Site::default() });
        }
    }
    let mut masked: HashMap<u32, Vec<(u32, u32, u64)>> = HashMap::new();
    for ((number, mask, residue), n) in &found.masked {
        masked.entry(*number).or_default().push((*mask, *residue, *n));
    }
    for (number, (at, span, touch)) in (0_u32..).zip(&counts.accesses) {
        let mut site = Site::default();
        if let (Some(places), Some(space)) = (patterns.get(at), Space::of_pattern(touch.space)) {
            let key = (space, touch.does, touch.bytes);
            let by_block: u64 = fixed.range((*at, 0)..=(*at, u32::MAX)).map(|(_, block)| word(*block)).sum();
            for (group, base) in (0..2).flat_map(|group| (0..Counts::ACCESS).map(move |base| (group, base))) {
                let n = word(at + 32 * group + base) + if (group, base) == (0, 0) { by_block } else { 0 };
                if n > 0 {
                    let lanes = places.lanes_of(group as usize);
                    let one = of_pattern(key, places, lanes, u64::from(base));
                    // Of a second group: it is part of the same request.
                    let one = Traffic { requests: u64::from(group == 0), ..one };
                    site.traffic.entry(key).or_default().add(&one.times(n));
                }
            }
            for (mask, residue, n) in masked.get(&number).into_iter().flatten() {
                let one = of_pattern(key, places, *mask, u64::from(*residue));
                site.traffic.entry(key).or_default().add(&one.times(*n));
            }
        }
        let by_routine = found.accesses.get(number as usize).into_iter().flatten().zip(run::SPACES);
        for (traffic, space) in by_routine.filter(|(traffic, _)| traffic.requests > 0) {
            site.traffic.entry((space, touch.does, touch.bytes)).or_default().add(traffic);
        }
        let mut addresses = found.addresses.get(&number).cloned().unwrap_or_default();
        for ((_, n), firsts) in found.rows.iter().filter(|((of, _), _)| *of == number) {
            for (first, times) in firsts.iter() {
                (0..*n).for_each(|i| addresses.add(first + i * u64::from(touch.bytes), times));
            }
        }
        for (word, lanes) in found.words_of_shared.get(&number).into_iter().flat_map(Words::iter) {
            addresses.add(word * WORD, lanes);
        }
        site.addresses = addresses.iter().collect();
        counter.add(*span, &site);
    }
    for (span, waits) in &found.waits {
        counter.add(*span, &Site { waits: *waits, ..Site::default() });
    }
    found.copies.iter().for_each(|(span, bytes)| counter.copy(*span, *bytes));
    counter.add_warps(&found.warps);
}

/// The launches of a shape.
#[derive(Debug)]
struct Counted {
    shape: Shape,
    module: Arc<ModuleInner>,
    counter: Counter,
    facts: Facts,
    /// What lay at the addresses with most atomics when a launch ended.
    names: HashMap<u64, String>,
    /// Why compiled code did not count.
    interpreted: Option<&'static str>,
}

/// Launches that differ in it, or in their module, are counted apart: entry, grid, block, bytes of dynamic shared memory.
type Shape = (Arc<str>, [u32; 3], [u32; 3], u32);

fn shape(grid: &Grid) -> Shape {
    (Arc::clone(&grid.entry.0), grid.env.nctaid, grid.env.ntid, grid.env.dynamic_shared)
}

impl Counted {
    fn is_of(&self, grid: &Grid) -> bool {
        Arc::ptr_eq(&self.module, &grid.module) && self.shape == shape(grid)
    }

    fn launch(&self) -> Launch {
        let name = |addr: u64| self.names.get(&addr).cloned().unwrap_or_else(|| format!("memory+{addr}"));
        describe(&self.facts, &self.counter, (&self.module.ir, &self.module.sources), &name)
    }
}

impl Tally {
    /// Counts statements, lanes and branches alone, which costs less.
    pub fn coverage() -> Tally {
        Tally { is_coverage: true, ..Tally::default() }
    }

    /// The same, which calls a function soon after a launch was counted, but for no more than a fifth of the time.
    #[must_use]
    pub fn telling(mut self, tell: impl Fn() + Send + Sync + 'static) -> Tally {
        self.teller = Some(Teller::new(tell));
        self
    }

    /// What code counts for it.
    pub(super) fn level(&self) -> Counting {
        if self.is_coverage { Counting::Coverage } else { Counting::All }
    }

    /// What was counted until now, in the order in which launches began. Of a module that was not lowered with marks
    /// (`handloom_lower::lower_marked`) there are no statements.
    pub fn launches(&self) -> Vec<Launch> {
        lock(&self.all).iter().filter(|counted| counted.facts.runs > 0).map(Counted::launch).collect()
    }

    /// Notes that a module was loaded, so that its statements are known if nothing of it is launched. One of the same name is known already.
    pub fn loaded(&self, ir: &Module, sources: &Arc<SourceMap>) {
        let (new, mut modules) = (Loaded { ir: ir.clone(), sources: Arc::clone(sources) }, lock(&self.modules));
        if new.name().is_some() && modules.iter().all(|known| known.name() != new.name()) {
            modules.push(new);
        }
    }

    /// All that was counted until now, with the texts of the modules that were noted.
    pub fn part(&self) -> Part {
        let (mut launches, mut texts) = (self.launches(), Texts::new());
        for module in lock(&self.modules).iter() {
            let Loaded { ir, sources } = module;
            let is_of = |launch: &Launch| launch.statements.first().map(|row| row.file.as_str()) == module.name();
            if !launches.iter().any(is_of) {
                let (none, nothing) = (Facts::default(), Counter::default());
                launches.push(describe(&none, &nothing, (ir, sources), &|_| String::new()));
            }
            for file in ir.statements.iter().map(|s| s.span.file) {
                if !texts.contains_key(sources.name(file)) {
                    texts.insert(sources.name(file).to_owned(), lines(sources.text(file)));
                }
            }
        }
        let interpreted = self.interpreted().into_iter().map(|(entry, why)| (entry, why.to_owned())).collect();
        Part { launches, texts, interpreted, timelines: Timelines::default() }
    }

    /// Entries of launches that the interpreter ran and counted, and why.
    pub fn interpreted(&self) -> Vec<(String, &'static str)> {
        lock(&self.all).iter().filter_map(|c| Some((c.shape.0.to_string(), c.interpreted?))).collect()
    }

    /// Who counts a launch that begins.
    pub(super) fn begin(&self, grid: &Grid) -> SharedCounter {
        let mut all = lock(&self.all);
        if !all.iter().any(|known| known.is_of(grid)) {
            let env = &grid.env;
            let facts = Facts {
                entry: grid.entry.0.to_string(),
                grid: env.nctaid,
                block: env.ntid,
                shared_bytes: [env.own_shared().saturating_sub(env.dynamic_shared), env.dynamic_shared],
                runs: 0,
                blocks: 0,
                ended: "ok".to_owned(),
            };
            all.push(Counted {
                shape: shape(grid),
                module: Arc::clone(&grid.module),
                counter: Counter::default(),
                facts,
                names: HashMap::new(),
                interpreted: None,
            });
        }
        SharedCounter::default()
    }

    /// A launch has ended.
    pub(super) fn end(
        &self,
        grid: &Grid,
        (program, interpreted): (Option<&Program>, Option<&'static str>),
        bindings: &[Binding],
        result: &Result<(), Ended>,
        blocks: u64,
    ) {
        let mut all = lock(&self.all);
        let Some(counted) = all.iter_mut().find(|known| known.is_of(grid)) else { return };
        let counts = program.and_then(|program| Some((program, program.counts(&grid.module)?)));
        if let (Some((program, counts)), Some(sums)) = (counts, &grid.sums) {
            add_counted(&mut counted.counter, &sums.take(), counts, program);
        } else if let Some(counter) = &grid.counter {
            counted.counter.add_all(&lock(counter));
        }
        for addr in counted.counter.hottest() {
            counted.names.entry(addr).or_insert_with(|| found::name_at(addr, grid, bindings));
        }
        counted.interpreted = interpreted;
        counted.facts.runs += 1;
        counted.facts.blocks += blocks;
        let ended = match result {
            Ok(()) => "ok",
            Err(Ended::Trap(trap)) => trap.kind.word(),
            Err(Ended::Stopped | Ended::NoRoom(_) | Ended::Failed(_)) => "stopped",
        };
        if counted.facts.ended == "ok" {
            counted.facts.ended = ended.to_owned();
        }
    }

    /// A launch that the host gave has ended, with all that its threads launched.
    pub(super) fn over(&self) {
        self.over.fetch_add(1, Ordering::SeqCst);
        if let Some(teller) = &self.teller {
            teller.ask();
        }
    }

    /// How many launches that the host gave have ended.
    pub fn n_over(&self) -> u64 {
        self.over.load(Ordering::SeqCst)
    }
}

impl LaunchConfig {
    /// The same, counted.
    #[must_use]
    pub fn counted(mut self, tally: &Tally) -> LaunchConfig {
        self.count = Some(tally.clone());
        self
    }
}
