//! `set` of half precision and bfloat16: compares values or pairs and writes 1.0 or all ones.

use handloom_ir::simt::Val;
use handloom_ir::types::ScalarType::{self, *};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

use super::setp::element;

/// `set.CmpOp{.ftz}.f16.stype d, a, b`.
pub const SET_TO_F16: Form = Form {
    opcode: "set",
    words: &[],
    section: "Half Precision Comparison Instructions: set",
    qualifiers: &[CMP, FTZ, one_of(Role::Type, &[ty(".f16", F16)]), one_of(Role::Type2, ANY)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE2), val("b", TYPE2)],
    needs: Needs::on(4, 2, SM_53),
    legal: comparable,
    semantics: Semantics::Build(one),
};

/// `set.CmpOp.BoolOp{.ftz}.f16.stype d, a, b, {!}c`.
pub const SET_BOOL_TO_F16: Form = Form {
    opcode: "set",
    words: &[],
    section: "Half Precision Comparison Instructions: set",
    qualifiers: &[CMP, BOOL, FTZ, one_of(Role::Type, &[ty(".f16", F16)]), one_of(Role::Type2, ANY)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE2), val("b", TYPE2), pred("c")],
    needs: Needs::on(4, 2, SM_53),
    legal: comparable,
    semantics: Semantics::Build(one),
};

/// `set.CmpOp.bf16.stype d, a, b`.
pub const SET_TO_BF16: Form = Form {
    opcode: "set",
    words: &[],
    section: "Half Precision Comparison Instructions: set",
    qualifiers: &[CMP, one_of(Role::Type, &[ty(".bf16", BF16)]), one_of(Role::Type2, ANY_OR_BF16)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE2), val("b", TYPE2)],
    needs: Needs::on(7, 8, SM_90),
    legal: comparable,
    semantics: Semantics::Build(one),
};

/// `set.CmpOp.BoolOp.bf16.stype d, a, b, {!}c`.
pub const SET_BOOL_TO_BF16: Form = Form {
    opcode: "set",
    words: &[],
    section: "Half Precision Comparison Instructions: set",
    qualifiers: &[CMP, BOOL, one_of(Role::Type, &[ty(".bf16", BF16)]), one_of(Role::Type2, ANY_OR_BF16)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE2), val("b", TYPE2), pred_reg("c")],
    needs: Needs::on(7, 8, SM_90),
    legal: comparable,
    semantics: Semantics::Build(one),
};

/// `set.CmpOp{.ftz}.dtype.f16 d, a, b`.
pub const SET_INT_F16: Form = Form {
    opcode: "set",
    words: &[],
    section: "Half Precision Comparison Instructions: set",
    qualifiers: &[CMP, FTZ, one_of(Role::Type, SMALL_INTS), one_of(Role::Type2, &[ty(".f16", F16)])],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE2), reg("b", TYPE2)],
    needs: Needs::on(6, 5, SM_53),
    legal: comparable,
    semantics: Semantics::Build(one),
};

/// `set.CmpOp.BoolOp{.ftz}.dtype.f16 d, a, b, {!}c`.
pub const SET_BOOL_INT_F16: Form = Form {
    opcode: "set",
    words: &[],
    section: "Half Precision Comparison Instructions: set",
    qualifiers: &[CMP, BOOL, FTZ, one_of(Role::Type, SMALL_INTS), one_of(Role::Type2, &[ty(".f16", F16)])],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE2), reg("b", TYPE2), pred("c")],
    needs: Needs::on(6, 5, SM_53),
    legal: comparable,
    semantics: Semantics::Build(one),
};

/// `set.CmpOp.dtype.bf16 d, a, b`.
pub const SET_INT_BF16: Form = Form {
    opcode: "set",
    words: &[],
    section: "Half Precision Comparison Instructions: set",
    qualifiers: &[CMP, one_of(Role::Type, SMALL_INTS), one_of(Role::Type2, &[ty(".bf16", BF16)])],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE2), reg("b", TYPE2)],
    needs: Needs::on(7, 8, SM_90),
    legal: comparable,
    semantics: Semantics::Build(one),
};

/// `set.CmpOp.BoolOp.dtype.bf16 d, a, b, {!}c`.
pub const SET_BOOL_INT_BF16: Form = Form {
    opcode: "set",
    words: &[],
    section: "Half Precision Comparison Instructions: set",
    qualifiers: &[CMP, BOOL, one_of(Role::Type, SMALL_INTS), one_of(Role::Type2, &[ty(".bf16", BF16)])],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE2), reg("b", TYPE2), pred_reg("c")],
    needs: Needs::on(7, 8, SM_90),
    legal: comparable,
    semantics: Semantics::Build(one),
};

/// `set.CmpOp{.ftz}.dtype.f16x2 d, a, b`.
pub const SET_F16X2: Form = Form {
    opcode: "set",
    words: &[],
    section: "Half Precision Comparison Instructions: set",
    qualifiers: &[
        CMP,
        FTZ,
        one_of(
            Role::Type,
            &[ty(".f16x2", F16x2), ty_if(".u32", U32, Needs::ptx(6, 5)), ty_if(".s32", S32, Needs::ptx(6, 5))],
        ),
        one_of(Role::Type2, &[ty(".f16x2", F16x2)]),
    ],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE2), reg("b", TYPE2)],
    needs: Needs::on(4, 2, SM_53),
    legal: comparable,
    semantics: Semantics::Build(each),
};

