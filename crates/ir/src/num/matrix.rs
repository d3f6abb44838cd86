//! Matrix ops over the rows of a warp: the one definition of what they compute.
//!
//! Choice: products of floats are added one by one in ascending order of depth, each with one rounding to nearest at `.f32`, or at `.f64`. The
//! manual leaves the order and the precision of the sums open. An accumulator of `.f16` is rounded at the end. Of a sparse `a` only the elements
//! that are there are multiplied, so that an infinity of `b` where `a` has none does not count.
//!
//! So results do not depend on the host, and lie within this of the exact sum, where nothing overflows: of `n` products, `n * u` times the sum of the
//! absolute values of `c` and of all products, where `u` is `2^-24` at `.f32` and `2^-53` at `.f64` (to the first order: each of the `n` additions
//! rounds a partial sum, which is no larger than that sum, by at most `u` of it, and products are not rounded). An accumulator of `.f16` adds half
//! a unit of its last place. The manual asks for products and sums of at least single precision in any order and rounding: a machine that
//! rounds each product and each sum of `.f32` once to one of the two neighbours may be `2 * (n + 1) * u` times the same sum off, which is more
//! than twice as much. Sums of `.f64` are those of `fma`, as the manual says. Sums of integers are exact, and wrap or saturate once at the end.
//!
//! Choice: with scales of blocks, the products of a block are added likewise from zero on, and the sums of the blocks, each times both scales, to
//! `c` in ascending order at `.f64`. A sum times its scales is exact there, and the result is rounded to `.f32` once. That is within `(n + 1) * u`,
//! where `n` is the number of products of a block and each product counts with its scales.
//!
//! Choice: metadata that the manual calls invalid is taken as it is: each two bits are the place of an element in its chunk, also if both say the
//! same or the greater one comes first. Of the four bits of a `.tf32` the second decides.

use crate::simt::{
    Accumulator, Addresses, Blocks, Cvt, Element, FMode, MatrixOp, Place, Product, Quads, Run, Scale, ScaleFormat, Step,
};
use crate::types::{Float, Int, Rounding, ScalarType};

use super::format::{Format, power_of_two, widen};
use super::{arith, cvt, int};

/// A register of all lanes.
pub type Row = [u64; 32];

/// Computes the op for the lanes of `active`. `src` has the registers before the membermask; `dst` has one row for each result.
///
/// # Panics
/// When there are fewer rows than [`MatrixOp::sources`] and [`MatrixOp::results`] have types.
pub fn matrix(op: MatrixOp, active: u32, src: &[Row], dst: &mut [Row]) {
    match op {
        MatrixOp::Product(p) => product(p, src, dst),
        MatrixOp::Blocks(b) => blocks(b, src, dst),
        MatrixOp::Run(r) => run(r, src, dst),
        MatrixOp::Quads(q) => quads(q, src, dst),
        MatrixOp::Addresses(a) => addresses(a, active, &src[0], dst),
        MatrixOp::Transpose => {
            dst[0] = std::array::from_fn(|lane| {
                let (g, t) = (lane / 4, lane % 4);
                // Column `g` of the rows `2 * t` and the next.
                let element = |row: usize| src[0][4 * row + g / 2] >> (16 * (g % 2)) & 0xffff;
                element(2 * t) | element(2 * t + 1) << 16
            });
        }
    }
}

fn addresses(a: Addresses, active: u32, rows: &Row, dst: &mut [Row]) {
    for (i, to) in dst.iter_mut().enumerate() {
        *to = std::array::from_fn(|lane| {
            let (from, distance) = a.lines.source(i, lane);
            // Choice: the address of a lane that does not take part is undefined; we take the lane's own.
            let row = rows[if active >> from & 1 == 1 { from } else { lane }];
            row.wrapping_add(distance) & a.ty.mask()
        });
    }
}

/// The bits of an element.
fn read(rows: &[Row], at: Place, bits: u32) -> u64 {
    rows[at.register][at.lane] >> at.bit & u64::MAX >> (64 - bits)
}

fn write(rows: &mut [Row], at: Place, bits: u32, value: u64) {
    let word = &mut rows[at.register][at.lane];
    *word = if bits < 32 { *word & !(((1 << bits) - 1) << at.bit) | value << at.bit } else { value };
}

