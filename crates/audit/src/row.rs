//! Accesses of a warp by one instruction, told at once. What is remembered and found is the same as of the lanes one by one.

use crate::checks::Check;
use crate::clock::Clock;
use crate::event::{Access, Does, Event, Thread};
use crate::order::Audit;
use crate::race::{Now, bytes_of_granule, overwrite};
use crate::shadow::{Added, Entry, Shadow, Tag};

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
        let is_plain = self.strength(&what).is_none() && matches!(what.does, Does::Read | Does::Write);
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
