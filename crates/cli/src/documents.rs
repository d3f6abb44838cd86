//! What was found, as one document for programs that collect such things: what documents tell, and JUnit. [`sarif`](crate::sarif) is the other kind.

use std::fmt::Write;

use handloom_profile::escape;
use handloom_runtime::{Finding, TrapReport};
use serde::Deserialize;

use crate::suite::Verdict;

/// What a document is made of.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// What ran, or was to run.
    pub cases: &'a [Case],
    /// What was found.
    pub findings: &'a [&'a Finding],
    /// Why there may be more to find.
    pub unfinished: &'a [String],
}

/// A launch, or a program, as documents tell it.
#[derive(Debug)]
pub struct Case {
    /// What it is: `launch` or `program`.
    pub what: &'static str,
    /// The entry, or the command.
    pub entry: String,
    /// How long it ran, in seconds.
    pub seconds: f64,
    /// Its trap: kind, sentence, place.
    pub trap: Option<Trapped>,
    /// The file of a program.
    pub program: Option<String>,
}

/// A trap, as documents tell it.
#[derive(Debug)]
pub struct Trapped {
    /// The stable word of its kind.
    pub kind: String,
    /// What happened, as a sentence.
    pub message: String,
    /// The PTX file, line and column.
    pub place: Option<(String, u32, u32)>,
    /// File and line of the source.
    pub source: Option<(String, u32)>,
}

impl Trapped {
    /// Of a report.
    pub fn of(trap: &TrapReport) -> Trapped {
        Trapped {
            kind: trap.kind().word().to_owned(),
            message: trap.message().to_owned(),
            place: trap.place().map(|(file, at)| (file.to_owned(), at.line, at.column)),
            source: trap.cuda_place().map(|(file, line)| (file.to_owned(), line)),
        }
    }

    /// Of a program, or of a launch that did not run: neither has a place.
    pub fn placeless(kind: &str, message: String) -> Trapped {
        Trapped { kind: kind.to_owned(), message, place: None, source: None }
    }
}

/// A trap, as a library of a program notes it.
#[derive(Deserialize)]
pub struct NotedTrap {
    kind: String,
    message: String,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    line: u32,
    #[serde(default)]
    column: u32,
    #[serde(default)]
    cuda_file: Option<String>,
    #[serde(default)]
    cuda_line: u32,
}

impl From<NotedTrap> for Trapped {
    fn from(noted: NotedTrap) -> Trapped {
        Trapped {
            kind: noted.kind,
            message: noted.message,
            place: noted.file.map(|file| (file, noted.line, noted.column)),
            source: noted.cuda_file.map(|file| (file, noted.cuda_line)),
        }
    }
}

/// A JUnit document: a case for each launch or trap and for a program, one for each finding, and one for each reason why there may be more to find.
pub fn junit(told: &Told<'_>) -> String {
    let Told { cases, findings, unfinished } = *told;
    let traps = cases.iter().filter(|c| c.trap.is_some()).count();
    let tests = cases.len() + findings.len() + unfinished.len();
    let seconds: f64 = cases.iter().map(|c| c.seconds).sum();
    let mut out = opened(tests, traps + findings.len(), unfinished.len(), seconds);
    for case in cases {
        let (what, entry) = (case.what, escape(&case.entry));
        let head = format!("<testcase classname=\"{what}\" name=\"{entry}\" time=\"{}\"", time(case.seconds));
        match &case.trap {
            None => drop(writeln!(out, "{head}/>")),
            Some(trap) => {
                let at = trap.place.as_ref().map_or(String::new(), |(file, line, _)| format!("{file}:{line}"));
                let (kind, message) = (escape(&trap.kind), escape(&trap.message));
                let _ = writeln!(
                    out,
                    "{head}><failure type=\"trap/{kind}\" message=\"{message}\">{}</failure></testcase>",
                    escape(&at)
                );
            }
        }
    }
    for f in findings {
        // Both places, as two findings may have one of them in common.
        let places: Vec<String> = std::iter::once(&f.first)
            .chain(&f.second)
            .map(|at| at.source.clone().unwrap_or_else(|| (at.file.clone(), at.line)))
            .map(|(file, line)| format!("{file}:{line}"))
            .collect();
        let name = escape(&format!("{} {}", f.class, places.join(" ")));
        let _ = writeln!(
            out,
            "<testcase classname=\"{}\" name=\"{name}\"><failure type=\"{}/{}\" message=\"{}\">{}</failure></testcase>",
            f.kind,
            f.kind,
            f.class,
            escape(&f.message),
            escape(&f.human())
        );
    }
    for why in unfinished {
        let why = escape(why);
        let error = format!("<error type=\"unfinished\" message=\"{why}\"/>");
        let _ = writeln!(out, "<testcase classname=\"check\" name=\"{why}\">{error}</testcase>");
    }
    out.push_str(CLOSED);
    out
}

/// A JUnit document of tests.
pub fn junit_of_tests(all: &[Verdict]) -> String {
    let failures = all.iter().filter(|v| v.failure.is_some()).count();
    let seconds: f64 = all.iter().map(|v| v.seconds).sum();
    let mut out = opened(all.len(), failures, 0, seconds);
    for v in all {
        let head = format!("<testcase classname=\"test\" name=\"{}\" time=\"{}\"", escape(&v.file), time(v.seconds));
        let _ = match &v.failure {
            None => writeln!(out, "{head}/>"),
            Some(text) => {
                let first = text.lines().next().unwrap_or("");
                let failure =
                    format!("<failure type=\"test\" message=\"{}\">{}</failure>", escape(first), escape(text));
                writeln!(out, "{head}>{failure}</testcase>")
            }
        };
    }
    out.push_str(CLOSED);
    out
}

/// The head of a JUnit document.
fn opened(tests: usize, failures: usize, errors: usize, seconds: f64) -> String {
    let totals = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{}\"", time(seconds));
    let head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    format!("{head}<testsuites name=\"handloom\" {totals}>\n<testsuite name=\"handloom\" {totals}>\n")
}

/// Seconds, with as many digits as the common schema of JUnit documents takes.
fn time(seconds: f64) -> String {
    format!("{seconds:.3}")
}

/// The end of a JUnit document.
const CLOSED: &str = "</testsuite>\n</testsuites>\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_safe_in_xml() {
        assert_eq!(escape("a<b>&\"\u{1}\u{ffff}"), "a&lt;b&gt;&amp;&quot;\u{fffd}\u{fffd}");
    }

    #[test]
    fn times_have_three_digits() {
        assert!(opened(1, 0, 2, 0.000_331).contains("tests=\"1\" failures=\"0\" errors=\"2\" time=\"0.000\""));
    }
}
