//! Everything that is written: results on standard output, diagnostics and sentences on standard error, and the exit status.
//!
//! With `--format json`, diagnostics are objects on standard output too. A reader that closes the pipe is no fault.

use std::fmt;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::ValueEnum;
use handloom_diag::{Diagnostic, Footer, Heading, Kind, Report, Severity, SourceMap, Style, names};
use handloom_diag::{render_human, render_json, render_snippets};
use serde::Serialize;

use crate::bug::Panic;

/// For people or for programs.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Text for people.
    Human,
    /// One JSON object a line.
    Json,
}

/// What is written to standard output.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum FormatArg {
    /// Text for people.
    Human,
    /// One JSON object a line.
    Json,
    /// What checks and traps of `run` and `exec` found, as one SARIF document.
    Sarif,
    /// The launches of `run`, or the program of `exec`, and what was found, as one JUnit document.
    Junit,
}

/// A document of all that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Document {
    /// SARIF 2.1.0.
    Sarif,
    /// JUnit's XML.
    Junit,
}

/// How a command ended: the exit status of all commands. Behind each other, the worse one stays.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Status {
    /// Nothing to report.
    Done,
    /// The PTX is right and something in it is not supported.
    Unsupported,
    /// The PTX is wrong.
    Program,
    /// A file, or room for a buffer.
    File,
    /// A trap.
    Found,
    /// The command line or the launch is wrong.
    Usage,
    /// Ended by this signal.
    Signal(u8),
    /// What a program that was run ended with.
    Passed(u8),
    /// A fault of ours.
    Bug,
}

impl Status {
    /// The number that the process ends with.
    pub fn code(self) -> u8 {
        match self {
            Status::Done => 0,
            Status::Found => 1,
            Status::Usage => 2,
            Status::Program => 3,
            Status::Unsupported => 4,
            Status::File => 5,
            Status::Bug => 101,
            Status::Signal(number) => 128 + number,
            Status::Passed(code) => code,
        }
    }

    /// What an error of this kind means for the exit status.
    fn of(kind: Kind) -> Status {
        match kind {
            Kind::Program => Status::Program,
            Kind::Unsupported => Status::Unsupported,
            Kind::Bug => Status::Bug,
        }
    }

    /// The status of a list of diagnostics. Warnings do not count.
    pub fn of_all(list: &[Diagnostic]) -> Status {
        errors(list).map(|d| Status::of(d.kind)).max().unwrap_or(Status::Done)
    }
}

/// The errors among diagnostics.
pub fn errors(list: &[Diagnostic]) -> impl Iterator<Item = &Diagnostic> {
    list.iter().filter(|d| d.severity == Severity::Error)
}

/// The end of a command before its work was done: a sentence and a status.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The status.
    pub status: Status,
    /// The sentence; lower case, no full stop. Empty if everything was said.
    pub message: String,
}

impl Failure {
    /// Wrong use.
    pub fn usage(message: impl fmt::Display) -> Failure {
        Failure { status: Status::Usage, message: message.to_string() }
    }

    /// A file, or room for a buffer.
    pub fn file(message: impl fmt::Display) -> Failure {
        Failure { status: Status::File, message: message.to_string() }
    }

    /// A fault whose text is written already.
    pub fn told(status: Status) -> Failure {
        Failure { status, message: String::new() }
    }
}

/// Errors that people see of one file, if they do not say how many they want.
const HUMAN_LIMIT: usize = 20;

/// Standard output, or what stands for it ([`Out::redirect`]). A clone is the same: kernels print while the command waits for them.
#[derive(Clone)]
pub struct Stdout(Arc<Mutex<Pipe>>);

type Buffered = std::io::BufWriter<Box<dyn Write + Send>>;

struct Pipe {
    out: Buffered,
    /// Nobody reads it any more.
    closed: bool,
    failed: Option<String>,
}

impl Stdout {
    fn lock(&self) -> MutexGuard<'_, Pipe> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes bytes.
    pub fn write(&self, bytes: &[u8]) {
        self.lock().attempt(|out| out.write_all(bytes));
    }

    /// Sends everything that was written.
    pub fn flush(&self) {
        self.lock().attempt(|out| out.flush());
    }

    /// Sends everything that was written, and more, unless somebody is just writing: he may be waiting for a reader.
    pub fn finish_if_free(&self, more: &[u8]) {
        if let Ok(mut pipe) = self.0.try_lock() {
            pipe.attempt(|out| out.write_all(more));
            pipe.attempt(|out| out.flush());
        }
    }
}

