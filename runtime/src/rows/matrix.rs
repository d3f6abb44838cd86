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
//!
//! What is generic over the vectors is inlined into one function for each kind of host, which has the features; closures and functions of the
//! standard library would not be.

#![allow(
    clippy::needless_range_loop,
    reason = "iterators with closures are not inlined into functions that have features of the host"
)]

mod halves;

use std::arch::x86_64::*;
use std::cell::RefCell;
use std::sync::OnceLock;

use handloom_ir::simt::{Accumulator, Element, Product, Step};
use handloom_plan::Host;

use super::fast::{Row, map, zip};
use super::halves::narrow_f16;

/// More registers than any product with vector code has in sources, or in results.
pub(super) const MAX_ROWS: usize = 12;
/// Rows that elements of a matrix are laid out in, at most.
const MAX_PLANES: usize = 16;
const CANONICAL: u32 = 0x7fff_ffff;

/// Vectors of the host, and what products do with them.
///
/// # Safety
/// All functions: the host has the instructions. `load` and `store`: there are as many words as a vector has lanes.
trait Vectors {
    type V: Copy;
    /// 32-bit lanes of a vector.
    const LANES: usize;

    unsafe fn load(from: *const u32) -> Self::V;
    unsafe fn store(to: *mut u32, v: Self::V);
    /// Lane `T` of each four lanes in all four of them.
    unsafe fn spread<const T: i32>(v: Self::V) -> Self::V;
    unsafe fn zero() -> Self::V;
    /// What lanes `i` of each four want of a row: word `8 * i + at`.
    unsafe fn column(row: *const u32, at: usize) -> Self::V;
    unsafe fn and(v: Self::V, mask: u32) -> Self::V;
    unsafe fn or(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn left(v: Self::V, by: u32) -> Self::V;
    unsafe fn right(v: Self::V, by: u32) -> Self::V;
    /// To the right with copies of the sign.
    unsafe fn down(v: Self::V, by: u32) -> Self::V;
    /// `.f16` in the lower halves, whose upper halves are zero, as `.f32`.
    unsafe fn widen(v: Self::V) -> Self::V;
    /// Product with an `.f32`.
    unsafe fn scale(v: Self::V, by: f32) -> Self::V;
    /// The canonical NaN in lanes where `v` is `code`, else `other`.
    unsafe fn nan_where(v: Self::V, code: u32, other: Self::V) -> Self::V;
    /// With canonical NaNs.
    unsafe fn canonical(v: Self::V) -> Self::V;
    /// `a * b + sum` of `.f32`.
    unsafe fn fma(a: Self::V, b: Self::V, sum: Self::V) -> Self::V;
    /// The products of both signed 16-bit halves added to a sum.
    unsafe fn dot(a: Self::V, b: Self::V, sum: Self::V) -> Self::V;
    /// The sums of `.bf16` or `.f16` with canonical NaNs. They start from `c` if that has `.f32`, else from what `planes.sums` holds, and go to
    /// `out`, whose rows may be those of sources, or to `planes.sums`.
    unsafe fn halves<const N_ROWS: usize, const IS_BF16: bool>(
        p: Product,
        src: &[*const Row],
        planes: &mut Planes,
        out: Option<&Sums>,
    );
}

/// Vectors of 256 bits.
struct Avx2;

impl Vectors for Avx2 {
    type V = __m256i;
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn load(from: *const u32) -> __m256i {
        // SAFETY: by the promise of the caller.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut u32, v: __m256i) {
        // SAFETY: by the promise of the caller.
        unsafe { _mm256_storeu_si256(to.cast(), v) }
    }

