//! `getctarank`: the rank of the cta that a shared address belongs to.

use handloom_ir::types::ScalarType::*;

use super::memory::*;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

/// `getctarank{.shared::cluster}.type d, a`.
pub const GETCTARANK: Form = Form {
    opcode: "getctarank",
    words: &[],
    section: "Data Movement and Conversion Instructions: getctarank",
    qualifiers: &[must(Slot::Type, &[ty(".u32", U32), ty(".u64", U64)]), maybe(Slot::Space, &[SHARED_CLUSTER])],
    dst: &[reg("d", Is::Fixed(U32))],
    src: &[operand("a", Kind::MovSource, Is::Like(Slot::Type))],
    needs: Needs::on(7, 8, &[AtLeast(90)]),
    legal: always,
    semantics: Semantics::Unsupported("addresses of other ctas of a cluster"),
};
