//! Minima and maxima of floats.

use handloom_ir::types::Float;
use iced_x86::{Code, Register};

use crate::asm::Out;
use crate::emit::*;
use crate::ops::{and, or};
use crate::table::{MinMax, width_of};
use crate::values::{At, Src, UNORDERED, by_width, float_compare, load_code};

/// The host's instruction, which gives its second source where one of them is a NaN, or both are zeros.
fn of_host(m: MinMax) -> Code {
    let ty = width_of(m.float);
    if m.max {
        by_width(ty, Code::EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae, Code::EVEX_Vmaxpd_zmm_k1z_zmm_zmmm512b64_sae)
    } else {
        by_width(ty, Code::EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae, Code::EVEX_Vminpd_zmm_k1z_zmm_zmmm512b64_sae)
    }
}

/// A constant that the host may have as its second source: a number, and not the zero that gives way to the other one.
fn constant_of(m: MinMax, flush: bool, s: &Src) -> Option<u64> {
    let At::Imm(x) = s.at else { return None };
    let (is_nan, minus_zero) = match m.float {
        Float::F64 => (f64::from_bits(x).is_nan(), 1 << 63),
        _ => (f32::from_bits(x as u32).is_nan(), 1 << 31),
    };
    let is_subnormal = flush && f32::from_bits(x as u32).is_subnormal();
    let x = if is_subnormal { x & minus_zero } else { x };
    let gives_way = x == if m.max { minus_zero } else { 0 };
    (!is_nan && !gives_way).then_some(x)
}

