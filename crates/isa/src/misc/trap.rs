//! `trap`: stops the launch.

use crate::form::*;
use crate::target::Needs;

/// `trap`.
pub const TRAP: Form = Form {
    opcode: "trap",
    words: &[],
    section: "Miscellaneous Instructions: trap",
    qualifiers: &[],
    dst: &[],
    src: &[],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Control(Control::Trap),
};
