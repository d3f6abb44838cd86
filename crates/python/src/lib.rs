//! The Python module `handloom._native`.
//!
//! Takes: PTX, and objects of Python as arguments. Returns: reports and exceptions.
//! Does not know: files (the package `handloom` reads them), notebooks, pytest.
//!
//! Invariants: the lock of the interpreter is released while a kernel runs; memory of an array is lent to kernels only while its owner is held.
//!
//! How to read it: `args` (with `dlpack`) is what objects are for a parameter, `signals` Ctrl-C, `stop` other stops, `told` and `errors` what is said, `launch` a launch.

mod args;
mod counted;
mod dlpack;
mod errors;
mod launch;
mod signals;
mod stop;
mod told;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use handloom::Ptx;
use handloom_diag::SourceMap;
use handloom_runtime::{CodeCache, Device, LoadError, Store};
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use launch::{CHECKING, Checking};
use stop::PyStop;
use told::{PyDiagnostic, PyFinding, PyReport};

/// How often the process is the child of a fork.
pub(crate) static FORKS: AtomicU64 = AtomicU64::new(0);

/// The device of the process, once something needs it.
static DEVICE: Mutex<Option<Device>> = Mutex::new(None);

fn device() -> PyResult<Device> {
    let mut device = DEVICE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = &*device {
        return Ok(device.clone());
    }
    let new = Device::with_code(&CodeCache::new(Store::of_environment()));
    let new = new.map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
    Ok(device.insert(new).clone())
}

/// A loaded module, as far as it was not unloaded.
struct Loaded {
    module: handloom_runtime::Module,
    has_ended: AtomicBool,
    /// How often the process had been forked when it was loaded.
    forks: u64,
}

impl Loaded {
    fn check(&self, py: Python<'_>, what: &str) -> PyResult<()> {
        if self.has_ended.load(Ordering::Acquire) {
            return Err(errors::ended(py, &format!("{what} is used after its module was unloaded")));
        }
        if self.forks != FORKS.load(Ordering::Acquire) {
            let text = format!("{what} was loaded before this process was forked: load it again here");
            return Err(errors::ended(py, &text));
        }
        Ok(())
    }
}

/// A module of PTX.
#[pyclass(frozen, module = "handloom")]
struct Module {
    loaded: Arc<Loaded>,
}

#[pymethods]
impl Module {
    #[new]
    #[pyo3(signature = (text, name = "module.ptx", links = Vec::new()))]
    fn new(py: Python<'_>, text: &str, name: &str, links: Vec<(String, String)>) -> PyResult<Module> {
        let device = device()?;
        let module = py.detach(|| {
            let mut sources = SourceMap::new();
            // Many modules have no name of their own, and counts tell statements apart by it.
            let is_named = name != "module.ptx" || counted::tally().is_none();
            let name = if is_named { name.to_owned() } else { handloom_profile::unique_name(name, text) };
            let mut files = vec![sources.add(name, text)];
            files.extend(links.into_iter().map(|(name, text)| sources.add(name, text)));
            let sources = Arc::new(sources);
            let loaded = match counted::tally() {
                Some(tally) => {
                    let note = |ir: &handloom_ir::simt::Module| tally.loaded(ir, &sources);
                    handloom_runtime::Module::load_marked(&device, Arc::clone(&sources), &files, note)
                }
                None => handloom_runtime::Module::load(&device, Arc::clone(&sources), &files),
            };
            loaded.map_err(|e| (e, sources))
        });
        let module =
            module.map_err(|(e, sources): (LoadError, _)| errors::raise(py, handloom::Error::of_load(&e, &sources)))?;
        Ok(Module {
            loaded: Arc::new(Loaded {
                module,
                has_ended: AtomicBool::new(false),
                forks: FORKS.load(Ordering::Acquire),
            }),
        })
    }

