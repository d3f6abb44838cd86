//! Exact arithmetic in integers with one rounding at the end, for the roundings that the host does not offer.
//!
//! Operands are `f64`, which holds every number of every format; the result is the bits of the format asked for.
//!
//! Invariant: a significand that is not exact has at least 64 bits and its lowest bit set (see [`encode`]).

use crate::types::Rounding;

use super::format::{Format, Rounder, encode};

/// A finite number `significand * 2^exponent`.
#[derive(Clone, Copy)]
struct Term {
    negative: bool,
    exponent: i32,
    significand: u128,
}

/// Splits a finite number.
fn split(a: f64) -> Term {
    let bits = a.to_bits();
    let field = (bits >> 52) as i32 & 0x7ff;
    let fraction = u128::from(bits & ((1 << 52) - 1));
    let (exponent, significand) = if field == 0 { (-1074, fraction) } else { (field - 1075, fraction | 1 << 52) };
    Term { negative: bits >> 63 != 0, exponent, significand }
}

/// Shift right, with the lowest bit set when a one was shifted out.
const fn jam(a: u128, by: u32) -> u128 {
    if by >= 128 { (a != 0) as u128 } else { (a >> by) | ((a & ((1 << by) - 1)) != 0) as u128 }
}

fn finish(f: &Format, term: Term, mode: Rounding) -> u64 {
    let surplus = 64u32.saturating_sub(term.significand.leading_zeros());
    let significand = jam(term.significand, surplus) as u64;
    encode(f, term.negative, term.exponent + surplus as i32, significand, Rounder::new(mode), false)
}

/// Bits of a special value: NaN is canonical.
fn special(f: &Format, a: f64) -> u64 {
    super::format::narrow(f, a, Rounder::new(Rounding::Nearest), false)
}

/// Sum of two terms, exact or with at least 100 significant bits. `down` decides the sign of an exact zero.
fn sum(a: Term, b: Term, down: bool) -> Term {
    if a.significand == 0 && b.significand == 0 {
        let negative = if a.negative == b.negative { a.negative } else { down };
        return Term { negative, exponent: 0, significand: 0 };
    }
    if a.significand == 0 {
        return b;
    }
    if b.significand == 0 {
        return a;
    }
    // Leading ones go to bit 126, which leaves room for a carry. Sources have at most 106 bits, so a shift by 20 or
    // less loses nothing; after a longer one there is no cancellation that could bring the lost bits near the rounding.
    let lift = |t: Term| {
        let up = t.significand.leading_zeros() - 1;
        Term { significand: t.significand << up, exponent: t.exponent - up as i32, ..t }
    };
    let (a, b) = (lift(a), lift(b));
    let (big, small) = if (a.exponent, a.significand) >= (b.exponent, b.significand) { (a, b) } else { (b, a) };
    let addend = jam(small.significand, (big.exponent - small.exponent) as u32);
    if big.negative == small.negative {
        return Term { significand: big.significand + addend, ..big };
    }
    let significand = big.significand - addend;
    Term { significand, negative: if significand == 0 { down } else { big.negative }, ..big }
}

/// `a * b + c`, rounded once.
pub fn fma(f: &Format, a: f64, b: f64, c: f64, mode: Rounding) -> u64 {
    if !(a.is_finite() && b.is_finite()) {
        return special(f, a * b + c);
    }
    if !c.is_finite() {
        return special(f, c);
    }
    let sum = sum(product(a, b), split(c), mode == Rounding::Down);
    finish(f, sum, mode)
}

/// `a + b`, rounded once.
pub fn add(f: &Format, a: f64, b: f64, mode: Rounding) -> u64 {
    if !(a.is_finite() && b.is_finite()) {
        return special(f, a + b);
    }
    finish(f, sum(split(a), split(b), mode == Rounding::Down), mode)
}

/// `a * b`, rounded once.
pub fn mul(f: &Format, a: f64, b: f64, mode: Rounding) -> u64 {
    if !(a.is_finite() && b.is_finite()) {
        return special(f, a * b);
    }
    finish(f, product(a, b), mode)
}

fn product(a: f64, b: f64) -> Term {
    let (a, b) = (split(a), split(b));
    Term {
        negative: a.negative != b.negative,
        exponent: a.exponent + b.exponent,
        significand: a.significand * b.significand,
    }
}

/// `a / b`, rounded once.
pub fn div(f: &Format, a: f64, b: f64, mode: Rounding) -> u64 {
    if !(a.is_finite() && b.is_finite()) || a == 0.0 || b == 0.0 {
        return special(f, a / b);
    }
    let (a, b) = (split(a), split(b));
    // The dividend gets 127 bits and the divisor has at most 53, so the quotient has at least 74.
    let up = a.significand.leading_zeros() - 1;
    let dividend = a.significand << up;
    let (quotient, rest) = (dividend / b.significand, dividend % b.significand);
    let term = Term {
        negative: a.negative != b.negative,
        exponent: a.exponent - up as i32 - b.exponent,
        significand: quotient | u128::from(rest != 0),
    };
    finish(f, term, mode)
}

/// Square root, rounded once.
pub fn sqrt(f: &Format, a: f64, mode: Rounding) -> u64 {
    if !a.is_finite() || a <= 0.0 {
        return special(f, a.sqrt());
    }
    let a = split(a);
    // 127 or 128 bits with an even exponent give a root of 64 bits.
    let up = a.significand.leading_zeros();
    let up = if (a.exponent - up as i32) % 2 == 0 { up } else { up - 1 };
    let square = a.significand << up;
    let root = square.isqrt();
    let term = Term {
        negative: false,
        exponent: (a.exponent - up as i32) / 2,
        significand: root | u128::from(root * root != square),
    };
    finish(f, term, mode)
}
