//! `cvt`: conversions between scalar types.
//!
//! A record is a family of conversions with the same modifiers, so the qualifier groups say most of what is legal. The families
//! with `.bf16` are apart: there the assembler takes registers of exactly the width. Packed and small formats are in `small`,
//! tf32 is here.

use handloom_ir::types::{Rounding, ScalarType, ScalarType::*};

use crate::form::*;
use crate::target::Needs;
use crate::words::*;

mod convert;
mod small;

use convert::{ROUND2, SATFINITE, convert};

/// The records.
pub const FORMS: &[&Form] = &[
    &CVT_INT,
    &CVT_INT_TO_F32,
    &CVT_INT_TO_FLOAT,
    &CVT_INT_TO_BF16,
    &CVT_F32_TO_INT,
    &CVT_FLOAT_TO_INT,
    &CVT_BF16_TO_INT,
    &CVT_F32_TO_F32,
    &CVT_F16_TO_F16,
    &CVT_F64_TO_F64,
    &CVT_BF16_TO_BF16,
    &CVT_F16_TO_F32,
    &CVT_F32_TO_F64,
    &CVT_F16_TO_F64,
    &CVT_BF16_TO_F32,
    &CVT_BF16_TO_FLOAT,
    &CVT_F64_TO_F32,
    &CVT_F64_TO_F16,
    &CVT_F32_TO_F16,
    &CVT_F32_TO_BF16,
    &CVT_F16_TO_BF16,
    &CVT_F64_TO_BF16,
    &CVT_RNA_TO_TF32,
    &CVT_TO_TF32,
    &small::CVT_TO_F16X2,
    &small::CVT_TO_BF16X2,
    &small::CVT_RS_TO_F16X2,
    &small::CVT_RS_TO_BF16X2,
    &small::CVT_TO_F8X2,
    &small::CVT_F16X2_TO_F8X2,
    &small::CVT_F8X2_TO_F16X2,
    &small::CVT_BF16X2_TO_F8X2,
    &small::CVT_TO_SMALL,
    &small::CVT_F16X2_TO_E2M1X2,
    &small::CVT_BF16X2_TO_E2M1X2,
    &small::CVT_PAIR_TO_SMALL,
    &small::CVT_SMALL_TO_F16X2,
    &small::CVT_TO_BF16X2_FROM_SMALL,
    &small::CVT_SCALED_TO_BF16X2_FROM_SMALL,
    &small::CVT_RS_TO_X4,
    &small::CVT_TO_UE8M0,
    &small::CVT_PAIR_TO_UE8M0,
    &small::CVT_UE8M0_TO_PAIR,
    &small::CVT_TO_S2F6,
    &small::CVT_PAIR_TO_S2F6,
    &small::CVT_S2F6_TO_PAIR,
    &small::CVT_SCALED_TO_S2F6,
    &small::CVT_SCALED_PAIR_TO_S2F6,
    &small::CVT_SCALED_S2F6_TO_PAIR,
];

/// `cvt{.sat}.dtype.atype d, a` between integers: the lower bits, or clamped.
pub const CVT_INT: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[SAT, one_of(Role::Type, INTEGERS), one_of(Role::Type2, INTEGERS)],
    dst: &[reg("d", Is::Relaxed(Role::Type))],
    src: &[val("a", Is::Relaxed(Role::Type2))],
    needs: Needs::ptx(1, 0),
    legal: |u| {
        let (to, from) = (u.ty(Role::Type), u.ty(Role::Type2));
        if u.has(Role::Sat) && holds(to, from) {
            let reason = Reason::new(format!("`.sat` has nothing to do: `{to}` holds every `{from}`"));
            return Err(reason.at(".sat").help("leave `.sat` out"));
        }
        Ok(Needs::NONE)
    },
    semantics: Semantics::Build(between_integers),
};

