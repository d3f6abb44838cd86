//! `sub.cc`: the difference of two values; the borrow goes to the condition code.

use handloom_ir::simt::{Pure, Val};
use handloom_ir::types::Ty;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

use super::add_cc::CARRIED;

/// `sub.cc.type d, a, b`.
pub const SUB_CC: Form = Form {
    opcode: "sub",
    words: &[".cc"],
    section: "Extended-Precision Arithmetic Instructions: sub.cc",
    qualifiers: &[one_of(Slot::Type, CARRIED)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 2),
    legal: always,
    semantics: Semantics::Build(|x| {
        let op = Pure::SubBorrow(x.u.ty(Slot::Type).ty());
        let (value, out) = with_carry(x, op, x.src(0), x.src(1), Val::Imm(0, Ty::P));
        carry_out(x, out);
        x.set(value);
    }),
};
