//! What is remembered of accesses, beside the memory that they touched: nothing for memory that nobody touched.
//!
//! A *granule* is four aligned bytes. It has the accesses to it that a later one may still conflict with, as [`Entry`]s: one in place, so that five
//! bytes are taken for each byte of a page, more in a chain. What strong writes tell those who read them lies beside, by address ([`Message`]).
//!
//! A *line* of 32 granules has rows of lanes instead as long as that says all (`line`).

mod chain;
mod messages;

use handloom_diag::hash::FastMap;

use crate::bag::Message;
use crate::known::Time;
use crate::later::{Head, Read};
use crate::line::{LINE, Line, LineRow};
pub use chain::{Added, Knows};
use chain::{TURNS, Turn, node};
use messages::Messages;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// Granules of a page.
const GRANULES: usize = 1024;

/// Granules of a line.
const OF_LINE: usize = 32;

/// Most accesses that are remembered of a granule.
// Choice: what is forgotten then is the oldest. A race with it alone is missed; nothing is reported that is none.
const MOST: usize = 130;

/// As many pages are found without a look at the map.
const LATELY: usize = 512;

/// As many accesses as [`Shadow::few`] looks at.
const FEW: usize = 4;

/// Accesses of lanes of one warp by one instruction, between two events that order something.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Entry {
    /// When; 0 for no entry.
    pub time: Time,
    /// Number of the block, times 32, and of the warp.
    pub who: u32,
    /// The lanes.
    pub lanes: u32,
    /// What: see [`Tag`].
    pub tag: u32,
}

impl Entry {
    /// The block.
    pub fn cta(self) -> u32 {
        self.who >> 5
    }

    /// The warp.
    pub fn warp(self) -> u8 {
        self.who.to_le_bytes()[0] & 31
    }

    /// What it is.
    pub fn tag(self) -> Tag {
        Tag(self.tag)
    }
}

/// What an access is, in 32 bits: the number of its site, its size, the bytes of the granule, and the scope of a strong one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag(pub u32);

/// Bits of the number of a site.
pub const SITE_BITS: u32 = 20;

impl Tag {
    /// The bits of the size and the scope.
    pub const KIND: u32 = 0x3f << 4;

    /// `strength`: 0 for weak, else 1 + the number of the scope. `bytes`: a power of two up to 16. `mask`: bytes of the granule.
    pub fn new(site: u32, writes: bool, reads: bool, strength: u8, bytes: u8, mask: u8) -> Tag {
        let size = bytes.trailing_zeros();
        let head = u32::from(mask & 15) | size << 4 | u32::from(strength) << 7;
        Tag(head | u32::from(writes) << 10 | u32::from(reads) << 11 | site << 12)
    }

    /// Bytes of the granule.
    pub fn mask(self) -> u32 {
        self.0 & 15
    }

    /// Bytes of the access.
    pub fn bytes(self) -> u32 {
        1 << (self.0 >> 4 & 7)
    }

    /// 0 for weak, else 1 + the number of the scope.
    pub fn strength(self) -> u32 {
        self.0 >> 7 & 7
    }

    /// Whether it writes.
    pub fn writes(self) -> bool {
        self.0 >> 10 & 1 == 1
    }

    /// Whether it reads.
    pub fn reads(self) -> bool {
        self.0 >> 11 & 1 == 1
    }

    /// Number of its site.
    pub fn site(self) -> u32 {
        self.0 >> 12
    }
}

/// The accesses to a granule: one in place, the others in a chain of such.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    entry: Entry,
    /// 1 + the number of the next one; 0 for none.
    next: u32,
}

impl Entry {
    /// Whether another one is the same but for its lanes.
    pub fn is_like(&self, other: &Entry) -> bool {
        (self.time, self.who, self.tag) == (other.time, other.who, other.tag)
    }
}

/// Adds an access to those of a granule.
pub fn add(list: &mut Vec<Entry>, new: Entry) {
    if let Some(like) = list.iter_mut().find(|e| e.is_like(&new)) {
        like.lanes |= new.lanes;
        return;
    }
    if list.len() >= MOST {
        let oldest = (0..list.len()).min_by_key(|i| list[*i].time).unwrap_or(0);
        list.remove(oldest);
    }
    list.push(new);
}

