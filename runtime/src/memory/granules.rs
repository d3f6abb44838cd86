//! Small allocations by address: a table with a word for each granule of a heap, which compiled code reads as well.
//!
//! Allocations begin at multiples of a granule with a gap behind them, so no two share one. The word of each granule of a small allocation says where that
//! allocation begins, how long it is and what it is (`plan::abi::Granule`); all others are 0. Large allocations are few and are found by the map.
//!
//! Invariants: a word that is not 0 is that of an allocation that has not ended. It is written before anybody has the address, and cleared before the address can be handed out
//! again.

use std::sync::atomic::{AtomicU64, Ordering};

use handloom_plan::abi::Granule;

use super::ranges::ALIGN;
use super::reserve::{Words, as_len};

/// Bytes of the largest allocation that stands in the table.
const MOST: u64 = 16 << 20;

const _: () = assert!(ALIGN == 1 << Granule::BITS && MOST <= Granule::MOST);

/// The table of a heap.
#[derive(Debug)]
pub(crate) struct Granules {
    first: u64,
    words: Words,
}

impl Granules {
    /// For the heap from `first` to `end`. `None`: the host has no addresses for it.
    pub(crate) fn new((first, end): (u64, u64)) -> Option<Granules> {
        let words = Words::new(as_len((end - first) / ALIGN))?;
        Some(Granules { first, words })
    }

    /// Where the table lies, and the bytes of the heap that it is for.
    pub(crate) fn table(&self) -> (u64, u64) {
        (self.words.address(), self.words.all().len() as u64 * ALIGN)
    }

    /// The words of a small allocation.
    fn of(&self, start: u64, size: u64) -> Option<&[AtomicU64]> {
        let at = as_len(start / ALIGN);
        self.words.all().get(at..at + as_len(size.min(MOST).div_ceil(ALIGN))).filter(|_| size <= MOST)
    }

    /// An allocation begins that kernels may read and write, of a kind that has a number.
    pub(crate) fn begin(&self, base: u64, size: u64, kind: u32) {
        let start = base.wrapping_sub(self.first);
        let word = Granule { start, size, kind }.word();
        self.of(start, size).into_iter().flatten().for_each(|w| w.store(word, Ordering::Release));
    }

    /// One ends.
    pub(crate) fn end(&self, base: u64, size: u64) {
        let words = self.of(base.wrapping_sub(self.first), size).into_iter().flatten();
        words.for_each(|w| w.store(0, Ordering::Release));
    }

    /// Base, size and number of the kind of the small allocation that holds the byte at `addr`.
    #[inline]
    pub(crate) fn find(&self, addr: u64) -> Option<(u64, u64, u32)> {
        let at = addr.wrapping_sub(self.first);
        let Granule { start, size, kind } =
            Granule::of(self.words.all().get(as_len(at / ALIGN))?.load(Ordering::Acquire));
        (at.wrapping_sub(start) < size).then_some((self.first + start, size, kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_allocations_are_found_as_long_as_they_last() {
        let first = 0x2000_0001_0000;
        let g = Granules::new((first, first + (64 << 20))).unwrap();
        assert_eq!(g.table().1, 64 << 20);
        let placed = [(first, 1, 0), (first + 1024, 512, 3), (first + 2048, 513, 1), (first + 4096, MOST, 2)];
        for (base, size, kind) in placed {
            assert_eq!(g.find(base), None);
            g.begin(base, size, kind);
        }
        for (base, size, kind) in placed {
            for at in [base, base + size / 2, base + size - 1] {
                assert_eq!(g.find(at), Some((base, size, kind)));
            }
            assert_eq!(g.find(base + size), None);
            assert_eq!(g.find(base.wrapping_sub(1)), None);
        }
        for (base, size, _) in placed {
            g.end(base, size);
            assert_eq!(g.find(base), None);
            assert_eq!(g.find(base + size - 1), None);
        }
        // A larger one is not there, and whatever is asked for is no place of the heap.
        g.begin(first + (32 << 20), MOST + 1, 0);
        for at in [first + (32 << 20), 0, u64::MAX, first - 1, first + (64 << 20)] {
            assert_eq!(g.find(at), None);
        }
    }
}
