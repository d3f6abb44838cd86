//! `call`: calls a function by name or through a register.
//!
//! Results, callee, arguments and the list or prototype of an indirect call are one operand of kind [`Kind::Call`].

use super::bra::UNI;
use crate::form::*;
use crate::target::Needs;

/// `call{.uni} {(ret),} func{, (params)}{, flist or fproto}`.
pub const CALL: Form = Form {
    opcode: "call",
    words: &[],
    section: "Control Flow Instructions: call",
    qualifiers: &[UNI],
    dst: &[],
    src: &[operand("func", Kind::Call, Is::Any)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Control(Control::Call),
};
