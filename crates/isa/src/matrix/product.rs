//! `mma` as one op on the registers of a warp. What it computes stands in `ir::num::matrix`, which element lies where at
//! [`Product`].

use handloom_ir::simt::{Accumulator, Element, MatrixOp, Product, Step};
use handloom_ir::types::Rounding;
use handloom_ir::types::ScalarType::{self, *};

use super::ldmatrix::warp_op;
use super::shape::mnk;
use crate::form::*;

/// `mma` of dense matrices, but for the shape of Volta.
pub(super) fn product(x: &mut Cx<'_, '_>) {
    let op = MatrixOp::Product(of_instruction(x.u));
    let src = (0..3).flat_map(|i| x.srcs(i)).collect();
    let values = warp_op(x, op, src);
    values.into_iter().enumerate().for_each(|(i, v)| x.set_at(0, i, v));
}

/// The product that an instruction names; multiplicands that it does not name are of `.f16`.
pub(super) fn of_instruction(u: &Use) -> Product {
    let (m, _, k) = mnk(u.text(Role::Shape));
    let step = match (u.text(Role::Op), u.round(Role::Round)) {
        (".xor", _) => Step::XorPopc,
        (".and", _) => Step::AndPopc,
        _ if u.has(Role::SatFinite) => Step::AddSaturating,
        (_, Some(round)) if round != Rounding::Nearest => Step::AddRounded(round),
        _ => Step::Add,
    };
    let of = |role| if u.has(role) { element(u.text(role)) } else { Element::F16 };
    Product {
        m: u8::try_from(m).expect("bug: more than 255 rows"),
        k: u16::try_from(k).expect("bug: a depth beyond 16 bits"),
        a: of(Role::Type2),
        b: of(Role::Type3),
        c: accumulator(u.ty(Role::Type4)),
        d: accumulator(u.ty(Role::Type)),
        step,
    }
}

fn element(format: &str) -> Element {
    match format {
        ".f16" => Element::F16,
        ".bf16" => Element::Bf16,
        ".tf32" => Element::Tf32,
        ".e4m3" => Element::E4m3,
        ".e5m2" => Element::E5m2,
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
