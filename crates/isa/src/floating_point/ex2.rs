//! `ex2`: 2 to the power of a value.

use handloom_ir::simt::Pure;
use handloom_ir::types::{Float, Ty};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `ex2.approx{.ftz}.f32 d, a`.
pub const EX2: Form = Form {
    opcode: "ex2",
    words: &[".approx"],
    section: "Floating Point Instructions: ex2",
    qualifiers: &[FTZ, one_of(Role::Type, ONLY_F32)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::ptx(1, 4),
    legal: always,
    semantics: Semantics::Build(|x| apply(x, Pure::Ex2 { ty: Float::F32, ftz: x.u.has(Role::Ftz) }, Ty::B32, 1)),
};
