//! Texture and surface references.

use std::sync::Arc;

use handloom_driver::reference::{self, Kind, Reference, State};
use handloom_driver::texture::Resource;
use handloom_driver::{Code, Result, array, module};

use crate::abi::ArrayDescriptor;
use crate::ptr::{In, Out};

/// `CU_TRSA_OVERRIDE_FORMAT`
const FORMAT_OF_THE_ARRAY: u32 = 1;

fn texture(handle: u64) -> Result<Arc<Reference>> {
    reference::by_handle(handle, Kind::Texture)
}

fn of_module(to: Out<u64>, module: u64, kind: Kind, name: In<u8>) -> Result {
    to.check()?;
    to.set(module::by_handle(module)?.reference(kind, &name.text()?)?)
}

pub(crate) fn texture_of_module(to: Out<u64>, module: u64, name: In<u8>) -> Result {
    of_module(to, module, Kind::Texture, name)
}

pub(crate) fn surface_of_module(to: Out<u64>, module: u64, name: In<u8>) -> Result {
    of_module(to, module, Kind::Surface, name)
}

pub(crate) fn create(to: Out<u64>) -> Result {
    to.check()?;
    to.set(reference::create()?)
}

pub(crate) fn destroy(handle: u64) -> Result {
    reference::destroy(handle)
}

/// Kernels read the references of their module, whatever is said of their parameters.
pub(crate) fn set_parameter(function: u64, unit: i32, handle: u64) -> Result {
    const DEFAULT: i32 = -1;
    module::function_anywhere(function)?;
    texture(handle)?;
    if unit == DEFAULT { Ok(()) } else { Err(Code::INVALID_VALUE) }
}

fn set_resource(reference: &Reference, resource: Resource, format: (u32, u32), flags: u32, known: u32) -> Result {
    if flags != known {
        return Err(Code::INVALID_VALUE);
    }
    reference.change(|state| {
        (state.resource, state.format) = (Some(resource), format);
        Ok(())
    })
}

pub(crate) fn set_array(handle: u64, at: u64, flags: u32) -> Result {
    let (reference, shape) = (texture(handle)?, array::by_handle(at)?.shape);
    set_resource(&reference, Resource::Array(at), (shape.format, shape.channels), flags, FORMAT_OF_THE_ARRAY)
}

pub(crate) fn set_levels(handle: u64, at: u64, flags: u32) -> Result {
    let (reference, shape) = (texture(handle)?, array::levels_by_handle(at)?.shape);
    set_resource(&reference, Resource::Levels(at), (shape.format, shape.channels), flags, FORMAT_OF_THE_ARRAY)
}

pub(crate) fn set_array_of_surface(handle: u64, at: u64, flags: u32) -> Result {
    const FOR_SURFACES: u32 = 2;
    let (reference, shape) = (reference::by_handle(handle, Kind::Surface)?, array::by_handle(at)?.shape);
    if shape.flags & FOR_SURFACES == 0 {
        return Err(Code::INVALID_VALUE);
    }
    set_resource(&reference, Resource::Array(at), (shape.format, shape.channels), flags, 0)
}

pub(crate) fn set_address(offset: Out<u64>, handle: u64, address: u64, bytes: u64) -> Result {
    let before = texture(handle)?.set_line(address, bytes, !offset.is_null())?;
    offset.set_any(before);
    Ok(())
}

pub(crate) fn set_rows(handle: u64, what: In<ArrayDescriptor>, address: u64, pitch: u64) -> Result {
    let (reference, d) = (texture(handle)?, what.get()?);
    reference.set_rows(address, d.format, d.num_channels, [d.width, d.height], pitch)
}

pub(crate) fn set_format(handle: u64, format: u32, channels: i32) -> Result {
    array::channel(format)?;
    let channels = u32::try_from(channels).ok().filter(|n| matches!(n, 1 | 2 | 4)).ok_or(Code::INVALID_VALUE)?;
    texture(handle)?.change(|state| {
        // Rows of memory have the format that they came with; a line gets another one when it is set again.
        if matches!(state.resource, Some(Resource::Pitched { .. })) {
            return Err(Code::INVALID_VALUE);
        }
        state.format = (format, channels);
        Ok(())
    })
}

/// Changes how a texture is read.
fn set(handle: u64, change: impl FnOnce(&mut State)) -> Result {
    texture(handle)?.change(|state| {
        change(state);
        Ok(())
    })
}

fn dimension(n: i32) -> Result<usize> {
    usize::try_from(n).ok().filter(|n| *n < 3).ok_or(Code::INVALID_VALUE)
}

/// A number of a mode, of which there are so many.
fn one_of(number: u32, n: u32) -> Result {
    if number < n { Ok(()) } else { Err(Code::INVALID_VALUE) }
}

