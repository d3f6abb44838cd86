//! Vector code for value ops.

use handloom_ir::simt::*;
use handloom_ir::types::*;

use super::convert;

/// Instructions on vectors, of a width that the host has. Sources are in the order of the op's.
#[derive(Clone, Copy, Debug)]
pub enum Vector {
    /// The source itself.
    Same,
    /// One integer instruction for each vector; what is above 16 bits is cut off.
    Each(Each, Ty),
    /// `a ? b : c` on predicates.
    SelectPred,
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
    /// Absolute value of a signed integer.
    Abs(Ty),
    /// Distance of two integers.
    AbsDiff(Int),
    /// Product of twice the width.
    WideProduct(Int),
    /// Upper half of the product, of 16 bits.
    HighProduct16(Int),
    /// Upper half of the product, of 32 bits.
    HighProduct32(Int),
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
    ToPred(Ty),
    /// 1 for zero, else 0.
    IsZero(Ty),
    /// Any function of three bits.
    Lop3(u8),
    /// A scalar video instruction.
    Video(handloom_ir::simt::video::Video),
    /// `vmad`.
    Vmad(handloom_ir::simt::video::Vmad),
    /// A SIMD video instruction.
    VideoSimd(handloom_ir::simt::video::VideoSimd),
    /// A shift whose amount is a constant.
    ShiftBy {
        /// Width and sign.
        int: Int,
        /// To the left, else to the right.
        left: bool,
        /// How far.
        amount: u64,
    },
    /// A shift whose amount all lanes share.
    ShiftUniform {
        /// Width and sign.
        int: Int,
        /// To the left, else to the right.
        left: bool,
    },
    /// A funnel shift by a constant.
    Funnel {
        /// To the right, else to the left.
        right: bool,
        /// How far, at most 32.
        amount: u64,
    },
    /// Bytes of two words in a new order: 0 to 3 of the first, 4 to 7 of the second.
    Bytes([u8; 4]),
    /// A sum with a carry, and the carry.
    AddCarry,
    /// A difference with a borrow, and the borrow.
    SubBorrow,
    /// Float arithmetic to nearest.
    Float(FloatOp, FMode),
    /// The lesser or the greater of two floats.
    FloatExtreme {
        /// The lesser.
        least: bool,
        /// The float type.
        ty: Float,
        /// A NaN wins.
        nan: bool,
    },
    /// A sign is flipped, or cleared.
    Sign {
        /// The float type.
        ty: Float,
        /// Subnormal numbers become zero.
        ftz: bool,
        /// The sign is flipped, else cleared.
        negate: bool,
    },
    /// A float comparison.
    FloatCompare {
        /// Which relation is asked for.
        cmp: Cmp,
        /// The float type.
        ty: Float,
        /// Subnormal numbers are zero.
        ftz: bool,
    },
    /// A conversion.
    Convert(Cvt, convert::Way),
}

impl Vector {
    /// Whether it takes a dozen instructions of the host and more for each vector, while the routine has code for whole rows.
    pub fn is_much_code(&self) -> bool {
        match self {
            Vector::Float(FloatOp::Add | FloatOp::Sub | FloatOp::Mul | FloatOp::Fma, mode) => {
                mode.ftz && mode.ty == Float::F32
            }
            Vector::FloatExtreme { ty, .. } => *ty == Float::F32,
            Vector::Convert(_, convert::Way::Narrow { .. }) | Vector::HighProduct32(_) => true,
            _ => false,
        }
    }
}

/// Low bits of a value, extended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extend {
    /// How many bits.
    pub bits: u8,
    /// Whether the sign is copied.
    pub signed: bool,
    /// Type of the source.
    pub from: Ty,
    /// Type of the result.
    pub to: Ty,
}

/// Integer ops that are one instruction of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "as the ops of their names")]
pub enum Each {
    Add,
    Sub,
    Mul,
    Neg,
    And,
    Or,
    Xor,
    Not,
}

/// Float ops that are one instruction of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "as the ops of their names")]
pub enum FloatOp {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    Sqrt,
    Reciprocal,
}

