//! Products of matrices that are not in registers, in vector code of the host: four rows and some vectors of columns at a time, whose sums stay in
//! registers.
//!
//! Invariants: results are those of [`Rows::add`], bit for bit: each lane adds the same products in the same order by the same fused operation.

#![allow(
    clippy::needless_range_loop,
    reason = "iterators with closures are not inlined into functions that have features of the host"
)]

use std::arch::x86_64::*;

use handloom_ir::num::whole::{self, Rows};
use handloom_ir::simt::Element;

use super::fast::CANONICAL;
use super::matrix::Width;

/// Rows that are done together.
const ROWS: usize = 4;

/// [`Rows::add`].
pub(super) fn add(width: Option<Width>, rows: &mut Rows<'_>) {
    rows.check();
    // SAFETY: `width` is of this host, and the sizes were found to fit together.
    unsafe {
        match width {
            Some(Width::Avx512 | Width::Avx512Vnni) => by_avx512(rows),
            Some(Width::Avx2) => by_avx2(rows),
            None => rows.add(),
        }
    }
}

/// [`whole::widen`].
pub(super) fn widen(width: Option<Width>, e: Element, bits: &mut [u32]) {
    // SAFETY: `width` is of this host.
    unsafe {
        match width {
            Some(Width::Avx512 | Width::Avx512Vnni) => widen_by_avx512(e, bits),
            Some(Width::Avx2) => widen_by_avx2(e, bits),
            None => whole::widen(e, bits),
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx2,fma,f16c")]
fn widen_by_avx512(e: Element, bits: &mut [u32]) {
    match e {
        Element::F16 => {
            let (vectors, rest) = bits.as_chunks_mut::<16>();
            for v in vectors {
                // SAFETY: a chunk has sixteen words.
                unsafe {
                    let codes = _mm512_cvtepi32_epi16(_mm512_loadu_si512(v.as_ptr().cast()));
                    _mm512_storeu_ps(v.as_mut_ptr().cast(), _mm512_cvtph_ps(codes));
                }
            }
            whole::widen(e, rest);
        }
        e => whole::widen(e, bits),
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
fn widen_by_avx2(e: Element, bits: &mut [u32]) {
    match e {
        Element::F16 => {
            let (vectors, rest) = bits.as_chunks_mut::<8>();
            for v in vectors {
                // SAFETY: a chunk has eight words.
                unsafe {
                    let codes = _mm256_loadu_si256(v.as_ptr().cast());
                    let codes = _mm256_permute4x64_epi64::<0b1000>(_mm256_packus_epi32(codes, codes));
                    _mm256_storeu_ps(v.as_mut_ptr().cast(), _mm256_cvtph_ps(_mm256_castsi256_si128(codes)));
                }
            }
            whole::widen(e, rest);
        }
        e => whole::widen(e, bits),
    }
}

/// # Safety
/// The sizes fit together.
#[target_feature(enable = "avx512f,avx512bw,avx2,fma")]
unsafe fn by_avx512(r: &mut Rows<'_>) {
    let mut row = 0;
    while row < r.rows {
        let is_four = row + ROWS <= r.rows;
        let mut first = 0;
        while first < r.n {
            let n_vectors = if r.n - first >= 64 { 4 } else { 1 };
            let lanes = (r.n - first).min(16);
            let mask = u16::MAX >> (16 - lanes);
            let (own, end) = ((row, first), first + 16 * n_vectors);
            let next = if end < r.n { (row, end) } else { (row + ROWS, 0) };
            // SAFETY: rows and columns are those of the sums; the mask ends where they end.
            unsafe {
                match (is_four, n_vectors) {
                    (true, 4) => block_512::<ROWS, 4>(r, own, next, u16::MAX),
                    (true, _) => block_512::<ROWS, 1>(r, own, next, mask),
                    (false, 4) => block_512::<1, 4>(r, own, next, u16::MAX),
                    (false, _) => block_512::<1, 1>(r, own, next, mask),
                }
            }
            first = end;
        }
        row += if is_four { ROWS } else { 1 };
    }
}

/// The sums of `R` rows and `V` vectors of columns, of which a mask counts. Those that come next are asked for on the way: all sums together are more than
/// the nearest cache has.
///
/// # Safety
/// They are there.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx2,fma")]
unsafe fn block_512<const R: usize, const V: usize>(
    r: &mut Rows<'_>,
    (row, first): (usize, usize),
    next: (usize, usize),
    mask: u16,
) {
    // SAFETY: by the promise of the caller; `check` asked for the depths.
    unsafe {
        let mut acc = [[_mm512_setzero_ps(); V]; R];
        for i in 0..R {
            for v in 0..V {
                let at = r.sums.as_ptr().add((row + i) * r.sums_pitch + first + 16 * v);
                acc[i][v] = _mm512_maskz_loadu_ps(mask, at.cast());
            }
        }
        let a = r.a.as_ptr().add(row * r.stored);
        let b = r.b.as_ptr().add(first);
        // Nothing is read there, so that it may lie behind the sums.
        let next = r.sums.as_ptr().wrapping_add(next.0 * r.sums_pitch + next.1);
        if r.depths.is_empty() {
            for k in 0..r.stored {
                if k < R * V {
                    _mm_prefetch::<_MM_HINT_T0>(next.wrapping_add(k / V * r.sums_pitch + 16 * (k % V)).cast());
                }
                let b = b.add(k * r.pitch);
                let mut columns = [_mm512_setzero_ps(); V];
                for v in 0..V {
                    columns[v] = _mm512_maskz_loadu_ps(mask, b.add(16 * v).cast());
                }
                for i in 0..R {
                    let a = _mm512_set1_ps(f32::from_bits(a.add(i * r.stored + k).read()));
                    for v in 0..V {
                        acc[i][v] = _mm512_fmadd_ps(a, columns[v], acc[i][v]);
                    }
                }
            }
        } else {
            for k in 0..r.stored {
                for i in 0..R {
                    let b = b.add(r.depth(row + i, k) * r.pitch);
                    let a = _mm512_set1_ps(f32::from_bits(a.add(i * r.stored + k).read()));
                    for v in 0..V {
                        let columns = _mm512_maskz_loadu_ps(mask, b.add(16 * v).cast());
                        acc[i][v] = _mm512_fmadd_ps(a, columns, acc[i][v]);
                    }
                }
            }
        }
        // NaNs are rare: a comparison finds those of two vectors.
        let mut nans = 0;
        for i in 0..R {
            for v in 0..V.div_ceil(2) {
                let last = if 2 * v + 1 < V { 2 * v + 1 } else { 2 * v };
                nans |= _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(acc[i][2 * v], acc[i][last]);
            }
        }
        if nans != 0 {
            let nan = _mm512_set1_ps(f32::from_bits(CANONICAL));
            for i in 0..R {
                for v in 0..V {
                    let is_nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(acc[i][v], acc[i][v]);
                    acc[i][v] = _mm512_mask_mov_ps(acc[i][v], is_nan, nan);
                }
            }
        }
        for i in 0..R {
            for v in 0..V {
                let at = r.sums.as_mut_ptr().add((row + i) * r.sums_pitch + first + 16 * v);
                _mm512_mask_storeu_ps(at.cast(), mask, acc[i][v]);
            }
        }
    }
}

/// # Safety
/// The sizes fit together.
#[target_feature(enable = "avx2,fma")]
unsafe fn by_avx2(r: &mut Rows<'_>) {
    let mut row = 0;
    while row < r.rows {
        let is_four = row + ROWS <= r.rows;
        let mut first = 0;
        while first < r.n {
            let left = r.n - first;
            // SAFETY: rows and columns are those of the sums.
            unsafe {
                match (is_four, left >= 16, left >= 8) {
                    (true, true, _) => block_256::<ROWS, 2>(r, row, first),
                    (true, false, true) => block_256::<ROWS, 1>(r, row, first),
                    (false, true, _) => block_256::<1, 2>(r, row, first),
                    (false, false, true) => block_256::<1, 1>(r, row, first),
                    (_, false, false) => (0..if is_four { ROWS } else { 1 }).for_each(|i| one_sum(r, row + i, first)),
                }
            }
            first += if left >= 16 {
                16
            } else if left >= 8 {
                8
            } else {
                1
            };
        }
        row += if is_four { ROWS } else { 1 };
    }
}

/// As [`block_512`], without a mask.
///
/// # Safety
/// The sums are there.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn block_256<const R: usize, const V: usize>(r: &mut Rows<'_>, row: usize, first: usize) {
    // SAFETY: by the promise of the caller; `check` asked for the depths.
    unsafe {
        let mut acc = [[_mm256_setzero_ps(); V]; R];
        for i in 0..R {
            for v in 0..V {
                acc[i][v] = _mm256_loadu_ps(r.sums.as_ptr().add((row + i) * r.sums_pitch + first + 8 * v).cast());
            }
        }
        let a = r.a.as_ptr().add(row * r.stored);
        for k in 0..r.stored {
            for i in 0..R {
                let b = r.b.as_ptr().add(first + r.depth(row + i, k) * r.pitch);
                let a = _mm256_set1_ps(f32::from_bits(a.add(i * r.stored + k).read()));
                for v in 0..V {
                    acc[i][v] = _mm256_fmadd_ps(a, _mm256_loadu_ps(b.add(8 * v).cast()), acc[i][v]);
                }
            }
        }
        let nan = _mm256_set1_ps(f32::from_bits(CANONICAL));
        for i in 0..R {
            for v in 0..V {
                let at = r.sums.as_mut_ptr().add((row + i) * r.sums_pitch + first + 8 * v);
                let is_nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(acc[i][v], acc[i][v]);
                _mm256_storeu_ps(at.cast(), _mm256_blendv_ps(acc[i][v], nan, is_nan));
            }
        }
    }
}

#[target_feature(enable = "avx2,fma")]
fn one_sum(r: &mut Rows<'_>, row: usize, column: usize) {
    let mut sum = f32::from_bits(r.sums[row * r.sums_pitch + column]);
    for k in 0..r.stored {
        let b = f32::from_bits(r.b[r.depth(row, k) * r.pitch + column]);
        sum = f32::from_bits(r.a[row * r.stored + k]).mul_add(b, sum);
    }
    r.sums[row * r.sums_pitch + column] = whole::canonical(sum.to_bits());
}

#[cfg(test)]
mod tests {
    use handloom_interp::pace::splitmix;

    use super::*;

    /// Sizes that fill vectors and those that do not, with depths and without, numbers that round and such that overflow.
    #[test]
    fn sums_are_those_of_the_definition() {
        let mut state = 5;
        let mut next = move || splitmix(&mut state);
        for (n_rows, n, stored) in
            [(4, 64, 16), (8, 80, 8), (5, 24, 3), (1, 8, 32), (7, 13, 5), (128, 256, 16), (3, 70, 1)]
        {
            for with_depths in [false, true] {
                let depth = if with_depths { 2 * stored } else { stored };
                let (pitch, sums_pitch) = (n + (next() % 3) as usize, n + (next() % 3) as usize);
                let mut float = || match next() % 16 {
                    0 => next() as u32,
                    _ => (next() as u32 & 0x83ff_ffff) | 0x3c00_0000,
                };
                let a: Vec<u32> = (0..n_rows * stored).map(|_| float()).collect();
                let b: Vec<u32> = (0..depth * pitch).map(|_| float()).collect();
                // What lies between the rows stays.
                let start: Vec<u32> = (0..n_rows * sums_pitch).map(|_| float()).collect();
                let depths: Vec<u16> =
                    if with_depths { (0..a.len()).map(|_| (next() as usize % depth) as u16).collect() } else { vec![] };
                let sums = |width: Option<Option<Width>>| {
                    let mut sums = start.clone();
                    let (a, depths, b, rows) = (&a, &depths, &b, n_rows);
                    let mut rows = Rows { a, stored, depths, b, pitch, sums: &mut sums, sums_pitch, n, rows };
                    match width {
                        Some(width) => add(width, &mut rows),
                        None => rows.add(),
                    }
                    sums
                };
                let want = sums(None);
                for width in Width::of_host().iter().copied().map(Some).chain([None]) {
                    assert!(sums(Some(width)) == want, "{n_rows} rows of {n}, depth {stored}, {width:?}");
                }
            }
        }
    }

    #[test]
    fn widened_halves_are_those_of_the_definition() {
        let all: Vec<u32> = (0..1 << 16).chain(0..13).collect();
        let canonical = |v: &u32| if f32::from_bits(*v).is_nan() { 0x7fff_ffff } else { *v };
        let mut want = all.clone();
        whole::widen(Element::F16, &mut want);
        for width in Width::of_host() {
            let mut got = all.clone();
            widen(Some(*width), Element::F16, &mut got);
            assert!(got.iter().map(canonical).eq(want.iter().map(canonical)), "{width:?}");
        }
    }
}