impl Pipe {
    fn attempt(&mut self, write: impl FnOnce(&mut Buffered) -> std::io::Result<()>) {
        if self.closed {
            return;
        }
        if let Err(e) = write(&mut self.out) {
            self.closed = true;
            if e.kind() != ErrorKind::BrokenPipe {
                self.failed = Some(format!("standard output cannot be written: {}", reason(&e)));
            }
        }
    }
}

/// Where a command writes.
pub struct Out {
    /// For people or for programs.
    pub format: Format,
    /// The document that standard output is for; the rest goes to standard error then.
    pub document: Option<Document>,
    /// Errors shown of each file.
    limit: usize,
    style: Style,
    stdout: Stdout,
    /// A fault of ours.
    failed: Option<String>,
    /// Nothing of it is shown.
    is_quiet: bool,
    /// Of launches only what went wrong is shown, on standard error.
    only_trouble: bool,
}

impl Out {
    /// One that shows nothing, for work that is done again.
    pub fn quiet(format: Format) -> Out {
        let mut new = Out::new(match format {
            Format::Human => FormatArg::Human,
            Format::Json => FormatArg::Json,
        });
        new.stdout.lock().out = buffered(Box::new(std::io::sink()));
        new.is_quiet = true;
        new
    }

    /// Shows of launches only what went wrong from now on, and that on standard error.
    pub fn only_trouble(&mut self) {
        self.only_trouble = true;
    }

    /// Whether of launches only what went wrong is shown.
    pub fn is_only_trouble(&self) -> bool {
        self.only_trouble
    }

    /// Whether nothing of it is shown.
    pub fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// Standard output and standard error.
    pub fn new(format: FormatArg) -> Out {
        let (format, document) = match format {
            FormatArg::Human => (Format::Human, None),
            FormatArg::Json => (Format::Json, None),
            FormatArg::Sarif => (Format::Human, Some(Document::Sarif)),
            FormatArg::Junit => (Format::Human, Some(Document::Junit)),
        };
        let style = match anstream::AutoStream::choice(&std::io::stderr()) {
            anstream::ColorChoice::Never => Style::Plain,
            anstream::ColorChoice::Auto | anstream::ColorChoice::AlwaysAnsi | anstream::ColorChoice::Always => {
                Style::Color
            }
        };
        let first: Box<dyn Write + Send> =
            if document.is_some() { Box::new(std::io::stderr()) } else { Box::new(std::io::stdout()) };
        let pipe = Pipe { out: buffered(first), closed: false, failed: None };
        let stdout = Stdout(Arc::new(Mutex::new(pipe)));
        let mut new =
            Out { format, document, limit: 0, style, stdout, failed: None, is_quiet: false, only_trouble: false };
        new.set_limit(None);
        new
    }

    /// Writes to standard error from now on: standard output carries the data of a buffer.
    pub fn redirect(&mut self) {
        self.flush();
        if self.is_quiet {
            return;
        }
        self.stdout.lock().out = buffered(Box::new(std::io::stderr()));
    }

