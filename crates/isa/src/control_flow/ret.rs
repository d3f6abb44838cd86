//! `ret`: returns from a function; in an entry it ends the thread.

use super::bra::UNI;
use crate::form::*;
use crate::target::Needs;

/// `ret{.uni}`.
pub const RET: Form = Form {
    opcode: "ret",
    words: &[],
    section: "Control Flow Instructions: ret",
    qualifiers: &[UNI],
    dst: &[],
    src: &[],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Control(Control::Ret),
};
