//! Which instruction of the host is which op: decisions as data.

use handloom_ir::simt::{FMode, Inst, Lines, MatrixOp, Op, Pure, Val};
use handloom_ir::types::{Cmp, Float, Int, Rounding, ScalarType, Ty};
use handloom_plan::Plan;
use iced_x86::{Code, RoundingControl};

/// An op that is one instruction of two sources, in lanes of 32 and of 64 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Simple {
    /// For 32 bits.
    pub(crate) narrow: Code,
    /// For 64 bits.
    pub(crate) wide: Code,
    /// Sources of 16 bits are extended by their sign first.
    pub(crate) signed: bool,
    /// Results of 16 bits are cut to their width.
    pub(crate) cut: bool,
    /// Its sources may change places.
    pub(crate) commutes: bool,
}

/// The instruction of an op on integers.
pub(crate) fn simple(op: Pure) -> Option<Simple> {
    use Code::*;
    let commutes = !matches!(op, Pure::Sub(_));
    let made = |narrow, wide, signed, cut| Some(Simple { narrow, wide, signed, cut, commutes });
    match op {
        Pure::Add(_) => made(EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64, false, true),
        Pure::Sub(_) => made(EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32, EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64, false, true),
        Pure::Mul(_) => made(EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32, EVEX_Vpmullq_zmm_k1z_zmm_zmmm512b64, false, true),
        Pure::And(_) => made(EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64, false, false),
        Pure::Or(_) => made(EVEX_Vpord_zmm_k1z_zmm_zmmm512b32, EVEX_Vporq_zmm_k1z_zmm_zmmm512b64, false, false),
        Pure::Xor(_) => made(EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, EVEX_Vpxorq_zmm_k1z_zmm_zmmm512b64, false, false),
        Pure::Min(Int { signed: true, .. }) => {
            made(EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32, EVEX_Vpminsq_zmm_k1z_zmm_zmmm512b64, true, true)
        }
        Pure::Max(Int { signed: true, .. }) => {
            made(EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32, EVEX_Vpmaxsq_zmm_k1z_zmm_zmmm512b64, true, true)
        }
        Pure::Min(_) => made(EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32, EVEX_Vpminuq_zmm_k1z_zmm_zmmm512b64, false, false),
        Pure::Max(_) => made(EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32, EVEX_Vpmaxuq_zmm_k1z_zmm_zmmm512b64, false, false),
        _ => None,
    }
}

/// Shifts by amounts of their own in each lane. Amounts above the width act as the width on the host too.
pub(crate) fn shift(op: Pure) -> Option<Simple> {
    use Code::*;
    let made = |narrow, wide, signed, cut| Some(Simple { narrow, wide, signed, cut, commutes: false });
    match op {
        Pure::Shl(_) => made(EVEX_Vpsllvd_zmm_k1z_zmm_zmmm512b32, EVEX_Vpsllvq_zmm_k1z_zmm_zmmm512b64, false, true),
        Pure::Shr(Int { signed: true, .. }) => {
            made(EVEX_Vpsravd_zmm_k1z_zmm_zmmm512b32, EVEX_Vpsravq_zmm_k1z_zmm_zmmm512b64, true, true)
        }
        Pure::Shr(_) => made(EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32, EVEX_Vpsrlvq_zmm_k1z_zmm_zmmm512b64, false, false),
        _ => None,
    }
}

/// The number of a comparison of integers as the host's instruction wants it.
pub(crate) fn int_cmp(cmp: Cmp) -> Option<u32> {
    Some(match cmp {
        Cmp::Eq | Cmp::Equ => 0,
        Cmp::Lt | Cmp::Ltu => 1,
        Cmp::Le | Cmp::Leu => 2,
        Cmp::Ne | Cmp::Neu => 4,
        Cmp::Ge | Cmp::Geu => 5,
        Cmp::Gt | Cmp::Gtu => 6,
        Cmp::Num | Cmp::Nan => return None,
    })
}

