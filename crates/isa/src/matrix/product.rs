//! `mma` as one op on the registers of a warp. What it computes stands in `ir::num::matrix`, which element lies where at
//! [`Product`].

use handloom_ir::simt::{Accumulator, Element, MatrixOp, Product, Quads, Scale, ScaleFormat, Sparse, Step, Val};
use handloom_ir::types::Rounding;
use handloom_ir::types::ScalarType::{self, *};

use super::ldmatrix::warp_op;
use super::shape::mnk;
use crate::form::*;

/// `mma`.
pub(super) fn product(x: &mut Cx<'_, '_>) {
    compute(x, of_instruction(x.u), 3);
}

/// `mma.sp`: the metadata and the selector follow the matrices.
pub(super) fn sparse(x: &mut Cx<'_, '_>) {
    compute(x, Product { sparse: Some(selector(x, 4)), ..of_instruction(x.u) }, 5);
}

/// `mma` with block scaling.
pub(super) fn scaled(x: &mut Cx<'_, '_>) {
    compute(x, of_scaled(x.u), 3);
}

/// `mma.sp` with block scaling.
pub(super) fn sparse_scaled(x: &mut Cx<'_, '_>) {
    compute(x, Product { sparse: Some(selector(x, 4)), ..of_scaled(x.u) }, 5);
}

/// The sources are those of the product, the scales from `scales` on.
fn compute(x: &mut Cx<'_, '_>, p: Product, scales: usize) {
    let metadata = if p.sparse.is_some() { x.srcs(3) } else { vec![] };
    let scales = if p.scale.is_some() { scales..scales + 4 } else { 0..0 };
    let mut src: Vec<Val> = (0..3).flat_map(|i| x.srcs(i)).chain(metadata).collect();
    src.extend(scales.flat_map(|i| x.srcs(i)));
    let values = warp_op(x, MatrixOp::Product(p), src);
    values.into_iter().enumerate().for_each(|(i, v)| x.set_at(0, i, v));
}

/// `mma.m8n8k4` of `.f16`.
pub(super) fn quads(x: &mut Cx<'_, '_>) {
    let by_rows = |role| x.u.text(role) == ".row";
    let of = |role| accumulator(x.u.ty(role));
    let op = MatrixOp::Quads(Quads {
        a_by_rows: by_rows(Role::LayoutA),
        b_by_rows: by_rows(Role::LayoutB),
        c: of(Role::Type4),
        d: of(Role::Type),
    });
    let src = (0..3).flat_map(|i| x.srcs(i)).collect();
    let values = warp_op(x, op, src);
    values.into_iter().enumerate().for_each(|(i, v)| x.set_at(0, i, v));
}

/// The sparsity selector, which is a constant.
///
/// Choice: what selects no lane is taken modulo the number of lanes.
pub(crate) fn selector(x: &Cx<'_, '_>, at: usize) -> Sparse {
    let Val::Imm(selector, _) = x.src(at) else { panic!("bug: a selector that is no constant") };
    Sparse { selector: u8::try_from(selector & 3).unwrap_or(0) }
}

/// The last selector that selects lanes: chunks of a row, four in a lane, are in one, two or all lanes of a group.
pub(crate) fn last_selector(u: &Use) -> u64 {
    let p = if u.has(Role::Mode) { of_scaled(u) } else { of_instruction(u) };
    let n_lanes = usize::from(p.k) / p.chunk().0 / 4;
    (4 / n_lanes.max(1)).saturating_sub(1) as u64
}

/// What an element of the operand that says where scales are may be, if it is a constant.
pub(crate) fn places_of_scales(u: &Use, operand: &str, element: usize) -> Option<&'static [u64]> {
    let is_a = match operand {
        "{byte-id-a, thread-id-a}" => true,
        "{byte-id-b, thread-id-b}" => false,
        _ => return None,
    };
    Some(match (element, of_scaled(u).scale.map_or(1, |s| s.blocks), is_a) {
        (0, 1, _) | (1, _, false) => &[0, 1, 2, 3],
        (0, 2, _) => &[0, 2],
        (0, ..) => &[0],
        _ => &[0, 1],
    })
}

/// The product with scales that an instruction names.
fn of_scaled(u: &Use) -> Product {
    let is_packed = u.text(Role::Mode) != ".kind::mxf8f6f4";
    let blocks = match (u.text(Role::Num), is_packed) {
        (".scale_vec::4X", _) => 4,
        (".scale_vec::2X", _) | ("", true) => 2,
        _ => 1,
    };
    let format = if u.text(Role::Sel) == ".ue4m3" { ScaleFormat::Ue4m3 } else { ScaleFormat::Ue8m0 };
    let p = of_instruction(u);
    let element = |e| if is_packed { Element::E2m1Packed } else { e };
    Product { a: element(p.a), b: element(p.b), scale: Some(Scale { format, blocks }), ..p }
}

/// The product that an instruction names; multiplicands and `c` that it does not name are of `.f16` and as `d`.
pub(crate) fn of_instruction(u: &Use) -> Product {
    let (m, _, k) = mnk(u.text(Role::Shape));
    let step = match (u.text(Role::Op), u.round(Role::Round)) {
        (".xor", _) => Step::XorPopc,
        (".and", _) => Step::AndPopc,
        _ if u.has(Role::SatFinite) => Step::AddSaturating,
        (_, Some(round)) if round != Rounding::Nearest => Step::AddRounded(round),
        _ => Step::Add,
    };
    let of = |role| if u.has(role) { element(u.text(role)) } else { Element::F16 };
    let d = accumulator(u.ty(Role::Type));
    Product {
        m: u8::try_from(m).expect("bug: more than 255 rows"),
        k: u16::try_from(k).expect("bug: a depth beyond 16 bits"),
        a: of(Role::Type2),
        b: of(Role::Type3),
        c: if u.has(Role::Type4) { accumulator(u.ty(Role::Type4)) } else { d },
        d,
        step,
        sparse: None,
        scale: None,
    }
}

fn element(format: &str) -> Element {
    match format {
        ".f16" => Element::F16,
        ".bf16" => Element::Bf16,
        ".tf32" => Element::Tf32,
        ".e4m3" => Element::E4m3,
        ".e5m2" => Element::E5m2,
        ".e3m2" => Element::E3m2,
        ".e2m3" => Element::E2m3,
        ".e2m1" => Element::E2m1,
        ".f64" => Element::F64,
        ".u8" => Element::U8,
        ".s8" => Element::S8,
        ".u4" => Element::U4,
        ".s4" => Element::S4,
        ".b1" => Element::B1,
        _ => panic!("bug: no matrix of `mma` has elements of `{format}`"),
    }
}

fn accumulator(ty: ScalarType) -> Accumulator {
    match ty {
        F16 => Accumulator::F16,
        F64 => Accumulator::F64,
        S32 => Accumulator::S32,
        F32 => Accumulator::F32,
        _ => panic!("bug: no accumulator of `mma` is `{}`", ty.name()),
    }
}
