//! How value ops are done: what the vector instructions of the host can and cannot do.

use handloom_ir::simt::{FMode, Pure};
use handloom_ir::types::{Cmp, Float, Int, PrmtMode, Rounding, Ty};
use handloom_plan::ways::{Scalar, Vector, Way, scalar, way};

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
