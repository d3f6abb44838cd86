//! Accesses of a warp by one instruction, told at once. What is remembered and found is the same as of the lanes one by one.

use crate::checks::Check;
use crate::clock::Clock;
use crate::event::{Access, Does, Event, Proxy, Thread, Turn};
use crate::order::Audit;
use crate::race::{Now, bytes_of_granule, overwrite};
use crate::shadow::{Added, Entry, Shadow, Tag};
use crate::waits::Waits;

/// What the lanes of a warp access by one instruction: each the same scalars from an address of its own.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Linear number of the block in the grid.
    pub cta: u32,
    /// Linear number in the block of the warp's first thread.
    pub first: usize,
    /// The lanes, in their order.
    pub lanes: &'a [usize],
    /// By lane: a generic address.
    pub addrs: &'a [u64; 32],
    /// The scalars, at most 8: bytes after the address, and how many bytes.
    pub parts: &'a [(u32, u8)],
    /// By lane, a bit for each scalar: it writes what is there already.
    pub same: &'a [u8; 32],
}

impl Row<'_> {
    fn access(&self, lane: usize, part: usize) -> Access {
        let (offset, bytes) = self.parts[part];
        Access {
            thread: Thread::new(self.cta, self.first + lane),
            addr: self.addrs[lane].wrapping_add(u64::from(offset)),
            bytes,
            failed: false,
            same_value: self.same[lane] >> part & 1 == 1,
            turn: Turn::None,
            begun: 0,
        }
    }

    fn all(&self) -> impl Iterator<Item = Access> {
        self.lanes.iter().flat_map(|lane| (0..self.parts.len()).map(|part| self.access(*lane, part)))
    }
}

impl Audit {
    /// Lanes of a warp load or store: the same as [`access`](Audit::access) of each scalar of each lane in turn.
    pub fn row(&mut self, site: u32, row: &Row<'_>) {
        if self.has_given_up() || !self.checks.has(Check::Race) {
            return;
        }
        let Some(what) = usize::try_from(site).ok().and_then(|i| self.sites.get(i)).copied() else { return };
        let is_plain = self.strength(&what).is_none()
            && matches!(what.does, Does::Read | Does::Write)
            && what.proxy == Proxy::Generic
            && !self.waits.as_ref().is_some_and(Waits::looks_at_writes);
        // Room for a row whose accesses all lie in pages of their own, and two in the middle of such.
        let most = 3 * 32 * 8 * Shadow::PAGE_COST;
        if !is_plain || self.shadow.cost().saturating_add(most) > self.options.room || row.parts.len() > 8 {
            return row.all().for_each(|access| self.access(site, access));
        }
        if self.options.keeps_events {
            row.all().for_each(|access| self.keep(|_| Event::Access { site: what, access }));
        }
        let mut clocks = self.take_clocks(row.cta);
        let mut done = [0_u32; 8];
        let ascends = row.lanes.windows(2).all(|w| row.addrs[w[0]] < row.addrs[w[1]]);
        for (i, lane) in row.lanes.iter().copied().enumerate() {
            for (part, done) in done.iter_mut().enumerate().take(row.parts.len()) {
                if *done >> lane & 1 == 1 {
                    continue;
                }
                let access = row.access(lane, part);
                let writes = what.does == Does::Write;
                let now = Now { access, site, strength: None, writes, reads: !writes };
                let place = self.plain(&now, row.cta, &mut clocks);
                if let Some(place) = place
                    && !ascends
                    && !writes
                    && access.bytes == 4
                {
                    let mut others = 0;
                    let of = |lane: usize| clocks.get(row.first + lane);
                    for other in row.lanes[i + 1..].iter().copied() {
                        if row.addrs[other] == row.addrs[lane]
                            && let (Some(a), Some(b)) = (of(lane), of(other))
                            && a.is_alike(b)
                        {
                            others |= 1 << other;
                        }
                    }
                    self.shadow.add_lanes_at(access.addr, place, others);
                    *done |= others;
                }
                if writes {
                    overwrite(self.shadow.page(access.addr), access.addr, access.bytes);
                }
            }
        }
        self.put_clocks(row.cta, clocks);
    }

