//! `div` of floats: the quotient of two values.

use handloom_ir::simt::{Exactness, Pure};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `div.approx{.ftz}.f32 d, a, b`.
pub const DIV_APPROX: Form = Form {
    opcode: "div",
    words: &[".approx"],
    section: "Floating Point Instructions: div",
    qualifiers: &[FTZ, one_of(Role::Type, ONLY_F32)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 4),
    legal: always,
    semantics: Semantics::Build(|x| {
        let mode = mode(x.u, float(x.u));
        apply(x, Pure::FDiv { mode, exact: Exactness::Approx }, mode.ty.ty(), 2);
    }),
};

/// `div.full{.ftz}.f32 d, a, b`.
pub const DIV_FULL: Form = Form {
    opcode: "div",
    words: &[],
    section: "Floating Point Instructions: div",
    qualifiers: &[lead(Role::Approx, &[choice(".full", Value::Flag)]), FTZ, one_of(Role::Type, ONLY_F32)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 4),
    legal: always,
    semantics: Semantics::Build(|x| {
        let mode = mode(x.u, float(x.u));
        apply(x, Pure::FDiv { mode, exact: Exactness::Full }, mode.ty.ty(), 2);
    }),
};

/// `div.rnd{.ftz}.f32 d, a, b`: correctly rounded.
pub const DIV_F32: Form = Form {
    opcode: "div",
    words: &[],
    section: "Floating Point Instructions: div",
    qualifiers: &[ROUND, FTZ, one_of(Role::Type, ONLY_F32)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::on(1, 4, SM_20),
    legal: always,
    semantics: Semantics::Build(|x| {
        let mode = mode(x.u, float(x.u));
        apply(x, Pure::FDiv { mode, exact: Exactness::Ieee(mode.round) }, mode.ty.ty(), 2);
    }),
};

/// `div.rnd.f64 d, a, b`: correctly rounded.
pub const DIV_F64: Form = Form {
    opcode: "div",
    words: &[],
    section: "Floating Point Instructions: div",
    qualifiers: &[ROUND, one_of(Role::Type, ONLY_F64)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 4),
    legal: always,
    semantics: Semantics::Build(|x| {
        let mode = mode(x.u, float(x.u));
        apply(x, Pure::FDiv { mode, exact: Exactness::Ieee(mode.round) }, mode.ty.ty(), 2);
    }),
};
