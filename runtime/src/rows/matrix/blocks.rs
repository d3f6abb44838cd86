//! Products of one `a` with several blocks of eight columns: both matrices are laid out once (the second one for all warps that multiply by it, `kept`), and sums of two blocks stay in registers of the host
//! through all depths.
//!
//! `a` is spread over groups of four lanes, a row of two registers for each depth, and each four lanes of sums want the same four numbers of `b`: the
//! even or the odd columns of a block at that depth.
//!
//! Invariants: as for all products, results are those of `num::matrix`, bit for bit.

use std::cell::RefCell;

use handloom_ir::simt::{Accumulator, Blocks, Element, HeldB, Product, Run};

use super::vectors::{Avx512, Vectors};
use super::{Row, both_halves, halves, kept, lay_out};

/// Words of the cache that vectors lie in.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [u32; 16]);

/// Sums of a block: two columns of a row, then those of the next.
pub(super) const SUMS: usize = 4;
/// Words of `a` for a depth: two registers.
const WORDS_OF_A: usize = 64;
/// Words of `b` for a depth of a block.
const WORDS_OF_B: usize = 8;

/// A block of sums: where each of the rows is.
pub(super) type Places = [*mut u32; SUMS];

thread_local! {
    /// Written before it is read by each product.
    static LAID_OUT: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
}

/// Whether the sums are computed here; others are products block after block.
pub(super) fn is_here(p: Product) -> bool {
    p.m == 16 && p.sparse.is_none() && p.scale.is_none() && matches!(p.d, Accumulator::F16 | Accumulator::F32)
}

/// A register of the fragment of a block.
///
/// # Safety
/// `rows` are all of `b`.
#[inline(always)]
pub(super) unsafe fn fragment(op: Blocks, rows: &[*const Row], [block, q]: [usize; 2]) -> Row {
    let mut row = [0; 32];
    for lane in 0..32 {
        // SAFETY: by the promise of the caller.
        row[lane] = op.fragment(block, q, lane, |register, lane| unsafe { (*rows[register])[lane] });
    }
    row
}

/// Computes all blocks, `AT_ONCE` or one at a time. `c` are the rows that sums start from, and `out` those that they go to, which may be the same.
///
/// # Safety
/// The host has the instructions of `W`, and those of AVX2; there is a row at each place.
#[inline(always)]
pub(super) unsafe fn floats<W: Vectors, const AT_ONCE: usize>(
    op: Blocks,
    [a, b, c]: [&[*const Row]; 3],
    out: &[*mut u32],
) {
    let (p, count, times) = (op.product, usize::from(op.count), usize::from(op.times));
    let depth = usize::from(p.k);
    let (words_of_a, words_of_block) = (WORDS_OF_A * depth, WORDS_OF_B * depth);
    let (n_a, n_b) = (a.len() / times, b.len() / times);
    let laid_out = room(words_of_a * times);
    let mut all_b = [std::ptr::null(); Blocks::MOST_TIMES];
    // SAFETY: by the promise of the caller; all words are in the rooms, which nobody else uses before this function ends.
    unsafe {
        for time in 0..times {
            lay_out_a::<W>(p, &a[time * n_a..][..n_a], laid_out.add(words_of_a * time));
            let b = &b[time * n_b..][..n_b];
            let (laid_out_b, is_there) = kept::find((op.once(), W::LANES), b, words_of_block * count);
            if !is_there {
                for block in 0..count {
                    lay_out_b::<W>(op, b, block, laid_out_b.add(words_of_block * block));
                }
            }
            all_b[time] = laid_out_b.cast_const();
        }
        let all_b = &all_b[..times];
        let mut block = 0;
        while block < count {
            let at = words_of_block * block;
            if p.c == Accumulator::F16 || p.d == Accumulator::F16 {
                with_halves::<W>(p, laid_out, all_b[0].add(at), (c, out), block);
                block += 1;
            } else if block + AT_ONCE <= count {
                let (c, d) = (places_of::<AT_ONCE>(c, block), places_to::<AT_ONCE>(out, block));
                sums::<W, AT_ONCE>(depth, laid_out, (all_b, at), &c, &d);
                block += AT_ONCE;
            } else {
                sums::<W, 1>(depth, laid_out, (all_b, at), &places_of(c, block), &places_to(out, block));
                block += 1;
            }
        }
    }
}

/// Whether the calling thread has room for products: one that ends loses what it had.
pub(super) fn has_room() -> bool {
    LAID_OUT.try_with(|_| ()).is_ok()
}

