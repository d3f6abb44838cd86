//! What `bench` measured, for people and as JSON.

use std::time::Duration;

use serde::Serialize;

use crate::host::Host;
use crate::launch::{how_made, micros, millis};
use crate::names;
use crate::report::{Format, Out};
use crate::timing::{CERTAINTY, Spread};

/// What was measured of one command line.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Measured {
    /// Caches were emptied before each run.
    pub is_cold: bool,
    /// Memory was left to the next run as it was.
    pub keeps: bool,
    /// By file, its launches.
    pub subjects: Vec<(String, Vec<Row>)>,
}

/// What was measured of a launch.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Its entry.
    pub entry: String,
    /// Host threads it was given; 0 for all.
    pub threads: usize,
    /// Time to make its code.
    pub compile: Duration,
    /// Its code came from the cache.
    pub cached: bool,
    /// Bytes that a run moves.
    pub bytes: Option<f64>,
    /// Operations that a run does.
    pub operations: Option<f64>,
    /// Seconds of each run.
    pub seconds: Vec<f64>,
}

/// What a launch comes to, as an object.
#[derive(Serialize)]
struct Object<'a> {
    file: &'a str,
    entry: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<(&'a str, u64)>,
    runs: usize,
    threads: usize,
    caches: &'static str,
    compile_us: f64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cached: bool,
    run_us: Option<Spread>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operations_per_second: Option<f64>,
    times_us: Vec<f64>,
}

/// How the time of one file compares with that of the first, as an object.
#[derive(Serialize)]
struct Against<'a> {
    file: &'a str,
    against: &'a str,
    entry: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<(&'a str, u64)>,
    time_ratio: Spread,
}

impl Row {
    fn spread(&self) -> Option<Spread> {
        Spread::of(&self.seconds)
    }

    fn threads(&self, host: &Host) -> usize {
        if self.threads == 0 { host.cores } else { self.threads }
    }

    /// What a run does, with the unit of it a second: bytes, then operations, as far as they are known.
    pub fn rates(&self) -> impl Iterator<Item = (f64, &'static str)> {
        [(self.bytes, "B/s"), (self.operations, "op/s")].into_iter().filter_map(|(amount, unit)| Some((amount?, unit)))
    }

    /// Throughput in words, by the median.
    pub fn throughput(&self, median: f64) -> String {
        let all: Vec<String> = self.rates().map(|(amount, unit)| with_unit(amount / median, unit)).collect();
        all.join(", ")
    }
}

/// The unit of what launches do in a second: the first that one of them tells, else runs.
pub fn rate_of<'r>(mut rows: impl Iterator<Item = &'r Row>) -> &'static str {
    rows.find_map(|row| row.rates().next()).map_or("/s", |(_, unit)| unit)
}

impl Measured {
    /// All launches, with the number of their file and their own among those of it.
    pub fn rows(&self) -> impl Iterator<Item = ((usize, usize), &Row)> {
        self.subjects
            .iter()
            .enumerate()
            .flat_map(|(file, (_, rows))| rows.iter().enumerate().map(move |(i, row)| ((file, i), row)))
    }

    /// How it was measured, in words.
    pub fn about(&self, host: &Host) -> String {
        let threads = self.rows().map(|(_, r)| r.threads(host)).max().unwrap_or(1);
        format!("{}. {}.", host.line(threads), self.how())
    }

    fn how(&self) -> String {
        let caches = if self.is_cold { "cold caches" } else { "warm caches" };
        let memory = if self.keeps { "memory as the run before left it" } else { "memory put back before each run" };
        let turns = if self.subjects.len() > 1 { ", in turns" } else { "" };
        let runs = self.rows().map(|(_, r)| r.seconds.len()).max().unwrap_or(0);
        format!("{runs} runs{turns}, {caches}, {memory}")
    }
}

/// The name of a launch among all: its file where there are several, else its entry, with its number where there are several.
pub fn subject_name(measured: &Measured, file: usize, number: usize, row: &Row) -> String {
    let (name, rows) = match measured.subjects.get(file) {
        Some((name, rows)) if measured.subjects.len() > 1 => (name.clone(), rows.len()),
        Some((_, rows)) => (names::plain(&row.entry).to_string(), rows.len()),
        None => (row.entry.clone(), 1),
    };
    if rows > 1 { format!("{name} {}", number + 1) } else { name }
}

/// Times of one in parts of those of the other, round by round.
pub fn ratios(of: &Row, to: &Row) -> Option<Spread> {
    let each: Vec<f64> = of.seconds.iter().zip(&to.seconds).map(|(a, b)| a / b).collect();
    Spread::of(&each)
}

