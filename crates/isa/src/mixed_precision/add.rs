//! `add` of mixed precision: a half value plus a single one.

use handloom_ir::simt::Pure;
use handloom_ir::types::Ty;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

use super::fma::{HALVES, widened};

/// `add{.rnd}{.sat}.f32.atype d, a, c`.
pub const ADD_MIXED: Form = Form {
    opcode: "add",
    words: &[],
    section: "Mixed Precision Floating Point Instructions: add",
    qualifiers: &[ROUND_OPT, SAT, one_of(Role::Type, ONLY_F32), HALVES],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE2), val("c", TYPE)],
    needs: Needs::on(8, 6, SM_100),
    legal: always,
    semantics: Semantics::Build(|x| {
        let a = widened(x, 0);
        let value = x.b.pure(Pure::FAdd(mode(x.u, float(x.u))), Ty::B32, &[a, x.src(1)]);
        x.set(value);
    }),
};
