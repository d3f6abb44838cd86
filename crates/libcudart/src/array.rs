//! Arrays, textures and surfaces. See "Memory Management", "Texture Object Management" and "Surface Object Management".

use std::ffi::c_void;

use crate::cu::{self, ArrayDescriptor, Memcpy2D, ResourceDesc, Side2, TextureDesc, ViewDesc};
use crate::device::ready;
use crate::error::{Answer, Error, driver};
use crate::memory::{ARRAY, ChannelFormat, UNIFIED, Wait, check_kind, copy_rectangle};
use crate::types::{Extent, Out, put, put_if};

/// `cudaResourceDesc`, as much of it as both versions have: an array, or an address with its format and sizes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Resource {
    kind: u32,
    words: [u64; 7],
}

/// `cudaTextureDesc`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    address: [u32; 3],
    filter: u32,
    read_mode: u32,
    srgb: i32,
    border: [f32; 4],
    normalized: i32,
    max_anisotropy: u32,
    mip_filter: u32,
    lod_bias: f32,
    min_lod: f32,
    max_lod: f32,
    exact_levels: i32,
    seamless: i32,
}

/// `cudaResourceViewDesc`, as much of it as both versions have.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct View {
    format: u32,
    size: [usize; 3],
    levels: [u32; 2],
    layers: [u32; 2],
}

/// First of the formats whose kind says the number of components too, in both interfaces.
const COUNTED: (u32, u32) = (5, 0xc0);

/// The driver's format, and the number of components.
fn format(c: &ChannelFormat) -> Answer<(u32, u32)> {
    if let Some(n) = c.kind.checked_sub(COUNTED.0).filter(|n| *n < 12) {
        return Ok((COUNTED.1 + n, [1, 2, 4][n as usize % 3]));
    }
    let n = c.bits.iter().take_while(|b| **b != 0).count();
    let alike = c.bits[..n].iter().all(|b| *b == c.bits[0]) && c.bits[n..].iter().all(|b| *b == 0);
    if !alike || !matches!(n, 1 | 2 | 4) {
        return Err(Error::INVALID_CHANNEL_DESCRIPTOR);
    }
    let format = match (c.bits[0], c.kind) {
        (8, 1) => 0x01,
        (16, 1) => 0x02,
        (32, 1) => 0x03,
        (8, 0) => 0x08,
        (16, 0) => 0x09,
        (32, 0) => 0x0a,
        (16, 2) => 0x10,
        (32, 2) => 0x20,
        _ => return Err(Error::INVALID_CHANNEL_DESCRIPTOR),
    };
    Ok((format, u32::try_from(n).unwrap_or(0)))
}

/// What a format of the driver is here.
fn channel(format: u32, channels: u32) -> ChannelFormat {
    let (bits, kind) = match format {
        0x01 => (8, 1),
        0x02 => (16, 1),
        0x03 => (32, 1),
        0x08 => (8, 0),
        0x09 => (16, 0),
        0x0a => (32, 0),
        0x10 => (16, 2),
        0x20 => (32, 2),
        other => {
            (if other.wrapping_sub(COUNTED.1) / 3 % 2 == 0 { 8 } else { 16 }, COUNTED.0 + other.wrapping_sub(COUNTED.1))
        }
    };
    let of = |i: u32| if i < channels { bits } else { 0 };
    ChannelFormat { bits: [of(0), of(1), of(2), of(3)], kind }
}

fn describe(c: Option<&ChannelFormat>, size: Extent, flags: u32) -> Answer<ArrayDescriptor> {
    let (format, channels) = format(c.ok_or(Error::INVALID_VALUE)?)?;
    Ok(ArrayDescriptor { width: size.width, height: size.height, depth: size.depth, format, channels, flags })
}

fn make(to: Out<'_, u64>, c: Option<&ChannelFormat>, size: Extent, flags: u32) -> Answer {
    ready()?;
    let what = describe(c, size, flags)?;
    let mut array = 0;
    driver(cu::cuArray3DCreate_v2(&mut array, &what))?;
    put(to, array)
}

fn descriptor(array: u64) -> Answer<ArrayDescriptor> {
    ready()?;
    let mut what = ArrayDescriptor { width: 0, height: 0, depth: 0, format: 0, channels: 0, flags: 0 };
    driver(cu::cuArray3DGetDescriptor_v2(&mut what, array))?;
    Ok(what)
}