/// The number of a comparison of floats, none of which tells of a quiet NaN.
pub(crate) fn float_cmp(cmp: Cmp) -> u32 {
    match cmp {
        Cmp::Eq => 0x00,
        Cmp::Nan => 0x03,
        Cmp::Neu => 0x04,
        Cmp::Num => 0x07,
        Cmp::Equ => 0x08,
        Cmp::Ne => 0x0c,
        Cmp::Lt => 0x11,
        Cmp::Le => 0x12,
        Cmp::Geu => 0x15,
        Cmp::Gtu => 0x16,
        Cmp::Ltu => 0x19,
        Cmp::Leu => 0x1a,
        Cmp::Ge => 0x1d,
        Cmp::Gt => 0x1e,
    }
}

/// The rounding that an instruction of the host may name. To nearest is the host's own.
pub(crate) fn rounding(r: Rounding) -> Option<RoundingControl> {
    Some(match r {
        Rounding::Nearest => RoundingControl::None,
        Rounding::Zero => RoundingControl::RoundTowardZero,
        Rounding::Down => RoundingControl::RoundDown,
        Rounding::Up => RoundingControl::RoundUp,
        Rounding::NearestAway | Rounding::Stochastic => return None,
    })
}

/// An op on floats that is one instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arithmetic {
    pub(crate) narrow: Code,
    pub(crate) wide: Code,
    pub(crate) mode: FMode,
    pub(crate) round: RoundingControl,
    /// How sources stand in the instruction.
    pub(crate) form: ArithmeticForm,
    /// Its first two sources may change places.
    pub(crate) commutes: bool,
}

/// How sources stand in an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ArithmeticForm {
    /// `d = a op b`.
    Two,
    /// `d = a * b + c`.
    Three,
    /// `d = op a`.
    One,
    /// `d = 1 op a`.
    OneBy,
}

/// The instruction of an op on floats.
pub(crate) fn arithmetic(op: Pure) -> Option<Arithmetic> {
    use ArithmeticForm::*;
    use Code::*;
    use handloom_ir::simt::Exactness;
    let exact = |e: Exactness, mode: FMode| match e {
        Exactness::Ieee(round) => Some(FMode { round, ..mode }),
        // As `num` has them: to nearest.
        Exactness::Approx | Exactness::Full => {
            (mode.ty == Float::F32).then_some(FMode { round: Rounding::Nearest, ..mode })
        }
    };
    let (narrow, wide, mode, form) = match op {
        Pure::FAdd(m) => (EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er, EVEX_Vaddpd_zmm_k1z_zmm_zmmm512b64_er, m, Two),
        Pure::FSub(m) => (EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er, EVEX_Vsubpd_zmm_k1z_zmm_zmmm512b64_er, m, Two),
        Pure::FMul(m) => (EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er, EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er, m, Two),
        Pure::FFma(m) => {
            (EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er, EVEX_Vfmadd231pd_zmm_k1z_zmm_zmmm512b64_er, m, Three)
        }
        // `.approx.f32` has rules of its own for large divisors.
        Pure::FDiv { exact: Exactness::Approx, .. } => return None,
        Pure::FDiv { mode, exact: e } => {
            (EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er, EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er, exact(e, mode)?, Two)
        }
        Pure::FRcp { mode, exact: e } => {
            (EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er, EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er, exact(e, mode)?, OneBy)
        }
        Pure::FSqrt { mode, exact: e } => {
            (EVEX_Vsqrtps_zmm_k1z_zmmm512b32_er, EVEX_Vsqrtpd_zmm_k1z_zmmm512b64_er, exact(e, mode)?, One)
        }
        _ => return None,
    };
    let round = rounding(mode.round)?;
    let commutes = matches!(op, Pure::FAdd(_) | Pure::FMul(_));
    mode.ty.is_of_host().then_some(Arithmetic { narrow, wide, mode, round, form, commutes })
}

