//! `mad.cc`: a half of a product plus a third value; the carry goes to the condition code.

use handloom_ir::simt::{Pure, Val};
use handloom_ir::types::{ScalarType::*, Ty};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `mad{.lo,.hi}.cc.type d, a, b, c`.
///
/// The manual's syntax line has the half in braces; the assembler wants one of them.
pub const MAD_CC: Form = Form {
    opcode: "mad",
    words: &[".cc"],
    section: "Extended-Precision Arithmetic Instructions: mad.cc",
    qualifiers: &[HALF, one_of(Role::Type, CARRIED_PRODUCT)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE), val("c", TYPE)],
    needs: Needs::on(3, 0, SM_20),
    legal: always,
    semantics: Semantics::Build(|x| {
        let op = Pure::AddCarry(x.u.ty(Role::Type).ty());
        let part = product(x);
        let (value, out) = with_carry(x, op, part, x.src(2), Val::Imm(0, Ty::P));
        carry_out(x, out);
        x.set(value);
    }),
};

/// Types: 64-bit ones came later.
pub(super) const CARRIED_PRODUCT: &[Choice] =
    &[ty(".u32", U32), ty(".s32", S32), ty_if(".u64", U64, Needs::ptx(4, 3)), ty_if(".s64", S64, Needs::ptx(4, 3))];
