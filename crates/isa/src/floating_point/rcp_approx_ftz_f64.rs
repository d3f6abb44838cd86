//! `rcp.approx.ftz.f64`: a gross reciprocal, made of the upper word of a double and giving an upper word.

use handloom_ir::simt::{Exactness, Pure, Val};
use handloom_ir::types::{Cmp, Float, Int, Rounding, Ty};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `rcp.approx.ftz.f64 d, a`.
pub const RCP_APPROX_FTZ_F64: Form = Form {
    opcode: "rcp",
    words: &[".approx", ".ftz"],
    section: "Floating Point Instructions: rcp.approx.ftz.f64",
    qualifiers: &[one_of(Role::Type, ONLY_F64)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::on(2, 1, SM_20),
    legal: always,
    semantics: Semantics::Build(|x| {
        gross(x, |x, a| {
            x.b.pure(Pure::FRcp { mode: plain(Float::F64), exact: Exactness::Ieee(Rounding::Nearest) }, Ty::B64, &[a])
        })
    }),
};

/// A function of the upper word of a double: the lower word counts as zero, subnormals as zero with their sign; the same of the result.
pub(super) fn gross(x: &mut Cx<'_, '_>, f: fn(&mut Cx<'_, '_>, Val) -> Val) {
    let a = x.src(0);
    let upper = x.b.half(a, true);
    let upper = flush(x, upper);
    let cut = x.b.pack(Val::Imm(0, Ty::B32), upper);
    let value = f(x, cut);
    let upper = x.b.half(value, true);
    let upper = flush(x, upper);
    let value = x.b.pack(Val::Imm(0, Ty::B32), upper);
    // The bits that are cut may be all that makes a NaN: the test is on the whole source. A NaN result is canonical.
    let is_nan = x.b.pure(Pure::FCmp { cmp: Cmp::Nan, ty: Float::F64, ftz: false }, Ty::P, &[a, a]);
    let value = x.b.select(is_nan, Val::Imm(0x7fff_ffff_0000_0000, Ty::B64), value);
    x.set(value);
}

/// The upper word of a double with subnormals as zero; the sign stays.
fn flush(x: &mut Cx<'_, '_>, upper: Val) -> Val {
    let exponent = x.b.and(upper, Val::Imm(0x7ff0_0000, Ty::B32));
    let sign = x.b.and(upper, Val::Imm(0x8000_0000, Ty::B32));
    let small = x.b.pure(Pure::ICmp(Cmp::Eq, Int::U32), Ty::P, &[exponent, Val::Imm(0, Ty::B32)]);
    x.b.select(small, sign, upper)
}