pub(crate) fn set_address_mode(handle: u64, dim: i32, mode: u32) -> Result {
    let dim = dimension(dim)?;
    one_of(mode, 4)?;
    set(handle, |state| state.reading.address[dim] = mode)
}

pub(crate) fn set_filter(handle: u64, mode: u32) -> Result {
    one_of(mode, 2)?;
    set(handle, |state| state.reading.filter = mode)
}

pub(crate) fn set_level_filter(handle: u64, mode: u32) -> Result {
    one_of(mode, 2)?;
    set(handle, |state| state.reading.mip_filter = mode)
}

pub(crate) fn set_flags(handle: u64, flags: u32) -> Result {
    // As integers, normalized coordinates, sRGB, exact levels of detail.
    const KNOWN: u32 = 1 | 2 | 0x10 | 0x20;
    if flags & !KNOWN != 0 {
        return Err(Code::INVALID_VALUE);
    }
    set(handle, |state| state.reading.flags = flags)
}

pub(crate) fn set_anisotropy(handle: u64, most: u32) -> Result {
    set(handle, |state| state.reading.max_anisotropy = most)
}

pub(crate) fn set_level_bias(handle: u64, bias: f32) -> Result {
    set(handle, |state| state.reading.lod_bias = bias)
}

pub(crate) fn set_level_clamp(handle: u64, min: f32, max: f32) -> Result {
    set(handle, |state| (state.reading.min_lod, state.reading.max_lod) = (min, max))
}

pub(crate) fn set_border(handle: u64, colour: Out<f32>) -> Result {
    let border = colour.cast::<[f32; 4]>().get()?;
    set(handle, |state| state.reading.border = border)
}

/// Writes what was said of a texture.
fn get<T: Copy>(to: Out<T>, handle: u64, what: impl FnOnce(&State) -> Result<T>) -> Result {
    to.check()?;
    to.set(what(&texture(handle)?.now())?)
}

pub(crate) fn address(to: Out<u64>, handle: u64) -> Result {
    get(to, handle, |state| match state.resource {
        Some(Resource::Linear { address, .. } | Resource::Pitched { address, .. }) => Ok(address),
        _ => Err(Code::INVALID_VALUE),
    })
}

fn array_of(state: &State) -> Result<u64> {
    if let Some(Resource::Array(at)) = state.resource { Ok(at) } else { Err(Code::INVALID_VALUE) }
}

pub(crate) fn array(to: Out<u64>, handle: u64) -> Result {
    get(to, handle, array_of)
}

pub(crate) fn array_of_surface(to: Out<u64>, handle: u64) -> Result {
    to.check()?;
    to.set(array_of(&reference::by_handle(handle, Kind::Surface)?.now())?)
}

pub(crate) fn levels(to: Out<u64>, handle: u64) -> Result {
    get(
        to,
        handle,
        |state| {
            if let Some(Resource::Levels(at)) = state.resource { Ok(at) } else { Err(Code::INVALID_VALUE) }
        },
    )
}

pub(crate) fn address_mode(to: Out<u32>, handle: u64, dim: i32) -> Result {
    let dim = dimension(dim)?;
    get(to, handle, |state| Ok(state.reading.address[dim]))
}

pub(crate) fn filter(to: Out<u32>, handle: u64) -> Result {
    get(to, handle, |state| Ok(state.reading.filter))
}

pub(crate) fn level_filter(to: Out<u32>, handle: u64) -> Result {
    get(to, handle, |state| Ok(state.reading.mip_filter))
}

pub(crate) fn flags(to: Out<u32>, handle: u64) -> Result {
    get(to, handle, |state| Ok(state.reading.flags))
}

pub(crate) fn anisotropy(to: Out<i32>, handle: u64) -> Result {
    get(to, handle, |state| Ok(i32::try_from(state.reading.max_anisotropy).unwrap_or(i32::MAX)))
}

pub(crate) fn level_bias(to: Out<f32>, handle: u64) -> Result {
    get(to, handle, |state| Ok(state.reading.lod_bias))
}

pub(crate) fn level_clamp(min: Out<f32>, max: Out<f32>, handle: u64) -> Result {
    min.check()?;
    max.check()?;
    let reading = texture(handle)?.now().reading;
    min.set(reading.min_lod)?;
    max.set(reading.max_lod)
}

pub(crate) fn border(to: Out<f32>, handle: u64) -> Result {
    get(to.cast::<[f32; 4]>(), handle, |state| Ok(state.reading.border))
}

/// What is asked for may be null.
pub(crate) fn format(to: Out<u32>, channels: Out<i32>, handle: u64) -> Result {
    let (format, n) = texture(handle)?.now().format;
    to.set_any(format);
    channels.set_any(i32::try_from(n).unwrap_or(i32::MAX));
    Ok(())
}
