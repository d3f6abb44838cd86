//! Matrix products on rows, in vector code of the host.
//!
//! The accumulators stay as they lie in the registers of the warp: 32 lanes, of which lane `4 * g + t` has columns `2 * t` and `2 * t + 1` of row
//! `g`. A step adds the products of one depth: each lane of group `g` wants the same element of `a`, which lies in its group, and each lane `t` of
//! all groups the same element of `b`. So an element of `a` is spread over groups of four lanes, and elements of `b` are laid out once for the
//! whole product.
//!
//! Invariants: results are those of `num::matrix`, bit for bit, whatever the sources hold: each lane adds the same products in the same order by
//! the same fused operation, and only the bits of a NaN, which are made canonical at the end, can differ in between. Sums of integers are exact
//! in any order.

use std::arch::x86_64::*;

use handloom_ir::simt::{Accumulator, Element, Product, Step};

use super::fast::{Row, map, zip};
use super::halves::{narrow_f16, widen_f16};

/// Steps of the deepest product: a pair of 4-bit elements each, or one element.
const MAX_STEPS: usize = 32;
/// More registers than any product with vector code has in sources, or in results.
pub(super) const MAX_ROWS: usize = 12;
/// Rows that elements of `a` are laid out in, at most.
const MAX_PLANES: usize = 16;

/// Vectors of the host, and what a step does with them.
trait Vectors {
    type V: Copy;
    /// 32-bit lanes of a vector.
    const LANES: usize;

    /// # Safety
    /// The host has the instructions; `from` has as many words as a vector has lanes.
    unsafe fn load(from: *const u32) -> Self::V;
    /// # Safety
    /// As for `load`.
    unsafe fn store(to: *mut u32, v: Self::V);
    /// Lane `T` of each four lanes in all four of them.
    /// # Safety
    /// The host has the instructions.
    unsafe fn spread<const T: i32>(v: Self::V) -> Self::V;
    /// Four words again and again.
    /// # Safety
    /// The host has the instructions.
    unsafe fn repeat(words: [u32; 4]) -> Self::V;
    /// `a * b + sum` of `.f32`.
    /// # Safety
    /// The host has the instructions.
    unsafe fn fma(a: Self::V, b: Self::V, sum: Self::V) -> Self::V;
    /// The products of both 16-bit halves added to a sum.
    /// # Safety
    /// The host has the instructions.
    unsafe fn dot(a: Self::V, b: Self::V, sum: Self::V) -> Self::V;
}

/// Vectors of 256 bits.
struct Avx2;

impl Vectors for Avx2 {
    type V = __m256i;
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn load(from: *const u32) -> __m256i {
        // SAFETY: by the caller's promise, here and below.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut u32, v: __m256i) {
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(to.cast(), v) }
    }

    #[inline(always)]
    unsafe fn spread<const T: i32>(v: __m256i) -> __m256i {
        // SAFETY: as above.
        unsafe {
            match T {
                0 => _mm256_shuffle_epi32::<0x00>(v),
                1 => _mm256_shuffle_epi32::<0x55>(v),
                2 => _mm256_shuffle_epi32::<0xaa>(v),
                _ => _mm256_shuffle_epi32::<0xff>(v),
            }
        }
    }

    #[inline(always)]
    unsafe fn repeat(words: [u32; 4]) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(words.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn fma(a: __m256i, b: __m256i, sum: __m256i) -> __m256i {
        // SAFETY: as above.
        unsafe {
            _mm256_castps_si256(_mm256_fmadd_ps(
                _mm256_castsi256_ps(a),
                _mm256_castsi256_ps(b),
                _mm256_castsi256_ps(sum),
            ))
        }
    }

    #[inline(always)]
    unsafe fn dot(a: __m256i, b: __m256i, sum: __m256i) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_add_epi32(_mm256_madd_epi16(a, b), sum) }
    }
}

/// Vectors of 512 bits.
struct Avx512;

