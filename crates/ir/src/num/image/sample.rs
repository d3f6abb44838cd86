//! `tex` and `tld4`: what is read at coordinates.
//!
//! # How texels are put together
//! A place between texels and one between levels has 8 fraction bits, rounded to the nearest, ties up, from the exact product of coordinate and size.
//! The weights of texels are the products of these fractions, exact. Texels without weight are not looked at, so that a NaN or an infinity beside
//! the place does not count. The sum of texels times weights is computed in double precision and rounded to `.f32` once.
//!
//! Of a cube whose filter reads on from face to face, a texel outside of one side of a face is that of the face beside it. Outside of two sides there is none.
//! Choice: there it is the mean of the three texels around the corner; for integers, which have no mean, the one of the face itself.
//!
//! # PTX ISA
//! Texture Instructions: tex, tld4; Mipmaps.

use super::coordinates::{
    Coordinate, FRACTION_BITS, ONE, across, clamp_lod, face, face_change, lod_of_changes, named_lod, pair, within,
};
use super::object::{AddressMode, Filter, Image, Level, Object, Sampler};
use super::texel::{Texels, absent, component, read};
use crate::simt::{Fetch, Geometry, Lod};

/// What a fetch is asked with: its sources after the handles.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// Coordinates: index of an array, number of a sample, place.
    pub coordinates: &'a [u32],
    /// The level of detail, or the gradients.
    pub lod: &'a [u32],
    /// Offsets in texels.
    pub offsets: &'a [u32],
    /// The depth that texels are compared with.
    pub depth: Option<u32>,
}

/// A fetch with all that does not depend on the level of detail.
struct Look<'a> {
    image: &'a Image,
    sampler: &'a Sampler,
    filter: Filter,
    address: [AddressMode; 3],
    is_normalized: bool,
    layer: u64,
    axes: [Axis; 3],
    n_axes: usize,
    offsets: [i32; 3],
    depth: Option<f32>,
    is_integer: bool,
    /// The face of a cube whose faces a filter reads on over.
    seamless_face: Option<u32>,
}

/// A coordinate.
#[derive(Clone, Copy)]
enum Axis {
    Texel(i32),
    /// In texels of whatever level.
    Place(f64),
    /// From 0 to 1.
    Share(f64),
}

