//! `brkpt`: stops for a debugger; without one it stops the launch.

use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

/// `brkpt`.
pub const BRKPT: Form = Form {
    opcode: "brkpt",
    words: &[],
    section: "Miscellaneous Instructions: brkpt",
    qualifiers: &[],
    dst: &[],
    src: &[],
    needs: Needs::on(1, 0, &[AtLeast(11)]),
    legal: always,
    semantics: Semantics::Control(Control::Brkpt),
};
