//! Fetches of texels of 32-bit components for 32 lanes by AVX-512: eight lanes at a time, in double precision, in the steps of the definition
//! (`handloom_ir::num::image`), so that every bit is the same.

use std::arch::x86_64::*;

use handloom_ir::num::image::{AddressMode, Channel, Filter, Flat, Row};
use handloom_plan::Host;
use handloom_plan::host::Feature;

/// Lanes of a vector.
const EIGHT: usize = 8;
/// Beyond any texel: `coordinates::FAR`.
const FAR: f64 = (1_i64 << 40) as f64;
/// One, with the fraction bits of a place.
const ONE: i64 = 256;

/// Whether a fetch is for this code, on a host.
pub(super) fn is_here(host: &Host, flat: &Flat) -> bool {
    matches!(flat.channel, Channel::F32 | Channel::U32 | Channel::S32)
        && [Feature::Avx512f, Feature::Avx512dq, Feature::Avx512vl].iter().all(|f| host.has(*f))
}

/// Writes what a fetch reads for the lanes of a mask to rows, which may be those of coordinates. Other lanes get any values.
///
/// What it calls is inlined into it, and so has its features: closures would not be.
///
/// # Safety
/// The host has the features, and the texels may be read. There is a row for each axis, and there are four to be written.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
pub(super) unsafe fn fetch(flat: &Flat, coordinates: &[*const Row; 3], mask: u32, out: &[*mut Row; 4]) {
    // SAFETY: by the caller's promise.
    unsafe {
        match (flat.n_axes, flat.filter) {
            (1, Filter::Nearest) => row::<1, false>(flat, coordinates, mask, out),
            (1, Filter::Linear) => row::<1, true>(flat, coordinates, mask, out),
            (2, Filter::Nearest) => row::<2, false>(flat, coordinates, mask, out),
            (2, Filter::Linear) => row::<2, true>(flat, coordinates, mask, out),
            (_, Filter::Nearest) => row::<3, false>(flat, coordinates, mask, out),
            (_, Filter::Linear) => row::<3, true>(flat, coordinates, mask, out),
        }
    }
}

/// The texels of one axis.
#[derive(Clone, Copy)]
struct Axis {
    /// Where in memory the two of them are, from the start of the axis.
    offsets: [__m512i; 2],
    /// Lanes that do not read the border.
    inside: [__mmask8; 2],
    /// Lanes whose first texel is one and has a neighbour.
    neighbours: __mmask8,
    /// Their weights, in 256ths.
    weights: [__m512d; 2],
    /// Lanes in which the second one has weight.
    between: __mmask8,
}

/// # Safety
/// As for [`fetch`], whose features the caller has.
#[inline(always)]
unsafe fn row<const AXES: usize, const LINEAR: bool>(
    flat: &Flat,
    coordinates: &[*const Row; 3],
    mask: u32,
    out: &[*mut Row; 4],
) {
    let n = usize::from(flat.components);
    let steps = [u64::from(flat.texel()), flat.level.pitch, flat.level.slice];
    let base = std::ptr::with_exposed_provenance::<f32>(flat.level.base as usize);
    let mut part = 0;
    while part < 32 {
        let lanes = (mask >> part & 0xff) as __mmask8;
        // SAFETY: by the caller's promise. A row has eight words from each of these places on.
        unsafe {
            let none = _mm512_setzero_si512();
            let mut axes = [Axis {
                offsets: [none; 2],
                inside: [0; 2],
                neighbours: 0,
                weights: [_mm512_setzero_pd(); 2],
                between: 0,
            }; AXES];
            let mut i = 0;
            while i < AXES {
                let places = _mm256_loadu_ps(coordinates[i].cast::<f32>().add(part));
                axes[i] = axis::<LINEAR>(places, flat, i, steps[i]);
                i += 1;
            }
            // Two texels that lie side by side are read at once.
            if LINEAR && AXES == 2 && n == 1 {
                let inside = axes[0].neighbours & axes[1].inside[0] & axes[1].inside[1];
                if inside & lanes == lanes {
                    let value = mean_of_pairs(&axes[0], &axes[AXES - 1], lanes, base);
                    _mm256_storeu_ps(out[0].cast::<f32>().add(part), value);
                    part += EIGHT;
                    continue;
                }
            }
            let mut c = 0;
            while c < n {
                let (at, border) = (base.wrapping_add(c), _mm256_set1_ps(f32::from_bits(flat.border[c])));
                let nearest = texel::<AXES>(&axes, 0, lanes, border, at);
                let value = if LINEAR { mean::<AXES>(&axes, nearest, lanes, border, at) } else { nearest };
                _mm256_storeu_ps(out[c].cast::<f32>().add(part), value);
                c += 1;
            }
        }
        part += EIGHT;
    }
    // Behind all reads of coordinates.
    let mut c = n;
    while c < 4 {
        // SAFETY: as above; a row is two vectors.
        unsafe {
            let absent = _mm512_set1_epi32(flat.absent(c).cast_signed());
            _mm512_storeu_si512(out[c].cast(), absent);
            _mm512_storeu_si512(out[c].cast::<u32>().add(16).cast(), absent);
        }
        c += 1;
    }
}

