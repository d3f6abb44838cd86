//! `dp4a`: the dot product of four bytes, added to a word.

use handloom_ir::simt::Pure;
use handloom_ir::types::{ScalarType, Ty};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `dp4a.atype.btype d, a, b, c`: `d = c +` the dot product of the bytes of `a` and `b`.
pub const DP4A: Form = Form {
    opcode: "dp4a",
    words: &[],
    section: "Integer Arithmetic Instructions: dp4a",
    qualifiers: &[one_of(Role::Type, INTS_32), one_of(Role::Type2, INTS_32)],
    dst: &[reg("d", SUM)],
    src: &[val("a", TYPE), val("b", TYPE2), val("c", SUM)],
    needs: Needs::on(5, 0, SM_61),
    legal: always,
    semantics: Semantics::Build(|x| {
        let (a_signed, b_signed) = (x.u.ty(Role::Type).is_signed(), x.u.ty(Role::Type2).is_signed());
        apply(x, Pure::Dp4a { a_signed, b_signed }, Ty::B32, 3);
    }),
};

/// The type of the sum, of either sign: as the assembler has it, a register of type `.f16x2` holds factors but no sum.
pub(super) const SUM: Is = Is::Fixed(ScalarType::U32);
