//! `fma` of half precision and bfloat16: a product plus a third value, rounded once.
//!
//! The assembler lets other roundings pass for bfloat16, against the manual; they are refused here.

use handloom_ir::simt::Pure;
use handloom_ir::types::ScalarType::*;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `fma.rn{.ftz}{.sat}.type d, a, b, c` and `fma.rn{.ftz}.relu.type d, a, b, c`.
pub const FMA_F16: Form = Form {
    opcode: "fma",
    words: &[],
    section: "Half Precision Floating Point Instructions: fma",
    qualifiers: &[RN, FTZ, SAT, RELU, one_of(Role::Type, F16_F16X2)],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE), reg("b", TYPE), reg("c", TYPE)],
    needs: Needs::on(4, 2, SM_53),
    legal: |u| match (u.has(Role::Relu), u.has(Role::Sat)) {
        (true, true) => Err(Reason::new("`.relu` does not go with `.sat`").at(".relu")),
        (true, false) => Ok(Needs::on(7, 0, SM_80)),
        (false, _) => Ok(Needs::NONE),
    },
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::FFma(mode(x.u, ty)), ty.ty(), 3);
    }),
};

/// `fma.rn{.relu}.type d, a, b, c`.
pub const FMA_BF16: Form = Form {
    opcode: "fma",
    words: &[],
    section: "Half Precision Floating Point Instructions: fma",
    qualifiers: &[RN, RELU, one_of(Role::Type, BF16_BF16X2)],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE), reg("b", TYPE), reg("c", TYPE)],
    needs: Needs::on(7, 0, SM_80),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::FFma(mode(x.u, ty)), ty.ty(), 3);
    }),
};

/// `fma.rn.oob{.relu}.type d, a, b, c`: 0 where a source is the NaN that fills what lies outside of a tensor.
pub const FMA_OOB: Form = Form {
    opcode: "fma",
    words: &[".oob"],
    section: "Half Precision Floating Point Instructions: fma",
    qualifiers: &[RN, RELU, one_of(Role::Type, ANY_HALF)],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE), reg("b", TYPE), reg("c", TYPE)],
    needs: Needs::on(8, 1, SM_90),
    legal: always,
    semantics: Semantics::Unsupported("the bits of the out-of-bounds NaN are not in the manual"),
};

const ANY_HALF: &[Choice] = &[ty(".f16", F16), ty(".f16x2", F16x2), ty(".bf16", BF16), ty(".bf16x2", BF16x2)];
