//! `suld`, `sust`, `sured`, `suq`: surfaces.

use handloom_ir::types::ScalarType::*;

use crate::form::*;
use crate::target::{Needs, TargetGate};
use crate::words::*;

const WHY: &str = "surfaces";
const SM_50: &[TargetGate] = &[TargetGate::AtLeast(50)];

const GEOMETRY: Group = must(
    Role::Shape,
    &[
        choice(".1d", Value::Count(1)),
        choice(".2d", Value::Count(2)),
        choice(".3d", Value::Count(4)),
        choice(".a1d", Value::Count(2)),
        choice(".a2d", Value::Count(4)),
    ],
);
const PLAIN_GEOMETRY: Group = must(
    Role::Shape,
    &[choice(".1d", Value::Count(1)), choice(".2d", Value::Count(2)), choice(".3d", Value::Count(4))],
);
const VEC: Group = maybe(Role::Vec, &[choice(".v2", Value::Count(2)), choice(".v4", Value::Count(4))]);
const BITS: Group = must(Role::Type, &[ty(".b8", B8), ty(".b16", B16), ty(".b32", B32), ty(".b64", B64)]);
const CLAMP: Group =
    must(Role::Mode, &[choice(".trap", Value::Flag), choice(".clamp", Value::Flag), choice(".zero", Value::Flag)]);
const LOAD_COP: Group = maybe(
    Role::CacheOp,
    &[choice(".ca", Value::Flag), choice(".cg", Value::Flag), choice(".cs", Value::Flag), choice(".cv", Value::Flag)],
);
const STORE_COP: Group = maybe(
    Role::CacheOp,
    &[choice(".wb", Value::Flag), choice(".cg", Value::Flag), choice(".cs", Value::Flag), choice(".wt", Value::Flag)],
);
/// The surface and a place in it.
const PLACE: Operand = Operand {
    name: "a, b",
    kind: Kind::Point,
    is: Is::Fixed(S32),
    count: Count::By(Role::Shape),
    optional: false,
    when: When::Always,
};

/// `suld.b.geom{.cop}{.vec}.dtype.clamp d, [a, b]`.
pub const SULD: Form = Form {
    opcode: "suld",
    words: &[".b"],
    section: "Surface Instructions: suld",
    qualifiers: &[GEOMETRY, LOAD_COP, VEC, BITS, CLAMP],
    dst: &[vector("d", Is::Relaxed(Role::Type), Role::Vec)],
    src: &[PLACE],
    needs: Needs::ptx(1, 5),
    legal: no_wide_vector,
    semantics: Semantics::Unsupported(WHY),
};

/// `sust.b.geom{.cop}{.vec}.ctype.clamp [a, b], c`.
pub const SUST: Form = Form {
    opcode: "sust",
    section: "Surface Instructions: sust",
    qualifiers: &[GEOMETRY, STORE_COP, VEC, BITS, CLAMP],
    dst: &[],
    src: &[PLACE, vector("c", Is::Relaxed(Role::Type), Role::Vec)],
    ..SULD
};

/// `sust.p.geom{.vec}.b32.clamp [a, b], c`.
pub const SUST_P: Form = Form {
    words: &[".p"],
    qualifiers: &[PLAIN_GEOMETRY, STORE_COP, VEC, must(Role::Type, &[ty(".b32", B32)]), CLAMP],
    needs: Needs::on(2, 0, SM_20),
    ..SUST
};

const OPS: Group = must(
    Role::Op,
    &[
        choice(".add", Value::Flag),
        choice(".min", Value::Flag),
        choice(".max", Value::Flag),
        choice(".and", Value::Flag),
        choice(".or", Value::Flag),
    ],
);

/// `sured.b.op.geom.ctype.clamp [a, b], c`.
pub const SURED: Form = Form {
    opcode: "sured",
    section: "Surface Instructions: sured",
    qualifiers: &[
        OPS,
        PLAIN_GEOMETRY,
        must(Role::Type, &[ty(".u32", U32), ty(".u64", U64), ty(".s32", S32), ty(".b32", B32), ty(".s64", S64)]),
        CLAMP,
    ],
    src: &[PLACE, val("c", TYPE)],
    needs: Needs::on(2, 0, SM_20),
    legal: reduction,
    ..SUST
};

/// `sured.p.op.geom.ctype.clamp [a, b], c`.
pub const SURED_P: Form = Form {
    words: &[".p"],
    qualifiers: &[OPS, PLAIN_GEOMETRY, must(Role::Type, &[ty(".b32", B32), ty(".b64", B64)]), CLAMP],
    ..SURED
};

/// `suq.query.b32 d, [a]`.
pub const SUQ: Form = Form {
    opcode: "suq",
    words: &[".b32"],
    section: "Surface Instructions: suq",
    qualifiers: &[must(
        Role::Op,
        &[
            choice(".width", Value::Flag),
            choice(".height", Value::Flag),
            choice(".depth", Value::Flag),
            choice(".channel_data_type", Value::Flag),
            choice(".channel_order", Value::Flag),
            choice_if(".array_size", Value::Flag, Needs::ptx(4, 1)),
            choice_if(".memory_layout", Value::Flag, Needs::ptx(4, 2)),
        ],
    )],
    dst: &[reg("d", Is::Fixed(B32))],
    src: &[address("a")],
    needs: Needs::ptx(1, 5),
    semantics: Semantics::Unsupported(WHY),
    ..UNSUPPORTED_FORM
};

fn no_wide_vector(u: &Use) -> Result<Needs, Reason> {
    if u.ty(Role::Type).bits() * u32::from(u.count(Role::Vec)) > 128 {
        return Err(Reason::new("the vector has more than 128 bits").at(u.text(Role::Vec)));
    }
    Ok(Needs::NONE)
}

fn reduction(u: &Use) -> Result<Needs, Reason> {
    let (op, t) = (u.text(Role::Op), u.ty(Role::Type));
    let fits = match op {
        ".add" => matches!(t, U32 | S32 | U64 | B32 | B64),
        ".min" | ".max" => matches!(t, U32 | S32 | U64 | S64 | B32 | B64),
        _ => t == B32,
    };
    if !fits {
        return Err(Reason::new(format!("`{op}` does not go with `{t}`")).at(op));
    }
    Ok(if t.bits() == 64 && op != ".add" { Needs::on(8, 1, SM_50) } else { Needs::NONE })
}
