//! Signals and progress while kernels run.
//!
//! Choice: this is the one thread that the command line starts. It sleeps, looks at the flags that signal handlers set, stops launches
//! through their handle, and draws. Launches run on the thread that asked for them.

use std::process;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use handloom_runtime::{Progress, StopHandle};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::outputs::abandon;
use crate::report::{Failure, Status, reason};

/// How often it looks.
const TICK: Duration = Duration::from_millis(50);

/// A launch that runs longer shows progress.
const QUIET: Duration = Duration::from_secs(1);

/// If a signal has not ended the command so long after it, the process ends at once.
const PATIENCE: Duration = Duration::from_millis(400);

/// Watches until it is dropped.
pub struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// Number of the signal that came; 0 for none.
    signal: Arc<AtomicUsize>,
    stop: StopHandle,
    over: AtomicBool,
    now: Mutex<Option<Now>>,
}

/// The launch that runs.
struct Now {
    name: String,
    blocks: u64,
    progress: Progress,
    since: Instant,
    /// Shown since it runs for long.
    bar: Option<ProgressBar>,
}

impl Watch {
    /// Takes SIGINT and SIGTERM over, and starts to watch.
    ///
    /// # Errors
    /// The host refuses the handlers or the thread.
    pub fn start() -> Result<Watch, Failure> {
        let shared = Arc::<Shared>::default();
        let refused = |e: std::io::Error| Failure::file(format!("signals cannot be watched: {}", reason(&e)));
        for signal in [SIGINT, SIGTERM] {
            let number = usize::try_from(signal).unwrap_or(0);
            signal_hook::flag::register_usize(signal, Arc::clone(&shared.signal), number).map_err(refused)?;
        }
        let watched = Arc::clone(&shared);
        let thread = thread::Builder::new().name("handloom-watch".into()).spawn(move || watched.look());
        Ok(Watch { thread: Some(thread.map_err(refused)?), shared })
    }

    /// What launches must be given so that signals stop them.
    pub fn stop(&self) -> &StopHandle {
        &self.shared.stop
    }

    /// The status of a command that a signal ended.
    pub fn status(&self) -> Status {
        self.shared.status().unwrap_or(Status::Signal(2))
    }

    /// Runs a launch of so many blocks, which counts them in `progress`.
    pub fn during<T>(&self, name: &str, blocks: u64, progress: &Progress, work: impl FnOnce() -> T) -> T {
        let (name, progress) = (name.to_owned(), progress.clone());
        *self.shared.lock() = Some(Now { name, blocks, progress, since: Instant::now(), bar: None });
        let result = work();
        // Here and not by the thread, so that the bar is gone before anything else is written.
        if let Some(mut now) = self.shared.lock().take() {
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
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Now>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn status(&self) -> Option<Status> {
        let signal = u8::try_from(self.signal.load(Ordering::Acquire)).ok().filter(|s| *s > 0)?;
        Some(Status::Signal(signal))
    }

    fn look(&self) {
        let mut signalled: Option<Instant> = None;
        while !self.over.load(Ordering::Acquire) {
            let mut now = self.lock();
            if let Some(now) = now.as_mut().filter(|now| now.since.elapsed() >= QUIET) {
                now.draw();
            }
            if let Some(status) = self.status() {
                self.stop.stop();
                if signalled.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                    now.iter_mut().for_each(Now::clear);
                    abandon();
                    process::exit(i32::from(status.code()));
                }
            }
            drop(now);
            thread::park_timeout(TICK);
        }
    }
}

impl Now {
    fn draw(&mut self) {
        if self.bar.is_none() {
            self.bar = Some(new_bar(self));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.progress.blocks_done());
        }
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Hides itself where standard error is no terminal.
fn new_bar(now: &Now) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(now.blocks), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{prefix}  {wide_bar}  {human_pos} of {human_len} blocks  {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_prefix(now.name.clone());
    bar.with_elapsed(now.since.elapsed())
}
