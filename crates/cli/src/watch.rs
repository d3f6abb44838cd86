//! Signals and progress while code is made and kernels run.
//!
//! Choice: this is the one thread that the command line always starts. It sleeps, looks at the flags that signal handlers set, stops
//! launches through their handle, and draws. Launches run on the thread that asked for them. It never waits for a lock that somebody may hold
//! while he writes.

use std::process;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use handloom_runtime::{Progress, StopHandle};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::outputs::abandon;
use crate::printed::Printed;
use crate::report::{Failure, Out, Status, Stdout, reason};

/// How often it looks.
const TICK: Duration = Duration::from_millis(50);

/// What takes longer shows progress.
const QUIET: Duration = Duration::from_secs(1);

/// If a signal has not ended the command so long after it, the process ends at once.
const PATIENCE: Duration = Duration::from_millis(400);

/// Watches until it is dropped.
pub struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    /// Number of the signal that came; 0 for none.
    signal: Arc<AtomicUsize>,
    stop: StopHandle,
    over: AtomicBool,
    stdout: Stdout,
    shown: Shown,
}

/// What is shown of the work that goes on. A clone is the same.
#[derive(Clone, Default)]
pub struct Shown(Arc<Mutex<Option<Now>>>);

/// The work that goes on.
struct Now {
    name: String,
    work: Work,
    since: Instant,
    /// Nothing is to be shown now.
    hidden: bool,
    /// Shown since it takes long, by what template.
    bar: Option<(&'static str, ProgressBar)>,
}

/// What takes time.
#[derive(Clone)]
pub enum Work {
    /// Making code.
    Compile,
    /// A launch of so many blocks, which counts them.
    Launch {
        /// Blocks of the grid.
        blocks: u64,
        /// Where they are counted.
        progress: Progress,
        /// What the kernel prints.
        printed: Printed,
        /// What is written of a launch that did not end: by its entry and what the kernel printed.
        stopped: fn(&str, Vec<u8>) -> Vec<u8>,
    },
    /// Launches that are timed.
    Rounds(Rounds),
}

/// Rounds of timed launches. A clone counts the same.
#[derive(Clone, Default)]
pub struct Rounds {
    total: Option<usize>,
    done: Arc<AtomicUsize>,
}

impl Rounds {
    /// So many rounds, if that is known.
    pub fn new(total: Option<usize>) -> Rounds {
        Rounds { total, done: Arc::default() }
    }

