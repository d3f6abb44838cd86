//! `subc`: the difference of two values and the borrow of the condition code, which is held as [`super::sub_cc`] says.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

use super::addc::{CARRIED_ON, CC, no_carry_of_16};

/// `subc{.cc}.type d, a, b`; `.cc` writes the borrow back.
pub const SUBC: Form = Form {
    opcode: "subc",
    words: &[],
    section: "Extended-Precision Arithmetic Instructions: subc",
    qualifiers: &[CC, one_of(Role::Type, CARRIED_ON)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 2),
    legal: no_carry_of_16,
    semantics: Semantics::Build(|x| {
        let op = Pure::SubBorrow(x.u.ty(Role::Type).ty());
        let carry = carry_in(x);
        let borrow = x.b.not(carry);
        if x.u.ty(Role::Type).bits() == 16 {
            let subtrahend = plus_one_if(x, x.src(1), borrow);
            let value = x.b.sub(x.src(0), subtrahend);
            return x.set(value);
        }
        let (value, borrow) = with_carry(x, op, x.src(0), x.src(1), borrow);
        if x.u.has(Role::Flag) {
            let carry = x.b.not(borrow);
            carry_out(x, carry);
        }
        x.set(value);
    }),
};
