//! What is remembered of accesses, beside the memory that they touched: nothing for memory that nobody touched.
//!
//! A *granule* is four aligned bytes. It has the accesses to it that a later one may still conflict with, as [`Entry`]s: two in place, more in a
//! list. What strong writes tell those who read them lies beside, by address ([`Message`]).

use std::collections::{BTreeMap, HashMap};

use crate::bag::Message;
use crate::known::Time;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Granules of a page.
const GRANULES: usize = 1024;

/// Most accesses that are remembered of a granule.
// Choice: what is forgotten then is the oldest. A race with it alone is missed; nothing is reported that is none.
const MOST: usize = 128;

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

/// The accesses to a granule.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    here: [Entry; 2],
    #[allow(clippy::box_collection, reason = "most granules have none: a word for each instead of three")]
    more: Option<Box<Vec<Entry>>>,
}

impl Cell {
    /// All of them.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        let more = self.more.iter().flat_map(|m| m.iter().copied());
        self.here.into_iter().filter(|e| e.time > 0).chain(more)
    }

    /// One that is the same but for its lanes.
    pub fn like(&mut self, new: Entry) -> Option<&mut Entry> {
        let same = |e: &&mut Entry| (e.time, e.who, e.tag) == (new.time, new.who, new.tag);
        let more = self.more.iter_mut().flat_map(|m| m.iter_mut());
        self.here.iter_mut().chain(more).find(same)
    }

    /// Drops those that need not be remembered.
    pub fn retain(&mut self, mut keep: impl FnMut(Entry) -> bool) {
        for e in &mut self.here {
            if e.time > 0 && !keep(*e) {
                *e = Entry::default();
            }
        }
        if let Some(more) = &mut self.more {
            more.retain(|e| keep(*e));
            if more.is_empty() {
                self.more = None;
            }
        }
    }

    /// Adds one.
    pub fn add(&mut self, new: Entry) {
        if let Some(free) = self.here.iter_mut().find(|e| e.time == 0) {
            *free = new;
            return;
        }
        let more = self.more.get_or_insert_default();
        if more.len() >= MOST {
            let oldest = (0..more.len()).min_by_key(|i| more[*i].time).unwrap_or(0);
            more.remove(oldest);
        }
        more.push(new);
    }
}

/// What is remembered of a page.
#[derive(Debug)]
pub struct Page {
    cells: Box<[Cell]>,
    /// What strong writes in it tell, by address.
    pub messages: BTreeMap<u64, Message>,
}

impl Page {
    /// The granule of an address in the page.
    pub fn cell(&mut self, addr: u64) -> &mut Cell {
        let at = usize::try_from(addr % PAGE / 4).unwrap_or(0);
        &mut self.cells[at]
    }
}

/// What is remembered of all memory.
#[derive(Debug, Default)]
pub struct Shadow {
    pages: HashMap<u64, Page>,
}

impl Shadow {
    /// Bytes that a page takes, lists and messages left out.
    pub const PAGE_COST: u64 = (GRANULES * size_of::<Cell>()) as u64;

    /// What is remembered of the page of an address.
    pub fn page(&mut self, addr: u64) -> &mut Page {
        let new = || Page { cells: vec![Cell::default(); GRANULES].into(), messages: BTreeMap::new() };
        self.pages.entry(addr / PAGE).or_insert_with(new)
    }

    /// Forgets all about a range of any alignment, where its granules are its own.
    pub fn renew(&mut self, base: u64, bytes: u64) {
        let end = base.saturating_add(bytes);
        let mut at = base & !3;
        while at < end {
            match self.pages.get_mut(&(at / PAGE)) {
                Some(page) => {
                    *page.cell(at) = Cell::default();
                    page.messages.remove(&at);
                    at += 4;
                }
                None => at = (at / PAGE + 1) * PAGE,
            }
        }
    }

    /// How many pages there are.
    pub fn n_pages(&self) -> usize {
        self.pages.len()
    }

    /// Forgets all about a range that becomes other memory. It begins at a page.
    pub fn forget(&mut self, base: u64, bytes: u64) {
        for page in base / PAGE..(base + bytes).div_ceil(PAGE) {
            self.pages.remove(&page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_hold_what_they_are_made_of() {
        let tag = Tag::new((1 << SITE_BITS) - 1, true, false, 4, 16, 0b1010);
        assert_eq!((tag.site(), tag.bytes(), tag.mask(), tag.strength()), ((1 << SITE_BITS) - 1, 16, 0b1010, 4));
        assert!(tag.writes() && !tag.reads());
    }

    #[test]
    fn a_cell_forgets_the_oldest() {
        let mut cell = Cell::default();
        for time in 1..200 {
            cell.add(Entry { time, ..Entry::default() });
        }
        assert_eq!(cell.entries().count(), MOST + 2);
        assert!(cell.entries().any(|e| e.time == 199));
        cell.retain(|e| e.time == 1);
        assert_eq!(cell.entries().count(), 1);
    }
}
