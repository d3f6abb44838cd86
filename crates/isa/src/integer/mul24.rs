//! `mul24`: the product of two 24-bit values.

use handloom_ir::simt::{Pure, Val};
use handloom_ir::types::Ty;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `mul24.mode.type d, a, b`: bits 31 to 0 or bits 47 to 16 of the product.
pub const MUL24: Form = Form {
    opcode: "mul24",
    words: &[],
    section: "Integer Arithmetic Instructions: mul24",
    qualifiers: &[HALF, one_of(Role::Type, INTS_32)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let value = product24(x);
        x.set(value);
    }),
};

/// The part of the 48-bit product of sources 0 and 1 that the instruction keeps.
pub(super) fn product24(x: &mut Cx<'_, '_>) -> Val {
    let op = Pure::Mul24 { signed: x.u.ty(Role::Type).is_signed(), hi: half(x.u) == Half::Hi };
    x.b.pure(op, Ty::B32, &[x.src(0), x.src(1)])
}
