//! What `bench` measured, as a page: every timing, medians with their spread, comparisons with their intervals, sizes against throughput.

use std::fmt::Write;

use handloom_profile::html::{escape, shell, table, tile};

use crate::compared::{Measured, Row, in_words, pairs, rate_of, ratios, subject_name, time, with_unit};
use crate::host::Host;
use crate::launch::{how_made, millis};
use crate::plot::{Axis, Plot, SERIES};
use crate::timing::{CERTAINTY, Spread};

const WIDTH: f64 = 960.0;

/// What stands on the page in place of the words of counts.
const BADGE: &str = "Time on this host, not on a GPU";

/// What was measured: once, or for several sizes of a name.
pub enum Told<'m> {
    /// Of one command line.
    Once(&'m Measured),
    /// Of one for each size.
    Sweep(&'m str, &'m [(u64, Measured)]),
}

/// The page.
pub fn page(host: &Host, told: &Told<'_>) -> String {
    let one = match told {
        Told::Once(measured) => Some(*measured),
        Told::Sweep(_, sizes) => sizes.iter().map(|(_, m)| m).find(|m| m.rows().any(|(_, r)| !r.seconds.is_empty())),
    };
    let mut body = String::new();
    let Some(one) = one else { return shell("Handloom bench", BADGE, &[], "<p>Nothing was timed.</p>") };
    let files: Vec<&str> = one.subjects.iter().map(|(file, _)| file.as_str()).collect();
    let _ = write!(body, "<h2>{}</h2><p>{}</p>", escape(&files.join(", ")), escape(&one.about(host)));
    match told {
        Told::Once(measured) => once(measured, &mut body),
        Told::Sweep(name, sizes) => sweep(name, sizes, &mut body),
    }
    body.push_str(READ);
    let links = [("read".to_owned(), "How to read this".to_owned())];
    shell("Handloom bench", BADGE, &links, &body)
}

const READ: &str = "<section id=\"read\"><h3>How to read this</h3>\
<p>A timing is a launch alone: code was made before, and memory that a run changes was put back. What is compared ran in turns, so that slow minutes of the host \
met all. <b>Quartiles</b> hold the middle half of the timings. An <b>interval</b> holds the true median in 95 of 100 measurements, if rounds do not depend on each \
other; a difference is told only where it does not hold 1.</p>\
<p>Times of a host say how long tests take here, and which of two versions does more of the same work. They do not say how fast a GPU is, nor by how many percent \
a version is faster there, nor what accesses that do not coalesce cost: for those, count (<code>handloom profile</code>).</p></section>";

/// Rows with their series: the number of the file where there are several, else that of the launch.
fn series(measured: &Measured) -> Vec<(usize, String, &Row)> {
    let several = measured.subjects.len() > 1;
    measured
        .rows()
        .enumerate()
        .map(|(i, ((file, number), row))| {
            (if several { file } else { i }, subject_name(measured, file, number, row), row)
        })
        .filter(|(.., row)| !row.seconds.is_empty())
        .collect()
}

fn tiles(rows: &[(usize, String, &Row)], body: &mut String) {
    let [(_, _, row)] = rows else { return };
    let Some(run) = Spread::of(&row.seconds) else { return };
    let mut all = vec![
        (time(run.median), "median of the runs".to_owned()),
        (format!("{} – {}", time(run.low), time(run.high)), "quartiles".to_owned()),
        (time(run.least), "the fastest".to_owned()),
    ];
    all.extend(
        row.rates()
            .map(|(amount, unit)| (with_unit(amount / run.median, unit), "throughput, by the median".to_owned())),
    );
    all.push((millis(row.compile), format!("code was {}", how_made(row.cached))));
    let tiles: String = all.iter().map(|(figure, what)| tile(figure, what)).collect();
    let _ = write!(body, "<div class=\"tiles\">{tiles}</div>");
}

