//! `sub` of half precision and bfloat16: the difference of two values, rounded once.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `sub{.rn}{.ftz}{.sat}.type d, a, b`.
pub const SUB_F16: Form = Form {
    opcode: "sub",
    words: &[],
    section: "Half Precision Floating Point Instructions: sub",
    qualifiers: &[RN_OPT, FTZ, SAT, one_of(Role::Type, F16_F16X2)],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE), reg("b", TYPE)],
    needs: Needs::on(4, 2, SM_53),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::FSub(mode(x.u, ty)), ty.ty(), 2);
    }),
};

/// `sub{.rn}.type d, a, b`.
pub const SUB_BF16: Form = Form {
    opcode: "sub",
    words: &[],
    section: "Half Precision Floating Point Instructions: sub",
    qualifiers: &[RN_OPT, one_of(Role::Type, BF16_BF16X2)],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE), reg("b", TYPE)],
    needs: Needs::on(7, 8, SM_90),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::FSub(mode(x.u, ty)), ty.ty(), 2);
    }),
};
