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

mod blocks;
mod by_rows;
mod bytes;
mod halves;
mod kept;
mod vectors;

use std::cell::RefCell;
use std::sync::OnceLock;

use handloom_ir::simt::{Accumulator, Blocks, Element, MatrixOp, Product, Quads, Run, Step};
use handloom_plan::Host;
use handloom_plan::host::Feature;

use super::fast::{Row, map, zip};
use super::halves::narrow_f16;
use vectors::{Avx2, Avx512, Vectors};

/// More registers than any product with vector code has in sources, or in results.
pub(super) const MAX_ROWS: usize = 20;
/// Rows that elements of a matrix are laid out in, at most.
const MAX_PLANES: usize = 16;
const CANONICAL: u32 = 0x7fff_ffff;

/// Elements of `a` and `b` as rows of 32-bit words, one for each of the parts of a register that a step takes. In lines of the cache.
#[repr(C, align(64))]
struct Planes {
    a: [Row; MAX_PLANES],
    b: [Row; MAX_PLANES],
    sums: [Row; 4],
    /// For products whose rows differ.
    elements: by_rows::Elements,
}

/// Where four rows of sums go: those of `d`, or rows for them in [`Planes`].
type Sums = [*mut u32; MAX_RESULTS];

/// Registers of `d`, at most.
pub(super) const MAX_RESULTS: usize = 8;

