//! When a launch that only waits for memory to change is taken for a deadlock, though others could change it.
//!
//! Streams and the host may write what the threads of a launch wait for, so that all of them wait proves nothing. But when the host waits for its
//! streams, all that runs in the process waits for memory, and nothing begins, ends or goes on for as long as the launch allows, then nobody will
//! write it. A host that asks its streams again and again whether they are done waits too; since it may do something between, it gets three times as long.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::lock::lock;

/// Work of the process: how much runs, in the low bits, and above them a number that changes whenever something begins, ends or goes on. It is the
/// sum of what each thread adds: nobody else writes its part, so that a launch needs no locked instructions for it, each of which takes some hundredths of
/// a small one. Parts are read one after the other; since the number above only grows, two equal sums say that nothing happened between them.
static PARTS: Mutex<Vec<Arc<AtomicU64>>> = Mutex::new(Vec::new());
const CHANGE: u64 = 1 << 20;

/// The parts of threads that have ended.
static ENDED: AtomicU64 = AtomicU64::new(0);

/// What this thread adds to the work of the process.
struct Part(Arc<AtomicU64>);

thread_local! {
    static PART: Part = {
        let part = Arc::default();
        lock(&PARTS).push(Arc::clone(&part));
        Part(part)
    };
}

impl Drop for Part {
    fn drop(&mut self) {
        let mut parts = lock(&PARTS);
        parts.retain(|part| !Arc::ptr_eq(part, &self.0));
        ENDED.fetch_add(self.0.load(Ordering::Relaxed), Ordering::SeqCst);
    }
}

/// Adds to the work of the process.
#[inline]
fn add(n: u64) {
    let to = |part: &Part| part.0.store(part.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Release);
    if PART.try_with(to).is_err() {
        // The thread is about to end.
        ENDED.fetch_add(n, Ordering::SeqCst);
    }
}

/// The work of the process.
fn work() -> u64 {
    let parts = lock(&PARTS);
    parts.iter().fold(ENDED.load(Ordering::SeqCst), |sum, part| sum.wrapping_add(part.load(Ordering::Acquire)))
}

/// Launches that run and are quiet.
static QUIET: AtomicUsize = AtomicUsize::new(0);

/// Threads of the host that wait for work of streams.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// When the host last asked for work that was not done, in milliseconds since [`start`].
static ASKED: AtomicU64 = AtomicU64::new(0);

/// How long the host may do something else between two questions and still counts as waiting.
const PAUSE: Duration = Duration::from_millis(250);

/// How much longer a host that asks may be kept waiting than one that waits.
const PATIENCE: u32 = 3;

fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

fn now() -> u64 {
    u64::try_from(start().elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// The host asked whether work is done, and it is not.
pub(crate) fn asked() {
    ASKED.store(now().max(1), Ordering::Relaxed);
}

/// Whether the host asks all the time.
fn asks() -> bool {
    let last = ASKED.load(Ordering::Relaxed);
    last != 0 && u128::from(now().saturating_sub(last)) <= PAUSE.as_millis()
}

/// Work that runs, as long as this is there.
#[derive(Debug)]
pub(crate) struct Running(());

impl Running {
    /// Begins.
    pub(crate) fn begin() -> Running {
        add(CHANGE + 1);
        Running(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        add(CHANGE - 1);
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
        let work = work();
        let running = usize::try_from(work % CHANGE).unwrap_or(usize::MAX);
        let waits = WAITING.load(Ordering::SeqCst) > 0;
        let all_wait = running == QUIET.load(Ordering::SeqCst) && (waits || asks());
        let limit = if waits { limit } else { limit * PATIENCE };
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
            add(CHANGE);
        }
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        self.end();
    }
}
