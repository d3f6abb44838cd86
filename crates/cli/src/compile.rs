//! `handloom compile`: everything up to machine code, for every entry.

use std::sync::Arc;
use std::time::{Duration, Instant};

use handloom_diag::SourceMap;
use handloom_diag::names::readable;
use handloom_runtime::{
    Backend, Bounds, Compiled, Device, ErrorKind, Function, LaunchConfig, LaunchError, Listing, Stage, Tier,
};
use serde::Serialize;

use crate::args::{CompileArgs, Emit};
use crate::bug::{self, Panic};
use crate::entries::{Fault, Parts, parts};
use crate::image::Input;
use crate::launch::{self, Loaded, micros, millis};
use crate::report::{Failure, Format, Out, Status};
use crate::watch::{Watch, Work};
use crate::{image, names, run};

#[derive(Serialize)]
struct Object<'a> {
    file: &'a str,
    entry: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    demangled: Option<String>,
    status: &'static str,
    parse_us: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    compile_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code_bytes: Option<usize>,
    /// Nothing was compiled: the code was kept by an earlier process.
    #[serde(skip_serializing_if = "Option::is_none")]
    cached: Option<bool>,
    /// Who made the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<&'static str>,
    /// What the code, and the routines that it calls, may use of the host: a word of HANDLOOM_ISA.
    #[serde(skip_serializing_if = "Option::is_none")]
    isa: Option<&'static str>,
    /// What kept the entry from wide code, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<&'a str>,
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
    if named(args) == Some(Backend::Wide) && needs_cranelift(args) {
        return Err(Failure::usage(
            "tiers and Cranelift IR are shown of Cranelift's code: add `--backend cranelift`, or leave `--tier` and `--emit clif` out",
        ));
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
    let mut status = Status::Done;
    for input in image::read(name, name)? {
        status = status.max(module(input, device, args, watch, out)?);
    }
    Ok(status)
}

/// One module of a file.
fn module(input: Input, device: &Device, args: &CompileArgs, watch: &Watch, out: &mut Out) -> Result<Status, Failure> {
    let name = &input.name.clone();
    let mut sources = SourceMap::new();
    let text = input.add(&mut sources, out);
    let start = Instant::now();
    let checked = text.check(&sources);
    let parse = start.elapsed();
    let Parts { module, entries, diagnostics } = parts(checked, sources.text(text.file), text.file);
    out.diagnostics(&diagnostics, &sources);
    let mut status = Status::of_all(&diagnostics);
    let sources = Arc::new(sources);
    let loaded = module.map(|m| launch::load(device, &m, Arc::clone(&sources), false)).transpose()?;
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

/// The generator that the user names.
fn named(args: &CompileArgs) -> Option<Backend> {
    args.backend.map(Backend::from).or_else(|| Backend::named().ok().flatten())
}

/// Whether something is asked for that only Cranelift has.
fn needs_cranelift(args: &CompileArgs) -> bool {
    args.tier.is_some() || matches!(args.emit, Some(Emit::Clif))
}

/// What an entry became.
struct Made {
    compile: Duration,
    code_bytes: usize,
    /// Nothing was compiled.
    cached: bool,
    backend: Option<Backend>,
    isa: Option<&'static str>,
    /// What kept it from the generator that was asked for.
    refused: Option<String>,
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
        config.bounds = args.bounds.map_or(Bounds::Exact, Bounds::from);
        let named = named(args);
        config.backend = named.unwrap_or(if needs_cranelift(args) { Backend::Cranelift } else { config.backend });
        if let Some(emit) = args.emit {
            let print = |config: &LaunchConfig| print(&function, file, config, emit, args.tier.map(Tier::from));
            let text = match print(&config).map_err(Unmade::from) {
                // What a launch would run then.
                Err(Unmade::Unsupported(_)) if named.is_none() && config.backend == Backend::Wide => {
                    config.backend = Backend::Cranelift;
                    print(&config).map_err(Unmade::from)?
                }
                text => text?,
            };
            let (compile, text) = (Duration::ZERO, Some(text));
            return Ok(Made { compile, code_bytes: 0, cached: false, backend: None, isa: None, refused: None, text });
        }
        let start = Instant::now();
        let compiled = function.compile(&config).map_err(Unmade::from)?;
        let compile = loaded.lower_of(&function) + start.elapsed();
        let Compiled { code_bytes, cached, backend, refused, .. } = compiled;
        let isa = Some(loaded.module.device().host().vectors.isa());
        Ok(Made { compile, code_bytes, cached, backend, isa, refused, text: None })
    });
    match made {
        Ok(Ok(made)) => Ok(Ok(made)),
        Ok(Err(Unmade::Stopped)) => Err(watch.stopped("compiling")),
        Ok(Err(Unmade::Unsupported(message))) => Ok(Err(Fault { status: Status::Unsupported, message })),
        Ok(Err(Unmade::Bug(text))) => Ok(Err(bug(&Panic::new(&text)))),
        Err(panic) => Ok(Err(bug(&panic))),
    }
}

