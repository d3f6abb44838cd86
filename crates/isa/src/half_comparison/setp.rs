//! `setp` of half precision and bfloat16: compares two values, or two pairs of them.

use handloom_ir::types::ScalarType::{self, *};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `setp.CmpOp{.ftz}.f16 p, a, b`.
pub const SETP_F16: Form = Form {
    opcode: "setp",
    words: &[],
    section: "Half Precision Comparison Instructions: setp",
    qualifiers: &[CMP, FTZ, one_of(Role::Type, &[ty(".f16", F16)])],
    dst: &[operand("p", Kind::RegOrSink, Is::Fixed(ScalarType::Pred))],
    src: &[reg("a", TYPE), reg("b", TYPE)],
    needs: Needs::on(4, 2, SM_53),
    legal: comparable,
    semantics: Semantics::Build(one),
};

/// `setp.CmpOp.BoolOp{.ftz}.f16 p, a, b, {!}c`.
pub const SETP_BOOL_F16: Form = Form {
    opcode: "setp",
    words: &[],
    section: "Half Precision Comparison Instructions: setp",
    qualifiers: &[CMP, BOOL, FTZ, one_of(Role::Type, &[ty(".f16", F16)])],
    dst: &[operand("p", Kind::RegOrSink, Is::Fixed(ScalarType::Pred))],
    src: &[reg("a", TYPE), reg("b", TYPE), pred("c")],
    needs: Needs::on(4, 2, SM_53),
    legal: comparable,
    semantics: Semantics::Build(one),
};

/// `setp.CmpOp{.ftz}.f16x2 p|q, a, b`: `p` for the lower halves, `q` for the upper ones.
pub const SETP_F16X2: Form = Form {
    opcode: "setp",
    words: &[],
    section: "Half Precision Comparison Instructions: setp",
    qualifiers: &[CMP, FTZ, one_of(Role::Type, &[ty(".f16x2", F16x2)])],
    dst: &[operand("p", Kind::PredPair, Is::Fixed(ScalarType::Pred))],
    src: &[reg("a", TYPE), reg("b", TYPE)],
    needs: Needs::on(4, 2, SM_53),
    legal: comparable,
    semantics: Semantics::Build(each),
};

/// `setp.CmpOp.BoolOp{.ftz}.f16x2 p|q, a, b, {!}c`.
pub const SETP_BOOL_F16X2: Form = Form {
    opcode: "setp",
    words: &[],
    section: "Half Precision Comparison Instructions: setp",
    qualifiers: &[CMP, BOOL, FTZ, one_of(Role::Type, &[ty(".f16x2", F16x2)])],
    dst: &[operand("p", Kind::PredPair, Is::Fixed(ScalarType::Pred))],
    src: &[reg("a", TYPE), reg("b", TYPE), pred("c")],
    needs: Needs::on(4, 2, SM_53),
    legal: comparable,
    semantics: Semantics::Build(each),
};

/// `setp.CmpOp.bf16 p, a, b`.
pub const SETP_BF16: Form = Form {
    opcode: "setp",
    words: &[],
    section: "Half Precision Comparison Instructions: setp",
    qualifiers: &[CMP, one_of(Role::Type, &[ty(".bf16", BF16)])],
    dst: &[operand("p", Kind::RegOrSink, Is::Fixed(ScalarType::Pred))],
    src: &[reg("a", TYPE), reg("b", TYPE)],
    needs: Needs::on(7, 8, SM_90),
    legal: comparable,
    semantics: Semantics::Build(one),
};

/// `setp.CmpOp.BoolOp.bf16 p, a, b, {!}c`.
pub const SETP_BOOL_BF16: Form = Form {
    opcode: "setp",
    words: &[],
    section: "Half Precision Comparison Instructions: setp",
    qualifiers: &[CMP, BOOL, one_of(Role::Type, &[ty(".bf16", BF16)])],
    dst: &[operand("p", Kind::RegOrSink, Is::Fixed(ScalarType::Pred))],
    src: &[reg("a", TYPE), reg("b", TYPE), pred_reg("c")],
    needs: Needs::on(7, 8, SM_90),
    legal: comparable,
    semantics: Semantics::Build(one),
};

/// `setp.CmpOp.bf16x2 p|q, a, b`: `p` for the lower halves, `q` for the upper ones.
pub const SETP_BF16X2: Form = Form {
    opcode: "setp",
    words: &[],
    section: "Half Precision Comparison Instructions: setp",
    qualifiers: &[CMP, one_of(Role::Type, &[ty(".bf16x2", BF16x2)])],
    dst: &[operand("p", Kind::PredPair, Is::Fixed(ScalarType::Pred))],
    src: &[reg("a", TYPE), reg("b", TYPE)],
    needs: Needs::on(7, 8, SM_90),
    legal: comparable,
    semantics: Semantics::Build(each),
};

/// `setp.CmpOp.BoolOp.bf16x2 p|q, a, b, {!}c`.
pub const SETP_BOOL_BF16X2: Form = Form {
    opcode: "setp",
    words: &[],
    section: "Half Precision Comparison Instructions: setp",
    qualifiers: &[CMP, BOOL, one_of(Role::Type, &[ty(".bf16x2", BF16x2)])],
    dst: &[operand("p", Kind::PredPair, Is::Fixed(ScalarType::Pred))],
    src: &[reg("a", TYPE), reg("b", TYPE), pred_reg("c")],
    needs: Needs::on(7, 8, SM_90),
    legal: comparable,
    semantics: Semantics::Build(each),
};

fn comparable(u: &Use) -> Result<Needs, Reason> {
    check_comparison(u, u.ty(Role::Type))?;
    Ok(Needs::NONE)
}

fn one(x: &mut Cx<'_, '_>) {
    let t = compare(x, x.u.ty(Role::Type), x.src(0), x.src(1));
    let p = join(x, t);
    x.set(p);
}

fn each(x: &mut Cx<'_, '_>) {
    let element = element(x.u.ty(Role::Type));
    for j in 0..2 {
        if x.wants(0, j) {
            let a = x.b.half(x.src(0), j == 1);
            let b = x.b.half(x.src(1), j == 1);
            let t = compare(x, element, a, b);
            let p = join(x, t);
            x.set_at(0, j, p);
        }
    }
}

/// The type of one half of a pair.
pub(super) fn element(t: ScalarType) -> ScalarType {
    if t == BF16x2 { BF16 } else { F16 }
}
