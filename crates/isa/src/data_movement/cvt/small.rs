//! `cvt` with packed types and with floats of 8, 6 and 4 bits.

use handloom_ir::simt::{Cvt, Pure, Val};
use handloom_ir::types::{Float, Rounding, ScalarType::*, Ty};

use crate::compose::plain;
use crate::form::*;
use crate::target::{Needs, TargetGate, Version};
use crate::words::*;

use super::convert::{ROUND2, SATFINITE, conversion, convert};

/// `cvt.frnd2{.relu}{.satfinite}.f16x2.f32 d, a, b`: `a` in the upper half.
pub const CVT_TO_F16X2: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[ROUND2, RELU, SATFINITE, one_of(Role::Type, &[ty(".f16x2", F16x2)]), one_of(Role::Type2, ONLY_F32)],
    dst: &[reg("d", Is::Relaxed(Role::Type))],
    src: &[val("a", Is::Relaxed(Role::Type2)), val("b", Is::Relaxed(Role::Type2))],
    needs: Needs::on(7, 0, SM_80),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 2)),
};

/// `cvt.frnd2{.relu}{.satfinite}.bf16x2.f32 d, a, b`: `a` in the upper half.
pub const CVT_TO_BF16X2: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[ROUND2, RELU, SATFINITE, one_of(Role::Type, &[ty(".bf16x2", BF16x2)]), one_of(Role::Type2, ONLY_F32)],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[val("a", Is::Exactly(Role::Type2)), val("b", Is::Exactly(Role::Type2))],
    needs: Needs::on(7, 0, SM_80),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 2)),
};

/// `cvt.rs{.relu}{.satfinite}.f16x2.f32 d, a, b, rbits`: rounded by random bits.
pub const CVT_RS_TO_F16X2: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[RS, RELU, SATFINITE, one_of(Role::Type, &[ty(".f16x2", F16x2)]), one_of(Role::Type2, ONLY_F32)],
    dst: &[reg("d", Is::Relaxed(Role::Type))],
    src: &[val("a", Is::Relaxed(Role::Type2)), val("b", Is::Relaxed(Role::Type2)), reg("rbits", Is::Only(B32))],
    needs: Needs::on(8, 7, STOCHASTIC),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 3)),
};

/// `cvt.rs{.relu}{.satfinite}.bf16x2.f32 d, a, b, rbits`: rounded by random bits.
pub const CVT_RS_TO_BF16X2: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[RS, RELU, SATFINITE, one_of(Role::Type, &[ty(".bf16x2", BF16x2)]), one_of(Role::Type2, ONLY_F32)],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[val("a", Is::Exactly(Role::Type2)), val("b", Is::Exactly(Role::Type2)), reg("rbits", Is::Only(B32))],
    needs: Needs::on(8, 7, STOCHASTIC),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 3)),
};

/// `cvt.rn.satfinite{.relu}.f8x2type.f32 d, a, b`: `a` in the upper byte.
pub const CVT_TO_F8X2: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[RN, FINITE, RELU, one_of(Role::Type, F8X2), one_of(Role::Type2, ONLY_F32)],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[val("a", Is::Exactly(Role::Type2)), val("b", Is::Exactly(Role::Type2))],
    needs: Needs::ptx(7, 8),
    legal: with_f8,
    semantics: Semantics::Build(|x| convert(x, 2)),
};

/// `cvt.rn.satfinite{.relu}.f8x2type.f16x2 d, a`.
pub const CVT_F16X2_TO_F8X2: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[RN, FINITE, RELU, one_of(Role::Type, F8X2), one_of(Role::Type2, &[ty(".f16x2", F16x2)])],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[reg("a", Is::Exactly(Role::Type2))],
    needs: Needs::ptx(7, 8),
    legal: with_f8,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt.rn{.relu}.f16x2.f8x2type d, a`.
pub const CVT_F8X2_TO_F16X2: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[RN, RELU, one_of(Role::Type, &[ty(".f16x2", F16x2)]), one_of(Role::Type2, F8X2)],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[reg("a", Is::Exactly(Role::Type2))],
    needs: Needs::ptx(7, 8),
    legal: with_f8,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt.rn.satfinite{.relu}.f8x2type.bf16x2 d, a`.
