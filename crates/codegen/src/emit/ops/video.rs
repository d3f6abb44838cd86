//! Scalar video instructions on the vectors of a pack.
//!
//! The bounds of each value are known when code is made. As long as they fit 32 bits, signed or unsigned, the value stays in 32-bit lanes; else
//! it goes on in 64-bit ones. So a test or a clamp is emitted only where a value can need it.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::video::*;
use handloom_ir::types::*;

use crate::emit::asm::Asm;
use crate::emit::ops::Source;
use crate::emit::ops::condition::int_cc;

/// A left shift by 32 of a number from here on is held as this power of two and more: what it is compared with is below 2^33.
const HUGE: i64 = 1 << 62;

/// Numbers in the lanes of a pack.
#[derive(Clone, Copy)]
struct Num {
    lanes: LaneVectors,
    /// No lane is below.
    low: i64,
    /// No lane is above.
    high: i64,
}

#[derive(Clone, Copy)]
enum LaneVectors {
    /// 32 bits, signed or unsigned: which of the two the bounds tell.
    Narrow(Value),
    /// 64 bits, signed.
    Wide([Value; 2]),
}

impl Num {
    fn narrow(v: Value, (low, high): (i64, i64)) -> Num {
        Num { lanes: LaneVectors::Narrow(v), low, high }
    }

    fn is_s32(&self) -> bool {
        fits((self.low, self.high), true)
    }

    fn is_u32(&self) -> bool {
        fits((self.low, self.high), false)
    }
}

