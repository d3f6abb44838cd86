//! `handloom run --job`: many launches in one process, which share buffers.
//!
//! The job is checked as a whole before anything runs: a mistake in it runs nothing. Entries that cannot be compiled fail their own launches.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use handloom_ir::simt::Counting;
use handloom_runtime::Failure::Bug;
use handloom_runtime::{Arg, Device, ErrorKind, Function, LaunchConfig, LaunchError, Module, TrapReport};

use crate::args::RunArgs;
use crate::buffers::{Buffers, Content, Source, Written, check_store, read_file};
use crate::bug::Panic;
use crate::documents::{Case, Trapped};
use crate::dtype;
use crate::elements::Element;
use crate::entries::Fault;
use crate::expect::{Compared, Tolerance};
use crate::findings::{self, Collected};
use crate::jobfile::{Job, LaunchSpec, OnTrap};
use crate::launch::{self, Launched, scalar_for};
use crate::npy::{Array, is_npy};
use crate::outputs::{Store, open_all};
use crate::report::{Failure, Format, Out, Status};
use crate::run::{check_launch, device};
use crate::seeds::Others;
use crate::specs::{Argument, ContentSpec, ExpectSpec, Names, numbers};
use crate::traces::traced;
use crate::units::{Key, Units, any_missing, load_units, the_global, with_global};
use crate::values::{self, Bound, Value, address_of, check_fill, global, global_address, read_global, word};
use crate::watch::{Watch, Work};
use crate::{input, names};

/// Runs a job; of a quiet one, nothing is written or compared.
///
/// # Errors
/// What kept it from starting, or ended it early.
pub fn run_job(
    path: &str,
    args: &RunArgs,
    watch: &Watch,
    (found, others): (&mut Collected, &mut Others<'_>),
    out: &mut Out,
) -> Result<Status, Failure> {
    out.set_limit(args.limit.error_limit);
    let wrong = |why: String| Failure::usage(format!("`{path}`: {why}"));
    let in_job = |f: Failure| Failure { message: at(path, &f.message), ..f };
    let (job, base) = read(path)?;
    let stores = outputs(&job, &base).map_err(wrong)?;
    if stores.values().any(|s| s.path.is_none()) {
        out.redirect();
    }
    let opened = open(path, (&job, &base), args, watch, out)?;
    let context = opened.context();
    let results = context.results(&stores).map_err(in_job)?;
    let expected = context.expected(&stores).map_err(in_job)?;
    opened.warn(out);
    let stores = results.iter().map(|(store, _)| *store);
    let outputs = if out.is_quiet() { Vec::new() } else { open_all(stores).map_err(in_job)? };
    let trace = args.tracing.as_ref();
    let compiled = traced(trace, "compile", "all launches", || compile(&opened.plan, &opened.units, watch, out))?;
    let (plan, buffers) = (&opened.plan, &opened.buffers);
    opened.fills.iter().try_for_each(|f| f.fill(buffers)).map_err(in_job)?;
    let mut ended = run_all(plan, compiled, buffers, &job, watch, (out, found))?;
    ended.status = ended.status.max(others(found)?);
    if out.is_quiet() {
        return Ok(ended.status);
    }
    for ((store, from), output) in results.iter().zip(outputs) {
        let write = || {
            let (data, array) = from.read(buffers);
            Written::of(store, data, array).and_then(|w| w.write(output))
        };
        match traced(trace, "copy", "a buffer to a file", write) {
            Ok(line) if out.format == Format::Human => out.line(&line),
            Ok(_) => {}
            Err(failure) => ended.status = ended.status.max(out.failure(&failure)),
        }
    }
    if !expected.is_empty() && !ended.complete {
        out.note("nothing is compared with `expect`: not all launches were run");
        return Ok(ended.status);
    }
    for e in &expected {
        if !e.check(buffers, out) {
            let trap = Some(Trapped::placeless("not_as_expected", format!("`{}` is not as expected", e.name)));
            found.add_case(Case { what: "expect", entry: e.name.to_owned(), seconds: 0.0, trap, program: None });
            ended.status = ended.status.max(Status::Found);
        }
    }
    Ok(ended.status)
}

/// A job, and the folder that its files are named from.
///
/// # Errors
/// It cannot be read, or is no job.
pub fn read(path: &str) -> Result<(Job, PathBuf), Failure> {
    let job = Job::parse(&input::read(path)?).map_err(|why| Failure::usage(format!("`{path}`: {why}")))?;
    let base = if path == "-" { PathBuf::new() } else { Path::new(path).parent().unwrap_or(Path::new("")).to_owned() };
    Ok((job, base))
}

/// A job with all that its launches take; nothing was compiled, and no variable is filled.
pub struct Opened<'j> {
    job: &'j Job,
    base: &'j Path,
    names: Names<'j>,
    units: Units<'j>,
    keys: Vec<Key<'j>>,
    /// What the job's own `globals` say.
    fills: Vec<Fill<'j>>,
    /// Its buffers.
    pub buffers: Buffers,
    /// Its launches in order.
    pub plan: Vec<Planned<'j>>,
}

