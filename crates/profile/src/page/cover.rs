//! The page of a coverage.

use std::collections::BTreeMap;

use super::Texts;
use super::html::{escape, nothing, number, share, shell, table, tile};
use super::listing::{Columns, beside};
use crate::counter::ratio;
use crate::cover::{Coverage, Share};
use crate::model::Row;
use crate::remarks::{grouped, percent};

/// The page of a coverage.
pub fn cover_page(coverage: &Coverage, texts: &Texts) -> String {
    let (statements, branches, lanes) =
        (coverage.statements_share(), coverage.branches_share(), coverage.lanes_share());
    let sources = coverage.source_share();
    let mut tiles = String::new();
    let mut add = |s: Share, what: &str| {
        if s.all > 0 {
            let text = format!("of {} {what}", grouped(s.all));
            tiles.push_str(&tile(&percent(s.of_all()), &text));
        }
    };
    add(statements, "PTX statements ran");
    add(sources, "source lines ran");
    add(branches, "ways of branches were taken");
    add(lanes, "lanes of the statements that ran did something");
    let mut body =
        format!("<h2>Coverage</h2><p>{} launches together.</p><div class=\"tiles\">{tiles}</div>", coverage.launches);
    body.push_str(&functions(coverage));
    body.push_str("<h3>The code, line by line</h3><p class=\"soft\">Underlined: what never ran.</p>");
    let cells = |row: &Row| {
        if row.warps == 0 {
            return ("<td class=\"n\">0</td><td></td><td></td>".to_owned(), "missed");
        }
        let lanes = share(f64::from(row.which.count_ones()) / 32.0);
        let ways = row.branch.as_ref().map_or(String::new(), |b| match b.ways.as_slice() {
            [taken, not] => {
                let word = |n: &u64| if *n > 0 { grouped(*n) } else { "<b class=\"up\">never</b>".to_owned() };
                format!("taken {}, not taken {}", word(taken), word(not))
            }
            ways => {
                let never = ways.iter().filter(|n| **n == 0).count();
                format!("{} of {} ways", ways.len() - never, ways.len())
            }
        });
        (format!("{}{lanes}<td>{ways}</td>", number(row.warps)), "")
    };
    let source_cells = |rows: &[&Row]| match rows {
        [] => ("<td></td>".to_owned(), ""),
        _ if rows.iter().all(|r| r.warps == 0) => ("<td class=\"n\">0</td>".to_owned(), "missed"),
        _ => (number(rows.iter().map(|r| r.warps).max().unwrap_or(0)), ""),
    };
    let columns = Columns {
        headings: &["#warps", "#lanes that ran", "branches"],
        cells: &cells,
        source_headings: &["#warps"],
        source_cells: &source_cells,
    };
    let rows: Vec<&Row> = coverage.statements.iter().collect();
    body.push_str(&beside("c", &rows, texts, &columns));
    shell("Handloom coverage", &[], &body)
}

fn functions(coverage: &Coverage) -> String {
    let mut all: BTreeMap<(&str, &str), (u64, u64, u64)> = BTreeMap::new();
    for row in &coverage.statements {
        let f = all.entry((&row.file, &row.function)).or_default();
        f.0 += 1;
        f.1 += u64::from(row.warps > 0);
        f.2 = f.2.max(row.warps);
    }
    let row = |((file, name), (n, ran, most)): (&(&str, &str), &(u64, u64, u64))| {
        let ran_of = if *n > 0 { share(ratio(*ran, *n)) } else { nothing() };
        format!("<tr><td>{}</td><td>{}</td>{}{ran_of}{}</tr>", escape(name), escape(file), number(*n), number(*most))
    };
    let body: String = all.iter().map(row).collect();
    table("sorts", &["function", "file", "#statements", "#ran", "#most runs of a statement"], &body)
}
