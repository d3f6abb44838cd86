//! Code of one entry for one launch shape, and the cache of it.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use handloom_codegen::{Code, Failure, Stage, compile};
use handloom_ir::simt::text::Line;
use handloom_ir::simt::{self, ByFunction, Counting, Counts, FrameLayout, FuncId, LaunchShape, ParamPlace, ParamValue};
use handloom_lower::passes::Strengths;
use handloom_plan::abi::Tables;
use handloom_plan::{Bounds, Host, Options};
use rayon::prelude::*;

use super::ModuleInner;
use super::outline::{self, Outline, Whole};
use super::pace::{Pace, ThreadTime};
use super::saved;
use super::special::Specials;
use super::task::{self, Left, Patience, Place, Task, Wanted};
use crate::error::panic_text;
use crate::kept::CodeCache;
use crate::lock::lock;
use crate::run::{Backend, Tier};

/// Time of threads in lean wide code after which better code is made. It takes about a millisecond.
const LONG: Duration = Duration::from_millis(1);
/// The same of code that another process kept: had that run for so long, it would have kept better code. So one that does what it did compiles nothing.
const LONG_OF_KEPT: Duration = Duration::from_millis(50);

/// What code is made from, and the cache that keeps it. It holds no memory of a device, so that a module which goes while its code is being made
/// gives back its own at once.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) ir: Arc<simt::Module>,
    pub(crate) cache: CodeCache,
}

/// What code is made for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    pub(crate) entry: Arc<str>,
    pub(crate) shape: LaunchShape,
    pub(crate) bounds: Bounds,
    /// Bytes of the stack of a thread.
    pub(crate) stack: u32,
    /// Clusters of more than one cta.
    pub(crate) cluster: bool,
    /// The machine.
    pub(crate) host: Host,
    /// Who is to make it.
    pub(crate) backend: Backend,
    /// What is asynchronous may come late.
    pub(crate) late: bool,
    /// An audit is told what threads do.
    pub(crate) audited: bool,
    /// It is known that nothing can be found, and so it is told nothing: code keeps to the seed's order alone.
    pub(crate) in_order: bool,
    /// What code counts.
    pub(crate) counted: Counting,
    /// What is known of the parameters.
    pub(crate) known: Vec<ParamValue>,
}

/// Code of an entry and of all functions that it may call. It is of no module: modules that hold the same share it.
#[derive(Debug)]
pub(crate) struct Program {
    pub(super) key: Key,
    pub(super) outline: Arc<Outline>,
    /// Frames in local memory.
    frames: ByFunction<FrameLayout>,
    /// What code is made from, as far as it was needed.
    source: OnceLock<Specialised>,
    /// What kept it from wide code, if that was asked for.
    refused: Option<String>,
    /// Code by tier; each is made when it is first needed.
    tiers: [Task<Codes>; 3],
    /// The tier that new ctas start in.
    preferred: AtomicU8,
    /// What a unit of a grid takes.
    pace: Pace,
    /// How long threads ran its lean code.
    lean_time: ThreadTime,
    /// Programs in which parameters are constants.
    pub(super) specials: Specials,
    /// Time it took to make.
    pub(crate) compile_time: Duration,
    /// Its first code was read from disk.
    pub(crate) is_loaded: bool,
}

/// The code that comes first, with what belongs to it.
struct Made {
    tier: Tier,
    codes: Codes,
    /// What kept it from wide code.
    refused: Option<String>,
    frames: ByFunction<FrameLayout>,
    /// When somebody began to make it.
    start: Instant,
}

/// Code of the functions that an entry can reach.
pub(crate) type Codes = ByFunction<Code>;

impl Program {
    /// Makes code, or finds it on disk; `None` when nobody wants it any more. The error is why there is none. `least`: the tier that is asked for.
    fn make(origin: &Origin, cell: &CodeCell, least: Tier, wanted: Wanted<'_>) -> Option<Result<Program, Failure>> {
        let start = Instant::now();
        let (key, outline) = (&cell.key, &cell.outline);
        if let Some(program) = Program::load(&origin.cache, key, outline) {
            return Some(Ok(program));
        }
        let source = Specialised::make(&origin.ir, key, outline);
        let first = source.first_of_wide(key, least);
        let better = source.better(&origin.ir, key, outline, first);
        Program::compile(&origin.cache, (key, outline), (source, better), (first, start), wanted)
    }

