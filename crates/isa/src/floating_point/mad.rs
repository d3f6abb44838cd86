//! `mad` of floats: the same as `fma` on every target that is known here.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `mad.rnd{.ftz}{.sat}.f32 d, a, b, c`.
pub const MAD_F32: Form = Form {
    opcode: "mad",
    words: &[],
    section: "Floating Point Instructions: mad",
    qualifiers: &[ROUND, FTZ, SAT, one_of(Role::Type, ONLY_F32)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE), val("c", TYPE)],
    needs: Needs::on(2, 0, SM_20),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::FFma(mode(x.u, ty)), ty.ty(), 3);
    }),
};

/// `mad.rnd.f64 d, a, b, c`.
pub const MAD_F64: Form = Form {
    opcode: "mad",
    words: &[],
    section: "Floating Point Instructions: mad",
    qualifiers: &[ROUND, one_of(Role::Type, ONLY_F64)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE), val("c", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::FFma(mode(x.u, ty)), ty.ty(), 3);
    }),
};
