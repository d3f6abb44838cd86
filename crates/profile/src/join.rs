//! Counts of several runs put together: of one process after the other, and of all processes of a program.

use std::collections::BTreeMap;
use std::hash::Hasher;

use handloom_diag::hash::FastHasher;
use serde::{Deserialize, Serialize};

use crate::model::{Branch, Hot, Launch, Moved, Operations, Row};
use crate::page::Texts;
use crate::timeline::Timelines;
use handloom_counts::HOT;

/// What a process counted, for who runs it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Part {
    /// The launches, with all statements of their modules. Of a module of which nothing was launched there is one without a run.
    pub launches: Vec<Launch>,
    /// The PTX of the modules, by name.
    pub texts: Texts,
    /// Entries that compiled code did not count, and why.
    pub interpreted: Vec<(String, String)>,
    /// When the host ran blocks, if a page is to draw it.
    #[serde(default)]
    pub timelines: Timelines,
}

impl Part {
    /// Reads one as it was written as JSON.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn read(text: &str) -> Result<Part, String> {
        serde_json::from_str(text).map_err(|e| format!("these are no counts of a process: {e}"))
    }
}

impl Timelines {
    /// Gives launches theirs, where it is known.
    pub fn draw(&self, launches: &mut [Launch]) {
        for launch in launches {
            if let Some(timeline) = self.of(&launch.entry, [launch.grid, launch.block]) {
                launch.timeline = Some(timeline.clone());
            }
        }
    }
}

/// A name of a text that was given none of its own: with a digest, so that it is known where texts are the same, in all processes.
pub fn unique_name(name: &str, text: &str) -> String {
    let mut digest = FastHasher::default();
    digest.write(text.as_bytes());
    format!("{}-{:012x}.ptx", name.strip_suffix(".ptx").unwrap_or(name), digest.finish() >> 16)
}

/// Adds launches to others: those of one shape and of the same statements count together.
pub fn join(all: &mut Vec<Launch>, more: Vec<Launch>) {
    for launch in more {
        match all.iter_mut().find(|known| known.is_same(&launch)) {
            Some(known) => known.add(&launch),
            None => all.push(launch),
        }
    }
}

impl Launch {
    /// Whether it is one of the same shape, of the same text.
    fn is_same(&self, other: &Launch) -> bool {
        let shape = |l: &Launch| (l.grid, l.block, l.shared_bytes, l.statements.len());
        let is_text = |(a, b): (&Row, &Row)| a.place() == b.place() && a.text == b.text;
        self.entry == other.entry
            && shape(self) == shape(other)
            && self.statements.iter().zip(&other.statements).all(is_text)
    }

    /// Adds the runs of another one of the same shape and text.
    fn add(&mut self, other: &Launch) {
        self.runs += other.runs;
        self.blocks += other.blocks;
        if self.ended == "ok" {
            self.ended.clone_from(&other.ended);
        }
        self.warps.add(&other.warps);
        self.statements.iter_mut().zip(&other.statements).for_each(|(row, more)| row.add(more));
        self.sum_up();
    }
}

impl Row {
    /// Where it is written.
    pub(crate) fn place(&self) -> (&str, u32, u32) {
        (&self.file, self.line, self.column)
    }

    /// Adds how often the same statement ran elsewhere, and for which lanes.
    pub(crate) fn add_reached(&mut self, other: &Row) {
        self.warps += other.warps;
        self.lanes += other.lanes;
        self.active += other.active;
        self.which |= other.which;
        if let (Some(a), Some(b)) = (&mut self.branch, &other.branch) {
            a.add(b);
        }
    }

    /// Adds what was counted of the same statement elsewhere.
    fn add(&mut self, other: &Row) {
        self.add_reached(other);
        for moved in &other.traffic {
            let key = |m: &Moved| (m.space, m.does, m.width);
            match self.traffic.iter_mut().find(|known| key(known) == key(moved)) {
                Some(known) => known.sums.add(&moved.sums),
                None => self.traffic.push(moved.clone()),
            }
        }
        self.traffic.sort_by_key(|m| (m.space, m.does, m.width));
        let mut lanes: BTreeMap<&str, u64> = BTreeMap::new();
        self.hot.iter().chain(&other.hot).for_each(|h| *lanes.entry(&h.place).or_default() += h.lanes);
        let mut hot: Vec<Hot> = lanes.into_iter().map(|(at, n)| Hot { place: at.to_owned(), lanes: n }).collect();
        hot.sort_by_key(|h| std::cmp::Reverse(h.lanes));
        hot.truncate(HOT);
        self.hot = hot;
        // Which of them are the same is not known: addresses mean something in one process alone.
        self.addresses = self.addresses.max(other.addresses);
        add_some(&mut self.waits, &other.waits, |a, b| a.add(b));
        add_some(&mut self.operations, &other.operations, Operations::add);
        self.copied_bytes += other.copied_bytes;
    }
}

