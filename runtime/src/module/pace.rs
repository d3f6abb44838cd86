//! What a unit of a grid takes, by what launches took.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Grids with less work than this, in nanoseconds, run on the calling thread: waking the pool takes about 10 us.
pub(crate) const SMALL_NS: u64 = 20_000;

/// What is known of it.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Nanoseconds of a thread at the last launch; 0 if there was none.
    unit_ns: AtomicU64,
    /// Launches by several workers that took less than [`SMALL_NS`].
    short: AtomicU32,
}

impl Pace {
    /// Nanoseconds that a unit takes; 0 if nobody knows.
    pub(super) fn unit_ns(&self) -> u64 {
        self.unit_ns.load(Ordering::Relaxed)
    }

    /// Notes how long so many workers took for so many units.
    ///
    /// What several workers take for a small launch is mostly their coming and going. Counted as what units take, it would keep a launch whose first run was slow
    /// spread over workers for ever. So the first, second, fourth, eighth such time and so on is taken for the work of one worker: the next launch then runs on
    /// one thread and shows what it takes.
    pub(super) fn note(&self, time: Duration, workers: usize, units: u64) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let is_short = workers > 1 && ns < SMALL_NS;
        let is_for_one = is_short && self.short.fetch_add(1, Ordering::Relaxed).wrapping_add(1).is_power_of_two();
        let workers = if is_for_one { 1 } else { workers as u64 };
        self.unit_ns.store((ns.saturating_mul(workers) / units.max(1)).max(1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs launches of two units on two workers as the scheduler does; returns how many ran on several.
    fn spread(pace: &Pace, launches: usize, alone: u64, together: u64) -> usize {
        let is_small = || pace.unit_ns() != 0 && pace.unit_ns() * 2 < SMALL_NS;
        let one = |_: usize| {
            let (workers, ns) = if is_small() { (1, alone) } else { (2, together) };
            pace.note(Duration::from_nanos(ns), workers, 2);
            workers > 1
        };
        (0..launches).filter(|i| one(*i)).count()
    }

    #[test]
    fn a_small_launch_that_began_slowly_finds_to_one_thread() {
        let pace = Pace::default();
        pace.note(Duration::from_millis(3), 2, 2);
        assert_eq!(spread(&pace, 100, 2_000, 14_000), 1);
    }

    #[test]
    fn a_launch_that_is_faster_by_several_is_hardly_ever_run_by_one() {
        let pace = Pace::default();
        pace.note(Duration::from_millis(3), 2, 2);
        assert!(spread(&pace, 1000, 30_000, 18_000) >= 985);
        assert_eq!(spread(&Pace::default(), 100, 90_000, 50_000), 100);
    }
}
