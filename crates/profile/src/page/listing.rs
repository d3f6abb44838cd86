//! The PTX with what was counted at its lines, and the source beside it.
//!
//! Rows lie in tables of [`CHUNK`] each, which a browser lays out when they are seen, so that the page of a kernel of 10,000 lines opens at once. A row of the
//! PTX is named `PREFIX-FILE-LINE-COLUMN`, a line of the source `PREFIX-sFILE-LINE`, where files are numbers in the order of their names.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::Texts;
use super::html::{escape, function_name, head};
use crate::model::{Row, SourcePlace};

/// Rows of a table.
const CHUNK: usize = 100;

/// Cells of a statement before its text, what stands below its text, and the class of its line.
pub type Cells<'a> = dyn Fn(&Row) -> (String, String, &'static str) + 'a;

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
    /// What is said of a function beside its name, by its statements.
    pub of_function: &'a dyn Fn(&[&Row]) -> String,
}

/// Names of rows in links.
pub struct Anchors<'r> {
    prefix: &'r str,
    files: Vec<&'r str>,
    sources: Vec<&'r str>,
    /// The page has the statements.
    is_listed: bool,
}

impl<'r> Anchors<'r> {
    /// Those of statements, which are all listed or are not.
    pub fn of(prefix: &'r str, rows: &[&'r Row], is_listed: bool) -> Anchors<'r> {
        let files: BTreeSet<&str> = rows.iter().map(|row| row.file.as_str()).collect();
        let sources: BTreeSet<&str> = rows.iter().filter_map(|row| Some(row.source.as_ref()?.file.as_str())).collect();
        Anchors { prefix, files: files.into_iter().collect(), sources: sources.into_iter().collect(), is_listed }
    }

    /// A word that leads to a statement, where it is listed.
    pub fn link(&self, row: &Row, text: &str) -> String {
        let text = escape(text);
        if self.is_listed { format!("<a href=\"#{}\">{text}</a>", self.statement(row)) } else { text }
    }

    /// The name of a statement.
    pub fn statement(&self, row: &Row) -> String {
        let file = self.files.binary_search(&row.file.as_str()).unwrap_or(self.files.len());
        format!("{}-{file}-{}-{}", self.prefix, row.line, row.column)
    }

    /// A line of the source, as a word that leads to it where it is listed.
    pub fn link_source(&self, place: &SourcePlace) -> String {
        let name = place.file.rsplit('/').next().unwrap_or(&place.file);
        let text = escape(&format!("{name}:{}", place.line));
        if self.is_listed { format!("<a href=\"#{}\">{text}</a>", self.source(place)) } else { text }
    }

    /// The name of a line of the source.
    fn source(&self, place: &SourcePlace) -> String {
        let file = self.sources.binary_search(&place.file.as_str()).unwrap_or(self.sources.len());
        format!("{}-s{file}-{}", self.prefix, place.line)
    }
}

/// PTX and source side by side.
pub fn beside(anchors: &Anchors<'_>, rows: &[&Row], texts: &Texts, columns: &Columns<'_>) -> String {
    let ptx = ptx(anchors, rows, texts, columns);
    match source(anchors, rows, texts, columns) {
        Some(source) => {
            format!("<div class=\"beside\"><div class=\"ptx\">{ptx}</div><div class=\"src\">{source}</div></div>")
        }
        None => format!(
            "<p class=\"soft\">The PTX has no <code>.loc</code>, so its source is not known: compile with line information \
             (<code>nvcc -lineinfo</code>, <code>clang -gline-tables-only</code>, <code>lineinfo=True</code> of Numba; Triton writes it by itself) \
             to see it beside the PTX.</p><div class=\"beside alone\"><div class=\"ptx\">{ptx}</div></div>"
        ),
    }
}

/// Rows in tables with the same columns.
struct Tables<'a> {
    class: &'a str,
    headings: Vec<&'a str>,
    rows: Vec<String>,
    is_first: bool,
}

impl<'a> Tables<'a> {
    fn new(class: &'a str, headings: Vec<&'a str>) -> Tables<'a> {
        Tables { class, headings, rows: Vec::new(), is_first: true }
    }

    fn label(&mut self, number: &str, text: &str) {
        let columns = self.headings.len() - 1;
        self.rows.push(format!(
            "<tr class=\"label\"><td class=\"n\">{number}</td><td colspan=\"{columns}\">{text}</td></tr>"
        ));
    }

    /// Writes the rows so far.
    fn write(&mut self, out: &mut String) {
        let Tables { class, headings, rows, is_first } = self;
        for chunk in rows.chunks(CHUNK) {
            let n = chunk.len();
            let _ = write!(out, "<div class=\"k\" style=\"--n:{n}\"><table class=\"listing {class}\">");
            // Others are below it, with the same columns.
            if std::mem::take(is_first) {
                out.push_str(&head(headings));
            }
            let _ = write!(out, "<tbody>{}</tbody></table></div>", chunk.concat());
        }
        rows.clear();
    }
}

