//! The difference of two profiles.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::{Launch, Profile, Row, SCHEMA, Totals, VERSION};
use crate::remarks::{grouped, short};
use handloom_counts::{Space, ratio};

/// Lines that are shown as text.
const SHOWN: usize = 8;

/// A sum of a launch in two profiles.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Change {
    /// Name of the field of [`Totals`].
    pub what: &'static str,
    /// In the base.
    pub base: u64,
    /// Now.
    pub now: u64,
    /// More of it costs more; else it is only shown.
    pub is_cost: bool,
}

impl Change {
    /// By how many percent it grew; `None` from nothing to something.
    pub fn percent(&self) -> Option<f64> {
        if self.base == 0 {
            return (self.now == 0).then_some(0.0);
        }
        let grown = i128::from(self.now) - i128::from(self.base);
        Some(100.0 * grown as f64 / self.base as f64)
    }

    /// Whether it is a cost that grew by more than a threshold, in percent.
    pub fn is_above(&self, threshold: f64) -> bool {
        self.is_cost && self.now > self.base && self.percent().is_none_or(|p| p > threshold)
    }
}

/// The changes of a launch: what differs, or costs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Changes {
    /// The entry.
    pub entry: String,
    /// All sums, in the order of [`Totals`].
    pub totals: Vec<Change>,
    /// Lines whose counts differ, those that changed most first.
    pub lines: Vec<LineChange>,
}

/// What a line of a launch did in two profiles.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LineChange {
    /// The line of the source, or the statement of the PTX where there is none.
    pub place: String,
    /// In the base.
    pub base: LineCounts,
    /// Now.
    pub now: LineCounts,
}

/// Counts of a line.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct LineCounts {
    /// Statements that warps executed.
    pub warps: u64,
    /// Lanes that acted.
    pub lanes: u64,
    /// Sectors of global memory.
    pub sectors: u64,
    /// Passes of shared memory.
    pub passes: u64,
}

impl LineCounts {
    fn add(&mut self, row: &Row) {
        self.warps += row.warps;
        self.lanes += row.active;
        self.sectors += row.of_space(Space::Global).sectors;
        self.passes += row.of_space(Space::Shared).passes;
    }

    fn all(self) -> [u64; 4] {
        [self.warps, self.lanes, self.sectors, self.passes]
    }
}

/// What a statement is, whatever registers and labels are called: its opcode with all qualifiers.
fn opcode(row: &Row) -> &str {
    row.text.split_whitespace().find(|word| !word.starts_with('@')).unwrap_or("")
}

/// Most cells of the table that [`matched`] makes.
const MOST_CELLS: usize = 1 << 24;

/// Which statement of the base each statement is: of those with the same opcodes the longest common subsequence, after what begins and ends alike. Lines move
/// and registers have other names from version to version.
fn matched(base: &[Row], now: &[Row]) -> Vec<Option<usize>> {
    let same = |i: usize, j: usize| opcode(&base[i]) == opcode(&now[j]);
    let least = base.len().min(now.len());
    let begin = (0..least).take_while(|i| same(*i, *i)).count();
    let end = (0..least - begin).take_while(|i| same(base.len() - 1 - i, now.len() - 1 - i)).count();
    let (n, m) = (base.len() - begin - end, now.len() - begin - end);
    let mut found: Vec<Option<usize>> = (0..begin).map(Some).collect();
    if n.saturating_mul(m) <= MOST_CELLS {
        // Longest common subsequences of what follows, row after row.
        let mut longest = vec![0_u32; (n + 1) * (m + 1)];
        for i in (0..n).rev() {
            for j in (0..m).rev() {
                let at = i * (m + 1) + j;
                longest[at] = if same(begin + i, begin + j) {
                    longest[at + m + 2] + 1
                } else {
                    longest[at + 1].max(longest[at + m + 1])
                };
            }
        }
        let (mut i, mut j) = (0, 0);
        while j < m {
            if i < n && same(begin + i, begin + j) {
                found.push(Some(begin + i));
                (i, j) = (i + 1, j + 1);
            } else if i < n && longest[(i + 1) * (m + 1) + j] >= longest[i * (m + 1) + j + 1] {
                i += 1;
            } else {
                found.push(None);
                j += 1;
            }
        }
    } else {
        found.extend((0..m).map(|j| (j < n && same(begin + j, begin + j)).then_some(begin + j)));
    }
    found.extend((0..end).map(|i| Some(base.len() - end + i)));
    found
}

/// How a line is named: by its source, else by its own place and text.
fn place_of(row: &Row) -> String {
    match &row.source {
        Some(place) => format!("{}:{}", place.file, place.line),
        None => format!("{}:{} {}", row.file, row.line, short(&row.text)),
    }
}

