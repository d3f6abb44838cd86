//! `vote`: combines a predicate over the lanes of a warp.

use handloom_ir::simt::{Op, Val};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{Ty, VoteMode};
use smallvec::smallvec;

use crate::data_movement::shfl::{active_lanes, legacy};
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

const MODES: &[Group] = &[must(
    Role::Mode,
    &[
        choice(".all", Value::Vote(VoteMode::All)),
        choice(".any", Value::Vote(VoteMode::Any)),
        choice(".uni", Value::Vote(VoteMode::Uni)),
    ],
)];
const BALLOT: &[Group] = &[must(Role::Mode, &[choice(".ballot", Value::Vote(VoteMode::Ballot))])];

/// `vote.sync.mode.pred d, {!}a, membermask`.
pub const VOTE_SYNC: Form = Form {
    opcode: "vote",
    words: &[".sync", ".pred"],
    section: "Parallel Synchronization and Communication Instructions: vote.sync",
    qualifiers: MODES,
    dst: &[reg("d", Is::Fixed(Pred))],
    src: &[pred("a"), val("membermask", Is::Fixed(U32))],
    needs: Needs::on(6, 0, &[AtLeast(30)]),
    legal: always,
    semantics: Semantics::Warp(|x| {
        let membermask = x.src(1);
        vote(x, membermask);
    }),
};

/// `vote.sync.ballot.b32 d, {!}a, membermask`.
pub const VOTE_SYNC_BALLOT: Form =
    Form { words: &[".sync", ".b32"], qualifiers: BALLOT, dst: &[reg("d", Is::Fixed(B32))], ..VOTE_SYNC };

/// `vote.mode.pred d, {!}a`: over the lanes that execute it together. Gone from 6.4 on for sm_70 and up.
pub const VOTE: Form = Form {
    words: &[".pred"],
    section: "Parallel Synchronization and Communication Instructions: vote (deprecated)",
    src: &[pred("a")],
    needs: Needs::on(1, 2, &[AtLeast(12)]),
    legal: legacy,
    semantics: Semantics::Warp(|x| {
        let membermask = active_lanes(x);
        vote(x, membermask);
    }),
    ..VOTE_SYNC
};

/// `vote.ballot.b32 d, {!}a`.
pub const VOTE_BALLOT: Form = Form {
    words: &[".b32"],
    qualifiers: BALLOT,
    dst: &[reg("d", Is::Fixed(B32))],
    needs: Needs::on(2, 0, &[AtLeast(20)]),
    ..VOTE
};

fn vote(x: &mut Cx<'_, '_>, membermask: Val) {
    let Some(Value::Vote(mode)) = x.u.value(Role::Mode) else {
        panic!("record of vote without a mode");
    };
    let result = x.b.reg(if mode == VoteMode::Ballot { Ty::B32 } else { Ty::P });
    let a = x.src(0);
    x.b.push(Op::Vote(mode), smallvec![result], smallvec![a, membermask]);
    x.set(Val::Reg(result));
}
