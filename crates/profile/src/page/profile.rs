//! The page of a profile.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Texts;
use super::html::{bar, escape, heat, nothing, number, part, prose, share, shell, table, tile};
use super::listing::{Anchors, Columns, beside};
use super::timeline::timeline;
use crate::compare::{Changes, LineChange};
use crate::model::{Launch, NOT_TIME, Profile, Row, SourcePlace, SourceRow};
use crate::remarks::{grouped, percent, remarks};
use crate::text::{dims, heading, in_short};
use handloom_counts::{Space, ratio};

/// Statements of the table of the hottest.
const HOT: usize = 40;

/// The same where lines of the source have a table, too.
const HOT_BELOW: usize = 15;

/// Most statements that are listed line by line, and most launches that have a section and a row: pages stay small enough to be opened at once. The data has all.
const LISTED: usize = 12_000;
const SECTIONS: usize = 30;
const ROWS: usize = 1000;

/// The page of a profile, with what changed since another one if that was compared.
pub fn profile_page(profile: &Profile, texts: &Texts, changes: &[Changes]) -> String {
    let mut body = String::new();
    let mut links = Vec::new();
    let shown = shown(&profile.launches);
    if profile.launches.len() > 1 {
        links.push(("all".into(), format!("{} launches", profile.launches.len())));
        let _ = write!(body, "<section id=\"all\">{}</section>", overview(&profile.launches, &shown));
    }
    for (i, launch) in profile.launches.iter().enumerate() {
        let Some(is_listed) = shown.get(i).copied().flatten() else { continue };
        let id = name_of(i);
        if profile.launches.len() <= 8 {
            let name = launch.demangled.as_ref().unwrap_or(&launch.entry);
            links.push((id.clone(), format!("{}. {name}", i + 1)));
        }
        let changed = changes.get(i);
        let _ = write!(body, "<section id=\"{id}\">{}</section>", of_launch(&id, launch, texts, (changed, is_listed)));
    }
    if profile.launches.is_empty() {
        body.push_str("<p>Nothing ran, and nothing was counted.</p>");
    }
    links.push(("read".into(), "How to read this".into()));
    body.push_str(READ);
    shell("Handloom profile", NOT_TIME, &links, &body)
}

fn name_of(launch: usize) -> String {
    format!("l{}", launch + 1)
}

/// Which launches have a section, and of these whether their statements are listed: those with most instructions first.
fn shown(launches: &[Launch]) -> Vec<Option<bool>> {
    let mut order: Vec<usize> = (0..launches.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(launches[*i].totals.warp_instructions));
    let mut shown = vec![None; launches.len()];
    let mut left = LISTED;
    for (rank, i) in order.into_iter().enumerate().take(SECTIONS) {
        let n = launches[i].statements.len();
        // The first is listed, however large it is.
        let is_listed = rank == 0 || n <= left;
        left = left.saturating_sub(if is_listed { n } else { 0 });
        shown[i] = Some(is_listed);
    }
    shown
}

fn overview(launches: &[Launch], shown: &[Option<bool>]) -> String {
    let row = |(i, launch): (usize, &Launch)| {
        let t = &launch.totals;
        let name = escape(launch.demangled.as_ref().unwrap_or(&launch.entry));
        let name = match shown.get(i) {
            Some(Some(_)) => format!("<a href=\"#{}\">{name}</a>", name_of(i)),
            _ => name,
        };
        let or_nothing = |has: bool, part: u64, of: u64| if has { share(ratio(part, of)) } else { nothing() };
        format!(
            "<tr>{}<td class=\"name\">{name}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>{}{}{}{}{}</tr>\n",
            number(i as u64 + 1),
            dims(launch.grid),
            dims(launch.block),
            number(launch.runs),
            number(t.warp_instructions),
            share(t.lane_efficiency()),
            or_nothing(t.global_sectors > 0, t.global_touched, 32 * t.global_sectors),
            or_nothing(t.shared_passes > 0, t.shared_passes - t.bank_conflicts.min(t.shared_passes), t.shared_passes),
        )
    };
    let body: String = launches.iter().enumerate().take(ROWS).map(row).collect();
    let headings = [
        "#launch",
        "kernel",
        "#grid",
        "#block",
        "#runs",
        "#instructions of warps",
        "#lanes",
        "#global bytes wanted",
        "#shared passes needed",
    ];
    let left_out = |all: usize, most: usize, what: &str| {
        if all > most {
            format!("<p class=\"soft\">{what} Data (<code>-o FILE.json</code>) has all.</p>")
        } else {
            String::new()
        }
    };
    format!(
        "<h2>{} launches</h2>{}{}{}",
        grouped(launches.len() as u64),
        table("sorts", &headings, &body),
        left_out(
            launches.len(),
            SECTIONS,
            &format!("The {SECTIONS} launches with most instructions have a section below.")
        ),
        left_out(launches.len(), ROWS, &format!("The table has the first {ROWS}.")),
    )
}