    /// Finds code on disk.
    pub(super) fn load(cache: &CodeCache, key: &Key, outline: &Arc<Outline>) -> Option<Program> {
        let start = Instant::now();
        let mut frames = outline.frames.clone();
        let bytes = cache.load(outline.digest(None))?;
        let loaded = saved::read(&bytes, &frames, outline.entry)?;
        cache.note_loaded();
        frames.iter_mut().zip(loaded.reaches).for_each(|((_, frame), reach)| frame.reach = reach);
        let made = Made { tier: loaded.tier, codes: loaded.codes, refused: loaded.refused, frames, start };
        let program = Program::of(key, outline, made, OnceLock::new(), true);
        if loaded.tier != Tier::Lean {
            program.specials.know(loaded.places);
        }
        Some(program)
    }

    /// Makes the code of a tier from what an entry is, and from what is better for that tier. `start`: when that began.
    pub(super) fn compile(
        cache: &CodeCache,
        (key, outline): (&Key, &Arc<Outline>),
        (source, better): (Specialised, Option<Specialised>),
        (tier, start): (Tier, Instant),
        wanted: Wanted<'_>,
    ) -> Option<Result<Program, Failure>> {
        let (tier, codes, refused) = match better.as_ref().unwrap_or(&source).wide(key, tier, wanted)? {
            Wide::Made(codes, tier) => (tier, codes, None),
            refused => {
                let first = source.first_tier(key);
                match source.compile(key, first, wanted)? {
                    Ok(codes) => (first, codes, refused.why()),
                    Err(why) => return Some(Err(why)),
                }
            }
        };
        let places = source.places(key, tier);
        let frames = source.frames.clone();
        cache.keep(outline.digest(None), || saved::write(tier, &refused, &frames, &places, &codes));
        cache.note_compiled();
        let made = Made { tier, codes, refused, frames, start };
        let program = Program::of(key, outline, made, OnceLock::from(source), false);
        if tier != Tier::Lean {
            program.specials.know(places);
        }
        Some(Ok(program))
    }

    fn of(key: &Key, outline: &Arc<Outline>, made: Made, source: OnceLock<Specialised>, is_loaded: bool) -> Program {
        let mut tiers = [const { None }; 3];
        tiers[made.tier as usize] = Some(made.codes);
        Program {
            key: key.clone(),
            outline: Arc::clone(outline),
            frames: made.frames,
            source,
            refused: made.refused,
            tiers: tiers.map(|made| made.map_or_else(Task::default, Task::done)),
            preferred: AtomicU8::new(made.tier as u8),
            pace: Pace::default(),
            lean_time: ThreadTime::default(),
            specials: Specials::default(),
            compile_time: made.start.elapsed(),
            is_loaded,
        }
    }

    /// Makes the code of a further tier, or finds it on disk.
    fn make_tier(&self, origin: &Origin, tier: Tier, wanted: Wanted<'_>) -> Option<Result<Codes, Failure>> {
        let cache = &origin.cache;
        // Better code of the first tier takes its place: the next process starts with it.
        let is_first = tier == Tier::Quick && self.made_by_wide();
        let digest = self.outline.digest((!is_first).then_some(tier));
        let loaded = cache.load(digest).and_then(|bytes| saved::read(&bytes, &self.frames, self.outline.entry));
        if let Some(loaded) = loaded.filter(|l| l.tier == tier) {
            cache.note_loaded();
            self.specials.know(loaded.places);
            return Some(Ok(loaded.codes));
        }
        let source = self.source(&origin.ir);
        let wide = if self.refused.is_none() {
            let better = source.better(&origin.ir, &self.key, &self.outline, tier);
            better.as_ref().unwrap_or(source).wide(&self.key, tier, wanted)?
        } else {
            Wide::NotAsked
        };
        let codes = match wide {
            Wide::Made(codes, _) => codes,
            Wide::Refused(why) => return Some(Err(Failure::Bug(why))),
            Wide::NotAsked => match source.compile(&self.key, tier, wanted)? {
                Ok(codes) => codes,
                Err(why) => return Some(Err(why)),
            },
        };
        let places = source.places(&self.key, tier);
        cache.keep(digest, || saved::write(tier, &self.refused, &self.frames, &places, &codes));
        cache.note_compiled();
        self.specials.know(places);
        Some(Ok(codes))
    }

