//! Tests that are PTX files: `//@` lines drive them, `//~` notes stand on guilty lines.
//!
//! Takes: a file, and a [`Suite`] that says who runs it. Gives: what is wrong, for a person.
//! Does not know: how any stage works; it uses what users use, and the text forms of the stages.
//!
//! Invariants: a test that shows nothing is refused; wanted values are never taken from what was computed.
//!
//! How to read it: `directives` reads a file, `values` its lists, [`run_file`] here goes through the stages, `judge` compares
//! diagnostics with notes, `execute` runs the engines (`engines`), `golden` compares side files.

#![forbid(unsafe_code)]

mod counted;
mod directives;
pub mod engines;
mod execute;
mod golden;
mod judge;
pub mod rng;
pub mod values;

use std::path::{Path, PathBuf};

pub use directives::{Argument, Buffer, Directives, Expect, Golden, Launch, Note, Test, parse};
pub use execute::{job, without_window};

use engines::{Outcome, Way};

use handloom_diag::SourceMap;
use handloom_runtime::front;

/// A test file.
#[derive(Clone, Debug)]
pub struct FileTest {
    /// Where it lies.
    pub path: PathBuf,
    /// Its name: the path below the root of the file tests, without the ending.
    pub name: String,
    /// Its text.
    pub text: String,
}

impl FileTest {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn load(root: &Path, path: &Path) -> Result<FileTest, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let below = path.strip_prefix(root).unwrap_or(path).with_extension("");
        let parts: Vec<_> = below.iter().map(|p| p.to_string_lossy()).collect();
        Ok(FileTest { path: path.into(), name: parts.join("/"), text })
    }

    /// Name of the text in diagnostics and reports: the same on every machine.
    pub fn file_name(&self) -> String {
        format!("{}.ptx", self.name)
    }
}

/// Who runs tests, and what else is asked of them.
pub struct Suite<'a> {
    /// All that must agree; the first is the reference.
    pub ways: Vec<Way>,
    /// Who looks for what a check should find.
    pub finder: Way,
    /// Whether the launches of a `run` test are checked too: what is found fails the test.
    pub also_checked: &'a (dyn Fn(&FileTest) -> bool + Sync),
    /// Whether the launches of a `run` test are counted too: compiled code must count what the interpreter does.
    pub also_counted: &'a (dyn Fn(&FileTest) -> bool + Sync),
    /// Further runs of a `run` test with a text, by seed, which must agree too.
    pub more: &'a (dyn Fn(&str) -> Vec<(Way, u64)> + Sync),
    /// Another opinion of what the finder found in a text.
    ///
    /// # Errors
    /// What it found else.
    pub opinion: &'a (dyn Fn(&str, &Outcome) -> Result<(), String> + Sync),
}

/// All test files below a folder, by name.
///
/// # Errors
/// A folder or file cannot be read.
pub fn collect(root: &Path) -> Result<Vec<FileTest>, String> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        for entry in entries {
            let path = entry.map_err(|e| e.to_string())?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "ptx") {
                found.push(FileTest::load(root, &path)?);
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Runs a test file.
///
/// # Errors
/// What is wrong, for a person.
pub fn run_file(test: &FileTest, suite: &Suite<'_>) -> Result<(), String> {
    let d = parse(&test.text)?;
    let result = if d.targets.is_empty() { stages(test, &d, &test.text, suite) } else { targets(test, &d, suite) };
    match (&d.known_wrong, result) {
        (None, result) => result,
        (Some(_), Err(_)) => Ok(()),
        (Some(reason), Ok(())) => Err(format!("it has become right: take the line `known_wrong: {reason}` out")),
    }
}

/// Repeats the test for each target.
fn targets(test: &FileTest, d: &Directives, suite: &Suite<'_>) -> Result<(), String> {
    for target in &d.targets {
        let line = |l: &str| {
            let is_target = l.trim_start().starts_with(".target");
            if is_target { format!(".target {target}\n") } else { format!("{l}\n") }
        };
        let text: String = test.text.lines().map(line).collect();
        stages(test, d, &text, suite).map_err(|e| format!("for {target}: {e}"))?;
    }
    Ok(())
}

fn stages(test: &FileTest, d: &Directives, text: &str, suite: &Suite<'_>) -> Result<(), String> {
    match d.test {
        Test::Syntax => judge::syntax(test, d, text),
        Test::Check => judge::check(test, d, text),
        Test::Ir | Test::Clif => {
            judge::check(test, d, text)?;
            golden::stages(test, d, text)
        }
        Test::Run => {
            loads(test, text)?;
            golden::stages(test, d, text)?;
            execute::run(test, d, text, suite)
        }
        Test::Find => {
            loads(test, text)?;
            execute::find(test, d, text, suite)
        }
        Test::Trap => {
            loads(test, text)?;
            golden::stages(test, d, text)?;
            execute::trap(test, d, text, suite)
        }
    }
}

/// The text must be free of errors; warnings do not matter.
fn loads(test: &FileTest, text: &str) -> Result<(), String> {
    let mut sources = SourceMap::new();
    let file = sources.add(test.file_name(), text);
    match front(&sources, &[file]) {
        Ok(_) => Ok(()),
        Err(told) => Err(judge::render(&told, &sources)),
    }
}
