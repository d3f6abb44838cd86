//! Integer ops on the vectors of a pack. Those of one instruction are the same on scalars.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::types::*;
use handloom_plan::ways::{Each, Extend};

use crate::emit::asm::Asm;
use crate::emit::ops::condition::int_cc;

impl Asm<'_> {
    pub(crate) fn narrow16(&mut self, v: Value, ty: Ty) -> Value {
        if ty == Ty::B16 {
            let m = self.splat32(0xffff);
            self.b.ins().band(v, m)
        } else {
            v
        }
    }

    pub(crate) fn widen16(&mut self, v: Value, int: Int) -> Value {
        if int.ty == Ty::B16 && int.signed {
            let n = self.b.ins().iconst(types::I32, 16);
            let up = self.b.ins().ishl(v, n);
            self.b.ins().sshr(up, n)
        } else {
            v
        }
    }

    /// An integer comparison as a lane mask.
    pub(crate) fn vector_icmp(&mut self, cmp: Cmp, int: Int, a: &[Value], b: &[Value]) -> Value {
        let cc = int_cc(cmp, int.signed);
        if int.ty == Ty::B64 {
            let m: Vec<Value> = (0..2).map(|i| self.b.ins().icmp(cc, a[i], b[i])).collect();
            return self.low_words(m[0], m[1]);
        }
        let (x, y) = (self.widen16(a[0], int), self.widen16(b[0], int));
        self.b.ins().icmp(cc, x, y)
    }

    /// One integer instruction, on vectors or scalars.
    pub(crate) fn integer(&mut self, op: Each, x: &[Value]) -> Value {
        match op {
            Each::Add => self.b.ins().iadd(x[0], x[1]),
            Each::Sub => self.b.ins().isub(x[0], x[1]),
            Each::Mul => self.b.ins().imul(x[0], x[1]),
            Each::Neg => self.b.ins().ineg(x[0]),
            Each::And => self.b.ins().band(x[0], x[1]),
            Each::Or => self.b.ins().bor(x[0], x[1]),
            Each::Xor => self.b.ins().bxor(x[0], x[1]),
            Each::Not => self.b.ins().bnot(x[0]),
        }
    }

    pub(crate) fn each(&mut self, a: &[Vec<Value>], ty: Ty, f: impl Fn(&mut Self, &[Value]) -> Value) -> Vec<Value> {
        (0..a[0].len())
            .map(|i| {
                let args: Vec<Value> = a.iter().map(|v| v[i]).collect();
                let v = f(self, &args);
                self.narrow16(v, ty)
            })
            .collect()
    }

    pub(crate) fn pick(&mut self, cmp: Cmp, int: Int, a: &[Value], b: &[Value]) -> Vec<Value> {
        if int.ty == Ty::B32 {
            let (x, y) = (a[0], b[0]);
            return vec![match (cmp, int.signed) {
                (Cmp::Lt, true) => self.b.ins().smin(x, y),
                (Cmp::Lt, false) => self.b.ins().umin(x, y),
                (_, true) => self.b.ins().smax(x, y),
                (_, false) => self.b.ins().umax(x, y),
            }];
        }
        let m = self.vector_icmp(cmp, int, a, b);
        self.blend(m, a, b)
    }

    pub(crate) fn vector_wide(&mut self, a: &[Value], b: &[Value], int: Int) -> Vec<Value> {
        if int.ty == Ty::B16 {
            let (x, y) = (self.widen16(a[0], int), self.widen16(b[0], int));
            return vec![self.b.ins().imul(x, y)];
        }
        let widen = |e: &mut Self, v: Value, high: bool| match (int.signed, high) {
            (true, false) => e.b.ins().swiden_low(v),
            (true, true) => e.b.ins().swiden_high(v),
            (false, false) => e.b.ins().uwiden_low(v),
            (false, true) => e.b.ins().uwiden_high(v),
        };
        [false, true]
            .map(|high| {
                let (x, y) = (widen(self, a[0], high), widen(self, b[0], high));
                self.b.ins().imul(x, y)
            })
            .to_vec()
    }

    pub(crate) fn vector_ext(&mut self, a: &[Value], ext: Extend) -> Vec<Value> {
        let Extend { signed, from, to, .. } = ext;
        let bits = u32::from(ext.bits).min(from.bits());
        // First to 32-bit lanes if the low word is enough, then within the lane, then to 64.
        if from == Ty::B64 && to == Ty::B64 {
            let n = 64 - bits;
            if n == 0 {
                return a.to_vec();
            }
            return a
                .iter()
                .map(|v| {
                    if signed {
                        if bits == 32 {
                            // Sign words over the upper halves.
                            let w = self.cast(*v, types::I32X4);
                            let c = self.b.ins().iconst(types::I32, 31);
                            let s = self.b.ins().sshr(w, c);
                            let r = self.shuffle32(w, s, [0, 4, 2, 6]);
                            return self.cast(r, types::I64X2);
                        }
                        let c = self.b.ins().iconst(types::I32, i64::from(n - 32));
                        let w = self.cast(*v, types::I32X4);
                        let up = self.b.ins().ishl(w, c);
                        let low = self.b.ins().sshr(up, c);
                        let c31 = self.b.ins().iconst(types::I32, 31);
                        let s = self.b.ins().sshr(low, c31);
                        let r = self.shuffle32(low, s, [0, 4, 2, 6]);
                        self.cast(r, types::I64X2)
                    } else {
                        let m = self.vector_const64([u64::MAX >> n; 2]);
                        self.b.ins().band(*v, m)
                    }
                })
                .collect();
        }
        let word = if from == Ty::B64 { self.low_words(a[0], a[1]) } else { a[0] };
        let keep = bits.min(to.bits()).min(32);
        let word = if keep == 32 {
            word
        } else if signed {
            let c = self.b.ins().iconst(types::I32, i64::from(32 - keep));
            let up = self.b.ins().ishl(word, c);
            self.b.ins().sshr(up, c)
        } else {
            let m = self.splat32((1u32 << keep) - 1);
            self.b.ins().band(word, m)
        };
        match to {
            Ty::B64 if signed => vec![self.b.ins().swiden_low(word), self.b.ins().swiden_high(word)],
            Ty::B64 => vec![self.b.ins().uwiden_low(word), self.b.ins().uwiden_high(word)],
            Ty::B16 => vec![self.narrow16(word, Ty::B16)],
            Ty::B32 | Ty::P => vec![word],
        }
    }

    pub(crate) fn vector_shift_by(&mut self, a: &[Value], amount: u64, int: Int, left: bool) -> Vec<Value> {
        let bits = u64::from(int.bits());
        if amount >= bits && (left || !int.signed) {
            return self.zeros(int.ty);
        }
        let k = amount.min(bits - 1) as i64;
        a.iter().map(|v| self.shift_by(*v, k, int, left)).collect()
    }

    /// A shift by an amount that all lanes share.
    pub(crate) fn vector_shift(&mut self, a: &[Value], n: Value, int: Int, left: bool) -> Vec<Value> {
        let bits = u64::from(int.bits());
        let fits = self.b.ins().icmp_imm_s(IntCC::UnsignedLessThan, n, bits as i64);
        let most = self.b.ins().iconst(types::I32, bits as i64 - 1);
        let n = self.b.ins().select(fits, n, most);
        let shifted: Vec<Value> = a
            .iter()
            .map(|v| {
                let x = self.widen16(*v, int);
                let r = match (left, int.signed) {
                    (true, _) => self.b.ins().ishl(x, n),
                    (false, true) => self.b.ins().sshr(x, n),
                    (false, false) => self.b.ins().ushr(x, n),
                };
                self.narrow16(r, int.ty)
            })
            .collect();
        if int.signed && !left {
            return shifted;
        }
        let wide = self.b.ins().uextend(types::I32, fits);
        let m = self.b.ins().ineg(wide);
        let m = self.b.ins().splat(types::I32X4, m);
        shifted
            .into_iter()
            .map(|v| {
                let t = self.b.func.dfg.value_type(v);
                let m = self.cast(m, t);
                self.b.ins().band(v, m)
            })
            .collect()
    }

    fn shift_by(&mut self, v: Value, k: i64, int: Int, left: bool) -> Value {
        let c = self.b.ins().iconst(types::I32, k);
        let x = self.widen16(v, int);
        if int.ty == Ty::B64 && int.signed && !left {
            return self.sshr64(x, k);
        }
        let r = match (left, int.signed) {
            (true, _) => self.b.ins().ishl(x, c),
            (false, true) => self.b.ins().sshr(x, c),
            (false, false) => self.b.ins().ushr(x, c),
        };
        self.narrow16(r, int.ty)
    }

    /// Arithmetic right shift of 64-bit lanes by a constant below 64.
    fn sshr64(&mut self, v: Value, k: i64) -> Value {
        let c = self.b.ins().iconst(types::I32, k);
        self.b.ins().sshr(v, c)
    }

    pub(crate) fn funnel(&mut self, a: &[Vec<Value>], n: u64, right: bool) -> Value {
        let (lo, hi) = (a[0][0], a[1][0]);
        match (right, n) {
            (true, 0) | (false, 32) => lo,
            (false, 0) | (true, 32) => hi,
            (right, n) => {
                let (x, y) = if right { (32 - n, n) } else { (n, 32 - n) };
                let x = self.b.ins().iconst(types::I32, x as i64);
                let y = self.b.ins().iconst(types::I32, y as i64);
                let up = self.b.ins().ishl(hi, x);
                let down = self.b.ins().ushr(lo, y);
                self.b.ins().bor(up, down)
            }
        }
    }

    /// Any function of three bits: by `c`, a choice of two functions of `a` and `b`.
    pub(crate) fn lop3(&mut self, lut: u8, v: [Value; 3]) -> Value {
        // Bit (a << 2 | b << 1 | c) of the table.
        let table = |c: u8| (0..4).fold(0u8, |t, ab| t | (lut >> (ab << 1 | c) & 1) << ab);
        let (f0, f1) = (table(0), table(1));
        if f0 == f1 {
            return self.two_bits(f0, v[0], v[1]);
        }
        if f0 == !f1 & 15 {
            let x = self.two_bits(f0, v[0], v[1]);
            return self.b.ins().bxor(x, v[2]);
        }
        let (x0, x1) = (self.two_bits(f0, v[0], v[1]), self.two_bits(f1, v[0], v[1]));
        match (f0, f1) {
            (0, _) => self.b.ins().band(v[2], x1),
            (_, 0) => self.b.ins().band_not(x0, v[2]),
            (15, _) => {
                let n = self.b.ins().bnot(v[2]);
                self.b.ins().bor(n, x1)
            }
            (_, 15) => self.b.ins().bor(v[2], x0),
            _ => self.b.ins().bitselect(v[2], x1, x0),
        }
    }

    /// A function of two bits: bit (a << 1 | b) of the table.
    fn two_bits(&mut self, t: u8, a: Value, b: Value) -> Value {
        match t {
            0 => self.splat32(0),
            1 => {
                let x = self.b.ins().bor(a, b);
                self.b.ins().bnot(x)
            }
            2 => self.b.ins().band_not(b, a),
            3 => self.b.ins().bnot(a),
            4 => self.b.ins().band_not(a, b),
            5 => self.b.ins().bnot(b),
            6 => self.b.ins().bxor(a, b),
            7 => {
                let x = self.b.ins().band(a, b);
                self.b.ins().bnot(x)
            }
            8 => self.b.ins().band(a, b),
            9 => {
                let x = self.b.ins().bxor(a, b);
                self.b.ins().bnot(x)
            }
            10 => b,
            11 => {
                let n = self.b.ins().bnot(a);
                self.b.ins().bor(n, b)
            }
            12 => a,
            13 => {
                let n = self.b.ins().bnot(b);
                self.b.ins().bor(a, n)
            }
            14 => self.b.ins().bor(a, b),
            _ => self.splat32(u32::MAX),
        }
    }

    /// Numbers below 1024 divided by another, in f32, which is exact: `(n + 1/2) / d` differs from every whole number by at least `1 / 2048`,
    /// relative to 1024 far more than the two roundings.
    pub(crate) fn small_quotient(&mut self, n: Value, by: u32) -> Value {
        let f = self.b.ins().fcvt_from_sint(types::F32X4, n);
        let half = self.splat32(0.5f32.to_bits());
        let half = self.cast(half, types::F32X4);
        let f = self.b.ins().fadd(f, half);
        let inverse = self.splat32((1.0f32 / by as f32).to_bits());
        let inverse = self.cast(inverse, types::F32X4);
        let q = self.b.ins().fmul(f, inverse);
        self.b.ins().fcvt_to_sint_sat(types::I32X4, q)
    }

    /// What such a division leaves.
    pub(crate) fn small_rest(&mut self, n: Value, q: Value, by: u32) -> Value {
        let d = self.splat32(by);
        let whole = self.b.ins().imul(q, d);
        self.b.ins().isub(n, whole)
    }
}
