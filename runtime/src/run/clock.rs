//! How long something took, asked in a tenth of a small launch less than the system takes to answer.
//!
//! Where the system itself tells the time by the counter of the processor, it has found that steady and the same on all cores. Then the counter alone is asked,
//! which takes 10 ns instead of 23. How long its ticks are is found out once, from the first time that was asked for to one some milliseconds
//! later; until then, and elsewhere, the system is asked.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Nanoseconds of a tick, times 2^32; 0 as long as nobody knows.
static TICK: AtomicU64 = AtomicU64::new(0);

/// How long ticks are counted to find out how long one is. Both ends are right to a few hundred nanoseconds.
const CALIBRATION: Duration = Duration::from_millis(5);

/// Most ticks between two looks at the counter around one at the system's clock: more, and the thread was interrupted there.
const MOST_TICKS: u64 = 4000;

/// A point in time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moment {
    /// By the counter of the processor.
    Ticks(u64),
    /// By the system.
    Time(Instant),
}

impl Moment {
    /// Now.
    #[inline]
    pub(crate) fn now() -> Moment {
        if TICK.load(Ordering::Relaxed) != 0 { Moment::Ticks(ticks()) } else { Moment::Time(asked()) }
    }

    /// Time since then.
    #[inline]
    pub(crate) fn elapsed(self) -> Duration {
        match self {
            Moment::Ticks(then) => {
                let ticks = u128::from(ticks().saturating_sub(then));
                let ns = (ticks * u128::from(TICK.load(Ordering::Relaxed))) >> 32;
                Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
            }
            Moment::Time(then) => then.elapsed(),
        }
    }
}

/// The time by the system. Finds out how long ticks are if enough of them have passed.
#[cold]
fn asked() -> Instant {
    static FIRST: OnceLock<Option<(Instant, u64)>> = OnceLock::new();
    let now = Instant::now();
    if let Some((first, ticks)) = FIRST.get_or_init(|| is_steady().then(both).flatten())
        && now.duration_since(*first) >= CALIBRATION
        && let Some((then, later)) = both()
    {
        let ns = then.duration_since(*first).as_nanos();
        let tick = (ns << 32).checked_div(u128::from(later.saturating_sub(*ticks))).unwrap_or(0);
        TICK.store(u64::try_from(tick).unwrap_or(0), Ordering::Relaxed);
    }
    now
}

/// The time by both clocks, unless they were asked too far apart.
fn both() -> Option<(Instant, u64)> {
    let before = ticks();
    let now = Instant::now();
    let after = ticks();
    (after.saturating_sub(before) < MOST_TICKS).then_some((now, before.midpoint(after)))
}

/// Whether the system tells the time by the counter of the processor.
#[cfg(target_arch = "x86_64")]
fn is_steady() -> bool {
    let source = std::fs::read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    source.is_ok_and(|name| name.trim_ascii() == b"tsc")
}

#[cfg(not(target_arch = "x86_64"))]
fn is_steady() -> bool {
    false
}

/// The counter of the processor.
#[cfg(target_arch = "x86_64")]
#[inline]
fn ticks() -> u64 {
    // SAFETY: every processor of this kind has the instruction, and the system lets programs use it where it tells the time by it; elsewhere
    // nobody asks.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_as_the_clock_of_the_system() {
        let slack = Duration::from_micros(20);
        // Before ticks are known, when they are measured, and by them.
        for _ in 0..4 {
            let early = Instant::now();
            let ours = Moment::now();
            let late = Instant::now();
            while late.elapsed() < Duration::from_millis(15) {
                std::thread::yield_now();
            }
            let least = late.elapsed();
            let took = ours.elapsed();
            assert!(least <= took + slack && took <= early.elapsed() + slack, "{took:?} of {least:?}");
        }
    }
}
