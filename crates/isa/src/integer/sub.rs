//! `sub` of integers: the difference of two values, wrapping or clamped.

use handloom_ir::simt::{Pure, Val};
use handloom_ir::types::{Int, ScalarType, ScalarType::*};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `sub.type d, a, b`: `d = a - b`, wrapping.
pub const SUB: Form = Form {
    opcode: "sub",
    words: &[],
    section: "Integer Arithmetic Instructions: sub",
    qualifiers: &[one_of(Role::Type, INTS)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = x.u.ty(Role::Type).ty();
        apply(x, Pure::Sub(ty), ty, 2);
    }),
};

/// `sub.sat.type d, a, b`: `d = a - b`, clamped to the range of the type.
pub const SUB_SAT: Form = Form {
    opcode: "sub",
    words: &[".sat"],
    section: "Integer Arithmetic Instructions: sub",
    qualifiers: &[one_of(Role::Type, &[ty(".s32", S32)])],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let int = Int::of(x.u.ty(Role::Type));
        apply(x, Pure::SubSat(int), int.ty, 2);
    }),
};

/// Packed types, by their parts.
const PACKED: &[Choice] = &[ty(".u8x4", U8x4), ty(".s8x4", S8x4)];

/// `sub{.sat}.type d, a, b` of packed types: part by part.
pub const SUB_PACKED: Form = Form {
    opcode: "sub",
    words: &[],
    section: "Integer Arithmetic Instructions: sub",
    qualifiers: &[SAT, one_of(Role::Type, PACKED)],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE), reg("b", TYPE)],
    needs: Needs::on(9, 2, FAMILY_120),
    legal: always,
    semantics: Semantics::Build(|x| by_parts(x, x.u.ty(Role::Type), 2, part)),
};

fn part(x: &mut Cx<'_, '_>, t: ScalarType, s: &[Val]) -> Val {
    let value = x.b.sub(s[0], s[1]);
    if x.u.has(Role::Sat) { clamp_byte(x, t, value) } else { value }
}
