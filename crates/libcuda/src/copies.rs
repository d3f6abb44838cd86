//! Copies.

use handloom_driver::copy::{Copy, Region, Said, Size};
use handloom_driver::stream::{self, Null};
use handloom_driver::{Code, Result, context};

use crate::abi::{Memcpy2d, Memcpy3d, Memcpy3dPeer};
use crate::arrays;
use crate::ptr::{Addr, In};

fn line(to: (Said, u64), from: (Said, u64), bytes: u64) -> Result<Option<Copy>> {
    Copy::new((to.0, Region::line(to.1)), (from.0, Region::line(from.1)), Size::line(bytes))
}

fn now(null: Null, copy: Result<Option<Copy>>) -> Result {
    let (ctx, stream) = stream::by_handle(0, null)?;
    match copy? {
        Some(copy) => copy.now(&ctx, &stream),
        None => Ok(()),
    }
}

fn later(null: Null, at: u64, copy: Result<Option<Copy>>) -> Result {
    let (ctx, stream) = stream::by_handle(at, null)?;
    match copy? {
        Some(copy) => copy.later(&ctx, &stream),
        None => Ok(()),
    }
}

pub(crate) fn any(null: Null, to: u64, from: u64, bytes: u64) -> Result {
    now(null, line((Said::Any, to), (Said::Any, from), bytes))
}

pub(crate) fn any_async(null: Null, to: u64, from: u64, bytes: u64, at: u64) -> Result {
    later(null, at, line((Said::Any, to), (Said::Any, from), bytes))
}

pub(crate) fn htod(null: Null, to: u64, from: Addr, bytes: u64) -> Result {
    now(null, line((Said::Device, to), (Said::Host, from.0), bytes))
}

pub(crate) fn dtoh(null: Null, to: Addr, from: u64, bytes: u64) -> Result {
    now(null, line((Said::Host, to.0), (Said::Device, from), bytes))
}

pub(crate) fn dtod(null: Null, to: u64, from: u64, bytes: u64) -> Result {
    now(null, line((Said::Device, to), (Said::Device, from), bytes))
}

pub(crate) fn htod_async(null: Null, to: u64, from: Addr, bytes: u64, at: u64) -> Result {
    later(null, at, line((Said::Device, to), (Said::Host, from.0), bytes))
}

pub(crate) fn dtoh_async(null: Null, to: Addr, from: u64, bytes: u64, at: u64) -> Result {
    later(null, at, line((Said::Host, to.0), (Said::Device, from), bytes))
}

pub(crate) fn dtod_async(null: Null, to: u64, from: u64, bytes: u64, at: u64) -> Result {
    later(null, at, line((Said::Device, to), (Said::Device, from), bytes))
}

/// Both contexts have to be there; the addresses say which devices they are.
fn peers(to: u64, from: u64) -> Result {
    context::by_handle(to)?;
    context::by_handle(from).map(drop)
}

pub(crate) fn peer(null: Null, to: u64, to_ctx: u64, from: u64, from_ctx: u64, bytes: u64) -> Result {
    peers(to_ctx, from_ctx)?;
    dtod(null, to, from, bytes)
}

pub(crate) fn peer_async(null: Null, to: u64, to_ctx: u64, from: u64, from_ctx: u64, bytes: u64, at: u64) -> Result {
    peers(to_ctx, from_ctx)?;
    dtod_async(null, to, from, bytes, at)
}

/// One side of a structure of a copy: its kind of memory, the address or array of each kind, the first byte, row and plane, and how far rows and planes
/// are apart.
struct Side {
    kind: u32,
    host: u64,
    device: u64,
    array: u64,
    offset: (u64, u64, u64),
    pitch: u64,
    rows: u64,
}