impl Emit<'_> {
    /// The smaller or larger of two floats.
    pub(crate) fn min_max(&mut self, m: MinMax, ftz: bool, q: usize, src: &[Src], out: Out) {
        let ty = width_of(m.float);
        let flush = ftz && m.float == Float::F32;
        let source =
            |e: &mut Self, s: &Src, scratch: u8| if flush { e.flushed(s, q, scratch) } else { e.reg(s, q, scratch) };
        if !m.xorsign && self.by_constant(m, flush, q, src, out) {
            return;
        }
        // Sources whose NaNs were made canonical have none that signals.
        if self.a.has_wide_vectors() && !m.xorsign && !m.nan && src.iter().all(|s| s.odd) {
            let (a, b) = (source(self, &src[0], 0), source(self, &src[1], 1));
            self.range(m, out, [a, b]);
            return;
        }
        if !m.xorsign && !m.nan {
            let [a, b] = [0, 1].map(|i: u8| source(self, &Src { odd: false, ..src[usize::from(i)] }, i));
            self.of_any(m, [a, b]);
        } else {
            for i in 0..2 {
                let r = source(self, &src[usize::from(i)], i);
                if r != zmm(i) {
                    self.a.op2(load_code(ty), zmm(i), r);
                }
            }
            self.min_max_of(m);
        }
        self.copy(ty, out, zmm(4).into());
    }

    /// Of any two, which it leaves, to vector 4. A NaN gives way to the other source. Uses vector 2, `k5`, `k6`.
    fn of_any(&mut self, m: MinMax, [a, b]: [Register; 2]) {
        let (ty, t) = (width_of(m.float), zmm(4));
        if self.a.has_wide_vectors() {
            self.range(m, t.into(), [a, b]);
        } else {
            self.by_both_orders(m, t, [a, b], zmm(2));
        }
        let (compare, load) = (float_compare(ty), load_code(ty));
        self.a.op3i(compare, Register::K5, a, a, UNORDERED);
        self.a.op2(load, Out::masked(t, Register::K5), b);
        self.a.op3i(compare, Register::K6, b, b, UNORDERED);
        self.a.op2(load, Out::masked(t, Register::K6), a);
        // Both.
        self.a.op3i(compare, Out::masked(Register::K6, Register::K5), b, b, UNORDERED);
        let c = self.constant(ty, ty.mask() >> 1);
        self.a.op2(load, Out::masked(t, Register::K6), c);
    }

    /// One of the two is a number that is known: the host's instruction does it, as that is the answer for a NaN too. Says whether it is so.
    fn by_constant(&mut self, m: MinMax, flush: bool, q: usize, src: &[Src], out: Out) -> bool {
        let ty = width_of(m.float);
        let of = |i: usize| constant_of(m, flush, &src[i]);
        let (x, c) = match (of(0), of(1)) {
            (_, Some(c)) => (&src[0], c),
            (Some(c), None) => (&src[1], c),
            (None, None) => return false,
        };
        // Any NaN will do.
        let x = &Src { odd: false, ..*x };
        let a = if flush { self.flushed(x, q, 0) } else { self.reg(x, q, 0) };
        if m.nan {
            self.a.op3i(float_compare(ty), Out::masked(Register::K5, out.mask), a, a, UNORDERED);
        }
        let c = self.constant(ty, c);
        self.a.op3(of_host(m), out, a, c);
        if m.nan {
            let c = self.constant(ty, ty.mask() >> 1);
            self.a.op2(load_code(ty), Out::masked(out.reg, Register::K5), c);
        }
        true
    }

    /// Of vectors 0 and 1, which it changes, to vector 4. A NaN gives way to the other source. Uses vector 2, `k5`, `k6`.
    pub(crate) fn min_max_of(&mut self, m: MinMax) {
        let MinMax { float, nan, xorsign, .. } = m;
        let ty = width_of(float);
        let (a, b) = (zmm(0), zmm(1));
        let sign = (ty.mask() >> 1) + 1;
        if xorsign {
            let xor = by_width(ty, Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpxorq_zmm_k1z_zmm_zmmm512b64);
            self.a.op3(xor, zmm(2), a, b);
            let c = self.constant(ty, sign);
            self.a.op3(and(ty), zmm(2), zmm(2), c);
            let c = self.constant(ty, sign - 1);
            self.a.op3(and(ty), a, a, c);
            self.a.op3(and(ty), b, b, c);
        }
        let cmp = float_compare(ty);
        if nan {
            self.a.op3i(cmp, Register::K5, a, b, UNORDERED);
        } else {
            self.a.op3i(cmp, Register::K5, a, a, UNORDERED);
            self.a.op3i(cmp, Register::K6, b, b, UNORDERED);
            self.a.op2(load_code(ty), Out::masked(a, Register::K5), b);
            self.a.op2(load_code(ty), Out::masked(b, Register::K6), a);
            // Both: neither is a number now.
            self.a.op3(Code::VEX_Kandw_kr_kr_kr, Register::K5, Register::K5, Register::K6);
        }
        if self.a.has_wide_vectors() {
            self.range(m, a.into(), [a, b]);
        } else {
            self.by_both_orders(m, a, [a, b], zmm(4));
        }
        if xorsign {
            self.a.op3(or(ty), a, a, zmm(2));
        }
        let c = self.constant(ty, ty.mask() >> 1);
        self.a.op2(load_code(ty), Out::masked(a, Register::K5), c);
        self.a.op2(load_code(ty), zmm(4), a);
    }

    /// By the host's own instruction: -0 is below +0, and a NaN that does not signal gives way to a number. The sign is that of what is chosen.
    fn range(&mut self, m: MinMax, out: Out, [a, b]: [Register; 2]) {
        let range = by_width(
            width_of(m.float),
            Code::EVEX_Vrangeps_zmm_k1z_zmm_zmmm512b32_imm8_sae,
            Code::EVEX_Vrangepd_zmm_k1z_zmm_zmmm512b64_imm8_sae,
        );
        self.a.op3i(range, out, a, b, 4 | u32::from(m.max));
    }

    /// Of two numbers. The host gives the second of two zeros: both orders are asked, and of two answers that differ in the sign alone that one is made that has it or
    /// has not. `other`: a vector that is free.
    fn by_both_orders(&mut self, m: MinMax, to: Register, [a, b]: [Register; 2], other: Register) {
        let ty = width_of(m.float);
        self.a.op3(of_host(m), other, a, b);
        self.a.op3(of_host(m), to, b, a);
        let both = if m.max { and(ty) } else { or(ty) };
        self.a.op3(both, to, to, other);
    }
}
