//! Tables for people and lines for machines.

use serde_json::Value;

/// A part of the report.
#[derive(Debug)]
pub struct Section {
    /// What it is.
    pub title: String,
    /// Heads of the columns.
    pub heads: Vec<&'static str>,
    /// Cells; a row may be shorter than the heads.
    pub rows: Vec<Vec<String>>,
    /// What must be said below.
    pub notes: Vec<String>,
    /// The same for machines, one object a line.
    pub objects: Vec<Value>,
    /// Names of what failed.
    pub failed: Vec<String>,
}

impl Section {
    /// A section without rows.
    pub fn new(title: &str, heads: &[&'static str]) -> Section {
        Section {
            title: title.to_owned(),
            heads: heads.to_vec(),
            rows: Vec::new(),
            notes: Vec::new(),
            objects: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// Adds a row that says why there are no figures.
    pub fn fail(&mut self, name: &str, why: &str) {
        self.rows.push(vec![name.to_owned(), "failed".to_owned()]);
        self.notes.push(format!("{name} failed: {why}"));
        self.objects.push(serde_json::json!({ "name": name, "status": "failed", "message": why }));
        self.failed.push(name.to_owned());
    }

    /// Says that something was left out.
    pub fn skip(&mut self, name: &str, why: &str) {
        self.notes.push(format!("{name} skipped: {why}"));
        self.objects.push(serde_json::json!({ "name": name, "status": "skipped", "message": why }));
    }

    /// The table as text; empty if it has neither rows nor notes.
    pub fn text(&self) -> String {
        if self.rows.is_empty() && self.notes.is_empty() {
            return String::new();
        }
        let heads: Vec<String> = self.heads.iter().map(|h| (*h).to_owned()).collect();
        let lines: Vec<&Vec<String>> = std::iter::once(&heads).chain(&self.rows).collect();
        let width =
            |c: usize| lines.iter().filter_map(|l| l.get(c)).map(|cell| cell.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..heads.len()).map(width).collect();
        let mut out = format!("{}\n", self.title);
        for line in lines {
            let mut text = String::new();
            for (c, cell) in line.iter().enumerate() {
                let w = widths.get(c).copied().unwrap_or(0);
                // Names to the left, figures to the right.
                let padded = if c < 2 { format!("{cell:<w$}") } else { format!("{cell:>w$}") };
                text.push_str("  ");
                text.push_str(&padded);
            }
            out.push_str(text.trim_end());
            out.push('\n');
        }
        for note in &self.notes {
            out.push_str(&format!("  {note}\n"));
        }
        out
    }
}

/// Which side of a floor is good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Good {
    /// Figures at or above it.
    Above,
    /// Figures at or below it.
    Below,
}

/// A figure with a floor, as a cell: the floor, and `ok` or `below` if it is judged.
pub fn floor_cell(value: f64, floor: Option<f64>, good: Good, judged: bool) -> String {
    let Some(floor) = floor else { return String::new() };
    if !judged {
        return figure(floor);
    }
    format!("{} {}", figure(floor), verdict(value, floor, good))
}

/// The verdict alone.
pub fn verdict(value: f64, floor: f64, good: Good) -> &'static str {
    let ok = match good {
        Good::Above => value >= floor,
        Good::Below => value <= floor,
    };
    match (ok, good) {
        (true, _) => "ok",
        (false, Good::Above) => "below",
        (false, Good::Below) => "too slow",
    }
}

/// Three digits, or all before the point.
pub fn figure(v: f64) -> String {
    match v.abs() {
        a if a >= 100.0 => format!("{v:.0}"),
        a if a >= 10.0 => format!("{v:.1}"),
        a if a >= 0.1 || a == 0.0 => format!("{v:.2}"),
        _ => format!("{v:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut s = Section::new("t", &["name", "size", "ours"]);
        s.rows.push(vec!["a".into(), "64 MiB".into(), "1.00".into()]);
        s.rows.push(vec!["long".into(), "-".into()]);
        assert_eq!(s.text(), "t\n  name  size    ours\n  a     64 MiB  1.00\n  long  -\n");
    }

    #[test]
    fn floors_are_judged_when_asked() {
        assert_eq!(floor_cell(0.6, Some(0.5), Good::Above, true), "0.50 ok");
        assert_eq!(floor_cell(0.4, Some(0.5), Good::Above, true), "0.50 below");
        assert_eq!(floor_cell(0.4, Some(0.5), Good::Below, true), "0.50 ok");
        assert_eq!(floor_cell(0.6, Some(0.5), Good::Below, true), "0.50 too slow");
        assert_eq!(floor_cell(0.4, Some(0.5), Good::Above, false), "0.50");
        assert_eq!(floor_cell(0.4, None, Good::Above, true), "");
    }
}
