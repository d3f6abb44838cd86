//! The page of a coverage.

use std::collections::BTreeMap;

use super::Texts;
use super::html::{escape, function_name, nothing, number, part, share, shell, table, tile};
use super::listing::{Anchors, Columns, beside};
use crate::cover::{Coverage, Share};
use crate::model::{NOT_TIME, Row};
use crate::remarks::{grouped, percent};
use handloom_counts::ratio;
use handloom_diag::names::readable;

/// Most statements that are listed line by line: a page is to open at once.
const LISTED: usize = 20_000;

/// Most places that never ran that are told.
const MISSED: usize = 200;

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
    let mut body = format!(
        "<h2>Coverage of {}</h2><div class=\"tiles\">{tiles}</div>",
        match coverage.launches {
            1 => "1 launch".to_owned(),
            n => format!("{} launches", grouped(n)),
        }
    );
    let rows: Vec<&Row> = coverage.statements.iter().collect();
    let is_listed = rows.len() <= LISTED;
    let anchors = Anchors::of("c", &rows, is_listed);
    body.push_str(&part("Functions", &functions(coverage)));
    body.push_str(&part("What never ran", &missed(&anchors, &rows)));
    if !is_listed {
        let text = format!(
            "<p class=\"soft\">Left out: a page lists up to {LISTED} statements, and there are {}. Data (<code>-o FILE.json</code>) and lcov have all.</p>",
            grouped(rows.len() as u64)
        );
        body.push_str(&part("The code, line by line", &text));
        return shell("Handloom coverage", NOT_TIME, &[], &body);
    }
    let cells = |row: &Row| {
        if row.warps == 0 {
            return ("<td class=\"n\">0</td><td></td>".to_owned(), String::new(), "missed");
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
        (format!("{}{lanes}", number(row.warps)), ways, "")
    };
    let source_cells = |rows: &[&Row]| match rows {
        [] => ("<td></td><td></td>".to_owned(), ""),
        _ if rows.iter().all(|r| r.warps == 0) => (format!("<td class=\"n\">0</td>{}", share(0.0)), "missed"),
        _ => {
            let ran = rows.iter().filter(|r| r.warps > 0).count() as u64;
            let most = rows.iter().map(|r| r.warps).max().unwrap_or(0);
            (format!("{}{}", number(most), share(ratio(ran, rows.len() as u64))), "")
        }
    };
    let columns = Columns {
        headings: &["#warps", "#lanes"],
        cells: &cells,
        source_headings: &["#warps", "#ran"],
        source_cells: &source_cells,
        of_function: &|rows| {
            let ran = rows.iter().filter(|row| row.warps > 0).count() as u64;
            let all = rows.len() as u64;
            format!("{} of {} statements ran ({})", grouped(ran), grouped(all), percent(ratio(ran, all)))
        },
    };
    let listing = beside(&anchors, &rows, texts, &columns);
    let note = "<p class=\"soft\">Underlined, with a bar at the left: what never ran.</p>";
    body.push_str(&part("The code, line by line", &format!("{note}{listing}")));
    shell("Handloom coverage", NOT_TIME, &[], &body)
}

/// Places that never ran, as links: statements that follow each other are one. All of a function that never ran is one, too.
fn missed(anchors: &Anchors<'_>, rows: &[&Row]) -> String {
    let mut all = Vec::new();
    for of_function in rows.chunk_by(|a, b| a.function == b.function && a.file == b.file) {
        for run in of_function.chunk_by(|a, b| (a.warps == 0) == (b.warps == 0)) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
            if first.warps > 0 {
                continue;
            }
            let lines = if first.line == last.line {
                first.line.to_string()
            } else {
                format!("{}–{}", first.line, last.line)
            };
            let whole = if run.len() == of_function.len() {
                format!(" (all of {})", readable(&first.function).as_ref().unwrap_or(&first.function))
            } else {
                String::new()
            };
            all.push(anchors.link(first, &format!("{lines}{whole}")));
        }
    }
    let more = all.len().saturating_sub(MISSED);
    all.truncate(MISSED);
    match (all.is_empty(), more) {
        (true, _) => "<p>Every statement ran.</p>".to_owned(),
        (false, 0) => format!("<p class=\"places\">{}</p>", all.join(" ")),
        (false, more) => format!("<p class=\"places\">{} and {} more places</p>", all.join(" "), grouped(more as u64)),
    }
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
        let (name, file) = (function_name(name), escape(file));
        format!("<tr><td class=\"name\">{name}</td><td>{file}</td>{}{ran_of}{}</tr>", number(*n), number(*most))
    };
    let body: String = all.iter().map(row).collect();
    table("sorts", &["function", "file", "#statements", "#ran", "#most runs of a statement"], &body)
}