    /// Who made it, and what kept it from the generator that was asked for.
    pub(crate) fn made_by(&self) -> (Backend, Option<String>) {
        let made = if self.made_by_wide() { Backend::Wide } else { Backend::Cranelift };
        (made, self.refused.clone())
    }

    /// Whether its code tells an audit what threads do.
    pub(crate) fn tells(&self) -> bool {
        self.key.audited
    }

    /// Whether its code keeps to the seed's order and passes barriers that nobody is told of.
    pub(crate) fn passes_barriers(&self) -> bool {
        self.key.in_order
    }

    /// What its counters mean; `None` if its code counts nothing.
    pub(crate) fn counts(&self, module: &ModuleInner) -> Option<&Counts> {
        if self.key.counted == Counting::Nothing || self.made_by().0 != Backend::Wide {
            return None;
        }
        Some(&self.source(&module.ir).counts)
    }

    /// What its code is made from.
    fn source(&self, ir: &simt::Module) -> &Specialised {
        self.source.get_or_init(|| Specialised::make(ir, &self.key, &self.outline))
    }

    /// The tables of all of its code.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Tables> {
        let made = self.tiers.iter().filter_map(Task::get).filter_map(Result::ok);
        made.flat_map(Codes::values).map(|code| &*code.tables)
    }

    /// The entry.
    pub(crate) fn entry(&self) -> FuncId {
        self.outline.entry
    }

    /// Frames in local memory.
    pub(crate) fn frames(&self) -> &ByFunction<FrameLayout> {
        &self.frames
    }

    /// Distance of two threads' local memory.
    pub(crate) fn local_stride(&self) -> u32 {
        self.outline.local_stride
    }

    /// The code of a tier that was made.
    pub(crate) fn codes(&self, tier: Tier) -> Result<&Codes, Failure> {
        match self.tiers[tier as usize].get() {
            Some(made) => made.map_err(Failure::clone),
            None => Err(Failure::Bug(format!("there is no {} code", tier.name()))),
        }
    }

    /// Whether the code of a tier was made.
    pub(crate) fn has(&self, tier: Tier) -> bool {
        self.tiers[tier as usize].get().is_some()
    }

    /// Makes the code of a tier for a module that has this program, or waits for who makes it. New ctas do not start in a lower one any more.
    pub(crate) fn obtain(
        self: &Arc<Self>,
        module: &ModuleInner,
        tier: Tier,
        patience: Patience<'_>,
    ) -> Result<(), Left> {
        let place = if self.outline.is_small { Place::Here } else { Place::Aside };
        let owner = (Arc::clone(self), module.origin());
        let begin = || {
            task::start(
                &owner,
                move |(p, _)| &p.tiers[tier as usize],
                place,
                move |(p, origin), wanted| p.make_tier(origin, tier, wanted),
            );
        };
        task::obtain(&self.tiers[tier as usize], patience, begin)?;
        self.preferred.fetch_max(tier as u8, Ordering::Relaxed);
        self.note_bytes(&module.device.inner.code, 0);
        Ok(())
    }

    /// The tier that new ctas start in.
    #[inline]
    pub(crate) fn preferred(&self) -> Tier {
        match self.preferred.load(Ordering::Relaxed) {
            0 => self.risen(),
            1 => Tier::Quick,
            _ => Tier::Careful,
        }
    }

    /// The tier in which a block starts over that met what the code of one was not made for.
    pub(crate) fn behind(&self, tier: Tier) -> Option<Tier> {
        match tier {
            // Lean and quick wide code rest on the same tests.
            Tier::Lean if !self.made_by_wide() => Some(Tier::Quick),
            Tier::Lean | Tier::Quick => Some(Tier::Careful),
            Tier::Careful => None,
        }
    }

    /// The tier that ctas start in as long as none met what its code was not made for.
    #[inline(never)]
    fn risen(&self) -> Tier {
        if !matches!(self.tiers[Tier::Quick as usize].get(), Some(Ok(_))) {
            return Tier::Lean;
        }
        self.preferred.fetch_max(Tier::Quick as u8, Ordering::Relaxed);
        Tier::Quick
    }

    /// Whether its code was made in little time, and better code can follow.
    #[inline]
    pub(crate) fn may_rise(&self) -> bool {
        self.preferred() == Tier::Lean && self.made_by_wide()
    }

    pub(super) fn made_by_wide(&self) -> bool {
        self.refused.is_none() && self.key.backend == Backend::Wide
    }

    /// Whether threads that run its code for so long would have gained by better code.
    pub(crate) fn is_long(&self, time: Duration) -> bool {
        time >= if self.is_loaded { LONG_OF_KEPT } else { LONG.max(self.compile_time) }
    }

    /// Notes that so many workers ran a launch for so long in lean wide code, and lets it rise if that is long with those before.
    #[inline(never)]
    pub(crate) fn note_lean(self: &Arc<Self>, module: &ModuleInner, time: Duration, workers: usize) {
        if self.is_long(self.lean_time.add(time, workers)) {
            self.rise(module);
        }
    }

    /// Lets a thread of its own make better code, if none does. Ctas start in it as soon as it is there.
    pub(crate) fn rise(self: &Arc<Self>, module: &ModuleInner) {
        let owner = (Arc::clone(self), module.origin());
        let make = |(p, origin): &(Arc<Program>, Origin), _: Wanted<'_>| {
            let made = p.make_tier(origin, Tier::Quick, &|| true);
            if let Some(Ok(codes)) = &made {
                p.note_bytes(&origin.cache, codes.values().map(|c| c.code_bytes).sum());
            }
            made
        };
        task::start(&owner, |(p, _)| &p.tiers[Tier::Quick as usize], Place::Aside, make);
    }

    /// Tells the cache how many bytes of machine code there are, with so many that come.
    pub(super) fn note_bytes(&self, cache: &CodeCache, more: usize) {
        cache.note_bytes(self.outline.digest(None), (self.code_bytes() + more) as u64);
    }

    /// Nanoseconds that a unit took at the last launch; 0 if there was none.
    pub(crate) fn unit_ns(&self) -> u64 {
        self.pace.unit_ns()
    }

    /// Whether one worker is to run a launch of so many units that several could run.
    pub(crate) fn is_for_one(&self, units: u64) -> bool {
        self.pace.is_for_one(units, self.outline.adds_up)
    }

    /// Notes how long so many workers took for so many units.
    pub(crate) fn note_time(&self, time: Duration, workers: usize, units: u64) {
        self.pace.note(time, workers, units);
    }

    /// Bytes of machine code.
    pub(crate) fn code_bytes(&self) -> usize {
        let made = self.tiers.iter().filter_map(Task::get).filter_map(Result::ok);
        let own: usize = made.flat_map(Codes::values).map(|c| c.code_bytes).sum();
        own + self.specials.code_bytes()
    }
}

