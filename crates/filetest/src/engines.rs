//! Who runs kernels in tests: one module, buffers, launches, and what is left afterwards.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use handloom_audit::{Access, Check, Event};
use handloom_diag::Style;
use handloom_ir::trap::TrapKind;
use handloom_plan::host::{Host, Vectors};
use handloom_runtime::{
    Arg, AsyncOrder, Backend, Bounds, CheckConfig, Checks, CodeCache, Compiled, Device, DeviceBuffer, Engine, Finding,
    LaunchConfig, LaunchError, Module, RaceOptions, Store, Tally, Tier, TrapReport, launch,
};

use crate::without_window;

/// An engine with its bounds setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// For people.
    pub name: &'static str,
    /// The engine.
    pub engine: Engine,
    /// How strictly compiled code checks addresses.
    pub bounds: Bounds,
    /// The lowest tier of code.
    pub tier: Tier,
    /// Whether code is made for numbers among the parameters.
    pub knows_params: bool,
    /// Who makes the code.
    pub backend: Backend,
    /// The widest vectors that code and routines use.
    pub vectors: Vectors,
    /// What is looked for, if the run is checked.
    pub checks: Option<Checks>,
    /// Whether the check keeps what it is told.
    pub keeps_events: bool,
    /// When results of asynchronous instructions come, if the environment doesn't say.
    pub async_order: Option<AsyncOrder>,
    /// Whether launches are counted.
    pub counts: bool,
}

/// The reference.
pub const INTERP: Way = Way { name: "interp", engine: Engine::Interp, ..JIT_EXACT };

/// The reference, with a look at what is not ordered.
pub const CHECKED: Way = Way { name: "interp, checked", checks: Some(Checks::all()), ..INTERP };

/// What code tells as it happens, all of which two engines tell alike.
const EVENTS: Checks = Checks::none().with(Check::Memory).with(Check::Race).with(Check::Sync);

/// What is looked for without a look at how threads are ordered.
const CONTENTS: Checks = Checks::none().with(Check::Memory).with(Check::Init);

/// The same, with all that the check is told.
pub const TRACED: Way = Way { name: "interp, traced", keeps_events: true, ..CHECKED };

/// Compiled code with exact bounds.
pub const JIT_EXACT: Way = Way {
    name: "jit, exact bounds",
    engine: Engine::Jit,
    bounds: Bounds::Exact,
    tier: Tier::Lean,
    knows_params: false,
    backend: Backend::Cranelift,
    vectors: Vectors::V512,
    checks: None,
    keeps_events: false,
    async_order: None,
    counts: false,
};

/// The interpreter, with all that a check is told that compiled code tells too.
pub const TOLD: Way = Way { name: "interp, told", checks: Some(EVENTS), ..TRACED };

/// Compiled code that tells a check all that.
pub const CODE_TOLD: Way = Way { name: "jit, told", checks: Some(EVENTS), keeps_events: true, ..JIT_EXACT };

/// Compiled code that is checked for all that there is.
pub const CODE_CHECKED: Way = Way { name: "jit, checked", checks: Some(Checks::all()), ..JIT_EXACT };

/// Compiled code with contained bounds.
pub const JIT_CONTAINED: Way = Way { name: "jit, contained bounds", bounds: Bounds::Contained, ..JIT_EXACT };

/// Wide code with exact bounds, which knows numbers among the parameters.
pub const WIDE_EXACT: Way =
    Way { name: "wide, exact bounds", backend: Backend::Wide, tier: Tier::Quick, knows_params: true, ..JIT_EXACT };

/// Wide code with contained bounds.
pub const WIDE_CONTAINED: Way =
    Way { name: "wide, contained bounds", bounds: Bounds::Contained, knows_params: false, ..WIDE_EXACT };

/// The wide code that a launch starts with.
pub const WIDE_LEAN: Way = Way { name: "wide, lean code", tier: Tier::Lean, ..WIDE_EXACT };

