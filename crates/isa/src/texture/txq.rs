//! `txq`, `istypep`: what a texture is.

use handloom_ir::num::image::{Kind as ObjectKind, Query};
use handloom_ir::simt::{ImageOp, Op, Val};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{StateSpace, Ty};
use smallvec::smallvec;

use super::tex::handle;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

const SECTION: &str = "Texture Instructions: txq";
/// The texture that is asked, or the sampler.
const TEXTURE: Operand = Operand { is: Is::Handle(&[ObjectKind::Texture, ObjectKind::Sampler]), ..address("a") };

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
    src: &[TEXTURE],
    needs: Needs::ptx(1, 5),
    legal: always,
    semantics: Semantics::Warp(|x| ask(x, query(x.u), None)),
};

/// `txq.level.query.b32 d, [a], lod`.
pub const TXQ_LEVEL: Form = Form {
    words: &[".b32"],
    qualifiers: &[
        lead(Role::Mode, &[choice(".level", Value::Flag)]),
        must(Role::Op, &[choice(".width", Value::Flag), choice(".height", Value::Flag), choice(".depth", Value::Flag)]),
    ],
    src: &[TEXTURE, val("lod", WORD)],
    needs: Needs::on(4, 3, SM_30),
    semantics: Semantics::Warp(|x| {
        let lod = x.src(1);
        ask(x, query(x.u), Some(lod));
    }),
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
    src: &[reg("a", Is::Descriptor(U64))],
    needs: Needs::on(4, 0, SM_30),
    semantics: Semantics::Warp(|x| {
        let kind = match x.u.text(Role::Op) {
            ".texref" => ObjectKind::Texture,
            ".samplerref" => ObjectKind::Sampler,
            _ => ObjectKind::Surface,
        };
        let d = x.b.reg(Ty::P);
        let src = x.src(0);
        x.b.push(Op::Image(ImageOp::Is(kind)), smallvec![d], smallvec![src]);
        x.set(Val::Reg(d));
    }),
    ..TXQ
};

/// What a word asks for.
pub(crate) fn query(u: &Use) -> Query {
    match u.text(Role::Op) {
        ".width" => Query::Width,
        ".height" => Query::Height,
        ".depth" => Query::Depth,
        ".channel_data_type" => Query::ChannelDataType,
        ".channel_order" => Query::ChannelOrder,
        ".normalized_coords" => Query::NormalizedCoords,
        ".force_unnormalized_coords" => Query::ForceUnnormalizedCoords,
        ".filter_mode" => Query::FilterMode,
        ".addr_mode_0" => Query::AddrMode(0),
        ".addr_mode_1" => Query::AddrMode(1),
        ".addr_mode_2" => Query::AddrMode(2),
        ".array_size" => Query::ArraySize,
        ".num_mipmap_levels" => Query::NumMipmapLevels,
        ".num_samples" => Query::NumSamples,
        ".memory_layout" => Query::MemoryLayout,
        other => panic!("bug: nothing asks for `{other}`"),
    }
}

/// Asks an object.
pub(crate) fn ask(x: &mut Cx<'_, '_>, query: Query, level: Option<Val>) {
    let is_param = x.u.named_space == Some(StateSpace::ParamEntry);
    let mut src = vec![handle(x, Place { addr: x.addr(0), is_param })];
    src.extend(level);
    let d = x.b.reg(Ty::B32);
    x.b.push(Op::Image(ImageOp::Query { query, of_level: level.is_some() }), smallvec![d], src.into());
    x.set(Val::Reg(d));
}