/// The module specialised for a key: what all tiers of a program are compiled from.
#[derive(Debug)]
pub(crate) struct Specialised {
    /// The functions that the entry may run.
    funcs: ByFunction<simt::Function>,
    /// Their numbers, itself first.
    reach: Vec<FuncId>,
    entry: FuncId,
    frames: ByFunction<FrameLayout>,
    local_stride: u32,
    /// What its counters mean.
    counts: Counts,
}

impl Specialised {
    pub(crate) fn make(module: &simt::Module, key: &Key, outline: &Outline) -> Specialised {
        Specialised::make_with(module, key, outline, false)
    }

    fn make_with(module: &simt::Module, key: &Key, outline: &Outline, unrolls: bool) -> Specialised {
        let strengths = Strengths { side_by_side: key.backend == Backend::Wide, unrolls };
        let (funcs, counts) = match key.counted {
            _ if key.audited => (handloom_lower::as_lowered(module, &key.entry), Counts::default()),
            Counting::Nothing => {
                let funcs = handloom_lower::specialise(module, &key.entry, &key.shape, &key.known, strengths);
                (funcs, Counts::default())
            }
            level => handloom_lower::specialise_counted(module, &key.entry, &key.shape, level),
        };
        let mut frames = outline.frames.clone();
        for (f, func) in funcs.iter() {
            frames[f].reach = frames[f].reach.max(FrameLayout::new(func).size);
        }
        let entry = outline.entry;
        let reach = module.reachable_in(entry, |f| funcs.get(f));
        Specialised { funcs, reach, entry, frames, local_stride: outline.local_stride, counts }
    }