fn ptx(anchors: &Anchors<'_>, rows: &[&Row], texts: &Texts, columns: &Columns<'_>) -> String {
    let headings: Vec<&str> = ["#line"].into_iter().chain(columns.headings.iter().copied()).chain(["PTX"]).collect();
    let mut out = String::new();
    for of_function in rows.chunk_by(|a, b| a.function == b.function && a.file == b.file) {
        let Some(first) = of_function.first() else { continue };
        let mut tables = Tables::new("of-ptx", headings.clone());
        let mut last: Option<&Row> = None;
        for row in of_function {
            if let (Some(before), Some(lines)) = (last, texts.get(&row.file)) {
                for line in before.line + 1..row.line {
                    let text = usize::try_from(line - 1).ok().and_then(|i| lines.get(i)).map_or("", |l| l.trim());
                    if text.ends_with(':') && !text.starts_with('/') {
                        tables.label(&line.to_string(), &format!("<code>{}</code>", escape(text)));
                    }
                }
            }
            tables.rows.push(statement(anchors, row, columns));
            last = Some(row);
        }
        let _ = write!(
            out,
            "<details open><summary><b>{}</b> <span class=\"soft\">in {}: {}</span></summary>",
            function_name(&first.function),
            escape(&first.file),
            escape(&(columns.of_function)(of_function))
        );
        tables.write(&mut out);
        out.push_str("</details>\n");
    }
    out
}

fn statement(anchors: &Anchors<'_>, row: &Row, columns: &Columns<'_>) -> String {
    let (cells, note, class) = (columns.cells)(row);
    let (id, number) = (anchors.statement(row), row.line);
    let (link, data) = match &row.source {
        Some(place) => {
            let to = anchors.source(place);
            (format!("<a href=\"#{to}\">{number}</a>"), format!(" data-s=\"{to}\""))
        }
        None => (number.to_string(), String::new()),
    };
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let text: String = row.text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!(
        "<tr id=\"{id}\"{class}{data}><td class=\"n\">{link}</td>{cells}<td class=\"code\">{}{}</td></tr>\n",
        escape(&text),
        if note.is_empty() { note } else { format!("<small>{note}</small>") }
    )
}

fn source(anchors: &Anchors<'_>, rows: &[&Row], texts: &Texts, columns: &Columns<'_>) -> Option<String> {
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
    let mut by_file: Vec<_> = by_file.into_iter().collect();
    // The file where most runs comes first: a kernel is often in front of what it calls of libraries.
    by_file.sort_by_key(|(_, lines)| Reverse(lines.values().flatten().map(|row| row.warps).sum::<u64>()));
    for (file, lines) in by_file {
        let text = texts.get(file);
        let note = if text.is_some() { "" } else { ": the file was not found, so its lines are only numbered" };
        let _ =
            write!(out, "<details open><summary><b>{}</b><span class=\"soft\">{note}</span></summary>", escape(file));
        let mut tables = Tables::new("of-source", headings.clone());
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
                    tables.label("⋮", "");
                }
                skipped = true;
                continue;
            }
            skipped = false;
            let none = Vec::new();
            let of_line = lines.get(&line).unwrap_or(&none);
            let (cells, class) = (columns.source_cells)(of_line);
            let id = anchors.source(&SourcePlace { file: file.to_owned(), line });
            let number = match of_line.first() {
                Some(row) => format!("<a href=\"#{}\">{line}</a>", anchors.statement(row)),
                None => line.to_string(),
            };
            let data = if of_line.is_empty() { String::new() } else { format!(" data-s=\"{id}\"") };
            let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
            let text = text.and_then(|t| t.get(usize::try_from(line - 1).ok()?)).map_or("", String::as_str);
            tables.rows.push(format!(
                "<tr id=\"{id}\"{class}{data}><td class=\"n\">{number}</td>{cells}<td class=\"code\">{}</td></tr>\n",
                escape(text)
            ));
        }
        tables.write(&mut out);
        out.push_str("</details>\n");
    }
    Some(out)
}
