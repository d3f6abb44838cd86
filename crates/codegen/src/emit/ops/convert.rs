//! Conversions on the vectors of a pack.
//!
//! Between integers and floats, and from one float format to a coarser or finer one, to nearest. Other roundings to a float are rare and done
//! by the routine. The bits are those of `num`; `tests/cvt_results.rs` compares them.
//!
//! A float of fewer bits is made with integer ops. A number that is normal in the coarser format is rounded by adding just below one half of
//! the last place and the last bit that stays; the carry moves the exponent by itself. A subnormal one is added to the power of two whose
//! last place is that of the subnormal numbers, so that the host's addition rounds it, to nearest and ties to even as well.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::num::format::Format;
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::host::Architecture;
use handloom_plan::ways::convert::Way;

use crate::emit::asm::Asm;

impl Asm<'_> {
    pub(crate) fn vector_cvt(&mut self, c: Cvt, way: Way, a: &[Vec<Value>]) -> Vec<Value> {
        match way {
            Way::Clamp => vec![self.clamp_int(c, a[0][0])],
            Way::IntToF32 => vec![self.int_to_f32(c.from, a[0][0])],
            Way::IntToF64 => self.int_to_f64(c.from, &a[0]),
            Way::IntToHalf(to) => {
                let single = self.int_to_f32(c.from, a[0][0]);
                vec![self.narrow_float(c, to, single)]
            }
            Way::F32ToInt => {
                let single = self.as_f32(c.from, a[0][0]);
                vec![self.f32_to_int(c, single)]
            }
            Way::F64ToInt if c.from == ScalarType::F64 => self.f64_to_int(c, &a[0]),
            Way::F64ToInt => {
                let single = self.as_f32(c.from, a[0][0]);
                let wide = self.promote(c.ftz, single);
                self.f64_to_int(c, &wide)
            }
            Way::Half { from, to } => {
                let wide = self.widen_float(from, a[0][0]);
                let wide = if c.integral {
                    let x = self.cast(wide, types::F32X4);
                    let r = self.integral(c.round, x);
                    self.cast(r, types::I32X4)
                } else {
                    wide
                };
                vec![self.narrow_float(c, to, wide)]
            }
            Way::Tf32 => vec![self.round_tf32(c, a[0][0])],
            Way::Powers { is_pair } => {
                let parts = if is_pair {
                    [self.and_mask(a[0][0], 0xffff_0000), self.left(a[0][0], 16)]
                } else {
                    [a[0][0], a[1][0]]
                };
                let parts = parts.map(|v| self.power_code(c, v));
                vec![self.side_by_side(&parts, 8)]
            }
            Way::FromPowers => {
                let parts = [self.right(a[0][0], 8), self.and_mask(a[0][0], 0xff)].map(|code| {
                    let power = self.left(code, 7);
                    // 2^-127 is a subnormal number, and the last code is NaN.
                    let (zero, last) = (self.splat32(0), self.splat32(0xff));
                    let (least, nan) = (self.splat32(0x40), self.splat32(0x7fff));
                    let is_least = self.b.ins().icmp(IntCC::Equal, code, zero);
                    let is_nan = self.b.ins().icmp(IntCC::Equal, code, last);
                    let power = self.b.ins().bitselect(is_least, least, power);
                    self.b.ins().bitselect(is_nan, nan, power)
                });
                vec![self.side_by_side(&parts, 16)]
            }
            Way::Demote => vec![self.demote(&a[0])],
            Way::SameF32 => vec![self.same_f32(c, a[0][0])],
            Way::IntegralF64 => a[0]
                .iter()
                .map(|v| {
                    let x = self.cast(*v, types::F64X2);
                    let r = self.integral(c.round, x);
                    let r = self.cast(r, types::I64X2);
                    self.canonical(r, Float::F64)
                })
                .collect(),
            Way::Narrow { to, step, count } => {
                let parts: Vec<Value> = a[..count].iter().map(|v| self.narrow_float(c, to, v[0])).collect();
                vec![self.side_by_side(&parts, step)]
            }
            Way::NarrowPair { from, to, step } => {
                let parts: Vec<Value> = [true, false]
                    .map(|high| {
                        let half = if high { self.right(a[0][0], 16) } else { self.and_mask(a[0][0], 0xffff) };
                        let wide = self.widen_float(from, half);
                        self.narrow_float(c, to, wide)
                    })
                    .to_vec();
                vec![self.side_by_side(&parts, step)]
            }
            Way::Widen(None) => {
                self.promote(c.ftz, a[0][0]).into_iter().map(|v| self.canonical(v, Float::F64)).collect()
            }
            Way::Widen(Some(from)) => {
                let wide = self.widen_float(from, a[0][0]);
                let wide = if c.ftz { self.flushed(wide) } else { wide };
                let wide = if c.sat || c.relu { self.clamp_f32(c, wide) } else { wide };
                vec![self.canonical(wide, Float::F32)]
            }
            Way::WidenPair { from, step } => vec![self.widen_pair(c, from, step, a[0][0])],
        }
    }

    fn and_mask(&mut self, v: Value, mask: u32) -> Value {
        let m = self.splat32(mask);
        self.b.ins().band(v, m)
    }

    fn right(&mut self, v: Value, by: i64) -> Value {
        let n = self.b.ins().iconst(types::I32, by);
        self.b.ins().ushr(v, n)
    }

    fn left(&mut self, v: Value, by: i64) -> Value {
        let n = self.b.ins().iconst(types::I32, by);
        self.b.ins().ishl(v, n)
    }

    fn flushed(&mut self, v: Value) -> Value {
        let f = self.flush(v);
        self.cast(f, types::I32X4)
    }

    fn splat_f64(&mut self, v: f64) -> Value {
        let v = self.vector_const64([v.to_bits(); 2]);
        self.cast(v, types::F64X2)
    }

    fn splat_f32(&mut self, v: f32) -> Value {
        let v = self.splat32(v.to_bits());
        self.cast(v, types::F32X4)
    }

    /// The first source uppermost.
    fn side_by_side(&mut self, parts: &[Value], step: i64) -> Value {
        match parts {
            [high, low] => {
                let high = self.left(*high, step);
                self.b.ins().bor(high, *low)
            }
            _ => parts[0],
        }
    }

    /// A lane of a narrow integer type, extended to 32 bits by its sign.
    fn word_of(&mut self, from: ScalarType, v: Value) -> Value {
        match (from.bits(), from.is_signed()) {
            (32, _) => v,
            (bits, true) => {
                let n = self.b.ins().iconst(types::I32, i64::from(32 - bits));
                let up = self.b.ins().ishl(v, n);
                self.b.ins().sshr(up, n)
            }
            (bits, false) => self.and_mask(v, (1 << bits) - 1),
        }
    }

    fn clamp_int(&mut self, c: Cvt, v: Value) -> Value {
        let v = self.word_of(c.from, v);
        let v = if c.sat { self.clamp_word(c.to, v, c.from.is_signed()) } else { v };
        if c.to.bits() == 32 { v } else { self.and_mask(v, (1 << c.to.bits()) - 1) }
    }

    /// A word, signed or not, clamped to an integer type of at most 32 bits.
    fn clamp_word(&mut self, to: ScalarType, v: Value, signed: bool) -> Value {
        let (bits, to_signed) = (to.bits(), to.is_signed());
        let most = if to_signed { u32::MAX >> (33 - bits) } else { u32::MAX >> (32 - bits) };
        if !signed {
            let most = self.splat32(most);
            return self.b.ins().umin(v, most);
        }
        let least = if to_signed { !most } else { 0 };
        let least = self.splat32(least);
        let v = self.b.ins().smax(v, least);
        if bits == 32 {
            return v;
        }
        let most = self.splat32(most);
        self.b.ins().smin(v, most)
    }

    fn int_to_f32(&mut self, from: ScalarType, v: Value) -> Value {
        let word = self.word_of(from, v);
        let f = if from == ScalarType::U32 {
            self.b.ins().fcvt_from_uint(types::F32X4, word)
        } else {
            self.b.ins().fcvt_from_sint(types::F32X4, word)
        };
        self.cast(f, types::I32X4)
    }

    fn int_to_f64(&mut self, from: ScalarType, a: &[Value]) -> Vec<Value> {
        let parts = if from.bits() == 64 {
            a.to_vec()
        } else {
            let word = self.word_of(from, a[0]);
            if from == ScalarType::U32 {
                vec![self.b.ins().uwiden_low(word), self.b.ins().uwiden_high(word)]
            } else {
                let wide = [self.b.ins().swiden_low(word), self.b.ins().swiden_high(word)];
                return wide
                    .map(|w| {
                        let f = self.b.ins().fcvt_from_sint(types::F64X2, w);
                        self.cast(f, types::I64X2)
                    })
                    .to_vec();
            }
        };
        parts.into_iter().map(|v| self.long_to_f64(v, from.is_signed())).collect()
    }

    /// Both words as the fraction of a power of two, so that they are numbers; their exact difference to the powers, and one rounded sum.
    fn long_to_f64(&mut self, v: Value, signed: bool) -> Value {
        let (low, high) = (1_u64 << 52, 1_u128 << 84);
        let ones = self.vector_const64([0xffff_ffff; 2]);
        let power = self.vector_const64([(low as f64).to_bits(); 2]);
        let low_word = self.b.ins().band(v, ones);
        let low_word = self.b.ins().bor(low_word, power);
        let n = self.b.ins().iconst(types::I32, 32);
        let high_word = self.b.ins().ushr(v, n);
        // A signed upper word counts from -2^31, which `xor` of its top bit makes.
        let top = if signed { 1_u64 << 31 } else { 0 };
        let power = self.vector_const64([(high as f64).to_bits() | top; 2]);
        let high_word = self.b.ins().bxor(high_word, power);
        let offset = high + u128::from(low) + if signed { 1 << 63 } else { 0 };
        let offset = self.splat_f64(offset as f64);
        let (low_word, high_word) = (self.cast(low_word, types::F64X2), self.cast(high_word, types::F64X2));
        let difference = self.b.ins().fsub(high_word, offset);
        let sum = self.b.ins().fadd(difference, low_word);
        self.cast(sum, types::I64X2)
    }

    fn integral(&mut self, mode: Rounding, x: Value) -> Value {
        match mode {
            Rounding::Nearest => self.b.ins().nearest(x),
            Rounding::Down => self.b.ins().floor(x),
            Rounding::Up => self.b.ins().ceil(x),
            Rounding::Zero => self.b.ins().trunc(x),
            // No form rounds to an integer in these ways.
            Rounding::NearestAway | Rounding::Stochastic => panic!("an integer is not rounded so: {mode:?}"),
        }
    }

    /// Lanes of a float of at most 32 bits as `.f32`.
    fn as_f32(&mut self, from: ScalarType, v: Value) -> Value {
        match from {
            ScalarType::F16 => self.widen_float(&Format::F16, v),
            ScalarType::BF16 => self.widen_float(&Format::BF16, v),
            _ => v,
        }
    }

    fn f32_to_int(&mut self, c: Cvt, v: Value) -> Value {
        let v = if c.ftz { self.flushed(v) } else { v };
        let x = self.cast(v, types::F32X4);
        // The conversion itself cuts.
        let x = if c.round == Rounding::Zero { x } else { self.integral(c.round, x) };
        if c.to == ScalarType::U32 {
            return self.b.ins().fcvt_to_uint_sat(types::I32X4, x);
        }
        let word = self.b.ins().fcvt_to_sint_sat(types::I32X4, x);
        if c.to == ScalarType::S32 {
            return word;
        }
        let word = self.clamp_word(c.to, word, true);
        self.and_mask(word, (1 << c.to.bits()) - 1)
    }

    /// NaN becomes the top bit of the type.
    fn f64_to_int(&mut self, c: Cvt, a: &[Value]) -> Vec<Value> {
        let (bits, signed) = (c.to.bits(), c.to.is_signed());
        let parts: Vec<Value> = a
            .iter()
            .map(|v| {
                let x = self.cast(*v, types::F64X2);
                let x = self.integral(c.round, x);
                if bits == 64 { self.f64_to_long(x, signed) } else { self.f64_to_word(x, bits, signed) }
            })
            .collect();
        if bits == 64 {
            return parts;
        }
        let word = self.low_words(parts[0], parts[1]);
        vec![if bits == 32 { word } else { self.and_mask(word, (1 << bits) - 1) }]
    }

    /// An integral number in the lower bits of a lane: what is added to 1.5 * 2^52 is in the last bits of the sum.
    fn f64_to_word(&mut self, x: Value, bits: u32, signed: bool) -> Value {
        let nan = self.b.ins().fcmp(FloatCC::Unordered, x, x);
        let (least, most) = if signed {
            (-((1_i64 << (bits - 1)) as f64), ((1_i64 << (bits - 1)) - 1) as f64)
        } else {
            (0.0, ((1_i64 << bits) - 1) as f64)
        };
        let (least, most) = (self.splat_f64(least), self.splat_f64(most));
        let below = self.b.ins().fcmp(FloatCC::LessThan, x, least);
        let x = self.select_f64(below, least, x);
        let above = self.b.ins().fcmp(FloatCC::GreaterThan, x, most);
        let x = self.select_f64(above, most, x);
        let power = self.splat_f64(6_755_399_441_055_744.0);
        let sum = self.b.ins().fadd(x, power);
        let sum = self.cast(sum, types::I64X2);
        let top = self.vector_const64([1 << (bits - 1); 2]);
        self.b.ins().bitselect(nan, top, sum)
    }

    fn select_f64(&mut self, mask: Value, a: Value, b: Value) -> Value {
        let (a, b) = (self.cast(a, types::I64X2), self.cast(b, types::I64X2));
        let r = self.b.ins().bitselect(mask, a, b);
        self.cast(r, types::F64X2)
    }

    /// An integral number as 64 bits: its upper and lower 32 bits are found as numbers, which is exact.
    fn f64_to_long(&mut self, x: Value, signed: bool) -> Value {
        let down = self.splat_f64(1.0 / 4_294_967_296.0);
        let up = self.splat_f64(-4_294_967_296.0);
        let high = self.b.ins().fmul(x, down);
        let high = self.b.ins().floor(high);
        let low = self.b.ins().fma(high, up, x);
        // Added to 2^52 and to 1.5 * 2^52, they stand in the last bits. The upper word of the first sum is taken away beforehand from the
        // other one, which moves up over it.
        let power = 4_503_599_627_370_496_f64;
        let above = f64::from((power.to_bits() >> 32) as u32);
        let (low_power, high_power) = (self.splat_f64(power), self.splat_f64(1.5 * power - above));
        let (high, low) = (self.b.ins().fadd(high, high_power), self.b.ins().fadd(low, low_power));
        let (high, low) = (self.cast(high, types::I64X2), self.cast(low, types::I64X2));
        let n = self.b.ins().iconst(types::I32, 32);
        let high = self.b.ins().ishl(high, n);
        let value = self.b.ins().iadd(high, low);
        let (least, limit) = if signed {
            (-9_223_372_036_854_775_808.0, 9_223_372_036_854_775_808.0)
        } else {
            (0.0, 18_446_744_073_709_551_616.0)
        };
        let (least, limit) = (self.splat_f64(least), self.splat_f64(limit));
        let most = self.vector_const64([if signed { u64::MAX >> 1 } else { u64::MAX }; 2]);
        let is_large = self.b.ins().fcmp(FloatCC::GreaterThanOrEqual, x, limit);
        let value = self.b.ins().bitselect(is_large, most, value);
        let top = self.vector_const64([1 << 63; 2]);
        if signed {
            // NaN and the least number have the same bits.
            let fits = self.b.ins().fcmp(FloatCC::GreaterThanOrEqual, x, least);
            return self.b.ins().bitselect(fits, value, top);
        }
        let is_negative = self.b.ins().fcmp(FloatCC::LessThan, x, least);
        let value = self.b.ins().band_not(value, is_negative);
        let nan = self.b.ins().fcmp(FloatCC::Unordered, x, x);
        self.b.ins().bitselect(nan, top, value)
    }

    /// `.f32` lanes as `.f64`. A NaN stays one of some kind.
    fn promote(&mut self, ftz: bool, v: Value) -> Vec<Value> {
        let v = if ftz { self.flushed(v) } else { v };
        let up = self.shuffle32(v, v, [2, 3, 2, 3]);
        [v, up]
            .map(|v| {
                let x = self.cast(v, types::F32X4);
                let wide = self.b.ins().fvpromote_low(x);
                self.cast(wide, types::I64X2)
            })
            .to_vec()
    }

    fn demote(&mut self, a: &[Value]) -> Value {
        let parts: Vec<Value> = a
            .iter()
            .map(|v| {
                let x = self.cast(*v, types::F64X2);
                let d = self.b.ins().fvdemote(x);
                self.cast(d, types::I32X4)
            })
            .collect();
        let v = self.shuffle32(parts[0], parts[1], [0, 1, 4, 5]);
        self.canonical(v, Float::F32)
    }

    fn same_f32(&mut self, c: Cvt, v: Value) -> Value {
        let v = if c.ftz { self.flushed(v) } else { v };
        let v = if c.integral {
            let x = self.cast(v, types::F32X4);
            let r = self.integral(c.round, x);
            self.cast(r, types::I32X4)
        } else {
            v
        };
        if c.sat { self.clamp_f32(c, v) } else { self.canonical(v, Float::F32) }
    }

    /// `.sat`: between zero and one, NaN and the negative are +0. `.relu`: the negative are +0; NaN stays.
    fn clamp_f32(&mut self, c: Cvt, v: Value) -> Value {
        // As signed integers: numbers with a sign are below zero.
        let zero = self.splat32(0);
        if c.relu && !c.sat {
            let x = self.cast(v, types::F32X4);
            let nan = self.b.ins().fcmp(FloatCC::Unordered, x, x);
            let raised = self.b.ins().smax(v, zero);
            return self.b.ins().bitselect(nan, v, raised);
        }
        let x = self.cast(v, types::F32X4);
        let ordered = self.b.ins().fcmp(FloatCC::Ordered, x, x);
        let raised = self.b.ins().smax(v, zero);
        let one = self.splat32(1_f32.to_bits());
        let clamped = self.b.ins().smin(raised, one);
        self.b.ins().band(clamped, ordered)
    }

    /// `.f32` lanes to a float of at most 16 bits, to nearest.
    fn narrow_float(&mut self, c: Cvt, f: &Format, v: Value) -> Value {
        let v = if c.ftz { self.flushed(v) } else { v };
        if *f == Format::BF16 && !c.relu && !c.satfinite {
            return self.narrow_bf16(v);
        }
        let cut = 23 - f.fraction;
        let size = self.and_mask(v, 0x7fff_ffff);
        // The exponent moves to the new bias in the same addition as the rounding.
        let odd = self.right(size, i64::from(cut));
        let odd = self.and_mask(odd, 1);
        let rebias = ((-126 - f.least_exponent) << 23).cast_unsigned();
        let almost_half = self.splat32(rebias.wrapping_add((1 << (cut - 1)) - 1));
        let sum = self.b.ins().iadd(size, almost_half);
        let sum = self.b.ins().iadd(sum, odd);
        let mut code = self.right(sum, i64::from(cut));
        if f.least_exponent > -126 {
            // 2^(least exponent - fraction + 23) has the last place of the subnormal numbers.
            let power = ((f.least_exponent - f.fraction.cast_signed() + 23 + 127) << 23).cast_unsigned();
            let bits = self.splat32(power);
            let power = self.cast(bits, types::F32X4);
            let x = self.cast(size, types::F32X4);
            let rounded = self.b.ins().fadd(x, power);
            let rounded = self.cast(rounded, types::I32X4);
            let subnormal = self.b.ins().isub(rounded, bits);
            let least = self.splat32(((f.least_exponent + 127) << 23).cast_unsigned());
            let is_subnormal = self.b.ins().icmp(IntCC::SignedLessThan, size, least);
            code = self.b.ins().bitselect(is_subnormal, subnormal, code);
        }
        let most = if c.satfinite { f.max } else { f.last_number() };
        let most = self.splat32(most as u32);
        let code = self.b.ins().umin(code, most);
        let code = if c.relu {
            let n = self.b.ins().iconst(types::I32, 31);
            let negative = self.b.ins().sshr(v, n);
            self.b.ins().band_not(code, negative)
        } else {
            let sign = self.right(v, i64::from(31 - f.sign));
            let sign = self.and_mask(sign, 1 << f.sign);
            self.b.ins().bor(code, sign)
        };
        let infinite = self.splat32(0x7f80_0000);
        let nan = self.b.ins().icmp(IntCC::SignedGreaterThan, size, infinite);
        let canonical = self.splat32(f.nan.unwrap_or(f.max) as u32);
        self.b.ins().bitselect(nan, canonical, code)
    }

    /// Rounds in place; the carry moves the exponent and ends at infinity.
    fn round_tf32(&mut self, c: Cvt, v: Value) -> Value {
        let size = self.and_mask(v, 0x7fff_ffff);
        let sum = match c.round {
            Rounding::Nearest => {
                let odd = self.right(size, 13);
                let odd = self.and_mask(odd, 1);
                let almost_half = self.splat32(0xfff);
                let sum = self.b.ins().iadd(size, almost_half);
                self.b.ins().iadd(sum, odd)
            }
            Rounding::NearestAway => {
                let half = self.splat32(0x1000);
                self.b.ins().iadd(size, half)
            }
            Rounding::Zero => size,
            Rounding::Down | Rounding::Up | Rounding::Stochastic => panic!("tf32 is not rounded so: {:?}", c.round),
        };
        let code = self.and_mask(sum, 0xffff_e000);
        let code = if c.satfinite {
            let most = self.splat32((Format::TF32.max << 13) as u32);
            self.b.ins().umin(code, most)
        } else {
            code
        };
        let code = if c.relu {
            let n = self.b.ins().iconst(types::I32, 31);
            let negative = self.b.ins().sshr(v, n);
            self.b.ins().band_not(code, negative)
        } else {
            let sign = self.and_mask(v, 0x8000_0000);
            self.b.ins().bor(code, sign)
        };
        let x = self.cast(v, types::F32X4);
        let nan = self.b.ins().fcmp(FloatCC::Unordered, x, x);
        let canonical = self.splat32(0x7fff_e000);
        self.b.ins().bitselect(nan, canonical, code)
    }

    /// The exponent of an `.f32`, without its sign. Code 0 is 2^-127, a subnormal number of `.f32`, and what lies below.
    fn power_code(&mut self, c: Cvt, v: Value) -> Value {
        let size = self.and_mask(v, 0x7fff_ffff);
        let code = if c.round == Rounding::Up {
            let rest = self.splat32(0x7f_ffff);
            let sum = self.b.ins().iadd(size, rest);
            let code = self.right(sum, 23);
            let least = self.splat32(0x40_0000);
            let above = self.b.ins().icmp(IntCC::SignedGreaterThan, size, least);
            self.b.ins().band(code, above)
        } else {
            self.right(size, 23)
        };
        let most = self.splat32(if c.satfinite { 0xfe } else { 0xff });
        let code = self.b.ins().umin(code, most);
        let x = self.cast(v, types::F32X4);
        let nan = self.b.ins().fcmp(FloatCC::Unordered, x, x);
        let canonical = self.splat32(0xff);
        self.b.ins().bitselect(nan, canonical, code)
    }

    /// The bias is the same and a carry ends at infinity, so that sign and exponent need no look.
    fn narrow_bf16(&mut self, v: Value) -> Value {
        let odd = self.right(v, 16);
        let odd = self.and_mask(odd, 1);
        let almost_half = self.splat32(0x7fff);
        let sum = self.b.ins().iadd(v, almost_half);
        let sum = self.b.ins().iadd(sum, odd);
        let code = self.right(sum, 16);
        let x = self.cast(v, types::F32X4);
        let nan = self.b.ins().fcmp(FloatCC::Unordered, x, x);
        let canonical = self.splat32(0x7fff);
        self.b.ins().bitselect(nan, canonical, code)
    }

    /// Lanes of `.f16` or `.bf16` as `.f32`. A NaN stays one of some kind.
    fn widen_float(&mut self, f: &Format, v: Value) -> Value {
        if *f == Format::BF16 {
            return self.left(v, 16);
        }
        // The code at its place in an `.f32`, times the distance of the biases: exact, for subnormal numbers too.
        let code = self.and_mask(v, 0x7fff);
        let placed = self.left(code, 13);
        let x = self.cast(placed, types::F32X4);
        let scale = self.splat_f32(2_f32.powi(112));
        let scaled = self.b.ins().fmul(x, scale);
        let scaled = self.cast(scaled, types::I32X4);
        let infinite = self.splat32(0x7bff);
        let special = self.b.ins().icmp(IntCC::SignedGreaterThan, code, infinite);
        let special = self.and_mask(special, 0x7f80_0000);
        let size = self.b.ins().bor(scaled, special);
        let sign = self.and_mask(v, 0x8000);
        let sign = self.left(sign, 16);
        self.b.ins().bor(size, sign)
    }

    /// Pairs of floats of at most 8 bits to pairs of `.f16`, on lanes of 16 bits.
    fn widen_pair(&mut self, c: Cvt, f: &Format, step: i64, v: Value) -> Value {
        let t = types::I16X8;
        let words = |e: &mut Self, w: u32| {
            let v = e.splat32(w << 16 | w);
            e.cast(v, t)
        };
        // Each code to the bottom of its lane.
        let up = self.left(v, 16 - step);
        let both = self.b.ins().bor(v, up);
        let ones = (1_u32 << (f.sign + 1)) - 1;
        let codes = self.and_mask(both, ones << 16 | ones);
        let codes = self.cast(codes, t);
        let magnitude = words(self, ones >> 1);
        let size = self.b.ins().band(codes, magnitude);
        let shift = |e: &mut Self, v: Value, by: u32| {
            let n = e.b.ins().iconst(types::I32, i64::from(by));
            e.b.ins().ishl(v, n)
        };
        let placed = shift(self, size, 10 - f.fraction);
        // Normal numbers: another bias.
        let bias = words(self, (f.least_exponent + 14).cast_unsigned() << 10);
        let normal = self.b.ins().iadd(placed, bias);
        let mut value = normal;
        // Where the bias is the same, subnormal numbers are too.
        if f.least_exponent > Format::F16.least_exponent {
            // At most seven: the upper byte of the `.f16`; its lower byte is zero.
            let table: [u8; 16] = std::array::from_fn(|k| {
                let bits = (k as f64 * 2_f64.powi(f.least_exponent - f.fraction.cast_signed())).to_bits();
                if k == 0 { 0 } else { (((bits >> 52) - 1008) << 2 | bits >> 50 & 3) as u8 }
            });
            let lanes: [u32; 4] =
                std::array::from_fn(|i| u32::from_le_bytes(std::array::from_fn(|j| table[4 * i + j])));
            let table = self.vector_const32(lanes);
            let (table, index) = (self.cast(table, types::I8X16), self.cast(size, types::I8X16));
            let found = match self.architecture {
                // They differ in what is found beyond the table, where nobody looks.
                Architecture::X86_64 => self.b.ins().x86_pshufb(table, index),
                Architecture::Aarch64 | Architecture::Other => self.b.ins().swizzle(table, index),
            };
            let found = self.cast(found, t);
            let subnormal = shift(self, found, 8);
            let least = words(self, 1 << f.fraction);
            let is_subnormal = self.b.ins().icmp(IntCC::SignedLessThan, size, least);
            value = self.b.ins().bitselect(is_subnormal, subnormal, normal);
        }
        let sign = shift(self, codes, 15 - f.sign);
        let sign = self.cast(sign, types::I32X4);
        let sign = self.and_mask(sign, 0x8000_8000);
        let sign = self.cast(sign, t);
        if c.relu {
            let n = self.b.ins().iconst(types::I32, 15);
            let negative = self.b.ins().sshr(sign, n);
            value = self.b.ins().band_not(value, negative);
        } else {
            value = self.b.ins().bor(value, sign);
        }
        // Infinity, in the format that has it, and NaN.
        if f.nan.is_some() {
            let last = words(self, f.last_number() as u32);
            let is_nan = self.b.ins().icmp(IntCC::SignedGreaterThan, size, last);
            let canonical = words(self, 0x7fff);
            value = self.b.ins().bitselect(is_nan, canonical, value);
        }
        self.cast(value, types::I32X4)
    }
}