    /// One weak access. Gives the place of its entry if other lanes of the warp that know as much may be added to it.
    fn plain(&mut self, now: &Now, cta: u32, clocks: &mut Vec<Clock>) -> Option<u32> {
        let Access { thread, addr, bytes, .. } = now.access;
        let end = addr + u64::from(bytes);
        let number = usize::try_from(thread.number()).unwrap_or(usize::MAX);
        let mut at = addr & !3;
        let mut place = None;
        while at < end {
            let tag = Tag::new(now.site, now.writes, now.reads, 0, bytes, bytes_of_granule(addr, end, at));
            let who = thread.cta << 5 | u32::from(thread.warp);
            let new = Entry { time: self.now, who, lanes: thread.bit(), tag: tag.0 };
            let added = clocks.get(number).map_or(Added::Conflict, |clock| {
                self.shadow
                    .add_ordered(at, new, &mut self.list, clock.warp.max(clock.cta), |e| clock.unordered(thread, e))
            });
            match added {
                Added::Conflict => {
                    self.put_clocks(cta, std::mem::take(clocks));
                    self.compare_granule(now, at, new);
                    *clocks = self.take_clocks(cta);
                    place = None;
                }
                Added::Done => place = None,
                Added::At(found) => place = Some(found),
            }
            at += 4;
        }
        place
    }

    fn take_clocks(&mut self, cta: u32) -> Vec<Clock> {
        self.ctas.get_mut(&cta).map_or_else(Vec::new, |cta| std::mem::take(&mut cta.clocks))
    }

    fn put_clocks(&mut self, cta: u32, clocks: Vec<Clock>) {
        if let Some(cta) = self.ctas.get_mut(&cta) {
            cta.clocks = clocks;
        }
    }
}

#[cfg(test)]
mod tests {
    use handloom_diag::Span;
    use handloom_ir::types::{Order, Scope, StateSpace};

    use super::*;
    use crate::event::{Met, Site};
    use crate::finding::Finding;
    use crate::order::Options;

    /// What is found in rows of a few words and barriers by chance, and what is remembered then. `whole`: rows are told at once.
    fn run(seed: u64, whole: bool) -> (Vec<Vec<Entry>>, Vec<Finding>) {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut audit = Audit::new(Options { same_values: true, ..Options::default() });
        (0..2).for_each(|cta| audit.start_cta(cta, 256, None, (0, 0)));
        for _ in 0..120 {
            let cta = u32::from(random(8) == 0);
            let warp = usize::try_from(random(8)).unwrap();
            match random(12) {
                0 => {
                    let waited = (0..8).map(|w| (w, u32::MAX)).collect();
                    audit.barrier(cta.into(), &Met { id: 0, waited, is_whole: true });
                }
                1 => audit.warp_barrier(cta.into(), warp, u32::MAX, u32::MAX),
                2 => audit.warp_barrier(cta.into(), warp, 0xffff, u32::MAX),
                _ => {}
            }
            let does = if random(4) == 0 { Does::Write } else { Does::Read };
            let (order, scope) = (Order::Weak, Scope::Gpu);
            let end = u32::try_from(random(3)).unwrap();
            let span = Span { end, ..Span::NONE };
            let site = audit.site(Site { span, does, order, scope, space: StateSpace::Global, ..Site::NONE });
            let bytes = [1, 4, 4, 4, 8, 16][usize::try_from(random(6)).unwrap()];
            let parts = if random(3) == 0 { vec![(0, bytes), (bytes.into(), bytes)] } else { vec![(0, bytes)] };
            let size = u64::from(bytes) * parts.len() as u64;
            let (base, step, turn) = (random(3) * 64, random(3), random(2) * 15 + 16);
            let mut addrs = [0; 32];
            (0..32_u64).zip(&mut addrs).for_each(|(lane, at)| *at = base + lane % turn * step * size);
            let mask = [u64::from(u32::MAX), random(1 << 32), 1 << random(32)][usize::try_from(random(3)).unwrap()];
            let lanes: Vec<usize> = (0..32).filter(|lane| mask >> lane & 1 == 1).collect();
            let same = std::array::from_fn(|_| u8::try_from(random(4)).unwrap());
            let row = Row { cta, first: 32 * warp, lanes: &lanes, addrs: &addrs, parts: &parts, same: &same };
            if whole {
                audit.row(site, &row);
            } else {
                row.all().for_each(|access| audit.access(site, access));
            }
            audit.end_op();
        }
        let mut left = Vec::new();
        for at in (0..2048).step_by(4) {
            let mut list = Vec::new();
            audit.shadow.read(at, &mut list);
            left.push(list);
        }
        (left, audit.finish().0)
    }

    #[test]
    fn a_row_is_its_lanes_one_by_one() {
        let mut found = 0;
        for seed in 0..300 {
            let (row, lanes) = (run(seed, true), run(seed, false));
            assert_eq!(row.1, lanes.1, "seed {seed}");
            assert!(row.0 == lanes.0, "seed {seed}: what is remembered differs");
            found += row.1.len();
        }
        assert!(found > 300, "{found}");
    }
}
