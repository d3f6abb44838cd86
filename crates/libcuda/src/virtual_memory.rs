//! Virtual memory, and memory between processes.

use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};

use handloom_driver::memory::Use;
use handloom_driver::virtual_memory::{self, GRANULARITY, Location, by_handle};
use handloom_driver::{Code, Result, ipc, process};

use crate::abi::{AccessDesc, AllocationProp, IpcHandle, PlaceWords};
use crate::ptr::{Addr, In, Out};

const PINNED: u32 = 1;
/// A file descriptor as the handle for other processes.
const FILE: u32 = 1;

/// A place of a kind: devices, and the host with or without the number of a node.
fn location(kind: u32, id: i32) -> Result<Location> {
    match kind {
        1 => process()?.gpu(id).map(|gpu| Location::Device(gpu.ordinal)),
        2..=4 => Ok(Location::Host),
        _ => Err(Code::INVALID_VALUE),
    }
}

/// What properties ask for: where, and whether for other processes too.
fn asked(prop: In<AllocationProp>) -> Result<(Location, bool)> {
    let p = prop.get()?;
    let place = location(p.location_type, p.location_id)?;
    // Memory that is for textures alone, or of no file, there is not.
    if p.alloc_type != PINNED || (p.handle_types != 0 && p.location_type == 2) {
        return Err(Code::INVALID_VALUE);
    }
    if p.handle_types & !FILE != 0 || p.usage & 1 != 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    Ok((place, p.handle_types == FILE))
}

/// Flags that no version of the interface has.
fn none(flags: u64) -> Result {
    if flags == 0 { Ok(()) } else { Err(Code::INVALID_VALUE) }
}

pub(crate) fn granularity(to: Out<u64>, prop: In<AllocationProp>, option: u32) -> Result {
    to.check()?;
    asked(prop)?;
    if option > 1 { Err(Code::INVALID_VALUE) } else { to.set(GRANULARITY) }
}

pub(crate) fn reserve(to: Out<u64>, bytes: u64, align: u64, _hint: u64, flags: u64) -> Result {
    to.check()?;
    none(flags)?;
    to.set(virtual_memory::reserve(bytes, align)?)
}

pub(crate) fn give_back(at: u64, bytes: u64) -> Result {
    virtual_memory::give_back(at, bytes)
}

pub(crate) fn create(to: Out<u64>, bytes: u64, prop: In<AllocationProp>, flags: u64) -> Result {
    to.check()?;
    none(flags)?;
    let (place, is_shareable) = asked(prop)?;
    to.set(virtual_memory::create(bytes, place, is_shareable)?)
}

pub(crate) fn release(handle: u64) -> Result {
    virtual_memory::release(handle)
}

pub(crate) fn retain(to: Out<u64>, address: Addr) -> Result {
    to.check()?;
    to.set(virtual_memory::retain(address.0)?)
}

pub(crate) fn properties(to: Out<AllocationProp>, handle: u64) -> Result {
    to.check()?;
    let memory = by_handle(handle)?;
    let (location_type, location_id) = match memory.location {
        Location::Device(ordinal) => (1, ordinal),
        Location::Host => (2, 0),
    };
    to.set(AllocationProp {
        alloc_type: PINNED,
        handle_types: if memory.is_shareable { FILE } else { 0 },
        location_type,
        location_id,
        security: 0,
        compression: 0,
        rdma: 0,
        usage: 0,
        reserved: [0; 4],
    })
}

pub(crate) fn map(at: u64, bytes: u64, offset: u64, handle: u64, flags: u64) -> Result {
    none(flags)?;
    virtual_memory::map(at, bytes, offset, handle)
}

pub(crate) fn unmap(at: u64, bytes: u64) -> Result {
    virtual_memory::unmap(at, bytes)
}

/// Access as a list says it: by whom, and how.
pub(crate) fn accesses(list: In<AccessDesc>, n: u64) -> Result<Vec<(Location, u64)>> {
    let n = usize::try_from(n).map_err(|_| Code::INVALID_VALUE)?;
    let one = |d: &AccessDesc| Ok((location(d.location_type, d.location_id)?, u64::from(d.flags)));
    list.array(n)?.iter().map(one).collect()
}

pub(crate) fn set_access(at: u64, bytes: u64, list: In<AccessDesc>, n: u64) -> Result {
    let who = accesses(list, n)?;
    if who.is_empty() { Err(Code::INVALID_VALUE) } else { virtual_memory::set_access(at, bytes, &who) }
}

pub(crate) fn access(to: Out<u64>, place: In<PlaceWords>, address: u64) -> Result {
    to.check()?;
    let PlaceWords { kind, id } = place.get()?;
    to.set(virtual_memory::access(location(kind, id)?, address)?)
}

pub(crate) fn export(to: Addr, handle: u64, kind: u32, flags: u64) -> Result {
    if to.0 == 0 || kind != FILE || flags != 0 {
        return Err(if matches!(kind, 2 | 4 | 8) { Code::NOT_SUPPORTED } else { Code::INVALID_VALUE });
    }
    // The program closes it.
    to.out::<i32>().set(by_handle(handle)?.export()?.into_raw_fd())
}

pub(crate) fn import(to: Out<u64>, file: Addr, kind: u32) -> Result {
    to.check()?;
    if kind != FILE {
        return Err(if matches!(kind, 2 | 4 | 8) { Code::NOT_SUPPORTED } else { Code::INVALID_VALUE });
    }
    process()?;
    to.set(virtual_memory::import(file_of(file)?)?)
}

/// A file of our own, by the number that the program has it by.
pub(crate) fn file_of(file: Addr) -> Result<OwnedFd> {
    let number = i32::try_from(file.0).map_err(|_| Code::INVALID_VALUE)?;
    // SAFETY: it makes a number of a number; what is no file is refused.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the number was just made, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

pub(crate) fn ipc_handle(to: Out<IpcHandle>, address: u64) -> Result {
    to.check()?;
    to.set(IpcHandle { bytes: ipc::handle_of(address, |kind| kind == Use::Device)? })
}

pub(crate) fn ipc_open(to: Out<u64>, handle: IpcHandle, flags: u32) -> Result {
    const LAZY_PEERS: u32 = 1;
    to.check()?;
    if flags != LAZY_PEERS {
        return Err(Code::INVALID_VALUE);
    }
    to.set(ipc::open(&handle.bytes, Use::Foreign)?)
}

pub(crate) fn ipc_close(address: u64) -> Result {
    ipc::close(address, |kind| kind == Use::Foreign)
}
