//! The approximate instructions.
//!
//! Each returns the correctly rounded value or, for the transcendental ones, the rounding of a value that is exact to
//! about 50 bits, made by the host's `f64` functions.

use crate::simt::FMode;
use crate::types::{Float, Rounding};

use super::element::{NAN64, each, finish, flush, round_to, value};
use super::format::power_of_two;

// Choice: the manual bounds the errors of approximate instructions and leaves their last bits open. Ours are within one
// unit in the last place, which is inside every bound and repeatable; a device's last bits are not imitated.

/// Flushing and nothing else: the mode of an approximate instruction.
#[inline]
const fn mode(ty: Float, ftz: bool) -> FMode {
    FMode { ty, round: Rounding::Nearest, ftz, sat: false, relu: false }
}

/// A function of one value, computed in `f64` and rounded once.
#[inline]
fn unary(ty: Float, ftz: bool, a: u64, f: impl Fn(f64) -> f64) -> u64 {
    each(ty, [a], |ty, [a]| {
        let result = round_to(ty, Rounding::Nearest, f(value(ty, flush(ty, ftz, a))));
        finish(mode(ty, ftz), result)
    })
}

/// `div.approx.f32` of flushed operands: correctly rounded but for divisors of 2^126 and more.
///
/// # PTX ISA
/// Floating Point Instructions: div.
#[inline]
pub(super) fn div32(a: u64, b: u64) -> u64 {
    let (a, b) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
    let quotient = if b.abs() > 2f32.powi(126) && b.is_finite() {
        // The reciprocal of such a divisor counts as zero.
        a * 0f32.copysign(b)
    } else {
        a / b
    };
    u64::from(quotient.to_bits())
}

/// `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`: only the upper word of the operand is read, and only the upper word
/// of the result is made.
///
/// # PTX ISA
/// Floating Point Instructions: rcp.approx.ftz.f64, rsqrt.approx.ftz.f64.
#[inline]
pub(super) fn gross64(a: u64, f: impl Fn(f64) -> f64) -> u64 {
    const UPPER: u64 = 0xffff_ffff_0000_0000;
    let flush = |a: f64| if a.is_subnormal() { 0f64.copysign(a) } else { a };
    let result = f(flush(f64::from_bits(a & UPPER)));
    if result.is_nan() {
        return NAN64 & UPPER;
    }
    // Choice: the manual asks for 20 bits of fraction; we round the exact result to them, to nearest.
    // The infinite result stays infinite: its lower word is zero.
    let result = flush(result).to_bits();
    (result + (0x7fff_ffff + (result >> 32 & 1))) & UPPER
}

/// `1 / sqrt(a)`.
///
/// # PTX ISA
/// Floating Point Instructions: rsqrt.
#[inline]
pub(super) fn rsqrt(m: FMode, a: u64) -> u64 {
    match (m.ty, m.ftz) {
        (Float::F64, true) => gross64(a, |a| 1.0 / a.sqrt()),
        (Float::F64, false) => finish(m, rsqrt64(f64::from_bits(a)).to_bits()),
        (ty, ftz) => unary(ty, ftz, a, |a| 1.0 / a.sqrt()),
    }
}

/// `1 / sqrt(a)` within one unit of the last place.
fn rsqrt64(a: f64) -> f64 {
    // Also right for infinities, NaN, negative numbers and zeros.
    let guess = 1.0 / a.sqrt();
    if !(guess.is_finite() && guess > 0.0) {
        return guess;
    }
    // Subnormal operands are scaled by an even power of two, so that the residue below keeps its bits.
    let (a, scale) = if a < power_of_two(-900) { (a * power_of_two(200), power_of_two(100)) } else { (a, 1.0) };
    let guess = guess / scale;
    // One Newton step with the residue 1 - a * guess^2 computed from the exact product a * guess.
    let high = a * guess;
    let low = a.mul_add(guess, -high);
    let residue = low.mul_add(-guess, (-high).mul_add(guess, 1.0));
    (0.5 * guess).mul_add(residue, guess) * scale
}

/// Sine; the argument is reduced exactly, however large it is.
///
/// # PTX ISA
/// Floating Point Instructions: sin.
#[inline]
pub(super) fn sin(ftz: bool, a: u64) -> u64 {
    unary(Float::F32, ftz, a, f64::sin)
}

/// Cosine; the argument is reduced exactly, however large it is.
///
/// # PTX ISA
/// Floating Point Instructions: cos.
#[inline]
pub(super) fn cos(ftz: bool, a: u64) -> u64 {
    unary(Float::F32, ftz, a, f64::cos)
}

/// Base-2 logarithm; exact for powers of two.
///
/// # PTX ISA
/// Floating Point Instructions: lg2.
#[inline]
pub(super) fn lg2(ftz: bool, a: u64) -> u64 {
    unary(Float::F32, ftz, a, |a| {
        // As `f64` every positive number of `.f32` is normal.
        let bits = a.to_bits();
        if a > 0.0 && a.is_finite() && bits << 12 == 0 { f64::from((bits >> 52) as u32) - 1023.0 } else { a.log2() }
    })
}

/// Power of two; exact for integers.
///
/// # PTX ISA
/// Floating Point Instructions: ex2; Half Precision Floating Point Instructions: ex2.
#[inline]
pub(super) fn ex2(ty: Float, ftz: bool, a: u64) -> u64 {
    unary(ty, ftz, a, |a| if a.fract() == 0.0 { power_of_two(a as i32) } else { a.exp2() })
}

/// Hyperbolic tangent; subnormal operands pass through.
///
/// # PTX ISA
/// Floating Point Instructions: tanh; Half Precision Floating Point Instructions: tanh.
#[inline]
pub(super) fn tanh(ty: Float, a: u64) -> u64 {
    unary(ty, false, a, f64::tanh)
}
