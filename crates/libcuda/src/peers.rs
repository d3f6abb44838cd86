//! Access of devices to each other's memory.

use handloom_driver::{Code, Result, context, process};

use crate::ptr::Out;

pub(crate) fn can_access(can: Out<i32>, dev: i32, peer: i32) -> Result {
    can.check()?;
    let process = process()?;
    process.gpu(dev)?;
    process.gpu(peer)?;
    // Kernels see the memory of their own device; copies go between all.
    can.set(0)
}

pub(crate) fn enable(peer: u64, flags: u32) -> Result {
    if flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let ctx = context::current()?;
    let other = context::by_handle(peer)?;
    if ctx.handle == other.handle {
        return Err(Code::INVALID_CONTEXT);
    }
    if ctx.gpu.ordinal != other.gpu.ordinal {
        return Err(Code::PEER_ACCESS_UNSUPPORTED);
    }
    let mut peers = ctx.peers.lock().map_err(|_| Code::UNKNOWN)?;
    if peers.contains(&peer) {
        return Err(Code::PEER_ACCESS_ALREADY_ENABLED);
    }
    peers.push(peer);
    Ok(())
}

pub(crate) fn disable(peer: u64) -> Result {
    let ctx = context::current()?;
    context::by_handle(peer)?;
    let mut peers = ctx.peers.lock().map_err(|_| Code::UNKNOWN)?;
    let known = peers.len();
    peers.retain(|p| *p != peer);
    if peers.len() == known { Err(Code::PEER_ACCESS_NOT_ENABLED) } else { Ok(()) }
}

pub(crate) fn attribute(value: Out<i32>, attrib: u32, from: i32, to: i32) -> Result {
    value.check()?;
    let process = process()?;
    process.gpu(from).map_err(|_| Code::INVALID_DEVICE)?;
    process.gpu(to)?;
    if from == to {
        return Err(Code::INVALID_DEVICE);
    }
    if (1..=5).contains(&attrib) { value.set(0) } else { Err(Code::INVALID_VALUE) }
}
