//! Accesses of a warp by one instruction, told at once. What is remembered and found is the same as of the lanes one by one.

use crate::again::Step;
use crate::checks::Check;
use crate::clock::Clock;
use crate::event::{Access, Does, Event, Proxy, Thread, Turn};
use crate::known::Time;
use crate::line::{Even, LINE, LineRow, parts_at_even_distances};
use crate::order::Audit;
use crate::race::{Now, bytes_of_granule, overwrite};
use crate::shadow::{self, Added, Entry, Knows, Shadow, Tag};
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
    /// Where they access.
    pub addrs: Addrs<'a>,
    /// The scalars, at most 8: bytes after the address, and how many bytes.
    pub parts: &'a [(u32, u8)],
    /// By lane, a bit for each scalar: it writes what is there already.
    pub same: &'a [u8; 32],
}

/// A row in more parts at even distances is looked at lane by lane: lines would be of one lane each.
const MOST_PARTS: usize = 8;

/// Generic addresses of lanes.
#[derive(Clone, Copy, Debug)]
pub enum Addrs<'a> {
    /// By lane.
    Each(&'a [u64; 32]),
    /// All lanes in ascending order, in parts at even distances.
    Even(&'a [Even]),
}

impl Addrs<'_> {
    /// The address of a lane.
    fn of(&self, lane: usize) -> u64 {
        match self {
            Addrs::Each(addrs) => addrs[lane],
            Addrs::Even(parts) => parts.iter().find(|part| part.lanes >> lane & 1 == 1).map_or(0, |part| part.of(lane)),
        }
    }
}

impl Row<'_> {
    fn access(&self, lane: usize, part: usize) -> Access {
        let (offset, bytes) = self.parts[part];
        Access {
            thread: Thread::new(self.cta, self.first + lane),
            addr: self.addrs.of(lane).wrapping_add(u64::from(offset)),
            bytes,
            failed: false,
            same_value: self.same[lane] >> part & 1 == 1,
            turn: Turn::None,
            begun: 0,
        }
    }

    /// Lanes among which are all that access one address with others.
    fn maybe_together(&self) -> u32 {
        let (mut seen, mut twice) = ([0_u64; 4], [0_u64; 4]);
        let place = |lane: usize| {
            let number = self.addrs.of(lane) >> 2;
            (usize::try_from(number >> 6 & 3).unwrap_or(0), 1_u64 << (number & 63))
        };
        for (word, bit) in self.lanes.iter().map(|lane| place(*lane)) {
            twice[word] |= seen[word] & bit;
            seen[word] |= bit;
        }
        if twice == [0; 4] {
            return 0;
        }
        let is_one = |lane: &usize| {
            let (word, bit) = place(*lane);
            twice[word] & bit != 0
        };
        self.lanes.iter().filter(|lane| is_one(lane)).fold(0, |all, lane| all | 1 << lane)
    }

    fn all(&self) -> impl Iterator<Item = Access> {
        self.lanes.iter().flat_map(|lane| (0..self.parts.len()).map(|part| self.access(*lane, part)))
    }
}

impl Audit {
    /// Lanes of a warp load or store: the same as [`access`](Audit::access) of each scalar of each lane in turn.
    pub fn row(&mut self, site: u32, row: &Row<'_>) {
        if let ([lane], [_]) = (row.lanes, row.parts)
            && self.again.is_counting()
        {
            let access = row.access(*lane, 0);
            if self.is_again(access.thread, Step::Access(site, access)) {
                return;
            }
        }
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
        // One lane by itself of a warp whose lanes know different things, as one that holds a lock.
        if let ([lane], [_]) = (row.lanes, row.parts)
            && self.times_of(row.cta, row.first / 32).is_none()
        {
            return self.access(site, row.access(*lane, 0));
        }
        self.interrupt();
        if self.options.keeps_events {
            row.all().for_each(|access| self.keep(|_| Event::Access { site: what, access }));
        }
        if self.by_lines(site, what.does == Does::Write, row) {
            return;
        }
        let put_off = if what.does == Does::Read { self.put_off(site, row) } else { None };
        match put_off {
            Some((left, n)) => self.exactly(site, false, &Row { lanes: &left[..n], ..*row }),
            None => self.exactly(site, what.does == Does::Write, row),
        }
    }