/// Wide code of AVX2 with exact bounds.
pub const NARROW_EXACT: Way =
    Way { name: "wide of avx2, exact bounds", vectors: Vectors::V256, knows_params: false, ..WIDE_EXACT };

/// Wide code of AVX2 with contained bounds, which knows numbers among the parameters.
pub const NARROW_CONTAINED: Way =
    Way { name: "wide of avx2, contained bounds", bounds: Bounds::Contained, knows_params: true, ..NARROW_EXACT };

/// All ways that tests compare; the first is the reference.
const WAYS: &[Way] =
    &[INTERP, JIT_EXACT, JIT_CONTAINED, WIDE_EXACT, WIDE_CONTAINED, WIDE_LEAN, NARROW_EXACT, NARROW_CONTAINED];

/// All ways that tests compare and that this host has; the first is the reference. `HANDLOOM_WAYS=WORD` keeps those whose name has the word, and
/// the reference.
pub fn ways() -> impl Iterator<Item = Way> {
    chosen(WAYS)
}

/// The same with compiled code that starts in each of its tiers.
pub fn tiers() -> impl Iterator<Item = Way> {
    ways().chain(chosen(TIERS))
}

/// The reference and every generator of this host, with one kind of bounds, its widest vectors, and all that it has.
pub fn plain(bounds: Bounds) -> impl Iterator<Item = Way> {
    ways()
        .filter(move |way| *way == INTERP || way.bounds == bounds && way.vectors == Vectors::V512 && *way != WIDE_LEAN)
}

/// Every generator of this host, with one kind of bounds.
pub fn compiled(bounds: Bounds) -> impl Iterator<Item = Way> {
    plain(bounds).filter(|way| *way != INTERP)
}

fn chosen(ways: &'static [Way]) -> impl Iterator<Item = Way> {
    let word = std::env::var("HANDLOOM_WAYS").unwrap_or_default();
    ways.iter()
        .copied()
        .filter(move |way| is_there(way.backend, way.vectors) && (*way == INTERP || way.name.contains(&word)))
}

/// Whether this host runs the code of a generator with vectors of at most a width, and nothing wider is the same.
pub fn is_there(backend: Backend, vectors: Vectors) -> bool {
    let host = Host::detect();
    let capped = host.capped(vectors);
    backend.missing_feature(&capped).is_none() && (vectors == Vectors::V512 || capped != host)
}

/// Tiers that the ways do not start in.
const TIERS: &[Way] = &[
    Way { name: "jit, quick code", tier: Tier::Quick, ..JIT_EXACT },
    Way { name: "jit, careful code", tier: Tier::Careful, ..JIT_EXACT },
    Way { name: "wide of avx2, lean code, contained bounds", tier: Tier::Lean, ..NARROW_CONTAINED },
];

/// Longest time of one launch in a test: a hang becomes a failure.
const LIMIT: Duration = Duration::from_secs(60);

/// An argument of a launch.
#[derive(Clone, Debug)]
pub enum Argument {
    /// A byte of a buffer, by index.
    Buffer(usize, u64),
    /// The bytes of the parameter.
    Bytes(Vec<u8>),
    /// A scalar of up to eight bytes.
    Scalar(u64),
}

/// A launch.
#[derive(Clone, Debug)]
pub struct Launch<'t> {
    /// Name of the entry.
    pub entry: &'t str,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub shared_bytes: u32,
    /// Arguments in order.
    pub args: Vec<Argument>,
    /// All blocks may wait for each other.
    pub cooperative: bool,
    /// Blocks of a cluster.
    pub cluster: Option<[u32; 3]>,
}

