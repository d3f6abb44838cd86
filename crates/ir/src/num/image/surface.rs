//! Places in surfaces, and elements that are stored by their format.

use super::object::Object;
use super::texel::{Texels, stored};
use crate::simt::{Geometry, OutOfRange, Surface, Unit};

/// A place in a surface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// Its address; that of the surface's start if there is none.
    pub address: u64,
    /// Bytes of the access.
    pub bytes: u32,
    /// There is such a place.
    pub is_inside: bool,
}

/// Finds the place that coordinates name.
///
/// Choice: a first coordinate that is no multiple of the access, which the manual leaves undefined, is taken as it is, and the access traps as any misaligned
/// one does.
///
/// # PTX ISA
/// Surface Instructions: suld, sust, sured.
pub fn place(object: &Object, at: Surface, coordinates: &[u32]) -> Found {
    let image = &object.image;
    let bytes = if at.unit == Unit::Elements { image.texel() } else { u32::from(at.bytes) };
    let none = Found { address: image.base, bytes, is_inside: false };
    let row = u64::from(image.size[0]) * u64::from(image.texel());
    let Some(last) = row.checked_sub(u64::from(bytes)) else { return none };
    if image.base == 0 {
        return none;
    }
    let mut rest = coordinates.iter().map(|c| i64::from(*c as i32));
    let mut next = || rest.next().unwrap_or(0);
    let layer = if at.geometry.is_array() { next() } else { 0 };
    let scale = match at.unit {
        Unit::Bytes => 1,
        Unit::Accesses | Unit::Elements => i64::from(bytes),
    };
    let x = next() * scale;
    let y = if at.geometry.n_axes() > 1 { next() } else { 0 };
    let z = if at.geometry == Geometry::D3 { next() } else { 0 };
    let is_clamped = at.outside == OutOfRange::Clamp;
    let inside = |v: i64, end: u64| {
        let most = i64::try_from(end).unwrap_or(i64::MAX);
        if is_clamped { Some(v.clamp(0, most) as u64) } else { (0..=most).contains(&v).then_some(v as u64) }
    };
    let level = image.level(0);
    // The last access that fits is a multiple of its size.
    let found = (
        inside(x, if is_clamped { last - last % u64::from(bytes) } else { last }),
        inside(y, u64::from(level.size[1]) - 1),
        inside(z, u64::from(level.size[2]) - 1),
        inside(layer, image.n_layers() - 1),
    );
    let (Some(x), Some(y), Some(z), Some(layer)) = found else { return none };
    let offset = [x, y.wrapping_mul(level.pitch), z.wrapping_mul(level.slice), layer.wrapping_mul(level.layer)];
    let address = offset.iter().fold(level.base, |sum, o| sum.wrapping_add(*o));
    Found { address, bytes, is_inside: true }
}

/// Stores an element by the format of the surface. Components that are not given become 0.
///
/// # PTX ISA
/// Surface Instructions: sust.
pub fn write_formatted(object: &Object, memory: &mut impl Texels, address: u64, values: &[u32]) {
    let (channel, n) = (object.image.channel, usize::from(object.image.components));
    for i in 0..n {
        let bits = values.get(i).map_or(0, |v| stored(channel, i, *v));
        memory.write(address.wrapping_add(u64::from(channel.bytes()) * i as u64), channel.bytes(), u64::from(bits));
    }
}
