//! `neg` of integers: the value with the other sign, wrapping.

use handloom_ir::simt::Pure;
use handloom_ir::types::{ScalarType::*, Ty};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `neg.type d, a`: `d = -a`.
pub const NEG: Form = Form {
    opcode: "neg",
    words: &[],
    section: "Integer Arithmetic Instructions: neg",
    qualifiers: &[one_of(Role::Type, SIGNED_INTS)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = x.u.ty(Role::Type).ty();
        apply(x, Pure::Neg(ty), ty, 1);
    }),
};

/// `neg.s8x4 d, a`: part by part.
pub const NEG_PACKED: Form = Form {
    opcode: "neg",
    words: &[],
    section: "Integer Arithmetic Instructions: neg",
    qualifiers: &[one_of(Role::Type, &[ty(".s8x4", S8x4)])],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE)],
    needs: Needs::on(9, 2, FAMILY_120),
    legal: always,
    semantics: Semantics::Build(|x| by_parts(x, S8x4, 1, |x, _, s| x.b.pure(Pure::Neg(Ty::B16), Ty::B16, s))),
};
