//! `rsqrt.approx.ftz.f64`: a gross reciprocal square root, made of the upper word of a double and giving an upper word.

use handloom_ir::simt::Pure;
use handloom_ir::types::{Float, Ty};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

use super::rcp_approx_ftz_f64::gross;

/// `rsqrt.approx.ftz.f64 d, a`.
pub const RSQRT_APPROX_FTZ_F64: Form = Form {
    opcode: "rsqrt",
    words: &[".approx", ".ftz"],
    section: "Floating Point Instructions: rsqrt.approx.ftz.f64",
    qualifiers: &[one_of(Role::Type, ONLY_F64)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::on(4, 0, SM_20),
    legal: always,
    semantics: Semantics::Build(|x| gross(x, |x, a| x.b.pure(Pure::FRsqrt(plain(Float::F64)), Ty::B64, &[a]))),
};
