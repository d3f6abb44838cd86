//! `exit`: ends the thread.

use crate::form::*;
use crate::target::Needs;

/// `exit`.
pub const EXIT: Form = Form {
    opcode: "exit",
    words: &[],
    section: "Control Flow Instructions: exit",
    qualifiers: &[],
    dst: &[],
    src: &[],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Control(Control::Exit),
};