impl Vectors for Avx512 {
    type V = __m512i;
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn load(from: *const u32) -> __m512i {
        // SAFETY: by the caller's promise, here and below.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut u32, v: __m512i) {
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(to.cast(), v) }
    }

    #[inline(always)]
    unsafe fn spread<const T: i32>(v: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe {
            match T {
                0 => _mm512_shuffle_epi32::<0x00>(v),
                1 => _mm512_shuffle_epi32::<0x55>(v),
                2 => _mm512_shuffle_epi32::<0xaa>(v),
                _ => _mm512_shuffle_epi32::<0xff>(v),
            }
        }
    }

    #[inline(always)]
    unsafe fn repeat(words: [u32; 4]) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(words.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn fma(a: __m512i, b: __m512i, sum: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe {
            _mm512_castps_si512(_mm512_fmadd_ps(
                _mm512_castsi512_ps(a),
                _mm512_castsi512_ps(b),
                _mm512_castsi512_ps(sum),
            ))
        }
    }

    #[inline(always)]
    unsafe fn dot(a: __m512i, b: __m512i, sum: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_add_epi32(_mm512_madd_epi16(a, b), sum) }
    }
}

/// Elements of `a` and `b` as rows of 32-bit words, one for each of the parts of a register that a step takes.
struct Planes {
    a: [Row; MAX_PLANES],
    b: [Row; MAX_PLANES],
    /// Rows of eight of `a`.
    n_rows: usize,
    /// Registers of `b`.
    depth: usize,
    /// Planes of a register.
    parts: usize,
}

/// Adds all products to the accumulators: two columns of a row, then those of the next.
///
/// # Safety
/// The host has the instructions of `W`.
#[inline(always)]
unsafe fn multiply<W: Vectors, const INTEGERS: bool, const N_ROWS: usize>(p: &Planes, sums: &mut [Row; 4]) {
    // SAFETY: the host has the instructions; loads and stores lie in rows of 32 words, as `2 * LANES` divides 32.
    unsafe {
        let zero = W::repeat([0; 4]);
        let mut columns = [[zero; 2]; MAX_STEPS];
        for q in 0..p.depth {
            for t in 0..4 {
                for (e, plane) in p.b[q * p.parts..][..p.parts].iter().enumerate() {
                    let of = |odd: usize| std::array::from_fn(|i| plane[4 * (2 * i + odd) + t]);
                    columns[(4 * q + t) * p.parts + e] = [W::repeat(of(0)), W::repeat(of(1))];
                }
            }
        }
        for first in (0..32).step_by(2 * W::LANES) {
            let mut acc = [[zero; 2]; 4];
            for (acc, row) in acc.iter_mut().zip(&*sums).take(2 * N_ROWS) {
                *acc = [0, 1].map(|u| W::load(row[first + u * W::LANES..].as_ptr()));
            }
            for q in 0..p.depth {
                let a = &p.a[q * N_ROWS * p.parts..][..N_ROWS * p.parts];
                let columns = &columns[4 * q * p.parts..][..4 * p.parts];
                steps::<W, INTEGERS, N_ROWS, 0>(a, columns, first, &mut acc);
                steps::<W, INTEGERS, N_ROWS, 1>(a, columns, first, &mut acc);
                steps::<W, INTEGERS, N_ROWS, 2>(a, columns, first, &mut acc);
                steps::<W, INTEGERS, N_ROWS, 3>(a, columns, first, &mut acc);
            }
            for (acc, row) in acc.iter().zip(&mut *sums).take(2 * N_ROWS) {
                acc.iter().enumerate().for_each(|(u, v)| W::store(row[first + u * W::LANES..].as_mut_ptr(), *v));
            }
        }
    }
}

