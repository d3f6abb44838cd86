//! Launches: shapes and options from Python, the run without the lock of the interpreter, checks with several seeds.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use handloom::{Error, ErrorKind};
use handloom_runtime::{
    Arg, Backend, Bounds, Check, CheckConfig, Checks, Engine, Finding, Function, HostBuffer, LaunchConfig,
    LaunchReport, PreparedLaunch, RaceOptions, Sink, StopHandle,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};

use crate::args::{self, Named, Value};
use crate::counted;
use crate::errors::raise;
use crate::signals::{self, Interruptible};
use crate::stop::PyStop;
use crate::told::{PyFinding, PyReport};

/// What is said of launches that say nothing themselves.
#[derive(Clone, Default)]
pub(crate) struct Checking {
    pub(crate) checks: Option<Checks>,
    pub(crate) seeds: u64,
    pub(crate) counts: bool,
}

/// What applies now, and who hears of each launch.
pub(crate) static CHECKING: Mutex<Option<(Checking, Py<PyAny>)>> = Mutex::new(None);

/// Three numbers from an integer or a tuple of up to three.
fn dims(name: &str, o: &Bound<'_, PyAny>) -> PyResult<[u32; 3]> {
    let wrong = || {
        let came = o.repr().map_or(String::new(), |r| r.to_string());
        PyTypeError::new_err(format!("`{name}` takes an integer or a tuple of 1 to 3 integers, not {came}"))
    };
    let one = |o: &Bound<'_, PyAny>| -> PyResult<u32> {
        if let Ok(n) = o.extract::<u32>() {
            return Ok(n);
        }
        let n: i128 = o.extract().map_err(|_| wrong())?;
        u32::try_from(n).map_err(|_| PyValueError::new_err(format!("`{name}`: {n} is not between 0 and {}", u32::MAX)))
    };
    if let Ok(tuple) = o.cast::<PyTuple>() {
        let mut all = [1; 3];
        if tuple.is_empty() || tuple.len() > 3 {
            return Err(wrong());
        }
        for (to, from) in all.iter_mut().zip(tuple) {
            *to = one(&from)?;
        }
        return Ok(all);
    }
    if let Ok(list) = o.cast::<pyo3::types::PyList>() {
        return dims(name, list.to_tuple().as_any());
    }
    Ok([one(o)?, 1, 1])
}

/// Checks from `True`, `"race,sync"` or a list of words.
pub(crate) fn checks(o: &Bound<'_, PyAny>) -> PyResult<Option<Checks>> {
    let words: String = if o.is_none() {
        return Ok(None);
    } else if let Ok(flag) = o.cast::<PyBool>() {
        if !flag.is_true() {
            return Ok(None);
        }
        "memory,init,race,sync".into()
    } else if let Ok(text) = o.extract::<String>() {
        text
    } else {
        let list: Vec<String> = o.extract().map_err(|_| {
            PyTypeError::new_err("`check` takes a bool, a text like \"race,sync\" or a list of such words")
        })?;
        list.join(",")
    };
    let checks = Checks::parse(&words).map_err(|why| PyValueError::new_err(format!("`check`: {why}")))?;
    Ok(Some(checks))
}

fn check_config(checks: Checks, counts: bool) -> CheckConfig {
    CheckConfig { checks, races: RaceOptions { keeps_events: counts, ..RaceOptions::default() } }
}

/// What options ask for beside a configuration.
struct Options {
    seeds: u64,
    stop: Option<Py<PyStop>>,
}

