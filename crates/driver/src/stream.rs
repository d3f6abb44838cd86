//! Streams of a program: the default ones, those of threads, and those that it made.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use handloom_runtime::{Context, Stream as RtStream};

use crate::capture::Captured;
use crate::code::{Code, Result};
use crate::context::{self, Ctx};
use crate::event::Event;
use crate::process::{Process, process};
use crate::work::{self, Launch, Op};

/// The handle of the default stream that waits for all others.
pub const LEGACY: u64 = 1;
/// The handle of the default stream of the calling thread.
pub const PER_THREAD: u64 = 2;

/// A stream that does not wait for the default stream.
pub const NON_BLOCKING: u32 = 1;

/// The range of priorities: the lowest, and the highest.
pub const PRIORITIES: (i32, i32) = (0, -5);

/// Which default stream a call without a stream means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Null {
    /// The one that waits for all others.
    Legacy,
    /// That of the calling thread.
    PerThread,
}

/// A stream.
pub struct Stream {
    /// Handle of its context.
    pub ctx: u64,
    /// A number that no other stream has.
    pub id: u64,
    /// How it was made.
    pub flags: u32,
    /// Its priority, which changes nothing.
    pub priority: i32,
    rt: Rt,
    is_capturing: AtomicBool,
    /// The capture that it takes part in.
    pub capture: Mutex<Option<Captured>>,
}

enum Rt {
    Default(Context),
    Own(RtStream),
}

impl Stream {
    fn new(ctx: u64, id: u64, flags: u32, priority: i32, rt: Rt) -> Stream {
        Stream { ctx, id, flags, priority, rt, is_capturing: AtomicBool::new(false), capture: Mutex::default() }
    }

    /// The default stream of a context.
    pub fn default_of(ctx: u64, rt: &Context) -> Stream {
        Stream::new(ctx, LEGACY, 0, 0, Rt::Default(rt.clone()))
    }

    /// The queue behind it.
    pub fn rt(&self) -> &RtStream {
        match &self.rt {
            Rt::Default(context) => context.default_stream(),
            Rt::Own(stream) => stream,
        }
    }

    /// Whether it is the default stream that waits for others.
    pub fn is_legacy(&self) -> bool {
        matches!(self.rt, Rt::Default(_))
    }

    /// Whether it keeps the order of the default stream.
    pub fn is_blocking(&self) -> bool {
        self.flags & NON_BLOCKING == 0
    }

    /// Whether what it is given becomes nodes of a graph.
    pub fn is_capturing(&self) -> bool {
        self.is_capturing.load(Ordering::Acquire)
    }

    /// Begins or ends that it takes part in a capture.
    pub fn set_capture(&self, captured: Option<Captured>) {
        let mut capture = self.capture.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_capturing.store(captured.is_some(), Ordering::Release);
        *capture = captured;
    }

    /// Ends a capture that nobody will end any more.
    pub fn forget_capture(&self) {
        let captured = self.capture.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(captured) = captured {
            captured.capture.invalidate();
        }
        self.is_capturing.store(false, Ordering::Release);
    }

    /// What a capture records last in this stream.
    pub fn captured(&self) -> Option<Captured> {
        self.capture.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Refuses a call that cannot be captured.
    ///
    /// # Errors
    /// The stream is captured; the capture fails.
    pub fn refuse_capture(&self) -> Result {
        match self.is_capturing().then(|| self.captured()).flatten() {
            None => Ok(()),
            Some(captured) => {
                captured.capture.invalidate();
                Err(Code::STREAM_CAPTURE_UNSUPPORTED)
            }
        }
    }
}

/// The default streams of a thread, by number of the context.
struct Own(RefCell<Vec<(u64, Arc<Stream>)>>);

thread_local! {
    static OWN: Own = const { Own(RefCell::new(Vec::new())) };
}

impl Drop for Own {
    /// What they were given comes before all that the thread gives its default streams from now on.
    fn drop(&mut self) {
        let Ok(process) = process() else { return };
        for (id, stream) in self.0.get_mut().drain(..) {
            let ctx = process.contexts.get(stream.ctx).filter(|ctx| ctx.id == id);
            if let Some(ctx) = ctx.filter(|_| matches!(stream.rt().is_done(), Ok(false))) {
                // If the context has failed, so will all that comes later.
                let _ = last_of_threads(process, &ctx).rt().wait_for_mark(&stream.rt().mark());
            }
        }
    }
}

fn new_of_thread(process: &Process, ctx: &Ctx) -> Arc<Stream> {
    Arc::new(Stream::new(ctx.handle, process.next_id() + 2, 0, 0, Rt::Own(ctx.rt.stream())))
}

/// The default stream of threads that have ended theirs: destructors of the program's objects of a thread may be called later than that.
fn last_of_threads<'c>(process: &Process, ctx: &'c Ctx) -> &'c Arc<Stream> {
    ctx.last_of_threads.get_or_init(|| new_of_thread(process, ctx))
}

