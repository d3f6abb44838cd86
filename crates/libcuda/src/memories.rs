//! Memory: allocation, fills, host memory, what lies at an address.

use handloom_driver::copy::Fill;
use handloom_driver::hints::{Place, Range, pages};
use handloom_driver::memory::{self, Registered, Use};
use handloom_driver::stream::{self, Null};
use handloom_driver::{Code, Result, capture, context, process, reach};
use handloom_runtime::Word;

use crate::abi::PlaceWords;
use crate::many::{place, place_of_number};
use crate::ptr::{Addr, Out};

pub(crate) fn info(free: Out<u64>, total: Out<u64>) -> Result {
    let room = context::current()?.gpu.room();
    free.set_any(room.0);
    total.set_any(room.1);
    Ok(())
}

fn allocate(to: Out<u64>, bytes: u64, kind: Use) -> Result {
    to.check()?;
    capture::refuse_while_captured()?;
    to.set(memory::allocate(bytes, kind)?)
}

pub(crate) fn alloc(to: Out<u64>, bytes: u64) -> Result {
    allocate(to, bytes, Use::Device)
}

pub(crate) fn alloc_pitch(to: Out<u64>, pitch: Out<u64>, width: u64, height: u64, element: u32) -> Result {
    const ROW: u64 = 512;
    to.check()?;
    pitch.check()?;
    if !matches!(element, 4 | 8 | 16) || width == 0 || height == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let row = width.checked_next_multiple_of(ROW).ok_or(Code::INVALID_VALUE)?;
    let bytes = row.checked_mul(height).ok_or(Code::INVALID_VALUE)?;
    allocate(to, bytes, Use::Device)?;
    pitch.set(row)
}

pub(crate) fn free(address: u64) -> Result {
    context::current()?;
    if address == 0 {
        return Ok(());
    }
    capture::refuse_while_captured()?;
    memory::free(address, |kind| matches!(kind, Use::Device | Use::Managed | Use::Pool(_) | Use::Graph))
}

pub(crate) fn range(base: Out<u64>, bytes: Out<u64>, address: u64) -> Result {
    context::current()?;
    let process = process()?;
    let found = match process.memory.find(address) {
        Some(a) => Some((a.base, a.bytes)),
        // A variable of a module.
        None => process.gpu_of(address).and_then(|gpu| gpu.device.memory().range_of(address)),
    };
    let (start, size) = found.ok_or(Code::NOT_FOUND)?;
    base.set_any(start);
    bytes.set_any(size);
    Ok(())
}

/// Flags of pinned memory.
const HOST_FLAGS: u32 = 7;

pub(crate) fn host_alloc(to: Out<u64>, bytes: u64, flags: u32) -> Result {
    if flags & !HOST_FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    allocate(to, bytes, Use::Host(flags))
}

pub(crate) fn host_alloc_plain(to: Out<u64>, bytes: u64) -> Result {
    host_alloc(to, bytes, 0)
}

pub(crate) fn host_free(address: Addr) -> Result {
    context::current()?;
    if address.0 == 0 {
        return Err(Code::INVALID_VALUE);
    }
    memory::free(address.0, |kind| matches!(kind, Use::Host(_)))
}

pub(crate) fn host_flags(to: Out<u32>, address: Addr) -> Result {
    to.check()?;
    context::current()?;
    let process = process()?;
    if let Some(Use::Host(flags)) = process.memory.find(address.0).map(|a| a.kind) {
        // All pinned memory is mapped.
        return to.set(flags | 2);
    }
    let (_, r) = process.memory.registered(address.0).ok_or(Code::INVALID_VALUE)?;
    to.set(r.flags)
}

pub(crate) fn host_pointer(to: Out<u64>, address: Addr, flags: u32) -> Result {
    to.check()?;
    if flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    context::current()?;
    let process = process()?;
    let is_pinned = process.memory.find(address.0).is_some_and(|a| matches!(a.kind, Use::Host(_)));
    if !is_pinned && process.memory.registered(address.0).is_none() {
        return Err(Code::INVALID_VALUE);
    }
    to.set(address.0)
}

/// Flags of registered memory.
const REGISTER_FLAGS: u32 = 15;

pub(crate) fn register(address: Addr, bytes: u64, flags: u32) -> Result {
    if address.0 == 0 || bytes == 0 || flags & !REGISTER_FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let ctx = context::current()?;
    let process = process()?;
    if process.gpu_of(address.0).is_some() {
        return Err(Code::HOST_MEMORY_ALREADY_REGISTERED);
    }
    process.memory.register(process, address.0, Registered { bytes, flags, ctx: ctx.handle })
}

pub(crate) fn unregister(address: Addr) -> Result {
    if address.0 == 0 {
        return Err(Code::INVALID_VALUE);
    }
    context::current()?;
    let process = process()?;
    reach::settle(process)?;
    process.memory.unregister(address.0)
}

/// Memory that is attached to all streams (1) or to the host (2): all is reached by all anyway.
pub(crate) fn alloc_managed(to: Out<u64>, bytes: u64, flags: u32) -> Result {
    if !matches!(flags, 1 | 2) {
        return Err(Code::INVALID_VALUE);
    }
    allocate(to, bytes, Use::Managed)
}

/// The pages of a range of managed memory.
pub(crate) fn managed(address: u64, bytes: u64) -> Result<Range> {
    let a = process()?.memory.find(address).ok_or(Code::INVALID_VALUE)?;
    if bytes > a.bytes - (address - a.base) { Err(Code::INVALID_VALUE) } else { Ok(pages(a.base, address, bytes)) }
}

