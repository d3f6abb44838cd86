//! The time that a launch waits for code of further tiers, and the tiers that it ran in.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::stop::Progress;
use super::tier::Tier;
use crate::lock::lock;

/// What the workers of a launch share about its code. Most launches wait for none: those take no lock.
#[derive(Debug, Default)]
pub(crate) struct Recompile {
    /// Workers that have not ended.
    n_working: AtomicUsize,
    /// One more than the number of the highest tier in which a block ran.
    tier: AtomicU8,
    /// Some worker has waited.
    has_waited: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Workers that wait for code.
    n_waiting: usize,
    /// Since when all of them wait.
    since: Option<Instant>,
    total: Duration,
    /// A worker left before the code was there.
    left: bool,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recompiled {
    /// Time in which every worker that had not ended waited for code: the launch did nothing else.
    pub(crate) time: Duration,
    /// The highest tier in which a block ran.
    pub(crate) tier: Option<Tier>,
}

impl Recompile {
    /// A launch with so many workers starts.
    pub(crate) fn begin(&self, workers: usize) {
        self.n_working.store(workers, Ordering::Relaxed);
        self.tier.store(0, Ordering::Relaxed);
        if self.has_waited.load(Ordering::Relaxed) {
            self.has_waited.store(false, Ordering::Relaxed);
            *lock(&self.state) = State::default();
        }
    }

    /// A worker waits for the code of a tier by `wait`.
    ///
    /// # Errors
    /// As `wait`.
    pub(crate) fn during<E>(
        &self,
        tier: Tier,
        progress: Option<&Progress>,
        wait: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        // Either this worker sees that another one has ended, or that one sees that this one waits.
        self.has_waited.swap(true, Ordering::SeqCst);
        self.wait(1);
        let result = Progress::while_compiling(progress, wait);
        self.wait(-1);
        match result {
            Ok(()) => self.ran_in(Some(tier)),
            Err(_) => lock(&self.state).left = true,
        }
        result
    }

    fn ran_in(&self, tier: Option<Tier>) {
        let number = tier.map_or(0, |tier| 1 + tier as u8);
        // Mostly it is known.
        if self.tier.load(Ordering::Relaxed) < number {
            self.tier.fetch_max(number, Ordering::Relaxed);
        }
    }

    fn wait(&self, more: isize) {
        let mut state = lock(&self.state);
        state.wait(more, self.n_working.load(Ordering::SeqCst));
    }

    /// A worker has ended, which ran blocks that started in a tier.
    pub(crate) fn end(&self, tier: Option<Tier>) {
        if self.n_working.load(Ordering::Relaxed) <= 1 {
            // The last one: nobody else writes.
            let number = tier.map_or(0, |tier| 1 + tier as u8);
            self.tier.store(self.tier.load(Ordering::Relaxed).max(number), Ordering::Relaxed);
            self.n_working.store(0, Ordering::Relaxed);
        } else {
            self.ran_in(tier);
            self.n_working.fetch_sub(1, Ordering::SeqCst);
        }
        if self.has_waited.load(Ordering::SeqCst) {
            self.wait(0);
        }
    }

    /// Whether a worker left before its code was there.
    pub(crate) fn was_left(&self) -> bool {
        self.has_waited.load(Ordering::Relaxed) && lock(&self.state).left
    }

    /// What came of it, when all workers have ended.
    pub(crate) fn result(&self) -> Recompiled {
        let time = if self.has_waited.load(Ordering::Relaxed) { lock(&self.state).total } else { Duration::ZERO };
        let tier = self.tier.load(Ordering::Relaxed).checked_sub(1).map(|number| Tier::ALL[usize::from(number)]);
        Recompiled { time, tier }
    }
}

impl State {
    /// So many workers more wait, of those that have not ended.
    fn wait(&mut self, more: isize, n_working: usize) {
        if self.n_waiting == 0 && more == 0 {
            return;
        }
        let now = Instant::now();
        if let Some(since) = self.since.take() {
            self.total += now - since;
        }
        self.n_waiting = self.n_waiting.saturating_add_signed(more);
        if self.n_waiting > 0 && self.n_waiting == n_working {
            self.since = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(20);

    fn sleep(recompile: &Recompile) {
        let wait = || {
            std::thread::sleep(MS);
            Ok::<(), ()>(())
        };
        recompile.during(Tier::Quick, None, wait).unwrap();
    }

    #[test]
    fn time_counts_while_nobody_works() {
        let r = Recompile::default();
        r.begin(2);
        sleep(&r);
        assert_eq!(r.result().time, Duration::ZERO);
        r.end(Some(Tier::Lean));
        sleep(&r);
        assert!(r.result().time >= MS);
        assert_eq!(r.result().tier, Some(Tier::Quick));
        r.begin(1);
        r.end(Some(Tier::Lean));
        assert_eq!((r.result().time, r.result().tier), (Duration::ZERO, Some(Tier::Lean)));
    }

    #[test]
    fn who_leaves_is_noted() {
        let r = Recompile::default();
        r.begin(1);
        assert!(r.during(Tier::Quick, None, || Err::<(), ()>(())).is_err());
        assert!(r.was_left() && r.result().tier.is_none());
    }
}
