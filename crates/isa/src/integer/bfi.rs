//! `bfi`: puts a bit field into a value.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `bfi.type f, a, b, c, d`: `b` with the lower `d` bits of `a` at position `c`.
pub const BFI: Form = Form {
    opcode: "bfi",
    words: &[],
    section: "Integer Arithmetic Instructions: bfi",
    qualifiers: &[one_of(Role::Type, WIDE_BITS)],
    dst: &[reg("f", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE), val("c", WORD), val("d", WORD)],
    needs: Needs::on(2, 0, SM_20),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = x.u.ty(Role::Type).ty();
        apply(x, Pure::Bfi(ty), ty, 4);
    }),
};