const READ: &str = "<section id=\"read\"><h3>How to read this</h3>\
<p>Every number is a count of what the launch did, statement by statement; nothing is sampled, and none of it is time: no cache, no clock and no scheduler of a \
device is modelled. Two runs of a kernel that does not race give the same numbers, so a difference between two versions is a difference of the versions.</p>\
<p><b>Warps</b>: how often a warp executed the statement. <b>Lanes</b>: the share of the 32 lanes that did something. <b>Sectors</b>: pieces of 32 bytes that a \
request touches; <b>wanted</b> is the share of their bytes that some lane asked for. <b>Passes</b>: turns that shared memory needs for a request, one if no two \
words lie in one bank. <b>Waits</b>: statements that a warp could have executed while it waited for the busiest one of its block.</p></section>";

fn of_launch(id: &str, launch: &Launch, texts: &Texts, (changed, is_listed): (Option<&Changes>, bool)) -> String {
    let rows: Vec<&Row> = launch.statements.iter().collect();
    let anchors = &Anchors::of(id, &rows, is_listed);
    let mut out = format!("<h2>{}</h2>", escape(&heading(launch)));
    let list: String = remarks(launch)
        .iter()
        .map(|r| {
            let link = r
                .row
                .and_then(|i| launch.statements.get(i))
                .map_or(String::new(), |row| format!(" {}", anchors.link(row, &format!("Line {}", row.line))));
            format!("<li><b>{}</b><br>{}{link}</li>", escape(&r.title), prose(&r.text))
        })
        .collect();
    let _ = write!(out, "<h3>What matters most</h3><ol class=\"three\">{list}</ol>");
    out.push_str(&tiles(launch));
    if let Some(changed) = changed {
        out.push_str(&part("Compared with the base", &differences(changed)));
    }
    out.push_str(&part("The hottest lines", &hottest(anchors, launch, texts)));
    let listing = if is_listed {
        lines(anchors, &rows, texts)
    } else {
        format!(
            "<p class=\"soft\">Left out: a page lists {LISTED} statements, those of the launches with most instructions. Data (<code>-o FILE.json</code>) has all.</p>"
        )
    };
    out.push_str(&part("The code, line by line", &listing));
    out.push_str(&part("Kinds of instructions", &kinds(launch)));
    out.push_str(&part("Memory", &traffic(launch)));
    out.push_str(&part("Addresses of atomics", &atomics(anchors, launch)));
    out.push_str(&device(launch));
    out.push_str(&launch.timeline.as_ref().map(timeline).unwrap_or_default());
    out
}

fn tiles(launch: &Launch) -> String {
    let t = &launch.totals;
    let mut all = vec![
        (grouped(t.warp_instructions), "instructions of warps".to_owned()),
        (percent(t.lane_efficiency()), "of lanes do something".to_owned()),
    ];
    if t.branches > 0 {
        let parted = percent(ratio(t.divergent_branches, t.branches));
        all.push((parted, format!("of {} branches part a warp", grouped(t.branches))));
    }
    if t.global_sectors > 0 {
        let wanted = percent(ratio(t.global_touched, 32 * t.global_sectors));
        all.push((wanted, format!("of the bytes of {} global sectors are wanted", grouped(t.global_sectors))));
    }
    if t.shared_requests > 0 {
        let conflicts = percent(ratio(t.bank_conflicts, t.shared_passes));
        all.push((conflicts, format!("of {} passes of shared memory are conflicts", grouped(t.shared_passes))));
    }
    if t.atomic_requests > 0 {
        let turns = format!("{:.1}", ratio(t.atomic_turns, t.atomic_requests));
        all.push((turns, format!("lanes on one address in {} atomics", grouped(t.atomic_requests))));
    }
    if t.barriers > 0 {
        all.push((
            grouped(t.barrier_waits),
            format!("statements waited for at {} barriers of warps", grouped(t.barriers)),
        ));
    }
    if let Some(n) = t.intensity().filter(|_| t.operations() > 0) {
        all.push((format!("{n:.2}"), "operations for each byte of global memory".to_owned()));
    }
    let tiles: String = all.iter().map(|(figure, what)| tile(figure, what)).collect();
    format!("<div class=\"tiles\">{tiles}</div>")
}

