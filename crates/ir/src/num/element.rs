//! One element of a float value: its number, and what becomes of a result.

use crate::simt::FMode;
use crate::types::{Float, Rounding};

use super::format::{Format, Rounder, narrow, widen};

/// The canonical NaN of `.f64`.
pub(super) const NAN64: u64 = 0x7fff_ffff_ffff_ffff;

/// Applies `op` to the value, or to each element of a packed one. `op` gets the element's type.
#[inline]
pub(super) fn each<const N: usize>(ty: Float, src: [u64; N], op: impl Fn(Float, [u64; N]) -> u64) -> u64 {
    match ty {
        Float::F16 | Float::BF16 | Float::F32 | Float::F64 => op(ty, src),
        Float::F16x2 | Float::BF16x2 => {
            let low = op(ty.element(), part(src, 0, 0xffff));
            let high = op(ty.element(), part(src, 16, 0xffff));
            low | high << 16
        }
        Float::F32x2 => {
            let low = op(Float::F32, part(src, 0, 0xffff_ffff));
            let high = op(Float::F32, part(src, 32, 0xffff_ffff));
            low | high << 32
        }
    }
}

/// One element of each packed source. (A loop: `map` is ten functions for each closure of each number of sources.)
#[inline]
fn part<const N: usize>(mut src: [u64; N], shift: u32, mask: u64) -> [u64; N] {
    for bits in &mut src {
        *bits = *bits >> shift & mask;
    }
    src
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
// Choice: the manual does not say when an arithmetic result counts as subnormal; we look at the rounded result. An NVIDIA H100 (driver 580.159.04) looks at
// what products and fused sums would round to if there were no least exponent: some that we round to the least normal number are zero there.
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

/// The host's number of `.f32` bits.
#[inline]
pub(super) fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
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

/// Rounds an `f64` that is exact, or rounded to odd, to the type.
#[inline]
pub(super) fn round_to(ty: Float, round: Rounding, a: f64) -> u64 {
    narrow(format(ty), a, Rounder::new(round), false)
}
