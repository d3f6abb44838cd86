//! `set`: compares two values, perhaps joins the outcome with a predicate, and writes it as all ones or 1.0.

use handloom_ir::types::ScalarType::*;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

use super::setp::flushes_single;

/// `set.CmpOp{.ftz}.dtype.stype d, a, b`.
pub const SET: Form = Form {
    opcode: "set",
    words: &[],
    section: "Comparison and Selection Instructions: set",
    qualifiers: &[CMP, FTZ, one_of(Role::Type, RESULTS), one_of(Role::Type2, ORDINARY)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE2), val("b", TYPE2)],
    needs: Needs::ptx(1, 0),
    legal: comparable,
    semantics: Semantics::Build(outcome),
};

/// `set.CmpOp.BoolOp{.ftz}.dtype.stype d, a, b, {!}c`.
pub const SET_BOOL: Form = Form {
    opcode: "set",
    words: &[],
    section: "Comparison and Selection Instructions: set",
    qualifiers: &[CMP, BOOL, FTZ, one_of(Role::Type, RESULTS), one_of(Role::Type2, ORDINARY)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE2), val("b", TYPE2), pred("c")],
    needs: Needs::ptx(1, 0),
    legal: comparable,
    semantics: Semantics::Build(outcome),
};

const RESULTS: &[Choice] = &[ty(".u32", U32), ty(".s32", S32), ty(".f32", F32)];

fn comparable(u: &Use) -> Result<Needs, Reason> {
    check_comparison(u, u.ty(Role::Type2))?;
    flushes_single(u, u.ty(Role::Type2))
}

fn outcome(x: &mut Cx<'_, '_>) {
    let t = compare(x, x.u.ty(Role::Type2), x.src(0), x.src(1));
    let t = join(x, t);
    let value = truth(x, t, x.u.ty(Role::Type));
    x.set(value);
}