/// The texel of a corner: bit `i` of `step` says which of the two of axis `i`.
///
/// # Safety
/// As for [`row`].
#[inline(always)]
unsafe fn texel<const AXES: usize>(
    axes: &[Axis; AXES],
    step: usize,
    wanted: __mmask8,
    border: __m256,
    at: *const f32,
) -> __m256 {
    // SAFETY: the offsets of lanes inside are those of texels, which may be read; one instruction reads them, a word each.
    unsafe {
        let mut offset = axes[0].offsets[step & 1];
        let mut inside = axes[0].inside[step & 1];
        let mut i = 1;
        while i < AXES {
            offset = _mm512_add_epi64(offset, axes[i].offsets[step >> i & 1]);
            inside &= axes[i].inside[step >> i & 1];
            i += 1;
        }
        _mm512_mask_i64gather_ps::<1>(border, inside & wanted, offset, at.cast())
    }
}

/// What lies between the texels, of which the first ones are `nearest`.
///
/// # Safety
/// As for [`row`].
#[inline(always)]
unsafe fn mean<const AXES: usize>(
    axes: &[Axis; AXES],
    nearest: __m256,
    lanes: __mmask8,
    border: __m256,
    at: *const f32,
) -> __m256 {
    // SAFETY: by the caller's promise.
    unsafe {
        let mut sum = _mm512_setzero_pd();
        let mut between = 0;
        let mut step = 0;
        while step < 1 << AXES {
            let mut weight = axes[0].weights[step & 1];
            let mut counts = if step & 1 == 1 { axes[0].between } else { 0xff };
            let mut i = 1;
            while i < AXES {
                weight = _mm512_mul_pd(weight, axes[i].weights[step >> i & 1]);
                counts &= if step >> i & 1 == 1 { axes[i].between } else { 0xff };
                i += 1;
            }
            let counts = counts & lanes;
            if counts != 0 {
                if step != 0 {
                    between |= counts;
                }
                let texel = if step == 0 { nearest } else { texel::<AXES>(axes, step, counts, border, at) };
                sum = add(sum, texel, weight, counts);
            }
            step += 1;
        }
        rounded(sum, 8 * AXES, nearest, between)
    }
}

