//! Arrays, textures and surfaces.

use handloom_driver::array::{self, Shape};
use handloom_driver::copy::{Region, Size};
use handloom_driver::texture::{self, Made, Reading, Resource, View};
use handloom_driver::{Code, Result, process};

use crate::abi::{ArrayDescriptor, ArrayDescriptor3d, ResourceDesc, TextureDesc};
use crate::ptr::{In, Out};

pub(crate) fn create(to: Out<u64>, what: In<ArrayDescriptor>) -> Result {
    to.check()?;
    let d = what.get()?;
    let shape = Shape { size: [d.width, d.height, 0], format: d.format, channels: d.num_channels, flags: 0 };
    to.set(array::create(shape)?)
}

fn shape(d: &ArrayDescriptor3d) -> Shape {
    Shape { size: [d.width, d.height, d.depth], format: d.format, channels: d.num_channels, flags: d.flags }
}

pub(crate) fn create_3d(to: Out<u64>, what: In<ArrayDescriptor3d>) -> Result {
    to.check()?;
    to.set(array::create(shape(&what.get()?))?)
}

pub(crate) fn destroy(handle: u64) -> Result {
    array::destroy(handle)
}

pub(crate) fn descriptor(to: Out<ArrayDescriptor>, handle: u64) -> Result {
    let Shape { size: [width, height, _], format, channels, .. } = array::by_handle(handle)?.shape;
    to.set(ArrayDescriptor { width, height, format, num_channels: channels })
}

pub(crate) fn descriptor_3d(to: Out<ArrayDescriptor3d>, handle: u64) -> Result {
    let Shape { size: [width, height, depth], format, channels, flags } = array::by_handle(handle)?.shape;
    to.set(ArrayDescriptor3d { width, height, depth, format, num_channels: channels, flags })
}

pub(crate) fn create_levels(to: Out<u64>, what: In<ArrayDescriptor3d>, levels: u32) -> Result {
    to.check()?;
    to.set(array::create_levels(shape(&what.get()?), levels)?)
}

pub(crate) fn level(to: Out<u64>, handle: u64, n: u32) -> Result {
    to.check()?;
    to.set(array::level(handle, n)?)
}

pub(crate) fn destroy_levels(handle: u64) -> Result {
    array::destroy_levels(handle)
}

/// The place of a copy in an array: a byte of a row, a row, and a slice or layer.
pub(crate) fn region(handle: u64, at: [u64; 3], size: Size) -> Result<Region> {
    array::by_handle(handle)?.region(at, size)
}

/// The two halves of a word of a structure.
const fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

fn resource(d: &ResourceDesc) -> Result<Resource> {
    let [first, second, third, fourth, fifth] = d.res;
    let (format, channels) = halves(second);
    Ok(match d.kind {
        0 => Resource::Array(first),
        1 => Resource::Levels(first),
        2 => Resource::Linear { address: first, format, channels, bytes: third },
        3 => Resource::Pitched { address: first, format, channels, width: third, height: fourth, pitch: fifth },
        _ => return Err(Code::INVALID_VALUE),
    })
}

pub(crate) fn create_texture(
    to: Out<u64>,
    what: In<ResourceDesc>,
    how: In<TextureDesc>,
    view: In<crate::abi::ViewDesc>,
) -> Result {
    to.check()?;
    let view = if view.is_null() { None } else { Some(view.get()?) };
    let view = view.map(|v| View {
        format: v.format,
        size: [v.width, v.height, v.depth],
        levels: [v.first_level, v.last_level],
        layers: [v.first_layer, v.last_layer],
    });
    let (what, d) = (what.get()?, how.get()?);
    let reading = Reading {
        address: d.address_mode,
        filter: d.filter_mode,
        flags: d.flags,
        max_anisotropy: d.max_anisotropy,
        mip_filter: d.mipmap_filter_mode,
        lod_bias: d.mipmap_level_bias,
        min_lod: d.min_mipmap_level_clamp,
        max_lod: d.max_mipmap_level_clamp,
        border: d.border_color,
    };
    to.set(texture::create(Made { resource: resource(&what)?, reading: Some(reading), view })?)
}

