//! Objects of the program that graphs may refer to.

use handloom_driver::graph::by_handle;
use handloom_driver::{Code, Result, user_object};

use crate::abi::HostFn;
use crate::ptr::{Addr, Out};
use crate::streams::function_of_host;

/// The destructor may run on any thread at any time: programs must say that they know.
const NO_DESTRUCTOR_SYNC: u32 = 1;

/// References that the caller has become the graph's.
const MOVE: u32 = 1;

pub(crate) fn create(to: Out<u64>, data: Addr, destroy: Option<HostFn>, references: u32, flags: u32) -> Result {
    to.check()?;
    let destroy = destroy.filter(|_| flags == NO_DESTRUCTOR_SYNC).ok_or(Code::INVALID_VALUE)?;
    to.set(user_object::create(function_of_host(destroy, data.0), references)?)
}

pub(crate) fn retain(handle: u64, n: u32) -> Result {
    user_object::retain(handle, n)
}

pub(crate) fn release(handle: u64, n: u32) -> Result {
    user_object::release(handle, n)
}

pub(crate) fn retain_by_graph(graph: u64, handle: u64, n: u32, flags: u32) -> Result {
    if flags & !MOVE != 0 {
        return Err(Code::INVALID_VALUE);
    }
    by_handle(graph)?.objects.add(handle, n, flags == MOVE)
}

pub(crate) fn release_of_graph(graph: u64, handle: u64, n: u32) -> Result {
    by_handle(graph)?.objects.take(handle, n)
}
