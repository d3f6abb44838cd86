//! `abs` of floats: the absolute value.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `abs{.ftz}.f32 d, a`.
pub const ABS_F32: Form = Form {
    opcode: "abs",
    words: &[],
    section: "Floating Point Instructions: abs",
    qualifiers: &[FTZ, one_of(Role::Type, ONLY_F32)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::FAbs { ty, ftz: x.u.has(Role::Ftz) }, ty.ty(), 1);
    }),
};

/// `abs.f64 d, a`.
pub const ABS_F64: Form = Form {
    opcode: "abs",
    words: &[],
    section: "Floating Point Instructions: abs",
    qualifiers: &[one_of(Role::Type, ONLY_F64)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::FAbs { ty, ftz: x.u.has(Role::Ftz) }, ty.ty(), 1);
    }),
};
