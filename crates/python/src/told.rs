//! What is said to a person or a program: diagnostics, findings, reports of launches.

use std::sync::Arc;

use handloom::{Diagnostic, Kind, Severity};
use handloom_runtime::{Counts, Finding, FoundAt, LaunchReport};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

/// Text as a notebook shows it.
fn html(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!("<pre>{text}</pre>")
}

/// One fault of a text.
#[pyclass(frozen, get_all, name = "Diagnostic", module = "handloom")]
#[derive(Clone)]
pub(crate) struct PyDiagnostic {
    code: String,
    kind: String,
    severity: String,
    message: String,
    file: String,
    line: u32,
    column: u32,
    end_line: u32,
    end_column: u32,
    help: Option<String>,
    section: Option<String>,
    opcode: Option<String>,
    text: String,
}

/// Fields of a diagnostic, as they are sent.
type Words = (String, String, String, String, String);
type Places = (u32, u32, u32, u32);
type Rest = (Option<String>, Option<String>, Option<String>, String);
type Fields = (Words, Places, Rest);

impl PyDiagnostic {
    pub(crate) fn new(d: &Diagnostic) -> PyDiagnostic {
        PyDiagnostic {
            code: d.code.to_owned(),
            kind: match d.kind {
                Kind::Program => "program",
                Kind::Unsupported => "unsupported",
                Kind::Bug => "bug",
            }
            .to_owned(),
            severity: match d.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Note => "note",
            }
            .to_owned(),
            message: d.message.clone(),
            file: d.file.clone(),
            line: d.start.0,
            column: d.start.1,
            end_line: d.end.0,
            end_column: d.end.1,
            help: d.help.clone(),
            section: d.section.map(str::to_owned),
            opcode: d.opcode.clone(),
            text: d.text.clone(),
        }
    }
}

#[pymethods]
impl PyDiagnostic {
    /// From the fields of another one, in their order: for [`__reduce__`](Self::__reduce__).
    #[new]
    fn of_fields(words: Words, places: Places, rest: Rest) -> PyDiagnostic {
        let (code, kind, severity, message, file) = words;
        let (line, column, end_line, end_column) = places;
        let (help, section, opcode, text) = rest;
        PyDiagnostic {
            code,
            kind,
            severity,
            message,
            file,
            line,
            column,
            end_line,
            end_column,
            help,
            section,
            opcode,
            text,
        }
    }

    /// An exception that has it can be sent to another process.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, Fields) {
        let d = slf.get().clone();
        let words = (d.code, d.kind, d.severity, d.message, d.file);
        let places = (d.line, d.column, d.end_line, d.end_column);
        (slf.get_type(), (words, places, (d.help, d.section, d.opcode, d.text)))
    }

    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("<{}[{}] {}:{}:{}: {}>", self.severity, self.code, self.file, self.line, self.column, self.message)
    }

    fn _repr_html_(&self) -> String {
        html(&self.text)
    }
}

/// Something that a check found.
#[pyclass(frozen, name = "Finding", module = "handloom")]
#[derive(Clone)]
pub(crate) struct PyFinding {
    pub(crate) inner: Arc<Finding>,
    /// In how many of the seeds, and the first of them.
    pub(crate) seen: u64,
    #[pyo3(get)]
    pub(crate) seed: u64,
    #[pyo3(get)]
    pub(crate) seeds: u64,
}

#[pymethods]
impl PyFinding {
    #[getter]
    fn kind(&self) -> &str {
        self.inner.kind
    }

    #[getter]
    fn class_(&self) -> &str {
        self.inner.class
    }

    #[getter]
    fn message(&self) -> &str {
        &self.inner.message
    }

    #[getter]
    fn pairs(&self) -> u64 {
        self.inner.pairs
    }

    #[getter]
    fn seen(&self) -> u64 {
        self.seen
    }

    #[getter]
    fn fix(&self) -> Option<&str> {
        self.inner.fix
    }

    #[getter]
    fn first<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        place(py, &self.inner.first)
    }

    #[getter]
    fn second<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.inner.second.as_ref().map(|at| place(py, at)).transpose()
    }

    #[getter]
    pub(crate) fn text(&self) -> String {
        let seen = if self.seeds > 1 {
            format!("\n  seen   in {} of {} seeds, first with seed {}", self.seen, self.seeds, self.seed)
        } else {
            String::new()
        };
        self.inner.human() + &seen
    }

    fn __str__(&self) -> String {
        self.text()
    }

    fn __repr__(&self) -> String {
        format!("<{} [{}] {}>", self.inner.kind, self.inner.class, self.inner.message)
    }

    fn _repr_html_(&self) -> String {
        html(&self.text())
    }
}

