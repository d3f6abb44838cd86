//! `bfe`: a bit field, extended to the width of the type.

use handloom_ir::simt::Pure;
use handloom_ir::types::Int;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `bfe.type d, a, b, c`: the field of `c` bits at position `b` of `a`.
pub const BFE: Form = Form {
    opcode: "bfe",
    words: &[],
    section: "Integer Arithmetic Instructions: bfe",
    qualifiers: &[one_of(Role::Type, WIDE_INTS)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", WORD), val("c", WORD)],
    needs: Needs::on(2, 0, SM_20),
    legal: always,
    semantics: Semantics::Build(|x| {
        let int = Int::of(x.u.ty(Role::Type));
        apply(x, Pure::Bfe(int), int.ty, 3);
    }),
};
