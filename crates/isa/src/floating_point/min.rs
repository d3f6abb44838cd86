//! `min` of floats: the smaller of two or three values. A single NaN loses.

use handloom_ir::simt::{Pure, Val};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `min{.ftz}{.NaN}{.xorsign.abs}.f32 d, a, b` and `min{.ftz}{.NaN}{.abs}.f32 d, a, b, c`.
pub const MIN_F32: Form = Form {
    opcode: "min",
    words: &[],
    section: "Floating Point Instructions: min",
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
        let op = Pure::FMin { ty: float(x.u), ftz: x.u.has(Role::Ftz), nan: x.u.has(Role::Nan), xorsign };
        let mut value = sources[0];
        for &s in &sources[1..] {
            value = x.b.pure(op, float(x.u).ty(), &[value, s]);
        }
        x.set(value);
    }),
};

/// `min.f64 d, a, b`.
pub const MIN_F64: Form = Form {
    opcode: "min",
    words: &[],
    section: "Floating Point Instructions: min",
    qualifiers: &[one_of(Role::Type, ONLY_F64)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = float(x.u);
        apply(x, Pure::FMin { ty, ftz: false, nan: false, xorsign: false }, ty.ty(), 2);
    }),
};

/// What of `.xorsign` and `.abs` goes with two and with three sources.
pub(super) fn magnitudes_and_signs(u: &Use) -> Result<Needs, Reason> {
    match (u.has(Role::XorSign), u.has(Role::Flag), u.n_src) {
        (true, _, 3) => Err(Reason::new("three sources do not take `.xorsign`").at(".xorsign")),
        (_, _, 3) => Ok(Needs::on(8, 8, SM_100)),
        (true, true, _) => Ok(Needs::on(7, 2, SM_86)),
        (true, false, _) => Err(Reason::new("`.xorsign` needs `.abs`").at(".xorsign").help("write `.xorsign.abs`")),
        (false, true, _) => Err(Reason::new("`.abs` of two sources needs `.xorsign`").at(".abs")),
        (false, false, _) => Ok(Needs::NONE),
    }
}
