//! Value ops on the vectors of a pack. `None`: done by a routine on rows.
//!
//! A vector of type `B16` holds 32-bit lanes whose upper halves are zero; a predicate lane is 0 or all ones.
//! [`inlined`] says in advance what [`Emit::vector_op`] can do; the two must agree.

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{Endianness, InstBuilder, MemFlagsData, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::*;

use super::Emit;
use super::convert;
use super::scalar::int_cc_of;

/// What is known of a source of a vector op.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// A constant.
    pub constant: Option<u64>,
    /// The same in all lanes: its scalar.
    pub scalar: Option<Value>,
}

/// Whether [`Emit::vector_op`] does the op, given which sources are constants and which are uniform.
pub fn inlined(op: Pure, constant: &[Option<u64>], uniform: &[bool]) -> bool {
    match op {
        Pure::Mov(_)
        | Pure::Add(_)
        | Pure::Sub(_)
        | Pure::Neg(_)
        | Pure::And(_)
        | Pure::Or(_)
        | Pure::Xor(_)
        | Pure::Not(_)
        | Pure::Select(_)
        | Pure::ICmp(..)
        | Pure::Min(_)
        | Pure::Max(_)
        | Pure::Abs(_)
        | Pure::AbsDiff(_)
        | Pure::Mul(_)
        | Pure::MulWide(_)
        | Pure::Ext { .. }
        | Pure::Pack(_)
        | Pure::Half { .. }
        | Pure::FromPred(_)
        | Pure::ToPred(_)
        | Pure::Cnot(_)
        | Pure::Lop3(_)
        | Pure::Video(_)
        | Pure::Vmad(_)
        | Pure::VideoSimd(_) => true,
        Pure::MulHi(int) => int.ty != Ty::B64,
        Pure::Shl(_) => uniform[1],
        Pure::Shr(int) => uniform[1] && !(int.signed && int.ty == Ty::B64 && constant[1].is_none()),
        Pure::Shf { .. } => constant[2].is_some(),
        Pure::Prmt(mode) => mode == PrmtMode::Default && constant[2].is_some_and(|s| s & 0x8888 == 0),
        Pure::AddCarry(t) | Pure::SubBorrow(t) => t == Ty::B32,
        Pure::FAdd(m) | Pure::FSub(m) | Pure::FMul(m) | Pure::FFma(m) => plain(m),
        Pure::FDiv { mode, exact } => plain(mode) && exact == Exactness::Ieee(Rounding::Nearest),
        Pure::FRcp { mode, exact } => plain(mode) && exact == Exactness::Ieee(Rounding::Nearest),
        Pure::FSqrt { mode, exact } => plain(mode) && exact == Exactness::Ieee(Rounding::Nearest),
        Pure::FMin { ty, ftz, xorsign, .. } | Pure::FMax { ty, ftz, xorsign, .. } => {
            matches!(ty, Float::F32 | Float::F64) && !ftz && !xorsign
        }
        Pure::FAbs { ty, ftz } | Pure::FNeg { ty, ftz } => !(ftz && ty != Float::F32) && ty != Float::F32x2,
        Pure::FCmp { ty, ftz, .. } => matches!(ty, Float::F32 | Float::F64) && !(ftz && ty == Float::F64),
        Pure::Cvt(c) => convert::inlined(c),
        Pure::Mul24 { .. }
        | Pure::Div(_)
        | Pure::Rem(_)
        | Pure::AddSat(_)
        | Pure::SubSat(_)
        | Pure::Popc(_)
        | Pure::Clz(_)
        | Pure::Brev(_)
        | Pure::Bfind { .. }
        | Pure::Bfe(_)
        | Pure::Bfi(_)
        | Pure::Dp4a { .. }
        | Pure::Dp2a { .. }
        | Pure::Fns
        | Pure::Szext { .. }
        | Pure::Bmsk { .. }
        | Pure::FRsqrt(_)
        | Pure::Sin { .. }
        | Pure::Cos { .. }
        | Pure::Lg2 { .. }
        | Pure::Ex2 { .. }
        | Pure::Tanh { .. }
        | Pure::Copysign(_)
        | Pure::Testp { .. } => false,
    }
}

/// Round to nearest at f32 or f64, without clamping; flushing at f32 only.
fn plain(m: FMode) -> bool {
    m.round == Rounding::Nearest && !m.sat && !m.relu && matches!(m.ty, Float::F32 | Float::F64)
}

