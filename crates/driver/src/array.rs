//! Arrays: memory that textures and surfaces lie over, and that programs reach by copies alone.

use std::sync::Arc;

use handloom_ir::num::image::{Channel, Image, MAX_LEVELS};

use crate::code::{Code, Result};
use crate::context;
use crate::copy::{Region, Size};
use crate::memory::{Use, free};
use crate::process::process;

/// `CUDA_ARRAY3D_LAYERED`
pub const LAYERED: u32 = 1;
/// `CUDA_ARRAY3D_SURFACE_LDST`
const SURFACE: u32 = 2;
/// `CUDA_ARRAY3D_CUBEMAP`
pub const CUBEMAP: u32 = 4;
/// `CUDA_ARRAY3D_TEXTURE_GATHER`
const GATHER: u32 = 8;
/// `CUDA_ARRAY3D_DEPTH_TEXTURE`
const DEPTH: u32 = 0x10;
/// `CUDA_ARRAY3D_COLOR_ATTACHMENT`
const COLOUR: u32 = 0x20;
/// Flags that change nothing here, and those that say what the dimensions are.
const KNOWN: u32 = LAYERED | SURFACE | CUBEMAP | GATHER | DEPTH | COLOUR;

/// Bytes that rows of arrays of several rows are aligned to: the longest access through a surface.
const ROW_ALIGN: u64 = 16;

/// What an array was asked for as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Elements of a row, rows, and slices or layers; 0 for what there is not.
    pub size: [u64; 3],
    /// `CUarray_format`
    pub format: u32,
    /// Components of an element.
    pub channels: u32,
    /// `CUDA_ARRAY3D_*`
    pub flags: u32,
}

/// An array.
#[derive(Debug)]
pub struct Array {
    /// What it was asked for as.
    pub shape: Shape,
    /// Its memory.
    pub image: Image,
    /// The array of levels that it is one of.
    of: Option<Arc<Levels>>,
}

/// An array with levels of detail.
#[derive(Debug)]
pub struct Levels {
    /// What the first level was asked for as.
    pub shape: Shape,
    /// Its memory.
    pub image: Image,
    /// Handles of its levels.
    levels: Vec<u64>,
}

/// The components of a `CUarray_format`.
///
/// # Errors
/// It is no format, or one that is not supported.
pub fn channel(format: u32) -> Result<Channel> {
    Ok(match format {
        0x01 => Channel::U8,
        0x02 => Channel::U16,
        0x03 => Channel::U32,
        0x08 => Channel::S8,
        0x09 => Channel::S16,
        0x0a => Channel::S32,
        0x10 => Channel::F16,
        0x20 => Channel::F32,
        0xc0..=0xcb => match (format - 0xc0) / 3 {
            0 => Channel::Unorm8,
            1 => Channel::Unorm16,
            2 => Channel::Snorm8,
            _ => Channel::Snorm16,
        },
        0x91..=0x9f | 0xb0 | 0xcc..=0xd0 => return Err(Code::NOT_SUPPORTED),
        _ => return Err(Code::INVALID_VALUE),
    })
}

impl Shape {
    /// The image, without memory.
    fn image(&self, levels: u32) -> Result<Image> {
        let channel = channel(self.format)?;
        let components =
            u8::try_from(self.channels).ok().filter(|n| matches!(n, 1 | 2 | 4)).ok_or(Code::INVALID_VALUE)?;
        if self.flags & !KNOWN != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let [width, height, depth] = self.size;
        let is_layered = self.flags & (LAYERED | CUBEMAP) != 0;
        let is_cube = self.flags & CUBEMAP != 0;
        let n = |size: u64| u32::try_from(size).ok().filter(|n| *n < 1 << 30).ok_or(Code::INVALID_VALUE);
        // A size of 0 ends the dimensions; layers are the last number whatever comes before it.
        if width == 0 || is_layered && depth == 0 || !is_layered && depth > 0 && height == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let layers = match (is_layered, is_cube) {
            (false, _) => 0,
            (true, false) => n(depth)?,
            (true, true) if width != height || depth % 6 != 0 || self.flags & LAYERED == 0 && depth != 6 => {
                return Err(Code::INVALID_VALUE);
            }
            // One cube alone is no array of them.
            (true, true) => {
                if self.flags & LAYERED == 0 {
                    0
                } else {
                    n(depth / 6)?
                }
            }
        };
        let planes = if is_layered { 1 } else { depth.max(1) };
        let size = [n(width)?, n(height.max(1))?, n(planes)?];
        let dims = if !is_layered && depth > 0 {
            3
        } else if height > 0 {
            2
        } else {
            1
        };
        let most = 1 + size.iter().max().map_or(0, |s| s.ilog2());
        let levels = levels.clamp(1, most).min(u32::from(MAX_LEVELS));
        let mut image = Image { base: 0, size, dims, layers, is_cube, channel, components, ..Image::default() };
        image.levels = u8::try_from(levels).unwrap_or(1);
        let row = u64::from(size[0]) * u64::from(image.texel());
        image.pitch = if height > 0 { row.next_multiple_of(ROW_ALIGN) } else { row };
        image.rows = size[1];
        Ok(image)
    }

