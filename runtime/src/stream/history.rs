//! Which work of streams comes before which, and what of it touched the same memory without order between the two.
//!
//! The manual's rules (*Memory synchronization*, API synchronization): work of a stream comes in its order; recorded events, the default stream and other
//! places that work waits for bring order between streams; all that the host has waited for comes before what it gives later. Work that the host has
//! waited for is forgotten: nothing that is still to come can be unordered with it.
//!
//! Two pieces of work whose threads may tell each other something by strong accesses are not told, since their order is not looked at thread by thread.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::finding::{CheckReport, CheckSink, Finding, Footprint, FoundAt, FoundIn, Touched};
use crate::memory::DeviceMemory;

/// A place in a queue: its number, and that of the place. Queue 0 is the host.
pub(super) type At = (u64, u64);

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

/// What is known of the work of a context.
pub(super) struct History {
    sink: CheckSink,
    host: Known,
    /// What comes before each place that the host has not waited for.
    moments: HashMap<At, Arc<Known>>,
    done: Vec<Done>,
    ranges: usize,
}

fn learn(to: &mut Known, (queue, number): At) {
    let there = to.entry(queue).or_default();
    *there = (*there).max(number);
}

impl History {
    pub(super) fn new(sink: CheckSink) -> History {
        History { sink, host: Known::new(), moments: HashMap::new(), done: Vec::new(), ranges: 0 }
    }

    fn before(&self, at: At) -> Option<&Arc<Known>> {
        self.moments.get(&at)
    }

    /// All that comes before a place, itself among it.
    fn join(&self, to: &mut Known, at: At) {
        self.before(at)
            .into_iter()
            .flat_map(|known| known.iter())
            .for_each(|(queue, number)| learn(to, (*queue, *number)));
        learn(to, at);
    }

    /// The host puts work at a place, also to be done after others.
    pub(super) fn put(&mut self, at: At, after: &[At]) {
        let mut known = self.host.clone();
        if at.1 > 1 {
            self.join(&mut known, (at.0, at.1 - 1));
        }
        after.iter().for_each(|place| self.join(&mut known, *place));
        self.moments.insert(at, Arc::new(known));
    }

    /// The host has waited for places.
    pub(super) fn waited(&mut self, places: &[At]) {
        let mut host = self.host.clone();
        places.iter().for_each(|place| self.join(&mut host, *place));
        let is_open = |(queue, number): At| host.get(&queue).is_none_or(|known| *known < number);
        self.moments.retain(|at, _| is_open(*at));
        // What was given before this wait and is still under way may be unordered with what has been waited for.
        let has = |known: &Known, at: At| known.get(&at.0).is_some_and(|number| *number >= at.1);
        let moments = &self.moments;
        let is_apart = |done: &Done| moments.iter().any(|(at, known)| !has(known, done.at) && !has(&done.known, *at));
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
        let Some(known) = self.before(at).cloned() else { return };
        self.compare(Done { at, known, touched }, memory);
    }

    fn compare(&mut self, new: Done, memory: &DeviceMemory) {
        let comes_before = |a: &Done, b: &Done| b.known.get(&a.at.0).is_some_and(|number| *number >= a.at.1);
        let mut findings: Vec<Finding> = Vec::new();
        for old in self.done.iter().filter(|old| !comes_before(old, &new) && !comes_before(&new, old)) {
            for (a, b) in conflicts(old.touched.ranges(), new.touched.ranges()) {
                let finding = finding(a, b, memory);
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

/// The ranges of two lists that overlap, of which one is written and not both are strong; none if threads of the two may tell each other something.
fn conflicts<'t>(a: &'t [Touched], b: &'t [Touched]) -> Vec<(&'t Touched, &'t Touched)> {
    let longest = a.iter().map(|t| t.bytes).max().unwrap_or(0);
    let mut found = Vec::new();
    for y in b {
        let from = a.partition_point(|x| x.address.saturating_add(longest) <= y.address);
        let near = a[from..].iter().take_while(|x| x.address < y.address + y.bytes);
        for x in near.filter(|x| y.address < x.address + x.bytes && (x.writes || y.writes)) {
            if x.is_strong && y.is_strong {
                return vec![];
            }
            found.push((x, y));
        }
    }
    found
}

fn finding(a: &Touched, b: &Touched, memory: &DeviceMemory) -> Finding {
    let start = a.address.max(b.address);
    let bytes = (a.address + a.bytes).min(b.address + b.bytes) - start;
    let (base, size) = memory.extent(start).map_or((start, 0), |(base, size, _)| (base, size));
    let data = FoundIn::of_allocation(size, start - base, bytes);
    let message = format!(
        "nothing orders the {} of {}+{} and its {} in another stream, or by the host",
        a.at.does, data.what, data.offset, b.at.does
    );
    let fix = Some("let one stream wait for an event of the other one, or the host for the first");
    let places = (FoundAt::clone(&a.at), Some(FoundAt::clone(&b.at)));
    Finding { fix, ..Finding::new("race", "unordered", message, places, data) }
}