/// Whether a strong read that a later read covers may tell others of a write that they do not hear of by the later one. `told`: what the thread of that did later by
/// itself and by strong accesses nobody knows of who does not know of the later one.
fn may_tell(e: Entry, new: Entry, told: Time) -> bool {
    let is_hidden = (e.who, e.lanes) == (new.who, new.lanes) && e.time > told;
    !new.tag().writes() && e.tag().strength() > 0 && !is_hidden
}

/// Strong writes that a new access does not cover, since its thread knows nothing of them.
///
/// Those of its warp that are atomics at the same site as the new one, as of lanes that had a lock before, may be left out: who comes after the new one
/// comes after them too, since it has read what they left, and with the others that one races at the same place. But not if they may have seen other strong writes.
#[derive(Default)]
struct Passed {
    /// How many of them may be left out, and the last of these.
    n: usize,
    last: Time,
    /// The first of the others.
    first_other: Option<Time>,
}

impl Passed {
    /// Whether it is of the same warp, by the same site.
    fn is_one(e: Entry, new: Entry) -> bool {
        let is_atomic = e.tag().strength() > 0 && e.tag().writes() && e.tag().reads();
        is_atomic && (e.who, e.tag) == (new.who, new.tag) && e.time < new.time
    }

    /// One more. Says whether it may be left out.
    fn add(&mut self, e: Entry, new: Entry) -> bool {
        let is_one = Passed::is_one(e, new);
        if is_one {
            (self.n, self.last) = (self.n + 1, self.last.max(e.time));
        } else {
            // Those of other blocks are many where there are some.
            let time = if e.cta() == new.cta() { e.time } else { 0 };
            self.first_other = Some(self.first_other.map_or(time, |first| first.min(time)));
        }
        is_one
    }

    /// Whether there are some, all of them before the others.
    fn are_last(&self) -> bool {
        self.n > 0 && self.first_other.is_none_or(|first| first > self.last)
    }
}

/// Takes those out of the accesses to a granule that a new one covers. Strong reads stay that may tell of strong writes of other threads: of those of some lanes that
/// read the same bytes in the same way after the same writes, the first.
pub fn leave(list: &mut Vec<Entry>, new: Entry, told: Time, covers: impl Fn(Entry) -> bool) {
    let is_strong_write = |e: &Entry| e.tag().strength() > 0 && e.tag().writes();
    if new.tag().writes() {
        let mut passed = Passed::default();
        list.iter().filter(|e| is_strong_write(e) && !covers(**e)).for_each(|e| _ = passed.add(*e, new));
        let are_last = passed.are_last();
        return list.retain(|e| !(covers(*e) || are_last && Passed::is_one(*e, new)));
    }
    if !list.iter().any(is_strong_write) {
        return list.retain(|e| !covers(*e));
    }
    let mut i = 0;
    while let Some(e) = list.get(i).copied() {
        let is_seen = |w: &&Entry| {
            let is_own = (w.who, w.lanes) == (e.who, e.lanes);
            is_strong_write(w) && w.tag().mask() & e.tag().mask() != 0 && w.time <= e.time && !is_own
        };
        let alike = Tag::KIND | 15;
        let tells = || {
            let Some(last) = list.iter().filter(is_seen).map(|w| w.time).max() else { return false };
            let does = |z: &Entry| z.who == e.who && e.lanes & !z.lanes == 0 && (z.tag ^ e.tag) & alike == 0;
            !list[..i].iter().any(|z| does(z) && !z.tag().writes() && z.time >= last)
        };
        if !covers(e) || may_tell(e, new, told) && tells() {
            i += 1;
        } else {
            list.remove(i);
        }
    }
}

/// What is remembered of a page.
#[derive(Debug)]
pub struct Page {
    /// By granule; none as long as all that there is are rows.
    cells: Box<[Cell]>,
    /// Lines whose granules say what was done, a bit each.
    exact: u32,
    /// By line; none if no row was kept.
    lines: Box<[Line]>,
    /// What strong writes in it tell, by address.
    pub messages: Messages,
    /// Reads that were put off, none of them once it is written.
    pub later: Vec<Read>,
    /// Somebody has written it.
    pub is_written: bool,
}

