//! `min` of half precision and bfloat16: the smaller of two values. A single NaN loses.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `min{.ftz}{.NaN}{.xorsign.abs}.type d, a, b`.
pub const MIN_F16: Form = Form {
    opcode: "min",
    words: &[],
    section: "Half Precision Floating Point Instructions: min",
    qualifiers: &[FTZ, NAN, XORSIGN, ABS, one_of(Role::Type, F16_F16X2)],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE), reg("b", TYPE)],
    needs: Needs::on(7, 0, SM_80),
    legal: signs,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        let op = Pure::FMin { ty, ftz: x.u.has(Role::Ftz), nan: x.u.has(Role::Nan), xorsign: x.u.has(Role::XorSign) };
        apply(x, op, ty.ty(), 2);
    }),
};

/// `min{.NaN}{.xorsign.abs}.type d, a, b`.
pub const MIN_BF16: Form = Form {
    opcode: "min",
    words: &[],
    section: "Half Precision Floating Point Instructions: min",
    qualifiers: &[NAN, XORSIGN, ABS, one_of(Role::Type, BF16_BF16X2)],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE), reg("b", TYPE)],
    needs: Needs::on(7, 0, SM_80),
    legal: signs,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        let op = Pure::FMin { ty, ftz: x.u.has(Role::Ftz), nan: x.u.has(Role::Nan), xorsign: x.u.has(Role::XorSign) };
        apply(x, op, ty.ty(), 2);
    }),
};

/// Optional `.NaN`.
pub(super) const NAN: Group = maybe(Role::Nan, &[choice(".NaN", Value::Flag)]);

/// `.xorsign` and `.abs` are written together.
pub(super) fn signs(u: &Use) -> Result<Needs, Reason> {
    match (u.has(Role::XorSign), u.has(Role::Flag)) {
        (true, true) => Ok(Needs::on(7, 2, SM_86)),
        (true, false) => Err(Reason::new("`.xorsign` needs `.abs`").at(".xorsign").help("write `.xorsign.abs`")),
        (false, true) => Err(Reason::new("`.abs` needs `.xorsign`").at(".abs")),
        (false, false) => Ok(Needs::NONE),
    }
}
