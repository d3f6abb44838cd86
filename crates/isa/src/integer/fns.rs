//! `fns`: the position of the n-th set bit.

use handloom_ir::simt::Pure;
use handloom_ir::types::{ScalarType::B32, Ty};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `fns.b32 d, mask, base, offset`: counted from bit `base`, upwards or downwards by the sign of `offset`; all ones if there is none.
///
/// The assembler takes bits of any kind for all operands.
pub const FNS: Form = Form {
    opcode: "fns",
    words: &[],
    section: "Integer Arithmetic Instructions: fns",
    qualifiers: &[one_of(Role::Type, &[ty(".b32", B32)])],
    dst: &[reg("d", TYPE)],
    src: &[val("mask", TYPE), val("base", TYPE), val("offset", TYPE)],
    needs: Needs::on(6, 0, SM_30),
    legal: always,
    semantics: Semantics::Build(|x| apply(x, Pure::Fns, Ty::B32, 3)),
};