    /// The tier that the first launch starts in.
    pub(crate) fn first_tier(&self, key: &Key) -> Tier {
        if key.audited {
            return Tier::Careful;
        }
        // A cta of whole warps without calls may never need masked copies; others do from the start.
        let whole = key.shape.threads().is_multiple_of(32);
        if whole && self.reach.len() == 1 { Tier::Lean } else { Tier::Quick }
    }

    /// Whether there is wide code that is made in less time than the best.
    fn has_lean(&self, key: &Key) -> bool {
        let is_plain = !key.audited && key.counted == Counting::Nothing;
        let is_wide = key.backend == Backend::Wide;
        is_plain && is_wide && (self.is_short() || !handloom_wide::has_wide_vectors(&key.host))
    }

    /// Whether the best code of the functions is made in little time.
    fn is_short(&self) -> bool {
        outline::is_short(self.functions())
    }

    /// The tier of wide code that the first launch starts in, if it asks for at least one.
    fn first_of_wide(&self, key: &Key, least: Tier) -> Tier {
        if least == Tier::Lean && self.has_lean(key) { Tier::Lean } else { Tier::Quick }
    }

    /// What wide code of a tier is made from where that is more than this: loops are written out.
    pub(crate) fn better(
        &self,
        module: &simt::Module,
        key: &Key,
        outline: &Outline,
        tier: Tier,
    ) -> Option<Specialised> {
        let may_gain = tier != Tier::Lean && self.has_lean(key) && self.is_short();
        if !may_gain || !self.functions().any(handloom_lower::may_unroll) {
            return None;
        }
        let mut better = Specialised::make_with(module, key, outline, true);
        // Tiers share the frames of threads.
        better.frames.clone_from(&self.frames);
        Some(better)
    }

    /// The parameters that are worth to be constants of code of a tier.
    pub(super) fn places(&self, key: &Key, tier: Tier) -> Vec<ParamPlace> {
        if tier == Tier::Lean || !key.known.is_empty() || !self.has_lean(key) || !self.is_short() {
            return Vec::new();
        }
        self.funcs.get(self.entry).map_or_else(Vec::new, handloom_lower::that_count_turns)
    }

