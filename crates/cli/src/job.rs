//! `handloom run --job`: many launches in one process, which share buffers.
//!
//! The job is checked as a whole before anything runs: a mistake in it runs nothing. Entries that cannot be compiled fail their own launches.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use handloom_check::{Checked, link};
use handloom_diag::SourceMap;
use handloom_runtime::{Arg, Device, Function, LaunchConfig, LaunchError};

use crate::args::RunArgs;
use crate::buffers::{Buffer, Content, Source, Store};
use crate::bug::{self, Panic};
use crate::entries::{Fault, parts};
use crate::image::{self, Input};
use crate::jobfile::{ArgSpec, Job, LaunchSpec, OnTrap};
use crate::launch::{self, Loaded, scalar_for};
use crate::names::Found;
use crate::report::{Failure, Format, Out, Status, errors};
use crate::run::{check_launch, device};
use crate::scalar;
use crate::watch::Watch;
use crate::{input, names};

/// Runs a job.
///
/// # Errors
/// What kept it from starting, or ended it early.
pub fn run_job(path: &str, args: &RunArgs, out: &mut Out) -> Result<Status, Failure> {
    out.set_limit(args.limit.error_limit);
    let watch = Watch::start()?;
    let text = input::read(path)?;
    let wrong = |why: String| Failure::usage(format!("`{path}`: {why}"));
    let job = Job::parse(&text).map_err(wrong)?;
    let base = if path == "-" { PathBuf::new() } else { Path::new(path).parent().unwrap_or(Path::new("")).to_owned() };
    let stores = outputs(&job, &base).map_err(wrong)?;
    let device = device()?;
    let in_job = |f: Failure| Failure { message: at(path, &f.message), ..f };
    let (units, keys) = load_units(&job, &base, &device, out).map_err(in_job)?;
    let low = units.values().filter_map(|u| u.loaded.as_ref()).any(|l| l.module.is_low());
    let buffers = load_buffers(&job, &base, &device, low).map_err(in_job)?;
    let plan = plan(&job, args, (&units, &keys), &buffers, &watch).map_err(in_job)?;
    for (name, store) in &stores {
        if let Some(buffer) = buffers.get(*name) {
            buffer.check_store(store).map_err(in_job)?;
        }
    }
    let compiled = compile(&plan, &units, out);
    let mut status = run_all(&plan, &compiled, &buffers, &device, &job, &watch, out)?;
    for (name, store) in &stores {
        let Some(buffer) = buffers.get(*name) else { continue };
        match buffer.store(store) {
            Ok(line) if out.format == Format::Human => out.line(&line),
            Ok(_) => {}
            Err(failure) => status = status.max(out.failure(&failure)),
        }
    }
    Ok(status)
}

/// A sentence with the job file in front; nothing if all was said.
fn at(path: &str, why: &str) -> String {
    if why.is_empty() { String::new() } else { format!("`{path}`: {why}") }
}

fn outputs<'j>(job: &'j Job, base: &Path) -> Result<BTreeMap<&'j str, Store>, String> {
    let store = |(name, path): (&'j String, &String)| {
        let mut store = Store::parse(path)?;
        store.path = base.join(&store.path);
        Ok((name.as_str(), store))
    };
    job.outputs.iter().map(store).collect()
}

/// A PTX file of a job.
struct Unit {
    /// `None` if nothing in it can be used.
    loaded: Option<Loaded>,
    /// Entries that cannot be used.
    faults: BTreeMap<String, Fault>,
    /// Why an entry that is not known cannot be used, if the text could not be read as a whole.
    broken: Option<Fault>,
    /// The text in that case: what it does not mention is no entry of it.
    text: String,
}

fn module_of<'j>(job: &'j Job, launch: &'j LaunchSpec) -> Option<&'j str> {
    launch.module.as_deref().or(job.module.as_deref())
}

