//! Which bytes that a program allocated nobody has written yet: neither the host, nor a copy or fill, nor a kernel.
//!
//! Followed from [`DeviceMemory::follow_blank`](super::DeviceMemory::follow_blank) on, for allocations that are said to begin so. What writes them is told
//! by copies and fills themselves and by launches when they are over; who cannot say what he wrote settles all that he may have.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::lock::lock;

/// Most ranges that are told apart. What comes to more counts as written, so that a use is missed and none is made up.
const MOST: usize = 1 << 18;

/// The bytes of a device that nobody wrote.
#[derive(Debug, Default)]
pub(crate) struct Blank {
    is_followed: AtomicBool,
    /// Whether there are some.
    is_any: AtomicBool,
    /// By first address: the end.
    ranges: Mutex<BTreeMap<u64, u64>>,
}

impl Blank {
    /// From now on allocations may begin without contents.
    pub(super) fn follow(&self) {
        self.is_followed.store(true, Ordering::Relaxed);
    }

    /// Whether they may.
    pub(crate) fn is_followed(&self) -> bool {
        self.is_followed.load(Ordering::Relaxed)
    }

    /// Whether there are bytes that nobody wrote.
    pub(crate) fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Acquire)
    }

    /// Nobody has written a range.
    pub(super) fn begin(&self, from: u64, bytes: u64) {
        if !self.is_followed() || bytes == 0 {
            return;
        }
        self.settle(from, bytes);
        lock(&self.ranges).insert(from, from.saturating_add(bytes));
        self.is_any.store(true, Ordering::Release);
    }

    /// A range was written, or is no memory any more.
    pub(crate) fn settle(&self, from: u64, bytes: u64) {
        if !self.is_any() {
            return;
        }
        let end = from.saturating_add(bytes);
        let mut ranges = lock(&self.ranges);
        let overlapping: Vec<(u64, u64)> = over(&ranges, from, end).collect();
        for (start, stop) in overlapping {
            ranges.remove(&start);
            if start < from {
                ranges.insert(start, from);
            }
            if end < stop {
                ranges.insert(end, stop);
            }
        }
        if ranges.len() > MOST {
            ranges.clear();
        }
        self.is_any.store(!ranges.is_empty(), Ordering::Release);
    }

    /// All of them were written, or may have been.
    pub(crate) fn settle_all(&self) {
        self.settle(0, u64::MAX);
    }

    /// What was copied is as unknown where it comes to as where it came from.
    pub(super) fn copied(&self, to: u64, from: &[(u64, u64)], start: u64) {
        for (first, end) in from {
            self.begin(to + (first - start), end - first);
        }
    }

    /// Those in a range, by address: first bytes and ends.
    pub(crate) fn within(&self, from: u64, end: u64) -> Vec<(u64, u64)> {
        if !self.is_any() {
            return Vec::new();
        }
        let mut all: Vec<(u64, u64)> =
            over(&lock(&self.ranges), from, end).map(|(first, stop)| (first.max(from), stop.min(end))).collect();
        all.reverse();
        all
    }

    /// Whether there are some in a range.
    pub(crate) fn has(&self, from: u64, end: u64) -> bool {
        self.is_any() && over(&lock(&self.ranges), from, end).next().is_some()
    }
}

/// Ranges that overlap one, the last ones first.
fn over(ranges: &BTreeMap<u64, u64>, from: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
    ranges.range(..end).rev().map(|(first, stop)| (*first, *stop)).take_while(move |(_, stop)| *stop > from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_taken_out() {
        let blank = Blank::default();
        blank.begin(0, 64);
        assert!(!blank.is_any(), "nobody follows it");
        blank.follow();
        blank.begin(64, 64);
        blank.begin(256, 16);
        blank.settle(80, 16);
        assert_eq!(blank.within(0, 1000), [(64, 80), (96, 128), (256, 272)]);
        assert_eq!(blank.within(70, 100), [(70, 80), (96, 100)]);
        assert!(blank.has(79, 81) && !blank.has(80, 96));
        blank.settle(0, 260);
        assert_eq!(blank.within(0, 1000), [(260, 272)]);
        let from = blank.within(256, 272);
        blank.copied(512, &from, 256);
        assert_eq!(blank.within(500, 1000), [(516, 528)]);
        blank.settle_all();
        assert!(!blank.is_any());
    }
}
