//! A fetch for 32 lanes at once, for what most programs ask: one level, no borders.
//!
//! It computes what [`fetch`](super::fetch) does, in the same order: each step is a loop over lanes without branches, so that the compiler makes vector
//! code of it. Whatever is not for it is left to the definition.

use super::coordinates::{Coordinate, FRACTION_BITS, ONE, pair, within};
use super::object::{AddressMode, Channel, Filter, Level, Object, Sampler};
use super::sample::{address, border, canonical, is_normalized};
use super::texel::{Texels, absent, component};
use crate::simt::{Fetch, Geometry, Lod};

/// Lanes of a warp.
const LANES: usize = 32;

/// 32-bit words of the lanes.
pub type Row = [u32; LANES];

/// The texels of one axis: for each of the two that a filter reads its number, and its weight in 256ths. One without weight has the number of the other.
#[derive(Clone, Copy)]
struct Axis {
    texels: [Row; 2],
    weights: [[i32; LANES]; 2],
}

impl Axis {
    const NONE: Axis = Axis { texels: [[0; LANES]; 2], weights: [[ONE as i32; LANES], [0; LANES]] };

    /// `None` if a lane of the mask reads the border.
    #[inline(always)]
    fn new(places: &Row, mask: u32, image: &Flat, axis: usize) -> Option<Axis> {
        let Flat { is_normalized: normalized, filter, .. } = *image;
        let (size, mode) = (image.level.size[axis], image.address[axis]);
        let mut firsts = [0_i64; LANES];
        let mut weights = [0_i32; LANES];
        let scale = if normalized { f64::from(size) } else { 1.0 };
        if image.is_integer {
            (0..LANES).for_each(|l| firsts[l] = pair(Coordinate::Texel(places[l] as i32), filter, 0).0);
        }
        for l in (0..LANES).filter(|_| !image.is_integer) {
            let x = f64::from(f32::from_bits(places[l]));
            let x = if x.is_nan() { 0.0 } else { x };
            let (first, weight) = pair(Coordinate::Place(x * scale), filter, 0);
            (firsts[l], weights[l]) = (first, weight as i32);
        }
        let mut axis = Axis::NONE;
        let mut is_inside = true;
        for l in 0..LANES {
            let second = firsts[l] + i64::from(weights[l] != 0);
            is_inside &= mask >> l & 1 == 0 || (firsts[l] >= 0 && second < i64::from(size));
            axis.texels[0][l] = firsts[l] as u32;
            axis.texels[1][l] = second as u32;
            axis.weights[1][l] = weights[l];
            axis.weights[0][l] = ONE as i32 - weights[l];
        }
        if !is_inside {
            for l in (0..LANES).filter(|l| mask >> l & 1 == 1) {
                axis.texels[0][l] = within(firsts[l], size, mode, normalized)?;
                axis.texels[1][l] = within(firsts[l] + i64::from(weights[l] != 0), size, mode, normalized)?;
            }
        }
        Some(axis)
    }
}

/// A fetch that can be done for all lanes at once: what it does to each of them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Flat {
    /// Dimensions of the place.
    pub n_axes: usize,
    /// The only level of detail.
    pub level: Level,
    /// Places go from 0 to 1.
    pub is_normalized: bool,
    /// Places are numbers of texels.
    pub is_integer: bool,
    /// What is made of the texels around a place.
    pub filter: Filter,
    /// What the components are.
    pub channel: Channel,
    /// Components: 1, 2 or 4.
    pub components: u8,
    /// By dimension: what becomes of texels outside.
    pub address: [AddressMode; 3],
    /// The components of the border as the program gets them.
    pub border: [u32; 4],
}

impl Flat {
    /// What a fetch is with a texture and a sampler; `None` if it is left to the definition.
    #[inline]
    pub fn new(texture: &Object, sampler: &Sampler, f: Fetch) -> Option<Flat> {
        let image = &texture.image;
        let n_axes = match f.geometry {
            Geometry::D1 => 1,
            Geometry::D2 => 2,
            Geometry::D3 => 3,
            _ => return None,
        };
        let has_one_level = f.lod == Lod::Base || image.levels <= 1;
        if f.gather.is_some() || f.has_offsets || f.has_depth || !has_one_level {
            return None;
        }
        Some(Flat {
            n_axes,
            level: image.level(0),
            is_normalized: f.is_float && is_normalized(texture, sampler),
            is_integer: !f.is_float,
            filter: if f.is_float && image.channel.is_float() { sampler.filter } else { Filter::Nearest },
            channel: image.channel,
            components: image.components,
            address: address(image, sampler, !f.is_float),
            border: border(image, sampler, !f.is_float),
        })
    }

