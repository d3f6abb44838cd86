//! Which work of streams comes before which, and what of it touched the same memory without order between the two.
//!
//! The manual's rules (*Memory synchronization*, API synchronization): work of a stream comes in its order, nodes of a graph in that of its
//! edges; recorded events, the default stream and other places that work waits for bring order between streams; all that the host has waited for comes
//! before what it gives later. Work that the host has waited for is forgotten: nothing that is still to come can be unordered with it.
//!
//! Two pieces of work whose threads may tell each other something by strong accesses are not told, since their order is not looked at thread by thread.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::parts::{At, Parts, ROWS};
use crate::finding::{CheckReport, CheckSink, Finding, Footprint, FoundAt, FoundIn, Touched, conflicts};
use crate::memory::DeviceMemory;

/// By queue: the last place that comes before.
type Known = BTreeMap<u64, u64>;

/// Most ranges that are remembered. The oldest work is forgotten first, so that only findings are missed.
const MOST: usize = 1 << 20;

/// Most pieces of work that are remembered.
const MOST_WORK: usize = 1 << 13;

/// Work that has been done.
struct Done {
    at: At,
    known: Arc<Known>,
    touched: Arc<Footprint>,
}

/// A place that the host has not waited for.
struct Moment {
    /// By which name others know it.
    at: At,
    /// What comes before it.
    known: Arc<Known>,
}

/// What is known of the work of a context.
pub(super) struct History {
    sink: CheckSink,
    host: Known,
    /// The places that the host has not waited for.
    moments: HashMap<At, Moment>,
    /// By queue: the parts that it is given just now.
    parts: HashMap<u64, Parts>,
    /// The rows that parts of a queue have.
    rows: HashMap<(u64, usize), u64>,
    done: Vec<Done>,
    ranges: usize,
}

fn learn(to: &mut Known, (queue, number): At) {
    let there = to.entry(queue).or_default();
    *there = (*there).max(number);
}

impl History {
    pub(super) fn new(sink: CheckSink) -> History {
        let (moments, parts, rows) = (HashMap::new(), HashMap::new(), HashMap::new());
        History { sink, host: Known::new(), moments, parts, rows, done: Vec::new(), ranges: 0 }
    }

    /// All that comes before a place, itself among it.
    fn join(&self, to: &mut Known, at: At) {
        match self.moments.get(&at) {
            Some(moment) => {
                moment.known.iter().for_each(|(queue, number)| learn(to, (*queue, *number)));
                learn(to, moment.at);
            }
            None => learn(to, at),
        }
    }

    /// A queue is given parts from now on, until [`end_parts`](Self::end_parts): each after some of those before it.
    pub(super) fn begin_parts(&mut self, end: At) {
        self.parts.insert(end.0, Parts::new(end));
    }

    /// What a queue is given from now on is its next part, or comes after all parts.
    pub(super) fn next_part(&mut self, queue: u64, after: Option<&[usize]>) {
        match (self.parts.get_mut(&queue), after) {
            (Some(parts), Some(after)) => parts.next(after),
            (Some(parts), None) => parts.end(),
            (None, _) => {}
        }
    }

    /// A queue has been given all parts, and something after them.
    pub(super) fn end_parts(&mut self, queue: u64) {
        self.parts.remove(&queue);
    }

    /// The host puts work at a place, also to be done after others.
    pub(super) fn put(&mut self, at: At, after: &[At]) {
        let mut known = self.host.clone();
        let (before, row) = match self.parts.get_mut(&at.0) {
            Some(parts) => parts.put(at),
            None => (vec![(at.0, at.1 - 1)], None),
        };
        let before = before.iter().filter(|(_, number)| *number > 0);
        before.chain(after).for_each(|place| self.join(&mut known, *place));
        let name = row.map_or(at, |row| {
            let next = ROWS + self.rows.len() as u64;
            (*self.rows.entry((at.0, row)).or_insert(next), at.1)
        });
        self.moments.insert(at, Moment { at: name, known: Arc::new(known) });
    }

    /// The host has waited for places.
    pub(super) fn waited(&mut self, places: &[At]) {
        let mut host = self.host.clone();
        places.iter().for_each(|place| self.join(&mut host, *place));
        let is_open = |(queue, number): At| host.get(&queue).is_none_or(|known| *known < number);
        self.moments.retain(|_, moment| is_open(moment.at));
        // What was given before this wait and is still under way may be unordered with what has been waited for.
        let has = |known: &Known, at: At| known.get(&at.0).is_some_and(|number| *number >= at.1);
        let moments = &self.moments;
        let is_apart = |done: &Done| moments.values().any(|m| !has(&m.known, done.at) && !has(&done.known, m.at));
        self.done.retain(|done| done.at.0 != 0 && is_open(done.at) || is_apart(done));
        self.host = host;
    }

