//! Float addition, multiplication, fused multiply-add, division and square root, with their modes.

use crate::simt::{Exactness, FMode};
use crate::types::{Float, Rounding};

use super::approx;
use super::element::{each, f32_of, finish, flush, format, round_to, value};
use super::format::Format;
use super::soft;

/// `a + b` in `f64`, rounded to odd: when inexact, the neighbour whose last bit is one.
///
/// Rounding that to a format of at most 51 bits, in any mode, gives the same as rounding the exact sum, for 53 bits
/// with a sticky last one hold all that the second rounding asks for. The operands must not overflow, nor their error
/// term be subnormal; products and numbers of the formats up to `.f32` keep that.
#[inline]
fn sum_to_odd(round: Rounding, a: f64, b: f64) -> f64 {
    let sum = a + b;
    if sum == 0.0 {
        let negative_zero = round == Rounding::Down && (a.is_sign_negative() || b.is_sign_negative());
        return if negative_zero { -0.0 } else { sum };
    }
    // The error of a sum, exactly, whatever the order of the operands.
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    let bits = sum.to_bits();
    if !sum.is_finite() || error == 0.0 || bits & 1 != 0 {
        sum
    } else if (error > 0.0) == (sum > 0.0) {
        f64::from_bits(bits + 1)
    } else {
        f64::from_bits(bits - 1)
    }
}

/// `a + b`.
#[inline]
pub(super) fn add(mode: FMode, a: u64, b: u64) -> u64 {
    each(mode.ty, [a, b], |ty, [a, b]| {
        let (a, b) = (flush(ty, mode.ftz, a), flush(ty, mode.ftz, b));
        let sum = match (ty, mode.round) {
            (Float::F32, Rounding::Nearest) => u64::from((f32_of(a) + f32_of(b)).to_bits()),
            (Float::F64, Rounding::Nearest) => (f64::from_bits(a) + f64::from_bits(b)).to_bits(),
            (Float::F64, round) => soft::add(&Format::F64, f64::from_bits(a), f64::from_bits(b), round),
            (ty, round) => round_to(ty, round, sum_to_odd(round, value(ty, a), value(ty, b))),
        };
        finish(FMode { ty, ..mode }, sum)
    })
}

/// `a - b`.
#[inline]
pub(super) fn sub(mode: FMode, a: u64, b: u64) -> u64 {
    let signs = match mode.ty {
        Float::F16 | Float::BF16 => 1 << 15,
        Float::F32 => 1 << 31,
        Float::F64 => 1 << 63,
        Float::F16x2 | Float::BF16x2 => 1 << 31 | 1 << 15,
        Float::F32x2 => 1 << 63 | 1 << 31,
    };
    add(mode, a, b ^ signs)
}

/// `a * b`.
#[inline]
pub(super) fn mul(mode: FMode, a: u64, b: u64) -> u64 {
    each(mode.ty, [a, b], |ty, [a, b]| {
        let (a, b) = (flush(ty, mode.ftz, a), flush(ty, mode.ftz, b));
        let product = match (ty, mode.round) {
            (Float::F32, Rounding::Nearest) => u64::from((f32_of(a) * f32_of(b)).to_bits()),
            (Float::F64, Rounding::Nearest) => (f64::from_bits(a) * f64::from_bits(b)).to_bits(),
            (Float::F64, round) => soft::mul(&Format::F64, f64::from_bits(a), f64::from_bits(b), round),
            // 24 by 24 bits fit in 53.
            (ty, round) => round_to(ty, round, value(ty, a) * value(ty, b)),
        };
        finish(FMode { ty, ..mode }, product)
    })
}

/// `a * b + c` with one rounding.
///
/// # PTX ISA
/// Floating Point Instructions: fma.
#[inline]
pub(super) fn fma(mode: FMode, a: u64, b: u64, c: u64) -> u64 {
    each(mode.ty, [a, b, c], |ty, src| {
        let [a, b, c] = src.map(|a| flush(ty, mode.ftz, a));
        let result = match (ty, mode.round) {
            (Float::F32, Rounding::Nearest) => u64::from(f32_of(a).mul_add(f32_of(b), f32_of(c)).to_bits()),
            (Float::F64, Rounding::Nearest) => {
                f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)).to_bits()
            }
            (Float::F64, round) => {
                soft::fma(&Format::F64, f64::from_bits(a), f64::from_bits(b), f64::from_bits(c), round)
            }
            (ty, round) => round_to(ty, round, sum_to_odd(round, value(ty, a) * value(ty, b), value(ty, c))),
        };
        finish(FMode { ty, ..mode }, result)
    })
}

/// `a / b`.
///
/// # PTX ISA
/// Floating Point Instructions: div.
#[inline]
pub(super) fn div(mode: FMode, exact: Exactness, a: u64, b: u64) -> u64 {
    each(mode.ty, [a, b], |ty, [a, b]| {
        let (a, b) = (flush(ty, mode.ftz, a), flush(ty, mode.ftz, b));
        let quotient = match (ty, exact) {
            (Float::F32, Exactness::Approx) => approx::div32(a, b),
            (ty, exact) => divide(ty, rounding(exact), a, b),
        };
        finish(FMode { ty, ..mode }, quotient)
    })
}

/// `1 / a`.
///
/// # PTX ISA
/// Floating Point Instructions: rcp.
#[inline]
pub(super) fn rcp(mode: FMode, exact: Exactness, a: u64) -> u64 {
    each(mode.ty, [a], |ty, [a]| {
        if ty == Float::F64 && mode.ftz && exact == Exactness::Approx {
            return approx::gross64(a, |a| 1.0 / a);
        }
        let quotient = divide(ty, rounding(exact), format(ty).one(), flush(ty, mode.ftz, a));
        finish(FMode { ty, ..mode }, quotient)
    })
}

/// Square root.
///
/// # PTX ISA
/// Floating Point Instructions: sqrt.
#[inline]
pub(super) fn sqrt(mode: FMode, exact: Exactness, a: u64) -> u64 {
    each(mode.ty, [a], |ty, [a]| {
        let a = flush(ty, mode.ftz, a);
        let root = match (ty, rounding(exact)) {
            (Float::F32, Rounding::Nearest) => u64::from(f32_of(a).sqrt().to_bits()),
            (Float::F64, Rounding::Nearest) => f64::from_bits(a).sqrt().to_bits(),
            (ty, round) => soft::sqrt(format(ty), value(ty, a), round),
        };
        finish(FMode { ty, ..mode }, root)
    })
}

/// The rounding of a division or root.
// Choice: `.approx` and `.full` give the correctly rounded value; that is inside the manual's bounds and repeatable.
#[inline]
const fn rounding(exact: Exactness) -> Rounding {
    match exact {
        Exactness::Ieee(round) => round,
        Exactness::Approx | Exactness::Full => Rounding::Nearest,
    }
}

#[inline]
fn divide(ty: Float, round: Rounding, a: u64, b: u64) -> u64 {
    match (ty, round) {
        (Float::F32, Rounding::Nearest) => u64::from((f32_of(a) / f32_of(b)).to_bits()),
        (Float::F64, Rounding::Nearest) => (f64::from_bits(a) / f64::from_bits(b)).to_bits(),
        (ty, round) => soft::div(format(ty), value(ty, a), value(ty, b), round),
    }
}