    /// What the program gets for a component that the image does not have.
    pub const fn absent(&self, at: usize) -> u32 {
        absent(self.channel, at)
    }

    /// Bytes of a texel.
    pub const fn texel(&self) -> u32 {
        self.channel.bytes() * self.components as u32
    }
}

/// What a fetch reads for the lanes of a mask, whose coordinates are given; `None` if a lane reads the border, and then nothing was done.
///
/// The texels of an image may be read, as for [`fetch`](super::fetch).
#[inline(always)]
pub fn fetch_row(image: &Flat, coordinates: &[Row], mask: u32, memory: &mut impl Texels) -> Option<[Row; 4]> {
    let Flat { n_axes, filter, .. } = *image;
    let mut axes = [Axis::NONE; 3];
    for (i, axis) in axes.iter_mut().enumerate().take(n_axes) {
        *axis = Axis::new(&coordinates[i], mask, image, i)?;
    }
    let n = usize::from(image.components);
    let nearest = texels(image, &axes, 0, mask, memory);
    let mut out: [Row; 4] = std::array::from_fn(|c| if c < n { nearest[c] } else { [absent(image.channel, c); LANES] });
    if filter == Filter::Nearest {
        return Some(out);
    }
    let mut sums = [[0.0_f64; LANES]; 4];
    let mut is_between = [false; LANES];
    for step in 0..1_usize << n_axes {
        let mut weights = [1_i32; LANES];
        for (axis, a) in axes.iter().enumerate().take(n_axes) {
            let side = &a.weights[step >> axis & 1];
            (0..LANES).for_each(|l| weights[l] *= side[l]);
        }
        let mut any = false;
        for l in 0..LANES {
            let counts = weights[l] != 0 && mask >> l & 1 == 1;
            any |= counts;
            is_between[l] |= step != 0 && counts;
        }
        if !any {
            continue;
        }
        let rows = if step == 0 { nearest } else { texels(image, &axes, step, mask, memory) };
        for (sums, row) in sums.iter_mut().zip(&rows).take(n) {
            for l in 0..LANES {
                // A texel without weight does not count, whatever it is.
                let share = f64::from(weights[l]) * f64::from(f32::from_bits(row[l]));
                sums[l] += if weights[l] == 0 { 0.0 } else { share };
            }
        }
    }
    let whole = (1_u64 << (FRACTION_BITS as usize * n_axes)) as f64;
    for (out, sums) in out.iter_mut().zip(&sums).take(n) {
        for l in 0..LANES {
            let mean = canonical((sums[l] / whole) as f32);
            out[l] = if is_between[l] { mean } else { out[l] };
        }
    }
    Some(out)
}

/// The components of the texels on one side of each axis, a bit of `step` for each.
#[inline(always)]
fn texels(image: &Flat, axes: &[Axis; 3], step: usize, mask: u32, memory: &mut impl Texels) -> [Row; 4] {
    let level = &image.level;
    let mut addresses = [0_u64; LANES];
    let [x, y, z] = [0, 1, 2].map(|i| &axes[i].texels[step >> i & 1]);
    for l in 0..LANES {
        let offset = [
            u64::from(x[l]) * u64::from(image.texel()),
            u64::from(y[l]).wrapping_mul(level.pitch),
            u64::from(z[l]).wrapping_mul(level.slice),
        ];
        addresses[l] = offset.iter().fold(level.base, |sum, o| sum.wrapping_add(*o));
    }
    let mut out = [[0; LANES]; 4];
    let (n, bytes) = (usize::from(image.components), image.channel.bytes());
    let lanes = || (0..LANES).filter(|l| mask >> l & 1 == 1);
    if bytes == 1 && n == 4 && (level.base | level.pitch | level.slice).is_multiple_of(4) {
        for l in lanes() {
            let bytes = (memory.read(addresses[l], 4) as u32).to_le_bytes();
            (0..4).for_each(|c| out[c][l] = u32::from(bytes[c]));
        }
    } else {
        for (c, row) in out.iter_mut().enumerate().take(n) {
            let distance = u64::from(bytes) * c as u64;
            lanes().for_each(|l| row[l] = memory.read(addresses[l].wrapping_add(distance), bytes) as u32);
        }
    }
    for (c, row) in out.iter_mut().enumerate().take(n) {
        components(image.channel, c, row);
    }
    out
}

/// What the program gets for components as they lie in memory.
#[inline(always)]
fn components(channel: Channel, at: usize, row: &mut Row) {
    // The channel is looked at once: each arm is a loop without branches.
    macro_rules! each {
        ($($channel:ident)*) => {
            match channel { $(Channel::$channel => row.iter_mut().for_each(|bits| *bits = component(Channel::$channel, at, *bits)),)* }
        };
    }
    each!(U8 U16 U32 S8 S16 S32 F16 F32 Unorm8 Unorm16 Snorm8 Snorm16 Srgb8);
}