/// Whether the op leaves NaNs that are not canonical.
pub fn is_loose(op: Pure) -> bool {
    match op {
        Pure::FAdd(m) | Pure::FSub(m) | Pure::FMul(m) | Pure::FFma(m) => plain(m),
        Pure::FDiv { mode, exact } | Pure::FRcp { mode, exact } | Pure::FSqrt { mode, exact } => {
            plain(mode) && exact == Exactness::Ieee(Rounding::Nearest)
        }
        _ => false,
    }
}

/// Whether source `i` of the op may be a NaN that is not canonical without harm.
pub fn takes_loose(op: Pure, _i: usize) -> bool {
    match op {
        Pure::FAdd(m) | Pure::FSub(m) | Pure::FMul(m) | Pure::FFma(m) => matches!(m.ty, Float::F32 | Float::F64),
        Pure::FDiv { mode, .. } | Pure::FRcp { mode, .. } | Pure::FSqrt { mode, .. } => {
            matches!(mode.ty, Float::F32 | Float::F64)
        }
        // A NaN gives the same result whatever its bits are.
        Pure::FCmp { .. } => true,
        Pure::Cvt(c) => matches!(c.from, ScalarType::F32 | ScalarType::F64),
        _ => false,
    }
}

impl Emit<'_, '_> {
    pub(crate) fn cast(&mut self, v: Value, to: clif::Type) -> Value {
        if self.b.func.dfg.value_type(v) == to {
            return v;
        }
        self.b.ins().bitcast(to, MemFlagsData::new().with_endianness(Endianness::Little), v)
    }

    pub(crate) fn float_type(ty: Float) -> clif::Type {
        if ty == Float::F64 { types::F64X2 } else { types::F32X4 }
    }

    pub(crate) fn bits_type(ty: Float) -> clif::Type {
        if ty == Float::F64 { types::I64X2 } else { types::I32X4 }
    }

    pub(crate) fn splat32(&mut self, v: u32) -> Value {
        self.vector_const32([v; 4])
    }

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

    /// Bytes of two vectors in a new order.
    pub(crate) fn shuffle(&mut self, a: Value, b: Value, bytes: [u8; 16]) -> Value {
        let to = self.b.func.dfg.value_type(a);
        let (x, y) = (self.cast(a, types::I8X16), self.cast(b, types::I8X16));
        let mask = self.b.func.dfg.immediates.push(clif::ConstantData::from(&bytes[..]));
        let s = self.b.ins().shuffle(x, y, mask);
        self.cast(s, to)
    }

    /// 32-bit lanes of two vectors in a new order: indices 0 to 3 of `a`, 4 to 7 of `b`.
    pub(crate) fn shuffle32(&mut self, a: Value, b: Value, lanes: [u8; 4]) -> Value {
        self.shuffle(a, b, std::array::from_fn(|i| lanes[i / 4] * 4 + (i % 4) as u8))
    }

    /// Low 32 bits of four 64-bit lanes.
    pub(crate) fn low_words(&mut self, lo: Value, hi: Value) -> Value {
        let (lo, hi) = (self.cast(lo, types::I32X4), self.cast(hi, types::I32X4));
        self.shuffle32(lo, hi, [0, 2, 4, 6])
    }

    pub(crate) fn high_words(&mut self, lo: Value, hi: Value) -> Value {
        let (lo, hi) = (self.cast(lo, types::I32X4), self.cast(hi, types::I32X4));
        self.shuffle32(lo, hi, [1, 3, 5, 7])
    }

    /// A lane mask for the two vectors of a 64-bit pack.
    pub(crate) fn wide_mask(&mut self, mask: Value) -> [Value; 2] {
        [self.b.ins().swiden_low(mask), self.b.ins().swiden_high(mask)]
    }

    /// `mask ? a : b` on the vectors of a pack.
    pub(crate) fn blend(&mut self, mask: Value, a: &[Value], b: &[Value]) -> Vec<Value> {
        if a.len() == 1 {
            return vec![self.b.ins().bitselect(mask, a[0], b[0])];
        }
        let m = self.wide_mask(mask);
        (0..2).map(|i| self.b.ins().bitselect(m[i], a[i], b[i])).collect()
    }