impl Page {
    fn new() -> Page {
        Page {
            cells: Box::default(),
            exact: 0,
            lines: Box::default(),
            messages: Messages::default(),
            later: Vec::new(),
            is_written: false,
        }
    }

    /// What a strong write to an address tells.
    #[inline]
    pub fn message(&self, addr: u64) -> Option<&Message> {
        self.messages.get(addr)
    }
}

/// The line of an address in its page.
fn line_of(addr: u64) -> usize {
    usize::try_from(addr % PAGE / LINE).unwrap_or(0)
}

/// What is remembered of all memory.
#[derive(Debug)]
pub struct Shadow {
    /// Where the pages are.
    places: FastMap<u64, usize>,
    pages: Vec<Page>,
    /// Of those, which are no page's.
    free_pages: Vec<usize>,
    /// Pages that were asked for lately, and their places: at most one for each rest of their numbers.
    lately: Box<[(u64, usize)]>,
    /// What stands in chains.
    nodes: Vec<Cell>,
    /// 1 + the first of those that are in no chain.
    free: u32,
    /// Granules that a thread writes again and again by strong accesses, and the place of its last one.
    turns: [Option<(Turn, u32)>; TURNS],
    /// Pages with granules, and with lines.
    n_exact: usize,
    n_lined: usize,
    /// Rows of lines.
    n_rows: usize,
    /// Rows of reads that were put off, and how many reads that is.
    pub heads: Vec<Head>,
    pub n_later: usize,
}

/// No page has this number.
const NO_PAGE: (u64, usize) = (u64::MAX, 0);

impl Default for Shadow {
    fn default() -> Shadow {
        Shadow {
            places: FastMap::default(),
            pages: Vec::new(),
            free_pages: Vec::new(),
            lately: vec![NO_PAGE; LATELY].into(),
            nodes: Vec::new(),
            free: 0,
            turns: [None; TURNS],
            n_exact: 0,
            n_lined: 0,
            n_rows: 0,
            heads: Vec::new(),
            n_later: 0,
        }
    }
}

impl Shadow {
    /// Bytes that a page takes, chains and messages left out.
    pub const PAGE_COST: u64 = (GRANULES * size_of::<Cell>()) as u64;

    /// Bytes that all of it takes, messages left out.
    pub fn cost(&self) -> u64 {
        let of = |n: usize, bytes: u64| bytes.saturating_mul(u64::try_from(n).unwrap_or(u64::MAX));
        let kept = [
            of(self.n_exact, Shadow::PAGE_COST),
            of(self.nodes.len(), size_of::<Cell>() as u64),
            of(self.n_lined, (GRANULES / OF_LINE * size_of::<Line>()) as u64),
            of(self.n_rows, size_of::<LineRow>() as u64),
            of(self.heads.len(), size_of::<Head>() as u64),
            of(self.n_later, size_of::<Read>() as u64),
        ];
        kept.into_iter().fold(0, u64::saturating_add)
    }

    /// The granule of an address.
    fn cell(&mut self, addr: u64) -> &mut Cell {
        let place = self.find(addr);
        self.cell_at(place, addr)
    }

    /// The same on a page that was found.
    #[inline]
    fn cell_at(&mut self, place: usize, addr: u64) -> &mut Cell {
        let page = &mut self.pages[place];
        if page.cells.is_empty() {
            page.cells = vec![Cell::default(); GRANULES].into();
            self.n_exact += 1;
        }
        &mut page.cells[usize::try_from(addr % PAGE / 4).unwrap_or(0)]
    }

    /// Whether granules do not say yet what was done to the line of an address, and reads of its page were put off.
    #[inline]
    pub fn is_open(&mut self, addr: u64) -> (bool, bool) {
        let page = self.page(addr);
        (page.exact >> line_of(addr) & 1 == 0, !page.later.is_empty())
    }

