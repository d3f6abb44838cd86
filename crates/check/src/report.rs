//! The list of what was found.

use handloom_diag::{Diagnostic, Severity};

/// Diagnostics of a module.
#[derive(Debug, Default)]
pub(crate) struct Report {
    diagnostics: Vec<Diagnostic>,
    n_errors: usize,
}

impl Report {
    /// Adds one.
    pub fn push(&mut self, d: Diagnostic) {
        self.n_errors += usize::from(d.severity == Severity::Error);
        self.diagnostics.push(d);
    }

    /// Number of errors so far.
    pub fn n_errors(&self) -> usize {
        self.n_errors
    }

    /// All, by place.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        self.diagnostics.sort_by_key(|d| (d.span().start, d.span().end));
        self.diagnostics
    }
}

impl Report {
    /// Number of diagnostics so far.
    pub fn len(&self) -> usize {
        self.diagnostics.len()
    }

    /// Says that what was told from `since` on lies in a function that is not an entry.
    pub fn in_function(&mut self, since: usize, name: &str) {
        self.diagnostics.iter_mut().skip(since).for_each(|d| d.function = Some(name.to_owned()));
    }

    /// Drops what was told from `since` on to the last but one, except for undeclared names.
    pub fn keep_unknown_names(&mut self, since: usize) {
        let Some(last) = self.diagnostics.pop() else { return };
        let told = self.diagnostics.split_off(since.min(self.diagnostics.len()));
        for d in told {
            if d.code == handloom_diag::Code::Unknown {
                self.diagnostics.push(d);
            } else {
                self.n_errors -= usize::from(d.severity == Severity::Error);
            }
        }
        self.diagnostics.push(last);
    }
}
