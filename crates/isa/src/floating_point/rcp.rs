//! `rcp`: the reciprocal of a value.
//!
//! The assembler lets `.ftz` pass with a rounding and `.f64`, against the manual; it is refused here.

use handloom_ir::simt::{Exactness, Pure};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `rcp.approx{.ftz}.f32 d, a`.
pub const RCP_APPROX: Form = Form {
    opcode: "rcp",
    words: &[".approx"],
    section: "Floating Point Instructions: rcp",
    qualifiers: &[FTZ, one_of(Role::Type, ONLY_F32)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::ptx(1, 4),
    legal: always,
    semantics: Semantics::Build(|x| {
        let mode = mode(x.u, float(x.u));
        apply(x, Pure::FRcp { mode, exact: Exactness::Approx }, mode.ty.ty(), 1);
    }),
};

/// `rcp.rnd{.ftz}.f32 d, a`: correctly rounded.
pub const RCP_F32: Form = Form {
    opcode: "rcp",
    words: &[],
    section: "Floating Point Instructions: rcp",
    qualifiers: &[ROUND, FTZ, one_of(Role::Type, ONLY_F32)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::on(1, 4, SM_20),
    legal: always,
    semantics: Semantics::Build(|x| {
        let mode = mode(x.u, float(x.u));
        apply(x, Pure::FRcp { mode, exact: Exactness::Ieee(mode.round) }, mode.ty.ty(), 1);
    }),
};

/// `rcp.rnd.f64 d, a`: correctly rounded.
pub const RCP_F64: Form = Form {
    opcode: "rcp",
    words: &[],
    section: "Floating Point Instructions: rcp",
    qualifiers: &[ROUND, one_of(Role::Type, ONLY_F64)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::ptx(1, 4),
    legal: always,
    semantics: Semantics::Build(|x| {
        let mode = mode(x.u, float(x.u));
        apply(x, Pure::FRcp { mode, exact: Exactness::Ieee(mode.round) }, mode.ty.ty(), 1);
    }),
};
