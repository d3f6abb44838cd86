//! `dp2a`: the dot product of two halves and two bytes, added to a word.

use handloom_ir::simt::Pure;
use handloom_ir::types::Ty;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

use super::dp4a::SUM;

/// `dp2a.mode.atype.btype d, a, b, c`: `d = c +` the dot product of the halves of `a` and the lower or upper two bytes of `b`.
pub const DP2A: Form = Form {
    opcode: "dp2a",
    words: &[],
    section: "Integer Arithmetic Instructions: dp2a",
    qualifiers: &[HALF, one_of(Role::Type, INTS_32), one_of(Role::Type2, INTS_32)],
    dst: &[reg("d", SUM)],
    src: &[val("a", TYPE), val("b", TYPE2), val("c", SUM)],
    needs: Needs::on(5, 0, SM_61),
    legal: always,
    semantics: Semantics::Build(|x| {
        let (a_signed, b_signed) = (x.u.ty(Role::Type).is_signed(), x.u.ty(Role::Type2).is_signed());
        apply(x, Pure::Dp2a { a_signed, b_signed, hi: half(x.u) == Half::Hi }, Ty::B32, 3);
    }),
};