/// Room for so many words, at a line of the cache: the same for each product of a thread. No closure may compute there: it would not have the features of
/// the host.
pub(super) fn room(words: usize) -> *mut u32 {
    LAID_OUT.with_borrow_mut(|lines| {
        if 16 * lines.len() < words {
            lines.resize(words.div_ceil(16), Line([0; 16]));
        }
        lines.as_mut_ptr().cast()
    })
}

/// Lays `a` out: for each depth, its element of the row of each lane's group.
///
/// # Safety
/// As for [`floats`]; `to` has room for all depths.
#[inline(always)]
unsafe fn lay_out_a<W: Vectors>(p: Product, a: &[*const Row], to: *mut u32) {
    let per = p.a.per_register();
    let mut plane = [0; 32];
    for register in 0..a.len() {
        let (q, h) = (register / 2, register % 2);
        for part in 0..per {
            // SAFETY: by the promise of the caller.
            unsafe {
                lay_out::<W>(p.a, part, a[register], &mut plane);
                let to = to.add(WORDS_OF_A * (4 * q * per + part) + 32 * h);
                let mut at = 0;
                while at < 32 {
                    let v = W::load(plane.as_ptr().add(at));
                    W::store(to.add(at), W::spread::<0>(v));
                    W::store(to.add(WORDS_OF_A * per + at), W::spread::<1>(v));
                    W::store(to.add(WORDS_OF_A * 2 * per + at), W::spread::<2>(v));
                    W::store(to.add(WORDS_OF_A * 3 * per + at), W::spread::<3>(v));
                    at += W::LANES;
                }
            }
        }
    }
}

/// Lays a block of `b` out by depth.
///
/// # Safety
/// As for [`floats`]; `to` has room for the block.
#[inline(always)]
unsafe fn lay_out_b<W: Vectors>(op: Blocks, b: &[*const Row], block: usize, to: *mut u32) {
    let (e, per) = (op.product.b, op.product.b.per_register());
    for q in 0..op.product.depth_registers() {
        // SAFETY: by the promise of the caller.
        unsafe {
            let to = to.add(WORDS_OF_B * 4 * per * q);
            match e {
                Element::F16 => W::halves_by_depth::<false>(op, b, [block, q], to.cast()),
                Element::Bf16 => W::halves_by_depth::<true>(op, b, [block, q], to.cast()),
                _ => {
                    let (row, mut plane) = (W::fragment(op, b, [block, q]), [0; 32]);
                    for part in 0..per {
                        lay_out::<W>(e, part, &row, &mut plane);
                        W::by_depth(&plane, to.add(WORDS_OF_B * part), WORDS_OF_B * per);
                    }
                }
            }
        }
    }
}

#[inline(always)]
pub(super) fn places_of<const N: usize>(c: &[*const Row], block: usize) -> [Places; N] {
    let mut places = [[std::ptr::null_mut(); SUMS]; N];
    for n in 0..N {
        for i in 0..SUMS {
            places[n][i] = c[(block + n) * SUMS + i].cast_mut().cast();
        }
    }
    places
}

#[inline(always)]
pub(super) fn places_to<const N: usize>(out: &[*mut u32], block: usize) -> [Places; N] {
    let mut places = [[std::ptr::null_mut(); SUMS]; N];
    for n in 0..N {
        for i in 0..SUMS {
            places[n][i] = out[(block + n) * SUMS + i];
        }
    }
    places
}

/// The sums of `N` blocks, as [`lay_out_a`] and [`lay_out_b`] have made the matrices: from `c` to `d`. The `a` of all times follow each other, and the first block
/// of each of `all_b` lies `at` words behind its beginning.
///
/// # Safety
/// As for [`floats`].
#[inline(always)]
unsafe fn sums<W: Vectors, const N: usize>(
    depth: usize,
    a: *const u32,
    (all_b, at): (&[*const u32], usize),
    c: &[Places; N],
    d: &[Places; N],
) {
    let mut first = 0;
    while first < 32 {
        // SAFETY: by the promise of the caller; two vectors end within a row, since their lanes divide it.
        unsafe {
            let mut acc = [[[W::zero(); 2]; SUMS]; N];
            for n in 0..N {
                for i in 0..SUMS {
                    for u in 0..2 {
                        acc[n][i][u] = W::load(c[n][i].add(first + W::LANES * u));
                    }
                }
            }
            for time in 0..all_b.len() {
                let (a, b) = (a.add(WORDS_OF_A * depth * time), all_b[time].add(at));
                for k in 0..depth {
                    let mut rows = [[W::zero(); 2]; 2];
                    for h in 0..2 {
                        for u in 0..2 {
                            rows[h][u] = W::load(a.add(WORDS_OF_A * k + 32 * h + first + W::LANES * u));
                        }
                    }
                    for n in 0..N {
                        for e in 0..2 {
                            let columns = W::four(b.add(WORDS_OF_B * (depth * n + k) + 4 * e));
                            for h in 0..2 {
                                for u in 0..2 {
                                    acc[n][2 * h + e][u] = W::fma(rows[h][u], columns, acc[n][2 * h + e][u]);
                                }
                            }
                        }
                    }
                }
            }
            let mut has_nan = false;
            for n in 0..N {
                for i in 0..SUMS {
                    has_nan |= W::has_nan(acc[n][i][0], acc[n][i][1]);
                }
            }
            for n in 0..N {
                for i in 0..SUMS {
                    for u in 0..2 {
                        let sum = if has_nan { W::canonical(acc[n][i][u]) } else { acc[n][i][u] };
                        W::store(d[n][i].add(first + W::LANES * u), sum);
                    }
                }
            }
        }
        first += 2 * W::LANES;
    }
}

