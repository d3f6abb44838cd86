//! `madc`: a half of a product plus a third value and the carry of the condition code.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

use super::addc::CC;
use super::mad_cc::CARRIED_PRODUCT;

/// `madc{.lo,.hi}{.cc}.type d, a, b, c`; `.cc` writes the carry back.
pub const MADC: Form = Form {
    opcode: "madc",
    words: &[],
    section: "Extended-Precision Arithmetic Instructions: madc",
    qualifiers: &[HALF, CC, one_of(Slot::Type, CARRIED_PRODUCT)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE), val("c", TYPE)],
    needs: Needs::on(3, 0, SM_20),
    legal: always,
    semantics: Semantics::Build(|x| {
        let op = Pure::AddCarry(x.u.ty(Slot::Type).ty());
        let part = product(x);
        let carry = carry_in(x);
        let (value, out) = with_carry(x, op, part, x.src(2), carry);
        if x.u.has(Slot::Flag) {
            carry_out(x, out);
        }
        x.set(value);
    }),
};
