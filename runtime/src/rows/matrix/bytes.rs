//! Products of bytes by AVX-512 VNNI: four depths, which lie in one word, in one step.
//!
//! The instruction multiplies bytes without sign by bytes with sign. A byte of the other kind is one of the wanted kind that is 128 off, and the sums
//! are so much off: 128 times the sum of what it was multiplied with, which is taken away again. Sums wrap, so that all of it is exact.

use std::arch::x86_64::*;

use handloom_ir::simt::{Element, Product, Run, Step};

use super::blocks::{Places, SUMS, places_of, places_to, room};
use super::vectors::{Avx512, Vectors};
use super::{Planes, Row, Sums, add_to_c};

/// Words of `b` for a register of depth.
const WORDS_OF_B: usize = 32;

/// Words of a register of `b` by depth: of each depth four even columns, then four odd ones, which each four lanes of sums want.
const BY_DEPTH: [[i32; 16]; 2] = {
    let mut all = [[0; 16]; 2];
    let mut i = 0;
    while i < 32 {
        all[i / 16][i % 16] = 8 * (i as i32 % 4) + (i as i32 & 4) + i as i32 / 8;
        i += 1;
    }
    all
};

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
                    acc[i][u] = _mm512_add_epi32(sum, c);
                } else {
                    _mm512_storeu_si512(planes.sums[i].as_mut_ptr().add(16 * u).cast(), sum);
                }
            }
        }
        if p.step == Step::Add {
            // The rows of the result may be those of `c` in another order.
            for i in 0..2 * N_ROWS {
                for u in 0..2 {
                    _mm512_storeu_si512(out[i].add(16 * u).cast(), acc[i][u]);
                }
            }
        } else {
            add_to_c(p, c, planes, out);
        }
    }
}

/// Whether a run of products is for [`run`].
pub(super) fn is_run(p: Product) -> bool {
    is_here(p) && p.n_rows() == 2 && p.step == Step::Add
}

/// Computes a run of products, two of one `a` at a time. Each `b` is laid out once, and with it what its sums are off.
///
/// # Safety
/// The host has AVX-512 F and BW, and VNNI; there is a row at each place, and none of `out` is one of the matrices, or of `c` but at its own place.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c,lzcnt,popcnt")]
pub(super) unsafe fn run(op: Run, sources: [&[*const Row]; 3], out: &[*mut u32]) {
    let p = op.product;
    // SAFETY: by the promise of the caller.
    unsafe {
        match (p.a == Element::S8, p.b == Element::S8) {
            (false, true) => run_of::<false, true>(op, sources, out),
            (true, false) => run_of::<true, false>(op, sources, out),
            (true, true) => run_of::<true, true>(op, sources, out),
            (false, false) => run_of::<false, false>(op, sources, out),
        }
    }
}

/// # Safety
/// As for [`run`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c,lzcnt,popcnt")]
unsafe fn run_of<const A_SIGNED: bool, const B_SIGNED: bool>(op: Run, [a, b, c]: [&[*const Row]; 3], out: &[*mut u32]) {
    let [n_a, depth, ..] = op.product.registers();
    let words = WORDS_OF_B * (depth + 1);
    let laid_out = room(words * usize::from(op.n_operands[1]));
    // SAFETY: by the promise of the caller; all words are in the room, which nobody else uses before this function ends.
    unsafe {
        for i in 0..usize::from(op.n_operands[1]) {
            lay_out_b::<A_SIGNED, B_SIGNED>(&b[depth * i..][..depth], laid_out.add(words * i));
        }
        let laid_out = laid_out.cast_const();
        let mut i = 0;
        while i < usize::from(op.count) {
            let [of_a, of_b] = op.operands_of(i);
            let (a, of_b) = (&a[of_a * n_a..][..n_a], laid_out.add(words * of_b));
            let [next_a, next_b] = op.operands_of((i + 1) % Run::MOST);
            if i + 1 < usize::from(op.count) && next_a == of_a {
                let b = [of_b, laid_out.add(words * next_b)];
                sums::<A_SIGNED, B_SIGNED, 2>(a, b, &places_of(c, i), &places_to(out, i));
                i += 2;
            } else {
                sums::<A_SIGNED, B_SIGNED, 1>(a, [of_b], &places_of(c, i), &places_to(out, i));
                i += 1;
            }
        }
    }
}

/// Lays the registers of a `b` out by depth; behind them, for even and for odd columns, what sums are off.
///
/// # Safety
/// As for [`run`]; `to` has room for them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c,lzcnt,popcnt")]
unsafe fn lay_out_b<const A_SIGNED: bool, const B_SIGNED: bool>(b: &[*const Row], to: *mut u32) {
    // SAFETY: by the promise of the caller; all loads lie in rows of 32 words.
    unsafe {
        let flip = _mm512_set1_epi8(i8::MIN);
        let mut off = _mm512_setzero_si512();
        for q in 0..b.len() {
            let row = b[q].cast::<u32>();
            let (low, high) = (_mm512_loadu_si512(row.cast()), _mm512_loadu_si512(row.add(16).cast()));
            for half in 0..2 {
                let places = _mm512_loadu_si512(BY_DEPTH[half].as_ptr().cast());
                let mut v = _mm512_permutex2var_epi32(low, places, high);
                if A_SIGNED && B_SIGNED {
                    off = _mm512_dpbusd_epi32(off, flip, v);
                } else if !A_SIGNED && !B_SIGNED {
                    v = _mm512_xor_si512(v, flip);
                }
                _mm512_storeu_si512(to.add(WORDS_OF_B * q + 16 * half).cast(), v);
            }
        }
        if A_SIGNED && B_SIGNED {
            // A vector has two depths, four columns after the other.
            let both = _mm512_add_epi32(off, _mm512_shuffle_i32x4::<0b01_00_11_10>(off, off));
            let to = to.add(WORDS_OF_B * b.len());
            _mm512_storeu_si512(to.cast(), _mm512_shuffle_i32x4::<0b00_00_00_00>(both, both));
            _mm512_storeu_si512(to.add(16).cast(), _mm512_shuffle_i32x4::<0b01_01_01_01>(both, both));
        }
    }
}