pub(crate) fn create_surface(to: Out<u64>, what: In<ResourceDesc>) -> Result {
    to.check()?;
    let what = what.get()?;
    to.set(texture::create(Made { resource: resource(&what)?, reading: None, view: None })?)
}

pub(crate) fn destroy_texture(handle: u64) -> Result {
    texture::made(handle)?.reading.ok_or(Code::INVALID_VALUE)?;
    texture::destroy(handle)
}

pub(crate) fn destroy_surface(handle: u64) -> Result {
    if texture::made(handle)?.reading.is_some() {
        return Err(Code::INVALID_VALUE);
    }
    texture::destroy(handle)
}

pub(crate) fn resource_of(to: Out<ResourceDesc>, handle: u64) -> Result {
    let both = |format: u32, channels: u32| u64::from(format) | u64::from(channels) << 32;
    let (kind, res) = match texture::made(handle)?.resource {
        Resource::Array(handle) => (0, [handle, 0, 0, 0, 0]),
        Resource::Levels(handle) => (1, [handle, 0, 0, 0, 0]),
        Resource::Linear { address, format, channels, bytes } => (2, [address, both(format, channels), bytes, 0, 0]),
        Resource::Pitched { address, format, channels, width, height, pitch } => {
            (3, [address, both(format, channels), width, height, pitch])
        }
    };
    to.set(ResourceDesc { kind, res, reserved: [0; 11], flags: 0 })
}

pub(crate) fn reading_of(to: Out<TextureDesc>, handle: u64) -> Result {
    let r = texture::made(handle)?.reading.ok_or(Code::INVALID_VALUE)?;
    to.set(TextureDesc {
        address_mode: r.address,
        filter_mode: r.filter,
        flags: r.flags,
        max_anisotropy: r.max_anisotropy,
        mipmap_filter_mode: r.mip_filter,
        mipmap_level_bias: r.lod_bias,
        min_mipmap_level_clamp: r.min_lod,
        max_mipmap_level_clamp: r.max_lod,
        border_color: r.border,
        reserved: [0; 12],
    })
}

/// Memory of an array that has none of its own yet: no array is made so.
pub(crate) fn requirements(to: Out<u64>, handle: u64, dev: i32) -> Result {
    to.check()?;
    process()?.gpu(dev)?;
    array::by_handle(handle)?;
    Err(Code::INVALID_VALUE)
}

/// The same of one with levels of detail.
pub(crate) fn requirements_of_levels(to: Out<u64>, handle: u64, dev: i32) -> Result {
    to.check()?;
    process()?.gpu(dev)?;
    array::levels_by_handle(handle)?;
    Err(Code::INVALID_VALUE)
}

/// No array is sparse.
pub(crate) fn sparse(to: Out<u64>, handle: u64) -> Result {
    to.check()?;
    array::by_handle(handle)?;
    Err(Code::INVALID_VALUE)
}

/// The same of one with levels of detail.
pub(crate) fn sparse_levels(to: Out<u64>, handle: u64) -> Result {
    to.check()?;
    array::levels_by_handle(handle)?;
    Err(Code::INVALID_VALUE)
}

/// The view of a texture that was made with one.
pub(crate) fn view_of(to: Out<crate::abi::ViewDesc>, handle: u64) -> Result {
    to.check()?;
    let v = texture::made(handle)?.view.ok_or(Code::INVALID_VALUE)?;
    to.set(crate::abi::ViewDesc {
        format: v.format,
        width: v.size[0],
        height: v.size[1],
        depth: v.size[2],
        first_level: v.levels[0],
        last_level: v.levels[1],
        first_layer: v.layers[0],
        last_layer: v.layers[1],
        reserved: [0; 16],
    })
}
