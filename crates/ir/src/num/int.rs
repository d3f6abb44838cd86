//! Integer arithmetic at 16, 32 and 64 bits, wrapping unless a name says otherwise.

use crate::types::{Cmp, Int, Ty};

/// Value of the low `bits` bits read as a signed integer.
#[inline]
pub(super) const fn sext(a: u64, bits: u32) -> i64 {
    let up = 64 - bits;
    ((a << up) as i64) >> up
}

/// Value of an operand in a type wide enough for every sum and product of two of them, but for 64 by 64 bits unsigned.
#[inline]
pub(super) const fn read(t: Int, a: u64) -> i128 {
    if t.signed { sext(a, t.bits()) as i128 } else { a as i128 }
}

/// Least and greatest value of an integer of `bits` bits.
#[inline]
pub(super) const fn range(bits: u32, signed: bool) -> (i128, i128) {
    if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// Upper half of the product.
#[inline]
pub(super) fn mul_hi(t: Int, a: u64, b: u64) -> u64 {
    let high = if t.bits() < 64 {
        let product = if t.signed { (sext(a, t.bits()) * sext(b, t.bits())) as u64 } else { a * b };
        product >> t.bits()
    } else if t.signed {
        ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64
    } else {
        ((u128::from(a) * u128::from(b)) >> 64) as u64
    };
    high & t.ty.mask()
}

/// Product at twice the width. 64-bit sources have no such form; the product is cut to 64 bits.
#[inline]
pub(super) fn mul_wide(t: Int, a: u64, b: u64) -> u64 {
    let product = if t.signed { (sext(a, t.bits()).wrapping_mul(sext(b, t.bits()))) as u64 } else { a.wrapping_mul(b) };
    if t.bits() == 16 { product & Ty::B32.mask() } else { product }
}

/// 32 bits of the 48-bit product of two 24-bit sources.
///
/// # PTX ISA
/// Integer Arithmetic Instructions: mul24.
#[inline]
pub(super) fn mul24(signed: bool, hi: bool, a: u64, b: u64) -> u64 {
    let product = if signed { (sext(a, 24) * sext(b, 24)) as u64 } else { (a & 0xff_ffff) * (b & 0xff_ffff) };
    (if hi { product >> 16 } else { product }) & Ty::B32.mask()
}

/// Quotient, rounded towards zero.
#[inline]
pub(super) fn div(t: Int, a: u64, b: u64) -> u64 {
    // Choice: the manual leaves division by zero open. All ones is what NVIDIA's own code gives for 32 bits;
    // we give it at every width so that results do not depend on the width. MIN / -1 wraps to MIN.
    if b == 0 {
        return t.ty.mask();
    }
    if t.signed { (sext(a, t.bits()).wrapping_div(sext(b, t.bits()))) as u64 & t.ty.mask() } else { a / b }
}

/// Remainder with the sign of the dividend.
#[inline]
pub(super) fn rem(t: Int, a: u64, b: u64) -> u64 {
    // Choice: the remainder of a division by zero is all ones at every width, as NVIDIA's own code gives for 32 bits.
    if b == 0 {
        return t.ty.mask();
    }
    if t.signed { (sext(a, t.bits()).wrapping_rem(sext(b, t.bits()))) as u64 & t.ty.mask() } else { a % b }
}

/// The smaller operand.
#[inline]
pub(super) fn min(t: Int, a: u64, b: u64) -> u64 {
    if less(t, b, a) { b } else { a }
}

/// The larger operand.
#[inline]
pub(super) fn max(t: Int, a: u64, b: u64) -> u64 {
    if less(t, a, b) { b } else { a }
}

/// Absolute value; the least value stays itself.
#[inline]
pub(super) fn abs(ty: Ty, a: u64) -> u64 {
    sext(a, ty.bits()).unsigned_abs() & ty.mask()
}

/// Distance of the operands, wrapping when a signed type cannot hold it.
///
/// # PTX ISA
/// Integer Arithmetic Instructions: sad.
#[inline]
pub(super) fn abs_diff(t: Int, a: u64, b: u64) -> u64 {
    (if less(t, a, b) { b.wrapping_sub(a) } else { a.wrapping_sub(b) }) & t.ty.mask()
}

/// Sum clamped to the range of the type.
#[inline]
pub(super) fn add_sat(t: Int, a: u64, b: u64) -> u64 {
    clamp(t, read(t, a) + read(t, b))
}

/// Difference clamped to the range of the type.
#[inline]
pub(super) fn sub_sat(t: Int, a: u64, b: u64) -> u64 {
    clamp(t, read(t, a) - read(t, b))
}

#[inline]
fn clamp(t: Int, exact: i128) -> u64 {
    let (low, high) = range(t.bits(), t.signed);
    exact.clamp(low, high) as u64 & t.ty.mask()
}

/// Sum and carry-out of two operands and a carry-in.
///
/// # PTX ISA
/// Extended-Precision Integer Arithmetic Instructions: addc.
#[inline]
pub(super) fn add_carry(ty: Ty, a: u64, b: u64, carry: u64) -> [u64; 2] {
    let sum = u128::from(a) + u128::from(b) + u128::from(carry);
    [sum as u64 & ty.mask(), (sum >> ty.bits()) as u64]
}

/// Difference and borrow-out of two operands and a borrow-in.
///
/// # PTX ISA
/// Extended-Precision Integer Arithmetic Instructions: subc.
#[inline]
pub(super) fn sub_borrow(ty: Ty, a: u64, b: u64, borrow: u64) -> [u64; 2] {
    let difference = i128::from(a) - i128::from(b) - i128::from(borrow);
    [difference as u64 & ty.mask(), u64::from(difference < 0)]
}

/// `c` plus the products of the four bytes of `a` and `b`, wrapping.
///
/// # PTX ISA
/// Integer Arithmetic Instructions: dp4a.
#[inline]
pub(super) fn dp4a(a_signed: bool, b_signed: bool, a: u64, b: u64, c: u64) -> u64 {
    let mut sum = c as i64;
    for at in [0, 8, 16, 24] {
        sum += field(a_signed, a >> at, 8) * field(b_signed, b >> at, 8);
    }
    sum as u64 & Ty::B32.mask()
}

/// `c` plus the products of the two halves of `a` and two bytes of `b`, wrapping.
///
/// # PTX ISA
/// Integer Arithmetic Instructions: dp2a.
#[inline]
pub(super) fn dp2a(a_signed: bool, b_signed: bool, hi: bool, a: u64, b: u64, c: u64) -> u64 {
    let b = if hi { b >> 16 } else { b };
    let low = field(a_signed, a, 16) * field(b_signed, b, 8);
    let high = field(a_signed, a >> 16, 16) * field(b_signed, b >> 8, 8);
    (c as i64 + low + high) as u64 & Ty::B32.mask()
}

#[inline]
const fn field(signed: bool, a: u64, bits: u32) -> i64 {
    if signed { sext(a, bits) } else { (a & ((1 << bits) - 1)) as i64 }
}

#[inline]
const fn less(t: Int, a: u64, b: u64) -> bool {
    if t.signed { sext(a, t.bits()) < sext(b, t.bits()) } else { a < b }
}

/// Whether the comparison holds. The unordered forms mean their ordered twins: integers are never NaN.
#[inline]
pub(super) fn compare(cmp: Cmp, t: Int, a: u64, b: u64) -> bool {
    match cmp {
        Cmp::Eq | Cmp::Equ => a == b,
        Cmp::Ne | Cmp::Neu => a != b,
        Cmp::Lt | Cmp::Ltu => less(t, a, b),
        Cmp::Le | Cmp::Leu => !less(t, b, a),
        Cmp::Gt | Cmp::Gtu => less(t, b, a),
        Cmp::Ge | Cmp::Geu => !less(t, a, b),
        Cmp::Num => true,
        Cmp::Nan => false,
    }
}

/// The low `bits` bits, extended or cut to the type.
#[inline]
pub(super) fn extend(bits: u32, signed: bool, to: Ty, a: u64) -> u64 {
    let kept = if bits >= 64 {
        a
    } else if signed {
        sext(a, bits) as u64
    } else {
        a & ((1 << bits) - 1)
    };
    kept & to.mask()
}
