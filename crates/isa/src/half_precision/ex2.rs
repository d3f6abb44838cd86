//! `ex2` of half precision and bfloat16: 2 to the power of a value.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `ex2.approx.type d, a`.
pub const EX2_F16: Form = Form {
    opcode: "ex2",
    words: &[".approx"],
    section: "Half Precision Floating Point Instructions: ex2",
    qualifiers: &[one_of(Role::Type, F16_F16X2)],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE)],
    needs: Needs::on(7, 0, SM_75),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::Ex2 { ty, ftz: false }, ty.ty(), 1);
    }),
};

/// `ex2.approx.ftz.type d, a`.
pub const EX2_BF16: Form = Form {
    opcode: "ex2",
    words: &[".approx", ".ftz"],
    section: "Half Precision Floating Point Instructions: ex2",
    qualifiers: &[one_of(Role::Type, BF16_BF16X2)],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE)],
    needs: Needs::on(7, 8, SM_90),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::Ex2 { ty, ftz: true }, ty.ty(), 1);
    }),
};
