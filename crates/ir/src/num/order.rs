//! What floats do without rounding: comparison, minimum and maximum, signs, and the properties of `testp`.

use crate::types::{Cmp, Float, TestProperty};

use super::element::{each, flush, format, value};

/// Whether the bits are a NaN.
#[inline]
fn is_nan(ty: Float, a: u64) -> bool {
    let f = format(ty);
    a & ((1 << f.sign) - 1) > f.last_number()
}

/// A key that orders numbers of a format as integers, -0 below +0.
#[inline]
fn key(ty: Float, a: u64) -> i64 {
    let f = format(ty);
    let code = (a & ((1 << f.sign) - 1)) as i64;
    if a >> f.sign & 1 != 0 { !code } else { code }
}

/// Whether the comparison of two scalar values holds.
///
/// # PTX ISA
/// Comparison and Selection Instructions: setp.
#[inline]
pub(super) fn compare(cmp: Cmp, ty: Float, ftz: bool, a: u64, b: u64) -> bool {
    let (x, y) = (value(ty, flush(ty, ftz, a)), value(ty, flush(ty, ftz, b)));
    let unordered = x.is_nan() || y.is_nan();
    match cmp {
        Cmp::Eq => x == y,
        Cmp::Ne => !unordered && x != y,
        Cmp::Lt => x < y,
        Cmp::Le => x <= y,
        Cmp::Gt => x > y,
        Cmp::Ge => x >= y,
        Cmp::Equ => unordered || x == y,
        Cmp::Neu => unordered || x != y,
        Cmp::Ltu => unordered || x < y,
        Cmp::Leu => unordered || x <= y,
        Cmp::Gtu => unordered || x > y,
        Cmp::Geu => unordered || x >= y,
        Cmp::Num => !unordered,
        Cmp::Nan => unordered,
    }
}

/// The smaller operand, or the larger one.
///
/// # PTX ISA
/// Floating Point Instructions: min, max; Half Precision Floating Point Instructions: min, max.
#[inline]
pub(super) fn min_max(max: bool, ty: Float, ftz: bool, nan: bool, xorsign: bool, a: u64, b: u64) -> u64 {
    each(ty, [a, b], |ty, [a, b]| {
        let sign = 1 << format(ty).sign;
        let (a, b) = (flush(ty, ftz, a), flush(ty, ftz, b));
        let result_sign = (a ^ b) & sign;
        let (a, b) = if xorsign { (a & !sign, b & !sign) } else { (a, b) };
        let picked = match (is_nan(ty, a), is_nan(ty, b)) {
            (true, true) => return sign - 1,
            (true, false) | (false, true) if nan => return sign - 1,
            (true, false) => b,
            (false, true) => a,
            (false, false) if (key(ty, a) < key(ty, b)) != max => a,
            (false, false) => b,
        };
        if xorsign { picked | result_sign } else { picked }
    })
}

/// Absolute value; NaN payloads stay.
#[inline]
pub(super) fn abs(ty: Float, ftz: bool, a: u64) -> u64 {
    each(ty, [a], |ty, [a]| flush(ty, ftz, a) & ((1 << format(ty).sign) - 1))
}

/// Negation; NaN payloads stay.
#[inline]
pub(super) fn neg(ty: Float, ftz: bool, a: u64) -> u64 {
    each(ty, [a], |ty, [a]| flush(ty, ftz, a) ^ 1 << format(ty).sign)
}

/// The magnitude of `magnitude` with the sign of `sign`.
///
/// # PTX ISA
/// Floating Point Instructions: copysign.
#[inline]
pub(super) fn copysign(ty: Float, sign: u64, magnitude: u64) -> u64 {
    each(ty, [sign, magnitude], |ty, [sign, magnitude]| {
        let bit = 1 << format(ty).sign;
        (magnitude & !bit) | (sign & bit)
    })
}

/// Whether a scalar value has the property. Zeros count as normal.
///
/// # PTX ISA
/// Floating Point Instructions: testp.
#[inline]
pub(super) fn testp(property: TestProperty, ty: Float, a: u64) -> bool {
    let f = format(ty);
    let code = a & ((1 << f.sign) - 1);
    let subnormal = code != 0 && code < 1 << f.fraction;
    match property {
        TestProperty::Finite => code <= f.max,
        TestProperty::Infinite => f.inf == Some(code),
        TestProperty::Number => code <= f.last_number(),
        TestProperty::NotANumber => code > f.last_number(),
        TestProperty::Normal => code <= f.max && !subnormal,
        TestProperty::Subnormal => subnormal,
    }
}
