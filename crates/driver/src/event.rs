//! Events: points in streams.

use std::sync::{Arc, Mutex, PoisonError};

use handloom_runtime::Event as RtEvent;

use crate::capture::Captured;
use crate::code::{Code, Result};
use crate::context::{self, Ctx};
use crate::process::process;

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
    pub rt: RtEvent,
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
    if flags & INTERPROCESS != 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    let ctx = context::current()?;
    let rt = if flags & DISABLE_TIMING == 0 { ctx.rt.event() } else { ctx.rt.event_without_time() };
    let event = |handle| Event { handle, ctx: ctx.handle, flags, rt, captured: Mutex::default() };
    process()?.events.add_with(event).map(|(handle, _)| handle).ok_or(Code::OUT_OF_MEMORY)
}

/// An event by its handle.
///
/// # Errors
/// There is none.
pub fn by_handle(handle: u64) -> Result<Arc<Event>> {
    process()?.events.get(handle).ok_or(Code::INVALID_HANDLE)
}

impl Event {
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
        let done = self.rt.synchronize();
        ctx.print();
        ctx.result(done)
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