    /// Keeps a row by lines as far as nothing may race, and looks at the rest lane by lane. Says whether it did; if not, nothing was done.
    fn by_lines(&mut self, site: u32, writes: bool, row: &Row<'_>) -> bool {
        let Some((cta, warp)) = self.times_of(row.cta, row.first / 32) else { return false };
        let [(skip, bytes), rest @ ..] = row.parts else { return false };
        let ends = (1..).map(|i| skip + i * u32::from(*bytes));
        let (Some(first), Some(last)) = (row.lanes.first(), row.lanes.last()) else { return true };
        if rest.iter().zip(ends).any(|(part, end)| *part != (end, *bytes)) {
            return false;
        }
        let reversed = first > last;
        let mut cut = [Even::NONE; 32];
        let parts = match row.addrs {
            Addrs::Even(parts) => parts,
            Addrs::Each(addrs) => {
                let lanes = row.lanes.iter().fold(0, |mask, lane| mask | 1 << lane);
                let n = parts_at_even_distances(lanes, addrs, &mut cut);
                if n > MOST_PARTS {
                    return false;
                }
                &cut[..n]
            }
        };
        let n = parts.len();
        let count = u8::try_from(row.parts.len()).unwrap_or(1);
        let size = u64::from(*bytes) * u64::from(count);
        let who = row.cta << 5 | u32::try_from(row.first / 32).unwrap_or(0);
        let time = self.now;
        for i in 0..n {
            let part = if reversed { parts[n - 1 - i] } else { parts[i] };
            let (base, stride) = (part.base.wrapping_add(u64::from(*skip)), u64::from(part.stride));
            let mut left = part.lanes;
            while left != 0 {
                // The lanes of the line that the next one is in, from the end if the last one comes first.
                let (low, high) = (left.trailing_zeros(), 31 - left.leading_zeros());
                let next = if reversed { high } else { low };
                let place = |lane: u32| base.wrapping_add(stride * u64::from(lane));
                let at = place(next);
                let line = at & !(LINE - 1);
                let is_whole = (place(low) ^ place(high)) < LINE;
                let here = if is_whole { left } else { lanes_of_line(base, stride, left, line, next, reversed) };
                left &= !here;
                let kept = LineRow {
                    time,
                    who,
                    cta,
                    warp,
                    site,
                    lanes: here,
                    base: i32::try_from(base.wrapping_sub(line).cast_signed()).unwrap_or(i32::MIN),
                    stride: part.stride,
                    bytes: *bytes,
                    count,
                    writes,
                    reversed,
                };
                let end = at + size;
                let fits = kept.base != i32::MIN && end <= line + LINE;
                let mut is_kept = if fits { self.shadow.admits(line, &kept) } else { None };
                if is_kept.is_none() && self.shadow.is_open(line).1 {
                    self.play(line);
                    is_kept = if fits { self.shadow.admits(line, &kept) } else { None };
                }
                if is_kept != Some(true) {
                    self.settle(line);
                    let mut all = [0; 32];
                    let n = row.lanes.iter().filter(|lane| here >> **lane & 1 == 1).zip(&mut all).fold(
                        0,
                        |n, (lane, to)| {
                            *to = *lane;
                            n + 1
                        },
                    );
                    self.exactly(site, writes, &Row { lanes: &all[..n], ..*row });
                } else if writes && !self.shadow.page(line).messages.is_empty() {
                    for lane in row.lanes.iter().filter(|lane| here >> **lane & 1 == 1) {
                        (0..row.parts.len()).for_each(|part| {
                            let access = row.access(*lane, part);
                            overwrite(self.shadow.page(access.addr), access.addr, access.bytes);
                        });
                    }
                }
            }
        }
        true
    }

