//! `getctarank`: the rank of the cta that a shared address belongs to.

use handloom_ir::types::ScalarType::*;

use super::mapa::{cluster_offset, rank_of};
use super::memory::*;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

/// `getctarank{.shared::cluster}.type d, a`.
pub const GETCTARANK: Form = Form {
    opcode: "getctarank",
    words: &[],
    section: "Data Movement and Conversion Instructions: getctarank",
    qualifiers: &[must(Role::Type, &[ty(".u32", U32), ty(".u64", U64)]), maybe(Role::Space, &[SHARED_CLUSTER])],
    dst: &[reg("d", Is::Fixed(U32))],
    src: &[operand("a", Kind::MovSource, Is::Like(Role::Type))],
    needs: Needs::on(7, 8, &[AtLeast(90)]),
    legal: always,
    semantics: Semantics::Build(|x| {
        let offset = cluster_offset(x);
        let rank = rank_of(x.b, offset);
        x.set(rank);
    }),
};