/// A number with three digits or more before its unit, in powers of 1000.
pub fn with_unit(number: f64, unit: &str) -> String {
    let steps = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (by, prefix) = steps.into_iter().find(|(by, _)| number >= *by).unwrap_or((1.0, ""));
    format!("{} {prefix}{unit}", digits(number / by))
}

/// Three digits.
fn digits(number: f64) -> String {
    match number {
        n if n < 10.0 => format!("{n:.2}"),
        n if n < 100.0 => format!("{n:.1}"),
        n => format!("{n:.0}"),
    }
}

/// Seconds in words.
pub fn time(seconds: f64) -> String {
    let steps = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us")];
    let (by, unit) = steps.into_iter().find(|(by, _)| seconds >= *by).unwrap_or((1e-9, "ns"));
    format!("{} {unit}", digits(seconds / by))
}

/// Tells what was measured.
pub fn report(host: &Host, measured: &Measured, out: &mut Out) {
    match out.format {
        Format::Json => objects(host, measured, None, out),
        Format::Human => table(host, measured, out),
    }
}

/// Tells what was measured for several sizes.
pub fn report_sweep(host: &Host, name: &str, sizes: &[(u64, Measured)], out: &mut Out) {
    match out.format {
        Format::Json => {
            sizes.iter().for_each(|(value, measured)| objects(host, measured, Some((name, *value)), out));
        }
        Format::Human => plot(host, name, sizes, out),
    }
}

fn objects(host: &Host, measured: &Measured, sweep: Option<(&str, u64)>, out: &mut Out) {
    for (file, rows) in &measured.subjects {
        for row in rows {
            let run = row.spread();
            let rate = |amount: Option<f64>| amount.zip(run).map(|(n, run)| n / run.median);
            out.json(&Object {
                file,
                entry: &row.entry,
                sweep,
                runs: row.seconds.len(),
                threads: row.threads(host),
                caches: if measured.is_cold { "cold" } else { "warm" },
                compile_us: micros(row.compile),
                cached: row.cached,
                run_us: run.map(|run| run.times(1e6)),
                bytes_per_second: rate(row.bytes),
                operations_per_second: rate(row.operations),
                times_us: row.seconds.iter().map(|s| s * 1e6).collect(),
            });
        }
    }
    for (file, against, of, to) in pairs(measured) {
        if let Some(time_ratio) = ratios(of, to) {
            out.json(&Against { file, against, entry: &of.entry, sweep, time_ratio });
        }
    }
    if sweep.is_none() {
        #[derive(Serialize)]
        struct On<'a> {
            host: &'a Host,
        }
        out.json(&On { host });
    }
}

/// Each file but the first with the first.
pub fn pairs(measured: &Measured) -> impl Iterator<Item = (&str, &str, &Row, &Row)> {
    let first = measured.subjects.first();
    measured.subjects.iter().skip(1).filter_map(move |(file, rows)| {
        let (against, to) = first?;
        Some((file.as_str(), against.as_str(), rows.first()?, to.first()?))
    })
}

/// What stands above a table.
fn heading(host: &Host, measured: &Measured, out: &mut Out) {
    let threads = measured.rows().map(|(_, r)| r.threads(host)).max().unwrap_or(1);
    out.line(&host.line(threads));
    out.line(&measured.how());
    if host.is_busy(threads) {
        out.note(
            "other programs keep this host busy: the fastest runs tell more than the medians, and `--threads 1` waits for no other core",
        );
    }
}

fn table(host: &Host, measured: &Measured, out: &mut Out) {
    if measured.subjects.iter().all(|(_, rows)| rows.iter().all(|r| r.seconds.is_empty())) {
        return;
    }
    heading(host, measured, out);
    let mut lines = vec![["", "median", "quartiles", "fastest", "throughput", "code"].map(str::to_owned)];
    for ((file, i), row) in measured.rows() {
        let Some(run) = row.spread() else { continue };
        lines.push([
            subject_name(measured, file, i, row),
            time(run.median),
            format!("{} to {}", time(run.low), time(run.high)),
            time(run.least),
            row.throughput(run.median),
            format!("{} in {}", how_made(row.cached), millis(row.compile)),
        ]);
    }
    columns(&lines, out);
    for (file, against, of, to) in pairs(measured) {
        if let Some(ratio) = ratios(of, to) {
            out.line(&in_words(file, against, ratio));
        }
    }
}