/// Why there is no code.
enum Unmade {
    Bug(String),
    Unsupported(String),
    Stopped,
}

impl From<LaunchError> for Unmade {
    fn from(e: LaunchError) -> Unmade {
        match e.kind() {
            ErrorKind::Stopped => Unmade::Stopped,
            ErrorKind::Unsupported => Unmade::Unsupported(e.to_string()),
            _ => Unmade::Bug(e.to_string()),
        }
    }
}

/// The tier that a stage is shown of, if nobody names one: that which a launch runs first.
pub fn shown_tier(listing: &Listing<'_>, backend: Backend, emit: Emit) -> Tier {
    // Of wide code, that which launches have that take long; a plan of it rests on nothing, its code on tests that are made once a CTA.
    match (backend, emit) {
        (Backend::Wide, Emit::Asm) => Tier::Quick,
        (Backend::Wide, Emit::Ir | Emit::Plan | Emit::Clif) => Tier::Careful,
        (Backend::Cranelift, _) => listing.first_tier(),
    }
}

/// The stage that was asked for, with a line that says what it is of.
fn print(
    function: &Function,
    file: &str,
    config: &LaunchConfig,
    emit: Emit,
    tier: Option<Tier>,
) -> Result<String, LaunchError> {
    let listing = function.listing(config)?;
    let is_wide = config.backend == Backend::Wide;
    let first = shown_tier(&listing, config.backend, emit);
    let tier = tier.unwrap_or(first);
    let shape = config.block.map(|n| n.to_string()).join(",");
    let name = function.name();
    let text = match emit {
        Emit::Ir => listing.ir(),
        Emit::Plan => listing.code(tier, Stage::Plan)?,
        Emit::Clif => listing.code(tier, Stage::Clif)?,
        Emit::Asm => listing.code(tier, Stage::Asm)?,
    };
    let code = match emit {
        // The same for all tiers.
        Emit::Ir => String::new(),
        _ if is_wide => ", wide code".to_owned(),
        Emit::Plan | Emit::Clif | Emit::Asm if tier == first => {
            format!(", {} code, which a launch runs first", tier.name())
        }
        Emit::Plan | Emit::Clif | Emit::Asm => {
            format!(", {} code; a launch runs {} code first", tier.name(), first.name())
        }
    };
    Ok(format!("; {file}: {name}, for blocks of {shape}{code}\n{}\n", text.trim_end()))
}

fn report(file: &str, entry: &str, parse: Duration, result: &Result<Made, Fault>, out: &mut Out) {
    if out.format == Format::Json {
        let made = result.as_ref().ok();
        out.json(&Object {
            file,
            entry,
            demangled: readable(entry),
            status: if made.is_some() { "ok" } else { "error" },
            parse_us: micros(parse),
            compile_us: made.map(|m| micros(m.compile)),
            code_bytes: made.map(|m| m.code_bytes),
            cached: made.filter(|m| m.cached).map(|_| true),
            backend: made.and_then(|m| m.backend).map(Backend::name),
            isa: made.and_then(|m| m.isa),
            refused: made.and_then(|m| m.refused.as_deref()),
            message: result.as_ref().err().map(|fault| fault.message.as_str()),
        });
        return;
    }
    match result {
        Ok(Made { text: Some(text), .. }) => out.line(text),
        Ok(made) => out.line(&format!(
            "{file}: {}: ok, checked in {}, {} in {}, {} bytes",
            names::plain(entry),
            millis(parse),
            launch::how_made(made.cached),
            millis(made.compile),
            made.code_bytes
        )),
        Err(fault) => out.line(&format!("{file}: {}: error: {}", names::plain(entry), fault.message)),
    }
}