/// Opens a job, and checks all its launches.
///
/// # Errors
/// What is wrong with it, or what it takes.
pub fn open<'j>(
    path: &str,
    (job, base): (&'j Job, &'j Path),
    args: &RunArgs,
    watch: &Watch,
    out: &mut Out,
) -> Result<Opened<'j>, Failure> {
    let in_job = |f: Failure| Failure { message: at(path, &f.message), ..f };
    let device = device()?;
    let names = Names::of(&job.buffers, &job.tensor_maps).map_err(|why| in_job(Failure::usage(why)))?;
    let (units, keys) = load_units(job, base, (&device, args.counts != Counting::Nothing), out).map_err(in_job)?;
    let fill = || load_buffers(job, base, &device, &names, &units);
    let buffers = traced(args.tracing.as_ref(), "copy", "files to buffers", fill).map_err(in_job)?;
    let mut opened = Opened { job, base, names, units, keys, fills: Vec::new(), buffers, plan: Vec::new() };
    opened.fills = opened.context().fills().map_err(in_job)?;
    opened.plan = opened.context().plan(args, watch).map_err(in_job)?;
    Ok(opened)
}

impl<'j> Opened<'j> {
    fn context(&self) -> Context<'_, 'j> {
        let Opened { job, base, names, units, keys, buffers, .. } = self;
        Context { job, base, names, units, keys, buffers }
    }

    /// Warns of arrays of another type than the kernels'. The same is said once.
    pub fn warn(&self, out: &mut Out) {
        let mut told = Vec::new();
        for ready in self.plan.iter().filter_map(|p| p.ready.as_ref().ok()) {
            let mut list = dtype::warnings(&ready.function, &ready.values, &self.buffers);
            list.retain(|d| !told.contains(d));
            out.diagnostics(&list, ready.function.module().sources());
            told.extend(list);
        }
    }

    /// Fills the variables that the job itself names.
    ///
    /// # Errors
    /// An address is not known.
    pub fn fill(&self) -> Result<(), Failure> {
        self.fills.iter().try_for_each(|f| f.fill(&self.buffers))
    }
}

/// A sentence with the job file in front; nothing if all was said.
fn at(path: &str, why: &str) -> String {
    if why.is_empty() { String::new() } else { format!("`{path}`: {why}") }
}

fn outputs<'j>(job: &'j Job, base: &Path) -> Result<BTreeMap<&'j str, Store>, String> {
    let store = |(name, path): (&'j String, &String)| {
        let mut store = Store::parse(path)?;
        store.path = store.path.map(|p| base.join(p));
        Ok((name.as_str(), store))
    };
    job.outputs.iter().map(store).collect()
}

fn load_buffers(
    job: &Job,
    base: &Path,
    device: &Device,
    names: &Names<'_>,
    units: &Units<'_>,
) -> Result<Buffers, Failure> {
    let modules = || units.values().filter_map(|u| u.loaded.as_ref()).map(|l| &l.module);
    let low = modules().any(Module::is_low);
    // Where modules of both sizes meet, addresses have the larger one.
    let word = if low && modules().all(Module::is_low) { 4 } else { 8 };
    let mut contents = Vec::new();
    for (name, spec) in &job.buffers {
        let place = format!("buffer `{name}`");
        let made = spec.made(name, base, names).map_err(|why| Failure::usage(format!("{place}: {why}")))?;
        // A sentence about a file names the file.
        let is_file = matches!(made.from, Source::File { .. });
        contents.push(Content::read(&made, word).map_err(|f| if is_file { f } else { values::at(&place, f) })?);
    }
    Buffers::place(contents, device, low, |key, offset| {
        let (module, name) = the_global(units, key)?;
        global_address(module, name, offset)
    })
}

