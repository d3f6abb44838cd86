//! Events: points in streams.

use std::sync::{Arc, Mutex, PoisonError};

use handloom_runtime::{Event as RtEvent, Stream as RtStream};

use crate::capture::{self, Captured};
use crate::code::{Code, Result};
use crate::context::{self, Ctx};
use crate::ipc::HANDLE;
use crate::process::{may_wait, process};
use crate::shared_event::SharedEvent;

/// The event keeps no time.
pub const DISABLE_TIMING: u32 = 2;
/// The event is for other processes too.
pub const INTERPROCESS: u32 = 4;

/// An event.
pub struct Event {
    /// Its handle.
    pub handle: u64,
    /// Handle of its context.
    pub ctx: u64,
    /// How it was made.
    pub flags: u32,
    /// The point.
    rt: RtEvent,
    /// What other processes know of it.
    shared: Option<Arc<SharedEvent>>,
    /// Where it was recorded while its stream was captured.
    pub captured: Mutex<Option<Captured>>,
}

/// Makes an event of the current context.
///
/// # Errors
/// The flags are unknown, or there is no context.
pub fn create(flags: u32) -> Result<u64> {
    if flags & !7 != 0 || (flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0) {
        return Err(Code::INVALID_VALUE);
    }
    let shared = if flags & INTERPROCESS == 0 { None } else { Some(SharedEvent::new()?) };
    add(flags, shared)
}

fn add(flags: u32, shared: Option<Arc<SharedEvent>>) -> Result<u64> {
    let ctx = context::current()?;
    let rt = if flags & DISABLE_TIMING == 0 { ctx.rt.event() } else { ctx.rt.event_without_time() };
    let event = |handle| Event { handle, ctx: ctx.handle, flags, rt, shared, captured: Mutex::default() };
    process()?.events.add_with(event).map(|(handle, _)| handle).ok_or(Code::OUT_OF_MEMORY)
}

/// An event of another process.
///
/// # Errors
/// It is no handle of one, or that process is not there any more.
pub fn open(handle: &[u8; HANDLE]) -> Result<u64> {
    let shared = SharedEvent::open(handle)?;
    add(INTERPROCESS | DISABLE_TIMING, Some(shared))
}

/// An event by its handle.
///
/// # Errors
/// There is none.
pub fn by_handle(handle: u64) -> Result<Arc<Event>> {
    process()?.events.get(handle).ok_or(Code::INVALID_HANDLE)
}

/// Makes an event stand for all work of its context.
///
/// # Errors
/// It is one of another context, a stream is captured, or the context failed.
pub fn record_all(ctx: &Ctx, event: &Event) -> Result {
    if event.ctx != ctx.handle {
        return Err(Code::INVALID_HANDLE);
    }
    ctx.check()?;
    capture::refuse_all_of(ctx)?;
    *event.captured.lock().unwrap_or_else(PoisonError::into_inner) = None;
    let gather = ctx.rt.non_blocking_stream();
    ctx.result(ctx.rt.gather(&gather))?;
    event.record(ctx, &gather)
}

/// Lets all later work of a context wait for an event.
///
/// # Errors
/// The event is part of a capture, a stream is captured, or the context failed.
pub fn wait_all(ctx: &Ctx, event: &Event) -> Result {
    ctx.check()?;
    let captured = event.captured.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(captured) = captured {
        captured.capture.invalidate();
        return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
    }
    capture::refuse_all_of(ctx)?;
    if event.shared.is_none() {
        return ctx.result(ctx.rt.wait(&event.rt));
    }
    // A place of this process stands for what the other one does.
    let (lane, place) = (ctx.rt.non_blocking_stream(), ctx.rt.event_without_time());
    event.wait(ctx, &lane)?;
    ctx.result(lane.record(&place))?;
    ctx.result(ctx.rt.wait(&place))
}

impl Event {
    /// Makes it stand for what a stream was given until now.
    ///
    /// # Errors
    /// The context failed.
    pub fn record(&self, ctx: &Ctx, rt: &RtStream) -> Result {
        match &self.shared {
            None => ctx.result(rt.record(&self.rt)),
            Some(shared) => shared.record(ctx, rt),
        }
    }

    /// Lets a stream wait for it.
    ///
    /// # Errors
    /// The context failed.
    pub fn wait(&self, ctx: &Ctx, rt: &RtStream) -> Result {
        match &self.shared {
            None => ctx.result(rt.wait(&self.rt)),
            Some(shared) => shared.wait(ctx, rt),
        }
    }

    /// What another process opens it by.
    ///
    /// # Errors
    /// It was not made for that.
    pub fn ipc_handle(&self) -> Result<[u8; HANDLE]> {
        self.shared.as_ref().map(|shared| shared.handle()).ok_or(Code::INVALID_HANDLE)
    }

    fn ctx(&self) -> Result<Arc<Ctx>> {
        context::by_handle(self.ctx)
    }

    fn is_captured(&self) -> bool {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Whether the work before it has ended: `NOT_READY` if not.
    ///
    /// # Errors
    /// It has not, a kernel failed, or the event was recorded by a capture.
    pub fn query(&self) -> Result {
        if self.is_captured() {
            return Err(Code::CAPTURED_EVENT);
        }
        let ctx = self.ctx()?;
        ctx.check()?;
        if let Some(shared) = &self.shared {
            return if shared.is_done() { Ok(()) } else { Err(Code::NOT_READY) };
        }
        if ctx.result(self.rt.is_done())? { Ok(()) } else { Err(Code::NOT_READY) }
    }

    /// Waits for the work before it.
    ///
    /// # Errors
    /// A kernel failed, or the event was recorded by a capture.
    pub fn synchronize(&self) -> Result {
        if self.is_captured() {
            return Err(Code::CAPTURED_EVENT);
        }
        let ctx = self.ctx()?;
        if let Some(shared) = &self.shared {
            ctx.check()?;
            if !shared.is_done() {
                may_wait()?;
            }
            ctx.while_waiting(|| shared.synchronize());
        }
        ctx.result(ctx.while_waiting(|| self.rt.synchronize()))
    }

    /// Milliseconds from another event to this one.
    ///
    /// # Errors
    /// One of them was not recorded, keeps no time, or has not happened yet.
    pub fn milliseconds_since(&self, start: &Event) -> Result<f32> {
        if self.is_captured() || start.is_captured() {
            return Err(Code::CAPTURED_EVENT);
        }
        let ctx = self.ctx()?;
        ctx.check()?;
        let ms = ctx.result(self.rt.milliseconds_since(&start.rt))?;
        // Choice: two events in a row may end within the resolution of the clock; the interval of a GPU is never negative.
        Ok(ms as f32)
    }
}