/// The steps of lane `T` of each group: `a` and `columns` are those of one register.
///
/// # Safety
/// As for `multiply`.
#[inline(always)]
unsafe fn steps<W: Vectors, const INTEGERS: bool, const N_ROWS: usize, const T: i32>(
    a: &[Row],
    columns: &[[W::V; 2]],
    first: usize,
    acc: &mut [[W::V; 2]; 4],
) {
    let parts = a.len() / N_ROWS;
    for (e, column) in columns[T as usize * parts..][..parts].iter().enumerate() {
        for h in 0..N_ROWS {
            for u in 0..2 {
                let plane = &a[h * parts + e];
                // SAFETY: as in `multiply`.
                unsafe {
                    let a = W::spread::<T>(W::load(plane[first + u * W::LANES..].as_ptr()));
                    for odd in 0..2 {
                        let sum = &mut acc[2 * h + odd][u];
                        *sum = if INTEGERS { W::dot(a, column[odd], *sum) } else { W::fma(a, column[odd], *sum) };
                    }
                }
            }
        }
    }
}

/// How wide the vectors of this host are that products are computed in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Width {
    Avx2,
    Avx512,
}

impl Width {
    /// Those that this host has, the widest first.
    pub(super) fn of_host() -> &'static [Width] {
        let has_avx2 =
            is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c");
        let has_avx512 = has_avx2 && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
        match (has_avx2, has_avx512) {
            (_, true) => &[Width::Avx512, Width::Avx2],
            (true, false) => &[Width::Avx2],
            (false, false) => &[],
        }
    }
}

/// Computes a product if there is vector code for it. `src` has the registers of `a`, `b` and `c`; `dst` one row for each register of `d`.
pub(super) fn product(width: Width, p: Product, src: &[Row], dst: &mut [Row]) -> bool {
    let is_integer = p.d == Accumulator::S32;
    if p.d == Accumulator::F64 || p.a == Element::B1 {
        return false;
    }
    debug_assert!(Width::of_host().contains(&width), "{width:?} is not of this host");
    // SAFETY: the host has the instructions, or `of_host` had not named the width.
    unsafe {
        if is_integer {
            integers(width, p, src, dst);
        } else {
            floats(width, p, src, dst);
        }
    }
    true
}

#[target_feature(enable = "avx2,fma,f16c,lzcnt,popcnt")]
fn floats(width: Width, p: Product, src: &[Row], dst: &mut [Row]) {
    let parts = p.a.per_register();
    let planes = Planes::new(p, parts, src, |e, row, part| {
        let wide = |row: &Row| map(&widen_f16(row), f32::to_bits);
        match (e, part) {
            (Element::F16, _) => wide(&map(row, |w| w >> (16 * part) & 0xffff)),
            (Element::Bf16, 0) => map(row, |w| w << 16),
            (Element::Bf16, _) => map(row, |w| w & 0xffff_0000),
            // An `.e5m2` is the upper half of an `.f16`.
            (Element::E5m2, _) => wide(&map(row, |w| (w >> (8 * part) & 0xff) << 8)),
            (Element::E4m3, _) => map(row, |w| {
                let (sign, code) = (w >> (8 * part) & 0x80, w >> (8 * part) & 0x7f);
                // The same fraction below an exponent that is 120 too small, subnormal numbers among them.
                let value = f32::from_bits(code << 20) * f32::from_bits((127 + 120) << 23);
                (if code == 0x7f { 0x7fff_ffff } else { value.to_bits() }) | sign << 24
            }),
            _ => map(row, |w| w & 0xffff_e000),
        }
    });
    let c = &src[src.len() - p.registers()[2]..];
    let mut sums = [[0; 32]; 4];
    for (i, sum) in sums.iter_mut().enumerate().take(2 * p.n_rows()) {
        *sum = match p.c {
            Accumulator::F16 => map(&widen_f16(&map(&c[i / 2], |w| w >> (16 * (i % 2)) & 0xffff)), f32::to_bits),
            _ => c[i],
        };
    }
    // SAFETY: by the caller's promise the host has the instructions of the width.
    unsafe { planes.multiply::<false>(width, &mut sums) }
    let n = 2 * p.n_rows();
    if p.d == Accumulator::F16 {
        for (to, pair) in dst.iter_mut().zip(sums[..n].chunks_exact(2)) {
            let half = |row: &Row| narrow_f16(&map(row, f32::from_bits));
            *to = zip(&half(&pair[0]), &half(&pair[1]), |low, high| low | high << 16);
        }
    } else {
        for (to, sum) in dst.iter_mut().zip(&sums[..n]) {
            *to = map(sum, |bits| if bits << 1 > 0xff00_0000 { 0x7fff_ffff } else { bits });
        }
    }
}

