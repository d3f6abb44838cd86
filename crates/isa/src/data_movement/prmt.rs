//! `prmt`: picks bytes of two words.

use handloom_ir::simt::Pure;
use handloom_ir::types::{PrmtMode, ScalarType::B32, Ty};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// The records.
pub const FORMS: &[&Form] = &[&PRMT];

/// `prmt.b32{.mode} d, a, b, c`.
pub const PRMT: Form = Form {
    opcode: "prmt",
    words: &[],
    section: "Data Movement and Conversion Instructions: prmt",
    qualifiers: &[MODE, one_of(Role::Type, &[ty(".b32", B32)])],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", TYPE), val("c", TYPE)],
    needs: Needs::on(2, 0, SM_20),
    legal: always,
    semantics: Semantics::Build(|x| {
        let mode = match x.u.value(Role::Op) {
            Some(Value::Prmt(mode)) => mode,
            _ => PrmtMode::Default,
        };
        apply(x, Pure::Prmt(mode), Ty::B32, 3);
    }),
};

const MODE: Group = maybe(
    Role::Op,
    &[
        choice(".f4e", Value::Prmt(PrmtMode::F4e)),
        choice(".b4e", Value::Prmt(PrmtMode::B4e)),
        choice(".rc8", Value::Prmt(PrmtMode::Rc8)),
        choice(".ecl", Value::Prmt(PrmtMode::Ecl)),
        choice(".ecr", Value::Prmt(PrmtMode::Ecr)),
        choice(".rc16", Value::Prmt(PrmtMode::Rc16)),
    ],
);
