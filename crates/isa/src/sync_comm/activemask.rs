//! `activemask`: the lanes that execute it together.

use crate::data_movement::shfl::active_lanes;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

/// `activemask.b32 d`. A lane whose guard is 0 does not count, so the guard branches around it.
pub const ACTIVEMASK: Form = Form {
    opcode: "activemask",
    words: &[],
    section: "Parallel Synchronization and Communication Instructions: activemask",
    qualifiers: &[must(Role::Type, &[ty(".b32", handloom_ir::types::ScalarType::B32)])],
    dst: &[reg("d", Is::Like(Role::Type))],
    src: &[],
    needs: Needs::on(6, 2, &[AtLeast(30)]),
    legal: always,
    semantics: Semantics::Warp(|x| {
        let mask = active_lanes(x);
        x.set(mask);
    }),
};
