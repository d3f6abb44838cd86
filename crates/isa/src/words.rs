//! Qualifier lists, groups and gates that several records share.
//!
//! A list is here when at least two opcodes use it; a list of one opcode is in its file.

use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{BoolOp, Cmp, Rounding};

use crate::form::*;
use crate::target::{TargetGate, Version};

/// `sm_20` or higher.
pub const SM_20: &[TargetGate] = &[TargetGate::AtLeast(20)];
/// `sm_30` or higher.
pub const SM_30: &[TargetGate] = &[TargetGate::AtLeast(30)];
/// `sm_53` or higher.
pub const SM_53: &[TargetGate] = &[TargetGate::AtLeast(53)];
/// `sm_61` or higher.
pub const SM_61: &[TargetGate] = &[TargetGate::AtLeast(61)];
/// `sm_70` or higher.
pub const SM_70: &[TargetGate] = &[TargetGate::AtLeast(70)];
/// `sm_75` or higher.
pub const SM_75: &[TargetGate] = &[TargetGate::AtLeast(75)];
/// `sm_80` or higher.
pub const SM_80: &[TargetGate] = &[TargetGate::AtLeast(80)];
/// `sm_86` or higher.
pub const SM_86: &[TargetGate] = &[TargetGate::AtLeast(86)];
/// `sm_90` or higher.
pub const SM_90: &[TargetGate] = &[TargetGate::AtLeast(90)];
/// `sm_100` or higher.
pub const SM_100: &[TargetGate] = &[TargetGate::AtLeast(100)];
/// The family of `sm_120`, from PTX 9.2.
pub const FAMILY_120: &[TargetGate] = &[TargetGate::Family(120, Version::new(9, 2))];

/// `sm_100a`, `sm_110a`, and the families of both.
pub const ARCH_100: &[TargetGate] = &[
    TargetGate::Arch(100),
    TargetGate::Arch(101),
    TargetGate::Family(100, Version::new(8, 8)),
    TargetGate::Family(110, Version::new(9, 0)),
];
/// The same and those of `sm_120a`.
pub const ARCH_100_120: &[TargetGate] = &[
    TargetGate::Arch(100),
    TargetGate::Arch(101),
    TargetGate::Arch(120),
    TargetGate::Arch(121),
    TargetGate::Family(100, Version::new(8, 8)),
    TargetGate::Family(110, Version::new(9, 0)),
    TargetGate::Family(120, Version::new(8, 8)),
];
/// How copies complete on an `mbarrier`.
pub const COMPLETE_TX: &str = ".mbarrier::complete_tx::bytes";
/// Types of 32 and 64 bits.
pub const TYPES_32_64: &[Choice] = &[
    ty(".b32", B32),
    ty(".b64", B64),
    ty(".u32", U32),
    ty(".u64", U64),
    ty(".s32", S32),
    ty(".s64", S64),
    ty(".f32", F32),
    ty(".f64", F64),
];

/// Integers of 16 to 64 bits.
pub const INTS: &[Choice] =
    &[ty(".u16", U16), ty(".u32", U32), ty(".u64", U64), ty(".s16", S16), ty(".s32", S32), ty(".s64", S64)];
/// Signed integers of 16 to 64 bits.
pub const SIGNED_INTS: &[Choice] = &[ty(".s16", S16), ty(".s32", S32), ty(".s64", S64)];
/// Integers of 32 and 64 bits.
pub const WIDE_INTS: &[Choice] = &[ty(".u32", U32), ty(".u64", U64), ty(".s32", S32), ty(".s64", S64)];
/// Integers of 32 bits.
pub const INTS_32: &[Choice] = &[ty(".u32", U32), ty(".s32", S32)];
/// Bits of 32 and 64.
pub const WIDE_BITS: &[Choice] = &[ty(".b32", B32), ty(".b64", B64)];
/// Bits of 16 to 64.
pub const BITS: &[Choice] = &[ty(".b16", B16), ty(".b32", B32), ty(".b64", B64)];
/// Bits, integers and floats of 16 to 64 bits: what comparisons and selections take.
pub const ORDINARY: &[Choice] = &[
    ty(".b16", B16),
    ty(".b32", B32),
    ty(".b64", B64),
    ty(".u16", U16),
    ty(".u32", U32),
    ty(".u64", U64),
    ty(".s16", S16),
    ty(".s32", S32),
    ty(".s64", S64),
    ty(".f32", F32),
    ty(".f64", F64),
];
/// Single and double precision.
pub const F32_F64: &[Choice] = &[ty(".f32", F32), ty(".f64", F64)];
/// Single precision.
pub const ONLY_F32: &[Choice] = &[ty(".f32", F32)];
/// A pair of single precision.
pub const ONLY_F32X2: &[Choice] = &[ty(".f32x2", F32x2)];
/// Double precision.
pub const ONLY_F64: &[Choice] = &[ty(".f64", F64)];
/// Half precision and its pair.
pub const F16_F16X2: &[Choice] = &[ty(".f16", F16), ty(".f16x2", F16x2)];
/// Bfloat16 and its pair.
pub const BF16_BF16X2: &[Choice] = &[ty(".bf16", BF16), ty(".bf16x2", BF16x2)];

