//! `abs` of integers: absolute value, wrapping at the least number.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `abs.type d, a`: `d = |a|`.
pub const ABS_INT: Form = Form {
    opcode: "abs",
    words: &[],
    section: "Integer Arithmetic Instructions: abs",
    qualifiers: &[one_of(Role::Type, SIGNED_INTS)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = x.u.ty(Role::Type).ty();
        apply(x, Pure::Abs(ty), ty, 1);
    }),
};
