//! Contexts.

use std::sync::atomic::Ordering;

use handloom_driver::context::{self, Ctx};
use handloom_driver::stream::PRIORITIES;
use handloom_driver::{Code, Result, event, process};

use crate::VERSION;
use crate::ptr::Out;

pub(crate) fn create(to: Out<u64>, flags: u32, dev: i32) -> Result {
    to.check()?;
    let process = process()?;
    let ctx = Ctx::create(process, process.gpu(dev)?, false, flags)?;
    context::push(ctx.handle);
    to.set(ctx.handle)
}

/// With execution affinity, which needs a service that is not there.
pub(crate) fn create_v3(to: Out<u64>, params: Out<u8>, n: i32, flags: u32, dev: i32) -> Result {
    if n < 0 || (n > 0) == params.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    if n > 0 { Err(Code::UNSUPPORTED_EXEC_AFFINITY) } else { create(to, flags, dev) }
}

pub(crate) fn create_v4(to: Out<u64>, params: Out<u8>, flags: u32, dev: i32) -> Result {
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Params {
        affinity: u64,
        n_affinity: i32,
        graphics: u64,
    }
    if !params.is_null() {
        let params: Params = params.cast().get()?;
        if params.graphics != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        if params.affinity != 0 && params.n_affinity > 0 {
            return Err(Code::UNSUPPORTED_EXEC_AFFINITY);
        }
    }
    create(to, flags, dev)
}

pub(crate) fn destroy(handle: u64) -> Result {
    let process = process()?;
    let ctx = context::by_handle(handle)?;
    if ctx.is_primary {
        return Err(Code::INVALID_CONTEXT);
    }
    ctx.destroy(process)?;
    context::pop_destroyed(handle);
    Ok(())
}

pub(crate) fn push(handle: u64) -> Result {
    context::push(context::by_handle(handle)?.handle);
    Ok(())
}

pub(crate) fn pop(to: Out<u64>) -> Result {
    process()?;
    let handle = context::pop()?;
    to.set_any(handle);
    Ok(())
}

pub(crate) fn set_current(handle: u64) -> Result {
    process()?;
    if handle != 0 {
        context::by_handle(handle)?;
    }
    context::set_current(handle);
    Ok(())
}

pub(crate) fn get_current(to: Out<u64>) -> Result {
    process()?;
    to.set(context::current_handle())
}

pub(crate) fn device(to: Out<i32>) -> Result {
    to.check()?;
    to.set(context::current_any()?.gpu.ordinal)
}

pub(crate) fn device_of(to: Out<i32>, handle: u64) -> Result {
    to.check()?;
    to.set(of_handle(handle)?.gpu.ordinal)
}

pub(crate) fn flags(to: Out<u32>) -> Result {
    to.check()?;
    to.set(context::current_any()?.flags.load(Ordering::Relaxed))
}

pub(crate) fn set_flags(flags: u32) -> Result {
    context::check_flags(flags)?;
    context::current()?.flags.store(flags, Ordering::Relaxed);
    Ok(())
}

pub(crate) fn id(handle: u64, to: Out<u64>) -> Result {
    to.check()?;
    to.set(of_handle(handle)?.id)
}

pub(crate) fn synchronize() -> Result {
    let ctx = context::current()?;
    handloom_driver::capture::refuse_while_captured()?;
    ctx.synchronize()
}

pub(crate) fn synchronize_of(handle: u64) -> Result {
    let ctx = if handle == 0 { context::current()? } else { context::by_handle(handle)? };
    ctx.check()?;
    handloom_driver::capture::refuse_while_captured()?;
    ctx.synchronize()
}

fn of_handle(handle: u64) -> Result<std::sync::Arc<Ctx>> {
    if handle == 0 { context::current_any() } else { context::by_handle(handle) }
}

pub(crate) fn record_event(handle: u64, event: u64) -> Result {
    event::record_all(&*of_handle(handle)?, &*event::by_handle(event)?)
}

pub(crate) fn wait_event(handle: u64, event: u64) -> Result {
    event::wait_all(&*of_handle(handle)?, &*event::by_handle(event)?)
}

/// One more who uses the current context.
pub(crate) fn attach(to: Out<u64>, flags: u32) -> Result {
    to.check()?;
    if flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let ctx = context::current_any()?;
    ctx.uses.fetch_add(1, Ordering::Relaxed);
    to.set(ctx.handle)
}

/// One less; the last one ends it.
pub(crate) fn detach(handle: u64) -> Result {
    let ctx = context::by_handle(handle)?;
    if handle != context::current_handle() {
        return Err(Code::INVALID_CONTEXT);
    }
    // A primary context goes with its last release, not so.
    let least = u32::from(ctx.is_primary);
    let less = |n: u32| n.checked_sub(1).filter(|left| *left >= least);
    match ctx.uses.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
        Ok(1) => destroy(handle),
        Ok(_) => Ok(()),
        Err(_) => Err(Code::INVALID_CONTEXT),
    }
}

/// No context has less than all multiprocessors.
pub(crate) fn affinity(to: Out<u8>, kind: u32) -> Result {
    to.check()?;
    context::current()?;
    Err(if kind == 0 { Code::UNSUPPORTED_EXEC_AFFINITY } else { Code::INVALID_VALUE })
}

pub(crate) fn set_limit(limit: u32, value: u64) -> Result {
    context::current()?.set_limit(limit, value)
}

pub(crate) fn get_limit(value: Out<u64>, limit: u32) -> Result {
    value.check()?;
    value.set(context::current()?.limit(limit)?)
}

pub(crate) fn cache_config(to: Out<u32>) -> Result {
    to.check()?;
    to.set(context::current()?.cache_config.load(Ordering::Relaxed))
}

pub(crate) fn set_cache_config(config: u32) -> Result {
    if config > 3 {
        return Err(Code::INVALID_VALUE);
    }
    context::current()?.cache_config.store(config, Ordering::Relaxed);
    Ok(())
}

/// Shared memory has banks of 4 bytes, and others cannot be chosen.
pub(crate) fn shared_config(to: Out<u32>) -> Result {
    const FOUR_BYTES: u32 = 1;
    to.check()?;
    context::current()?;
    to.set(FOUR_BYTES)
}

pub(crate) fn set_shared_config(config: u32) -> Result {
    context::current()?;
    if config > 2 { Err(Code::INVALID_VALUE) } else { Ok(()) }
}

pub(crate) fn api_version(handle: u64, to: Out<u32>) -> Result {
    to.check()?;
    of_handle(handle)?;
    to.set(VERSION.unsigned_abs())
}

pub(crate) fn priorities(least: Out<i32>, greatest: Out<i32>) -> Result {
    context::current()?;
    least.set_any(PRIORITIES.0);
    greatest.set_any(PRIORITIES.1);
    Ok(())
}

pub(crate) fn reset_l2() -> Result {
    context::current().map(drop)
}
