//! One run of an entry: checked, prepared, run by one of the engines, reported.

mod args;
mod audited;
mod children;
mod code;
mod config;
mod counted;
mod family;
mod launcher;
mod listing;
mod proven;
mod special;

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use handloom_audit::{Audit, Check, Checks, Options};
use handloom_codegen::Failure;
use handloom_interp::{ClusterEnv, CtaEnv, UnderWay};
use handloom_ir::trap::{Trap, TrapKind};

pub use args::Arg;
pub use code::Compiled;
pub use config::{
    Engine, LaunchConfig, MAX_BLOCK, MAX_BLOCK_THREADS, MAX_CLUSTER, MAX_GRID, MAX_SHARED, MAX_STATIC_SHARED, QUIET,
    async_order_of_environment,
};
pub use counted::Tally;
pub use launcher::Launcher;
pub(crate) use launcher::Params;
pub use listing::Listing;
use proven::Snapshot;
use special::SpecialsInUse;

use crate::children::Nesting;
use crate::engine;
use crate::error::{ErrorKind, Lack, NoRoom, Wrong};
use crate::finding::{CheckConfig, CheckReport, Footprint};
use crate::grid::{Ended, Grid, LaunchReport};
use crate::lock::lock;
use crate::memory::{AllocKind, Blank, Undo, access, memory_left};
use crate::module::{Answer, Function, Program};
use crate::run::{Beside, Launched, Moment, Order, Printer, Running, StopHandle, Sums, UsualFloats, Watchdog};
use crate::sched;
use crate::sched::grid::Finished;
use crate::trap::{Binding, TrapReport, found};

/// `%nsmid`: a device of this many multiprocessors.
const N_SM: u32 = 16;

/// Why a launch did not come to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum LaunchError {
    /// The launch does not fit the module, the entry or the device.
    Wrong(Wrong),
    /// The kernel stopped.
    Trap(Box<TrapReport>),
    /// The launch was stopped through its [`StopHandle`].
    Stopped,
    /// There is no device memory or no thread for it.
    NoRoom(Lack),
    /// There is no code for it on this host, or a fault of Handloom's.
    Failed(Failure),
}