fn product(p: Product, src: &[Row], dst: &mut [Row]) {
    let [n_a, n_b, n_c, _] = p.registers();
    let (a, rest) = src.split_at(n_a);
    let (b, rest) = rest.split_at(n_b);
    let (c, more) = rest.split_at(n_c);
    let (metadata, scales) = more.split_at(usize::from(p.sparse.is_some()));
    let sources = Sources { a, b, c, depths: depths(p, metadata) };
    match p.d {
        Accumulator::S32 => integers(p, &sources, dst),
        Accumulator::F64 => doubles(p, &sources, dst),
        Accumulator::F16 | Accumulator::F32 => floats(p, &sources, scales, dst),
    }
}

/// Block after block as a product, one time after the other.
fn blocks(op: Blocks, src: &[Row], dst: &mut [Row]) {
    let ([n_a, n_b, n_c, n_d], times) = (op.registers(), usize::from(op.times));
    let (a, rest) = src.split_at(n_a);
    let (b, rest) = rest.split_at(n_b);
    let (c, rest) = rest.split_at(n_c);
    let (keep, metadata) = rest.split_at(times);
    let mut sums = c.to_vec();
    for (time, keep) in keep.iter().enumerate() {
        let (n_a, n_b) = (n_a / times, n_b / times);
        let matrices = [&a[time * n_a..][..n_a], &b[time * n_b..][..n_b]];
        blocks_once(op.once(), matrices, &sums, (keep, metadata), dst);
        sums = dst[..n_d].to_vec();
    }
}

fn blocks_once(op: Blocks, [a, b]: [&[Row]; 2], c: &[Row], (keep, metadata): (&Row, &[Row]), dst: &mut [Row]) {
    let (p, [.., n_c, n_d]) = (op.product, op.registers());
    let count = usize::from(op.count);
    let word = |register: usize, lane: usize| b[register][lane] as u32;
    for (block, dst) in dst[..n_d].chunks_mut(n_d / count).enumerate() {
        let fragment = (0..p.depth_registers()).map(|q| std::array::from_fn(|l| op.fragment(block, q, l, word).into()));
        let c = c[block * n_c / count..][..n_c / count].iter();
        let kept = c.map(|c| std::array::from_fn(|l| if keep[l] == 0 { 0 } else { c[l] }));
        let src: Vec<Row> = a.iter().copied().chain(fragment).chain(kept).chain(metadata.iter().copied()).collect();
        product(p, &src, dst);
    }
}

/// Product after product.
fn run(op: Run, src: &[Row], dst: &mut [Row]) {
    let (p, [all_a, all_b, ..]) = (op.product, op.registers());
    let [n_a, n_b, n_c, n_d] = p.registers();
    for i in 0..usize::from(op.count) {
        let [a, b] = op.operands_of(i);
        let (a, b, c) =
            (&src[a * n_a..][..n_a], &src[all_a + b * n_b..][..n_b], &src[all_a + all_b + i * n_c..][..n_c]);
        product(p, &[a, b, c].concat(), &mut dst[i * n_d..][..n_d]);
    }
}

/// What a product reads.
struct Sources<'s> {
    a: &'s [Row],
    b: &'s [Row],
    c: &'s [Row],
    /// For each row the depths of the elements of `a` that are there, as they are stored.
    depths: Vec<Vec<usize>>,
}

fn depths(p: Product, metadata: &[Row]) -> Vec<Vec<usize>> {
    let rows = 0..usize::from(p.m);
    if p.sparse.is_none() {
        return rows.map(|_| (0..usize::from(p.k)).collect()).collect();
    }
    let (size, together) = p.chunk();
    rows.map(|row| {
        let chunks = (0..usize::from(p.k) / size)
            .flat_map(|chunk| kept((size, together), chunk, read(metadata, p.place_of_metadata(row, chunk), 4)));
        chunks.collect()
    })
    .collect()
}

/// The depths of the elements of a chunk of a sparse `a` that are there. `size`: its elements, and how many of these follow each other, as
/// [`Product::chunk`] has them.
pub fn kept((size, together): (usize, usize), chunk: usize, metadata: u64) -> impl Iterator<Item = usize> {
    let (bits, first) = (metadata as usize & 15, chunk * size);
    // A chunk of two has one element, whose place counts halves of it.
    let places = if size == 2 { vec![bits >> 1 & 1] } else { vec![bits & 3, bits >> 2] };
    places.into_iter().flat_map(move |at| (0..together).map(move |i| first + at * together + i))
}

