//! Matrix ops over the rows of a warp: the one definition of what they compute.
//!
//! Choice: products of floats are added one by one in ascending order of depth, each with one rounding to nearest at `.f32`, or at `.f64`. The
//! manual leaves the order and the precision of the sums open. An accumulator of `.f16` is rounded at the end.

use crate::simt::{Accumulator, Addresses, Cvt, Element, FMode, MatrixOp, Product, Step};
use crate::types::{Float, Int, Rounding, ScalarType};

use super::format::{Format, widen};
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
            let (g, t) = (lane / 4, lane % 4);
            let (from, distance) =
                if a.trans { (8 * (i / 2) + 2 * t + i % 2, 2 * g as u64) } else { (8 * i + g, 4 * t as u64) };
            // Choice: the address of a lane that does not take part is undefined; we take the lane's own.
            let row = rows[if active >> from & 1 == 1 { from } else { lane }];
            row.wrapping_add(distance) & a.ty.mask()
        });
    }
}

fn product(p: Product, src: &[Row], dst: &mut [Row]) {
    let [n_a, n_b, _, _] = p.registers();
    let (a, rest) = src.split_at(n_a);
    let (b, c) = rest.split_at(n_b);
    match p.d {
        Accumulator::S32 => integers(p, a, b, c, dst),
        Accumulator::F64 => doubles(p, a, b, c, dst),
        Accumulator::F16 | Accumulator::F32 => floats(p, a, b, c, dst),
    }
}

/// Calls `f` for each accumulator of each lane: its number in the lane, the lane, and for all depths in ascending order register and lane of the
/// elements of `a` and `b`.
fn for_each_sum(p: Product, mut f: impl FnMut(usize, usize, &mut dyn Iterator<Item = [(usize, usize); 2]>)) {
    for lane in 0..32 {
        let (g, t) = (lane / 4, lane % 4);
        for i in 0..2 * p.n_rows() {
            let (row, column) = (i / 2, 2 * t + i % 2);
            let mut chunks = (0..p.depth_registers())
                .flat_map(|q| (0..4).map(move |t| [(q * p.n_rows() + row, 4 * g + t), (q, 4 * column + t)]));
            f(i, lane, &mut chunks);
        }
    }
}

fn floats(p: Product, a: &[Row], b: &[Row], c: &[Row], dst: &mut [Row]) {
    let values = |rows: &[Row], e: Element| -> Vec<[[f32; 4]; 32]> {
        rows.iter().map(|row| row.map(|word| float_elements(e, word))).collect()
    };
    let (a, b, n) = (values(a, p.a), values(b, p.b), p.a.per_register());
    for_each_sum(p, |i, lane, chunks| {
        let start = match p.c {
            Accumulator::F16 => widen(&Format::F16, c[i / 2][lane] >> (16 * (i % 2)) & 0xffff) as f32,
            Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => f32::from_bits(c[i][lane] as u32),
        };
        let sum = chunks.fold(start, |sum, [(ra, la), (rb, lb)]| {
            a[ra][la].iter().zip(&b[rb][lb]).take(n).fold(sum, |sum, (a, b)| a.mul_add(*b, sum))
        });
        let bits = if sum.is_nan() { 0x7fff_ffff } else { u64::from(sum.to_bits()) };
        if p.d != Accumulator::F16 {
            dst[i][lane] = bits;
            return;
        }
        let half = cvt(Cvt::plain(ScalarType::F16, ScalarType::F32), &[bits]);
        let at = 16 * (i % 2);
        dst[i / 2][lane] = dst[i / 2][lane] & !(0xffff << at) | half << at;
    });
}

/// The elements of a register as `.f32`; there are at most four.
fn float_elements(e: Element, word: u64) -> [f32; 4] {
    let small = |f: &Format, bits: usize| {
        std::array::from_fn(
            |i| if i * bits < 32 { widen(f, word >> (i * bits) & ((1 << bits) - 1)) as f32 } else { 0.0 },
        )
    };
    match e {
        Element::F16 => small(&Format::F16, 16),
        Element::E4m3 => small(&Format::E4M3, 8),
        Element::E5m2 => small(&Format::E5M2, 8),
        Element::Bf16 => [word << 16, word & 0xffff_0000, 0, 0].map(|bits| f32::from_bits(bits as u32)),
        Element::Tf32 => [f32::from_bits(word as u32 & 0xffff_e000), 0.0, 0.0, 0.0],
        Element::F64 | Element::U8 | Element::S8 | Element::U4 | Element::S4 | Element::B1 => {
            unreachable!("bug: a product of `.f32` of {e:?}")
        }
    }
}

fn doubles(p: Product, a: &[Row], b: &[Row], c: &[Row], dst: &mut [Row]) {
    let round = match p.step {
        Step::AddRounded(round) => round,
        Step::Add | Step::AddSaturating | Step::XorPopc | Step::AndPopc => Rounding::Nearest,
    };
    let mode = FMode { ty: Float::F64, round, ftz: false, sat: false, relu: false };
    for_each_sum(p, |i, lane, chunks| {
        dst[i][lane] = chunks.fold(c[i][lane], |sum, [(ra, la), (rb, lb)]| arith::fma(mode, a[ra][la], b[rb][lb], sum));
    });
}

fn integers(p: Product, a: &[Row], b: &[Row], c: &[Row], dst: &mut [Row]) {
    let values = |rows: &[Row], e: Element| -> Vec<[[i32; 8]; 32]> {
        rows.iter().map(|row| row.map(|word| integer_elements(e, word))).collect()
    };
    let (wide_a, wide_b) = (values(a, p.a), values(b, p.b));
    for_each_sum(p, |i, lane, chunks| {
        let sum = chunks.fold(0_i32, |sum, [(ra, la), (rb, lb)]| match p.step {
            // No product of elements of at most 8 bits, and no sum of at most 64 of them, leaves 32 bits.
            Step::Add | Step::AddRounded(_) | Step::AddSaturating => {
                wide_a[ra][la].iter().zip(&wide_b[rb][lb]).fold(sum, |sum, (a, b)| sum + a * b)
            }
            Step::XorPopc => sum + (a[ra][la] ^ b[rb][lb]).count_ones().cast_signed(),
            Step::AndPopc => sum + (a[ra][la] & b[rb][lb]).count_ones().cast_signed(),
        });
        let (sum, c) = (u64::from(sum.cast_unsigned()), c[i][lane]);
        dst[i][lane] = match p.step {
            Step::AddSaturating => int::add_sat(Int::S32, sum, c),
            Step::Add | Step::AddRounded(_) | Step::XorPopc | Step::AndPopc => sum.wrapping_add(c) & 0xffff_ffff,
        };
    });
}

/// The elements of a register as integers; the rest is zero.
fn integer_elements(e: Element, word: u64) -> [i32; 8] {
    let bits = e.bits() as usize;
    let signed = matches!(e, Element::S8 | Element::S4);
    std::array::from_fn(|i| {
        if bits == 1 || i * bits >= 32 {
            return 0;
        }
        // The element at the top of a word, and down again with zeros or its sign.
        let top = (word >> (i * bits) << (32 - bits)) as u32;
        if signed { top.cast_signed() >> (32 - bits) } else { (top >> (32 - bits)).cast_signed() }
    })
}