pub const CVT_BF16X2_TO_F8X2: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[RN, FINITE, RELU, one_of(Role::Type, F8X2), one_of(Role::Type2, &[ty(".bf16x2", BF16x2)])],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[reg("a", Is::Exactly(Role::Type2))],
    needs: Needs::on(9, 1, FAMILIES),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt.rn.satfinite{.relu}.dtype.f32 d, a, b` to floats of 6 and 4 bits: `a` above `b`.
pub const CVT_TO_SMALL: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[RN, FINITE, RELU, one_of(Role::Type, F6X2_F4X2), one_of(Role::Type2, ONLY_F32)],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[val("a", Is::Exactly(Role::Type2)), val("b", Is::Exactly(Role::Type2))],
    needs: Needs::on(8, 6, BLACKWELL),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 2)),
};

/// `cvt.rn.satfinite{.relu}.e2m1x2.bf16x2 d, a`; the assembler takes `a` in braces too, of this conversion alone.
pub const CVT_BF16X2_TO_E2M1X2: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[
        RN,
        FINITE,
        RELU,
        one_of(Role::Type, &[ty(".e2m1x2", E2M1x2)]),
        one_of(Role::Type2, &[ty(".bf16x2", BF16x2)]),
    ],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[Operand {
        name: "a",
        kind: Kind::Vector,
        is: Is::Exactly(Role::Type2),
        count: Count::Fixed(1),
        optional: false,
        when: When::Always,
    }],
    needs: Needs::on(9, 1, FAMILIES),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt.rn.satfinite{.relu}.e2m1x2.f16x2 d, a`.
pub const CVT_F16X2_TO_E2M1X2: Form = Form {
    qualifiers: &[
        RN,
        FINITE,
        RELU,
        one_of(Role::Type, &[ty(".e2m1x2", E2M1x2)]),
        one_of(Role::Type2, &[ty(".f16x2", F16x2)]),
    ],
    src: &[reg("a", Is::Exactly(Role::Type2))],
    ..CVT_BF16X2_TO_E2M1X2
};

/// `cvt.rn.satfinite{.relu}.dtype.fp16x2type d, a` to floats of 6 bits.
pub const CVT_PAIR_TO_SMALL: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[
        RN,
        FINITE,
        RELU,
        one_of(Role::Type, F6X2),
        one_of(Role::Type2, &[ty(".f16x2", F16x2), ty(".bf16x2", BF16x2)]),
    ],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[reg("a", Is::Exactly(Role::Type2))],
    needs: Needs::on(9, 1, FAMILIES),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt.rn{.relu}.f16x2.atype d, a` from floats of 6 and 4 bits.
pub const CVT_SMALL_TO_F16X2: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[RN, RELU, one_of(Role::Type, &[ty(".f16x2", F16x2)]), one_of(Role::Type2, F6X2_F4X2)],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[reg("a", Is::Exactly(Role::Type2))],
    needs: Needs::on(8, 6, BLACKWELL),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt.rn{.relu}{.satfinite}.bf16x2.atype d, a` from floats of 8, 6 and 4 bits.