/// Whether a type is held in lanes of 64 bits.
pub(crate) fn width_of(ty: Float) -> Ty {
    if ty == Float::F64 { Ty::B64 } else { Ty::B32 }
}

/// Bits of an integer type, and whether it is signed.
pub(crate) fn integer(t: ScalarType) -> Option<(u32, bool)> {
    use ScalarType::*;
    Some(match t {
        U8 => (8, false),
        U16 => (16, false),
        U32 => (32, false),
        U64 => (64, false),
        S8 => (8, true),
        S16 => (16, true),
        S32 => (32, true),
        S64 => (64, true),
        _ => return None,
    })
}

/// The value of a constant source.
pub(crate) fn constant(v: Val) -> Option<u64> {
    match v {
        Val::Imm(x, ty) => Some(x & ty.mask()),
        Val::Reg(_) => None,
    }
}

/// Whether an op is a few instructions on general registers.
pub(crate) fn has_scalar_code(op: Pure, src: &[Val]) -> bool {
    match op {
        Pure::Mov(_)
        | Pure::FromPred(_)
        | Pure::Add(_)
        | Pure::Sub(_)
        | Pure::Mul(_)
        | Pure::And(_)
        | Pure::Or(_)
        | Pure::Xor(_)
        | Pure::Not(_)
        | Pure::Neg(_)
        | Pure::Select(_)
        | Pure::ToPred(_)
        | Pure::Ext { .. }
        | Pure::Pack(_)
        | Pure::Half { .. } => true,
        Pure::Min(int) | Pure::Max(int) => int.ty != Ty::B16,
        Pure::MulWide(int) => int.ty != Ty::B64,
        Pure::ICmp(cmp, _) => !matches!(cmp, Cmp::Num | Cmp::Nan),
        Pure::Shl(_) | Pure::Shr(_) => matches!(src[1], Val::Imm(..)),
        _ => false,
    }
}

/// The rounding as a number of `vrndscale` and `vcvtps2ph`.
pub(crate) fn rounding_number(r: Rounding) -> u32 {
    match r {
        Rounding::Nearest | Rounding::NearestAway | Rounding::Stochastic => 0,
        Rounding::Down => 1,
        Rounding::Up => 2,
        Rounding::Zero => 3,
    }
}

/// The smaller or the larger of two floats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MinMax {
    pub(crate) max: bool,
    pub(crate) float: Float,
    /// Any NaN makes the result one.
    pub(crate) nan: bool,
    /// Of magnitudes, with the product's sign.
    pub(crate) xorsign: bool,
}

/// Whether a warp-level op has code that does not call.
pub(crate) fn is_met_inline(plan: &Plan, inst: &Inst) -> bool {
    let alike = |v: &Val| match v {
        Val::Imm(..) => true,
        Val::Reg(r) => plan.facts.class[r.idx()].shape().is_some_and(|s| s.is_uniform()),
    };
    match inst.op {
        Op::Matrix(MatrixOp::Product(_) | MatrixOp::Blocks(_) | MatrixOp::Run(_) | MatrixOp::Quads(_)) => false,
        // Rows come from more lanes than a vector has.
        Op::Matrix(MatrixOp::Addresses(a)) if a.lines == Lines::Four => false,
        // Results are written one after the other.
        Op::Matrix(MatrixOp::Addresses(_)) if inst.dst.iter().any(|d| inst.src[0] == Val::Reg(*d)) => false,
        _ => inst.op.is_warp_sync() && inst.src.last().is_some_and(alike),
    }
}

/// Whether an instruction of a block is a warp-level op that may go to the routine.
pub(crate) fn may_meet_by_routine(plan: &Plan, block: usize, inst: &Inst) -> bool {
    inst.op.is_warp_sync() && (plan.facts.masked.has(block) || !is_met_inline(plan, inst))
}
