//! `redux.sync`: reduces a value over the lanes of a warp.

use handloom_ir::simt::{Op, Pure, Val};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{AtomOp, Cmp, Int, Ty};
use smallvec::smallvec;

use crate::form::*;
use crate::target::TargetGate::{Arch, AtLeast, Family};
use crate::target::{Needs, Version};

/// `redux.sync.op.type dst, src, membermask` of integers.
pub const REDUX_INTEGER: Form = Form {
    opcode: "redux",
    words: &[".sync"],
    section: "Parallel Synchronization and Communication Instructions: redux.sync",
    qualifiers: &[
        must(
            Role::Op,
            &[
                choice(".add", Value::Atom(AtomOp::Add)),
                choice(".min", Value::Atom(AtomOp::Min)),
                choice(".max", Value::Atom(AtomOp::Max)),
            ],
        ),
        must(Role::Type, &[ty(".u32", U32), ty(".s32", S32)]),
    ],
    dst: &[reg("dst", Is::Exactly(Role::Type))],
    src: &[val("src", Is::Exactly(Role::Type)), val("membermask", Is::Fixed(U32))],
    needs: Needs::on(7, 0, &[AtLeast(80)]),
    legal: always,
    semantics: Semantics::Warp(reduce),
};

/// `redux.sync.op.b32 dst, src, membermask` of bits.
pub const REDUX_BITWISE: Form = Form {
    qualifiers: &[
        must(
            Role::Op,
            &[
                choice(".and", Value::Atom(AtomOp::And)),
                choice(".or", Value::Atom(AtomOp::Or)),
                choice(".xor", Value::Atom(AtomOp::Xor)),
            ],
        ),
        must(Role::Type, &[ty(".b32", B32)]),
    ],
    // As the assembler has it, these are integers too.
    dst: &[reg("dst", Is::Fixed(U32))],
    src: &[val("src", Is::Fixed(U32)), val("membermask", Is::Fixed(U32))],
    ..REDUX_INTEGER
};

/// `redux.sync.op{.abs}{.NaN}.f32 dst, src, membermask`.
pub const REDUX_FLOAT: Form = Form {
    qualifiers: &[
        must(Role::Op, &[choice(".min", Value::Atom(AtomOp::Min)), choice(".max", Value::Atom(AtomOp::Max))]),
        must(Role::Type, &[ty(".f32", F32)]),
        maybe(Role::Flag, &[choice(".abs", Value::Flag)]),
        maybe(Role::Nan, &[choice(".NaN", Value::Flag)]),
    ],
    needs: Needs::on(8, 6, &[Arch(100), Family(100, Version::new(8, 8))]),
    semantics: Semantics::Warp(reduce_float),
    ..REDUX_INTEGER
};

fn reduce(x: &mut Cx<'_, '_>) {
    let (value, signed) = (x.src(0), x.u.ty(Role::Type).is_signed());
    let result = redux(x, signed, value);
    x.set(result);
}

/// The reduction of one value over the member mask.
fn redux(x: &mut Cx<'_, '_>, signed: bool, value: Val) -> Val {
    let (op, membermask) = (operation(x.u), x.src(1));
    let result = x.b.reg(Ty::B32);
    x.b.push(Op::Redux { op, signed }, smallvec![result], smallvec![value, membermask]);
    Val::Reg(result)
}

fn operation(u: &Use) -> AtomOp {
    match u.value(Role::Op) {
        Some(Value::Atom(op)) => op,
        other => panic!("record of redux with operation {other:?}"),
    }
}

/// Reduces integers that are in the order of the floats. A NaN gets the key that loses against all numbers, or wins with `.NaN`;
/// no number has these keys, so a result that is one of them stands for NaN.
fn reduce_float(x: &mut Cx<'_, '_>) {
    const NAN: u64 = 0x7fff_ffff;
    let magnitude_mask = x.b.imm(0x7fff_ffff, Ty::B32);
    let infinity = x.b.imm(0x7f80_0000, Ty::B32);
    let source = x.src(0);
    let magnitude = x.b.and(source, magnitude_mask);
    let value = if x.u.has(Role::Flag) { magnitude } else { source };
    let is_nan = x.b.pure(Pure::ICmp(Cmp::Gt, Int::U32), Ty::P, &[magnitude, infinity]);

    let nan_is_large = (operation(x.u) == AtomOp::Max) == x.u.has(Role::Nan);
    let nan_key = x.b.imm(if nan_is_large { 0x7fff_ffff } else { 0x8000_0000 }, Ty::B32);
    let ordered = reorder(x, value);
    let key = x.b.select(is_nan, nan_key, ordered);
    let best = redux(x, true, key);

    let is_nan = x.b.pure(Pure::ICmp(Cmp::Eq, Int::U32), Ty::P, &[best, nan_key]);
    let (number, nan) = (reorder(x, best), x.b.imm(NAN, Ty::B32));
    let result = x.b.select(is_nan, nan, number);
    x.set(result);
}

/// From the bits of a float to a signed integer of the same order, with -0 below +0; its own inverse.
fn reorder(x: &mut Cx<'_, '_>, bits: Val) -> Val {
    let by = x.b.imm(31, Ty::B32);
    let sign = x.b.pure(Pure::Shr(Int::S32), Ty::B32, &[bits, by]);
    let all_but_sign = x.b.imm(0x7fff_ffff, Ty::B32);
    let flip = x.b.and(sign, all_but_sign);
    x.b.xor(bits, flip)
}
