//! `match.sync`: finds the lanes of a warp that hold the same value.

use handloom_ir::simt::{Op, Val};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::Ty;
use smallvec::smallvec;

use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

/// `match.any.sync.type d, a, membermask`: the lanes with this lane's value.
pub const MATCH_ANY: Form = Form {
    opcode: "match",
    words: &[".any", ".sync"],
    section: "Parallel Synchronization and Communication Instructions: match.sync",
    qualifiers: &[must(Role::Type, &[ty(".b32", B32), ty(".b64", B64)])],
    dst: &[reg("d", Is::Fixed(U32))],
    src: &[val("a", Is::Like(Role::Type)), val("membermask", Is::Fixed(U32))],
    needs: Needs::on(6, 0, &[AtLeast(70)]),
    legal: always,
    semantics: Semantics::Warp(|x| {
        let mask = x.b.reg(Ty::B32);
        let (op, src) = (Op::Match { ty: x.u.ty(Role::Type).ty(), all: false }, smallvec![x.src(0), x.src(1)]);
        x.b.push(op, smallvec![mask], src);
        x.set(Val::Reg(mask));
    }),
};

/// `match.all.sync.type d[|p], a, membermask`: all lanes or none, and which it was.
pub const MATCH_ALL: Form = Form {
    words: &[".all", ".sync"],
    dst: &[operand("d", Kind::RegPredPair, Is::Fixed(U32))],
    semantics: Semantics::Warp(|x| {
        let (mask, same) = (x.b.reg(Ty::B32), x.b.reg(Ty::P));
        let (op, src) = (Op::Match { ty: x.u.ty(Role::Type).ty(), all: true }, smallvec![x.src(0), x.src(1)]);
        x.b.push(op, smallvec![mask, same], src);
        x.set_at(0, 0, Val::Reg(mask));
        x.set_at(0, 1, Val::Reg(same));
    }),
    ..MATCH_ANY
};