/// What a comparison says.
pub fn in_words(file: &str, against: &str, ratio: Spread) -> String {
    let Some([low, high]) = ratio.interval else {
        return format!("{file} takes {} of the time of {against}; too few runs for an interval", digits(ratio.median));
    };
    let percent = CERTAINTY * 100.0;
    let verdict = if low > 1.0 {
        "slower"
    } else if high < 1.0 {
        "faster"
    } else {
        "no difference shown"
    };
    format!(
        "{file} takes {:.3} of the time of {against} ({percent:.0} %: {low:.3} to {high:.3}): {verdict}",
        ratio.median
    )
}

/// Writes columns: the first to the left, the others to the right; those without a word are left out.
fn columns<const N: usize>(lines: &[[String; N]], out: &mut Out) {
    let widths: Vec<usize> = (0..N)
        .map(|c| {
            let is_used = lines.iter().skip(1).any(|l| !l[c].is_empty());
            if is_used { lines.iter().map(|l| l[c].chars().count()).max().unwrap_or(0) } else { 0 }
        })
        .collect();
    for line in lines {
        let mut text = String::from(" ");
        for (c, (cell, width)) in line.iter().zip(&widths).enumerate().filter(|(_, (_, w))| **w > 0) {
            text += &if c == 0 { format!(" {cell:<width$}") } else { format!("  {cell:>width$}") };
        }
        out.line(text.trim_end());
    }
}

/// Characters of the longest bar.
const BAR: f64 = 40.0;

/// Sizes with bars of throughput, or of runs a second where nothing says what a run does.
fn plot(host: &Host, name: &str, sizes: &[(u64, Measured)], out: &mut Out) {
    let Some((_, first)) =
        sizes.iter().find(|(_, m)| m.subjects.iter().any(|(_, rows)| rows.iter().any(|r| !r.seconds.is_empty())))
    else {
        return;
    };
    heading(host, first, out);
    let mut points = Vec::new();
    for (value, measured) in sizes {
        for (file, rows) in &measured.subjects {
            for row in rows {
                let Some(run) = row.spread() else { continue };
                let rate = row.bytes.or(row.operations).map_or(1.0 / run.median, |n| n / run.median);
                points.push((*value, file, row, run, rate));
            }
        }
    }
    let most = points.iter().map(|(.., rate)| *rate).fold(0.0, f64::max);
    let several = first.subjects.len() > 1;
    let has_rate = points.iter().any(|(_, _, row, ..)| row.bytes.or(row.operations).is_some());
    let last = if has_rate { "throughput" } else { "runs a second" };
    let mut lines = vec![[name, "", "median", "quartiles", last, ""].map(str::to_owned)];
    for (value, file, row, run, rate) in points {
        // A bar is never longer than BAR and never negative.
        let length = (rate / most * BAR).round() as usize;
        lines.push([
            value.to_string(),
            if several { file.clone() } else { String::new() },
            time(run.median),
            format!("{} to {}", time(run.low), time(run.high)),
            if has_rate { row.throughput(run.median) } else { with_unit(rate, "/s") },
            format!("{:<1$}", "#".repeat(length.max(1)), BAR as usize),
        ]);
    }
    columns(&lines, out);
    for (value, measured) in sizes {
        for (file, against, of, to) in pairs(measured) {
            if let Some(ratio) = ratios(of, to) {
                out.line(&format!("{name} = {value}: {}", in_words(file, against, ratio)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(seconds: &[f64]) -> Row {
        Row {
            entry: "k".into(),
            threads: 1,
            compile: Duration::ZERO,
            cached: false,
            bytes: Some(1e6),
            operations: None,
            seconds: seconds.to_vec(),
        }
    }

    #[test]
    fn numbers_have_units() {
        assert_eq!(with_unit(1.234e9, "B/s"), "1.23 GB/s");
        assert_eq!(with_unit(999.0, "B/s"), "999 B/s");
        assert_eq!(time(0.012_34), "12.3 ms");
        assert_eq!(time(4.5e-8), "45.0 ns");
        assert_eq!(row(&[]).throughput(1e-3), "1.00 GB/s");
    }

    #[test]
    fn a_difference_is_told_only_where_one_is_shown() {
        let words = |a: &[f64], b: &[f64]| in_words("a", "b", ratios(&row(a), &row(b)).unwrap());
        let one = [1.0; 10];
        assert!(words(&[1.1; 10], &one).ends_with("slower"));
        assert!(words(&[0.9; 10], &one).ends_with("faster"));
        assert!(words(&[1.1, 0.9, 1.1, 0.9, 1.1, 0.9, 1.1, 0.9, 1.1, 0.9], &one).ends_with("no difference shown"));
        assert!(words(&[1.1; 5], &one[..5]).ends_with("too few runs for an interval"));
    }
}
