//! What the records of matrix products share: their fragments, and the rules of layouts and shapes.

use std::fmt::Display;

use handloom_ir::types::ScalarType::{self, *};

use crate::form::*;
use crate::target::Needs;

/// An operand that is a part of a matrix: registers of the type `is`, as many as `count` says.
pub(super) const fn fragment(name: &'static str, is: fn(&Use) -> ScalarType, count: fn(&Use) -> u8) -> Operand {
    Operand {
        name,
        kind: Kind::Vector,
        is: Is::Of(is),
        count: Count::Fragment(count),
        optional: false,
        when: When::Always,
    }
}

/// The type whose registers hold elements of a type: bits, or for `.f16` pairs; for integers those of any sign.
pub(crate) fn register_of(element: ScalarType) -> ScalarType {
    match element {
        F16 => F16x2,
        BF16 | TF32 => TF32,
        S8 | U8 => U32,
        S32 | F32 | F64 => element,
        _ => B32,
    }
}

/// Bits of an element of a fragment of the type in a role.
pub(super) fn bits(u: &Use, role: Role) -> u32 {
    match u.text(role) {
        ".b1" => 1,
        ".u4" | ".s4" => 4,
        _ => u.ty(role).bits(),
    }
}

/// Registers that elements take in each of 32 lanes.
pub(super) fn registers(elements: u32, bits: u32) -> u8 {
    let size = if bits == 64 { 64 } else { 32 };
    u8::try_from((elements * bits / size / 32).max(1)).unwrap_or(u8::MAX)
}

/// Refuses a shape that the type in a role does not have.
pub(super) fn no_shape(u: &Use, role: Role) -> Result<Needs, Reason> {
    let shape = u.text(Role::Shape);
    Err(Reason::new(format!("`{shape}` does not go with `{}`", u.text(role))).at(shape))
}

/// Wants rows of `a` and columns of `b`. `who` begins the sentence.
pub(super) fn row_col(u: &Use, who: impl Display) -> Result<(), Reason> {
    let (a, b) = (u.text(Role::LayoutA), u.text(Role::LayoutB));
    if (a, b) == (".row", ".col") {
        return Ok(());
    }
    Err(Reason::new(format!("{who} `.row.col`")).at(if a == ".row" { b } else { a }))
}