    /// An entry by its name.
    fn get_function(&self, py: Python<'_>, name: &str) -> PyResult<Function> {
        self.loaded.check(py, "a module")?;
        let function = self.loaded.module.function(Some(name)).map_err(|e| errors::raise(py, e.into()))?;
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Function { loaded: Arc::clone(&self.loaded), function, id })
    }

    /// The names of all entries.
    #[getter]
    fn entries(&self) -> Vec<String> {
        self.loaded.module.entries().map(str::to_owned).collect()
    }

    /// The names of all variables.
    #[getter]
    fn variables(&self) -> Vec<String> {
        self.loaded.module.globals().map(str::to_owned).collect()
    }

    /// What was warned of.
    #[getter]
    fn warnings(&self) -> Vec<PyDiagnostic> {
        let module = &self.loaded.module;
        module.warnings().iter().map(|d| PyDiagnostic::new(&handloom::Diagnostic::of(d, module.sources()))).collect()
    }

    /// The bytes of a variable.
    fn read<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        self.loaded.check(py, "a module")?;
        let bytes = self.loaded.module.read_global(name).ok_or_else(|| self.unknown(name))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes bytes of a variable.
    #[pyo3(signature = (name, data, offset = 0))]
    fn write(&self, py: Python<'_>, name: &str, data: &[u8], offset: u64) -> PyResult<()> {
        self.loaded.check(py, "a module")?;
        let (_, size) = self.loaded.module.global(name).ok_or_else(|| self.unknown(name))?;
        let bytes = data.len() as u64;
        if offset.checked_add(bytes).is_none_or(|end| end > size) {
            return Err(PyValueError::new_err(format!(
                "{bytes} bytes from byte {offset} on for `{name}`, which has {size}"
            )));
        }
        self.loaded.module.write_global(name, offset, data);
        Ok(())
    }

    /// The address of a variable and its size in bytes.
    fn variable(&self, py: Python<'_>, name: &str) -> PyResult<(u64, u64)> {
        self.loaded.check(py, "a module")?;
        self.loaded.module.global(name).ok_or_else(|| self.unknown(name))
    }

    /// Ends it: its entries can be launched no more.
    fn unload(&self) {
        self.loaded.has_ended.store(true, Ordering::Release);
    }

    fn __repr__(&self) -> String {
        format!("<module of {}>", self.entries().join(", "))
    }
}

impl Module {
    fn unknown(&self, name: &str) -> PyErr {
        let all = self.variables();
        let all = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
        PyKeyError::new_err(format!("no variable `{name}`: the module has {all}"))
    }
}

/// An entry of a module.
#[pyclass(frozen, module = "handloom")]
struct Function {
    loaded: Arc<Loaded>,
    function: handloom_runtime::Function,
    /// Which of all it is, for launches that rest.
    id: u64,
}

impl Drop for Function {
    fn drop(&mut self) {
        launch::forget(self.id);
    }
}

/// The arguments of a launch.
fn tuple<'py>(args: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    if let Ok(tuple) = args.cast::<PyTuple>() {
        return Ok(tuple.clone());
    }
    if let Ok(list) = args.cast::<pyo3::types::PyList>() {
        return Ok(list.to_tuple());
    }
    let came = args.get_type().name()?;
    Err(PyTypeError::new_err(format!("`args` takes a tuple with one argument for each parameter, not {came}")))
}

#[pymethods]
impl Function {
    #[getter]
    fn name(&self) -> &str {
        self.function.name()
    }

    /// Its parameters: names and types.
    #[getter]
    fn params(&self) -> Vec<(String, String)> {
        self.function.params().iter().map(|p| (p.name.clone(), handloom_runtime::type_of(p))).collect()
    }

