//! Value arithmetic, written once.
//!
//! Takes: a [`Pure`] op and the bits of its sources. Gives: the bits of its results. Does not know: lanes, memory, PTX
//! text.
//!
//! The model: a value is a `u64` that is zero above the width of its type. Floats travel as their bits; an `.f16`,
//! `.bf16` or smaller float is computed exactly in `f64` (or in integers) and rounded once by [`format::encode`], the
//! only place where a rounding decision is made in software. Nearest rounding of `f32` and `f64` is the host's own.
//!
//! Invariants:
//! - results are masked to the width of their type;
//! - a NaN that an operation makes is canonical: all ones below the sign;
//! - [`eval`] does not panic for an op that [`Pure`] describes, whatever the bits of its sources;
//! - nothing here reads or writes the host's rounding mode.
//!
//! How to read it: [`eval`] is the table of contents; `int` and `bits` hold integers, `arith` the rounded float
//! operations, `video` the video instructions, `order` what floats do without rounding, `approx` the approximate instructions, `cvt` conversions,
//! `element` what they share, `matrix` and `whole` products of matrices, `format` and `soft` the exact software arithmetic below them.

mod approx;
mod arith;
mod bits;
mod cvt;
mod element;
pub mod format;
pub mod image;
mod int;
pub mod matrix;
mod order;
pub mod soft;
mod video;
pub mod whole;

pub use cvt::cvt;

use crate::simt::Pure;

