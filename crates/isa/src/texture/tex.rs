//! `tex`: reads a texture.

use handloom_ir::num::image::Kind as Object;
use handloom_ir::simt::build::Addr;
use handloom_ir::simt::{Access, Cvt, Fetch, Geometry, ImageOp, Lod, Op, Pure, Reg, Val};
use handloom_ir::types::ScalarType::{self, *};
use handloom_ir::types::{StateSpace, Ty};

use crate::form::*;
use crate::target::Needs;
use crate::words::*;

const SECTION: &str = "Texture Instructions: tex";

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
/// The type of results that are pairs.
const PAIR: Group = one_of(Role::Type, &[ty(".f16x2", F16x2)]);
const BASE: Group = lead(Role::Mode, &[choice(".base", Value::Flag)]);
const LEVEL: Group = lead(Role::Mode, &[choice(".level", Value::Flag)]);
const GRAD: Group = lead(Role::Mode, &[choice(".grad", Value::Flag)]);
const COORDINATE: Group = one_of(Role::Type2, &[ty(".s32", S32), ty(".f32", F32)]);
const V4: Operand = Operand {
    name: "d",
    kind: Kind::VectorPredPair,
    is: Is::Like(Role::Type),
    count: Count::Fixed(4),
    optional: false,
    when: When::Always,
};
const V2: Operand = Operand { is: Is::Fixed(F16x2), count: Count::Every(|_| 2), ..V4 };
/// The texture and a place in it.
pub const PLACE: Operand = Operand {
    name: "a, c",
    kind: Kind::Texel(Object::Texture),
    is: Is::Of(coordinate_type),
    count: Count::By(Role::Shape),
    optional: false,
    when: When::Always,
};
/// Offsets in texels.
const OFFSETS: Operand = Operand {
    name: "e",
    kind: Kind::Tuple,
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
const DEPTH: Operand = val("f", Is::Fixed(F32))
    .optional()
    .when(When::All(&[When::Word(Role::Type2, &[".f32"]), When::Not(Role::Shape, &[".3d"])]));

/// `tex.geom.v4.dtype.ctype d, [a, {b,} c]{, e}{, f}`.
pub const TEX: Form = Form {
    opcode: "tex",
    words: &[".v4"],
    section: SECTION,
    qualifiers: &[GEOMETRY, RESULT, COORDINATE],
    dst: &[V4],
    src: &[PLACE, OFFSETS, DEPTH],
    needs: Needs::NONE,
    legal: geometry,
    semantics: Semantics::Warp(|x| look(x, Lod::Base, None)),
};

/// `tex.base.geom.v4.dtype.ctype d, [a, {b,} c]{, e}{, f}`.
pub const TEX_BASE: Form =
    Form { words: &[".v4"], qualifiers: &[BASE, GEOMETRY, RESULT, COORDINATE], needs: Needs::on(3, 1, SM_20), ..TEX };

/// `tex.level.geom.v4.dtype.ctype d, [a, {b,} c], lod{, e}{, f}`.
pub const TEX_LEVEL: Form = Form {
    words: &[".v4"],
    qualifiers: &[LEVEL, GEOMETRY, RESULT, COORDINATE],
    src: &[PLACE, val("lod", Is::Like(Role::Type2)), OFFSETS, DEPTH],
    semantics: Semantics::Warp(|x| look(x, Lod::Level, None)),
    ..TEX_BASE
};

/// `tex.grad.geom.v4.dtype.ctype d, [a, {b,} c], dPdx, dPdy{, e}{, f}`.
pub const TEX_GRAD: Form = Form {
    words: &[".v4"],
    qualifiers: &[GRAD, GEOMETRY, RESULT, COORDINATE],
    src: &[PLACE, GRADIENT, Operand { name: "dPdy", ..GRADIENT }, OFFSETS, DEPTH],
    semantics: Semantics::Warp(|x| look(x, Lod::Gradient, None)),
    ..TEX_BASE
};

/// `tex.geom.v2.f16x2.ctype d, [a, {b,} c]{, e}{, f}`.
pub const TEX_PAIR: Form = Form {
    words: &[".v2"],
    qualifiers: &[GEOMETRY, PAIR, COORDINATE],
    dst: &[V2],
    needs: Needs::on(4, 2, SM_53),
    ..TEX
};

/// `tex.base.geom.v2.f16x2.ctype d, [a, {b,} c]{, e}{, f}`.
pub const TEX_BASE_PAIR: Form = Form { words: &[".v2"], qualifiers: &[BASE, GEOMETRY, PAIR, COORDINATE], ..TEX_PAIR };

/// `tex.level.geom.v2.f16x2.ctype d, [a, {b,} c], lod{, e}{, f}`.
pub const TEX_LEVEL_PAIR: Form = Form {
    words: &[".v2"],
    qualifiers: &[LEVEL, GEOMETRY, PAIR, COORDINATE],
    src: &[PLACE, val("lod", Is::Like(Role::Type2)), OFFSETS, DEPTH],
    semantics: Semantics::Warp(|x| look(x, Lod::Level, None)),
    ..TEX_PAIR
};

/// `tex.grad.geom.v2.f16x2.ctype d, [a, {b,} c], dPdx, dPdy{, e}{, f}`.
pub const TEX_GRAD_PAIR: Form = Form {
    words: &[".v2"],
    qualifiers: &[GRAD, GEOMETRY, PAIR, COORDINATE],
    src: &[PLACE, GRADIENT, Operand { name: "dPdy", ..GRADIENT }, OFFSETS, DEPTH],
    semantics: Semantics::Warp(|x| look(x, Lod::Gradient, None)),
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
    semantics: Semantics::Warp(|x| {
        let component = [".r", ".g", ".b", ".a"].iter().position(|c| *c == x.u.text(Role::Op)).unwrap_or(0);
        look(x, Lod::Base, u8::try_from(component).ok());
    }),
    ..TEX
};

/// The shape that a word names.
pub(crate) fn geometry_of(u: &Use) -> Geometry {
    let word = u.text(Role::Shape);
    let found = Geometry::ALL.into_iter().find(|g| word.strip_prefix('.') == Some(g.word()));
    found.expect("bug: a shape of images without a geometry")
}

/// The handle of a texture, sampler or surface: its address, or what a parameter of the entry holds.
pub(crate) fn handle(x: &mut Cx<'_, '_>, at: Place) -> Val {
    let Addr { base, offset } = at.addr;
    if at.is_param {
        return x.b.load(Access::weak(StateSpace::ParamEntry, 64), at.addr)[0];
    }
    if offset == 0 { base } else { x.b.add(base, Val::Imm(offset.cast_unsigned(), Ty::B64)) }
}

/// The coordinates in the order of the op, without padding.
///
/// Choice: the description of `.a2dms` names the sample first, its first sentence and its example the index of the array, which is taken here.
pub(crate) fn coordinates(point: &Point, geometry: Geometry) -> impl Iterator<Item = Val> {
    point.coordinates.iter().copied().take(geometry.n_coordinates())
}

/// A look at a texture.
fn look(x: &mut Cx<'_, '_>, lod: Lod, gather: Option<u8>) {
    let point = x.point(0).clone();
    let geometry = geometry_of(x.u);
    let axes = geometry.n_axes();
    let mut at = 1;
    let mut words: Vec<Val> = coordinates(&point, geometry).collect();
    match lod {
        Lod::Base => {}
        Lod::Level => {
            words.push(x.src(at));
            at += 1;
        }
        Lod::Gradient => {
            for _ in 0..2 {
                words.extend(x.srcs(at).into_iter().take(axes));
                at += 1;
            }
        }
    }
    let offsets: Vec<Val> = if at < x.args.len() { x.srcs(at) } else { Vec::new() };
    let depth = x.src_opt(at + 1);
    words.extend(offsets.iter().copied().take(axes));
    words.extend(depth);
    let fetch = Fetch {
        geometry,
        is_float: x.u.ty(Role::Type2) == F32,
        lod,
        has_sampler: point.sampler.is_some(),
        has_offsets: !offsets.is_empty(),
        has_depth: depth.is_some(),
        gather,
    };
    let mut src = vec![handle(x, point.at)];
    if let Some(sampler) = point.sampler {
        src.push(handle(x, sampler));
    }
    src.extend(words);
    let dst: Vec<Reg> = (0..4).map(|_| x.b.reg(Ty::B32)).collect();
    x.b.push(Op::Image(ImageOp::Fetch(fetch)), dst.clone().into(), src.into());
    let texel: Vec<Val> = dst.into_iter().map(Val::Reg).collect();
    let n = if x.u.ty(Role::Type) == F16x2 {
        for (i, two) in texel.chunks_exact(2).enumerate() {
            let [low, high] = [0, 1].map(|k| half(x, two[k]));
            let both = x.b.pack(low, high);
            x.set_at(0, i, both);
        }
        2
    } else {
        let is_half = x.u.ty(Role::Type) == F16;
        for (i, v) in texel.iter().enumerate() {
            let v = if is_half { half(x, *v) } else { *v };
            x.set_at(0, i, v);
        }
        4
    };
    // All of a texture is always in memory.
    if x.wants(0, n) {
        x.set_at(0, n, Val::Imm(1, Ty::P));
    }
}

/// The `.f16` next to an `.f32`.
fn half(x: &mut Cx<'_, '_>, v: Val) -> Val {
    x.b.pure(Pure::Cvt(Cvt::plain(F16, F32)), Ty::B16, &[v])
}

/// The first coordinate of an array is an index whatever the type; sizes are the same.
fn coordinate_type(u: &Use) -> ScalarType {
    if u.text(Role::Shape).starts_with(".a") { B32 } else { u.ty(Role::Type2) }
}

fn n_offsets(u: &Use) -> u8 {
    match u.text(Role::Shape) {
        ".1d" | ".a1d" => 1,
        ".3d" => 4,
        // They take none.
        ".cube" | ".acube" => 0,
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
