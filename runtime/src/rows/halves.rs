//! Rows of 16-bit floats, computed in `.f32`, and the smaller or larger of two floats.
//!
//! Why the bits are those of `num`, which computes in `.f64` and rounds once: sums and products of two `.f16` or `.bf16` numbers that are
//! rounded to the 24 bits of `.f32` first and then to 11 or 8 come out as if rounded once, since 24 is at least twice the width and two
//! more. Sums that are subnormal are exact. Products of `.f16` are exact; those of `.bf16` are left to `num` where they are so small that
//! `.f32` loses bits. A fused multiply-add has an exact product, and its sum is rounded to odd before it is rounded to nearest.

use std::arch::x86_64::{
    __m128i, __m256, __m256i, _MM_FROUND_TO_NEAREST_INT, _mm256_castsi256_si128, _mm256_cvtepu16_epi32,
    _mm256_cvtph_ps, _mm256_cvtps_ph, _mm256_packus_epi32, _mm256_permute4x64_epi64,
};
use std::mem::transmute;

use handloom_ir::num;
use handloom_ir::simt::{FMode, Pure};
use handloom_ir::types::{Float, Rounding};

use super::fast::{Row, map, zip};

/// A row of `.f32` values.
type Floats = [f32; 32];

const SIGN: u32 = 0x8000;
const CANONICAL: u32 = 0x7fff;

/// Whether [`binary`] and [`fma`] know the type and rounding.
pub(super) fn is_half(m: FMode) -> bool {
    matches!(m.ty, Float::F16 | Float::BF16 | Float::F16x2 | Float::BF16x2) && m.round == Rounding::Nearest
}

/// The exact values of `.f16` numbers; a NaN is one of some kind.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,lzcnt,popcnt")]
pub(super) fn widen_f16(row: &Row) -> Floats {
    let mut out = [0.0; 32];
    for (to, from) in out.as_chunks_mut::<8>().0.iter_mut().zip(row.as_chunks::<8>().0) {
        // SAFETY: eight words and a vector of them have the same size, and any bits are right for both.
        let words = unsafe { transmute::<[u32; 8], __m256i>(*from) };
        // Packing works on both halves of the vector on its own; the permutation brings the two results together.
        let packed = _mm256_permute4x64_epi64::<0b1000>(_mm256_packus_epi32(words, words));
        let wide = _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
        // SAFETY: as above.
        *to = unsafe { transmute::<__m256, [f32; 8]>(wide) };
    }
    out
}

/// Rounds to `.f16`, to nearest; NaN is canonical.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,lzcnt,popcnt")]
pub(super) fn narrow_f16(row: &Floats) -> Row {
    let mut out = [0; 32];
    for (to, from) in out.as_chunks_mut::<8>().0.iter_mut().zip(row.as_chunks::<8>().0) {
        // SAFETY: as in `widen_f16`.
        let wide = unsafe { transmute::<[f32; 8], __m256>(*from) };
        let narrow: __m128i = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(wide);
        // SAFETY: as in `widen_f16`.
        *to = unsafe { transmute::<__m256i, [u32; 8]>(_mm256_cvtepu16_epi32(narrow)) };
    }
    map(&out, |a| if a & CANONICAL > 0x7c00 { CANONICAL } else { a })
}

/// Rounds the bits of an `.f32` to `.bf16`, to nearest; NaN is canonical.
#[inline(always)]
pub(super) fn narrow_bf16(a: u32) -> u32 {
    let rounded = a.wrapping_add(0x7fff + (a >> 16 & 1)) >> 16;
    if a << 1 > 0xff00_0000 { CANONICAL } else { rounded }
}

/// What the two formats differ in, as bits.
#[derive(Clone, Copy)]
struct Half {
    is_f16: bool,
    infinite: u32,
    one: u32,
    /// Magnitudes below become zero.
    tiny: u32,
}

impl Half {
    fn of(m: FMode) -> Half {
        let is_f16 = matches!(m.ty, Float::F16 | Float::F16x2);
        let (infinite, one, least) = if is_f16 { (0x7c00, 0x3c00, 0x400) } else { (0x7f80, 0x3f80, 0x80) };
        Half { is_f16, infinite, one, tiny: if m.ftz { least } else { 0 } }
    }