/// All modules of a job by what they are called, and which of them each launch is of. Of a file with several modules, a launch
/// takes the one with its entry.
fn load_units(
    job: &Job,
    base: &Path,
    device: &Device,
    out: &mut Out,
) -> Result<(BTreeMap<String, Unit>, Vec<String>), Failure> {
    let (mut units, mut keys) = (BTreeMap::new(), Vec::new());
    let mut files: HashMap<&str, Vec<Vec<Input>>> = HashMap::new();
    for (i, launch) in job.launches.iter().enumerate() {
        let name = module_of(job, launch)
            .ok_or_else(|| Failure::usage(format!("launch {} names no module, and the job has none", i + 1)))?;
        if !files.contains_key(name) {
            files.insert(name, image::groups(image::read(&base.join(name).to_string_lossy(), name)?));
        }
        let group = image::group_with(files[name].clone(), launch.entry.as_deref());
        let group = group.map_err(|f| Failure { message: format!("launch {}: {}", i + 1, f.message), ..f })?;
        let key = group.first().map_or_else(|| name.to_owned(), |input| input.name.clone());
        keys.push(key.clone());
        if units.contains_key(&key) {
            continue;
        }
        let unit = bug::catch(|| load_unit(group, device, out)).unwrap_or_else(|panic| {
            out.bug(&panic, Some(name));
            let fault = Fault { status: Status::Bug, message: panic.message };
            Ok(Unit { loaded: None, faults: BTreeMap::new(), broken: Some(fault), text: String::new() })
        })?;
        units.insert(key, unit);
    }
    Ok((units, keys))
}

/// Loads the texts that are one module.
fn load_unit(mut group: Vec<Input>, device: &Device, out: &mut Out) -> Result<Unit, Failure> {
    let mut sources = SourceMap::new();
    let others = group.split_off(group.len().min(1));
    let Some(first) = group.pop() else { return Err(Failure::usage("no module")) };
    let text = first.add(&mut sources, out);
    let others: Vec<_> = others.into_iter().map(|input| input.add(&mut sources, out)).collect();
    let parts = parts(text.check(&sources), sources.text(text.file), text.file);
    out.diagnostics(&parts.diagnostics, &sources);
    let faults = parts.faults().into_iter().map(|(name, fault)| (name.to_owned(), fault.clone())).collect();
    let mut broken = fault_of(&parts.diagnostics);
    let mut modules: Option<Vec<_>> = parts.module.map(|module| vec![module]);
    for other in &others {
        let Checked { module, diagnostics } = other.check(&sources);
        out.diagnostics(&diagnostics, &sources);
        broken = broken.or_else(|| fault_of(&diagnostics));
        modules = modules.zip(module).map(|(mut all, module)| {
            all.push(module);
            all
        });
    }
    let joined = modules.map(|modules| link(modules, true)).transpose().unwrap_or_else(|wrong| {
        out.diagnostics(&wrong, &sources);
        broken = fault_of(&wrong);
        None
    });
    let text = if broken.is_some() { sources.text(text.file).to_owned() } else { String::new() };
    let loaded = joined.map(|checked| launch::load(device, &checked, Arc::new(sources))).transpose()?;
    Ok(Unit { loaded, faults, broken, text })
}

fn fault_of(list: &[handloom_diag::Diagnostic]) -> Option<Fault> {
    let first = errors(list).next()?;
    Some(Fault { status: Status::of_all(list), message: first.message.clone() })
}

fn load_buffers<'j>(
    job: &'j Job,
    base: &Path,
    device: &Device,
    low: bool,
) -> Result<HashMap<&'j str, Buffer>, Failure> {
    let mut buffers = HashMap::new();
    for (name, spec) in &job.buffers {
        let (source, origin) = match (&spec.file, spec.zero) {
            (Some(file), _) => (Source::File(base.join(file)), format!("file {file}")),
            (None, zero) => (Source::Zero(zero.unwrap_or(0)), format!("zero:{}", zero.unwrap_or(0))),
        };
        buffers.insert(name.as_str(), Content::read(&source, origin)?.place(device, low)?);
    }
    Ok(buffers)
}

/// A launch that can run, or why it cannot.
struct Planned<'j> {
    entry: String,
    module: &'j str,
    repeat: Option<u32>,
    ready: Result<Ready<'j>, Fault>,
}

struct Ready<'j> {
    function: Function,
    config: LaunchConfig,
    args: Vec<Value<'j>>,
}

