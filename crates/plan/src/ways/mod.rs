//! How value ops are done.

pub mod convert;

use handloom_ir::simt::*;
use handloom_ir::types::*;

/// Whether there is vector code for the op, given which sources are constants and which are uniform.
pub fn inlined(op: Pure, constant: &[Option<u64>], uniform: &[bool]) -> bool {
    match op {
        Pure::Mov(_)
        | Pure::Add(_)
        | Pure::Sub(_)
        | Pure::Neg(_)
        | Pure::And(_)
        | Pure::Or(_)
        | Pure::Xor(_)
        | Pure::Not(_)
        | Pure::Select(_)
        | Pure::ICmp(..)
        | Pure::Min(_)
        | Pure::Max(_)
        | Pure::Abs(_)
        | Pure::AbsDiff(_)
        | Pure::Mul(_)
        | Pure::MulWide(_)
        | Pure::Ext { .. }
        | Pure::Pack(_)
        | Pure::Half { .. }
        | Pure::FromPred(_)
        | Pure::ToPred(_)
        | Pure::Cnot(_)
        | Pure::Lop3(_)
        | Pure::Video(_)
        | Pure::Vmad(_)
        | Pure::VideoSimd(_) => true,
        Pure::MulHi(int) => int.ty != Ty::B64,
        Pure::Shl(_) => uniform[1],
        Pure::Shr(int) => uniform[1] && !(int.signed && int.ty == Ty::B64 && constant[1].is_none()),
        Pure::Shf { .. } => constant[2].is_some(),
        Pure::Prmt(mode) => mode == PrmtMode::Default && constant[2].is_some_and(|s| s & 0x8888 == 0),
        Pure::AddCarry(t) | Pure::SubBorrow(t) => t == Ty::B32,
        Pure::FAdd(m) | Pure::FSub(m) | Pure::FMul(m) | Pure::FFma(m) => plain(m),
        Pure::FDiv { mode, exact } => plain(mode) && exact == Exactness::Ieee(Rounding::Nearest),
        Pure::FRcp { mode, exact } => plain(mode) && exact == Exactness::Ieee(Rounding::Nearest),
        Pure::FSqrt { mode, exact } => plain(mode) && exact == Exactness::Ieee(Rounding::Nearest),
        Pure::FMin { ty, ftz, xorsign, .. } | Pure::FMax { ty, ftz, xorsign, .. } => {
            matches!(ty, Float::F32 | Float::F64) && !ftz && !xorsign
        }
        Pure::FAbs { ty, ftz } | Pure::FNeg { ty, ftz } => !(ftz && ty != Float::F32) && ty != Float::F32x2,
        Pure::FCmp { ty, ftz, .. } => matches!(ty, Float::F32 | Float::F64) && !(ftz && ty == Float::F64),
        Pure::Cvt(c) => convert::inlined(c),
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
        | Pure::Testp { .. } => false,
    }
}

/// Round to nearest at f32 or f64, without clamping; flushing at f32 only.
pub(crate) fn plain(m: FMode) -> bool {
    m.round == Rounding::Nearest && !m.sat && !m.relu && matches!(m.ty, Float::F32 | Float::F64)
}
