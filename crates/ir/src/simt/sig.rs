//! Types of the sources and results of value ops.
//!
//! Takes: a [`Pure`] op. Gives: what the verifier, the text form and generators of programs must know of it.

use std::ops::Deref;

use crate::num;
use crate::types::*;

use super::op::{Cvt, Pure};
use super::video::{Video, VideoEnd};

/// The types of the sources of an op: a slice of at most nine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Types {
    types: [Ty; 9],
    count: u8,
}

impl Types {
    fn new(types: &[Ty]) -> Types {
        let mut list = Types { types: [Ty::P; 9], count: 0 };
        for &ty in types {
            list.push(ty);
        }
        list
    }

    fn push(&mut self, ty: Ty) {
        self.types[usize::from(self.count)] = ty;
        self.count += 1;
    }
}

impl Deref for Types {
    type Target = [Ty];

    fn deref(&self) -> &[Ty] {
        &self.types[..usize::from(self.count)]
    }
}

/// Type of the result, and of the second one of the two ops that have it.
pub const fn result_types(op: Pure) -> (Ty, Option<Ty>) {
    let ty = match op {
        Pure::AddCarry(ty) | Pure::SubBorrow(ty) => return (ty, Some(Ty::P)),
        Pure::Mov(ty)
        | Pure::Add(ty)
        | Pure::Sub(ty)
        | Pure::Mul(ty)
        | Pure::Abs(ty)
        | Pure::Neg(ty)
        | Pure::And(ty)
        | Pure::Or(ty)
        | Pure::Xor(ty)
        | Pure::Not(ty)
        | Pure::Cnot(ty)
        | Pure::Shl(ty)
        | Pure::Brev(ty)
        | Pure::Bfi(ty)
        | Pure::Select(ty)
        | Pure::FromPred(ty) => ty,
        Pure::MulHi(int)
        | Pure::Div(int)
        | Pure::Rem(int)
        | Pure::Min(int)
        | Pure::Max(int)
        | Pure::AbsDiff(int)
        | Pure::AddSat(int)
        | Pure::SubSat(int)
        | Pure::Shr(int)
        | Pure::Bfe(int) => int.ty,
        Pure::MulWide(int) => twice(int.ty),
        Pure::Pack(ty) => twice(ty),
        Pure::Mul24 { .. }
        | Pure::Shf { .. }
        | Pure::Popc(_)
        | Pure::Clz(_)
        | Pure::Bfind { .. }
        | Pure::Prmt(_)
        | Pure::Lop3(_)
        | Pure::Dp4a { .. }
        | Pure::Dp2a { .. }
        | Pure::Fns
        | Pure::Szext { .. }
        | Pure::Bmsk { .. }
        | Pure::Video(_)
        | Pure::Vmad(_)
        | Pure::VideoSimd(_)
        | Pure::Sin { .. }
        | Pure::Cos { .. }
        | Pure::Lg2 { .. } => Ty::B32,
        Pure::ICmp(..) | Pure::FCmp { .. } | Pure::ToPred(_) | Pure::Testp { .. } => Ty::P,
        Pure::Ext { to, .. } => to,
        Pure::Half { from, .. } => half(from),
        Pure::FAdd(mode) | Pure::FSub(mode) | Pure::FMul(mode) | Pure::FFma(mode) | Pure::FRsqrt(mode) => mode.ty.ty(),
        Pure::FDiv { mode, .. } | Pure::FRcp { mode, .. } | Pure::FSqrt { mode, .. } => mode.ty.ty(),
        Pure::FMin { ty, .. } | Pure::FMax { ty, .. } | Pure::FAbs { ty, .. } | Pure::FNeg { ty, .. } => ty.ty(),
        Pure::Ex2 { ty, .. } | Pure::Tanh { ty } | Pure::Copysign(ty) => ty.ty(),
        Pure::Cvt(c) => c.to.ty(),
    };
    (ty, None)
}