/// The vector code for an op, given which of its sources are constants and which are uniform; `None`: there is none.
pub(super) fn vector(op: Pure, constant: &[Option<u64>], uniform: &[bool]) -> Option<Vector> {
    let nearest = |exact| exact == Exactness::Ieee(Rounding::Nearest);
    let float = |op, m: FMode, fits: bool| (fits && m.is_plain()).then_some(Vector::Float(op, m));
    let extreme = |least: bool, ty: Float, ftz: bool, nan: bool, xorsign: bool| {
        (matches!(ty, Float::F32 | Float::F64) && !ftz && !xorsign).then_some(Vector::FloatExtreme { least, ty, nan })
    };
    let sign = |ty: Float, ftz: bool, negate: bool| {
        (!(ftz && ty != Float::F32) && ty != Float::F32x2).then_some(Vector::Sign { ty, ftz, negate })
    };
    Some(match op {
        Pure::Mov(_) => Vector::Same,
        Pure::Add(t) => Vector::Each(Each::Add, t),
        Pure::Sub(t) => Vector::Each(Each::Sub, t),
        Pure::Mul(t) => Vector::Each(Each::Mul, t),
        Pure::Neg(t) => Vector::Each(Each::Neg, t),
        Pure::And(t) => Vector::Each(Each::And, t),
        Pure::Or(t) => Vector::Each(Each::Or, t),
        Pure::Xor(t) => Vector::Each(Each::Xor, t),
        Pure::Not(t) => Vector::Each(Each::Not, t),
        Pure::Select(Ty::P) => Vector::SelectPred,
        Pure::Select(_) => Vector::Select,
        Pure::ICmp(cmp, int) => is_of_integers(cmp).then_some(Vector::Compare(cmp, int))?,
        Pure::Min(int) => Vector::Extreme { least: true, int },
        Pure::Max(int) => Vector::Extreme { least: false, int },
        Pure::Abs(t) => Vector::Abs(t),
        Pure::AbsDiff(int) => Vector::AbsDiff(int),
        Pure::MulWide(int) => Vector::WideProduct(int),
        Pure::MulHi(int) => match int.ty {
            Ty::B64 => return None,
            Ty::B16 => Vector::HighProduct16(int),
            Ty::B32 | Ty::P => Vector::HighProduct32(int),
        },
        Pure::Ext { bits, signed, from, to } => Vector::Extend(Extend { bits, signed, from, to }),
        Pure::Pack(Ty::B32) => Vector::Pack64,
        Pure::Pack(_) => Vector::Pack32,
        Pure::Half { from: Ty::B64, hi } => Vector::Half64 { hi },
        Pure::Half { hi, .. } => Vector::Half32 { hi },
        Pure::FromPred(t) => Vector::FromPred(t),
        Pure::ToPred(t) => Vector::ToPred(t),
        Pure::Cnot(t) => Vector::IsZero(t),
        Pure::Lop3(lut) => Vector::Lop3(lut),
        Pure::Video(v) => Vector::Video(v),
        Pure::Vmad(v) => Vector::Vmad(v),
        Pure::VideoSimd(v) => Vector::VideoSimd(v),
        Pure::Shl(t) => shift(Int { ty: t, signed: false }, true, constant[1], uniform[1])?,
        Pure::Shr(int) => shift(int, false, constant[1], uniform[1])?,
        Pure::Shf { right, wrap } => {
            let by = constant[2]?;
            Vector::Funnel { right, amount: if wrap { by & 31 } else { by.min(32) } }
        }
        Pure::Prmt(mode) => {
            let selector = constant[2].filter(|s| mode == PrmtMode::Default && s & 0x8888 == 0)?;
            Vector::Bytes(std::array::from_fn(|i| (selector >> (4 * i) & 7) as u8))
        }
        Pure::AddCarry(t) => (t == Ty::B32).then_some(Vector::AddCarry)?,
        Pure::SubBorrow(t) => (t == Ty::B32).then_some(Vector::SubBorrow)?,
        Pure::FAdd(m) => float(FloatOp::Add, m, true)?,
        Pure::FSub(m) => float(FloatOp::Sub, m, true)?,
        Pure::FMul(m) => float(FloatOp::Mul, m, true)?,
        Pure::FFma(m) => float(FloatOp::Fma, m, true)?,
        Pure::FDiv { mode, exact } => float(FloatOp::Div, mode, nearest(exact))?,
        Pure::FRcp { mode, exact } => float(FloatOp::Reciprocal, mode, nearest(exact))?,
        Pure::FSqrt { mode, exact } => float(FloatOp::Sqrt, mode, nearest(exact))?,
        Pure::FMin { ty, ftz, nan, xorsign } => extreme(true, ty, ftz, nan, xorsign)?,
        Pure::FMax { ty, ftz, nan, xorsign } => extreme(false, ty, ftz, nan, xorsign)?,
        Pure::FAbs { ty, ftz } => sign(ty, ftz, false)?,
        Pure::FNeg { ty, ftz } => sign(ty, ftz, true)?,
        Pure::FCmp { cmp, ty, ftz } => (matches!(ty, Float::F32 | Float::F64) && !(ftz && ty == Float::F64))
            .then_some(Vector::FloatCompare { cmp, ty, ftz })?,
        Pure::Cvt(c) => Vector::Convert(c, convert::way(c)?),
        Pure::Mul24 { .. }
        | Pure::Div(_)
        | Pure::Rem(_)
        | Pure::AddSat(_)
        | Pure::SubSat(_)
        | Pure::Popc(_)
        | Pure::Clz(_)
        | Pure::Brev(_)
        | Pure::Bfind { .. }
        | Pure::Bfe(_)
        | Pure::Bfi(_)
        | Pure::Dp4a { .. }
        | Pure::Dp2a { .. }
        | Pure::Fns
        | Pure::Szext { .. }
        | Pure::Bmsk { .. }
        | Pure::FRsqrt(_)
        | Pure::Sin { .. }
        | Pure::Cos { .. }
        | Pure::Lg2 { .. }
        | Pure::Ex2 { .. }
        | Pure::Tanh { .. }
        | Pure::Copysign(_)
        | Pure::Testp { .. } => return None,
    })
}

fn shift(int: Int, left: bool, amount: Option<u64>, is_uniform: bool) -> Option<Vector> {
    if !is_uniform {
        return None;
    }
    match amount {
        Some(amount) => Some(Vector::ShiftBy { int, left, amount }),
        // There is no such instruction on the host.
        None if !left && int.signed && int.ty == Ty::B64 => None,
        None => Some(Vector::ShiftUniform { int, left }),
    }
}

/// Whether integers can be compared so: a comparison that asks for NaNs is of floats.
pub(super) fn is_of_integers(cmp: Cmp) -> bool {
    matches!(cmp, Cmp::Eq | Cmp::Ne | Cmp::Lt | Cmp::Le | Cmp::Gt | Cmp::Ge)
}
