//! `neg` of floats: the value with the other sign.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `neg{.ftz}.f32 d, a`.
pub const NEG_F32: Form = Form {
    opcode: "neg",
    words: &[],
    section: "Floating Point Instructions: neg",
    qualifiers: &[FTZ, one_of(Role::Type, ONLY_F32)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::FNeg { ty, ftz: x.u.has(Role::Ftz) }, ty.ty(), 1);
    }),
};

/// `neg.f64 d, a`.
pub const NEG_F64: Form = Form {
    opcode: "neg",
    words: &[],
    section: "Floating Point Instructions: neg",
    qualifiers: &[one_of(Role::Type, ONLY_F64)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::FNeg { ty, ftz: x.u.has(Role::Ftz) }, ty.ty(), 1);
    }),
};
