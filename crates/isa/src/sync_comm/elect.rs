//! `elect.sync`: picks one lane of a member mask.

use handloom_ir::simt::{Op, Val};
use handloom_ir::types::ScalarType::U32;
use handloom_ir::types::Ty;
use smallvec::smallvec;

use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

/// `elect.sync d|p, membermask`: number of the leader, and whether this lane is it.
pub const ELECT: Form = Form {
    opcode: "elect",
    words: &[".sync"],
    section: "Parallel Synchronization and Communication Instructions: elect.sync",
    qualifiers: &[],
    dst: &[operand("d|p", Kind::RegPredPair, Is::Fixed(U32)).both()],
    src: &[val("membermask", Is::Fixed(U32))],
    needs: Needs::on(8, 0, &[AtLeast(90)]),
    legal: always,
    semantics: Semantics::Warp(|x| {
        let (leader, is_leader) = (x.b.reg(Ty::B32), x.b.reg(Ty::P));
        let membermask = x.src(0);
        x.b.push(Op::Elect, smallvec![leader, is_leader], smallvec![membermask]);
        x.set_at(0, 0, Val::Reg(leader));
        x.set_at(0, 1, Val::Reg(is_leader));
    }),
};
