//! `rem` of integers: the remainder of a division that cuts towards zero.
//!
//! Division by zero has a defined result in the op: see its comment.

use handloom_ir::simt::Pure;
use handloom_ir::types::Int;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `rem.type d, a, b`.
pub const REM: Form = Form {
    opcode: "rem",
    words: &[],
    section: "Integer Arithmetic Instructions: rem",
    qualifiers: &[one_of(Role::Type, INTS)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let int = Int::of(x.u.ty(Role::Type));
        apply(x, Pure::Rem(int), int.ty, 2);
    }),
};
