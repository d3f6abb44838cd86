//! `szext`: sign- or zero-extension from a width in a register.

use handloom_ir::simt::Pure;
use handloom_ir::types::Ty;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `szext.mode.type d, a, b`: the lower `b` bits of `a`, extended by the sign of the type.
pub const SZEXT: Form = Form {
    opcode: "szext",
    words: &[],
    section: "Integer Arithmetic Instructions: szext",
    qualifiers: &[CLAMP, one_of(Role::Type, INTS_32)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", WORD)],
    needs: Needs::on(7, 6, SM_70),
    legal: always,
    semantics: Semantics::Build(|x| {
        let op = Pure::Szext { signed: x.u.ty(Role::Type).is_signed(), wrap: wraps(x.u) };
        apply(x, op, Ty::B32, 2);
    }),
};
