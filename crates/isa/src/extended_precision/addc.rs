//! `addc`: the sum of two values and the carry of the condition code.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

use super::add_cc::CARRIED;

/// `addc{.cc}.type d, a, b`; `.cc` writes the carry back.
pub const ADDC: Form = Form {
    opcode: "addc",
    words: &[],
    section: "Extended-Precision Arithmetic Instructions: addc",
    qualifiers: &[CC, one_of(Slot::Type, CARRIED)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 2),
    legal: always,
    semantics: Semantics::Build(|x| {
        let op = Pure::AddCarry(x.u.ty(Slot::Type).ty());
        let carry = carry_in(x);
        let (value, out) = with_carry(x, op, x.src(0), x.src(1), carry);
        if x.u.has(Slot::Flag) {
            carry_out(x, out);
        }
        x.set(value);
    }),
};

/// Optional `.cc`.
pub(super) const CC: Group = maybe(Slot::Flag, &[choice(".cc", Value::Flag)]);
