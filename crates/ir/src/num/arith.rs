//! Float addition, multiplication, fused multiply-add, division and square root, with their modes.

use crate::simt::{Exactness, FMode};
use crate::types::{Float, Rounding};

use super::approx;
use super::format::{Format, Rounder, narrow, widen};
use super::soft;

/// The canonical NaN of `.f64`.
pub(super) const NAN64: u64 = 0x7fff_ffff_ffff_ffff;

/// Applies `op` to the value, or to each element of a packed one. `op` gets the element's type.
#[inline]
pub(super) fn each<const N: usize>(ty: Float, src: [u64; N], op: impl Fn(Float, [u64; N]) -> u64) -> u64 {
    match ty {
        Float::F16 | Float::BF16 | Float::F32 | Float::F64 => op(ty, src),
        Float::F16x2 | Float::BF16x2 => {
            let low = op(ty.element(), src.map(|a| a & 0xffff));
            let high = op(ty.element(), src.map(|a| a >> 16));
            low | high << 16
        }
        Float::F32x2 => {
            let low = op(Float::F32, src.map(|a| a & 0xffff_ffff));
            let high = op(Float::F32, src.map(|a| a >> 32));
            low | high << 32
        }
    }
}

/// Format of a type, or of the elements of a packed one.
#[inline]
pub(super) const fn format(ty: Float) -> &'static Format {
    match ty {
        Float::F16 | Float::F16x2 => &Format::F16,
        Float::BF16 | Float::BF16x2 => &Format::BF16,
        Float::F32 | Float::F32x2 => &Format::F32,
        Float::F64 => &Format::F64,
    }
}

/// Bits of an operand with subnormal numbers made zero of the same sign, if asked. `.f64` is never flushed.
#[inline]
pub(super) fn flush(ty: Float, ftz: bool, a: u64) -> u64 {
    let f = format(ty);
    let code = a & ((1 << f.sign) - 1);
    if ftz && !matches!(ty, Float::F64) && code < 1 << f.fraction { a - code } else { a }
}

/// Canonical NaN, flushing and clamping of a result of one element.
// Choice: the manual does not say when an arithmetic result counts as subnormal; we look at the rounded result.
#[inline]
pub(super) fn finish(mode: FMode, a: u64) -> u64 {
    let f = format(mode.ty);
    let sign = 1 << f.sign;
    let code = a & (sign - 1);
    if code > f.last_number() {
        return if mode.sat { 0 } else { sign - 1 };
    }
    let a = flush(mode.ty, mode.ftz, a);
    let negative = a & sign != 0;
    if (mode.sat || mode.relu) && negative {
        0
    } else if mode.sat {
        a.min(f.one())
    } else {
        a
    }
}

#[inline]
fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

/// Rounds an `f64` that is exact, or rounded to odd, to the type.
#[inline]
pub(super) fn round_to(ty: Float, round: Rounding, a: f64) -> u64 {
    narrow(format(ty), a, Rounder::new(round), false)
}

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

/// Value of one element.
#[inline]
pub(super) fn value(ty: Float, a: u64) -> f64 {
    match ty {
        Float::F32 | Float::F32x2 => f64::from(f32_of(a)),
        Float::F64 => f64::from_bits(a),
        Float::F16 | Float::BF16 | Float::F16x2 | Float::BF16x2 => widen(format(ty), a),
    }
}
