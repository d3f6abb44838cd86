//! Undeclared names, and what may have been meant.

use handloom_diag::{Code, Diagnostic, Span};
use handloom_isa::spelling::distance;

use crate::context::Cx;

/// Candidates looked at for one suggestion.
const MAX_CANDIDATES: usize = 4096;

impl<'a> Cx<'a> {
    /// Tells once that a module-level name is not declared.
    pub fn undeclared_symbol(&mut self, name: &'a str, span: Span) {
        if !self.told.insert(name) {
            return;
        }
        let d = Diagnostic::error(Code::Unknown, span, format!("`{name}` is not declared"));
        let d = match self.defined.get(name) {
            Some(at) => d.also(*at, "defined here").help("declare it before its first use"),
            None => {
                let names: Vec<&str> = self.globals.keys().copied().take(MAX_CANDIDATES).collect();
                self.with_suggestion(d, name, names.into_iter())
            }
        };
        self.push(d);
    }

    /// The same with "did you mean", while there is patience for it.
    pub fn with_suggestion<'n>(
        &mut self,
        d: Diagnostic,
        name: &str,
        names: impl Iterator<Item = &'n str>,
    ) -> Diagnostic {
        if self.suggestions_left == 0 {
            return d;
        }
        self.suggestions_left -= 1;
        match closest(name, names.take(MAX_CANDIDATES)) {
            Some(other) => d.help(format!("did you mean `{other}`?")),
            None => d,
        }
    }
}

/// The name nearest to `name`; of equals the first by letters, so that no hash order shows.
fn closest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let limit = if name.len() < 4 { 1 } else { 2 };
    if name.len() > 64 {
        return None;
    }
    names
        .filter(|n| n.len().abs_diff(name.len()) <= limit && *n != name)
        .map(|n| (distance(name.as_bytes(), n.as_bytes(), false), n))
        .filter(|(d, _)| *d <= limit)
        .min()
        .map(|(_, n)| n)
}
