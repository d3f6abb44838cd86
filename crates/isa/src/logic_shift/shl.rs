//! `shl`: bits to the left, zeros after them.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `shl.type d, a, b`. Amounts above the width act as the width.
pub const SHL: Form = Form {
    opcode: "shl",
    words: &[],
    section: "Logic and Shift Instructions: shl",
    qualifiers: &[one_of(Role::Type, BITS)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", WORD)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = x.u.ty(Role::Type).ty();
        apply(x, Pure::Shl(ty), ty, 2);
    }),
};
