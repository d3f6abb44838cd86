//! Capture: what streams are given becomes nodes of a graph instead of being done.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use crate::code::{Code, Result};
use crate::context::Ctx;
use crate::graph::Graph;
use crate::stream::Stream;
use crate::work::Op;

/// How strictly other calls are refused meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Unsafe calls of all threads are.
    Global,
    /// Those of the thread that captures are.
    ThreadLocal,
    /// None are.
    Relaxed,
}

impl Mode {
    /// A mode by its number.
    ///
    /// # Errors
    /// There is none.
    pub fn of(number: u32) -> Result<Mode> {
        match number {
            0 => Ok(Mode::Global),
            1 => Ok(Mode::ThreadLocal),
            2 => Ok(Mode::Relaxed),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// Its number.
    pub fn number(self) -> u32 {
        match self {
            Mode::Global => 0,
            Mode::ThreadLocal => 1,
            Mode::Relaxed => 2,
        }
    }
}

/// A capture.
pub struct Capture {
    /// A number that no other capture has.
    pub id: u64,
    /// The graph that it makes.
    pub graph: Arc<Graph>,
    mode: Mode,
    thread: ThreadId,
    /// Number of the stream in which it began.
    origin: u64,
    is_invalid: AtomicBool,
    /// Streams that take part.
    members: Mutex<Vec<Arc<Stream>>>,
}

/// A place in a capture: the nodes that come before what comes next.
#[derive(Clone)]
pub struct Captured {
    /// The capture.
    pub capture: Arc<Capture>,
    /// Numbers of nodes.
    pub after: Vec<usize>,
}

/// Captures under way that are not relaxed.
static STRICT: AtomicUsize = AtomicUsize::new(0);

/// All captures under way: those that refuse calls of other threads.
static ACTIVE: Mutex<Vec<Arc<Capture>>> = Mutex::new(Vec::new());

/// How many there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn active() -> std::sync::MutexGuard<'static, Vec<Arc<Capture>>> {
    ACTIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Capture {
    /// Begins a capture in a stream.
    ///
    /// # Errors
    /// The stream cannot be captured, or is.
    pub fn begin(stream: &Arc<Stream>, graph: Arc<Graph>, after: Vec<usize>, mode: Mode, id: u64) -> Result {
        if stream.is_legacy() {
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        if stream.is_capturing() {
            return Err(Code::ILLEGAL_STATE);
        }
        let capture = Arc::new(Capture {
            id,
            graph,
            mode,
            thread: thread::current().id(),
            origin: stream.id,
            is_invalid: AtomicBool::new(false),
            members: Mutex::new(vec![Arc::clone(stream)]),
        });
        if mode != Mode::Relaxed {
            STRICT.fetch_add(1, Ordering::AcqRel);
        }
        COUNT.fetch_add(1, Ordering::AcqRel);
        active().push(Arc::clone(&capture));
        stream.set_capture(Some(Captured { capture, after }));
        Ok(())
    }

    /// Ends a capture in the stream where it began, and returns its graph.
    ///
    /// # Errors
    /// It did not begin there, other streams were not joined, or it failed.
    pub fn end(stream: &Arc<Stream>) -> Result<Arc<Graph>> {
        let Some(own) = stream.captured() else { return Err(Code::ILLEGAL_STATE) };
        let capture = own.capture;
        if capture.origin != stream.id {
            capture.invalidate();
            return Err(Code::STREAM_CAPTURE_UNMATCHED);
        }
        if capture.mode != Mode::Relaxed && capture.thread != thread::current().id() {
            return Err(Code::STREAM_CAPTURE_WRONG_THREAD);
        }
        let members = std::mem::take(&mut *capture.members.lock().unwrap_or_else(PoisonError::into_inner));
        // The ends of all streams have to lie before the end of the first one.
        let joined = members.iter().filter_map(|m| m.captured()).all(|m| capture.graph.reach(&own.after, &m.after));
        members.iter().for_each(|m| m.set_capture(None));
        capture.close();
        if capture.is_invalid.load(Ordering::Acquire) {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        if !joined {
            return Err(Code::STREAM_CAPTURE_UNJOINED);
        }
        Ok(Arc::clone(&capture.graph))
    }

    fn close(self: &Arc<Self>) {
        let mut all = active();
        let known = all.len();
        all.retain(|c| !Arc::ptr_eq(c, self));
        if all.len() < known {
            COUNT.fetch_sub(1, Ordering::AcqRel);
            STRICT.fetch_sub(usize::from(self.mode != Mode::Relaxed), Ordering::AcqRel);
        }
    }

    /// The capture fails: its end returns an error.
    pub fn invalidate(&self) {
        self.is_invalid.store(true, Ordering::Release);
    }

    /// Whether it failed.
    pub fn is_invalid(&self) -> bool {
        self.is_invalid.load(Ordering::Acquire)
    }

    /// Adds a node at the end of a stream.
    ///
    /// # Errors
    /// The capture failed.
    pub fn add(self: &Arc<Self>, stream: &Arc<Stream>, op: Op) -> Result {
        if self.is_invalid() {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        let mut captured = stream.capture.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(captured) = captured.as_mut() else { return Err(Code::ILLEGAL_STATE) };
        let node = self.graph.add(op, captured.after.clone())?;
        captured.after = vec![node];
        Ok(())
    }
}

impl Captured {
    /// Lets a stream wait for this place, so that it takes part in the capture.
    ///
    /// # Errors
    /// It takes part in another one, or cannot.
    pub fn join(&self, stream: &Arc<Stream>, own: Option<Captured>) -> Result {
        if self.capture.is_invalid() {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        match own {
            Some(own) if !Arc::ptr_eq(&own.capture, &self.capture) => {
                own.capture.invalidate();
                self.capture.invalidate();
                Err(Code::STREAM_CAPTURE_MERGE)
            }
            Some(own) => {
                let mut after = own.after;
                let new: Vec<usize> = self.after.iter().filter(|n| !after.contains(n)).copied().collect();
                after.extend(new);
                stream.set_capture(Some(Captured { capture: own.capture, after }));
                Ok(())
            }
            None if stream.is_legacy() => {
                self.capture.invalidate();
                Err(Code::STREAM_CAPTURE_IMPLICIT)
            }
            None => {
                let mut members = self.capture.members.lock().unwrap_or_else(PoisonError::into_inner);
                members.push(Arc::clone(stream));
                stream.set_capture(Some(self.clone()));
                Ok(())
            }
        }
    }
}

/// Refuses a call that may wait for work, or change what captured work means, while a capture forbids it.
///
/// # Errors
/// A capture of this thread, or one of all threads, is under way; it fails.
pub fn refuse_while_captured() -> Result {
    if STRICT.load(Ordering::Acquire) == 0 || thread_mode() == Mode::Relaxed {
        return Ok(());
    }
    let me = thread::current().id();
    let forbids = |c: &&Arc<Capture>| match c.mode {
        Mode::Global => c.thread == me || thread_mode() == Mode::Global,
        Mode::ThreadLocal => c.thread == me,
        Mode::Relaxed => false,
    };
    let all = active();
    let mut found = false;
    for capture in all.iter().filter(forbids) {
        capture.invalidate();
        found = true;
    }
    if found { Err(Code::STREAM_CAPTURE_UNSUPPORTED) } else { Ok(()) }
}

/// Refuses work of the default stream while a stream that keeps its order is captured.
///
/// # Errors
/// One is; its capture fails.
pub fn refuse_implicit(ctx: &Ctx) -> Result {
    if refuse_members(|m| m.ctx == ctx.handle && m.is_blocking()) { Err(Code::STREAM_CAPTURE_IMPLICIT) } else { Ok(()) }
}

/// Refuses a call about all streams of a context while one of them is captured.
///
/// # Errors
/// One is; its capture fails.
pub fn refuse_all_of(ctx: &Ctx) -> Result {
    if refuse_members(|m| m.ctx == ctx.handle) { Err(Code::STREAM_CAPTURE_UNSUPPORTED) } else { Ok(()) }
}

/// Ends captures that a stream takes part in which a test is true of. Says whether there was one.
fn refuse_members(is: impl Fn(&Stream) -> bool) -> bool {
    if COUNT.load(Ordering::Acquire) == 0 {
        return false;
    }
    let mut found = false;
    for capture in active().iter() {
        let members = capture.members.lock().unwrap_or_else(PoisonError::into_inner);
        if members.iter().any(|m| is(m)) {
            capture.invalidate();
            found = true;
        }
    }
    found
}

thread_local! {
    static MODE: std::cell::Cell<Mode> = const { std::cell::Cell::new(Mode::Global) };
}

/// How this thread takes captures of others.
pub fn thread_mode() -> Mode {
    MODE.try_with(std::cell::Cell::get).unwrap_or(Mode::Global)
}

/// Changes it, and returns what it was.
pub fn exchange_thread_mode(mode: Mode) -> Mode {
    MODE.try_with(|m| m.replace(mode)).unwrap_or(Mode::Global)
}
