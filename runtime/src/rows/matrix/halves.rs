//! Products of 16-bit floats.
//!
//! Registers are widened as they lie: four words of `a` are the eight depths of a row, which the lanes of one group want. So a vector of 512 bits
//! has the rows of two groups, and one permutation of two vectors spreads the element of a depth over the four lanes of each of four groups. Of 256
//! bits, the halves of two rows are exchanged once, and then a depth is spread in each half.
//!
//! Elements of `b` are brought into the order of depths: then the four numbers that all groups want of a depth lie side by side.

use std::arch::x86_64::*;

use handloom_ir::simt::{Accumulator, Product};

use super::vectors::{Avx2, Avx512, Vectors};
use super::{Planes, Row, Sums};

/// Depths of a register, of which each of four lanes has two.
const DEPTHS: usize = 8;

/// Where the lanes of four groups find the element of a depth in two vectors of `a`.
static SPREAD: [[u32; 16]; DEPTHS] = {
    let mut table = [[0; 16]; DEPTHS];
    let mut i = 0;
    while i < 16 * DEPTHS {
        table[i / 16][i % 16] = (i % 16 / 4 * DEPTHS + i / 16) as u32;
        i += 1;
    }
    table
};

/// Where halves of `b` in the order of depth, number of the column in its lane, lane come from in what holds a register: a fragment, columns in
/// order, each with its depths; units of columns, words in order, each with two depths of all columns; or units of depths, likewise.
pub(super) static HALVES_BY_DEPTH: [[[u16; 32]; 2]; 3] = {
    let mut table = [[[0; 32]; 2]; 3];
    let mut i = 0;
    while i < 64 {
        let (depth, column) = (i / 8, 2 * (i % 4) + i / 4 % 2);
        table[0][i / 32][i % 32] = (column * DEPTHS + depth) as u16;
        table[1][i / 32][i % 32] = (depth / 2 * 16 + 2 * column + depth % 2) as u16;
        table[2][i / 32][i % 32] = (column / 2 * 16 + 2 * depth + column % 2) as u16;
        i += 1;
    }
    table
};

/// Sixteen halves as `.f32`.
///
/// # Safety
/// The host has AVX-512 F.
#[inline(always)]
unsafe fn widen<const IS_BF16: bool>(v: __m256i) -> __m512 {
    // SAFETY: by the promise of the caller.
    unsafe {
        if IS_BF16 {
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(v)))
        } else {
            _mm512_cvtph_ps(v)
        }
    }
}

/// What the sums start from.
#[inline(always)]
fn starts<const N_ROWS: usize>(p: Product, src: &[*const Row], planes: &Planes) -> [*const u32; 4] {
    let [n_a, n_b, ..] = p.registers();
    let c = &src[n_a + n_b..];
    let mut starts = [planes.sums[0].as_ptr(); 4];
    for i in 0..2 * N_ROWS {
        starts[i] = if p.c == Accumulator::F32 { c[i].cast() } else { planes.sums[i].as_ptr() };
    }
    starts
}

/// Where a sum goes.
#[inline(always)]
fn place(planes: &mut Planes, out: Option<&Sums>, i: usize) -> *mut u32 {
    out.map_or_else(|| planes.sums[i].as_mut_ptr(), |out| out[i])
}

/// Eight halves as `.f32`: four words of a register.
///
/// # Safety
/// The host has AVX2 and F16C; there are four words.
#[inline(always)]
unsafe fn widen_256<const IS_BF16: bool>(from: *const u32) -> __m256 {
    // SAFETY: by the promise of the caller.
    unsafe {
        let v = _mm_loadu_si128(from.cast());
        if IS_BF16 {
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(v)))
        } else {
            _mm256_cvtph_ps(v)
        }
    }
}

/// Lays a register of `b` out by depth: of each, first the columns of even number, then those of odd number.
///
/// # Safety
/// As for [`widen_256`]; `to` has room for 64 numbers.
#[inline(always)]
pub(super) unsafe fn lay_out_256<const IS_BF16: bool>(from: *const Row, to: *mut f32) {
    // SAFETY: by the promise of the caller.
    unsafe {
        let mut columns = [_mm256_setzero_ps(); 8];
        for i in 0..8 {
            columns[i] = widen_256::<IS_BF16>(from.cast::<u32>().add(4 * (2 * (i % 4) + i / 4)));
        }
        let mut pairs = columns;
        for i in 0..4 {
            pairs[2 * i] = _mm256_unpacklo_ps(columns[2 * i], columns[2 * i + 1]);
            pairs[2 * i + 1] = _mm256_unpackhi_ps(columns[2 * i], columns[2 * i + 1]);
        }
        for i in 0..4 {
            // Depth `i` of four columns in the lower half of each, depth `i + 4` in the upper.
            let (a, b) = (pairs[i / 2], pairs[i / 2 + 2]);
            let (c, d) = (pairs[i / 2 + 4], pairs[i / 2 + 6]);
            let (even, odd) = if i % 2 == 0 {
                (_mm256_shuffle_ps::<0x44>(a, b), _mm256_shuffle_ps::<0x44>(c, d))
            } else {
                (_mm256_shuffle_ps::<0xee>(a, b), _mm256_shuffle_ps::<0xee>(c, d))
            };
            _mm256_storeu_ps(to.add(8 * i), _mm256_permute2f128_ps::<0x20>(even, odd));
            _mm256_storeu_ps(to.add(8 * (i + 4)), _mm256_permute2f128_ps::<0x31>(even, odd));
        }
    }
}