/// What a job has before its launches are planned.
struct Context<'a, 'j> {
    job: &'j Job,
    base: &'a Path,
    names: &'a Names<'j>,
    units: &'a Units<'j>,
    /// By launch, its module.
    keys: &'a [Key<'j>],
    buffers: &'a Buffers,
}

/// A variable and what it is filled with.
pub struct Fill<'a> {
    module: Module,
    name: &'a str,
    offset: Option<u64>,
    content: Content,
}

impl Fill<'_> {
    fn fill(&self, buffers: &Buffers) -> Result<(), Failure> {
        values::fill(&self.module, self.name, self.offset, &self.content, buffers)
    }
}

/// A buffer or a variable.
enum Memory<'a> {
    Buffer(usize),
    Global { module: &'a Module, name: &'a str },
}

impl Memory<'_> {
    fn read<'b>(&self, buffers: &'b Buffers) -> (Vec<u8>, Option<&'b Array>) {
        match self {
            Memory::Buffer(i) => (buffers.0[*i].device.to_vec(), buffers.0[*i].array.as_ref()),
            Memory::Global { module, name } => (read_global(module, name), None),
        }
    }

    /// Its bytes, and its type and shape if they are known.
    fn size<'b>(&self, buffers: &'b Buffers) -> (u64, Option<&'b Array>) {
        match self {
            Memory::Buffer(i) => (buffers.0[*i].device.len(), buffers.0[*i].array.as_ref()),
            Memory::Global { module, name } => (global(module, name).map_or(0, |(_, size)| size), None),
        }
    }
}

/// What is compared after the launches.
struct Expected<'a> {
    name: &'a str,
    from: Memory<'a>,
    /// The first byte that is compared.
    offset: usize,
    want: Vec<u8>,
    array: Array,
    element: &'static Element,
    tolerance: Tolerance,
}

impl Expected<'_> {
    fn check(&self, buffers: &Buffers, out: &mut Out) -> bool {
        let (data, _) = self.from.read(buffers);
        let got = &data[self.offset..self.offset + self.want.len()];
        let (name, want, element) = (self.name, self.want.as_slice(), self.element);
        Compared { name, element, shape: &self.array.shape, tolerance: self.tolerance, got, want }.report(out)
    }
}

impl<'a, 'j> Context<'a, 'j> {
    fn fill(&self, module: &Module, name: &'j str, spec: &ContentSpec) -> Result<Fill<'j>, Failure> {
        let made = spec.made(name, self.base, self.names).map_err(Failure::usage)?;
        let content = Content::read(&made, word(module))?;
        check_fill(module, name, spec.offset, &content)?;
        // What addresses name is looked up now, not after hours of launches.
        content.bytes(|place| address_of(place, self.buffers, module))?;
        Ok(Fill { module: module.clone(), name, offset: spec.offset, content })
    }

    /// What the job's own `globals` say: for all modules that have the variable.
    fn fills(&self) -> Result<Vec<Fill<'j>>, Failure> {
        let mut fills = Vec::new();
        for (key, spec) in &self.job.globals {
            let (modules, name) = with_global(self.units, key);
            if modules.is_empty() && !any_missing(self.units) {
                the_global(self.units, key)?;
            }
            for module in modules {
                fills.push(self.fill(module, name, spec).map_err(|f| values::at(&format!("variable `{key}`"), f))?);
            }
        }
        Ok(fills)
    }

