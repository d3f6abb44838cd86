//! Events.

use handloom_driver::event::{self, by_handle};
use handloom_driver::stream::{self, Null};
use handloom_driver::{Code, Result, process};

use crate::abi::IpcHandle;
use crate::ptr::Out;

pub(crate) fn create(to: Out<u64>, flags: u32) -> Result {
    to.check()?;
    to.set(event::create(flags)?)
}

pub(crate) fn destroy(handle: u64) -> Result {
    process()?.events.remove(handle).map(drop).ok_or(Code::INVALID_HANDLE)
}

pub(crate) fn record(null: Null, event: u64, at: u64) -> Result {
    let event = by_handle(event)?;
    let (ctx, stream) = stream::by_handle(at, null)?;
    stream::record(&ctx, &stream, &event)
}

pub(crate) fn record_with_flags(null: Null, event: u64, at: u64, flags: u32) -> Result {
    const EXTERNAL: u32 = 1;
    if flags & !EXTERNAL != 0 {
        return Err(Code::INVALID_VALUE);
    }
    if flags == 0 {
        return record(null, event, at);
    }
    let event = by_handle(event)?;
    let (ctx, stream) = stream::by_handle(at, null)?;
    if !stream.is_capturing() {
        return Err(Code::INVALID_VALUE);
    }
    stream::submit(&ctx, &stream, handloom_driver::work::Op::Record(event))
}

pub(crate) fn ipc_handle(to: Out<IpcHandle>, event: u64) -> Result {
    to.check()?;
    to.set(IpcHandle { bytes: by_handle(event)?.ipc_handle()? })
}

pub(crate) fn ipc_open(to: Out<u64>, handle: IpcHandle) -> Result {
    to.check()?;
    to.set(event::open(&handle.bytes)?)
}

pub(crate) fn query(handle: u64) -> Result {
    by_handle(handle)?.query()
}

pub(crate) fn synchronize(handle: u64) -> Result {
    by_handle(handle)?.synchronize()
}

pub(crate) fn elapsed(ms: Out<f32>, start: u64, end: u64) -> Result {
    ms.check()?;
    let (start, end) = (by_handle(start)?, by_handle(end)?);
    ms.set(end.milliseconds_since(&start)?)
}