/// As [`Vectors::halves`], in 256 bits.
///
/// # Safety
/// The host has AVX2, FMA and F16C.
#[inline(always)]
pub(super) unsafe fn by_256<const N_ROWS: usize, const IS_BF16: bool>(
    p: Product,
    src: &[*const Row],
    planes: &mut Planes,
    out: Option<&Sums>,
) {
    let depth = p.depth_registers();
    // SAFETY: by the promise of the caller; loads and stores lie in rows and planes of 32 words, of which `b` has two for each register.
    unsafe {
        for q in 0..depth {
            let to = planes.b[2 * q..][..2].as_mut_ptr().cast::<f32>();
            lay_out_256::<IS_BF16>(src[depth * N_ROWS + q], to);
        }
        let starts = starts::<N_ROWS>(p, src, planes);
        // Four groups at a time: more sums than that are not kept in 16 registers.
        for first in [0, 16] {
            let mut acc = [[_mm256_setzero_ps(); 2]; 4];
            for i in 0..2 * N_ROWS {
                for u in 0..2 {
                    acc[i][u] = _mm256_loadu_ps(starts[i].add(first + 8 * u).cast());
                }
            }
            for q in 0..depth {
                let b = planes.b[2 * q..][..2].as_ptr().cast::<f32>();
                for half in 0..2 {
                    // Four depths of two rows, by row and pair of groups.
                    let mut a = [[_mm256_setzero_ps(); 2]; 2];
                    for h in 0..N_ROWS {
                        for u in 0..2 {
                            let from = src[q * N_ROWS + h].cast::<u32>().add(first + 8 * u);
                            let (x, y) = (widen_256::<IS_BF16>(from), widen_256::<IS_BF16>(from.add(4)));
                            a[h][u] = if half == 0 {
                                _mm256_permute2f128_ps::<0x20>(x, y)
                            } else {
                                _mm256_permute2f128_ps::<0x31>(x, y)
                            };
                        }
                    }
                    let b = b.add(32 * half);
                    step_256::<N_ROWS, 0x00>(&a, b, &mut acc);
                    step_256::<N_ROWS, 0x55>(&a, b.add(8), &mut acc);
                    step_256::<N_ROWS, 0xaa>(&a, b.add(16), &mut acc);
                    step_256::<N_ROWS, 0xff>(&a, b.add(24), &mut acc);
                }
            }
            for i in 0..2 * N_ROWS {
                for u in 0..2 {
                    let sum = Avx2::canonical(_mm256_castps_si256(acc[i][u]));
                    _mm256_storeu_si256(place(planes, out, i).add(first + 8 * u).cast(), sum);
                }
            }
        }
    }
}

/// Adds the products of one depth, the one that `SPREAD` takes from each half of a vector.
///
/// # Safety
/// The host has AVX2 and FMA; `b` has eight numbers, at a multiple of 16 bytes.
#[inline(always)]
unsafe fn step_256<const N_ROWS: usize, const SPREAD: i32>(
    a: &[[__m256; 2]; 2],
    b: *const f32,
    acc: &mut [[__m256; 2]; 4],
) {
    // SAFETY: by the promise of the caller.
    unsafe {
        let even = _mm256_broadcast_ps(&*b.cast::<__m128>());
        let odd = _mm256_broadcast_ps(&*b.add(4).cast::<__m128>());
        for h in 0..N_ROWS {
            for u in 0..2 {
                let a = _mm256_permute_ps::<SPREAD>(a[h][u]);
                acc[2 * h][u] = _mm256_fmadd_ps(a, even, acc[2 * h][u]);
                acc[2 * h + 1][u] = _mm256_fmadd_ps(a, odd, acc[2 * h + 1][u]);
            }
        }
    }
}