/// Bytes of an element of an array.
pub fn element_bytes(array: u64) -> Answer<usize> {
    let what = descriptor(array)?;
    let bits = channel(what.format, what.channels).bits[0];
    Ok(usize::try_from(bits).unwrap_or(0) / 8 * what.channels as usize)
}

/// A rectangle of an array: its first byte in a row, and its first row.
fn in_array(array: u64, x: usize, y: usize) -> Side2 {
    Side2 { x, y, kind: ARRAY, host: 0, device: 0, array, pitch: 0 }
}

/// A rectangle in memory.
fn in_memory(at: u64, pitch: usize) -> Side2 {
    Side2 { x: 0, y: 0, kind: UNIFIED, host: 0, device: at, array: 0, pitch }
}

/// The pieces of so many bytes that begin at a byte of a row and go on in the rows after it: byte of a row, row, width, rows.
fn pieces(array: u64, x: usize, y: usize, count: usize) -> Answer<Vec<[usize; 4]>> {
    let row = descriptor(array)?.width * element_bytes(array)?;
    let mut out = Vec::new();
    let (mut x, mut y, mut rest) = (x, y, count);
    while rest > 0 {
        if x >= row {
            return Err(Error::INVALID_VALUE);
        }
        let piece = if x == 0 && rest >= row { [0, y, row, rest / row] } else { [x, y, rest.min(row - x), 1] };
        out.push(piece);
        rest -= piece[2] * piece[3];
        (x, y) = (0, y + piece[3]);
    }
    Ok(out)
}

/// Bytes of an array, row after row, from a place on.
#[derive(Clone, Copy)]
struct Bytes {
    array: u64,
    x: usize,
    y: usize,
    count: usize,
}

/// Which way bytes of an array go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    To,
    From,
}

fn flat(bytes: Bytes, way: Way, memory: u64, direction: u32, stream: u64, wait: Wait) -> Answer {
    ready()?;
    check_kind(direction)?;
    let mut at = memory;
    for [x, y, width, height] in pieces(bytes.array, bytes.x, bytes.y, bytes.count)? {
        let (a, m) = (in_array(bytes.array, x, y), in_memory(at, width));
        let (src, dst) = if way == Way::To { (m, a) } else { (a, m) };
        copy_rectangle(&Memcpy2D { src, dst, width, height }, stream, wait)?;
        at = at.wrapping_add((width * height) as u64);
    }
    Ok(())
}

/// Copies bytes from one array to another, row after row from a place in each.
fn flat_between(to: Bytes, from: Bytes, direction: u32, stream: u64) -> Answer {
    ready()?;
    check_kind(direction)?;
    let row = |array| Ok::<usize, Error>(descriptor(array)?.width * element_bytes(array)?);
    let (to_row, from_row) = (row(to.array)?, row(from.array)?);
    let (mut to, mut from) = (to, from);
    while from.count > 0 {
        if to.x >= to_row || from.x >= from_row {
            return Err(Error::INVALID_VALUE);
        }
        let width = from.count.min(from_row - from.x).min(to_row - to.x);
        let (src, dst) = (in_array(from.array, from.x, from.y), in_array(to.array, to.x, to.y));
        copy_rectangle(&Memcpy2D { src, dst, width, height: 1 }, stream, Wait::Yes)?;
        from.count -= width;
        for (side, row) in [(&mut to, to_row), (&mut from, from_row)] {
            side.x += width;
            if side.x == row {
                (side.x, side.y) = (0, side.y + 1);
            }
        }
    }
    Ok(())
}

fn resource(r: Option<&Resource>) -> Answer<ResourceDesc> {
    let r = r.ok_or(Error::INVALID_VALUE)?;
    let words = r.words;
    let part = |at: usize| [words[at] as i32, (words[at] >> 32) as i32];
    let c =
        || ChannelFormat { bits: [part(1)[0], part(1)[1], part(2)[0], part(2)[1]], kind: part(3)[0].cast_unsigned() };
    let with = |second: u64, rest: [u64; 3]| ResourceDesc {
        kind: r.kind,
        res: [words[0], second, rest[0], rest[1], rest[2]],
        reserved: [0; 11],
        flags: 0,
    };
    Ok(match r.kind {
        0 | 1 => with(0, [0; 3]),
        2 | 3 => {
            let (format, channels) = format(&c())?;
            with(u64::from(format) | u64::from(channels) << 32, [words[4], words[5], words[6]])
        }
        _ => return Err(Error::INVALID_VALUE),
    })
}