/// The results of a value op for the bits of its sources: the one definition of what the op means.
///
/// The second result is 0 but for [`Pure::AddCarry`] and [`Pure::SubBorrow`]. Sources must be zero above the width of
/// their type.
///
/// # Panics
/// When `src` is shorter than [`Pure::sources`].
pub fn eval(op: Pure, src: &[u64]) -> [u64; 2] {
    let value = match op {
        Pure::Mov(_) => src[0],
        Pure::Add(ty) => src[0].wrapping_add(src[1]) & ty.mask(),
        Pure::Sub(ty) => src[0].wrapping_sub(src[1]) & ty.mask(),
        Pure::Mul(ty) => src[0].wrapping_mul(src[1]) & ty.mask(),
        Pure::MulHi(t) => int::mul_hi(t, src[0], src[1]),
        Pure::MulWide(t) => int::mul_wide(t, src[0], src[1]),
        Pure::Mul24 { signed, hi } => int::mul24(signed, hi, src[0], src[1]),
        Pure::Div(t) => int::div(t, src[0], src[1]),
        Pure::Rem(t) => int::rem(t, src[0], src[1]),
        Pure::Min(t) => int::min(t, src[0], src[1]),
        Pure::Max(t) => int::max(t, src[0], src[1]),
        Pure::Abs(ty) => int::abs(ty, src[0]),
        Pure::Neg(ty) => src[0].wrapping_neg() & ty.mask(),
        Pure::AbsDiff(t) => int::abs_diff(t, src[0], src[1]),
        Pure::AddSat(t) => int::add_sat(t, src[0], src[1]),
        Pure::SubSat(t) => int::sub_sat(t, src[0], src[1]),
        Pure::AddCarry(ty) => return int::add_carry(ty, src[0], src[1], src[2]),
        Pure::SubBorrow(ty) => return int::sub_borrow(ty, src[0], src[1], src[2]),
        Pure::And(_) => src[0] & src[1],
        Pure::Or(_) => src[0] | src[1],
        Pure::Xor(_) => src[0] ^ src[1],
        Pure::Not(ty) => !src[0] & ty.mask(),
        Pure::Cnot(_) => u64::from(src[0] == 0),
        Pure::Shl(ty) => bits::shl(ty, src[0], src[1]),
        Pure::Shr(t) => bits::shr(t, src[0], src[1]),
        Pure::Shf { right, wrap } => bits::shf(right, wrap, src[0], src[1], src[2]),
        Pure::Popc(_) => u64::from(src[0].count_ones()),
        Pure::Clz(ty) => u64::from(src[0].leading_zeros() + ty.bits() - 64),
        Pure::Brev(ty) => src[0].reverse_bits() >> (64 - ty.bits()),
        Pure::Bfind { int, shiftamt } => bits::bfind(int, shiftamt, src[0]),
        Pure::Bfe(t) => bits::bfe(t, src[0], src[1], src[2]),
        Pure::Bfi(ty) => bits::bfi(ty, src[0], src[1], src[2], src[3]),
        Pure::Prmt(mode) => bits::prmt(mode, src[0], src[1], src[2]),
        Pure::Lop3(table) => bits::lop3(table, src[0], src[1], src[2]),
        Pure::Dp4a { a_signed, b_signed } => int::dp4a(a_signed, b_signed, src[0], src[1], src[2]),
        Pure::Dp2a { a_signed, b_signed, hi } => int::dp2a(a_signed, b_signed, hi, src[0], src[1], src[2]),
        Pure::Fns => bits::fns(src[0], src[1], src[2]),
        Pure::Szext { signed, wrap } => bits::szext(signed, wrap, src[0], src[1]),
        Pure::Bmsk { wrap } => bits::bmsk(wrap, src[0], src[1]),
        Pure::Video(v) => video::scalar(v, src),
        Pure::Vmad(v) => video::vmad(v, src),
        Pure::VideoSimd(v) => video::simd(v, src),
        Pure::ICmp(cmp, t) => u64::from(int::compare(cmp, t, src[0], src[1])),
        Pure::FCmp { cmp, ty, ftz } => u64::from(order::compare(cmp, ty, ftz, src[0], src[1])),
        Pure::Select(_) => {
            if src[0] != 0 {
                src[1]
            } else {
                src[2]
            }
        }
        Pure::Ext { bits, signed, from: _, to } => int::extend(u32::from(bits), signed, to, src[0]),
        Pure::Pack(ty) => src[0] | src[1] << ty.bits(),
        Pure::Half { from, hi } => {
            let half = from.bits() / 2;
            (if hi { src[0] >> half } else { src[0] }) & ((1 << half) - 1)
        }
        Pure::FromPred(_) => src[0],
        Pure::ToPred(_) => u64::from(src[0] != 0),
        Pure::FAdd(mode) => arith::add(mode, src[0], src[1]),
        Pure::FSub(mode) => arith::sub(mode, src[0], src[1]),
        Pure::FMul(mode) => arith::mul(mode, src[0], src[1]),
        Pure::FFma(mode) => arith::fma(mode, src[0], src[1], src[2]),
        Pure::FDiv { mode, exact } => arith::div(mode, exact, src[0], src[1]),
        Pure::FRcp { mode, exact } => arith::rcp(mode, exact, src[0]),
        Pure::FSqrt { mode, exact } => arith::sqrt(mode, exact, src[0]),
        Pure::FRsqrt(mode) => approx::rsqrt(mode, src[0]),
        Pure::FMin { ty, ftz, nan, xorsign } => order::min_max(false, ty, ftz, nan, xorsign, src[0], src[1]),
        Pure::FMax { ty, ftz, nan, xorsign } => order::min_max(true, ty, ftz, nan, xorsign, src[0], src[1]),
        Pure::FAbs { ty, ftz } => order::abs(ty, ftz, src[0]),
        Pure::FNeg { ty, ftz } => order::neg(ty, ftz, src[0]),
        Pure::Sin { ftz } => approx::sin(ftz, src[0]),
        Pure::Cos { ftz } => approx::cos(ftz, src[0]),
        Pure::Lg2 { ftz } => approx::lg2(ftz, src[0]),
        Pure::Ex2 { ty, ftz } => approx::ex2(ty, ftz, src[0]),
        Pure::Tanh { ty } => approx::tanh(ty, src[0]),
        Pure::Copysign(ty) => order::copysign(ty, src[0], src[1]),
        Pure::Testp { property, ty } => u64::from(order::testp(property, ty, src[0])),
        Pure::Cvt(c) => cvt::cvt(c, src),
    };
    [value, 0]
}