    /// From now on granules say what was done to the line of an address.
    pub(crate) fn settle(&mut self, addr: u64) {
        let line = addr & !(LINE - 1);
        let (has_rows, is_put_off) = self.shadow.is_open(addr);
        if is_put_off {
            self.play(addr);
        }
        if !has_rows {
            return;
        }
        for row in self.shadow.take_rows(addr) {
            let clock = Clock { warp: row.warp, cta: row.cta, ..Clock::default() };
            let (cta, warp) = (row.who >> 5, row.who & 31);
            let in_order = |i: u32| if row.reversed { 31 - i } else { i };
            for lane in (0..32).map(in_order).filter(|lane| row.lanes >> lane & 1 == 1) {
                let [warp, number] = [warp, lane].map(|n| u8::try_from(n).unwrap_or(0));
                let thread = Thread { cta, warp, lane: number };
                for part in 0..u64::from(row.count) {
                    let addr = line + row.place(lane) + part * u64::from(row.bytes);
                    let end = addr + u64::from(row.bytes);
                    for at in (addr & !3..end).step_by(4) {
                        let mask = bytes_of_granule(addr, end, at);
                        let tag = Tag::new(row.site, row.writes, !row.writes, 0, row.bytes, mask);
                        let new = Entry { time: row.time, who: row.who, lanes: thread.bit(), tag: tag.0 };
                        self.add_late(at, new, thread, &clock);
                    }
                }
            }
        }
    }

    /// Adds a weak access that was put off to a granule, with what its thread knew.
    pub(crate) fn add_late(&mut self, at: u64, new: Entry, thread: Thread, clock: &Clock) {
        let is_ordered = |e: Entry| clock.unordered(thread, e) == 0;
        let knows = Knows { since: clock.warp.max(clock.cta), learned: None, told: Time::MAX };
        if self.shadow.add_ordered(at, new, &mut self.list, knows, is_ordered, |_| false) == Added::Conflict {
            self.shadow.read(at, &mut self.list);
            shadow::add(&mut self.list, new);
            self.shadow.write(at, &self.list);
            self.list.clear();
        }
    }

    /// The same of all lines of a range.
    pub(crate) fn settle_range(&mut self, base: u64, bytes: u64) {
        self.shadow.lines_of_rows(base, bytes).into_iter().for_each(|at| self.settle(at));
    }

