//! `vmad`: the product of two parts of words and a word, scaled.

use handloom_ir::simt::{Negated, Pure, Vmad};
use handloom_ir::types::Ty;

use super::scalar::*;
use crate::compose::apply;
use crate::form::*;
use crate::target::Needs;
use crate::words::SAT;

const SCALE: Group = maybe(Role::Num, &[choice(".shr7", Value::Count(7)), choice(".shr15", Value::Count(15))]);
const PLUS_ONE: Group = must(Role::Flag, &[choice(".po", Value::Flag)]);

/// `vmad.dtype.atype.btype{.sat}{.scale} d, {-}a{.asel}, {-}b{.bsel}, {-}c`: `a * b + c`, scaled.
///
/// `dtype` changes nothing: the types of the factors and the signs before the operands decide what is clamped.
pub const VMAD: Form = Form {
    opcode: "vmad",
    words: &[],
    section: "Scalar Video Instructions: vmad",
    qualifiers: &[DTYPE, ATYPE, BTYPE, SAT, SAT_AGAIN, SCALE],
    dst: &[D],
    src: &[negatable(A), negatable(B), negatable(C)],
    needs: SCALAR,
    legal: one_sign,
    semantics: Semantics::Build(|x| {
        let [_, a, b, c] = x.u.marks;
        let negated = match (a.negated ^ b.negated, c.negated) {
            (true, _) => Negated::Product,
            (false, true) => Negated::Addend,
            (false, false) => Negated::None,
        };
        let vmad = Vmad {
            a: source(x.u, 1, Role::Type2),
            b: source(x.u, 2, Role::Type3),
            negated,
            plus_one: x.u.has(Role::Flag),
            sat: x.u.has(Role::Sat) || x.u.has(Role::Flag2),
            shift: if x.u.has(Role::Num) { x.u.count(Role::Num) } else { 0 },
        };
        apply(x, Pure::Vmad(vmad), Ty::B32, 3);
    }),
};

/// `vmad.dtype.atype.btype.po{.sat}{.scale} d, a{.asel}, b{.bsel}, c`: `a * b + c + 1`, scaled. Both factors may have a sign.
pub const VMAD_PO: Form = Form {
    qualifiers: &[DTYPE, ATYPE, BTYPE, PLUS_ONE, SAT, SAT_AGAIN, SCALE],
    src: &[negatable(A), negatable(B), C],
    legal: sign_of_product,
    ..VMAD
};

/// Two signs cancel each other; the negated product does not go with `.po`.
fn sign_of_product(u: &Use) -> Result<Needs, Reason> {
    let [_, a, b, _] = u.marks;
    if a.negated ^ b.negated {
        return Err(Reason::new("the product is negated, which does not go with `.po`").at(".po"));
    }
    once(u)
}

/// Either the product or `c` may be negated.
fn one_sign(u: &Use) -> Result<Needs, Reason> {
    let [_, a, b, c] = u.marks;
    if (a.negated ^ b.negated) && c.negated {
        return Err(Reason::new("the product and `c` are both negated").help("negate one of them"));
    }
    once(u)
}