    /// The functions that the entry may run, by number.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &simt::Function> {
        self.funcs.values()
    }

    /// The lines of a stage of all functions that the entry may run, itself first.
    pub(crate) fn lines(&self, key: &Key, tier: Tier, stage: Stage) -> Result<Vec<Vec<Line>>, Failure> {
        let one = |(f, func): (FuncId, &simt::Function)| {
            let options = self.options(key, f, tier);
            if key.backend == Backend::Wide && stage == Stage::Asm {
                let refused = |why: String| Failure::Unsupported(format!("`{}` has no wide code: {why}", func.name));
                if let Some(missing) = handloom_wide::missing_feature(&key.host) {
                    return Err(refused(format!("the host lacks {missing}")));
                }
                return handloom_wide::lines(func, &options).map_err(|why| refused(why.what));
            }
            handloom_codegen::lines(func, &options, stage)
        };
        self.reached().map(one).collect()
    }

    /// The same with their numbers, the entry first.
    fn reached(&self) -> impl Iterator<Item = (FuncId, &simt::Function)> {
        self.reach.iter().filter_map(|f| Some((*f, self.funcs.get(*f)?)))
    }

    /// Whether compiling takes so little time that it is done where it is asked for.
    fn is_small(&self) -> bool {
        outline::is_small(self.funcs.values())
    }

    /// Code of all functions that the entry may run; `None` when nobody wants it any more.
    fn compile(&self, key: &Key, tier: Tier, wanted: Wanted<'_>) -> Option<Result<Codes, Failure>> {
        let given_up = AtomicBool::new(false);
        let one = |(f, func): (FuncId, &simt::Function)| {
            let options = self.options(key, f, tier);
            // A panic of the code generator fails this entry and no other.
            let made = catch_unwind(AssertUnwindSafe(|| compile(func, &options)));
            let panicked = |text| Failure::Bug(format!("codegen: `{}`: {text}", func.name));
            let made = made.unwrap_or_else(|p| Err(panicked(panic_text(p.as_ref()))));
            made.map(|code| (f, code))
        };
        let unless_given_up = |f: (FuncId, &simt::Function)| match wanted() {
            true => one(f),
            false => {
                given_up.store(true, Ordering::Relaxed);
                Err(Failure::Bug("nobody wants the code".into()))
            }
        };
        let reach: Vec<_> = self.reached().collect();
        // Waking the pool costs more than a small function, and small ones may be made on a thread of another pool.
        let made: Vec<Result<(FuncId, Code), Failure>> = if reach.len() == 1 || self.is_small() {
            reach.into_iter().map(unless_given_up).collect()
        } else {
            task::in_pool(|| reach.into_par_iter().map(unless_given_up).collect())
        };
        if given_up.into_inner() {
            return None;
        }
        Some(made.into_iter().collect())
    }

    /// Wide code of all functions that the entry may run, if it is asked for; `None` when nobody wants it any more.
    fn wide(&self, key: &Key, tier: Tier, wanted: Wanted<'_>) -> Option<Wide> {
        if key.backend != Backend::Wide {
            return Some(Wide::NotAsked);
        }
        if let Some(missing) = handloom_wide::missing_feature(&key.host) {
            return Some(Wide::Refused(format!("the host lacks {missing}")));
        }
        let (mut codes, mut rests, mut goes_alone) = (Vec::new(), false, false);
        for (f, func) in self.reached() {
            let options = self.options(key, f, tier);
            // A panic of the generator is a fault of ours; the other generator takes the entry.
            let made = catch_unwind(AssertUnwindSafe(|| handloom_wide::compile_while(func, &options, wanted)));
            let assembly = match made {
                Ok(Ok(assembly)) => assembly?,
                Ok(Err(refusal)) => return Some(Wide::Refused(refusal.what)),
                Err(panic) => return Some(Wide::Refused(format!("a bug: {}", panic_text(panic.as_ref())))),
            };
            rests |= assembly.rests;
            goes_alone |= assembly.goes_alone || tier == Tier::Lean && handloom_lower::may_unroll(func);
            // SAFETY: the bytes are a function of the contract, which the tables describe; it does not use a pool.
            let placed = unsafe { Code::place(&assembly.bytes, 64, assembly.tables, Vec::new()) };
            match placed {
                Ok(code) => codes.push((f, code)),
                Err(why) => return Some(Wide::Refused(why.to_string())),
            }
        }
        let tier = match (goes_alone, rests) {
            (true, _) => Tier::Lean,
            (false, true) => Tier::Quick,
            // Code that rests on nothing is careful.
            (false, false) => Tier::Careful,
        };
        Some(Wide::Made(codes.into_iter().collect(), tier))
    }

    fn options(&self, key: &Key, f: FuncId, tier: Tier) -> Options {
        Options {
            speculate: tier != Tier::Careful,
            flips: false,
            masked: tier != Tier::Lean,
            gangs: tier != Tier::Lean,
            shape: key.shape,
            bounds: key.bounds,
            local_stride: self.local_stride,
            frame_bytes: self.frames.get(f).map_or(0, |frame| frame.size),
            is_callee: f != self.entry,
            cluster: key.cluster,
            host: key.host,
            audited: key.audited,
            in_order: key.in_order,
            counted: key.counted,
        }
    }
}

