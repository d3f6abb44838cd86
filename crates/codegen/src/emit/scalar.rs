//! Value ops on uniform values: one scalar instruction or a few. `None`: done another way.
//!
//! A scalar of type `B16` is an `i32` whose upper half is zero; a predicate is an `i8` of 0 or 1.

use std::fmt;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::*;

use super::Emit;
use super::rep::scalar_type;

/// The integer condition of a comparison.
pub(crate) fn int_cc(cmp: Cmp, signed: bool) -> Option<IntCC> {
    Some(match (cmp, signed) {
        (Cmp::Eq, _) => IntCC::Equal,
        (Cmp::Ne, _) => IntCC::NotEqual,
        (Cmp::Lt, true) => IntCC::SignedLessThan,
        (Cmp::Le, true) => IntCC::SignedLessThanOrEqual,
        (Cmp::Gt, true) => IntCC::SignedGreaterThan,
        (Cmp::Ge, true) => IntCC::SignedGreaterThanOrEqual,
        (Cmp::Lt, false) => IntCC::UnsignedLessThan,
        (Cmp::Le, false) => IntCC::UnsignedLessThanOrEqual,
        (Cmp::Gt, false) => IntCC::UnsignedGreaterThan,
        (Cmp::Ge, false) => IntCC::UnsignedGreaterThanOrEqual,
        (Cmp::Equ | Cmp::Neu | Cmp::Ltu | Cmp::Leu | Cmp::Gtu | Cmp::Geu | Cmp::Num | Cmp::Nan, _) => return None,
    })
}

/// The integer condition of a comparison that `what` makes.
///
/// # Panics
/// It is one of floats: a bug.
pub(crate) fn int_cc_of(cmp: Cmp, signed: bool, what: &dyn fmt::Debug) -> IntCC {
    int_cc(cmp, signed).unwrap_or_else(|| panic!("{what:?}: {cmp:?} compares no integers"))
}

/// The float condition of a comparison. `None` for `Ne`, which is false on NaN here and has no condition of its own.
pub(crate) fn float_cc(cmp: Cmp) -> Option<FloatCC> {
    Some(match cmp {
        Cmp::Eq => FloatCC::Equal,
        Cmp::Ne => return None,
        Cmp::Lt => FloatCC::LessThan,
        Cmp::Le => FloatCC::LessThanOrEqual,
        Cmp::Gt => FloatCC::GreaterThan,
        Cmp::Ge => FloatCC::GreaterThanOrEqual,
        Cmp::Equ => FloatCC::UnorderedOrEqual,
        Cmp::Neu => FloatCC::NotEqual,
        Cmp::Ltu => FloatCC::UnorderedOrLessThan,
        Cmp::Leu => FloatCC::UnorderedOrLessThanOrEqual,
        Cmp::Gtu => FloatCC::UnorderedOrGreaterThan,
        Cmp::Geu => FloatCC::UnorderedOrGreaterThanOrEqual,
        Cmp::Num => FloatCC::Ordered,
        Cmp::Nan => FloatCC::Unordered,
    })
}

