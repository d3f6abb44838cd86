//! `tanh`: the hyperbolic tangent.

use handloom_ir::simt::Pure;
use handloom_ir::types::{Float, Ty};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `tanh.approx.f32 d, a`.
pub const TANH: Form = Form {
    opcode: "tanh",
    words: &[".approx"],
    section: "Floating Point Instructions: tanh",
    qualifiers: &[one_of(Role::Type, ONLY_F32)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::on(7, 0, SM_75),
    legal: always,
    semantics: Semantics::Build(|x| apply(x, Pure::Tanh { ty: Float::F32 }, Ty::B32, 1)),
};
