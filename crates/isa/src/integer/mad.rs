//! `mad` of integers: the product of two values, or a half of it, plus a third.

use handloom_ir::simt::Pure;
use handloom_ir::types::{Int, ScalarType::*};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

use super::mul::{NARROW_INTS, WIDE};

/// `mad.mode.type d, a, b, c`: a half of the product plus `c`, wrapping.
pub const MAD: Form = Form {
    opcode: "mad",
    words: &[],
    section: "Integer Arithmetic Instructions: mad",
    qualifiers: &[HALF, one_of(Role::Type, INTS)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE), val("c", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(add_product),
};

/// `mad.wide.type d, a, b, c`: the product at twice the width plus `c` of that width.
pub const MAD_WIDE: Form = Form {
    opcode: "mad",
    words: &[],
    section: "Integer Arithmetic Instructions: mad",
    qualifiers: &[WIDE, one_of(Role::Type, NARROW_INTS)],
    dst: &[reg("d", Is::Twice(Role::Type))],
    src: &[val("a", TYPE), val("b", TYPE), val("c", Is::Twice(Role::Type))],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(add_product),
};

/// `mad.hi.sat.s32 d, a, b, c`: the upper half of the product plus `c`, clamped.
pub const MAD_HI_SAT: Form = Form {
    opcode: "mad",
    words: &[".sat"],
    section: "Integer Arithmetic Instructions: mad",
    qualifiers: &[
        lead(Role::Half, &[choice(".hi", Value::Tag(Half::Hi as u16))]),
        one_of(Role::Type, &[ty(".s32", S32)]),
    ],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE), val("c", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let high = product(x);
        let value = x.b.pure(Pure::AddSat(Int::S32), Int::S32.ty, &[high, x.src(2)]);
        x.set(value);
    }),
};

fn add_product(x: &mut Cx<'_, '_>) {
    let product = product(x);
    let value = x.b.add(product, x.src(2));
    x.set(value);
}