fn prefetched(address: u64, bytes: u64, to: Place) -> Result {
    process()?.hints.prefetched(managed(address, bytes)?, to);
    Ok(())
}

pub(crate) fn prefetch(null: Null, address: u64, bytes: u64, device: i32, at: u64) -> Result {
    stream::by_handle(at, null)?;
    prefetched(address, bytes, place_of_number(device)?)
}

pub(crate) fn prefetch_v2(null: Null, address: u64, bytes: u64, to: PlaceWords, flags: u32, at: u64) -> Result {
    stream::by_handle(at, null)?;
    let to = place(to.kind, to.id)?;
    if flags != 0 { Err(Code::INVALID_VALUE) } else { prefetched(address, bytes, to) }
}

/// Advice for which the place has a meaning.
fn has_place(advice: u32) -> bool {
    matches!(advice, 3 | 5 | 6)
}

fn advised(address: u64, bytes: u64, advice: u32, to: impl FnOnce() -> Result<Place>) -> Result {
    context::current()?;
    if !(1..=6).contains(&advice) {
        return Err(Code::INVALID_VALUE);
    }
    let range = managed(address, bytes)?;
    let to = if has_place(advice) { to()? } else { (0, 0) };
    process()?.hints.advise(range, advice, to);
    Ok(())
}

pub(crate) fn advise(address: u64, bytes: u64, advice: u32, device: i32) -> Result {
    advised(address, bytes, advice, || place_of_number(device))
}

pub(crate) fn advise_v2(address: u64, bytes: u64, advice: u32, to: PlaceWords) -> Result {
    advised(address, bytes, advice, || place(to.kind, to.id))
}

pub(crate) fn attach(null: Null, at: u64, address: u64, length: u64, flags: u32) -> Result {
    stream::by_handle(at, null)?;
    if !matches!(flags, 1 | 2 | 4) { Err(Code::INVALID_VALUE) } else { managed(address, length).map(drop) }
}

fn fill(null: Null, at: u64, rows: (u64, u64), word: Word, size: (u64, u64)) -> Result {
    let (ctx, stream) = stream::by_handle(at, null)?;
    match Fill::new(rows.0, rows.1, word, size.0, size.1)? {
        Some(fill) => fill.later(&ctx, &stream),
        None => Ok(()),
    }
}

/// A fill that waits where memory is the host's too; of other memory it goes on beside the host, as on a GPU.
fn fill_now(null: Null, rows: (u64, u64), word: Word, size: (u64, u64)) -> Result {
    fill(null, 0, rows, word, size)?;
    let process = process()?;
    let is_host = process.memory.find(rows.0).is_some_and(|a| matches!(a.kind, Use::Host(_) | Use::Managed));
    if is_host || process.gpu_of(rows.0).is_none() {
        let (ctx, stream) = stream::by_handle(0, null)?;
        return ctx.result(stream.rt().synchronize());
    }
    Ok(())
}

pub(crate) fn set_d8(null: Null, to: u64, value: u8, n: u64) -> Result {
    fill_now(null, (to, 0), Word::B8(value), (n, 1))
}

pub(crate) fn set_d16(null: Null, to: u64, value: u16, n: u64) -> Result {
    fill_now(null, (to, 0), Word::B16(value), (n, 1))
}

pub(crate) fn set_d32(null: Null, to: u64, value: u32, n: u64) -> Result {
    fill_now(null, (to, 0), Word::B32(value), (n, 1))
}

pub(crate) fn set_2d_d8(null: Null, to: u64, pitch: u64, value: u8, width: u64, height: u64) -> Result {
    fill_now(null, (to, pitch), Word::B8(value), (width, height))
}

pub(crate) fn set_2d_d16(null: Null, to: u64, pitch: u64, value: u16, width: u64, height: u64) -> Result {
    fill_now(null, (to, pitch), Word::B16(value), (width, height))
}

pub(crate) fn set_2d_d32(null: Null, to: u64, pitch: u64, value: u32, width: u64, height: u64) -> Result {
    fill_now(null, (to, pitch), Word::B32(value), (width, height))
}

pub(crate) fn set_d8_async(null: Null, to: u64, value: u8, n: u64, at: u64) -> Result {
    fill(null, at, (to, 0), Word::B8(value), (n, 1))
}

pub(crate) fn set_d16_async(null: Null, to: u64, value: u16, n: u64, at: u64) -> Result {
    fill(null, at, (to, 0), Word::B16(value), (n, 1))
}

pub(crate) fn set_d32_async(null: Null, to: u64, value: u32, n: u64, at: u64) -> Result {
    fill(null, at, (to, 0), Word::B32(value), (n, 1))
}

pub(crate) fn set_2d_d8_async(null: Null, to: u64, pitch: u64, value: u8, width: u64, height: u64, at: u64) -> Result {
    fill(null, at, (to, pitch), Word::B8(value), (width, height))
}

pub(crate) fn set_2d_d16_async(
    null: Null,
    to: u64,
    pitch: u64,
    value: u16,
    width: u64,
    height: u64,
    at: u64,
) -> Result {
    fill(null, at, (to, pitch), Word::B16(value), (width, height))
}

pub(crate) fn set_2d_d32_async(
    null: Null,
    to: u64,
    pitch: u64,
    value: u32,
    width: u64,
    height: u64,
    at: u64,
) -> Result {
    fill(null, at, (to, pitch), Word::B32(value), (width, height))
}
