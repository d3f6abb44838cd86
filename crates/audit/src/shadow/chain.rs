//! The accesses to a granule that are remembered, as a chain, and how one more is added to them.

use super::{Cell, Entry, FEW, MOST, Shadow, add};
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
    /// It is the last one, at this place, and other lanes may not be added to it.
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
}

/// A strong write of a thread to a granule, and what the thread knew: while nothing changes there but by itself, and it learns nothing, the next one of the
/// kind takes the place of this one, and all others stay as they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Turn {
    at: u64,
    who: u32,
    lanes: u32,
    learned: u32,
    /// Its tag without its site, and whether it reads.
    kind: u32,
}

/// As many granules are looked at so.
pub(super) const TURNS: usize = 16;

fn slot_of(at: u64) -> usize {
    usize::try_from(at / 4 % TURNS as u64).unwrap_or(0)
}

impl Turn {
    fn of(at: u64, new: Entry, learned: u32) -> Option<Turn> {
        let (tag, kind) = (new.tag(), new.tag & 0x7ff);
        (tag.writes() && tag.strength() > 0).then_some(Turn { at, who: new.who, lanes: new.lanes, learned, kind })
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
            self.slot(page, at, place).entry = new;
            return Added::Done;
        }
        self.forget_turn(at);
        let added = self.add_to(cell, at, new, list, knows.since, is_ordered, is_strong);
        if let (Some(turn), Added::Last(place)) = (turn, added) {
            self.turns[turn.slot()] = Some((turn, place));
        }
        added
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
        since: Time,
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
        // Those that are covered, a bit each.
        let (mut gone, mut oldest) = (Bits::default(), (Time::MAX, 0));
        let (mut here, mut place) = (cell, 0);
        loop {
            let e = here.entry;
            let covers = may_be_covered(e);
            // Of atomics of many blocks on one place it is not asked whether they are in order.
            let is_race = conflicts(e) && !is_strong(e);
            let ordered = (is_race || covers) && is_ordered(e);
            if is_race && !ordered {
                return Added::Conflict;
            }
            if e.is_like(&new) {
                like = Some(place);
            } else if e.who == new.who && e.time > since {
                is_alone = false;
            }
            if covers && ordered {
                covered += 1;
                gone.add(n);
            }
            if e.time < oldest.0 {
                oldest = (e.time, n);
            }
            n += 1;
            let Some(next) = node(&mut self.nodes, here.next) else { break };
            (place, here) = (here.next, *next);
        }
        let last = place;
        let added = |place| if is_alone { Added::At(place) } else { Added::Done };
        if let Some(place) = like
            && (covered == 0 || !writes && n <= FEW && self.come_before(cell, |e| !conflicts(e) || is_ordered(e)))
        {
            self.add_lanes_at(at, place, new.lanes);
            return added(place);
        }
        if covered == n {
            self.give(cell.next);
            *self.cell(at) = Cell { entry: new, next: 0 };
            return if writes && strength > 0 { Added::Last(0) } else { added(0) };
        }
        if covered == 0 && n == MOST {
            gone.add(oldest.1);
        }
        if (covered > 0 || n == MOST) && like.is_none() {
            return Added::Last(self.replace(at, &gone, new));
        }
        if covered == 0 && n < MOST {
            let to = self.take();
            self.put(to, Cell { entry: new, next: 0 });
            match node(&mut self.nodes, last) {
                Some(node) => node.next = to,
                None => self.cell(at).next = to,
            }
            return if writes && strength > 0 { Added::Last(to) } else { added(to) };
        }
        self.read(at, list);
        list.retain(|e| !(may_be_covered(*e) && is_ordered(*e)));
        add(list, new);
        self.write(at, list);
        list.clear();
        Added::Done
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
        let mut here = *self.cell_at(page, at);
        let (mut to, mut i) = (0, 0);
        loop {
            if !gone.has(i) {
                let kept = self.slot(page, at, to);
                kept.entry = here.entry;
                to = kept.next;
            }
            let Some(next) = node(&mut self.nodes, here.next) else { break };
            (here, i) = (*next, i + 1);
        }
        let last = self.slot(page, at, to);
        let rest = std::mem::take(&mut last.next);
        last.entry = new;
        self.give(rest);
        to
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
        while let Some(node) = node(&mut self.nodes, chain) {
            let next = std::mem::replace(&mut node.next, self.free);
            self.free = chain;
            chain = next;
        }
    }
}

/// A node by 1 + its number.
pub(super) fn node(nodes: &mut [Cell], at: u32) -> Option<&mut Cell> {
    nodes.get_mut(usize::try_from(at.checked_sub(1)?).ok()?)
}
