//! `red`: changes a location in one step and returns nothing.

use handloom_ir::types::ScalarType::F32;

use super::atomic::*;
use crate::data_movement::memory::POLICY;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

const SRC: &[Operand] = &[address("a"), val("b", Is::Like(Role::Type)), POLICY];
const VECTOR_SRC: &[Operand] = &[address("a"), vector("b", Is::Like(Role::Type), Role::Vec), POLICY];

/// `red{.sem}{.scope}{.space}.and`, `.or`, `.xor`.
pub const RED_BITWISE: Form = Form {
    opcode: "red",
    words: &[],
    section: "Parallel Synchronization and Communication Instructions: red",
    qualifiers: &[BITWISE, BITWISE_TYPES, SPACES, SCOPE, RED_ORDER, HINT],
    dst: &[],
    src: SRC,
    needs: Needs::on(1, 2, &[AtLeast(11)]),
    legal: |u| legal_scalar(u, 2),
    semantics: Semantics::Build(red),
};

/// `red.add` of integers, `.f32` and `.f64`.
pub const RED_ADD: Form =
    Form { qualifiers: &[must(Role::Op, &[ADD]), ADD_TYPES, SPACES, SCOPE, RED_ORDER, HINT], ..RED_BITWISE };

/// `red.inc` and `red.dec`.
pub const RED_WRAPPING: Form =
    Form { qualifiers: &[WRAPPING, WRAPPING_TYPES, SPACES, SCOPE, RED_ORDER, HINT], ..RED_BITWISE };

/// `red.min` and `red.max` of integers.
pub const RED_MIN_MAX: Form =
    Form { qualifiers: &[must(Role::Op, &[MIN, MAX]), ORDERED_TYPES, SPACES, SCOPE, RED_ORDER, HINT], ..RED_BITWISE };

/// `red.add.noftz` of half-precision types and their pairs.
pub const RED_ADD_HALF: Form = Form {
    words: &[".noftz"],
    qualifiers: &[must(Role::Op, &[ADD]), HALF_TYPES, SPACES, SCOPE, RED_ORDER, HINT],
    ..RED_BITWISE
};

/// `red.add.vec.f32`.
pub const RED_VECTOR_F32: Form = Form {
    qualifiers: &[
        must(Role::Op, &[ADD]),
        must(Role::Type, &[ty(".f32", F32)]),
        VECTORS_F32,
        VECTOR_SPACES,
        SCOPE,
        RED_ORDER,
        HINT,
    ],
    src: VECTOR_SRC,
    needs: VECTOR_GATE,
    legal: |u| legal_vector(u, 2),
    ..RED_BITWISE
};

/// `red.op.noftz.vec` of half-precision types and their pairs.
pub const RED_VECTOR_HALF: Form = Form {
    words: &[".noftz"],
    qualifiers: &[must(Role::Op, &[ADD, MIN, MAX]), HALF_TYPES, VECTORS_HALF, VECTOR_SPACES, SCOPE, RED_ORDER, HINT],
    ..RED_VECTOR_F32
};
