//! Verdicts of NVIDIA's assembler on single statements, which `tests/oracle/ask.py` recorded, against the checker.
//!
//! A statement is accepted by the checker if it gives no error of the program; that something does not run yet is no refusal. Where the two
//! differ on purpose, a line of [`EXCEPTIONS`] says which statements and why; a line that no difference needs is a failure too.

use std::collections::BTreeMap;

use handloom_check::check_text;
use handloom_diag::{FileId, Kind, Severity, SourceMap};

/// Differences that are meant.
struct Exception {
    /// A short name.
    name: &'static str,
    /// Whether the assembler accepts these statements (and the checker refuses them).
    assembler_accepts: bool,
    /// Which statements.
    matches: fn(&str) -> bool,
    /// Why.
    #[allow(dead_code, reason = "it is there to be read")]
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[];

/// Statements of one version and target, with the assembler's verdicts.
struct Section<'t> {
    version: &'t str,
    target: &'t str,
    statements: Vec<(bool, &'t str)>,
}

/// Statements in one module; so many that modules are few, so few that none is large.
const PER_MODULE: usize = 2000;

/// How many differences a failure prints for each section.
const SHOWN: usize = 4000;

fn recorded() -> String {
    let packed = include_bytes!("oracle/verdicts.zlib");
    let bytes = miniz_oxide::inflate::decompress_to_vec_zlib(packed).expect("the verdicts are a zlib stream");
    String::from_utf8(bytes).expect("the verdicts are text")
}

fn sections(text: &str) -> (Vec<&str>, Vec<Section<'_>>) {
    let mut prelude = Vec::new();
    let mut sections: Vec<Section<'_>> = Vec::new();
    for line in text.lines() {
        let (mark, rest) = line.split_at(1);
        match mark {
            "v" => {}
            "p" => prelude.push(rest.trim_start()),
            "=" => {
                let (version, target) = rest.trim().split_once(' ').expect("a version and a target");
                sections.push(Section { version, target, statements: Vec::new() });
            }
            _ => {
                let last = sections.last_mut().expect("a statement stands behind its target");
                last.statements.push((mark == "+", rest));
            }
        }
    }
    (prelude, sections)
}

/// For each statement the first error that the checker has.
fn errors(prelude: &[&str], s: &Section<'_>, statements: &[(bool, &str)]) -> Vec<Option<String>> {
    let mut text = format!(".version {}\n.target {}\n.address_size 64\n", s.version, s.target);
    for line in prelude {
        text.push_str(line);
        text.push('\n');
    }
    for (_, statement) in statements {
        text.push_str(statement);
        text.push('\n');
    }
    text.push_str("ret;\n}\n");
    let before = 3 + prelude.len();
    let mut sources = SourceMap::new();
    let file = sources.add("statements", text.as_str());
    let mut found = vec![None; statements.len()];
    for d in check_text(&text, FileId(0)).diagnostics {
        if d.severity != Severity::Error || d.kind != Kind::Program {
            continue;
        }
        let line = sources.position(file, d.span().start).line as usize - 1;
        if let Some(place) = line.checked_sub(before).and_then(|n| found.get_mut(n)) {
            place.get_or_insert_with(|| format!("{} {}", d.code.name(), d.message));
        }
    }
    found
}

#[test]
fn the_checker_agrees_with_the_assembler() {
    let text = recorded();
    let (prelude, sections) = sections(&text);
    let mut used = vec![0; EXCEPTIONS.len()];
    let mut different: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut n = 0;
    for s in &sections {
        for chunk in s.statements.chunks(PER_MODULE) {
            let told = errors(&prelude, s, chunk);
            n += chunk.len();
            for ((accepted, statement), error) in chunk.iter().zip(told) {
                if *accepted == error.is_none() {
                    continue;
                }
                let fits = |e: &Exception| e.assembler_accepts == *accepted && (e.matches)(statement);
                if let Some(i) = EXCEPTIONS.iter().position(fits) {
                    used[i] += 1;
                    continue;
                }
                let what = error.map_or("it refuses".to_owned(), |e| format!("it accepts; {e}"));
                let list = different.entry(format!("{} {}", s.version, s.target)).or_default();
                list.push(format!("{statement}  // {what}"));
            }
        }
    }
    assert!(n > 20_000, "only {n} statements");
    let n_different: usize = different.values().map(Vec::len).sum();
    let shown = different.iter().map(|(target, list)| {
        format!(
            "{target}: {} differences\n  {}",
            list.len(),
            list.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("\n  ")
        )
    });
    assert!(different.is_empty(), "{n_different} of {n} statements differ\n{}", shown.collect::<Vec<_>>().join("\n"));
    let idle: Vec<&str> = EXCEPTIONS.iter().zip(&used).filter(|(_, n)| **n == 0).map(|(e, _)| e.name).collect();
    assert!(idle.is_empty(), "exceptions that nothing needs: {idle:?}");
}