/// The default stream of this thread in a context.
fn per_thread(ctx: &Ctx) -> Result<Arc<Stream>> {
    let process = process()?;
    let found = OWN.try_with(|own| {
        let mut own = own.0.borrow_mut();
        if let Some((_, stream)) = own.iter().find(|(id, _)| *id == ctx.id) {
            return Arc::clone(stream);
        }
        own.retain(|(_, stream)| process.contexts.get(stream.ctx).is_some());
        let stream = new_of_thread(process, ctx);
        own.push((ctx.id, Arc::clone(&stream)));
        stream
    });
    Ok(found.unwrap_or_else(|_| Arc::clone(last_of_threads(process, ctx))))
}

/// A stream by its handle, with its context.
///
/// # Errors
/// There is none, or its context does not work.
pub fn by_handle(handle: u64, null: Null) -> Result<(Arc<Ctx>, Arc<Stream>)> {
    if handle > PER_THREAD {
        let stream = process()?.streams.get(handle).ok_or(Code::INVALID_HANDLE)?;
        let ctx = context::by_handle(stream.ctx).map_err(|_| Code::CONTEXT_IS_DESTROYED)?;
        ctx.check()?;
        return Ok((ctx, stream));
    }
    let ctx = context::current()?;
    let stream = match (handle, null) {
        (LEGACY, _) | (0, Null::Legacy) => Arc::clone(&ctx.null),
        _ => per_thread(&ctx)?,
    };
    Ok((ctx, stream))
}

/// Makes a stream of the current context.
///
/// # Errors
/// The flags are unknown, or there is no context.
pub fn create(flags: u32, priority: i32) -> Result<u64> {
    if flags & !NON_BLOCKING != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let ctx = context::current()?;
    let process = process()?;
    let rt = if flags & NON_BLOCKING == 0 { ctx.rt.stream() } else { ctx.rt.non_blocking_stream() };
    let priority = priority.clamp(PRIORITIES.1, PRIORITIES.0);
    let stream = Stream::new(ctx.handle, process.next_id() + 2, flags, priority, Rt::Own(rt));
    process.streams.add(stream).ok_or(Code::OUT_OF_MEMORY)
}

/// Destroys a stream; what it was given is still done.
///
/// # Errors
/// There is none.
pub fn destroy(handle: u64) -> Result {
    let process = process()?;
    if handle <= PER_THREAD {
        return Err(Code::INVALID_HANDLE);
    }
    let stream = process.streams.remove(handle).ok_or(Code::INVALID_HANDLE)?;
    stream.forget_capture();
    Ok(())
}

/// Gives a stream something to do, or a capture a node.
///
/// # Errors
/// It cannot be done, or the context failed.
pub fn submit(ctx: &Ctx, stream: &Arc<Stream>, op: Op) -> Result {
    if stream.is_capturing()
        && let Some(captured) = stream.captured()
    {
        return captured.capture.add(stream, op);
    }
    if stream.is_legacy() {
        crate::capture::refuse_implicit(ctx)?;
    }
    op.enqueue(ctx, stream)
}

/// Gives a stream a launch, as [`submit`] does, without setting anything aside for later if it is not captured.
///
/// # Errors
/// As [`submit`].
pub fn launch(ctx: &Ctx, stream: &Arc<Stream>, launch: Launch) -> Result {
    if stream.is_capturing() {
        return submit(ctx, stream, Op::Kernel(Arc::new(launch)));
    }
    if stream.is_legacy() {
        crate::capture::refuse_implicit(ctx)?;
    }
    work::launch(ctx, stream, &launch.func, &launch.shape, launch.params)
}

/// Records an event in a stream.
///
/// # Errors
/// The event is one of another context, or the context failed.
pub fn record(ctx: &Ctx, stream: &Arc<Stream>, event: &Arc<Event>) -> Result {
    if event.ctx != ctx.handle {
        return Err(Code::INVALID_HANDLE);
    }
    let mut at = event.captured.lock().unwrap_or_else(PoisonError::into_inner);
    if stream.is_capturing()
        && let Some(captured) = stream.captured()
    {
        *at = Some(captured);
        return Ok(());
    }
    *at = None;
    event.record(ctx, stream.rt())
}

/// Lets each of some streams wait for the work that the others were given until now.
///
/// # Errors
/// A context failed.
pub fn meet(lanes: &[(Arc<Ctx>, Arc<Stream>)]) -> Result {
    let mut events = Vec::new();
    for (ctx, stream) in lanes {
        let event = ctx.rt.event_without_time();
        ctx.result(stream.rt().record(&event))?;
        events.push(event);
    }
    for (ctx, stream) in lanes {
        events.iter().try_for_each(|event| ctx.result(stream.rt().wait(event)))?;
    }
    Ok(())
}

/// Lets a stream wait for an event.
///
/// # Errors
/// The event belongs to a capture that the stream cannot join, or the context failed.
pub fn wait(ctx: &Ctx, stream: &Arc<Stream>, event: &Arc<Event>) -> Result {
    let at = event.captured.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match (at, stream.is_capturing().then(|| stream.captured()).flatten()) {
        (None, None) => event.wait(ctx, stream.rt()),
        (None, Some(own)) => {
            own.capture.invalidate();
            Err(Code::STREAM_CAPTURE_ISOLATION)
        }
        (Some(theirs), own) => theirs.join(stream, own),
    }
}