    /// The first addresses of pages of which reads were put off.
    pub fn put_off_pages(&self) -> Vec<u64> {
        let all = self.places.iter().filter(|(_, place)| !self.pages[**place].later.is_empty());
        let mut all: Vec<u64> = all.map(|(number, _)| number * PAGE).collect();
        all.sort_unstable();
        all
    }

    /// Keeps a row of the line of an address, if it races with nothing there and the line is one of rows. Says whether; `None` if nothing was looked at, since
    /// reads of the page were put off.
    pub fn admits(&mut self, addr: u64, row: &LineRow) -> Option<bool> {
        let line = line_of(addr);
        let page = self.page(addr);
        if !page.later.is_empty() {
            return None;
        }
        page.is_written |= row.writes;
        if page.exact >> line & 1 == 1 {
            return Some(false);
        }
        let is_new = page.lines.is_empty();
        if is_new {
            page.lines = (0..GRANULES / OF_LINE).map(|_| Line::default()).collect();
        }
        let line = &mut page.lines[line];
        let before = line.rows.len();
        let admits = line.admits(row);
        let after = line.rows.len();
        self.n_rows = (self.n_rows + after).saturating_sub(before);
        self.n_lined += usize::from(is_new);
        Some(admits)
    }

    /// From now on granules say what is done to the line of an address: the rows that were kept, which the caller adds.
    pub fn take_rows(&mut self, addr: u64) -> Vec<LineRow> {
        let line = line_of(addr);
        let page = self.page(addr);
        if page.exact >> line & 1 == 1 {
            return Vec::new();
        }
        page.exact |= 1 << line;
        let rows = page.lines.get_mut(line).map_or_else(Vec::new, |line| std::mem::take(&mut line.rows));
        self.n_rows -= rows.len();
        rows
    }

    /// The lines that have rows, among those of a range, by their first addresses, and pages of which reads were put off.
    pub fn lines_of_rows(&self, base: u64, bytes: u64) -> Vec<u64> {
        let end = base.saturating_add(bytes);
        let mut all = self.put_off_pages();
        all.retain(|at| at + PAGE > base && *at < end);
        for (number, place) in &self.places {
            let lines = (number * PAGE..).step_by(usize::try_from(LINE).unwrap_or(1)).zip(&self.pages[*place].lines);
            let some = lines.filter(|(at, line)| !line.rows.is_empty() && at + LINE > base && *at < end);
            all.extend(some.map(|(at, _)| at));
        }
        all.sort_unstable();
        all
    }

    /// What is remembered of the page of an address.
    #[inline]
    pub fn page(&mut self, addr: u64) -> &mut Page {
        let place = self.find(addr);
        &mut self.pages[place]
    }

    /// Where the page of an address is.
    #[inline]
    fn find(&mut self, addr: u64) -> usize {
        let number = addr / PAGE;
        let slot = usize::try_from(number % LATELY as u64).unwrap_or(0);
        let (last, place) = self.lately[slot];
        if last == number {
            return place;
        }
        let place = self.place(number);
        self.lately[slot] = (number, place);
        place
    }

    /// Looks at the granules of addresses, one after the other and without a use for what is there, so that the memory of all of them is on its way at
    /// once. Changes nothing.
    pub fn fetch(&self, addrs: impl Iterator<Item = u64>) {
        let of = |addr: u64| {
            let number = addr / PAGE;
            let (last, place) = self.lately[usize::try_from(number % LATELY as u64).unwrap_or(0)];
            let page = self.pages.get(place).filter(|_| last == number)?;
            Some(page.cells.get(usize::try_from(addr % PAGE / 4).unwrap_or(0))?.next)
        };
        std::hint::black_box(addrs.fold(0, |all, addr| all | of(addr).unwrap_or(0)));
    }

    /// Where a page is, which may be new.
    fn place(&mut self, number: u64) -> usize {
        *self.places.entry(number).or_insert_with(|| {
            self.free_pages.pop().unwrap_or_else(|| {
                self.pages.push(Page::new());
                self.pages.len() - 1
            })
        })
    }