/// `set.CmpOp.BoolOp{.ftz}.dtype.f16x2 d, a, b, {!}c`.
pub const SET_BOOL_F16X2: Form = Form {
    opcode: "set",
    words: &[],
    section: "Half Precision Comparison Instructions: set",
    qualifiers: &[
        CMP,
        BOOL,
        FTZ,
        one_of(
            Role::Type,
            &[ty(".f16x2", F16x2), ty_if(".u32", U32, Needs::ptx(6, 5)), ty_if(".s32", S32, Needs::ptx(6, 5))],
        ),
        one_of(Role::Type2, &[ty(".f16x2", F16x2)]),
    ],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE2), reg("b", TYPE2), pred("c")],
    needs: Needs::on(4, 2, SM_53),
    legal: comparable,
    semantics: Semantics::Build(each),
};

/// `set.CmpOp.dtype.bf16x2 d, a, b`.
pub const SET_BF16X2: Form = Form {
    opcode: "set",
    words: &[],
    section: "Half Precision Comparison Instructions: set",
    qualifiers: &[
        CMP,
        one_of(Role::Type, &[ty(".bf16x2", BF16x2), ty(".u32", U32), ty(".s32", S32)]),
        one_of(Role::Type2, &[ty(".bf16x2", BF16x2)]),
    ],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE2), reg("b", TYPE2)],
    needs: Needs::on(7, 8, SM_90),
    legal: comparable,
    semantics: Semantics::Build(each),
};

/// `set.CmpOp.BoolOp.dtype.bf16x2 d, a, b, {!}c`.
pub const SET_BOOL_BF16X2: Form = Form {
    opcode: "set",
    words: &[],
    section: "Half Precision Comparison Instructions: set",
    qualifiers: &[
        CMP,
        BOOL,
        one_of(Role::Type, &[ty(".bf16x2", BF16x2), ty(".u32", U32), ty(".s32", S32)]),
        one_of(Role::Type2, &[ty(".bf16x2", BF16x2)]),
    ],
    dst: &[reg("d", TYPE)],
    src: &[reg("a", TYPE2), reg("b", TYPE2), pred_reg("c")],
    needs: Needs::on(7, 8, SM_90),
    legal: comparable,
    semantics: Semantics::Build(each),
};

const SMALL_INTS: &[Choice] = &[ty(".u16", U16), ty(".s16", S16), ty(".u32", U32), ty(".s32", S32)];

/// What may be compared with the result in half precision.
const ANY: &[Choice] = &[
    ty(".b16", B16),
    ty(".b32", B32),
    ty(".b64", B64),
    ty(".u16", U16),
    ty(".u32", U32),
    ty(".u64", U64),
    ty(".s16", S16),
    ty(".s32", S32),
    ty(".s64", S64),
    ty(".f16", F16),
    ty(".f32", F32),
    ty(".f64", F64),
];

/// The same with bfloat16, which the manual does not list and the assembler takes.
const ANY_OR_BF16: &[Choice] = &[
    ty(".b16", B16),
    ty(".b32", B32),
    ty(".b64", B64),
    ty(".u16", U16),
    ty(".u32", U32),
    ty(".u64", U64),
    ty(".s16", S16),
    ty(".s32", S32),
    ty(".s64", S64),
    ty(".f16", F16),
    ty(".bf16", BF16),
    ty(".f32", F32),
    ty(".f64", F64),
];

/// Operators by the source type; `.ftz` goes with half and single precision.
fn comparable(u: &Use) -> Result<Needs, Reason> {
    let t = u.ty(Role::Type2);
    check_comparison(u, t)?;
    if u.has(Role::Ftz) && !matches!(t, F16 | F16x2 | F32) {
        return Err(Reason::new(format!("`.ftz` does not go with `{t}`")).at(".ftz"));
    }
    Ok(Needs::NONE)
}

fn one(x: &mut Cx<'_, '_>) {
    let t = compare(x, x.u.ty(Role::Type2), x.src(0), x.src(1));
    let t = join(x, t);
    let value = truth(x, t, x.u.ty(Role::Type));
    x.set(value);
}

fn each(x: &mut Cx<'_, '_>) {
    // Halves of an integer result are all ones.
    let result = match x.u.ty(Role::Type) {
        F16x2 => F16,
        BF16x2 => BF16,
        _ => U16,
    };
    by_parts(
        x,
        x.u.ty(Role::Type2),
        2,
        match result {
            F16 => |x, t, s| half(x, t, s, F16),
            BF16 => |x, t, s| half(x, t, s, BF16),
            _ => |x, t, s| half(x, t, s, U16),
        },
    );
}

fn half(x: &mut Cx<'_, '_>, t: ScalarType, s: &[Val], result: ScalarType) -> Val {
    let p = compare(x, element(t), s[0], s[1]);
    let p = join(x, p);
    truth(x, p, result)
}
