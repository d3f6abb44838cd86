//! From data to text for people and JSON for machines.
//!
//! Invariants: the text is the same with and without colour; the work for one fault does not grow with the size of
//! its file, because only the lines around its labels are handed to the rendering package.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet as Drawn};
use serde_json::{Map, Value};

use crate::{Code, Diagnostic, FileId, Kind, Severity, SourceMap, Span, names};

/// With or without colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Style {
    /// Text only.
    Plain,
    /// ANSI escapes for colour.
    Color,
}

/// The word before the title.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Heading<'a> {
    /// `error[E0301]`, `warning[W0401]`, `note[...]`.
    Coded(Severity, Code),
    /// A word of the caller's, drawn like an error: `trap`, `bug`.
    Word(&'a str),
}

/// A piece of source with marks in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Snippet<'a> {
    /// Places of one or more files of the source map; the first is underlined as the guilty one.
    Places(Vec<(Span, String)>),
    /// One line given as text, because its file is not in the source map. All of it but the blanks is underlined.
    Line {
        /// Name of the file.
        name: &'a str,
        /// Number of the line from 1.
        line: u32,
        /// The line.
        text: &'a str,
        /// Text at the mark; may be empty.
        label: String,
    },
}

/// A line under the snippets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Footer {
    /// `= note: ...`
    Note(String),
    /// `= help: ...`
    Help(String),
    /// `= function: ...`
    Function(String),
    /// `= section: ...`
    Section(String),
}

/// A whole report for a person: what trap reports and other texts that are no [`Diagnostic`] are made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report<'a> {
    /// The word before the title.
    pub heading: Heading<'a>,
    /// One sentence, lower case, no full stop.
    pub title: String,
    /// Pieces of source in order.
    pub snippets: Vec<Snippet<'a>>,
    /// Notes and helps in order.
    pub footers: Vec<Footer>,
}

/// The texts of a diagnostic that may hold names.
fn texts(d: &Diagnostic) -> impl Iterator<Item = &str> {
    let labels = d.labels.iter().map(|(_, text)| text.as_str());
    let others = d.help.as_deref().into_iter().chain(d.function.as_deref());
    std::iter::once(d.message.as_str()).chain(labels).chain(others)
}

/// Mangled names as an object: the readable form by the name.
pub fn names_json<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<Value> {
    let found = names::explain(texts);
    let object: Map<String, Value> = found.into_iter().map(|(n, text)| (n.to_owned(), text.into())).collect();
    (!object.is_empty()).then_some(Value::Object(object))
}

/// A diagnostic as text for a person, without a newline at the end.
pub fn render_human(d: &Diagnostic, sources: &SourceMap, style: Style) -> String {
    let mut footers = Vec::new();
    footers.extend(names::notes(texts(d)).into_iter().map(Footer::Note));
    footers.extend(d.help.iter().cloned().map(Footer::Help));
    footers.extend(d.function.iter().map(|f| Footer::Function(f.clone())));
    footers.extend(d.section.iter().map(|s| Footer::Section((*s).to_owned())));
    let report = Report {
        heading: Heading::Coded(d.severity, d.code),
        title: d.message.clone(),
        snippets: vec![Snippet::Places(d.labels.clone())],
        footers,
    };
    render_snippets(&report, sources, style)
}

/// A report as text for a person, without a newline at the end.
pub fn render_snippets(report: &Report<'_>, sources: &SourceMap, style: Style) -> String {
    let (level, id) = match report.heading {
        Heading::Coded(Severity::Error, code) => (Level::ERROR, Some(code.name())),
        Heading::Coded(Severity::Warning, code) => (Level::WARNING, Some(code.name())),
        Heading::Coded(Severity::Note, code) => (Level::NOTE, Some(code.name())),
        Heading::Word(word) => (Level::ERROR.with_name(word), None),
    };
    let mut title = level.primary_title(report.title.as_str());
    if let Some(id) = id {
        title = title.id(id);
    }
    let mut group = Group::with_title(title);
    let mut primary = true;
    for snippet in &report.snippets {
        match snippet {
            Snippet::Places(labels) => {
                for cluster in clusters(labels, sources) {
                    group = draw(group, &cluster, sources, primary);
                    primary = false;
                }
            }
            Snippet::Line { name, line, text, label } => {
                let start = text.len() - text.trim_start().len();
                let marked = start..start.max(text.trim_end().len());
                let drawn = Drawn::source(*text).line_start(*line as usize).path(*name);
                group = group.element(drawn.annotation(annotation(primary, marked, label)));
                primary = false;
            }
        }
    }
    for footer in &report.footers {
        group = group.element(match footer {
            Footer::Note(text) => Level::NOTE.message(text.as_str()),
            Footer::Help(text) => Level::HELP.message(text.as_str()),
            Footer::Function(text) => Level::NOTE.with_name("function").message(text.as_str()),
            Footer::Section(text) => Level::NOTE.with_name("section").message(text.as_str()),
        });
    }
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Color => Renderer::styled(),
    };
    renderer.render(&[group])
}

