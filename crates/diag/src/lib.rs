//! Faults as data, and their text.
//!
//! Takes: data about a fault (a [`Diagnostic`]) and the source text it points into (a [`SourceMap`]).
//! Gives: text for people or JSON for machines. Beside that, what any crate may want: readable names, and tables with a fast hash.
//! Does not know: PTX.
//!
//! Invariants: no other crate names the rendering package; nothing here prints, it returns strings.

#![forbid(unsafe_code)]

pub mod codes;
mod driver_error;
pub mod hash;
pub mod names;
mod render;
mod source;

pub use codes::Code;
pub use driver_error::DriverError;
pub use render::{Footer, Heading, Report, Snippet, Style, names_json, render_human, render_json, render_snippets};
pub use source::{FileId, LineColumn, SourceMap, Span};

/// Whose fault it is. The three kinds are never mixed and each has its own exit status.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Kind {
    /// The program's: the PTX is wrong.
    Program,
    /// The PTX is right and this is not supported yet.
    Unsupported,
    /// A fault of Handloom itself.
    Bug,
}

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Information beside another diagnostic.
    Note,
    /// Accepted, but probably not meant.
    Warning,
    /// The module cannot be used.
    Error,
}

/// One fault: what, where, by which rule, and what would be accepted.
///
/// The message is lower case without a full stop; code words are in backticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Row of the code table.
    pub code: Code,
    /// Whose fault.
    pub kind: Kind,
    /// How bad.
    pub severity: Severity,
    /// One sentence.
    pub message: String,
    /// Places; the first is the guilty one. The text may be empty.
    pub labels: Vec<(Span, String)>,
    /// What would be accepted.
    pub help: Option<String>,
    /// Title of the manual's section that has the rule.
    pub section: Option<&'static str>,
    /// Name of the function that is not an entry, if it lies in one.
    pub function: Option<String>,
    /// For `Kind::Unsupported`: the opcode with its qualifiers.
    pub opcode: Option<String>,
}

impl Diagnostic {
    /// An error of the program's at `span`.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self::new(code, Kind::Program, Severity::Error, span, message)
    }

    /// A warning at `span`.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self::new(code, Kind::Program, Severity::Warning, span, message)
    }

    /// Something right that is not supported yet.
    pub fn unsupported(code: Code, span: Span, opcode: impl Into<String>, message: impl Into<String>) -> Self {
        let mut d = Self::new(code, Kind::Unsupported, Severity::Error, span, message);
        d.opcode = Some(opcode.into());
        d
    }

    fn new(code: Code, kind: Kind, severity: Severity, span: Span, message: impl Into<String>) -> Self {
        Diagnostic {
            code,
            kind,
            severity,
            message: message.into(),
            labels: vec![(span, String::new())],
            help: None,
            section: None,
            function: None,
            opcode: None,
        }
    }

    /// The same with text at the guilty place.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Self {
        if let Some(first) = self.labels.first_mut() {
            first.1 = text.into();
        }
        self
    }

    /// The same with a second place.
    #[must_use]
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push((span, text.into()));
        self
    }

    /// The same with help.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same with the title of the manual's section.
    #[must_use]
    pub fn section(mut self, section: &'static str) -> Self {
        self.section = Some(section);
        self
    }

    /// The guilty place.
    pub fn span(&self) -> Span {
        self.labels.first().map_or(Span::NONE, |l| l.0)
    }
}
