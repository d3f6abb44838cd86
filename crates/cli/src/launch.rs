//! One launch and its report: what `run` and `run --job` share.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use handloom_check::CheckedModule;
use handloom_diag::names::readable;
use handloom_diag::{Diagnostic, SourceMap};
use handloom_ir::simt::Param;
use handloom_runtime::{
    Arg, Device, Function, LaunchConfig, LaunchError, Module, PreparedLaunch, Progress, TrapReport,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::report::{Failure, Format, Out};
use crate::watch::Watch;
use crate::{names, scalar};

/// A module on a device.
#[derive(Debug)]
pub struct Loaded {
    /// The module.
    pub module: Module,
    /// Time to make its IR, which belongs to compiling.
    pub lower: Duration,
}

/// Lowers a module and puts it on a device.
///
/// # Errors
/// There is no room for its variables.
pub fn load(device: &Device, checked: &CheckedModule, sources: Arc<SourceMap>) -> Result<Loaded, Failure> {
    let start = Instant::now();
    let ir = handloom_lower::lower(checked);
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
        LaunchError::Stopped => {
            Failure { status: watch.status(), message: "the launch was stopped by a signal".into() }
        }
        LaunchError::Bug(_) => Failure { status: crate::report::Status::Bug, message: e.to_string() },
        LaunchError::Trap(trap) => Failure { status: crate::report::Status::Found, message: trap.message().to_owned() },
        other => Failure { status: crate::report::Status::Bug, message: other.to_string() },
    }
}

/// What a launch did.
#[derive(Debug)]
pub struct Launched {
    /// Time to make its code.
    pub compile: Duration,
    /// Time of each run.
    pub runs: Vec<Duration>,
    /// How it ended, if not well.
    pub trap: Option<Box<TrapReport>>,
}

/// Runs a launch once, or as often as asked.
///
/// # Errors
/// The launch is wrong, there is no room for it, or a signal ended it.
pub fn launch(
    function: &Function,
    config: &LaunchConfig,
    args: &[Arg<'_>],
    repeat: u32,
    watch: &Watch,
) -> Result<Launched, Failure> {
    let progress = Progress::new();
    let mut config = config.clone();
    config.stop = watch.stop().clone();
    config.progress = Some(progress.clone());
    let blocks = config.blocks().saturating_mul(u64::from(repeat));
    let mut prepared = PreparedLaunch::new(function, &config, args).map_err(|e| failed(e, watch))?;
    let mut done = Launched { compile: Duration::ZERO, runs: Vec::new(), trap: None };
    for _ in 0..repeat {
        let start = Instant::now();
        match watch.during(function.name(), blocks, &progress, || prepared.run()) {
            Ok(report) => {
                done.compile += report.compile;
                done.runs.push(report.run);
            }
            Err(LaunchError::Trap(trap)) => {
                done.runs.push(start.elapsed());
                done.trap = Some(trap);
                break;
            }
            Err(e) => return Err(failed(e, watch)),
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
enum RunTime {
    One(f64),
    Many(Vec<f64>),
}

#[derive(Serialize)]
struct Object<'a> {
    entry: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    demangled: Option<String>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    compile_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_us: Option<RunTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trap: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
}

/// Reports a launch: what the kernel printed, how long it took, its trap. `many`: it was to be run a number of times.
pub fn report(entry: &str, done: &Launched, printed: &[u8], many: bool, out: &mut Out) {
    let is_json = out.format == Format::Json;
    if is_json {
        let times: Vec<f64> = done.runs.iter().map(|t| micros(*t)).collect();
        out.json(&Object {
            entry,
            demangled: readable(entry),
            status: if done.trap.is_some() { "trap" } else { "ok" },
            compile_us: Some(micros(done.compile)),
            run_us: Some(if many { RunTime::Many(times) } else { RunTime::One(times.iter().sum()) }),
            trap: done.trap.as_ref().and_then(|t| RawValue::from_string(t.json()).ok()),
            message: None,
            output: (!printed.is_empty()).then(|| String::from_utf8_lossy(printed).into_owned()),
        });
    } else {
        out.write(printed);
        if !printed.is_empty() && !printed.ends_with(b"\n") {
            out.write(b"\n");
        }
    }
    if let Some(trap) = &done.trap {
        if !is_json {
            let line = trap.cuda_place().and_then(|(file, line)| cuda_line(trap, file, line));
            let text = trap.human(out.style(), line.as_deref());
            out.say(&text);
        }
        return;
    }
    if !is_json {
        let runs: Vec<String> = done.runs.iter().map(|t| millis(*t)).collect();
        let times = if runs.len() == 1 { String::new() } else { format!(" {} times", runs.len()) };
        let entry = names::plain(entry);
        out.line(&format!("{entry}: ok, compiled in {}, ran{times} in {}", millis(done.compile), runs.join(", ")));
    }
}

/// Reports a launch that did not run because its entry cannot be compiled.
pub fn report_error(entry: &str, message: &str, out: &mut Out) {
    match out.format {
        Format::Json => out.json(&Object {
            entry,
            demangled: readable(entry),
            status: "error",
            compile_us: None,
            run_us: None,
            trap: None,
            message: Some(message),
            output: None,
        }),
        Format::Human => out.say(&format!("{}: not run: {message}", names::plain(entry))),
    }
}

/// Largest source file that is searched for a line.
const MAX_SOURCE_BYTES: u64 = 64 << 20;

/// A line of the source file that `.loc` names, if the file is there: as named, or beside the PTX file.
fn cuda_line(trap: &TrapReport, file: &str, line: u32) -> Option<String> {
    let named = Path::new(file);
    let ptx = trap.place().map(|(name, _)| Path::new(name));
    let beside = ptx.and_then(Path::parent).map(|dir| dir.join(named.file_name().unwrap_or_default()));
    let found = [Some(named.to_owned()), beside]
        .into_iter()
        .flatten()
        .find(|p| std::fs::metadata(p).is_ok_and(|m| m.is_file() && m.len() <= MAX_SOURCE_BYTES))?;
    let text = std::fs::read(found).ok()?;
    let index = usize::try_from(line).ok()?.checked_sub(1)?;
    let line = text.split(|b| *b == b'\n').nth(index)?;
    Some(String::from_utf8_lossy(line).trim_end().to_owned())
}
