//! Products of bytes by AVX-512 VNNI: four depths, which lie in one word, in one step.
//!
//! The instruction multiplies bytes without sign by bytes with sign. A byte of the other kind is one of the wanted kind that is 128 off, and the sums
//! are so much off: 128 times the sum of what it was multiplied with, which is taken away again. Sums wrap, so that all of it is exact.

use std::arch::x86_64::*;

use handloom_ir::simt::{Element, Product, Step};

use super::vectors::{Avx512, Vectors};
use super::{Planes, Row, Sums, add_to_c};

/// Whether a product is for this code.
pub(super) fn is_here(p: Product) -> bool {
    matches!(p.a, Element::U8 | Element::S8) && p.sparse.is_none()
}

/// Computes it.
///
/// # Safety
/// As for [`product`](super::product), and the host has AVX-512 VNNI.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c,lzcnt,popcnt")]
pub(super) unsafe fn product(p: Product, src: &[*const Row], planes: &mut Planes, out: &Sums) {
    // SAFETY: by the promise of the caller.
    unsafe {
        match (p.a == Element::S8, p.b == Element::S8, p.n_rows()) {
            (false, true, 1) => multiply::<false, true, 1>(p, src, planes, out),
            (true, false, 1) => multiply::<true, false, 1>(p, src, planes, out),
            (true, true, 1) => multiply::<true, true, 1>(p, src, planes, out),
            (false, false, 1) => multiply::<false, false, 1>(p, src, planes, out),
            (false, true, _) => multiply::<false, true, 2>(p, src, planes, out),
            (true, false, _) => multiply::<true, false, 2>(p, src, planes, out),
            (true, true, _) => multiply::<true, true, 2>(p, src, planes, out),
            (false, false, _) => multiply::<false, false, 2>(p, src, planes, out),
        }
    }
}

/// # Safety
/// As for [`product`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c,lzcnt,popcnt")]
unsafe fn multiply<const A_SIGNED: bool, const B_SIGNED: bool, const N_ROWS: usize>(
    p: Product,
    src: &[*const Row],
    planes: &mut Planes,
    out: &Sums,
) {
    let depth = p.depth_registers();
    let c = &src[depth * (N_ROWS + 1)..];
    // SAFETY: by the promise of the caller; all loads and stores lie in rows of 32 words.
    unsafe {
        let (flip, ones) = (_mm512_set1_epi8(i8::MIN), _mm512_set1_epi8(1));
        let mut acc = [[_mm512_setzero_si512(); 2]; 4];
        // Sums of columns of `b` where `a` is off, of rows of `a` where `b` is.
        let mut of_columns = [_mm512_setzero_si512(); 2];
        let mut of_rows = [[_mm512_setzero_si512(); 2]; 2];
        for q in 0..depth {
            let mut a = [[_mm512_setzero_si512(); 2]; 2];
            for h in 0..N_ROWS {
                for u in 0..2 {
                    a[h][u] = _mm512_loadu_si512(src[q * N_ROWS + h].cast::<u32>().add(16 * u).cast());
                    if A_SIGNED && B_SIGNED {
                        a[h][u] = _mm512_xor_si512(a[h][u], flip);
                    }
                }
            }
            let b = src[depth * N_ROWS + q].cast::<u32>();
            steps::<A_SIGNED, B_SIGNED, N_ROWS, 0>(&a, b, &mut acc, &mut of_columns, &mut of_rows, [flip, ones]);
            steps::<A_SIGNED, B_SIGNED, N_ROWS, 1>(&a, b, &mut acc, &mut of_columns, &mut of_rows, [flip, ones]);
            steps::<A_SIGNED, B_SIGNED, N_ROWS, 2>(&a, b, &mut acc, &mut of_columns, &mut of_rows, [flip, ones]);
            steps::<A_SIGNED, B_SIGNED, N_ROWS, 3>(&a, b, &mut acc, &mut of_columns, &mut of_rows, [flip, ones]);
        }
        for i in 0..2 * N_ROWS {
            for u in 0..2 {
                let mut sum = acc[i][u];
                if A_SIGNED && B_SIGNED {
                    sum = _mm512_sub_epi32(sum, of_columns[i % 2]);
                } else if !A_SIGNED && !B_SIGNED {
                    sum = _mm512_add_epi32(sum, _mm512_slli_epi32::<7>(of_rows[i / 2][u]));
                }
                if p.step == Step::Add {
                    let c = _mm512_loadu_si512(c[i].cast::<u32>().add(16 * u).cast());
                    _mm512_storeu_si512(out[i].add(16 * u).cast(), _mm512_add_epi32(sum, c));
                } else {
                    _mm512_storeu_si512(planes.sums[i].as_mut_ptr().add(16 * u).cast(), sum);
                }
            }
        }
        if p.step != Step::Add {
            add_to_c(p, c, planes, out);
        }
    }
}

/// Adds the products of lane `T` of each group.
///
/// # Safety
/// As for [`product`]; `b` is a row.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c,lzcnt,popcnt")]
unsafe fn steps<const A_SIGNED: bool, const B_SIGNED: bool, const N_ROWS: usize, const T: i32>(
    a: &[[__m512i; 2]; 2],
    b: *const u32,
    acc: &mut [[__m512i; 2]; 4],
    of_columns: &mut [__m512i; 2],
    of_rows: &mut [[__m512i; 2]; 2],
    [flip, ones]: [__m512i; 2],
) {
    // SAFETY: by the promise of the caller.
    unsafe {
        let mut columns = [Avx512::column(b, T as usize), Avx512::column(b, 4 + T as usize)];
        for e in 0..2 {
            if A_SIGNED && B_SIGNED {
                of_columns[e] = _mm512_dpbusd_epi32(of_columns[e], flip, columns[e]);
            } else if !A_SIGNED && !B_SIGNED {
                columns[e] = _mm512_xor_si512(columns[e], flip);
            }
        }
        for h in 0..N_ROWS {
            for u in 0..2 {
                let a = Avx512::spread::<T>(a[h][u]);
                if !A_SIGNED && !B_SIGNED {
                    of_rows[h][u] = _mm512_dpbusd_epi32(of_rows[h][u], a, ones);
                }
                for e in 0..2 {
                    let sum = acc[2 * h + e][u];
                    acc[2 * h + e][u] = if A_SIGNED && !B_SIGNED {
                        _mm512_dpbusd_epi32(sum, columns[e], a)
                    } else {
                        _mm512_dpbusd_epi32(sum, a, columns[e])
                    };
                }
            }
        }
    }
}
