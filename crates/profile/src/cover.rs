//! Coverage: which statements, source lines, branches and lanes ran. Merged over runs; written as JSON and as lcov.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::model::{Launch, NOT_TIME, Row};
use crate::remarks::{grouped, percent};
use handloom_counts::ratio;

/// What a file of this schema says of itself.
pub const SCHEMA: &str = "handloom-coverage";

/// Version of the schema.
pub const VERSION: u32 = 1;

/// What ran, of all modules that were loaded.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Coverage {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`VERSION`].
    pub version: u32,
    /// Version of Handloom that counted.
    pub handloom: String,
    /// [`NOT_TIME`].
    pub note: String,
    /// Launches that it is of.
    pub launches: u64,
    /// The statements, by file and place; what memory did is left out.
    pub statements: Vec<Row>,
}

/// How much of something ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Share {
    /// That ran.
    pub ran: u64,
    /// In all.
    pub all: u64,
}

impl Share {
    /// As a number up to 1; 0 of nothing.
    pub fn of_all(self) -> f64 {
        ratio(self.ran, self.all)
    }

    fn add(&mut self, ran: bool) {
        self.all += 1;
        self.ran += u64::from(ran);
    }
}

impl Coverage {
    /// That of launches.
    pub fn of(handloom: &str, launches: &[Launch]) -> Coverage {
        let empty = Coverage {
            schema: SCHEMA.into(),
            version: VERSION,
            handloom: handloom.into(),
            note: NOT_TIME.into(),
            launches: 0,
            statements: Vec::new(),
        };
        let mut all = Places::of(empty.statements);
        for launch in launches {
            // Texts of one program do not differ.
            let _ = all.add(launch.statements.iter());
        }
        Coverage { launches: launches.iter().map(|l| l.runs).sum(), statements: all.into_rows(), ..empty }
    }

    /// Reads one that was written before.
    ///
    /// # Errors
    /// A sentence that says what it is instead.
    pub fn read(text: &str) -> Result<Coverage, String> {
        let value: serde_json::Value = serde_json::from_str(text).map_err(|e| format!("it is no JSON: {e}"))?;
        let schema = value.get("schema").and_then(|s| s.as_str()).unwrap_or("nothing");
        if schema != SCHEMA {
            return Err(format!(
                "it has the schema `{schema}`, and a coverage has `{SCHEMA}`: `cover -o FILE.json` writes one"
            ));
        }
        match value.get("version").and_then(serde_json::Value::as_u64) {
            Some(n) if n == u64::from(VERSION) => {}
            n => {
                let n = n.map_or("no version".to_owned(), |n| format!("version {n}"));
                return Err(format!("it has {n} of the schema, and this program reads version {VERSION}"));
            }
        }
        serde_json::from_value(value).map_err(|e| format!("it is no coverage of version {VERSION}: {e}"))
    }

    /// Adds that of other runs.
    ///
    /// # Errors
    /// A place where the texts differ: it is of another version of the file.
    pub fn merge(&mut self, other: &Coverage) -> Result<(), String> {
        let mut all = Places::of(std::mem::take(&mut self.statements));
        let added = all.add(other.statements.iter());
        self.statements = all.into_rows();
        self.launches += other.launches;
        added
    }

    /// Statements.
    pub fn statements_share(&self) -> Share {
        let mut share = Share::default();
        self.statements.iter().for_each(|row| share.add(row.warps > 0));
        share
    }

    /// Ways of branches.
    pub fn branches_share(&self) -> Share {
        let mut share = Share::default();
        self.statements
            .iter()
            .filter_map(|row| row.branch.as_ref())
            .flat_map(|b| &b.ways)
            .for_each(|n| share.add(*n > 0));
        share
    }

    /// Lanes of a warp, of each statement that ran.
    pub fn lanes_share(&self) -> Share {
        let ran = || self.statements.iter().filter(|row| row.warps > 0);
        let (ran, all) = (ran().map(|row| u64::from(row.which.count_ones())).sum(), 32 * ran().map(|_| 1).sum::<u64>());
        Share { ran, all }
    }

    /// Lines of the source.
    pub fn source_share(&self) -> Share {
        let mut lines: BTreeMap<(&str, u32), bool> = BTreeMap::new();
        for row in &self.statements {
            if let Some(place) = &row.source {
                *lines.entry((&place.file, place.line)).or_default() |= row.warps > 0;
            }
        }
        let mut share = Share::default();
        lines.values().for_each(|ran| share.add(*ran));
        share
    }

    /// As text for a terminal.
    pub fn summary(&self) -> String {
        let n = if self.launches == 1 { "1 launch".to_owned() } else { format!("{} launches", grouped(self.launches)) };
        let mut out = format!("coverage of {n}  ({NOT_TIME})\n");
        let mut line = |what: &str, s: Share| {
            if s.all > 0 {
                let _ =
                    writeln!(out, "  {what:<12} {} of {} ({})", grouped(s.ran), grouped(s.all), percent(s.of_all()));
            }
        };
        line("statements", self.statements_share());
        line("source lines", self.source_share());
        line("branch ways", self.branches_share());
        line("lanes", self.lanes_share());
        let missed: Vec<String> = runs_of_lines(self.statements.iter().filter(|row| row.warps == 0));
        if !missed.is_empty() {
            let _ = writeln!(out, "  never ran    {}", missed.join(", "));
        }
        out
    }