fn once(measured: &Measured, body: &mut String) {
    let rows = series(measured);
    tiles(&rows, body);
    let compared: Vec<(String, String, Spread)> = pairs(measured)
        .filter_map(|(file, against, of, to)| Some((file.to_owned(), against.to_owned(), ratios(of, to)?)))
        .collect();
    if !compared.is_empty() {
        body.push_str("<h3>Compared</h3><ul>");
        for (file, against, ratio) in &compared {
            let _ = write!(body, "<li>{}</li>", escape(&in_words(file, against, *ratio)));
        }
        body.push_str("</ul>");
        body.push_str(&intervals(&compared));
    }
    body.push_str("<h3>All runs</h3><p class=\"soft\">A mark is a run, from the first above to the last below; the bar holds the middle half, the line is the median.</p>");
    for (number, name, row) in &rows {
        let all = rows.iter().flat_map(|(.., r)| &r.seconds).copied();
        // Launches of a job differ too much for one scale.
        let axis = if measured.subjects.len() > 1 {
            Axis::over(all, false, SIDES)
        } else {
            Axis::over(row.seconds.iter().copied(), false, SIDES)
        };
        body.push_str(&runs(*number, name, row, &axis));
    }
    body.push_str("<h3>In numbers</h3>");
    body.push_str(&numbers(rows.iter().map(|(_, name, row)| (None, name.as_str(), *row))));
}

/// Left and right end of the scales of runs and intervals.
const SIDES: (f64, f64) = (24.0, WIDTH - 24.0);

/// All runs of a launch.
fn runs(number: usize, name: &str, row: &Row, axis: &Axis) -> String {
    let Some(run) = Spread::of(&row.seconds) else { return String::new() };
    const HEIGHT: f64 = 76.0;
    let (top, bottom) = (30.0, 30.0 + HEIGHT);
    let label = format!("{name}: {} runs, median {}", row.seconds.len(), time(run.median));
    let mut plot = Plot::new(WIDTH, bottom + 44.0, &label);
    plot.text((SIDES.0, 18.0), "head", &label);
    let ticks: Vec<(f64, String)> = axis.ticks(10.0).into_iter().map(|n| (n, time(n))).collect();
    plot.below(axis, (top, bottom), &ticks, "time of a run");
    let (low, high) = (axis.at(run.low), axis.at(run.high));
    plot.bar(&format!("band s{}", number % SERIES), (low, top), (high - low, HEIGHT));
    let last = row.seconds.len().max(2) - 1;
    for (i, seconds) in row.seconds.iter().enumerate() {
        let y = top + 6.0 + (HEIGHT - 12.0) * i as f64 / last as f64;
        plot.mark(number, (axis.at(*seconds), y), 2.5, &format!("run {}: {}", i + 1, time(*seconds)));
    }
    let median = axis.at(run.median);
    plot.line(&format!("median s{}", number % SERIES), (median, top), (median, bottom));
    plot.svg()
}

/// Ratios of times with their intervals, beside 1.
fn intervals(compared: &[(String, String, Spread)]) -> String {
    let ends = compared
        .iter()
        .flat_map(|(_, _, r)| [r.median, r.low, r.high].into_iter().chain(r.interval.into_iter().flatten()));
    let axis = Axis::over(ends.chain([1.0]), false, SIDES);
    let (top, each) = (14.0, 46.0);
    let bottom = top + each * compared.len() as f64;
    let against = compared.first().map_or("", |(_, a, _)| a.as_str());
    let mut plot = Plot::new(WIDTH, bottom + 44.0, &format!("times as parts of those of {against}, with intervals"));
    let ticks: Vec<(f64, String)> = axis
        .ticks(10.0)
        .into_iter()
        .map(|n| (n, format!("{:.3}", n).trim_end_matches('0').trim_end_matches('.').to_owned()))
        .collect();
    plot.below(&axis, (top, bottom), &ticks, &format!("time, as a part of that of {against}"));
    plot.line("one", (axis.at(1.0), top), (axis.at(1.0), bottom));
    for (i, (file, _, ratio)) in compared.iter().enumerate() {
        let y = top + each * (i as f64 + 0.68);
        plot.text((SIDES.0, y - 16.0), "head", file);
        if let Some([low, high]) = ratio.interval {
            plot.bar(
                &format!("band s{}", (i + 1) % SERIES),
                (axis.at(low), y - 5.0),
                (axis.at(high) - axis.at(low), 10.0),
            );
        }
        let percent = CERTAINTY * 100.0;
        let title =
            ratio.interval.map_or(String::new(), |[low, high]| format!(", {percent:.0} %: {low:.3} to {high:.3}"));
        plot.mark(i + 1, (axis.at(ratio.median), y), 5.0, &format!("{:.3}{title}", ratio.median));
    }
    plot.svg()
}