    /// The buffer or variable of a name; none if it may be a variable of a module that cannot be used.
    fn named(&self, what: &str, name: &'j str) -> Result<Option<Memory<'a>>, Failure>
    where
        'j: 'a,
    {
        if let Some(i) = self.names.get(name) {
            return Ok(Some(Memory::Buffer(i)));
        }
        match the_global(self.units, name) {
            Ok((module, name)) => Ok(Some(Memory::Global { module, name })),
            Err(_) if any_missing(self.units) => Ok(None),
            Err(f) => Err(Failure {
                message: format!("{what} of `{name}`, which is no buffer of the job: {}", f.message),
                ..f
            }),
        }
    }

    /// What is written, and from where.
    fn results(&self, stores: &'a BTreeMap<&'j str, Store>) -> Result<Vec<(&'a Store, Memory<'a>)>, Failure> {
        let mut results = Vec::new();
        for (name, store) in stores {
            if let Some(from) = self.named("output", name)? {
                let (bytes, array) = from.size(self.buffers);
                check_store(store, bytes, array)?;
                results.push((store, from));
            }
        }
        Ok(results)
    }

    /// What is compared.
    fn expected(&self, stores: &BTreeMap<&'j str, Store>) -> Result<Vec<Expected<'a>>, Failure>
    where
        'j: 'a,
    {
        let mut all = Vec::new();
        for (name, spec) in &self.job.expect {
            let wrong = |why: String| Failure::usage(format!("expect of `{name}`: {why}"));
            let Some(from) = self.named("expect", name)? else { continue };
            let (bytes, array) = from.size(self.buffers);
            let stored = stores.get(name.as_str()).and_then(|s| s.array.as_ref());
            let known = array.or(stored).and_then(|a| a.element);
            let (want, shape, element) =
                wanted(spec, self.base, known).map_err(|f| values::at(&format!("expect of `{name}`"), f))?;
            let offset = spec.offset.unwrap_or(0);
            let length = u64::try_from(want.len()).unwrap_or(u64::MAX);
            let fits = if spec.offset.is_some() {
                offset.checked_add(length).is_some_and(|end| end <= bytes)
            } else {
                length == bytes
            };
            if !fits {
                let at = if offset > 0 { format!(" from byte {offset} on") } else { String::new() };
                let help = if spec.offset.is_none() && length < bytes { "; `offset` compares a part" } else { "" };
                let why = wrong(format!("{length} bytes{at} for `{name}`, which has {bytes} bytes{help}"));
                return Err(if spec.file.is_some() { Failure::file(why.message) } else { why });
            }
            let tolerance = Tolerance::new(spec.abs, spec.rel, spec.ulp, element).map_err(wrong)?;
            let offset = usize::try_from(offset).unwrap_or(0);
            all.push(Expected { name, from, offset, want, array: Array::of(element, shape), element, tolerance });
        }
        Ok(all)
    }
}

/// The numbers that are expected, their shape and their type. `known` is the type of the buffer.
fn wanted(
    spec: &ExpectSpec,
    base: &Path,
    known: Option<&'static Element>,
) -> Result<(Vec<u8>, Vec<u64>, &'static Element), Failure> {
    let given = spec.ty.as_deref().map(Element::named).transpose().map_err(Failure::usage)?;
    match (&spec.values, &spec.file) {
        (Some(raw), None) => {
            let element = given.or(known);
            let element = element.ok_or_else(|| Failure::usage("`values` need a `type`, as \"f32\""))?;
            let (bytes, shape) = numbers(raw, element).map_err(Failure::usage)?;
            Ok((bytes, shape, element))
        }
        (None, Some(file)) => {
            let path = base.join(file);
            // Without a type, bytes are compared.
            let plain = if is_npy(&path) { given } else { given.or(known).or(Element::named("u8").ok()) };
            let (bytes, array) = read_file(&path, plain)?;
            let array = array.ok_or_else(|| Failure::usage(format!("`{file}` has no type")))?;
            let element = array.element.or(given).or(known.filter(|e| e.bytes() as u64 == array.element_bytes()));
            let element = element.ok_or_else(|| {
                Failure::usage(format!("`{file}` holds {}: `type` must say what that is", array.type_name()))
            })?;
            Ok((bytes, array.shape, element))
        }
        _ => Err(Failure::usage("expected either `values` or `file`")),
    }
}

/// A launch that can run, or why it cannot.
pub struct Planned<'j> {
    /// The name of its entry.
    pub entry: String,
    key: Key<'j>,
    /// What the job says of it.
    pub spec: &'j LaunchSpec,
    /// What runs.
    pub ready: Result<Ready<'j>, Fault>,
}

/// A launch that can run.
pub struct Ready<'j> {
    /// Its entry.
    pub function: Function,
    /// Its shape and manner.
    pub config: LaunchConfig,
    values: Vec<Value>,
    bound: Vec<Bound>,
    fills: Vec<Fill<'j>>,
}

impl Ready<'_> {
    /// Fills the variables that the launch names.
    ///
    /// # Errors
    /// An address is not known.
    pub fn fill(&self, buffers: &Buffers) -> Result<(), Failure> {
        self.fills.iter().try_for_each(|f| f.fill(buffers))
    }

    /// Its arguments.
    pub fn args<'b>(&'b self, buffers: &'b Buffers) -> Vec<Arg<'b>> {
        self.bound.iter().map(|b| b.arg(buffers)).collect()
    }
}

