//! What is counted while a launch runs, statement by statement.
//!
//! An engine tells a [`Counter`] what the lanes of a warp do together: that they begin a statement, access memory, go one of several ways, meet at a barrier.
//! Nothing is sampled. What follows from how often a statement ran (operations, kinds) is found afterwards, from its text.

use std::collections::BTreeMap;

use handloom_diag::Span;
use handloom_ir::simt::Does;
use handloom_ir::types::StateSpace;
use serde::{Deserialize, Serialize};

use crate::rules::{self, Lane, SECTOR};
use crate::sums;

/// Memory as counts tell it apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Space {
    /// `.global`.
    Global,
    /// `.shared`, of the own block or of another one of the cluster.
    Shared,
    /// `.local`, and parameters of functions.
    Local,
    /// `.const`.
    Const,
    /// Parameters of the kernel.
    Param,
}

impl Space {
    /// That of an access whose generic address was looked up.
    pub fn of(space: StateSpace) -> Option<Space> {
        match space {
            StateSpace::Global => Some(Space::Global),
            StateSpace::Shared | StateSpace::SharedCluster => Some(Space::Shared),
            StateSpace::Local | StateSpace::ParamFunc => Some(Space::Local),
            StateSpace::Const => Some(Space::Const),
            StateSpace::ParamEntry => Some(Space::Param),
            StateSpace::Generic | StateSpace::Reg | StateSpace::Sreg | StateSpace::Tex => None,
        }
    }

    /// That of an access whose lanes all lie where nearly all generic addresses do.
    pub fn of_pattern(space: StateSpace) -> Option<Space> {
        if space == StateSpace::Generic { Some(Space::Global) } else { Space::of(space) }
    }

    /// Name without the dot.
    pub fn word(self) -> &'static str {
        match self {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Local => "local",
            Space::Const => "const",
            Space::Param => "param",
        }
    }
}

sums! {
    /// What the accesses of a kind come to.
    pub struct Traffic {
        /// Accesses of the lanes of a warp that execute one together.
        requests,
        /// Lanes that took part in them.
        lanes,
        /// Bytes that lanes asked for, each for itself.
        bytes,
        /// Different bytes of each request.
        touched,
        /// Sectors of 32 bytes of each request, in global and local memory.
        sectors,
        /// Passes of shared memory; addresses of constant memory, which are served one after the other.
        passes,
        /// Passes if no lane waited for another one.
        least_passes,
        /// Of atomics: most lanes on one address in each request.
        most_on_one,
    }
}

impl Traffic {
    /// What one access of the lanes of a warp that do it together comes to, `bytes` bytes each. Addresses of local memory count from the start of a thread's
    /// own.
    pub fn of_request((space, does, bytes): (Space, Does, u32), lanes: &[Lane]) -> Traffic {
        let n = u64::try_from(lanes.len()).unwrap_or(0);
        let mut one = Traffic { requests: 1, lanes: n, bytes: n * u64::from(bytes), ..Traffic::default() };
        one.touched = rules::touched(lanes, bytes);
        match space {
            Space::Global => one.sectors = rules::sectors(lanes, bytes),
            Space::Local => {
                let (pieces, piece) = rules::local(lanes, bytes);
                (one.touched, one.sectors) = (rules::touched(&pieces, piece), rules::sectors(&pieces, piece));
            }
            Space::Shared => (one.passes, one.least_passes) = rules::passes(lanes, bytes),
            Space::Const => (one.passes, one.least_passes) = (rules::addresses(lanes), 1),
            Space::Param => {}
        }
        if does == Does::Atomic {
            one.most_on_one = rules::most_on_one(lanes);
        }
        one
    }

    /// The same of so many such accesses.
    #[must_use]
    pub fn times(&self, n: u64) -> Traffic {
        let Traffic { requests, lanes, bytes, touched, sectors, passes, least_passes, most_on_one } = *self;
        Traffic {
            requests: requests * n,
            lanes: lanes * n,
            bytes: bytes * n,
            touched: touched * n,
            sectors: sectors * n,
            passes: passes * n,
            least_passes: least_passes * n,
            most_on_one: most_on_one * n,
        }
    }

    /// Lanes that waited because of a bank or an address.
    pub fn conflicts(&self) -> u64 {
        self.passes - self.least_passes
    }

    /// Share of the bytes in the sectors that somebody wanted; `None` where no sectors move.
    pub fn efficiency(&self) -> Option<f64> {
        (self.sectors > 0).then(|| ratio(self.touched, self.sectors * SECTOR))
    }
}

/// A quotient; 0 of nothing.
pub fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b.max(1) as f64
}

sums! {
    /// What waiting at a barrier comes to, in statements of warps.
    pub struct Waits {
        /// Times that a warp was let go.
        warps,
        /// Statements that warps had executed since they last met, or began.
        work,
        /// Those that a warp which had executed fewer than the busiest one could have executed meanwhile.
        waited,
    }
}