/// A diagnostic as one JSON object on one line, without a newline at the end. Absent fields are left out.
pub fn render_json(d: &Diagnostic, sources: &SourceMap) -> String {
    let mut object = Map::new();
    let span = d.span();
    if span.file != Span::NONE.file {
        let (start, end) = (sources.position(span.file, span.start), sources.position(span.file, span.end));
        object.insert("file".into(), sources.name(span.file).into());
        object.insert("line".into(), start.line.into());
        object.insert("column".into(), start.column.into());
        object.insert("end_line".into(), end.line.into());
        object.insert("end_column".into(), end.column.into());
    }
    let severity = match d.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let kind = match d.kind {
        Kind::Program => "program",
        Kind::Unsupported => "unsupported",
        Kind::Bug => "bug",
    };
    object.insert("severity".into(), severity.into());
    object.insert("kind".into(), kind.into());
    object.insert("code".into(), d.code.name().into());
    object.insert("message".into(), d.message.as_str().into());
    if let Some(help) = &d.help {
        object.insert("help".into(), help.as_str().into());
    }
    if let Some(function) = &d.function {
        object.insert("function".into(), function.as_str().into());
    }
    if let Some(section) = d.section {
        object.insert("section".into(), section.into());
    }
    if let Some(opcode) = &d.opcode {
        object.insert("opcode".into(), opcode.as_str().into());
    }
    if let Some(names) = names_json(texts(d)) {
        object.insert("names".into(), names);
    }
    Value::Object(object).to_string()
}

/// Places of one file that are near each other, with the bytes of the lines that hold them.
struct Cluster<'a> {
    file: FileId,
    window: Range<usize>,
    labels: Vec<(Range<usize>, &'a str)>,
}

/// Lines that may lie between two places of one piece of source.
const NEAR_LINES: u32 = 40;

/// Bytes of a line that are shown before and after a place, where the line is longer than twice that.
const NEAR_BYTES: usize = 400;

/// Sorts places into pieces of source. The piece of the first place comes first.
fn clusters<'a>(labels: &'a [(Span, String)], sources: &SourceMap) -> Vec<Cluster<'a>> {
    let mut clusters: Vec<Cluster<'a>> = Vec::new();
    for (span, text) in labels.iter().filter(|(span, _)| span.file != Span::NONE.file) {
        let file_text = sources.text(span.file);
        let start = file_text.floor_char_boundary(span.start as usize);
        let mut end = file_text.ceil_char_boundary(span.end as usize).max(start);
        let first = sources.lines(span.file, start, start);
        let mut lines = sources.lines(span.file, start, end);
        let line = sources.position(span.file, byte(start)).line;
        if sources.position(span.file, byte(end)).line - line > NEAR_LINES {
            // A place of very many lines is shown by its first one.
            end = first.end;
            lines = first;
        }
        if lines.len() > 2 * NEAR_BYTES {
            lines.start = lines.start.max(file_text.ceil_char_boundary(start.saturating_sub(NEAR_BYTES)));
            end = end.min(file_text.floor_char_boundary(start + NEAR_BYTES));
            lines.end = lines.end.min(file_text.floor_char_boundary(end + NEAR_BYTES));
        }
        let near = |c: &&mut Cluster<'_>| {
            let from = sources.position(c.file, byte(c.window.start)).line;
            let joined = c.window.start.min(lines.start)..c.window.end.max(lines.end);
            let in_same_line = c.window.start < lines.end && lines.start < c.window.end;
            let few_bytes = joined.len() <= 4 * NEAR_BYTES * NEAR_LINES as usize;
            c.file == span.file && (in_same_line || (from.abs_diff(line) <= NEAR_LINES && few_bytes))
        };
        match clusters.iter_mut().find(near) {
            Some(cluster) => {
                cluster.window = cluster.window.start.min(lines.start)..cluster.window.end.max(lines.end);
                cluster.labels.push((start..end, text));
            }
            None => clusters.push(Cluster { file: span.file, window: lines, labels: vec![(start..end, text)] }),
        }
    }
    clusters
}

/// Adds one piece of source.
fn draw<'a>(group: Group<'a>, cluster: &Cluster<'a>, sources: &'a SourceMap, primary: bool) -> Group<'a> {
    let window = cluster.window.clone();
    let from = sources.position(cluster.file, byte(window.start));
    let source = sources.text(cluster.file).get(window.clone()).unwrap_or("");
    let mut drawn = Drawn::source(source).line_start(from.line as usize);
    let name = sources.name(cluster.file);
    for (i, (range, label)) in cluster.labels.iter().enumerate() {
        let range = range.start - window.start..range.end - window.start;
        drawn = drawn.annotation(annotation(primary && i == 0, range, label));
    }
    if from.column == 1 {
        return group.element(drawn.path(name));
    }
    // The line was cut at its start, so the package cannot count the column.
    let first = cluster.labels.first().map_or(window.start, |l| l.0.start);
    let at = sources.position(cluster.file, byte(first));
    group.element(Origin::path(name).line(at.line as usize).char_column(at.column as usize)).element(drawn)
}

fn annotation(primary: bool, range: Range<usize>, label: &str) -> annotate_snippets::Annotation<'_> {
    let kind = if primary { AnnotationKind::Primary } else { AnnotationKind::Context };
    let annotation = kind.span(range);
    if label.is_empty() { annotation } else { annotation.label(label) }
}

/// Positions in files are 32-bit; a byte after that is after the end of every file.
fn byte(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