fn differences(changed: &Changes) -> String {
    let most = changed.totals.iter().filter_map(|c| c.percent()).fold(1.0_f64, |m, p| m.max(p.abs()));
    let rows: String = changed
        .totals
        .iter()
        .filter(|c| c.base != c.now)
        .map(|c| {
            let (text, size) = c.percent().map_or(("new".to_owned(), 1.0), |p| (format!("{p:+.2} %"), p.abs() / most));
            let class = match (c.is_cost, c.now > c.base) {
                (false, _) => "",
                (true, true) => "up",
                (true, false) => "down",
            };
            let bar = heat(size);
            let value = c.percent().unwrap_or(f64::MAX);
            format!(
                "<tr><td><code>{}</code></td>{}{}<td class=\"n {class}\" data-v=\"{value}\">{bar}{text}</td></tr>",
                c.what,
                number(c.base),
                number(c.now)
            )
        })
        .collect();
    if rows.is_empty() {
        return "<p>No count differs.</p>".to_owned();
    }
    let table = table("sorts", &["count", "#base", "#now", "#change"], &rows);
    format!("{table}{}", changed_lines(changed))
}

/// Lines that changed most.
fn changed_lines(changed: &Changes) -> String {
    let cell = |base: u64, now: u64| {
        let class = match base.cmp(&now) {
            _ if base == 0 && now == 0 => return nothing(),
            std::cmp::Ordering::Less => " up",
            std::cmp::Ordering::Equal => "",
            std::cmp::Ordering::Greater => " down",
        };
        let sign = if now < base { '−' } else { '+' };
        let by = if base == now { "=".to_owned() } else { format!("{sign}{}", grouped(base.abs_diff(now))) };
        let size = i128::from(now) - i128::from(base);
        format!("<td class=\"n{class}\" data-v=\"{size}\" title=\"{} → {}\">{by}</td>", grouped(base), grouped(now))
    };
    let row = |c: &LineChange| {
        let (a, b) = (&c.base, &c.now);
        format!(
            "<tr><td class=\"code\">{}</td>{}{}{}{}</tr>",
            escape(&c.place),
            cell(a.warps, b.warps),
            cell(a.lanes, b.lanes),
            cell(a.sectors, b.sectors),
            cell(a.passes, b.passes)
        )
    };
    let rows: String = changed.lines.iter().take(HOT).map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let headings = ["line", "#warps", "#lanes", "#global sectors", "#shared passes"];
    format!("<p>Where it changed, most first:</p>{}", table("sorts", &headings, &rows))
}

/// What memory, branches and barriers have to say at a statement.
fn memory(row: &Row) -> String {
    let global = row.of_space(Space::Global);
    let local = row.of_space(Space::Local);
    let shared = row.of_space(Space::Shared);
    let drawn = match (global.efficiency().or(local.efficiency()), shared.passes) {
        (Some(wanted), _) => bar(wanted),
        (None, 0) => String::new(),
        (None, passes) => bar(ratio(shared.least_passes, passes)),
    };
    format!("{drawn}{}", escape(&in_short(row)))
}

fn lines(anchors: &Anchors<'_>, rows: &[&Row], texts: &Texts) -> String {
    let most = rows.iter().map(|row| row.warps).max().unwrap_or(0);
    let cells = |row: &Row| {
        if row.warps == 0 {
            return ("<td class=\"n\">0</td><td></td>".to_owned(), String::new(), "none");
        }
        let warps = format!("<td class=\"n\">{}{}</td>", heat(ratio(row.warps, most)), grouped(row.warps));
        (format!("{warps}{}", share(row.lane_efficiency())), memory(row), "")
    };
    let mut by_line: BTreeMap<&SourcePlace, u64> = BTreeMap::new();
    for row in rows {
        if let Some(place) = &row.source {
            *by_line.entry(place).or_default() += row.warps;
        }
    }
    let most_of_line = by_line.values().copied().max().unwrap_or(0);
    let source_cells = |rows: &[&Row]| {
        let (warps, active): (u64, u64) = (rows.iter().map(|r| r.warps).sum(), rows.iter().map(|r| r.active).sum());
        match rows {
            [] => ("<td></td><td></td>".to_owned(), ""),
            _ if warps == 0 => ("<td class=\"n\">0</td><td></td>".to_owned(), "none"),
            _ => {
                let warps_cell = format!("<td class=\"n\">{}{}</td>", heat(ratio(warps, most_of_line)), grouped(warps));
                (format!("{warps_cell}{}", share(ratio(active, 32 * warps))), "")
            }
        }
    };
    let columns = Columns {
        headings: &["#warps", "#lanes"],
        cells: &cells,
        source_headings: &["#warps", "#lanes"],
        source_cells: &source_cells,
        of_function: &|rows| {
            let ran = rows.iter().filter(|row| row.warps > 0).count() as u64;
            let warps: u64 = rows.iter().map(|row| row.warps).sum();
            format!(
                "{} statements, {} ran; {} instructions of warps",
                grouped(rows.len() as u64),
                grouped(ran),
                grouped(warps)
            )
        },
    };
    beside(anchors, rows, texts, &columns)
}

