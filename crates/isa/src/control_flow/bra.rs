//! `bra`: goes to a label.

use crate::form::*;
use crate::target::Needs;

/// `.uni`: a promise that all lanes go the same way; a hint.
pub const UNI: Group = maybe(Role::Flag, &[choice(".uni", Value::Flag)]);

/// `bra{.uni} tgt`.
pub const BRA: Form = Form {
    opcode: "bra",
    words: &[],
    section: "Control Flow Instructions: bra",
    qualifiers: &[UNI],
    dst: &[],
    src: &[operand("tgt", Kind::Label, Is::Any)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Control(Control::Bra),
};