    /// As a tracefile of lcov: first the PTX files, then the source files.
    pub fn lcov(&self) -> String {
        let mut files: BTreeMap<&str, File<'_>> = BTreeMap::new();
        let mut sources: BTreeMap<&str, File<'_>> = BTreeMap::new();
        for row in &self.statements {
            files.entry(&row.file).or_default().add(row, row.line, true);
            if let Some(place) = &row.source {
                sources.entry(&place.file).or_default().add(row, place.line, false);
            }
        }
        let mut out = String::new();
        files.iter().chain(&sources).for_each(|(name, file)| file.write(name, &mut out));
        out
    }
}

/// Lines as `k.ptx:3-9`.
fn runs_of_lines<'r>(rows: impl Iterator<Item = &'r Row>) -> Vec<String> {
    const MOST: usize = 12;
    let mut runs: Vec<(&str, u32, u32)> = Vec::new();
    for row in rows {
        match runs.last_mut() {
            // Labels and directives between statements are no gap.
            Some((file, _, last)) if *file == row.file && row.line <= *last + 3 => *last = row.line,
            _ => runs.push((&row.file, row.line, row.line)),
        }
    }
    let more = runs.len().saturating_sub(MOST);
    runs.truncate(MOST);
    let one = |(file, a, b): &(&str, u32, u32)| if a == b { format!("{file}:{a}") } else { format!("{file}:{a}-{b}") };
    let mut all: Vec<String> = runs.iter().map(one).collect();
    if more > 0 {
        all.push(format!("and {more} more places"));
    }
    all
}

/// Statements by place.
struct Places(BTreeMap<(String, u32, u32), Row>);

impl Places {
    fn of(rows: Vec<Row>) -> Places {
        Places(rows.into_iter().map(|row| ((row.file.clone(), row.line, row.column), row)).collect())
    }

    fn into_rows(self) -> Vec<Row> {
        self.0.into_values().collect()
    }

    fn add<'r>(&mut self, rows: impl Iterator<Item = &'r Row>) -> Result<(), String> {
        for row in rows {
            let known = self.0.entry((row.file.clone(), row.line, row.column)).or_insert_with(|| nothing_of(row));
            if known.text != row.text {
                return Err(format!(
                    "`{}:{}` is `{}` here and `{}` there: it is of another version of the file",
                    row.file, row.line, known.text, row.text
                ));
            }
            known.add_reached(row);
        }
        Ok(())
    }
}

/// A statement that has not run, without what memory did.
fn nothing_of(row: &Row) -> Row {
    let mut new = row.clone();
    (new.warps, new.lanes, new.active, new.which) = (0, 0, 0, 0);
    new.traffic.clear();
    new.hot.clear();
    (new.addresses, new.waits, new.operations, new.copied_bytes) = (0, None, None, 0);
    if let Some(branch) = &mut new.branch {
        branch.ways.iter_mut().for_each(|n| *n = 0);
        branch.divergent = 0;
    }
    new
}

/// What lcov says of a file.
#[derive(Default)]
struct File<'r> {
    /// By line: most runs of a statement.
    lines: BTreeMap<u32, u64>,
    /// By line, the ways of its branches, and whether it ran at all.
    branches: BTreeMap<u32, Vec<(&'r [u64], bool)>>,
    /// By name: first line, runs of the first statement.
    functions: BTreeMap<&'r str, (u32, u64)>,
}

impl<'r> File<'r> {
    fn add(&mut self, row: &'r Row, line: u32, with_functions: bool) {
        let runs = self.lines.entry(line).or_default();
        *runs = (*runs).max(row.warps);
        if let Some(branch) = &row.branch {
            self.branches.entry(line).or_default().push((&branch.ways, row.warps > 0));
        }
        if with_functions {
            self.functions.entry(&row.function).or_insert((line, row.warps));
        }
    }

    fn write(&self, name: &str, out: &mut String) {
        let _ = writeln!(out, "TN:\nSF:{name}");
        for (function, (line, _)) in &self.functions {
            let _ = writeln!(out, "FN:{line},{function}");
        }
        for (function, (_, runs)) in &self.functions {
            let _ = writeln!(out, "FNDA:{runs},{function}");
        }
        if !self.functions.is_empty() {
            let hit = self.functions.values().filter(|(_, runs)| *runs > 0).count();
            let _ = writeln!(out, "FNF:{}\nFNH:{hit}", self.functions.len());
        }
        let (mut found, mut hit) = (0, 0);
        for (line, branches) in &self.branches {
            for (block, (ways, ran)) in branches.iter().enumerate() {
                for (way, n) in ways.iter().enumerate() {
                    let taken = if *ran { n.to_string() } else { "-".to_owned() };
                    let _ = writeln!(out, "BRDA:{line},{block},{way},{taken}");
                    found += 1;
                    hit += usize::from(*n > 0);
                }
            }
        }
        if found > 0 {
            let _ = writeln!(out, "BRF:{found}\nBRH:{hit}");
        }
        for (line, runs) in &self.lines {
            let _ = writeln!(out, "DA:{line},{runs}");
        }
        let hit = self.lines.values().filter(|n| **n > 0).count();
        let _ = writeln!(out, "LF:{}\nLH:{hit}\nend_of_record", self.lines.len());
    }
}