impl Emit<'_, '_> {
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
    pub(crate) fn scalar_op(&mut self, op: Pure, a: &[Value]) -> Option<Value> {
        let result = match op {
            Pure::Mov(_) => a[0],
            Pure::Add(t) => {
                let v = self.b.ins().iadd(a[0], a[1]);
                self.narrowed(v, t)
            }
            Pure::Sub(t) => {
                let v = self.b.ins().isub(a[0], a[1]);
                self.narrowed(v, t)
            }
            Pure::Mul(t) => {
                let v = self.b.ins().imul(a[0], a[1]);
                self.narrowed(v, t)
            }
            Pure::Neg(t) => {
                let v = self.b.ins().ineg(a[0]);
                self.narrowed(v, t)
            }
            Pure::And(_) => self.b.ins().band(a[0], a[1]),
            Pure::Or(_) => self.b.ins().bor(a[0], a[1]),
            Pure::Xor(_) => self.b.ins().bxor(a[0], a[1]),
            Pure::Not(Ty::P) => self.b.ins().bxor_imm_s(a[0], 1),
            Pure::Not(t) => {
                let v = self.b.ins().bnot(a[0]);
                self.narrowed(v, t)
            }
            Pure::MulHi(int) if int.ty == Ty::B64 => {
                if int.signed {
                    self.b.ins().smulhi(a[0], a[1])
                } else {
                    self.b.ins().umulhi(a[0], a[1])
                }
            }
            Pure::MulHi(int) if int.ty == Ty::B32 => {
                let p = self.wide_product(a, int);
                let h = self.b.ins().ushr_imm_s(p, 32);
                self.b.ins().ireduce(types::I32, h)
            }
            Pure::MulWide(int) if int.ty == Ty::B32 => self.wide_product(a, int),
            Pure::MulWide(int) if int.ty == Ty::B16 => {
                let (x, y) = (self.widened(a[0], int), self.widened(a[1], int));
                self.b.ins().imul(x, y)
            }
            Pure::Min(int) | Pure::Max(int) => {
                let (x, y) = (self.widened(a[0], int), self.widened(a[1], int));
                let cmp = if matches!(op, Pure::Min(_)) { Cmp::Lt } else { Cmp::Gt };
                let c = self.b.ins().icmp(int_cc(cmp, int.signed)?, x, y);
                self.b.ins().select(c, a[0], a[1])
            }
            Pure::Shl(t) => self.scalar_shift(a, Int { ty: t, signed: false }, true),
            Pure::Shr(int) => self.scalar_shift(a, int, false),
            Pure::ICmp(cmp, int) => {
                let (x, y) = (self.widened(a[0], int), self.widened(a[1], int));
                self.b.ins().icmp(int_cc(cmp, int.signed)?, x, y)
            }
            Pure::Select(_) => self.b.ins().select(a[0], a[1], a[2]),
            Pure::Ext { bits, signed, from, to } => self.scalar_ext(a[0], u32::from(bits), signed, from, to),
            Pure::Pack(Ty::B32) => {
                let lo = self.b.ins().uextend(types::I64, a[0]);
                let hi = self.b.ins().uextend(types::I64, a[1]);
                let hi = self.b.ins().ishl_imm_s(hi, 32);
                self.b.ins().bor(lo, hi)
            }
            Pure::Pack(Ty::B16) => {
                let hi = self.b.ins().ishl_imm_s(a[1], 16);
                self.b.ins().bor(a[0], hi)
            }
            Pure::Half { from: Ty::B64, hi } => {
                let v = if hi { self.b.ins().ushr_imm_s(a[0], 32) } else { a[0] };
                self.b.ins().ireduce(types::I32, v)
            }
            Pure::Half { from: Ty::B32, hi } => {
                if hi {
                    self.b.ins().ushr_imm_s(a[0], 16)
                } else {
                    self.b.ins().band_imm_s(a[0], 0xffff)
                }
            }
            Pure::FromPred(t) => self.b.ins().uextend(scalar_type(t), a[0]),
            Pure::ToPred(_) => self.b.ins().icmp_imm_s(IntCC::NotEqual, a[0], 0),
            Pure::Popc(t) if t != Ty::P => {
                let n = self.b.ins().popcnt(a[0]);
                if t == Ty::B64 { self.b.ins().ireduce(types::I32, n) } else { n }
            }
            Pure::Clz(t) if matches!(t, Ty::B32 | Ty::B64) => {
                let n = self.b.ins().clz(a[0]);
                if t == Ty::B64 { self.b.ins().ireduce(types::I32, n) } else { n }
            }
            Pure::Div(int) | Pure::Rem(int) if matches!(int.ty, Ty::B32 | Ty::B64) => {
                self.scalar_divide(a, int, matches!(op, Pure::Div(_)))
            }
            _ => return None,
        };
        Some(result)
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

    fn scalar_ext(&mut self, v: Value, bits: u32, signed: bool, from: Ty, to: Ty) -> Value {
        let to_type = scalar_type(to);
        let from_type = scalar_type(from);
        let bits = bits.min(from.bits());
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
