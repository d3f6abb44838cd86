//! `cos`: the cosine of an angle in radians.

use handloom_ir::simt::Pure;
use handloom_ir::types::Ty;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `cos.approx{.ftz}.f32 d, a`.
pub const COS: Form = Form {
    opcode: "cos",
    words: &[".approx"],
    section: "Floating Point Instructions: cos",
    qualifiers: &[FTZ, one_of(Role::Type, ONLY_F32)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::ptx(1, 4),
    legal: always,
    semantics: Semantics::Build(|x| apply(x, Pure::Cos { ftz: x.u.has(Role::Ftz) }, Ty::B32, 1)),
};