impl<'j> Context<'_, 'j> {
    /// Checks all launches.
    fn plan(&self, args: &RunArgs, watch: &Watch) -> Result<Vec<Planned<'j>>, Failure> {
        let mut plan = Vec::new();
        for (i, spec) in self.job.launches.iter().enumerate() {
            let number = |why: String| Failure::usage(format!("launch {}: {why}", i + 1));
            let mut config = self.job.config(spec, args).map_err(number)?;
            findings::ask(args, &mut config);
            if args.many_seeds.is_some() {
                config.seed = args.seed.unwrap_or(config.seed);
            }
            config.stop = watch.stop().clone();
            let named = |k: usize, why: String| number(format!("argument {}: {why}", k + 1));
            let arguments = spec.args.iter().enumerate();
            let arguments = arguments.map(|(k, a)| a.argument(self.names).map_err(|why| named(k, why)));
            let arguments = arguments.collect::<Result<Vec<Argument<'_>>, _>>()?;
            let key = self.keys[i];
            let unit = &self.units[&key];
            let planned = |entry: String, ready| Planned { entry, key, spec, ready };
            let named = spec.entry.as_deref().map(|wanted| unit.name_of(wanted));
            if let Some(fault) = unit.fault(named) {
                plan.push(planned(named.unwrap_or_default().to_owned(), Err(fault.clone())));
                continue;
            }
            let Some(loaded) = &unit.loaded else {
                return Err(number(format!("no entry `{}` in `{}`", named.unwrap_or_default(), key.module)));
            };
            let prefix = |f: Failure| values::at(&format!("launch {}", i + 1), f);
            let function = names::function(&loaded.module, named).map_err(prefix)?;
            let ready = self.ready(function, config, &arguments, spec, watch).map_err(prefix)?;
            plan.push(planned(ready.function.name().to_owned(), Ok(ready)));
        }
        Ok(plan)
    }

    fn ready(
        &self,
        function: Function,
        config: LaunchConfig,
        arguments: &[Argument<'_>],
        spec: &'j LaunchSpec,
        watch: &Watch,
    ) -> Result<Ready<'j>, Failure> {
        let module = function.module();
        let mut values = Vec::new();
        for (i, argument) in arguments.iter().enumerate() {
            let param = function.params().get(i);
            values.push(match (argument, param) {
                (Argument::Buffer { index, offset }, _) => Value::Buffer { index: *index, offset: *offset },
                (Argument::Scalar(s), Some(p)) => Value::Scalar(scalar_for(i + 1, p, &s.text())?),
                // Too many arguments: the runtime says so.
                (Argument::Scalar(_), None) => Value::Scalar(0),
                (Argument::Item(item), p) => {
                    let value = Value::item(item, p, word(module));
                    value.map_err(|why| Failure::usage(format!("argument {}: {why}", i + 1)))?
                }
            });
        }
        let bound = values.iter().enumerate().map(|(i, v)| v.bind(i + 1, self.buffers, module));
        let bound = bound.collect::<Result<Vec<_>, _>>()?;
        let fills = spec.globals.iter().map(|(name, content)| {
            self.fill(module, name, content).map_err(|f| values::at(&format!("variable `{name}`"), f))
        });
        let fills = fills.collect::<Result<Vec<_>, _>>()?;
        let ready = Ready { config, values, bound, fills, function };
        check_launch(&ready.function, &ready.config, &ready.args(self.buffers), watch)?;
        Ok(ready)
    }
}

/// Time that a launch has taken before it runs, if it is the first one that needs its code.
#[derive(Clone, Copy, Default)]
struct Took {
    /// Time to make its module's IR.
    lower: Duration,
    /// Time to make its code, which counts for its time limit.
    compile: Duration,
}

/// Why a launch has no code.
enum NotMade {
    Fault(Fault),
    /// Its time was over.
    Trap(Box<TrapReport>),
}

/// By launch.
type Made = Vec<Result<Took, NotMade>>;