/// `cvt.frnd{.ftz}{.sat}.f32.atype d, a` from integers.
pub const CVT_INT_TO_F32: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[ROUND, FTZ, SAT, one_of(Role::Type, ONLY_F32), one_of(Role::Type2, INTEGERS)],
    dst: &[reg("d", Is::Relaxed(Role::Type))],
    src: &[val("a", Is::Relaxed(Role::Type2))],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt.frnd{.sat}.dtype.atype d, a` from integers.
pub const CVT_INT_TO_FLOAT: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[ROUND, SAT, one_of(Role::Type, F16_F64), one_of(Role::Type2, INTEGERS)],
    dst: &[reg("d", Is::Relaxed(Role::Type))],
    src: &[val("a", Is::Relaxed(Role::Type2))],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt.frnd.bf16.atype d, a` from integers.
pub const CVT_INT_TO_BF16: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[ROUND, one_of(Role::Type, &[ty(".bf16", BF16)]), one_of(Role::Type2, INTEGERS)],
    dst: &[reg("d", Is::Like(Role::Type))],
    src: &[val("a", Is::Like(Role::Type2))],
    needs: Needs::on(7, 8, SM_90),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt.irnd{.ftz}{.sat}.dtype.f32 d, a` to integers; they are clamped in any case.
pub const CVT_F32_TO_INT: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[IROUND, FTZ, SAT, one_of(Role::Type, INTEGERS), one_of(Role::Type2, ONLY_F32)],
    dst: &[reg("d", Is::Relaxed(Role::Type))],
    src: &[val("a", Is::Relaxed(Role::Type2))],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt.irnd{.sat}.dtype.atype d, a` to integers; they are clamped in any case.
pub const CVT_FLOAT_TO_INT: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[IROUND, SAT, one_of(Role::Type, INTEGERS), one_of(Role::Type2, F16_F64)],
    dst: &[reg("d", Is::Relaxed(Role::Type))],
    src: &[val("a", Is::Relaxed(Role::Type2))],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt.irnd.dtype.bf16 d, a` to integers; they are clamped.
pub const CVT_BF16_TO_INT: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[IROUND, one_of(Role::Type, INTEGERS), one_of(Role::Type2, &[ty(".bf16", BF16)])],
    dst: &[reg("d", Is::Like(Role::Type))],
    src: &[val("a", Is::Like(Role::Type2))],
    needs: Needs::on(7, 8, SM_90),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt{.irnd}{.ftz}{.sat}.f32.f32 d, a`: to an integral value, or only flushed and clamped.
pub const CVT_F32_TO_F32: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[IROUND_OPT, FTZ, SAT, one_of(Role::Type, ONLY_F32), one_of(Role::Type2, ONLY_F32)],
    dst: &[reg("d", Is::Relaxed(Role::Type))],
    src: &[val("a", Is::Relaxed(Role::Type2))],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt{.irnd}{.sat}.f16.f16 d, a`.
pub const CVT_F16_TO_F16: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[IROUND_OPT, SAT, one_of(Role::Type, &[ty(".f16", F16)]), one_of(Role::Type2, &[ty(".f16", F16)])],
    dst: &[reg("d", Is::Relaxed(Role::Type))],
    src: &[val("a", Is::Relaxed(Role::Type2))],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt{.irnd}{.sat}.f64.f64 d, a`.
pub const CVT_F64_TO_F64: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[IROUND_OPT, SAT, one_of(Role::Type, ONLY_F64), one_of(Role::Type2, ONLY_F64)],
    dst: &[reg("d", Is::Relaxed(Role::Type))],
    src: &[val("a", Is::Relaxed(Role::Type2))],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt{.irnd}.bf16.bf16 d, a`.
pub const CVT_BF16_TO_BF16: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[IROUND_OPT, one_of(Role::Type, &[ty(".bf16", BF16)]), one_of(Role::Type2, &[ty(".bf16", BF16)])],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[val("a", Is::Exactly(Role::Type2))],
    needs: Needs::on(7, 8, SM_90),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt{.ftz}{.sat}.f32.f16 d, a`, exact.
