//! What `mma` computes, from the fragments of a warp.
//!
//! All shapes but the one of Volta lay out alike. A register holds a *chunk*: the elements of one row of `a`, or of one column of `b`, at neighbouring
//! places of the depth. With `g = lane / 4` and `t = lane % 4`, a lane holds the chunks `4 * q + t` of rows `g` and `g + 8` of `a` (register
//! `q * rows + h`), the same chunks of column `g` of `b` (register `q`), and columns `2 * t` and `2 * t + 1` of rows `g` and `g + 8` of the
//! accumulators. So each lane gets four chunks of its rows and columns from four lanes, by shuffles, for each `q`.
//!
//! Choice: products of floats are added one by one in ascending order of depth, each with one rounding to nearest at `.f32`, or at `.f64`. The
//! manual leaves the order and the precision of the sums open. An accumulator of `.f16` is rounded at the end.
//!
//! # PTX ISA
//! Matrix multiply-accumulate operation using mma instruction: Matrix Fragments.

use handloom_ir::simt::{Cvt, FMode, Pure, Val};
use handloom_ir::types::ScalarType::{self, *};
use handloom_ir::types::{Float, Int, Rounding, Ty};

use super::ldmatrix::{bits, lane, shuffle};
use crate::form::*;

/// The values of a chunk that go into the sums.
type Values<'k> = &'k dyn Fn(&mut Cx<'_, '_>, Val) -> Vec<Val>;

/// How the chunks of two fragments become sums.
struct Kind<'k> {
    /// The values of a chunk of `a`, and of `b`.
    values: [Values<'k>; 2],
    /// A sum with the product of two values more.
    add: &'k dyn Fn(&mut Cx<'_, '_>, Val, Val, Val) -> Val,
}

/// Adds all products to sums, which are in the order of the accumulators: two columns of a row, then those of the next row.
fn multiply(x: &mut Cx<'_, '_>, kind: &Kind<'_>, mut sums: Vec<Val>) -> Vec<Val> {
    let (a, b) = (x.srcs(0), x.srcs(1));
    let n_rows = sums.len() / 2;
    let lane = lane(x);
    let row = x.b.and(lane, Val::Imm(!3 & 31, Ty::B32));
    let column = bits(x, lane, 0, 2, 3);
    for (q, &b) in b.iter().enumerate() {
        for t in 0..4 {
            let from =
                [(row, t), (column, t), (column, t + 4)].map(|(first, more)| x.b.add(first, Val::Imm(more, Ty::B32)));
            let columns: Vec<Vec<Val>> = from[1..]
                .iter()
                .map(|from| {
                    let chunk = from_lane(x, b, *from);
                    (kind.values[1])(x, chunk)
                })
                .collect();
            for (&chunk, sums) in a[q * n_rows..].iter().zip(sums.chunks_mut(2)) {
                let chunk = from_lane(x, chunk, from[0]);
                let row = (kind.values[0])(x, chunk);
                for (sum, column) in sums.iter_mut().zip(&columns) {
                    *sum = row.iter().zip(column).fold(*sum, |sum, (a, b)| (kind.add)(x, sum, *a, *b));
                }
            }
        }
    }
    sums
}

/// A register of another lane.
fn from_lane(x: &mut Cx<'_, '_>, value: Val, from: Val) -> Val {
    if x.b.ty(value) != Ty::B64 {
        return shuffle(x, value, from);
    }
    let halves = [false, true].map(|hi| {
        let half = x.b.half(value, hi);
        shuffle(x, half, from)
    });
    x.b.pack(halves[0], halves[1])
}

fn fma(ty: Float) -> Pure {
    Pure::FFma(FMode { ty, round: Rounding::Nearest, ftz: false, sat: false, relu: false })
}

/// `mma` of floats of at most 32 bits.
pub(super) fn floats(x: &mut Cx<'_, '_>) {
    let (a, b) = (x.u.text(Slot::Type2), x.u.text(Slot::Type3));
    let kind = Kind {
        values: [&|x, chunk| elements(x, a, chunk), &|x, chunk| elements(x, b, chunk)],
        add: &|x, sum, a, b| x.b.pure(fma(Float::F32), Ty::B32, &[a, b, sum]),
    };
    let c = x.srcs(2);
    let start =
        if x.u.ty(Slot::Type4) == F16 { c.into_iter().flat_map(|pair| elements(x, ".f16", pair)).collect() } else { c };
    let sums = multiply(x, &kind, start);
    if x.u.ty(Slot::Type) == F16 {
        for (i, pair) in sums.chunks(2).enumerate() {
            let halves: Vec<Val> = pair.iter().map(|v| convert(x, F32, F16, Ty::B16, *v)).collect();
            let pair = x.b.pack(halves[0], halves[1]);
            x.set_at(0, i, pair);
        }
    } else {
        set_all(x, sums);
    }
}

