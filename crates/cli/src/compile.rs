//! `handloom compile`: everything up to machine code, for every entry.

use std::sync::Arc;
use std::time::{Duration, Instant};

use handloom_diag::{SourceMap, Span};
use handloom_ir::simt::{Function as IrFunction, Term, text};
use handloom_ir::trap::TrapKind;
use handloom_runtime::{Device, Function, LaunchConfig, LaunchError, Stage};
use serde::Serialize;

use crate::args::{CompileArgs, Emit};
use crate::bug::{self, Panic};
use crate::entries::{Fault, Parts, parts};
use crate::launch::{self, Loaded, micros, millis};
use crate::report::{Failure, Format, Out, Status};
use crate::watch::{Watch, Work};
use crate::{input, run};

#[derive(Serialize)]
struct Object<'a> {
    file: &'a str,
    entry: &'a str,
    status: &'static str,
    parse_us: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    compile_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

/// Compiles files, one after the other.
///
/// # Errors
/// The host has no room for a device, or a signal ended it.
pub fn compile(args: &CompileArgs, out: &mut Out) -> Result<Status, Failure> {
    if args.emit.is_some() && out.format == Format::Json {
        return Err(Failure::usage("`--emit` prints text: leave `--format json` out"));
    }
    out.set_limit(args.limit.error_limit);
    let watch = Watch::start(out)?;
    let device = run::device()?;
    let mut status = Status::Done;
    for name in &args.files {
        let one = bug::catch(|| file(name, &device, args, &watch, out)).unwrap_or_else(|panic| {
            out.bug(&panic, Some(name));
            Ok(Status::Bug)
        });
        match one {
            Err(failure) if matches!(failure.status, Status::Signal(_)) => return Err(failure),
            one => status = status.max(one.unwrap_or_else(|failure| out.failure(&failure))),
        }
    }
    Ok(status)
}

/// One file: all its entries.
fn file(name: &str, device: &Device, args: &CompileArgs, watch: &Watch, out: &mut Out) -> Result<Status, Failure> {
    let bytes = input::read(name)?;
    let mut sources = SourceMap::new();
    let text = input::add(&mut sources, name, bytes);
    let start = Instant::now();
    let checked = text.check(&sources);
    let parse = start.elapsed();
    let Parts { module, entries, diagnostics } = parts(checked, sources.text(text.file), text.file);
    out.diagnostics(&diagnostics, &sources);
    let mut status = Status::of_all(&diagnostics);
    let sources = Arc::new(sources);
    let loaded = module.map(|m| launch::load(device, &m, Arc::clone(&sources))).transpose()?;
    for (entry, fault) in &entries {
        let result = match (&loaded, fault) {
            (Some(loaded), None) => {
                watch.during(entry, Work::Compile, || make(loaded, name, entry, args, watch, out))?
            }
            (_, Some(fault)) => Err(fault.clone()),
            (None, None) => Err(Fault { status, message: "the module cannot be used".into() }),
        };
        status = status.max(result.as_ref().map_or_else(|fault| fault.status, |_| Status::Done));
        report(name, entry, parse, &result, out);
        // What is done is told before the next one, however long that takes.
        out.flush();
    }
    if entries.is_empty() && status == Status::Done && out.format == Format::Human {
        out.say(&format!("{name}: no entry"));
    }
    Ok(status)
}

/// What an entry became.
struct Made {
    compile: Duration,
    code_bytes: usize,
    /// The stage that was asked for, with a line that says what it is of.
    text: Option<String>,
}