/// The manner of a launch from keywords.
fn options(config: &mut LaunchConfig, kwargs: Option<&Bound<'_, PyDict>>, checking: &Checking) -> PyResult<Options> {
    let mut asked = checking.clone();
    let mut stop = None;
    for (key, value) in kwargs.into_iter().flatten() {
        let key: String = key.extract()?;
        let refuse = |what: &str| {
            let came = value.repr().map_or(String::new(), |r| r.to_string());
            PyTypeError::new_err(format!("`{key}` takes {what}, not {came}"))
        };
        match key.as_str() {
            "shared_mem" => config.shared_bytes = value.extract().map_err(|_| refuse("a number of bytes"))?,
            "check" => asked.checks = checks(&value)?,
            "counts" => asked.counts = value.extract().map_err(|_| refuse("a bool"))?,
            "seeds" => asked.seeds = value.extract().map_err(|_| refuse("a number of seeds"))?,
            "seed" => config.seed = value.extract().map_err(|_| refuse("an integer from 0 on"))?,
            "threads" => config.threads = value.extract().map_err(|_| refuse("a number of threads"))?,
            "cooperative" => config.cooperative = value.extract().map_err(|_| refuse("a bool"))?,
            "cluster" if value.is_none() => {}
            "cluster" => config.cluster = Some(dims("cluster", &value)?),
            "timeout" if value.is_none() => {}
            "timeout" => {
                let seconds: f64 = value.extract().map_err(|_| refuse("seconds"))?;
                let limit = Duration::try_from_secs_f64(seconds);
                config.timeout = Some(limit.map_err(|_| refuse("seconds from 0 on"))?);
            }
            "stop" if value.is_none() => {}
            "stop" => {
                let handle = value.cast::<PyStop>().map_err(|_| refuse("a handloom.StopHandle"))?;
                stop = Some(handle.clone().unbind());
            }
            "engine" => {
                config.engine = match value.extract::<String>().as_deref() {
                    Ok("jit") => Engine::Jit,
                    Ok("interp") => Engine::Interp,
                    _ => return Err(refuse("\"jit\" or \"interp\"")),
                }
            }
            "backend" => {
                config.backend = match value.extract::<String>().as_deref() {
                    Ok("wide") => Backend::Wide,
                    Ok("cranelift") => Backend::Cranelift,
                    _ => return Err(refuse("\"wide\" or \"cranelift\"")),
                }
            }
            "bounds" => {
                config.bounds = match value.extract::<String>().as_deref() {
                    Ok("exact") => Bounds::Exact,
                    Ok("contained") => Bounds::Contained,
                    _ => return Err(refuse("\"exact\" or \"contained\"")),
                }
            }
            _ => return Err(PyTypeError::new_err(format!("a launch takes no option `{key}`"))),
        }
    }
    if asked.counts {
        asked.checks = Some(asked.checks.unwrap_or_default().with(Check::Race));
    }
    config.check = asked.checks.map(|checks| check_config(checks, asked.counts));
    if asked.seeds > 1 && config.check.is_none() {
        return Err(PyTypeError::new_err("`seeds` is for checks: give `check` too"));
    }
    Ok(Options { seeds: asked.seeds.max(1), stop })
}

/// Memory of arrays and variables as it was before a launch.
struct Before {
    arrays: Vec<(u64, Vec<u8>)>,
    variables: Vec<(String, Vec<u8>)>,
}

impl Before {
    fn take(function: &Function, lent: &[&HostBuffer]) -> Before {
        let copy = |b: &&HostBuffer| (b.address(), b.to_vec());
        let module = function.module();
        let read = |name: &str| Some((name.to_owned(), module.read_global(name)?));
        Before {
            arrays: lent.iter().filter(|b| b.is_writable()).map(copy).collect(),
            variables: module.globals().filter_map(read).collect(),
        }
    }

    fn put_back(&self, function: &Function, lent: &[&HostBuffer]) {
        for (address, bytes) in &self.arrays {
            if let Some(buffer) = lent.iter().find(|b| b.address() == *address && b.is_writable()) {
                buffer.write(bytes);
            }
        }
        for (name, bytes) in &self.variables {
            function.module().write_global(name, 0, bytes);
        }
    }
}

/// What the seeds of a launch did.
struct Ran {
    report: LaunchReport,
    findings: Vec<(Finding, u64, u64)>,
    unchecked: Option<String>,
}

