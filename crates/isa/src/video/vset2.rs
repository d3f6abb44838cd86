//! `vset2`: comparisons of halves.

use super::scalar::COMPARISON;
use super::simd::*;
use crate::form::*;
use crate::words::INTS_32;

/// `vset2.atype.btype.cmp d{.mask}, a{.asel}, b{.bsel}, c`: 1 or 0 for halves, merged into `c`.
///
/// Choice: where the mask has no element, the section's text takes one from `b`, its pseudocode from `c`. It comes from `c`, as in
/// the other instructions.
pub const VSET2: Form = Form {
    opcode: "vset2",
    words: &[],
    section: "SIMD Video Instructions: vset2",
    qualifiers: &[one_of(Role::Type, INTS_32), one_of(Role::Type2, INTS_32), COMPARISON],
    dst: &[SET_D2],
    src: &SET_SOURCES2,
    needs: SIMD,
    legal: always,
    semantics: Semantics::Build(|x| set(x, 2, false)),
};

/// `vset2.atype.btype.cmp.add d{.mask}, a{.asel}, b{.bsel}, c`: the number of halves whose comparison holds, added to `c`.
pub const VSET2_ADD: Form = Form { words: ADD, semantics: Semantics::Build(|x| set(x, 2, true)), ..VSET2 };
