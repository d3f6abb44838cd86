//! Which bits of memory nobody wrote.
//!
//! Memory counts as written but for ranges that were told to be new ([`Written::renew`]). A page of them costs nothing until somebody touches it. A touched
//! byte has the bits that nobody wrote; a granule of four bytes has a [`Note`]: where its unknown bits come from, or how it was written.

use std::collections::{BTreeMap, HashMap};

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Most bytes of padding in a structure: the largest alignment but one.
const MOST_PADDING: u64 = 15;

/// What is known of a granule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Note(u32);

impl Note {
    const WRITTEN: u32 = 1 << 31;

    /// Written by an access of so many bytes.
    pub fn written(bytes: u32) -> Note {
        Note(Note::WRITTEN | bytes.min(64))
    }

    /// Its unknown bits come from a place with this number, below 2^31 and not 0.
    pub fn from(origin: u32) -> Note {
        Note(origin)
    }

    /// The number of the place that its unknown bits come from.
    pub fn origin(self) -> Option<u32> {
        (self.0 != 0 && self.0 & Note::WRITTEN == 0).then_some(self.0)
    }

    /// Bytes of the access that wrote it, 0 for none.
    fn bytes(self) -> u64 {
        if self.0 & Note::WRITTEN == 0 { 0 } else { u64::from(self.0 & !Note::WRITTEN) }
    }
}

#[derive(Debug)]
struct Page {
    /// Bit by bit.
    undef: Box<[u8]>,
    notes: Box<[Note]>,
}

/// What is remembered of all memory.
#[derive(Debug, Default)]
pub struct Written {
    pages: HashMap<u64, Page>,
    /// Ranges that began without contents, by first address, with their ends.
    fresh: BTreeMap<u64, u64>,
}

fn index(addr: u64) -> usize {
    usize::try_from(addr % PAGE).unwrap_or(0)
}

impl Written {
    /// Bytes that a page takes.
    pub const PAGE_COST: u64 = 2 * PAGE;

    /// How many pages there are.
    pub fn n_pages(&self) -> usize {
        self.pages.len()
    }

    /// A range is memory without contents.
    pub fn renew(&mut self, addr: u64, bytes: u64) {
        let Some(end) = addr.checked_add(bytes).filter(|end| *end > addr) else { return };
        self.settle(addr, bytes);
        self.fresh.insert(addr, end);
        self.over_pages(addr, end, u8::MAX);
    }

    /// A range is gone, or what it holds counts as written.
    pub fn settle(&mut self, addr: u64, bytes: u64) {
        let Some(end) = addr.checked_add(bytes).filter(|end| *end > addr) else { return };
        let overlapping: Vec<(u64, u64)> =
            self.fresh.range(..end).rev().take_while(|(_, e)| **e > addr).map(|(s, e)| (*s, *e)).collect();
        for (start, stop) in overlapping {
            self.fresh.remove(&start);
            if start < addr {
                self.fresh.insert(start, addr);
            }
            if stop > end {
                self.fresh.insert(end, stop);
            }
        }
        self.over_pages(addr, end, 0);
    }

    /// Whether a range is memory that began without contents.
    pub fn is_fresh(&self, addr: u64) -> bool {
        self.fresh.range(..=addr).next_back().is_some_and(|(_, end)| addr < *end)
    }

    /// Sets what is remembered of a range: pages that lie in it as a whole are forgotten.
    fn over_pages(&mut self, addr: u64, end: u64, undef: u8) {
        let (first, last) = (addr / PAGE, (end - 1) / PAGE);
        let numbers: Vec<u64> = if last - first < self.pages.len() as u64 {
            (first..=last).collect()
        } else {
            self.pages.keys().copied().filter(|n| (first..=last).contains(n)).collect()
        };
        for number in numbers {
            let (base, stop) = (number * PAGE, (number + 1) * PAGE);
            if addr <= base && stop <= end {
                self.pages.remove(&number);
                continue;
            }
            let Some(page) = self.pages.get_mut(&number) else { continue };
            let (from, to) = (addr.max(base), end.min(stop));
            let range = index(from)..index(to - 1) + 1;
            page.notes[range.start / 4..range.end.div_ceil(4)].fill(Note::default());
            page.undef[range].fill(undef);
        }
    }

    /// The page of an address, if something in it may be unknown, or in any case.
    fn page(&mut self, addr: u64, in_any_case: bool) -> Option<&mut Page> {
        let number = addr / PAGE;
        if !self.pages.contains_key(&number) {
            let (base, stop) = (number * PAGE, (number + 1) * PAGE);
            let inside = |(s, e): (&u64, &u64)| (base.max(*s), stop.min(*e));
            let fresh: Vec<(u64, u64)> =
                self.fresh.range(..stop).rev().take_while(|(_, e)| **e > base).map(inside).collect();
            if fresh.is_empty() && !in_any_case {
                return None;
            }
            let size = index(PAGE - 1) + 1;
            let mut page = Page { undef: vec![0; size].into(), notes: vec![Note::default(); size / 4].into() };
            for (from, to) in fresh {
                page.undef[index(from)..index(to - 1) + 1].fill(u8::MAX);
            }
            self.pages.insert(number, page);
        }
        self.pages.get_mut(&number)
    }

    /// The unknown bits of at most 8 bytes, and a note of one of the granules that has some.
    pub fn load(&mut self, addr: u64, bytes: u32) -> (u64, Note) {
        let mut undef = [0; 8];
        let mut note = Note::default();
        for (at, byte) in (addr..addr + u64::from(bytes)).zip(&mut undef) {
            let Some(page) = self.page(at, false) else { continue };
            *byte = page.undef[index(at)];
            if *byte != 0 && note == Note::default() {
                note = page.notes[index(at) / 4];
            }
        }
        (u64::from_le_bytes(undef), note)
    }

