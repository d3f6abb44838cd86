//! `mov`: copies a value, takes an address, reads a special register, packs and unpacks vectors.
//!
//! The packing and unpacking records come before the plain one: braces decide.

use handloom_ir::simt::{Pure, Val};
use handloom_ir::types::{Int, ScalarType, ScalarType::*, Ty};

use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// The records.
pub const FORMS: &[&Form] =
    &[&MOV_PACK2, &MOV_UNPACK2, &MOV_PACK4, &MOV_UNPACK4, &MOV_VECTOR, &MOV, &MOV_B128, &MOV_PACK1, &MOV_UNPACK1];

/// `mov.type d, {a}`: one element in braces, which the manual does not have and the assembler takes.
pub const MOV_PACK1: Form = Form {
    qualifiers: &[one_of(Role::Type, BY_1)],
    src: &[Operand { is: TYPE, count: Count::Fixed(1), ..BRACED }],
    semantics: Semantics::Build(one),
    ..MOV_PACK2
};

/// `mov.type {d}, a`: the same on the other side.
pub const MOV_UNPACK1: Form = Form {
    qualifiers: &[one_of(Role::Type, BY_1)],
    dst: &[Operand { is: TYPE, count: Count::Fixed(1), ..BRACED }],
    src: &[operand("a", Kind::MovSource, TYPE)],
    semantics: Semantics::Build(one),
    ..MOV_PACK2
};

/// An operand in braces.
const BRACED: Operand =
    Operand { name: "a", kind: Kind::Vector, is: TYPE, count: Count::Fixed(1), optional: false, when: When::Always };

/// `mov.type d, {..}`: 2 elements side by side, the first lowest.
pub const MOV_PACK2: Form = Form {
    opcode: "mov",
    words: &[],
    section: "Data Movement and Conversion Instructions: mov",
    qualifiers: &[one_of(Role::Type, BY_2)],
    dst: &[reg("d", TYPE)],
    src: &[Operand {
        name: "a",
        kind: Kind::Vector,
        is: Is::Of(half),
        count: Count::Fixed(2),
        optional: false,
        when: When::Always,
    }],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(pack),
};