/// Lays a register of `b` out by depth likewise, from what holds it. `order`: where its halves are.
///
/// # Safety
/// The host has AVX-512 F and BW; `to` has room for 64 numbers.
#[inline(always)]
pub(super) unsafe fn lay_out_512<const IS_BF16: bool>(held: [__m512i; 2], order: &[[u16; 32]; 2], to: *mut f32) {
    // SAFETY: by the promise of the caller.
    unsafe {
        for i in 0..2 {
            let halves = _mm512_permutex2var_epi16(held[0], _mm512_loadu_si512(order[i].as_ptr().cast()), held[1]);
            let to = to.add(32 * i);
            _mm512_storeu_ps(to, widen::<IS_BF16>(_mm512_castsi512_si256(halves)));
            _mm512_storeu_ps(to.add(16), widen::<IS_BF16>(_mm512_extracti64x4_epi64::<1>(halves)));
        }
    }
}

/// As [`Vectors::halves`], in 512 bits.
///
/// # Safety
/// The host has AVX-512 F and BW.
#[inline(always)]
pub(super) unsafe fn by_512<const N_ROWS: usize, const IS_BF16: bool>(
    p: Product,
    src: &[*const Row],
    planes: &mut Planes,
    out: Option<&Sums>,
) {
    let depth = p.depth_registers();
    // SAFETY: by the promise of the caller; loads and stores lie in rows and planes of 32 words, of which `b` has two for each register.
    unsafe {
        for q in 0..depth {
            let from = src[depth * N_ROWS + q].cast::<u32>();
            let held = [_mm512_loadu_si512(from.cast()), _mm512_loadu_si512(from.add(16).cast())];
            let to = planes.b[2 * q..][..2].as_mut_ptr().cast();
            lay_out_512::<IS_BF16>(held, &HALVES_BY_DEPTH[0], to);
        }
        let starts = starts::<N_ROWS>(p, src, planes);
        let mut places = [std::ptr::null_mut(); 4];
        for i in 0..2 * N_ROWS {
            places[i] = place(planes, out, i);
        }
        let b = planes.b.as_ptr().cast::<f32>();
        sums_512::<N_ROWS, IS_BF16, 1>(&src[..depth * N_ROWS], [b], [starts.map(<*const u32>::cast_mut)], [places]);
    }
}

/// The sums of `N` products of one `a`: from `starts` to `places`.
///
/// # Safety
/// The host has AVX-512 F and BW; there are rows at all places, and at each of `b` what [`lay_out_512`] has made of all its registers.
#[inline(always)]
pub(super) unsafe fn sums_512<const N_ROWS: usize, const IS_BF16: bool, const N: usize>(
    a: &[*const Row],
    b: [*const f32; N],
    starts: [[*mut u32; 4]; N],
    places: [[*mut u32; 4]; N],
) {
    // SAFETY: by the promise of the caller; loads and stores lie in rows of 32 words.
    unsafe {
        let mut acc = [[[_mm512_setzero_ps(); 2]; 4]; N];
        for n in 0..N {
            for i in 0..2 * N_ROWS {
                for u in 0..2 {
                    acc[n][i][u] = _mm512_loadu_ps(starts[n][i].add(16 * u).cast());
                }
            }
        }
        for q in 0..a.len() / N_ROWS {
            let mut wide = [[[_mm512_setzero_ps(); 2]; 2]; 2];
            for h in 0..N_ROWS {
                let from = a[q * N_ROWS + h].cast::<u32>();
                for u in 0..4 {
                    wide[h][u / 2][u % 2] = widen::<IS_BF16>(_mm256_loadu_si256(from.add(8 * u).cast()));
                }
            }
            for k in 0..DEPTHS {
                let spread = _mm512_loadu_si512(SPREAD[k].as_ptr().cast());
                let mut rows = [[_mm512_setzero_ps(); 2]; 2];
                for h in 0..N_ROWS {
                    for u in 0..2 {
                        rows[h][u] = _mm512_permutex2var_ps(wide[h][u][0], spread, wide[h][u][1]);
                    }
                }
                for n in 0..N {
                    for e in 0..2 {
                        let columns = b[n].add(8 * (DEPTHS * q + k) + 4 * e);
                        let columns = _mm512_broadcast_f32x4(_mm_loadu_ps(columns));
                        for h in 0..N_ROWS {
                            for u in 0..2 {
                                acc[n][2 * h + e][u] = _mm512_fmadd_ps(rows[h][u], columns, acc[n][2 * h + e][u]);
                            }
                        }
                    }
                }
            }
        }
        for n in 0..N {
            for i in 0..2 * N_ROWS {
                for u in 0..2 {
                    let sum = Avx512::canonical(_mm512_castps_si512(acc[n][i][u]));
                    _mm512_storeu_si512(places[n][i].add(16 * u).cast(), sum);
                }
            }
        }
    }
}
