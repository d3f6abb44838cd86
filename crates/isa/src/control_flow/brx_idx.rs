//! `brx.idx`: goes to the label that an index picks from a list.

use handloom_ir::types::ScalarType;

use super::bra::UNI;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

/// `brx.idx{.uni} index, tlist`.
pub const BRX_IDX: Form = Form {
    opcode: "brx",
    words: &[".idx"],
    section: "Control Flow Instructions: brx.idx",
    qualifiers: &[UNI],
    dst: &[],
    src: &[val("index", Is::Fixed(ScalarType::U32)), operand("tlist", Kind::Targets, Is::Any)],
    needs: Needs::on(6, 0, &[AtLeast(30)]),
    legal: always,
    semantics: Semantics::Control(Control::BrxIdx),
};