/// Products of one `a` with `N` laid out matrices, added to `c`.
///
/// # Safety
/// As for [`run`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c,lzcnt,popcnt")]
unsafe fn sums<const A_SIGNED: bool, const B_SIGNED: bool, const N: usize>(
    a: &[*const Row],
    b: [*const u32; N],
    c: &[Places; N],
    d: &[Places; N],
) {
    let depth = a.len() / 2;
    // SAFETY: by the promise of the caller; all loads and stores lie in rows of 32 words.
    unsafe {
        let (flip, ones) = (_mm512_set1_epi8(i8::MIN), _mm512_set1_epi8(1));
        let mut acc: [Lanes; N] = [[[_mm512_setzero_si512(); 2]; SUMS]; N];
        for n in 0..N {
            for i in 0..SUMS {
                for u in 0..2 {
                    acc[n][i][u] = _mm512_loadu_si512(c[n][i].add(16 * u).cast());
                }
            }
        }
        let mut of_rows = [[_mm512_setzero_si512(); 2]; 2];
        for q in 0..depth {
            let b = b.map(|b| b.wrapping_add(WORDS_OF_B * q));
            add_half::<A_SIGNED, B_SIGNED, N, 0, 0>(a[2 * q], b, &mut acc, &mut of_rows, [flip, ones]);
            add_half::<A_SIGNED, B_SIGNED, N, 0, 1>(a[2 * q], b, &mut acc, &mut of_rows, [flip, ones]);
            add_half::<A_SIGNED, B_SIGNED, N, 1, 0>(a[2 * q + 1], b, &mut acc, &mut of_rows, [flip, ones]);
            add_half::<A_SIGNED, B_SIGNED, N, 1, 1>(a[2 * q + 1], b, &mut acc, &mut of_rows, [flip, ones]);
        }
        for n in 0..N {
            for i in 0..SUMS {
                for u in 0..2 {
                    let mut sum = acc[n][i][u];
                    if A_SIGNED && B_SIGNED {
                        let off = b[n].add(WORDS_OF_B * depth + 16 * (i % 2));
                        sum = _mm512_sub_epi32(sum, _mm512_loadu_si512(off.cast()));
                    } else if !A_SIGNED && !B_SIGNED {
                        sum = _mm512_add_epi32(sum, _mm512_slli_epi32::<7>(of_rows[i / 2][u]));
                    }
                    _mm512_storeu_si512(d[n][i].add(16 * u).cast(), sum);
                }
            }
        }
    }
}

/// Sixteen lanes of a product: of two columns of rows, and the half of them.
type Lanes = [[__m512i; 2]; SUMS];

/// Adds the products of half `U` of a register of `a`, of upper (`H` is 0) or lower rows. It is a function of its own so that sums stay in registers of the host.
///
/// # Safety
/// As for [`run`]; `b` are laid out.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c,lzcnt,popcnt")]
unsafe fn add_half<const A_SIGNED: bool, const B_SIGNED: bool, const N: usize, const H: usize, const U: usize>(
    a: *const Row,
    b: [*const u32; N],
    acc: &mut [Lanes; N],
    of_rows: &mut [[__m512i; 2]; 2],
    [flip, ones]: [__m512i; 2],
) {
    // SAFETY: by the promise of the caller; all loads lie in rows of 32 words.
    unsafe {
        let mut row = _mm512_loadu_si512(a.cast::<u32>().add(16 * U).cast());
        if A_SIGNED && B_SIGNED {
            row = _mm512_xor_si512(row, flip);
        }
        let spread =
            [Avx512::spread::<0>(row), Avx512::spread::<1>(row), Avx512::spread::<2>(row), Avx512::spread::<3>(row)];
        for t in 0..4 {
            if !A_SIGNED && !B_SIGNED {
                of_rows[H][U] = _mm512_dpbusd_epi32(of_rows[H][U], spread[t], ones);
            }
            for n in 0..N {
                for e in 0..2 {
                    let columns = _mm512_broadcast_i32x4(_mm_loadu_si128(b[n].add(8 * t + 4 * e).cast()));
                    let sum = acc[n][2 * H + e][U];
                    acc[n][2 * H + e][U] = if A_SIGNED && !B_SIGNED {
                        _mm512_dpbusd_epi32(sum, columns, spread[t])
                    } else {
                        _mm512_dpbusd_epi32(sum, spread[t], columns)
                    };
                }
            }
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
