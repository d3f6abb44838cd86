//! `sub.cc`: the difference of two values; the borrow goes to the condition code.
//!
//! Choice: the manual leaves open how the one bit `CC.CF` holds a borrow. It holds the carry of `a + !b + 1`, which is 0 for a borrow. A chain
//! of subtractions shows no difference, but code that NVIDIA's compiler inlines for division of 128-bit integers reads the bit with `addc`.

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
    qualifiers: &[one_of(Role::Type, CARRIED)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 2),
    legal: always,
    semantics: Semantics::Build(|x| {
        let op = Pure::SubBorrow(x.u.ty(Role::Type).ty());
        let (value, borrow) = with_carry(x, op, x.src(0), x.src(1), Val::Imm(0, Ty::P));
        let carry = x.b.not(borrow);
        carry_out(x, carry);
        x.set(value);
    }),
};