impl Ran {
    /// A launch that nothing was checked in.
    fn of(report: LaunchReport) -> Ran {
        Ran { report, findings: Vec::new(), unchecked: None }
    }
}

/// Runs a launch with each seed; the memory is that of the last one, which has the seed that was asked for.
fn run_seeds(
    function: &Function,
    config: &LaunchConfig,
    args: &[Arg<'_>],
    seeds: u64,
    lent: &[&HostBuffer],
) -> Result<Ran, Error> {
    let before = (seeds > 1).then(|| Before::take(function, lent));
    let mut ran = Ran { report: LaunchReport::default(), findings: Vec::new(), unchecked: None };
    for n in (0..seeds).rev() {
        let seed = config.seed + n;
        let config = LaunchConfig { seed, ..config.clone() };
        let report = PreparedLaunch::new(function, &config, args)?.run()?;
        if let Some(check) = &report.check {
            ran.unchecked = ran.unchecked.or_else(|| check.unchecked.clone());
            for finding in &check.findings {
                match ran.findings.iter_mut().find(|(f, _, _)| f.is_same(finding)) {
                    Some((_, seen, first)) => (*seen, *first) = (*seen + 1, seed),
                    None => ran.findings.push((finding.clone(), 1, seed)),
                }
            }
        }
        if n > 0 {
            before.iter().for_each(|before| before.put_back(function, lent));
        }
        ran.report = report;
    }
    Ok(ran)
}

/// Arguments, and what is held while kernels use them. Memory is taken back from kernels before its owners are let go.
struct Given<O> {
    values: Vec<Value>,
    _alive: Vec<O>,
}

impl<O> Given<O> {
    /// As the runtime takes them.
    fn args(&self) -> Vec<Arg<'_>> {
        let one = |value| match value {
            &Value::Number(ref bytes, size) => Arg::Bytes(&bytes[..size]),
            Value::Bytes(bytes) => Arg::Bytes(bytes),
            Value::Lent(buffer) => Arg::Host(buffer),
        };
        self.values.iter().map(one).collect()
    }

    /// Memory that is lent.
    fn lent(&self) -> Vec<&HostBuffer> {
        let lent = self.values.iter().filter_map(|value| match value {
            Value::Lent(buffer) => Some(buffer),
            Value::Bytes(_) | Value::Number(..) => None,
        });
        lent.collect()
    }
}

/// What objects are for the parameters of an entry.
fn bind<'py>(function: &Function, objects: &Bound<'py, PyTuple>) -> PyResult<Given<Bound<'py, PyAny>>> {
    let params = function.params();
    let mut alive = Vec::new();
    let mut values = Vec::with_capacity(params.len());
    if params.len() == objects.len() {
        for (i, (param, o)) in params.iter().zip(objects).enumerate() {
            let named = Named { number: i + 1, param };
            values.push(args::value(function.module().device(), &named, &o, &mut alive)?);
        }
    } else {
        // The runtime says which there are.
        values.resize_with(objects.len(), || Value::Bytes(Vec::new()));
    }
    Ok(Given { values, _alive: alive })
}

/// Where the text of launches goes, until they have ended.
#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<u8>>>);

impl Printed {
    fn sink(&self) -> Sink {
        let to = Arc::clone(&self.0);
        Sink::new(move |text| to.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(text))
    }

    /// Takes it, and shows it where Python prints.
    fn show(&self, py: Python<'_>) -> PyResult<String> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if bytes.is_empty() {
            return Ok(String::new());
        }
        let output = String::from_utf8_lossy(&bytes).into_owned();
        py.import("sys")?.getattr("stdout")?.call_method1("write", (&output,))?;
        Ok(output)
    }
}