pub const CVT_F16_TO_F32: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[FTZ, SAT, one_of(Role::Type, ONLY_F32), one_of(Role::Type2, &[ty(".f16", F16)])],
    dst: &[reg("d", Is::Relaxed(Role::Type))],
    src: &[val("a", Is::Relaxed(Role::Type2))],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt{.ftz}{.sat}.f64.f32 d, a`, exact.
pub const CVT_F32_TO_F64: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[FTZ, SAT, one_of(Role::Type, ONLY_F64), one_of(Role::Type2, ONLY_F32)],
    dst: &[reg("d", Is::Relaxed(Role::Type))],
    src: &[val("a", Is::Relaxed(Role::Type2))],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt{.sat}.f64.f16 d, a`, exact.
pub const CVT_F16_TO_F64: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[SAT, one_of(Role::Type, ONLY_F64), one_of(Role::Type2, &[ty(".f16", F16)])],
    dst: &[reg("d", Is::Relaxed(Role::Type))],
    src: &[val("a", Is::Relaxed(Role::Type2))],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt{.frnd}{.ftz}.f32.bf16 d, a`, exact; a rounding is accepted and changes nothing.
pub const CVT_BF16_TO_F32: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[
        ROUND_OPT,
        maybe(Role::Ftz, &[choice_if(".ftz", Value::Flag, Needs::on(7, 8, SM_90))]),
        one_of(Role::Type, ONLY_F32),
        one_of(Role::Type2, &[ty(".bf16", BF16)]),
    ],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[val("a", Is::Exactly(Role::Type2))],
    needs: Needs::on(7, 1, SM_80),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt{.frnd}.dtype.bf16 d, a`; without a rounding to nearest.
pub const CVT_BF16_TO_FLOAT: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[ROUND_OPT, one_of(Role::Type, F16_F64), one_of(Role::Type2, &[ty(".bf16", BF16)])],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[val("a", Is::Exactly(Role::Type2))],
    needs: Needs::on(7, 8, SM_90),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt.frnd{.ftz}{.sat}.f32.f64 d, a`.
pub const CVT_F64_TO_F32: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[ROUND, FTZ, SAT, one_of(Role::Type, ONLY_F32), one_of(Role::Type2, ONLY_F64)],
    dst: &[reg("d", Is::Relaxed(Role::Type))],
    src: &[val("a", Is::Relaxed(Role::Type2))],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt.frnd{.sat}.f16.f64 d, a`.
pub const CVT_F64_TO_F16: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[ROUND, SAT, one_of(Role::Type, &[ty(".f16", F16)]), one_of(Role::Type2, ONLY_F64)],
    dst: &[reg("d", Is::Relaxed(Role::Type))],
    src: &[val("a", Is::Relaxed(Role::Type2))],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt.frnd{.ftz}{.sat}.f16.f32 d, a` and `cvt.frnd2{.relu}{.satfinite}.f16.f32 d, a`.
pub const CVT_F32_TO_F16: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[
        ROUND,
        FTZ,
        SAT,
        maybe(Role::Relu, &[choice_if(".relu", Value::Flag, Needs::on(7, 0, SM_80))]),
        SATFINITE,
        one_of(Role::Type, &[ty(".f16", F16)]),
        one_of(Role::Type2, ONLY_F32),
    ],
    dst: &[reg("d", Is::Relaxed(Role::Type))],
    src: &[val("a", Is::Relaxed(Role::Type2))],
    needs: Needs::ptx(1, 0),
    legal: finite_or_flushed,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt.frnd{.ftz}.bf16.f32 d, a` and `cvt.frnd2{.relu}{.satfinite}.bf16.f32 d, a`.
pub const CVT_F32_TO_BF16: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[ROUND, FTZ, RELU, SATFINITE, one_of(Role::Type, &[ty(".bf16", BF16)]), one_of(Role::Type2, ONLY_F32)],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[val("a", Is::Exactly(Role::Type2))],
    needs: Needs::on(7, 0, SM_80),
    legal: finite_or_flushed,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt{.frnd}.bf16.f16 d, a`; without a rounding to nearest.
pub const CVT_F16_TO_BF16: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[ROUND_OPT, one_of(Role::Type, &[ty(".bf16", BF16)]), one_of(Role::Type2, &[ty(".f16", F16)])],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[val("a", Is::Exactly(Role::Type2))],
    needs: Needs::on(7, 8, SM_90),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt.frnd.bf16.f64 d, a`.