/// What launches left.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Bytes of the buffers in order.
    pub buffers: Vec<Vec<u8>>,
    /// Bytes of the named variables in order; `None` for one that does not exist.
    pub variables: Vec<Option<Vec<u8>>>,
    /// What kernels printed.
    pub output: Vec<u8>,
    /// Why the last launch stopped, if it did.
    pub trap: Option<Box<TrapReport>>,
    /// What the check found.
    pub findings: Vec<Finding>,
    /// What it was told, launch by launch.
    pub events: Vec<Vec<Event>>,
    /// How many of the launches compiled code ran.
    pub compiled: usize,
    /// Why it could not tell a check all of the others.
    pub interpreted: Vec<&'static str>,
    /// Launches of which it was known before they ran that nothing would be found.
    pub proven: usize,
    /// What was counted, by shape of launch.
    pub counted: Vec<handloom_profile::Launch>,
}

/// Eight bytes of a buffer that hold the address of a byte of another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// The buffer, and the byte.
    pub at: (usize, u64),
    /// What it points to.
    pub to: (usize, u64),
}

impl Launch<'_> {
    /// Its arguments, with the buffers of its job on a device.
    ///
    /// # Panics
    /// A buffer is missing.
    pub fn args<'b>(&'b self, buffers: &'b [DeviceBuffer]) -> Vec<Arg<'b>> {
        let arg = |a: &'b Argument| match a {
            Argument::Buffer(i, offset) => Arg::Buffer { buffer: &buffers[*i], offset: *offset },
            Argument::Bytes(bytes) => Arg::Bytes(bytes),
            Argument::Scalar(bits) => Arg::Scalar(*bits),
        };
        self.args.iter().map(arg).collect()
    }
}

/// Something to run: a text, its buffers and launches, and the variables to look at afterwards.
#[derive(Clone, Debug)]
pub struct Job<'t> {
    /// Name of the text in reports.
    pub name: &'t str,
    /// PTX.
    pub text: &'t str,
    /// What the buffers hold before the first launch.
    pub buffers: Vec<Vec<u8>>,
    /// Addresses that stand in buffers. What is left of them afterwards is not looked at.
    pub addresses: Vec<Address>,
    /// Launches in order.
    pub launches: Vec<Launch<'t>>,
    /// Names of variables of the module.
    pub variables: Vec<String>,
}