fn resource_of(d: &ResourceDesc) -> Resource {
    let mut words = [d.res[0], 0, 0, 0, d.res[2], d.res[3], d.res[4]];
    if d.kind >= 2 {
        let c = channel(d.res[1] as u32, (d.res[1] >> 32) as u32);
        let both = |a: i32, b: i32| u64::from(a.cast_unsigned()) | u64::from(b.cast_unsigned()) << 32;
        words[1] = both(c.bits[0], c.bits[1]);
        words[2] = both(c.bits[2], c.bits[3]);
        words[3] = u64::from(c.kind);
    }
    Resource { kind: d.kind, words }
}

/// `CUarray_format` of a `cudaResourceViewFormat` that is one of integers or floats.
fn format_of_view(format: u32) -> Option<u32> {
    const FORMATS: [u32; 8] = [0x01, 0x08, 0x02, 0x09, 0x03, 0x0a, 0x10, 0x20];
    FORMATS.get(usize::try_from(format.checked_sub(1)? / 3).ok()?).copied()
}

/// The format of what a texture lies over, as the texture shows it.
fn format_of(r: &ResourceDesc, view: Option<&View>) -> Answer<u32> {
    if let Some(format) = view.and_then(|view| format_of_view(view.format)) {
        return Ok(format);
    }
    match r.kind {
        0 => Ok(descriptor(r.res[0])?.format),
        1 => {
            let mut level = 0;
            driver(cu::cuMipmappedArrayGetLevel(&mut level, r.res[0], 0))?;
            Ok(descriptor(level)?.format)
        }
        _ => Ok(r.res[1] as u32),
    }
}

fn reading(t: &Reading, format: u32) -> Answer<TextureDesc> {
    // Integers of 32 bits stand for no parts of one.
    if t.read_mode > 1 || t.read_mode == 1 && matches!(format, 0x03 | 0x0a) {
        return Err(Error::INVALID_NORM_SETTING);
    }
    let flag = |is: bool, bit: u32| if is { bit } else { 0 };
    let is_integer = matches!(format, 0x01..=0x03 | 0x08..=0x0a);
    let flags = flag(t.read_mode == 0 && is_integer, 1)
        | flag(t.normalized != 0, 2)
        | flag(t.srgb != 0, 0x10)
        | flag(t.exact_levels != 0, 0x20)
        | flag(t.seamless != 0, 0x40);
    Ok(TextureDesc {
        address: t.address,
        filter: t.filter,
        flags,
        max_anisotropy: t.max_anisotropy,
        mip_filter: t.mip_filter,
        lod_bias: t.lod_bias,
        min_lod: t.min_lod,
        max_lod: t.max_lod,
        border: t.border,
        reserved: [0; 12],
    })
}

fn reading_of(t: &TextureDesc) -> Reading {
    let has = |bit: u32| i32::from(t.flags & bit != 0);
    Reading {
        address: t.address,
        filter: t.filter,
        read_mode: u32::from(t.flags & 1 == 0),
        srgb: has(0x10),
        border: t.border,
        normalized: has(2),
        max_anisotropy: t.max_anisotropy,
        mip_filter: t.mip_filter,
        lod_bias: t.lod_bias,
        min_lod: t.min_lod,
        max_lod: t.max_lod,
        exact_levels: has(0x20),
        seamless: has(0x40),
    }
}