pub const CVT_TO_BF16X2_FROM_SMALL: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[RN, RELU, SATFINITE, one_of(Role::Type, &[ty(".bf16x2", BF16x2)]), one_of(Role::Type2, F8X2_TO_F4X2)],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[reg("a", Is::Exactly(Role::Type2))],
    needs: Needs::on(9, 2, FAMILIES),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt.rn{.relu}{.satfinite}.scaled::n2::ue8m0.bf16x2.atype d, a, scale-factor`: results multiplied by the two factors.
pub const CVT_SCALED_TO_BF16X2_FROM_SMALL: Form = Form {
    opcode: "cvt",
    words: &[".scaled::n2::ue8m0"],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[RN, RELU, SATFINITE, one_of(Role::Type, &[ty(".bf16x2", BF16x2)]), one_of(Role::Type2, F8X2_TO_F4X2)],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[reg("a", Is::Exactly(Role::Type2)), reg("scale-factor", Is::Only(B16))],
    needs: Needs::on(9, 2, FAMILIES),
    legal: always,
    semantics: Semantics::Build(scaled_up),
};

/// `cvt.rs{.relu}.satfinite.x4type.f32 d, {a, b, e, f}, rbits`: four values, `a` topmost, rounded by random bits.
pub const CVT_RS_TO_X4: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[RS, FINITE, RELU, one_of(Role::Type, X4), one_of(Role::Type2, ONLY_F32)],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[
        Operand {
            name: "{a, b, e, f}",
            kind: Kind::Vector,
            is: Is::Exactly(Role::Type2),
            count: Count::Fixed(4),
            optional: false,
            when: When::Always,
        },
        reg("rbits", Is::Only(B32)),
    ],
    needs: Needs::on(8, 7, STOCHASTIC),
    legal: always,
    semantics: Semantics::Build(|x| {
        let op = conversion(x.u);
        let mut sources = x.srcs(0);
        sources.push(x.src(1));
        let value = x.b.pure(Pure::Cvt(op), op.to.ty(), &sources);
        x.set(value);
    }),
};

/// `cvt.frnd3{.satfinite}.ue8m0x2.f32 d, a, b`: exponents, `a` in the upper byte.
pub const CVT_TO_UE8M0: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[ROUND3, SATFINITE, one_of(Role::Type, &[ty(".ue8m0x2", UE8M0x2)]), one_of(Role::Type2, ONLY_F32)],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[val("a", Is::Exactly(Role::Type2)), val("b", Is::Exactly(Role::Type2))],
    needs: Needs::on(8, 6, BLACKWELL),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 2)),
};

/// `cvt.frnd3{.satfinite}.ue8m0x2.bf16x2 d, a`.
pub const CVT_PAIR_TO_UE8M0: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[
        ROUND3,
        SATFINITE,
        one_of(Role::Type, &[ty(".ue8m0x2", UE8M0x2)]),
        one_of(Role::Type2, &[ty(".bf16x2", BF16x2)]),
    ],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[reg("a", Is::Exactly(Role::Type2))],
    needs: Needs::on(8, 6, BLACKWELL),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt.rn.bf16x2.ue8m0x2 d, a`.
pub const CVT_UE8M0_TO_PAIR: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[RN, one_of(Role::Type, &[ty(".bf16x2", BF16x2)]), one_of(Role::Type2, &[ty(".ue8m0x2", UE8M0x2)])],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[reg("a", Is::Exactly(Role::Type2))],
    needs: Needs::on(8, 6, BLACKWELL),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 1)),
};

/// `cvt.rn.satfinite{.relu}.s2f6x2.f32 d, a, b`: fixed point, `a` in the upper byte.
pub const CVT_TO_S2F6: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[RN, FINITE, RELU, one_of(Role::Type, &[ty(".s2f6x2", S2F6x2)]), one_of(Role::Type2, ONLY_F32)],
    dst: &[reg("d", HALF_WORD)],
    src: &[val("a", Is::Exactly(Role::Type2)), val("b", Is::Exactly(Role::Type2))],
    needs: Needs::on(9, 1, FIXED_POINT),
    legal: always,
    semantics: Semantics::Build(|x| by_one(x, 2)),
};

/// `cvt.rn.satfinite{.relu}.s2f6x2.bf16x2 d, a`.
pub const CVT_PAIR_TO_S2F6: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[
        RN,
        FINITE,
        RELU,
        one_of(Role::Type, &[ty(".s2f6x2", S2F6x2)]),
        one_of(Role::Type2, &[ty(".bf16x2", BF16x2)]),
    ],
    dst: &[reg("d", HALF_WORD)],
    src: &[reg("a", Is::Exactly(Role::Type2))],
    needs: Needs::on(9, 1, FIXED_POINT),
    legal: always,
    semantics: Semantics::Build(|x| by_one(x, 1)),
};

