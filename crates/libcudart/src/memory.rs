//! Memory: allocations, copies, fills, addresses. See "Memory Management" and "Unified Addressing".

use std::ffi::c_void;

use crate::array::element_bytes;
use crate::cu::{self, Memcpy2D, Memcpy3D, Side, Side2};
use crate::device::{exists, ready};
use crate::error::{Answer, Error, driver};
use crate::stream::{LEGACY, PER_THREAD, per_thread};
use crate::types::{
    Extent, IpcHandle, MemLocation, Memcpy3DParms, Memcpy3DPeerParms, Out, PitchedPtr, PointerAttributes12,
    PointerAttributes13, put,
};

/// Any address: the driver finds out what it is.
pub const UNIFIED: u32 = 4;
/// An array.
pub const ARRAY: u32 = 3;

/// What the elements of an array are.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ChannelFormat {
    /// Bits of each component.
    pub bits: [i32; 4],
    /// What they are.
    pub kind: u32,
}

/// `cudaCreateChannelDesc` of the runtime API.
#[unsafe(no_mangle)]
pub extern "C" fn cudaCreateChannelDesc(x: i32, y: i32, z: i32, w: i32, kind: u32) -> ChannelFormat {
    ChannelFormat { bits: [x, y, z, w], kind }
}

/// Which way a copy goes, as programs say it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
    Any,
}

fn kind(number: u32) -> Answer<Kind> {
    Ok(match number {
        0 | 4 => Kind::Any,
        1 => Kind::HostToDevice,
        2 => Kind::DeviceToHost,
        3 => Kind::DeviceToDevice,
        _ => return Err(Error::INVALID_MEMCPY_DIRECTION),
    })
}

/// Copies in a stream; it may go on when the call returns.
pub fn copy_async(to: u64, from: u64, bytes: usize, direction: u32, stream: u64) -> Answer {
    ready()?;
    let direction = kind(direction)?;
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the program says that host memory of this size is at the addresses that are no device memory, until the copy is done.
    driver(unsafe {
        match direction {
            Kind::HostToDevice => cu::cuMemcpyHtoDAsync_v2(to, from, bytes, stream),
            Kind::DeviceToHost => cu::cuMemcpyDtoHAsync_v2(to, from, bytes, stream),
            Kind::DeviceToDevice => cu::cuMemcpyDtoDAsync_v2(to, from, bytes, stream),
            Kind::Any => cu::cuMemcpyAsync(to, from, bytes, stream),
        }
    })
}

/// Copies; all is done when the call returns.
pub fn copy(to: u64, from: u64, bytes: usize, direction: u32, stream: u64) -> Answer {
    if stream == PER_THREAD {
        copy_async(to, from, bytes, direction, stream)?;
        return driver(cu::cuStreamSynchronize(stream));
    }
    ready()?;
    let direction = kind(direction)?;
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the program says that host memory of this size is at the addresses that are no device memory.
    driver(unsafe {
        match direction {
            Kind::HostToDevice => cu::cuMemcpyHtoD_v2(to, from, bytes),
            Kind::DeviceToHost => cu::cuMemcpyDtoH_v2(to, from, bytes),
            Kind::DeviceToDevice => cu::cuMemcpyDtoD_v2(to, from, bytes),
            Kind::Any => cu::cuMemcpy(to, from, bytes),
        }
    })
}

/// Whether a call waits for what it started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// All is done when it returns.
    Yes,
    /// It may go on.
    No,
}

fn wait_for(stream: u64, wait: Wait) -> Answer {
    match wait {
        Wait::Yes => driver(cu::cuStreamSynchronize(stream)),
        Wait::No => Ok(()),
    }
}

/// A rectangle in memory: its address, and the bytes from row to row.
#[derive(Clone, Copy)]
struct Rows {
    at: u64,
    pitch: usize,
}

/// Refuses what is no direction of a copy.
pub fn check_kind(number: u32) -> Answer {
    kind(number).map(drop)
}

