//! `mul` of floats: the product of two values, rounded once.
//!
//! No rounding means to nearest. Products and sums are never contracted here.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `mul{.rnd}{.ftz}{.sat}.f32 d, a, b`.
pub const MUL_F32: Form = Form {
    opcode: "mul",
    words: &[],
    section: "Floating Point Instructions: mul",
    qualifiers: &[ROUND_OPT, FTZ, SAT, one_of(Role::Type, ONLY_F32)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::FMul(mode(x.u, ty)), ty.ty(), 2);
    }),
};

/// `mul{.rnd}{.ftz}.f32x2 d, a, b`: two of them in 64 bits.
pub const MUL_F32X2: Form = Form {
    opcode: "mul",
    words: &[],
    section: "Floating Point Instructions: mul",
    qualifiers: &[ROUND_OPT, FTZ, one_of(Role::Type, ONLY_F32X2)],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE), reg("b", TYPE)],
    needs: Needs::on(8, 6, SM_100),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::FMul(mode(x.u, ty)), ty.ty(), 2);
    }),
};

/// `mul{.rnd}.f64 d, a, b`.
pub const MUL_F64: Form = Form {
    opcode: "mul",
    words: &[],
    section: "Floating Point Instructions: mul",
    qualifiers: &[ROUND_OPT, one_of(Role::Type, ONLY_F64)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::FMul(mode(x.u, ty)), ty.ty(), 2);
    }),
};
