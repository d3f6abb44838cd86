//! A profile as text for a terminal.

use std::fmt::Write;

use crate::model::{Launch, NOT_TIME, Profile, Row};
use crate::remarks::{grouped, percent, remarks, short};
use handloom_counts::{Space, Traffic, ratio};

/// Statements of a launch that are shown.
const HOT: usize = 12;

/// The summary of a profile.
pub fn summary(profile: &Profile) -> String {
    let mut out = String::new();
    for launch in &profile.launches {
        of_launch(launch, &mut out);
    }
    if profile.launches.is_empty() {
        out.push_str("nothing ran, and nothing was counted\n");
    }
    out
}

/// A shape without dimensions of 1 at its end.
pub(crate) fn dims(d: [u32; 3]) -> String {
    match d {
        [x, 1, 1] => x.to_string(),
        [x, y, 1] => format!("{x},{y}"),
        [x, y, z] => format!("{x},{y},{z}"),
    }
}

/// What a launch was, in a line.
pub(crate) fn heading(launch: &Launch) -> String {
    let name = launch.demangled.as_ref().unwrap_or(&launch.entry);
    let runs = if launch.runs == 1 { String::new() } else { format!(", {} runs together", launch.runs) };
    let [fixed, dynamic] = launch.shared_bytes;
    let shared = if fixed + dynamic == 0 {
        String::new()
    } else {
        format!(", {} bytes of shared memory", grouped(u64::from(fixed + dynamic)))
    };
    let ended = if launch.ended == "ok" { String::new() } else { format!(", ended by `{}`", launch.ended) };
    format!("{name}: grid {}, block {}{shared}{runs}{ended}", dims(launch.grid), dims(launch.block))
}

fn of_launch(launch: &Launch, out: &mut String) {
    let t = &launch.totals;
    let _ = writeln!(out, "{}  ({NOT_TIME})", heading(launch));
    for (i, remark) in remarks(launch).iter().enumerate() {
        let _ = writeln!(out, "  {}. {}. {}", i + 1, remark.title, remark.text);
    }
    let _ = writeln!(
        out,
        "  instructions  {} of warps, {} of threads; {} of lanes do something",
        grouped(t.warp_instructions),
        grouped(t.thread_instructions),
        percent(t.lane_efficiency())
    );
    let kinds: Vec<String> = launch.kinds.iter().map(|k| format!("{} {}", k.kind.word(), grouped(k.warps))).collect();
    let _ = writeln!(out, "  kinds         {}", kinds.join(", "));
    if t.branches > 0 {
        let (all, parted) = (grouped(t.branches), grouped(t.divergent_branches));
        let _ = writeln!(out, "  branches      {all}, of which {parted} parted a warp");
    }
    for moved in launch.traffic.iter().filter(|m| m.space != Space::Param) {
        let _ =
            writeln!(out, "  {:<13} {}", format!("{} {}", moved.space.word(), moved.does.word()), traffic(&moved.sums));
    }
    if t.copied_bytes > 0 {
        let _ = writeln!(out, "  copies        {} bytes read and written", grouped(t.copied_bytes));
    }
    if t.barriers > 0 {
        let _ = writeln!(
            out,
            "  barriers      {} warps let go; they waited for {} statements of others",
            grouped(t.barriers),
            grouped(t.barrier_waits)
        );
    }
    if t.operations() > 0 {
        let all = [
            ("16-bit", t.half_operations),
            ("f32", t.f32_operations),
            ("f64", t.f64_operations),
            ("matrix", t.matrix_operations),
        ];
        let each: Vec<String> =
            all.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name} {}", grouped(*n))).collect();
        let bytes = t.intensity().map_or(String::new(), |n| format!("; {n:.2} for each byte of global memory"));
        let _ = writeln!(out, "  operations    {}{bytes}", each.join(", "));
    }
    if let Some(o) = &launch.occupancy {
        let without = match (o.registers, &o.registers_by) {
            (Some(n), Some(by)) if by.starts_with('.') => format!(" (at most {n} registers a thread, by {by})"),
            (Some(_), _) => String::new(),
            (None, _) => " (registers are not known: --regs N)".to_owned(),
        };
        let _ = writeln!(
            out,
            "  occupancy     on {}: {} block{}, {} of {} warps, limited by {}{without}",
            o.device,
            o.blocks,
            if o.blocks == 1 { "" } else { "s" },
            o.warps,
            o.most_warps,
            o.limited_by.join(" and ")
        );
    }
    if let Some(r) = &launch.roofline {
        let _ = writeln!(
            out,
            "  roofline      on {}: {:.2} operations a byte, ridge at {:.2} ({}): {} is busy first, at most {} of its rate",
            r.device,
            r.intensity,
            r.ridge,
            r.on,
            r.bound,
            percent(r.attainable)
        );
    }
    hot(launch, out);
}

fn traffic(sums: &Traffic) -> String {
    let mut text = format!("{} requests, {} bytes", grouped(sums.requests), grouped(sums.bytes));
    if let Some(share) = sums.efficiency() {
        let each = ratio(sums.sectors, sums.requests);
        let _ = write!(text, ", {} sectors ({each:.1} each, {} wanted)", grouped(sums.sectors), percent(share));
    }
    if sums.passes > 0 {
        let _ = write!(text, ", {} passes, {} of them conflicts", grouped(sums.passes), grouped(sums.conflicts()));
    }
    if sums.most_on_one > 0 {
        let _ = write!(text, ", {:.1} lanes on one address", ratio(sums.most_on_one, sums.requests));
    }
    text
}

/// What memory has to say of a statement, in few words.
pub(crate) fn in_short(row: &Row) -> String {
    let mut parts = Vec::new();
    for space in [Space::Global, Space::Local] {
        let sums = row.of_space(space);
        if let Some(share) = sums.efficiency() {
            parts.push(format!("{:.1} sectors, {} wanted", ratio(sums.sectors, sums.requests), percent(share)));
        }
    }
    let shared = row.of_space(Space::Shared);
    if shared.requests > 0 {
        parts.push(format!("{:.1} passes", ratio(shared.passes, shared.requests)));
    }
    if let Some(branch) = row.branch.as_ref().filter(|b| b.divergent > 0) {
        parts.push(format!("parts {} of warps", percent(ratio(branch.divergent, row.warps))));
    }
    if let Some(waits) = row.waits.as_ref().filter(|w| w.waited > 0) {
        parts.push(format!("waits for {}", grouped(waits.waited)));
    }
    parts.join("; ")
}

fn hot(launch: &Launch, out: &mut String) {
    let mut rows: Vec<&Row> = launch.statements.iter().filter(|row| row.warps > 0).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.warps));
    rows.truncate(HOT);
    rows.sort_by_key(|row| (&row.file, row.line, row.column));
    let _ = writeln!(out, "  {:>5}  {:>12}  {:>6}  statement", "line", "warps", "lanes");
    for row in rows {
        let more = in_short(row);
        let more = if more.is_empty() { more } else { format!("   [{more}]") };
        let _ = writeln!(
            out,
            "  {:>5}  {:>12}  {:>6}  {}{more}",
            row.line,
            grouped(row.warps),
            percent(row.lane_efficiency()),
            short(&row.text)
        );
    }
}
