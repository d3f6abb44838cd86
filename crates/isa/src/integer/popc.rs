//! `popc`: the number of ones.

use handloom_ir::simt::Pure;
use handloom_ir::types::Ty;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `popc.type d, a`: the number of ones of `a` as a word.
pub const POPC: Form = Form {
    opcode: "popc",
    words: &[],
    section: "Integer Arithmetic Instructions: popc",
    qualifiers: &[one_of(Role::Type, WIDE_BITS)],
    dst: &[reg("d", WORD)],
    src: &[val("a", TYPE)],
    needs: Needs::on(2, 0, SM_20),
    legal: always,
    semantics: Semantics::Build(|x| apply(x, Pure::Popc(x.u.ty(Role::Type).ty()), Ty::B32, 1)),
};
