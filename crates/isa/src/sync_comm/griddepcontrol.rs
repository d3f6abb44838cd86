//! `griddepcontrol`: lets a dependent grid start early, or waits for the grids before.
//!
//! Grids of a stream run one after the other here, so both are hints.

use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

/// `griddepcontrol.action`.
pub const GRIDDEPCONTROL: Form = Form {
    opcode: "griddepcontrol",
    words: &[],
    section: "Parallel Synchronization and Communication Instructions: griddepcontrol",
    qualifiers: &[must(Role::Mode, &[choice(".launch_dependents", Value::Flag), choice(".wait", Value::Flag)])],
    dst: &[],
    src: &[],
    needs: Needs::on(7, 8, &[AtLeast(90)]),
    legal: always,
    semantics: Semantics::Hint,
};
