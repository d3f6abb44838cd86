//! `cvt.pack`: cuts two words to small integers, clamping them, and packs them.

use handloom_ir::simt::{Pure, Val};
use handloom_ir::types::{Int, ScalarType::*, Ty};

use crate::form::*;
use crate::target::{Needs, TargetGate};
use crate::words::*;

/// The records.
pub const FORMS: &[&Form] = &[&CVT_PACK_16, &CVT_PACK];

/// `cvt.pack.sat.convertType.s32 d, a, b`: `a` in the upper half, `b` in the lower one.
pub const CVT_PACK_16: Form = Form {
    opcode: "cvt.pack",
    words: &[".sat"],
    section: "Data Movement and Conversion Instructions: cvt.pack",
    qualifiers: &[
        one_of(Role::Op, &[choice(".u16", code(16, false)), choice(".s16", code(16, true))]),
        one_of(Role::Type2, &[ty(".s32", S32)]),
    ],
    dst: &[reg("d", Is::Wider(U32))],
    src: &[val("a", Is::Relaxed(Role::Type2)), val("b", Is::Relaxed(Role::Type2))],
    needs: Needs::on(6, 5, SM_72),
    legal: always,
    semantics: Semantics::Build(|x| {
        let value = packed(x);
        x.set(value);
    }),
};

/// `cvt.pack.sat.convertType.s32.b32 d, a, b, c`: `b` lowest, `a` above it, the lower bits of `c` above both.
pub const CVT_PACK: Form = Form {
    opcode: "cvt.pack",
    words: &[".sat"],
    section: "Data Movement and Conversion Instructions: cvt.pack",
    qualifiers: &[
        one_of(
            Role::Op,
            &[
                choice_if(".u2", code(2, false), Needs::on(6, 5, SM_75)),
                choice_if(".s2", code(2, true), Needs::on(6, 5, SM_75)),
                choice_if(".u4", code(4, false), Needs::on(6, 5, SM_75)),
                choice_if(".s4", code(4, true), Needs::on(6, 5, SM_75)),
                choice(".u8", code(8, false)),
                choice(".s8", code(8, true)),
            ],
        ),
        one_of(Role::Type2, &[ty(".s32", S32)]),
        one_of(Role::Type3, &[ty(".b32", B32)]),
    ],
    dst: &[reg("d", Is::Wider(U32))],
    src: &[val("a", Is::Relaxed(Role::Type2)), val("b", Is::Relaxed(Role::Type2)), val("c", Is::Relaxed(Role::Type3))],
    needs: Needs::on(6, 5, SM_72),
    legal: always,
    semantics: Semantics::Build(|x| {
        let low = packed(x);
        let (bits, _) = target_type(x.u);
        let above = x.b.pure(Pure::Shl(Ty::B32), Ty::B32, &[x.src(2), Val::Imm(2 * bits, Ty::B32)]);
        let value = x.b.or(low, above);
        x.set(value);
    }),
};

const SM_72: &[TargetGate] = &[TargetGate::AtLeast(72)];

/// A small integer type: its width, and 256 if it is signed.
const fn code(bits: u16, signed: bool) -> Value {
    Value::Tag(bits | if signed { 256 } else { 0 })
}

/// Width and sign of the small type.
fn target_type(u: &Use) -> (u64, bool) {
    match u.value(Role::Op) {
        Some(Value::Tag(code)) => (u64::from(code & 255), code & 256 != 0),
        other => panic!("`cvt.pack` to {other:?}"),
    }
}

/// Sources 0 and 1, clamped and side by side.
fn packed(x: &mut Cx<'_, '_>) -> Val {
    let (bits, signed) = target_type(x.u);
    let ones = (1 << bits) - 1;
    let (least, most) = if signed { (Ty::B32.mask() ^ (ones >> 1), ones >> 1) } else { (0, ones) };
    let mut parts = [x.src(0), x.src(1)];
    for part in &mut parts {
        let raised = x.b.pure(Pure::Max(Int::S32), Ty::B32, &[*part, Val::Imm(least, Ty::B32)]);
        let clamped = x.b.pure(Pure::Min(Int::S32), Ty::B32, &[raised, Val::Imm(most, Ty::B32)]);
        *part = x.b.and(clamped, Val::Imm(ones, Ty::B32));
    }
    let upper = x.b.pure(Pure::Shl(Ty::B32), Ty::B32, &[parts[0], Val::Imm(bits, Ty::B32)]);
    x.b.or(upper, parts[1])
}
