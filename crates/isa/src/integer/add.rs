//! `add` of integers: the sum of two values, wrapping or clamped.

use handloom_ir::simt::{Pure, Val};
use handloom_ir::types::{Int, ScalarType, ScalarType::*, Ty};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `add.type d, a, b`: `d = a + b`, wrapping.
pub const ADD: Form = Form {
    opcode: "add",
    words: &[],
    section: "Integer Arithmetic Instructions: add",
    qualifiers: &[one_of(Role::Type, INTS)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let ty = x.u.ty(Role::Type).ty();
        apply(x, Pure::Add(ty), ty, 2);
    }),
};

/// `add.sat.type d, a, b`: `d = a + b`, clamped to the range of the type.
pub const ADD_SAT: Form = Form {
    opcode: "add",
    words: &[".sat"],
    section: "Integer Arithmetic Instructions: add",
    qualifiers: &[one_of(Role::Type, &[ty(".s32", S32), ty_if(".u32", U32, Needs::on(9, 2, FAMILY_120))])],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let int = Int::of(x.u.ty(Role::Type));
        apply(x, Pure::AddSat(int), int.ty, 2);
    }),
};

/// Packed types, by their parts.
const PACKED: &[Choice] = &[
    ty_if(".u16x2", U16x2, Needs::on(8, 0, SM_90)),
    ty_if(".s16x2", S16x2, Needs::on(8, 0, SM_90)),
    ty_if(".u8x4", U8x4, Needs::on(9, 2, FAMILY_120)),
    ty_if(".s8x4", S8x4, Needs::on(9, 2, FAMILY_120)),
];

/// `add{.sat}.type d, a, b` of packed types: part by part.
pub const ADD_PACKED: Form = Form {
    opcode: "add",
    words: &[],
    section: "Integer Arithmetic Instructions: add",
    qualifiers: &[SAT, one_of(Role::Type, PACKED)],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE), reg("b", TYPE)],
    needs: Needs::ptx(8, 0),
    legal: |u| Ok(if u.has(Role::Sat) { Needs::on(9, 2, FAMILY_120) } else { Needs::NONE }),
    semantics: Semantics::Build(|x| by_parts(x, x.u.ty(Role::Type), 2, part)),
};

fn part(x: &mut Cx<'_, '_>, t: ScalarType, s: &[Val]) -> Val {
    let clamped = x.u.has(Role::Sat);
    if clamped && is_pair(t) {
        return x.b.pure(Pure::AddSat(Int { ty: Ty::B16, signed: t.is_signed() }), Ty::B16, s);
    }
    let value = x.b.add(s[0], s[1]);
    if clamped { clamp_byte(x, t, value) } else { value }
}
