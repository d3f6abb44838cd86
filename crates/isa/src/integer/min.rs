//! `min` of integers: the smaller of two values.

use handloom_ir::simt::{Pure, Val};
use handloom_ir::types::{Int, ScalarType, ScalarType::*, Ty};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `min.type d, a, b`.
pub const MIN: Form = Form {
    opcode: "min",
    words: &[],
    section: "Integer Arithmetic Instructions: min",
    qualifiers: &[one_of(Role::Type, INTS)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let int = Int::of(x.u.ty(Role::Type));
        apply(x, Pure::Min(int), int.ty, 2);
    }),
};

/// `min.relu.s32 d, a, b`: 0 if the result is negative.
pub const MIN_RELU: Form = Form {
    opcode: "min",
    words: &[".relu"],
    section: "Integer Arithmetic Instructions: min",
    qualifiers: &[one_of(Role::Type, &[ty(".s32", S32)])],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::on(8, 0, SM_90),
    legal: always,
    semantics: Semantics::Build(|x| {
        let value = x.b.pure(Pure::Min(Int::S32), Ty::B32, &[x.src(0), x.src(1)]);
        let value = x.b.pure(Pure::Max(Int::S32), Ty::B32, &[value, Val::Imm(0, Ty::B32)]);
        x.set(value);
    }),
};

/// `min{.relu}.type d, a, b` of packed types: part by part.
pub const MIN_PACKED: Form = Form {
    opcode: "min",
    words: &[],
    section: "Integer Arithmetic Instructions: min",
    qualifiers: &[
        RELU,
        one_of(
            Role::Type,
            &[
                ty_if(".u16x2", U16x2, Needs::on(8, 0, SM_90)),
                ty_if(".s16x2", S16x2, Needs::on(8, 0, SM_90)),
                ty_if(".u8x4", U8x4, Needs::on(9, 2, FAMILY_120)),
                ty_if(".s8x4", S8x4, Needs::on(9, 2, FAMILY_120)),
            ],
        ),
    ],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE), reg("b", TYPE)],
    needs: Needs::ptx(8, 0),
    legal: signed_relu,
    semantics: Semantics::Build(|x| by_parts(x, x.u.ty(Role::Type), 2, part)),
};

fn part(x: &mut Cx<'_, '_>, t: ScalarType, s: &[Val]) -> Val {
    let int = Int { ty: Ty::B16, signed: t.is_signed() };
    let value = x.b.pure(Pure::Min(int), Ty::B16, s);
    if x.u.has(Role::Relu) { x.b.pure(Pure::Max(int), Ty::B16, &[value, Val::Imm(0, Ty::B16)]) } else { value }
}

/// `.relu` belongs to signed types.
pub(super) fn signed_relu(u: &Use) -> Result<Needs, Reason> {
    if u.has(Role::Relu) && !u.ty(Role::Type).is_signed() {
        let reason = Reason::new(format!("`.relu` does not go with `{}`", u.ty(Role::Type)));
        return Err(reason.at(".relu").help("`.relu` takes `.s32`, `.s16x2` and `.s8x4`"));
    }
    Ok(Needs::NONE)
}
