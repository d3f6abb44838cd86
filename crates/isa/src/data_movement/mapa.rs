//! `mapa`: the address in another cta of the cluster that corresponds to an address in this one.
//!
//! An address in `.shared::cluster` is the rank of the cta plus one, then the offset in its shared memory; below rank 0 lies the
//! own cta. So the address of a variable is one in `.shared::cta` and in `.shared::cluster` alike.

use handloom_ir::simt::{Builder, Op, Pure, Val};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{CLUSTER_STRIDE, Cmp, Int, Sreg, StateSpace, Ty};
use smallvec::smallvec;

use super::memory::*;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

/// Ranks above it have no address in 32 bits. No cluster is that large: an access there is out of bounds.
const LAST_RANK: u64 = 4094;

/// `mapa{.shared::cluster}.type d, a, b`.
pub const MAPA: Form = Form {
    opcode: "mapa",
    words: &[],
    section: "Data Movement and Conversion Instructions: mapa",
    qualifiers: &[must(Role::Type, &[ty(".u32", U32), ty(".u64", U64)]), maybe(Role::Space, &[SHARED_CLUSTER])],
    dst: &[reg("d", Is::Like(Role::Type))],
    src: &[operand("a", Kind::MovSource, Is::Like(Role::Type)), val("b", Is::Fixed(U32))],
    needs: Needs::on(7, 8, &[AtLeast(90)]),
    legal: always,
    semantics: Semantics::Build(|x| {
        let offset = cluster_offset(x);
        let last = x.b.imm(LAST_RANK, Ty::B32);
        let rank = x.b.pure(Pure::Min(Int::U32), Ty::B32, &[x.src(1), last]);
        let there = in_cta(x.b, offset, rank);
        let d = if x.u.has(Role::Space) { there } else { convert(x, there, false) };
        let d = if x.u.ty(Role::Type).ty() == Ty::B64 { d } else { x.b.half(d, false) };
        x.set(d);
    }),
};

/// The address in `.shared::cluster` of an offset in the shared memory of the cta with a rank.
pub fn in_cta(b: &mut Builder<'_>, offset: Val, rank: Val) -> Val {
    let rank = b.ext(rank, 32, false, Ty::B64);
    let one = b.imm(1, Ty::B64);
    let part = b.add(rank, one);
    let by = b.imm(CLUSTER_STRIDE.trailing_zeros().into(), Ty::B32);
    let part = b.pure(Pure::Shl(Ty::B64), Ty::B64, &[part, by]);
    let inside = b.imm(CLUSTER_STRIDE - 1, Ty::B64);
    let inside = b.and(offset, inside);
    b.or(part, inside)
}

/// The rank of the cta that an address in `.shared::cluster` belongs to.
pub fn rank_of(b: &mut Builder<'_>, address: Val) -> Val {
    let by = b.imm(CLUSTER_STRIDE.trailing_zeros().into(), Ty::B32);
    let part = b.pure(Pure::Shr(Int::U64), Ty::B64, &[address, by]);
    let part = b.half(part, false);
    let one = b.imm(1, Ty::B32);
    let other = b.sub(part, one);
    // Below the first rank lies the own cta.
    let own = b.reg(Ty::B32);
    b.push(Op::Sreg(Sreg::ClusterCtarank), smallvec![own], smallvec![]);
    let is_own = b.pure(Pure::ICmp(Cmp::Lt, Int::U32), Ty::P, &[part, one]);
    b.select(is_own, Val::Reg(own), other)
}

/// Source 0 as an offset in `.shared::cluster`, in 64 bits.
pub(super) fn cluster_offset(x: &mut Cx<'_, '_>) -> Val {
    let a = x.src(0);
    let bits = x.b.ty(a).bits();
    let wide = x.b.ext(a, bits, false, Ty::B64);
    if x.u.has(Role::Space) { wide } else { convert(x, wide, true) }
}

fn convert(x: &mut Cx<'_, '_>, a: Val, to_space: bool) -> Val {
    let d = x.b.reg(Ty::B64);
    x.b.push(Op::Cvta { space: StateSpace::SharedCluster, to_space }, smallvec![d], smallvec![a]);
    Val::Reg(d)
}