/// What Python is told of a launch that has ended.
fn told(py: Python<'_>, name: &str, ran: Result<Ran, Error>, seeds: u64, output: String) -> PyResult<Py<PyReport>> {
    let ran = match ran {
        Ok(ran) => ran,
        Err(e) => {
            if e.kind() == ErrorKind::Stopped {
                py.check_signals()?;
            }
            return Err(raise(py, e));
        }
    };
    let findings =
        ran.findings.into_iter().map(|(finding, seen, seed)| PyFinding { inner: Arc::new(finding), seen, seed, seeds });
    let report = PyReport {
        entry: name.to_owned(),
        findings: findings.collect(),
        unchecked: ran.unchecked,
        output,
        seeds,
        counts: ran.report.check.as_ref().and_then(|check| check.counts()),
        inner: ran.report,
    };
    Py::new(py, report)
}

/// A launch of an entry with its shape, that runs again with other arguments.
struct Rests {
    function: u64,
    shape: ([u32; 3], [u32; 3], u32),
    is_main: bool,
    launch: PreparedLaunch,
    printed: Printed,
}

/// The last small launches, which keep their memory: a program mostly launches the same few again and again.
static RESTING: Mutex<Vec<Rests>> = Mutex::new(Vec::new());

/// How many, and of how many blocks at most.
const RESTING_LAUNCHES: usize = 16;
const RESTING_BLOCKS: u64 = 256;

fn resting() -> std::sync::MutexGuard<'static, Vec<Rests>> {
    RESTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the launches of an entry that rest.
pub(crate) fn forget(function: u64) {
    let gone: Vec<Rests> = resting().extract_if(.., |r| r.function == function).collect();
    drop(gone);
}

/// In the child of a fork, whose device is another.
pub(crate) fn forked() {
    std::mem::forget(std::mem::take(&mut *resting()));
}