    /// Writes the document to standard output, which is for it alone.
    pub fn write_document(&mut self, text: &str) {
        self.flush();
        let mut to = std::io::stdout().lock();
        match to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
            Err(e) if e.kind() != ErrorKind::BrokenPipe => {
                self.failed = Some(format!("standard output cannot be written: {}", reason(&e)));
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// With or without colour.
    pub fn style(&self) -> Style {
        self.style
    }

    /// Sets how many errors are shown of each file.
    pub fn set_limit(&mut self, limit: Option<usize>) {
        self.limit = match (limit, self.format) {
            (Some(0), _) | (None, Format::Json) => usize::MAX,
            (Some(n), _) => n,
            (None, Format::Human) => HUMAN_LIMIT,
        };
    }

    /// Writes bytes to standard output.
    pub fn write(&mut self, bytes: &[u8]) {
        self.stdout.write(bytes);
    }

    /// Standard output, for one who writes beside.
    pub fn stdout(&self) -> Stdout {
        self.stdout.clone()
    }

    /// Writes a line for a person who looks on: nothing if standard output is no terminal, or objects are wanted.
    pub fn line_on_terminal(&mut self, text: &str) {
        if self.format == Format::Human && std::io::stdout().is_terminal() {
            self.line(text);
        }
    }

    /// Writes a line to standard output.
    pub fn line(&mut self, text: &str) {
        self.write(text.as_bytes());
        self.write(b"\n");
    }

    /// Writes an object as one line of standard output.
    pub fn json(&mut self, value: &impl Serialize) {
        match serde_json::to_string(value) {
            Ok(text) => self.line(&text),
            Err(e) => self.failed = Some(format!("an object cannot be written as JSON: {e}")),
        }
    }

    /// Writes text for people to standard error, behind what is on standard output.
    pub fn say(&mut self, text: &str) {
        self.flush();
        if self.is_quiet {
            return;
        }
        let stream = anstream::AutoStream::choice(&std::io::stderr());
        let mut err = anstream::AutoStream::new(std::io::stderr().lock(), stream);
        // Nobody can be told that this fails.
        let _ = writeln!(err, "{text}");
    }

    /// Sends everything that was written.
    pub fn flush(&mut self) {
        self.stdout.flush();
    }

    /// Shows diagnostics of one file, as many as wanted.
    pub fn diagnostics(&mut self, list: &[Diagnostic], sources: &SourceMap) {
        let (mut n_errors, mut n_others, mut hidden) = (0, 0, 0);
        for d in list {
            let n = if d.severity == Severity::Error { &mut n_errors } else { &mut n_others };
            *n += 1;
            if *n > self.limit {
                hidden += usize::from(d.severity == Severity::Error);
                continue;
            }
            match self.format {
                Format::Json => {
                    let line = render_json(d, sources);
                    self.line(&line);
                }
                Format::Human => {
                    let text = render_human(d, sources, self.style);
                    self.say(&format!("{text}\n"));
                }
            }
        }
        if hidden > 0 && self.format == Format::Human {
            let s = if hidden == 1 { "" } else { "s" };
            self.say(&format!("note: {hidden} more error{s} not shown; `--error-limit 0` shows all\n"));
        }
    }

    /// Shows a fault of ours. `file` is what was worked on.
    pub fn bug(&mut self, panic: &Panic, file: Option<&str>) {
        #[derive(Serialize)]
        struct Object<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            file: Option<&'a str>,
            severity: &'static str,
            kind: &'static str,
            message: &'a str,
        }
        if self.format == Format::Json {
            self.json(&Object { file, severity: "error", kind: "bug", message: &panic.message });
        }
        let mut footers = Vec::new();
        footers.extend(panic.place.iter().map(|p| Footer::Note(format!("at {p}"))));
        let with = file.map_or(String::new(), |f| format!(" with the file `{f}`"));
        footers.push(Footer::Help(format!("this is a fault of Handloom, not of the program: please report it{with}")));
        let report =
            Report { heading: Heading::Word("bug"), title: panic.message.clone(), snippets: Vec::new(), footers };
        let text = render_snippets(&report, &SourceMap::new(), self.style);
        self.say(&text);
    }

    /// Says why a command ended early.
    pub fn failure(&mut self, failure: &Failure) -> Status {
        if !failure.message.is_empty() {
            self.error(&failure.message);
        }
        failure.status
    }

    /// `note: SENTENCE` on standard error.
    pub fn note(&mut self, sentence: &str) {
        self.say(&format!("note: {sentence}"));
    }

    /// `error: SENTENCE` on standard error.
    pub fn error(&mut self, sentence: &str) {
        let (on, off) = match self.style {
            Style::Plain => ("", ""),
            Style::Color => ("\x1b[1m\x1b[91m", "\x1b[0m"),
        };
        let notes: Vec<String> = names::notes([sentence]).into_iter().map(|n| format!("\n  = note: {n}")).collect();
        // A sentence that says both names itself needs no note.
        let notes = if sentence.contains("` (`_") { String::new() } else { notes.concat() };
        self.say(&format!("{on}error{off}: {sentence}{notes}"));
    }

    /// Ends the output. A standard output that cannot be written is a fault of files.
    pub fn finish(mut self, status: Status) -> Status {
        self.flush();
        let unwritten = self.stdout.lock().failed.take();
        match self.failed.take().or(unwritten) {
            Some(message) => {
                self.error(&message);
                status.max(Status::File)
            }
            None => status,
        }
    }
}

fn buffered(to: Box<dyn Write + Send>) -> Buffered {
    std::io::BufWriter::with_capacity(1 << 16, to)
}

/// What went wrong with a file, without the number of the operating system.
pub fn reason(e: &std::io::Error) -> String {
    let text = e.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_lowercase(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_kinds_the_worse_one_is_told() {
        assert_eq!(Status::Program.max(Status::Unsupported).code(), 3);
        assert_eq!(Status::Program.max(Status::Found).code(), 1);
        assert_eq!(Status::Bug.max(Status::Found).code(), 101);
        assert_eq!(Status::Signal(2).code(), 130);
    }
}