    #[inline(always)]
    unsafe fn spread<const T: i32>(v: __m256i) -> __m256i {
        // SAFETY: by the promise of the caller.
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
    unsafe fn zero() -> __m256i {
        // SAFETY: by the promise of the caller.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    unsafe fn column(row: *const u32, at: usize) -> __m256i {
        // SAFETY: by the promise of the caller.
        unsafe {
            let word = |i: usize| row.add(8 * i + at).read().cast_signed();
            _mm256_broadcastsi128_si256(_mm_setr_epi32(word(0), word(1), word(2), word(3)))
        }
    }

    #[inline(always)]
    unsafe fn and(v: __m256i, mask: u32) -> __m256i {
        // SAFETY: by the promise of the caller.
        unsafe { _mm256_and_si256(v, _mm256_set1_epi32(mask.cast_signed())) }
    }

    #[inline(always)]
    unsafe fn or(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: by the promise of the caller.
        unsafe { _mm256_or_si256(a, b) }
    }

    #[inline(always)]
    unsafe fn left(v: __m256i, by: u32) -> __m256i {
        // SAFETY: by the promise of the caller.
        unsafe { _mm256_sll_epi32(v, _mm_cvtsi32_si128(by.cast_signed())) }
    }

    #[inline(always)]
    unsafe fn right(v: __m256i, by: u32) -> __m256i {
        // SAFETY: by the promise of the caller.
        unsafe { _mm256_srl_epi32(v, _mm_cvtsi32_si128(by.cast_signed())) }
    }

    #[inline(always)]
    unsafe fn down(v: __m256i, by: u32) -> __m256i {
        // SAFETY: by the promise of the caller.
        unsafe { _mm256_sra_epi32(v, _mm_cvtsi32_si128(by.cast_signed())) }
    }

    #[inline(always)]
    unsafe fn widen(v: __m256i) -> __m256i {
        // SAFETY: by the promise of the caller.
        unsafe {
            let words = _mm256_permute4x64_epi64::<0b1000>(_mm256_packus_epi32(v, v));
            _mm256_castps_si256(_mm256_cvtph_ps(_mm256_castsi256_si128(words)))
        }
    }

    #[inline(always)]
    unsafe fn scale(v: __m256i, by: f32) -> __m256i {
        // SAFETY: by the promise of the caller.
        unsafe { _mm256_castps_si256(_mm256_mul_ps(_mm256_castsi256_ps(v), _mm256_set1_ps(by))) }
    }

    #[inline(always)]
    unsafe fn nan_where(v: __m256i, code: u32, other: __m256i) -> __m256i {
        // SAFETY: by the promise of the caller.
        unsafe {
            let is = _mm256_cmpeq_epi32(v, _mm256_set1_epi32(code.cast_signed()));
            _mm256_blendv_epi8(other, _mm256_set1_epi32(CANONICAL.cast_signed()), is)
        }
    }

    #[inline(always)]
    unsafe fn canonical(v: __m256i) -> __m256i {
        // SAFETY: by the promise of the caller.
        unsafe {
            let is = _mm256_cmp_ps::<_CMP_UNORD_Q>(_mm256_castsi256_ps(v), _mm256_castsi256_ps(v));
            _mm256_castps_si256(_mm256_blendv_ps(
                _mm256_castsi256_ps(v),
                _mm256_castsi256_ps(_mm256_set1_epi32(CANONICAL.cast_signed())),
                is,
            ))
        }
    }

    #[inline(always)]
    unsafe fn fma(a: __m256i, b: __m256i, sum: __m256i) -> __m256i {
        // SAFETY: by the promise of the caller.
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
        // SAFETY: by the promise of the caller.
        unsafe { _mm256_add_epi32(_mm256_madd_epi16(a, b), sum) }
    }

    #[inline(always)]
    unsafe fn halves<const N_ROWS: usize, const IS_BF16: bool>(
        p: Product,
        src: &[*const Row],
        planes: &mut Planes,
        out: Option<&Sums>,
    ) {
        // SAFETY: by the promise of the caller.
        unsafe { halves::by_256::<N_ROWS, IS_BF16>(p, src, planes, out) }
    }
}

/// Where the lanes find the words of [`Vectors::column`].
static COLUMNS: [[u32; 16]; 8] = {
    let mut table = [[0; 16]; 8];
    let mut i = 0;
    while i < 128 {
        table[i / 16][i % 16] = 8 * (i as u32 % 4) + i as u32 / 16;
        i += 1;
    }
    table
};

/// Vectors of 512 bits.
struct Avx512;

impl Vectors for Avx512 {
    type V = __m512i;
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn load(from: *const u32) -> __m512i {
        // SAFETY: by the promise of the caller.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut u32, v: __m512i) {
        // SAFETY: by the promise of the caller.
        unsafe { _mm512_storeu_si512(to.cast(), v) }
    }

