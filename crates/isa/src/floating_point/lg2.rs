//! `lg2`: the logarithm to base 2.

use handloom_ir::simt::Pure;
use handloom_ir::types::Ty;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `lg2.approx{.ftz}.f32 d, a`.
pub const LG2: Form = Form {
    opcode: "lg2",
    words: &[".approx"],
    section: "Floating Point Instructions: lg2",
    qualifiers: &[FTZ, one_of(Role::Type, ONLY_F32)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::ptx(1, 4),
    legal: always,
    semantics: Semantics::Build(|x| apply(x, Pure::Lg2 { ftz: x.u.has(Role::Ftz) }, Ty::B32, 1)),
};