/// Makes all code, each entry once for each block shape, in parallel.
///
/// # Errors
/// A signal ended it.
fn compile(plan: &[Planned<'_>], units: &Units<'_>, watch: &Watch, out: &mut Out) -> Result<Made, Failure> {
    let mut made: Made = plan.iter().map(|_| Ok(Took::default())).collect();
    for (of, unit) in units {
        let Some(loaded) = &unit.loaded else { continue };
        let mut first = HashMap::new();
        let mut groups: Vec<(usize, &Ready<'_>)> = Vec::new();
        let mut follows = Vec::new();
        for (i, p) in plan.iter().enumerate().filter(|(_, p)| p.key == *of) {
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
        let shown = match &all[..] {
            [(entry, _)] => (*entry).to_owned(),
            all => format!("{} entries", all.len()),
        };
        let results = watch.during(&shown, Work::Compile, || loaded.module.compile_all(&all));
        for ((i, ready), result) in groups.into_iter().zip(results) {
            let wrong = |e| Fault { status: Status::Usage, message: format!("{}: {e}", ready.function.name()) };
            made[i] = match result {
                Ok(compiled) => Ok(Took { lower: loaded.lower_of(&ready.function), compile: compiled.time }),
                Err(LaunchError::Stopped) => return Err(watch.stopped("compiling")),
                Err(LaunchError::Trap(trap)) => Err(NotMade::Trap(trap)),
                Err(LaunchError::Failed(Bug(text))) => {
                    Err(NotMade::Fault(told_bug(&Panic::new(&text), of.module, out)))
                }
                Err(e) if e.kind() == ErrorKind::Unsupported => {
                    Err(NotMade::Fault(Fault { status: Status::Unsupported, ..wrong(e) }))
                }
                Err(e) => Err(NotMade::Fault(wrong(e))),
            };
        }
        for (i, k) in follows {
            made[i] = match &made[k] {
                Err(NotMade::Fault(fault)) => Err(NotMade::Fault(fault.clone())),
                // It has time of its own to wait for what is still being made.
                Err(NotMade::Trap(_)) | Ok(_) => Ok(Took::default()),
            };
        }
    }
    Ok(made)
}

fn told_bug(panic: &Panic, file: &str, out: &mut Out) -> Fault {
    out.bug(panic, Some(file));
    Fault { status: Status::Bug, message: panic.message.clone() }
}

/// How the launches ended.
struct Ended {
    status: Status,
    /// Whether all of them were run, so that results can be compared.
    complete: bool,
}

fn run_all(
    plan: &[Planned<'_>],
    made: Made,
    buffers: &Buffers,
    job: &Job,
    watch: &Watch,
    (out, found): (&mut Out, &mut Collected),
) -> Result<Ended, Failure> {
    let mut ended = Ended { status: Status::Done, complete: true };
    for (i, (p, made)) in plan.iter().zip(made).enumerate() {
        let fault = match (&p.ready, &made) {
            (Err(fault), _) | (Ok(_), Err(NotMade::Fault(fault))) => Some(fault),
            (Ok(_), Ok(_) | Err(NotMade::Trap(_))) => None,
        };
        if let Some(fault) = fault {
            launch::report_error(&p.entry, &fault.message, out);
            let trap = Some(Trapped::placeless("not_run", fault.message.clone()));
            found.add_case(Case { what: "launch", entry: p.entry.clone(), seconds: 0.0, trap, program: None });
            ended.status = ended.status.max(fault.status);
            ended.complete = false;
        }
        let done = match (&p.ready, made) {
            (Err(_), _) | (Ok(_), Err(NotMade::Fault(_))) => continue,
            (Ok(_), Err(NotMade::Trap(trap))) => Launched::trapped(trap),
            (Ok(ready), Ok(took)) => {
                ready.fill(buffers)?;
                let args = ready.args(buffers);
                let (repeat, spent) = (p.spec.repeat.unwrap_or(1), took.compile);
                let mut done = launch::launch(&ready.function, &ready.config, &args, repeat, spent, watch, out)?;
                done.compile += took.lower + took.compile;
                done
            }
        };
        if let Ok(ready) = &p.ready {
            found.add(&p.entry, &done, ready.config.seed);
            found.count(&ready.config);
        }
        if done.stopped {
            ended.status = ended.status.max(out.failure(&watch.stopped("the launch")));
            ended.complete = false;
            break;
        }
        launch::report(&p.entry, &done, p.spec.repeat.is_some(), out);
        if found.is_enough() {
            ended.complete = false;
            break;
        }
        // What ran is told before the next one starts, however long that one takes.
        out.flush();
        let Some(trap) = &done.trap else { continue };
        // Its time was over before it ran.
        ended.complete &= !trap.launch().run.is_zero();
        ended.status = ended.status.max(Status::Found);
        if out.format == Format::Human {
            let left = plan.len() - i - 1;
            let rest =
                if job.on_trap == OnTrap::Continue || left == 0 { String::new() } else { format!("; {left} not run") };
            out.say(&format!("launch {} of {} (`{}`) trapped{rest}", i + 1, plan.len(), p.entry));
        }
        if job.on_trap == OnTrap::Stop {
            ended.complete = false;
            break;
        }
    }
    Ok(ended)
}