/// The same of two axes in which all texels lie inside, each beside its neighbour of the first one.
///
/// # Safety
/// As for [`row`].
#[inline(always)]
unsafe fn mean_of_pairs(x: &Axis, y: &Axis, lanes: __mmask8, base: *const f32) -> __m256 {
    // SAFETY: both texels of these lanes may be read.
    unsafe {
        let none = _mm512_setzero_si512();
        let at = [_mm512_add_epi64(x.offsets[0], y.offsets[0]), _mm512_add_epi64(x.offsets[0], y.offsets[1])];
        let upper = _mm512_mask_i64gather_epi64::<1>(none, lanes, at[0], base.cast());
        let lower = _mm512_mask_i64gather_epi64::<1>(none, lanes, at[1], base.cast());
        let nearest = low_words(upper);
        let (both, all) = (x.between & y.between, 0xff);
        let mut sum = _mm512_setzero_pd();
        sum = add(sum, nearest, _mm512_mul_pd(x.weights[0], y.weights[0]), all);
        sum = add(sum, high_words(upper), _mm512_mul_pd(x.weights[1], y.weights[0]), x.between);
        sum = add(sum, low_words(lower), _mm512_mul_pd(x.weights[0], y.weights[1]), y.between);
        sum = add(sum, high_words(lower), _mm512_mul_pd(x.weights[1], y.weights[1]), both);
        rounded(sum, 16, nearest, (x.between | y.between) & lanes)
    }
}

/// # Safety
/// As for [`row`].
#[inline(always)]
unsafe fn low_words(both: __m512i) -> __m256 {
    // SAFETY: by the caller's promise.
    unsafe { _mm256_castsi256_ps(_mm512_cvtepi64_epi32(both)) }
}

/// # Safety
/// As for [`row`].
#[inline(always)]
unsafe fn high_words(both: __m512i) -> __m256 {
    // SAFETY: by the caller's promise.
    unsafe { low_words(_mm512_srli_epi64::<32>(both)) }
}

/// Adds a texel. The product is exact: 24 bits of a texel, at most 24 of a weight. A texel without weight does not count, whatever it is.
///
/// # Safety
/// As for [`row`].
#[inline(always)]
unsafe fn add(sum: __m512d, texel: __m256, weight: __m512d, counts: __mmask8) -> __m512d {
    // SAFETY: by the caller's promise.
    unsafe { _mm512_mask3_fmadd_pd(_mm512_cvtps_pd(texel), weight, sum, counts) }
}

/// The mean by a sum whose weights have so many fraction bits, in lanes that lie between texels.
///
/// # Safety
/// As for [`row`].
#[inline(always)]
unsafe fn rounded(sum: __m512d, bits: usize, nearest: __m256, between: __mmask8) -> __m256 {
    // SAFETY: by the caller's promise.
    unsafe {
        let whole = _mm512_set1_pd(1.0 / (1_u64 << bits) as f64);
        let mean = _mm512_cvtpd_ps(_mm512_mul_pd(sum, whole));
        let is_nan = _mm256_cmp_ps_mask::<_CMP_UNORD_Q>(mean, mean);
        let canonical = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fff_ffff));
        _mm256_mask_mov_ps(nearest, between, _mm256_mask_mov_ps(mean, is_nan, canonical))
    }
}

/// The largest whole numbers that are not larger.
///
/// # Safety
/// As for [`row`].
#[inline(always)]
unsafe fn floor(x: __m512d) -> __m512i {
    // SAFETY: by the caller's promise.
    unsafe { _mm512_cvttpd_epi64(_mm512_roundscale_pd::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(x)) }
}

