//! `atom`: reads, changes and writes a location in one step, and returns the old value.
//!
//! Operations and types that go together are a record each. An unwritten order is relaxed and an unwritten scope `.gpu`. A
//! destination `_` is allowed.

use handloom_ir::types::AtomOp;
use handloom_ir::types::ScalarType::*;

use super::atomic::*;
use crate::data_movement::memory::POLICY;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

const DST: &[Operand] = &[operand("d", Kind::RegOrSink, Is::Like(Role::Type))];
const VECTOR_DST: &[Operand] = &[vector("d", Is::Like(Role::Type), Role::Vec)];
const SRC: &[Operand] = &[address("a"), val("b", Is::Like(Role::Type)), POLICY];
const VECTOR_SRC: &[Operand] = &[address("a"), vector("b", Is::Like(Role::Type), Role::Vec), POLICY];

/// `atom{.sem}{.scope}{.space}.and`, `.or`, `.xor`.
pub const ATOM_BITWISE: Form = Form {
    opcode: "atom",
    words: &[],
    section: "Parallel Synchronization and Communication Instructions: atom",
    qualifiers: &[BITWISE, BITWISE_TYPES, SPACES, SCOPE, ATOM_ORDER, HINT],
    dst: DST,
    src: SRC,
    needs: Needs::on(1, 1, &[AtLeast(11)]),
    legal: |u| legal_scalar(u, 2),
    semantics: Semantics::Build(atom),
};

const LARGE_GATE: Needs = Needs::on(8, 3, &[AtLeast(90)]);
const LONG_GATE: Needs = Needs::on(1, 2, &[AtLeast(12)]);

/// `atom.exch`.
pub const ATOM_EXCH: Form = Form {
    qualifiers: &[
        must(Role::Op, &[choice(".exch", Value::Atom(AtomOp::Exch))]),
        must(Role::Type, &[ty(".b32", B32), ty_if(".b64", B64, LONG_GATE), ty_if(".b128", B128, LARGE_GATE)]),
        SPACES,
        SCOPE,
        ATOM_ORDER,
        HINT,
    ],
    ..ATOM_BITWISE
};

/// `atom.cas d, [a], b, c`: writes `c` where `b` is found.
pub const ATOM_CAS: Form = Form {
    qualifiers: &[
        must(Role::Op, &[choice(".cas", Value::Atom(AtomOp::Cas))]),
        must(
            Role::Type,
            &[
                ty_if(".b16", B16, Needs::on(6, 3, &[AtLeast(70)])),
                ty(".b32", B32),
                ty_if(".b64", B64, LONG_GATE),
                ty_if(".b128", B128, LARGE_GATE),
            ],
        ),
        SPACES,
        SCOPE,
        ATOM_ORDER,
    ],
    src: &[address("a"), val("b", Is::Like(Role::Type)), val("c", Is::Like(Role::Type))],
    legal: |u| legal_scalar(u, 3),
    ..ATOM_BITWISE
};

/// `atom.add` of integers, `.f32` and `.f64`.
pub const ATOM_ADD: Form =
    Form { qualifiers: &[must(Role::Op, &[ADD]), ADD_TYPES, SPACES, SCOPE, ATOM_ORDER, HINT], ..ATOM_BITWISE };

/// `atom.inc` and `atom.dec`.
pub const ATOM_WRAPPING: Form =
    Form { qualifiers: &[WRAPPING, WRAPPING_TYPES, SPACES, SCOPE, ATOM_ORDER, HINT], ..ATOM_BITWISE };

/// `atom.min` and `atom.max` of integers.
pub const ATOM_MIN_MAX: Form =
    Form { qualifiers: &[must(Role::Op, &[MIN, MAX]), ORDERED_TYPES, SPACES, SCOPE, ATOM_ORDER, HINT], ..ATOM_BITWISE };

/// `atom.add.noftz` of half-precision types and their pairs.
pub const ATOM_ADD_HALF: Form = Form {
    words: &[".noftz"],
    qualifiers: &[must(Role::Op, &[ADD]), HALF_TYPES, SPACES, SCOPE, ATOM_ORDER, HINT],
    ..ATOM_BITWISE
};

/// `atom.add.vec.f32`.
pub const ATOM_VECTOR_F32: Form = Form {
    qualifiers: &[
        must(Role::Op, &[ADD]),
        must(Role::Type, &[ty(".f32", F32)]),
        VECTORS_F32,
        VECTOR_SPACES,
        SCOPE,
        ATOM_ORDER,
        HINT,
    ],
    dst: VECTOR_DST,
    src: VECTOR_SRC,
    needs: VECTOR_GATE,
    legal: |u| legal_vector(u, 2),
    ..ATOM_BITWISE
};

/// `atom.op.noftz.vec` of half-precision types and their pairs.
pub const ATOM_VECTOR_HALF: Form = Form {
    words: &[".noftz"],
    qualifiers: &[must(Role::Op, &[ADD, MIN, MAX]), HALF_TYPES, VECTORS_HALF, VECTOR_SPACES, SCOPE, ATOM_ORDER, HINT],
    ..ATOM_VECTOR_F32
};
