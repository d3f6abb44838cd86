//! Texture and surface objects: records in device memory whose addresses are their handles.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use handloom_ir::num::image::{AddressMode, BYTES, Channel, Filter, Image, Kind, Object, Sampler};

use crate::array;
use crate::code::{Code, Result};
use crate::context;
use crate::memory::{Use, free};
use crate::process::process;

/// What a texture or surface lies over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource {
    /// An array.
    Array(u64),
    /// An array with levels of detail.
    Levels(u64),
    /// Elements one after another.
    Linear {
        /// First address.
        address: u64,
        /// `CUarray_format`
        format: u32,
        /// Components.
        channels: u32,
        /// Bytes.
        bytes: u64,
    },
    /// Rows.
    Pitched {
        /// First address.
        address: u64,
        /// `CUarray_format`
        format: u32,
        /// Components.
        channels: u32,
        /// Elements of a row.
        width: u64,
        /// Rows.
        height: u64,
        /// Bytes from a row to the next.
        pitch: u64,
    },
}

/// `CU_TRSF_READ_AS_INTEGER`
const AS_INTEGER: u32 = 1;
/// `CU_TRSF_NORMALIZED_COORDINATES`
const NORMALIZED: u32 = 2;
/// `CU_TRSF_SRGB`
const SRGB: u32 = 0x10;
/// `CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION`
const EXACT_LEVELS: u32 = 0x20;
/// `CU_TRSF_SEAMLESS_CUBEMAP`
const SEAMLESS: u32 = 0x40;

/// How a texture is read, as the program says it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Reading {
    /// `CUaddress_mode` by dimension.
    pub address: [u32; 3],
    /// `CUfilter_mode`
    pub filter: u32,
    /// `CU_TRSF_*`
    pub flags: u32,
    /// Samples of a filter along a line; only told back.
    pub max_anisotropy: u32,
    /// Between levels of detail.
    pub mip_filter: u32,
    /// Added to a level of detail.
    pub lod_bias: f32,
    /// Lowest level of detail.
    pub min_lod: f32,
    /// Highest level of detail.
    pub max_lod: f32,
    /// Colour of the border.
    pub border: [f32; 4],
}

/// What an object was made of.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Made {
    /// What it lies over.
    pub resource: Resource,
    /// How it is read; of a surface nothing.
    pub reading: Option<Reading>,
    /// The part of it that a texture shows, and as what.
    pub view: Option<View>,
}

/// A part of an array, or of one with levels, that a texture shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct View {
    /// `CUresourceViewFormat`: 0 is that of the array.
    pub format: u32,
    /// Elements of a row, rows, slices.
    pub size: [u64; 3],
    /// The first and the last level of detail.
    pub levels: [u32; 2],
    /// The first and the last layer; faces are layers.
    pub layers: [u32; 2],
}

impl View {
    /// What it shows of an image.
    fn of(&self, whole: Image) -> Result<Image> {
        let mut image = whole;
        if self.format != 0 {
            (image.channel, image.components) = view_format(self.format)?;
        }
        let depth = if whole.dims == 3 { whole.size[2] } else { 1 };
        let is_size = |i: usize, size: u32| self.size[i] == u64::from(size) || size == 1 && self.size[i] == 0;
        // Layers may be given as the depth of an array of them.
        let is_depth = is_size(2, depth) || whole.n_layers() > 1 && self.size[2] == whole.n_layers();
        if image.texel() != whole.texel() || !is_size(0, whole.size[0]) || !is_size(1, whole.size[1]) || !is_depth {
            return Err(Code::INVALID_VALUE);
        }
        let [first, last] = self.levels;
        let n_levels = last.checked_sub(first).filter(|_| last < u32::from(whole.levels)).ok_or(Code::INVALID_VALUE)?;
        let level = whole.level(u8::try_from(first).map_err(|_| Code::INVALID_VALUE)?);
        (image.base, image.size, image.pitch) = (level.base, level.size, level.pitch);
        image.rows = u32::try_from(level.slice / level.pitch.max(1)).map_err(|_| Code::INVALID_VALUE)?;
        image.levels = u8::try_from(n_levels + 1).map_err(|_| Code::INVALID_VALUE)?;
        let stored = u32::try_from(whole.n_layers()).map_err(|_| Code::INVALID_VALUE)?;
        let [first, last] = self.layers;
        let n_layers = last.checked_sub(first).filter(|_| last < stored).ok_or(Code::INVALID_VALUE)? + 1;
        match (whole.layers > 0, whole.is_cube) {
            (true, true) if n_layers % 6 != 0 => return Err(Code::INVALID_VALUE),
            (true, true) => image.layers = n_layers / 6,
            (true, false) => image.layers = n_layers,
            // What has no layers has all that it is.
            (false, _) if (first, last) != (0, 0) => return Err(Code::INVALID_VALUE),
            (false, _) => return Ok(image),
        }
        (image.first_layer, image.layers_in_memory) = (first, stored);
        Ok(image)
    }
}

/// The components of a `CUresourceViewFormat`. Those of compressed blocks are not supported.
fn view_format(format: u32) -> Result<(Channel, u8)> {
    const CHANNELS: [Channel; 8] =
        [Channel::U8, Channel::S8, Channel::U16, Channel::S16, Channel::U32, Channel::S32, Channel::F16, Channel::F32];
    const BLOCKS: std::ops::RangeInclusive<u32> = 0x19..=0x22;
    if BLOCKS.contains(&format) {
        return Err(Code::NOT_SUPPORTED);
    }
    let (kind, n) = ((format.wrapping_sub(1)) / 3, format.wrapping_sub(1) % 3);
    let channel = usize::try_from(kind).ok().and_then(|kind| CHANNELS.get(kind)).ok_or(Code::INVALID_VALUE)?;
    Ok((*channel, 1 << n))
}

