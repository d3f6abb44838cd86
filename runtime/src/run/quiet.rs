//! When a launch that only waits for memory to change is taken for a deadlock, though others could change it.
//!
//! Streams and the host may write what the threads of a launch wait for, so that all of them wait proves nothing. But when the host waits for its
//! streams, all that runs in the process waits for memory, and nothing begins, ends or goes on for as long as the launch allows, then nobody will
//! write it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::lock::lock;

/// Work of the process: how much runs, in the low bits, and above them a number that changes whenever something begins, ends or goes on.
static WORK: AtomicU64 = AtomicU64::new(0);
const CHANGE: u64 = 1 << 20;

/// Launches that run and are quiet.
static QUIET: AtomicUsize = AtomicUsize::new(0);

/// Threads of the host that wait for work of streams.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Work that runs, as long as this is there.
#[derive(Debug)]
pub(crate) struct Running(());

impl Running {
    /// Begins.
    pub(crate) fn begin() -> Running {
        WORK.fetch_add(CHANGE + 1, Ordering::SeqCst);
        Running(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        WORK.fetch_add(CHANGE - 1, Ordering::SeqCst);
    }
}

/// A thread of the host that waits, as long as this is there.
#[derive(Debug)]
pub(crate) struct HostWaits(());

impl HostWaits {
    /// Begins to wait.
    pub(crate) fn begin() -> HostWaits {
        WAITING.fetch_add(1, Ordering::SeqCst);
        HostWaits(())
    }
}

impl Drop for HostWaits {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What a launch knows of its silence.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    is_quiet: AtomicBool,
    since: Mutex<Option<Since>>,
}

/// When the launch was found quiet, and what was so then.
#[derive(Debug)]
struct Since {
    moves: u64,
    work: u64,
    at: Instant,
}

impl Silence {
    /// All threads of the launch wait; `moves` is a number that changes when one of them goes on. Says whether nothing at all has happened for so
    /// long that nothing ever will.
    pub(crate) fn lasts(&self, moves: u64, limit: Duration) -> bool {
        let mut since = lock(&self.since);
        if !self.is_quiet.swap(true, Ordering::SeqCst) {
            QUIET.fetch_add(1, Ordering::SeqCst);
        }
        let work = WORK.load(Ordering::SeqCst);
        let running = usize::try_from(work % CHANGE).unwrap_or(usize::MAX);
        let all_wait = running == QUIET.load(Ordering::SeqCst) && WAITING.load(Ordering::SeqCst) > 0;
        match &*since {
            Some(s) if all_wait && s.moves == moves && s.work == work => s.at.elapsed() >= limit,
            Some(_) | None => {
                *since = Some(Since { moves, work, at: Instant::now() });
                false
            }
        }
    }

    /// Some thread of the launch goes on.
    #[inline]
    pub(crate) fn end(&self) {
        if self.is_quiet.load(Ordering::Relaxed) && self.is_quiet.swap(false, Ordering::SeqCst) {
            QUIET.fetch_sub(1, Ordering::SeqCst);
            WORK.fetch_add(CHANGE, Ordering::SeqCst);
        }
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        self.end();
    }
}