/// Lines whose counts differ. What changed most: by the largest part of a sum of the launch.
fn lines(base: &Launch, now: &Launch) -> Vec<LineChange> {
    let mut by_place: BTreeMap<String, (LineCounts, LineCounts)> = BTreeMap::new();
    let mut is_left = vec![true; base.statements.len()];
    for (row, at) in now.statements.iter().zip(matched(&base.statements, &now.statements)) {
        let sums = by_place.entry(place_of(row)).or_default();
        sums.1.add(row);
        if let Some(at) = at {
            sums.0.add(&base.statements[at]);
            is_left[at] = false;
        }
    }
    for (row, _) in base.statements.iter().zip(&is_left).filter(|(_, left)| **left) {
        by_place.entry(format!("{} (of the base)", place_of(row))).or_default().0.add(row);
    }
    let mut all: Vec<LineChange> =
        by_place.into_iter().map(|(place, (base, now))| LineChange { place, base, now }).collect();
    all.retain(|c| c.base != c.now);
    let mut sums = [1_u64; 4];
    for c in &all {
        sums.iter_mut().zip(c.base.all()).zip(c.now.all()).for_each(|((sum, a), b)| *sum += a.max(b));
    }
    let weight = |c: &LineChange| {
        let parts = c.base.all().into_iter().zip(c.now.all()).zip(sums);
        parts.map(|((a, b), sum)| ratio(a.abs_diff(b), sum)).fold(0.0, f64::max)
    };
    all.sort_by(|a, b| weight(b).total_cmp(&weight(a)).then_with(|| a.place.cmp(&b.place)));
    all
}

impl Changes {
    /// Those that are above a threshold.
    pub fn above(&self, threshold: f64) -> Vec<&Change> {
        self.totals.iter().filter(|c| c.is_above(threshold)).collect()
    }
}

/// Reads a profile that was written before.
///
/// # Errors
/// A sentence that says what it is instead.
pub fn read(text: &str) -> Result<Profile, String> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|e| format!("it is no JSON: {e}"))?;
    match value.get("schema").and_then(|s| s.as_str()) {
        Some(SCHEMA) => {}
        Some(other) => return Err(format!("it has the schema `{other}`, and a profile has `{SCHEMA}`")),
        None => return Err(format!("it is no profile: it has no `\"schema\":\"{SCHEMA}\"`")),
    }
    match value.get("version").and_then(serde_json::Value::as_u64) {
        Some(n) if n == u64::from(VERSION) => {}
        Some(n) => {
            return Err(format!(
                "it has version {n} of the schema, and this program reads version {VERSION}: count it anew"
            ));
        }
        None => return Err("it has no version".to_owned()),
    }
    serde_json::from_value(value).map_err(|e| format!("it is no profile of version {VERSION}: {e}"))
}

/// The changes from one profile to another of the same launches.
///
/// # Errors
/// A sentence that says which launches differ.
pub fn compare(base: &Profile, now: &Profile) -> Result<Vec<Changes>, String> {
    if base.launches.len() != now.launches.len() {
        return Err(format!("the base has {} launches, and now there are {}", base.launches.len(), now.launches.len()));
    }
    base.launches.iter().zip(&now.launches).enumerate().map(|(i, (a, b))| of_launch(i + 1, a, b)).collect()
}

fn of_launch(number: usize, base: &Launch, now: &Launch) -> Result<Changes, String> {
    let differs = |what: &str, a: String, b: String| {
        (a != b).then(|| format!("launch {number} of the base has {what} {a}, and now it has {b}"))
    };
    let triple = |t: [u32; 3]| format!("{},{},{}", t[0], t[1], t[2]);
    let wrong = differs("the kernel", format!("`{}`", base.entry), format!("`{}`", now.entry))
        .or_else(|| differs("the grid", triple(base.grid), triple(now.grid)))
        .or_else(|| differs("blocks of", triple(base.block), triple(now.block)))
        .or_else(|| differs("the end", format!("`{}`", base.ended), format!("`{}`", now.ended)))
        .or_else(|| differs("a number of runs of", base.runs.to_string(), now.runs.to_string()));
    match wrong {
        Some(wrong) => Err(wrong),
        None => Ok(Changes {
            entry: now.entry.clone(),
            totals: changes(&base.totals, &now.totals),
            lines: lines(base, now),
        }),
    }
}

/// Sums that are no cost by themselves: less may be worse, or another one says it better.
const NO_COST: [&str; 3] = ["global_touched", "branches", "atomic_lanes"];

fn changes(base: &Totals, now: &Totals) -> Vec<Change> {
    base.named()
        .zip(now.named())
        .map(|((what, base), (_, now))| Change { what, base, now, is_cost: !NO_COST.contains(&what) })
        .collect()
}

