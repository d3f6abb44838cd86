//! What was found, as one document for programs that collect such things: SARIF and JUnit.

use std::fmt::Write;

use handloom_profile::escape;
use handloom_runtime::{Finding, FoundAt, TrapReport};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::suite::Verdict;

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
}

/// A trap, as documents tell it.
#[derive(Debug)]
pub struct Trapped {
    kind: String,
    message: String,
    place: Option<(String, u32, u32)>,
    source: Option<(String, u32)>,
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

    /// Of a program, which has no place.
    pub fn program(kind: &str, message: String) -> Trapped {
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

/// A SARIF 2.1.0 document.
pub fn sarif(cases: &[Case], findings: &[&Finding]) -> String {
    let mut rules: Vec<String> = Vec::new();
    let mut results = Vec::new();
    let mut rule = |id: String| match rules.iter().position(|known| *known == id) {
        Some(i) => i,
        None => {
            rules.push(id);
            rules.len() - 1
        }
    };
    for f in findings {
        let id = format!("{}/{}", f.kind, f.class);
        let index = rule(id.clone());
        let related: Vec<Value> = f.second.iter().map(location).collect();
        results.push(json!({
            "ruleId": id, "ruleIndex": index, "level": "error",
            "message": { "text": f.message },
            "locations": [location(&f.first)],
            "relatedLocations": related,
            "occurrenceCount": f.pairs.max(1),
        }));
    }
    for trap in cases.iter().filter_map(|c| c.trap.as_ref()) {
        let id = format!("trap/{}", trap.kind);
        let index = rule(id.clone());
        let place = match (&trap.source, &trap.place) {
            (Some((file, line)), _) => Some(physical(file, *line, None)),
            (None, Some((file, line, column))) => Some(physical(file, *line, Some(*column))),
            (None, None) => None,
        };
        let locations: Vec<Value> = place.into_iter().collect();
        results.push(json!({
            "ruleId": id, "ruleIndex": index, "level": "error",
            "message": { "text": trap.message },
            "locations": locations,
        }));
    }
    sarif_of(&rules, &results)
}

fn sarif_of(rules: &[String], results: &[Value]) -> String {
    let rules: Vec<Value> = rules.iter().map(|id| json!({ "id": id })).collect();
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "Handloom", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "results": results,
        }],
    });
    format!("{document:#}\n")
}

/// The line of the source where it is known, and the statement beside it.
fn location(at: &FoundAt) -> Value {
    let mut location = match &at.source {
        Some((file, line)) => physical(file, *line, None),
        None => physical(&at.file, at.line, Some(at.column)),
    };
    let [x, y, z] = at.block;
    let [tx, ty, tz] = at.thread;
    let text = if at.is_of_program() {
        format!("{}: {} by the program", at.does, at.statement)
    } else {
        let who = format!("block ({x},{y},{z}) thread ({tx},{ty},{tz})");
        format!("{}: `{}` at {}:{} by {who}", at.does, at.statement, at.file, at.line)
    };
    let from = at.caller.as_ref().map_or(String::new(), |caller| format!(", from {}:{}", caller.file, caller.line));
    location["message"] = json!({ "text": format!("{text}{from}") });
    location
}

fn physical(file: &str, line: u32, column: Option<u32>) -> Value {
    let mut region = json!({ "startLine": line });
    if let Some(column) = column {
        region["startColumn"] = json!(column);
    }
    json!({ "physicalLocation": { "artifactLocation": { "uri": uri(file) }, "region": region } })
}

/// A path as a URI reference.
fn uri(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => out.push(char::from(byte)),
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    if path.starts_with('/') { format!("file://{out}") } else { out }
}

/// A JUnit document: a case for each launch or trap and for a program, and one for each finding.
pub fn junit(cases: &[Case], findings: &[&Finding]) -> String {
    let traps = cases.iter().filter(|c| c.trap.is_some()).count();
    let (tests, failures) = (cases.len() + findings.len(), traps + findings.len());
    let seconds: f64 = cases.iter().map(|c| c.seconds).sum();
    let mut out = opened(tests, failures, seconds);
    for case in cases {
        let (what, entry) = (case.what, escape(&case.entry));
        let head = format!("<testcase classname=\"{what}\" name=\"{entry}\" time=\"{:.6}\"", case.seconds);
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
    out.push_str(CLOSED);
    out
}

/// A JUnit document of tests.
pub fn junit_of_tests(all: &[Verdict]) -> String {
    let failures = all.iter().filter(|v| v.failure.is_some()).count();
    let seconds: f64 = all.iter().map(|v| v.seconds).sum();
    let mut out = opened(all.len(), failures, seconds);
    for v in all {
        let head = format!("<testcase classname=\"test\" name=\"{}\" time=\"{:.6}\"", escape(&v.file), v.seconds);
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

/// A SARIF 2.1.0 document of tests: a result for each that failed.
pub fn sarif_of_tests(all: &[Verdict]) -> String {
    let result = |v: &Verdict| {
        let text = v.failure.as_ref()?;
        let mut place = json!({ "artifactLocation": { "uri": uri(&v.file) } });
        if let Some(line) = line_in(text, &v.file) {
            place["region"] = json!({ "startLine": line });
        }
        let location = json!({ "physicalLocation": place });
        let message = json!({ "text": text });
        Some(json!({ "ruleId": "test", "ruleIndex": 0, "level": "error", "message": message, "locations": [location] }))
    };
    sarif_of(&["test".to_owned()], &all.iter().filter_map(result).collect::<Vec<_>>())
}

/// The line of a file that a failure is about: the first that it names as `line 5:` or `FILE:5`.
fn line_in(failure: &str, file: &str) -> Option<u32> {
    let after = |mark: &str| {
        let (_, rest) = failure.split_once(mark)?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    };
    after("line ").or_else(|| after(&format!("{file}:")))
}

/// The head of a JUnit document.
fn opened(tests: usize, failures: usize, seconds: f64) -> String {
    let totals = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" time=\"{seconds:.6}\"");
    let head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    format!("{head}<testsuites name=\"handloom\" {totals}>\n<testsuite name=\"handloom\" {totals}>\n")
}

/// The end of a JUnit document.
const CLOSED: &str = "</testsuite>\n</testsuites>\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_safe_in_xml_and_in_uris() {
        assert_eq!(escape("a<b>&\"\u{1}"), "a&lt;b&gt;&amp;&quot;\u{fffd}");
        assert_eq!(uri("dir/a b.cu"), "dir/a%20b.cu");
        assert_eq!(uri("/x.cu"), "file:///x.cu");
    }

    #[test]
    fn failures_name_lines() {
        assert_eq!(line_in("[jit, seed 0] line 25: x[0] is 1", "k.ptx"), Some(25));
        assert_eq!(line_in("race: a\n  write  st  k.ptx:7  block", "k.ptx"), Some(7));
        assert_eq!(line_in("exit status 1", "k.json"), None);
    }
}