    /// One more is done.
    pub fn add(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

impl Shown {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Now>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something while nothing is shown.
    pub fn aside(&self, work: impl FnOnce()) {
        // Not while the lock is held: the work may wait for a reader, and whoever draws must not.
        if let Some(now) = self.lock().as_mut() {
            now.clear();
            now.hidden = true;
        }
        work();
        if let Some(now) = self.lock().as_mut() {
            now.hidden = false;
        }
    }
}

impl Watch {
    /// Takes SIGINT and SIGTERM over, and starts to watch.
    ///
    /// # Errors
    /// The host refuses the handlers or the thread.
    pub fn start(out: &Out) -> Result<Watch, Failure> {
        let shared = Arc::new(Shared {
            signal: Arc::default(),
            stop: StopHandle::new(),
            over: AtomicBool::new(false),
            stdout: out.stdout(),
            shown: Shown::default(),
        });
        let refused = |e: std::io::Error| Failure::file(format!("signals cannot be watched: {}", reason(&e)));
        for signal in [SIGINT, SIGTERM] {
            let number = usize::try_from(signal).unwrap_or(0);
            signal_hook::flag::register_usize(signal, Arc::clone(&shared.signal), number).map_err(refused)?;
        }
        let watched = Arc::clone(&shared);
        let thread = thread::Builder::new().name("handloom-watch".into()).spawn(move || watched.look());
        Ok(Watch { thread: Some(thread.map_err(refused)?), shared })
    }

    /// What is shown of the work that goes on.
    pub fn shown(&self) -> &Shown {
        &self.shared.shown
    }

    /// What launches must be given so that signals stop them.
    pub fn stop(&self) -> &StopHandle {
        &self.shared.stop
    }

    /// The end of a command by a signal, before `what` was done.
    pub fn stopped(&self, what: &str) -> Failure {
        let status = self.shared.status().unwrap_or(Status::Signal(2));
        Failure { status, message: format!("{what} was stopped by a signal") }
    }

    /// Does work that may take long.
    pub fn during<T>(&self, name: &str, work: Work, run: impl FnOnce() -> T) -> T {
        let name = name.to_owned();
        *self.shared.shown.lock() = Some(Now { name, work, since: Instant::now(), hidden: false, bar: None });
        let result = run();
        // Here and not by the thread, so that the bar is gone before anything else is written.
        if let Some(mut now) = self.shared.shown.lock().take() {
            now.clear();
        }
        result
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
        if let Some(t) = self.thread.take() {
            t.thread().unpark();
            // It does not panic, and if it did there is nothing to clean up.
            let _ = t.join();
        }
    }
}

impl Shared {
    fn status(&self) -> Option<Status> {
        let signal = u8::try_from(self.signal.load(Ordering::Acquire)).ok().filter(|s| *s > 0)?;
        Some(Status::Signal(signal))
    }

    fn look(&self) {
        let mut signalled: Option<Instant> = None;
        while !self.over.load(Ordering::Acquire) {
            if let Some(status) = self.status() {
                self.stop.stop();
                if signalled.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                    self.leave(status);
                }
            }
            match self.shown.0.try_lock() {
                Ok(mut now) => {
                    let long = |now: &&mut Now| now.since.elapsed() >= QUIET && !now.hidden;
                    now.iter_mut().filter(long).for_each(Now::draw);
                }
                Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => {}
            }
            thread::park_timeout(TICK);
        }
    }

    /// Ends the process, with what was written so far and what the kernel printed.
    fn leave(&self, status: Status) -> ! {
        let mut last = Vec::new();
        if let Ok(mut now) = self.shown.0.try_lock()
            && let Some(now) = now.as_mut()
        {
            now.clear();
            if let Work::Launch { printed, stopped, .. } = &now.work
                && let Some(text) = printed.kept_if_free()
            {
                last = stopped(&now.name, text);
            }
        }
        abandon();
        self.stdout.finish_if_free(&last);
        process::exit(i32::from(status.code()));
    }
}

impl Now {
    fn draw(&mut self) {
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let (template, total, done) = match &self.work {
            Work::Compile => (COMPILING, 0, 0),
            Work::Launch { progress, .. } if progress.is_compiling() => (COMPILING, 0, 0),
            Work::Launch { blocks, progress, .. } => (RUNNING, *blocks, progress.blocks_done()),
            Work::Rounds(Rounds { total: None, done }) => (TIMING, 0, count(done.load(Ordering::Relaxed))),
            Work::Rounds(Rounds { total: Some(total), done }) => {
                (TIMING_OF, count(*total), count(done.load(Ordering::Relaxed)))
            }
        };
        if self.bar.as_ref().is_some_and(|(of, _)| *of != template) {
            self.clear();
        }
        let (_, bar) = self.bar.get_or_insert_with(|| {
            let bar = new_bar(template, total);
            bar.set_prefix(self.name.clone());
            (template, bar.with_elapsed(self.since.elapsed()))
        });
        bar.set_position(done);
        bar.tick();
    }

    fn clear(&mut self) {
        if let Some((_, bar)) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// What is shown while code is made.
const COMPILING: &str = "{prefix}  compiling  {elapsed}";

/// What is shown while blocks run.
const RUNNING: &str = "{prefix}  {wide_bar}  {human_pos} of {human_len} blocks  {elapsed}";

/// What is shown while launches are timed, until there is no more to learn.
const TIMING: &str = "{prefix}  timing, {human_pos} rounds  {elapsed}";

/// What is shown while launches are timed a number of times.
const TIMING_OF: &str = "{prefix}  {wide_bar}  {human_pos} of {human_len} rounds  {elapsed}";

/// Hides itself where standard error is no terminal.
fn new_bar(template: &str, total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template(template);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}
