//! Ending a launch from outside: a stop word that compiled code looks at, and a watchdog for time limits.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The word says nothing.
const RUN: u32 = 0;
/// Somebody asked for the end.
const STOP: u32 = 1;
/// The time limit has passed.
const TIMEOUT: u32 = 2;

/// Stops launches that were given it: from a signal handler too, since it only stores a word.
#[derive(Clone, Debug, Default)]
pub struct StopHandle {
    word: Arc<AtomicU32>,
}

impl StopHandle {
    /// A handle that has not been used.
    pub fn new() -> StopHandle {
        StopHandle::default()
    }

    /// Asks all launches with this handle to end, now and later.
    pub fn stop(&self) {
        self.word.store(STOP, Ordering::Release);
    }

    /// Takes a stop back, so that the handle serves launches again.
    pub fn renew(&self) {
        self.word.store(RUN, Ordering::Release);
    }

    /// Whether [`stop`](Self::stop) was called.
    pub fn is_stopped(&self) -> bool {
        self.word.load(Ordering::Acquire) == STOP
    }

    pub(crate) fn is_timeout(&self) -> bool {
        self.word.load(Ordering::Acquire) == TIMEOUT
    }

    pub(crate) fn is_set(&self) -> bool {
        self.word.load(Ordering::Acquire) != RUN
    }

    /// Address of the word, for compiled code.
    pub(crate) fn address(&self) -> u64 {
        self.word.as_ptr() as u64
    }

    fn time_out(&self) {
        let _ = self.word.compare_exchange(RUN, TIMEOUT, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Takes a time-out back, so that the handle serves another launch.
    fn clear_timeout(&self) {
        let _ = self.word.compare_exchange(TIMEOUT, RUN, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// How far a launch has come. Shared with the one that shows it.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    done: Arc<AtomicU64>,
    compiling: Arc<AtomicU32>,
}

impl Progress {
    /// At zero.
    pub fn new() -> Progress {
        Progress::default()
    }

    /// Blocks that have ended, of all launches that were given it.
    pub fn blocks_done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Whether some thread of a launch waits for code to be made.
    pub fn is_compiling(&self) -> bool {
        self.compiling.load(Ordering::Relaxed) > 0
    }

    /// Says that code is made during `work`, if somebody wants to know.
    pub(crate) fn while_compiling<T>(progress: Option<&Progress>, work: impl FnOnce() -> T) -> T {
        if let Some(p) = progress {
            p.compiling.fetch_add(1, Ordering::Relaxed);
        }
        let result = work();
        if let Some(p) = progress {
            p.compiling.fetch_sub(1, Ordering::Relaxed);
        }
        result
    }

    pub(crate) fn add(&self, blocks: u64) {
        self.done.fetch_add(blocks, Ordering::Relaxed);
    }
}

/// How often a watchdog looks whether somebody asked for the end.
const TICK: Duration = Duration::from_millis(10);

/// Sets the stop word of a launch when its time is over, or when another handle asks for the end. Ends when dropped.
#[derive(Debug)]
pub(crate) struct Watchdog {
    handle: StopHandle,
    /// It sets the word when another handle asks for the end too.
    passes_on: bool,
    over: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Watchdog {
    /// Starts to watch; `None` if the host refuses the thread.
    pub(crate) fn start(handle: &StopHandle, asked: Option<&StopHandle>, limit: Duration) -> Option<Watchdog> {
        let over = Arc::new((Mutex::new(false), Condvar::new()));
        let (watched, asked, shared) = (handle.clone(), asked.cloned(), Arc::clone(&over));
        let passes_on = asked.is_some();
        let deadline = Instant::now().checked_add(limit)?;
        let watch = move || {
            let (done, changed) = &*shared;
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            while !*done {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    watched.time_out();
                    return;
                }
                if asked.as_ref().is_some_and(StopHandle::is_stopped) {
                    watched.stop();
                    return;
                }
                let left = if asked.is_some() { left.min(TICK) } else { left };
                done = changed.wait_timeout(done, left).unwrap_or_else(PoisonError::into_inner).0;
            }
        };
        let thread = std::thread::Builder::new().name("handloom-watchdog".into()).spawn(watch).ok()?;
        Some(Watchdog { handle: handle.clone(), passes_on, over, thread: Some(thread) })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let (done, changed) = &*self.over;
        *done.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
        if let Some(t) = self.thread.take() {
            let _ = t.join();
        }
        if self.passes_on {
            // Nobody else sets this word. Whether its launch may run again is for the other handle to say.
            self.handle.renew();
        } else {
            self.handle.clear_timeout();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watchdog_sets_the_word_and_takes_it_back() {
        let h = StopHandle::new();
        let w = Watchdog::start(&h, None, Duration::from_millis(1)).unwrap();
        while !h.is_timeout() {
            std::thread::yield_now();
        }
        drop(w);
        assert!(!h.is_set());
        let w = Watchdog::start(&h, None, Duration::from_secs(1000)).unwrap();
        h.stop();
        drop(w);
        assert!(h.is_stopped());
        // Another handle asks: its word goes on to the one that code looks at.
        let own = StopHandle::new();
        let w = Watchdog::start(&own, Some(&h), Duration::from_secs(1000)).unwrap();
        while !own.is_stopped() {
            std::thread::yield_now();
        }
        drop(w);
        assert!(!own.is_set() && h.is_stopped());
    }
}
