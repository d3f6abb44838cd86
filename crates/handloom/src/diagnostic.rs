//! What there is to say of a text before anything runs.

use std::fmt;

use handloom_diag::{Kind, Severity, SourceMap, Style, render_human, render_json};
use handloom_runtime::front;

use crate::device::Ptx;

/// One fault of a text: what, where, by which rule, and what would be accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Diagnostic {
    /// Its stable code: `E0301`.
    pub code: &'static str,
    /// Whose fault: the program's, or ours.
    pub kind: Kind,
    /// How bad it is.
    pub severity: Severity,
    /// One sentence.
    pub message: String,
    /// Name of the text.
    pub file: String,
    /// Line and column of its first byte, from 1.
    pub start: (u32, u32),
    /// Line and column after its last byte.
    pub end: (u32, u32),
    /// What would be accepted.
    pub help: Option<String>,
    /// Title of the manual's section that has the rule.
    pub section: Option<&'static str>,
    /// What is not supported: an opcode with its qualifiers.
    pub opcode: Option<String>,
    /// The whole report for a person: the line, marked, with notes.
    pub text: String,
    /// The same as a JSON object on one line, with the keys of `handloom check --format json`.
    pub json: String,
}

impl Diagnostic {
    /// One of the checker's, for other interfaces of Handloom.
    #[doc(hidden)]
    pub fn of(d: &handloom_diag::Diagnostic, sources: &SourceMap) -> Diagnostic {
        let span = d.span();
        let at = |byte| {
            let place = sources.position(span.file, byte);
            (place.line, place.column)
        };
        Diagnostic {
            code: d.code.name(),
            kind: d.kind,
            severity: d.severity,
            message: d.message.clone(),
            file: sources.name(span.file).to_owned(),
            start: at(span.start),
            end: at(span.end),
            help: d.help.clone(),
            section: d.section,
            opcode: d.opcode.clone(),
            text: render_human(d, sources, Style::Plain),
            json: render_json(d, sources),
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// All faults and warnings of a text, in its order. Runs nothing. What is right and not supported is told too.
///
/// ```
/// let told = handloom::check(".version 8.0\n.target sm_80\n.entry k() { sad.f32 %a, %b, %c, %d; }");
/// assert_eq!((told[0].code, told[0].start), ("E0301", (3, 17)));
/// assert!(handloom::check(handloom::doc::SAXPY).is_empty());
/// ```
pub fn check(ptx: impl Into<Ptx>) -> Vec<Diagnostic> {
    let (sources, files) = ptx.into().sources();
    let told = match front(&sources, &files) {
        Ok((_, warnings)) => warnings,
        Err(told) => told,
    };
    told.iter().map(|d| Diagnostic::of(d, &sources)).collect()
}
