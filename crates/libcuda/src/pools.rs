//! Memory that is allocated and freed in the order of streams.

use std::os::fd::IntoRawFd;
use std::sync::Arc;

use handloom_driver::context::Ctx;
use handloom_driver::memory::GraphMemory;
use handloom_driver::pool::{self, Pool};
use handloom_driver::stream::{self, Null, Stream};
use handloom_driver::work::Op;
use handloom_driver::{Code, Result, context, memory, process};

use crate::abi::{AccessDesc, IpcHandle, PlaceWords, PoolProps};
use crate::ptr::{Addr, In, Out};
use crate::virtual_memory::{accesses, file_of};

const PINNED: u32 = 1;
const DEVICE: u32 = 1;
/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`
const FILE: u32 = 1;

/// The number of the device that memory of such properties is of, which is for this process alone.
pub(crate) fn device_of(props: &In<PoolProps>) -> Result<i32> {
    let props = props.get()?;
    if props.handle_types != 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    place_of(&props)
}

fn place_of(props: &PoolProps) -> Result<i32> {
    let process = process()?;
    if props.alloc_type != PINNED {
        return Err(Code::INVALID_VALUE);
    }
    if props.location_type != DEVICE {
        return Err(Code::NOT_SUPPORTED);
    }
    process.gpu(props.location_id).map(|gpu| gpu.ordinal).map_err(|_| Code::INVALID_VALUE)
}

/// The properties of memory of a device.
pub(crate) fn device_props(ordinal: i32) -> PoolProps {
    PoolProps {
        alloc_type: PINNED,
        handle_types: 0,
        location_type: DEVICE,
        location_id: ordinal,
        security: 0,
        max_size: 0,
        usage: 0,
        rdma: 0,
        reserved: [0; 53],
    }
}

pub(crate) fn create(to: Out<u64>, props: In<PoolProps>) -> Result {
    to.check()?;
    let process = process()?;
    let props = props.get()?;
    if props.handle_types & !FILE != 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    let pool = Pool::new(place_of(&props)?, false, props.max_size).shareable(props.handle_types == FILE);
    to.set(process.pools.add(pool).ok_or(Code::OUT_OF_MEMORY)?)
}

/// Whether files stand for memory of other processes in calls with such a kind.
fn check_kind(kind: u32, flags: u64) -> Result {
    match (kind, flags) {
        (FILE, 0) => Ok(()),
        (2 | 4 | 8, _) => Err(Code::NOT_SUPPORTED),
        _ => Err(Code::INVALID_VALUE),
    }
}

/// A file stands for a pool in other processes; the program closes it.
pub(crate) fn export(to: Addr, handle: u64, kind: u32, flags: u64) -> Result {
    check_kind(kind, flags)?;
    to.out::<i32>().check()?;
    to.out::<i32>().set(by_handle(handle)?.export()?.into_raw_fd())
}

pub(crate) fn import(to: Out<u64>, file: Addr, kind: u32, flags: u64) -> Result {
    to.check()?;
    check_kind(kind, flags)?;
    let process = process()?;
    let ordinal = context::current().map_or(0, |ctx| ctx.gpu.ordinal);
    let pool = Pool::import(ordinal, file_of(file)?)?;
    to.set(process.pools.add(pool).ok_or(Code::OUT_OF_MEMORY)?)
}

pub(crate) fn export_memory(to: Out<IpcHandle>, address: u64) -> Result {
    to.check()?;
    to.set(IpcHandle { bytes: pool::export_memory(address)? })
}

pub(crate) fn import_memory(to: Out<u64>, handle: u64, from: Out<IpcHandle>) -> Result {
    to.check()?;
    let from = from.get()?;
    to.set(by_handle(handle)?.open(handle, &from.bytes)?)
}

fn by_handle(handle: u64) -> Result<std::sync::Arc<Pool>> {
    process()?.pools.get(handle).ok_or(Code::INVALID_VALUE)
}

pub(crate) fn destroy(handle: u64) -> Result {
    let process = process()?;
    let pool = by_handle(handle)?;
    if pool.is_default {
        return Err(Code::INVALID_VALUE);
    }
    let gpu = process.gpu(pool.ordinal)?;
    let current = &gpu.current_pool;
    // A device that allocated from it goes back to its own.
    let _ =
        current.compare_exchange(handle, 0, std::sync::atomic::Ordering::Relaxed, std::sync::atomic::Ordering::Relaxed);
    process.pools.remove(handle);
    Ok(())
}

pub(crate) fn attribute(handle: u64, attr: u32, value: Addr) -> Result {
    let pool = by_handle(handle)?;
    let (is_narrow, number) = pool.attribute(process()?.memory.of_pool(handle), attr)?;
    if is_narrow {
        value.out::<u32>().set(u32::try_from(number).unwrap_or(u32::MAX))
    } else {
        value.out::<u64>().set(number)
    }
}

pub(crate) fn set_attribute(handle: u64, attr: u32, value: Addr) -> Result {
    let pool = by_handle(handle)?;
    let number =
        if Pool::is_narrow(attr)? { u64::from(value.out::<u32>().get()?) } else { value.out::<u64>().get()? };
    pool.set_attribute(attr, number)
}

/// Nothing is kept back, so there is nothing to give.
pub(crate) fn trim(handle: u64, _: u64) -> Result {
    by_handle(handle).map(drop)
}

pub(crate) fn access(flags: Out<u32>, handle: u64, location: Out<PlaceWords>) -> Result {
    const READ_WRITE: u32 = 3;
    flags.check()?;
    location.check()?;
    by_handle(handle)?;
    flags.set(READ_WRITE)
}

/// Every device reaches every pool.
pub(crate) fn set_access(handle: u64, descriptions: In<AccessDesc>, n: u64) -> Result {
    by_handle(handle)?;
    accesses(descriptions, n).map(drop)
}

pub(crate) fn alloc_async(null: Null, to: Out<u64>, bytes: u64, at: u64) -> Result {
    to.check()?;
    let (ctx, stream) = stream::by_handle(at, null)?;
    if stream.is_capturing() {
        return alloc_captured(to, bytes, &ctx, &stream);
    }
    let pool = pool::current_of(process()?, &ctx.gpu)?;
    allocate(to, &ctx, &stream, pool, bytes)
}

/// An allocation that becomes a node of a graph.
fn alloc_captured(to: Out<u64>, bytes: u64, ctx: &Ctx, stream: &Arc<Stream>) -> Result {
    let memory = GraphMemory::new(ctx, bytes)?;
    let base = memory.base;
    stream::submit(ctx, stream, Op::GraphAlloc(memory))?;
    to.set(base)
}

pub(crate) fn alloc_from(null: Null, to: Out<u64>, bytes: u64, handle: u64, at: u64) -> Result {
    to.check()?;
    let (ctx, stream) = stream::by_handle(at, null)?;
    if stream.is_capturing() {
        by_handle(handle)?;
        return alloc_captured(to, bytes, &ctx, &stream);
    }
    allocate(to, &ctx, &stream, handle, bytes)
}

/// Allocates memory of a pool in the order of a stream.
fn allocate(to: Out<u64>, ctx: &Ctx, stream: &Stream, pool: u64, bytes: u64) -> Result {
    let address = pool::allocate(ctx, pool, bytes)?;
    memory::begins(ctx, stream, address)?;
    to.set(address)
}

pub(crate) fn free_async(null: Null, address: u64, at: u64) -> Result {
    let (ctx, stream) = stream::by_handle(at, null)?;
    if address == 0 {
        return Ok(());
    }
    memory::free_later(&ctx, &stream, address)
}

/// The device of a pool that is found by its place, whose memory is of one kind.
fn of_place(place: Out<PlaceWords>, kind: u32) -> Result<i32> {
    let PlaceWords { kind: at, id } = place.get()?;
    match (kind, at) {
        (PINNED, DEVICE) => process()?.gpu(id).map(|gpu| gpu.ordinal),
        (1 | 2, 0..=5) => Err(Code::NOT_SUPPORTED),
        _ => Err(Code::INVALID_VALUE),
    }
}

pub(crate) fn default_of_place(to: Out<u64>, place: Out<PlaceWords>, kind: u32) -> Result {
    to.check()?;
    let process = process()?;
    to.set(pool::default_of(process, process.gpu(of_place(place, kind)?)?)?)
}

pub(crate) fn of_this_place(to: Out<u64>, place: Out<PlaceWords>, kind: u32) -> Result {
    to.check()?;
    let process = process()?;
    to.set(pool::current_of(process, process.gpu(of_place(place, kind)?)?)?)
}

pub(crate) fn set_of_place(place: Out<PlaceWords>, kind: u32, handle: u64) -> Result {
    let ordinal = of_place(place, kind)?;
    if by_handle(handle)?.ordinal != ordinal {
        return Err(Code::INVALID_VALUE);
    }
    process()?.gpu(ordinal)?.current_pool.store(handle, std::sync::atomic::Ordering::Relaxed);
    Ok(())
}