/// `.rn`, `.rz`, `.rm`, `.rp`.
pub const ROUNDINGS: &[Choice] = &[
    choice(".rn", Value::Round(Rounding::Nearest)),
    choice(".rz", Value::Round(Rounding::Zero)),
    choice(".rm", Value::Round(Rounding::Down)),
    choice(".rp", Value::Round(Rounding::Up)),
];
/// `.rn` alone.
pub const NEAREST: &[Choice] = &[choice(".rn", Value::Round(Rounding::Nearest))];
/// An optional rounding; none means `.rn`.
pub const ROUND_OPT: Group = maybe(Role::Round, ROUNDINGS);
/// A rounding that must be written.
pub const ROUND: Group = must(Role::Round, ROUNDINGS);
/// An optional `.rn`.
pub const RN_OPT: Group = maybe(Role::Round, NEAREST);
/// `.rn`, which must be written.
pub const RN: Group = must(Role::Round, NEAREST);
/// Optional `.ftz`.
pub const FTZ: Group = maybe(Role::Ftz, &[choice(".ftz", Value::Flag)]);
/// Optional `.sat`.
pub const SAT: Group = maybe(Role::Sat, &[choice(".sat", Value::Flag)]);
/// Optional `.relu`.
pub const RELU: Group = maybe(Role::Relu, &[choice(".relu", Value::Flag)]);

/// Optional `.xorsign`; the word `.abs` belongs to it.
pub const XORSIGN: Group = maybe(Role::XorSign, &[choice(".xorsign", Value::Flag)]);
/// Optional `.abs` of `min` and `max`.
pub const ABS: Group = maybe(Role::Flag, &[choice(".abs", Value::Flag)]);

/// Comparison operators.
pub const CMP: Group = must(
    Role::Cmp,
    &[
        choice(".eq", Value::Cmp(Cmp::Eq)),
        choice(".ne", Value::Cmp(Cmp::Ne)),
        choice(".lt", Value::Cmp(Cmp::Lt)),
        choice(".le", Value::Cmp(Cmp::Le)),
        choice(".gt", Value::Cmp(Cmp::Gt)),
        choice(".ge", Value::Cmp(Cmp::Ge)),
        choice(".lo", Value::Cmp(Cmp::Lt)),
        choice(".ls", Value::Cmp(Cmp::Le)),
        choice(".hi", Value::Cmp(Cmp::Gt)),
        choice(".hs", Value::Cmp(Cmp::Ge)),
        choice(".equ", Value::Cmp(Cmp::Equ)),
        choice(".neu", Value::Cmp(Cmp::Neu)),
        choice(".ltu", Value::Cmp(Cmp::Ltu)),
        choice(".leu", Value::Cmp(Cmp::Leu)),
        choice(".gtu", Value::Cmp(Cmp::Gtu)),
        choice(".geu", Value::Cmp(Cmp::Geu)),
        choice(".num", Value::Cmp(Cmp::Num)),
        choice(".nan", Value::Cmp(Cmp::Nan)),
    ],
);
/// The operator that joins a comparison with a predicate.
pub const BOOL: Group = must(
    Role::Bool,
    &[
        choice(".and", Value::Bool(BoolOp::And)),
        choice(".or", Value::Bool(BoolOp::Or)),
        choice(".xor", Value::Bool(BoolOp::Xor)),
    ],
);
/// `.lo` and `.hi`: the half of a product that is kept. The place is fixed: the assembler takes no `mul.s32.lo`.
pub const HALF: Group =
    lead(Role::Half, &[choice(".lo", Value::Tag(Half::Lo as u16)), choice(".hi", Value::Tag(Half::Hi as u16))]);
/// `.clamp` and `.wrap`.
pub const CLAMP: Group = must(Role::Mode, &[choice(".clamp", Value::Tag(0)), choice(".wrap", Value::Tag(1))]);

/// What of a product is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum Half {
    /// The lower half.
    Lo,
    /// The upper half.
    Hi,
    /// All of it, at twice the width.
    Wide,
}

/// The type of the instruction.
pub const TYPE: Is = Is::Like(Role::Type);
/// The second type of the instruction.
pub const TYPE2: Is = Is::Like(Role::Type2);
/// The third type of the instruction.
pub const TYPE3: Is = Is::Like(Role::Type3);
/// An unsigned word: shift amounts, positions, counts.
pub const WORD: Is = Is::Fixed(U32);
