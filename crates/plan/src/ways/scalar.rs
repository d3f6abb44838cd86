//! Scalar code for value ops on values that all lanes share.

use handloom_ir::simt::Pure;
use handloom_ir::types::{Cmp, Int, Ty};

use super::vector::{Each, Extend, is_of_integers};

/// One scalar instruction, or a few. Sources are in the order of the op's.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// The source itself.
    Same,
    /// An integer instruction; what is above 16 bits is cut off where it may be set.
    Each(Each, Ty),
    /// A predicate turned round.
    NotPred,
    /// `a ? b : c`.
    Select,
    /// An integer comparison.
    Compare(Cmp, Int),
    /// The lesser or the greater of two integers.
    Extreme {
        /// The lesser.
        least: bool,
        /// Width and sign.
        int: Int,
    },
    /// Product of twice the width, of 16 bits.
    WideProduct16(Int),
    /// Product of twice the width, of 32 bits.
    WideProduct32(Int),
    /// Upper half of the product, of 32 bits.
    HighProduct32(Int),
    /// Upper half of the product, of 64 bits.
    HighProduct64 {
        /// Of signed integers.
        signed: bool,
    },
    /// Quotient or remainder as `num` defines them.
    Divide {
        /// Width and sign.
        int: Int,
        /// The quotient.
        quotient: bool,
    },
    /// A shift; amounts at or above the width give 0, or the sign.
    Shift {
        /// Width and sign.
        int: Int,
        /// To the left, else to the right.
        left: bool,
    },
    /// Low bits, extended.
    Extend(Extend),
    /// Two words to one of 64 bits.
    Pack64,
    /// Two halves to a word.
    Pack32,
    /// A word of 64 bits.
    Half64 {
        /// The upper one.
        hi: bool,
    },
    /// A half of a word.
    Half32 {
        /// The upper one.
        hi: bool,
    },
    /// 1 or 0.
    FromPred(Ty),
    /// Not zero.
    ToPred,
    /// Number of bits that are set.
    Popc(Ty),
    /// Number of zeros above the first bit that is set.
    Clz(Ty),
}

/// How an op is done on scalars; `None`: on one vector, or by the routine for one lane.
pub fn scalar(op: Pure) -> Option<Scalar> {
    Some(match op {
        Pure::Mov(_) => Scalar::Same,
        Pure::Add(t) => Scalar::Each(Each::Add, t),
        Pure::Sub(t) => Scalar::Each(Each::Sub, t),
        Pure::Mul(t) => Scalar::Each(Each::Mul, t),
        Pure::Neg(t) => Scalar::Each(Each::Neg, t),
        Pure::And(t) => Scalar::Each(Each::And, t),
        Pure::Or(t) => Scalar::Each(Each::Or, t),
        Pure::Xor(t) => Scalar::Each(Each::Xor, t),
        Pure::Not(Ty::P) => Scalar::NotPred,
        Pure::Not(t) => Scalar::Each(Each::Not, t),
        Pure::MulHi(int) if int.ty == Ty::B64 => Scalar::HighProduct64 { signed: int.signed },
        Pure::MulHi(int) if int.ty == Ty::B32 => Scalar::HighProduct32(int),
        Pure::MulWide(int) if int.ty == Ty::B32 => Scalar::WideProduct32(int),
        Pure::MulWide(int) if int.ty == Ty::B16 => Scalar::WideProduct16(int),
        Pure::Min(int) => Scalar::Extreme { least: true, int },
        Pure::Max(int) => Scalar::Extreme { least: false, int },
        Pure::Shl(t) => Scalar::Shift { int: Int { ty: t, signed: false }, left: true },
        Pure::Shr(int) => Scalar::Shift { int, left: false },
        Pure::ICmp(cmp, int) if is_of_integers(cmp) => Scalar::Compare(cmp, int),
        Pure::Select(_) => Scalar::Select,
        Pure::Ext { bits, signed, from, to } => Scalar::Extend(Extend { bits, signed, from, to }),
        Pure::Pack(Ty::B32) => Scalar::Pack64,
        Pure::Pack(Ty::B16) => Scalar::Pack32,
        Pure::Half { from: Ty::B64, hi } => Scalar::Half64 { hi },
        Pure::Half { from: Ty::B32, hi } => Scalar::Half32 { hi },
        Pure::FromPred(t) => Scalar::FromPred(t),
        Pure::ToPred(_) => Scalar::ToPred,
        Pure::Popc(t) if t != Ty::P => Scalar::Popc(t),
        Pure::Clz(t) if matches!(t, Ty::B32 | Ty::B64) => Scalar::Clz(t),
        Pure::Div(int) if matches!(int.ty, Ty::B32 | Ty::B64) => Scalar::Divide { int, quotient: true },
        Pure::Rem(int) if matches!(int.ty, Ty::B32 | Ty::B64) => Scalar::Divide { int, quotient: false },
        _ => return None,
    })
}
