//! Value ops on the vectors of a pack, as [`Vector`] says: the list of all of them.

use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::types::*;
use handloom_plan::ways::Vector;

use crate::emit::asm::Asm;
use crate::emit::ops::Source;

impl Asm<'_> {
    /// A value op on one pack: the vectors of its result. The second list holds the second result of ops with two.
    pub(crate) fn vector_op(&mut self, way: Vector, a: &[Vec<Value>], s: &[Source]) -> (Vec<Value>, Vec<Value>) {
        let one = |v: Value| (vec![v], vec![]);
        let all = |v: Vec<Value>| (v, vec![]);
        match way {
            Vector::Same => all(a[0].clone()),
            Vector::Each(op, t) => all(self.each(a, t, |e, x| e.integer(op, x))),
            Vector::SelectPred => one(self.b.ins().bitselect(a[0][0], a[1][0], a[2][0])),
            Vector::Select => all(self.blend(a[0][0], &a[1], &a[2])),
            Vector::Compare(cmp, int) => one(self.vector_icmp(cmp, int, &a[0], &a[1])),
            Vector::Extreme { least, int } => all(self.pick(if least { Cmp::Lt } else { Cmp::Gt }, int, &a[0], &a[1])),
            Vector::Abs(t) => {
                let int = Int { ty: t, signed: true };
                let n = self.each(&a[..1], t, |e, x| e.b.ins().ineg(x[0]));
                let zero = self.zeros(t);
                let m = self.vector_icmp(Cmp::Lt, int, &a[0], &zero);
                all(self.blend(m, &n, &a[0]))
            }
            Vector::AbsDiff(int) => {
                let m = self.vector_icmp(Cmp::Lt, int, &a[0], &a[1]);
                let x = self.each(a, int.ty, |e, x| e.b.ins().isub(x[0], x[1]));
                let y = self.each(a, int.ty, |e, x| e.b.ins().isub(x[1], x[0]));
                all(self.blend(m, &y, &x))
            }
            Vector::WideProduct(int) => all(self.vector_wide(&a[0], &a[1], int)),
            Vector::HighProduct16(int) => {
                let (x, y) = (self.widen16(a[0][0], int), self.widen16(a[1][0], int));
                let p = self.b.ins().imul(x, y);
                let n = self.b.ins().iconst(types::I32, 16);
                one(self.b.ins().ushr(p, n))
            }
            Vector::HighProduct32(int) => {
                let w = self.vector_wide(&a[0], &a[1], int);
                one(self.high_words(w[0], w[1]))
            }
            Vector::Extend(ext) => all(self.vector_ext(&a[0], ext)),
            Vector::Pack64 => {
                let lo = self.shuffle32(a[0][0], a[1][0], [0, 4, 1, 5]);
                let hi = self.shuffle32(a[0][0], a[1][0], [2, 6, 3, 7]);
                all(vec![self.cast(lo, types::I64X2), self.cast(hi, types::I64X2)])
            }
            Vector::Pack32 => {
                let n = self.b.ins().iconst(types::I32, 16);
                let hi = self.b.ins().ishl(a[1][0], n);
                one(self.b.ins().bor(a[0][0], hi))
            }
            Vector::Half64 { hi } => {
                one(if hi { self.high_words(a[0][0], a[0][1]) } else { self.low_words(a[0][0], a[0][1]) })
            }
            Vector::Half32 { hi: true } => {
                let n = self.b.ins().iconst(types::I32, 16);
                one(self.b.ins().ushr(a[0][0], n))
            }
            Vector::Half32 { hi: false } => one(self.narrow16(a[0][0], Ty::B16)),
            Vector::FromPred(t) => {
                let v = if t == Ty::B64 { self.wide_mask(a[0][0]).to_vec() } else { vec![a[0][0]] };
                all(self.each(&[v], t, |e, x| {
                    let ty = e.b.func.dfg.value_type(x[0]);
                    let n = e.b.ins().iconst(types::I32, i64::from(ty.lane_bits()) - 1);
                    e.b.ins().ushr(x[0], n)
                }))
            }
            Vector::ToPred(t) => {
                let zero = self.zeros(t);
                one(self.vector_icmp(Cmp::Ne, Int { ty: t, signed: false }, &a[0], &zero))
            }
            Vector::IsZero(t) => {
                let zero = self.zeros(t);
                let m = self.vector_icmp(Cmp::Eq, Int { ty: t, signed: false }, &a[0], &zero);
                let v = if t == Ty::B64 { self.wide_mask(m).to_vec() } else { vec![m] };
                all(v.into_iter().map(|m| self.b.ins().ineg(m)).collect())
            }
            Vector::Lop3(lut) => one(self.lop3(lut, [a[0][0], a[1][0], a[2][0]])),
            Vector::Video(v) => one(self.video(v, a, s)),
            Vector::Vmad(v) => one(self.vmad(v, a)),
            Vector::VideoSimd(v) => one(self.video_simd(v, a)),
            Vector::ShiftBy { int, left, amount } => all(self.vector_shift_by(&a[0], amount, int, left)),
            Vector::ShiftUniform { int, left } => {
                let Some(n) = s[1].scalar else { panic!("a shift by lanes is no vector op") };
                all(self.vector_shift(&a[0], n, int, left))
            }
            Vector::Funnel { right, amount } => one(self.funnel(a, amount, right)),
            Vector::Bytes(order) => {
                let byte = |i: usize| {
                    let (n, lane) = (order[i % 4], (i / 4) as u8 * 4);
                    if n < 4 { lane + n } else { 16 + lane + n - 4 }
                };
                one(self.shuffle(a[0][0], a[1][0], std::array::from_fn(byte)))
            }
            Vector::AddCarry => {
                let u = Int::U32;
                let x = self.b.ins().iadd(a[0][0], a[1][0]);
                let c1 = self.vector_icmp(Cmp::Lt, u, &[x], &a[0]);
                let d = self.b.ins().isub(x, a[2][0]);
                let c2 = self.vector_icmp(Cmp::Lt, u, &[d], &[x]);
                let carry = self.b.ins().bor(c1, c2);
                (vec![d], vec![carry])
            }
            Vector::SubBorrow => {
                let u = Int::U32;
                let x = self.b.ins().isub(a[0][0], a[1][0]);
                let c1 = self.vector_icmp(Cmp::Lt, u, &a[0], &a[1]);
                let d = self.b.ins().iadd(x, a[2][0]);
                let c2 = self.vector_icmp(Cmp::Gt, u, &[d], &[x]);
                let borrow = self.b.ins().bor(c1, c2);
                (vec![d], vec![borrow])
            }
            Vector::Float(op, m) => all(self.float_op(a, m, |e, x| e.float(op, x))),
            Vector::FloatExtreme { least, ty, nan } => {
                let cc = if least { FloatCC::LessThan } else { FloatCC::GreaterThan };
                all(self.float_extreme(a, ty, nan, cc))
            }
            Vector::Sign { ty, ftz, negate } => all(self.sign_op(&a[0], ty, ftz, negate)),
            Vector::FloatCompare { cmp, ty, ftz } => one(self.vector_fcmp(cmp, ty, ftz, &a[0], &a[1])),
            Vector::Convert(c, way) => all(self.vector_cvt(c, way, a)),
        }
    }
}
