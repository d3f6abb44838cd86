//! `addc`: the sum of two values and the carry of the condition code.

use handloom_ir::simt::Pure;
use handloom_ir::types::ScalarType::*;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `addc{.cc}.type d, a, b`; `.cc` writes the carry back.
pub const ADDC: Form = Form {
    opcode: "addc",
    words: &[],
    section: "Extended-Precision Arithmetic Instructions: addc",
    qualifiers: &[CC, one_of(Role::Type, CARRIED_ON)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 2),
    legal: no_carry_of_16,
    semantics: Semantics::Build(|x| {
        if x.u.ty(Role::Type).bits() == 16 {
            let carry = carry_in(x);
            let sum = x.b.add(x.src(0), x.src(1));
            let value = plus_one_if(x, sum, carry);
            return x.set(value);
        }
        let op = Pure::AddCarry(x.u.ty(Role::Type).ty());
        let carry = carry_in(x);
        let (value, out) = with_carry(x, op, x.src(0), x.src(1), carry);
        if x.u.has(Role::Flag) {
            carry_out(x, out);
        }
        x.set(value);
    }),
};

/// Types of what reads the carry: those of 16 bits do not write it. The manual does not have these; the assembler takes them.
pub(super) const CARRIED_ON: &[Choice] = &[
    ty(".u16", U16),
    ty(".s16", S16),
    ty(".u32", U32),
    ty(".s32", S32),
    ty_if(".u64", U64, Needs::on(4, 3, SM_20)),
    ty_if(".s64", S64, Needs::on(4, 3, SM_20)),
];

/// `.cc` does not go with 16 bits.
pub(super) fn no_carry_of_16(u: &Use) -> Result<Needs, Reason> {
    if u.has(Role::Flag) && u.ty(Role::Type).bits() == 16 {
        return Err(Reason::new("`.cc` does not go with types of 16 bits").at(".cc"));
    }
    Ok(Needs::NONE)
}

/// Optional `.cc`.
pub(super) const CC: Group = maybe(Role::Flag, &[choice(".cc", Value::Flag)]);