pub const CVT_F64_TO_BF16: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[ROUND, one_of(Role::Type, &[ty(".bf16", BF16)]), one_of(Role::Type2, ONLY_F64)],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[val("a", Is::Exactly(Role::Type2))],
    needs: Needs::on(7, 8, SM_90),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt.rna{.satfinite}.tf32.f32 d, a`: to nearest, ties away from zero.
pub const CVT_RNA_TO_TF32: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[
        must(Role::Round, &[choice(".rna", Value::Round(Rounding::NearestAway))]),
        SATFINITE,
        one_of(Role::Type, &[ty(".tf32", TF32)]),
        one_of(Role::Type2, ONLY_F32),
    ],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[val("a", Is::Exactly(Role::Type2))],
    needs: Needs::on(7, 0, SM_80),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt.frnd2{.satfinite}{.relu}.tf32.f32 d, a`.
pub const CVT_TO_TF32: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[
        ROUND2,
        maybe(Role::SatFinite, &[choice_if(".satfinite", Value::Flag, Needs::on(8, 6, SM_100))]),
        RELU,
        one_of(Role::Type, &[ty(".tf32", TF32)]),
        one_of(Role::Type2, ONLY_F32),
    ],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[val("a", Is::Exactly(Role::Type2))],
    needs: Needs::on(7, 8, SM_90),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

const INTEGERS: &[Choice] = &[
    ty(".u8", U8),
    ty(".u16", U16),
    ty(".u32", U32),
    ty(".u64", U64),
    ty(".s8", S8),
    ty(".s16", S16),
    ty(".s32", S32),
    ty(".s64", S64),
];
const F16_F64: &[Choice] = &[ty(".f16", F16), ty(".f64", F64)];
const IROUNDINGS: &[Choice] = &[
    choice(".rni", Value::Round(Rounding::Nearest)),
    choice(".rzi", Value::Round(Rounding::Zero)),
    choice(".rmi", Value::Round(Rounding::Down)),
    choice(".rpi", Value::Round(Rounding::Up)),
];
const IROUND: Group = must(Role::Round, IROUNDINGS);
const IROUND_OPT: Group = maybe(Role::Round, IROUNDINGS);
/// Whether the range of an integer type lies within that of another.
fn holds(outer: ScalarType, inner: ScalarType) -> bool {
    match (outer.is_signed(), inner.is_signed()) {
        (true, false) => outer.bits() > inner.bits(),
        (false, true) => false,
        _ => outer.bits() >= inner.bits(),
    }
}

/// `.relu` and `.satfinite` go with `.rn` and `.rz`, and not with `.ftz` or `.sat`.
fn finite_or_flushed(u: &Use) -> Result<Needs, Reason> {
    let word = match (u.has(Role::Relu), u.has(Role::SatFinite)) {
        (true, _) => ".relu",
        (_, true) => ".satfinite",
        _ => return Ok(Needs::NONE),
    };
    for other in [Role::Ftz, Role::Sat] {
        if u.has(other) {
            return Err(Reason::new(format!("`{word}` does not go with `{}`", u.text(other))).at(word));
        }
    }
    if !matches!(u.round(Role::Round), Some(Rounding::Nearest | Rounding::Zero)) {
        let reason = Reason::new(format!("`{word}` does not go with `{}`", u.text(Role::Round)));
        return Err(reason.at(u.text(Role::Round)).help("write `.rn` or `.rz`"));
    }
    Ok(Needs::NONE)
}

fn between_integers(x: &mut Cx<'_, '_>) {
    if x.u.has(Role::Sat) {
        return convert(x, 1);
    }
    // The lower bits of the source, extended by its sign where the destination is wider; an 8-bit result has a zero upper byte.
    let (to, from) = (x.u.ty(Role::Type), x.u.ty(Role::Type2));
    let a = x.src(0);
    let value = if from.bits() < to.bits() {
        x.b.ext(a, from.bits(), from.is_signed(), to.ty())
    } else {
        x.b.ext(a, to.bits(), false, to.ty())
    };
    x.set(value);
}