impl<'a> Look<'a> {
    fn new(image: &'a Image, sampler: &'a Sampler, is_normalized: bool, f: Fetch, asked: &Asked<'_>) -> Look<'a> {
        let mut rest = asked.coordinates.iter().copied();
        let mut next = || rest.next().unwrap_or(0);
        let index = if f.geometry.is_array() { u64::from(next()) } else { 0 };
        let sample = if f.geometry.has_samples() { u64::from(next()) } else { 0 };
        let float = |bits: u32| {
            let x = f64::from(f32::from_bits(bits));
            if x.is_nan() { 0.0 } else { x }
        };
        let mut layer = index.min(u64::from(image.layers.max(1)) - 1);
        let mut axes = [Axis::Texel(0); 3];
        let mut seamless_face = None;
        let is_cube = matches!(f.geometry, Geometry::Cube | Geometry::ArrayCube);
        if is_cube {
            let (face, [s, t]) = face([next(), next(), next()].map(float));
            layer = layer * 6 + u64::from(face);
            let has_footprint = sampler.filter == Filter::Linear && (image.channel.is_float() || f.gather.is_some());
            seamless_face = (sampler.is_seamless && has_footprint).then_some(face);
            axes = [Axis::Share(s), Axis::Share(t), Axis::Texel(0)];
        } else {
            for axis in axes.iter_mut().take(f.geometry.n_axes()) {
                let bits = next();
                *axis = match (f.is_float, is_normalized) {
                    (false, _) => Axis::Texel(bits as i32),
                    (true, false) => Axis::Place(float(bits)),
                    (true, true) => Axis::Share(float(bits)),
                };
            }
        }
        if f.geometry.has_samples() {
            let samples = u64::from(image.samples.max(1));
            layer = layer * samples + sample.min(samples - 1);
        }
        let mut offsets = [0; 3];
        for (to, from) in offsets.iter_mut().zip(asked.offsets) {
            // Four bits count.
            *to = (*from << 28) as i32 >> 28;
        }
        let is_averaged = f.is_float && image.channel.is_float();
        Look {
            image,
            sampler,
            filter: if is_averaged { sampler.filter } else { Filter::Nearest },
            address: match is_cube && sampler.is_seamless {
                true => [AddressMode::ClampToEdge; 3],
                false => address(image, sampler, !f.is_float),
            },
            is_normalized: is_normalized || is_cube,
            layer: layer.min(image.n_layers() - 1),
            axes,
            n_axes: if is_cube { 2 } else { f.geometry.n_axes() },
            offsets,
            depth: asked.depth.map(f32::from_bits),
            is_integer: !f.is_float,
            seamless_face,
        }
    }

    /// Where a level is read in one dimension.
    fn coordinate(&self, axis: usize, level: &Level) -> Coordinate {
        match self.axes[axis] {
            Axis::Texel(i) => Coordinate::Texel(i),
            Axis::Place(x) => Coordinate::Place(x),
            Axis::Share(x) => Coordinate::Place(x * f64::from(level.size[axis])),
        }
    }

    /// The texel of an axis; `None` for the border.
    fn inside(&self, axis: usize, level: &Level, texel: i64) -> Option<u32> {
        within(texel, level.size[axis], self.address[axis], self.is_normalized && !self.is_integer)
    }

    /// The components of one texel as the program gets them, compared with the depth if there is one.
    fn texel(&self, memory: &mut impl Texels, level: &Level, layer: u64, at: [Option<u32>; 3]) -> [u32; 4] {
        let channel = self.image.channel;
        let n = usize::from(self.image.components);
        let mut out = if let [Some(x), Some(y), Some(z)] = at {
            let offset = [
                u64::from(x) * u64::from(self.image.texel()),
                u64::from(y).wrapping_mul(level.pitch),
                u64::from(z).wrapping_mul(level.slice),
                layer.wrapping_mul(level.layer),
            ];
            let address = offset.iter().fold(level.base, |sum, o| sum.wrapping_add(*o));
            let raw = read(self.image, memory, address);
            std::array::from_fn(|i| if i < n { component(channel, i, raw[i]) } else { absent(channel, i) })
        } else {
            let border = border(self.image, self.sampler, self.is_integer);
            std::array::from_fn(|i| if i < n { border[i] } else { absent(channel, i) })
        };
        if let Some(depth) = self.depth {
            // Choice: the manual does not name the comparison; it passes where the depth is not beyond the texel.
            out[0] = f32::from(u8::from(depth <= f32::from_bits(out[0]))).to_bits();
        }
        out
    }

    /// The texel of a level with these numbers, which may lie outside.
    fn texel_at(&self, memory: &mut impl Texels, level: &Level, texel: [i64; 3]) -> [u32; 4] {
        let Some(face) = self.seamless_face else {
            let mut at = [Some(0); 3];
            for (axis, a) in at.iter_mut().enumerate().take(self.n_axes) {
                *a = self.inside(axis, level, texel[axis]);
            }
            return self.texel(memory, level, self.layer, at);
        };
        let size = level.size[0];
        let held = |c: i64| c.clamp(0, i64::from(size) - 1);
        let [x, y, _] = texel;
        let on_cube = |memory: &mut _, at: [i64; 2]| {
            let (beside, [s, t]) = across(face, at, size);
            let layer = self.layer - u64::from(face) + u64::from(beside);
            self.texel(memory, level, layer, [Some(s), Some(t), Some(0)])
        };
        if held(x) == x || held(y) == y {
            return on_cube(memory, [x, y]);
        }
        let own = on_cube(memory, [held(x), held(y)]);
        if !self.image.channel.is_float() {
            return own;
        }
        let around = [own, on_cube(memory, [x, held(y)]), on_cube(memory, [held(x), y])];
        std::array::from_fn(|i| {
            let sum: f64 = around.iter().map(|texel| f64::from(f32::from_bits(texel[i]))).sum();
            canonical((sum / 3.0) as f32)
        })
    }

    /// What a level gives at the place.
    fn level(&self, memory: &mut impl Texels, level: &Level) -> [u32; 4] {
        let mut pairs = [(0, 0); 3];
        for (axis, p) in pairs.iter_mut().enumerate().take(self.n_axes) {
            *p = pair(self.coordinate(axis, level), self.filter, self.offsets[axis]);
        }
        let texel = |memory: &mut _, step: usize| {
            let at = std::array::from_fn(|axis| pairs[axis].0 + (step >> axis & 1) as i64);
            self.texel_at(memory, level, at)
        };
        if pairs.iter().all(|(_, weight)| *weight == 0) {
            return texel(memory, 0);
        }
        let mut sums = [0.0_f64; 4];
        for step in 0..1 << self.n_axes {
            let share = |axis: usize| if step >> axis & 1 == 1 { pairs[axis].1 } else { ONE - pairs[axis].1 };
            let weight: i64 = (0..self.n_axes).map(share).product();
            if weight == 0 {
                continue;
            }
            let components = texel(memory, step);
            let weight = weight as f64;
            sums.iter_mut().zip(components).for_each(|(sum, c)| *sum += weight * f64::from(f32::from_bits(c)));
        }
        let whole = (1_u64 << (FRACTION_BITS as usize * self.n_axes)) as f64;
        sums.map(|sum| canonical((sum / whole) as f32))
    }
}

/// The bits of a float, of all NaNs those of one.
#[inline]
pub(super) fn canonical(x: f32) -> u32 {
    if x.is_nan() { 0x7fff_ffff } else { x.to_bits() }
}

/// Whether coordinates go from 0 to 1: what the texture says, if the sampler does not say otherwise.
pub(super) fn is_normalized(texture: &Object, sampler: &Sampler) -> bool {
    texture.sampler.is_normalized && !sampler.forces_texels
}

/// The level of detail that is asked for, in 256ths, as far as image and sampler have it.
fn lod(texture: &Object, sampler: &Sampler, f: Fetch, asked: &Asked<'_>) -> i64 {
    let image = &texture.image;
    let wanted = match f.lod {
        Lod::Base => return 0,
        Lod::Level => named_lod(asked.lod.first().copied().unwrap_or(0), f.is_float),
        Lod::Gradient => {
            let n = f.geometry.n_axes();
            let float = |bits: &u32| f64::from(f32::from_bits(*bits));
            let vector = |words: &[u32]| {
                let mut out = [0.0; 3];
                out.iter_mut().zip(words).for_each(|(o, w)| *o = float(w));
                out
            };
            let (dx, dy) = asked.lod.split_at(n.min(asked.lod.len()));
            let is_cube = matches!(f.geometry, Geometry::Cube | Geometry::ArrayCube);
            let direction = vector(asked.coordinates.get(usize::from(f.geometry.is_array())..).unwrap_or(&[]));
            let changes = [dx, dy].map(|d| {
                let d = vector(d);
                let d = if is_cube { face_change(direction, d) } else { d };
                let scale =
                    |i: usize| if is_cube || is_normalized(texture, sampler) { f64::from(image.size[i]) } else { 1.0 };
                [d[0] * scale(0), d[1] * scale(1), d[2] * scale(2)]
            });
            lod_of_changes(changes)
        }
    };
    clamp_lod(image, sampler, wanted)
}

/// What becomes of texels outside, by dimension. Linear memory that is read by numbers of texels has a border.
pub(super) fn address(image: &Image, sampler: &Sampler, is_integer: bool) -> [AddressMode; 3] {
    if image.is_linear && is_integer { [AddressMode::ClampToBorder; 3] } else { sampler.address }
}

/// The border as the program gets it. That of linear memory that is read by numbers of texels is zero.
pub(super) fn border(image: &Image, sampler: &Sampler, is_integer: bool) -> [u32; 4] {
    let channel = image.channel;
    sampler.border.map(|c| match (image.is_linear && is_integer, channel.is_float()) {
        (true, _) => 0,
        (false, true) => c.to_bits(),
        (false, false) if channel.is_signed() => c as i32 as u32,
        (false, false) => c as u32,
    })
}

/// What `tex` reads: four components, integers or `.f32` as the texture's channels say.
pub fn fetch(texture: &Object, sampler: &Sampler, f: Fetch, asked: &Asked<'_>, memory: &mut impl Texels) -> [u32; 4] {
    let image = &texture.image;
    let look = Look::new(image, sampler, is_normalized(texture, sampler), f, asked);
    let lod = lod(texture, sampler, f, asked);
    let number = |fixed: i64| (fixed >> FRACTION_BITS) as u8;
    let is_averaged = sampler.mip_filter == Filter::Linear && image.channel.is_float();
    let (fine, weight) = if is_averaged { (number(lod), lod & (ONE - 1)) } else { (number(lod + ONE / 2), 0) };
    let first = look.level(memory, &image.level(fine));
    if weight == 0 {
        return first;
    }
    let second = look.level(memory, &image.level(fine + 1));
    std::array::from_fn(|i| {
        let [a, b] = [first[i], second[i]].map(|c| f64::from(f32::from_bits(c)));
        canonical(((a * (ONE - weight) as f64 + b * weight as f64) / ONE as f64) as f32)
    })
}

/// What `tld4` reads: one component of the four texels that a linear filter takes, counter-clockwise from the lower left.
pub fn gather(texture: &Object, sampler: &Sampler, f: Fetch, asked: &Asked<'_>, memory: &mut impl Texels) -> [u32; 4] {
    let look = Look::new(&texture.image, sampler, is_normalized(texture, sampler), f, asked);
    let level = texture.image.level(0);
    let first = [0, 1].map(|axis| pair(look.coordinate(axis, &level), Filter::Linear, look.offsets[axis]).0);
    let wanted = usize::from(f.gather.unwrap_or(0) & 3);
    [(0, 1), (1, 1), (1, 0), (0, 0)]
        .map(|(x, y)| look.texel_at(memory, &level, [first[0] + x, first[1] + y, 0])[wanted])
}