/// Whether somebody asked for launches to be checked or heard of.
pub(crate) fn is_asked() -> bool {
    CHECKING.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// A launch without options that nobody checks, by one that rests if there is one.
fn launch_again(
    py: Python<'_>,
    id: u64,
    function: &Function,
    shape: ([u32; 3], [u32; 3], u32),
    bound: &Given<Bound<'_, PyAny>>,
) -> PyResult<Py<PyReport>> {
    let is_main = signals::is_main();
    let found = {
        let mut all = resting();
        let at = all.iter().position(|r| r.function == id && r.shape == shape && r.is_main == is_main);
        at.map(|at| all.remove(at))
    };
    let args = bound.args();
    let interruptible = Interruptible::begin(py)?;
    // A signal that came before is Python's alone.
    py.check_signals()?;
    let run = || -> (Result<LaunchReport, Error>, Option<Rests>) {
        let rests = match found {
            Some(mut rests) => rests.launch.set_args(&args).map(|()| rests),
            None => {
                let printed = Printed::default();
                let mut config = LaunchConfig::new(shape.0, shape.1);
                config.shared_bytes = shape.2;
                config.output = Some(printed.sink());
                config.stop = signals::stop();
                counted::count(&mut config);
                let new = PreparedLaunch::new(function, &config, &args);
                new.map(|launch| Rests { function: id, shape, is_main, launch, printed })
            }
        };
        match rests {
            Ok(mut rests) => (rests.launch.run().map_err(Error::from), Some(rests)),
            Err(e) => (Err(e.into()), None),
        }
    };
    let (done, rests) = py.detach(run);
    drop(interruptible);
    let output = rests.as_ref().map_or(Ok(String::new()), |rests| rests.printed.show(py))?;
    // What came to no end is not used again.
    if let Some(rests) = rests.filter(|_| done.is_ok()) {
        let mut all = resting();
        all.push(rests);
        let oldest = (all.len() > RESTING_LAUNCHES).then(|| all.remove(0));
        drop(all);
        drop(oldest);
    }
    told(py, function.name(), done.map(Ran::of), 1, output)
}

/// Launches an entry.
pub(crate) fn launch(
    py: Python<'_>,
    id: u64,
    function: &Function,
    grid: &Bound<'_, PyAny>,
    block: &Bound<'_, PyAny>,
    objects: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyReport>> {
    let (checking, listener) = {
        let now = CHECKING.lock().unwrap_or_else(PoisonError::into_inner);
        now.as_ref().map_or((Checking::default(), None), |(c, who)| (c.clone(), Some(who.clone_ref(py))))
    };
    let (grid, block) = (dims("grid", grid)?, dims("block", block)?);
    if listener.is_none() && kwargs.is_none_or(|o| o.is_empty()) {
        let blocks: u64 = grid.iter().map(|n| u64::from(*n)).product();
        if blocks <= RESTING_BLOCKS {
            return launch_again(py, id, function, (grid, block, 0), &bind(function, objects)?);
        }
    }
    let mut config = LaunchConfig::new(grid, block);
    let Options { seeds, stop } = options(&mut config, kwargs, &checking)?;
    let bound = bind(function, objects)?;
    let printed = Printed::default();
    config.output = Some(printed.sink());
    counted::count(&mut config);
    config.stop = if stop.is_some() && !signals::is_main() { StopHandle::new() } else { signals::stop() };
    let interruptible = Interruptible::begin(py)?;
    let entered = stop.as_ref().map(|stop| stop.get().enter(&config.stop));
    // A signal that came before is Python's alone.
    py.check_signals()?;
    let (args, lent) = (bound.args(), bound.lent());
    let ran = py.detach(|| run_seeds(function, &config, &args, seeds, &lent));
    drop(entered);
    drop(interruptible);
    let output = printed.show(py)?;
    let report = told(py, function.name(), ran, seeds, output)?;
    drop(bound);
    if let Some(listener) = listener {
        listener.call1(py, (report.clone_ref(py),))?;
    }
    Ok(report)
}

/// A launch with all that it needs, for as long as somebody holds it.
pub(crate) struct Ready {
    // Dropped in this order: kernels, what they were lent, its owners.
    launch: PreparedLaunch,
    printed: Printed,
    is_main: bool,
    _bound: Given<Py<PyAny>>,
}

/// Checks a launch, makes its code, and lends it its arrays.
pub(crate) fn prepare(
    py: Python<'_>,
    function: &Function,
    grid: &Bound<'_, PyAny>,
    block: &Bound<'_, PyAny>,
    objects: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<Ready> {
    let mut config = LaunchConfig::new(dims("grid", grid)?, dims("block", block)?);
    let Options { seeds, stop } = options(&mut config, kwargs, &Checking::default())?;
    if config.check.is_some() || seeds > 1 || stop.is_some() {
        let text = "a prepared launch takes no `check`, `seeds`, `counts` or `stop`: call the kernel";
        return Err(PyTypeError::new_err(text));
    }
    let bound = bind(function, objects)?;
    let printed = Printed::default();
    config.output = Some(printed.sink());
    config.stop = signals::stop();
    counted::count(&mut config);
    let args = bound.args();
    let launch = py.detach(|| PreparedLaunch::new(function, &config, &args).map_err(Error::from));
    let launch = launch.map_err(|e| raise(py, e))?;
    drop(args);
    let Given { values, _alive } = bound;
    let bound = Given { values, _alive: _alive.into_iter().map(Bound::unbind).collect() };
    Ok(Ready { launch, printed, is_main: signals::is_main(), _bound: bound })
}

/// Runs a prepared launch.
pub(crate) fn run_ready(py: Python<'_>, function: &Function, ready: &mut Ready) -> PyResult<Py<PyReport>> {
    // One that another thread prepared is stopped as that thread's launches are; Ctrl-C is for the main thread alone.
    let interruptible = if ready.is_main { Some(Interruptible::begin(py)?) } else { None };
    py.check_signals()?;
    let done = py.detach(|| ready.launch.run().map_err(Error::from));
    drop(interruptible);
    let output = ready.printed.show(py)?;
    told(py, function.name(), done.map(Ran::of), 1, output)
}
