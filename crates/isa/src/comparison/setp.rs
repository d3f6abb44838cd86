//! `setp`: compares two values, perhaps joins the outcome with a predicate, and writes it and its opposite.

use handloom_ir::types::ScalarType;

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `setp.CmpOp{.ftz}.type p[|q], a, b`.
pub const SETP: Form = Form {
    opcode: "setp",
    words: &[],
    section: "Comparison and Selection Instructions: setp",
    qualifiers: &[CMP, FTZ, one_of(Role::Type, ORDINARY)],
    dst: &[operand("p", Kind::PredPair, Is::Fixed(ScalarType::Pred))],
    src: &[val("a", TYPE), val("b", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: comparable,
    semantics: Semantics::Build(both),
};

/// `setp.CmpOp.BoolOp{.ftz}.type p[|q], a, b, {!}c`.
pub const SETP_BOOL: Form = Form {
    opcode: "setp",
    words: &[],
    section: "Comparison and Selection Instructions: setp",
    qualifiers: &[CMP, BOOL, FTZ, one_of(Role::Type, ORDINARY)],
    dst: &[operand("p", Kind::PredPair, Is::Fixed(ScalarType::Pred))],
    src: &[val("a", TYPE), val("b", TYPE), pred("c")],
    needs: Needs::ptx(1, 0),
    legal: comparable,
    semantics: Semantics::Build(both),
};

fn comparable(u: &Use) -> Result<Needs, Reason> {
    check_comparison(u, u.ty(Role::Type))?;
    flushes_single(u, u.ty(Role::Type))
}

/// `.ftz` belongs to comparisons of single precision.
pub(super) fn flushes_single(u: &Use, t: ScalarType) -> Result<Needs, Reason> {
    if u.has(Role::Ftz) && t != ScalarType::F32 {
        return Err(Reason::new(format!("`.ftz` does not go with `{t}`")).at(".ftz").help("`.ftz` takes `.f32`"));
    }
    Ok(Needs::NONE)
}

fn both(x: &mut Cx<'_, '_>) {
    let t = compare(x, x.u.ty(Role::Type), x.src(0), x.src(1));
    if x.wants(0, 0) {
        let p = join(x, t);
        x.set_at(0, 0, p);
    }
    if x.wants(0, 1) {
        let opposite = x.b.not(t);
        let q = join(x, opposite);
        x.set_at(0, 1, q);
    }
}