fn place<'py>(py: Python<'py>, at: &FoundAt) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("does", at.does)?;
    d.set_item("file", &at.file)?;
    d.set_item("line", at.line)?;
    d.set_item("column", at.column)?;
    d.set_item("source_file", at.source.as_ref().map(|(file, _)| file))?;
    d.set_item("source_line", at.source.as_ref().map(|(_, line)| line))?;
    d.set_item("caller_file", at.caller.as_ref().map(|caller| &caller.file))?;
    d.set_item("caller_line", at.caller.as_ref().map(|caller| caller.line))?;
    d.set_item("statement", &at.statement)?;
    d.set_item("block", at.block.to_vec())?;
    d.set_item("thread", at.thread.to_vec())?;
    d.set_item("order", at.order)?;
    d.set_item("scope", at.scope)?;
    Ok(d)
}

/// What a launch did.
#[pyclass(frozen, name = "LaunchReport", module = "handloom")]
pub(crate) struct PyReport {
    pub(crate) inner: LaunchReport,
    #[pyo3(get)]
    pub(crate) entry: String,
    #[pyo3(get)]
    pub(crate) findings: Vec<PyFinding>,
    /// Why a check saw not all of it.
    #[pyo3(get)]
    pub(crate) unchecked: Option<String>,
    #[pyo3(get)]
    pub(crate) output: String,
    #[pyo3(get)]
    pub(crate) seeds: u64,
    pub(crate) counts: Option<Counts>,
}

impl PyReport {
    fn count(&self, of: impl FnOnce(&Counts) -> u64) -> Option<u64> {
        self.counts.as_ref().map(of)
    }
}

#[pymethods]
impl PyReport {
    #[getter]
    fn compile_us(&self) -> f64 {
        self.inner.compile.as_secs_f64() * 1e6
    }

    #[getter]
    fn run_us(&self) -> f64 {
        self.inner.run.as_secs_f64() * 1e6
    }

    #[getter]
    fn recompile_us(&self) -> f64 {
        self.inner.recompile.as_secs_f64() * 1e6
    }

    #[getter]
    fn tier(&self) -> Option<String> {
        self.inner.tier.map(|tier| format!("{tier:?}").to_lowercase())
    }

    #[getter]
    fn blocks(&self) -> u64 {
        self.inner.blocks
    }

    #[getter]
    fn cached(&self) -> bool {
        self.inner.cached
    }

    /// Whether a check found nothing and saw all of the launch; true without a check.
    #[getter]
    fn ok(&self) -> bool {
        self.findings.is_empty() && self.unchecked.is_none()
    }

    #[getter]
    fn global_bytes_read(&self) -> Option<u64> {
        self.count(|c| c.global_read)
    }

    #[getter]
    fn global_bytes_written(&self) -> Option<u64> {
        self.count(|c| c.global_written)
    }

    #[getter]
    fn global_bytes(&self) -> Option<u64> {
        self.count(|c| c.global_read + c.global_written)
    }

    #[getter]
    fn shared_bytes(&self) -> Option<u64> {
        self.count(|c| c.shared_read + c.shared_written)
    }

    #[getter]
    fn text(&self) -> String {
        let s = if self.inner.blocks == 1 { "" } else { "s" };
        let mut lines = vec![format!(
            "{}: {} block{s}, compiled in {:.3} ms, ran in {:.3} ms",
            self.entry,
            self.inner.blocks,
            self.compile_us() / 1e3,
            self.run_us() / 1e3
        )];
        lines.extend(self.counts.iter().map(|c| {
            format!(
                "global memory: {} bytes read, {} written; shared memory: {} read, {} written",
                c.global_read, c.global_written, c.shared_read, c.shared_written
            )
        }));
        lines.extend(self.unchecked.iter().map(|why| format!("the check ended before the launch did: {why}")));
        lines.extend(self.findings.iter().map(PyFinding::text));
        lines.join("\n")
    }

    fn __str__(&self) -> String {
        self.text()
    }

    fn __repr__(&self) -> String {
        format!("<LaunchReport of {}>", self.text())
    }

    fn _repr_html_(&self) -> String {
        html(&self.text())
    }
}
