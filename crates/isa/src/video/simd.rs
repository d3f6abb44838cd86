//! What the records of SIMD video instructions share.

use handloom_ir::simt::video::Elements;
use handloom_ir::simt::{Pure, SimdOp, VideoSimd};
use handloom_ir::types::ScalarType::U32;
use handloom_ir::types::Ty;

use super::scalar::{once, video};
use crate::compose::apply;
use crate::form::*;
use crate::selector::Select;
use crate::target::Needs;
use crate::words::*;

pub(super) const PAIRS: &str = "SIMD Video Instructions: vadd2, vsub2, vavrg2, vabsdiff2, vmin2, vmax2";
pub(super) const QUADS: &str = "SIMD Video Instructions: vadd4, vsub4, vavrg4, vabsdiff4, vmin4, vmax4";
pub(super) const SIMD: Needs = Needs::on(3, 0, SM_30);
pub(super) const ADD: &[&str] = &[".add"];

/// Operands of the forms with a type of the destination.
pub(super) const D2: Operand = video("d", TYPE, Select::PairMask, false);
pub(super) const D4: Operand = video("d", TYPE, Select::QuadMask, false);
pub(super) const SOURCES2: [Operand; 3] = sources(Select::Pair, TYPE2, TYPE3, TYPE);
pub(super) const SOURCES4: [Operand; 3] = sources(Select::Quad, TYPE2, TYPE3, TYPE);
/// Operands of comparisons, whose destination has no type.
pub(super) const SET_D2: Operand = Operand { is: Is::Fixed(U32), ..D2 };
pub(super) const SET_D4: Operand = Operand { is: Is::Fixed(U32), ..D4 };
pub(super) const SET_SOURCES2: [Operand; 3] = sources(Select::Pair, TYPE, TYPE2, Is::Fixed(U32));
pub(super) const SET_SOURCES4: [Operand; 3] = sources(Select::Quad, TYPE, TYPE2, Is::Fixed(U32));

/// a, b and c, all in registers: the assembler takes no literal here.
const fn sources(select: Select, a: Is, b: Is, c: Is) -> [Operand; 3] {
    [video("a", a, select, false), video("b", b, select, false), video("c", c, Select::Nothing, false)]
}

/// `.sat` once.
pub(super) fn clamps(u: &Use) -> Result<Needs, Reason> {
    once(u)
}

/// Builds an op on `n` elements.
pub(super) fn simd(x: &mut Cx<'_, '_>, op: SimdOp, n: u8, accumulate: bool) {
    let signed = x.u.ty(Role::Type).is_signed();
    of_signs(x, op, n, accumulate, signed, Role::Type2, Role::Type3);
}

/// Builds a comparison of `n` elements.
pub(super) fn set(x: &mut Cx<'_, '_>, n: u8, accumulate: bool) {
    let op = SimdOp::Set(crate::compose::cmp(x.u));
    of_signs(x, op, n, accumulate, false, Role::Type, Role::Type2);
}

fn of_signs(x: &mut Cx<'_, '_>, op: SimdOp, n: u8, accumulate: bool, signed: bool, atype: Role, btype: Role) {
    let [d, a, b, _] = x.u.marks;
    let simd = VideoSimd {
        op,
        n,
        signed,
        a: Elements { select: a.elements(0), signed: x.u.ty(atype).is_signed() },
        b: Elements { select: b.elements(n), signed: x.u.ty(btype).is_signed() },
        mask: d.mask(u8::MAX >> (8 - n)),
        sat: x.u.has(Role::Sat) || x.u.has(Role::Flag2),
        accumulate,
    };
    apply(x, Pure::VideoSimd(simd), Ty::B32, 3);
}