/// `mov.type {..}, a`: 2 elements of a value, the lowest first. Elements may be sinks.
pub const MOV_UNPACK2: Form = Form {
    opcode: "mov",
    words: &[],
    section: "Data Movement and Conversion Instructions: mov",
    qualifiers: &[one_of(Role::Type, BY_2)],
    dst: &[Operand {
        name: "d",
        kind: Kind::Vector,
        is: Is::Of(half),
        count: Count::Fixed(2),
        optional: false,
        when: When::Always,
    }],
    src: &[operand("a", Kind::MovSource, TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| unpack(x, 2)),
};

/// `mov.type d, {..}`: 4 elements side by side, the first lowest.
pub const MOV_PACK4: Form = Form {
    opcode: "mov",
    words: &[],
    section: "Data Movement and Conversion Instructions: mov",
    qualifiers: &[one_of(Role::Type, BY_4)],
    dst: &[reg("d", TYPE)],
    src: &[Operand {
        name: "a",
        kind: Kind::Vector,
        is: Is::Of(quarter),
        count: Count::Fixed(4),
        optional: false,
        when: When::Always,
    }],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(pack),
};

/// `mov.type {..}, a`: 4 elements of a value, the lowest first. Elements may be sinks.
pub const MOV_UNPACK4: Form = Form {
    opcode: "mov",
    words: &[],
    section: "Data Movement and Conversion Instructions: mov",
    qualifiers: &[one_of(Role::Type, BY_4)],
    dst: &[Operand {
        name: "d",
        kind: Kind::Vector,
        is: Is::Of(quarter),
        count: Count::Fixed(4),
        optional: false,
        when: When::Always,
    }],
    src: &[operand("a", Kind::MovSource, TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| unpack(x, 4)),
};

/// `mov.vec.type {..}, a`: element by element; `a` is a vector of registers or a whole special register such as `%tid`.
///
/// The manual has no such line; the assembler takes it.
pub const MOV_VECTOR: Form = Form {
    opcode: "mov",
    words: &[],
    section: "Data Movement and Conversion Instructions: mov",
    qualifiers: &[
        must(Role::Vec, &[choice(".v2", Value::Count(2)), choice(".v4", Value::Count(4))]),
        must(Role::Type, ORDINARY),
    ],
    dst: &[vector("d", TYPE, Role::Vec)],
    src: &[Operand {
        name: "a",
        kind: Kind::MovSource,
        is: TYPE,
        count: Count::By(Role::Vec),
        optional: false,
        when: When::Always,
    }],
    needs: Needs::ptx(1, 0),
    legal: |u| {
        let bits = u.ty(Role::Type).bits() * u32::from(u.count(Role::Vec));
        if bits > 128 { Err(Reason::new("the vector has more than 128 bits")) } else { Ok(Needs::NONE) }
    },
    semantics: Semantics::Build(one),
};

/// `mov.type d, a`: a register, special register, literal or address.
pub const MOV: Form = Form {
    opcode: "mov",
    words: &[],
    section: "Data Movement and Conversion Instructions: mov",
    qualifiers: &[one_of(Role::Type, PLAIN_OR_PRED)],
    dst: &[reg("d", TYPE)],
    src: &[operand("a", Kind::MovSource, TYPE)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| x.set(x.src(0))),
};

/// `mov.b128 d, a`.
pub const MOV_B128: Form = Form {
    opcode: "mov",
    words: &[],
    section: "Data Movement and Conversion Instructions: mov",
    qualifiers: &[one_of(Role::Type, &[ty(".b128", B128)])],
    dst: &[reg("d", TYPE)],
    src: &[operand("a", Kind::MovSource, TYPE)],
    needs: Needs::on(8, 3, SM_70),
    legal: always,
    semantics: Semantics::Build(one),
};

/// What one element makes.
const BY_1: &[Choice] =
    &[ty(".b16", B16), ty(".b32", B32), ty(".b64", B64), ty_if(".b128", B128, Needs::on(8, 3, SM_70))];

/// What two elements make.
const BY_2: &[Choice] =
    &[ty(".b16", B16), ty(".b32", B32), ty(".b64", B64), ty_if(".b128", B128, Needs::on(8, 3, SM_70))];

/// What four elements make.
const BY_4: &[Choice] = &[ty(".b32", B32), ty(".b64", B64), ty_if(".b128", B128, Needs::on(8, 3, SM_70))];

const PLAIN_OR_PRED: &[Choice] = &[
    ty(".pred", Pred),
    ty(".b16", B16),
    ty(".b32", B32),
    ty(".b64", B64),
    ty(".u16", U16),
    ty(".u32", U32),
    ty(".u64", U64),
    ty(".s16", S16),
    ty(".s32", S32),
    ty(".s64", S64),
    ty(".f32", F32),
    ty(".f64", F64),
];

/// A bit type of a width.
const fn bits(n: u32) -> ScalarType {
    match n {
        8 => B8,
        16 => B16,
        32 => B32,
        _ => B64,
    }
}

/// The type of one of two elements.
fn half(u: &Use) -> ScalarType {
    bits(u.ty(Role::Type).bits() / 2)
}

/// The type of one of four elements.
fn quarter(u: &Use) -> ScalarType {
    bits(u.ty(Role::Type).bits() / 4)
}

/// Copies what there is; a `.b128` value is its two halves.
fn one(x: &mut Cx<'_, '_>) {
    x.srcs(0).into_iter().enumerate().for_each(|(j, v)| x.set_at(0, j, v));
}

fn pack(x: &mut Cx<'_, '_>) {
    let mut values = x.srcs(0);
    let mut width = if values.len() == 2 { half(x.u) } else { quarter(x.u) }.bits();
    // A .b128 value is its two halves.
    while values.len() > 1 && width < 64 {
        values = values.chunks(2).map(|pair| join(x, width, pair[0], pair[1])).collect();
        width *= 2;
    }
    for (j, value) in values.into_iter().enumerate() {
        x.set_at(0, j, value);
    }
}

/// Two neighbours as one value of twice the width. 8-bit values live in `B16`.
fn join(x: &mut Cx<'_, '_>, width: u32, low: Val, high: Val) -> Val {
    if width > 8 {
        return x.b.pack(low, high);
    }
    let high = x.b.pure(Pure::Shl(Ty::B16), Ty::B16, &[high, Val::Imm(8, Ty::B32)]);
    x.b.or(low, high)
}

fn unpack(x: &mut Cx<'_, '_>, n: usize) {
    let mut values = x.srcs(0);
    // A .b128 value is its two halves.
    let mut width = x.u.ty(Role::Type).bits().min(64);
    while values.len() < n {
        values = values.iter().flat_map(|&v| split(x, width, v)).collect();
        width /= 2;
    }
    for (j, value) in values.into_iter().enumerate() {
        x.set_at(0, j, value);
    }
}

/// A value as its two halves.
fn split(x: &mut Cx<'_, '_>, width: u32, value: Val) -> [Val; 2] {
    if width > 16 {
        return [x.b.half(value, false), x.b.half(value, true)];
    }
    let high = x.b.pure(Pure::Shr(Int::U16), Ty::B16, &[value, Val::Imm(8, Ty::B32)]);
    [x.b.ext(value, 8, false, Ty::B16), high]
}
