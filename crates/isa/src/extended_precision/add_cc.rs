//! `add.cc`: the sum of two values; the carry goes to the condition code.

use handloom_ir::simt::{Pure, Val};
use handloom_ir::types::{ScalarType::*, Ty};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `add.cc.type d, a, b`.
pub const ADD_CC: Form = Form {
    opcode: "add",
    words: &[".cc"],
    section: "Extended-Precision Arithmetic Instructions: add.cc",
    qualifiers: &[one_of(Role::Type, CARRIED)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 2),
    legal: always,
    semantics: Semantics::Build(|x| {
        let op = Pure::AddCarry(x.u.ty(Role::Type).ty());
        let (value, out) = with_carry(x, op, x.src(0), x.src(1), Val::Imm(0, Ty::P));
        carry_out(x, out);
        x.set(value);
    }),
};

/// Types: 64-bit ones came later.
pub(super) const CARRIED: &[Choice] = &[
    ty(".u32", U32),
    ty(".s32", S32),
    ty_if(".u64", U64, Needs::on(4, 3, SM_20)),
    ty_if(".s64", S64, Needs::on(4, 3, SM_20)),
];