    /// The accesses of a row one by one, its lanes in their order.
    fn exactly(&mut self, site: u32, writes: bool, row: &Row<'_>) {
        let mut clocks = self.take_clocks(row.cta);
        let mut done = [0_u32; 8];
        let together = if writes { 0 } else { row.maybe_together() };
        if let Addrs::Each(addrs) = row.addrs {
            self.shadow.fetch(row.lanes.iter().map(|lane| addrs[*lane]));
        }
        for (i, lane) in row.lanes.iter().copied().enumerate() {
            for (part, done) in done.iter_mut().enumerate().take(row.parts.len()) {
                if *done >> lane & 1 == 1 {
                    continue;
                }
                let access = row.access(lane, part);
                let now = Now { access, site, strength: None, writes, reads: !writes };
                let place = self.plain(&now, row.cta, &mut clocks);
                if let Some(place) = place
                    && together >> lane & 1 == 1
                    && access.bytes == 4
                {
                    let mut others = 0;
                    let of = |lane: usize| clocks.get(row.first + lane);
                    for other in row.lanes[i + 1..].iter().copied().filter(|other| together >> other & 1 == 1) {
                        if row.addrs.of(other) == row.addrs.of(lane)
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
        self.settle(addr);
        while at < end {
            let tag = Tag::new(now.site, now.writes, now.reads, 0, bytes, bytes_of_granule(addr, end, at));
            let who = thread.cta << 5 | u32::from(thread.warp);
            let new = Entry { time: self.now, who, lanes: thread.bit(), tag: tag.0 };
            let added = clocks.get(number).map_or(Added::Conflict, |clock| {
                let is_ordered = |e: Entry| clock.unordered(thread, e) == 0;
                let knows = Knows { since: clock.warp.max(clock.cta), learned: None, told: Time::MAX };
                self.shadow.add_ordered(at, new, &mut self.list, knows, is_ordered, |_| false)
            });
            match added {
                Added::Conflict => {
                    self.put_clocks(cta, std::mem::take(clocks));
                    self.compare_granule(now, at, new);
                    *clocks = self.take_clocks(cta);
                    place = None;
                }
                Added::Done | Added::Last(_) => place = None,
                Added::At(found) => place = Some(found),
            }
            at += 4;
        }
        place
    }

    fn take_clocks(&mut self, cta: u32) -> Vec<Clock> {
        self.ctas.get_mut(cta).map_or_else(Vec::new, |cta| std::mem::take(&mut cta.clocks))
    }

    fn put_clocks(&mut self, cta: u32, clocks: Vec<Clock>) {
        if let Some(cta) = self.ctas.get_mut(cta) {
            cta.clocks = clocks;
        }
    }
}

/// Those of the lanes, at even distances from a base, that access a line, `next` being one of them and the first or the last of all.
fn lanes_of_line(base: u64, stride: u64, lanes: u32, line: u64, next: u32, reversed: bool) -> u32 {
    if stride == 0 {
        return lanes;
    }
    let at = base.wrapping_add(stride * u64::from(next));
    let steps = if reversed { (at - line) / stride } else { (line + LINE - 1 - at) / stride };
    let steps = u32::try_from(steps).unwrap_or(31).min(31);
    let (first, last) = if reversed { (next.saturating_sub(steps), next) } else { (next, (next + steps).min(31)) };
    lanes & (u32::MAX << first) & (u32::MAX >> (31 - last))
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
            let bytes = [1, 4, 4, 4, 8, 16][usize::try_from(random(6)).unwrap()];
            let parts = if random(3) == 0 { vec![(0, bytes), (bytes.into(), bytes)] } else { vec![(0, bytes)] };
            let size = u64::from(bytes) * parts.len() as u64;
            let (base, step, turn) = (random(3) * 64, random(3), random(2) * 15 + 16);
            let mut addrs = [0; 32];
            (0..32_u64).zip(&mut addrs).for_each(|(lane, at)| *at = base + lane % turn * step * size);
            // Here and there, also where hardly anybody writes.
            if random(3) == 0 {
                let start = [0, 4096, 8192, 8192][usize::try_from(random(4)).unwrap()];
                addrs.iter_mut().for_each(|at| *at = start + random(2048 / size) * size);
            }
            let does = if addrs[0] >= 8192 && random(20) > 0 { Does::Read } else { does };
            let site = audit.site(Site { span, does, order, scope, space: StateSpace::Global, ..Site::NONE });
            let mask = [u64::from(u32::MAX), random(1 << 32), 1 << random(32)][usize::try_from(random(3)).unwrap()];
            let mut lanes: Vec<usize> = (0..32).filter(|lane| mask >> lane & 1 == 1).collect();
            if seed & 1 == 1 {
                lanes.reverse();
            }
            if seed.is_multiple_of(3) && random(16) == 0 {
                let strong = Site { span, does: Does::Update, order: Order::AcqRel, scope, ..Site::NONE };
                let strong = audit.site(Site { space: StateSpace::Global, ..strong });
                let addr = base + 4 * random(16);
                audit.access(strong, Access { thread: Thread::new(cta, 32 * warp), addr, bytes: 4, ..Access::NONE });
                audit.end_op();
            }
            let same = std::array::from_fn(|_| u8::try_from(random(4)).unwrap());
            let row =
                Row { cta, first: 32 * warp, lanes: &lanes, addrs: Addrs::Each(&addrs), parts: &parts, same: &same };
            if whole {
                audit.row(site, &row);
            } else {
                row.all().for_each(|access| audit.access(site, access));
            }
            audit.end_op();
        }
        let mut left = Vec::new();
        audit.settle_range(0, 1 << 20);
        for at in (0..3 * 4096).step_by(4) {
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
