//! The PTX with what was counted at its lines, and the source beside it.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Texts;
use super::html::{escape, table};
use crate::model::{Row, SourcePlace};

/// The name of a statement in links.
pub fn anchor(prefix: &str, row: &Row) -> String {
    format!("{prefix}-{}-{}-{}", plain(&row.file), row.line, row.column)
}

fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

fn source_anchor(prefix: &str, place: &SourcePlace) -> String {
    format!("{prefix}-s-{}-{}", plain(&place.file), place.line)
}

/// Cells of a statement before its text, and the class of its line.
pub type Cells<'a> = dyn Fn(&Row) -> (String, &'static str) + 'a;

/// Cells of a line of the source, by the statements that came from it.
pub type SourceCells<'a> = dyn Fn(&[&Row]) -> (String, &'static str) + 'a;

/// What a page shows at lines.
pub struct Columns<'a> {
    /// Headings of the cells of a statement.
    pub headings: &'a [&'a str],
    /// The cells.
    pub cells: &'a Cells<'a>,
    /// Headings of the cells of a line of the source.
    pub source_headings: &'a [&'a str],
    /// The cells.
    pub source_cells: &'a SourceCells<'a>,
}

/// PTX and source side by side.
pub fn beside(prefix: &str, rows: &[&Row], texts: &Texts, columns: &Columns<'_>) -> String {
    let ptx = ptx(prefix, rows, texts, columns);
    match source(prefix, rows, texts, columns) {
        Some(source) => format!("<div class=\"beside\"><div>{ptx}</div><div class=\"src wide\">{source}</div></div>"),
        None => format!(
            "<p class=\"soft\">The PTX has no <code>.loc</code>, so its source is not known: compile with line information \
             (<code>nvcc -lineinfo</code>, <code>clang -gline-tables-only</code>; Triton and Numba do so by themselves) to see it beside the PTX.</p>\
             <div class=\"beside alone\"><div>{ptx}</div></div>"
        ),
    }
}

fn ptx(prefix: &str, rows: &[&Row], texts: &Texts, columns: &Columns<'_>) -> String {
    let headings: Vec<&str> = ["#line"].into_iter().chain(columns.headings.iter().copied()).chain(["PTX"]).collect();
    let mut out = String::new();
    let mut last: Option<&Row> = None;
    for row in rows {
        if last.is_none_or(|before| before.function != row.function || before.file != row.file) {
            let _ = write!(
                out,
                "<tr class=\"label\"><td></td><td colspan=\"{}\">{} in {}</td></tr>",
                headings.len() - 1,
                escape(&row.function),
                escape(&row.file)
            );
        } else if let (Some(before), Some(lines)) = (last, texts.get(&row.file)) {
            for line in before.line + 1..row.line {
                let text = usize::try_from(line - 1).ok().and_then(|i| lines.get(i)).map_or("", |l| l.trim());
                if text.ends_with(':') && !text.starts_with('/') {
                    let _ = write!(
                        out,
                        "<tr class=\"label\"><td class=\"n\">{line}</td><td colspan=\"{}\"><code>{}</code></td></tr>",
                        headings.len() - 1,
                        escape(text)
                    );
                }
            }
        }
        let (cells, class) = (columns.cells)(row);
        let (id, number) = (anchor(prefix, row), row.line);
        let (link, data) = match &row.source {
            Some(place) => {
                let to = source_anchor(prefix, place);
                (
                    format!("<a href=\"#{to}\" title=\"{}:{}\">{number}</a>", escape(&place.file), place.line),
                    format!(" data-s=\"{to}\""),
                )
            }
            None => (number.to_string(), String::new()),
        };
        let text: String = row.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = write!(
            out,
            "<tr id=\"{id}\" class=\"{class}\"{data}><td class=\"n\">{link}</td>{cells}<td class=\"code\">{}</td></tr>\n",
            escape(&text)
        );
        last = Some(row);
    }
    table("listing", &headings, &out)
}

fn source(prefix: &str, rows: &[&Row], texts: &Texts, columns: &Columns<'_>) -> Option<String> {
    let mut by_file: BTreeMap<&str, BTreeMap<u32, Vec<&Row>>> = BTreeMap::new();
    for row in rows {
        if let Some(place) = &row.source {
            by_file.entry(&place.file).or_default().entry(place.line).or_default().push(row);
        }
    }
    if by_file.is_empty() {
        return None;
    }
    let headings: Vec<&str> =
        ["#line"].into_iter().chain(columns.source_headings.iter().copied()).chain(["source"]).collect();
    let mut out = String::new();
    for (file, lines) in by_file {
        let text = texts.get(file);
        let note = if text.is_some() { "" } else { " (the file was not found; its lines are only numbered)" };
        let _ = write!(
            out,
            "<tr class=\"label\"><td></td><td colspan=\"{}\">{}{note}</td></tr>",
            headings.len() - 1,
            escape(file)
        );
        let (first, end) = (lines.keys().next().copied().unwrap_or(1), lines.keys().last().copied().unwrap_or(1));
        let shown: Vec<u32> = match text {
            // Some lines around those that became code.
            Some(text) => {
                let all = u32::try_from(text.len()).unwrap_or(u32::MAX);
                (first.saturating_sub(3).max(1)..=end.saturating_add(2).min(all.max(end))).collect()
            }
            None => lines.keys().copied().collect(),
        };
        let mut skipped = false;
        for line in shown {
            let near = lines.range(line.saturating_sub(6)..=line.saturating_add(6)).next().is_some();
            if !near {
                if !skipped {
                    let _ = write!(
                        out,
                        "<tr class=\"label\"><td class=\"n\">⋮</td><td colspan=\"{}\"></td></tr>",
                        headings.len() - 1
                    );
                }
                skipped = true;
                continue;
            }
            skipped = false;
            let none = Vec::new();
            let of_line = lines.get(&line).unwrap_or(&none);
            let (cells, class) = (columns.source_cells)(of_line);
            let id = source_anchor(prefix, &SourcePlace { file: file.to_owned(), line });
            let number = match of_line.first() {
                Some(row) => format!("<a href=\"#{}\">{line}</a>", anchor(prefix, row)),
                None => line.to_string(),
            };
            let data = if of_line.is_empty() { String::new() } else { format!(" data-s=\"{id}\"") };
            let text = text.and_then(|t| t.get(usize::try_from(line - 1).ok()?)).map_or("", String::as_str);
            let _ = write!(
                out,
                "<tr id=\"{id}\" class=\"{class}\"{data}><td class=\"n\">{number}</td>{cells}<td class=\"code\">{}</td></tr>\n",
                escape(text)
            );
        }
    }
    Some(table("listing", &headings, &out).replacen("<div class=\"wide\">", "<div>", 1))
}