    /// At most 8 bytes are written by an access of `whole` bytes, these of their bits with what nobody wrote. `origin`: where that comes from.
    pub fn store(&mut self, addr: u64, bytes: u32, whole: u32, undef: u64, origin: u32) {
        let unknown = undef.to_le_bytes();
        for (at, unknown) in (addr..addr + u64::from(bytes)).zip(unknown) {
            let Some(page) = self.page(at, unknown != 0) else { continue };
            page.undef[index(at)] = unknown;
            let granule = index(at) / 4;
            let is_known = page.undef[4 * granule..4 * granule + 4].iter().all(|byte| *byte == 0);
            if unknown != 0 {
                page.notes[granule] = Note::from(origin);
            } else if is_known || page.notes[granule].origin().is_none() {
                page.notes[granule] = Note::written(whole);
            }
        }
    }

    /// Whether a byte that nobody wrote may be padding of a structure: from the end of what was written up to the alignment of an access near by that has
    /// at least as many bytes, or up to 16 in holes at even distances, which `has_many` says may be: there are several structures.
    pub fn is_padding(&mut self, addr: u64, has_many: bool) -> bool {
        let mut start = addr;
        while start > 0 && addr - start <= MOST_PADDING && self.is_hole(start - 1) {
            start -= 1;
        }
        if addr - start > MOST_PADDING || !self.is_fresh(start.wrapping_sub(1)) {
            return false;
        }
        let up_to_alignment = [2, 4, 8, 16].into_iter().any(|align| {
            let end = start.next_multiple_of(align);
            let mut near = (start.saturating_sub(16) / 4 * 4..end + 16).step_by(4);
            addr < end && near.any(|at| self.page(at, false).is_some_and(|p| p.notes[index(at) / 4].bytes() >= align))
        });
        up_to_alignment || has_many && self.is_repeated(start, start.next_multiple_of(16))
    }

    fn is_hole(&mut self, at: u64) -> bool {
        self.load(at, 1).0 == 0xff
    }

    /// Whether there is another hole like this one at an even distance.
    fn is_repeated(&mut self, start: u64, end: u64) -> bool {
        let mut hole = |at: u64| {
            let is_bounded = self.is_fresh(at - 1) && !self.is_hole(at - 1);
            is_bounded && (0..end - start).all(|i| self.is_hole(at + i))
        };
        start < end && [16, 32, 48, 64].iter().any(|step| hole(start + step) || start > *step && hole(start - step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_begin_unknown_and_end_known() {
        let mut w = Written::default();
        assert_eq!(w.load(100, 4).0, 0);
        w.renew(100, 8192);
        assert_eq!(w.load(96, 8).0, 0xffff_ffff_0000_0000);
        w.store(104, 4, 4, 0xff00, 7);
        assert_eq!((w.load(104, 4).0, w.load(104, 4).1.origin()), (0xff00, Some(7)));
        w.settle(104, 4000);
        assert_eq!((w.load(100, 8).0, w.load(4104, 1).0), (0xffff_ffff, 0xff));
        w.renew(104, 4);
        assert_eq!(w.load(104, 8).0, 0xffff_ffff);
    }

    #[test]
    fn unknown_bits_stored_elsewhere_are_remembered() {
        let mut w = Written::default();
        w.store(64, 4, 4, 0xff, 3);
        assert_eq!((w.load(64, 4).0, w.load(68, 4).0), (0xff, 0));
        w.store(64, 4, 4, 0, 0);
        assert_eq!(w.load(64, 4).0, 0);
    }

    #[test]
    fn holes_of_structures_are_padding_and_others_are_not() {
        let mut w = Written::default();
        w.renew(0x1000, 256);
        // `{ int; double; char; int }`
        w.store(0x1000, 4, 4, 0, 0);
        w.store(0x1008, 8, 8, 0, 0);
        w.store(0x1010, 1, 1, 0, 0);
        w.store(0x1014, 4, 4, 0, 0);
        assert!(
            w.is_padding(0x1004, true)
                && w.is_padding(0x1007, true)
                && w.is_padding(0x1011, true)
                && w.is_padding(0x1013, true)
        );
        assert!(!w.is_padding(0x1020, true));
        // Behind the last structure nothing was written: `{ double; char }`.
        w.store(0x1018, 8, 8, 0, 0);
        w.store(0x1020, 1, 1, 0, 0);
        assert!(w.is_padding(0x1021, false) && w.is_padding(0x1027, false) && !w.is_padding(0x1028, false));
        // Integers without one, bytes without the last ones.
        (0..16).filter(|i| *i != 5).for_each(|i| w.store(0x1040 + 4 * i, 4, 4, 0, 0));
        assert!(!w.is_padding(0x1054, true));
        (0..15).for_each(|i| w.store(0x10c0 + i, 1, 1, 0, 0));
        assert!(!w.is_padding(0x10cf, true));
    }

    #[test]
    fn three_floats_at_a_distance_of_four_have_padding() {
        let mut w = Written::default();
        w.renew(0x1000, 256);
        (0..4).for_each(|i| (0..3).for_each(|k| w.store(0x1000 + 16 * i + 4 * k, 4, 4, 0, 0)));
        assert!(w.is_padding(0x101c, true) && !w.is_padding(0x101c, false));
        let mut all_but_one = Written::default();
        all_but_one.renew(0x1000, 64);
        (0..15).for_each(|i| all_but_one.store(0x1000 + 4 * i, 4, 4, 0, 0));
        assert!(!all_but_one.is_padding(0x103c, true));
    }
}
