//! Stop handles of Python: they end launches of any thread, those of the main thread beside Ctrl-C.

use std::sync::{Mutex, PoisonError};

use handloom_runtime::StopHandle;
use pyo3::prelude::*;

/// What launches are asked, and those that run now. A launch has a handle of its own beneath, which on the main thread Ctrl-C raises too.
#[derive(Default)]
struct State {
    is_stopped: bool,
    /// How many there have been: the number of the next.
    entered: u64,
    running: Vec<(u64, StopHandle)>,
}

/// Ends launches that have it as their option `stop`, from any thread.
#[pyclass(frozen, name = "StopHandle", module = "handloom")]
#[derive(Default)]
pub(crate) struct PyStop {
    state: Mutex<State>,
}

impl PyStop {
    fn with<R>(&self, work: impl FnOnce(&mut State) -> R) -> R {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Passes stops on to a launch, until what is returned is dropped.
    pub(crate) fn enter(&self, own: &StopHandle) -> Entered<'_> {
        let number = self.with(|state| {
            if state.is_stopped {
                own.stop();
            }
            state.entered += 1;
            state.running.push((state.entered, own.clone()));
            state.entered
        });
        Entered { stop: self, number }
    }
}

/// A launch that a stop handle knows.
pub(crate) struct Entered<'s> {
    stop: &'s PyStop,
    number: u64,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.stop.with(|state| state.running.retain(|(number, _)| *number != self.number));
    }
}

#[pymethods]
impl PyStop {
    #[new]
    fn new() -> PyStop {
        PyStop::default()
    }

    /// Ends all launches with this handle, those that run and those that come: they raise `Stopped`. Does not wait for them.
    fn stop(&self) {
        self.with(|state| {
            state.is_stopped = true;
            state.running.iter().for_each(|(_, own)| own.stop());
        });
    }

    /// Takes a stop back, so that the handle serves launches again.
    fn renew(&self) {
        self.with(|state| state.is_stopped = false);
    }

    /// Whether `stop` was called, and not taken back.
    #[getter]
    fn is_stopped(&self) -> bool {
        self.with(|state| state.is_stopped)
    }

    fn __repr__(&self) -> String {
        let (is_stopped, n) = self.with(|state| (state.is_stopped, state.running.len()));
        format!("<StopHandle, {}, launches: {n}>", if is_stopped { "stopped" } else { "not stopped" })
    }
}
