//! `handloom run`: one launch.

use std::sync::Arc;
use std::time::Duration;

use handloom_check::{Checked, link};
use handloom_diag::SourceMap;
use handloom_ir::simt::Counting;
use handloom_runtime::{
    Arg, AsyncOrder, Backend, Bounds, CodeCache, Device, Engine, Function, LaunchConfig, Module, PreparedLaunch, Store,
};

use crate::args::RunArgs;
use crate::buffers::{Buffers, Content, Written, check_store};
use crate::findings::Collected;
use crate::launch::{self, Loaded, failed, scalar_for};
use crate::npy::Array;
use crate::outputs::{Output, open_all};
use crate::report::{Failure, Format, Out, Status};
use crate::seeds::Others;
use crate::traces::traced;
use crate::values::{Bound, Value, check_fill, fill, global, global_address, read_global, word};
use crate::watch::Watch;
use crate::words::{Word, Words};
use crate::{bug, dtype, findings, image, names};

/// Loads modules, launches an entry, writes its buffers; of a quiet one, nothing is written.
///
/// # Errors
/// What kept it from running.
pub fn run(
    args: &RunArgs,
    watch: &Watch,
    (found, others): (&mut Collected, &mut Others<'_>),
    out: &mut Out,
) -> Result<Status, Failure> {
    out.set_limit(args.limit.error_limit);
    if writes_stdout(args) {
        out.redirect();
    }
    let Prepared { loaded, function, config, ready } = prepare(args, args.file.as_deref().unwrap_or("-"), watch, out)?;
    let outputs = if out.is_quiet() { Vec::new() } else { open_all(ready.words.stores())? };
    ready.fill_globals(&loaded.module)?;
    let mut done = launch::launch(&function, &config, &ready.args(), 1, Duration::ZERO, watch, out)?;
    done.compile += loaded.lower;
    if !done.stopped {
        launch::report(function.name(), &done, false, out);
    }
    found.add(function.name(), &done, config.seed);
    found.count(&config);
    if done.stopped {
        return Err(watch.stopped("the launch"));
    }
    let status = if done.trap.is_some() { Status::Found } else { Status::Done };
    let status = status.max(others(found)?);
    if out.is_quiet() {
        return Ok(status);
    }
    let write = || ready.write(&loaded.module, outputs, out);
    Ok(traced(args.tracing.as_ref(), "copy", "buffers to files", write).into_iter().fold(status, Status::max))
}

/// A launch that can run.
pub struct Prepared {
    /// Its module.
    pub loaded: Loaded,
    /// Its entry.
    pub function: Function,
    /// Its shape and manner.
    pub config: LaunchConfig,
    /// Its arguments.
    pub ready: Ready,
}

/// Loads a file and all that a launch of it takes; nothing is run or written.
///
/// # Errors
/// What keeps it from running.
pub fn prepare(args: &RunArgs, file: &str, watch: &Watch, out: &mut Out) -> Result<Prepared, Failure> {
    let device = device()?;
    let first = args.rest.first().map(String::as_str).filter(|word| is_name(word));
    let loaded = bug::catch(|| load(&device, file, first, args, out)).unwrap_or_else(|panic| {
        out.bug(&panic, Some(file));
        Err(Failure::told(Status::Bug))
    })?;
    let (entry, typed) = split(&args.rest, &loaded.module);
    let function = names::function(&loaded.module, entry)?;
    let config = config(args)?;
    let words = words(args, typed)?;
    let fill = || Ready::new(&function, &config, words, &device, watch);
    let ready = traced(args.tracing.as_ref(), "copy", "files to buffers", fill)?;
    let uses = dtype::warnings(&function, &ready.values, &ready.buffers);
    out.diagnostics(&uses, loaded.module.sources());
    Ok(Prepared { loaded, function, config, ready })
}

/// All that was typed after the entry, and for variables.
fn words(args: &RunArgs, typed: &[String]) -> Result<Words, Failure> {
    let mut words = Words::default();
    for (i, text) in typed.iter().enumerate() {
        words.arg(text).map_err(|why| Failure::usage(format!("argument {}: {why}", i + 1)))?;
    }
    let of_globals = |why| Failure::usage(format!("--global {why}"));
    args.global.iter().try_for_each(|text| words.global(text)).map_err(of_globals)?;
    let of_outputs = |why| Failure::usage(format!("--global-out {why}"));
    args.global_out.iter().try_for_each(|text| words.global_output(text)).map_err(of_outputs)?;
    Ok(words)
}

/// Whether something is written to standard output, so that the report must go elsewhere. Mistakes are told later.
fn writes_stdout(args: &RunArgs) -> bool {
    let mut words = Words::default();
    for text in &args.rest {
        // The entry is a word too.
        let _ = words.arg(text);
    }
    for text in &args.global_out {
        let _ = words.global_output(text);
    }
    for text in &args.global {
        let _ = words.global(text);
    }
    words.stores().any(|store| store.path.is_none())
}

/// A device.
///
/// # Errors
/// The host has no address space for it.
pub fn device() -> Result<Device, Failure> {
    Device::with_code(&CodeCache::new(Store::of_environment()))
        .map_err(|e| Failure::file(format!("the host has no room for a device: {e}")))
}

/// Reads, checks and joins files, and tells of their faults. Of a file with several modules, the one with the entry is taken.
fn load(device: &Device, file: &str, entry: Option<&str>, args: &RunArgs, out: &mut Out) -> Result<Loaded, Failure> {
    let mut groups = image::groups(image::read(file, file)?);
    let part = image::group_with(&groups, entry)?;
    let mut inputs = if groups.is_empty() { Vec::new() } else { groups.swap_remove(part) };
    for link in &args.link {
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
    launch::load(device, &joined, Arc::new(sources), args.counts != Counting::Nothing)
}

/// The entry, if it is named, and the arguments behind it.
fn split<'a>(rest: &'a [String], module: &Module) -> (Option<&'a str>, &'a [String]) {
    match rest.split_first() {
        Some((first, words)) if module.entries().any(|e| e == first) || is_name(first) => (Some(first), words),
        _ => (None, rest),
    }
}

/// Whether a word begins as a form of argument does, as `in:` or `s32:`; two colons are those of a path in C++ or Rust.
fn is_form(word: &str) -> bool {
    word.split_once(':').is_some_and(|(head, rest)| {
        !rest.starts_with(':') && !head.is_empty() && head.chars().all(|c| c.is_ascii_alphanumeric())
    })
}

/// Whether a word can only be meant as the name of an entry: one of PTX, or one of C++ or Rust as it is read.
fn is_name(word: &str) -> bool {
    let is_long = word.contains("::") || word.ends_with([')', '>']);
    if is_long && !is_form(word) {
        return true;
    }
    let is_number = word.parse::<f64>().is_ok();
    let mut chars = word.chars();
    let first = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '_' | '$' | '%'));
    first && !is_number && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%'))
}

