//! Which bytes of a block's own memory were written: all that a run needs to know in which nobody reads others.
//!
//! As long as no byte that nobody wrote is read, none can decide anything, and no register has one. So compiled code asks no more than this, and where
//! the answer is no, the launch is run again by who follows bits.

use handloom_diag::hash::FastMap;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// 64-byte lines of a page.
const LINES: usize = 64;

/// As many pages are found without a look at the map.
const LATELY: usize = 8;

/// The bytes of some ranges that were written.
#[derive(Debug, Default)]
pub struct Filled {
    /// Address and bytes of each range that began without contents.
    ranges: Vec<(u64, u64)>,
    places: FastMap<u64, usize>,
    /// A bit for each byte.
    pages: Vec<[u64; LINES]>,
    /// Pages that were asked for lately, by the rest of their numbers.
    lately: [Option<(u64, usize)>; LATELY],
}

impl Filled {
    /// Other ranges begin without contents, and nothing else does.
    pub fn begin(&mut self, ranges: impl IntoIterator<Item = (u64, u64)>) {
        self.ranges.clear();
        self.ranges.extend(ranges);
        // What a block leaves is mostly where the next one begins.
        if self.pages.len() <= 2 * LINES {
            self.pages.iter_mut().for_each(|page| *page = [0; LINES]);
        } else {
            (self.pages, self.places, self.lately) = Default::default();
        }
    }

    /// Bytes of memory that this takes, nearly.
    pub fn cost(&self) -> u64 {
        (self.pages.len() * size_of::<[u64; LINES]>()) as u64
    }

    /// Whether an access lies in a range: none is in one in part.
    #[inline]
    fn has(&self, addr: u64) -> bool {
        self.ranges.iter().any(|(base, len)| addr.wrapping_sub(*base) < *len)
    }

    /// The word of an address, and the bits of bytes in it.
    #[inline]
    fn word(&mut self, addr: u64, bytes: u32) -> (&mut u64, u64) {
        let number = addr / PAGE;
        let slot = usize::try_from(number % LATELY as u64).unwrap_or(0);
        let place = match self.lately[slot] {
            Some((last, place)) if last == number => place,
            _ => {
                let new = self.pages.len();
                let place = *self.places.entry(number).or_insert(new);
                if place == new {
                    self.pages.push([0; LINES]);
                }
                self.lately[slot] = Some((number, place));
                place
            }
        };
        let bits = (u64::MAX >> (64 - bytes.clamp(1, 64))) << (addr % 64);
        let line = usize::try_from(addr % PAGE / 64).unwrap_or(0);
        (&mut self.pages[place][line], bits)
    }

    /// Bytes of a range are written.
    pub fn fill_range(&mut self, addr: u64, bytes: u64) {
        self.over(addr, bytes, |filled, at, n| {
            filled.fill(at, n);
            true
        });
    }

    /// Whether all bytes of a range were written, or began with contents.
    pub fn is_range_filled(&mut self, addr: u64, bytes: u64) -> bool {
        self.over(addr, bytes, Filled::is_filled)
    }

    /// Does something to the parts of a range that lie in one word each, as long as it succeeds.
    fn over(&mut self, mut addr: u64, bytes: u64, mut what: impl FnMut(&mut Filled, u64, u32) -> bool) -> bool {
        let end = addr + bytes;
        while addr < end {
            let n = (64 - addr % 64).min(end - addr);
            if !what(self, addr, u32::try_from(n).unwrap_or(64)) {
                return false;
            }
            addr += n;
        }
        true
    }

    /// Bytes of an access, which lie in one word of 64, are written.
    #[inline]
    pub fn fill(&mut self, addr: u64, bytes: u32) {
        if self.has(addr) {
            let (word, bits) = self.word(addr, bytes);
            *word |= bits;
        }
    }

    /// Whether all bytes of an access, which lie in one word of 64, were written, or began with contents.
    #[inline]
    pub fn is_filled(&mut self, addr: u64, bytes: u32) -> bool {
        if !self.has(addr) {
            return true;
        }
        let (word, bits) = self.word(addr, bytes);
        bits & !*word == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_unwritten_until_they_are_written() {
        let mut filled = Filled::default();
        filled.begin([(4096 - 64, 128), (1 << 20, 16)]);
        assert!(filled.is_filled(64, 4) && filled.is_filled(4096 + 64, 16), "outside of all ranges");
        assert!(!filled.is_filled(4096, 1) && !filled.is_filled((1 << 20) + 8, 8));
        filled.fill(4096, 4);
        filled.fill(4096 - 16, 16);
        assert!(filled.is_filled(4096, 4) && filled.is_filled(4098, 2) && !filled.is_filled(4096, 8));
        assert!(filled.is_filled(4096 - 16, 16) && !filled.is_filled(4096 - 32, 16));
        filled.fill_range(4096 - 20, 40);
        assert!(filled.is_range_filled(4096 - 20, 40) && !filled.is_range_filled(4096 - 21, 8));
        filled.begin([(4096, 64)]);
        assert!(!filled.is_filled(4096, 4) && filled.is_filled(1 << 20, 16));
    }
}