#[target_feature(enable = "avx2,fma,f16c,lzcnt,popcnt")]
fn integers(width: Width, p: Product, src: &[Row], dst: &mut [Row]) {
    let bits = p.a.bits();
    let parts = p.a.per_register() / 2;
    let planes = Planes::new(p, parts, src, |e, row, part| {
        let at = 2 * part as u32 * bits;
        let signed = matches!(e, Element::S8 | Element::S4);
        let one = |word: u32, at: u32| {
            let top = word << (32 - bits - at);
            let value = if signed { (top.cast_signed() >> (32 - bits)).cast_unsigned() } else { top >> (32 - bits) };
            value & 0xffff
        };
        map(row, |w| one(w, at) | one(w, at + bits) << 16)
    });
    let mut sums = [[0; 32]; 4];
    // SAFETY: by the caller's promise the host has the instructions of the width.
    unsafe { planes.multiply::<true>(width, &mut sums) }
    let c = &src[src.len() - p.registers()[2]..];
    for ((to, sum), c) in dst.iter_mut().zip(&sums).zip(c) {
        *to = match p.step {
            Step::AddSaturating => zip(sum, c, |a, b| a.cast_signed().saturating_add(b.cast_signed()).cast_unsigned()),
            _ => zip(sum, c, u32::wrapping_add),
        };
    }
}

impl Planes {
    /// Lays the registers of `a` and `b` out. `plane` makes a part of a row of a matrix.
    #[inline(always)]
    fn new(p: Product, parts: usize, src: &[Row], plane: impl Fn(Element, &Row, usize) -> Row) -> Planes {
        let [n_a, n_b, _, _] = p.registers();
        let (a, b) = (&src[..n_a], &src[n_a..n_a + n_b]);
        let mut planes =
            Planes { a: [[0; 32]; MAX_PLANES], b: [[0; 32]; MAX_PLANES], n_rows: p.n_rows(), depth: n_b, parts };
        // Those of a row of eight follow each other within a register of the depth.
        for (i, row) in a.iter().enumerate() {
            (0..parts).for_each(|e| planes.a[i * parts + e] = plane(p.a, row, e));
        }
        for (i, row) in b.iter().enumerate() {
            (0..parts).for_each(|e| planes.b[i * parts + e] = plane(p.b, row, e));
        }
        planes
    }

    /// # Safety
    /// The host has the instructions of the width.
    unsafe fn multiply<const INTEGERS: bool>(&self, width: Width, sums: &mut [Row; 4]) {
        // SAFETY: by the caller's promise.
        unsafe {
            match (width, self.n_rows) {
                (Width::Avx2, 1) => by_avx2::<INTEGERS, 1>(self, sums),
                (Width::Avx2, _) => by_avx2::<INTEGERS, 2>(self, sums),
                (Width::Avx512, 1) => by_avx512::<INTEGERS, 1>(self, sums),
                (Width::Avx512, _) => by_avx512::<INTEGERS, 2>(self, sums),
            }
        }
    }
}

#[target_feature(enable = "avx2,fma,f16c,lzcnt,popcnt")]
fn by_avx2<const INTEGERS: bool, const N_ROWS: usize>(p: &Planes, sums: &mut [Row; 4]) {
    // SAFETY: this function has the features.
    unsafe { multiply::<Avx2, INTEGERS, N_ROWS>(p, sums) }
}

#[target_feature(enable = "avx512f,avx512bw,avx2,fma,f16c,lzcnt,popcnt")]
fn by_avx512<const INTEGERS: bool, const N_ROWS: usize>(p: &Planes, sums: &mut [Row; 4]) {
    // SAFETY: this function has the features.
    unsafe { multiply::<Avx512, INTEGERS, N_ROWS>(p, sums) }
}

#[cfg(test)]
mod tests;