/// Makes an entry. The outer error is the end of the command.
fn make(
    loaded: &Loaded,
    file: &str,
    entry: &str,
    args: &CompileArgs,
    watch: &Watch,
    out: &mut Out,
) -> Result<Result<Made, Fault>, Failure> {
    let mut bug = |panic: &Panic| {
        out.bug(panic, Some(file));
        Fault { status: Status::Bug, message: panic.message.clone() }
    };
    let made = bug::catch(|| -> Result<Made, Unmade> {
        let function = loaded.module.function(Some(entry)).map_err(|e| Unmade::Bug(e.to_string()))?;
        let mut config = LaunchConfig::new([1; 3], function.entry().reqntid.unwrap_or(args.block));
        config.stop = watch.stop().clone();
        let text = args.emit.map(|stage| print(&function, &config, stage)).transpose().map_err(Unmade::Bug)?;
        if let Some(text) = text {
            let shape = config.block.map(|n| n.to_string()).join(",");
            let text = format!("; {file}: {entry}, for blocks of {shape}\n{}\n", text.trim_end());
            return Ok(Made { compile: Duration::ZERO, code_bytes: 0, text: Some(text) });
        }
        let start = Instant::now();
        let compiled = function.compile(&config).map_err(|e| match e {
            LaunchError::Stopped => Unmade::Stopped,
            other => Unmade::Bug(other.to_string()),
        })?;
        let compile = loaded.lower + start.elapsed();
        Ok(Made { compile, code_bytes: compiled.code_bytes, text: None })
    });
    match made {
        Ok(Ok(made)) => Ok(Ok(made)),
        Ok(Err(Unmade::Stopped)) => Err(watch.stopped("compiling")),
        Ok(Err(Unmade::Bug(text))) => Ok(Err(bug(&Panic::new(&text)))),
        Err(panic) => Ok(Err(bug(&panic))),
    }
}

/// Why there is no code.
enum Unmade {
    Bug(String),
    Stopped,
}

fn print(function: &Function, config: &LaunchConfig, stage: Emit) -> Result<String, String> {
    let stage = match stage {
        Emit::Ir => return Ok(ir_text(function, config)),
        Emit::Clif => Stage::Clif,
        Emit::Asm => Stage::Asm,
    };
    function.print(config, stage).map_err(|e| e.to_string())
}

/// The functions that an entry may run, with the PTX line over what was made of it.
fn ir_text(function: &Function, config: &LaunchConfig) -> String {
    let module = function.module();
    let sources = module.sources();
    let special = handloom_lower::specialise(module.ir(), function.name(), &config.shape());
    let line = |span: Span| {
        if span == Span::NONE {
            return None;
        }
        let text = sources.slice(span).split_whitespace().collect::<Vec<_>>().join(" ");
        Some(format!("{}: {text}", sources.position(span.file, span.start).line))
    };
    let used = special.funcs.iter().filter(|f| !is_stub(f));
    used.map(|f| text::print_function_with(f, line)).collect::<Vec<_>>().join("\n")
}

/// Whether a function is what specialisation leaves of one that cannot be reached.
fn is_stub(f: &IrFunction) -> bool {
    matches!(f.blocks.as_slice(), [b] if b.insts.is_empty() && matches!(b.term, Term::Trap(TrapKind::BadCall)))
}

fn report(file: &str, entry: &str, parse: Duration, result: &Result<Made, Fault>, out: &mut Out) {
    if out.format == Format::Json {
        let made = result.as_ref().ok();
        out.json(&Object {
            file,
            entry,
            status: if made.is_some() { "ok" } else { "error" },
            parse_us: micros(parse),
            compile_us: made.map(|m| micros(m.compile)),
            code_bytes: made.map(|m| m.code_bytes),
            message: result.as_ref().err().map(|fault| fault.message.as_str()),
        });
        return;
    }
    match result {
        Ok(Made { text: Some(text), .. }) => out.line(text),
        Ok(made) => out.line(&format!(
            "{file}: {entry}: ok, checked in {}, compiled in {}, {} bytes",
            millis(parse),
            millis(made.compile),
            made.code_bytes
        )),
        Err(fault) => out.line(&format!("{file}: {entry}: error: {}", fault.message)),
    }
}
