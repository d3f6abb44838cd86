//! `sad`: sum of absolute differences.

use handloom_ir::simt::Pure;
use handloom_ir::types::Int;

use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `sad.type d, a, b, c`: `d = c + |a - b|`, all at the width of the type.
pub const SAD: Form = Form {
    opcode: "sad",
    words: &[],
    section: "Integer Arithmetic Instructions: sad",
    qualifiers: &[one_of(Role::Type, INTS)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE), val("c", TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let int = Int::of(x.u.ty(Role::Type));
        let distance = x.b.pure(Pure::AbsDiff(int), int.ty, &[x.src(0), x.src(1)]);
        let sum = x.b.add(x.src(2), distance);
        x.set(sum);
    }),
};
