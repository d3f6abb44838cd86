//! SIMD video instructions: bytes and halves of the words of a pack.
//!
//! Where both sources have one sign, elements stay in lanes of their own width. Else, or where the exact result is wider than an element, the even
//! and the odd elements are spread over two vectors of lanes twice as wide, in which every result is exact.

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::video::*;

use crate::emit::asm::Asm;
use crate::emit::ops::condition::int_cc;

/// Results of the elements.
enum Results {
    /// In place. They are exact if read with this sign.
    Own(Value, bool),
    /// The even ones and the odd ones in lanes twice as wide, signed.
    Spread([Value; 2]),
}

impl Asm<'_> {
    /// A SIMD video op.
    pub(crate) fn video_simd(&mut self, v: VideoSimd, a: &[Vec<Value>]) -> Value {
        let own = if v.bits() == 8 { types::I8X16 } else { types::I16X8 };
        let x = self.selected(v, v.a, a[0][0], a[1][0]);
        let y = self.selected(v, v.b, a[0][0], a[1][0]);
        let (x, y) = (self.cast(x, own), self.cast(y, own));
        let results = match self.in_place(v, x, y) {
            Some(results) => results,
            None => self.spread_out(v, x, y),
        };
        if v.accumulate {
            return self.accumulated(v, results, a[2][0]);
        }
        let merged = match results {
            Results::Own(t, _) => self.cast(t, types::I32X4),
            Results::Spread([even, odd]) => {
                let low = self.splat32(if v.bits() == 8 { 0x00ff_00ff } else { 0xffff });
                // Within a wide lane the odd element stands above the even one.
                let odd = self.shifted(odd, v, |e, v, n| e.b.ins().ishl(v, n));
                let (even, odd) = (self.cast(even, types::I32X4), self.cast(odd, types::I32X4));
                self.b.ins().bitselect(low, even, odd)
            }
        };
        let mask = element_mask(v);
        if mask == u32::MAX {
            return merged;
        }
        let mask = self.splat32(mask);
        self.b.ins().bitselect(mask, merged, a[2][0])
    }

    /// The elements of a source.
    fn selected(&mut self, v: VideoSimd, e: Elements, a: Value, b: Value) -> Value {
        let (n, size) = (v.n, 4 / v.n);
        let picked = &e.select[..usize::from(n)];
        for (first, whole) in [(0, a), (n, b)] {
            if picked.iter().zip(first..).all(|(have, want)| *have == want) {
                return whole;
            }
        }
        let byte = |i: usize| {
            let (lane, at) = (i as u8 / 4 * 4, i as u8 % 4);
            let from = picked[usize::from(at / size)] * size + at % size;
            if from < 4 { lane + from } else { 16 + lane + from - 4 }
        };
        self.shuffle(a, b, std::array::from_fn(byte))
    }

    /// Results in lanes as wide as the elements, if that is exact enough.
    fn in_place(&mut self, v: VideoSimd, x: Value, y: Value) -> Option<Results> {
        let signed = v.a.signed;
        let same = v.a.signed == v.b.signed;
        let cut = !v.sat && !v.accumulate;
        let ends_alike = same && v.signed == signed;
        let t = match v.op {
            SimdOp::Add if cut => return Some(Results::Own(self.b.ins().iadd(x, y), false)),
            SimdOp::Sub if cut => return Some(Results::Own(self.b.ins().isub(x, y), false)),
            SimdOp::Add if v.sat && ends_alike => {
                let t = if signed { self.b.ins().sadd_sat(x, y) } else { self.b.ins().uadd_sat(x, y) };
                return Some(Results::Own(t, signed));
            }
            SimdOp::Sub if v.sat && ends_alike => {
                let t = if signed { self.b.ins().ssub_sat(x, y) } else { self.b.ins().usub_sat(x, y) };
                return Some(Results::Own(t, signed));
            }
            SimdOp::Min | SimdOp::Max if same => Results::Own(self.extreme(v.op == SimdOp::Min, signed, x, y), signed),
            SimdOp::AbsDiff if same => {
                let (least, most) = (self.extreme(true, signed, x, y), self.extreme(false, signed, x, y));
                Results::Own(self.b.ins().isub(most, least), false)
            }
            SimdOp::Avrg if same && !signed => Results::Own(self.b.ins().avg_round(x, y), false),
            SimdOp::Set(cmp) if same => {
                let cc = int_cc(cmp, signed);
                let mask = self.b.ins().icmp(cc, x, y);
                let one = self.splat_element(v.bits(), 1);
                let (mask, one) = (self.cast(mask, types::I32X4), self.cast(one, types::I32X4));
                return Some(Results::Own(self.b.ins().band(mask, one), false));
            }
            SimdOp::Add | SimdOp::Sub | SimdOp::Avrg | SimdOp::AbsDiff | SimdOp::Min | SimdOp::Max | SimdOp::Set(_) => {
                return None;
            }
        };
        let Results::Own(t, is_signed) = t else { return Some(t) };
        // What fits an element of one sign and is clamped to the other crosses one end only.
        let t = match (v.sat, is_signed, v.signed) {
            (true, true, false) => {
                let zero = self.splat_element(v.bits(), 0);
                self.b.ins().smax(t, zero)
            }
            (true, false, true) => {
                let most = self.splat_element(v.bits(), (1 << (v.bits() - 1)) - 1);
                self.b.ins().umin(t, most)
            }
            (true, true, true) | (true, false, false) | (false, _, _) => t,
        };
        Some(Results::Own(t, if v.sat { v.signed } else { is_signed }))
    }

    fn extreme(&mut self, min: bool, signed: bool, x: Value, y: Value) -> Value {
        match (min, signed) {
            (true, true) => self.b.ins().smin(x, y),
            (true, false) => self.b.ins().umin(x, y),
            (false, true) => self.b.ins().smax(x, y),
            (false, false) => self.b.ins().umax(x, y),
        }
    }

    /// Results in lanes twice as wide.
    fn spread_out(&mut self, v: VideoSimd, x: Value, y: Value) -> Results {
        let (x, y) = (self.halves(v, x, v.a.signed), self.halves(v, y, v.b.signed));
        Results::Spread([0, 1].map(|i| {
            let (a, b) = (x[i], y[i]);
            let t = match v.op {
                SimdOp::Add => self.b.ins().iadd(a, b),
                SimdOp::Sub => self.b.ins().isub(a, b),
                SimdOp::Avrg => {
                    let sum = self.b.ins().iadd(a, b);
                    let zero = self.splat_element(2 * v.bits(), 0);
                    // All ones where 1 is added.
                    let rounds = self.b.ins().icmp(IntCC::SignedGreaterThanOrEqual, sum, zero);
                    let sum = self.b.ins().isub(sum, rounds);
                    let one = self.b.ins().iconst(types::I32, 1);
                    self.b.ins().sshr(sum, one)
                }
                SimdOp::AbsDiff => {
                    let (least, most) = (self.b.ins().smin(a, b), self.b.ins().smax(a, b));
                    self.b.ins().isub(most, least)
                }
                SimdOp::Min => self.b.ins().smin(a, b),
                SimdOp::Max => self.b.ins().smax(a, b),
                SimdOp::Set(cmp) => {
                    let mask = self.b.ins().icmp(int_cc(cmp, true), a, b);
                    let one = self.splat_element(2 * v.bits(), 1);
                    self.b.ins().band(mask, one)
                }
            };
            if !v.sat {
                return t;
            }
            let bits = v.bits();
            let (least, most) =
                if v.signed { (u32::MAX << (bits - 1), (1 << (bits - 1)) - 1) } else { (0, u32::MAX >> (32 - bits)) };
            let (least, most) = (self.splat_element(2 * bits, least), self.splat_element(2 * bits, most));
            let t = self.b.ins().smax(t, least);
            self.b.ins().smin(t, most)
        }))
    }

    /// The even and the odd elements in lanes twice as wide.
    fn halves(&mut self, v: VideoSimd, x: Value, signed: bool) -> [Value; 2] {
        let x = self.cast(x, wide_type(v));
        let even = if signed {
            let up = self.shifted(x, v, |e, v, n| e.b.ins().ishl(v, n));
            self.shifted(up, v, |e, v, n| e.b.ins().sshr(v, n))
        } else {
            let low = self.splat_element(2 * v.bits(), u32::MAX >> (32 - v.bits()));
            self.b.ins().band(x, low)
        };
        let odd = self.shifted(x, v, |e, v, n| if signed { e.b.ins().sshr(v, n) } else { e.b.ins().ushr(v, n) });
        [even, odd]
    }

    /// A shift of wide lanes by the width of an element.
    fn shifted(&mut self, x: Value, v: VideoSimd, f: impl Fn(&mut Self, Value, Value) -> Value) -> Value {
        let (x, n) = (self.cast(x, wide_type(v)), self.b.ins().iconst(types::I32, i64::from(v.bits())));
        f(self, x, n)
    }

    /// c and the results that the mask names.
    fn accumulated(&mut self, v: VideoSimd, results: Results, c: Value) -> Value {
        let wide = wide_type(v);
        let [even, odd] = match results {
            Results::Own(t, signed) => {
                let t = self.cast(t, types::I32X4);
                let mask = element_mask(v);
                let t = if mask == u32::MAX {
                    t
                } else {
                    let mask = self.splat32(mask);
                    self.b.ins().band(t, mask)
                };
                self.halves(v, t, signed)
            }
            Results::Spread(halves) => {
                let wide_bits = 2 * v.bits();
                let mut masked = halves;
                for (odd, half) in masked.iter_mut().enumerate() {
                    // Elements 0 and 2, or 1 and 3, in lanes twice as wide.
                    let on = |i: usize| v.mask >> i & 1 != 0;
                    let lane = u32::MAX >> (32 - wide_bits);
                    let mut mask = if on(odd) { lane } else { 0 };
                    if v.n == 4 && on(2 + odd) {
                        mask |= lane << 16;
                    }
                    if v.n == 2 || mask != u32::MAX {
                        let mask = self.splat32(mask);
                        let mask = self.cast(mask, wide);
                        *half = self.b.ins().band(*half, mask);
                    }
                }
                masked
            }
        };
        let sum = self.b.ins().iadd(even, odd);
        if v.n == 2 {
            return self.b.ins().iadd(sum, c);
        }
        let sum = self.cast(sum, types::I32X4);
        let n = self.b.ins().iconst(types::I32, 16);
        let up = self.b.ins().ishl(sum, n);
        let (low, high) = (self.b.ins().sshr(up, n), self.b.ins().sshr(sum, n));
        let both = self.b.ins().iadd(low, high);
        self.b.ins().iadd(both, c)
    }

    /// A number in all elements of so many bits; its upper bits are cut.
    fn splat_element(&mut self, bits: u32, value: u32) -> Value {
        let value = value & (u32::MAX >> (32 - bits));
        let (word, ty) = match bits {
            8 => (value * 0x0101_0101, types::I8X16),
            16 => (value * 0x0001_0001, types::I16X8),
            _ => (value, types::I32X4),
        };
        let v = self.splat32(word);
        self.cast(v, ty)
    }
}

/// Lanes twice as wide as the elements.
fn wide_type(v: VideoSimd) -> clif::Type {
    if v.bits() == 8 { types::I16X8 } else { types::I32X4 }
}

/// Ones in the elements that the mask names.
fn element_mask(v: VideoSimd) -> u32 {
    let element = u32::MAX >> (32 - v.bits());
    (0..u32::from(v.n)).filter(|i| v.mask >> i & 1 != 0).fold(0, |mask, i| mask | element << (i * v.bits()))
}
