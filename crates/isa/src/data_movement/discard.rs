//! `discard`: gives up the contents of cached lines.
//!
//! What is read afterwards is indeterminate, so keeping the old bytes is one legal outcome.

use handloom_ir::simt::Transfer;
use handloom_ir::types::ScalarType::U32;
use handloom_ir::types::StateSpace;

use super::memory::*;
use super::transfer::{address_of, transfer};
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

/// `discard{.global}.L2 [a], size`.
// Choice: the memory keeps its bytes. A check is told of it.
pub const DISCARD: Form = Form {
    opcode: "discard",
    words: &[".L2"],
    section: "Data Movement and Conversion Instructions: discard",
    qualifiers: &[maybe(Role::Space, &[GLOBAL])],
    dst: &[],
    src: &[address("a"), operand("size", Kind::Imm, Is::Fixed(U32))],
    needs: Needs::on(7, 4, &[AtLeast(80)]),
    legal: |u| check_named_space(u).map(|()| Needs::NONE),
    semantics: Semantics::Wait(|x| {
        let at = address_of(x, 0);
        let space = if x.u.has(Role::Space) { StateSpace::Global } else { StateSpace::Generic };
        transfer(x, Transfer::Discard(space), vec![at]);
    }),
};