thread_local! {
    /// Written before it is read by each product.
    static PLANES: RefCell<Planes> = const {
        RefCell::new(Planes {
            a: [[0; 32]; MAX_PLANES],
            b: [[0; 32]; MAX_PLANES],
            sums: [[0; 32]; 4],
            elements: by_rows::Elements::EMPTY,
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
                Element::E3m2 | Element::E2m3 | Element::E2m1 | Element::E2m1Packed => {
                    // Where the code begins, how many bits it has besides the sign, how many of these are the fraction, and the bias.
                    let (first, n, fraction, bias) = match e {
                        Element::E3m2 => (0, 5, 2, 3),
                        Element::E2m3 => (0, 5, 3, 1),
                        Element::E2m1 => (2, 3, 1, 1),
                        _ => (0, 3, 1, 1),
                    };
                    let v = W::right(v, bits * part + first);
                    let code = W::left(W::and(v, (1 << n) - 1), 23 - fraction);
                    // As for `.e4m3`.
                    let value = W::scale(code, f32::from_bits((127 + 127 - bias) << 23));
                    W::or(value, W::left(W::and(v, 1 << n), 31 - n))
                }
                // The lower 13 bits of a `.tf32` do not count.
                Element::Tf32 => W::and(v, 0xffff_e000),
                Element::Bf16 => W::left(W::and(W::right(v, 16 * part), 0xffff), 16),
                Element::F64 | Element::B1 => unreachable!("bug: elements that are not laid out"),
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
    let [n_a, n_b, ..] = p.registers();
    let c = &src[n_a + n_b..];
    let is_plain = p.sparse.is_none() && p.scale.is_none();
    // SAFETY: by the caller's promise; loads and stores lie in rows of 32 words.
    unsafe {
        if p.c == Accumulator::F16 {
            for i in 0..2 * N_ROWS {
                lay_out::<W>(Element::F16, i % 2, c[i / 2], &mut planes.sums[i]);
            }
        }
        let is_direct = is_plain && p.d == Accumulator::F32 && matches!(p.a, Element::F16 | Element::Bf16);
        let direct = is_direct.then_some(out);
        match p.a {
            Element::F16 if is_plain => W::halves::<N_ROWS, false>(p, src, planes, direct),
            Element::Bf16 if is_plain => W::halves::<N_ROWS, true>(p, src, planes, direct),
            _ => {
                if p.c == Accumulator::F32 {
                    (0..2 * N_ROWS).for_each(|i| planes.sums[i] = *c[i]);
                }
                if is_plain {
                    multiply::<W, false, N_ROWS>(p, src, planes);
                } else {
                    by_rows::floats::<W>(p, src, &mut planes.elements, &mut planes.sums);
                }
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
                planes.sums[i] = both_halves(&planes.sums[2 * i], &planes.sums[2 * i + 1]);
            }
        }
        copy_out(planes, p.registers()[3], out);
    }
}

/// A product of integers, likewise.
///
/// # Safety
/// As for `floats`.
#[inline(always)]
unsafe fn integers<W: Vectors, const N_ROWS: usize>(p: Product, src: &[*const Row], planes: &mut Planes, out: &Sums) {
    planes.sums = [[0; 32]; 4];
    let [n_a, n_b, ..] = p.registers();
    let c = &src[n_a + n_b..];
    // SAFETY: by the caller's promise.
    unsafe {
        if p.sparse.is_some() || p.a == Element::B1 {
            by_rows::integers(p, src, &mut planes.elements, &mut planes.sums);
        } else {
            multiply::<W, true, N_ROWS>(p, src, planes);
        }
        add_to_c(p, c, planes, out);
    }
}

/// Adds sums of integers to `c`, and writes what comes of it.
///
/// # Safety
/// There is a row at each place of `c` and `out` that an accumulator has.
#[inline(always)]
unsafe fn add_to_c(p: Product, c: &[*const Row], planes: &mut Planes, out: &Sums) {
    // SAFETY: by the promise of the caller.
    unsafe {
        for i in 0..2 * p.n_rows() {
            let (sum, c) = (&planes.sums[i], &*c[i]);
            planes.sums[i] = if p.step == Step::AddSaturating {
                zip(sum, c, |a, b| a.cast_signed().saturating_add(b.cast_signed()).cast_unsigned())
            } else {
                zip(sum, c, u32::wrapping_add)
            };
        }
        copy_out(planes, 2 * p.n_rows(), out);
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
    /// The same, with dot products of bytes.
    Avx512Vnni,
}

impl Width {
    /// The best first.
    const ALL: [Width; 3] = [Width::Avx512Vnni, Width::Avx512, Width::Avx2];

    /// Whether a machine with this record has them.
    fn is_of(self, machine: &Host) -> bool {
        match self {
            Width::Avx2 => machine.has_row_loops(),
            Width::Avx512 => machine.has_wide_row_loops(),
            Width::Avx512Vnni => machine.has_wide_row_loops() && machine.has(Feature::Avx512vnni),
        }
    }

    /// The best of a machine with this record.
    pub(super) fn of(machine: &Host) -> Option<Width> {
        Width::ALL.into_iter().find(|w| w.is_of(machine))
    }

    /// Those that this machine has, the best first. What is used of them is for the record of the device to say.
    pub(super) fn of_host() -> &'static [Width] {
        static WIDTHS: OnceLock<Vec<Width>> = OnceLock::new();
        WIDTHS.get_or_init(|| {
            let host = Host::detect();
            Width::ALL.into_iter().filter(|w| w.is_of(&host)).collect()
        })
    }
}

/// Whether the calling thread can compute products: one that ends may have lost what it needs for them.
pub(crate) fn is_at_hand() -> bool {
    blocks::has_room() && kept::is_there()
}

/// Computes a product or four if there is vector code for it and its registers have 32 bits. `src` has all registers before the membermask; those of
/// `d` go to `out`, whose rows may be those of sources.
///
/// # Safety
/// There is a row at each source, and one that may be written at each place of `out` that a register of `d` has.
///
/// # Panics
/// When the host does not have such vectors.
pub(super) unsafe fn product(width: Width, op: MatrixOp, src: &[*const Row], out: &[*mut u32]) -> bool {
    if !is_here(op) {
        return false;
    }
    let out = &sums_of(out);
    assert!(Width::of_host().contains(&width), "{width:?} is not of this host");
    PLANES.with_borrow_mut(|planes| {
        // SAFETY: the host has the instructions, as was asked for above; the rest is by the promise of the caller.
        unsafe {
            match (op, width) {
                (MatrixOp::Product(p), _) => one(width, p, src, planes, out),
                (MatrixOp::Quads(q), _) => quads_by_avx2(q, src, out),
                (MatrixOp::Blocks(_) | MatrixOp::Run(_) | MatrixOp::Addresses(_) | MatrixOp::Transpose, _) => {
                    unreachable!("bug: no single product")
                }
            }
        }
    });
    true
}

/// The places of a product among those that follow each other; others are never looked at.
#[inline(always)]
fn sums_of(out: &[*mut u32]) -> Sums {
    let mut sums = [std::ptr::null_mut(); MAX_RESULTS];
    for i in 0..MAX_RESULTS {
        sums[i] = out.get(i).copied().unwrap_or(std::ptr::null_mut());
    }
    sums
}

/// Whether [`product`] has an op.
pub(super) fn is_here(op: MatrixOp) -> bool {
    match op {
        MatrixOp::Product(p) => p.d != Accumulator::F64,
        MatrixOp::Quads(_) => true,
        MatrixOp::Blocks(_) | MatrixOp::Run(_) | MatrixOp::Addresses(_) | MatrixOp::Transpose => false,
    }
}

/// # Safety
/// As for [`product`], and the width is of this host.
unsafe fn one(width: Width, p: Product, src: &[*const Row], planes: &mut Planes, out: &Sums) {
    // SAFETY: by the promise of the caller.
    unsafe {
        match width {
            Width::Avx2 => by_avx2(p, src, planes, out),
            Width::Avx512Vnni if bytes::is_here(p) => bytes::product(p, src, planes, out),
            Width::Avx512 | Width::Avx512Vnni => by_avx512(p, src, planes, out),
        }
    }
}

/// More registers than any product of blocks has in sources, or in results.
pub(super) const MAX_ROWS_OF_BLOCKS: usize = Blocks::MOST_TIMES * (8 + 4 * Blocks::MOST) + 4 * Blocks::MOST;
/// Registers of its `d`, at most.
pub(super) const MAX_RESULTS_OF_BLOCKS: usize = 4 * Blocks::MOST;

/// Computes products of blocks. `src` has all registers before the membermask; those of `d` go to `out`, whose rows may be those of sources.
///
/// # Safety
/// As for [`product`].
///
/// # Panics
/// When the host does not have such vectors, or registers have 64 bits.
pub(super) unsafe fn blocks(width: Width, op: Blocks, src: &[*const Row], out: &[*mut u32]) {
    assert!(Width::of_host().contains(&width), "{width:?} is not of this host");
    let [n_a, n_b, n_c, n_d] = op.registers();
    let (a, rest) = src.split_at(n_a);
    let (b, rest) = rest.split_at(n_b);
    let (c, rest) = rest.split_at(n_c);
    let (keeps, metadata) = rest.split_at(usize::from(op.times));
    let out = &out[..n_d];
    // SAFETY: by the promise of the caller.
    let keep = unsafe { &*keeps[0] };
    // SAFETY: as above.
    if keeps[1..].iter().any(|keep| unsafe { (**keep).contains(&0) }) {
        // SAFETY: as above.
        return unsafe { one_after_the_other(width, op, [a, b, c], keeps, out) };
    }
    // Rows that sums start from, other than those of `c`.
    let none = [0; 32];
    let mut kept = Vec::new();
    let mut starts = [std::ptr::from_ref(&none); MAX_RESULTS_OF_BLOCKS];
    if keep.iter().any(|word| *word != 0) {
        starts[..n_c].copy_from_slice(c);
        if !is_in_place(c, out) || keep.contains(&0) {
            // SAFETY: by the promise of the caller.
            kept.extend(c.iter().map(|row| zip(unsafe { &**row }, keep, |c, keep| if keep == 0 { 0 } else { c })));
            starts.iter_mut().zip(&kept).for_each(|(to, row)| *to = row);
        }
    }
    let sources = [a, b, &starts[..n_c]];
    // SAFETY: the host has the instructions, as was asked for above; the rest is by the promise of the caller.
    unsafe {
        match width {
            _ if !blocks::is_here(op.product) => one_by_one(width, op, sources, metadata, out),
            Width::Avx2 => blocks_by_avx2(op, sources, out),
            Width::Avx512 | Width::Avx512Vnni => blocks_by_avx512(op, sources, out),
        }
    }
}

/// Products of blocks of which a later one does not add to all sums of the one before.
///
/// # Safety
/// As for [`blocks()`].
#[cold]
unsafe fn one_after_the_other(
    width: Width,
    op: Blocks,
    [a, b, c]: [&[*const Row]; 3],
    keeps: &[*const Row],
    out: &[*mut u32],
) {
    // The results may take the places of what is still to be multiplied.
    // SAFETY: by the promise of the caller.
    let copies = [a, b, keeps].map(|rows| rows.iter().map(|row| unsafe { **row }).collect::<Vec<Row>>());
    let mut sums = c.to_vec();
    for time in 0..keeps.len() {
        let of_time = copies.iter().flat_map(|rows| rows.chunks(rows.len() / keeps.len()).nth(time));
        let mut parts = of_time.map(|rows| rows.iter().map(std::ptr::from_ref).collect::<Vec<*const Row>>());
        let [a, b, keep] = std::array::from_fn(|_| parts.next().unwrap_or_default());
        // SAFETY: by the promise of the caller.
        unsafe { blocks(width, op.once(), &[a, b, sums, keep].concat(), out) };
        sums = out.iter().map(|row| row.cast_const().cast()).collect();
    }
}

/// Whether all results take the places of the sums that they start from. Most often they do: there is no end before the last.
fn is_in_place(c: &[*const Row], out: &[*mut u32]) -> bool {
    let distances = c.iter().zip(out).map(|(from, to)| from.addr() ^ to.addr());
    c.len() == out.len() && distances.fold(0, |any, distance| any | distance) == 0
}

/// Block after block, into rows of their own first: those of `d` may be sources of the next block.
///
/// # Safety
/// As for [`blocks()`].
unsafe fn one_by_one(
    width: Width,
    op: Blocks,
    [a, b, c]: [&[*const Row]; 3],
    metadata: &[*const Row],
    out: &[*mut u32],
) {
    let (p, count) = (op.product, usize::from(op.count));
    let (n_c, n_d) = (c.len() / count, out.len() / count);
    let mut results = vec![[0; 32]; out.len()];
    PLANES.with_borrow_mut(|planes| {
        for (block, results) in results.chunks_mut(n_d).enumerate() {
            // SAFETY: by the promise of the caller.
            let fragment: Vec<Row> =
                (0..p.depth_registers()).map(|q| unsafe { blocks::fragment(op, b, [block, q]) }).collect();
            let fragment = fragment.iter().map(std::ptr::from_ref);
            let c = &c[block * n_c..][..n_c];
            let src: Vec<*const Row> =
                a.iter().copied().chain(fragment).chain(c.iter().copied()).chain(metadata.iter().copied()).collect();
            let mut places = [std::ptr::null_mut(); MAX_RESULTS];
            places.iter_mut().zip(results).for_each(|(to, row)| *to = row.as_mut_ptr());
            // SAFETY: by the promise of the caller.
            unsafe { one(width, p, &src, planes, &places) };
        }
    });
    for (to, row) in out.iter().zip(results) {
        // SAFETY: by the promise of the caller.
        unsafe { to.cast::<Row>().write(row) }
    }
}

/// Computes products of a run. `src` has all registers before the membermask; those of `d` go to `out`. `is_apart`: none of these is a row of a source.
///
/// # Safety
/// As for [`product`].
///
/// # Panics
/// When the host does not have such vectors.
pub(super) unsafe fn run(width: Width, op: Run, src: &[*const Row], out: &[*mut u32], is_apart: bool) {
    assert!(Width::of_host().contains(&width), "{width:?} is not of this host");
    let [n_a, n_b, _, n_d] = op.registers();
    let (matrices, c) = src.split_at(n_a + n_b);
    let sources = [&matrices[..n_a], &matrices[n_a..], c];
    let out = &out[..n_d];
    // SAFETY: by the promise of the caller.
    unsafe {
        // Results may take the places of the sums that they start from: these are no registers of matrices, and nobody else reads them.
        if is_apart || is_in_place(c, out) {
            run_to(width, op, sources, out);
        } else {
            run_beside(width, op, sources, out);
        }
    }
}

/// The same with results in rows of their own first. A function for itself: room for them on the stack takes time whether it is used or not.
///
/// # Safety
/// As for [`run`], and the width is of this host.
#[cold]
#[inline(never)]
unsafe fn run_beside(width: Width, op: Run, sources: [&[*const Row]; 3], out: &[*mut u32]) {
    let mut own = [[0; 32]; 4 * Run::MOST];
    let places = own.each_mut().map(|row| row.as_mut_ptr());
    // SAFETY: by the promise of the caller; each result has a row of its own.
    unsafe {
        run_to(width, op, sources, &places[..out.len()]);
        for (to, row) in out.iter().zip(&own) {
            to.cast::<Row>().write(*row);
        }
    }
}

/// Registers of a matrix of a product in a run, at most.
const MOST_IN_RUN: usize = 4;

/// # Safety
/// As for [`run`], and the width is of this host.
unsafe fn run_to(width: Width, op: Run, [a, b, c]: [&[*const Row]; 3], out: &[*mut u32]) {
    let p = op.product;
    let [n_a, n_b, n_c, n_d] = p.registers();
    if width != Width::Avx2 && blocks::is_run_of_halves(p) {
        // SAFETY: by the promise of the caller.
        return unsafe { run_by_avx512(op, [a, b, c], out) };
    }
    if width == Width::Avx512Vnni && bytes::is_run(p) {
        // SAFETY: as above.
        return unsafe { bytes::run(op, [a, b, c], out) };
    }
    PLANES.with_borrow_mut(|planes| {
        for i in 0..usize::from(op.count) {
            let [of_a, of_b] = op.operands_of(i);
            // As many registers as there may be of each, of which the next ones take the places of those that there are not: copies whose length is not
            // known would be calls.
            let mut src = [std::ptr::null(); MAX_ROWS];
            for (first, from) in [(0, &a[of_a * n_a..]), (n_a, &b[of_b * n_b..]), (n_a + n_b, &c[i * n_c..])] {
                for r in 0..MOST_IN_RUN {
                    src[first + r] = from.get(r).copied().unwrap_or(std::ptr::null());
                }
            }
            // SAFETY: by the promise of the caller.
            unsafe { one(width, p, &src[..n_a + n_b + n_c], planes, &sums_of(&out[i * n_d..])) };
        }
    });
}

/// # Safety
/// As for [`run`].
#[target_feature(enable = "avx512f,avx512bw,avx2,fma,f16c,lzcnt,popcnt")]
unsafe fn run_by_avx512(op: Run, sources: [&[*const Row]; 3], out: &[*mut u32]) {
    // SAFETY: this function has the features; the rest is by the promise of the caller.
    unsafe {
        if op.product.b == Element::F16 {
            blocks::run_of_halves::<false>(op, sources, out);
        } else {
            blocks::run_of_halves::<true>(op, sources, out);
        }
    }
}

/// # Safety
/// As for [`blocks()`].
#[target_feature(enable = "avx2,fma,f16c,lzcnt,popcnt")]
unsafe fn blocks_by_avx2(op: Blocks, sources: [&[*const Row]; 3], out: &[*mut u32]) {
    // SAFETY: this function has the features; the rest is by the promise of the caller.
    unsafe { blocks::floats::<Avx2, 1>(op, sources, out) }
}

/// # Safety
/// As for [`blocks()`].
#[target_feature(enable = "avx512f,avx512bw,avx2,fma,f16c,lzcnt,popcnt")]
unsafe fn blocks_by_avx512(op: Blocks, sources: [&[*const Row]; 3], out: &[*mut u32]) {
    // SAFETY: this function has the features; the rest is by the promise of the caller.
    unsafe { blocks::floats::<Avx512, 2>(op, sources, out) }
}

/// Whether [`doubles`] has an op.
pub(super) fn has_doubles(op: MatrixOp) -> Option<Product> {
    match op {
        MatrixOp::Product(p) if p.d == Accumulator::F64 && by_rows::rounds(p.step) => Some(p),
        _ => None,
    }
}

/// A product of `.f64` that [`has_doubles`] found. `src` has the registers of `a`, `b` and `c`, `dst` those of `d`.
///
/// # Panics
/// When the host does not have such vectors.
pub(super) fn doubles(width: Width, p: Product, src: &[[u64; 32]], dst: &mut [[u64; 32]]) {
    assert!(Width::of_host().contains(&width), "{width:?} is not of this host");
    // SAFETY: the host has the instructions, as was asked for above.
    unsafe {
        match width {
            Width::Avx2 => doubles_by_avx2(p, src, dst),
            Width::Avx512 | Width::Avx512Vnni => doubles_by_avx512(p, src, dst),
        }
    }
}

#[target_feature(enable = "avx2,fma,f16c,lzcnt,popcnt")]
fn doubles_by_avx2(p: Product, src: &[[u64; 32]], dst: &mut [[u64; 32]]) {
    by_rows::doubles(p, src, dst);
}

#[target_feature(enable = "avx512f,avx512bw,avx2,fma,f16c,lzcnt,popcnt")]
fn doubles_by_avx512(p: Product, src: &[[u64; 32]], dst: &mut [[u64; 32]]) {
    by_rows::doubles(p, src, dst);
}

/// # Safety
/// As for [`product`].
#[target_feature(enable = "avx2,fma,f16c,lzcnt,popcnt")]
unsafe fn quads_by_avx2(q: Quads, src: &[*const Row], out: &[*mut u32; MAX_RESULTS]) {
    let (mut a, mut b, mut c, mut d) = ([[0; 32]; 4], [[0; 32]; 4], [[0; 32]; 8], [[0; 32]; 8]);
    // SAFETY: by the promise of the caller.
    unsafe {
        for i in 0..4 {
            lay_out::<Avx2>(Element::F16, i % 2, src[i / 2], &mut a[i]);
            lay_out::<Avx2>(Element::F16, i % 2, src[2 + i / 2], &mut b[i]);
        }
        for i in 0..8 {
            if q.c == Accumulator::F16 {
                lay_out::<Avx2>(Element::F16, i % 2, src[4 + i / 2], &mut c[i]);
            } else {
                c[i] = *src[4 + i];
            }
        }
        by_rows::quads(q, &a, &b, &c, &mut d);
        for i in 0..8 {
            if q.d == Accumulator::F16 {
                if i % 2 == 0 {
                    out[i / 2].cast::<Row>().write(both_halves(&d[i], &d[i + 1]));
                }
            } else {
                out[i].cast::<Row>().write(d[i]);
            }
        }
    }
}

/// Two rows of `.f32` as pairs of `.f16`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,lzcnt,popcnt")]
fn both_halves(low: &Row, high: &Row) -> Row {
    let (low, high) = (narrow_f16(&map(low, f32::from_bits)), narrow_f16(&map(high, f32::from_bits)));
    zip(&low, &high, |low, high| low | high << 16)
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
mod exact;
#[cfg(test)]
mod tests;
