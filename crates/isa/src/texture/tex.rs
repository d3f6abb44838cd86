//! `tex`: reads a texture.

use handloom_ir::types::ScalarType::{self, *};

use crate::form::*;
use crate::target::Needs;
use crate::words::*;

const SECTION: &str = "Texture Instructions: tex";
/// Why textures do not run.
pub const WHY: &str = "textures";

const GEOMETRY: Group = must(
    Role::Shape,
    &[
        choice(".1d", Value::Count(1)),
        choice(".2d", Value::Count(2)),
        choice(".3d", Value::Count(4)),
        choice(".a1d", Value::Count(2)),
        choice(".a2d", Value::Count(4)),
        choice(".cube", Value::Count(4)),
        choice(".acube", Value::Count(4)),
        choice_if(".2dms", Value::Count(4), Needs::on(3, 2, SM_30)),
        choice_if(".a2dms", Value::Count(4), Needs::on(3, 2, SM_30)),
    ],
);
const RESULT: Group = one_of(
    Role::Type,
    &[ty(".u32", U32), ty(".s32", S32), ty_if(".f16", F16, Needs::on(4, 2, SM_53)), ty(".f32", F32)],
);
const COORDINATE: Group = one_of(Role::Type2, &[ty(".s32", S32), ty(".f32", F32)]);
const V4: Operand = Operand {
    name: "d",
    kind: Kind::Vector,
    is: Is::Like(Role::Type),
    count: Count::Fixed(4),
    optional: false,
    when: When::Always,
};
const V2: Operand = Operand { is: Is::Fixed(B32), count: Count::Fixed(2), ..V4 };
/// The texture and a place in it.
pub const PLACE: Operand = Operand {
    name: "a, c",
    kind: Kind::Point,
    is: Is::Of(coordinate_type),
    count: Count::By(Role::Shape),
    optional: false,
    when: When::Always,
};
/// Offsets in texels.
const OFFSETS: Operand = Operand {
    name: "e",
    kind: Kind::Vector,
    is: Is::Fixed(S32),
    count: Count::Fragment(n_offsets),
    optional: true,
    when: When::Always,
};
const GRADIENT: Operand = Operand {
    name: "dPdx",
    kind: Kind::Vector,
    is: Is::Fixed(F32),
    count: Count::Fragment(n_gradients),
    optional: false,
    when: When::Always,
};
const DEPTH: Operand = val("f", Is::Fixed(F32)).optional();

/// `tex.geom.v4.dtype.ctype d, [a, {b,} c]{, e}{, f}`.
pub const TEX: Form = Form {
    opcode: "tex",
    words: &[".v4"],
    section: SECTION,
    qualifiers: &[GEOMETRY, RESULT, COORDINATE],
    dst: &[V4],
    src: &[PLACE, OFFSETS, DEPTH],
    legal: geometry,
    semantics: Semantics::Unsupported(WHY),
    ..UNSUPPORTED_FORM
};

/// `tex.base.geom.v4.dtype.ctype d, [a, {b,} c]{, e}{, f}`.
pub const TEX_BASE: Form = Form { words: &[".base", ".v4"], needs: Needs::on(3, 1, SM_20), ..TEX };

/// `tex.level.geom.v4.dtype.ctype d, [a, {b,} c], lod{, e}{, f}`.
pub const TEX_LEVEL: Form =
    Form { words: &[".level", ".v4"], src: &[PLACE, val("lod", Is::Like(Role::Type2)), OFFSETS, DEPTH], ..TEX_BASE };

/// `tex.grad.geom.v4.dtype.ctype d, [a, {b,} c], dPdx, dPdy{, e}{, f}`.
pub const TEX_GRAD: Form = Form {
    words: &[".grad", ".v4"],
    src: &[PLACE, GRADIENT, Operand { name: "dPdy", ..GRADIENT }, OFFSETS, DEPTH],
    ..TEX_BASE
};

/// `tex.geom.v2.f16x2.ctype d, [a, {b,} c]{, e}{, f}`.
pub const TEX_PAIR: Form = Form {
    words: &[".v2", ".f16x2"],
    qualifiers: &[GEOMETRY, COORDINATE],
    dst: &[V2],
    needs: Needs::on(4, 2, SM_53),
    ..TEX
};

/// `tex.base.geom.v2.f16x2.ctype d, [a, {b,} c]{, e}{, f}`.
pub const TEX_BASE_PAIR: Form = Form { words: &[".base", ".v2", ".f16x2"], ..TEX_PAIR };

/// `tex.level.geom.v2.f16x2.ctype d, [a, {b,} c], lod{, e}{, f}`.
pub const TEX_LEVEL_PAIR: Form = Form {
    words: &[".level", ".v2", ".f16x2"],
    src: &[PLACE, val("lod", Is::Like(Role::Type2)), OFFSETS, DEPTH],
    ..TEX_PAIR
};

/// `tex.grad.geom.v2.f16x2.ctype d, [a, {b,} c], dPdx, dPdy{, e}{, f}`.
pub const TEX_GRAD_PAIR: Form = Form {
    words: &[".grad", ".v2", ".f16x2"],
    src: &[PLACE, GRADIENT, Operand { name: "dPdy", ..GRADIENT }, OFFSETS, DEPTH],
    ..TEX_PAIR
};

/// `tld4.comp.geom.v4.dtype.f32 d, [a, {b,} c]{, e}{, f}`: one component of four neighbours.
pub const TLD4: Form = Form {
    opcode: "tld4",
    words: &[".v4"],
    section: "Texture Instructions: tld4",
    qualifiers: &[
        must(
            Role::Op,
            &[
                choice(".r", Value::Flag),
                choice(".g", Value::Flag),
                choice(".b", Value::Flag),
                choice(".a", Value::Flag),
            ],
        ),
        must(
            Role::Shape,
            &[
                choice(".2d", Value::Count(2)),
                choice_if(".a2d", Value::Count(4), Needs::on(4, 3, SM_30)),
                choice_if(".cube", Value::Count(4), Needs::on(4, 3, SM_30)),
                choice_if(".acube", Value::Count(4), Needs::on(4, 3, SM_30)),
            ],
        ),
        one_of(Role::Type, &[ty(".u32", U32), ty(".s32", S32), ty(".f32", F32)]),
        one_of(Role::Type2, &[ty(".f32", F32)]),
    ],
    needs: Needs::on(2, 2, SM_20),
    ..TEX
};

/// The first coordinate of an array is an index whatever the type; sizes are the same.
fn coordinate_type(u: &Use) -> ScalarType {
    if u.text(Role::Shape).starts_with(".a") { B32 } else { u.ty(Role::Type2) }
}

fn n_offsets(u: &Use) -> u8 {
    match u.text(Role::Shape) {
        ".1d" | ".a1d" => 1,
        ".3d" => 4,
        _ => 2,
    }
}

fn n_gradients(u: &Use) -> u8 {
    match u.text(Role::Shape) {
        ".1d" | ".a1d" => 1,
        ".2d" | ".a2d" => 2,
        _ => 4,
    }
}

fn geometry(u: &Use) -> Result<Needs, Reason> {
    let shape = u.text(Role::Shape);
    let wanted = match shape {
        ".cube" | ".acube" => ".f32",
        ".2dms" | ".a2dms" => ".s32",
        _ => "",
    };
    let given = u.text(Role::Type2);
    if wanted.is_empty() || wanted == given {
        return Ok(Needs::NONE);
    }
    Err(Reason::new(format!("`{shape}` takes coordinates of type `{wanted}`")).at(given))
}
