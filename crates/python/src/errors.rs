//! Errors as exceptions: the classes stand in `handloom/_errors.py`.

use handloom::{Diagnostic, Error, ErrorKind};
use handloom_diag::Style;
use handloom_runtime::TrapReport;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::told::PyDiagnostic;

/// An exception of a class of `handloom._errors`, with fields.
fn exception(py: Python<'_>, class: &str, text: &str, fields: &Bound<'_, PyDict>) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let class = py.import("handloom._errors")?.getattr(class)?;
        let error = class.call1((text,))?;
        for (name, value) in fields {
            error.setattr(name.extract::<String>()?.as_str(), value)?;
        }
        Ok(PyErr::from_value(error))
    };
    made().unwrap_or_else(|e| e)
}

/// The exception of an error.
pub(crate) fn raise(py: Python<'_>, error: Error) -> PyErr {
    let fields = PyDict::new(py);
    let kind = error.kind();
    let text = error.to_string();
    let class = match (&error, kind) {
        (Error::Trap(report), _) => return trap(py, report),
        (Error::Module { diagnostics, .. }, _) => {
            let list: Vec<PyDiagnostic> = diagnostics.iter().map(PyDiagnostic::from).collect();
            if let Err(e) = fields.set_item("diagnostics", list) {
                return e;
            }
            if kind == ErrorKind::Unsupported { "Unsupported" } else { "ModuleError" }
        }
        (_, ErrorKind::ArgumentCount) => return PyTypeError::new_err(text),
        (_, ErrorKind::OutOfMemory) => "OutOfMemory",
        (_, ErrorKind::Stopped) => "Stopped",
        (_, ErrorKind::Bug) => "Bug",
        (_, _) => "LaunchError",
    };
    if let Err(e) = fields.set_item("kind", kind.word()) {
        return e;
    }
    exception(py, class, &text, &fields)
}

/// A trap with what is known of it as fields.
fn trap(py: Python<'_>, report: &TrapReport) -> PyErr {
    let fields = PyDict::new(py);
    let text = report.human(Style::Plain, None);
    let set = || -> PyResult<()> {
        let facts = report.trap();
        fields.set_item("kind", report.kind().word())?;
        fields.set_item("message", report.message())?;
        let place = report.place();
        fields.set_item("file", place.map(|(file, _)| file))?;
        fields.set_item("line", place.map(|(_, at)| at.line))?;
        fields.set_item("column", place.map(|(_, at)| at.column))?;
        let source = report.cuda_place();
        fields.set_item("source_file", source.map(|(file, _)| file))?;
        fields.set_item("source_line", source.map(|(_, line)| line))?;
        fields.set_item("block", facts.cta.map(u64::from).into_iter().collect::<Vec<_>>())?;
        fields.set_item("thread", facts.thread.map(u64::from).into_iter().collect::<Vec<_>>())?;
        fields.set_item("address", facts.address)?;
        fields.set_item("other_threads", facts.other_threads())?;
        fields.set_item("report", &text)
    };
    match set() {
        Ok(()) => exception(py, "Trap", &text, &fields),
        Err(e) => e,
    }
}

/// A launch of something that has ended.
pub(crate) fn ended(py: Python<'_>, text: &str) -> PyErr {
    let fields = PyDict::new(py);
    match fields.set_item("kind", "invalid_handle") {
        Ok(()) => exception(py, "LaunchError", text, &fields),
        Err(e) => e,
    }
}

impl From<&Diagnostic> for PyDiagnostic {
    fn from(d: &Diagnostic) -> PyDiagnostic {
        PyDiagnostic::new(d)
    }
}