/// `cvt.rn{.satfinite}{.relu}.bf16x2.s2f6x2 d, a`.
pub const CVT_S2F6_TO_PAIR: Form = Form {
    opcode: "cvt",
    words: &[],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[
        RN,
        SATFINITE,
        RELU,
        one_of(Role::Type, &[ty(".bf16x2", BF16x2)]),
        one_of(Role::Type2, &[ty(".s2f6x2", S2F6x2)]),
    ],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[reg("a", Is::Exactly(Role::Type2))],
    needs: Needs::on(9, 1, FIXED_POINT),
    legal: always,
    semantics: Semantics::Build(|x| by_one(x, 1)),
};

/// `cvt.rn.satfinite{.relu}.scaled::n2::ue8m0.s2f6x2.f32 d, a, b, scale-factor`: divided by the two factors first.
pub const CVT_SCALED_TO_S2F6: Form = Form {
    opcode: "cvt",
    words: &[".scaled::n2::ue8m0"],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[RN, FINITE, RELU, one_of(Role::Type, &[ty(".s2f6x2", S2F6x2)]), one_of(Role::Type2, ONLY_F32)],
    dst: &[reg("d", HALF_WORD)],
    src: &[val("a", Is::Exactly(Role::Type2)), val("b", Is::Exactly(Role::Type2)), reg("scale-factor", Is::Only(B16))],
    needs: Needs::on(9, 1, FIXED_POINT),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 3)),
};

/// `cvt.rn.satfinite{.relu}.scaled::n2::ue8m0.s2f6x2.bf16x2 d, a, scale-factor`.
pub const CVT_SCALED_PAIR_TO_S2F6: Form = Form {
    opcode: "cvt",
    words: &[".scaled::n2::ue8m0"],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[
        RN,
        FINITE,
        RELU,
        one_of(Role::Type, &[ty(".s2f6x2", S2F6x2)]),
        one_of(Role::Type2, &[ty(".bf16x2", BF16x2)]),
    ],
    dst: &[reg("d", HALF_WORD)],
    src: &[reg("a", Is::Exactly(Role::Type2)), reg("scale-factor", Is::Only(B16))],
    needs: Needs::on(9, 1, FIXED_POINT),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 2)),
};

/// `cvt.rn{.satfinite}{.relu}.scaled::n2::ue8m0.bf16x2.s2f6x2 d, a, scale-factor`: multiplied by the two factors.
pub const CVT_SCALED_S2F6_TO_PAIR: Form = Form {
    opcode: "cvt",
    words: &[".scaled::n2::ue8m0"],
    section: "Data Movement and Conversion Instructions: cvt",
    qualifiers: &[
        RN,
        SATFINITE,
        RELU,
        one_of(Role::Type, &[ty(".bf16x2", BF16x2)]),
        one_of(Role::Type2, &[ty(".s2f6x2", S2F6x2)]),
    ],
    dst: &[reg("d", Is::Exactly(Role::Type))],
    src: &[reg("a", Is::Exactly(Role::Type2)), reg("scale-factor", Is::Only(B16))],
    needs: Needs::on(9, 1, FIXED_POINT),
    legal: always,
    semantics: Semantics::Build(|x| convert(x, 2)),
};

/// Targets of floats of 6 and 4 bits and of ue8m0.
const BLACKWELL: &[TargetGate] = &[
    TargetGate::Arch(100),
    TargetGate::Arch(101),
    TargetGate::Arch(110),
    TargetGate::Arch(120),
    TargetGate::Family(100, Version::new(8, 8)),
    TargetGate::Family(110, Version::new(8, 8)),
    TargetGate::Family(120, Version::new(8, 8)),
];
/// Families of targets: what came later than 8.8.
const FAMILIES: &[TargetGate] = &[
    TargetGate::Family(100, Version::new(8, 8)),
    TargetGate::Family(110, Version::new(8, 8)),
    TargetGate::Family(120, Version::new(8, 8)),
];
/// Targets of `.rs`.
const STOCHASTIC: &[TargetGate] = &[TargetGate::Arch(100), TargetGate::Arch(103)];
/// Targets of s2f6.
const FIXED_POINT: &[TargetGate] = &[
    TargetGate::Arch(100),
    TargetGate::Arch(103),
    TargetGate::Arch(110),
    TargetGate::Arch(120),
    TargetGate::Arch(121),
];

