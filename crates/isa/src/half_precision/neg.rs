//! `neg` of half precision and bfloat16: the value with the other sign.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `neg{.ftz}.type d, a`.
pub const NEG_F16: Form = Form {
    opcode: "neg",
    words: &[],
    section: "Half Precision Floating Point Instructions: neg",
    qualifiers: &[FTZ, one_of(Role::Type, F16_F16X2)],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE)],
    needs: Needs::on(6, 0, SM_53),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::FNeg { ty, ftz: x.u.has(Role::Ftz) }, ty.ty(), 1);
    }),
};

/// `neg.type d, a`.
pub const NEG_BF16: Form = Form {
    opcode: "neg",
    words: &[],
    section: "Half Precision Floating Point Instructions: neg",
    qualifiers: &[one_of(Role::Type, BF16_BF16X2)],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE)],
    needs: Needs::on(7, 0, SM_80),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::FNeg { ty, ftz: x.u.has(Role::Ftz) }, ty.ty(), 1);
    }),
};
