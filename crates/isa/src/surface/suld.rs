//! `suld`, `sust`, `sured`, `suq`: surfaces.

use handloom_ir::num::image::Kind as Object;
use handloom_ir::simt::build::Addr;
use handloom_ir::simt::{Access, AtomAccess, ImageOp, Op, OutOfRange, Surface, Unit, Val};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{AtomOp, Order, Scope, StateSpace, Ty};
use smallvec::smallvec;

use crate::form::*;
use crate::target::{Needs, TargetGate};
use crate::texture::tex::{coordinates, geometry_of, handle};
use crate::texture::txq::{ask, query};
use crate::words::*;

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
/// In bytes.
const BYTES: Group = lead(Role::Half, &[choice(".b", Value::Flag)]);
/// By the format of the surface.
const FORMATTED: Group = lead(Role::Half, &[choice(".p", Value::Flag)]);
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
    kind: Kind::Texel(Object::Surface),
    is: Is::Fixed(S32),
    count: Count::By(Role::Shape),
    optional: false,
    when: When::Always,
};

/// `suld.b.geom{.cop}{.vec}.dtype.clamp d, [a, b]`.
pub const SULD: Form = Form {
    opcode: "suld",
    words: &[],
    section: "Surface Instructions: suld",
    qualifiers: &[BYTES, GEOMETRY, LOAD_COP, VEC, BITS, CLAMP],
    dst: &[vector("d", Is::Relaxed(Role::Type), Role::Vec)],
    src: &[PLACE],
    needs: Needs::ptx(1, 5),
    legal: no_wide_vector,
    semantics: Semantics::Warp(load),
};

/// `sust.b.geom{.cop}{.vec}.ctype.clamp [a, b], c`.
pub const SUST: Form = Form {
    opcode: "sust",
    section: "Surface Instructions: sust",
    qualifiers: &[BYTES, GEOMETRY, STORE_COP, VEC, BITS, CLAMP],
    dst: &[],
    src: &[PLACE, vector("c", Is::Relaxed(Role::Type), Role::Vec)],
    semantics: Semantics::Warp(store),
    ..SULD
};

/// `sust.p.geom{.vec}.b32.clamp [a, b], c`.
pub const SUST_P: Form = Form {
    qualifiers: &[FORMATTED, GEOMETRY, STORE_COP, VEC, must(Role::Type, &[ty(".b32", B32)]), CLAMP],
    needs: Needs::on(2, 0, SM_20),
    semantics: Semantics::Warp(store_formatted),
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
        BYTES,
        OPS,
        PLAIN_GEOMETRY,
        must(Role::Type, &[ty(".u32", U32), ty(".u64", U64), ty(".s32", S32), ty(".b32", B32), ty(".s64", S64)]),
        CLAMP,
    ],
    src: &[PLACE, val("c", Is::Relaxed(Role::Type))],
    needs: Needs::on(2, 0, SM_20),
    legal: |u| reduction(u, false),
    semantics: Semantics::Warp(|x| reduce(x, Unit::Bytes)),
    ..SUST
};

/// `sured.p.op.geom.ctype.clamp [a, b], c`.
pub const SURED_P: Form = Form {
    qualifiers: &[FORMATTED, OPS, PLAIN_GEOMETRY, must(Role::Type, &[ty(".b32", B32), ty(".b64", B64)]), CLAMP],
    legal: |u| reduction(u, true),
    semantics: Semantics::Warp(|x| reduce(x, Unit::Accesses)),
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
    src: &[Operand { is: Is::Handle(&[Object::Surface]), ..address("a") }],
    needs: Needs::ptx(1, 5),
    legal: always,
    semantics: Semantics::Warp(|x| ask(x, query(x.u), None)),
};

/// Where an access goes.
fn surface(x: &Cx<'_, '_>, bits: u32, unit: Unit) -> Surface {
    let outside = match x.u.text(Role::Mode) {
        ".trap" => OutOfRange::Trap,
        ".clamp" => OutOfRange::Clamp,
        _ => OutOfRange::Zero,
    };
    let bytes = u8::try_from(bits / 8).expect("bug: an access of more than 255 bytes");
    Surface { geometry: geometry_of(x.u), bytes, unit, outside }
}

/// Handle and coordinates.
fn sources(x: &mut Cx<'_, '_>) -> Vec<Val> {
    let point = x.point(0).clone();
    let mut src = vec![handle(x, point.at)];
    src.extend(coordinates(&point, geometry_of(x.u)));
    src
}