/// All objects of the process, by handle.
#[derive(Debug, Default)]
pub struct Objects(Mutex<BTreeMap<u64, Made>>);

impl Objects {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Made>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The image of what a texture or surface lies over.
pub(crate) fn image(resource: Resource) -> Result<Image> {
    let plain = |address, format, channels, size: [u64; 2], pitch: u64| {
        let channel = array::channel(format)?;
        let components = u8::try_from(channels).ok().filter(|n| matches!(n, 1 | 2 | 4)).ok_or(Code::INVALID_VALUE)?;
        let n = |size: u64| u32::try_from(size).ok().filter(|n| *n > 0).ok_or(Code::INVALID_VALUE);
        let [width, height] = size;
        let image = Image { base: address, channel, components, is_linear: true, pitch, ..Image::default() };
        let texel = u64::from(image.texel());
        let width = n(if height == 0 { width / texel } else { width })?;
        if address == 0 || height > 0 && pitch < u64::from(width) * texel {
            return Err(Code::INVALID_VALUE);
        }
        let rows = n(height.max(1))?;
        Ok(Image { size: [width, rows, 1], dims: if height == 0 { 1 } else { 2 }, rows, ..image })
    };
    match resource {
        Resource::Array(handle) => Ok(array::by_handle(handle)?.image),
        Resource::Levels(handle) => Ok(array::levels_by_handle(handle)?.image),
        Resource::Linear { address, format, channels, bytes } => plain(address, format, channels, [bytes, 0], bytes),
        Resource::Pitched { address, format, channels, width, height, pitch } => {
            plain(address, format, channels, [width, height.max(1)], pitch)
        }
    }
}

/// How a texture is read. What integers are read as is noted in the image.
pub(crate) fn sampler(reading: &Reading, image: &mut Image) -> Result<Sampler> {
    let known = AS_INTEGER | NORMALIZED | SRGB | EXACT_LEVELS | SEAMLESS;
    if reading.flags & !known != 0 {
        return Err(Code::INVALID_VALUE);
    }
    if reading.flags & SEAMLESS != 0 && !image.is_cube {
        return Err(Code::INVALID_VALUE);
    }
    let mut address = [AddressMode::default(); 3];
    for (to, from) in address.iter_mut().zip(reading.address) {
        *to = match from {
            0 => AddressMode::Wrap,
            1 => AddressMode::ClampToEdge,
            2 => AddressMode::Mirror,
            3 => AddressMode::ClampToBorder,
            _ => return Err(Code::INVALID_VALUE),
        };
    }
    let filter = |number: u32| match number {
        0 => Ok(Filter::Nearest),
        1 => Ok(Filter::Linear),
        _ => Err(Code::INVALID_VALUE),
    };
    if reading.flags & AS_INTEGER == 0 {
        image.channel = match image.channel {
            Channel::U8 if reading.flags & SRGB != 0 => Channel::Srgb8,
            Channel::U8 => Channel::Unorm8,
            Channel::U16 => Channel::Unorm16,
            Channel::S8 => Channel::Snorm8,
            Channel::S16 => Channel::Snorm16,
            other => other,
        };
    }
    let filter_between_texels = filter(reading.filter)?;
    // Integers have no mean.
    if filter_between_texels == Filter::Linear && !image.channel.is_float() {
        return Err(Code::INVALID_VALUE);
    }
    Ok(Sampler {
        is_normalized: reading.flags & NORMALIZED != 0,
        forces_texels: false,
        filter: filter_between_texels,
        mip_filter: filter(reading.mip_filter)?,
        is_seamless: reading.flags & SEAMLESS != 0,
        address,
        border: reading.border,
        lod_bias: reading.lod_bias,
        min_lod: reading.min_lod,
        max_lod: reading.max_lod,
    })
}

/// Makes a texture, or without a reading a surface, and returns its handle.
///
/// # Errors
/// What was said does not fit, or there is no room.
pub fn create(made: Made) -> Result<u64> {
    let ctx = context::current()?;
    let process = process()?;
    let mut image = image(made.resource)?;
    if let Some(view) = &made.view {
        if !matches!(made.resource, Resource::Array(_) | Resource::Levels(_)) {
            return Err(Code::INVALID_VALUE);
        }
        image = view.of(image)?;
    }
    let object = match &made.reading {
        Some(reading) => {
            let sampler = sampler(reading, &mut image)?;
            Object { kind: Kind::Texture, image, sampler }
        }
        None if !matches!(made.resource, Resource::Array(_)) => return Err(Code::INVALID_VALUE),
        None => Object { kind: Kind::Surface, image, sampler: Sampler::default() },
    };
    let handle = process.memory.allocate(&ctx, BYTES.into(), Use::Array)?;
    ctx.gpu.device.memory().write(handle, &object.encode())?;
    process.objects.all().insert(handle, made);
    Ok(handle)
}

/// What an object was made of.
///
/// # Errors
/// There is none.
pub fn made(handle: u64) -> Result<Made> {
    process()?.objects.all().get(&handle).copied().ok_or(Code::INVALID_VALUE)
}

/// Ends an object.
///
/// # Errors
/// There is none.
pub fn destroy(handle: u64) -> Result {
    if process()?.objects.all().remove(&handle).is_none() {
        return Err(Code::INVALID_VALUE);
    }
    free(handle, |u| u == Use::Array)
}
