//! `sqrt`: the square root of a value.

use handloom_ir::simt::{Exactness, Pure};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `sqrt.approx{.ftz}.f32 d, a`.
pub const SQRT_APPROX: Form = Form {
    opcode: "sqrt",
    words: &[".approx"],
    section: "Floating Point Instructions: sqrt",
    qualifiers: &[FTZ, one_of(Role::Type, ONLY_F32)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::ptx(1, 4),
    legal: always,
    semantics: Semantics::Build(|x| {
        let mode = mode(x.u, float(x.u));
        apply(x, Pure::FSqrt { mode, exact: Exactness::Approx }, mode.ty.ty(), 1);
    }),
};

/// `sqrt.rnd{.ftz}.f32 d, a`: correctly rounded.
pub const SQRT_F32: Form = Form {
    opcode: "sqrt",
    words: &[],
    section: "Floating Point Instructions: sqrt",
    qualifiers: &[ROUND, FTZ, one_of(Role::Type, ONLY_F32)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::on(1, 4, SM_20),
    legal: always,
    semantics: Semantics::Build(|x| {
        let mode = mode(x.u, float(x.u));
        apply(x, Pure::FSqrt { mode, exact: Exactness::Ieee(mode.round) }, mode.ty.ty(), 1);
    }),
};

/// `sqrt.rnd.f64 d, a`: correctly rounded.
pub const SQRT_F64: Form = Form {
    opcode: "sqrt",
    words: &[],
    section: "Floating Point Instructions: sqrt",
    qualifiers: &[ROUND, one_of(Role::Type, ONLY_F64)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::ptx(1, 4),
    legal: always,
    semantics: Semantics::Build(|x| {
        let mode = mode(x.u, float(x.u));
        apply(x, Pure::FSqrt { mode, exact: Exactness::Ieee(mode.round) }, mode.ty.ty(), 1);
    }),
};
