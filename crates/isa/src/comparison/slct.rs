//! `slct`: one of two values by the sign of a third.

use handloom_ir::simt::{Pure, Val};
use handloom_ir::types::{Cmp, Float, Int, ScalarType::*, Ty};

use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `slct.dtype.s32 d, a, b, c`: `a` if `c` is not negative, else `b`.
pub const SLCT_S32: Form = Form {
    opcode: "slct",
    words: &[],
    section: "Comparison and Selection Instructions: slct",
    qualifiers: &[one_of(Role::Type, ORDINARY), one_of(Role::Type2, &[ty(".s32", S32)])],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE), val("c", TYPE2)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let p = x.b.pure(Pure::ICmp(Cmp::Ge, Int::S32), Ty::P, &[x.src(2), Val::Imm(0, Ty::B32)]);
        let value = x.b.select(p, x.src(0), x.src(1));
        x.set(value);
    }),
};

/// `slct{.ftz}.dtype.f32 d, a, b, c`: `a` if `c` is at least zero, else `b`; a NaN chooses `b`.
pub const SLCT_F32: Form = Form {
    opcode: "slct",
    words: &[],
    section: "Comparison and Selection Instructions: slct",
    qualifiers: &[FTZ, one_of(Role::Type, ORDINARY), one_of(Role::Type2, ONLY_F32)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE), val("c", TYPE2)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let op = Pure::FCmp { cmp: Cmp::Ge, ty: Float::F32, ftz: x.u.has(Role::Ftz) };
        let p = x.b.pure(op, Ty::P, &[x.src(2), Val::Imm(0, Ty::B32)]);
        let value = x.b.select(p, x.src(0), x.src(1));
        x.set(value);
    }),
};