/// Copies a rectangle.
pub fn copy_rectangle(copy: &Memcpy2D, stream: u64, wait: Wait) -> Answer {
    ready()?;
    if copy.width == 0 || copy.height == 0 {
        return Ok(());
    }
    if wait == Wait::Yes && stream == LEGACY {
        // SAFETY: the program says that memory of these sizes is at both addresses.
        return driver(unsafe { cu::cuMemcpy2DUnaligned_v2(copy) });
    }
    // SAFETY: the same, until the copy is done.
    driver(unsafe { cu::cuMemcpy2DAsync_v2(copy, stream) })?;
    wait_for(stream, wait)
}

fn copy_rows(to: Rows, from: Rows, width: usize, height: usize, direction: u32, stream: u64, wait: Wait) -> Answer {
    ready()?;
    kind(direction)?;
    if width > to.pitch || width > from.pitch {
        return Err(Error::INVALID_PITCH_VALUE);
    }
    let side = |rows: Rows| Side2 { x: 0, y: 0, kind: UNIFIED, host: 0, device: rows.at, array: 0, pitch: rows.pitch };
    copy_rectangle(&Memcpy2D { src: side(from), dst: side(to), width, height }, stream, wait)
}

/// A copy of a box in the driver's words.
pub fn box_copy(p: &Memcpy3DParms) -> Answer<Memcpy3D> {
    kind(p.kind)?;
    // Where an array takes part, widths count its elements.
    let element = match (p.src_array, p.dst_array) {
        (0, 0) => 1,
        (0, array) | (array, _) => element_bytes(array)?,
    };
    let bytes = |n: usize| n.checked_mul(element).ok_or(Error::INVALID_VALUE);
    let side = |array: u64, pos: crate::types::Pos, ptr: PitchedPtr| {
        if (array == 0) == (ptr.ptr == 0) {
            return Err(Error::INVALID_VALUE);
        }
        Ok(Side {
            x: if array == 0 { pos.x } else { bytes(pos.x)? },
            y: pos.y,
            z: pos.z,
            level: 0,
            kind: if array == 0 { UNIFIED } else { ARRAY },
            host: 0,
            device: ptr.ptr,
            array,
            reserved: 0,
            pitch: ptr.pitch,
            height: ptr.ysize,
        })
    };
    Ok(Memcpy3D {
        src: side(p.src_array, p.src_pos, p.src_ptr)?,
        dst: side(p.dst_array, p.dst_pos, p.dst_ptr)?,
        width: bytes(p.extent.width)?,
        height: p.extent.height,
        depth: p.extent.depth,
    })
}

/// A copy of bytes in the driver's words, for a node of a graph.
pub fn flat_copy(to: u64, from: u64, bytes: usize, direction: u32) -> Answer<Memcpy3D> {
    kind(direction)?;
    let side = |at| Side {
        x: 0,
        y: 0,
        z: 0,
        level: 0,
        kind: UNIFIED,
        host: 0,
        device: at,
        array: 0,
        reserved: 0,
        pitch: bytes,
        height: 1,
    };
    Ok(Memcpy3D { src: side(from), dst: side(to), width: bytes, height: 1, depth: 1 })
}

fn copy_box(p: Option<&Memcpy3DParms>, stream: u64, wait: Wait) -> Answer {
    ready()?;
    let copy = box_copy(p.ok_or(Error::INVALID_VALUE)?)?;
    if copy.width == 0 || copy.height == 0 || copy.depth == 0 {
        return Ok(());
    }
    if wait == Wait::Yes && stream == LEGACY {
        // SAFETY: the program says that memory of these sizes is at both addresses.
        return driver(unsafe { cu::cuMemcpy3D_v2(&copy) });
    }
    // SAFETY: the same, until the copy is done.
    driver(unsafe { cu::cuMemcpy3DAsync_v2(&copy, stream) })?;
    wait_for(stream, wait)
}

