//! The time that a launch waits for code of further tiers, and the tiers that it ran in.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::stop::Progress;
use super::tier::Tier;
use crate::lock::lock;

/// What the workers of a launch share about its code.
#[derive(Debug, Default)]
pub(crate) struct Recompile {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Workers that have not ended.
    n_working: usize,
    /// Those of them that wait for code.
    n_waiting: usize,
    /// Since when all of them wait.
    since: Option<Instant>,
    total: Duration,
    /// The highest tier in which a block ran.
    tier: Option<Tier>,
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
        *lock(&self.state) = State { n_working: workers, ..State::default() };
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
        lock(&self.state).wait(1);
        let result = Progress::while_compiling(progress, wait);
        let mut state = lock(&self.state);
        state.wait(-1);
        match result {
            Ok(()) => state.tier = state.tier.max(Some(tier)),
            Err(_) => state.left = true,
        }
        result
    }

    /// A worker has ended, which ran blocks that started in a tier.
    pub(crate) fn end(&self, tier: Option<Tier>) {
        let mut state = lock(&self.state);
        state.tier = state.tier.max(tier);
        state.n_working = state.n_working.saturating_sub(1);
        state.wait(0);
    }

    /// Whether a worker left before its code was there.
    pub(crate) fn was_left(&self) -> bool {
        lock(&self.state).left
    }

    /// What came of it, when all workers have ended.
    pub(crate) fn result(&self) -> Recompiled {
        let state = lock(&self.state);
        Recompiled { time: state.total, tier: state.tier }
    }
}

impl State {
    /// So many workers more wait.
    fn wait(&mut self, more: isize) {
        if self.n_waiting == 0 && more == 0 {
            return;
        }
        let now = Instant::now();
        if let Some(since) = self.since.take() {
            self.total += now - since;
        }
        self.n_waiting = self.n_waiting.saturating_add_signed(more);
        if self.n_waiting > 0 && self.n_waiting == self.n_working {
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
