//! One launch and its report: what `run` and `run --job` share.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use handloom_check::CheckedModule;
use handloom_diag::names::readable;
use handloom_diag::{Diagnostic, SourceMap};
use handloom_ir::simt::Param;
use handloom_runtime::{
    Arg, Device, ErrorKind, Function, LaunchConfig, LaunchError, LaunchReport, Module, PreparedLaunch, Progress, Sink,
    Tier, TrapReport,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::printed::Printed;
use crate::report::{Failure, Format, Out, Status};
use crate::watch::{Watch, Work};
use crate::{names, scalar};

/// A module on a device.
#[derive(Debug)]
pub struct Loaded {
    /// The module.
    pub module: Module,
    /// Time to make its IR, which belongs to compiling.
    pub lower: Duration,
}

impl Loaded {
    /// The part of that time which belongs to one of its entries, by the statements that it may run.
    pub fn lower_of(&self, entry: &Function) -> Duration {
        self.lower.mul_f64(entry.share())
    }
}

/// Lowers a module and puts it on a device. `marked`: its launches are counted.
///
/// # Errors
/// There is no room for its variables.
pub fn load(
    device: &Device,
    checked: &CheckedModule,
    sources: Arc<SourceMap>,
    marked: bool,
) -> Result<Loaded, Failure> {
    let start = Instant::now();
    let ir = if marked { handloom_lower::lower_marked(checked) } else { handloom_lower::lower(checked) };
    let lower = start.elapsed();
    let no_warnings: Vec<Diagnostic> = Vec::new();
    let module = Module::from_ir(device, ir, sources, no_warnings);
    let module = module.map_err(|e| Failure::file(format!("the variables of the module do not fit: {e}")))?;
    Ok(Loaded { module, lower })
}

/// The bits of a scalar for a parameter; `number` counts from 1.
///
/// # Errors
/// What was expected.
pub fn scalar_for(number: usize, p: &Param, text: &str) -> Result<u64, Failure> {
    let bits = if p.is_array {
        Err(format!("`{}` is a structure of {} bytes and takes `bytes:HEX` only", p.name, p.size))
    } else {
        scalar::parse(text, p.ty)
    };
    bits.map_err(|why| Failure::usage(format!("argument {number}: {why}")))
}

/// Why a launch did not come to its end, other than by a trap.
pub fn failed(e: LaunchError, watch: &Watch) -> Failure {
    match e {
        LaunchError::Wrong(why) => Failure::usage(why),
        LaunchError::NoRoom(why) => Failure::file(why),
        LaunchError::Stopped => watch.stopped("the launch"),
        LaunchError::Trap(trap) => Failure { status: Status::Found, message: trap.message().to_owned() },
        other => {
            let status = if other.kind() == ErrorKind::Unsupported { Status::Unsupported } else { Status::Bug };
            Failure { status, message: other.to_string() }
        }
    }
}

/// What a launch did.
#[derive(Clone, Debug, Default)]
pub struct Launched {
    /// Time to make its code.
    pub compile: Duration,
    /// What each run did.
    pub runs: Vec<LaunchReport>,
    /// How it ended, if not well.
    pub trap: Option<Box<TrapReport>>,
    /// A signal ended it; what a check had found until then is known.
    pub stopped: bool,
    /// What the kernel printed, where it was not written at once.
    pub printed: Vec<u8>,
}

impl Launched {
    /// One that ended before it ran.
    pub fn trapped(trap: Box<TrapReport>) -> Launched {
        let mut done = Launched::default();
        done.end(trap);
        done
    }

    fn add(&mut self, report: LaunchReport) {
        self.compile += report.compile;
        self.runs.push(report);
    }

    fn end(&mut self, trap: Box<TrapReport>) {
        self.add(trap.launch().clone());
        self.trap = Some(trap);
    }
}

/// Runs a launch once, or as often as asked. `spent`: time for its code that counts for its time limit. What the kernel prints is written while it runs, or comes with the result.
///
/// # Errors
/// The launch is wrong, there is no room for it, or a signal ended it. For programs, what the kernel printed until then is told.
pub fn launch(
    function: &Function,
    config: &LaunchConfig,
    args: &[Arg<'_>],
    repeat: u32,
    spent: Duration,
    watch: &Watch,
    out: &mut Out,
) -> Result<Launched, Failure> {
    let mut config = config.clone();
    config.stop = watch.stop().clone();
    if out.is_quiet() {
        config.output = Some(Sink::new(|_| {}));
        return run(function, &config, args, repeat, spent).map_err(|e| failed(e, watch));
    }
    let progress = Progress::new();
    let printed = Printed::new(out, watch.shown().clone());
    config.progress = Some(progress.clone());
    config.output = Some(printed.sink());
    let blocks = config.blocks().saturating_mul(u64::from(repeat));
    let stopped = match out.format {
        Format::Human => |_: &str, text| text,
        Format::Json => stopped_object,
    };
    let work = Work::Launch { blocks, progress, printed: printed.clone(), stopped };
    let result = watch.during(function.name(), work, || run(function, &config, args, repeat, spent));
    let text = printed.finish();
    match result {
        Ok(done) if done.stopped => {
            out.write(&stopped(function.name(), text));
            Ok(done)
        }
        Ok(done) => Ok(Launched { printed: text, ..done }),
        Err(e) => {
            if matches!(e, LaunchError::Stopped) || !text.is_empty() {
                out.write(&stopped(function.name(), text));
            }
            Err(failed(e, watch))
        }
    }
}

fn run(
    function: &Function,
    config: &LaunchConfig,
    args: &[Arg<'_>],
    repeat: u32,
    spent: Duration,
) -> Result<Launched, LaunchError> {
    let mut done = Launched::default();
    let mut prepared = match PreparedLaunch::new(function, config, args) {
        Ok(prepared) => prepared,
        Err(LaunchError::Trap(trap)) => return Ok(Launched::trapped(trap)),
        Err(e) => return Err(e),
    };
    prepared.add_compile_time(spent);
    for _ in 0..repeat {
        match prepared.run() {
            Ok(report) => done.add(report),
            Err(LaunchError::Trap(trap)) => {
                done.end(trap);
                break;
            }
            Err(LaunchError::Stopped) if config.check.is_some() => {
                let check = prepared.take_check();
                done.runs.push(LaunchReport { check, ..LaunchReport::default() });
                done.stopped = true;
                break;
            }
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

/// Time as the number of microseconds of a report.
pub fn micros(t: Duration) -> f64 {
    (t.as_secs_f64() * 1e9).round() / 1e3
}

/// Time for people.
pub fn millis(t: Duration) -> String {
    format!("{:.3} ms", t.as_secs_f64() * 1e3)
}

#[derive(Serialize)]
#[serde(untagged)]
enum OfRuns<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> OfRuns<T> {
    /// Of a launch that was to be run once, or a number of times.
    fn new(mut list: Vec<T>, many: bool) -> Option<OfRuns<T>> {
        if many { Some(OfRuns::Many(list)) } else { list.pop().map(OfRuns::One) }
    }
}

#[derive(Serialize, Default)]
struct Object<'a> {
    entry: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    demangled: Option<String>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    compile_us: Option<f64>,
    /// Nothing was compiled before it ran: the code was kept by an earlier process.
    #[serde(skip_serializing_if = "Option::is_none")]
    cached: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_us: Option<OfRuns<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recompile_us: Option<OfRuns<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<OfRuns<&'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trap: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
}

/// The report of a launch that a signal or a fault of the host ended, with what the kernel printed.
fn stopped_object(entry: &str, printed: Vec<u8>) -> Vec<u8> {
    let message = Some("the launch was stopped before its end");
    let object = Object { entry, status: "error", message, output: text_of(&printed), ..Object::default() };
    let mut line = serde_json::to_vec(&object).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Text as a field, if there is any.
fn text_of(printed: &[u8]) -> Option<String> {
    (!printed.is_empty()).then(|| String::from_utf8_lossy(printed).into_owned())
}

/// Reports a launch: how long it took, what the kernel printed if that was kept, its trap. `many`: it was to be run a number of times.
pub fn report(entry: &str, done: &Launched, many: bool, out: &mut Out) {
    let is_json = out.format == Format::Json && !out.is_only_trouble();
    if out.is_only_trouble() && !done.printed.is_empty() {
        out.say(&String::from_utf8_lossy(&done.printed));
    }
    if is_json {
        let times = |of: fn(&LaunchReport) -> Duration| done.runs.iter().map(|r| micros(of(r))).collect();
        out.json(&Object {
            entry,
            demangled: readable(entry),
            status: if done.trap.is_some() { "trap" } else { "ok" },
            compile_us: Some(micros(done.compile)),
            cached: done.runs.first().filter(|r| r.cached).map(|_| true),
            run_us: OfRuns::new(times(|r| r.run), many),
            recompile_us: OfRuns::new(times(|r| r.recompile), many),
            tier: tiers(&done.runs, many),
            trap: done.trap.as_ref().and_then(|t| RawValue::from_string(t.json()).ok()),
            message: None,
            output: text_of(&done.printed),
        });
    }
    if let Some(trap) = &done.trap {
        if !is_json {
            let line = trap.cuda_place().and_then(|(file, line)| cuda_line(trap, file, line));
            let text = trap.human(out.style(), line.as_deref());
            out.say(&text);
        }
        return;
    }
    if !is_json && !out.is_only_trouble() {
        let recompile: Duration = done.runs.iter().map(|r| r.recompile).sum();
        let tier = done.runs.iter().filter_map(|r| r.tier).max();
        let more = match tier {
            Some(tier) if !recompile.is_zero() => format!(", waited {} for {} code", millis(recompile), tier.name()),
            Some(_) | None => String::new(),
        };
        let times = if done.runs.len() == 1 { String::new() } else { format!(" {} times", done.runs.len()) };
        let entry = names::plain(entry);
        out.line(&format!(
            "{entry}: ok, {} in {}, ran{times} in {}{more}",
            how_made(done.runs.first().is_some_and(|r| r.cached)),
            millis(done.compile),
            durations(&done.runs)
        ));
    }
}

/// Runs whose times people read one by one.
const FEW_RUNS: usize = 10;

/// The times of the runs; of many, what they come to. (JSON has them all.)
fn durations(runs: &[LaunchReport]) -> String {
    if runs.len() <= FEW_RUNS {
        let each: Vec<String> = runs.iter().map(|r| millis(r.run)).collect();
        return each.join(", ");
    }
    let mut sorted: Vec<Duration> = runs.iter().map(|r| r.run).collect();
    sorted.sort_unstable();
    let at = |n: usize| millis(sorted[n]);
    let (first, median) = (millis(runs[0].run), at(sorted.len() / 2));
    format!("{first} at first; fastest {}, median {median}, slowest {}", at(0), at(sorted.len() - 1))
}

/// How code came to be, in a report.
pub fn how_made(cached: bool) -> &'static str {
    if cached { "taken from the cache" } else { "compiled" }
}

/// The highest tier of each run. The interpreter has none, nor has a launch that ended before a block ran.
fn tiers(runs: &[LaunchReport], many: bool) -> Option<OfRuns<&'static str>> {
    let all: Option<Vec<&str>> = runs.iter().map(|r| r.tier.map(Tier::name)).collect();
    all.and_then(|all| OfRuns::new(all, many))
}

/// Reports a launch that did not run because its entry cannot be compiled.
pub fn report_error(entry: &str, message: &str, out: &mut Out) {
    match out.format {
        Format::Json => out.json(&Object {
            entry,
            demangled: readable(entry),
            status: "error",
            message: Some(message),
            ..Object::default()
        }),
        Format::Human => out.say(&format!("{}: not run: {message}", names::plain(entry))),
    }
}

/// Largest source file that is searched for a line.
const MAX_SOURCE_BYTES: u64 = 64 << 20;

/// A line of the source file that `.loc` names, if the file is there.
fn cuda_line(trap: &TrapReport, file: &str, line: u32) -> Option<String> {
    let text = source_text(file, trap.place().map(|(name, _)| Path::new(name)))?;
    let index = usize::try_from(line).ok()?.checked_sub(1)?;
    text.split('\n').nth(index).map(|line| line.trim_end().to_owned())
}

/// The text of a file if it is there: as it is named, or beside another one.
pub fn source_text(file: &str, other: Option<&Path>) -> Option<String> {
    let named = Path::new(file);
    let beside = other.and_then(Path::parent).map(|dir| dir.join(named.file_name().unwrap_or_default()));
    let found = [Some(named.to_owned()), beside]
        .into_iter()
        .flatten()
        .find(|p| std::fs::metadata(p).is_ok_and(|m| m.is_file() && m.len() <= MAX_SOURCE_BYTES))?;
    std::fs::read(found).ok().map(|text| String::from_utf8_lossy(&text).into_owned())
}
