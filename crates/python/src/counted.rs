//! Launches that are counted, and reports of it. Files are Python's: what is written comes as text, and what a page shows is read by a function.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use handloom_profile::cover::Coverage;
use handloom_profile::{Form, Launch, Part, Profile, join, json_line};
use handloom_runtime::{LaunchConfig, Tally};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Who counts the launches of modules that are loaded from now on.
static COUNTING: Mutex<Option<Tally>> = Mutex::new(None);

/// Who counts, if somebody does.
pub(crate) fn tally() -> Option<Tally> {
    COUNTING.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Asks for the counts of a launch. Checks are a run of their own.
pub(crate) fn count(config: &mut LaunchConfig) {
    config.count = tally().filter(|_| config.check.is_none());
}

/// Counts launches of modules that are loaded from now on: all that they do, or what they reach alone.
#[pyfunction]
pub(crate) fn start_counting(coverage: bool) {
    let new = if coverage { Tally::coverage() } else { Tally::default() };
    *COUNTING.lock().unwrap_or_else(PoisonError::into_inner) = Some(new);
}

/// What was counted until now, as text for `counts_report`; `None` if nothing is counted.
#[pyfunction]
pub(crate) fn counted() -> PyResult<Option<String>> {
    tally().map(|tally| json_line(&tally.part()).map_err(PyValueError::new_err)).transpose()
}

/// The text of a report of parts, each the counts of a process: of a profile, or of a coverage. The name of its file says what it is. `read` is called with names
/// of files that a page shows, and returns a text or `None`.
#[pyfunction]
pub(crate) fn counts_report(
    py: Python<'_>,
    parts: Vec<String>,
    coverage: bool,
    file: &str,
    read: Py<PyAny>,
) -> PyResult<String> {
    let mut all = Part::default();
    for text in parts {
        let part: Part = read_part(&text)?;
        join(&mut all.launches, part.launches);
        all.texts.extend(part.texts);
    }
    let endings = if coverage { ".html, .json or .info" } else { ".html or .json" };
    let form = Form::of(Path::new(file)).filter(|form| coverage || *form != Form::Lcov);
    let form = form.ok_or_else(|| PyValueError::new_err(format!("{file}: expected a file that ends in {endings}")))?;
    let read = |name: &str, _: Option<&str>| -> Option<String> { read.call1(py, (name,)).ok()?.extract(py).ok() };
    let (version, mut launches) = (env!("CARGO_PKG_VERSION"), all.launches);
    let text = if coverage {
        Coverage::of(version, &launches).report(form, &all.texts, &read)
    } else {
        launches.retain(|launch| launch.runs > 0);
        launches.iter_mut().for_each(Launch::keep_functions_that_ran);
        Profile::new(version, launches).report(form, &all.texts, &read, &[])
    };
    text.map_err(PyValueError::new_err)
}

fn read_part(text: &str) -> PyResult<Part> {
    Part::read(text).map_err(PyValueError::new_err)
}
