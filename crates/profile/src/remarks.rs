//! What matters most in a launch, in words.

use crate::model::{Launch, Row};
use handloom_counts::rules::SECTOR;
use handloom_counts::{Space, Traffic, ratio};

/// A sentence about a launch.
#[derive(Clone, PartialEq, Debug)]
pub struct Remark {
    /// A few words.
    pub title: String,
    /// What was counted, and where.
    pub text: String,
    /// The statement that it is about, as an index of the launch's.
    pub row: Option<usize>,
    /// Share of what is spent there for nothing, 0 to 1; 0 for what is only said.
    weight: f64,
}

/// How many are told.
const MOST: usize = 3;

/// Shares below this are not worth a word.
const LEAST: f64 = 0.02;

/// The three things that matter most.
pub fn remarks(launch: &Launch) -> Vec<Remark> {
    let found = [
        lanes(launch),
        sectors(launch),
        banks(launch),
        atomics(launch),
        barriers(launch),
        local(launch),
        shape(launch),
        occupancy(launch),
    ];
    let mut all: Vec<Remark> = found.into_iter().flatten().filter(|r| r.weight >= LEAST).collect();
    all.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    all.extend([hottest(launch), roof(launch), even(launch)].into_iter().flatten());
    all.truncate(MOST);
    all
}

/// The statement of which a number is the highest, if it is not 0.
fn worst(launch: &Launch, of: impl Fn(&Row) -> u64) -> Option<(usize, &Row)> {
    let worst = launch.statements.iter().enumerate().max_by_key(|(i, row)| (of(row), std::cmp::Reverse(*i)))?;
    (of(worst.1) > 0).then_some(worst)
}

/// A place and its opcode, for a sentence.
fn at(row: &Row) -> String {
    let place = match &row.source {
        Some(source) => format!("{}:{} ({}:{})", row.file, row.line, source.file, source.line),
        None => format!("{}:{}", row.file, row.line),
    };
    format!("{place} `{}`", short(&row.text))
}

/// The begin of a statement, for a sentence or a line of a terminal.
pub(crate) fn short(text: &str) -> String {
    begin(text, 48)
}

/// The first characters of a statement, in one line.
pub(crate) fn begin(text: &str, most: usize) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.trim_end_matches(';');
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// A share for people.
pub(crate) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    // Neither nothing nor all.
    if percent > 0.0 && percent < 0.05 {
        return "<0.1 %".to_owned();
    }
    if (99.95..100.0).contains(&percent) {
        return ">99.9 %".to_owned();
    }
    if !(0.05..99.95).contains(&percent) || percent.fract() < 0.05 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}

/// A count for people, with thousands apart.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

fn lanes(launch: &Launch) -> Option<Remark> {
    let t = &launch.totals;
    let lost = 32 * t.warp_instructions - t.thread_instructions;
    let weight = ratio(lost, 32 * t.warp_instructions);
    let most = worst(launch, |row| row.branch.as_ref().map_or(0, |b| b.divergent));
    let mut text = format!("Of 32 lanes a warp, {} do something.", percent(t.lane_efficiency()));
    match most {
        Some((_, row)) => {
            let n = row.branch.as_ref().map_or(0, |b| b.divergent);
            let times = format!("{} of {} times", grouped(n), grouped(row.warps));
            text += &format!(" Lanes part most at {}: {times} that a warp comes there.", at(row));
        }
        None if t.guarded_off * 2 > lost => {
            text += &format!(" Guards keep {} lanes from acting.", grouped(t.guarded_off));
        }
        None => text += " No branch parts them: warps are not full.",
    }
    Some(Remark { title: "Lanes that do nothing".into(), text, row: most.map(|(i, _)| i), weight })
}

/// Sectors that would hold the bytes that somebody wanted; a request has one at least.
fn needed(sums: &Traffic) -> u64 {
    sums.touched.div_ceil(SECTOR).max(sums.requests)
}

fn sectors(launch: &Launch) -> Option<Remark> {
    let t = &launch.totals;
    let wasted = |row: &Row| {
        let sums = row.of_space(Space::Global);
        sums.sectors.saturating_sub(needed(&sums))
    };
    let (i, row) = worst(launch, wasted)?;
    let all: u64 = launch.statements.iter().map(wasted).sum();
    let sums = row.of_space(Space::Global);
    let text = format!(
        "{} of the bytes that move to and from global memory are wanted. {} touches {:.1} sectors of 32 bytes a request, and {:.1} would hold what it wants.",
        percent(ratio(t.global_touched, SECTOR * t.global_sectors)),
        at(row),
        ratio(sums.sectors, sums.requests),
        ratio(needed(&sums), sums.requests),
    );
    Some(Remark { title: "Sectors moved for nothing".into(), text, row: Some(i), weight: ratio(all, t.global_sectors) })
}

fn banks(launch: &Launch) -> Option<Remark> {
    let t = &launch.totals;
    let (i, row) = worst(launch, |row| row.of_space(Space::Shared).conflicts())?;
    let sums = row.of_space(Space::Shared);
    let text = format!(
        "{} of the passes of shared memory wait for a bank. {} takes {:.1} passes a request, and {:.1} would do without conflicts.",
        percent(ratio(t.bank_conflicts, t.shared_passes)),
        at(row),
        ratio(sums.passes, sums.requests),
        ratio(sums.least_passes, sums.requests),
    );
    let weight = ratio(t.bank_conflicts, t.shared_passes);
    Some(Remark { title: "Bank conflicts".into(), text, row: Some(i), weight })
}