fn config(args: &RunArgs) -> Result<LaunchConfig, Failure> {
    let mut config = LaunchConfig::new(args.grid.unwrap_or([1; 3]), args.block.unwrap_or([1; 3]));
    config.shared_bytes = args.shared;
    config.cooperative = args.cooperative;
    config.cluster = args.cluster;
    config.seed = args.seed.unwrap_or(0);
    config.async_order = args.async_order.map(AsyncOrder::from).or(config.async_order);
    config.engine = args.engine.map_or(Engine::Jit, Engine::from);
    config.bounds = args.bounds.map_or(Bounds::Exact, Bounds::from);
    config.backend = args.backend.map_or(config.backend, Backend::from);
    config.timeout = args.timeout;
    config.stack_bytes = args.stack.unwrap_or(config.stack_bytes);
    config.threads = args.threads.map_or(0, std::num::NonZeroUsize::get);
    findings::ask(args, &mut config);
    Ok(config)
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

/// A launch whose buffers are on the device.
pub struct Ready {
    words: Words,
    values: Vec<Value>,
    bound: Vec<Bound>,
    /// Its buffers.
    pub buffers: Buffers,
    /// What variables are filled with.
    globals: Vec<Content>,
}

impl Ready {
    /// Reads files and checks the launch; takes device memory last.
    fn new(
        function: &Function,
        config: &LaunchConfig,
        words: Words,
        device: &Device,
        watch: &Watch,
    ) -> Result<Ready, Failure> {
        let (module, params) = (function.module(), function.params());
        let word = word(module);
        if words.args.len() != params.len() {
            // The sentence is the runtime's.
            check_launch(function, config, &vec![Arg::Scalar(0); words.args.len()], watch)?;
        }
        let mut values = Vec::new();
        for (i, (arg, p)) in words.args.iter().zip(params).enumerate() {
            let wrong = |why| Failure::usage(format!("argument {}: {why}", i + 1));
            values.push(match arg {
                Word::Scalar(text) => Value::Scalar(scalar_for(i + 1, p, text)?),
                Word::Buffer(index) => Value::Buffer { index: *index, offset: 0 },
                Word::Item(item) => Value::item(item, Some(p), word).map_err(wrong)?,
            });
        }
        let contents = words.buffers.iter().map(|made| Content::read(made, word)).collect::<Result<Vec<_>, _>>()?;
        for (made, content) in words.buffers.iter().zip(&contents) {
            made.to.iter().try_for_each(|store| check_store(store, content.len(), content.array()))?;
        }
        let mut globals = Vec::new();
        for (variable, made) in &words.globals {
            let content = Content::read(made, word)?;
            check_fill(module, &variable.name, variable.offset, &content)?;
            globals.push(content);
        }
        for (name, store) in &words.global_outputs {
            check_store(store, global(module, name)?.1, filled_with(&words, &globals, name))?;
        }
        let buffers =
            Buffers::place(contents, device, module.is_low(), |name, offset| global_address(module, name, offset))?;
        let bound = values.iter().enumerate().map(|(i, v)| v.bind(i + 1, &buffers, module));
        let bound = bound.collect::<Result<Vec<_>, _>>()?;
        let ready = Ready { values, bound, buffers, globals, words };
        check_launch(function, config, &ready.args(), watch)?;
        Ok(ready)
    }

    /// Its arguments.
    pub fn args(&self) -> Vec<Arg<'_>> {
        self.bound.iter().map(|b| b.arg(&self.buffers)).collect()
    }

    /// Fills variables of its module as was asked.
    ///
    /// # Errors
    /// There is no such variable, or it is smaller.
    pub fn fill_globals(&self, module: &Module) -> Result<(), Failure> {
        for ((variable, _), content) in self.words.globals.iter().zip(&self.globals) {
            fill(module, &variable.name, variable.offset, content, &self.buffers)?;
        }
        Ok(())
    }

    /// Writes buffers and variables to their files, in the order of [`Words::stores`]. Returns what could not be written.
    fn write(&self, module: &Module, outputs: Vec<Output>, out: &mut Out) -> Vec<Status> {
        let of_buffers = self.words.buffers.iter().zip(&self.buffers.0).filter_map(|(made, buffer)| {
            let store = made.to.as_ref()?;
            Some(Written::of(store, buffer.device.to_vec(), buffer.array.as_ref()))
        });
        let of_globals = self.words.global_outputs.iter().map(|(name, store)| {
            let data = read_global(module, name);
            Written::of(store, data, filled_with(&self.words, &self.globals, name))
        });
        let mut wrong = Vec::new();
        for (written, output) in of_buffers.chain(of_globals).zip(outputs) {
            match written.and_then(|w| w.write(output)) {
                Ok(line) if out.format == Format::Human => out.line(&line),
                Ok(_) => {}
                Err(failure) => wrong.push(out.failure(&failure)),
            }
        }
        wrong
    }
}

/// The array that all of a variable was filled with.
fn filled_with<'c>(words: &Words, contents: &'c [Content], name: &str) -> Option<&'c Array> {
    let mut pairs = words.globals.iter().zip(contents);
    let (_, content) = pairs.find(|((variable, _), _)| variable.name == name && variable.offset.is_none())?;
    content.array()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_arguments() {
        for name in ["k", "_Z4fooPf", "kernel$1", "in", "f(int, float)", "ns::k<float>", "k<3>", "void k<int>(int)"] {
            assert!(is_name(name), "{name}");
        }
        for word in [
            "1",
            "-3",
            "2.5",
            "0f3F800000",
            "inf",
            "nan",
            "in:x",
            "zero:4",
            "in:a::b",
            "out:f(1):4",
            "struct:f32:1,bytes:(00)",
            "",
        ] {
            assert!(!is_name(word), "{word}");
        }
    }
}
