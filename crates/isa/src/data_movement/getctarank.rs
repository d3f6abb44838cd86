//! `getctarank`: the rank of the cta that a shared address belongs to.

use handloom_ir::simt::{Op, Pure, Val};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{CLUSTER_STRIDE, Cmp, Int, Sreg, Ty};

use super::mapa::cluster_offset;
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
        let by = x.b.imm(CLUSTER_STRIDE.trailing_zeros().into(), Ty::B32);
        let part = x.b.pure(Pure::Shr(Int::U64), Ty::B64, &[offset, by]);
        let part = x.b.half(part, false);
        let one = x.b.imm(1, Ty::B32);
        let other = x.b.sub(part, one);
        // Below the first rank lies the own cta.
        let own = x.b.reg(Ty::B32);
        x.b.push(Op::Sreg(Sreg::ClusterCtarank), vec![own], vec![]);
        let is_own = x.b.pure(Pure::ICmp(Cmp::Lt, Int::U32), Ty::P, &[part, one]);
        let rank = x.b.select(is_own, Val::Reg(own), other);
        x.set(rank);
    }),
};
