//! Vectors of a pack in another order, made of scalars, and taken apart.

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::types::*;
use handloom_plan::packs::{LANES, PACKS};

use crate::emit::asm::{Asm, POOL_LANEMASKS, vector_type, width};
use crate::emit::once::Key;

impl Asm<'_> {
    pub(crate) fn float_type(ty: Float) -> clif::Type {
        if ty == Float::F64 { types::F64X2 } else { types::F32X4 }
    }

    pub(crate) fn bits_type(ty: Float) -> clif::Type {
        if ty == Float::F64 { types::I64X2 } else { types::I32X4 }
    }

    /// A row of the warp's context: the vectors of all packs.
    pub(crate) fn load_row(&mut self, at: u32, ty: Ty) -> Vec<Value> {
        (0..PACKS * width(ty)).map(|i| self.load_warp(vector_type(ty), at as usize + 16 * i)).collect()
    }

    /// Writes a row of the warp's context.
    pub(crate) fn store_row(&mut self, at: u32, rows: &[Value]) {
        for (i, v) in rows.iter().enumerate() {
            self.store_warp(*v, at as usize + 16 * i);
        }
    }

    /// The vectors of a pack in a row. `base`: the context plus the distance of the pack in a row of this type.
    pub(crate) fn load_of_row(&mut self, base: Value, at: u32, ty: Ty) -> Vec<Value> {
        let t = vector_type(ty);
        (0..width(ty) as i32).map(|h| self.b.ins().load(t, Self::trusted(), base, at as i32 + 16 * h)).collect()
    }

    /// Writes the vectors of a pack to a row.
    pub(crate) fn store_of_row(&mut self, base: Value, at: u32, pack: &[Value]) {
        for (h, x) in pack.iter().enumerate() {
            self.b.ins().store(Self::trusted(), *x, base, at as i32 + 16 * h as i32);
        }
    }

    /// A pack of a row of lane masks in the pool. `base`: the pool plus 16 bytes for each pack before it.
    pub(crate) fn lane_masks(&mut self, base: Value, row: usize, pack: usize) -> Value {
        let at = POOL_LANEMASKS as usize + 128 * row + 16 * pack;
        self.b.ins().load(types::I32X4, Self::trusted(), base, at as i32)
    }

    /// A 64-bit scalar in both lanes of a vector.
    pub(crate) fn splat64(&mut self, v: Value) -> Value {
        self.b.ins().splat(types::I64X2, v)
    }

    /// The vectors of a pack that are zero.
    pub(crate) fn zeros(&mut self, ty: Ty) -> Vec<Value> {
        if ty == Ty::B64 {
            let z = self.vector_const64([0, 0]);
            vec![z, z]
        } else {
            vec![self.splat32(0)]
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

    fn pair64(&mut self, a: Value, b: Value, high: bool) -> Value {
        let h = if high { 8 } else { 0 };
        self.shuffle(a, b, std::array::from_fn(|i| if i < 8 { h + i as u8 } else { 16 + h + (i as u8 - 8) }))
    }

    /// Vectors put in another order, by one of the functions below or its opposite. What was turned is turned back for nothing: copies need
    /// no shuffles.
    pub(crate) fn turn(&mut self, v: &[Value], how: fn(&mut Self, &[Value]) -> Vec<Value>) -> Vec<Value> {
        if let Some(before) = self.turned.get(v) {
            return before.clone();
        }
        let made = how(self, v);
        self.turned.insert(made.clone(), v.to_vec());
        made
    }

    /// Even and odd elements of two vectors.
    pub(crate) fn parted(&mut self, v: &[Value]) -> Vec<Value> {
        vec![self.shuffle32(v[0], v[1], [0, 2, 4, 6]), self.shuffle32(v[0], v[1], [1, 3, 5, 7])]
    }

    /// The opposite of `parted`.
    pub(crate) fn merged(&mut self, v: &[Value]) -> Vec<Value> {
        vec![self.shuffle32(v[0], v[1], [0, 4, 1, 5]), self.shuffle32(v[0], v[1], [2, 6, 3, 7])]
    }

    /// Two pairs of vectors of two elements, each pair transposed. Its own opposite.
    pub(crate) fn paired(&mut self, v: &[Value]) -> Vec<Value> {
        let half = |e: &mut Self, i: usize, high| e.pair64(v[i], v[i + 1], high);
        vec![half(self, 0, false), half(self, 0, true), half(self, 2, false), half(self, 2, true)]
    }

    /// Four vectors as rows and columns change places. Its own opposite.
    pub(crate) fn transposed(&mut self, v: &[Value]) -> Vec<Value> {
        let a = self.shuffle32(v[0], v[1], [0, 4, 1, 5]);
        let b = self.shuffle32(v[2], v[3], [0, 4, 1, 5]);
        let c = self.shuffle32(v[0], v[1], [2, 6, 3, 7]);
        let d = self.shuffle32(v[2], v[3], [2, 6, 3, 7]);
        vec![
            self.shuffle32(a, b, [0, 1, 4, 5]),
            self.shuffle32(a, b, [2, 3, 6, 7]),
            self.shuffle32(c, d, [0, 1, 4, 5]),
            self.shuffle32(c, d, [2, 3, 6, 7]),
        ]
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

    /// The mask vector of a nibble of lanes.
    pub(crate) fn mask_of_nibble(&mut self, nibble: Value) -> Value {
        let wide = self.b.ins().uextend(types::I64, nibble);
        let at = self.b.ins().ishl_imm_s(wide, 4);
        let addr = self.b.ins().iadd(self.pool_ptr, at);
        self.b.ins().load(types::I32X4, Self::trusted(), addr, 0)
    }

    /// Bits of eight mask vectors.
    pub(crate) fn bits_of_rows(&mut self, rows: &[Value]) -> Value {
        let halves: Vec<Value> = (0..4).map(|i| self.b.ins().snarrow(rows[2 * i], rows[2 * i + 1])).collect();
        let low = self.b.ins().snarrow(halves[0], halves[1]);
        let high = self.b.ins().snarrow(halves[2], halves[3]);
        let low = self.b.ins().vhigh_bits(types::I32, low);
        let high = self.b.ins().vhigh_bits(types::I32, high);
        let high = self.b.ins().ishl_imm_s(high, 16);
        self.b.ins().bor(low, high)
    }

    /// Number of the first pack that has lanes in a mask, and the mask without the packs before it.
    pub(crate) fn first_pack(&mut self, m: Value) -> (Value, Value) {
        let lane = self.b.ins().ctz(m);
        // No lane at all is the last pack.
        let lane = self.b.ins().band_imm_s(lane, 28);
        let rest = self.b.ins().ushr(m, lane);
        let pack = self.b.ins().ushr_imm_s(lane, 2);
        (self.b.ins().uextend(types::I64, pack), rest)
    }

    /// The vectors of a pack from its first lane and stride.
    pub(crate) fn spread(&mut self, first: Value, stride: i64, ty: Ty) -> Vec<Value> {
        self.once(Key::Spread(first, stride, ty), |e| e.spread_now(first, stride, ty))
    }

    fn spread_now(&mut self, first: Value, stride: i64, ty: Ty) -> Vec<Value> {
        match ty {
            Ty::P => {
                let wide = self.b.ins().uextend(types::I32, first);
                let mask = self.b.ins().ineg(wide);
                vec![self.b.ins().splat(types::I32X4, mask)]
            }
            Ty::B16 | Ty::B32 => {
                let v = self.b.ins().splat(types::I32X4, first);
                if stride == 0 {
                    return vec![v];
                }
                let steps = self.vector_const32(std::array::from_fn(|l| (stride.wrapping_mul(l as i64)) as u32));
                let sum = self.b.ins().iadd(v, steps);
                if ty == Ty::B16 {
                    let m = self.vector_const32([0xffff; 4]);
                    vec![self.b.ins().band(sum, m)]
                } else {
                    vec![sum]
                }
            }
            Ty::B64 => {
                let v = self.b.ins().splat(types::I64X2, first);
                if stride == 0 {
                    return vec![v, v];
                }
                (0..2)
                    .map(|h| {
                        let lane = |l: i64| stride.wrapping_mul(2 * h + l) as u64;
                        let steps = self.vector_const64([lane(0), lane(1)]);
                        self.b.ins().iadd(v, steps)
                    })
                    .collect()
            }
        }
    }

    /// Four scalars as the vectors of a pack.
    pub(crate) fn gather(&mut self, lanes: &[Value], ty: Ty) -> Vec<Value> {
        if ty == Ty::B64 {
            return (0..2)
                .map(|h| {
                    let v = self.b.ins().scalar_to_vector(types::I64X2, lanes[2 * h]);
                    self.b.ins().insertlane(v, lanes[2 * h + 1], 1)
                })
                .collect();
        }
        let mut v = self.b.ins().scalar_to_vector(types::I32X4, lanes[0]);
        for (l, x) in lanes.iter().enumerate().skip(1) {
            v = self.b.ins().insertlane(v, *x, l as u8);
        }
        vec![v]
    }

    pub(crate) fn lane(&mut self, v: &[Value], l: usize) -> Value {
        if v.len() == 2 {
            self.b.ins().extractlane(v[l / 2], (l % 2) as u8)
        } else {
            self.b.ins().extractlane(v[0], l as u8)
        }
    }

    pub(crate) fn set_lane(&mut self, v: &mut [Value], l: usize, x: Value) {
        if v.len() == 2 {
            v[l / 2] = self.b.ins().insertlane(v[l / 2], x, (l % 2) as u8);
        } else {
            v[0] = self.b.ins().insertlane(v[0], x, l as u8);
        }
    }

    /// Four 32-bit offsets as 64-bit scalars: two at a time leave the vector.
    pub(crate) fn offsets(&mut self, row: Value) -> [Value; LANES] {
        let pairs = self.cast(row, types::I64X2);
        let mut all = [row; LANES];
        for (h, two) in all.chunks_mut(2).enumerate() {
            let pair = self.b.ins().extractlane(pairs, h as u8);
            let low = self.b.ins().ireduce(types::I32, pair);
            two[0] = self.b.ins().uextend(types::I64, low);
            two[1] = self.b.ins().ushr_imm_s(pair, 32);
        }
        all
    }

    pub(crate) fn lane_address(&mut self, rows: &[Value], p: usize, l: usize, ty: Ty, shared: Option<Value>) -> Value {
        let a = if ty == Ty::B64 {
            self.b.ins().extractlane(rows[2 * p + l / 2], (l % 2) as u8)
        } else {
            let v = self.b.ins().extractlane(rows[p], l as u8);
            self.b.ins().uextend(types::I64, v)
        };
        match shared {
            Some(b) => self.b.ins().iadd(a, b),
            None => a,
        }
    }
}
