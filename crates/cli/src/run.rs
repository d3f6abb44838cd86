//! `handloom run`: one launch.

use std::sync::Arc;

use handloom_check::{Checked, link};
use handloom_diag::SourceMap;
use handloom_runtime::{Arg, Bounds, Device, Engine, Function, LaunchConfig, Module, PreparedLaunch};

use crate::args::RunArgs;
use crate::buffers::{Buffer, Content, Word};
use crate::launch::{self, Loaded, failed, scalar_for};
use crate::report::{Failure, Format, Out, Status};
use crate::watch::Watch;
use crate::{bug, image, names};

/// Loads modules, launches an entry, writes its buffers.
///
/// # Errors
/// What kept it from running.
pub fn run(args: &RunArgs, out: &mut Out) -> Result<Status, Failure> {
    out.set_limit(args.limit.error_limit);
    let watch = Watch::start()?;
    let device = device()?;
    let file = args.file.as_deref().unwrap_or("-");
    let first = args.rest.first().map(String::as_str).filter(|word| is_name(word));
    let loaded = bug::catch(|| load(&device, file, first, &args.link, out)).unwrap_or_else(|panic| {
        out.bug(&panic, Some(file));
        Err(Failure::told(Status::Bug))
    })?;
    let (entry, words) = split(&args.rest, &loaded.module);
    let function = names::function(&loaded.module, entry, &watch)?;
    let words = words
        .iter()
        .enumerate()
        .map(|(i, text)| Word::parse(text).map_err(|why| Failure::usage(format!("argument {}: {why}", i + 1))));
    let words = words.collect::<Result<Vec<Word>, _>>()?;
    let config = config(args);
    let given = Given::read(&function, &config, &words, &args.rest[args.rest.len() - words.len()..], &watch)?;
    let placed = given.place(&device, loaded.module.is_low())?;
    let result = launch::launch(&function, &config, &placed.args(), 1, &watch);
    let printed = device.take_output();
    let mut done = result?;
    done.compile += loaded.lower;
    launch::report(function.name(), &done, &printed, false, out);
    let mut status = if done.trap.is_some() { Status::Found } else { Status::Done };
    for (buffer, word) in placed.buffers.iter().zip(&words) {
        if let (Some(buffer), Word::Buffer { to: Some(store), .. }) = (buffer, word) {
            match buffer.store(store) {
                Ok(line) if out.format == Format::Human => out.line(&line),
                Ok(_) => {}
                Err(failure) => status = status.max(out.failure(&failure)),
            }
        }
    }
    Ok(status)
}

/// A device.
///
/// # Errors
/// The host has no address space for it.
pub fn device() -> Result<Device, Failure> {
    Device::new().map_err(|e| Failure::file(format!("the host has no room for a device: {e}")))
}

/// Reads, checks and joins files, and tells of their faults. Of a file with several modules, the one with the entry is taken.
fn load(device: &Device, file: &str, entry: Option<&str>, links: &[String], out: &mut Out) -> Result<Loaded, Failure> {
    let mut inputs = image::group_with(image::groups(image::read(file, file)?), entry)?;
    for link in links {
        inputs.extend(image::read(link, link)?);
    }
    let mut sources = SourceMap::new();
    let texts: Vec<_> = inputs.into_iter().map(|input| input.add(&mut sources, out)).collect();
    let mut status = Status::Done;
    let mut modules = Vec::new();
    for text in &texts {
        let Checked { module, diagnostics } = text.check(&sources);
        out.diagnostics(&diagnostics, &sources);
        status = status.max(Status::of_all(&diagnostics));
        modules.extend(module);
    }
    if status != Status::Done {
        return Err(Failure::told(status));
    }
    let joined = link(modules, true).map_err(|wrong| {
        out.diagnostics(&wrong, &sources);
        Failure::told(Status::of_all(&wrong))
    })?;
    launch::load(device, &joined, Arc::new(sources))
}

/// The entry, if it is named, and the arguments behind it.
fn split<'a>(rest: &'a [String], module: &Module) -> (Option<&'a str>, &'a [String]) {
    match rest.split_first() {
        Some((first, words)) if module.entries().any(|e| e == first) || is_name(first) => (Some(first), words),
        _ => (None, rest),
    }
}

/// Beginnings of arguments.
const ARGUMENTS: &[&str] = &["in:", "out:", "inout:", "zero:", "bytes:"];

