//! `fma`: a product plus a third value, rounded once.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `fma.rnd{.ftz}{.sat}.f32 d, a, b, c`.
pub const FMA_F32: Form = Form {
    opcode: "fma",
    words: &[],
    section: "Floating Point Instructions: fma",
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

/// `fma.rnd{.ftz}.f32x2 d, a, b, c`: two of them in 64 bits.
pub const FMA_F32X2: Form = Form {
    opcode: "fma",
    words: &[],
    section: "Floating Point Instructions: fma",
    qualifiers: &[ROUND, FTZ, one_of(Role::Type, ONLY_F32X2)],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE), reg("b", TYPE), reg("c", TYPE)],
    needs: Needs::on(8, 6, SM_100),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::FFma(mode(x.u, ty)), ty.ty(), 3);
    }),
};

/// `fma.rnd.f64 d, a, b, c`.
pub const FMA_F64: Form = Form {
    opcode: "fma",
    words: &[],
    section: "Floating Point Instructions: fma",
    qualifiers: &[ROUND, one_of(Role::Type, ONLY_F64)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE), val("c", TYPE)],
    needs: Needs::ptx(1, 4),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::FFma(mode(x.u, ty)), ty.ty(), 3);
    }),
};