    /// Whether the first access of a granule that is remembered is the same as a new one, lanes included.
    pub fn has(&mut self, at: u64, new: Entry) -> bool {
        let first = self.cell(at).entry;
        first.is_like(&new) && new.lanes & !first.lanes == 0
    }

    /// The accesses to a granule, if they are at most four: how many, and which.
    pub fn few(&mut self, at: u64) -> Option<(usize, [Entry; FEW])> {
        let mut cell = *self.cell(at);
        let mut few = [Entry::default(); FEW];
        let mut n = 0;
        while cell.entry.time > 0 {
            *few.get_mut(n)? = cell.entry;
            n += 1;
            match node(&mut self.nodes, cell.next) {
                Some(node) => cell = *node,
                None => break,
            }
        }
        Some((n, few))
    }

    /// Adds lanes to the entry of a place that [`add_ordered`](Shadow::add_ordered) gave.
    pub fn add_lanes_at(&mut self, at: u64, place: u32, lanes: u32) {
        self.forget_turn(at);
        match node(&mut self.nodes, place) {
            Some(node) => node.entry.lanes |= lanes,
            None => self.cell(at).entry.lanes |= lanes,
        }
    }

    /// Adds lanes to an access of a granule, by its place.
    pub fn add_lanes(&mut self, at: u64, place: usize, lanes: u32) {
        self.forget_turn(at);
        let cell = self.cell(at);
        let mut next = cell.next;
        if place == 0 {
            cell.entry.lanes |= lanes;
            return;
        }
        for _ in 1..place {
            next = node(&mut self.nodes, next).map_or(0, |node| node.next);
        }
        if let Some(node) = node(&mut self.nodes, next) {
            node.entry.lanes |= lanes;
        }
    }

    /// The accesses to a granule, in the order in which they were added.
    pub fn read(&mut self, at: u64, list: &mut Vec<Entry>) {
        let mut cell = *self.cell(at);
        if cell.entry.time == 0 {
            return;
        }
        list.push(cell.entry);
        while let Some(node) = node(&mut self.nodes, cell.next) {
            cell = *node;
            list.push(cell.entry);
        }
    }

    /// Whether something may be remembered near an address.
    pub fn has_page(&self, at: u64) -> bool {
        self.places.contains_key(&(at / PAGE))
    }

    /// The granules that are remembered and begin in a range, by address, with their accesses.
    pub fn within(&self, from: u64, end: u64) -> Vec<(u64, Vec<Entry>)> {
        let numbers = from / PAGE..end.div_ceil(PAGE);
        let few = usize::try_from(numbers.end - numbers.start).is_ok_and(|n| n < self.places.len());
        let mut pages: Vec<(u64, usize)> = match few {
            true => numbers.filter_map(|number| Some((number, *self.places.get(&number)?))).collect(),
            false => {
                let all = self.places.iter().map(|(number, place)| (*number, *place));
                all.filter(|(number, _)| numbers.contains(number)).collect()
            }
        };
        pages.sort_unstable();
        let mut all = Vec::new();
        for (number, place) in pages {
            let cells = self.pages[place].cells.iter();
            let cells = cells.zip((number * PAGE..).step_by(4)).filter(|(_, at)| (from..end).contains(at));
            for (cell, at) in cells.filter(|(cell, _)| cell.entry.time > 0) {
                let mut list = vec![cell.entry];
                let mut next = cell.next;
                while let Some(node) = next.checked_sub(1).and_then(|n| self.nodes.get(usize::try_from(n).ok()?)) {
                    list.push(node.entry);
                    next = node.next;
                }
                all.push((at, list));
            }
        }
        all
    }

    /// Replaces the accesses to a granule.
    pub fn write(&mut self, at: u64, list: &[Entry]) {
        self.forget_turn(at);
        let old = self.cell(at).next;
        let (first, rest) = list.split_first().map_or((Entry::default(), list), |(first, rest)| (*first, rest));
        let next = self.chain(old, rest);
        *self.cell(at) = Cell { entry: first, next };
    }

