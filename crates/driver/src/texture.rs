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
    if reading.flags & SEAMLESS != 0 {
        return Err(Code::NOT_SUPPORTED);
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
