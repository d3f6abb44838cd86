//! `mma` as one op on the registers of a warp. What it computes stands in `ir::num::matrix`, which element lies where at
//! [`Product`].

use handloom_ir::simt::{Accumulator, Element, MatrixOp, Product, Step};
use handloom_ir::types::ScalarType::{self, *};

use super::ldmatrix::warp_op;
use super::shape::mnk;
use crate::form::*;

/// `mma` of dense matrices, but for the shape of Volta.
pub(super) fn product(x: &mut Cx<'_, '_>) {
    let (m, _, k) = mnk(x.u.text(Role::Shape));
    let step = match x.u.text(Role::Op) {
        ".xor" => Step::XorPopc,
        ".and" => Step::AndPopc,
        _ if x.u.has(Role::SatFinite) => Step::AddSaturating,
        _ => Step::Add,
    };
    let op = MatrixOp::Product(Product {
        m: u8::try_from(m).expect("bug: more than 255 rows"),
        k: u16::try_from(k).expect("bug: a depth beyond 16 bits"),
        a: element(x.u.text(Role::Type2)),
        b: element(x.u.text(Role::Type3)),
        c: accumulator(x.u.ty(Role::Type4)),
        d: accumulator(x.u.ty(Role::Type)),
        step,
    });
    let src = (0..3).flat_map(|i| x.srcs(i)).collect();
    let values = warp_op(x, op, src);
    values.into_iter().enumerate().for_each(|(i, v)| x.set_at(0, i, v));
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
