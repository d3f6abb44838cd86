//! `mul` of integers: a half of the product of two values, or all of it.

use handloom_ir::types::ScalarType::*;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `mul.mode.type d, a, b`: the lower or the upper half of the product.
pub const MUL: Form = Form {
    opcode: "mul",
    words: &[],
    section: "Integer Arithmetic Instructions: mul",
    qualifiers: &[HALF, one_of(Role::Type, INTS)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let value = product(x);
        x.set(value);
    }),
};

/// `mul.wide.type d, a, b`: the product at twice the width of the type.
pub const MUL_WIDE: Form = Form {
    opcode: "mul",
    words: &[],
    section: "Integer Arithmetic Instructions: mul",
    qualifiers: &[WIDE, one_of(Role::Type, NARROW_INTS)],
    dst: &[reg("d", Is::Twice(Role::Type))],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let value = product(x);
        x.set(value);
    }),
};

/// `.wide`, which is written where `.lo` and `.hi` do.
pub(super) const WIDE: Group = one_of(Role::Half, &[choice(".wide", Value::Tag(Half::Wide as u16))]);

/// Types that have a product of twice their width.
pub(super) const NARROW_INTS: &[Choice] = &[ty(".u16", U16), ty(".u32", U32), ty(".s16", S16), ty(".s32", S32)];
