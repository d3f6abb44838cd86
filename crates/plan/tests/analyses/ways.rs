//! How value ops are done: what the vector instructions of the host can and cannot do.

use handloom_ir::simt::{FMode, LaunchShape, Op, Pure, Reg, Val};
use handloom_ir::types::{Cmp, Float, Int, PrmtMode, Rounding, Sreg, Ty};
use handloom_plan::ways::{Scalar, SregWay, Vector, Way, scalar, sreg_way, way};

use crate::{plan, read};

const S64: Int = Int { ty: Ty::B64, signed: true };

fn vector(op: Pure, constant: &[Option<u64>], uniform: &[bool]) -> Option<Vector> {
    match way(op, constant, uniform) {
        Way::Vector(v) => Some(v),
        Way::Routine => None,
    }
}

#[test]
fn shifts_need_one_amount_for_all_lanes() {
    let varying = vector(Pure::Shl(Ty::B32), &[None, None], &[false, false]);
    assert!(varying.is_none(), "the shift instructions of packs take one amount");
    let uniform = vector(Pure::Shl(Ty::B32), &[None, None], &[false, true]);
    assert!(matches!(uniform, Some(Vector::ShiftUniform { left: true, .. })));
    let constant = vector(Pure::Shl(Ty::B32), &[None, Some(3)], &[false, true]);
    assert!(matches!(constant, Some(Vector::ShiftBy { left: true, amount: 3, .. })));
}

#[test]
fn arithmetic_shifts_of_64_bits_need_a_constant() {
    assert!(vector(Pure::Shr(S64), &[None, None], &[false, true]).is_none());
    assert!(vector(Pure::Shr(S64), &[None, Some(7)], &[false, true]).is_some());
    let unsigned = Int { signed: false, ..S64 };
    assert!(vector(Pure::Shr(unsigned), &[None, None], &[false, true]).is_some());
}

#[test]
fn funnel_shifts_know_how_far() {
    let amount =
        |wrap, by| match vector(Pure::Shf { right: true, wrap }, &[None, None, Some(by)], &[false, false, true]) {
            Some(Vector::Funnel { amount, .. }) => amount,
            other => panic!("{other:?}"),
        };
    // `.clamp` takes 32 and more for 32, `.wrap` the low five bits.
    assert_eq!([amount(false, 31), amount(false, 40), amount(true, 40)], [31, 32, 8]);
}

#[test]
fn prmt_is_a_shuffle_without_signs() {
    let of = |selector| vector(Pure::Prmt(PrmtMode::Default), &[None, None, Some(selector)], &[false, false, true]);
    assert!(matches!(of(0x7531), Some(Vector::Bytes([1, 3, 5, 7]))));
    assert!(of(0x8531).is_none(), "bit 3 of a selector copies a sign");
    let by_register = vector(Pure::Prmt(PrmtMode::Default), &[None; 3], &[false, false, true]);
    assert!(by_register.is_none());
}

#[test]
fn floats_round_to_nearest() {
    let mode = |ty, round| FMode { ty, round, ftz: false, sat: false, relu: false };
    let add = |m| vector(Pure::FAdd(m), &[None; 2], &[false; 2]);
    assert!(add(mode(Float::F32, Rounding::Nearest)).is_some());
    assert!(add(mode(Float::F32, Rounding::Zero)).is_none(), "the host rounds as its control word says");
    assert!(add(mode(Float::F16, Rounding::Nearest)).is_none(), "the host adds no halves");
}

#[test]
fn comparisons_of_floats_are_none_of_integers() {
    assert!(vector(Pure::ICmp(Cmp::Lt, Int::U32), &[None; 2], &[false; 2]).is_some());
    assert!(vector(Pure::ICmp(Cmp::Ltu, Int::U32), &[None; 2], &[false; 2]).is_none());
    assert!(scalar(Pure::ICmp(Cmp::Nan, Int::U32)).is_none());
}

#[test]
fn scalars_have_their_own_instructions() {
    assert!(matches!(scalar(Pure::Div(Int::U32)), Some(Scalar::Divide { quotient: true, .. })));
    assert!(vector(Pure::Div(Int::U32), &[None; 2], &[true; 2]).is_none(), "no vector divides integers");
    assert!(scalar(Pure::Not(Ty::P)).is_some_and(|w| matches!(w, Scalar::NotPred)));
}

#[test]
fn special_registers_are_read_by_what_lanes_see() {
    let launch = |ntid| LaunchShape { ntid, small_grid: false };
    let way = |s| sreg_way(s, &launch([64, 1, 1]));
    assert_eq!(way(Sreg::Ctaid(0)), SregWay::Scalar);
    assert_eq!(way(Sreg::LanemaskLt), SregWay::Mask(2), "no base and stride makes it");
    assert!(matches!(way(Sreg::Laneid), SregWay::Shaped(s) if s.stride == 1 && s.is_linear()));
    assert!(matches!(way(Sreg::Tid(0)), SregWay::Shaped(_)));
    // A row of six threads ends in the middle of a pack.
    assert_eq!(sreg_way(Sreg::Tid(0), &launch([6, 16, 1])), SregWay::Tid(0));
}

#[test]
fn nans_become_canonical_where_bits_are_looked_at() {
    let f = read::entry(
        "b0:
        v0:b32 = sreg.tid.x
        v1:b32 = fadd.rn.f32 v0, v0
        v2:b32 = fmul.rn.f32 v1, v0
        v3:b32 = xor.b32 v1, 1
        v4:b32 = mov.b32 v0
        v4:b32 = fadd.rn.f32 v2, v3
        exit",
    );
    let plan = plan(&f, (false, false));
    let op = |i: usize| match plan.func.blocks[0].insts[i].op {
        Op::Pure(op) => plan.value_op(&plan.func.blocks[0].insts[i], op),
        other => panic!("{other:?}"),
    };
    let reg = |r: u32| plan.odd_nans_of(Val::Reg(Reg(r)));
    // A sum of floats may be any NaN; what another op writes too may not.
    assert_eq!([reg(1), reg(2), reg(4)], [Some(Float::F32), Some(Float::F32), None]);
    assert_eq!(plan.odd_nans_of(Val::Imm(0x7fff_ffff, Ty::B32)), None);
    let (sum, product, xor, last) = (op(1), op(2), op(3), op(5));
    assert_eq!((sum.takes_odd_nans, sum.canonical), (true, None));
    assert_eq!((product.takes_odd_nans, product.canonical), (true, None));
    // `xor` looks at bits.
    assert_eq!((xor.takes_odd_nans, xor.canonical), (false, None));
    assert_eq!((last.takes_odd_nans, last.canonical), (true, Some(Float::F32)));
    assert_eq!((xor.types, xor.constants), (vec![Ty::B32; 2], vec![None, Some(1)]));
}
