//! `mad24`: the product of two 24-bit values plus a third.

use handloom_ir::simt::Pure;
use handloom_ir::types::{Int, ScalarType::*};

use crate::form::*;
use crate::target::Needs;
use crate::words::*;

use super::mul24::product24;

/// `mad24.mode.type d, a, b, c`: part of the product plus `c`, wrapping.
pub const MAD24: Form = Form {
    opcode: "mad24",
    words: &[],
    section: "Integer Arithmetic Instructions: mad24",
    qualifiers: &[HALF, one_of(Role::Type, INTS_32)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE), val("c", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let part = product24(x);
        let value = x.b.add(part, x.src(2));
        x.set(value);
    }),
};

/// `mad24.hi.sat.s32 d, a, b, c`: bits 47 to 16 of the product plus `c`, clamped.
pub const MAD24_HI_SAT: Form = Form {
    opcode: "mad24",
    words: &[".sat"],
    section: "Integer Arithmetic Instructions: mad24",
    qualifiers: &[
        lead(Role::Half, &[choice(".hi", Value::Tag(Half::Hi as u16))]),
        one_of(Role::Type, &[ty(".s32", S32)]),
    ],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE), val("c", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let high = product24(x);
        let value = x.b.pure(Pure::AddSat(Int::S32), Int::S32.ty, &[high, x.src(2)]);
        x.set(value);
    }),
};
