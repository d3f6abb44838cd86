//! `shf`: funnel shift of two words.

use handloom_ir::simt::Pure;
use handloom_ir::types::{ScalarType::B32, Ty};

use crate::compose::*;
use crate::form::*;
use crate::target::{Needs, TargetGate};
use crate::words::*;

/// `shf.l.mode.b32 d, a, b, c` and `shf.r.mode.b32 d, a, b, c`: the upper or the lower word of `b:a` shifted by `c`.
pub const SHF: Form = Form {
    opcode: "shf",
    words: &[],
    section: "Logic and Shift Instructions: shf",
    qualifiers: &[
        lead(Role::Op, &[choice(".l", Value::Tag(0)), choice(".r", Value::Tag(1))]),
        CLAMP,
        one_of(Role::Type, &[ty(".b32", B32)]),
    ],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE), val("c", WORD)],
    needs: Needs::on(3, 1, &[TargetGate::AtLeast(32)]),
    legal: always,
    semantics: Semantics::Build(|x| {
        let op = Pure::Shf { right: x.u.value(Role::Op) == Some(Value::Tag(1)), wrap: wraps(x.u) };
        apply(x, op, Ty::B32, 3);
    }),
};
