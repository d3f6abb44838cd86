//! The accesses to a granule that are remembered, as a chain, and how one more is added to them.

use super::{Cell, Entry, FEW, MOST, Passed, Shadow, Tag, add, leave, may_tell};
use crate::known::Time;

/// Some of the accesses to a granule, by their places: a bit each.
#[derive(Default)]
struct Bits([u64; MOST.div_ceil(64)]);

impl Bits {
    fn add(&mut self, place: usize) {
        if let Some(word) = self.0.get_mut(place / 64) {
            *word |= 1 << (place % 64);
        }
    }

    fn join(&mut self, other: &Bits) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }

    fn has(&self, place: usize) -> bool {
        self.0.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 == 1)
    }
}

/// What became of an access that is added to those of a granule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Added {
    /// Nothing: it may race with one of them.
    Conflict,
    /// It is one of them.
    Done,
    /// It is a strong one at this place: see [`Turn`]. Nobody else adds other lanes to it.
    Last(u32),
    /// It is the entry of this place, 0 for the first, and no other entry of its warp is later than `since`.
    At(u32),
}

/// What a thread knows that adds an access.
#[derive(Clone, Copy, Debug)]
pub struct Knows {
    /// All that its warp did until then.
    pub since: Time,
    /// How often it has learned something, if it may do the same access again and again.
    pub learned: Option<u32>,
    /// What it did later by itself and by strong accesses nobody knows of who does not know of this one too.
    pub told: Time,
}

/// A strong access to a granule: while nothing changes there but by the same, it is known what the next one of the kind does.
///
/// A write of a thread that has learned nothing since takes the place of its last one, and all others stay as they are. A read of a lane joins that of another
/// lane of its warp at the same time, if that was seen to race with nothing because all writes there are strong: so it is for each lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Turn {
    at: u64,
    who: u32,
    /// Of a write: the lane, and how often it has learned something. Of a read: 0, and the time.
    lanes: u32,
    learned: u32,
    /// Its tag; of a write without its site, and whether it reads.
    kind: u32,
}

/// As many granules are looked at so.
pub(super) const TURNS: usize = 16;

fn slot_of(at: u64) -> usize {
    usize::try_from(at / 4 % TURNS as u64).unwrap_or(0)
}

impl Turn {
    fn of(at: u64, new: Entry, learned: u32) -> Option<Turn> {
        let tag = new.tag();
        let turn = match tag.writes() {
            true => Turn { at, who: new.who, lanes: new.lanes, learned, kind: new.tag & 0x7ff },
            false => Turn { at, who: new.who, lanes: 0, learned: new.time, kind: new.tag },
        };
        (tag.strength() > 0).then_some(turn)
    }

    fn slot(&self) -> usize {
        slot_of(self.at)
    }
}

impl Shadow {
    /// Adds an access that races with none: what is left is the same as after [`few`](Shadow::few), [`read`](Shadow::read), [`add`] and
    /// [`write`](Shadow::write) in `race`. `is_ordered`: whether all of an entry comes before the access; `is_strong`: whether the two are morally
    /// strong, so that they are no race anyhow. `list`: empty, and left so.
    #[inline]
    pub fn add_ordered(
        &mut self,
        at: u64,
        new: Entry,
        list: &mut Vec<Entry>,
        knows: Knows,
        is_ordered: impl Fn(Entry) -> bool,
        is_strong: impl Fn(Entry) -> bool,
    ) -> Added {
        let page = self.find(at);
        let cell = self.cell_at(page, at);
        if cell.entry.time == 0 {
            cell.entry = new;
            return Added::At(0);
        }
        let cell = *cell;
        let turn = knows.learned.and_then(|learned| Turn::of(at, new, learned));
        if let Some(turn) = turn
            && let Some((_, place)) = self.turns[turn.slot()].filter(|(before, _)| *before == turn)
        {
            let there = &mut self.slot(page, at, place).entry;
            *there = if new.tag().writes() { new } else { Entry { lanes: there.lanes | new.lanes, ..*there } };
            return Added::Done;
        }
        self.forget_turn(at);
        let added = self.add_to(cell, at, new, list, knows, is_ordered, is_strong);
        if let (Some(turn), Added::Last(place)) = (turn, added) {
            self.turns[turn.slot()] = Some((turn, place));
        }
        added
    }