/// The elements of `a` by rows and those of `b` by columns.
fn elements<T>(p: Product, s: &Sources<'_>, of: impl Fn(Element, u64) -> T) -> (Vec<Vec<T>>, Vec<Vec<T>>) {
    let a = (0..usize::from(p.m)).map(|row| {
        let element = |depth| of(p.a, read(s.a, p.place_of_a(row, depth), p.a.bits()));
        (0..p.stored_depth()).map(element).collect()
    });
    let b = (0..8).map(|column| {
        let element = |depth| of(p.b, read(s.b, p.place_of_b(depth, column), p.b.bits()));
        (0..usize::from(p.k)).map(element).collect()
    });
    (a.collect(), b.collect())
}

/// Sets each element of `d` to what `f` makes of its row, its column and the bits of `c`.
fn for_each_sum(p: Product, s: &Sources<'_>, dst: &mut [Row], f: impl Fn(usize, usize, u64) -> u64) {
    for row in 0..usize::from(p.m) {
        for column in 0..8 {
            let c = read(s.c, Product::place_of_sum(p.c, row, column), p.c.bits());
            write(dst, Product::place_of_sum(p.d, row, column), p.d.bits(), f(row, column, c));
        }
    }
}

fn floats(p: Product, s: &Sources<'_>, scales: &[Row], dst: &mut [Row]) {
    let (a, b) = elements(p, s, float_element);
    let dot = |row: usize, column: usize, first: usize, n: usize, start: f32| {
        let (a, depths) = (&a[row][first..first + n], &s.depths[row][first..first + n]);
        a.iter().zip(depths).fold(start, |sum, (a, depth)| a.mul_add(b[column][*depth], sum))
    };
    for_each_sum(p, s, dst, |row, column, c| {
        let (c, n) = (start(p.c, c), p.stored_depth());
        let sum = match p.scale {
            None => dot(row, column, 0, n, c),
            Some(scale) => {
                let n = n / usize::from(scale.blocks);
                let blocks = (0..usize::from(scale.blocks)).map(|block| {
                    let by = scale_of_a(scale, scales, row, block) * scale_of_b(scale, scales, column, block);
                    f64::from(dot(row, column, block * n, n, 0.0)) * by
                });
                blocks.fold(f64::from(c), |sum, block| sum + block) as f32
            }
        };
        end(p.d, sum)
    });
}

/// The accumulator that a sum starts from.
pub fn start(of: Accumulator, bits: u64) -> f32 {
    match of {
        Accumulator::F16 => widen(&Format::F16, bits) as f32,
        Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => f32::from_bits(bits as u32),
    }
}

/// The bits that a sum becomes.
pub fn end(to: Accumulator, sum: f32) -> u64 {
    let bits = if sum.is_nan() { 0x7fff_ffff } else { u64::from(sum.to_bits()) };
    if to == Accumulator::F16 { cvt(Cvt::plain(ScalarType::F16, ScalarType::F32), &[bits]) } else { bits }
}

/// The scale of a block of a row of `a`: of each four lanes, two have those of the rows `g` and `g + 8`.
///
/// Choice: all lanes name the same byte and the same lanes; those that the first lane names are taken. Numbers that name no byte or lane wrap.
fn scale_of_a(s: Scale, src: &[Row], row: usize, block: usize) -> f64 {
    let (byte, pair) = (src[1][0] as usize, src[2][0] as usize % 2);
    scale(s.format, src[0][4 * (row % 8) + 2 * pair + row / 8] >> (8 * ((byte + block) % 4)) & 0xff)
}

/// The scale of a block of a column of `b`: one of each four lanes has it.
fn scale_of_b(s: Scale, src: &[Row], column: usize, block: usize) -> f64 {
    let (byte, t) = (src[4][0] as usize, src[5][0] as usize % 4);
    scale(s.format, src[3][4 * column + t] >> (8 * ((byte + block) % 4)) & 0xff)
}