impl Job<'_> {
    /// Runs it on a device of its own. A trap ends the launches and is no error.
    ///
    /// # Errors
    /// A sentence: the module cannot be loaded, a launch is wrong, a fault of Handloom's, or the time is over.
    pub fn run(&self, way: Way, seed: u64) -> Result<Outcome, String> {
        self.run_within(way, seed, LIMIT)
    }

    /// Runs it, each launch for at most `limit`.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_within(&self, way: Way, seed: u64, limit: Duration) -> Result<Outcome, String> {
        let device = device_with(way.vectors)?;
        let module = match way.counts {
            true => self.marked(&device)?,
            false => Module::from_text(&device, self.name, self.text).map_err(|e| e.to_string())?,
        };
        let tally = way.counts.then(Tally::default);
        let make = |bytes: &Vec<u8>| -> Result<DeviceBuffer, String> {
            let room = |e: handloom_runtime::NoRoom| e.to_string();
            if !module.is_low() {
                return device.copy_of(bytes).map_err(room);
            }
            let mut buffer = device.zeroed_low(bytes.len() as u64).map_err(room)?;
            buffer.write(0, bytes);
            Ok(buffer)
        };
        let mut buffers: Vec<DeviceBuffer> = self.buffers.iter().map(make).collect::<Result<_, _>>()?;
        for a in &self.addresses {
            let address = buffers[a.to.0].address() + a.to.1;
            buffers[a.at.0].write(a.at.1, &address.to_le_bytes());
        }
        let mut trap = None;
        let mut findings = Vec::new();
        let mut events = Vec::new();
        let mut compiled = 0;
        let (mut interpreted, mut proven) = (Vec::new(), 0);
        let check = way.checks.map(|checks| CheckConfig {
            checks,
            races: RaceOptions { keeps_events: way.keeps_events, ..RaceOptions::default() },
        });
        for l in &self.launches {
            let function = module.function(Some(l.entry)).map_err(|e| e.to_string())?;
            let args = l.args(&buffers);
            let default = LaunchConfig::new(l.grid, l.block);
            let config = LaunchConfig {
                async_order: way.async_order.or(default.async_order),
                shared_bytes: l.shared_bytes,
                cooperative: l.cooperative,
                cluster: l.cluster,
                seed,
                engine: way.engine,
                bounds: way.bounds,
                tier: way.tier,
                knows_params: way.knows_params,
                backend: way.backend,
                timeout: Some(limit),
                check,
                count: tally.clone(),
                ..default
            };
            if way.backend == Backend::Wide
                && let Ok(Compiled { refused: Some(why), .. }) = function.compile(&config)
                && why.starts_with("a bug")
            {
                return Err(format!("wide code of `{}`: {why}", l.entry));
            }
            let result = launch(&function, &config, &args);
            let report = match &result {
                Ok(report) => Some(report),
                Err(LaunchError::Trap(trap)) => Some(trap.launch()),
                Err(_) => None,
            };
            compiled += usize::from(report.is_some_and(|report| report.tier.is_some()));
            interpreted.extend(report.and_then(|report| report.check.as_ref()?.interpreted));
            if let Some(report) = report.and_then(|report| report.check.as_ref()) {
                if let Some(why) = &report.unchecked {
                    return Err(format!("the check of `{}` ended early: {why}", l.entry));
                }
                findings.extend(report.findings.iter().cloned());
                proven += usize::from(report.is_proven);
                events.push(report.events.clone());
            }
            match result {
                Ok(_) => {}
                Err(LaunchError::Trap(report)) => {
                    trap = Some(report);
                    break;
                }
                Err(other) => return Err(format!("launch of `{}`: {other}", l.entry)),
            }
        }
        KEPT.with_borrow_mut(|kept| {
            if let Some((_, compiled)) = kept {
                *compiled += device.code().counts().compiled;
            }
        });
        for a in &self.addresses {
            buffers[a.at.0].write(a.at.1, &[0; 8]);
        }
        Ok(Outcome {
            buffers: buffers.iter().map(DeviceBuffer::to_vec).collect(),
            variables: self.variables.iter().map(|v| module.read_global(v)).collect(),
            output: device.take_output(),
            trap,
            findings,
            events,
            compiled,
            interpreted,
            proven,
            counted: tally.map_or(vec![], |tally| tally.launches()),
        })
    }

    /// Runs it checked by the interpreter and by compiled code, which must tell the same events in the same order, find the same and leave the same. Returns
    /// how many launches compiled code ran, and why it did not run the others.
    ///
    /// # Errors
    /// What differs.
    pub fn tells_alike(&self, seed: u64) -> Result<(usize, Vec<&'static str>), String> {
        let [want, got] = [TOLD, CODE_TOLD].map(|way| self.run(way, seed));
        let (want, got) = (want?, got?);
        // Who has no time to the end has told what it could.
        if want.trap.as_ref().is_some_and(|t| t.kind() == TrapKind::Timeout) {
            return Ok((got.compiled, got.interpreted));
        }
        for (launch, (want, got)) in want.events.iter().zip(&got.events).enumerate() {
            if let Some(at) = (0..want.len().max(got.len())).find(|i| want.get(*i).map(near) != got.get(*i).map(near)) {
                let [want, got] = [want, got].map(|events| events.get(at));
                return Err(format!("told: launch {launch}, event {at} is {want:?}, but of compiled code {got:?}"));
            }
        }
        found_alike(&want, &got)?;
        Ok((got.compiled, got.interpreted))
    }

    /// Runs it checked by the interpreter and by compiled code, which tells all that happens and which does not where nothing can be found, for all that there
    /// is and for contents of memory alone: they must find the same and leave the same. Returns how many launches nothing could be found in.
    ///
    /// # Errors
    /// What differs.
    pub fn finds_alike(&self, seed: u64) -> Result<usize, String> {
        let has_ended = |o: &Outcome| o.trap.as_ref().is_none_or(|t| t.kind() != TrapKind::Timeout);
        let mut proven = 0;
        for checks in [Checks::all(), CONTENTS] {
            let want = self.run(Way { checks: Some(checks), ..CHECKED }, seed)?;
            for keeps_events in [true, false] {
                let got = self.run(Way { checks: Some(checks), keeps_events, ..CODE_CHECKED }, seed)?;
                // Either may have no time to the end; who waits for ever is found by what is told.
                if has_ended(&want) && has_ended(&got) {
                    found_alike(&want, &got).map_err(|e| format!("--check={checks}: {e}"))?;
                }
                proven += got.proven;
            }
        }
        Ok(proven)
    }
}