/// Changes as text, and which of them are above a threshold.
pub fn text(all: &[Changes], threshold: f64) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    for changes in all {
        let differing: Vec<&Change> = changes.totals.iter().filter(|c| c.base != c.now).collect();
        if differing.is_empty() {
            let _ = writeln!(out, "{}: no count differs", changes.entry);
            continue;
        }
        let _ = writeln!(out, "{}: {} counts differ", changes.entry, differing.len());
        for c in differing {
            let percent = c.percent().map_or("new".to_owned(), |p| format!("{p:+.2} %"));
            let mark = if c.is_above(threshold) { "   above the threshold" } else { "" };
            let (base, now) = (grouped(c.base), grouped(c.now));
            let _ = writeln!(out, "  {:<22} {base:>14} -> {now:>14}  {percent:>10}{mark}", c.what);
        }
        if !changes.lines.is_empty() {
            let _ = writeln!(out, "  lines that changed most");
        }
        for c in changes.lines.iter().take(SHOWN) {
            let names = ["warps", "lanes", "global sectors", "shared passes"];
            let parts = names.iter().zip(c.base.all()).zip(c.now.all()).filter(|((_, a), b)| a != b);
            let words: Vec<String> =
                parts.map(|((name, a), b)| format!("{name} {} -> {}", grouped(a), grouped(b))).collect();
            let _ = writeln!(out, "    {}: {}", c.place, words.join(", "));
        }
        let more = changes.lines.len().saturating_sub(SHOWN);
        if more > 0 {
            let _ = writeln!(out, "    and {more} more");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(entry: &str, totals: Totals) -> Profile {
        let launch = Launch { entry: entry.into(), ended: "ok".into(), runs: 1, totals, ..Launch::default() };
        Profile::new("0", vec![launch])
    }

    #[test]
    fn thresholds_are_percent_of_the_base() {
        let base = profile("k", Totals { warp_instructions: 1000, global_touched: 10, ..Totals::default() });
        let now = profile(
            "k",
            Totals { warp_instructions: 1050, global_touched: 99, bank_conflicts: 1, ..Totals::default() },
        );
        let changes = compare(&base, &now).unwrap();
        let above = |t| changes[0].above(t).iter().map(|c| c.what).collect::<Vec<_>>();
        assert_eq!(above(4.9), ["warp_instructions", "bank_conflicts"]);
        assert_eq!(above(5.0), ["bank_conflicts"]);
        assert_eq!(compare(&now, &base).unwrap()[0].above(0.0), Vec::<&Change>::new());
        assert!(
            text(&changes, 5.0).contains("bank_conflicts                      0 ->              1         new   above")
        );
    }

    /// A launch of statements, each with how often it ran.
    fn launch(list: &[(&str, u64)]) -> Launch {
        let row = |(i, (text, warps)): (usize, &(&str, u64))| {
            let json = format!(
                "{{\"file\":\"k.ptx\",\"line\":{},\"column\":1,\"function\":\"k\",\"text\":\"{text}\",\"kind\":\"move\",\"warps\":{warps},\"lanes\":0,\"active\":0,\"which\":0}}",
                i + 1
            );
            serde_json::from_str(&json).unwrap()
        };
        Launch { statements: list.iter().enumerate().map(row).collect(), ..Launch::default() }
    }

    #[test]
    fn statements_are_matched_though_lines_move_and_registers_change() {
        let base = launch(&[("ld %r1", 4), ("add %r2", 4), ("mul %r3", 4), ("st %r3", 4), ("ret", 4)]);
        let now = launch(&[("ld %r1", 4), ("mov %r9", 4), ("add %r7", 8), ("@%p1 st %r8", 4), ("ret", 4)]);
        assert_eq!(matched(&base.statements, &now.statements), [Some(0), None, Some(1), Some(3), Some(4)]);
        let changes = lines(&base, &now);
        let told: Vec<(&str, u64, u64)> =
            changes.iter().map(|c| (c.place.as_str(), c.base.warps, c.now.warps)).collect();
        let wanted = [("k.ptx:2 mov %r9", 0, 4), ("k.ptx:3 add %r7", 4, 8), ("k.ptx:3 mul %r3 (of the base)", 4, 0)];
        assert_eq!(told, wanted);
        assert_eq!(matched(&[], &now.statements), [None; 5]);
        assert_eq!(lines(&base, &base), []);
    }

    #[test]
    fn what_differs_is_said() {
        let (a, b) = (profile("a", Totals::default()), profile("b", Totals::default()));
        assert_eq!(compare(&a, &b).unwrap_err(), "launch 1 of the base has the kernel `a`, and now it has `b`");
        let text = serde_json::to_string(&a).unwrap();
        assert_eq!(read(&text), Ok(a));
        let wrong = text.replace("\"version\":1", "\"version\":7");
        assert_eq!(
            read(&wrong).unwrap_err(),
            "it has version 7 of the schema, and this program reads version 1: count it anew"
        );
        assert!(read("{}").unwrap_err().starts_with("it is no profile"));
        assert!(read("x").unwrap_err().starts_with("it is no JSON"));
    }
}