/// The place of an access: its address, whether there is one (`None`: always), and whether the elements are signed.
fn place(x: &mut Cx<'_, '_>, at: Surface) -> (Addr, Option<Val>, Val) {
    let src = sources(x);
    let [address, inside, signed] = [Ty::B64, Ty::P, Ty::P].map(|ty| x.b.reg(ty));
    x.b.push(Op::Image(ImageOp::Place(at)), smallvec![address, inside, signed], src.into());
    let inside = (at.outside != OutOfRange::Trap).then_some(Val::Reg(inside));
    (Addr { base: Val::Reg(address), offset: 0 }, inside, Val::Reg(signed))
}

/// The access to elements of the instruction's type.
fn access(u: &Use) -> Access {
    let (bits, count) = (u.ty(Role::Type).bits(), u.count(Role::Vec));
    let bits = u8::try_from(bits).expect("bug: an element of more than 64 bits");
    Access::weak_vector(StateSpace::Global, bits, count)
}

fn load(x: &mut Cx<'_, '_>) {
    let access = access(x.u);
    let at = surface(x, access.bytes() * 8, Unit::Bytes);
    let (address, inside, _) = place(x, at);
    x.b.guard = inside;
    let values = x.b.load(access, address);
    x.b.guard = None;
    for (i, v) in values.into_iter().enumerate() {
        let ty = x.b.ty(v);
        let v = inside.map_or(v, |p| x.b.select(p, v, Val::Imm(0, ty)));
        x.set_at(0, i, v);
    }
}

fn store(x: &mut Cx<'_, '_>) {
    let access = access(x.u);
    let at = surface(x, access.bytes() * 8, Unit::Bytes);
    let values = x.srcs(1);
    let (address, inside, _) = place(x, at);
    x.b.guard = inside;
    x.b.store(access, address, &values);
    x.b.guard = None;
}

fn store_formatted(x: &mut Cx<'_, '_>) {
    let at = surface(x, 32, Unit::Elements);
    let mut src = sources(x);
    let values = x.srcs(1);
    let count = u8::try_from(values.len()).expect("bug: a vector of more than 255 elements");
    src.extend(values);
    x.b.push(Op::Image(ImageOp::Store { at, count }), smallvec![], src.into());
}

/// A reduction. One that depends on the sign, of bits, goes by what the elements of the surface are.
fn reduce(x: &mut Cx<'_, '_>, unit: Unit) {
    let written = x.u.ty(Role::Type);
    let at = surface(x, written.bits(), unit);
    let value = x.src(1);
    let (address, inside, signed) = place(x, at);
    let op = match x.u.text(Role::Op) {
        ".add" => AtomOp::Add,
        ".min" => AtomOp::Min,
        ".max" => AtomOp::Max,
        ".and" => AtomOp::And,
        _ => AtomOp::Or,
    };
    let (unsigned_ty, signed_ty) = if written.bits() == 64 { (U64, S64) } else { (U32, S32) };
    let by_format = unit == Unit::Accesses && matches!(op, AtomOp::Min | AtomOp::Max);
    let guards = if by_format {
        let unsigned = x.b.not(signed);
        let both = [unsigned, signed].map(|p| inside.map_or(p, |inside| x.b.and(inside, p)));
        vec![(unsigned_ty, Some(both[0])), (signed_ty, Some(both[1]))]
    } else {
        vec![(if written.is_signed() { signed_ty } else { unsigned_ty }, inside)]
    };
    for (ty, guard) in guards {
        let (order, scope) = (Order::Relaxed, Scope::Gpu);
        let access = AtomAccess { op, ty, space: StateSpace::Global, order, scope, count: 1 };
        x.b.guard = guard;
        x.b.push_guarded(Op::Red { access, offset: address.offset }, smallvec![], smallvec![address.base, value]);
    }
    x.b.guard = None;
}

fn no_wide_vector(u: &Use) -> Result<Needs, Reason> {
    if u.ty(Role::Type).bits() * u32::from(u.count(Role::Vec)) > 128 {
        return Err(Reason::new("the vector has more than 128 bits").at(u.text(Role::Vec)));
    }
    Ok(Needs::NONE)
}

/// `of_elements`: the type is that of the surface, and bits may be added and compared.
fn reduction(u: &Use, of_elements: bool) -> Result<Needs, Reason> {
    let (op, t) = (u.text(Role::Op), u.ty(Role::Type));
    let fits = match op {
        ".add" => matches!(t, U32 | S32 | U64) || of_elements && t == B32,
        ".min" | ".max" => matches!(t, U32 | S32 | U64 | S64) || of_elements,
        _ => t == B32,
    };
    if !fits {
        return Err(Reason::new(format!("`{op}` does not go with `{t}`")).at(op));
    }
    Ok(if t.bits() == 64 && op != ".add" { Needs::on(8, 1, SM_50) } else { Needs::NONE })
}
