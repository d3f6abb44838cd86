//! `applypriority`: changes the eviction priority of cached lines. A hint.

use handloom_ir::types::ScalarType::U32;

use super::memory::*;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

/// `applypriority{.global}.L2::evict_normal [a], size`.
pub const APPLYPRIORITY: Form = Form {
    opcode: "applypriority",
    words: &[".L2::evict_normal"],
    section: "Data Movement and Conversion Instructions: applypriority",
    qualifiers: &[maybe(Role::Space, &[GLOBAL])],
    dst: &[],
    src: &[address("a"), operand("size", Kind::Imm, Is::Fixed(U32))],
    needs: Needs::on(7, 4, &[AtLeast(80)]),
    legal: |u| check_named_space(u).map(|()| Needs::NONE),
    semantics: Semantics::Hint,
};