/// What was counted of one statement.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Site {
    /// Times that a warp executed it.
    pub warps: u64,
    /// Lanes that came to it.
    pub lanes: u64,
    /// Lanes whose guard let them act: all without a guard.
    pub active: u64,
    /// Times that some lanes acted and others did not.
    pub split: u64,
    /// Each lane of a warp that ever came, and that ever acted: one bit each.
    pub came: u32,
    /// That ever acted.
    pub which: u32,
    /// By way of a `brx.idx`: lanes.
    pub ways: Vec<u64>,
    /// Times that the lanes of one `brx.idx` went more than one way.
    pub scattered: u64,
    /// By space, manner and bytes of a lane.
    pub traffic: BTreeMap<(Space, Does, u32), Traffic>,
    /// Of atomics: by address, lanes.
    pub addresses: BTreeMap<u64, u64>,
    /// Of a barrier.
    pub waits: Waits,
    /// Bytes that asynchronous copies read and wrote.
    pub copied_bytes: u64,
}

impl Site {
    /// Adds what was counted of the same statement elsewhere.
    pub fn add(&mut self, other: &Site) {
        self.warps += other.warps;
        self.lanes += other.lanes;
        self.active += other.active;
        self.split += other.split;
        self.came |= other.came;
        self.which |= other.which;
        for (way, lanes) in other.ways.iter().enumerate() {
            if self.ways.len() <= way {
                self.ways.resize(way + 1, 0);
            }
            self.ways[way] += lanes;
        }
        self.scattered += other.scattered;
        for (key, traffic) in &other.traffic {
            self.traffic.entry(*key).or_default().add(traffic);
        }
        for (at, lanes) in &other.addresses {
            let is_room = self.addresses.len() < MOST_ADDRESSES;
            if is_room || self.addresses.contains_key(at) {
                *self.addresses.entry(*at).or_default() += lanes;
            }
        }
        self.waits.add(&other.waits);
        self.copied_bytes += other.copied_bytes;
    }
}

/// Addresses of atomics that are told apart for a statement.
pub const MOST_ADDRESSES: usize = 1 << 16;

/// Addresses of an atomic that are named.
pub const HOT: usize = 8;

/// The addresses with most lanes.
pub fn hottest(addresses: &BTreeMap<u64, u64>) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = addresses.iter().map(|(at, lanes)| (*at, *lanes)).collect();
    let order = |(at, lanes): &(u64, u64)| (std::cmp::Reverse(*lanes), *at);
    if all.len() > HOT {
        all.select_nth_unstable_by_key(HOT, order);
        all.truncate(HOT);
    }
    all.sort_by_key(order);
    all
}

sums! {
    /// How even the work of the warps of a block is.
    pub struct Warps {
        /// Warps that ended.
        count,
        /// Statements that they executed.
        work,
        /// The same if all warps of a block had executed as many as the busiest one of the block.
        busiest,
    }
}

/// What a warp in flight did.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    all: u64,
    /// Before the last barrier.
    before: u64,
}

/// The counts of a launch, or of several.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    sites: BTreeMap<Span, Site>,
    /// By block and warp: those that have not ended.
    running: BTreeMap<(u64, usize), Work>,
    warps: Warps,
}

impl Counter {
    /// Lanes of a warp begin a statement: those that come to it, and those that its guard lets act.
    pub fn mark(&mut self, span: Span, (block, warp): (u64, usize), lanes: u32, active: u32) {
        let site = self.sites.entry(span).or_default();
        site.warps += 1;
        site.lanes += u64::from(lanes.count_ones());
        site.active += u64::from(active.count_ones());
        site.split += u64::from(active != 0 && active != lanes);
        site.came |= lanes;
        site.which |= active;
        self.running.entry((block, warp)).or_default().all += 1;
    }

    /// Lanes access memory together, `bytes` bytes each. Addresses of local memory count from the start of a thread's own.
    pub fn access(&mut self, span: Span, (space, does, bytes): (Space, Does, u32), lanes: &[Lane]) {
        if lanes.is_empty() {
            return;
        }
        let one = Traffic::of_request((space, does, bytes), lanes);
        let site = self.sites.entry(span).or_default();
        if does == Does::Atomic {
            for (_, at) in lanes {
                let is_room = site.addresses.len() < MOST_ADDRESSES;
                if is_room || site.addresses.contains_key(at) {
                    *site.addresses.entry(*at).or_default() += 1;
                }
            }
        }
        site.traffic.entry((space, does, bytes)).or_default().add(&one);
    }

    /// What was counted of a statement elsewhere.
    pub fn add(&mut self, span: Span, found: &Site) {
        self.sites.entry(span).or_default().add(found);
    }