/// All of it as a table.
fn numbers<'r>(rows: impl Iterator<Item = (Option<u64>, &'r str, &'r Row)>) -> String {
    let (mut out, mut has_size, mut has_rate) = (String::new(), false, false);
    let all: Vec<_> = rows.collect();
    all.iter().for_each(|(size, _, row)| {
        has_size |= size.is_some();
        has_rate |= row.rates().next().is_some();
    });
    for (size, name, row) in all {
        let Some(run) = Spread::of(&row.seconds) else { continue };
        let cell = |seconds: f64| format!("<td class=\"n\" data-v=\"{seconds:e}\">{}</td>", time(seconds));
        let size = size.map_or(String::new(), |n| format!("<td class=\"n\" data-v=\"{n}\">{n}</td>"));
        let rate = match row.rates().next() {
            _ if !has_rate => String::new(),
            Some((amount, _)) => {
                format!("<td class=\"n\" data-v=\"{:e}\">{}</td>", amount / run.median, row.throughput(run.median))
            }
            None => "<td class=\"n\" data-v=\"-1\"></td>".to_owned(),
        };
        let _ = writeln!(
            out,
            "<tr>{size}<td>{}</td>{}{}{}{}{}{rate}<td class=\"n\" data-v=\"{}\">{}</td><td class=\"n\" data-v=\"{:e}\">{} in {}</td></tr>",
            escape(name),
            cell(run.median),
            cell(run.low),
            cell(run.high),
            cell(run.least),
            cell(run.most),
            row.seconds.len(),
            row.seconds.len(),
            row.compile.as_secs_f64(),
            how_made(row.cached),
            millis(row.compile),
        );
    }
    let mut headings = if has_size { vec!["#size"] } else { vec![] };
    headings.extend(["launch", "#median", "#low quartile", "#high quartile", "#fastest", "#slowest"]);
    if has_rate {
        headings.push("#throughput");
    }
    headings.extend(["#runs", "#code"]);
    table("sorts", &headings, &out)
}

/// A point of a sweep: size, throughput or runs a second, and the same at the quartiles.
struct Point {
    size: f64,
    rate: f64,
    low: f64,
    high: f64,
    title: String,
}

fn sweep(name: &str, sizes: &[(u64, Measured)], body: &mut String) {
    let Some((_, first)) = sizes.first() else { return };
    let unit = rate_of(sizes.iter().flat_map(|(_, m)| m.rows().map(|(_, row)| row)));
    let mut lines: Vec<(String, Vec<Point>)> =
        series(first).into_iter().map(|(_, name, _)| (name, Vec::new())).collect();
    for (size, measured) in sizes {
        for (line, (_, _, row)) in lines.iter_mut().zip(series(measured)) {
            let Some(run) = Spread::of(&row.seconds) else { continue };
            let amount = row.rates().next().map_or(1.0, |(n, _)| n);
            let rate = amount / run.median;
            let title = format!("{name} = {size}: {}, median {}", with_unit(rate, unit), time(run.median));
            line.1.push(Point { size: *size as f64, rate, low: amount / run.high, high: amount / run.low, title });
        }
    }
    let what = if unit == "/s" { "Runs a second" } else { "Throughput" };
    let _ = write!(
        body,
        "<h3>{what} by size</h3><p class=\"soft\">Both scales are logarithmic where the range is large. A mark is a median, the band holds the quartiles.</p>"
    );
    body.push_str(&plotted(name, what, unit, &lines));
    let compared: Vec<String> = sizes
        .iter()
        .flat_map(|(size, m)| {
            pairs(m).filter_map(move |(file, against, of, to)| {
                Some(format!(
                    "<tr><td class=\"n\" data-v=\"{size}\">{size}</td><td>{}</td></tr>",
                    escape(&in_words(file, against, ratios(of, to)?))
                ))
            })
        })
        .collect();
    if !compared.is_empty() {
        let _ = write!(body, "<h3>Compared</h3>{}", table("sorts", &["#size", "in words"], &compared.concat()));
    }
    body.push_str("<h3>In numbers</h3>");
    let rows: Vec<(u64, String, &Row)> = sizes
        .iter()
        .flat_map(|(size, m)| series(m).into_iter().map(move |(_, name, row)| (*size, name, row)))
        .collect();
    body.push_str(&numbers(rows.iter().map(|(size, name, row)| (Some(*size), name.as_str(), *row))));
}

