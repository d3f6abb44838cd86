//! Launches that are done later, in order, while the host goes on; and points in them to wait for.

use handloom_runtime as runtime;
use handloom_runtime::Context;

use crate::device::{DEVICES, DeviceHandle};
pub use crate::handle::{EventHandle, StreamHandle};
use crate::handle::{FunctionHandle, Table};
use crate::launch::{Arg, Args, LaunchConfig, config};
use crate::module::FUNCTIONS;
use crate::pointer::put;
use crate::status::{Failure, Status, call};

/// Each stream has a context of its own, so that the error of one ends no other.
struct Stream {
    context: Context,
    inner: runtime::Stream,
}

static STREAMS: Table<Stream> = Table::new();
static EVENTS: Table<runtime::Event> = Table::new();

/// Makes a stream.
///
/// # Safety
/// `stream` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_stream_create(device: DeviceHandle, stream: *mut StreamHandle) -> Status {
    call(|| {
        let device = DEVICES.get(device)?;
        if stream.is_null() {
            return Err(Failure::null("stream"));
        }
        let context = Context::new(&device.inner);
        let inner = context.non_blocking_stream();
        // SAFETY: by the caller's promise.
        unsafe { put(stream, "stream", STREAMS.add(Stream { context, inner })) }
    })
}

/// Gives a launch to a stream, which runs it after what it was given before. Arguments are copied and code is made before the call returns; what the kernel does wrong
/// is the error of `handloom_stream_synchronize`. A buffer among the arguments has to live until the launch has ended. Memory of the host cannot be lent, since nobody
/// would know for how long, and nothing can be checked.
///
/// # Safety
/// As of `handloom_launch`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_stream_launch(
    stream: StreamHandle,
    function: FunctionHandle,
    config: *const LaunchConfig,
    args: *const Arg,
    count: usize,
) -> Status {
    call(|| {
        let (stream, function) = (STREAMS.get(stream)?, FUNCTIONS.get(function)?);
        // SAFETY: by the caller's promise.
        let (config, args) = unsafe { (self::config(config)?, Args::of(&function, args, count)?) };
        if args.lends() || config.check.is_some() {
            let what = if args.lends() { "memory of the host" } else { "a check" };
            let text = format!("{what} in a launch of a stream: handloom_launch takes it");
            return Err(Failure::new(Status::InvalidValue, text));
        }
        stream.inner.launch(&function.inner, &config, &args.list())?;
        Ok(())
    })
}

/// Makes an event: the point after all that the stream was given until now. Its time is when the work before it ended.
///
/// # Safety
/// `event` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_stream_record(stream: StreamHandle, event: *mut EventHandle) -> Status {
    call(|| {
        let stream = STREAMS.get(stream)?;
        if event.is_null() {
            return Err(Failure::null("event"));
        }
        let new = stream.context.event();
        stream.inner.record(&new)?;
        // SAFETY: by the caller's promise.
        unsafe { put(event, "event", EVENTS.add(new)) }
    })
}

/// Makes all that a stream is given later wait for an event, which may be one of another stream and of another device. The host does not wait.
#[unsafe(no_mangle)]
pub extern "C" fn handloom_stream_wait(stream: StreamHandle, event: EventHandle) -> Status {
    call(|| Ok(STREAMS.get(stream)?.inner.wait(&*EVENTS.get(event)?)?))
}

/// Waits for all that a stream was given. If something of it has failed or was stopped, the stream does nothing any more, and each call says why.
#[unsafe(no_mangle)]
pub extern "C" fn handloom_stream_synchronize(stream: StreamHandle) -> Status {
    call(|| Ok(STREAMS.get(stream)?.inner.synchronize()?))
}

/// Whether all has ended that a stream was given: `HANDLOOM_STATUS_OK` or `HANDLOOM_STATUS_NOT_READY`, at once. An error of its work as of
/// `handloom_stream_synchronize`.
#[unsafe(no_mangle)]
pub extern "C" fn handloom_stream_query(stream: StreamHandle) -> Status {
    call(|| ready(STREAMS.get(stream)?.inner.is_done()?, "the work of the stream"))
}

/// Ends a stream. What it was given is still done, and its events stay.
#[unsafe(no_mangle)]
pub extern "C" fn handloom_stream_release(stream: StreamHandle) -> Status {
    call(|| STREAMS.remove(stream).map(drop))
}

/// Waits for the work before an event.
#[unsafe(no_mangle)]
pub extern "C" fn handloom_event_synchronize(event: EventHandle) -> Status {
    call(|| Ok(EVENTS.get(event)?.synchronize()?))
}

/// Whether the work before an event has ended: `HANDLOOM_STATUS_OK` or `HANDLOOM_STATUS_NOT_READY`, at once. An error of its stream's work as of
/// `handloom_event_synchronize`.
#[unsafe(no_mangle)]
pub extern "C" fn handloom_event_query(event: EventHandle) -> Status {
    call(|| ready(EVENTS.get(event)?.is_done()?, "the work before the event"))
}

/// Milliseconds from one event to another, less than 0 if `end` was earlier; they may be of two streams. `HANDLOOM_STATUS_NOT_READY` if the work before one of them has
/// not ended.
///
/// # Safety
/// `milliseconds` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_event_elapsed(
    start: EventHandle,
    end: EventHandle,
    milliseconds: *mut f64,
) -> Status {
    call(|| {
        let (start, end) = (EVENTS.get(start)?, EVENTS.get(end)?);
        let took = end.milliseconds_since(&start)?;
        // SAFETY: by the caller's promise.
        unsafe { put(milliseconds, "milliseconds", took) }
    })
}

/// Frees an event. Who waits for it goes on waiting for its work.
#[unsafe(no_mangle)]
pub extern "C" fn handloom_event_release(event: EventHandle) -> Status {
    call(|| EVENTS.remove(event).map(drop))
}

fn ready(is_done: bool, what: &str) -> Result<(), Failure> {
    if is_done { Ok(()) } else { Err(Failure::new(Status::NotReady, format!("{what} has not ended"))) }
}