impl Asm<'_> {
    /// A scalar video op. `s` tells of constants among the sources.
    pub(crate) fn video(&mut self, v: Video, a: &[Vec<Value>], s: &[Source]) -> Value {
        let x = self.video_part(a[0][0], v.a);
        // Without a clamp or a comparison after it, only the low 32 bits of the result are seen.
        let exact = v.sat || matches!(v.end, VideoEnd::Min | VideoEnd::Max);
        let result = match v.op {
            VideoOp::Shl { wrap } | VideoOp::Shr { wrap } => {
                let left = matches!(v.op, VideoOp::Shl { .. });
                match s[1].constant {
                    Some(word) => {
                        let field = (word >> v.b.part.at()) & (u64::from(u32::MAX) >> (32 - v.b.part.bits()));
                        self.shift_num(x, if wrap { field & 31 } else { field.min(32) } as u32, left, exact)
                    }
                    None => {
                        let n = self.video_part(a[1][0], v.second());
                        self.shift_lanes(x, n, left, wrap, exact)
                    }
                }
            }
            VideoOp::Add | VideoOp::Sub | VideoOp::AbsDiff | VideoOp::Min | VideoOp::Max | VideoOp::Set(_) => {
                let y = self.video_part(a[1][0], v.b);
                self.arithmetic(v.op, x, y, exact)
            }
        };
        let result = if v.sat { self.clamp_num(result, range(v.range_bits(), v.signed)) } else { result };
        match v.end {
            VideoEnd::Plain => self.low(result),
            VideoEnd::Add => {
                let low = self.low(result);
                self.b.ins().iadd(low, a[2][0])
            }
            VideoEnd::Min | VideoEnd::Max => {
                let c = Num::narrow(a[2][0], range(32, v.signed));
                let picked = self.pick_num(v.end == VideoEnd::Min, result, c);
                self.low(picked)
            }
            VideoEnd::Merge(part) => {
                let low = self.low(result);
                self.merge(low, a[2][0], part)
            }
        }
    }

    /// `vmad`.
    pub(crate) fn vmad(&mut self, v: Vmad, a: &[Vec<Value>]) -> Value {
        let (x, y, c) = (self.video_part(a[0][0], v.a), self.video_part(a[1][0], v.b), a[2][0]);
        if !v.sat && v.shift == 0 {
            let (x, y) = (self.low(x), self.low(y));
            let product = self.b.ins().imul(x, y);
            let sum = self.sum(v.negated, product, c);
            if !v.plus_one {
                return sum;
            }
            let one = self.splat32(1);
            return self.b.ins().iadd(sum, one);
        }
        let c = Num::narrow(c, range(32, v.is_signed()));
        let (product, c) = (self.product(x, y), self.wide(c));
        // Both factors are unsigned words: the product may take all 64 bits.
        let is_large = x.high.checked_mul(y.high).is_none();
        let sums = [0, 1].map(|i| {
            let mut p = product[i];
            if v.sat && is_large {
                let (n, zero) = (self.b.ins().iconst(types::I32, 62), self.vector_const64([0; 2]));
                let top = self.b.ins().ushr(p, n);
                let above = self.b.ins().icmp(IntCC::NotEqual, top, zero);
                let most = self.vector_const64([HUGE.cast_unsigned(); 2]);
                p = self.b.ins().bitselect(above, most, p);
            }
            let mut sum = self.sum(v.negated, p, c[i]);
            if v.plus_one {
                let one = self.vector_const64([1; 2]);
                sum = self.b.ins().iadd(sum, one);
            }
            let n = self.b.ins().iconst(types::I32, i64::from(v.shift));
            match (v.shift, v.sat) {
                (0, _) => sum,
                // The sum is exact.
                (_, true) => self.b.ins().sshr(sum, n),
                // The sum is right modulo 2^64; bits that come in from above are not seen.
                (_, false) => self.b.ins().ushr(sum, n),
            }
        });
        if !v.sat {
            return self.low_words(sums[0], sums[1]);
        }
        let low = if v.is_signed() { i64::MIN } else { 0 };
        let sum = Num { lanes: LaneVectors::Wide(sums), low, high: i64::MAX };
        let clamped = self.clamp_num(sum, range(32, v.is_signed()));
        self.low(clamped)
    }

    fn sum(&mut self, negated: Negated, product: Value, c: Value) -> Value {
        match negated {
            Negated::None => self.b.ins().iadd(product, c),
            Negated::Product => self.b.ins().isub(c, product),
            Negated::Addend => self.b.ins().isub(product, c),
        }
    }

    /// The product modulo 2^64, which is exact but for two unsigned words.
    fn product(&mut self, x: Num, y: Num) -> [Value; 2] {
        if let (LaneVectors::Narrow(a), LaneVectors::Narrow(b)) = (x.lanes, y.lanes) {
            let int = match (x.is_s32() && y.is_s32(), x.is_u32() && y.is_u32()) {
                (true, _) => Some(Int::S32),
                (_, true) => Some(Int::U32),
                (false, false) => None,
            };
            if let Some(int) = int {
                let product = self.vector_wide(&[a], &[b], int);
                return [product[0], product[1]];
            }
        }
        let (a, b) = (self.wide(x), self.wide(y));
        [0, 1].map(|i| self.b.ins().imul(a[i], b[i]))
    }

    /// A part of each word, extended.
    fn video_part(&mut self, word: Value, p: PartOf) -> Num {
        let (at, bits) = (p.part.at(), p.part.bits());
        let shift = |e: &mut Self, v: Value, n: u32, f: fn(&mut Self, Value, Value) -> Value| {
            let amount = e.b.ins().iconst(types::I32, i64::from(n));
            if n == 0 { v } else { f(e, v, amount) }
        };
        let v = if p.signed {
            let up = shift(self, word, 32 - at - bits, |e, v, n| e.b.ins().ishl(v, n));
            shift(self, up, 32 - bits, |e, v, n| e.b.ins().sshr(v, n))
        } else {
            let down = shift(self, word, at, |e, v, n| e.b.ins().ushr(v, n));
            if at + bits == 32 {
                down
            } else {
                let mask = self.splat32(u32::MAX >> (32 - bits));
                self.b.ins().band(down, mask)
            }
        };
        Num::narrow(v, range(bits, p.signed))
    }

    fn arithmetic(&mut self, op: VideoOp, x: Num, y: Num, exact: bool) -> Num {
        let all = range(32, true);
        match op {
            VideoOp::Add | VideoOp::Sub => {
                let add = op == VideoOp::Add;
                let bounds = if add { (x.low + y.low, x.high + y.high) } else { (x.low - y.high, x.high - y.low) };
                let both =
                    |e: &mut Self, a: Value, b: Value| if add { e.b.ins().iadd(a, b) } else { e.b.ins().isub(a, b) };
                if !exact || fits_narrow(bounds) {
                    let (a, b) = (self.low(x), self.low(y));
                    return Num::narrow(both(self, a, b), if exact { bounds } else { all });
                }
                let (a, b) = (self.wide(x), self.wide(y));
                let lanes = LaneVectors::Wide([both(self, a[0], b[0]), both(self, a[1], b[1])]);
                Num { lanes, low: bounds.0, high: bounds.1 }
            }
            VideoOp::AbsDiff => {
                let (least, most) = (self.pick_num(true, x, y), self.pick_num(false, x, y));
                let high = (x.high - y.low).max(y.high - x.low);
                // The distance of two numbers of one kind fits 32 bits without a sign.
                if !exact || fits_narrow((0, high)) {
                    let (a, b) = (self.low(most), self.low(least));
                    return Num::narrow(self.b.ins().isub(a, b), if exact { (0, high) } else { all });
                }
                let (a, b) = (self.wide(most), self.wide(least));
                Num { lanes: LaneVectors::Wide([0, 1].map(|i| self.b.ins().isub(a[i], b[i]))), low: 0, high }
            }
            VideoOp::Min => self.pick_num(true, x, y),
            VideoOp::Max => self.pick_num(false, x, y),
            VideoOp::Set(cmp) => {
                let mask = self.compare_num(cmp, x, y);
                let one = self.splat32(1);
                Num::narrow(self.b.ins().band(mask, one), (0, 1))
            }
            VideoOp::Shl { .. } | VideoOp::Shr { .. } => panic!("{op:?} is no arithmetic of two numbers"),
        }
    }

    /// The smaller or the larger one.
    fn pick_num(&mut self, min: bool, x: Num, y: Num) -> Num {
        let pick = if min { i64::min } else { i64::max };
        let bounds = (pick(x.low, y.low), pick(x.high, y.high));
        if let (LaneVectors::Narrow(a), LaneVectors::Narrow(b)) = (x.lanes, y.lanes) {
            let v = match (x.is_s32() && y.is_s32(), x.is_u32() && y.is_u32(), min) {
                (true, _, true) => Some(self.b.ins().smin(a, b)),
                (true, _, false) => Some(self.b.ins().smax(a, b)),
                (_, true, true) => Some(self.b.ins().umin(a, b)),
                (_, true, false) => Some(self.b.ins().umax(a, b)),
                (false, false, _) => None,
            };
            if let Some(v) = v {
                return Num::narrow(v, bounds);
            }
        }
        let cc = if min { IntCC::SignedLessThan } else { IntCC::SignedGreaterThan };
        let (a, b) = (self.wide(x), self.wide(y));
        let picked = [0, 1].map(|i| {
            let first = self.b.ins().icmp(cc, a[i], b[i]);
            self.b.ins().bitselect(first, a[i], b[i])
        });
        self.narrowest(picked, bounds)
    }

    /// A lane mask.
    fn compare_num(&mut self, cmp: Cmp, x: Num, y: Num) -> Value {
        let cc = |signed| int_cc(cmp, signed);
        if let (LaneVectors::Narrow(a), LaneVectors::Narrow(b)) = (x.lanes, y.lanes) {
            if x.is_s32() && y.is_s32() {
                return self.b.ins().icmp(cc(true), a, b);
            }
            if x.is_u32() && y.is_u32() {
                return self.b.ins().icmp(cc(false), a, b);
            }
        }
        let (a, b) = (self.wide(x), self.wide(y));
        let masks = [0, 1].map(|i| self.b.ins().icmp(cc(true), a[i], b[i]));
        self.low_words(masks[0], masks[1])
    }

    /// A shift by a constant of at most 32.
    fn shift_num(&mut self, x: Num, n: u32, left: bool, exact: bool) -> Num {
        let amount = |e: &mut Self, n: u32| e.b.ins().iconst(types::I32, i64::from(n));
        let v = self.low(x);
        if !left {
            let bounds = (x.low >> n, x.high >> n);
            if x.is_s32() {
                let n = amount(self, n.min(31));
                return Num::narrow(self.b.ins().sshr(v, n), bounds);
            }
            let n_value = amount(self, n);
            let shifted = if n == 32 { self.splat32(0) } else { self.b.ins().ushr(v, n_value) };
            return Num::narrow(shifted, bounds);
        }
        // Only an unsigned word leaves 64 bits, and only by all 32.
        let leaves = n == 32 && !x.is_s32();
        let bounds = (x.low << n, if leaves { HUGE } else { x.high << n });
        if !exact || fits_narrow(bounds) {
            let n_value = amount(self, n);
            let shifted = if n == 32 { self.splat32(0) } else { self.b.ins().ishl(v, n_value) };
            return Num::narrow(shifted, if exact { bounds } else { range(32, true) });
        }
        let x = if leaves {
            let most = self.splat32(1 << 30);
            Num::narrow(self.b.ins().umin(v, most), (x.low, x.high.min(1 << 30)))
        } else {
            x
        };
        let wide = self.wide(x);
        let n = amount(self, n);
        Num { lanes: LaneVectors::Wide(wide.map(|v| self.b.ins().ishl(v, n))), low: bounds.0, high: bounds.1 }
    }

    /// A shift by amounts that differ between lanes: lane by lane in 64 bits.
    fn shift_lanes(&mut self, x: Num, by: Num, left: bool, wrap: bool, exact: bool) -> Num {
        let most = self.splat32(if wrap { 31 } else { 32 });
        let by = self.low(by);
        let by = if wrap { self.b.ins().band(by, most) } else { self.b.ins().umin(by, most) };
        let v = self.low(x);
        let may_leave = left && exact && !wrap && !x.is_s32();
        let shifted: [Value; 4] = std::array::from_fn(|l| {
            let (a, n) = (self.b.ins().extractlane(v, l as u8), self.b.ins().extractlane(by, l as u8));
            let a = if x.is_s32() { self.b.ins().sextend(types::I64, a) } else { self.b.ins().uextend(types::I64, a) };
            match (left, may_leave) {
                (false, _) => self.b.ins().sshr(a, n),
                (true, false) => self.b.ins().ishl(a, n),
                (true, true) => {
                    let whole = self.b.ins().icmp_imm_s(IntCC::Equal, n, 32);
                    let (most, cap) =
                        (self.b.ins().iconst(types::I32, 31), self.b.ins().iconst(types::I64, HUGE >> 32));
                    let n31 = self.b.ins().umin(n, most);
                    let once = self.b.ins().ishl(a, n31);
                    let capped = self.b.ins().umin(a, cap);
                    let all = self.b.ins().ishl_imm_s(capped, 32);
                    self.b.ins().select(whole, all, once)
                }
            }
        });
        let pair = |e: &mut Self, low: Value, high: Value| {
            let v = e.b.ins().scalar_to_vector(types::I64X2, low);
            e.b.ins().insertlane(v, high, 1)
        };
        let lanes = [pair(self, shifted[0], shifted[1]), pair(self, shifted[2], shifted[3])];
        let bounds = match (left, exact) {
            (false, _) => (x.low.min(0), x.high.max(0)),
            (true, true) => ((x.low << 32).min(0), if x.is_s32() { x.high << 32 } else { i64::MAX }),
            (true, false) => range(32, true),
        };
        self.narrowest(lanes, bounds)
    }

    fn clamp_num(&mut self, x: Num, (least, most): (i64, i64)) -> Num {
        let (below, above) = (x.low < least, x.high > most);
        let bounds = (x.low.clamp(least, most), x.high.clamp(least, most));
        match x.lanes {
            _ if !below && !above => x,
            LaneVectors::Narrow(mut v) => {
                // A bound that can be crossed is itself a number of the kind that the lanes hold.
                let signed = x.is_s32();
                if below {
                    let end = self.splat32(least as u32);
                    v = self.b.ins().smax(v, end);
                }
                if above {
                    let end = self.splat32(most as u32);
                    v = if signed { self.b.ins().smin(v, end) } else { self.b.ins().umin(v, end) };
                }
                Num::narrow(v, bounds)
            }
            LaneVectors::Wide(mut lanes) => {
                let mut cut = |e: &mut Self, end: i64, cc: IntCC| {
                    let end = e.vector_const64([end.cast_unsigned(); 2]);
                    for v in &mut lanes {
                        let beyond = e.b.ins().icmp(cc, *v, end);
                        *v = e.b.ins().bitselect(beyond, end, *v);
                    }
                };
                if below {
                    cut(self, least, IntCC::SignedLessThan);
                }
                if above {
                    cut(self, most, IntCC::SignedGreaterThan);
                }
                self.narrowest(lanes, bounds)
            }
        }
    }

    /// The low part of `v` in place of a part of `c`.
    fn merge(&mut self, v: Value, c: Value, part: Part) -> Value {
        let at = self.b.ins().iconst(types::I32, i64::from(part.at()));
        let moved = if part.at() == 0 { v } else { self.b.ins().ishl(v, at) };
        let mask = self.splat32(part.mask());
        self.b.ins().bitselect(mask, moved, c)
    }

    /// The low 32 bits.
    fn low(&mut self, x: Num) -> Value {
        match x.lanes {
            LaneVectors::Narrow(v) => v,
            LaneVectors::Wide([a, b]) => self.low_words(a, b),
        }
    }

    /// In 64-bit lanes.
    fn wide(&mut self, x: Num) -> [Value; 2] {
        match x.lanes {
            LaneVectors::Wide(v) => v,
            LaneVectors::Narrow(v) if x.is_u32() => [self.b.ins().uwiden_low(v), self.b.ins().uwiden_high(v)],
            LaneVectors::Narrow(v) => [self.b.ins().swiden_low(v), self.b.ins().swiden_high(v)],
        }
    }

    /// Lanes of 64 bits, or of 32 if the bounds fit them.
    fn narrowest(&mut self, lanes: [Value; 2], bounds: (i64, i64)) -> Num {
        if fits_narrow(bounds) {
            return Num::narrow(self.low_words(lanes[0], lanes[1]), bounds);
        }
        Num { lanes: LaneVectors::Wide(lanes), low: bounds.0, high: bounds.1 }
    }
}

/// Least and greatest number of some bits.
fn range(bits: u32, signed: bool) -> (i64, i64) {
    if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

fn fits((low, high): (i64, i64), signed: bool) -> bool {
    let (least, most) = range(32, signed);
    low >= least && high <= most
}

fn fits_narrow(bounds: (i64, i64)) -> bool {
    fits(bounds, true) || fits(bounds, false)
}
