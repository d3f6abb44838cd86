//! `lop3`: any function of three bits, bit by bit, given by its table.

use handloom_ir::simt::{Pure, Val};
use handloom_ir::types::{BoolOp, ScalarType::*, Ty};

use crate::form::*;
use crate::target::{Needs, TargetGate};
use crate::words::*;

/// `lop3.b32 d, a, b, c, immLut`.
pub const LOP3: Form = Form {
    opcode: "lop3",
    words: &[],
    section: "Logic and Shift Instructions: lop3",
    qualifiers: &[one_of(Role::Type, &[ty(".b32", B32)])],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE), val("c", TYPE), operand("immLut", Kind::Imm, WORD)],
    needs: Needs::on(4, 3, &[TargetGate::AtLeast(50)]),
    legal: always,
    semantics: Semantics::Build(|x| {
        let value = look_up(x);
        x.set(value);
    }),
};

/// `lop3.BoolOp.b32 d|p, a, b, c, immLut, q`: also whether `d` is not zero, joined with `q`.
pub const LOP3_BOOL: Form = Form {
    opcode: "lop3",
    words: &[],
    section: "Logic and Shift Instructions: lop3",
    qualifiers: &[
        must(Role::Bool, &[choice(".or", Value::Bool(BoolOp::Or)), choice(".and", Value::Bool(BoolOp::And))]),
        one_of(Role::Type, &[ty(".b32", B32)]),
    ],
    dst: &[operand("d|p", Kind::RegPredPair, TYPE).both()],
    src: &[val("a", TYPE), val("b", TYPE), val("c", TYPE), operand("immLut", Kind::Imm, WORD), pred("q")],
    needs: Needs::on(8, 2, SM_70),
    legal: always,
    semantics: Semantics::Build(|x| {
        let value = look_up(x);
        let any = x.b.pure(Pure::ToPred(Ty::B32), Ty::P, &[value]);
        let q = x.src(4);
        let p = if x.u.text(Role::Bool) == ".or" { x.b.or(any, q) } else { x.b.and(any, q) };
        x.set_at(0, 0, value);
        x.set_at(0, 1, p);
    }),
};

fn look_up(x: &mut Cx<'_, '_>) -> Val {
    let Val::Imm(table, _) = x.src(3) else { panic!("the table of `lop3` is a literal") };
    // The assembler takes larger tables and uses their low byte.
    let op = Pure::Lop3(table.to_le_bytes()[0]);
    x.b.pure(op, Ty::B32, &[x.src(0), x.src(1), x.src(2)])
}
