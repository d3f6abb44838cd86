//! What was found, as one SARIF 2.1.0 document.
//!
//! Each result has what collectors of such documents ask for: a rule with texts, a place in a file, and a fingerprint that stays the same while lines move.
//! A result without any place would make them refuse the whole document; it is told as a notification of the run.

use std::fmt::Write;

use handloom_runtime::{Finding, FoundAt};
use serde_json::{Value, json};

use crate::documents::{Case, Told};
use crate::explain;
use crate::suite::Verdict;

/// A document of launches, or of a program.
pub fn sarif(told: &Told<'_>) -> String {
    let program = told.cases.iter().find_map(|case| case.program.as_deref()).unwrap_or("program");
    let mut run = Run::default();
    for (found, mark) in told.findings.iter().zip(fingerprints(told.findings)) {
        run.find(found, &mark, program);
    }
    told.cases.iter().for_each(|case| run.end(case));
    told.unfinished.iter().for_each(|why| run.note("unfinished", why));
    run.document()
}

/// A document of tests: a result for each that failed.
pub fn sarif_of_tests(all: &[Verdict]) -> String {
    let mut run = Run::default();
    for v in all {
        let Some(text) = &v.failure else { continue };
        let place = physical(&v.file, line_in(text, &v.file).unwrap_or(1), None);
        let mark = format!("{:016x}:1", fnv(&["test", &v.file]));
        run.add("test", text, place, &mark, json!({}));
    }
    run.document()
}

/// What a document says of a run.
#[derive(Default)]
struct Run {
    rules: Vec<String>,
    results: Vec<Value>,
    notes: Vec<Value>,
}

impl Run {
    fn find(&mut self, found: &Finding, mark: &str, program: &str) {
        let places: Vec<&FoundAt> = std::iter::once(&found.first).chain(&found.second).collect();
        // What has a line in a file comes before what has none.
        let first = places.iter().position(|at| !at.is_of_program() || at.source.is_some()).unwrap_or(0);
        let related: Vec<Value> = (0..places.len())
            .filter(|i| *i != first)
            .map(|i| {
                let mut location = location(places[i], program);
                location["id"] = json!(i);
                location
            })
            .collect();
        let more = json!({ "relatedLocations": related, "occurrenceCount": found.pairs.max(1) });
        let rule = format!("{}/{}", found.kind, found.class);
        self.add(&rule, &found.message, location(places[first], program), mark, more);
    }

    /// Adds the trap of a launch, or what went wrong with a program.
    fn end(&mut self, case: &Case) {
        let Some(trap) = &case.trap else { return };
        let rule = format!("trap/{}", trap.kind);
        let place = match (&trap.source, &trap.place, &case.program) {
            (Some((file, line)), ..) => physical(file, *line, None),
            (None, Some((file, line, column)), _) => physical(file, *line, Some(*column)),
            (None, None, Some(program)) => physical(program, 1, None),
            (None, None, None) => return self.note(&rule, &trap.message),
        };
        let at = trap.place.as_ref().map_or(String::new(), |(file, line, _)| format!("{file} {line}"));
        let mark = format!("{:016x}:1", fnv(&[&rule, case.program.as_ref().unwrap_or(&case.entry), &at]));
        // Other launches and seeds may have met the same.
        match self.results.iter_mut().find(|r| r["partialFingerprints"][FINGERPRINT] == *mark) {
            Some(known) => known["occurrenceCount"] = json!(known["occurrenceCount"].as_u64().unwrap_or(1) + 1),
            None => self.add(&rule, &trap.message, place, &mark, json!({})),
        }
    }

    fn add(&mut self, rule: &str, text: &str, place: Value, mark: &str, more: Value) {
        let index = self.rules.iter().position(|known| known == rule).unwrap_or(self.rules.len());
        if index == self.rules.len() {
            self.rules.push(rule.to_owned());
        }
        let mut result = json!({
            "ruleId": rule, "ruleIndex": index, "level": "error",
            "message": { "text": text },
            "locations": [place],
            "partialFingerprints": { FINGERPRINT: mark },
        });
        if let (Value::Object(result), Value::Object(more)) = (&mut result, more) {
            result.extend(more);
        }
        self.results.push(result);
    }

    /// Something that has no place in a file, and because of which the document is not all that there is to say.
    fn note(&mut self, id: &str, text: &str) {
        self.notes.push(json!({ "descriptor": { "id": id }, "level": "error", "message": { "text": text } }));
    }