fn hottest(anchors: &Anchors<'_>, launch: &Launch, texts: &Texts) -> String {
    let of_source = source_lines(anchors, launch, texts);
    let mut rows: Vec<&Row> = launch.statements.iter().filter(|row| row.warps > 0).collect();
    // Of many that run as often, those that move most.
    let moves = |row: &Row| row.of_space(Space::Global).sectors + row.of_space(Space::Shared).passes;
    rows.sort_by_key(|row| (std::cmp::Reverse((row.warps, moves(row))), row.line));
    rows.truncate(if of_source.is_empty() { HOT } else { HOT_BELOW });
    let has = |of: &dyn Fn(&Row) -> u64| rows.iter().any(|row| of(row) > 0);
    let has_global = has(&|row| row.of_space(Space::Global).sectors);
    let has_shared = has(&|row| row.of_space(Space::Shared).requests);
    let row = |row: &&Row| {
        let global = row.of_space(Space::Global);
        let shared = row.of_space(Space::Shared);
        let mut cells = String::new();
        if has_global {
            let sectors = if global.sectors > 0 { number(global.sectors) } else { nothing() };
            cells += &sectors;
            cells += &global.efficiency().map_or_else(nothing, share);
        }
        if has_shared {
            let each = ratio(shared.passes, shared.requests);
            let cell = format!("<td class=\"n\" data-v=\"{each}\">{each:.1}</td>");
            cells += &if shared.requests > 0 { cell } else { nothing() };
        }
        format!(
            "<tr><td class=\"n\" data-v=\"{line}\">{link}</td><td>{kind}</td>{warps}{lanes}{cells}<td class=\"code\">{text}</td></tr>",
            line = row.line,
            link = anchors.link(row, &row.line.to_string()),
            kind = row.kind.word(),
            warps = number(row.warps),
            lanes = share(row.lane_efficiency()),
            text = escape(&crate::remarks::begin(&row.text, 120)),
        )
    };
    let body: String = rows.iter().map(row).collect();
    let mut headings = vec!["#line", "kind", "^warps", "#lanes"];
    headings.extend(has_global.then_some(["#global sectors", "#wanted"]).into_iter().flatten());
    headings.extend(has_shared.then_some("#shared passes each"));
    headings.push("statement");
    let statements = table("sorts", &headings, &body);
    if of_source.is_empty() { statements } else { format!("{of_source}<p></p>{statements}") }
}

/// Lines of the source by what came from them.
fn source_lines(anchors: &Anchors<'_>, launch: &Launch, texts: &Texts) -> String {
    let mut lines: Vec<&SourceRow> = launch.sources.iter().filter(|line| line.warps > 0).collect();
    lines.sort_by_key(|line| (std::cmp::Reverse(line.warps), &line.place));
    lines.truncate(HOT_BELOW);
    let all = launch.totals.warp_instructions;
    let has_sectors = lines.iter().any(|line| line.sectors > 0);
    let row = |line: &&SourceRow| {
        let place = &line.place;
        let text = texts.get(&place.file).and_then(|t| t.get(usize::try_from(place.line).ok()?.checked_sub(1)?));
        let part = ratio(line.warps, all);
        let sectors = match (has_sectors, line.sectors) {
            (false, _) => String::new(),
            (true, 0) => nothing(),
            (true, n) => number(n),
        };
        format!(
            "<tr><td class=\"n\" data-v=\"{}\" title=\"{}\">{}</td>{}<td class=\"n\" data-v=\"{part}\">{}{}</td>{}{}{sectors}<td class=\"code\">{}</td></tr>",
            place.line,
            escape(&place.file),
            anchors.link_source(place),
            number(line.warps),
            heat(part),
            percent(part),
            share(ratio(line.active, 32 * line.warps)),
            number(line.statements),
            escape(text.map_or("", |t| t.trim()))
        )
    };
    let body: String = lines.iter().map(row).collect();
    if body.is_empty() {
        return String::new();
    }
    let mut headings = vec!["#source line", "^warps", "#of all", "#lanes", "#statements of PTX"];
    headings.extend(has_sectors.then_some("#global sectors"));
    headings.push("text");
    table("sorts", &headings, &body)
}