/// An argument whose buffer is looked up when it runs.
enum Value<'j> {
    Buffer { name: &'j str, offset: u64 },
    Scalar(u64),
    Bytes(Vec<u8>),
}

impl Value<'_> {
    fn arg<'a>(&'a self, buffers: &'a HashMap<&str, Buffer>) -> Arg<'a> {
        match self {
            Value::Buffer { name, offset } => Arg::Buffer { buffer: &buffers[name].device, offset: *offset },
            Value::Scalar(bits) => Arg::Scalar(*bits),
            Value::Bytes(bytes) => Arg::Bytes(bytes),
        }
    }
}

/// Checks all launches.
fn plan<'j>(
    job: &'j Job,
    args: &RunArgs,
    (units, keys): (&'j BTreeMap<String, Unit>, &'j [String]),
    buffers: &HashMap<&'j str, Buffer>,
    watch: &Watch,
) -> Result<Vec<Planned<'j>>, Failure> {
    let mut plan = Vec::new();
    for (i, spec) in job.launches.iter().enumerate() {
        let number = |why: String| Failure::usage(format!("launch {}: {why}", i + 1));
        let config = job.config(spec, args).map_err(number)?;
        for (k, arg) in spec.args.iter().enumerate() {
            arg.check(job).map_err(|why| number(format!("argument {}: {why}", k + 1)))?;
        }
        let module = keys[i].as_str();
        let unit = &units[module];
        let planned = |entry: String, ready| Planned { entry, module, repeat: spec.repeat, ready };
        let named = spec.entry.as_deref().map(|wanted| unit.name_of(wanted));
        if let Some(fault) = unit.fault(named) {
            plan.push(planned(named.unwrap_or_default().to_owned(), Err(fault.clone())));
            continue;
        }
        let Some(loaded) = &unit.loaded else {
            return Err(number(format!("no entry `{}` in `{module}`", named.unwrap_or_default())));
        };
        let prefix = |f: Failure| Failure { message: format!("launch {}: {}", i + 1, f.message), ..f };
        let function = names::function(&loaded.module, named, watch).map_err(prefix)?;
        let values = values(&function, &spec.args).map_err(prefix)?;
        let list: Vec<Arg<'_>> = values.iter().map(|v| v.arg(buffers)).collect();
        check_launch(&function, &config, &list, watch).map_err(prefix)?;
        plan.push(planned(function.name().to_owned(), Ok(Ready { function, config, args: values })));
    }
    Ok(plan)
}

impl Unit {
    /// The entry that a name means, whether it can be used or not; the name itself if there is none or there are several.
    fn name_of<'a>(&'a self, wanted: &'a str) -> &'a str {
        let sound = self.loaded.iter().flat_map(|l| l.module.entries());
        match names::find(sound.chain(self.faults.keys().map(String::as_str)), wanted) {
            Found::One(name) => name,
            Found::None | Found::Many(_) => wanted,
        }
    }

    /// Why an entry cannot be used.
    fn fault(&self, entry: Option<&str>) -> Option<&Fault> {
        let known = entry.and_then(|name| self.faults.get(name));
        let only = if entry.is_none() { self.faults.values().next() } else { None };
        let missing = match &self.loaded {
            None => true,
            Some(l) => entry.is_some_and(|name| !l.module.entries().any(|e| e == name)),
        } && entry.is_none_or(|name| self.text.is_empty() || self.text.contains(name));
        known.or(only).or(self.broken.as_ref().filter(|_| missing))
    }
}

fn values<'j>(function: &Function, specs: &'j [ArgSpec]) -> Result<Vec<Value<'j>>, Failure> {
    let value = |(i, spec): (usize, &'j ArgSpec)| {
        Ok(match (&spec.buffer, &spec.scalar, &spec.bytes) {
            (Some(name), _, _) => Value::Buffer { name, offset: spec.offset.unwrap_or(0) },
            (None, Some(s), _) => match function.params().get(i) {
                Some(p) => Value::Scalar(scalar_for(i + 1, p, &s.text())?),
                // Too many arguments: the runtime says so.
                None => Value::Scalar(0),
            },
            (None, None, bytes) => {
                let bytes = scalar::hex(bytes.as_deref().unwrap_or_default());
                Value::Bytes(bytes.map_err(|why| Failure::usage(format!("argument {}: {why}", i + 1)))?)
            }
        })
    };
    specs.iter().enumerate().map(value).collect()
}