/// The same between devices, whose addresses say which of them is meant.
fn copy_box_of_devices(p: Option<&Memcpy3DPeerParms>, stream: u64, wait: Wait) -> Answer {
    const ANY: u32 = 4;
    let p = p.ok_or(Error::INVALID_VALUE)?;
    exists(p.src_device)?;
    exists(p.dst_device)?;
    let Memcpy3DPeerParms { src_array, src_pos, src_ptr, dst_array, dst_pos, dst_ptr, extent, .. } = *p;
    let copy = Memcpy3DParms { src_array, src_pos, src_ptr, dst_array, dst_pos, dst_ptr, extent, kind: ANY };
    copy_box(Some(&copy), stream, wait)
}

/// The byte that a fill writes.
fn byte(value: i32) -> u8 {
    value.to_le_bytes()[0]
}

fn fill(address: u64, value: i32, count: usize, stream: u64, wait: Wait) -> Answer {
    ready()?;
    if count == 0 {
        return Ok(());
    }
    match wait {
        Wait::Yes if stream == LEGACY => driver(cu::cuMemsetD8_v2(address, byte(value), count)),
        _ => {
            driver(cu::cuMemsetD8Async(address, byte(value), count, stream))?;
            wait_for(stream, wait)
        }
    }
}

fn fill_box(to: PitchedPtr, value: i32, size: Extent, stream: u64, wait: Wait) -> Answer {
    ready()?;
    if size.width == 0 || size.height == 0 || size.depth == 0 {
        return Ok(());
    }
    if size.width > to.pitch || size.height > to.ysize && size.depth > 1 {
        return Err(Error::INVALID_VALUE);
    }
    let layer = to.pitch.checked_mul(to.ysize).ok_or(Error::INVALID_VALUE)?;
    for z in 0..size.depth {
        let at = layer
            .checked_mul(z)
            .and_then(|d| u64::try_from(d).ok())
            .and_then(|d| to.ptr.checked_add(d))
            .ok_or(Error::INVALID_VALUE)?;
        driver(cu::cuMemsetD2D8Async(at, to.pitch, byte(value), size.width, size.height, stream))?;
    }
    wait_for(stream, wait)
}

fn fill_rows(at: u64, pitch: usize, value: i32, width: usize, height: usize, stream: u64, wait: Wait) -> Answer {
    let to = PitchedPtr { ptr: at, pitch, xsize: width, ysize: height };
    fill_box(to, value, Extent { width, height, depth: 1 }, stream, wait)
}

/// Allocates `bytes` and returns their address; 0 for nothing.
pub fn allocate(bytes: usize) -> Answer<u64> {
    ready()?;
    let mut address = 0;
    if bytes > 0 {
        driver(cu::cuMemAlloc_v2(&mut address, bytes))?;
    }
    Ok(address)
}

fn host_allocate(bytes: usize, flags: u32) -> Answer<u64> {
    ready()?;
    let mut address = 0;
    if bytes > 0 {
        driver(cu::cuMemHostAlloc(&mut address, bytes, flags))?;
    }
    Ok(address)
}

fn allocate_rows(width: usize, height: usize) -> Answer<(u64, usize)> {
    ready()?;
    let (mut address, mut pitch) = (0, 0);
    if width > 0 && height > 0 {
        driver(cu::cuMemAllocPitch_v2(&mut address, &mut pitch, width, height, 16))?;
    }
    Ok((address, pitch))
}

