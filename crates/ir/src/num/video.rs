//! Video instructions: parts of words, exact arithmetic on them, clamping, and what becomes of the result.
//!
//! Choice: the manual gives widths of 33 and 34 bits to the values between the stages. They describe ranges here, and cut nothing: a
//! result that is not clamped goes to the secondary operation as the exact number that it is.

use crate::simt::video::*;
use crate::types::{Cmp, Ty};

use super::int::{range, sext};

/// A scalar video op but for `vmad`.
///
/// # PTX ISA
/// Scalar Video Instructions.
pub(super) fn scalar(v: Video, src: &[u64]) -> u64 {
    let (a, b) = (part(v.a, src[0]), part(v.second(), src[1]));
    let result = match v.op {
        VideoOp::Add => a + b,
        VideoOp::Sub => a - b,
        VideoOp::AbsDiff => (a - b).abs(),
        VideoOp::Min => a.min(b),
        VideoOp::Max => a.max(b),
        VideoOp::Shl { wrap } => a << amount(wrap, b),
        VideoOp::Shr { wrap } => a >> amount(wrap, b),
        VideoOp::Set(cmp) => i128::from(holds(cmp, a, b)),
    };
    let result = if v.sat { clamp(result, v.range_bits(), v.signed) } else { result };
    let c = || part(PartOf { part: Part::Word, signed: v.signed }, src[2]);
    let result = match v.end {
        VideoEnd::Plain => result,
        VideoEnd::Add => result + c(),
        VideoEnd::Min => result.min(c()),
        VideoEnd::Max => result.max(c()),
        VideoEnd::Merge(part) => {
            let mask = i128::from(part.mask());
            ((result << part.at()) & mask) | (c() & !mask)
        }
    };
    result as u64 & Ty::B32.mask()
}

/// `vmad`. The sum is exact.
///
/// Choice: where c is negated, the manual's table has it unsigned after an unsigned product, its pseudocode signed. It is signed, as
/// the assembler has it too.
///
/// # PTX ISA
/// Scalar Video Instructions: vmad.
pub(super) fn vmad(v: Vmad, src: &[u64]) -> u64 {
    let product = part(v.a, src[0]) * part(v.b, src[1]);
    let c = part(PartOf { part: Part::Word, signed: v.is_signed() }, src[2]);
    let sum = match v.negated {
        Negated::None => product + c,
        Negated::Product => c - product,
        Negated::Addend => product - c,
    };
    let sum = (sum + i128::from(v.plus_one)) >> v.shift;
    let sum = if v.sat { clamp(sum, 32, v.is_signed()) } else { sum };
    sum as u64 & Ty::B32.mask()
}

/// A SIMD video op.
///
/// # PTX ISA
/// SIMD Video Instructions.
pub(super) fn simd(v: VideoSimd, src: &[u64]) -> u64 {
    let bits = v.bits();
    let both = src[1] << 32 | src[0];
    let element = |e: Elements, i: usize| {
        let moved = both >> (u32::from(e.select[i]) * bits);
        if e.signed { sext(moved, bits) } else { (moved & ((1 << bits) - 1)).cast_signed() }
    };
    let mut sum = src[2].cast_signed();
    let mut merged = src[2];
    for i in (0..usize::from(v.n)).filter(|i| v.mask >> i & 1 != 0) {
        let (a, b) = (element(v.a, i), element(v.b, i));
        let result = match v.op {
            SimdOp::Add => a + b,
            SimdOp::Sub => a - b,
            SimdOp::Avrg => (a + b + i64::from(a + b >= 0)) >> 1,
            SimdOp::AbsDiff => (a - b).abs(),
            SimdOp::Min => a.min(b),
            SimdOp::Max => a.max(b),
            SimdOp::Set(cmp) => i64::from(holds(cmp, i128::from(a), i128::from(b))),
        };
        let result = if v.sat { clamp(i128::from(result), bits, v.signed) as i64 } else { result };
        sum += result;
        let at = i as u32 * bits;
        let mask = ((1 << bits) - 1) << at;
        merged = merged & !mask | (result.cast_unsigned() << at) & mask;
    }
    if v.accumulate { sum.cast_unsigned() & Ty::B32.mask() } else { merged }
}

/// A part of a word, extended by its sign or by zeros.
fn part(p: PartOf, word: u64) -> i128 {
    let moved = word >> p.part.at();
    let bits = p.part.bits();
    i128::from(if p.signed { sext(moved, bits) } else { (moved & ((1 << bits) - 1)).cast_signed() })
}

fn amount(wrap: bool, b: i128) -> i128 {
    if wrap { b & 31 } else { b.min(32) }
}

fn clamp(a: i128, bits: u32, signed: bool) -> i128 {
    let (low, high) = range(bits, signed);
    a.clamp(low, high)
}

/// Numbers are never unordered.
fn holds(cmp: Cmp, a: i128, b: i128) -> bool {
    match cmp {
        Cmp::Eq | Cmp::Equ => a == b,
        Cmp::Ne | Cmp::Neu => a != b,
        Cmp::Lt | Cmp::Ltu => a < b,
        Cmp::Le | Cmp::Leu => a <= b,
        Cmp::Gt | Cmp::Gtu => a > b,
        Cmp::Ge | Cmp::Geu => a >= b,
        Cmp::Num => true,
        Cmp::Nan => false,
    }
}