    /// What a level of it would have been asked for as.
    fn level(&self, n: u32) -> Shape {
        let smaller = |s: u64| if s == 0 { 0 } else { (s >> n).max(1) };
        let [width, height, depth] = self.size;
        let is_layered = self.flags & (LAYERED | CUBEMAP) != 0;
        Shape { size: [smaller(width), smaller(height), if is_layered { depth } else { smaller(depth) }], ..*self }
    }
}

/// Memory for an image.
fn bound(mut image: Image) -> Result<Image> {
    // The whole pitch of the last row too.
    let bytes = image.extent().and_then(|b| b.checked_add(ROW_ALIGN)).ok_or(Code::OUT_OF_MEMORY)?;
    let ctx = context::current()?;
    image.base = process()?.memory.allocate(&ctx, bytes, Use::Array)?;
    Ok(image)
}

/// Makes an array of the current context, and returns its handle.
///
/// # Errors
/// There is no such array, or no room.
pub fn create(shape: Shape) -> Result<u64> {
    let image = bound(shape.image(1)?)?;
    process()?.arrays.add(Array { shape, image, of: None }).ok_or(Code::OUT_OF_MEMORY)
}

/// An array by its handle.
///
/// # Errors
/// There is none.
pub fn by_handle(handle: u64) -> Result<Arc<Array>> {
    process()?.arrays.get(handle).ok_or(Code::INVALID_HANDLE)
}

/// Ends an array.
///
/// # Errors
/// There is none, or it is a level of another one.
pub fn destroy(handle: u64) -> Result {
    let array = by_handle(handle)?;
    if array.of.is_some() {
        return Err(Code::INVALID_HANDLE);
    }
    process()?.arrays.remove(handle);
    free(array.image.base, |u| u == Use::Array)
}

/// Makes an array with so many levels of detail, or as many as there can be, and returns its handle.
///
/// # Errors
/// As of [`create`].
pub fn create_levels(shape: Shape, levels: u32) -> Result<u64> {
    let image = bound(shape.image(levels)?)?;
    let process = process()?;
    let all = Arc::new(Levels { shape, image, levels: Vec::new() });
    let mut handles = Vec::new();
    for n in 0..image.levels {
        let level = image.level(n);
        let one = Image {
            base: level.base,
            size: level.size,
            levels: 1,
            pitch: level.pitch,
            rows: u32::try_from(level.slice / level.pitch.max(1)).unwrap_or(1),
            ..image
        };
        let array = Array { shape: shape.level(n.into()), image: one, of: Some(Arc::clone(&all)) };
        handles.push(process.arrays.add(array).ok_or(Code::OUT_OF_MEMORY)?);
    }
    process.levels.add(Levels { shape, image, levels: handles }).ok_or(Code::OUT_OF_MEMORY)
}

/// An array with levels by its handle.
///
/// # Errors
/// There is none.
pub fn levels_by_handle(handle: u64) -> Result<Arc<Levels>> {
    process()?.levels.get(handle).ok_or(Code::INVALID_HANDLE)
}

/// The handle of a level.
///
/// # Errors
/// There is no such level.
pub fn level(handle: u64, n: u32) -> Result<u64> {
    let all = levels_by_handle(handle)?;
    usize::try_from(n).ok().and_then(|n| all.levels.get(n)).copied().ok_or(Code::INVALID_VALUE)
}

/// Ends an array with levels, and its levels.
///
/// # Errors
/// There is none.
pub fn destroy_levels(handle: u64) -> Result {
    let all = levels_by_handle(handle)?;
    let process = process()?;
    process.levels.remove(handle);
    all.levels.iter().for_each(|h| drop(process.arrays.remove(*h)));
    free(all.image.base, |u| u == Use::Array)
}

impl Array {
    /// The place of a copy: `at` is a byte of a row, a row, and a slice or layer.
    ///
    /// # Errors
    /// It is not inside of the array.
    pub fn region(&self, at: [u64; 3], size: Size) -> Result<Region> {
        let image = &self.image;
        let row = u64::from(image.size[0]) * u64::from(image.texel());
        let slices = u64::from(image.size[2]) * image.n_layers();
        let room = [row, u64::from(image.size[1]), slices];
        let wanted = [size.width, size.height, size.depth];
        let fits = (0..3).all(|i| at[i].checked_add(wanted[i]).is_some_and(|end| end <= room[i]));
        if !fits {
            return Err(Code::INVALID_VALUE);
        }
        let slice = image.pitch * u64::from(image.rows);
        let address = image.base + at[0] + at[1] * image.pitch + at[2] * slice;
        Ok(Region { address, pitch: image.pitch, slice })
    }
}
