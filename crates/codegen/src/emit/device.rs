//! Reads and writes of device memory at addresses that passed their test. No other file emits one.

use std::mem::offset_of;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AtomicRmwOp, InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::abi::CtaCtx;
use handloom_plan::access::AccessClass;
use handloom_plan::order::FenceOrder;
use handloom_plan::packs::LANES;

use crate::emit::asm::{Asm, scalar_type};

/// An access with its site.
#[derive(Clone, Copy)]
pub(crate) struct MemOp {
    pub class: AccessClass,
    pub site: usize,
    /// IR type of an element.
    pub ty: Ty,
}

impl MemOp {
    pub(crate) fn size(&self) -> i64 {
        i64::from(self.class.bits) / 8
    }

    pub(crate) fn bytes(&self) -> i64 {
        self.class.bytes()
    }

    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.class.space, StateSpace::Shared | StateSpace::SharedCluster)
    }
}

impl Asm<'_> {
    fn device() -> clif::MemFlagsData {
        clif::MemFlagsData::new().with_notrap()
    }

    /// A base, and bytes from it, as instructions can add them, with room for the rest of an access behind.
    fn within_reach(&mut self, base: Value, d: i64) -> (Value, i32) {
        match i32::try_from(d) {
            Ok(d) if d.unsigned_abs() < 1 << 30 => (base, d),
            _ => (self.moved(base, d), 0),
        }
    }

    pub(crate) fn load_scalar(&mut self, mem: &MemOp, base: Value, d: i64) -> Value {
        let m = Self::device();
        let (base, d) = self.within_reach(base, d);
        match mem.class.bits {
            8 => self.b.ins().uload8(types::I32, m, base, d),
            16 => self.b.ins().uload16(types::I32, m, base, d),
            32 => self.b.ins().load(types::I32, m, base, d),
            _ => self.b.ins().load(types::I64, m, base, d),
        }
    }

    /// Four words.
    pub(crate) fn load_words(&mut self, at: Value) -> Value {
        self.b.ins().load(types::I32X4, Self::device(), at, 0)
    }

    /// The elements of one pack whose lanes are `stride` apart.
    pub(crate) fn load_pack(&mut self, mem: &MemOp, base: Value, from: i64, stride: i64) -> Vec<Vec<Value>> {
        let m = Self::device();
        let (base, d) = self.within_reach(base, from);
        match (mem.class.count, mem.class.bits, stride) {
            (1, 32, 4) => vec![vec![self.b.ins().load(types::I32X4, m, base, d)]],
            (1, 64, 8) => vec![(0..2).map(|h| self.b.ins().load(types::I64X2, m, base, d + 16 * h)).collect()],
            (1, 8, 1) => {
                let v = self.b.ins().load(types::I32, m, base, d);
                let v = self.b.ins().scalar_to_vector(types::I32X4, v);
                let v = self.cast(v, types::I8X16);
                let v = self.b.ins().uwiden_low(v);
                vec![vec![self.b.ins().uwiden_low(v)]]
            }
            (1, 16, 2) => {
                let v = self.b.ins().load(types::I64, m, base, d);
                let v = self.b.ins().scalar_to_vector(types::I64X2, v);
                let v = self.cast(v, types::I16X8);
                vec![vec![self.b.ins().uwiden_low(v)]]
            }
            (2, 32, 8) => {
                let v: Vec<Value> = (0..2).map(|h| self.b.ins().load(types::I32X4, m, base, d + 16 * h)).collect();
                let t = self.turn(&v, Asm::parted);
                t.into_iter().map(|v| vec![v]).collect()
            }
            (4, 32, 16) => {
                let v: Vec<Value> = (0..4).map(|h| self.b.ins().load(types::I32X4, m, base, d + 16 * h)).collect();
                let t = self.turn(&v, Asm::transposed);
                t.into_iter().map(|v| vec![v]).collect()
            }
            (2, 64, 16) => {
                let v: Vec<Value> = (0..4).map(|h| self.b.ins().load(types::I64X2, m, base, d + 16 * h)).collect();
                let t = self.turn(&v, Asm::paired);
                vec![vec![t[0], t[2]], vec![t[1], t[3]]]
            }
            (count, ..) => (0..i64::from(count))
                .map(|e| {
                    let lanes: Vec<Value> = (0..LANES as i64)
                        .map(|l| self.load_scalar(mem, base, i64::from(d) + stride * l + e * mem.size()))
                        .collect();
                    self.gather(&lanes, mem.ty)
                })
                .collect(),
        }
    }

    pub(crate) fn store_scalar(&mut self, mem: &MemOp, v: Value, base: Value, d: i64) {
        let m = Self::device();
        let (base, d) = self.within_reach(base, d);
        match mem.class.bits {
            8 => self.b.ins().istore8(m, v, base, d),
            16 => self.b.ins().istore16(m, v, base, d),
            _ => self.b.ins().store(m, v, base, d),
        };
    }

    pub(crate) fn store_pack(&mut self, mem: &MemOp, v: &[&[Value]], base: Value, from: i64, stride: i64) {
        let m = Self::device();
        let (base, d) = self.within_reach(base, from);
        match (mem.class.count, mem.class.bits, stride) {
            (1, 32, 4) => {
                self.b.ins().store(m, v[0][0], base, d);
            }
            (1, 64, 8) => {
                for (h, x) in v[0].iter().enumerate() {
                    self.b.ins().store(m, *x, base, d + 16 * h as i32);
                }
            }
            (1, 8, 1) => {
                let mask = self.vector_const32([0xff; 4]);
                let x = self.b.ins().band(v[0][0], mask);
                let x = self.b.ins().unarrow(x, x);
                let x = self.b.ins().unarrow(x, x);
                let x = self.cast(x, types::I32X4);
                let x = self.b.ins().extractlane(x, 0);
                self.b.ins().store(m, x, base, d);
            }
            (1, 16, 2) => {
                let x = self.b.ins().unarrow(v[0][0], v[0][0]);
                let x = self.cast(x, types::I64X2);
                let x = self.b.ins().extractlane(x, 0);
                self.b.ins().store(m, x, base, d);
            }
            (2, 32, 8) => {
                let t = self.turn(&[v[0][0], v[1][0]], Asm::merged);
                self.store_vectors(&t, base, d);
            }
            (4, 32, 16) => {
                let rows: Vec<Value> = v.iter().map(|x| x[0]).collect();
                let t = self.turn(&rows, Asm::transposed);
                self.store_vectors(&t, base, d);
            }
            (2, 64, 16) => {
                let t = self.turn(&[v[0][0], v[1][0], v[0][1], v[1][1]], Asm::paired);
                self.store_vectors(&t, base, d);
            }
            _ => {
                for l in 0..LANES {
                    for (e, x) in v.iter().enumerate() {
                        let lane = if mem.ty == Ty::B64 {
                            self.b.ins().extractlane(x[l / 2], (l % 2) as u8)
                        } else {
                            self.b.ins().extractlane(x[0], l as u8)
                        };
                        let at = stride * l as i64 + e as i64 * mem.size();
                        self.store_scalar(mem, lane, base, i64::from(d) + at);
                    }
                }
            }
        }
    }

    fn store_vectors(&mut self, v: &[Value], base: Value, d: i32) {
        for (x, at) in v.iter().zip((d..).step_by(16)) {
            self.b.ins().store(Self::device(), *x, base, at);
        }
    }

    /// One read-modify-write: the old value.
    pub(crate) fn atomic_word(&mut self, a: AtomAccess, host: Value, x: Value, y: Option<Value>, ty: Ty) -> Value {
        let t = scalar_type(ty);
        if a.space != StateSpace::Global {
            let old = self.b.ins().load(t, Self::device(), host, 0);
            let new = self.new_word(a, old, x, y);
            self.b.ins().store(Self::device(), new, host, 0);
            return old;
        }
        let flags = Self::device();
        if let (AtomOp::Cas, Some(y)) = (a.op, y) {
            return self.b.ins().atomic_cas(flags, host, x, y);
        }
        let op = match (a.op, a.ty.is_signed()) {
            (AtomOp::Add, _) => AtomicRmwOp::Add,
            (AtomOp::And, _) => AtomicRmwOp::And,
            (AtomOp::Or, _) => AtomicRmwOp::Or,
            (AtomOp::Xor, _) => AtomicRmwOp::Xor,
            (AtomOp::Min, true) => AtomicRmwOp::Smin,
            (AtomOp::Min, false) => AtomicRmwOp::Umin,
            (AtomOp::Max, true) => AtomicRmwOp::Smax,
            (AtomOp::Max, false) => AtomicRmwOp::Umax,
            (AtomOp::Exch | AtomOp::Cas | AtomOp::Inc | AtomOp::Dec | AtomOp::Step, _) => AtomicRmwOp::Xchg,
        };
        self.b.ins().atomic_rmw(t, flags, op, host, x)
    }

    /// What an atomic writes.
    pub(crate) fn new_word(&mut self, a: AtomAccess, old: Value, x: Value, y: Option<Value>) -> Value {
        let signed = a.ty.is_signed();
        match a.op {
            AtomOp::Add => self.b.ins().iadd(old, x),
            AtomOp::And => self.b.ins().band(old, x),
            AtomOp::Or => self.b.ins().bor(old, x),
            AtomOp::Xor => self.b.ins().bxor(old, x),
            AtomOp::Min if signed => self.b.ins().smin(old, x),
            AtomOp::Min => self.b.ins().umin(old, x),
            AtomOp::Max if signed => self.b.ins().smax(old, x),
            AtomOp::Max => self.b.ins().umax(old, x),
            AtomOp::Cas => {
                let hit = self.b.ins().icmp(IntCC::Equal, old, x);
                self.b.ins().select(hit, y.unwrap_or(x), old)
            }
            AtomOp::Exch | AtomOp::Inc | AtomOp::Dec | AtomOp::Step => x,
        }
    }

    /// A fence as the program asks for one.
    pub(crate) fn fence(&mut self, order: FenceOrder) {
        match order {
            FenceOrder::Program => {
                self.b.ins().sequence_point();
            }
            FenceOrder::Total => {
                let at = self.b.ins().iadd_imm_s(self.cta, offset_of!(CtaCtx, fence) as i64);
                let zero = self.i64(0);
                self.b.ins().atomic_rmw(types::I64, clif::MemFlagsData::trusted(), clif::AtomicRmwOp::Or, at, zero);
            }
            FenceOrder::Instruction => self.fence_if(true),
        }
    }

    /// A fence instruction, if one is needed.
    pub(crate) fn fence_if(&mut self, needed: bool) {
        if needed {
            self.b.ins().fence();
        }
    }
}