    #[inline(always)]
    unsafe fn spread<const T: i32>(v: __m512i) -> __m512i {
        // SAFETY: by the promise of the caller.
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
    unsafe fn zero() -> __m512i {
        // SAFETY: by the promise of the caller.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    unsafe fn column(row: *const u32, at: usize) -> __m512i {
        // SAFETY: by the promise of the caller; a row has two vectors.
        unsafe {
            let (low, high) = (_mm512_loadu_si512(row.cast()), _mm512_loadu_si512(row.add(16).cast()));
            _mm512_permutex2var_epi32(low, _mm512_loadu_si512(COLUMNS[at].as_ptr().cast()), high)
        }
    }

    #[inline(always)]
    unsafe fn and(v: __m512i, mask: u32) -> __m512i {
        // SAFETY: by the promise of the caller.
        unsafe { _mm512_and_si512(v, _mm512_set1_epi32(mask.cast_signed())) }
    }

    #[inline(always)]
    unsafe fn or(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: by the promise of the caller.
        unsafe { _mm512_or_si512(a, b) }
    }

    #[inline(always)]
    unsafe fn left(v: __m512i, by: u32) -> __m512i {
        // SAFETY: by the promise of the caller.
        unsafe { _mm512_sll_epi32(v, _mm_cvtsi32_si128(by.cast_signed())) }
    }

    #[inline(always)]
    unsafe fn right(v: __m512i, by: u32) -> __m512i {
        // SAFETY: by the promise of the caller.
        unsafe { _mm512_srl_epi32(v, _mm_cvtsi32_si128(by.cast_signed())) }
    }

    #[inline(always)]
    unsafe fn down(v: __m512i, by: u32) -> __m512i {
        // SAFETY: by the promise of the caller.
        unsafe { _mm512_sra_epi32(v, _mm_cvtsi32_si128(by.cast_signed())) }
    }

    #[inline(always)]
    unsafe fn widen(v: __m512i) -> __m512i {
        // SAFETY: by the promise of the caller.
        unsafe { _mm512_castps_si512(_mm512_cvtph_ps(_mm512_cvtepi32_epi16(v))) }
    }

    #[inline(always)]
    unsafe fn scale(v: __m512i, by: f32) -> __m512i {
        // SAFETY: by the promise of the caller.
        unsafe { _mm512_castps_si512(_mm512_mul_ps(_mm512_castsi512_ps(v), _mm512_set1_ps(by))) }
    }

    #[inline(always)]
    unsafe fn nan_where(v: __m512i, code: u32, other: __m512i) -> __m512i {
        // SAFETY: by the promise of the caller.
        unsafe {
            let is = _mm512_cmpeq_epi32_mask(v, _mm512_set1_epi32(code.cast_signed()));
            _mm512_mask_mov_epi32(other, is, _mm512_set1_epi32(CANONICAL.cast_signed()))
        }
    }

    #[inline(always)]
    unsafe fn canonical(v: __m512i) -> __m512i {
        // SAFETY: by the promise of the caller.
        unsafe {
            let is = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(_mm512_castsi512_ps(v), _mm512_castsi512_ps(v));
            _mm512_mask_mov_epi32(v, is, _mm512_set1_epi32(CANONICAL.cast_signed()))
        }
    }

    #[inline(always)]
    unsafe fn fma(a: __m512i, b: __m512i, sum: __m512i) -> __m512i {
        // SAFETY: by the promise of the caller.
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
        // SAFETY: by the promise of the caller.
        unsafe { _mm512_add_epi32(_mm512_madd_epi16(a, b), sum) }
    }

    #[inline(always)]
    unsafe fn halves<const N_ROWS: usize, const IS_BF16: bool>(
        p: Product,
        src: &[*const Row],
        planes: &mut Planes,
        out: Option<&Sums>,
    ) {
        // SAFETY: by the promise of the caller.
        unsafe { halves::by_512::<N_ROWS, IS_BF16>(p, src, planes, out) }
    }
}

/// Elements of `a` and `b` as rows of 32-bit words, one for each of the parts of a register that a step takes. In lines of the cache.
#[repr(C, align(64))]
struct Planes {
    a: [Row; MAX_PLANES],
    b: [Row; MAX_PLANES],
    sums: [Row; 4],
}

/// Where four rows of sums go: those of `d`, or rows for them in [`Planes`].
type Sums = [*mut u32; 4];

thread_local! {
    /// Written before it is read by each product.
    static PLANES: RefCell<Planes> = const {
        RefCell::new(Planes {
            a: [[0; 32]; MAX_PLANES],
            b: [[0; 32]; MAX_PLANES],
            sums: [[0; 32]; 4],
        })
    };
}

/// Lays a part of the elements of a register out: as `.f32`, or as two integers of 16 bits.
///
/// # Safety
/// The host has the instructions of `W`.
#[inline(always)]
unsafe fn lay_out<W: Vectors>(e: Element, part: usize, from: *const Row, to: &mut Row) {
    let (bits, part) = (e.bits(), part as u32);
    let mut at = 0;
    while at < 32 {
        // SAFETY: by the caller's promise; `LANES` divides 32.
        unsafe {
            let v = W::load(from.cast::<u32>().add(at));
            let out = match e {
                Element::F16 => W::widen(W::and(W::right(v, 16 * part), 0xffff)),
                // An `.e5m2` is the upper half of an `.f16`.
                Element::E5m2 => W::widen(W::left(W::and(W::right(v, 8 * part), 0xff), 8)),
                Element::E4m3 => {
                    let v = W::right(v, 8 * part);
                    let code = W::and(v, 0x7f);
                    // The same fraction below an exponent that is 120 too small, subnormal numbers among them.
                    let value = W::scale(W::left(code, 20), f32::from_bits((127 + 120) << 23));
                    W::or(W::nan_where(code, 0x7f, value), W::left(W::and(v, 0x80), 24))
                }
                Element::U8 | Element::U4 => {
                    let one = |at: u32| W::right(W::left(v, 32 - bits - at), 32 - bits);
                    W::or(one(2 * part * bits), W::left(one((2 * part + 1) * bits), 16))
                }
                Element::S8 | Element::S4 => {
                    let one = |at: u32| W::down(W::left(v, 32 - bits - at), 32 - bits);
                    W::or(W::and(one(2 * part * bits), 0xffff), W::left(one((2 * part + 1) * bits), 16))
                }
                Element::E3m2 | Element::E2m3 | Element::E2m1 => {
                    // Where the code begins, how many bits it has besides the sign, how many of these are the fraction, and the bias.
                    let (first, n, fraction, bias) = match e {
                        Element::E3m2 => (0, 5, 2, 3),
                        Element::E2m3 => (0, 5, 3, 1),
                        _ => (2, 3, 1, 1),
                    };
                    let v = W::right(v, 8 * part + first);
                    let code = W::left(W::and(v, (1 << n) - 1), 23 - fraction);
                    // As for `.e4m3`.
                    let value = W::scale(code, f32::from_bits((127 + 127 - bias) << 23));
                    W::or(value, W::left(W::and(v, 1 << n), 31 - n))
                }
                // The lower 13 bits of a `.tf32` do not count.
                Element::Tf32 => W::and(v, 0xffff_e000),
                Element::Bf16 | Element::F64 | Element::B1 | Element::E2m1Packed => {
                    unreachable!("bug: elements that are not laid out")
                }
            };
            W::store(to.as_mut_ptr().add(at), out);
        }
        at += W::LANES;
    }
}

/// Computes the sums of a product, to which `planes.sums` holds what they start from. Sums are two columns of a row, then those of the next.
///
/// # Safety
/// The host has the instructions of `W`.
#[inline(always)]
unsafe fn multiply<W: Vectors, const INTEGERS: bool, const N_ROWS: usize>(
    p: Product,
    src: &[*const Row],
    planes: &mut Planes,
) {
    let depth = p.depth_registers();
    let parts = if INTEGERS { p.a.per_register() / 2 } else { p.a.per_register() };
    // SAFETY: the host has the instructions; loads and stores lie in rows of 32 words, as `2 * LANES` divides 32.
    unsafe {
        for i in 0..depth * N_ROWS {
            for e in 0..parts {
                lay_out::<W>(p.a, e, src[i], &mut planes.a[i * parts + e]);
            }
        }
        for q in 0..depth {
            for e in 0..parts {
                let plane = &mut planes.b[q * parts + e];
                lay_out::<W>(p.b, e, src[depth * N_ROWS + q], plane);
            }
        }
        let mut first = 0;
        while first < 32 {
            let at = [first, first + W::LANES];
            let mut acc = [[W::zero(); 2]; 4];
            for i in 0..2 * N_ROWS {
                acc[i] = [W::load(planes.sums[i].as_ptr().add(at[0])), W::load(planes.sums[i].as_ptr().add(at[1]))];
            }
            for q in 0..depth {
                let a = &planes.a[q * N_ROWS * parts..][..N_ROWS * parts];
                let b = &planes.b[q * parts..][..parts];
                steps::<W, INTEGERS, N_ROWS, 0>(a, b, at, &mut acc);
                steps::<W, INTEGERS, N_ROWS, 1>(a, b, at, &mut acc);
                steps::<W, INTEGERS, N_ROWS, 2>(a, b, at, &mut acc);
                steps::<W, INTEGERS, N_ROWS, 3>(a, b, at, &mut acc);
            }
            for i in 0..2 * N_ROWS {
                W::store(planes.sums[i].as_mut_ptr().add(at[0]), acc[i][0]);
                W::store(planes.sums[i].as_mut_ptr().add(at[1]), acc[i][1]);
            }
            first += 2 * W::LANES;
        }
    }
}

/// The steps of lane `T` of each group, for two vectors of lanes: `a` and `b` are planes of one register of `b`.
///
/// # Safety
/// As for `multiply`.
#[inline(always)]
unsafe fn steps<W: Vectors, const INTEGERS: bool, const N_ROWS: usize, const T: i32>(
    a: &[Row],
    b: &[Row],
    at: [usize; 2],
    acc: &mut [[W::V; 2]; 4],
) {
    let parts = a.len() / N_ROWS;
    for e in 0..parts {
        // SAFETY: as in `multiply`.
        unsafe {
            let column = b[e].as_ptr();
            let (even, odd) = (W::column(column, T as usize), W::column(column, 4 + T as usize));
            for h in 0..N_ROWS {
                let plane = &a[h * parts + e];
                for u in 0..2 {
                    let a = W::spread::<T>(W::load(plane.as_ptr().add(at[u])));
                    let sums = (acc[2 * h][u], acc[2 * h + 1][u]);
                    if INTEGERS {
                        acc[2 * h][u] = W::dot(a, even, sums.0);
                        acc[2 * h + 1][u] = W::dot(a, odd, sums.1);
                    } else {
                        acc[2 * h][u] = W::fma(a, even, sums.0);
                        acc[2 * h + 1][u] = W::fma(a, odd, sums.1);
                    }
                }
            }
        }
    }
}

/// A product of floats of at most 32 bits.
///
/// # Safety
/// The host has the instructions of `W`, and those of AVX2.
#[inline(always)]
unsafe fn floats<W: Vectors, const N_ROWS: usize>(p: Product, src: &[*const Row], planes: &mut Planes, out: &Sums) {
    let c = &src[src.len() - p.registers()[2]..];
    // SAFETY: by the caller's promise; loads and stores lie in rows of 32 words.
    unsafe {
        if p.c == Accumulator::F16 {
            for i in 0..2 * N_ROWS {
                lay_out::<W>(Element::F16, i % 2, c[i / 2], &mut planes.sums[i]);
            }
        }
        let is_direct = p.d == Accumulator::F32 && matches!(p.a, Element::F16 | Element::Bf16);
        let direct = is_direct.then_some(out);
        match p.a {
            Element::F16 => W::halves::<N_ROWS, false>(p, src, planes, direct),
            Element::Bf16 => W::halves::<N_ROWS, true>(p, src, planes, direct),
            _ => {
                if p.c == Accumulator::F32 {
                    (0..2 * N_ROWS).for_each(|i| planes.sums[i] = *c[i]);
                }
                multiply::<W, false, N_ROWS>(p, src, planes);
                for i in 0..2 * N_ROWS {
                    let mut at = 0;
                    while at < 32 {
                        let sum = planes.sums[i].as_mut_ptr().add(at);
                        W::store(sum, W::canonical(W::load(sum)));
                        at += W::LANES;
                    }
                }
            }
        }
        if is_direct {
            return;
        }
        if p.d == Accumulator::F16 {
            for i in 0..N_ROWS {
                let low = narrow_f16(&map(&planes.sums[2 * i], f32::from_bits));
                let high = narrow_f16(&map(&planes.sums[2 * i + 1], f32::from_bits));
                planes.sums[i] = zip(&low, &high, |low, high| low | high << 16);
            }
        }
        copy_out(planes, p.registers()[3], out);
    }
}

/// A product of integers of 4 or 8 bits, likewise.
///
/// # Safety
/// As for `floats`.
#[inline(always)]
unsafe fn integers<W: Vectors, const N_ROWS: usize>(p: Product, src: &[*const Row], planes: &mut Planes, out: &Sums) {
    planes.sums = [[0; 32]; 4];
    let c = &src[src.len() - 2 * N_ROWS..];
    // SAFETY: by the caller's promise.
    unsafe {
        multiply::<W, true, N_ROWS>(p, src, planes);
        for i in 0..2 * N_ROWS {
            let (sum, c) = (&planes.sums[i], &*c[i]);
            planes.sums[i] = if p.step == Step::AddSaturating {
                zip(sum, c, |a, b| a.cast_signed().saturating_add(b.cast_signed()).cast_unsigned())
            } else {
                zip(sum, c, u32::wrapping_add)
            };
        }
        copy_out(planes, 2 * N_ROWS, out);
    }
}

/// Copies the first rows of sums to where they are wanted.
///
/// # Safety
/// There is a row at each of them.
#[inline(always)]
unsafe fn copy_out(planes: &Planes, n: usize, out: &Sums) {
    for i in 0..n {
        // SAFETY: by the promise of the caller.
        unsafe { out[i].cast::<Row>().write(planes.sums[i]) }
    }
}

/// How wide the vectors of this host are that products are computed in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Width {
    /// 256 bits.
    Avx2,
    /// 512 bits.
    Avx512,
}

impl Width {
    /// The widest first.
    const ALL: [Width; 2] = [Width::Avx512, Width::Avx2];