impl LaunchError {
    /// What sort of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            LaunchError::Wrong(wrong) => wrong.kind(),
            LaunchError::Trap(report) => ErrorKind::Trap(report.kind()),
            LaunchError::Stopped => ErrorKind::Stopped,
            LaunchError::NoRoom(_) => ErrorKind::OutOfMemory,
            LaunchError::Failed(Failure::Unsupported(_) | Failure::Limit(_)) => ErrorKind::Unsupported,
            LaunchError::Failed(Failure::Bug(_)) => ErrorKind::Bug,
        }
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchError::Wrong(wrong) => wrong.fmt(f),
            LaunchError::NoRoom(lack) => lack.fmt(f),
            LaunchError::Trap(report) => f.write_str(report.message()),
            LaunchError::Stopped => f.write_str("the launch was stopped"),
            LaunchError::Failed(Failure::Bug(why)) => write!(f, "bug: {}", why.trim_start_matches("bug: ")),
            LaunchError::Failed(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for LaunchError {}

impl From<Wrong> for LaunchError {
    fn from(e: Wrong) -> Self {
        LaunchError::Wrong(e)
    }
}

impl From<NoRoom> for LaunchError {
    fn from(e: NoRoom) -> Self {
        LaunchError::NoRoom(Lack::Memory(e))
    }
}

impl From<Failure> for LaunchError {
    fn from(e: Failure) -> Self {
        LaunchError::Failed(e)
    }
}

/// Bytes of the workspace of a cooperative launch: its size, then the word of its barrier, as CUDA's headers know it.
const WORKSPACE: u64 = 8;

/// A launch with its code, parameters and memory at hand, to be run as often as wanted.
#[derive(Debug)]
pub struct PreparedLaunch {
    function: Function,
    config: LaunchConfig,
    grid: Grid,
    program: Option<Arc<Program>>,
    /// Time to make its code, and time that was waited for it, until they are told by the first run.
    compile: Duration,
    waited: Duration,
    /// The parameter block: start and end in device memory.
    param: (u64, u64),
    /// The workspace of a cooperative launch, which `%envreg1` and `%envreg2` name.
    workspace: Option<u64>,
    bindings: Vec<Binding>,
    workers: sched::Workers,
    /// Programs for numbers among its parameters, with the memory of their blocks.
    specials: SpecialsInUse,
    /// Whether no check can find anything, so that it runs as if there were none.
    answer: Answer,
    /// What it touches, as far as that was known before.
    footprint: Arc<Footprint>,
    /// What the check of a run had found that was stopped.
    left: Option<Box<CheckReport>>,
    /// What the check of a run knows, where its threads began something that goes on beside it.
    beside: Option<Box<Audit>>,
}

/// Who runs a launch.
struct Chosen {
    /// `None`: the interpreter.
    program: Option<Arc<Program>>,
    compile: Duration,
}

impl Chosen {
    /// `answer`: whether a check can find anything.
    fn new(function: &Function, config: &LaunchConfig, answer: &Answer) -> Result<Chosen, LaunchError> {
        let config = &match answer {
            Answer::Doubted => Cow::Borrowed(config),
            Answer::InOrder => {
                let (program, compile) = function.program_in_order(&proven::in_order(config))?;
                return Ok(Chosen { program: Some(program), compile });
            }
            Answer::Apart(_) | Answer::Clean => Cow::Owned(proven::unchecked(config)),
        };
        let (program, compile) = match function.runs_on(config) {
            Engine::Interp => (None, Duration::ZERO),
            Engine::Jit => {
                let (program, compile) = function.program(config)?;
                // One generator of code counts; where it has none, the interpreter does.
                let counts = config.count.is_none() || program.counts(&function.module_of(config)).is_some();
                (Some(program).filter(|_| counts), compile)
            }
        };
        Ok(Chosen { program, compile })
    }
}

impl PreparedLaunch {
    /// Checks a launch, makes its code if needed, and writes its parameters.
    ///
    /// # Errors
    /// The launch is wrong, there is no room, or compiling fails.
    pub fn new(function: &Function, config: &LaunchConfig, args: &[Arg<'_>]) -> Result<PreparedLaunch, LaunchError> {
        let entry = function.entry();
        let start = function.dynamic_start();
        config::check_shape(function.name(), entry, start, config)?;
        let mut block = Vec::new();
        let bindings = bind(function, args, &mut block)?;
        PreparedLaunch::of_shape(function, config, &block, bindings)
    }

    /// As [`new`](Self::new), of a shape that was checked, with all parameters as they lie in memory.
    fn of_shape(
        function: &Function,
        config: &LaunchConfig,
        block: &[u8],
        bindings: Vec<Binding>,
    ) -> Result<PreparedLaunch, LaunchError> {
        let entry = function.entry();
        let module = &function.module_of(config);
        let config = &*children::with_footprint(module, config);
        let start = function.dynamic_start();
        let begin = Instant::now();
        let (answer, footprint) = proven::answer(function, config, block);
        let Chosen { program, compile } = Chosen::new(function, config, &answer)?;
        let by_interpreter = program.is_none();
        let waited = begin.elapsed();
        if let Some(trace) = config.trace.as_ref().filter(|_| !compile.is_zero()) {
            trace.tell_of(("compile", function.name()), (begin, waited), Vec::new(), None);
        }
        let space = module.device.inner.memory.space(module.space_kind()).ok_or(LaunchError::NoRoom(Lack::Window))?;
        let param = space.take_param(block.len() as u64)?;
        // SAFETY: the block was just taken, with room for all parameters, and no kernel knows it yet.
        unsafe { access::copy_in(param.0, block) }
        let shared = config::shared_total(entry, start, config.shared_bytes);
        let cluster = config.cluster_of(entry);
        let explicit = config.cluster.is_some() || entry.reqcluster.is_some();
        let env = CtaEnv {
            ntid: config.block,
            nctaid: config.grid,
            nsmid: N_SM,
            shared_size: u32::try_from(shared + u64::from(module.ir.shared.reserved)).unwrap_or(u32::MAX),
            shared_rules: module.ir.shared,
            dynamic_shared: config.shared_bytes,
            param_base: param.0,
            cluster: ClusterEnv { explicit, nctaid: cluster, shared_bases: Vec::new() },
            seed: config.seed,
            ..CtaEnv::default()
        };
        let unit_size = env.cluster_size();
        let units = config.blocks() / u64::from(unit_size);
        let mut workspace = None;
        let mut grid = Grid {
            module: Arc::clone(module),
            entry: (Arc::clone(&function.name), entry.func),
            env,
            param_bytes: block.len() as u64,
            stack: config.stack(),
            units,
            unit_size,
            order: Order::new(units, config.seed),
            // A time limit is the launch's own, also where others share its stop handle.
            stop: if config.timeout.is_some() { StopHandle::new() } else { config.stop.clone() },
            beside: config.beside,
            quiet: config.quiet,
            progress: config.progress.clone(),
            printer: module
                .prints(entry.func)
                .then(|| Arc::new(Printer::new(function.module.device().sink(config.output.as_ref())))),
            recompile: Arc::default(),
            threads: if config.check.is_some() || by_interpreter { 1 } else { threads(config.threads) },
            clears_local: config.check.is_some() && audited::keeps_local(function, config),
            audit: None,
            undo: None,
            unread: None,
            counter: None,
            sums: None,
            turns: None,
            children: children::children(module, config, Nesting::default()),
            heap: config.heap.clone(),
        };
        let most = space.max_slabs() as u64;
        if config.cooperative && config.blocks() > most {
            let blocks = config.blocks();
            let text = format!("a cooperative launch of {blocks} blocks: at most {most} can run at the same time");
            return Err(Wrong::new(ErrorKind::CooperativeTooLarge, text).into());
        }
        if config.cooperative {
            workspace = Some(
                space
                    .allocate(AllocKind::Global, WORKSPACE, 8, "the grid's workspace", "")
                    .map_err(|_| LaunchError::NoRoom(Lack::Barrier))?,
            );
        }
        if let Some(at) = workspace {
            grid.env.envregs[1] = (at >> 32) as u32;
            grid.env.envregs[2] = at as u32;
        }
        Ok(PreparedLaunch {
            function: function.clone(),
            config: config.clone(),
            grid,
            program,
            compile,
            waited,
            param,
            workspace,
            bindings,
            workers: sched::Workers::default(),
            specials: SpecialsInUse::default(),
            answer,
            footprint,
            left: None,
            beside: None,
        })
    }

    /// Replaces the arguments.
    ///
    /// # Errors
    /// They do not fit the entry.
    pub fn set_args(&mut self, args: &[Arg<'_>]) -> Result<(), LaunchError> {
        let mut block = Vec::new();
        let bindings = bind(&self.function, args, &mut block)?;
        self.set_block(&block, bindings, self.config.beside)
    }

    /// Replaces all parameters by what lies in memory for them: as many bytes as it was made with. `beside`: who works beside it from now on.
    ///
    /// # Errors
    /// There is no code for what must be looked at now.
    fn set_block(&mut self, block: &[u8], bindings: Vec<Binding>, beside: Beside) -> Result<(), LaunchError> {
        assert_eq!(block.len() as u64, self.grid.param_bytes, "a block of parameters keeps its size");
        let is_beside = beside == self.config.beside;
        (self.config.beside, self.grid.beside) = (beside, beside);
        let (answer, footprint) = proven::answer(&self.function, &self.config, block);
        self.footprint = footprint;
        if answer != self.answer || !is_beside {
            self.choose(answer)?;
        }
        self.bindings = bindings;
        // SAFETY: the block is this launch's, has the size of the same parameter list, and no launch of it runs.
        unsafe { access::copy_in(self.param.0, block) }
        Ok(())
    }

    /// Takes the code that an answer asks for.
    fn choose(&mut self, answer: Answer) -> Result<(), LaunchError> {
        let Chosen { program, compile } = Chosen::new(&self.function, &self.config, &answer)?;
        self.forget_workers();
        (self.program, self.answer) = (program, answer);
        self.compile += compile;
        Ok(())
    }

    /// Memory of blocks is laid out for the code, and remembers which allocations its accesses were to.
    fn forget_workers(&mut self) {
        let module = &self.grid.module;
        if let Some(space) = module.device.inner.memory.space(module.space_kind()) {
            std::mem::take(&mut self.workers).release(space);
            std::mem::take(&mut self.specials).release(space);
        }
    }

    /// Gives back memory that it need not keep until its next run.
    fn rest(&mut self) {
        let module = &self.grid.module;
        if let Some(space) = module.device.inner.memory.space(module.space_kind()) {
            self.workers.rest(space);
            self.specials.rest(space);
        }
    }

    /// Says how long its code was made before: that counts for the time limit of the next run.
    pub fn add_compile_time(&mut self, spent: Duration) {
        self.waited += spent;
    }

    /// Runs it, and all that its threads launch.
    ///
    /// # Errors
    /// A kernel traps, the launch is stopped, or there is no memory for its blocks.
    pub fn run(&mut self) -> Result<LaunchReport, LaunchError> {
        // To ask for the time takes a tenth of a small launch. What was waited for code counts too.
        let is_timed = self.config.timeout.is_some() && self.grid.children.is_some();
        let start = is_timed.then(Instant::now).map(|now| now.checked_sub(self.waited).unwrap_or(now));
        if let Some(children) = &self.grid.children {
            children.nesting().pending.store(0, Ordering::Relaxed);
        }
        // Where it lies: copies of a report take some hundredths of a small launch.
        if self.grid.children.is_none() && self.config.count.is_none() {
            return self.run_grid();
        }
        let mut ran = self.run_grid();
        if self.grid.children.is_some() {
            let asked = children::asked(&self.grid);
            if let Ok(report) = &mut ran
                && let Err(why) = self.run_children(asked, start, report)
            {
                ran = Err(self.ended_by(why, std::mem::take(report)));
            }
        }
        if let Some(tally) = &self.config.count {
            tally.over();
        }
        ran
    }

    /// Tells its trace that a run is over, and of the code that was made for it.
    fn trace(&self, begin: Instant, took: Duration) {
        let (Some(trace), Some(turns)) = (&self.config.trace, &self.grid.turns) else { return };
        let shape = |d: [u32; 3]| format!("{},{},{}", d[0], d[1], d[2]);
        let engine = if self.program.is_some() { "compiled" } else { "interpreter" };
        let (grid, block) = (shape(self.config.grid), shape(self.config.block));
        let facts = vec![("grid", grid), ("block", block), ("engine", engine.to_owned())];
        let launched = Launched { shape: [self.config.grid, self.config.block], turns: turns.take() };
        trace.tell_of(("launch", &self.function.name), (begin, took), facts, Some(launched));
    }

    /// Runs its own grid, without the launches that its threads make.
    fn run_grid(&mut self) -> Result<LaunchReport, LaunchError> {
        if self.config.stop.is_stopped() {
            return Err(LaunchError::Stopped);
        }
        let _floats = UsualFloats::begin();
        if let Some(at) = self.workspace {
            let size = WORKSPACE.to_le_bytes();
            // SAFETY: the workspace is this launch's, has two words, and no launch of it runs. The barrier starts at 0 also if a
            // launch before was stopped.
            unsafe { access::copy_in(at, &[size[0], size[1], size[2], size[3], 0, 0, 0, 0]) }
        }
        let waited = std::mem::take(&mut self.waited);
        let limit = self.config.timeout.map(|limit| limit.saturating_sub(waited));
        let mut watchdog = None;
        if let Some(limit) = limit {
            watchdog = Watchdog::start(&self.grid.stop, Some(&self.config.stop), limit);
            if watchdog.is_none() {
                return Err(LaunchError::NoRoom(Lack::Watchdog));
            }
        }
        let device = &self.function.module.device().inner;
        device.memory.renew_host();
        self.grid.env.gridid = device.next_grid();
        if let Some(printer) = &self.grid.printer {
            printer.begin();
        }
        self.grid.counter = self.config.count.as_ref().map(|tally| tally.begin(&self.grid));
        let counts = self.program.as_ref().and_then(|program| program.counts(&self.grid.module));
        self.grid.sums = counts.map(|counts| Arc::new(Sums::new(counts)));
        self.grid.turns = self.config.trace.as_ref().map(|trace| trace.log(self.grid.units));
        let _running = Running::begin();
        let begin = self.grid.turns.as_ref().map(|_| Instant::now());
        let start = Moment::now();
        let (finished, doubted) = if self.config.check.is_some() {
            let (finished, doubted) = self.run_checked()?;
            self.settle_blank(&finished);
            (finished, doubted)
        } else {
            self.grid.env.late = self.late();
            (self.run_engine(), None)
        };
        let is_again = doubted.is_some();
        let wall = start.elapsed();
        if let Some(begin) = begin {
            // By the clock that its blocks have their times from.
            self.trace(begin, begin.elapsed());
        }
        let recompiled = self.grid.recompile.result();
        let run = wall.saturating_sub(recompiled.time);
        match &self.program {
            Some(program) if !is_again && self.specials.is_empty() => {
                program.note_time(run, self.workers.n_active, self.grid.units);
                if program.may_rise() {
                    program.note_lean(&self.grid.module, run, self.workers.n_active);
                }
            }
            Some(_) if !is_again => self.note_time(run),
            Some(_) | None => {}
        }
        drop(watchdog);
        let compile = std::mem::take(&mut self.compile);
        let Finished { result, units } = finished;
        let blocks = units * u64::from(self.grid.unit_size);
        let cached = self.program.as_ref().is_some_and(|program| program.is_loaded);
        if let Some(tally) = &self.config.count {
            let refused = "there is no code for it that counts";
            let why = || counted::why_interpreted(&self.function, &self.config).unwrap_or(refused);
            let interpreted = self.program.is_none().then(why);
            tally.end(&self.grid, (self.program.as_deref(), interpreted), &self.bindings, &result, blocks);
        }
        let is_enough = self.grid.audit.as_ref().is_some_and(|audit| lock(audit).is_enough());
        let trap = match &result {
            Err(Ended::Trap(trap)) => Some(trap),
            Ok(()) | Err(_) => None,
        };
        let check = self.check_report(trap.map(|t| &**t), doubted);
        if let (Some(sink), Some(report)) = (&self.config.found, &check) {
            sink.take(&self.function.name, report);
        }
        let (recompile, tier) = (recompiled.time, recompiled.tier.filter(|_| !is_again));
        let report = LaunchReport { compile, run, recompile, tier, blocks, cached, check };
        match result {
            Ok(()) => Ok(report),
            Err(Ended::Stopped) if is_enough => Ok(report),
            Err(Ended::Stopped) => {
                self.left = report.check;
                Err(LaunchError::Stopped)
            }
            Err(Ended::NoRoom(why)) => Err(LaunchError::NoRoom(why)),
            Err(Ended::Failed(why)) => Err(LaunchError::Failed(*why)),
            Err(Ended::Trap(trap)) => Err(LaunchError::Trap(Box::new(self.report(*trap, report)))),
        }
    }

    /// Runs all blocks of a checked launch, and again where what ran at first could not tell all that is asked for. Why the interpreter did it again, if it did.
    fn run_checked(&mut self) -> Result<(Finished, Option<&'static str>), LaunchError> {
        self.grid.env.late = self.late();
        self.grid.audit = self.audit();
        if let Answer::Apart(changes) = &self.answer {
            let before = Snapshot::of(changes);
            // Reads of what nobody wrote are followed by who runs it again.
            let blank = self.blank().map_or_else(Vec::new, |blank| blank.within(0, u64::MAX));
            self.grid.unread = Some(changes.iter().copied().chain(blank).collect());
            self.forget_workers();
            let finished = self.run_engine();
            self.grid.unread = None;
            let is_doubted = matches!(&finished.result, Err(Ended::Trap(trap)) if trap.kind != TrapKind::Timeout);
            if !is_doubted {
                return Ok((finished, None));
            }
            before.restore();
            let mut params = vec![0; self.grid.param_bytes as usize];
            // SAFETY: the block of parameters is this launch's.
            unsafe { access::copy_out(self.param.0, &mut params) }
            proven::doubt(&self.function, &self.config, &params);
            self.choose(Answer::Doubted)?;
            self.grid.env.late = self.late();
            self.grid.audit = self.audit();
        }
        let check = self.config.check;
        let follows_bits = check.is_some_and(|c| self.checks(c).has(Check::Init));
        let blank = || self.blank().map_or_else(Vec::new, |blank| blank.within(0, u64::MAX));
        self.grid.undo = self.program.as_ref().filter(|p| follows_bits && p.tells()).map(|_| Undo::new(blank()));
        let finished = self.run_engine();
        let Some(undo) = self.grid.undo.take() else { return Ok((finished, None)) };
        if !undo.is_doubted() {
            if let Some(blank) = self.blank() {
                undo.written().iter().for_each(|(from, end)| blank.settle(*from, end - from));
            }
            return Ok((finished, None));
        }
        undo.restore();
        self.grid.env.late = self.late();
        self.grid.audit = self.audit();
        let finished = engine::interp::run(&self.grid, self.function.entry().func);
        Ok((finished, Some("bits that nobody wrote were read, and are followed")))
    }

    /// What nobody has written of the device's memory, if that is looked for.
    fn blank(&self) -> Option<&Blank> {
        let blank = self.function.module().device().inner.memory.blank();
        (blank.is_any() && audited::follows_blank(&self.function, &self.config)).then_some(blank)
    }

    /// The launch is over: what it has written is written now, but for what code has told that keeps what it writes.
    fn settle_blank(&self, finished: &Finished) {
        let Some(blank) = self.blank() else { return };
        if finished.result.is_err() {
            blank.settle_all();
        } else if self.answer != Answer::Doubted {
            proven::settle_blank(&self.footprint, blank);
        } else if let Some(audit) = &self.grid.audit {
            let written = lock(audit).init().map(|init| init.written_of_blank());
            match written {
                Some(written) => written.iter().for_each(|(from, end)| blank.settle(*from, end - from)),
                None => blank.settle_all(),
            }
        }
    }

    /// Runs all blocks.
    fn run_engine(&mut self) -> Finished {
        match &self.program {
            Some(program) if program.places().is_empty() => sched::run(&mut self.workers, &self.grid, program),
            Some(_) => self.run_special(),
            None => engine::interp::run(&self.grid, self.function.entry().func),
        }
    }

    /// What of its run is under way. Where code tells nothing and begins nothing, nobody asks.
    fn late(&self) -> Option<UnderWay> {
        let late = UnderWay::of(self.config.results_come(), self.config.seed, self.config.check.is_some())?;
        let tells = self.program.as_ref().is_none_or(|program| program.tells());
        (tells || audited::begins_what_comes(&self.function, &self.config)).then_some(late)
    }

    /// What is looked for while it runs. Who keeps to the seed's order alone tells nothing.
    fn checks(&self, check: CheckConfig) -> Checks {
        if self.answer == Answer::InOrder { Checks::default() } else { check.checks }
    }

    fn audit(&self) -> Option<Arc<Mutex<Audit>>> {
        // Half of what the host has left: memory of the device is touched beside what is remembered of it.
        static ROOM: OnceLock<u64> = OnceLock::new();
        let most = || *ROOM.get_or_init(|| memory_left().map_or(u64::MAX, |left| left / 2));
        self.config.check.map(|c| {
            // Who is proven tells nothing, and to ask takes longer than a small launch.
            let room = if self.answer == Answer::Doubted { c.races.room.min(most()) } else { c.races.room };
            let options = Options { room, ..c.races };
            let mut audit = Audit::for_checks(self.checks(c), options);
            if let Some(init) = audit.init()
                && let Some(blank) = self.blank().filter(|_| self.answer == Answer::Doubted)
            {
                init.begin_blank(blank.within(0, u64::MAX));
            }
            Arc::new(Mutex::new(audit))
        })
    }

    /// What the check of a run had found that was stopped.
    pub fn take_check(&mut self) -> Option<Box<CheckReport>> {
        self.left.take()
    }

    /// What the check of a run found. `again`: why the interpreter did it again.
    fn check_report(&mut self, trap: Option<&Trap>, again: Option<&'static str>) -> Option<Box<CheckReport>> {
        self.config.check?;
        let Some(audit) = self.grid.audit.take() else { return Some(Box::default()) };
        let mut audit = std::mem::replace(&mut *lock(&audit), Audit::new(Options::default()));
        let events = audit.take_events();
        let uses = audit.take_uses();
        let misuses = audit.misuses().map(std::mem::take).unwrap_or_default();
        let misuses = misuses.list().iter().filter_map(|m| found::misuse(m, &self.grid, &self.bindings));
        let memory = audit.take_memory().unwrap_or_default();
        let allocated = memory.live().map(|block| found::allocated(block, &self.grid)).collect();
        let freed = memory.freed_before().iter().map(|(address, _)| *address).collect();
        found::note_heap(&memory, &self.grid);
        let after_free = trap.and_then(|trap| found::after_free(trap, &memory, &self.grid));
        let touched = match self.config.check.is_some_and(|c| c.races.keeps_footprint) {
            false => Arc::default(),
            true if self.answer == Answer::Doubted => {
                Arc::new(Footprint::of(found::touched(&audit.footprint(), &self.grid.module, &self.grid.env)))
            }
            true => {
                found::places_of(&self.footprint, &self.grid);
                Arc::clone(&self.footprint)
            }
        };
        let (races, unchecked) = audit.finish();
        let is_proven = self.answer != Answer::Doubted;
        let why = || audited::why_interpreted(&self.function, &self.config).filter(|_| !is_proven);
        let interpreted = again.or_else(why);
        let races = races.iter().map(|race| found::race(race, &self.grid, &self.bindings));
        let uses = uses.iter().map(|u| found::unwritten(u, &memory, &self.grid, &self.bindings));
        let strays = memory.strays().iter().map(|s| found::stray(s, &self.grid, &self.bindings));
        let findings = races.chain(misuses).chain(uses).chain(strays).chain(after_free).collect();
        self.beside = (self.grid.children.is_some() && audit.has_races()).then(|| Box::new(audit));
        Some(Box::new(CheckReport { findings, unchecked, allocated, freed, touched, events, interpreted, is_proven }))
    }

    /// Its parameters, for a memory report.
    fn report(&self, trap: Trap, launch: LaunchReport) -> TrapReport {
        TrapReport::new(trap, &self.grid, &self.bindings, &self.function.name, launch)
    }

    /// Its entry.
    pub fn function(&self) -> &Function {
        &self.function
    }
}

impl Drop for PreparedLaunch {
    fn drop(&mut self) {
        let module = &self.grid.module;
        if let Some(space) = module.device.inner.memory.space(module.space_kind()) {
            space.give_param(self.param);
            self.workspace.map(|at| space.free(at, None));
            self.workers.release(space);
            std::mem::take(&mut self.specials).release(space);
        }
    }
}

/// Checks a launch and runs it once.
///
/// # Errors
/// As [`PreparedLaunch::new`] and [`PreparedLaunch::run`].
pub fn launch(function: &Function, config: &LaunchConfig, args: &[Arg<'_>]) -> Result<LaunchReport, LaunchError> {
    PreparedLaunch::new(function, config, args)?.run()
}

/// Writes arguments as they lie in memory.
fn bind(function: &Function, args: &[Arg<'_>], block: &mut Vec<u8>) -> Result<Vec<Binding>, LaunchError> {
    let module = &function.module;
    let device = &module.device().inner;
    Ok(args::write_args(function.name(), function.params(), args, device, module.is_low(), block)?)
}

/// Host threads for a launch.
fn threads(asked: usize) -> usize {
    // Asked once: the answer takes longer than a small launch.
    static HOST: OnceLock<usize> = OnceLock::new();
    if asked > 0 { asked } else { *HOST.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from)) }
}
