//! Launches that are done later, in order, while the host goes on.

use handloom_runtime as runtime;
use handloom_runtime::Context;

use crate::device::{DEVICES, DeviceHandle};
pub use crate::handle::StreamHandle;
use crate::handle::{FunctionHandle, Table};
use crate::launch::{Arg, Args, LaunchConfig, config};
use crate::module::FUNCTIONS;
use crate::pointer::put;
use crate::status::{Failure, Status, call};

/// Each stream has a context of its own, so that the error of one ends no other.
struct Stream {
    inner: runtime::Stream,
}

static STREAMS: Table<Stream> = Table::new();

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
        let inner = Context::new(&device.inner).non_blocking_stream();
        // SAFETY: by the caller's promise.
        unsafe { put(stream, "stream", STREAMS.add(Stream { inner })) }
    })
}

/// Gives a launch to a stream, which runs it after what it was given before. Arguments are copied and code is made before the call returns; what the kernel does wrong
/// is the error of `handloom_stream_synchronize`. Memory of the host cannot be lent, since nobody would know for how long, and nothing can be checked.
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

/// Waits for all that a stream was given. If something of it has failed, the stream does nothing any more, and each call says why.
#[unsafe(no_mangle)]
pub extern "C" fn handloom_stream_synchronize(stream: StreamHandle) -> Status {
    call(|| Ok(STREAMS.get(stream)?.inner.synchronize()?))
}

/// Ends a stream. What it was given is still done.
#[unsafe(no_mangle)]
pub extern "C" fn handloom_stream_release(stream: StreamHandle) -> Status {
    call(|| STREAMS.remove(stream).map(drop))
}