/// The place that a structure means by its kind of memory.
fn side(s: &Side, size: Size) -> Result<(Said, Region)> {
    let Side { kind, host, device, array, offset, pitch, rows } = *s;
    const HOST: u32 = 1;
    const DEVICE: u32 = 2;
    const ARRAY: u32 = 3;
    const UNIFIED: u32 = 4;
    let (said, base) = match kind {
        HOST => (Said::Host, host),
        DEVICE => (Said::Device, device),
        UNIFIED => (Said::Any, device),
        ARRAY => return Ok((Said::Device, arrays::region(array, [offset.0, offset.1, offset.2], size)?)),
        _ => return Err(Code::INVALID_VALUE),
    };
    let (x, y, z) = offset;
    let address = || {
        let slice = pitch.checked_mul(rows)?;
        let skipped = z.checked_mul(slice)?.checked_add(y.checked_mul(pitch)?)?.checked_add(x)?;
        Some(Region { address: base.checked_add(skipped)?, pitch, slice })
    };
    Ok((said, address().ok_or(Code::INVALID_VALUE)?))
}

/// The structure of a copy.
pub(crate) fn described(copy: &Copy) -> Memcpy3d {
    let (to_device, from_device) = copy.is_of_device();
    let Size { width, height, depth } = copy.size;
    // Kind, addresses, pitch and height of a side.
    let side = |is_device: bool, r: &Region| {
        let pitch = if r.pitch == 0 { width } else { r.pitch };
        let rows = r.slice.checked_div(pitch).filter(|n| *n > 0).unwrap_or(height);
        if is_device { (2, 0, r.address, pitch, rows) } else { (1, r.address, 0, pitch, rows) }
    };
    let (from, to) = (side(from_device, &copy.from), side(to_device, &copy.to));
    Memcpy3d {
        src_x_in_bytes: 0,
        src_y: 0,
        src_z: 0,
        src_lod: 0,
        src_memory_type: from.0,
        src_host: from.1,
        src_device: from.2,
        src_array: 0,
        reserved0: 0,
        src_pitch: from.3,
        src_height: from.4,
        dst_x_in_bytes: 0,
        dst_y: 0,
        dst_z: 0,
        dst_lod: 0,
        dst_memory_type: to.0,
        dst_host: to.1,
        dst_device: to.2,
        dst_array: 0,
        reserved1: 0,
        dst_pitch: to.3,
        dst_height: to.4,
        width_in_bytes: width,
        height,
        depth,
    }
}

fn of_2d(c: &Memcpy2d) -> Result<Option<Copy>> {
    let pitch = |p: u64| if p == 0 { c.width_in_bytes } else { p };
    let size = Size { width: c.width_in_bytes, height: c.height, depth: 1 };
    let to = Side {
        kind: c.dst_memory_type,
        host: c.dst_host,
        device: c.dst_device,
        array: c.dst_array,
        offset: (c.dst_x_in_bytes, c.dst_y, 0),
        pitch: pitch(c.dst_pitch),
        rows: 0,
    };
    let from = Side {
        kind: c.src_memory_type,
        host: c.src_host,
        device: c.src_device,
        array: c.src_array,
        offset: (c.src_x_in_bytes, c.src_y, 0),
        pitch: pitch(c.src_pitch),
        rows: 0,
    };
    Copy::new(side(&to, size)?, side(&from, size)?, size)
}

/// A copy as a structure of three dimensions describes it.
pub(crate) fn of_3d(c: &Memcpy3d) -> Result<Option<Copy>> {
    let pitch = |p: u64| if p == 0 { c.width_in_bytes } else { p };
    let rows = |h: u64| if h == 0 { c.height } else { h };
    let size = Size { width: c.width_in_bytes, height: c.height, depth: c.depth };
    let to = Side {
        kind: c.dst_memory_type,
        host: c.dst_host,
        device: c.dst_device,
        array: c.dst_array,
        offset: (c.dst_x_in_bytes, c.dst_y, c.dst_z),
        pitch: pitch(c.dst_pitch),
        rows: rows(c.dst_height),
    };
    let from = Side {
        kind: c.src_memory_type,
        host: c.src_host,
        device: c.src_device,
        array: c.src_array,
        offset: (c.src_x_in_bytes, c.src_y, c.src_z),
        pitch: pitch(c.src_pitch),
        rows: rows(c.src_height),
    };
    Copy::new(side(&to, size)?, side(&from, size)?, size)
}