fn plotted(name: &str, what: &str, unit: &str, lines: &[(String, Vec<Point>)]) -> String {
    let points = || lines.iter().flat_map(|(_, list)| list);
    let is_wide = |list: &mut dyn Iterator<Item = f64>| {
        let (low, high) = list.fold((f64::INFINITY, 0.0_f64), |(a, b), n| (a.min(n), b.max(n)));
        high / low >= 16.0
    };
    let (top, bottom, left, right) = (44.0, 340.0, 96.0, WIDTH - 24.0);
    let x = Axis::over(points().map(|p| p.size), is_wide(&mut points().map(|p| p.size)), (left, right));
    let rates = || points().flat_map(|p| [p.low, p.high]);
    let y = Axis::over(rates(), is_wide(&mut rates()), (bottom, top));
    let mut plot = Plot::new(WIDTH, bottom + 44.0, &format!("{what} by {name}"));
    let sizes: Vec<(f64, String)> = x.ticks(2.0).into_iter().map(|n| (n, size_text(n))).collect();
    plot.below(&x, (top, bottom), &sizes, name);
    let values: Vec<(f64, String)> = y.ticks(10.0).into_iter().map(|n| (n, with_unit(n, unit))).collect();
    plot.left(&y, (left, right), &values, what);
    for (i, (_, list)) in lines.iter().enumerate() {
        let area: Vec<(f64, f64)> = list
            .iter()
            .map(|p| (x.at(p.size), y.at(p.high)))
            .chain(list.iter().rev().map(|p| (x.at(p.size), y.at(p.low))))
            .collect();
        plot.path(&format!("band s{}", i % SERIES), &area, true);
    }
    for (i, (_, list)) in lines.iter().enumerate() {
        let places: Vec<(f64, f64)> = list.iter().map(|p| (x.at(p.size), y.at(p.rate))).collect();
        plot.path(&format!("line s{}", i % SERIES), &places, false);
        for p in list {
            plot.mark(i, (x.at(p.size), y.at(p.rate)), 4.0, &p.title);
        }
    }
    let mut legend = String::new();
    if lines.len() > 1 {
        legend.push_str("<ul class=\"legend\">");
        for (i, (name, _)) in lines.iter().enumerate() {
            let mut mark = Plot::new(14.0, 14.0, "");
            mark.mark(i, (7.0, 7.0), 4.5, "");
            let _ = write!(legend, "<li>{}{}</li>", mark.icon(), escape(name));
        }
        legend.push_str("</ul>");
    }
    format!("{legend}{}", plot.svg())
}

/// A size, with K, M or G where it is a multiple of a power of 1024.
fn size_text(n: f64) -> String {
    let steps = [(f64::from(1 << 30), "G"), (f64::from(1 << 20), "M"), (1024.0, "K")];
    match steps.into_iter().find(|(by, _)| n >= *by && (n / by).fract() == 0.0) {
        Some((by, prefix)) => format!("{}{prefix}", n / by),
        None => format!("{n}"),
    }
}