/// Whether a word can only be meant as the name of an entry: one of PTX, or one of C++ or Rust as it is read.
fn is_name(word: &str) -> bool {
    let is_long = word.contains("::") || word.ends_with([')', '>']);
    if is_long && !ARGUMENTS.iter().any(|a| word.starts_with(a)) {
        return true;
    }
    let is_number = word.parse::<f64>().is_ok();
    let mut chars = word.chars();
    let first = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '_' | '$' | '%'));
    first && !is_number && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%'))
}

fn config(args: &RunArgs) -> LaunchConfig {
    let mut config = LaunchConfig::new(args.grid.unwrap_or([1; 3]), args.block.unwrap_or([1; 3]));
    config.shared_bytes = args.shared;
    config.cooperative = args.cooperative;
    config.cluster = args.cluster;
    config.seed = args.seed.unwrap_or(0);
    config.engine = args.engine.map_or(Engine::Jit, Engine::from);
    config.bounds = args.bounds.map_or(Bounds::Exact, Bounds::from);
    config.timeout = args.timeout;
    config.threads = args.threads.map_or(0, std::num::NonZeroUsize::get);
    config
}

/// Checks a launch without making code or touching buffers.
///
/// # Errors
/// What was expected.
pub fn check_launch(
    function: &Function,
    config: &LaunchConfig,
    args: &[Arg<'_>],
    watch: &Watch,
) -> Result<(), Failure> {
    let config = LaunchConfig { engine: Engine::Interp, ..config.clone() };
    PreparedLaunch::new(function, &config, args).map(drop).map_err(|e| failed(e, watch))
}

/// Arguments that were read and fit the parameters as far as can be seen without a device.
struct Given<'w>(Vec<Ready<'w>>);

enum Ready<'w> {
    Scalar(u64),
    Bytes(&'w [u8]),
    Buffer(Content),
}

impl<'w> Given<'w> {
    fn read(
        function: &Function,
        config: &LaunchConfig,
        words: &'w [Word],
        typed: &[String],
        watch: &Watch,
    ) -> Result<Given<'w>, Failure> {
        let params = function.params();
        if words.len() != params.len() {
            // The sentence is the runtime's.
            check_launch(function, config, &vec![Arg::Scalar(0); words.len()], watch)?;
        }
        let mut ready = Vec::new();
        for (i, ((word, p), text)) in words.iter().zip(params).zip(typed).enumerate() {
            ready.push(match word {
                Word::Scalar(text) => Ready::Scalar(scalar_for(i + 1, p, text)?),
                Word::Bytes(bytes) => Ready::Bytes(bytes),
                Word::Buffer { from, .. } => Ready::Buffer(Content::read(from, text.clone())?),
            });
        }
        Ok(Given(ready))
    }

    fn place(self, device: &Device, low: bool) -> Result<Placed<'w>, Failure> {
        let mut placed = Placed { buffers: Vec::new(), others: Vec::new() };
        for ready in self.0 {
            let (buffer, other) = match ready {
                Ready::Scalar(bits) => (None, Some(Arg::Scalar(bits))),
                Ready::Bytes(bytes) => (None, Some(Arg::Bytes(bytes))),
                Ready::Buffer(content) => (Some(content.place(device, low)?), None),
            };
            placed.buffers.push(buffer);
            placed.others.push(other);
        }
        Ok(placed)
    }
}

/// Arguments with their buffers: of each pair one is there.
struct Placed<'w> {
    buffers: Vec<Option<Buffer>>,
    others: Vec<Option<Arg<'w>>>,
}

impl Placed<'_> {
    fn args(&self) -> Vec<Arg<'_>> {
        let pairs = self.buffers.iter().zip(&self.others);
        pairs.filter_map(|(buffer, other)| buffer.as_ref().map(|b| Arg::from(&b.device)).or(*other)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_arguments() {
        for name in ["k", "_Z4fooPf", "kernel$1", "in", "f(int, float)", "ns::k<float>", "k<3>", "void k<int>(int)"] {
            assert!(is_name(name), "{name}");
        }
        for word in ["1", "-3", "2.5", "0f3F800000", "inf", "nan", "in:x", "zero:4", "in:a::b", "out:f(1):4", ""] {
            assert!(!is_name(word), "{word}");
        }
    }
}