    /// Lanes do what another one of their warp just did, if that is known to race with nothing whatever a lane knows. Says whether they were added to it.
    pub fn joins_turn(&mut self, at: u64, new: Entry) -> bool {
        let turn = Turn::of(at, new, new.time).filter(|_| !new.tag().writes());
        let is_it = |turn: &Turn| self.turns[turn.slot()].filter(|(before, _)| before == turn);
        let Some((_, place)) = turn.as_ref().and_then(is_it) else { return false };
        let page = self.find(at);
        self.slot(page, at, place).entry.lanes |= new.lanes;
        true
    }

    /// Something else is remembered of a granule.
    #[inline]
    pub(super) fn forget_turn(&mut self, at: u64) {
        let last = &mut self.turns[slot_of(at)];
        if last.is_some_and(|(turn, _)| turn.at == at) {
            *last = None;
        }
    }

    /// The same as [`add_ordered`](Shadow::add_ordered) where something is remembered of the granule.
    #[allow(
        clippy::too_many_arguments,
        reason = "the second half of `add_ordered`, which is small enough to be inlined without it"
    )]
    fn add_to(
        &mut self,
        cell: Cell,
        at: u64,
        new: Entry,
        list: &mut Vec<Entry>,
        knows: Knows,
        is_ordered: impl Fn(Entry) -> bool,
        is_strong: impl Fn(Entry) -> bool,
    ) -> Added {
        let first = cell.entry;
        if first.is_like(&new) && new.lanes & !first.lanes == 0 {
            return Added::Done;
        }
        let (mask, writes, strength) = (new.tag().mask(), new.tag().writes(), new.tag().strength());
        let may_be_covered = |e: Entry| {
            let tag = e.tag();
            let same = || (tag.strength(), tag.bytes(), e.cta()) == (strength, new.tag().bytes(), new.cta());
            tag.mask() & !mask == 0 && (writes || !tag.writes()) && (strength == 0 || same())
        };
        let conflicts = |e: Entry| e.tag().mask() & mask != 0 && (writes || e.tag().writes());
        let (mut n, mut covered, mut like, mut is_alone) = (0, 0, None, true);
        // Whatever a lane of the warp knows, it may do it.
        let mut is_strong_anyhow = true;
        // Strong writes, and strong reads that may have to tell of them.
        let (mut has_writes, mut has_seen) = (false, false);
        let (mut passed, mut of_others) = (Passed::default(), 0);
        // Those that are covered, a bit each.
        let (mut gone, mut was_passed, mut oldest) = (Bits::default(), Bits::default(), (Time::MAX, 0));
        let (mut here, mut place) = (cell, 0);
        // The same by any other block would be strong, and so not be covered either.
        let is_wide = strength > 0 && is_strong(Entry { who: !new.who, ..new });
        loop {
            let e = here.entry;
            if is_wide && (e.tag ^ new.tag) & Tag::KIND == 0 && e.cta() != new.cta() {
                if e.time < oldest.0 {
                    oldest = (e.time, n);
                }
                of_others |= e.tag;
                n += 1;
                let Some(next) = node(&mut self.nodes, here.next) else { break };
                (place, here) = (here.next, *next);
                continue;
            }
            let is_strong_write = e.tag().strength() > 0 && e.tag().writes();
            has_writes |= is_strong_write;
            let covers = may_be_covered(e);
            // Of atomics of many blocks on one place it is not asked whether they are in order.
            let is_race = conflicts(e) && !is_strong(e);
            let ordered = (is_race || covers) && is_ordered(e);
            if is_race && !ordered {
                return Added::Conflict;
            }
            is_strong_anyhow &= !is_race;
            if e.is_like(&new) {
                like = Some(place);
            } else if e.who == new.who && e.time > knows.since {
                is_alone = false;
            }
            if covers && ordered {
                covered += 1;
                gone.add(n);
                has_seen |= may_tell(e, new, knows.told);
            } else if is_strong_write && passed.add(e, new) {
                was_passed.add(n);
            }
            if e.time < oldest.0 {
                oldest = (e.time, n);
            }
            n += 1;
            let Some(next) = node(&mut self.nodes, here.next) else { break };
            (place, here) = (here.next, *next);
        }
        if Tag(of_others).writes() {
            (has_writes, passed.n) = (true, 0);
        }
        if passed.are_last() {
            if like.is_some() {
                self.cover(at, new, list, knows.told, |e| may_be_covered(e) && is_ordered(e));
                return Added::Done;
            }
            covered += passed.n;
            gone.join(&was_passed);
        }
        let last = place;
        let is_last = strength > 0 && (writes || is_strong_anyhow);
        let added = |place| match (is_last, is_alone) {
            (true, _) => Added::Last(place),
            (false, true) => Added::At(place),
            (false, false) => Added::Done,
        };
        if let Some(place) = like {
            let mut is_read = || strength > 0 || n <= FEW && self.come_before(cell, |e| !conflicts(e) || is_ordered(e));
            if covered == 0 || !writes && is_read() {
                self.add_lanes_at(at, place, new.lanes);
                return if writes && strength > 0 { Added::Done } else { added(place) };
            }
        }
        if has_writes && has_seen {
            self.cover(at, new, list, knows.told, |e| may_be_covered(e) && is_ordered(e));
            return Added::Done;
        }
        if covered == n {
            self.give(cell.next);
            *self.cell(at) = Cell { entry: new, next: 0 };
            return added(0);
        }
        if covered == 0 && n == MOST {
            gone.add(oldest.1);
        }
        if (covered > 0 || n == MOST) && like.is_none() {
            let place = self.replace(at, &gone, new);
            return if is_last { Added::Last(place) } else { Added::Done };
        }
        if covered == 0 && n < MOST {
            let to = self.take();
            self.put(to, Cell { entry: new, next: 0 });
            match node(&mut self.nodes, last) {
                Some(node) => node.next = to,
                None => self.cell(at).next = to,
            }
            return added(to);
        }
        self.cover(at, new, list, knows.told, |e| may_be_covered(e) && is_ordered(e));
        Added::Done
    }

    /// Adds an access that covers some to the list of all.
    fn cover(&mut self, at: u64, new: Entry, list: &mut Vec<Entry>, told: Time, covers: impl Fn(Entry) -> bool) {
        self.read(at, list);
        leave(list, new, told, covers);
        add(list, new);
        self.write(at, list);
        list.clear();
    }

    /// Whether something holds of all accesses of a chain.
    fn come_before(&mut self, mut cell: Cell, holds: impl Fn(Entry) -> bool) -> bool {
        while holds(cell.entry) {
            match node(&mut self.nodes, cell.next) {
                Some(next) => cell = *next,
                None => return true,
            }
        }
        false
    }

    /// Takes some accesses out of those of a granule, by their places, and adds another one at the end: its place.
    fn replace(&mut self, at: u64, gone: &Bits, new: Entry) -> u32 {
        let page = self.find(at);
        let Some(last) = self.unlink(page, at, gone) else {
            *self.cell_at(page, at) = Cell { entry: new, next: 0 };
            return 0;
        };
        let to = self.take();
        self.put(to, Cell { entry: new, next: 0 });
        self.slot(page, at, last).next = to;
        to
    }

    /// Takes some accesses out of those of a granule, by their places: the place of the last one that is left. `None` if none is; then they stand there as before.
    fn unlink(&mut self, page: usize, at: u64, gone: &Bits) -> Option<u32> {
        let (mut last, mut i) = (0, 1);
        let mut next = self.cell_at(page, at).next;
        while next != 0 {
            let after = self.slot(page, at, next).next;
            if gone.has(i) {
                self.slot(page, at, last).next = after;
                self.give_one(next);
            } else {
                last = next;
            }
            (next, i) = (after, i + 1);
        }
        if gone.has(0) {
            // The second one comes first then.
            let second = self.cell_at(page, at).next;
            *self.cell_at(page, at) = node(&mut self.nodes, second).copied()?;
            self.give_one(second);
            last = if last == second { 0 } else { last };
        }
        Some(last)
    }

    /// Takes lanes that read by a strong access out of those that did the same before. `hides`: those of some lanes of whom nobody knows what they did at a time, but
    /// who knows what they do now.
    pub fn take_out(&mut self, at: u64, new: Entry, hides: impl Fn(Time, u32) -> u32) {
        let page = self.find(at);
        let (mut place, mut n, mut gone, mut is_gone) = (0, 0, Bits::default(), false);
        loop {
            let Cell { entry, next } = self.slot(page, at, place);
            if (entry.who, entry.tag) == (new.who, new.tag) && entry.time < new.time && entry.lanes & new.lanes != 0 {
                entry.lanes &= !hides(entry.time, entry.lanes & new.lanes);
                if entry.lanes == 0 {
                    gone.add(n);
                    is_gone = true;
                }
            }
            (place, n) = (*next, n + 1);
            if place == 0 {
                break;
            }
        }
        if is_gone {
            self.forget_turn(at);
            self.unlink(page, at, &gone);
        }
    }

    /// A place of a granule: 0 for the first, or else the number of a node.
    fn slot(&mut self, page: usize, at: u64, place: u32) -> &mut Cell {
        match place.checked_sub(1).and_then(|i| usize::try_from(i).ok()).filter(|i| *i < self.nodes.len()) {
            Some(i) => &mut self.nodes[i],
            None => self.cell_at(page, at),
        }
    }

    /// A chain of accesses in the place of an old one.
    pub(super) fn chain(&mut self, old: u32, list: &[Entry]) -> u32 {
        let Some((entry, rest)) = list.split_first() else {
            self.give(old);
            return 0;
        };
        let (mut at, mut left) = match node(&mut self.nodes, old) {
            Some(node) => (old, node.next),
            None => (self.take(), 0),
        };
        let first = at;
        let mut entry = *entry;
        for next in rest {
            let (to, after) = match node(&mut self.nodes, left) {
                Some(node) => (left, node.next),
                None => (self.take(), 0),
            };
            self.put(at, Cell { entry, next: to });
            (at, left, entry) = (to, after, *next);
        }
        self.put(at, Cell { entry, next: 0 });
        self.give(left);
        first
    }

    fn put(&mut self, at: u32, cell: Cell) {
        if let Some(node) = node(&mut self.nodes, at) {
            *node = cell;
        }
    }

    /// A node that is in no chain.
    fn take(&mut self) -> u32 {
        if let Some(node) = node(&mut self.nodes, self.free) {
            return std::mem::replace(&mut self.free, node.next);
        }
        self.nodes.push(Cell::default());
        // More than that is more than the room that there is.
        u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)
    }

    /// Takes a chain back.
    pub(super) fn give(&mut self, mut chain: u32) {
        while chain != 0 {
            chain = self.give_one(chain);
        }
    }

    /// Takes a node back: the one that followed.
    fn give_one(&mut self, number: u32) -> u32 {
        let Some(node) = node(&mut self.nodes, number) else { return 0 };
        let next = std::mem::replace(&mut node.next, self.free);
        self.free = number;
        next
    }
}

/// A node by 1 + its number.
pub(super) fn node(nodes: &mut [Cell], at: u32) -> Option<&mut Cell> {
    nodes.get_mut(usize::try_from(at.checked_sub(1)?).ok()?)
}
