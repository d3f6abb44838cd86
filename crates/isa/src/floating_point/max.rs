//! `max` of floats: the larger of two or three values. A single NaN loses.

use handloom_ir::simt::{Pure, Val};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

use super::min::magnitudes_and_signs;

/// `max{.ftz}{.NaN}{.xorsign.abs}.f32 d, a, b` and `max{.ftz}{.NaN}{.abs}.f32 d, a, b, c`.
pub const MAX_F32: Form = Form {
    opcode: "max",
    words: &[],
    section: "Floating Point Instructions: max",
    qualifiers: &[
        FTZ,
        maybe(Role::Nan, &[choice_if(".NaN", Value::Flag, Needs::on(7, 0, SM_80))]),
        XORSIGN,
        ABS,
        one_of(Role::Type, ONLY_F32),
    ],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE), val("c", TYPE).optional()],
    needs: Needs::ptx(1, 0),
    legal: magnitudes_and_signs,
    semantics: Semantics::Build(|x| {
        let mut sources: Vec<Val> = (0..x.u.n_src).map(|i| x.src(i)).collect();
        let xorsign = x.u.has(Role::XorSign);
        if x.u.has(Role::Flag) && !xorsign {
            let op = Pure::FAbs { ty: float(x.u), ftz: x.u.has(Role::Ftz) };
            sources = sources.iter().map(|&s| x.b.pure(op, float(x.u).ty(), &[s])).collect();
        }
        let op = Pure::FMax { ty: float(x.u), ftz: x.u.has(Role::Ftz), nan: x.u.has(Role::Nan), xorsign };
        let mut value = sources[0];
        for &s in &sources[1..] {
            value = x.b.pure(op, float(x.u).ty(), &[value, s]);
        }
        x.set(value);
    }),
};

/// `max.f64 d, a, b`.
pub const MAX_F64: Form = Form {
    opcode: "max",
    words: &[],
    section: "Floating Point Instructions: max",
    qualifiers: &[one_of(Role::Type, ONLY_F64)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::FMax { ty, ftz: false, nan: false, xorsign: false }, ty.ty(), 2);
    }),
};
