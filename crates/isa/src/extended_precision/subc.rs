//! `subc`: the difference of two values and the borrow of the condition code.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

use super::add_cc::CARRIED;
use super::addc::CC;

/// `subc{.cc}.type d, a, b`; `.cc` writes the borrow back.
pub const SUBC: Form = Form {
    opcode: "subc",
    words: &[],
    section: "Extended-Precision Arithmetic Instructions: subc",
    qualifiers: &[CC, one_of(Slot::Type, CARRIED)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 2),
    legal: always,
    semantics: Semantics::Build(|x| {
        let op = Pure::SubBorrow(x.u.ty(Slot::Type).ty());
        let carry = carry_in(x);
        let (value, out) = with_carry(x, op, x.src(0), x.src(1), carry);
        if x.u.has(Slot::Flag) {
            carry_out(x, out);
        }
        x.set(value);
    }),
};
