//! Self-contained HTML pages: nothing in them comes from elsewhere, and they can be read without JavaScript.

use std::fmt::Write;

use handloom_profile::html::prose;
use handloom_profile::{escape, grouped};

/// What all pages share: colours for light and dark, the head, focus.
const STYLE: &str = include_str!("../page/page.css");

/// A whole page. `style` and `script` are those of its kind, `body` is HTML.
pub fn page(title: &str, style: &str, body: &str, script: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{} – Handloom</title>\n<style>\n{STYLE}{style}</style>\n</head>\n<body>\n{body}<script>\n{script}</script>\n</body>\n</html>\n",
        escape(title)
    )
}

/// A row of a column: lines that belong together.
#[derive(Clone, Default, Debug)]
pub struct Row {
    /// The name that links go to.
    pub id: Option<String>,
    /// What stands before the text, and the name that it links to.
    pub number: Option<(u32, Option<String>)>,
    /// The statement that it is of: the number of its first line in the PTX.
    pub statement: Option<u32>,
    /// The line of the source that it is of, or is: `FILE-LINE`, the file by its place in the list.
    pub source: Option<String>,
    /// One of [`TINTS`] colours.
    pub tint: Option<usize>,
    /// It heads the rows after it.
    pub is_heading: bool,
    /// The entry that begins here.
    pub entry: Option<usize>,
    /// What a run counted there.
    pub count: Option<Count>,
    /// Its lines.
    pub text: String,
}

/// What a run counted at a row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Count {
    /// Statements that warps executed.
    pub warps: u64,
    /// Of the most of a row of the column, 0 to 1.
    pub heat: f64,
    /// Share of the lanes that did something.
    pub lanes: f64,
}

impl Count {
    fn write(self, out: &mut String) {
        let Count { warps, heat, lanes } = self;
        let (heat, lanes) = ((100.0 * heat).ceil(), 100.0 * lanes);
        let title = match warps {
            0 => " title=\"never ran\"".to_owned(),
            // Most lines, of which nothing is to be said.
            _ if lanes > 99.9 => String::new(),
            _ => format!(" title=\"{lanes:.0} % of lanes did something\""),
        };
        let class = if warps == 0 { "w z" } else { "w" };
        let _ = write!(out, "<i class=\"{class}\" style=\"--h:{heat}\"{title}>{}</i>", grouped(warps));
    }
}

/// Colours of rows.
pub const TINTS: usize = 8;

/// A column of a page.
#[derive(Clone, Debug)]
pub struct Column {
    /// `source`, `ptx`, `ir`, `plan` or `asm`: a name in the style and the script.
    pub id: &'static str,
    /// The heading.
    pub title: &'static str,
    /// What stands beside it.
    pub about: String,
    /// A sentence before the rows, if there is something to say.
    pub note: Option<String>,
    /// From first to last.
    pub rows: Vec<Row>,
}

/// Rows that a browser lays out together, when they are seen.
const CHUNK: usize = 100;

impl Column {
    /// Its HTML.
    pub fn write(&self, out: &mut String) {
        let Column { id, title, about, note, rows } = self;
        let about = escape(about);
        // Rows without a count have room for one too.
        let counted = if rows.iter().any(|row| row.count.is_some()) { " class=\"counted\"" } else { "" };
        let _ = writeln!(
            out,
            "<section id=\"{id}\"{counted} aria-labelledby=\"of-{id}\">\n<h2 id=\"of-{id}\" title=\"{about}\">{title}<small>{about}</small></h2>\n<div class=\"lines\" tabindex=\"0\" aria-labelledby=\"of-{id}\">"
        );
        if let Some(note) = note {
            let _ = writeln!(out, "<p class=\"note\">{}</p>", prose(note));
        }
        for chunk in rows.chunks(CHUNK) {
            let lines: usize = chunk.iter().map(|r| r.text.split('\n').count()).sum();
            let _ = writeln!(out, "<div class=\"k\" style=\"--n:{lines}\">");
            chunk.iter().for_each(|row| row.write(out));
            out.push_str("</div>\n");
        }
        out.push_str("</div>\n</section>\n");
    }
}

impl Row {
    fn write(&self, out: &mut String) {
        out.push_str("<div class=\"r");
        if let Some(tint) = self.tint {
            let _ = write!(out, " c{}", tint % TINTS);
        }
        if self.is_heading {
            out.push_str(" h");
        } else if self.tint.is_none() && self.source.is_none() {
            out.push_str(" d");
        }
        out.push('"');
        let attributes = [
            ("id", self.id.clone()),
            ("data-s", self.statement.map(|s| s.to_string())),
            ("data-l", self.source.clone()),
            ("data-e", self.entry.map(|e| e.to_string())),
        ];
        for (name, value) in attributes {
            if let Some(value) = value {
                let _ = write!(out, " {name}=\"{value}\"");
            }
        }
        out.push('>');
        match &self.number {
            Some((number, Some(to))) => {
                let _ = write!(out, "<a href=\"#{to}\">{number}</a>");
            }
            Some((number, None)) => {
                let _ = write!(out, "<b>{number}</b>");
            }
            None => out.push_str("<b></b>"),
        }
        if let Some(count) = self.count {
            count.write(out);
        }
        let _ = writeln!(out, "<code>{}</code></div>", escape(&self.text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(escape("a<b && \"c\" > \u{1b}"), "a&lt;b &amp;&amp; &quot;c&quot; &gt; \u{fffd}");
        let row = Row { statement: Some(3), text: "<script>".into(), ..Row::default() };
        let mut out = String::new();
        row.write(&mut out);
        assert_eq!(out, "<div class=\"r d\" data-s=\"3\"><b></b><code>&lt;script&gt;</code></div>\n");
    }
}