calls! {
    fn cudaMallocArray(to: Out<'_, u64>, format: Option<&ChannelFormat>, width: usize, height: usize, flags: u32) {
        make(to, format, Extent { width, height, depth: 0 }, flags)
    }

    fn cudaMalloc3DArray(to: Out<'_, u64>, format: Option<&ChannelFormat>, size: Extent, flags: u32) {
        make(to, format, size, flags)
    }

    fn cudaFreeArray(array: u64) {
        ready()?;
        if array == 0 {
            return Ok(());
        }
        driver(cu::cuArrayDestroy(array))
    }

    fn cudaMallocMipmappedArray(to: Out<'_, u64>, format: Option<&ChannelFormat>, size: Extent, levels: u32, flags: u32) {
        ready()?;
        let what = describe(format, size, flags)?;
        let mut all = 0;
        driver(cu::cuMipmappedArrayCreate(&mut all, &what, levels))?;
        put(to, all)
    }

    fn cudaFreeMipmappedArray(all: u64) {
        ready()?;
        if all == 0 {
            return Ok(());
        }
        driver(cu::cuMipmappedArrayDestroy(all))
    }

    fn cudaGetMipmappedArrayLevel(to: Out<'_, u64>, all: u64, level: u32) {
        ready()?;
        let mut array = 0;
        driver(cu::cuMipmappedArrayGetLevel(&mut array, all, level))?;
        put(to, array)
    }

    fn cudaArrayGetInfo(format: Out<'_, ChannelFormat>, size: Out<'_, Extent>, flags: Out<'_, u32>, array: u64) {
        let what = descriptor(array)?;
        put_if(format, channel(what.format, what.channels));
        put_if(size, Extent { width: what.width, height: what.height, depth: what.depth });
        put_if(flags, what.flags);
        Ok(())
    }

    fn cudaGetChannelDesc(to: Out<'_, ChannelFormat>, array: u64) {
        let what = descriptor(array)?;
        put(to, channel(what.format, what.channels))
    }

    fn cudaMemcpy2DToArray / cudaMemcpy2DToArray_ptds(array: u64, x: usize, y: usize, from: u64, pitch: usize, width: usize, height: usize, kind: u32; on stream) {
        check_kind(kind)?;
        copy_rectangle(&Memcpy2D { src: in_memory(from, pitch), dst: in_array(array, x, y), width, height }, stream, Wait::Yes)
    }

    fn cudaMemcpy2DToArrayAsync / cudaMemcpy2DToArrayAsync_ptsz(array: u64, x: usize, y: usize, from: u64, pitch: usize, width: usize, height: usize, kind: u32; stream: u64) {
        check_kind(kind)?;
        copy_rectangle(&Memcpy2D { src: in_memory(from, pitch), dst: in_array(array, x, y), width, height }, stream, Wait::No)
    }

    fn cudaMemcpy2DFromArray / cudaMemcpy2DFromArray_ptds(to: u64, pitch: usize, array: u64, x: usize, y: usize, width: usize, height: usize, kind: u32; on stream) {
        check_kind(kind)?;
        copy_rectangle(&Memcpy2D { src: in_array(array, x, y), dst: in_memory(to, pitch), width, height }, stream, Wait::Yes)
    }

    fn cudaMemcpy2DFromArrayAsync / cudaMemcpy2DFromArrayAsync_ptsz(to: u64, pitch: usize, array: u64, x: usize, y: usize, width: usize, height: usize, kind: u32; stream: u64) {
        check_kind(kind)?;
        copy_rectangle(&Memcpy2D { src: in_array(array, x, y), dst: in_memory(to, pitch), width, height }, stream, Wait::No)
    }

    fn cudaMemcpy2DArrayToArray / cudaMemcpy2DArrayToArray_ptds(to: u64, to_x: usize, to_y: usize, from: u64, x: usize, y: usize, width: usize, height: usize, kind: u32; on stream) {
        check_kind(kind)?;
        copy_rectangle(&Memcpy2D { src: in_array(from, x, y), dst: in_array(to, to_x, to_y), width, height }, stream, Wait::Yes)
    }

    fn cudaMemcpyArrayToArray / cudaMemcpyArrayToArray_ptds(to: u64, to_x: usize, to_y: usize, from: u64, x: usize, y: usize, count: usize, kind: u32; on stream) {
        flat_between(Bytes { array: to, x: to_x, y: to_y, count }, Bytes { array: from, x, y, count }, kind, stream)
    }

    fn cudaArrayGetMemoryRequirements(to: *mut c_void, array: u64, device: i32) {
        ready()?;
        // SAFETY: the program says that the structure may be written there; the driver tests for null. So below.
        driver(unsafe { cu::cuArrayGetMemoryRequirements(to, array, device) })
    }

    fn cudaMipmappedArrayGetMemoryRequirements(to: *mut c_void, all: u64, device: i32) {
        ready()?;
        // SAFETY: as above.
        driver(unsafe { cu::cuMipmappedArrayGetMemoryRequirements(to, all, device) })
    }

    fn cudaArrayGetSparseProperties(to: *mut c_void, array: u64) {
        ready()?;
        // SAFETY: as above.
        driver(unsafe { cu::cuArrayGetSparseProperties(to, array) })
    }

    fn cudaMipmappedArrayGetSparseProperties(to: *mut c_void, all: u64) {
        ready()?;
        // SAFETY: as above.
        driver(unsafe { cu::cuMipmappedArrayGetSparseProperties(to, all) })
    }

    fn cudaGetTextureObjectResourceViewDesc(to: Out<'_, View>, texture: u64) {
        ready()?;
        let mut view = ViewDesc::default();
        driver(cu::cuTexObjectGetResourceViewDesc(&mut view, texture))?;
        put(to, View { format: view.format, size: view.size, levels: view.levels, layers: view.layers })
    }

    fn cudaDeviceGetTexture1DLinearMaxWidth(width: Out<'_, usize>, c: Option<&ChannelFormat>, device: i32) {
        ready()?;
        let (format, channels) = format(c.ok_or(Error::INVALID_VALUE)?)?;
        let mut most = 0;
        driver(cu::cuDeviceGetTexture1DLinearMaxWidth(&mut most, format, channels, device))?;
        put(width, most)
    }

    fn cudaMemcpyToArray / cudaMemcpyToArray_ptds(array: u64, x: usize, y: usize, from: u64, count: usize, kind: u32; on stream) {
        flat(Bytes { array, x, y, count }, Way::To, from, kind, stream, Wait::Yes)
    }

    fn cudaMemcpyToArrayAsync / cudaMemcpyToArrayAsync_ptsz(array: u64, x: usize, y: usize, from: u64, count: usize, kind: u32; stream: u64) {
        flat(Bytes { array, x, y, count }, Way::To, from, kind, stream, Wait::No)
    }

    fn cudaMemcpyFromArray / cudaMemcpyFromArray_ptds(to: u64, array: u64, x: usize, y: usize, count: usize, kind: u32; on stream) {
        flat(Bytes { array, x, y, count }, Way::From, to, kind, stream, Wait::Yes)
    }

    fn cudaMemcpyFromArrayAsync / cudaMemcpyFromArrayAsync_ptsz(to: u64, array: u64, x: usize, y: usize, count: usize, kind: u32; stream: u64) {
        flat(Bytes { array, x, y, count }, Way::From, to, kind, stream, Wait::No)
    }

    fn cudaCreateTextureObject(to: Out<'_, u64>, what: Option<&Resource>, how: Option<&Reading>, view: Option<&View>) {
        ready()?;
        let what = resource(what)?;
        let how = reading(how.ok_or(Error::INVALID_VALUE)?, format_of(&what, view)?)?;
        let view = view.map(|v| ViewDesc {
            format: v.format,
            size: v.size,
            levels: v.levels,
            layers: v.layers,
            reserved: [0; 16],
        });
        let mut texture = 0;
        driver(cu::cuTexObjectCreate(&mut texture, &what, &how, view.as_ref()))?;
        put(to, texture)
    }

    fn cudaDestroyTextureObject(texture: u64) {
        ready()?;
        driver(cu::cuTexObjectDestroy(texture))
    }

    fn cudaGetTextureObjectResourceDesc(to: Out<'_, Resource>, texture: u64) {
        ready()?;
        let mut what = ResourceDesc::default();
        driver(cu::cuTexObjectGetResourceDesc(&mut what, texture))?;
        put(to, resource_of(&what))
    }

    fn cudaGetTextureObjectTextureDesc(to: Out<'_, Reading>, texture: u64) {
        ready()?;
        let mut how = TextureDesc::default();
        driver(cu::cuTexObjectGetTextureDesc(&mut how, texture))?;
        put(to, reading_of(&how))
    }

    fn cudaCreateSurfaceObject(to: Out<'_, u64>, what: Option<&Resource>) {
        ready()?;
        let what = resource(what)?;
        let mut surface = 0;
        driver(cu::cuSurfObjectCreate(&mut surface, &what))?;
        put(to, surface)
    }

    fn cudaDestroySurfaceObject(surface: u64) {
        ready()?;
        driver(cu::cuSurfObjectDestroy(surface))
    }

    fn cudaGetSurfaceObjectResourceDesc(to: Out<'_, Resource>, surface: u64) {
        ready()?;
        let mut what = ResourceDesc::default();
        driver(cu::cuSurfObjectGetResourceDesc(&mut what, surface))?;
        put(to, resource_of(&what))
    }
}