fn pointer_attributes(address: u64) -> Answer<PointerAttributes12> {
    const NUMBERS: [u32; 5] = [2, 3, 4, 8, 9];
    ready()?;
    let nothing = PointerAttributes12 { kind: 0, device: -2, device_pointer: 0, host_pointer: address };
    if address == 0 {
        return Ok(nothing);
    }
    let (mut kind, mut device_pointer, mut host_pointer, mut is_managed, mut device) = (0_u32, 0_u64, 0_u64, 0_u8, 0);
    let places: [*mut c_void; 5] = [
        (&raw mut kind).cast(),
        (&raw mut device_pointer).cast(),
        (&raw mut host_pointer).cast(),
        (&raw mut is_managed).cast(),
        (&raw mut device).cast(),
    ];
    // SAFETY: there are as many places as numbers, and each is as large as what the driver writes for its number.
    driver(unsafe { cu::cuPointerGetAttributes(5, NUMBERS.as_ptr(), places.as_ptr(), address) })?;
    if kind == 0 {
        return Ok(nothing);
    }
    let kind = if is_managed == 0 { kind } else { 3 };
    Ok(PointerAttributes12 { kind, device, device_pointer, host_pointer })
}

fn advise(address: u64, bytes: usize, advice: u32, location: MemLocation) -> Answer {
    ready()?;
    driver(cu::cuMemAdvise_v2(address, bytes, advice, location))
}

fn prefetch(address: u64, bytes: usize, location: MemLocation, flags: u32, stream: u64) -> Answer {
    ready()?;
    driver(cu::cuMemPrefetchAsync_v2(address, bytes, location, flags, stream))
}