const F8X2: &[Choice] = &[ty(".e4m3x2", E4M3x2), ty(".e5m2x2", E5M2x2)];
const F6X2: &[Choice] = &[ty(".e2m3x2", E2M3x2), ty(".e3m2x2", E3M2x2)];
const F6X2_F4X2: &[Choice] = &[ty(".e2m3x2", E2M3x2), ty(".e3m2x2", E3M2x2), ty(".e2m1x2", E2M1x2)];
const F8X2_TO_F4X2: &[Choice] = &[
    ty(".e4m3x2", E4M3x2),
    ty(".e5m2x2", E5M2x2),
    ty(".e2m3x2", E2M3x2),
    ty(".e3m2x2", E3M2x2),
    ty(".e2m1x2", E2M1x2),
];
const X4: &[Choice] = &[
    ty(".e4m3x4", E4M3x4),
    ty(".e5m2x4", E5M2x4),
    ty(".e2m3x4", E2M3x4),
    ty(".e3m2x4", E3M2x4),
    ty(".e2m1x4", E2M1x4),
];
const RS: Group = must(Role::Round, &[choice(".rs", Value::Round(Rounding::Stochastic))]);
/// `.rz` and `.rp`.
const ROUND3: Group =
    must(Role::Round, &[choice(".rz", Value::Round(Rounding::Zero)), choice(".rp", Value::Round(Rounding::Up))]);
/// A `.satfinite` that must be written.
const FINITE: Group = must(Role::SatFinite, &[choice(".satfinite", Value::Flag)]);

/// Floats of 8 bits came to `sm_90` first, to `sm_89` later.
fn with_f8(u: &Use) -> Result<Needs, Reason> {
    Ok(if u.target.sm >= 90 { Needs::on(7, 8, SM_90) } else { Needs::on(8, 1, &[TargetGate::AtLeast(89)]) })
}

/// A result in two bytes of fixed point: as the assembler has it, any register of 16 bits.
const HALF_WORD: Is = Is::Of(|_| B16);

/// Converts the first `n` sources with a scale of one.
fn by_one(x: &mut Cx<'_, '_>, n: usize) {
    let op = conversion(x.u);
    let mut sources: Vec<Val> = (0..n).map(|i| x.src(i)).collect();
    sources.push(Val::Imm(0x7f7f, Ty::B16));
    let value = x.b.pure(Pure::Cvt(op), op.to.ty(), &sources);
    x.set(value);
}

/// Converts to bfloat16, multiplies by the factors, then clamps. Infinity is cut to the largest number where `.satfinite` is written.
fn scaled_up(x: &mut Cx<'_, '_>) {
    let said = conversion(x.u);
    let convert = |from| Cvt { from, relu: false, satfinite: false, ..said };
    let value = x.b.pure(Pure::Cvt(convert(said.from)), Ty::B32, &[x.src(0)]);
    let factors = x.b.pure(Pure::Cvt(convert(UE8M0x2)), Ty::B32, &[x.src(1)]);
    let mut mode = plain(Float::BF16x2);
    mode.relu = said.relu;
    let mut value = x.b.pure(Pure::FMul(mode), Ty::B32, &[value, factors]);
    if said.satfinite {
        let (ty, ftz, nan, xorsign) = (Float::BF16x2, false, true, false);
        value = x.b.pure(Pure::FMin { ty, ftz, nan, xorsign }, Ty::B32, &[value, Val::Imm(0x7f7f_7f7f, Ty::B32)]);
        value = x.b.pure(Pure::FMax { ty, ftz, nan, xorsign }, Ty::B32, &[value, Val::Imm(0xff7f_ff7f, Ty::B32)]);
    }
    x.set(value);
}
