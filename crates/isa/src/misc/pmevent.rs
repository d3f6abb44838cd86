//! `pmevent`: triggers events of the performance monitor. There is none here: a hint.

use handloom_ir::types::ScalarType::U32;

use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

/// `pmevent a`: the number of an event.
pub const PMEVENT: Form = Form {
    opcode: "pmevent",
    words: &[],
    section: "Miscellaneous Instructions: pmevent",
    qualifiers: &[],
    dst: &[],
    src: &[operand("a", Kind::Imm, Is::Fixed(U32))],
    needs: Needs::ptx(1, 4),
    legal: always,
    semantics: Semantics::Hint,
};

/// `pmevent.mask a`: a mask of events.
pub const PMEVENT_MASK: Form = Form {
    words: &[".mask"],
    src: &[operand("mask", Kind::Imm, Is::Fixed(U32))],
    needs: Needs::on(3, 0, &[AtLeast(20)]),
    ..PMEVENT
};
