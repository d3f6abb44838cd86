//! `brev`: bits in reverse order.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `brev.type d, a`.
pub const BREV: Form = Form {
    opcode: "brev",
    words: &[],
    section: "Integer Arithmetic Instructions: brev",
    qualifiers: &[one_of(Role::Type, WIDE_BITS)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::on(2, 0, SM_20),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = x.u.ty(Role::Type).ty();
        apply(x, Pure::Brev(ty), ty, 1);
    }),
};
