//! `and`: bits that are set in both values.

use handloom_ir::types::ScalarType::Pred;

use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `and.type d, a, b` of bits.
pub const AND: Form = Form {
    opcode: "and",
    words: &[],
    section: "Logic and Shift Instructions: and",
    qualifiers: &[one_of(Role::Type, BITS)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let value = x.b.and(x.src(0), x.src(1));
        x.set(value);
    }),
};

/// `and.pred d, a, b`. The assembler takes negated predicates and integer literals.
pub const AND_PRED: Form = Form {
    opcode: "and",
    words: &[],
    section: "Logic and Shift Instructions: and",
    qualifiers: &[one_of(Role::Type, &[ty(".pred", Pred)])],
    dst: &[reg("d", TYPE)],
    src: &[operand("a", Kind::Pred { negatable: true }, TYPE), operand("b", Kind::Pred { negatable: true }, TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let value = x.b.and(x.src(0), x.src(1));
        x.set(value);
    }),
};
