//! `nanosleep`: gives up the processor for some time.

use handloom_ir::simt::Op;
use handloom_ir::types::ScalarType::U32;
use smallvec::smallvec;

use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

/// `nanosleep.u32 t`: `t` in ns.
pub const NANOSLEEP: Form = Form {
    opcode: "nanosleep",
    words: &[],
    section: "Miscellaneous Instructions: nanosleep",
    qualifiers: &[must(Role::Type, &[ty(".u32", U32)])],
    dst: &[],
    src: &[val("t", Is::Exactly(Role::Type))],
    needs: Needs::on(6, 3, &[AtLeast(70)]),
    legal: always,
    semantics: Semantics::Build(|x| {
        let t = x.src(0);
        x.b.push(Op::Nanosleep, smallvec![], smallvec![t]);
    }),
};
