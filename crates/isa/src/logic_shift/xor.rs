//! `xor`: bits that differ.

use handloom_ir::types::ScalarType::Pred;

use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `xor.type d, a, b` of bits.
pub const XOR: Form = Form {
    opcode: "xor",
    words: &[],
    section: "Logic and Shift Instructions: xor",
    qualifiers: &[one_of(Role::Type, BITS)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let value = x.b.xor(x.src(0), x.src(1));
        x.set(value);
    }),
};

/// `xor.pred d, a, b`. The assembler takes negated predicates and integer literals.
pub const XOR_PRED: Form = Form {
    opcode: "xor",
    words: &[],
    section: "Logic and Shift Instructions: xor",
    qualifiers: &[one_of(Role::Type, &[ty(".pred", Pred)])],
    dst: &[reg("d", TYPE)],
    src: &[operand("a", Kind::Pred { negatable: true }, TYPE), operand("b", Kind::Pred { negatable: true }, TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let value = x.b.xor(x.src(0), x.src(1));
        x.set(value);
    }),
};
