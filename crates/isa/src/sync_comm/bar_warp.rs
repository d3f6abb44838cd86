//! `bar.warp.sync`: waits for the lanes of a member mask and orders their memory.

use handloom_ir::simt::Op;
use handloom_ir::types::ScalarType::U32;
use smallvec::smallvec;

use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

/// `bar.warp.sync membermask`.
pub const BAR_WARP_SYNC: Form = Form {
    opcode: "bar.warp",
    words: &[".sync"],
    section: "Parallel Synchronization and Communication Instructions: bar.warp.sync",
    qualifiers: &[],
    dst: &[],
    src: &[val("membermask", Is::Fixed(U32))],
    needs: Needs::on(6, 0, &[AtLeast(30)]),
    legal: always,
    semantics: Semantics::Warp(|x| {
        let membermask = x.src(0);
        x.b.push(Op::BarWarp, smallvec![], smallvec![membermask]);
    }),
};