/// What came of asking for wide code.
#[derive(Debug)]
enum Wide {
    /// Another generator was asked for.
    NotAsked,
    /// What there is no wide code for.
    Refused(String),
    /// Code, and the tier that it is of.
    Made(Codes, Tier),
}

impl Wide {
    /// Why there is none, although it was asked for.
    fn why(self) -> Option<String> {
        match self {
            Wide::Refused(why) => Some(why),
            Wide::NotAsked | Wide::Made(..) => None,
        }
    }
}

/// What launches of a key share: its code.
#[derive(Debug)]
pub(crate) struct CodeCell {
    key: Key,
    outline: Arc<Outline>,
    program: Task<Arc<Program>>,
}

impl CodeCell {
    /// Starts to make the program, if it is not there and nobody does, in at least a tier. `many`: beside others.
    pub(crate) fn start(self: &Arc<Self>, module: &ModuleInner, least: Tier, many: bool) {
        let place = match (many, self.outline.is_small) {
            (true, _) => Place::Pool,
            (false, true) => Place::Here,
            (false, false) => Place::Aside,
        };
        let owner = (module.origin(), Arc::clone(self));
        task::start(
            &owner,
            |(_, cell)| &cell.program,
            place,
            move |(origin, cell), wanted| Some(Program::make(origin, cell, least, wanted)?.map(Arc::new)),
        );
    }

    /// Whether it is that of a key.
    pub(crate) fn is_of(&self, key: &Key) -> bool {
        self.key == *key
    }

    /// The program, if it is there.
    pub(crate) fn get(&self) -> Option<Result<Arc<Program>, Failure>> {
        self.program.get().map(|made| made.map(Arc::clone).map_err(Failure::clone))
    }

    /// Keeps the program wanted.
    pub(crate) fn ticket(&self) -> task::Ticket<'_, Arc<Program>> {
        self.program.ticket()
    }

    /// The program, made if it is not there, in at least a tier.
    pub(crate) fn obtain(
        self: &Arc<Self>,
        module: &ModuleInner,
        least: Tier,
        patience: Patience<'_>,
    ) -> Result<Result<Arc<Program>, Failure>, Left> {
        task::obtain(&self.program, patience, || self.start(module, least, false))?;
        let made = self.get();
        if let Some(Ok(program)) = &made {
            program.note_bytes(&module.device.inner.code, 0);
        }
        Ok(made.unwrap_or_else(|| Err(Failure::Bug("a program was lost".into()))))
    }
}

/// Programs of a module.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    cells: Mutex<HashMap<Key, Arc<CodeCell>>>,
    whole: OnceLock<Whole>,
}

impl Programs {
    /// What is known of the module for all of its entries.
    pub(crate) fn whole(&self, module: &simt::Module) -> &Whole {
        self.whole.get_or_init(|| Whole::of(module))
    }

    /// The cell of a key, which a module shares with all that hold the same.
    pub(crate) fn cell(&self, module: &simt::Module, cache: &CodeCache, key: &Key) -> Arc<CodeCell> {
        if let Some(cell) = lock(&self.cells).get(key) {
            return Arc::clone(cell);
        }
        let outline = Outline::new(module, self.whole(module), key);
        // What failed, maybe for want of memory, is tried again by the next module.
        let is_good = |cell: &CodeCell| !matches!(cell.program.get(), Some(Err(_)));
        let cell = cache.share(outline.digest(None), is_good, || CodeCell {
            key: key.clone(),
            outline: Arc::new(outline),
            program: Task::default(),
        });
        Arc::clone(lock(&self.cells).entry(key.clone()).or_insert(cell))
    }
}