/// The texels of eight places along an axis whose texels lie `step` bytes apart.
///
/// # Safety
/// As for [`row`].
#[inline(always)]
unsafe fn axis<const LINEAR: bool>(places: __m256, flat: &Flat, number: usize, step: u64) -> Axis {
    let Flat { is_normalized, is_integer, .. } = *flat;
    let (size, mode) = (flat.level.size[number], flat.address[number]);
    // SAFETY: by the caller's promise.
    unsafe {
        // Small numbers would be floats that take a host long.
        let x = if is_integer { _mm512_setzero_pd() } else { _mm512_cvtps_pd(places) };
        let mut x = _mm512_maskz_mov_pd(_mm512_cmp_pd_mask::<_CMP_ORD_Q>(x, x), x);
        if is_normalized {
            x = _mm512_mul_pd(x, _mm512_set1_pd(f64::from(size)));
        }
        let half = _mm512_set1_pd(0.5);
        if LINEAR {
            x = _mm512_sub_pd(x, half);
        }
        x = _mm512_min_pd(_mm512_max_pd(x, _mm512_set1_pd(-FAR)), _mm512_set1_pd(FAR));
        let (first, weight) = if LINEAR {
            let fixed = floor(_mm512_add_pd(_mm512_mul_pd(x, _mm512_set1_pd(ONE as f64)), half));
            (_mm512_srai_epi64::<8>(fixed), _mm512_and_si512(fixed, _mm512_set1_epi64(ONE - 1)))
        } else if is_integer {
            (_mm512_cvtepi32_epi64(_mm256_castps_si256(places)), _mm512_setzero_si512())
        } else {
            (floor(x), _mm512_setzero_si512())
        };
        let between = _mm512_test_epi64_mask(weight, weight);
        let neighbours = _mm512_cmplt_epu64_mask(first, _mm512_set1_epi64(i64::from(size) - 1));
        let (a, a_inside) = within(first, size, mode, is_normalized);
        let (mut b, mut b_inside) = (a, a_inside);
        if LINEAR {
            let second = _mm512_mask_add_epi64(first, between, first, _mm512_set1_epi64(1));
            (b, b_inside) = within(second, size, mode, is_normalized);
        }
        let step = _mm512_set1_epi64(step.cast_signed());
        let second_weight = _mm512_cvtepi64_pd(weight);
        Axis {
            offsets: [_mm512_mullo_epi64(a, step), _mm512_mullo_epi64(b, step)],
            inside: [a_inside, b_inside],
            neighbours,
            weights: [_mm512_sub_pd(_mm512_set1_pd(ONE as f64), second_weight), second_weight],
            between,
        }
    }
}

/// The texels that are read for those that may lie outside, and lanes that read no border.
///
/// # Safety
/// As for [`row`].
#[inline(always)]
unsafe fn within(texel: __m512i, size: u32, mode: AddressMode, is_normalized: bool) -> (__m512i, __mmask8) {
    let size = i64::from(size);
    // SAFETY: by the caller's promise.
    unsafe {
        let inside = _mm512_cmplt_epu64_mask(texel, _mm512_set1_epi64(size));
        if inside == 0xff {
            return (texel, inside);
        }
        match mode {
            AddressMode::ClampToBorder => (texel, inside),
            AddressMode::Wrap if is_normalized => (remainder(texel, size), 0xff),
            AddressMode::Mirror if is_normalized => {
                let there = remainder(texel, 2 * size);
                (_mm512_min_epi64(there, _mm512_sub_epi64(_mm512_set1_epi64(2 * size - 1), there)), 0xff)
            }
            _ => {
                let least = _mm512_max_epi64(texel, _mm512_setzero_si512());
                (_mm512_min_epi64(least, _mm512_set1_epi64(size - 1)), 0xff)
            }
        }
    }
}

/// What is left of whole numbers up to 2^41 after division by a size, from 0 on.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
fn remainder(x: __m512i, size: i64) -> __m512i {
    let (wide, by) = (_mm512_cvtepi64_pd(x), _mm512_set1_pd(size as f64));
    // The quotient is rounded, so it may be one off. The difference is exact: all numbers here have less than 53 bits.
    let quotient = _mm512_roundscale_pd::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(_mm512_div_pd(wide, by));
    let rest = _mm512_cvttpd_epi64(_mm512_fnmadd_pd(quotient, by, wide));
    let (none, size) = (_mm512_setzero_si512(), _mm512_set1_epi64(size));
    let rest = _mm512_mask_add_epi64(rest, _mm512_cmplt_epi64_mask(rest, none), rest, size);
    _mm512_mask_sub_epi64(rest, _mm512_cmpge_epi64_mask(rest, size), rest, size)
}

#[cfg(test)]
mod tests {
    use handloom_interp::pace::splitmix;
    use handloom_ir::num::image::{self, Asked, Image, Kind, Object, Sampler, Texels};
    use handloom_ir::simt::{Fetch, Geometry, Lod};

    use super::*;

