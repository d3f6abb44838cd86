//! `div` of integers: the quotient of two values, cut towards zero.
//!
//! Division by zero has a defined result in the op: see its comment.

use handloom_ir::simt::Pure;
use handloom_ir::types::Int;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `div.type d, a, b`.
pub const DIV: Form = Form {
    opcode: "div",
    words: &[],
    section: "Integer Arithmetic Instructions: div",
    qualifiers: &[one_of(Role::Type, INTS)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let int = Int::of(x.u.ty(Role::Type));
        apply(x, Pure::Div(int), int.ty, 2);
    }),
};