fn kinds(launch: &Launch) -> String {
    let all = launch.totals.warp_instructions;
    let row = |k: &crate::model::OfKind| {
        let part = ratio(k.warps, all);
        format!(
            "<tr><td>{}</td>{}<td class=\"n\" data-v=\"{part}\">{}{}</td>{}</tr>",
            k.kind.word(),
            number(k.warps),
            heat(part),
            percent(part),
            share(ratio(k.active, 32 * k.warps))
        )
    };
    let body: String = launch.kinds.iter().map(row).collect();
    table("sorts", &["kind", "^warps", "#of all", "#lanes"], &body)
}

fn traffic(launch: &Launch) -> String {
    if launch.traffic.is_empty() {
        return String::new();
    }
    let row = |m: &crate::model::Moved| {
        let sums = &m.sums;
        let or_nothing = |n: u64| if n > 0 { number(n) } else { nothing() };
        format!(
            "<tr><td>{} {}</td>{}{}{}{}{}{}</tr>",
            m.space.word(),
            m.does.word(),
            number(sums.requests),
            number(sums.bytes),
            or_nothing(sums.sectors),
            sums.efficiency().map_or_else(nothing, share),
            or_nothing(sums.passes),
            if sums.passes > 0 { number(sums.conflicts()) } else { nothing() },
        )
    };
    let body: String = launch.traffic.iter().map(row).collect();
    let headings = ["memory", "#requests of warps", "#bytes of lanes", "#sectors", "#wanted", "#passes", "#conflicts"];
    table("sorts", &headings, &body)
}

fn atomics(anchors: &Anchors<'_>, launch: &Launch) -> String {
    let rows: Vec<&Row> = launch.statements.iter().filter(|row| !row.hot.is_empty()).collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut body = String::new();
    for row in rows {
        for hot in &row.hot {
            let _ = write!(
                body,
                "<tr><td class=\"n\" data-v=\"{line}\">{link}</td><td>{}</td>{}{}</tr>",
                escape(&hot.place),
                number(hot.lanes),
                number(row.addresses),
                line = row.line,
                link = anchors.link(row, &row.line.to_string()),
            );
        }
    }
    let headings = ["#line", "address", "#lanes", "#different addresses of the line"];
    table("sorts", &headings, &body)
}

fn device(launch: &Launch) -> String {
    let mut out = String::new();
    if let Some(o) = &launch.occupancy {
        let limits: String = o
            .limits
            .iter()
            .map(|l| format!("<tr><td>{}</td>{}</tr>", escape(&l.what), number(l.blocks.into())))
            .collect();
        let unknown = match (o.registers, &o.registers_by) {
            (Some(n), Some(by)) => format!(" A thread has at most {n} registers, by <code>{}</code>.", escape(by)),
            _ => " Registers are not counted here: PTX does not say how many there are.".to_owned(),
        };
        let text = format!(
            "<p>{}{} of {} warps: {} block{} at a time, limited by {}.{unknown}</p>{}",
            bar(o.share()),
            o.warps,
            o.most_warps,
            o.blocks,
            if o.blocks == 1 { "" } else { "s" },
            escape(&o.limited_by.join(" and ")),
            table("", &["limit", "#blocks that it allows"], &limits)
        );
        out.push_str(&part(&format!("Occupancy on {}", o.device), &text));
    }
    if let Some(r) = &launch.roofline {
        let text = format!(
            "<p>{}{:.2} operations ({}) for each byte of global memory, without any cache; arithmetic is busy first from {:.1} on. \
             So {} is, and at most {} of the rate of arithmetic is to be had.</p>{}",
            heat(r.attainable),
            r.intensity,
            escape(&r.on),
            r.ridge,
            escape(&r.bound),
            percent(r.attainable),
            r.source
                .as_ref()
                .map_or(String::new(), |s| format!("<p class=\"soft\">Rates of the device: {}.</p>", escape(s)))
        );
        out.push_str(&part(&format!("Under the roof of {}", r.device), &text));
    }
    out
}
