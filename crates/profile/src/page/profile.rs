//! The page of a profile.

use std::fmt::Write;

use super::Texts;
use super::html::{bar, escape, heat, nothing, number, share, shell, table, tile};
use super::listing::{Columns, anchor, beside};
use super::timeline::timeline;
use crate::compare::Changes;
use crate::counter::{Space, ratio};
use crate::model::{Launch, Profile, Row};
use crate::remarks::{grouped, percent, remarks};
use crate::text::{heading, in_short};

/// Statements of the table of the hottest.
const HOT: usize = 40;

/// The page of a profile, with what changed since another one if that was compared.
pub fn profile_page(profile: &Profile, texts: &Texts, changes: &[Changes]) -> String {
    let mut body = String::new();
    let mut links = Vec::new();
    for (i, launch) in profile.launches.iter().enumerate() {
        let id = format!("l{}", i + 1);
        let name = launch.demangled.as_ref().unwrap_or(&launch.entry);
        links.push((id.clone(), format!("{}. {name}", i + 1)));
        let changed = changes.get(i);
        let _ = write!(body, "<section id=\"{id}\">{}</section>", of_launch(&id, launch, texts, changed));
    }
    if profile.launches.is_empty() {
        body.push_str("<p>Nothing ran, and nothing was counted.</p>");
    }
    links.push(("read".into(), "How to read this".into()));
    body.push_str(READ);
    shell("Handloom profile", &links, &body)
}

const READ: &str = "<section id=\"read\"><h3>How to read this</h3>\
<p>Every number is a count of what the launch did, statement by statement; nothing is sampled, and none of it is time: no cache, no clock and no scheduler of a \
device is modelled. Two runs of a kernel that does not race give the same numbers, so a difference between two versions is a difference of the versions.</p>\
<p><b>Warps</b>: how often a warp executed the statement. <b>Lanes</b>: the share of the 32 lanes that did something. <b>Sectors</b>: pieces of 32 bytes that a \
request touches; <b>wanted</b> is the share of their bytes that some lane asked for. <b>Passes</b>: turns that shared memory needs for a request, one if no two \
words lie in one bank. <b>Waits</b>: statements that a warp could have executed while it waited for the busiest one of its block.</p></section>";

fn of_launch(id: &str, launch: &Launch, texts: &Texts, changed: Option<&Changes>) -> String {
    let mut out = format!("<h2>{}</h2>", escape(&heading(launch)));
    let list: String = remarks(launch)
        .iter()
        .map(|r| {
            let link = r
                .row
                .and_then(|i| launch.statements.get(i))
                .map_or(String::new(), |row| format!(" <a href=\"#{}\">Line {}</a>", anchor(id, row), row.line));
            format!("<li><b>{}</b><br>{}{link}</li>", escape(&r.title), escape(&r.text))
        })
        .collect();
    let _ = write!(out, "<h3>What matters most</h3><ol class=\"three\">{list}</ol>");
    out.push_str(&tiles(launch));
    if let Some(changed) = changed {
        out.push_str(&differences(changed));
    }
    out.push_str("<h3>The code, line by line</h3>");
    let rows: Vec<&Row> = launch.statements.iter().collect();
    out.push_str(&lines(id, &rows, texts));
    out.push_str(&hottest(id, launch));
    out.push_str(&kinds(launch));
    out.push_str(&traffic(launch));
    out.push_str(&atomics(id, launch));
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
        return "<h3>Compared with the base</h3><p>No count differs.</p>".to_owned();
    }
    let table = table("sorts", &["count", "#base", "#now", "#change"], &rows);
    format!("<h3>Compared with the base</h3>{table}")
}

/// The cells of memory, branches and barriers at a statement.
fn memory(row: &Row) -> String {
    let global = row.of_space(Space::Global);
    let local = row.of_space(Space::Local);
    let shared = row.of_space(Space::Shared);
    let drawn = match (global.efficiency().or(local.efficiency()), shared.passes) {
        (Some(wanted), _) => bar(wanted),
        (None, 0) => String::new(),
        (None, passes) => bar(ratio(shared.least_passes, passes)),
    };
    format!("<td>{drawn}{}</td>", escape(&in_short(row)))
}

