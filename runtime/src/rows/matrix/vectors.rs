//! Vectors of hosts, as products use them.

use std::arch::x86_64::*;

use handloom_ir::simt::{Blocks, HeldB, Product};

use super::{CANONICAL, Planes, Row, Sums, blocks, halves};

/// Vectors of the host, and what products do with them.
///
/// # Safety
/// All functions: the host has the instructions. `load` and `store`: there are as many words as a vector has lanes.
pub(super) trait Vectors {
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
    /// The four words at a place in each four lanes.
    unsafe fn four(from: *const u32) -> Self::V;
    /// Whether a lane of one or the other is a NaN.
    unsafe fn has_nan(a: Self::V, b: Self::V) -> bool;
    /// Elements of a register of `b`, as [`lay_out`](super::lay_out) makes them, by depth: eight columns for each of four lanes, those of even number
    /// first, `distance` words from one to the next.
    unsafe fn by_depth(plane: &Row, to: *mut u32, distance: usize);
    /// The eight depths of a register of `b` of 16-bit floats by depth likewise, one after the other.
    unsafe fn halves_by_depth<const IS_BF16: bool>(op: Blocks, rows: &[*const Row], at: [usize; 2], to: *mut f32);
    /// A register of the fragment of a block.
    unsafe fn fragment(op: Blocks, rows: &[*const Row], at: [usize; 2]) -> Row;
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
pub(super) struct Avx2;

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
    unsafe fn four(from: *const u32) -> __m256i {
        // SAFETY: by the promise of the caller.
        unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn has_nan(a: __m256i, b: __m256i) -> bool {
        // SAFETY: by the promise of the caller.
        unsafe {
            let is = _mm256_cmp_ps::<_CMP_UNORD_Q>(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
            _mm256_movemask_ps(is) != 0
        }
    }

    #[inline(always)]
    unsafe fn by_depth(plane: &Row, to: *mut u32, distance: usize) {
        for t in 0..4 {
            for i in 0..8 {
                // SAFETY: by the promise of the caller.
                unsafe { to.add(t * distance + i).write(plane[4 * (2 * (i % 4) + i / 4) + t]) }
            }
        }
    }

    #[inline(always)]
    unsafe fn halves_by_depth<const IS_BF16: bool>(op: Blocks, rows: &[*const Row], at: [usize; 2], to: *mut f32) {
        // SAFETY: by the promise of the caller.
        unsafe { halves::lay_out_256::<IS_BF16>(&blocks::fragment(op, rows, at), to) }
    }

    #[inline(always)]
    unsafe fn fragment(op: Blocks, rows: &[*const Row], at: [usize; 2]) -> Row {
        // SAFETY: by the promise of the caller.
        unsafe { blocks::fragment(op, rows, at) }
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

/// Where the eight columns of the lanes 0 and 1, then 2 and 3 of all groups are in a plane, those of even number first.
static PLANE_BY_DEPTH: [[u32; 16]; 2] = {
    let mut table = [[0; 16]; 2];
    let mut i = 0;
    while i < 32 {
        let (t, column) = (i / 8, 2 * (i % 4) + i / 4 % 2);
        table[i / 16][i % 16] = (4 * column + t) as u32;
        i += 1;
    }
    table
};

/// Where the words of a fragment are in the vectors of [`held_512`], for fragments and for columns.
static FRAGMENTS: [[[u32; 16]; 2]; 2] = {
    let mut table = [[[0; 16]; 2]; 2];
    let mut i = 0;
    while i < 32 {
        table[0][i / 16][i % 16] = i as u32;
        table[1][i / 16][i % 16] = (8 * (i % 4) + i / 4) as u32;
        i += 1;
    }
    table
};

/// What holds a register of the fragment of a block: its row, or the words of the units of eight lanes, one after the other.
///
/// # Safety
/// The host has AVX-512 F; `rows` are all of `b`.
#[inline(always)]
unsafe fn held_512(op: Blocks, rows: &[*const Row], [block, q]: [usize; 2]) -> [__m512i; 2] {
    let n = block * op.product.depth_registers() + q;
    // SAFETY: by the promise of the caller; eight lanes of a row are half a vector.
    unsafe {
        if op.b == HeldB::Fragments {
            let row = rows[n].cast::<u32>();
            return [Avx512::load(row), Avx512::load(row.add(16))];
        }
        let words = |i: usize| _mm256_loadu_si256(rows[n / 4 * 4 + i].cast::<u32>().add(n % 4 * 8).cast());
        let two = |i: usize| _mm512_inserti64x4::<1>(_mm512_castsi256_si512(words(i)), words(i + 1));
        [two(0), two(2)]
    }
}

/// Vectors of 512 bits.
pub(super) struct Avx512;

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
    unsafe fn four(from: *const u32) -> __m512i {
        // SAFETY: by the promise of the caller.
        unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn has_nan(a: __m512i, b: __m512i) -> bool {
        // SAFETY: by the promise of the caller.
        unsafe { _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b)) != 0 }
    }

    #[inline(always)]
    unsafe fn by_depth(plane: &Row, to: *mut u32, distance: usize) {
        // SAFETY: by the promise of the caller; a row has two vectors.
        unsafe {
            let (low, high) = (Avx512::load(plane.as_ptr()), Avx512::load(plane.as_ptr().add(16)));
            for i in 0..2 {
                let two = _mm512_permutex2var_epi32(low, Avx512::load(PLANE_BY_DEPTH[i].as_ptr()), high);
                _mm256_storeu_si256(to.add(2 * i * distance).cast(), _mm512_castsi512_si256(two));
                _mm256_storeu_si256(to.add((2 * i + 1) * distance).cast(), _mm512_extracti64x4_epi64::<1>(two));
            }
        }
    }

    #[inline(always)]
    unsafe fn halves_by_depth<const IS_BF16: bool>(op: Blocks, rows: &[*const Row], at: [usize; 2], to: *mut f32) {
        // SAFETY: by the promise of the caller.
        unsafe {
            let held = held_512(op, rows, at);
            halves::lay_out_512::<IS_BF16>(held, &halves::HALVES_BY_DEPTH[op.b as usize], to);
        }
    }

    #[inline(always)]
    unsafe fn fragment(op: Blocks, rows: &[*const Row], at: [usize; 2]) -> Row {
        // SAFETY: by the promise of the caller.
        unsafe {
            if op.b == HeldB::Depths {
                return blocks::fragment(op, rows, at);
            }
            let [low, high] = held_512(op, rows, at);
            let mut row = [0; 32];
            for i in 0..2 {
                let order = Avx512::load(FRAGMENTS[op.b as usize][i].as_ptr());
                Avx512::store(row.as_mut_ptr().add(16 * i), _mm512_permutex2var_epi32(low, order, high));
            }
            row
        }
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
