//! `cnot`: 1 if a value is 0, else 0, as `!` of C.

use handloom_ir::simt::Pure;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `cnot.type d, a`.
pub const CNOT: Form = Form {
    opcode: "cnot",
    words: &[],
    section: "Logic and Shift Instructions: cnot",
    qualifiers: &[one_of(Role::Type, BITS)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = x.u.ty(Role::Type).ty();
        apply(x, Pure::Cnot(ty), ty, 1);
    }),
};
