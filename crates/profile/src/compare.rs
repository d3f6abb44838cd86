//! The difference of two profiles.

use serde::Serialize;

use crate::model::{Launch, Profile, SCHEMA, Totals, VERSION};

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
        None => Ok(Changes { entry: now.entry.clone(), totals: changes(&base.totals, &now.totals) }),
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
            let (base, now) = (crate::remarks::grouped(c.base), crate::remarks::grouped(c.now));
            let _ = writeln!(out, "  {:<22} {base:>14} -> {now:>14}  {percent:>10}{mark}", c.what);
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