    /// What was counted of another launch that has ended.
    pub fn add_all(&mut self, other: &Counter) {
        other.sites.iter().for_each(|(span, site)| self.add(*span, site));
        self.warps.add(&other.warps);
    }

    /// The addresses of atomics with most lanes, those of each statement.
    pub fn hottest(&self) -> impl Iterator<Item = u64> {
        let of_atomics = self.sites.values().filter(|site| !site.addresses.is_empty());
        of_atomics.flat_map(|site| hottest(&site.addresses)).map(|(at, _)| at)
    }

    /// What was counted of the work of warps elsewhere.
    pub fn add_warps(&mut self, found: &Warps) {
        self.warps.add(found);
    }

    /// An asynchronous copy reads or writes bytes.
    pub fn copy(&mut self, span: Span, bytes: u64) {
        self.sites.entry(span).or_default().copied_bytes += bytes;
    }

    /// Lanes of a `brx.idx` go the ways of these numbers.
    pub fn scatter(&mut self, span: Span, ways: &[usize]) {
        let site = self.sites.entry(span).or_default();
        for way in ways {
            if site.ways.len() <= *way {
                site.ways.resize(way + 1, 0);
            }
            site.ways[*way] += 1;
        }
        site.scattered += u64::from(ways.windows(2).any(|w| w[0] != w[1]));
    }

    /// Warps of a block are let go by a barrier together, each from a statement.
    pub fn meet(&mut self, block: u64, warps: &[(usize, Span)]) {
        let since = |warp: &usize| self.running.get(&(block, *warp)).map_or(0, |w| w.all - w.before);
        let work: Vec<u64> = warps.iter().map(|(warp, _)| since(warp)).collect();
        let most = work.iter().copied().max().unwrap_or(0);
        for ((warp, span), work) in warps.iter().zip(work) {
            self.sites.entry(*span).or_default().waits.add(&Waits { warps: 1, work, waited: most - work });
            if let Some(w) = self.running.get_mut(&(block, *warp)) {
                w.before = w.all;
            }
        }
    }

    /// A block has ended.
    pub fn end(&mut self, block: u64) {
        let mut later = self.running.split_off(&(block, 0));
        let mut after = later.split_off(&(block + 1, 0));
        let work: Vec<u64> = later.values().map(|w| w.all).collect();
        let (count, most) = (u64::try_from(work.len()).unwrap_or(0), work.iter().copied().max().unwrap_or(0));
        self.warps.add(&Warps { count, work: work.iter().sum(), busiest: count * most });
        self.running.append(&mut after);
    }

    /// What was counted of a statement.
    pub fn site(&self, span: Span) -> Site {
        self.sites.get(&span).cloned().unwrap_or_default()
    }

    /// How even the work of warps was, of blocks that have ended.
    pub fn warps(&self) -> Warps {
        self.warps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use handloom_diag::FileId;

    fn at(start: u32) -> Span {
        Span::new(FileId(0), start, start + 1)
    }

    #[test]
    fn guards_part_warps() {
        let mut c = Counter::default();
        c.mark(at(0), (0, 0), u32::MAX, u32::MAX);
        c.mark(at(0), (0, 0), 0xff, 0x0f);
        c.mark(at(0), (0, 1), 0xff, 0);
        let site = c.site(at(0));
        assert_eq!((site.warps, site.lanes, site.active, site.split), (3, 48, 36, 1));
        assert_eq!(c.site(at(5)), Site::default());
    }

    #[test]
    fn the_busiest_warp_is_waited_for() {
        let mut c = Counter::default();
        for _ in 0..5 {
            c.mark(at(0), (7, 0), 1, 1);
        }
        c.mark(at(0), (7, 1), 1, 1);
        c.mark(at(0), (8, 0), 1, 1);
        c.meet(7, &[(0, at(9)), (1, at(9))]);
        assert_eq!(c.site(at(9)).waits, Waits { warps: 2, work: 6, waited: 4 });
        c.mark(at(0), (7, 0), 1, 1);
        c.meet(7, &[(0, at(9)), (1, at(9))]);
        assert_eq!(c.site(at(9)).waits, Waits { warps: 4, work: 7, waited: 5 });
        c.end(7);
        assert_eq!(c.warps(), Warps { count: 2, work: 7, busiest: 12 });
        c.end(8);
        assert_eq!(c.warps(), Warps { count: 3, work: 8, busiest: 13 });
    }

    #[test]
    fn ways_of_a_switch() {
        let mut c = Counter::default();
        c.scatter(at(0), &[2, 2, 0]);
        c.scatter(at(0), &[1, 1]);
        let site = c.site(at(0));
        assert_eq!((site.ways, site.scattered), (vec![1, 2, 2], 1));
    }
}