    /// Forgets all about a range of any alignment, where its granules are its own.
    pub fn renew(&mut self, base: u64, bytes: u64) {
        let end = base.saturating_add(bytes);
        let mut at = base & !3;
        while at < end {
            if self.places.contains_key(&(at / PAGE)) {
                self.write(at, &[]);
                self.page(at).messages.forget(at, 4);
                at += 4;
            } else {
                at = (at / PAGE + 1) * PAGE;
            }
        }
    }

    /// Forgets all about a range that becomes other memory. It begins at a page.
    pub fn forget(&mut self, base: u64, bytes: u64) {
        for number in base / PAGE..(base + bytes).div_ceil(PAGE) {
            let Some(place) = self.places.remove(&number) else { continue };
            let slot = usize::try_from(number % LATELY as u64).unwrap_or(0);
            if self.lately[slot].0 == number {
                self.lately[slot] = NO_PAGE;
            }
            let page = &mut self.pages[place];
            page.messages.clear();
            self.n_later -= page.later.len();
            page.later.clear();
            page.is_written = false;
            let mut chains: Vec<u32> = Vec::new();
            for (i, line) in page.cells.chunks_mut(OF_LINE).enumerate().filter(|(i, _)| page.exact >> i & 1 == 1) {
                debug_assert!(i < GRANULES / OF_LINE);
                chains.extend(line.iter_mut().map(|cell| std::mem::take(cell).next).filter(|n| *n > 0));
            }
            page.exact = 0;
            self.n_rows -= page.lines.iter().map(|line| line.rows.len()).sum::<usize>();
            page.lines.iter_mut().for_each(Line::clear);
            chains.into_iter().for_each(|chain| self.give(chain));
            self.free_pages.push(place);
        }
        self.turns = [None; TURNS];
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn tags_hold_what_they_are_made_of() {
        let tag = Tag::new((1 << SITE_BITS) - 1, true, false, 4, 16, 0b1010);
        assert_eq!((tag.site(), tag.bytes(), tag.mask(), tag.strength()), ((1 << SITE_BITS) - 1, 16, 0b1010, 4));
        assert!(tag.writes() && !tag.reads());
    }

    #[test]
    fn a_granule_forgets_the_oldest() {
        let mut list = Vec::new();
        for time in 1..200 {
            add(&mut list, Entry { time, ..Entry::default() });
        }
        add(&mut list, Entry { time: 199, lanes: 4, ..Entry::default() });
        assert_eq!((list.len(), list[MOST - 1].time, list[MOST - 1].lanes), (MOST, 199, 4));
    }

    /// Lists of random lengths in a few granules, against plain lists; what is forgotten is used again.
    #[test]
    fn lists_are_as_they_were_written() {
        let mut shadow = Shadow::default();
        let mut plain: HashMap<u64, Vec<Entry>> = HashMap::new();
        let mut state = 1_u64;
        for time in 1..4000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (state >> 33) % 3 * PAGE + (state >> 40) % 4 * 4;
            let list: Vec<Entry> = (0..(state >> 50) % 6)
                .map(|i| Entry { time, who: u32::try_from(i).unwrap(), ..Entry::default() })
                .collect();
            assert!(shadow.take_rows(at).is_empty());
            shadow.write(at, &list);
            plain.insert(at, list);
            if time % 500 == 0 {
                shadow.forget(PAGE, PAGE);
                plain.retain(|at, _| at / PAGE != 1);
            }
            for (at, list) in &mut plain {
                let mut read = Vec::new();
                shadow.read(*at, &mut read);
                assert_eq!(&read, list);
                let few = shadow.few(*at).map(|(n, few)| few[..n].to_vec());
                assert_eq!(few.as_ref(), Some(&*list).filter(|list| list.len() <= FEW));
                if let Some(last) = list.len().checked_sub(1) {
                    shadow.add_lanes(*at, last, 1 << (time % 32));
                    list[last].lanes |= 1 << (time % 32);
                }
            }
        }
        // At most five in a chain of each granule, at twelve granules, and pages that were given back are taken again.
        assert!(shadow.nodes.len() <= 60 && shadow.pages.len() == 3, "{} {}", shadow.nodes.len(), shadow.pages.len());
    }
}
