//! Value ops on uniform values, as [`Scalar`] says: one scalar instruction or a few.
//!
//! A scalar of type `B16` is an `i32` whose upper half is zero; a predicate is an `i8` of 0 or 1.

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::types::*;
use handloom_plan::ways::{Each, Extend, Scalar};

use crate::emit::asm::{Asm, scalar_type};
use crate::emit::ops::condition::int_cc;

impl Asm<'_> {
    /// Sign- or zero-extends a 16-bit scalar within its 32 bits; other widths stay.
    fn widened(&mut self, v: Value, int: Int) -> Value {
        if int.ty == Ty::B16 && int.signed {
            let up = self.b.ins().ishl_imm_s(v, 16);
            self.b.ins().sshr_imm_s(up, 16)
        } else {
            v
        }
    }

    /// Clears the upper half of a 16-bit scalar.
    fn narrowed(&mut self, v: Value, ty: Ty) -> Value {
        if ty == Ty::B16 { self.b.ins().band_imm_s(v, 0xffff) } else { v }
    }

    /// A value op on scalars.
    pub(crate) fn scalar_op(&mut self, way: Scalar, a: &[Value]) -> Value {
        match way {
            Scalar::Same => a[0],
            Scalar::Each(op, t) => {
                let v = self.integer(op, a);
                // Of values without upper bits these have none either.
                if matches!(op, Each::And | Each::Or | Each::Xor) { v } else { self.narrowed(v, t) }
            }
            Scalar::NotPred => self.b.ins().bxor_imm_s(a[0], 1),
            Scalar::HighProduct64 { signed: true } => self.b.ins().smulhi(a[0], a[1]),
            Scalar::HighProduct64 { signed: false } => self.b.ins().umulhi(a[0], a[1]),
            Scalar::HighProduct32(int) => {
                let p = self.wide_product(a, int);
                let h = self.b.ins().ushr_imm_s(p, 32);
                self.b.ins().ireduce(types::I32, h)
            }
            Scalar::WideProduct32(int) => self.wide_product(a, int),
            Scalar::WideProduct16(int) => {
                let (x, y) = (self.widened(a[0], int), self.widened(a[1], int));
                self.b.ins().imul(x, y)
            }
            Scalar::Extreme { least, int } => {
                let (x, y) = (self.widened(a[0], int), self.widened(a[1], int));
                let cmp = if least { Cmp::Lt } else { Cmp::Gt };
                let c = self.b.ins().icmp(int_cc(cmp, int.signed), x, y);
                self.b.ins().select(c, a[0], a[1])
            }
            Scalar::Shift { int, left } => self.scalar_shift(a, int, left),
            Scalar::Compare(cmp, int) => {
                let (x, y) = (self.widened(a[0], int), self.widened(a[1], int));
                self.b.ins().icmp(int_cc(cmp, int.signed), x, y)
            }
            Scalar::Select => self.b.ins().select(a[0], a[1], a[2]),
            Scalar::Extend(ext) => self.scalar_ext(a[0], ext),
            Scalar::Pack64 => {
                let lo = self.b.ins().uextend(types::I64, a[0]);
                let hi = self.b.ins().uextend(types::I64, a[1]);
                let hi = self.b.ins().ishl_imm_s(hi, 32);
                self.b.ins().bor(lo, hi)
            }
            Scalar::Pack32 => {
                let hi = self.b.ins().ishl_imm_s(a[1], 16);
                self.b.ins().bor(a[0], hi)
            }
            Scalar::Half64 { hi } => {
                let v = if hi { self.b.ins().ushr_imm_s(a[0], 32) } else { a[0] };
                self.b.ins().ireduce(types::I32, v)
            }
            Scalar::Half32 { hi: true } => self.b.ins().ushr_imm_s(a[0], 16),
            Scalar::Half32 { hi: false } => self.b.ins().band_imm_s(a[0], 0xffff),
            Scalar::FromPred(t) => self.b.ins().uextend(scalar_type(t), a[0]),
            Scalar::ToPred => self.b.ins().icmp_imm_s(IntCC::NotEqual, a[0], 0),
            Scalar::Popc(t) => {
                let n = self.b.ins().popcnt(a[0]);
                if t == Ty::B64 { self.b.ins().ireduce(types::I32, n) } else { n }
            }
            Scalar::Clz(t) => {
                let n = self.b.ins().clz(a[0]);
                if t == Ty::B64 { self.b.ins().ireduce(types::I32, n) } else { n }
            }
            Scalar::Divide { int, quotient } => self.scalar_divide(a, int, quotient),
        }
    }

    /// The value of a scalar that was made as a constant.
    fn known_constant(&self, v: Value) -> Option<i64> {
        let inst = self.b.func.dfg.value_def(v).inst()?;
        match self.b.func.dfg.insts[inst] {
            clif::InstructionData::UnaryImm { opcode: clif::Opcode::Iconst, imm } => Some(imm.bits()),
            _ => None,
        }
    }

    fn wide_product(&mut self, a: &[Value], int: Int) -> Value {
        let ext = |e: &mut Self, v: Value| {
            if int.signed { e.b.ins().sextend(types::I64, v) } else { e.b.ins().uextend(types::I64, v) }
        };
        for (i, j) in [(0, 1), (1, 0)] {
            let Some(c) = self.known_constant(a[j]) else { continue };
            let c = if int.signed { i64::from(c as i32) } else { i64::from(c as u32) };
            let x = ext(self, a[i]);
            return if c > 0 && c & (c - 1) == 0 {
                self.b.ins().ishl_imm_s(x, i64::from(c.trailing_zeros()))
            } else {
                self.b.ins().imul_imm_s(x, c)
            };
        }
        let (x, y) = (ext(self, a[0]), ext(self, a[1]));
        self.b.ins().imul(x, y)
    }

    /// Amounts at or above the width give 0, or the sign.
    fn scalar_shift(&mut self, a: &[Value], int: Int, left: bool) -> Value {
        let bits = i64::from(int.bits());
        let x = self.widened(a[0], int);
        if let Some(k) = self.known_constant(a[1]).filter(|k| (0..bits).contains(k)) {
            let v = match (left, int.signed) {
                (true, _) => self.b.ins().ishl_imm_s(x, k),
                (false, true) => self.b.ins().sshr_imm_s(x, k),
                (false, false) => self.b.ins().ushr_imm_s(x, k),
            };
            return self.narrowed(v, int.ty);
        }
        let fits = self.b.ins().icmp_imm_s(IntCC::UnsignedLessThan, a[1], bits);
        if int.signed && !left {
            let most = self.b.ins().iconst(types::I32, bits - 1);
            let amount = self.b.ins().select(fits, a[1], most);
            let v = self.b.ins().sshr(x, amount);
            return self.narrowed(v, int.ty);
        }
        let v = if left { self.b.ins().ishl(x, a[1]) } else { self.b.ins().ushr(x, a[1]) };
        let v = self.narrowed(v, int.ty);
        let zero = self.b.ins().iconst(scalar_type(int.ty), 0);
        self.b.ins().select(fits, v, zero)
    }

    fn scalar_ext(&mut self, v: Value, ext: Extend) -> Value {
        let Extend { signed, from, to, .. } = ext;
        let to_type = scalar_type(to);
        let from_type = scalar_type(from);
        let bits = u32::from(ext.bits).min(from.bits());
        let v = if from_type == to_type {
            v
        } else if from_type == types::I32 {
            if signed && bits == 32 { self.b.ins().sextend(types::I64, v) } else { self.b.ins().uextend(types::I64, v) }
        } else {
            self.b.ins().ireduce(types::I32, v)
        };
        let have = to_type.bits();
        let keep = bits.min(to.bits());
        let v = if keep == have || (keep == 32 && from_type == types::I32 && have == 64) {
            v
        } else if signed {
            let up = self.b.ins().ishl_imm_s(v, i64::from(have - keep));
            self.b.ins().sshr_imm_s(up, i64::from(have - keep))
        } else {
            self.b.ins().band_imm_s(v, ((1u64 << keep) - 1) as i64)
        };
        self.narrowed(v, to)
    }

    /// Division as `num` defines it: by zero all ones; the smallest value by -1 is itself, remainder 0.
    fn scalar_divide(&mut self, a: &[Value], int: Int, quotient: bool) -> Value {
        let t = scalar_type(int.ty);
        let zero_divisor = self.b.ins().icmp_imm_s(IntCC::Equal, a[1], 0);
        let one = self.b.ins().iconst(t, 1);
        let ones = self.b.ins().iconst(t, if t == types::I32 { 0xffff_ffff } else { -1 });
        let mut divisor = self.b.ins().select(zero_divisor, one, a[1]);
        let v = if int.signed {
            let minus = self.b.ins().icmp_imm_s(IntCC::Equal, a[1], -1);
            divisor = self.b.ins().select(minus, one, divisor);
            if quotient {
                let q = self.b.ins().sdiv(a[0], divisor);
                let n = self.b.ins().ineg(q);
                self.b.ins().select(minus, n, q)
            } else {
                self.b.ins().srem(a[0], divisor)
            }
        } else if quotient {
            self.b.ins().udiv(a[0], divisor)
        } else {
            self.b.ins().urem(a[0], divisor)
        };
        self.b.ins().select(zero_divisor, ones, v)
    }
}
