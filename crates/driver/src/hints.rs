//! What a program said of managed memory: where it should lie, who uses it. It changes nothing here, since all managed memory is in one place, but it is
//! told back.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::memory::PAGE;

/// A place by its kind and number, as the interface has both.
pub type Place = (u32, i32);

/// Values of ranges of addresses that do not overlap: from the first address the end and the value.
#[derive(Clone, Debug, Default)]
struct Intervals<V>(BTreeMap<u64, (u64, V)>);

impl<V: Clone + PartialEq> Intervals<V> {
    /// Takes a range out.
    fn clear(&mut self, start: u64, end: u64) {
        let touched: Vec<u64> =
            self.0.range(..end).rev().take_while(|(_, (stop, _))| *stop > start).map(|(from, _)| *from).collect();
        for from in touched {
            let Some((stop, value)) = self.0.remove(&from) else { continue };
            if stop > end {
                self.0.insert(end, (stop, value.clone()));
            }
            if from < start {
                self.0.insert(from, (start, value));
            }
        }
    }

    /// Gives a range a value.
    fn set(&mut self, start: u64, end: u64, value: V) {
        self.clear(start, end);
        if start < end {
            self.0.insert(start, (end, value));
        }
    }

    /// The value that all of a range has.
    fn get(&self, start: u64, end: u64) -> Option<V> {
        let (_, (stop, value)) = self.0.range(..=start).next_back().filter(|(_, (stop, _))| *stop > start)?;
        let mut at = *stop;
        while at < end {
            let (stop, other) = self.0.get(&at)?;
            if other != value {
                return None;
            }
            at = *stop;
        }
        Some(value.clone())
    }
}

/// What was said.
#[derive(Debug, Default)]
pub struct Hints(Mutex<Said>);

#[derive(Debug, Default)]
struct Said {
    mostly_read: Intervals<()>,
    preferred: Intervals<Place>,
    prefetched: Intervals<Place>,
    accessed_by: BTreeMap<Place, Intervals<()>>,
}

/// A range of addresses: the first one and the end.
pub type Range = (u64, u64);

/// A range of an allocation in whole pages, which are counted from its start.
pub fn pages(base: u64, start: u64, bytes: u64) -> Range {
    let first = (start - base) / PAGE * PAGE;
    let last = (start - base).saturating_add(bytes).div_ceil(PAGE).saturating_mul(PAGE);
    (base + first, base.saturating_add(last))
}

impl Hints {
    fn said(&self) -> MutexGuard<'_, Said> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an advice by its number (1 to 6).
    pub fn advise(&self, (start, end): Range, advice: u32, place: Place) {
        let mut said = self.said();
        match advice {
            1 => said.mostly_read.set(start, end, ()),
            2 => said.mostly_read.clear(start, end),
            3 => said.preferred.set(start, end, place),
            4 => said.preferred.clear(start, end),
            5 => said.accessed_by.entry(place).or_default().set(start, end, ()),
            _ => {
                if let Some(ranges) = said.accessed_by.get_mut(&place) {
                    ranges.clear(start, end);
                }
            }
        }
    }

    /// Notes where a range was prefetched to.
    pub fn prefetched(&self, (start, end): Range, place: Place) {
        self.said().prefetched.set(start, end, place);
    }

    /// Forgets memory that has ended.
    pub fn forget(&self, (start, end): Range) {
        let mut said = self.said();
        said.mostly_read.clear(start, end);
        said.preferred.clear(start, end);
        said.prefetched.clear(start, end);
        said.accessed_by.values_mut().for_each(|ranges| ranges.clear(start, end));
    }

    /// Whether all of a range is mostly read.
    pub fn is_mostly_read(&self, (start, end): Range) -> bool {
        self.said().mostly_read.get(start, end).is_some()
    }

    /// Where all of a range should lie.
    pub fn preferred_place(&self, (start, end): Range) -> Option<Place> {
        self.said().preferred.get(start, end)
    }

    /// Where all of a range was prefetched to.
    pub fn prefetched_to(&self, (start, end): Range) -> Option<Place> {
        self.said().prefetched.get(start, end)
    }

    /// Who uses all of a range.
    pub fn users(&self, (start, end): Range) -> Vec<Place> {
        let said = self.said();
        said.accessed_by
            .iter()
            .filter(|(_, ranges)| ranges.get(start, end).is_some())
            .map(|(place, _)| *place)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_a_value_if_all_of_it_has() {
        const BASE: u64 = 512;
        let hints = Hints::default();
        let device = (1, 0);
        let at = |page: u64, n: u64| pages(BASE, BASE + page * PAGE, n * PAGE);
        hints.advise(at(0, 3), 3, device);
        hints.advise(pages(BASE, BASE + 3 * PAGE + 1, 1), 3, device);
        assert_eq!(hints.preferred_place(at(1, 3)), Some(device));
        assert_eq!(hints.preferred_place(at(1, 4)), None);
        hints.advise(at(1, 1), 3, (2, 0));
        assert_eq!(hints.preferred_place(at(0, 1)), Some(device));
        assert_eq!(hints.preferred_place(pages(BASE, BASE + PAGE + 5, 7)), Some((2, 0)));
        assert_eq!(hints.preferred_place(at(0, 2)), None);
        hints.advise(at(0, 8), 4, device);
        assert_eq!(hints.preferred_place(at(0, 1)), None);
        hints.advise(at(0, 4), 5, device);
        hints.advise(at(1, 1), 6, device);
        assert_eq!((hints.users(at(0, 1)), hints.users(at(0, 2))), (vec![device], vec![]));
        hints.forget(at(0, 9));
        assert!(hints.users(at(3, 1)).is_empty());
    }
}
