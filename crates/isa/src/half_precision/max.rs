//! `max` of half precision and bfloat16: the larger of two values. A single NaN loses.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

use super::min::{NAN, signs};

/// `max{.ftz}{.NaN}{.xorsign.abs}.type d, a, b`.
pub const MAX_F16: Form = Form {
    opcode: "max",
    words: &[],
    section: "Half Precision Floating Point Instructions: max",
    qualifiers: &[FTZ, NAN, XORSIGN, ABS, one_of(Role::Type, F16_F16X2)],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE), reg("b", TYPE)],
    needs: Needs::on(7, 0, SM_80),
    legal: signs,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        let op = Pure::FMax { ty, ftz: x.u.has(Role::Ftz), nan: x.u.has(Role::Nan), xorsign: x.u.has(Role::XorSign) };
        apply(x, op, ty.ty(), 2);
    }),
};

/// `max{.NaN}{.xorsign.abs}.type d, a, b`.
pub const MAX_BF16: Form = Form {
    opcode: "max",
    words: &[],
    section: "Half Precision Floating Point Instructions: max",
    qualifiers: &[NAN, XORSIGN, ABS, one_of(Role::Type, BF16_BF16X2)],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE), reg("b", TYPE)],
    needs: Needs::on(7, 0, SM_80),
    legal: signs,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        let op = Pure::FMax { ty, ftz: x.u.has(Role::Ftz), nan: x.u.has(Role::Nan), xorsign: x.u.has(Role::XorSign) };
        apply(x, op, ty.ty(), 2);
    }),
};
