//! Which parts of a range of addresses are free.

use std::collections::{BTreeMap, VecDeque};

/// Least distance between two allocations in bytes: a stray just past one of them hits nothing.
pub(crate) const GAP: u64 = 512;

/// Alignment of allocations in bytes, unless more is asked for.
pub(crate) const ALIGN: u64 = 512;

/// Freed bytes that are kept back, so that a stale pointer is found out and not served with new data.
const QUARANTINE: u64 = 64 << 20;

/// Parts kept at hand by ranges that hand out again at once.
const RECENT: usize = 64;

/// Free parts of one range of addresses, and the parts freed lately.
#[derive(Debug)]
pub(crate) struct Ranges {
    /// Start to end of each free part; parts do not touch.
    free: BTreeMap<u64, u64>,
    /// Freed parts in the order of freeing: start and end.
    late: VecDeque<(u64, u64)>,
    late_bytes: u64,
    keep: u64,
    /// Parts freed last, for ranges that hand out again at once; `None` for those that keep freed parts back.
    recent: Option<Vec<(u64, u64)>>,
}

impl Ranges {
    /// All of `start .. end` is free.
    pub(crate) fn new(start: u64, end: u64) -> Ranges {
        let keep = QUARANTINE.min((end - start) / 8);
        Ranges { free: BTreeMap::from([(start, end)]), late: VecDeque::new(), late_bytes: 0, keep, recent: None }
    }

    /// The same for memory that the runtime itself takes and gives all the time: what was freed last is handed out first, while it is in the
    /// host's cache, and nothing is kept back.
    pub(crate) fn at_once(start: u64, end: u64) -> Ranges {
        Ranges { recent: Some(Vec::new()), ..Ranges::new(start, end) }
    }

    /// Takes the first place for `bytes` aligned to `align`, with a gap behind it. Gives the start and the end of what was taken, gap included.
    pub(crate) fn take(&mut self, bytes: u64, align: u64) -> Option<(u64, u64)> {
        let align = align.max(ALIGN).next_power_of_two();
        let need = bytes.max(1).checked_next_multiple_of(ALIGN)?.checked_add(GAP)?;
        let fits = |&(start, end): &(u64, u64)| end - start == need && start.is_multiple_of(align);
        if let Some(recent) = &mut self.recent
            && let Some(i) = recent.iter().rposition(fits)
        {
            return Some(recent.remove(i));
        }
        loop {
            let fit = self.free.iter().find_map(|(&start, &end)| {
                let at = start.checked_next_multiple_of(align)?;
                let stop = at.checked_add(need)?;
                (stop <= end).then_some((start, end, at, stop))
            });
            if let Some((start, end, at, stop)) = fit {
                self.free.remove(&start);
                if start < at {
                    self.free.insert(start, at);
                }
                if stop < end {
                    self.free.insert(stop, end);
                }
                return Some((at, stop));
            }
            // Rather than fail, take back what was kept.
            self.release_oldest()?;
        }
    }

    /// Gives back what [`take`](Self::take) gave. It becomes free when enough was freed after it. Gives the parts that became free now.
    pub(crate) fn give(&mut self, start: u64, end: u64) -> Vec<(u64, u64)> {
        if let Some(recent) = &mut self.recent {
            recent.push((start, end));
            if recent.len() > RECENT {
                let (start, end) = recent.remove(0);
                self.release(start, end);
            }
            return Vec::new();
        }
        self.late.push_back((start, end));
        self.late_bytes += end - start;
        let mut out = Vec::new();
        while self.late_bytes > self.keep {
            out.extend(self.release_oldest());
        }
        out
    }

    fn release_oldest(&mut self) -> Option<(u64, u64)> {
        if let Some(part) = self.recent.as_mut().and_then(Vec::pop) {
            self.release(part.0, part.1);
            return Some(part);
        }
        let (start, end) = self.late.pop_front()?;
        self.late_bytes -= end - start;
        self.release(start, end);
        Some((start, end))
    }

    /// Makes a part free, together with its free neighbours.
    fn release(&mut self, start: u64, end: u64) {
        let (mut s, mut e) = (start, end);
        if let Some((&before, &stop)) = self.free.range(..s).next_back()
            && stop == s
        {
            self.free.remove(&before);
            s = before;
        }
        if let Some(after) = self.free.remove(&e) {
            e = after;
        }
        self.free.insert(s, e);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_with_a_gap_and_merges() {
        let mut r = Ranges::new(0x1000, 0x10_0000);
        let (a, a_end) = r.take(100, 1).unwrap();
        assert_eq!((a, a_end), (0x1000, 0x1000 + 512 + GAP));
        let (b, _) = r.take(1, 4096).unwrap();
        assert_eq!(b, 0x2000);
        let (c, c_end) = r.take(513, 1).unwrap();
        assert_eq!((c, c_end - c), (a_end, 1024 + GAP));
        r.give(a, a_end);
        r.give(c, c_end);
        while r.release_oldest().is_some() {}
        assert_eq!(r.free.len(), 2, "{:x?}", r.free);
        assert_eq!(r.free.get(&0x1000), Some(&0x2000));
    }

    #[test]
    fn freed_parts_are_not_given_out_at_once() {
        let mut r = Ranges::new(0, 1 << 20);
        let (a, e) = r.take(512, 1).unwrap();
        r.give(a, e);
        let (b, _) = r.take(512, 1).unwrap();
        assert_ne!(a, b);
    }

    #[test]
    fn what_was_freed_last_is_handed_out_first() {
        let mut r = Ranges::at_once(0, 1 << 20);
        let parts: Vec<_> = (0..100).map(|_| r.take(512, 1).unwrap()).collect();
        let big = r.take(5000, 4096).unwrap();
        parts.iter().for_each(|p| drop(r.give(p.0, p.1)));
        assert_eq!(r.take(1, 1), Some(parts[99]));
        assert_eq!(r.take(512, 1), Some(parts[98]));
        r.give(big.0, big.1);
        assert_eq!(r.take(5000, 4096), Some(big));
        r.give(big.0, big.1);
        // What is at hand is no loss for a larger part.
        assert!(r.take((1 << 20) - 4096, 1).is_none());
        r.give(parts[98].0, parts[98].1);
        r.give(parts[99].0, parts[99].1);
        assert!(r.take((1 << 20) - 4096, 1).is_some());
    }

    #[test]
    fn what_was_kept_is_taken_rather_than_failing() {
        let mut r = Ranges::new(0, 4096);
        let (a, e) = r.take(3000, 1).unwrap();
        r.give(a, e);
        assert!(r.take(3000, 1).is_some());
        assert!(r.take(3000, 1).is_none());
    }
}