/// The same for a block of which some sums are of `.f16`.
///
/// # Safety
/// As for [`floats`].
#[inline(always)]
unsafe fn with_halves<W: Vectors>(
    p: Product,
    a: *const u32,
    b: *const u32,
    (c, out): (&[*const Row], &[*mut u32]),
    block: usize,
) {
    let mut own = [Line([0; 16]); 2 * SUMS];
    let rows: [*mut Row; SUMS] = std::array::from_fn(|i| own[2 * i..].as_mut_ptr().cast());
    let [.., n_c, n_d] = p.registers();
    // SAFETY: by the promise of the caller.
    unsafe {
        for i in 0..SUMS {
            let c = &c[block * n_c..];
            if p.c == Accumulator::F16 {
                lay_out::<W>(Element::F16, i % 2, c[i / 2], &mut *rows[i]);
            } else {
                *rows[i] = *c[i];
            }
        }
        let places = [rows.map(|row| row.cast::<u32>())];
        sums::<W, 1>(usize::from(p.k), a, (&[b], 0), &places, &places);
        for i in 0..n_d {
            let to = out[block * n_d + i].cast::<Row>();
            to.write(if p.d == Accumulator::F16 { both_halves(&*rows[2 * i], &*rows[2 * i + 1]) } else { *rows[i] });
        }
    }
}

/// Whether a run of products is for [`run_of_halves`].
pub(super) fn is_run_of_halves(p: Product) -> bool {
    p.m == 16 && p.c == Accumulator::F32 && p.d == Accumulator::F32 && matches!(p.b, Element::F16 | Element::Bf16)
}

/// Computes a run of products of 16-bit floats, two of one `a` at a time. Each `b` is laid out once.
///
/// # Safety
/// The host has AVX-512 F and BW; there is a row at each place, and none of `out` is one of the matrices, or of `c` but at its own place.
#[inline(always)]
pub(super) unsafe fn run_of_halves<const IS_BF16: bool>(op: Run, [a, b, c]: [&[*const Row]; 3], out: &[*mut u32]) {
    let (p, [_, n_b]) = (op.product, op.n_operands);
    let all_b = Blocks { product: p, count: n_b, times: 1, b: HeldB::Fragments };
    let (n_a, words_of_b) = (p.registers()[0], WORDS_OF_B * usize::from(p.k));
    let laid_out = room(words_of_b * usize::from(n_b));
    // SAFETY: by the promise of the caller; all words are in the room, which nobody else uses before this function ends.
    unsafe {
        for i in 0..usize::from(n_b) {
            lay_out_b::<Avx512>(all_b, b, i, laid_out.add(words_of_b * i));
        }
        let laid_out = laid_out.cast::<f32>().cast_const();
        let mut i = 0;
        while i < usize::from(op.count) {
            let [of_a, of_b] = op.operands_of(i);
            let (a, of_b) = (&a[of_a * n_a..][..n_a], laid_out.add(words_of_b * of_b));
            let [next_a, next_b] = op.operands_of((i + 1) % Run::MOST);
            if i + 1 < usize::from(op.count) && next_a == of_a {
                let next_b = laid_out.add(words_of_b * next_b);
                halves::sums_512::<2, IS_BF16, 2>(a, [of_b, next_b], places_of(c, i), places_to(out, i));
                i += 2;
            } else {
                halves::sums_512::<2, IS_BF16, 1>(a, [of_b], places_of(c, i), places_to(out, i));
                i += 1;
            }
        }
    }
}
