//! `abs` of half precision and bfloat16: the absolute value.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `abs{.ftz}.type d, a`.
pub const ABS_F16: Form = Form {
    opcode: "abs",
    words: &[],
    section: "Half Precision Floating Point Instructions: abs",
    qualifiers: &[FTZ, one_of(Role::Type, F16_F16X2)],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE)],
    needs: Needs::on(6, 5, SM_53),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::FAbs { ty, ftz: x.u.has(Role::Ftz) }, ty.ty(), 1);
    }),
};

/// `abs.type d, a`.
pub const ABS_BF16: Form = Form {
    opcode: "abs",
    words: &[],
    section: "Half Precision Floating Point Instructions: abs",
    qualifiers: &[one_of(Role::Type, BF16_BF16X2)],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE)],
    needs: Needs::on(7, 0, SM_80),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::FAbs { ty, ftz: x.u.has(Role::Ftz) }, ty.ty(), 1);
    }),
};