    /// Whether a machine with this record has them.
    fn is_of(self, machine: &Host) -> bool {
        match self {
            Width::Avx2 => machine.has_row_loops(),
            Width::Avx512 => machine.has_wide_row_loops(),
        }
    }

    /// The widest of a machine with this record.
    pub(super) fn of(machine: &Host) -> Option<Width> {
        Width::ALL.into_iter().find(|w| w.is_of(machine))
    }

    /// Those that this machine has, the widest first. What is used of them is for the record of the device to say.
    pub(super) fn of_host() -> &'static [Width] {
        static WIDTHS: OnceLock<Vec<Width>> = OnceLock::new();
        WIDTHS.get_or_init(|| {
            let host = Host::detect();
            Width::ALL.into_iter().filter(|w| w.is_of(&host)).collect()
        })
    }
}

/// Computes a product if there is vector code for it. `src` has the registers of `a`, `b` and `c`; those of `d` go to `out`, whose rows may be
/// those of sources.
///
/// # Safety
/// There is a row at each source, and one that may be written at each place of `out` that a register of `d` has.
///
/// # Panics
/// When the host does not have such vectors.
pub(super) unsafe fn product(width: Width, p: Product, src: &[*const Row], out: &[*mut u32; 4]) -> bool {
    if p.d == Accumulator::F64 || p.a == Element::B1 || p.sparse.is_some() || p.scale.is_some() {
        return false;
    }
    assert!(Width::of_host().contains(&width), "{width:?} is not of this host");
    PLANES.with_borrow_mut(|planes| {
        // SAFETY: the host has the instructions, as was asked for above; the rest is by the promise of the caller.
        unsafe {
            match width {
                Width::Avx2 => by_avx2(p, src, planes, out),
                Width::Avx512 => by_avx512(p, src, planes, out),
            }
        }
    });
    true
}

/// # Safety
/// As for [`product`].
#[target_feature(enable = "avx2,fma,f16c,lzcnt,popcnt")]
unsafe fn by_avx2(p: Product, src: &[*const Row], planes: &mut Planes, out: &Sums) {
    // SAFETY: this function has the features; the rest is by the promise of the caller.
    unsafe {
        match (p.d, p.n_rows()) {
            (Accumulator::S32, 1) => integers::<Avx2, 1>(p, src, planes, out),
            (Accumulator::S32, _) => integers::<Avx2, 2>(p, src, planes, out),
            (_, 1) => floats::<Avx2, 1>(p, src, planes, out),
            _ => floats::<Avx2, 2>(p, src, planes, out),
        }
    }
}

/// # Safety
/// As for [`product`].
#[target_feature(enable = "avx512f,avx512bw,avx2,fma,f16c,lzcnt,popcnt")]
unsafe fn by_avx512(p: Product, src: &[*const Row], planes: &mut Planes, out: &Sums) {
    // SAFETY: this function has the features; the rest is by the promise of the caller.
    unsafe {
        match (p.d, p.n_rows()) {
            (Accumulator::S32, 1) => integers::<Avx512, 1>(p, src, planes, out),
            (Accumulator::S32, _) => integers::<Avx512, 2>(p, src, planes, out),
            (_, 1) => floats::<Avx512, 1>(p, src, planes, out),
            _ => floats::<Avx512, 2>(p, src, planes, out),
        }
    }
}

#[cfg(test)]
mod tests;
