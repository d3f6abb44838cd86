//! Conversions with `.sat` and to fixed point: what is clamped to a range of numbers.

use handloom_ir::simt::Cvt;
use handloom_ir::types::{ScalarType, Ty};
use iced_x86::{Code, Register};

use crate::asm::Out;
use crate::emit::*;
use crate::half::Half;
use crate::table::integer;
use crate::values::{At, Src, by_width, is_wide, load_code};

use Code::{
    EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er as TIMES, EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32 as AND,
    EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8 as COMPARE, EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32 as MOST,
    EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8 as LEFT, EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8 as RIGHT,
    EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32 as SUB,
};
const K7: Register = Register::K7;
/// The scale of the conversions of fixed point that have none: one, twice.
const BY_ONE: u64 = 0x7f7f;
/// A scale that is no number.
const NO_SCALE: u64 = 0xff;
/// 2^-127 as `.f32`, which scale 0 stands for.
const LEAST_POWER: u64 = 0x0040_0000;

impl Emit<'_> {
    /// A float in vector 4 between zero and one; NaN is zero.
    pub(crate) fn between_zero_and_one(&mut self, ty: Ty, out: Out) {
        let (x, zero) = (zmm(4), zmm(5));
        let most =
            by_width(ty, Code::EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae, Code::EVEX_Vmaxpd_zmm_k1z_zmm_zmmm512b64_sae);
        let least =
            by_width(ty, Code::EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae, Code::EVEX_Vminpd_zmm_k1z_zmm_zmmm512b64_sae);
        // The host's maximum is its second source for NaN and for zeros.
        self.a.op3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, zero, zero, zero);
        self.a.op3(most, x, x, zero);
        let one = self.constant(ty, if is_wide(ty) { 1f64.to_bits() } else { 1f32.to_bits().into() });
        self.a.op3(least, out, x, one);
    }

    /// Between integers: clamped with `.sat`, else cut.
    pub(crate) fn clamp_integers(&mut self, c: Cvt, q: usize, s: &Src, out: Out) {
        let (Some(from), Some((bits, _))) = (integer(c.from), integer(c.to)) else { panic!("{c:?} at {:?}", self.at) };
        let x = zmm(4);
        match (from.0, bits) {
            (64, 64) => {
                let r = self.reg(s, q, 0);
                self.copy(Ty::B64, x.into(), r.into());
                self.clamp_lanes(c, Ty::B64, x);
                self.copy(Ty::B64, out, x.into());
            }
            (64, _) => {
                for (i, to) in [(0, zmm(4)), (1, zmm(5))] {
                    let r = self.reg(s, 2 * q + i, 0);
                    self.copy(Ty::B64, zmm(6).into(), r.into());
                    self.clamp_lanes(c, Ty::B64, zmm(6));
                    self.a.op2(Code::EVEX_Vpmovqd_ymmm256_k1z_zmm, ymm(to), zmm(6));
                }
                self.a.op3i(Code::EVEX_Vinserti32x8_zmm_k1z_zmm_ymmm256_imm8, x, x, ymm(zmm(5)), 1);
                self.cut_lanes(bits, out);
            }
            (_, 64) => {
                let r = self.reg(s, q / 2, 0);
                self.extended_integer(from, r, x);
                let half = self.half_of(x, q, 5);
                let code =
                    if from.1 { Code::EVEX_Vpmovsxdq_zmm_k1z_ymmm256 } else { Code::EVEX_Vpmovzxdq_zmm_k1z_ymmm256 };
                self.a.op2(code, x, ymm(half));
                self.clamp_lanes(c, Ty::B64, x);
                self.copy(Ty::B64, out, x.into());
            }
            _ => {
                let r = self.reg(s, q, 0);
                self.extended_integer(from, r, x);
                self.clamp_lanes(c, Ty::B32, x);
                self.cut_lanes(bits, out);
            }
        }
    }

    /// An integer of at most 32 bits at that width.
    fn extended_integer(&mut self, (bits, signed): (u32, bool), from: Register, to: Register) {
        self.a.op2i(LEFT, to, from, 32 - bits);
        self.a.op2i(if signed { Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8 } else { RIGHT }, to, to, 32 - bits);
    }

    /// The low bits of the words in vector 4.
    fn cut_lanes(&mut self, bits: u32, out: Out) {
        let kept = self.constant(Ty::B32, (u32::MAX >> (32 - bits)).into());
        self.a.op3(AND, out, zmm(4), kept);
    }

    /// Clamps lanes, which hold what their type says as it is, to the range of the destination with `.sat`.
    fn clamp_lanes(&mut self, c: Cvt, lane: Ty, x: Register) {
        let (Some((_, signed)), Some((to, to_signed))) = (integer(c.from), integer(c.to)) else { return };
        if !c.sat {
            return;
        }
        let most = u64::MAX >> (if to_signed { 65 } else { 64 } - to);
        if signed {
            let least = self.constant(lane, if to_signed { !most & lane.mask() } else { 0 });
            let code =
                by_width(lane, Code::EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpmaxsq_zmm_k1z_zmm_zmmm512b64);
            self.a.op3(code, x, x, least);
        }
        // All signed numbers of a lane are below the greatest unsigned one of its width.
        if !(signed && most == lane.mask()) {
            let most = self.constant(lane, most);
            let code = if signed {
                by_width(lane, Code::EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpminsq_zmm_k1z_zmm_zmmm512b64)
            } else {
                by_width(lane, Code::EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpminuq_zmm_k1z_zmm_zmmm512b64)
            };
            self.a.op3(code, x, x, most);
        }
    }

    /// Two signed bytes in units of 1/64, of two `.f32` or a pair of `.bf16`, divided by their scales.
    ///
    /// The quotient is exact but where it is too large or small to count, and so is its multiple. What is above the range, below it, or no number, is
    /// clamped before it is rounded.
    pub(crate) fn make_fixed(&mut self, c: Cvt, q: usize, src: &[Src], out: Out) {
        let pair = (c.from == ScalarType::BF16x2).then(|| self.kept(&src[0], q));
        let scale = src[src.len() - 1];
        for upper in [true, false] {
            let r = match &pair {
                Some(s) => {
                    self.element(s, q, 0, true, upper);
                    self.widen_half(Half::Bf16, zmm(0));
                    zmm(0)
                }
                None => self.reg(&src[usize::from(!upper)], q, u8::from(!upper)),
            };
            let (code, power) = (zmm(4), zmm(5));
            let mut x = r;
            if let Some(byte) = self.scale_of(&scale, q, upper) {
                // 2^(127 - scale), whose field of the exponent is what 254 lacks.
                let top = self.constant(Ty::B32, 0xfe);
                self.a.op2(load_code(Ty::B32), power, top);
                self.a.op3(SUB, power, power, byte);
                self.power_of_field(power, byte);
                self.a.op3(TIMES, code, x, power);
                x = code;
            }
            let unit = self.constant(Ty::B32, 64f32.to_bits().into());
            self.a.op3(TIMES, code, x, unit);
            // The host's minimum is its second source for NaN.
            let most = self.constant(Ty::B32, 127f32.to_bits().into());
            self.a.op3(Code::EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae, code, code, most);
            let least = self.constant(Ty::B32, if c.relu { 0 } else { (-128f32).to_bits().into() });
            self.a.op3(Code::EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae, code, code, least);
            self.a.op2(Code::EVEX_Vcvtps2dq_zmm_k1z_zmmm512b32_er, code, code);
            let kept = self.constant(Ty::B32, 0xff);
            self.a.op3(AND, code, code, kept);
            self.put_element(8, upper, !upper, out);
        }
    }

    /// A pair of signed bytes in units of 1/64, multiplied by their scales, as `.f32` in vector 0, the upper or the lower one. It is exact.
    pub(crate) fn fixed_as_f32(&mut self, q: usize, src: &[Src], upper: bool) {
        let (x, power) = (zmm(0), zmm(5));
        let r = self.reg(&src[0], q, 0);
        self.a.op2i(LEFT, x, r, if upper { 16 } else { 24 });
        self.a.op2i(Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8, x, x, 24);
        self.a.op2(Code::EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er, x, x);
        let unit = self.constant(Ty::B32, (1f32 / 64.0).to_bits().into());
        self.a.op3(TIMES, x, x, unit);
        if let Some(byte) = self.scale_of(&src[1], q, upper) {
            self.a.op2(load_code(Ty::B32), power, byte);
            self.power_of_field(power, byte);
            self.a.op3(TIMES, x, x, power);
        }
    }

    /// The scale of an element, in vector 6; none where it is one.
    fn scale_of(&mut self, s: &Src, q: usize, upper: bool) -> Option<Register> {
        if matches!(s.at, At::Imm(BY_ONE)) {
            return None;
        }
        let (to, r) = (zmm(6), self.reg(s, q, 6));
        if upper {
            self.a.op2i(RIGHT, to, r, 8);
        } else {
            let kept = self.constant(Ty::B32, 0xff);
            self.a.op3(AND, to, r, kept);
        }
        Some(to)
    }

    /// The power of two whose field of the exponent is in a vector; no number for the last scale.
    fn power_of_field(&mut self, power: Register, scale: Register) {
        self.a.op2i(LEFT, power, power, 23);
        let least = self.constant(Ty::B32, LEAST_POWER);
        self.a.op3(MOST, power, power, least);
        let none = self.constant(Ty::B32, NO_SCALE);
        self.a.op3i(COMPARE, K7, scale, none, 0);
        let nan = self.constant(Ty::B32, 0x7fff_ffff);
        self.a.op2(load_code(Ty::B32), Out::masked(power, K7), nan);
    }
}
