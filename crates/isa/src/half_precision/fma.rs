//! `fma` of half precision and bfloat16: a product plus a third value, rounded once.
//!
//! The assembler lets other roundings pass for bfloat16, against the manual; they are refused here.

use handloom_ir::simt::{Pure, Val};
use handloom_ir::tensor_map::OOB_NAN;
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{Cmp, Int, Ty};

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

/// `fma.rn.oob{.relu}.type d, a, b, c`: 0 where a factor is the NaN that fills what lies outside of a tensor.
///
/// Choice: its bits are [`OOB_NAN`], of either sign; the manual says that either operand is looked at, which is taken to mean the factors.
pub const FMA_OOB: Form = Form {
    opcode: "fma",
    words: &[".oob"],
    section: "Half Precision Floating Point Instructions: fma",
    qualifiers: &[RN, RELU, one_of(Role::Type, ANY_HALF)],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE), reg("b", TYPE), reg("c", TYPE)],
    needs: Needs::on(8, 1, SM_90),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        let product = x.b.pure(Pure::FFma(mode(x.u, ty)), ty.ty(), &[x.src(0), x.src(1), x.src(2)]);
        let result = match ty.ty() {
            Ty::B16 => unless_outside(x, product, x.src(0), x.src(1)),
            _ => {
                let [low, high] = [false, true].map(|hi| {
                    let [d, a, b] = [product, x.src(0), x.src(1)].map(|v| x.b.half(v, hi));
                    unless_outside(x, d, a, b)
                });
                x.b.pack(low, high)
            }
        };
        x.set(result);
    }),
};

/// A result, or 0 where one of two values is the NaN of elements outside of a tensor.
fn unless_outside(x: &mut Cx<'_, '_>, result: Val, a: Val, b: Val) -> Val {
    let [a, b] = [a, b].map(|v| {
        let magnitude = x.b.and(v, Val::Imm(0x7fff, Ty::B16));
        x.b.pure(Pure::ICmp(Cmp::Eq, Int::U16), Ty::P, &[magnitude, Val::Imm(OOB_NAN.into(), Ty::B16)])
    });
    let outside = x.b.or(a, b);
    x.b.select(outside, Val::Imm(0, Ty::B16), result)
}

const ANY_HALF: &[Choice] = &[ty(".f16", F16), ty(".f16x2", F16x2), ty(".bf16", BF16), ty(".bf16x2", BF16x2)];