/// Types of the sources, in order.
pub fn source_types(op: Pure) -> Types {
    const B32: Ty = Ty::B32;
    match op {
        Pure::Mov(ty)
        | Pure::Abs(ty)
        | Pure::Neg(ty)
        | Pure::Not(ty)
        | Pure::Cnot(ty)
        | Pure::Popc(ty)
        | Pure::Clz(ty)
        | Pure::Brev(ty)
        | Pure::ToPred(ty) => Types::new(&[ty]),
        Pure::Bfind { int, .. } => Types::new(&[int.ty]),
        Pure::Ext { from, .. } | Pure::Half { from, .. } => Types::new(&[from]),
        Pure::FromPred(_) => Types::new(&[Ty::P]),
        Pure::Add(ty)
        | Pure::Sub(ty)
        | Pure::Mul(ty)
        | Pure::And(ty)
        | Pure::Or(ty)
        | Pure::Xor(ty)
        | Pure::Pack(ty) => Types::new(&[ty, ty]),
        Pure::MulHi(int)
        | Pure::MulWide(int)
        | Pure::Div(int)
        | Pure::Rem(int)
        | Pure::Min(int)
        | Pure::Max(int)
        | Pure::AbsDiff(int)
        | Pure::AddSat(int)
        | Pure::SubSat(int)
        | Pure::ICmp(_, int) => Types::new(&[int.ty, int.ty]),
        Pure::AddCarry(ty) | Pure::SubBorrow(ty) => Types::new(&[ty, ty, Ty::P]),
        Pure::Shl(ty) => Types::new(&[ty, B32]),
        Pure::Shr(int) => Types::new(&[int.ty, B32]),
        Pure::Bfe(int) => Types::new(&[int.ty, B32, B32]),
        Pure::Bfi(ty) => Types::new(&[ty, ty, B32, B32]),
        Pure::Mul24 { .. } | Pure::Szext { .. } | Pure::Bmsk { .. } => Types::new(&[B32, B32]),
        Pure::Shf { .. } | Pure::Prmt(_) | Pure::Lop3(_) | Pure::Dp4a { .. } | Pure::Dp2a { .. } | Pure::Fns => {
            Types::new(&[B32, B32, B32])
        }
        Pure::Video(Video { end: VideoEnd::Plain, .. }) => Types::new(&[B32, B32]),
        Pure::Video(_) | Pure::Vmad(_) | Pure::VideoSimd(_) => Types::new(&[B32, B32, B32]),
        Pure::Select(ty) => Types::new(&[Ty::P, ty, ty]),
        Pure::FAdd(mode) | Pure::FSub(mode) | Pure::FMul(mode) | Pure::FDiv { mode, .. } => {
            Types::new(&[mode.ty.ty(), mode.ty.ty()])
        }
        Pure::FFma(mode) => Types::new(&[mode.ty.ty(), mode.ty.ty(), mode.ty.ty()]),
        Pure::FRcp { mode, .. } | Pure::FSqrt { mode, .. } | Pure::FRsqrt(mode) => Types::new(&[mode.ty.ty()]),
        Pure::FCmp { ty, .. } | Pure::FMin { ty, .. } | Pure::FMax { ty, .. } | Pure::Copysign(ty) => {
            Types::new(&[ty.ty(), ty.ty()])
        }
        Pure::FAbs { ty, .. }
        | Pure::FNeg { ty, .. }
        | Pure::Ex2 { ty, .. }
        | Pure::Tanh { ty }
        | Pure::Testp { ty, .. } => Types::new(&[ty.ty()]),
        Pure::Sin { .. } | Pure::Cos { .. } | Pure::Lg2 { .. } => Types::new(&[B32]),
        Pure::Cvt(c) => cvt_sources(c),
    }
}

/// A packed source holds all elements of the destination; else there is a source for each. Then the random bits (B32)
/// of `.rs`, or the scale (B16) of the `.s2f6x2` conversions: a form without the qualifier gives the constant `0x7f7f`.
fn cvt_sources(c: Cvt) -> Types {
    let own_sources = num::elements(c.from) == 1;
    let mut types = Types::new(&[]);
    for _ in 0..if own_sources { num::elements(c.to) } else { 1 } {
        types.push(c.from.ty());
    }
    if matches!(c.round, Rounding::Stochastic) {
        types.push(Ty::B32);
    } else if num::is_scaled(c) {
        types.push(Ty::B16);
    }
    types
}

const fn twice(ty: Ty) -> Ty {
    match ty {
        Ty::P | Ty::B16 => Ty::B32,
        Ty::B32 | Ty::B64 => Ty::B64,
    }
}

const fn half(ty: Ty) -> Ty {
    match ty {
        Ty::P | Ty::B16 | Ty::B32 => Ty::B16,
        Ty::B64 => Ty::B32,
    }
}
