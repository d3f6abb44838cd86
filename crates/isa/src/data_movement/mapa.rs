//! `mapa`: the address in another cta of the cluster that corresponds to an address in this one.

use handloom_ir::types::ScalarType::*;

use super::memory::*;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

/// `mapa{.shared::cluster}.type d, a, b`.
pub const MAPA: Form = Form {
    opcode: "mapa",
    words: &[],
    section: "Data Movement and Conversion Instructions: mapa",
    qualifiers: &[must(Slot::Type, &[ty(".u32", U32), ty(".u64", U64)]), maybe(Slot::Space, &[SHARED_CLUSTER])],
    dst: &[reg("d", Is::Like(Slot::Type))],
    src: &[operand("a", Kind::MovSource, Is::Like(Slot::Type)), val("b", Is::Fixed(U32))],
    needs: Needs::on(7, 8, &[AtLeast(90)]),
    legal: always,
    semantics: Semantics::Unsupported("addresses of other ctas of a cluster"),
};
