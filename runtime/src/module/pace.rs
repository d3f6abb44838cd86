//! What a unit of a grid takes, by what launches took, and whether one thread runs a launch faster than several.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Grids with less work than this, in nanoseconds, run on the calling thread: waking the pool takes about 10 us.
const SMALL_NS: u64 = 20_000;

/// Nanoseconds of all threads up to which the coming and going of workers may be more than what they gain.
const SHORT_NS: u64 = 100_000;

/// The same up to which a launch whose workers may hinder each other is tried on one thread: what takes longer would be held up by it.
const MOST_TRIED_NS: u64 = 20_000_000;

/// Time that threads ran some code, all together, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct ThreadTime(AtomicU64);

impl ThreadTime {
    /// Adds a launch that so many workers ran for so long, and gives all of it. Launches at one time may lose some.
    pub(super) fn add(&self, time: Duration, workers: usize) -> Duration {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).saturating_mul(workers as u64);
        let all = self.0.load(Ordering::Relaxed).saturating_add(ns);
        self.0.store(all, Ordering::Relaxed);
        Duration::from_nanos(all)
    }
}

/// What is known of it.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Nanoseconds of a thread at the last launch; 0 if there was none.
    unit_ns: AtomicU64,
    /// Launches by several workers that took less than [`SMALL_NS`].
    short: AtomicU32,
    /// Of launches of about the size of the last one.
    ways: Ways,
}

/// What launches of one size take by one worker and by several. Workers may hinder each other: atomics of all blocks to a few words go from core to core.
#[derive(Debug, Default)]
struct Ways {
    /// The binary logarithm of the number of units, and one more; 0 if there was no launch.
    size: AtomicU32,
    /// Nanoseconds of a launch by one worker, as a rule; 0 if there was none.
    alone: AtomicU64,
    /// The same by several.
    together: AtomicU64,
    /// Launches that might have been run either way.
    asked: AtomicU32,
}

impl Ways {
    fn size_of(units: u64) -> u32 {
        units.checked_ilog2().map_or(0, |log| log + 1)
    }

    /// Whether one worker is to run a launch of so many units. The second, eighth, thirty-second launch and so on goes the other way than the better one, and shows what
    /// that takes now.
    fn is_for_one(&self, units: u64) -> bool {
        if self.size.load(Ordering::Relaxed) != Ways::size_of(units) {
            return false;
        }
        let [alone, together] = [&self.alone, &self.together].map(|t| t.load(Ordering::Relaxed));
        let is_better = alone != 0 && together != 0 && alone < together;
        let asked = self.asked.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        is_better != (asked.is_power_of_two() && asked.ilog2() % 2 == 1)
    }

    /// Notes a launch. One that took longer than others did says little: something else may have run meanwhile.
    fn note(&self, ns: u64, workers: usize, units: u64) {
        let size = Ways::size_of(units);
        if self.size.load(Ordering::Relaxed) != size {
            self.size.store(size, Ordering::Relaxed);
            for t in [&self.alone, &self.together] {
                t.store(0, Ordering::Relaxed);
            }
            self.asked.store(0, Ordering::Relaxed);
        }
        let of_way = if workers == 1 { &self.alone } else { &self.together };
        let before = of_way.load(Ordering::Relaxed);
        let now = if before == 0 || ns < before { ns } else { before + (ns - before).min(before) / 8 };
        of_way.store(now.max(1), Ordering::Relaxed);
    }
}

impl Pace {
    /// Nanoseconds that a unit takes; 0 if nobody knows.
    pub(super) fn unit_ns(&self) -> u64 {
        self.unit_ns.load(Ordering::Relaxed)
    }

    /// Whether one worker is to run a launch of so many units that several could run. `may_hinder`: workers may wait for each other.
    pub(super) fn is_for_one(&self, units: u64, may_hinder: bool) -> bool {
        match self.unit_ns().saturating_mul(units) {
            0 => units == 1,
            ns if ns < SMALL_NS => true,
            ns => {
                let most = if may_hinder { MOST_TRIED_NS } else { SHORT_NS };
                units == 1 || ns < most && self.ways.is_for_one(units)
            }
        }
    }

    /// Notes how long so many workers took for so many units.
    ///
    /// What several workers take for a small launch is mostly their coming and going. Counted as what units take, it would keep a launch whose first run was slow
    /// spread over workers for ever. So the first, second, fourth, eighth such time and so on is taken for the work of one worker: the next launch then runs on
    /// one thread and shows what it takes.
    pub(super) fn note(&self, time: Duration, workers: usize, units: u64) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.ways.note(ns, workers, units);
        let is_short = workers > 1 && ns < SMALL_NS;
        let is_for_one = is_short && self.short.fetch_add(1, Ordering::Relaxed).wrapping_add(1).is_power_of_two();
        let workers = if is_for_one { 1 } else { workers as u64 };
        self.unit_ns.store((ns.saturating_mul(workers) / units.max(1)).max(1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs launches of so many units on two workers as the scheduler does; returns how many ran on several.
    fn spread(pace: &Pace, units: u64, launches: usize, alone: u64, together: u64) -> usize {
        let one = |_: usize| {
            let (workers, ns) = if pace.is_for_one(units, true) { (1, alone) } else { (2, together) };
            pace.note(Duration::from_nanos(ns), workers, units);
            workers > 1
        };
        (0..launches).filter(|i| one(*i)).count()
    }

    #[test]
    fn a_small_launch_that_began_slowly_finds_to_one_thread() {
        let pace = Pace::default();
        pace.note(Duration::from_millis(3), 2, 2);
        assert_eq!(spread(&pace, 2, 100, 2_000, 14_000), 1);
    }

    #[test]
    fn a_launch_that_is_faster_by_several_is_hardly_ever_run_by_one() {
        let pace = Pace::default();
        pace.note(Duration::from_millis(3), 2, 2);
        assert!(spread(&pace, 2, 1000, 30_000, 18_000) >= 985);
        assert!(spread(&Pace::default(), 100, 1000, 90_000, 50_000) >= 990);
        // What takes long is not tried otherwise.
        assert_eq!(spread(&Pace::default(), 100, 1000, 22_000_000, 12_000_000), 1000);
    }

    #[test]
    fn a_launch_whose_workers_hinder_each_other_is_run_by_one() {
        let pace = Pace::default();
        assert!(spread(&pace, 256, 1000, 400_000, 1_000_000) <= 12);
        // Other sizes are launches of their own: it is not known of them.
        assert_eq!(spread(&pace, 100, 1, 400_000, 1_000_000), 1);
        // One slow launch changes nothing.
        let pace = Pace::default();
        spread(&pace, 256, 100, 90_000, 50_000);
        pace.note(Duration::from_millis(1), 2, 256);
        assert_eq!(spread(&pace, 256, 20, 90_000, 50_000), 20);
    }
}
