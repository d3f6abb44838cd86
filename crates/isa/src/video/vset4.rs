//! `vset4`: comparisons of bytes.

use super::scalar::COMPARISON;
use super::simd::*;
use crate::form::*;
use crate::words::INTS_32;

/// `vset4.atype.btype.cmp d{.mask}, a{.asel}, b{.bsel}, c`: 1 or 0 for bytes, merged into `c`.
///
/// Choice: where the mask has no element, the section's text takes one from `b`, its pseudocode from `c`. It comes from `c`, as in
/// the other instructions.
pub const VSET4: Form = Form {
    opcode: "vset4",
    words: &[],
    section: "SIMD Video Instructions: vset4",
    qualifiers: &[one_of(Role::Type, INTS_32), one_of(Role::Type2, INTS_32), COMPARISON],
    dst: &[SET_D4],
    src: &SET_SOURCES4,
    needs: SIMD,
    legal: always,
    semantics: Semantics::Build(|x| set(x, 4, false)),
};

/// `vset4.atype.btype.cmp.add d{.mask}, a{.asel}, b{.bsel}, c`: the number of bytes whose comparison holds, added to `c`.
pub const VSET4_ADD: Form = Form { words: ADD, semantics: Semantics::Build(|x| set(x, 4, true)), ..VSET4 };