    #[inline(always)]
    fn flush(self, a: u32) -> u32 {
        if a & CANONICAL < self.tiny { a & SIGN } else { a }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c,lzcnt,popcnt")]
    fn widen(self, row: &Row) -> Floats {
        let flushed = map(row, |a| self.flush(a));
        if self.is_f16 { widen_f16(&flushed) } else { map(&flushed, |a| f32::from_bits(a << 16)) }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c,lzcnt,popcnt")]
    fn narrow(self, m: FMode, row: &Floats) -> Row {
        let rounded = if self.is_f16 { narrow_f16(row) } else { map(row, |a| narrow_bf16(a.to_bits())) };
        map(&rounded, |a| {
            if a & CANONICAL > self.infinite {
                return if m.sat { 0 } else { CANONICAL };
            }
            let a = self.flush(a);
            if (m.sat || m.relu) && a & SIGN != 0 {
                0
            } else if m.sat {
                a.min(self.one)
            } else {
                a
            }
        })
    }
}

/// Does `op` for the elements of each value: `op` takes and gives rows of one element.
#[inline(always)]
fn each<const N: usize>(ty: Float, src: [&Row; N], op: impl Fn([Row; N]) -> Row) -> Row {
    let low = op(src.map(|r| map(r, |a| a & 0xffff)));
    if ty.element() == ty {
        return low;
    }
    let high = op(src.map(|r| map(r, |a| a >> 16)));
    zip(&low, &high, |low, high| low | high << 16)
}

/// `num`'s own way for each lane.
fn by_num<const N: usize>(op: Pure, src: &[Row; N]) -> Row {
    std::array::from_fn(|l| num::eval(op, &src.map(|r| u64::from(r[l])))[0] as u32)
}

/// The op on one element.
fn on_element(op: Pure) -> Pure {
    let one = |m: FMode| FMode { ty: m.ty.element(), ..m };
    match op {
        Pure::FMul(m) => Pure::FMul(one(m)),
        Pure::FFma(m) => Pure::FFma(one(m)),
        other => other,
    }
}

/// Sums, differences and products.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,lzcnt,popcnt")]
pub(super) fn binary(op: Pure, m: FMode, a: &Row, b: &Row) -> Row {
    let half = Half::of(m);
    let turn = if matches!(op, Pure::FSub(_)) { SIGN } else { 0 };
    let is_product = matches!(op, Pure::FMul(_));
    each(m.ty, [a, b], |[a, b]| {
        let (x, y) = (half.widen(&a), half.widen(&map(&b, |b| b ^ turn)));
        let results = if is_product { zip(&x, &y, |x, y| x * y) } else { zip(&x, &y, |x, y| x + y) };
        if is_product && !half.is_f16 && (0..32).fold(false, |any, l| any | loses_bits(x[l], y[l], results[l])) {
            return by_num(on_element(op), &[a, b]);
        }
        half.narrow(m, &results)
    })
}

/// Whether a product of two `.bf16` numbers may not be exact in `.f32`.
#[inline(always)]
fn loses_bits(x: f32, y: f32, product: f32) -> bool {
    let least = f32::from_bits(7 << 23); // 2^-120: 16 bits below it are a number of `.f32`.
    product.abs() < least && x != 0.0 && y != 0.0
}

/// `a * b + d` with one rounding.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,lzcnt,popcnt")]
pub(super) fn fma(m: FMode, a: &Row, b: &Row, d: &Row) -> Row {
    let half = Half::of(m);
    each(m.ty, [a, b, d], |src| {
        let [x, y, z] = [half.widen(&src[0]), half.widen(&src[1]), half.widen(&src[2])];
        let products = zip(&x, &y, |x, y| x * y);
        // A product that leaves the range of `.f32` may come back into it with the sum.
        let leaves = |l: usize| products[l].abs() > f32::MAX / 4.0 || loses_bits(x[l], y[l], products[l]);
        if !half.is_f16 && (0..32).fold(false, |any, l| any | leaves(l)) {
            return by_num(on_element(Pure::FFma(m)), &src);
        }
        half.narrow(m, &zip(&products, &z, sum_to_odd))
    })
}

/// A sum that, where it is inexact, is the neighbour whose last bit is one: see `num`.
#[inline(always)]
fn sum_to_odd(a: f32, b: f32) -> f32 {
    let sum = a + b;
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    let bits = sum.to_bits();
    let is_kept = !sum.is_finite() || error == 0.0 || bits & 1 != 0;
    let odd = if (error > 0.0) == (sum > 0.0) { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    if is_kept { sum } else { f32::from_bits(odd) }
}

/// The smaller or larger of two values, by bits, if the elements have at most 32.
pub(super) fn min_max(ty: Float, ftz: bool, nan: bool, max: bool) -> Option<impl Fn([u32; 2]) -> u32> {
    let (sign, infinite, least) = match ty.element() {
        Float::F16 => (1 << 15, 0x7c00, 0x400),
        Float::BF16 => (1 << 15, 0x7f80, 0x80),
        Float::F32 if ty == Float::F32 => (1_u32 << 31, 0x7f80_0000, 0x0080_0000),
        _ => return None,
    };
    let tiny = if ftz { least } else { 0 };
    let one = move |a: u32, b: u32| {
        let flush = |a: u32| if a & (sign - 1) < tiny { a & sign } else { a };
        let (a, b) = (flush(a), flush(b));
        let is_nan = |a: u32| a & (sign - 1) > infinite;
        // Orders numbers as integers, -0 below +0.
        let key = |a: u32| {
            let code = (a & (sign - 1)).cast_signed();
            if a & sign != 0 { !code } else { code }
        };
        let picked = if (key(a) < key(b)) != max { a } else { b };
        let picked = if is_nan(a) {
            b
        } else if is_nan(b) {
            a
        } else {
            picked
        };
        let is_none = if nan { is_nan(a) || is_nan(b) } else { is_nan(a) && is_nan(b) };
        if is_none { sign - 1 } else { picked }
    };
    let is_pair = ty.element() != ty;
    let bits = if sign > 1 << 15 { u32::MAX } else { 0xffff };
    Some(move |[a, b]: [u32; 2]| {
        let low = one(a & bits, b & bits);
        if is_pair { low | one(a >> 16, b >> 16) << 16 } else { low }
    })
}
