//! Ranges of addresses.

use std::collections::BTreeMap;

/// Ranges that do not overlap, by first address, with their ends.
#[derive(Clone, Default, Debug)]
pub struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// None.
    pub const fn new() -> Ranges {
        Ranges(BTreeMap::new())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each of them: its first address, and the one behind its last.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|(start, end)| (*start, *end))
    }

    /// Whether an address is in one.
    pub fn has(&self, addr: u64) -> bool {
        self.0.range(..=addr).next_back().is_some_and(|(_, end)| addr < *end)
    }

    /// The parts of them that lie in a range, from the last one on.
    pub fn inside(&self, addr: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let overlapping = self.0.range(..end).rev().take_while(move |(_, e)| **e > addr);
        overlapping.map(move |(s, e)| (addr.max(*s), end.min(*e)))
    }

    /// Adds one.
    pub fn add(&mut self, addr: u64, end: u64) {
        self.remove(addr, end);
        if addr < end {
            self.0.insert(addr, end);
        }
    }

    /// Takes a range out of them.
    pub fn remove(&mut self, addr: u64, end: u64) {
        let overlapping: Vec<(u64, u64)> =
            self.0.range(..end).rev().take_while(|(_, e)| **e > addr).map(|(s, e)| (*s, *e)).collect();
        for (start, stop) in overlapping {
            self.0.remove(&start);
            if start < addr {
                self.0.insert(start, addr);
            }
            if stop > end {
                self.0.insert(end, stop);
            }
        }
    }
}
