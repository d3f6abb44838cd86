//! `isspacep`: asks whether a generic address lies in a state space.

use handloom_ir::simt::{Op, Val};
use handloom_ir::types::{ScalarType, Ty};
use smallvec::smallvec;

use super::cvta::SPACES;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

/// `isspacep.space p, a`.
pub const ISSPACEP: Form = Form {
    opcode: "isspacep",
    words: &[],
    section: "Data Movement and Conversion Instructions: isspacep",
    qualifiers: &[must(Role::Space, SPACES)],
    dst: &[reg("p", Is::Fixed(ScalarType::Pred))],
    src: &[val("a", Is::Address)],
    needs: Needs::on(2, 0, &[AtLeast(20)]),
    legal: always,
    semantics: Semantics::Build(|x| {
        let a = x.src(0);
        let bits = x.b.ty(a).bits();
        let wide = x.b.ext(a, bits, false, Ty::B64);
        let p = x.b.reg(Ty::P);
        x.b.push(Op::IsSpace(x.u.space(Role::Space)), smallvec![p], smallvec![wide]);
        x.set(Val::Reg(p));
    }),
};
