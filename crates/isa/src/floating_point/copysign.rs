//! `copysign`: the sign of one value on another.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `copysign.type d, a, b`: the magnitude of `b` with the sign of `a`.
pub const COPYSIGN: Form = Form {
    opcode: "copysign",
    words: &[],
    section: "Floating Point Instructions: copysign",
    qualifiers: &[one_of(Role::Type, F32_F64)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::on(2, 0, SM_20),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::Copysign(ty), ty.ty(), 2);
    }),
};
