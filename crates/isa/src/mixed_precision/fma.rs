//! `fma` of mixed precision: the product of two half values plus a single one, rounded once.

use handloom_ir::simt::{Cvt, Pure, Val};
use handloom_ir::types::{ScalarType::*, Ty};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `fma.rnd{.sat}.f32.abtype d, a, b, c`.
pub const FMA_MIXED: Form = Form {
    opcode: "fma",
    words: &[],
    section: "Mixed Precision Floating Point Instructions: fma",
    qualifiers: &[ROUND, SAT, one_of(Role::Type, ONLY_F32), HALVES],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE2), reg("b", TYPE2), val("c", TYPE)],
    needs: Needs::on(8, 6, SM_100),
    legal: always,
    semantics: Semantics::Build(|x| {
        let (a, b) = (widened(x, 0), widened(x, 1));
        let value = x.b.pure(Pure::FFma(mode(x.u, float(x.u))), Ty::B32, &[a, b, x.src(2)]);
        x.set(value);
    }),
};

/// The type of the half sources.
pub(super) const HALVES: Group = one_of(Role::Type2, &[ty(".f16", F16), ty(".bf16", BF16)]);

/// A half source as a single value, exactly.
pub(super) fn widened(x: &mut Cx<'_, '_>, i: usize) -> Val {
    let op = Cvt::plain(F32, x.u.ty(Role::Type2));
    x.b.pure(Pure::Cvt(op), Ty::B32, &[x.src(i)])
}
