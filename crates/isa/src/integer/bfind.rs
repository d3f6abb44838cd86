//! `bfind`: the position of the most significant bit that is no sign bit.

use handloom_ir::simt::Pure;
use handloom_ir::types::{Int, Ty};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `bfind{.shiftamt}.type d, a`: the position, or the shift that brings the bit to the top; all ones if there is none.
pub const BFIND: Form = Form {
    opcode: "bfind",
    words: &[],
    section: "Integer Arithmetic Instructions: bfind",
    qualifiers: &[maybe(Role::Mode, &[choice(".shiftamt", Value::Flag)]), one_of(Role::Type, WIDE_INTS)],
    dst: &[reg("d", WORD)],
    src: &[val("a", TYPE)],
    needs: Needs::on(2, 0, SM_20),
    legal: always,
    semantics: Semantics::Build(|x| {
        let op = Pure::Bfind { int: Int::of(x.u.ty(Role::Type)), shiftamt: x.u.has(Role::Mode) };
        apply(x, op, Ty::B32, 1);
    }),
};