/// The elements of a chunk as `.f32`.
fn elements(x: &mut Cx<'_, '_>, format: &str, chunk: Val) -> Vec<Val> {
    let halves = |x: &mut Cx<'_, '_>, word: Val| [false, true].map(|hi| x.b.half(word, hi));
    let widen = |x: &mut Cx<'_, '_>, pair: Val| halves(x, pair).map(|h| convert(x, F16, F32, Ty::B32, h));
    match format {
        ".f16" => widen(x, chunk).to_vec(),
        ".bf16" => {
            let low = x.b.pure(Pure::Shl(Ty::B32), Ty::B32, &[chunk, Val::Imm(16, Ty::B32)]);
            let high = x.b.and(chunk, Val::Imm(0xffff_0000, Ty::B32));
            vec![low, high]
        }
        // The lower 13 bits do not count.
        ".tf32" => vec![x.b.and(chunk, Val::Imm(0xffff_e000, Ty::B32))],
        _ => {
            let pair = if format == ".e4m3" { E4M3x2 } else { E5M2x2 };
            let pairs = halves(x, chunk).map(|h| convert(x, pair, F16x2, Ty::B32, h));
            pairs.into_iter().flat_map(|p| widen(x, p)).collect()
        }
    }
}

fn convert(x: &mut Cx<'_, '_>, from: ScalarType, to: ScalarType, ty: Ty, value: Val) -> Val {
    x.b.pure(Pure::Cvt(Cvt::plain(to, from)), ty, &[value])
}

/// `mma` of `.f64`.
pub(super) fn doubles(x: &mut Cx<'_, '_>) {
    let kind = Kind {
        values: [&|_, v| vec![v], &|_, v| vec![v]],
        add: &|x, sum, a, b| x.b.pure(fma(Float::F64), Ty::B64, &[a, b, sum]),
    };
    let start = x.srcs(2);
    let sums = multiply(x, &kind, start);
    set_all(x, sums);
}

/// `mma` of integers. Elements of 4 bits are bytes with the element above zeros, so that the sums are 256 times too large.
pub(super) fn integers(x: &mut Cx<'_, '_>) {
    let is_signed = |u: &Use, slot| u.text(slot).starts_with(".s");
    let dot = Pure::Dp4a { a_signed: is_signed(x.u, Slot::Type2), b_signed: is_signed(x.u, Slot::Type3) };
    let nibbles = matches!(x.u.text(Slot::Type2), ".u4" | ".s4");
    let values = |x: &mut Cx<'_, '_>, chunk: Val| {
        if !nibbles {
            return vec![chunk];
        }
        let upper = Val::Imm(0xf0f0_f0f0, Ty::B32);
        let moved = x.b.pure(Pure::Shl(Ty::B32), Ty::B32, &[chunk, Val::Imm(4, Ty::B32)]);
        vec![x.b.and(moved, upper), x.b.and(chunk, upper)]
    };
    let kind = Kind { values: [&values, &values], add: &|x, sum, a, b| x.b.pure(dot, Ty::B32, &[a, b, sum]) };
    let c = x.srcs(2);
    let sums = multiply(x, &kind, vec![Val::Imm(0, Ty::B32); c.len()]);
    let saturates = x.u.has(Slot::SatFinite);
    let results = sums
        .into_iter()
        .zip(c)
        .map(|(sum, c)| {
            let sum = if nibbles { x.b.pure(Pure::Shr(Int::S32), Ty::B32, &[sum, Val::Imm(8, Ty::B32)]) } else { sum };
            if saturates { x.b.pure(Pure::AddSat(Int::S32), Ty::B32, &[sum, c]) } else { x.b.add(sum, c) }
        })
        .collect();
    set_all(x, results);
}

/// `mma` of single bits.
pub(super) fn single_bits(x: &mut Cx<'_, '_>) {
    let is_and = x.u.text(Slot::Op) == ".and";
    let kind = Kind {
        values: [&|_, v| vec![v], &|_, v| vec![v]],
        add: &|x, sum, a, b| {
            let both = if is_and { x.b.and(a, b) } else { x.b.xor(a, b) };
            let ones = x.b.pure(Pure::Popc(Ty::B32), Ty::B32, &[both]);
            x.b.add(sum, ones)
        },
    };
    let start = x.srcs(2);
    let sums = multiply(x, &kind, start);
    set_all(x, sums);
}

fn set_all(x: &mut Cx<'_, '_>, values: Vec<Val>) {
    for (i, v) in values.into_iter().enumerate() {
        x.set_at(0, i, v);
    }
}