/// By launch: the time to make its code where it is the first one that needs it, or why there is none.
type Made = Vec<Result<Duration, Fault>>;

/// Makes all code, each entry once for each block shape, in parallel.
fn compile(plan: &[Planned<'_>], units: &BTreeMap<String, Unit>, out: &mut Out) -> Made {
    let mut made: Made = plan.iter().map(|_| Ok(Duration::ZERO)).collect();
    for (name, unit) in units {
        let Some(loaded) = &unit.loaded else { continue };
        let mut first = HashMap::new();
        let mut groups: Vec<(usize, &Ready<'_>)> = Vec::new();
        let mut follows = Vec::new();
        for (i, p) in plan.iter().enumerate().filter(|(_, p)| p.module == *name) {
            let Ok(ready) = &p.ready else { continue };
            let key = (p.entry.as_str(), ready.config.shape(), ready.config.cluster);
            match first.get(&key) {
                Some(k) => follows.push((i, *k)),
                None => {
                    first.insert(key, i);
                    groups.push((i, ready));
                }
            }
        }
        let all: Vec<(&str, &LaunchConfig)> = groups.iter().map(|(_, r)| (r.function.name(), &r.config)).collect();
        let results = bug::catch(|| loaded.module.compile_all(&all)).map_or_else(
            // Which one it was is found by making them one by one.
            |_| groups.iter().map(|(_, r)| bug::catch(|| r.function.compile(&r.config))).collect(),
            |results| results.into_iter().map(Ok).collect::<Vec<_>>(),
        );
        for ((i, ready), result) in groups.into_iter().zip(results) {
            made[i] = match result {
                Ok(Ok(compiled)) => Ok(loaded.lower + compiled.time),
                Ok(Err(LaunchError::Bug(text))) => Err(told_bug(&Panic::new(&text), name, out)),
                Ok(Err(e)) => Err(Fault { status: Status::Usage, message: format!("{}: {e}", ready.function.name()) }),
                Err(panic) => Err(told_bug(&panic, name, out)),
            };
        }
        for (i, k) in follows {
            made[i] = made[k].clone().map(|_| Duration::ZERO);
        }
    }
    made
}

fn told_bug(panic: &Panic, file: &str, out: &mut Out) -> Fault {
    out.bug(panic, Some(file));
    Fault { status: Status::Bug, message: panic.message.clone() }
}

fn run_all(
    plan: &[Planned<'_>],
    made: &Made,
    buffers: &HashMap<&str, Buffer>,
    device: &Device,
    job: &Job,
    watch: &Watch,
    out: &mut Out,
) -> Result<Status, Failure> {
    let mut status = Status::Done;
    for (i, (p, made)) in plan.iter().zip(made).enumerate() {
        let (ready, compile) = match (&p.ready, made) {
            (Ok(ready), Ok(compile)) => (ready, *compile),
            (Err(fault), _) | (Ok(_), Err(fault)) => {
                launch::report_error(&p.entry, &fault.message, out);
                status = status.max(fault.status);
                continue;
            }
        };
        let args: Vec<Arg<'_>> = ready.args.iter().map(|v| v.arg(buffers)).collect();
        let result = launch::launch(&ready.function, &ready.config, &args, p.repeat.unwrap_or(1), watch);
        let printed = device.take_output();
        let mut done = result?;
        done.compile += compile;
        launch::report(&p.entry, &done, &printed, p.repeat.is_some(), out);
        // What ran is told before the next one starts, however long that one takes.
        out.flush();
        if done.trap.is_none() {
            continue;
        }
        status = status.max(Status::Found);
        if out.format == Format::Human {
            let left = plan.len() - i - 1;
            let rest =
                if job.on_trap == OnTrap::Continue || left == 0 { String::new() } else { format!("; {left} not run") };
            out.say(&format!("launch {} of {} (`{}`) trapped{rest}", i + 1, plan.len(), p.entry));
        }
        if job.on_trap == OnTrap::Stop {
            break;
        }
    }
    Ok(status)
}
