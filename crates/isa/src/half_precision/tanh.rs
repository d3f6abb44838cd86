//! `tanh` of half precision and bfloat16: the hyperbolic tangent.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `tanh.approx.type d, a`.
pub const TANH_F16: Form = Form {
    opcode: "tanh",
    words: &[".approx"],
    section: "Half Precision Floating Point Instructions: tanh",
    qualifiers: &[one_of(Role::Type, F16_F16X2)],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE)],
    needs: Needs::on(7, 0, SM_75),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::Tanh { ty }, ty.ty(), 1);
    }),
};

/// `tanh.approx.type d, a`.
pub const TANH_BF16: Form = Form {
    opcode: "tanh",
    words: &[".approx"],
    section: "Half Precision Floating Point Instructions: tanh",
    qualifiers: &[one_of(Role::Type, BF16_BF16X2)],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE)],
    needs: Needs::on(7, 8, SM_90),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::Tanh { ty }, ty.ty(), 1);
    }),
};