fn lines(id: &str, rows: &[&Row], texts: &Texts) -> String {
    let most = rows.iter().map(|row| row.warps).max().unwrap_or(0);
    let cells = |row: &Row| {
        if row.warps == 0 {
            return ("<td class=\"n\">0</td><td></td><td></td>".to_owned(), "none");
        }
        let warps = format!("<td class=\"n\">{}{}</td>", heat(ratio(row.warps, most)), grouped(row.warps));
        (format!("{warps}{}{}", share(row.lane_efficiency()), memory(row)), "")
    };
    let source_cells = |rows: &[&Row]| {
        let (warps, active) = (rows.iter().map(|r| r.warps).sum(), rows.iter().map(|r| r.active).sum());
        match rows {
            [] => ("<td></td><td></td>".to_owned(), ""),
            _ if warps == 0 => ("<td class=\"n\">0</td><td></td>".to_owned(), "none"),
            _ => (format!("{}{}", number(warps), share(ratio(active, 32 * warps))), ""),
        }
    };
    let columns = Columns {
        headings: &["#warps", "#lanes", "memory, branches, barriers"],
        cells: &cells,
        source_headings: &["#warps", "#lanes"],
        source_cells: &source_cells,
    };
    beside(id, rows, texts, &columns)
}

fn hottest(id: &str, launch: &Launch) -> String {
    let mut rows: Vec<&Row> = launch.statements.iter().filter(|row| row.warps > 0).collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.warps), row.line));
    rows.truncate(HOT);
    let row = |row: &&Row| {
        let global = row.of_space(Space::Global);
        let shared = row.of_space(Space::Shared);
        let wanted = global.efficiency().map_or_else(nothing, share);
        let passes = if shared.requests > 0 {
            let each = ratio(shared.passes, shared.requests);
            format!("<td class=\"n\" data-v=\"{each}\">{each:.1}</td>")
        } else {
            nothing()
        };
        format!(
            "<tr><td class=\"n\" data-v=\"{line}\"><a href=\"#{to}\">{line}</a></td><td>{kind}</td>{warps}{lanes}{sectors}{wanted}{passes}<td class=\"code\">{text}</td></tr>",
            line = row.line,
            to = anchor(id, row),
            kind = row.kind.word(),
            warps = number(row.warps),
            lanes = share(row.lane_efficiency()),
            sectors = if global.sectors > 0 { number(global.sectors) } else { nothing() },
            text = escape(&crate::remarks::short(&row.text)),
        )
    };
    let body: String = rows.iter().map(row).collect();
    let headings = ["#line", "kind", "#warps", "#lanes", "#global sectors", "#wanted", "#shared passes", "statement"];
    format!("<h3>The hottest statements</h3>{}", table("sorts", &headings, &body))
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
    format!("<h3>Kinds of instructions</h3>{}", table("sorts", &["kind", "#warps", "#of all", "#lanes"], &body))
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
    format!("<h3>Memory</h3>{}", table("sorts", &headings, &body))
}

fn atomics(id: &str, launch: &Launch) -> String {
    let rows: Vec<&Row> = launch.statements.iter().filter(|row| !row.hot.is_empty()).collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut body = String::new();
    for row in rows {
        for hot in &row.hot {
            let _ = write!(
                body,
                "<tr><td class=\"n\" data-v=\"{line}\"><a href=\"#{to}\">{line}</a></td><td>{}</td>{}{}</tr>",
                escape(&hot.place),
                number(hot.lanes),
                number(row.addresses),
                line = row.line,
                to = anchor(id, row),
            );
        }
    }
    let headings = ["#line", "address", "#lanes", "#different addresses of the line"];
    format!("<h3>Addresses of atomics</h3>{}", table("sorts", &headings, &body))
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
        let _ = write!(
            out,
            "<h3>Occupancy on {}</h3><p>{}{} of {} warps: {} blocks at a time, limited by {}.{unknown}</p>{}",
            escape(&o.device),
            bar(o.share()),
            o.warps,
            o.most_warps,
            o.blocks,
            escape(&o.limited_by.join(" and ")),
            table("", &["limit", "#blocks that it allows"], &limits)
        );
    }
    if let Some(r) = &launch.roofline {
        let _ = write!(
            out,
            "<h3>Under the roof of {}</h3><p>{}{:.2} operations ({}) for each byte of global memory, without any cache; arithmetic is busy first from {:.1} on. \
             So {} is, and at most {} of the rate of arithmetic is to be had.</p>",
            escape(&r.device),
            heat(r.attainable),
            r.intensity,
            escape(&r.on),
            r.ridge,
            escape(&r.bound),
            percent(r.attainable)
        );
    }
    out
}
