//! `rsqrt`: the reciprocal of the square root of a value.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `rsqrt.approx{.ftz}.f32 d, a`.
pub const RSQRT_F32: Form = Form {
    opcode: "rsqrt",
    words: &[".approx"],
    section: "Floating Point Instructions: rsqrt",
    qualifiers: &[FTZ, one_of(Role::Type, ONLY_F32)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::ptx(1, 4),
    legal: always,
    semantics: Semantics::Build(|x| {
        let mode = mode(x.u, float(x.u));
        apply(x, Pure::FRsqrt(mode), mode.ty.ty(), 1);
    }),
};

/// `rsqrt.approx.f64 d, a`.
pub const RSQRT_F64: Form = Form {
    opcode: "rsqrt",
    words: &[".approx"],
    section: "Floating Point Instructions: rsqrt",
    qualifiers: &[one_of(Role::Type, ONLY_F64)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::ptx(1, 4),
    legal: always,
    semantics: Semantics::Build(|x| {
        let mode = mode(x.u, float(x.u));
        apply(x, Pure::FRsqrt(mode), mode.ty.ty(), 1);
    }),
};
