//! `txq`, `istypep`: what a texture is.

use handloom_ir::types::ScalarType::*;

use super::tex::WHY;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

const SECTION: &str = "Texture Instructions: txq";

/// `txq.query.b32 d, [a]`.
pub const TXQ: Form = Form {
    opcode: "txq",
    words: &[".b32"],
    section: SECTION,
    qualifiers: &[must(
        Role::Op,
        &[
            choice(".width", Value::Flag),
            choice(".height", Value::Flag),
            choice(".depth", Value::Flag),
            choice(".channel_data_type", Value::Flag),
            choice(".channel_order", Value::Flag),
            choice(".normalized_coords", Value::Flag),
            choice_if(".array_size", Value::Flag, Needs::ptx(4, 1)),
            choice_if(".num_mipmap_levels", Value::Flag, Needs::on(4, 1, SM_20)),
            choice_if(".num_samples", Value::Flag, Needs::on(4, 1, SM_30)),
            choice(".force_unnormalized_coords", Value::Flag),
            choice(".filter_mode", Value::Flag),
            choice(".addr_mode_0", Value::Flag),
            choice(".addr_mode_1", Value::Flag),
            choice(".addr_mode_2", Value::Flag),
        ],
    )],
    dst: &[reg("d", Is::Fixed(B32))],
    src: &[address("a")],
    needs: Needs::ptx(1, 5),
    semantics: Semantics::Unsupported(WHY),
    ..UNSUPPORTED_FORM
};

/// `txq.level.query.b32 d, [a], lod`.
pub const TXQ_LEVEL: Form = Form {
    words: &[".level", ".b32"],
    qualifiers: &[must(
        Role::Op,
        &[choice(".width", Value::Flag), choice(".height", Value::Flag), choice(".depth", Value::Flag)],
    )],
    src: &[address("a"), val("lod", WORD)],
    needs: Needs::on(4, 3, SM_30),
    ..TXQ
};

/// `istypep.type p, a`: whether an opaque variable is of a type.
pub const ISTYPEP: Form = Form {
    opcode: "istypep",
    section: "Texture Instructions: istypep",
    qualifiers: &[must(
        Role::Op,
        &[choice(".texref", Value::Flag), choice(".samplerref", Value::Flag), choice(".surfref", Value::Flag)],
    )],
    words: &[],
    dst: &[reg("p", Is::Fixed(Pred))],
    src: &[reg("a", Is::Fixed(U64))],
    needs: Needs::on(4, 0, SM_30),
    ..TXQ
};