    /// Memory is other memory from now on, or work waited for something that is not known: what was done until now is in order.
    pub(super) fn forget(&mut self) {
        self.done.clear();
    }

    /// A range is other memory from now on: what was done there until now is in order.
    pub(super) fn forget_range(&mut self, address: u64, bytes: u64) {
        let is_in = |t: &Touched| t.address < address.saturating_add(bytes) && address < t.address + t.bytes;
        for done in self.done.iter_mut().filter(|done| done.touched.ranges().iter().any(is_in)) {
            let rest = done.touched.ranges().iter().filter(|t| !is_in(t)).cloned().collect();
            done.touched = Arc::new(Footprint::of(rest));
        }
        self.done.retain(|done| done.touched.len() > 0);
    }

    /// The host itself touches memory now.
    pub(super) fn host_did(&mut self, touched: Vec<Touched>, memory: &DeviceMemory) {
        let at = (0, self.host.get(&0).copied().unwrap_or(0) + 1);
        let known = Arc::new(self.host.clone());
        let touched = Arc::new(Footprint::of(touched));
        self.compare(Done { at, known, touched }, memory);
        learn(&mut self.host, at);
    }

    /// Work of a place has been done.
    pub(super) fn did(&mut self, at: At, touched: Arc<Footprint>, memory: &DeviceMemory) {
        let Some(Moment { at, known }) = self.moments.get(&at) else { return };
        let done = Done { at: *at, known: Arc::clone(known), touched };
        self.compare(done, memory);
    }

    /// Whether two pieces of work that nothing orders are parts of one piece that a queue was given.
    fn are_of_graph(&self, a: At, b: At) -> bool {
        let queue = |(name, _): At| self.rows.iter().find(|(_, row)| **row == name).map(|((queue, _), _)| *queue);
        queue(a).is_some_and(|of| queue(b) == Some(of))
    }

    fn compare(&mut self, new: Done, memory: &DeviceMemory) {
        let comes_before = |a: &Done, b: &Done| b.known.get(&a.at.0).is_some_and(|number| *number >= a.at.1);
        let mut findings: Vec<Finding> = Vec::new();
        for old in self.done.iter().filter(|old| !comes_before(old, &new) && !comes_before(&new, old)) {
            for (a, b) in conflicts(old.touched.ranges(), new.touched.ranges()) {
                let finding = finding(a, b, self.are_of_graph(old.at, new.at), memory);
                match findings.iter_mut().find(|known| known.is_same(&finding)) {
                    Some(known) => known.pairs += finding.pairs,
                    None => findings.push(finding),
                }
            }
        }
        self.ranges += new.touched.len();
        self.done.push(new);
        if self.ranges > MOST || self.done.len() > MOST_WORK {
            // What was worked out since is counted too.
            let of = |done: &Done| done.touched.len().max(1);
            self.ranges = self.done.iter().map(of).sum();
            while self.done.len() > 1 && (self.ranges > MOST / 2 || self.done.len() > MOST_WORK / 2) {
                self.ranges -= of(&self.done.remove(0));
            }
        }
        if !findings.is_empty() {
            self.sink.take("", &CheckReport { findings, ..CheckReport::default() });
        }
    }
}

fn finding(a: &Touched, b: &Touched, are_of_graph: bool, memory: &DeviceMemory) -> Finding {
    let start = a.address.max(b.address);
    let bytes = (a.address + a.bytes).min(b.address + b.bytes) - start;
    let (base, size) = memory.extent(start).map_or((start, 0), |(base, size, _)| (base, size));
    let data = FoundIn::of_allocation(size, start - base, bytes);
    let (other, fix) = if are_of_graph {
        ("in another node of the graph", "let one node of the graph depend on the other one")
    } else {
        let fix = "let one stream wait for an event of the other one, or the host for the first";
        ("in another stream, or by the host", fix)
    };
    let message =
        format!("nothing orders the {} of {}+{} and its {} {other}", a.at.does, data.what, data.offset, b.at.does);
    let places = (FoundAt::clone(&a.at), Some(FoundAt::clone(&b.at)));
    Finding { fix: Some(fix), ..Finding::new("race", "unordered", message, places, data) }
}
