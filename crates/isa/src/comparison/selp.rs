//! `selp`: one of two values by a predicate.

use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `selp.type d, a, b, c`: `a` if `c`, else `b`.
pub const SELP: Form = Form {
    opcode: "selp",
    words: &[],
    section: "Comparison and Selection Instructions: selp",
    qualifiers: &[one_of(Role::Type, ORDINARY)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE), pred("c")],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let value = x.b.select(x.src(2), x.src(0), x.src(1));
        x.set(value);
    }),
};