/// Whether two checked runs end alike, found the same, and left the same.
fn found_alike(want: &Outcome, got: &Outcome) -> Result<(), String> {
    let text = |trap: &Option<Box<TrapReport>>| trap.as_ref().map(|t| without_window(&t.human(Style::Plain, None)));
    if text(&want.trap) != text(&got.trap) {
        return Err(format!("told: the trap is {:?}, but of compiled code {:?}", text(&want.trap), text(&got.trap)));
    }
    let texts = |found: &[Finding]| found.iter().map(|f| without_window(&f.human())).collect::<Vec<_>>();
    if texts(&want.findings) != texts(&got.findings) {
        let [want, got] = [&want.findings, &got.findings].map(|found| texts(found).join("\n"));
        return Err(format!("told: found is\n{want}\nbut by compiled code\n{got}"));
    }
    if want.trap.is_none() && want.buffers != got.buffers {
        return Err("told: compiled code leaves other bytes".into());
    }
    Ok(())
}

/// An event with addresses counted from the start of their device's window.
fn near(event: &Event) -> Event {
    let inside = |addr: u64| addr % (64 << 30);
    match event.clone() {
        Event::Access { site, access } => {
            Event::Access { site, access: Access { addr: inside(access.addr), ..access } }
        }
        Event::StartCta { cta, threads, cluster, shared, proxies } => {
            // No shared memory has no place.
            let base = if shared.1 == 0 { 0 } else { inside(shared.0) };
            Event::StartCta { cta, threads, cluster, shared: (base, shared.1), proxies }
        }
        other => other,
    }
}

thread_local! {
    /// Where code of this thread's devices is kept, and how often it was compiled.
    static KEPT: RefCell<Option<(PathBuf, u64)>> = const { RefCell::new(None) };
}

/// Bytes of that.
const ROOM: u64 = 512 << 20;

/// Does work of which code is kept in a folder, each device knowing no more than that. Returns how often an entry was compiled, too.
pub fn keeping<T>(folder: &Path, work: impl FnOnce() -> T) -> (T, u64) {
    KEPT.set(Some((folder.to_owned(), 0)));
    let result = work();
    (result, KEPT.take().map_or(0, |(_, compiled)| compiled))
}

/// A device. Windows of memory are few, so tests that run beside each other may have to wait for one.
///
/// # Errors
/// None came free.
pub fn device() -> Result<Device, String> {
    device_with(Vectors::V512)
}

/// A device whose code and routines use vectors of at most a width.
///
/// # Errors
/// As [`device`].
pub fn device_with(vectors: Vectors) -> Result<Device, String> {
    let host = Host::detect().capped(vectors);
    let store = KEPT.with_borrow(|kept| kept.as_ref().and_then(|(folder, _)| Store::at(folder, ROOM)));
    for _ in 0..1000 {
        if let Ok(device) = Device::on(host, &CodeCache::new(store.clone())) {
            return Ok(device);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err("no device could be made".into())
}