calls! {
    fn cudaMalloc(address: Out<'_, u64>, bytes: usize) {
        let address = address.ok_or(Error::INVALID_VALUE)?;
        put(Some(address), allocate(bytes)?)
    }

    fn cudaMallocManaged(address: Out<'_, u64>, bytes: usize, flags: u32) {
        ready()?;
        let address = address.ok_or(Error::INVALID_VALUE)?;
        let mut made = 0;
        driver(cu::cuMemAllocManaged(&mut made, bytes, flags))?;
        put(Some(address), made)
    }

    fn cudaMallocPitch(address: Out<'_, u64>, pitch: Out<'_, usize>, width: usize, height: usize) {
        let (address, pitch) = (address.ok_or(Error::INVALID_VALUE)?, pitch.ok_or(Error::INVALID_VALUE)?);
        let (at, step) = allocate_rows(width, height)?;
        put(Some(pitch), step)?;
        put(Some(address), at)
    }

    fn cudaMalloc3D(memory: Out<'_, PitchedPtr>, size: Extent) {
        let memory = memory.ok_or(Error::INVALID_VALUE)?;
        let rows = size.height.checked_mul(size.depth).ok_or(Error::MEMORY_ALLOCATION)?;
        let (ptr, pitch) = allocate_rows(size.width, rows)?;
        put(Some(memory), PitchedPtr { ptr, pitch, xsize: size.width, ysize: size.height })
    }

    fn cudaFree(address: u64) {
        ready()?;
        if address == 0 { Ok(()) } else { driver(cu::cuMemFree_v2(address)) }
    }

    fn cudaMallocHost(address: Out<'_, u64>, bytes: usize) {
        let address = address.ok_or(Error::INVALID_VALUE)?;
        put(Some(address), host_allocate(bytes, 0)?)
    }

    fn cudaHostAlloc(address: Out<'_, u64>, bytes: usize, flags: u32) {
        let address = address.ok_or(Error::INVALID_VALUE)?;
        put(Some(address), host_allocate(bytes, flags)?)
    }

    fn cudaFreeHost(address: u64) {
        ready()?;
        if address == 0 { Ok(()) } else { driver(cu::cuMemFreeHost(address)) }
    }

    fn cudaHostRegister(address: u64, bytes: usize, flags: u32) {
        ready()?;
        // SAFETY: the program says that its own memory of this size is there until it is unregistered.
        driver(unsafe { cu::cuMemHostRegister_v2(address, bytes, flags) })
    }

    fn cudaHostUnregister(address: u64) {
        ready()?;
        driver(cu::cuMemHostUnregister(address))
    }

    fn cudaHostGetDevicePointer(device: Out<'_, u64>, host: u64, flags: u32) {
        ready()?;
        let mut found = 0;
        driver(cu::cuMemHostGetDevicePointer_v2(&mut found, host, flags))?;
        put(device, found)
    }

    fn cudaHostGetFlags(flags: Out<'_, u32>, host: u64) {
        ready()?;
        let mut found = 0;
        driver(cu::cuMemHostGetFlags(&mut found, host))?;
        put(flags, found)
    }

    fn cudaMemGetInfo(free: Out<'_, usize>, total: Out<'_, usize>) {
        ready()?;
        let (mut left, mut all) = (0, 0);
        driver(cu::cuMemGetInfo_v2(&mut left, &mut all))?;
        put(free, left)?;
        put(total, all)
    }

    fn cudaMemcpy / cudaMemcpy_ptds(to: u64, from: u64, bytes: usize, direction: u32; on stream) {
        copy(to, from, bytes, direction, stream)
    }

    fn cudaMemcpyAsync / cudaMemcpyAsync_ptsz(to: u64, from: u64, bytes: usize, direction: u32; stream: u64) {
        copy_async(to, from, bytes, direction, stream)
    }

    fn cudaMemcpyPeer(to: u64, to_device: i32, from: u64, from_device: i32, bytes: usize) {
        crate::device::exists(to_device)?;
        crate::device::exists(from_device)?;
        copy(to, from, bytes, 3, LEGACY)
    }

    fn cudaMemcpyPeerAsync(to: u64, to_device: i32, from: u64, from_device: i32, bytes: usize, stream: u64) {
        crate::device::exists(to_device)?;
        crate::device::exists(from_device)?;
        copy_async(to, from, bytes, 3, stream)
    }

    fn cudaMemcpy2D / cudaMemcpy2D_ptds(
        to: u64, to_pitch: usize, from: u64, from_pitch: usize, width: usize, height: usize, direction: u32; on stream
    ) {
        copy_rows(Rows { at: to, pitch: to_pitch }, Rows { at: from, pitch: from_pitch }, width, height, direction, stream, Wait::Yes)
    }

    fn cudaMemcpy2DAsync / cudaMemcpy2DAsync_ptsz(
        to: u64, to_pitch: usize, from: u64, from_pitch: usize, width: usize, height: usize, direction: u32; stream: u64
    ) {
        copy_rows(Rows { at: to, pitch: to_pitch }, Rows { at: from, pitch: from_pitch }, width, height, direction, stream, Wait::No)
    }

    fn cudaMemcpy3DPeer / cudaMemcpy3DPeer_ptds(p: Option<&Memcpy3DPeerParms>; on stream) {
        copy_box_of_devices(p, stream, Wait::Yes)
    }

    fn cudaMemcpy3DPeerAsync / cudaMemcpy3DPeerAsync_ptsz(p: Option<&Memcpy3DPeerParms>; stream: u64) {
        copy_box_of_devices(p, stream, Wait::No)
    }

    fn cudaMemcpy3D / cudaMemcpy3D_ptds(p: Option<&Memcpy3DParms>; on stream) {
        copy_box(p, stream, Wait::Yes)
    }

    fn cudaMemcpy3DAsync / cudaMemcpy3DAsync_ptsz(p: Option<&Memcpy3DParms>; stream: u64) {
        copy_box(p, stream, Wait::No)
    }

    fn cudaMemset / cudaMemset_ptds(address: u64, value: i32, count: usize; on stream) {
        fill(address, value, count, stream, Wait::Yes)
    }

    fn cudaMemsetAsync / cudaMemsetAsync_ptsz(address: u64, value: i32, count: usize; stream: u64) {
        fill(address, value, count, stream, Wait::No)
    }

    fn cudaMemset2D / cudaMemset2D_ptds(address: u64, pitch: usize, value: i32, width: usize, height: usize; on stream) {
        fill_rows(address, pitch, value, width, height, stream, Wait::Yes)
    }

    fn cudaMemset2DAsync / cudaMemset2DAsync_ptsz(address: u64, pitch: usize, value: i32, width: usize, height: usize; stream: u64) {
        fill_rows(address, pitch, value, width, height, stream, Wait::No)
    }

    fn cudaMemset3D / cudaMemset3D_ptds(to: PitchedPtr, value: i32, size: Extent; on stream) {
        fill_box(to, value, size, stream, Wait::Yes)
    }

    fn cudaMemset3DAsync / cudaMemset3DAsync_ptsz(to: PitchedPtr, value: i32, size: Extent; stream: u64) {
        fill_box(to, value, size, stream, Wait::No)
    }

    in "13" fn cudaPointerGetAttributes as pointer_attributes_13(attributes: Out<'_, PointerAttributes13>, address: u64) {
        put(attributes, PointerAttributes13 { base: pointer_attributes(address)?, rest: [0; 8] })
    }

    in "12" fn cudaPointerGetAttributes as pointer_attributes_12(attributes: Out<'_, PointerAttributes12>, address: u64) {
        put(attributes, pointer_attributes(address)?)
    }

    in "13" fn cudaMemAdvise as advise_13(address: u64, bytes: usize, advice: u32, location: MemLocation) {
        advise(address, bytes, advice, location)
    }

    in "12" fn cudaMemAdvise as advise_12(address: u64, bytes: usize, advice: u32, device: i32) {
        advise(address, bytes, advice, MemLocation::of_device(device))
    }

    fn cudaMemAdvise_v2(address: u64, bytes: usize, advice: u32, location: MemLocation) {
        advise(address, bytes, advice, location)
    }

    in "13" fn cudaMemPrefetchAsync as prefetch_13(address: u64, bytes: usize, location: MemLocation, flags: u32, stream: u64) {
        prefetch(address, bytes, location, flags, stream)
    }

    in "13" fn cudaMemPrefetchAsync_ptsz as prefetch_13_ptsz(address: u64, bytes: usize, location: MemLocation, flags: u32, stream: u64) {
        prefetch(address, bytes, location, flags, per_thread(stream))
    }

    in "12" fn cudaMemPrefetchAsync as prefetch_12(address: u64, bytes: usize, device: i32, stream: u64) {
        prefetch(address, bytes, MemLocation::of_device(device), 0, stream)
    }

    in "12" fn cudaMemPrefetchAsync_ptsz as prefetch_12_ptsz(address: u64, bytes: usize, device: i32, stream: u64) {
        prefetch(address, bytes, MemLocation::of_device(device), 0, per_thread(stream))
    }

    fn cudaMemPrefetchAsync_v2 / cudaMemPrefetchAsync_v2_ptsz(address: u64, bytes: usize, location: MemLocation, flags: u32; stream: u64) {
        prefetch(address, bytes, location, flags, stream)
    }

    fn cudaMemRangeGetAttribute(data: *mut c_void, size: usize, attribute: u32, address: u64, bytes: usize) {
        ready()?;
        // SAFETY: the program says that `size` bytes may be written there; the driver tests for null.
        driver(unsafe { cu::cuMemRangeGetAttribute(data, size, attribute, address, bytes) })
    }

    fn cudaIpcGetMemHandle(handle: Out<'_, IpcHandle>, address: u64) {
        ready()?;
        let mut made = IpcHandle { bytes: [0; 64] };
        driver(cu::cuIpcGetMemHandle(&mut made, address))?;
        put(handle, made)
    }

    fn cudaIpcOpenMemHandle(address: Out<'_, u64>, handle: IpcHandle, flags: u32) {
        ready()?;
        let mut made = 0;
        driver(cu::cuIpcOpenMemHandle_v2(&mut made, handle, flags))?;
        put(address, made)
    }

    fn cudaIpcCloseMemHandle(address: u64) {
        ready()?;
        driver(cu::cuIpcCloseMemHandle(address))
    }
}
