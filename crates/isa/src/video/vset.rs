//! `vset`: a comparison of two parts of words.

use handloom_ir::simt::VideoOp;
use handloom_ir::types::ScalarType::U32;

use super::scalar::*;
use crate::compose::cmp;
use crate::form::*;
use crate::words::*;

/// Types of the sources; the destination has none, it is unsigned.
const SOURCE_TYPES: [Group; 2] = [one_of(Role::Type, INTS_32), one_of(Role::Type2, INTS_32)];
const A: Operand = part_of("a", TYPE);
const B: Operand = part_of("b", TYPE2);
const C: Operand = whole("c", Is::Fixed(U32));

/// `vset.atype.btype.cmp d{.dsel}, a{.asel}, b{.bsel}{, c}`: 1 or 0, alone or merged into `c`.
pub const VSET: Form = Form {
    opcode: "vset",
    words: &[],
    section: "Scalar Video Instructions: vset",
    qualifiers: &[SOURCE_TYPES[0], SOURCE_TYPES[1], COMPARISON],
    dst: &[Operand { is: Is::Fixed(U32), ..PART_OF_D }],
    src: &[A, B, C.optional()],
    needs: SCALAR,
    legal: merges,
    semantics: Semantics::Build(|x| of_signs(x, VideoOp::Set(cmp(x.u)), false, Role::Type, Role::Type2)),
};

/// `vset.atype.btype.cmp.op2 d, a{.asel}, b{.bsel}, c`: 1 or 0, and `c`.
pub const VSET_OP2: Form = Form {
    qualifiers: &[SOURCE_TYPES[0], SOURCE_TYPES[1], COMPARISON, OP2],
    dst: &[Operand { is: Is::Fixed(U32), ..D }],
    src: &[A, B, C],
    legal: always,
    ..VSET
};