    /// An integer comparison as a lane mask.
    pub(crate) fn vector_icmp(&mut self, cmp: Cmp, int: Int, a: &[Value], b: &[Value]) -> Value {
        let cc = int_cc_of(cmp, int.signed, &Pure::ICmp(cmp, int));
        if int.ty == Ty::B64 {
            let m: Vec<Value> = (0..2).map(|i| self.b.ins().icmp(cc, a[i], b[i])).collect();
            return self.low_words(m[0], m[1]);
        }
        let (x, y) = (self.widen16(a[0], int), self.widen16(b[0], int));
        self.b.ins().icmp(cc, x, y)
    }

    /// A value op on one pack: the vectors of its result. The second list holds the second result of ops with two.
    pub(crate) fn vector_op(&mut self, op: Pure, a: &[Vec<Value>], s: &[Source]) -> (Vec<Value>, Vec<Value>) {
        let one = |v: Value| (vec![v], vec![]);
        match op {
            Pure::Mov(_) => (a[0].clone(), vec![]),
            Pure::Add(t) => (self.each(a, t, |e, x| e.b.ins().iadd(x[0], x[1])), vec![]),
            Pure::Sub(t) => (self.each(a, t, |e, x| e.b.ins().isub(x[0], x[1])), vec![]),
            Pure::Mul(t) => (self.each(a, t, |e, x| e.b.ins().imul(x[0], x[1])), vec![]),
            Pure::Neg(t) => (self.each(a, t, |e, x| e.b.ins().ineg(x[0])), vec![]),
            Pure::And(t) => (self.each(a, t, |e, x| e.b.ins().band(x[0], x[1])), vec![]),
            Pure::Or(t) => (self.each(a, t, |e, x| e.b.ins().bor(x[0], x[1])), vec![]),
            Pure::Xor(t) => (self.each(a, t, |e, x| e.b.ins().bxor(x[0], x[1])), vec![]),
            Pure::Not(t) => (self.each(a, t, |e, x| e.b.ins().bnot(x[0])), vec![]),
            Pure::Select(Ty::P) => one(self.b.ins().bitselect(a[0][0], a[1][0], a[2][0])),
            Pure::Select(_) => (self.blend(a[0][0], &a[1], &a[2]), vec![]),
            Pure::ICmp(cmp, int) => one(self.vector_icmp(cmp, int, &a[0], &a[1])),
            Pure::Min(int) | Pure::Max(int) => {
                let cmp = if matches!(op, Pure::Min(_)) { Cmp::Lt } else { Cmp::Gt };
                (self.pick(cmp, int, &a[0], &a[1]), vec![])
            }
            Pure::Abs(t) => {
                let int = Int { ty: t, signed: true };
                let n = self.each(&a[..1], t, |e, x| e.b.ins().ineg(x[0]));
                let zero = self.zeros(t);
                let m = self.vector_icmp(Cmp::Lt, int, &a[0], &zero);
                (self.blend(m, &n, &a[0]), vec![])
            }
            Pure::AbsDiff(int) => {
                let m = self.vector_icmp(Cmp::Lt, int, &a[0], &a[1]);
                let x = self.each(a, int.ty, |e, x| e.b.ins().isub(x[0], x[1]));
                let y = self.each(a, int.ty, |e, x| e.b.ins().isub(x[1], x[0]));
                (self.blend(m, &y, &x), vec![])
            }
            Pure::MulWide(int) => (self.vector_wide(&a[0], &a[1], int), vec![]),
            Pure::MulHi(int) if int.ty == Ty::B16 => {
                let (x, y) = (self.widen16(a[0][0], int), self.widen16(a[1][0], int));
                let p = self.b.ins().imul(x, y);
                let n = self.b.ins().iconst(types::I32, 16);
                one(self.b.ins().ushr(p, n))
            }
            Pure::MulHi(int) => {
                let w = self.vector_wide(&a[0], &a[1], int);
                one(self.high_words(w[0], w[1]))
            }
            Pure::Ext { bits, signed, from, to } => (self.vector_ext(&a[0], u32::from(bits), signed, from, to), vec![]),
            Pure::Pack(Ty::B32) => {
                let lo = self.shuffle32(a[0][0], a[1][0], [0, 4, 1, 5]);
                let hi = self.shuffle32(a[0][0], a[1][0], [2, 6, 3, 7]);
                (vec![self.cast(lo, types::I64X2), self.cast(hi, types::I64X2)], vec![])
            }
            Pure::Pack(_) => {
                let n = self.b.ins().iconst(types::I32, 16);
                let hi = self.b.ins().ishl(a[1][0], n);
                one(self.b.ins().bor(a[0][0], hi))
            }
            Pure::Half { from: Ty::B64, hi } => {
                one(if hi { self.high_words(a[0][0], a[0][1]) } else { self.low_words(a[0][0], a[0][1]) })
            }
            Pure::Half { hi, .. } => {
                if hi {
                    let n = self.b.ins().iconst(types::I32, 16);
                    one(self.b.ins().ushr(a[0][0], n))
                } else {
                    one(self.narrow16(a[0][0], Ty::B16))
                }
            }
            Pure::FromPred(t) => {
                let v = if t == Ty::B64 { self.wide_mask(a[0][0]).to_vec() } else { vec![a[0][0]] };
                (
                    self.each(&[v], t, |e, x| {
                        let ty = e.b.func.dfg.value_type(x[0]);
                        let n = e.b.ins().iconst(types::I32, i64::from(ty.lane_bits()) - 1);
                        e.b.ins().ushr(x[0], n)
                    }),
                    vec![],
                )
            }
            Pure::ToPred(t) => {
                let zero = self.zeros(t);
                one(self.vector_icmp(Cmp::Ne, Int { ty: t, signed: false }, &a[0], &zero))
            }
            Pure::Cnot(t) => {
                let zero = self.zeros(t);
                let m = self.vector_icmp(Cmp::Eq, Int { ty: t, signed: false }, &a[0], &zero);
                let v = if t == Ty::B64 { self.wide_mask(m).to_vec() } else { vec![m] };
                (v.into_iter().map(|m| self.b.ins().ineg(m)).collect(), vec![])
            }
            Pure::Lop3(lut) => one(self.lop3(lut, [a[0][0], a[1][0], a[2][0]])),
            Pure::Video(v) => one(self.video(v, a, s)),
            Pure::Vmad(v) => one(self.vmad(v, a)),
            Pure::VideoSimd(v) => one(self.video_simd(v, a)),
            Pure::Shl(t) => (self.vector_shift(&a[0], s[1], Int { ty: t, signed: false }, true), vec![]),
            Pure::Shr(int) => (self.vector_shift(&a[0], s[1], int, false), vec![]),
            Pure::Shf { right, wrap } => one(self.funnel(a, s[2].constant.unwrap_or(0), right, wrap)),
            Pure::Prmt(_) => {
                let sel = s[2].constant.unwrap_or(0);
                let byte = |i: usize| {
                    let n = (sel >> (4 * (i % 4)) & 7) as u8;
                    let lane = (i / 4) as u8 * 4;
                    if n < 4 { lane + n } else { 16 + lane + n - 4 }
                };
                one(self.shuffle(a[0][0], a[1][0], std::array::from_fn(byte)))
            }
            Pure::AddCarry(_) => {
                let u = Int::U32;
                let x = self.b.ins().iadd(a[0][0], a[1][0]);
                let c1 = self.vector_icmp(Cmp::Lt, u, &[x], &a[0]);
                let d = self.b.ins().isub(x, a[2][0]);
                let c2 = self.vector_icmp(Cmp::Lt, u, &[d], &[x]);
                let carry = self.b.ins().bor(c1, c2);
                (vec![d], vec![carry])
            }
            Pure::SubBorrow(_) => {
                let u = Int::U32;
                let x = self.b.ins().isub(a[0][0], a[1][0]);
                let c1 = self.vector_icmp(Cmp::Lt, u, &a[0], &a[1]);
                let d = self.b.ins().iadd(x, a[2][0]);
                let c2 = self.vector_icmp(Cmp::Gt, u, &[d], &[x]);
                let borrow = self.b.ins().bor(c1, c2);
                (vec![d], vec![borrow])
            }
            Pure::FAdd(m) => (self.float_op(a, m, |e, x| e.b.ins().fadd(x[0], x[1])), vec![]),
            Pure::FSub(m) => (self.float_op(a, m, |e, x| e.b.ins().fsub(x[0], x[1])), vec![]),
            Pure::FMul(m) => (self.float_op(a, m, |e, x| e.b.ins().fmul(x[0], x[1])), vec![]),
            Pure::FFma(m) => (self.float_op(a, m, |e, x| e.b.ins().fma(x[0], x[1], x[2])), vec![]),
            Pure::FDiv { mode, .. } => (self.float_op(a, mode, |e, x| e.b.ins().fdiv(x[0], x[1])), vec![]),
            Pure::FSqrt { mode, .. } => (self.float_op(a, mode, |e, x| e.b.ins().sqrt(x[0])), vec![]),
            Pure::FRcp { mode, .. } => (
                self.float_op(a, mode, |e, x| {
                    let ty = e.b.func.dfg.value_type(x[0]);
                    let one = if ty == types::F64X2 {
                        let v = e.vector_const64([1f64.to_bits(); 2]);
                        e.cast(v, types::F64X2)
                    } else {
                        let v = e.splat32(1f32.to_bits());
                        e.cast(v, types::F32X4)
                    };
                    e.b.ins().fdiv(one, x[0])
                }),
                vec![],
            ),
            Pure::FMin { ty, nan, .. } => (self.float_extreme(a, ty, nan, FloatCC::LessThan), vec![]),
            Pure::FMax { ty, nan, .. } => (self.float_extreme(a, ty, nan, FloatCC::GreaterThan), vec![]),
            Pure::FAbs { ty, ftz } => (self.sign_op(&a[0], ty, ftz, false), vec![]),
            Pure::FNeg { ty, ftz } => (self.sign_op(&a[0], ty, ftz, true), vec![]),
            Pure::FCmp { cmp, ty, ftz } => one(self.vector_fcmp(cmp, ty, ftz, &a[0], &a[1])),
            Pure::Cvt(c) => (self.vector_cvt(c, a), vec![]),
            Pure::Mul24 { .. }
            | Pure::Div(_)
            | Pure::Rem(_)
            | Pure::AddSat(_)
            | Pure::SubSat(_)
            | Pure::Popc(_)
            | Pure::Clz(_)
            | Pure::Brev(_)
            | Pure::Bfind { .. }
            | Pure::Bfe(_)
            | Pure::Bfi(_)
            | Pure::Dp4a { .. }
            | Pure::Dp2a { .. }
            | Pure::Fns
            | Pure::Szext { .. }
            | Pure::Bmsk { .. }
            | Pure::FRsqrt(_)
            | Pure::Sin { .. }
            | Pure::Cos { .. }
            | Pure::Lg2 { .. }
            | Pure::Ex2 { .. }
            | Pure::Tanh { .. }
            | Pure::Copysign(_)
            | Pure::Testp { .. } => panic!("`inlined` promised {op:?}"),
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

    pub(crate) fn zeros(&mut self, ty: Ty) -> Vec<Value> {
        if ty == Ty::B64 {
            let z = self.vector_const64([0, 0]);
            vec![z, z]
        } else {
            vec![self.splat32(0)]
        }
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

    pub(crate) fn vector_ext(&mut self, a: &[Value], bits: u32, signed: bool, from: Ty, to: Ty) -> Vec<Value> {
        let bits = bits.min(from.bits());
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

    pub(crate) fn vector_shift(&mut self, a: &[Value], amount: Source, int: Int, left: bool) -> Vec<Value> {
        let bits = u64::from(int.bits());
        if let Some(k) = amount.constant {
            if k >= bits && (left || !int.signed) {
                return self.zeros(int.ty);
            }
            let k = k.min(bits - 1) as i64;
            return a.iter().map(|v| self.shift_by(*v, k, int, left)).collect();
        }
        let Some(n) = amount.scalar else { panic!("a shift by lanes is no vector op") };
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

    pub(crate) fn shift_by(&mut self, v: Value, k: i64, int: Int, left: bool) -> Value {
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
    pub(crate) fn sshr64(&mut self, v: Value, k: i64) -> Value {
        let c = self.b.ins().iconst(types::I32, k);
        self.b.ins().sshr(v, c)
    }

    pub(crate) fn funnel(&mut self, a: &[Vec<Value>], amount: u64, right: bool, wrap: bool) -> Value {
        let n = if wrap { amount & 31 } else { amount.min(32) };
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
    pub(crate) fn two_bits(&mut self, t: u8, a: Value, b: Value) -> Value {
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
}
