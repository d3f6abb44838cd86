//! `madc`: a half of a product plus a third value and the carry of the condition code.

use handloom_ir::simt::Pure;
use handloom_ir::types::ScalarType::*;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

use super::addc::{CC, no_carry_of_16};

/// `madc{.lo,.hi}{.cc}.type d, a, b, c`; `.cc` writes the carry back.
pub const MADC: Form = Form {
    opcode: "madc",
    words: &[],
    section: "Extended-Precision Arithmetic Instructions: madc",
    qualifiers: &[HALF, CC, one_of(Role::Type, TYPES)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE), val("c", TYPE)],
    needs: Needs::on(3, 0, SM_20),
    legal: no_carry_of_16,
    semantics: Semantics::Build(|x| {
        let op = Pure::AddCarry(x.u.ty(Role::Type).ty());
        let part = product(x);
        let carry = carry_in(x);
        if x.u.ty(Role::Type).bits() == 16 {
            let sum = x.b.add(part, x.src(2));
            let value = plus_one_if(x, sum, carry);
            return x.set(value);
        }
        let (value, out) = with_carry(x, op, part, x.src(2), carry);
        if x.u.has(Role::Flag) {
            carry_out(x, out);
        }
        x.set(value);
    }),
};

/// Types; the manual does not have those of 16 bits, which write no carry.
const TYPES: &[Choice] = &[
    ty(".u16", U16),
    ty(".s16", S16),
    ty(".u32", U32),
    ty(".s32", S32),
    ty_if(".u64", U64, Needs::ptx(4, 3)),
    ty_if(".s64", S64, Needs::ptx(4, 3)),
];
