//! `bmsk`: a mask of ones from a position on.

use handloom_ir::simt::Pure;
use handloom_ir::types::{ScalarType::B32, Ty};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `bmsk.mode.b32 d, a, b`: `b` ones from bit `a` on.
///
/// The positions are words: the assembler takes no floats for them.
pub const BMSK: Form = Form {
    opcode: "bmsk",
    words: &[],
    section: "Integer Arithmetic Instructions: bmsk",
    qualifiers: &[CLAMP, one_of(Role::Type, &[ty(".b32", B32)])],
    dst: &[reg("d", WORD)],
    src: &[val("a", WORD), val("b", WORD)],
    needs: Needs::on(7, 6, SM_70),
    legal: always,
    semantics: Semantics::Build(|x| apply(x, Pure::Bmsk { wrap: wraps(x.u) }, Ty::B32, 2)),
};