impl Branch {
    fn add(&mut self, other: &Branch) {
        self.divergent += other.divergent;
        self.ways.resize(self.ways.len().max(other.ways.len()), 0);
        self.ways.iter_mut().zip(&other.ways).for_each(|(a, b)| *a += b);
    }
}

fn add_some<T: Clone>(to: &mut Option<T>, from: &Option<T>, add: impl Fn(&mut T, &T)) {
    match (to, from) {
        (Some(to), Some(from)) => add(to, from),
        (to, Some(from)) => *to = Some(from.clone()),
        (_, None) => {}
    }
}

#[cfg(test)]
mod tests {
    use handloom_ir::simt::Does;

    use super::*;
    use crate::kind::Kind;
    use handloom_counts::{Space, Traffic};

    fn row(line: u32, warps: u64, hot: &[(&str, u64)]) -> Row {
        let sums = Traffic { requests: warps, sectors: 4 * warps, ..Traffic::default() };
        Row {
            file: "k.ptx".into(),
            line,
            column: 5,
            function: "k".into(),
            text: "red.global.add.u32 [%rd1], 1".into(),
            kind: Kind::Atomic,
            source: None,
            warps,
            lanes: 32 * warps,
            active: 30 * warps,
            which: 1 << warps,
            branch: None,
            traffic: vec![Moved { space: Space::Global, does: Does::Atomic, width: Some(4), sums }],
            hot: hot.iter().map(|(at, lanes)| Hot { place: (*at).into(), lanes: *lanes }).collect(),
            addresses: warps,
            waits: None,
            operations: None,
            copied_bytes: 0,
        }
    }

    fn launch(entry: &str, statements: Vec<Row>) -> Launch {
        let mut new = Launch {
            entry: entry.into(),
            grid: [4, 1, 1],
            block: [64, 1, 1],
            runs: 1,
            blocks: 4,
            ended: "ok".into(),
            statements,
            ..Launch::default()
        };
        new.sum_up();
        new
    }

    #[test]
    fn launches_of_one_shape_and_text_count_together() {
        let mut all = vec![launch("k", vec![row(7, 2, &[("a+0", 5), ("a+4", 3)])])];
        join(&mut all, vec![launch("k", vec![row(7, 3, &[("a+4", 4)])]), launch("other", vec![row(7, 1, &[])])]);
        // Another text at the same place, and another block.
        let mut text = launch("k", vec![row(7, 1, &[])]);
        text.statements[0].text = "ret".into();
        let shape = Launch { block: [32, 1, 1], ..launch("k", vec![row(7, 1, &[])]) };
        join(&mut all, vec![text, shape]);
        assert_eq!(
            all.iter().map(|l| (l.entry.as_str(), l.runs)).collect::<Vec<_>>(),
            [("k", 2), ("other", 1), ("k", 1), ("k", 1)]
        );
        let k = &all[0];
        let at = &k.statements[0];
        assert_eq!((k.blocks, at.warps, at.lanes, at.active, at.which), (8, 5, 160, 150, 0b1100));
        assert_eq!((k.totals.warp_instructions, k.totals.global_sectors, k.totals.atomic_requests), (5, 20, 5));
        assert_eq!(at.hot.iter().map(|h| (h.place.as_str(), h.lanes)).collect::<Vec<_>>(), [("a+4", 7), ("a+0", 5)]);
        assert_eq!(at.addresses, 3);
    }

    #[test]
    fn a_trap_stays() {
        let mut all = vec![launch("k", vec![row(7, 1, &[])])];
        let mut trapped = launch("k", vec![row(7, 1, &[])]);
        trapped.ended = "assert".into();
        join(&mut all, vec![trapped, launch("k", vec![row(7, 1, &[])])]);
        assert_eq!((all.len(), all[0].runs, all[0].ended.as_str()), (1, 3, "assert"));
    }
}