    /// Launches it and waits for its end.
    #[pyo3(signature = (grid, block, args, **options))]
    fn __call__(
        &self,
        py: Python<'_>,
        grid: &Bound<'_, PyAny>,
        block: &Bound<'_, PyAny>,
        args: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyReport>> {
        self.loaded.check(py, &format!("`{}`", self.name()))?;
        launch::launch(py, self.id, &self.function, grid, block, &tuple(args)?, options)
    }

    /// A launch that is checked and bound once, to be run again and again.
    #[pyo3(signature = (grid, block, args, **options))]
    fn prepare(
        slf: &Bound<'_, Self>,
        grid: &Bound<'_, PyAny>,
        block: &Bound<'_, PyAny>,
        args: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Prepared> {
        let (py, this) = (slf.py(), slf.get());
        this.loaded.check(py, &format!("`{}`", this.name()))?;
        let args = tuple(args)?;
        let state = launch::prepare(py, &this.function, grid, block, &args, options)?;
        Ok(Prepared {
            function: slf.clone().unbind(),
            asked: (grid.clone().unbind(), block.clone().unbind(), args.unbind()),
            options: options.map(|o| o.copy()).transpose()?.map(Bound::unbind),
            state: Mutex::new(state),
        })
    }

    fn __repr__(&self) -> String {
        let params: Vec<String> = self.params().iter().map(|(name, ty)| format!("{ty} {name}")).collect();
        format!("<kernel {}({})>", self.name(), params.join(", "))
    }
}

/// A launch whose code, parameters and arrays are there. What it was asked for is kept too: inside of `handloom.checking` it is an ordinary launch.
#[pyclass(frozen, module = "handloom")]
struct Prepared {
    function: Py<Function>,
    asked: (Py<PyAny>, Py<PyAny>, Py<PyTuple>),
    options: Option<Py<PyDict>>,
    state: Mutex<launch::Ready>,
}

#[pymethods]
impl Prepared {
    /// Runs it and waits for its end.
    fn __call__(&self, py: Python<'_>) -> PyResult<Py<PyReport>> {
        let function = self.function.get();
        function.loaded.check(py, function.name())?;
        if launch::is_asked() {
            let (grid, block, args) = &self.asked;
            let (grid, block, args) = (grid.bind(py), block.bind(py), args.bind(py));
            let options = self.options.as_ref().map(|o| o.bind(py));
            return launch::launch(py, function.id, &function.function, grid, block, args, options);
        }
        // Threads that run the same one wait for each other, without the lock of the interpreter.
        let mut state = self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        launch::run_ready(py, &function.function, &mut state)
    }

    fn __repr__(&self) -> String {
        format!("<prepared launch of {}>", self.function.get().name())
    }
}

/// All faults and warnings of a text.
#[pyfunction]
#[pyo3(signature = (text, name = "module.ptx"))]
fn check(py: Python<'_>, text: &str, name: &str) -> Vec<PyDiagnostic> {
    let told = py.detach(|| handloom::check(Ptx::new(text).named(name)));
    told.iter().map(PyDiagnostic::from).collect()
}

/// Checks all launches from now on that say nothing themselves, and tells `listener` the report of each. Without a listener nothing of that is done any more.
#[pyfunction]
#[pyo3(signature = (listener, checks, seeds, counts))]
fn set_checking(listener: Option<Py<PyAny>>, checks: &Bound<'_, PyAny>, seeds: u64, counts: bool) -> PyResult<()> {
    let new = match listener {
        Some(listener) => Some((Checking { checks: launch::checks(checks)?, seeds, counts }, listener)),
        None => None,
    };
    let before = std::mem::replace(&mut *CHECKING.lock().unwrap_or_else(PoisonError::into_inner), new);
    drop(before);
    Ok(())
}

/// What the host lacks that kernels need; `None` of one that has all. `HANDLOOM_ISA=none` stands for a host that has nothing of it.
#[pyfunction]
fn missing() -> Option<&'static str> {
    let mut host = handloom_runtime::Host::detect();
    if std::env::var_os("HANDLOOM_ISA").is_some_and(|word| word == "none") {
        host.features = Default::default();
    }
    host.missing()
}

/// After a fork, the child has none of the threads of its parent: it gets a device of its own.
#[pyfunction]
fn forked() {
    FORKS.fetch_add(1, Ordering::AcqRel);
    let old = DEVICE.lock().unwrap_or_else(PoisonError::into_inner).take();
    launch::forked();
    // Its threads are not there to be ended.
    std::mem::forget(old);
}

/// The native part of the package `handloom`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{
        Function, Module, Prepared, PyDiagnostic, PyFinding, PyReport, PyStop, check, forked, missing, set_checking,
    };
    #[pymodule_export]
    use crate::counted::{counted, counts_report, start_counting};
}