    /// Memory of the process.
    struct Plain;

    impl Texels for Plain {
        fn read(&mut self, address: u64, bytes: u32) -> u64 {
            assert_eq!(bytes, 4, "texels are words");
            // SAFETY: the addresses are those of texels of the test.
            u64::from(unsafe { std::ptr::with_exposed_provenance::<u32>(address as usize).read_unaligned() })
        }

        fn write(&mut self, _: u64, _: u32, _: u64) {
            unreachable!("fetches write nothing")
        }
    }

    /// All dimensions, filters, modes, channels and counts of components, texels of any bits, coordinates inside, at edges and far outside, some lanes or all.
    #[test]
    fn fetches_are_what_the_definition_says() {
        let host = Host::detect();
        let mut state = 3;
        let mut next = || splitmix(&mut state);
        for _ in 0..4000 {
            let words: Vec<u32> =
                (0..1024).map(|_| if next() % 8 == 0 { next() as u32 } else { (next() as f32).to_bits() }).collect();
            let dims = 1 + (next() % 3) as usize;
            let geometry = [Geometry::D1, Geometry::D2, Geometry::D3][dims - 1];
            let size: [u32; 3] = std::array::from_fn(|i| if i < dims { 1 + (next() % 6) as u32 } else { 1 });
            let components = [1_u8, 2, 4][(next() % 3) as usize];
            let image = Image {
                base: words.as_ptr().expose_provenance() as u64,
                size,
                dims: dims as u8,
                components,
                channel: [Channel::F32, Channel::U32, Channel::S32][(next() % 3) as usize],
                is_linear: next() % 2 == 0,
                pitch: (u64::from(size[0]) * u64::from(components) + next() % 2) * 4,
                rows: size[1],
                ..Image::default()
            };
            let sampler = Sampler {
                is_normalized: next() % 2 == 0,
                filter: Filter::ALL[(next() % 2) as usize],
                address: std::array::from_fn(|_| AddressMode::ALL[(next() % 5) as usize]),
                border: std::array::from_fn(|_| f32::from_bits(next() as u32)),
                ..Sampler::default()
            };
            let texture = Object { kind: Kind::Texture, image, sampler };
            let f = Fetch {
                geometry,
                is_float: next() % 3 > 0,
                lod: Lod::Base,
                has_sampler: false,
                has_offsets: false,
                has_depth: false,
                gather: None,
            };
            let mask = if next() % 2 == 0 { u32::MAX } else { next() as u32 };
            let mut coordinate = || match next() % 8 {
                1.. if !f.is_float => ((next() % 9) as u32).wrapping_sub(1),
                0 => next() as u32,
                1 => ((next() % 9) as f32 + 0.5).to_bits(),
                2 => ((next() % 64) as f32 / 32.0 - 0.5).to_bits(),
                3 => (-((next() % 4096) as f32) / 256.0).to_bits(),
                _ => ((next() % 4096) as f32 / 512.0).to_bits(),
            };
            let coordinates: [Row; 3] = std::array::from_fn(|_| std::array::from_fn(|_| coordinate()));
            let flat = Flat::new(&texture, &sampler, f).expect("it is one of those that are done by rows");
            if !is_here(&host, &flat) {
                return;
            }
            let mut rows = [[0; 32]; 4];
            // SAFETY: the host has the features; the largest texture has 6 rows of 6 slices of 25 words.
            unsafe {
                let from = coordinates.each_ref().map(std::ptr::from_ref);
                fetch(&flat, &from, mask, &rows.each_mut().map(std::ptr::from_mut));
            }
            for l in (0..32).filter(|l| mask >> l & 1 == 1) {
                let place: Vec<u32> = coordinates[..dims].iter().map(|c| c[l]).collect();
                let asked = Asked { coordinates: &place, ..Asked::default() };
                let lane = image::fetch(&texture, &sampler, f, &asked, &mut Plain);
                assert_eq!(rows.map(|r| r[l]), lane, "lane {l} at {place:x?}: {texture:?}");
            }
        }
    }
}