/// The number that eight bits of a scale are.
pub fn scale(format: ScaleFormat, bits: u64) -> f64 {
    match format {
        ScaleFormat::Ue8m0 if bits == 0xff => f64::NAN,
        ScaleFormat::Ue8m0 => power_of_two(bits as i32 - 127),
        // Choice: the bit above does not count.
        ScaleFormat::Ue4m3 => widen(&Format::E4M3, bits & 0x7f),
    }
}

/// A float element as a number.
///
/// # Panics
/// Its products are not sums of `.f32`.
pub fn float_element(e: Element, bits: u64) -> f32 {
    match e {
        Element::F16 => widen(&Format::F16, bits) as f32,
        Element::E4m3 => widen(&Format::E4M3, bits) as f32,
        Element::E5m2 => widen(&Format::E5M2, bits) as f32,
        // What lies beside the bits of a smaller number does not count.
        Element::E3m2 => widen(&Format::E3M2, bits & 0x3f) as f32,
        Element::E2m3 => widen(&Format::E2M3, bits & 0x3f) as f32,
        Element::E2m1 => widen(&Format::E2M1, bits >> 2 & 0xf) as f32,
        Element::E2m1Packed => widen(&Format::E2M1, bits) as f32,
        Element::Bf16 => f32::from_bits((bits as u32) << 16),
        Element::Tf32 => f32::from_bits(bits as u32 & 0xffff_e000),
        Element::F64 | Element::U8 | Element::S8 | Element::U4 | Element::S4 | Element::B1 => {
            unreachable!("bug: a product of `.f32` of {e:?}")
        }
    }
}

fn doubles(p: Product, s: &Sources<'_>, dst: &mut [Row]) {
    let round = match p.step {
        Step::AddRounded(round) => round,
        Step::Add | Step::AddSaturating | Step::XorPopc | Step::AndPopc => Rounding::Nearest,
    };
    let mode = FMode { ty: Float::F64, round, ftz: false, sat: false, relu: false };
    let (a, b) = elements(p, s, |_, bits| bits);
    for_each_sum(p, s, dst, |row, column, c| {
        a[row].iter().zip(&b[column]).fold(c, |sum, (a, b)| arith::fma(mode, *a, *b, sum))
    });
}

fn integers(p: Product, s: &Sources<'_>, dst: &mut [Row]) {
    let (a, b) = elements(p, s, integer_element);
    for_each_sum(p, s, dst, |row, column, c| {
        let pairs = a[row].iter().zip(&s.depths[row]).map(|(a, depth)| (*a, b[column][*depth]));
        // No product of elements of at most 8 bits, and no sum of at most 256 of them, leaves 32 bits.
        let sum: i32 = match p.step {
            Step::Add | Step::AddRounded(_) | Step::AddSaturating => pairs.map(|(a, b)| a * b).sum(),
            Step::XorPopc => pairs.map(|(a, b)| a ^ b).sum(),
            Step::AndPopc => pairs.map(|(a, b)| a & b).sum(),
        };
        let sum = u64::from(sum.cast_unsigned());
        match p.step {
            Step::AddSaturating => int::add_sat(Int::S32, sum, c),
            Step::Add | Step::AddRounded(_) | Step::XorPopc | Step::AndPopc => sum.wrapping_add(c) & 0xffff_ffff,
        }
    });
}

/// An integer element as a number; a bit is 0 or 1.
pub fn integer_element(e: Element, bits: u64) -> i32 {
    let unused = 32 - e.bits();
    let top = (bits << unused) as u32;
    if matches!(e, Element::S8 | Element::S4) { top.cast_signed() >> unused } else { (top >> unused).cast_signed() }
}

fn quads(q: Quads, src: &[Row], dst: &mut [Row]) {
    let (a, rest) = src.split_at(2);
    let (b, c) = rest.split_at(2);
    let half = |rows: &[Row], at: Place| widen(&Format::F16, read(rows, at, 16)) as f32;
    for n in 0..4 {
        for (row, column) in (0..8).flat_map(|row| (0..8).map(move |column| (row, column))) {
            let c = start(q.c, read(c, Quads::place_of_sum(q.c, n, row, column), q.c.bits()));
            let sum = (0..4).fold(c, |sum, depth| {
                half(a, q.place_of_a(n, row, depth)).mul_add(half(b, q.place_of_b(n, depth, column)), sum)
            });
            write(dst, Quads::place_of_sum(q.d, n, row, column), q.d.bits(), end(q.d, sum));
        }
    }
}
