//! From coordinates to texels: the axes of an image, the faces of a cube, the level of detail.

use super::object::{AddressMode, Filter, Image, Sampler};

/// Fraction bits of a place between texels, and of one between levels.
pub(super) const FRACTION_BITS: u32 = 8;
/// One, with these bits.
pub(super) const ONE: i64 = 1 << FRACTION_BITS;
/// Beyond any texel.
const FAR: f64 = (1_i64 << 40) as f64;

/// Where an image is read in one dimension.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Coordinate {
    /// A texel.
    Texel(i32),
    /// A place, in texels.
    Place(f64),
}

/// The texels of one dimension that a filter reads: the first, and the weight of the one after it in 256ths.
#[inline]
pub(super) fn pair(at: Coordinate, filter: Filter, offset: i32) -> (i64, i64) {
    let (first, weight) = match (at, filter) {
        (Coordinate::Texel(i), _) => (i64::from(i), 0),
        (Coordinate::Place(x), Filter::Nearest) => (x.clamp(-FAR, FAR).floor() as i64, 0),
        (Coordinate::Place(x), Filter::Linear) => {
            let fixed = ((x - 0.5).clamp(-FAR, FAR) * ONE as f64 + 0.5).floor() as i64;
            (fixed >> FRACTION_BITS, fixed & (ONE - 1))
        }
    };
    (first + i64::from(offset), weight)
}

/// The texel that is read for one that may lie outside; `None` for the border.
pub(super) fn within(texel: i64, size: u32, mode: AddressMode, is_normalized: bool) -> Option<u32> {
    let size = i64::from(size);
    let inside = match mode {
        _ if (0..size).contains(&texel) => texel,
        AddressMode::ClampToBorder => return None,
        AddressMode::Wrap if is_normalized => texel.rem_euclid(size),
        AddressMode::Mirror if is_normalized => {
            let twice = texel.rem_euclid(2 * size);
            twice.min(2 * size - 1 - twice)
        }
        _ => texel.clamp(0, size - 1),
    };
    Some(inside as u32)
}

/// A face of a cube, and the place on it from 0 to 1 in both dimensions.
///
/// Choice: of axes that are equally long, the first is the major one.
///
/// # PTX ISA
/// Texture Instructions: tex (`.cube`).
pub(super) fn face(v: [f64; 3]) -> (u32, [f64; 2]) {
    let (face, major, s, t) = turned(v, v);
    let on = |c: f64| (c / major.abs() + 1.0) / 2.0;
    if major == 0.0 { (face, [0.5; 2]) } else { (face, [on(s), on(t)]) }
}

/// The face that `v` points to, and of another vector: its part along the major axis and those along the axes of the face.
fn turned(v: [f64; 3], of: [f64; 3]) -> (u32, f64, f64, f64) {
    let [x, y, z] = of;
    let [ax, ay, az] = v.map(f64::abs);
    if ax >= ay && ax >= az {
        if v[0] >= 0.0 { (0, x, -z, -y) } else { (1, -x, z, -y) }
    } else if ay >= az {
        if v[1] >= 0.0 { (2, y, x, z) } else { (3, -y, x, -z) }
    } else if v[2] >= 0.0 {
        (4, z, x, -y)
    } else {
        (5, -z, -x, -y)
    }
}

/// The face beside a face, and the texel of it, for a texel that lies one step outside along one axis. All levels are squares of `size` texels.
///
/// Twice the distances from the middle of the cube are whole numbers: those of the texel's middle along its face are below `size`, and a step over the edge goes
/// to the outermost row of the face there.
pub(super) fn across(face: u32, texel: [i64; 2], size: u32) -> (u32, [u32; 2]) {
    let n = i64::from(size);
    let [s, t] = texel.map(|at| 2 * at + 1 - n);
    let (major, s, t) = match (s.abs() > n, t.abs() > n) {
        (true, _) => (n - 1, s.signum() * n, t),
        (false, true) => (n - 1, s, t.signum() * n),
        (false, false) => (n, s, t),
    };
    let on_axes = match face {
        0 => [major, -t, -s],
        1 => [-major, -t, s],
        2 => [s, major, t],
        3 => [s, -major, -t],
        4 => [s, -t, major],
        _ => [-s, -t, -major],
    };
    // Numbers of this size are exact.
    let v = on_axes.map(|c| c as f64);
    let (face, _, s, t) = turned(v, v);
    (face, [s, t].map(|c| ((c as i64 + n - 1) / 2).clamp(0, n - 1) as u32))
}

/// How the place on the face changes where the direction changes by `d`.
pub(super) fn face_change(v: [f64; 3], d: [f64; 3]) -> [f64; 3] {
    let (_, major, s, t) = turned(v, v);
    let (_, dm, ds, dt) = turned(v, d);
    let on = |c: f64, dc: f64| (dc * major - c * dm) / (major * major) / 2.0;
    [on(s, ds), on(t, dt), 0.0]
}

/// The level of detail in 256ths, between those that sampler and image allow.
pub(super) fn clamp_lod(image: &Image, sampler: &Sampler, lod: i64) -> i64 {
    let fixed = |x: f32| {
        if x.is_nan() { 0 } else { (f64::from(x).clamp(-1024.0, 1024.0) * ONE as f64 + 0.5).floor() as i64 }
    };
    let last = (i64::from(image.levels.max(1)) - 1) * ONE;
    let biased = lod.clamp(-1024 * ONE, 1024 * ONE) + fixed(sampler.lod_bias);
    biased.max(fixed(sampler.min_lod)).min(fixed(sampler.max_lod)).clamp(0, last)
}

/// A level of detail that a program names, in 256ths.
pub(super) fn named_lod(bits: u32, is_float: bool) -> i64 {
    if !is_float {
        return i64::from(bits as i32).clamp(-1024, 1024) * ONE;
    }
    let lod = f64::from(f32::from_bits(bits));
    if lod.is_nan() { 0 } else { (lod.clamp(-1024.0, 1024.0) * ONE as f64 + 0.5).floor() as i64 }
}

/// The level of detail at which the longer of two changes, in texels of the first level, is one texel, in 256ths.
///
/// Choice: the manual leaves the computation open; the lengths are those of the vectors, and 8 bits of the logarithm are exact.
pub(super) fn lod_of_changes(changes: [[f64; 3]; 2]) -> i64 {
    let square = |v: [f64; 3]| v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    let longest = square(changes[0]).max(square(changes[1]));
    if longest.is_nan() || longest < f64::MIN_POSITIVE {
        return -1024 * ONE;
    }
    if longest.is_infinite() {
        return 1024 * ONE;
    }
    let bits = longest.to_bits();
    let exponent = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    let mut log = exponent;
    // A bit of the logarithm for each squaring. The result is half of the logarithm: it needs none more.
    for _ in 0..FRACTION_BITS {
        mantissa *= mantissa;
        log *= 2;
        if mantissa >= 2.0 {
            mantissa /= 2.0;
            log += 1;
        }
    }
    log >> 1
}
