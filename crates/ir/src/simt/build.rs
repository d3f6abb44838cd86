//! The builder: what instruction records use to say what they mean.

use handloom_diag::Span;
use smallvec::smallvec;

use crate::types::*;

use super::func::*;
use super::ids::*;
use super::op::*;
use super::pure::Pure;

/// An address operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addr {
    /// `B64`, or `B32` for shared offsets.
    pub base: Val,
    /// Bytes added to it.
    pub offset: i64,
}

/// Appends instructions to the current block of a function.
///
/// Value ops are written unconditionally. Memory ops take the builder's current guard by themselves.
#[derive(Debug)]
pub struct Builder<'f> {
    /// The function being built.
    pub func: &'f mut Function,
    /// The block that instructions go to.
    pub block: BlockId,
    /// Place of the statement.
    pub span: Span,
    /// Guard of the statement (type P), for ops that take one.
    pub guard: Option<Val>,
    /// The carry flag `CC.CF` of the function, if any instruction used it.
    pub carry: Option<Reg>,
}

impl Builder<'_> {
    /// A fresh register.
    pub fn reg(&mut self, ty: Ty) -> Reg {
        self.func.regs.push(ty);
        Reg(self.func.regs.len() as u32 - 1)
    }

    /// Appends an instruction.
    pub fn push(&mut self, op: Op, dst: Regs, src: Vals) {
        self.push_inst(Inst { op, dst, src, guarded: false, span: self.span });
    }

    /// Appends an instruction that takes the current guard.
    pub fn push_guarded(&mut self, op: Op, dst: Regs, mut src: Vals) {
        let guarded = self.guard.is_some();
        src.extend(self.guard);
        self.push_inst(Inst { op, dst, src, guarded, span: self.span });
    }

    fn push_inst(&mut self, inst: Inst) {
        self.func.blocks[self.block.idx()].insts.push(inst);
    }

    /// A value op with one result of type `ty`.
    pub fn pure(&mut self, op: Pure, ty: Ty, src: &[Val]) -> Val {
        let d = self.reg(ty);
        self.push(Op::Pure(op), smallvec![d], src.into());
        Val::Reg(d)
    }

    /// A constant.
    pub fn imm(&self, value: u64, ty: Ty) -> Val {
        Val::Imm(value & ty.mask(), ty)
    }

    /// `a` into an existing register.
    pub fn copy(&mut self, to: Reg, a: Val) {
        let ty = self.func.regs[to.idx()];
        self.push(Op::Pure(Pure::Mov(ty)), smallvec![to], smallvec![a]);
    }

    /// Type of a value.
    pub fn ty(&self, v: Val) -> Ty {
        self.func.ty(v)
    }

    /// `p ? a : b`.
    pub fn select(&mut self, p: Val, a: Val, b: Val) -> Val {
        let ty = self.ty(a);
        self.pure(Pure::Select(ty), ty, &[p, a, b])
    }

    /// The low `bits` of `a`, extended to `to`.
    pub fn ext(&mut self, a: Val, bits: u32, signed: bool, to: Ty) -> Val {
        let from = self.ty(a);
        if from == to && bits == to.bits() {
            return a;
        }
        self.pure(Pure::Ext { bits: bits as u8, signed, from, to }, to, &[a])
    }

    /// `a + b` at the type of `a`.
    pub fn add(&mut self, a: Val, b: Val) -> Val {
        let ty = self.ty(a);
        self.pure(Pure::Add(ty), ty, &[a, b])
    }

    /// `a - b` at the type of `a`.
    pub fn sub(&mut self, a: Val, b: Val) -> Val {
        let ty = self.ty(a);
        self.pure(Pure::Sub(ty), ty, &[a, b])
    }

    /// `a & b`; also on predicates.
    pub fn and(&mut self, a: Val, b: Val) -> Val {
        let ty = self.ty(a);
        self.pure(Pure::And(ty), ty, &[a, b])
    }

    /// `a | b`; also on predicates.
    pub fn or(&mut self, a: Val, b: Val) -> Val {
        let ty = self.ty(a);
        self.pure(Pure::Or(ty), ty, &[a, b])
    }

    /// `a ^ b`; also on predicates.
    pub fn xor(&mut self, a: Val, b: Val) -> Val {
        let ty = self.ty(a);
        self.pure(Pure::Xor(ty), ty, &[a, b])
    }

    /// `!a`; also on predicates.
    pub fn not(&mut self, a: Val) -> Val {
        let ty = self.ty(a);
        self.pure(Pure::Not(ty), ty, &[a])
    }

    /// A half of a 64- or 32-bit value.
    pub fn half(&mut self, a: Val, hi: bool) -> Val {
        let from = self.ty(a);
        let to = if from == Ty::B64 { Ty::B32 } else { Ty::B16 };
        self.pure(Pure::Half { from, hi }, to, &[a])
    }

    /// Two values as one of twice the width.
    pub fn pack(&mut self, lo: Val, hi: Val) -> Val {
        let from = self.ty(lo);
        let to = if from == Ty::B32 { Ty::B64 } else { Ty::B32 };
        self.pure(Pure::Pack(from), to, &[lo, hi])
    }

    /// A load of `access.count` elements.
    pub fn load(&mut self, access: Access, addr: Addr) -> Vals {
        let ty = match access.bits {
            8 | 16 => Ty::B16,
            32 => Ty::B32,
            _ => Ty::B64,
        };
        let dst: Regs = (0..access.count).map(|_| self.reg(ty)).collect();
        self.push_guarded(Op::Load { access, offset: addr.offset }, dst.clone(), smallvec![addr.base]);
        dst.into_iter().map(Val::Reg).collect()
    }

    /// A store of `access.count` elements.
    pub fn store(&mut self, access: Access, addr: Addr, values: &[Val]) {
        let mut src: Vals = smallvec![addr.base];
        src.extend_from_slice(values);
        self.push_guarded(Op::Store { access, offset: addr.offset }, smallvec![], src);
    }

    /// The carry flag, as a predicate register.
    pub fn carry_flag(&mut self) -> Reg {
        match self.carry {
            Some(r) => r,
            None => {
                let r = self.reg(Ty::P);
                self.carry = Some(r);
                r
            }
        }
    }
}