fn atomics(launch: &Launch) -> Option<Remark> {
    let t = &launch.totals;
    let turns = |row: &Row| row.traffic.iter().map(|m| m.sums.most_on_one.saturating_sub(m.sums.requests)).sum();
    let (i, row) = worst(launch, |row| if row.addresses > 0 { turns(row) } else { 0 })?;
    let requests: u64 = row.traffic.iter().map(|m| m.sums.requests).sum();
    let ones: u64 = row.traffic.iter().map(|m| m.sums.most_on_one).sum();
    let hot = row
        .hot
        .first()
        .map_or(String::new(), |hot| format!(" Most lanes, {}, are at {}.", grouped(hot.lanes), hot.place));
    let text =
        format!("At {}, {:.1} lanes of a warp want the same address each time.{hot}", at(row), ratio(ones, requests));
    let weight = ratio(t.atomic_turns - t.atomic_requests.min(t.atomic_turns), t.atomic_turns);
    Some(Remark { title: "Atomics on one address".into(), text, row: Some(i), weight })
}

fn barriers(launch: &Launch) -> Option<Remark> {
    let waited = |row: &Row| row.waits.as_ref().map_or(0, |w| w.waited);
    let (i, row) = worst(launch, waited)?;
    let waits = row.waits?;
    let text = format!(
        "At {}, warps wait for the busiest one of their block as long as {} of what they execute.",
        at(row),
        percent(ratio(waits.waited, waits.work)),
    );
    let all = launch.totals.warp_instructions + launch.totals.barrier_waits;
    let weight = ratio(launch.totals.barrier_waits, all);
    Some(Remark { title: "Warps that wait".into(), text, row: Some(i), weight })
}

fn local(launch: &Launch) -> Option<Remark> {
    let t = &launch.totals;
    let (i, row) = worst(launch, |row| row.of_space(Space::Local).sectors)?;
    let weight = ratio(t.local_sectors, t.local_sectors + t.global_sectors);
    let text = format!(
        "{} sectors of local memory move: {} of all. Most at {}.",
        grouped(t.local_sectors),
        percent(weight),
        at(row)
    );
    Some(Remark { title: "Local memory".into(), text, row: Some(i), weight: weight / 2.0 })
}

fn shape(launch: &Launch) -> Option<Remark> {
    let threads: u32 = launch.block.iter().product();
    let rest = threads % 32;
    if rest == 0 {
        return None;
    }
    let empty = 32 - rest;
    let text = format!("A block of {threads} threads leaves {empty} lanes of its last warp empty.");
    let weight = ratio(empty.into(), u64::from(threads + empty));
    Some(Remark { title: "Blocks that are no whole warps".into(), text, row: None, weight })
}

fn occupancy(launch: &Launch) -> Option<Remark> {
    let o = launch.occupancy.as_ref().filter(|o| o.share() < 0.5)?;
    let text = format!(
        "On {}, a multiprocessor holds {} of {} warps: {} sets the limit.",
        o.device,
        o.warps,
        o.most_warps,
        o.limited_by.join(" and ")
    );
    Some(Remark { title: "Few warps at a time".into(), text, row: None, weight: (0.5 - o.share()) / 2.0 })
}

fn hottest(launch: &Launch) -> Option<Remark> {
    let all = launch.totals.warp_instructions;
    if let Some(line) = launch.sources.iter().max_by_key(|line| (line.warps, std::cmp::Reverse(&line.place)))
        && line.warps > 0
    {
        let first = launch.statements.iter().position(|row| row.source.as_ref() == Some(&line.place));
        let text = format!(
            "{}:{} became {} statements of PTX, which are {} of all that warps execute.",
            line.place.file,
            line.place.line,
            grouped(line.statements),
            percent(ratio(line.warps, all))
        );
        return Some(Remark { title: "The hottest line".into(), text, row: first, weight: 0.0 });
    }
    let (i, row) = worst(launch, |row| row.warps)?;
    let share = percent(ratio(row.warps, all));
    let text = format!("{} runs {} times: {share} of all that warps execute.", at(row), grouped(row.warps));
    Some(Remark { title: "The hottest statement".into(), text, row: Some(i), weight: 0.0 })
}

fn roof(launch: &Launch) -> Option<Remark> {
    let text = match (&launch.roofline, launch.totals.intensity()) {
        (Some(r), _) => format!(
            "{:.2} operations for each byte of global memory; on {}, {} is busy first below {:.1}.",
            r.intensity, r.device, r.bound, r.ridge
        ),
        (None, Some(n)) => {
            format!("{n:.2} operations for each byte that moves to and from global memory, without any cache.")
        }
        (None, None) => return None,
    };
    Some(Remark { title: "Arithmetic for each byte".into(), text, row: None, weight: 0.0 })
}

fn even(launch: &Launch) -> Option<Remark> {
    let w = launch.warps;
    if w.count == 0 {
        return None;
    }
    let mean = |sum: u64| grouped((sum + w.count / 2) / w.count);
    let text = format!(
        "{} warps execute {} statements each on average; the busiest of a block {}.",
        grouped(w.count),
        mean(w.work),
        mean(w.busiest)
    );
    Some(Remark { title: "Work of warps".into(), text, row: None, weight: 0.0 })
}