/// Bytes in the first row of an array.
fn in_array(array: u64, offset: u64, bytes: u64) -> Result<(Said, Region)> {
    Ok((Said::Device, arrays::region(array, [offset, 0, 0], Size::line(bytes))?))
}

fn array_line(to: Result<(Said, Region)>, from: Result<(Said, Region)>, bytes: u64) -> Result<Option<Copy>> {
    Copy::new(to?, from?, Size::line(bytes))
}

pub(crate) fn dtoa(null: Null, array: u64, offset: u64, from: u64, bytes: u64) -> Result {
    now(null, array_line(in_array(array, offset, bytes), Ok((Said::Device, Region::line(from))), bytes))
}

pub(crate) fn atod(null: Null, to: u64, array: u64, offset: u64, bytes: u64) -> Result {
    now(null, array_line(Ok((Said::Device, Region::line(to))), in_array(array, offset, bytes), bytes))
}

pub(crate) fn htoa(null: Null, array: u64, offset: u64, from: Addr, bytes: u64) -> Result {
    now(null, array_line(in_array(array, offset, bytes), Ok((Said::Host, Region::line(from.0))), bytes))
}

pub(crate) fn atoh(null: Null, to: Addr, array: u64, offset: u64, bytes: u64) -> Result {
    now(null, array_line(Ok((Said::Host, Region::line(to.0))), in_array(array, offset, bytes), bytes))
}

pub(crate) fn atoa(null: Null, to: u64, to_offset: u64, from: u64, from_offset: u64, bytes: u64) -> Result {
    now(null, array_line(in_array(to, to_offset, bytes), in_array(from, from_offset, bytes), bytes))
}

pub(crate) fn htoa_async(null: Null, array: u64, offset: u64, from: Addr, bytes: u64, at: u64) -> Result {
    later(null, at, array_line(in_array(array, offset, bytes), Ok((Said::Host, Region::line(from.0))), bytes))
}

pub(crate) fn atoh_async(null: Null, to: Addr, array: u64, offset: u64, bytes: u64, at: u64) -> Result {
    later(null, at, array_line(Ok((Said::Host, Region::line(to.0))), in_array(array, offset, bytes), bytes))
}

pub(crate) fn copy_2d(null: Null, copy: In<Memcpy2d>) -> Result {
    let copy = copy.get()?;
    now(null, of_2d(&copy))
}

pub(crate) fn copy_2d_async(null: Null, copy: In<Memcpy2d>, at: u64) -> Result {
    let copy = copy.get()?;
    later(null, at, of_2d(&copy))
}

pub(crate) fn copy_3d(null: Null, copy: In<Memcpy3d>) -> Result {
    let copy = copy.get()?;
    now(null, of_3d(&copy))
}

pub(crate) fn copy_3d_async(null: Null, copy: In<Memcpy3d>, at: u64) -> Result {
    let copy = copy.get()?;
    later(null, at, of_3d(&copy))
}

pub(crate) fn copy_3d_peer(null: Null, copy: In<Memcpy3dPeer>) -> Result {
    let copy = copy.get()?.copy;
    peers(copy.reserved1, copy.reserved0)?;
    now(null, of_3d(&copy))
}

pub(crate) fn copy_3d_peer_async(null: Null, copy: In<Memcpy3dPeer>, at: u64) -> Result {
    let copy = copy.get()?.copy;
    peers(copy.reserved1, copy.reserved0)?;
    later(null, at, of_3d(&copy))
}
