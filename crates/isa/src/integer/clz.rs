//! `clz`: the number of leading zeros.

use handloom_ir::simt::Pure;
use handloom_ir::types::Ty;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `clz.type d, a`: the number of leading zeros of `a` as a word.
pub const CLZ: Form = Form {
    opcode: "clz",
    words: &[],
    section: "Integer Arithmetic Instructions: clz",
    qualifiers: &[one_of(Role::Type, WIDE_BITS)],
    dst: &[reg("d", WORD)],
    src: &[val("a", TYPE)],
    needs: Needs::on(2, 0, SM_20),
    legal: always,
    semantics: Semantics::Build(|x| apply(x, Pure::Clz(x.u.ty(Role::Type).ty()), Ty::B32, 1)),
};
