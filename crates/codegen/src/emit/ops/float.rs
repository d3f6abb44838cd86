//! Float ops on the vectors of a pack.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::ways::FloatOp;

use crate::emit::asm::Asm;
use crate::emit::ops::condition::float_cc;

impl Asm<'_> {
    /// Subnormal f32 lanes to zero with their sign.
    pub(crate) fn flush(&mut self, v: Value) -> Value {
        let bits = self.cast(v, types::I32X4);
        let exponent = self.splat32(0x7f80_0000);
        let e = self.b.ins().band(bits, exponent);
        let zero = self.splat32(0);
        let small = self.b.ins().icmp(IntCC::Equal, e, zero);
        let sign = self.splat32(0x8000_0000);
        let kept = self.b.ins().band(bits, sign);
        let r = self.b.ins().bitselect(small, kept, bits);
        self.cast(r, types::F32X4)
    }

    pub(crate) fn float_op(
        &mut self,
        a: &[Vec<Value>],
        m: FMode,
        f: impl Fn(&mut Self, &[Value]) -> Value,
    ) -> Vec<Value> {
        let t = Self::float_type(m.ty);
        (0..a[0].len())
            .map(|i| {
                let args: Vec<Value> = a
                    .iter()
                    .map(|v| {
                        let x = self.cast(v[i], t);
                        if m.ftz { self.flush(x) } else { x }
                    })
                    .collect();
                let mut r = f(self, &args);
                if m.ftz {
                    r = self.flush(r);
                }
                self.cast(r, Self::bits_type(m.ty))
            })
            .collect()
    }

    /// Lanes that are NaN become the canonical one.
    pub(crate) fn canonical(&mut self, v: Value, ty: Float) -> Value {
        let t = Self::float_type(ty);
        let x = self.cast(v, t);
        let nan = self.b.ins().fcmp(FloatCC::Unordered, x, x);
        let (quiet, bits) = if ty == Float::F64 {
            (self.vector_const64([0x7fff_ffff_ffff_ffff; 2]), types::I64X2)
        } else {
            (self.splat32(0x7fff_ffff), types::I32X4)
        };
        let v = self.cast(x, bits);
        self.b.ins().bitselect(nan, quiet, v)
    }

    /// Of one NaN and a number the result is the number; -0 is below +0.
    pub(crate) fn float_extreme(&mut self, a: &[Vec<Value>], ty: Float, nan: bool, cc: FloatCC) -> Vec<Value> {
        let (t, bits) = (Self::float_type(ty), Self::bits_type(ty));
        (0..a[0].len())
            .map(|i| {
                let (x, y) = (self.cast(a[0][i], t), self.cast(a[1][i], t));
                let less = self.b.ins().fcmp(cc, x, y);
                let r = self.b.ins().bitselect(less, a[0][i], a[1][i]);
                // Equal values: only zeros differ in bits; `or` keeps a minus sign, `and` drops it.
                let equal = self.b.ins().fcmp(FloatCC::Equal, x, y);
                let same = if cc == FloatCC::LessThan {
                    self.b.ins().bor(a[0][i], a[1][i])
                } else {
                    self.b.ins().band(a[0][i], a[1][i])
                };
                let r = self.b.ins().bitselect(equal, same, r);
                let y_nan = self.b.ins().fcmp(FloatCC::Unordered, y, y);
                let r = if nan {
                    let any = self.b.ins().fcmp(FloatCC::Unordered, x, y);
                    let q = self.quiet(ty);
                    self.b.ins().bitselect(any, q, r)
                } else {
                    // `x` not a number already chose `y`.
                    self.b.ins().bitselect(y_nan, a[0][i], r)
                };
                let f = self.cast(r, t);
                let c = self.canonical(f, ty);
                self.cast(c, bits)
            })
            .collect()
    }

    fn quiet(&mut self, ty: Float) -> Value {
        if ty == Float::F64 { self.vector_const64([0x7fff_ffff_ffff_ffff; 2]) } else { self.splat32(0x7fff_ffff) }
    }

    pub(crate) fn sign_op(&mut self, a: &[Value], ty: Float, ftz: bool, negate: bool) -> Vec<Value> {
        let sign: u64 = match ty {
            Float::F16 | Float::BF16 => 0x8000,
            Float::F16x2 | Float::BF16x2 => 0x8000_8000,
            Float::F32 => 0x8000_0000,
            Float::F64 | Float::F32x2 => 1 << 63,
        };
        a.iter()
            .map(|v| {
                let mut x = *v;
                if ftz {
                    x = self.flush(x);
                    x = self.cast(x, types::I32X4);
                }
                if ty == Float::F64 {
                    let m = self.vector_const64([if negate { sign } else { !sign }; 2]);
                    if negate { self.b.ins().bxor(x, m) } else { self.b.ins().band(x, m) }
                } else {
                    let m = self.splat32(if negate { sign as u32 } else { !(sign as u32) });
                    if negate { self.b.ins().bxor(x, m) } else { self.b.ins().band(x, m) }
                }
            })
            .collect()
    }

    pub(crate) fn vector_fcmp(&mut self, cmp: Cmp, ty: Float, ftz: bool, a: &[Value], b: &[Value]) -> Value {
        let t = Self::float_type(ty);
        let m: Vec<Value> = (0..a.len())
            .map(|i| {
                let (mut x, mut y) = (self.cast(a[i], t), self.cast(b[i], t));
                if ftz {
                    x = self.flush(x);
                    y = self.flush(y);
                }
                match cmp {
                    Cmp::Ne => {
                        let ne = self.b.ins().fcmp(FloatCC::NotEqual, x, y);
                        let ord = self.b.ins().fcmp(FloatCC::Ordered, x, y);
                        self.b.ins().band(ne, ord)
                    }
                    Cmp::Equ => {
                        let eq = self.b.ins().fcmp(FloatCC::Equal, x, y);
                        let un = self.b.ins().fcmp(FloatCC::Unordered, x, y);
                        self.b.ins().bor(eq, un)
                    }
                    _ => {
                        let Some(cc) = float_cc(cmp) else { panic!("`{cmp:?}` has no condition of its own") };
                        self.b.ins().fcmp(cc, x, y)
                    }
                }
            })
            .collect();
        if m.len() == 2 { self.low_words(m[0], m[1]) } else { m[0] }
    }

    pub(crate) fn float(&mut self, op: FloatOp, x: &[Value]) -> Value {
        match op {
            FloatOp::Add => self.b.ins().fadd(x[0], x[1]),
            FloatOp::Sub => self.b.ins().fsub(x[0], x[1]),
            FloatOp::Mul => self.b.ins().fmul(x[0], x[1]),
            FloatOp::Fma => self.b.ins().fma(x[0], x[1], x[2]),
            FloatOp::Div => self.b.ins().fdiv(x[0], x[1]),
            FloatOp::Sqrt => self.b.ins().sqrt(x[0]),
            FloatOp::Reciprocal => {
                let ty = self.b.func.dfg.value_type(x[0]);
                let one = if ty == types::F64X2 {
                    let v = self.vector_const64([1f64.to_bits(); 2]);
                    self.cast(v, types::F64X2)
                } else {
                    let v = self.splat32(1f32.to_bits());
                    self.cast(v, types::F32X4)
                };
                self.b.ins().fdiv(one, x[0])
            }
        }
    }
}
