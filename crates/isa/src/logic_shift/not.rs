//! `not`: all bits inverted.

use handloom_ir::types::ScalarType::Pred;

use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `not.type d, a` of bits.
pub const NOT: Form = Form {
    opcode: "not",
    words: &[],
    section: "Logic and Shift Instructions: not",
    qualifiers: &[one_of(Role::Type, BITS)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let value = x.b.not(x.src(0));
        x.set(value);
    }),
};

/// `not.pred d, a`.
pub const NOT_PRED: Form = Form {
    opcode: "not",
    words: &[],
    section: "Logic and Shift Instructions: not",
    qualifiers: &[one_of(Role::Type, &[ty(".pred", Pred)])],
    dst: &[reg("d", TYPE)],
    src: &[operand("a", Kind::Pred { negatable: true }, TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let value = x.b.not(x.src(0));
        x.set(value);
    }),
};