    fn document(&self) -> String {
        let rules: Vec<Value> = self.rules.iter().map(|id| rule(id)).collect();
        let document = json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": { "name": "Handloom", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
                "invocations": [{ "executionSuccessful": self.notes.is_empty(), "toolExecutionNotifications": self.notes }],
                "results": self.results,
            }],
        });
        format!("{document:#}\n")
    }
}

/// The name of the fingerprint that collectors look for.
const FINGERPRINT: &str = "primaryLocationLineHash";

/// A rule, with what `explain` says of it.
fn rule(id: &str) -> Value {
    let (_, class) = id.split_once('/').unwrap_or(("", id));
    let (title, text, help) = match explain::about(class) {
        Some((code, title, text)) => {
            let help = format!("{text}\n\n`handloom explain {code}` shows a wrong and a right example.");
            (title.to_owned(), text.replace('\n', " "), help)
        }
        None => {
            let text = match class {
                "test" => "a test does not hold",
                _ => "the program did not end as it should",
            };
            (text.to_owned(), text.to_owned(), text.to_owned())
        }
    };
    json!({
        "id": id,
        "shortDescription": { "text": title },
        "fullDescription": { "text": text },
        "help": { "text": help },
        "defaultConfiguration": { "level": "error" },
    })
}

/// What findings are known by from one run to the next: their class, what they are about, and the files and opcodes of their places, with a number where
/// these have them in common.
fn fingerprints(findings: &[&Finding]) -> Vec<String> {
    let key = |f: &Finding| {
        let place = |at: &FoundAt| {
            let file = at.source.as_ref().map_or(&at.file, |(file, _)| file);
            format!("{} {}", file.rsplit('/').next().unwrap_or(file), at.opcode())
        };
        let mut places: Vec<String> = std::iter::once(&f.first).chain(&f.second).map(place).collect();
        // Either side may come first in a run.
        places.sort();
        let places: Vec<&str> = places.iter().map(String::as_str).collect();
        fnv(&[&[f.kind, f.class, &f.data.what], &places[..]].concat())
    };
    let lines = |f: &Finding| {
        let line = |at: &FoundAt| (at.source.as_ref().map_or(at.line, |(_, line)| *line), at.line, at.column);
        let mut lines: Vec<_> = std::iter::once(&f.first).chain(&f.second).map(line).collect();
        lines.sort_unstable();
        lines
    };
    let all: Vec<_> = findings.iter().map(|f| (key(f), lines(f))).collect();
    let number = |i: usize| {
        let (key, lines) = &all[i];
        let is_before = |j: &usize| all[*j].0 == *key && (&all[*j].1, *j) < (lines, i);
        (0..all.len()).filter(is_before).count() + 1
    };
    (0..all.len()).map(|i| format!("{:016x}:{}", all[i].0, number(i))).collect()
}

/// FNV-1a of words: the same with every release.
fn fnv(words: &[&str]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The line of the source where it is known, and the statement beside it.
fn location(at: &FoundAt, program: &str) -> Value {
    let mut location = match &at.source {
        Some((file, line)) => physical(file, *line, None),
        None if at.is_of_program() => physical(program, 1, None),
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
    // `.loc` may say line 0, which no document may.
    let mut region = json!({ "startLine": line.max(1) });
    if let Some(column) = column {
        region["startColumn"] = json!(column.max(1));
    }
    json!({ "physicalLocation": { "artifactLocation": { "uri": uri(file) }, "region": region } })
}

/// A path as a URI reference.
fn uri(path: &str) -> String {
    let mut out = String::new();
    let path = path.strip_prefix("./").unwrap_or(path);
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => out.push(char::from(byte)),
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    if path.starts_with('/') { format!("file://{out}") } else { out }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_uris() {
        assert_eq!(uri("./dir/a b.cu"), "dir/a%20b.cu");
        assert_eq!(uri("/x.cu"), "file:///x.cu");
    }

    #[test]
    fn failures_name_lines() {
        assert_eq!(line_in("[jit, seed 0] line 25: x[0] is 1", "k.ptx"), Some(25));
        assert_eq!(line_in("race: a\n  write  st  k.ptx:7  block", "k.ptx"), Some(7));
        assert_eq!(line_in("exit status 1", "k.json"), None);
    }
}
