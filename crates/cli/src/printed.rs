//! What a kernel prints: on standard output while it runs, or kept for its report.
//!
//! The kernel adds to a buffer, and a thread of its own writes that some times a second, so that a reader who waits keeps neither signals nor
//! time limits from being seen. A kernel that prints faster than somebody reads has to wait in the end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use handloom_runtime::Sink;

use crate::report::{Format, Out, Stdout};
use crate::watch::Shown;

/// How often text is written: at least ten times a second.
const TICK: Duration = Duration::from_millis(50);

/// Bytes that wait to be written before the kernel has to wait too.
const FULL: usize = 1 << 20;

/// The text of one launch.
#[derive(Clone)]
pub struct Printed(Arc<Shared>);

struct Shared {
    text: Mutex<Text>,
    /// Where it goes while the kernel runs; `None` if it is kept.
    to: Option<(Stdout, Shown)>,
    over: AtomicBool,
}

#[derive(Default)]
struct Text {
    waiting: Vec<u8>,
    /// The last byte that was written.
    last: Option<u8>,
    writer: Option<JoinHandle<()>>,
}

impl Printed {
    /// Text for people goes to standard output at once; for programs it is kept. `shown` is what must not be written over.
    pub fn new(out: &mut Out, shown: Shown) -> Printed {
        // What was written before comes before.
        out.flush();
        let to = (out.format == Format::Human).then(|| (out.stdout(), shown));
        Printed(Arc::new(Shared { text: Mutex::default(), to, over: AtomicBool::new(false) }))
    }

    /// What a launch must be given.
    pub fn sink(&self) -> Sink {
        let shared = Arc::clone(&self.0);
        Sink::new(move |text| shared.add(text))
    }

    /// The text that has not been written so far, unless it is just being written.
    pub fn kept_if_free(&self) -> Option<Vec<u8>> {
        self.0.text.try_lock().ok().map(|text| text.waiting.clone())
    }

    /// The kernel has ended: the rest is written, and a line that has begun is ended. Gives what was kept.
    pub fn finish(&self) -> Vec<u8> {
        self.0.over.store(true, Ordering::Release);
        let writer = self.0.lock().writer.take();
        if let Some(writer) = writer {
            writer.thread().unpark();
            // It does not panic, and if it did there is nothing to clean up.
            let _ = writer.join();
        }
        let mut text = self.0.lock();
        if self.0.to.is_none() {
            return std::mem::take(&mut text.waiting);
        }
        if text.last_byte().is_some_and(|b| b != b'\n') {
            text.waiting.push(b'\n');
        }
        self.0.write(&mut text);
        Vec::new()
    }
}

impl Text {
    fn last_byte(&self) -> Option<u8> {
        self.waiting.last().copied().or(self.last)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Text> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(self: &Arc<Self>, new: &[u8]) {
        let mut text = self.lock();
        text.waiting.extend_from_slice(new);
        if self.to.is_none() {
            return;
        }
        if text.writer.is_none() {
            let shared = Arc::clone(self);
            let writer =
                thread::Builder::new().name("handloom-print".into()).spawn(move || shared.write_now_and_then());
            text.writer = writer.ok();
        }
        // Without a thread for it, the kernel writes.
        if text.waiting.len() >= FULL || text.writer.is_none() {
            self.write(&mut text);
        }
    }

    fn write_now_and_then(&self) {
        while !self.over.load(Ordering::Acquire) {
            self.write(&mut self.lock());
            thread::park_timeout(TICK);
        }
    }

    fn write(&self, text: &mut Text) {
        let Some((stdout, shown)) = &self.to else { return };
        if text.waiting.is_empty() {
            return;
        }
        text.last = text.last_byte();
        shown.aside(|| {
            stdout.write(&text.waiting);
            stdout.flush();
        });
        text.waiting.clear();
    }
}