#[cfg(test)]
mod tests {
    use super::super::object::{Image, Kind};
    use super::super::{Asked, fetch};
    use super::*;

    /// Texels that are any bytes.
    struct Bytes(Vec<u8>);

    impl Texels for Bytes {
        fn read(&mut self, address: u64, bytes: u32) -> u64 {
            let at = (address - BASE) as usize;
            self.0[at..at + bytes as usize].iter().rev().fold(0, |v, b| v << 8 | u64::from(*b))
        }

        fn write(&mut self, _: u64, _: u32, _: u64) {
            unreachable!("fetches write nothing")
        }
    }

    const BASE: u64 = 1 << 20;

    /// Numbers that are spread well enough (SplitMix64).
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ z >> 31
        }

        fn below(&mut self, n: u64) -> usize {
            (self.next() % n) as usize
        }
    }

    /// All channels, filters and modes, texels of any bits, NaNs among them, coordinates far outside: rows are what lanes are, and only borders
    /// are left to lanes.
    #[test]
    fn rows_are_what_the_definition_says_lane_by_lane() {
        let random = &mut Random(7);
        let mut rows = 0;
        for _ in 0..2000 {
            let (object, f) = object(random);
            let n_axes = f.geometry.n_axes();
            let mut memory = Bytes((0..8192).map(|_| random.next() as u8).collect());
            let mask = if random.below(2) == 0 { u32::MAX } else { random.next() as u32 };
            let coordinates: Vec<Row> =
                (0..n_axes).map(|_| std::array::from_fn(|_| coordinate(random, f.is_float))).collect();
            let flat = Flat::new(&object, &object.sampler, f).expect("it is one of those that are done by rows");
            let row = fetch_row(&flat, &coordinates, mask, &mut memory);
            let Some(row) = row else {
                assert!(flat.address.contains(&AddressMode::ClampToBorder));
                continue;
            };
            rows += 1;
            for l in (0..LANES).filter(|l| mask >> l & 1 == 1) {
                let place: Vec<u32> = coordinates.iter().map(|c| c[l]).collect();
                let asked = Asked { coordinates: &place, ..Asked::default() };
                let lane = fetch(&object, &object.sampler, f, &asked, &mut memory);
                assert_eq!(row.map(|r| r[l]), lane, "lane {l} at {place:x?}: {object:?}");
            }
        }
        assert!(rows > 1000, "{rows} fetches by rows");
    }

    fn object(random: &mut Random) -> (Object, Fetch) {
        let geometry = [Geometry::D1, Geometry::D2, Geometry::D3][random.below(3)];
        let dims = geometry.n_axes();
        let size: [u32; 3] = std::array::from_fn(|i| if i < dims { 1 + random.below(7) as u32 } else { 1 });
        let channel = Channel::ALL[random.below(13)];
        let components = [1, 2, 4][random.below(3)];
        let texel = u64::from(channel.bytes()) * u64::from(components);
        let image = Image {
            base: BASE,
            size,
            dims: dims as u8,
            channel,
            components,
            pitch: u64::from(size[0]) * texel + random.below(3) as u64 * u64::from(channel.bytes()),
            rows: size[1],
            is_linear: random.below(2) == 0,
            ..Image::default()
        };
        let modes = if random.below(4) == 0 { 5 } else { 4 };
        let sampler = Sampler {
            is_normalized: random.below(2) == 0,
            filter: Filter::ALL[random.below(2)],
            mip_filter: Filter::ALL[random.below(2)],
            address: std::array::from_fn(|_| AddressMode::ALL[random.below(modes)]),
            ..Sampler::default()
        };
        let f = Fetch {
            geometry,
            is_float: random.below(3) > 0,
            lod: Lod::Base,
            has_sampler: false,
            has_offsets: false,
            has_depth: false,
            gather: None,
        };
        (Object { kind: Kind::Texture, image, sampler }, f)
    }

    /// Inside and near the edges, in the middle of texels, and any bits.
    fn coordinate(random: &mut Random, is_float: bool) -> u32 {
        if !is_float && random.below(64) > 0 {
            return random.below(7) as u32;
        }
        match random.below(8) {
            0 => random.next() as u32,
            1 => (random.below(9) as f32 + 0.5).to_bits(),
            2 => (random.below(64) as f32 / 32.0 - 0.5).to_bits(),
            _ => (random.below(4096) as f32 / 512.0).to_bits(),
        }
    }
}
