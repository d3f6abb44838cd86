//! Conversions that the host has instructions for.

use handloom_ir::simt::Cvt;
use handloom_ir::types::{Float, Rounding, ScalarType, Ty};
use iced_x86::{Code, Register, RoundingControl};

use crate::asm::Out;
use crate::emit::*;
use crate::half::{Half, half_constants};
use crate::small::{Small, small};
use crate::table::{integer, rounding, rounding_number};
use crate::values::{At, Src, UNORDERED, by_width, float_compare, is_wide, load_code};

/// What a conversion is for the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Conversion {
    /// An integer of so many bits and a sign to a float.
    FromInt { bits: u32, signed: bool },
    /// A float to an integer.
    ToInt { bits: u32, signed: bool },
    /// `.f32` to `.f64`.
    Widen,
    /// `.f64` to `.f32`.
    Narrow,
    /// `.f32` or `.f64` to an integral number of its own type.
    Integral,
    /// `.f64` to itself.
    Same,
    /// `.f16` to `.f32`.
    FromHalf,
    /// `.f32` to 16 bits, or two of them.
    ToHalves { half: Half, is_pair: bool },
    /// `.bf16` to `.f32`.
    FromBf16,
    /// A float of 16 bits to an integer.
    HalfToInt { half: Half, bits: u32, signed: bool },
    /// To a number of `.f32` or `.f64` from 0 to 1.
    Saturate,
    /// What the host has no instruction for.
    Small(Small),
}

/// What a conversion is, if there is code for it.
pub(crate) fn conversion(c: Cvt) -> Option<Conversion> {
    of_host(c).or_else(|| small(c).map(Conversion::Small))
}

/// What a conversion is for the host, if it has it.
fn of_host(c: Cvt) -> Option<Conversion> {
    use ScalarType::{BF16, F16, F32, F64};
    rounding(c.round)?;
    let is_float = |t| matches!(t, F32 | F64);
    if c.from == F32
        && !c.satfinite
        && let Some((half, is_pair)) = Float::of(c.to).and_then(Half::of)
    {
        let fits = match half {
            Half::F16 => true,
            Half::Bf16 => !c.sat && matches!(c.round, Rounding::Nearest | Rounding::Zero),
        };
        return fits.then_some(Conversion::ToHalves { half, is_pair });
    }
    if c.relu || c.satfinite {
        return None;
    }
    match (c.from, c.to) {
        // Clamping an integer is its own; a float result is not clamped here.
        (from, to) if is_float(from) && integer(to).is_some() => {
            let (bits, signed) = integer(to)?;
            Some(Conversion::ToInt { bits, signed })
        }
        (F16 | BF16, to) if integer(to).is_some() => {
            let half = if c.from == F16 { Half::F16 } else { Half::Bf16 };
            let (bits, signed) = integer(to)?;
            Some(Conversion::HalfToInt { half, bits, signed })
        }
        (_, F32 | F64) if c.sat => conversion(Cvt { sat: false, ..c }).map(|_| Conversion::Saturate),
        _ if c.sat => None,
        (from, to) if integer(from).is_some() && is_float(to) => {
            let (bits, signed) = integer(from)?;
            Some(Conversion::FromInt { bits, signed })
        }
        (F32, F64) => Some(Conversion::Widen),
        (F64, F32) => Some(Conversion::Narrow),
        (F32, F32) | (F64, F64) if c.integral => Some(Conversion::Integral),
        (F64, F64) => Some(Conversion::Same),
        (F16, F32) if !c.ftz => Some(Conversion::FromHalf),
        (BF16, F32) if !c.ftz => Some(Conversion::FromBf16),
        _ => None,
    }
}

/// The least number beyond the signed integers of a conversion, as bits of its source: a number that reaches it is far above their greatest one whatever
/// the rounding. `None` for `.f64` to at most 32 bits, where numbers lie between.
fn beyond(c: Cvt, bits: u32) -> Option<u64> {
    match (c.from, bits) {
        (ScalarType::F64, 64) => Some(2f64.powi(63).to_bits()),
        (ScalarType::F64, _) => None,
        (_, 64) => Some(2f32.powi(63).to_bits().into()),
        (_, _) => Some(2f32.powi(31).to_bits().into()),
    }
}

/// The constants that a conversion reads as vectors.
pub(crate) fn constants(c: Cvt) -> Vec<(Ty, u64)> {
    match of_host(c) {
        Some(Conversion::ToInt { bits, signed: true }) => {
            let (from, to) = (c.from.ty(), if bits == 64 { Ty::B64 } else { Ty::B32 });
            beyond(c, bits).map(|b| (from, b)).into_iter().chain([(to, to.mask() >> 1)]).collect()
        }
        Some(Conversion::ToHalves { half, .. }) => half_constants(half, c.round).map(|x| (Ty::B32, x)).collect(),
        _ => Vec::new(),
    }
}

/// Where a result may be made: in its own register if all of its lanes are written.
fn at_once(out: Out) -> Register {
    if out.mask == ALL { out.reg } else { zmm(4) }
}

impl Emit<'_> {
    /// A part of the result of a conversion.
    pub(crate) fn convert(&mut self, c: Cvt, q: usize, src: &[Src], out: Out) {
        let Some(kind) = conversion(c) else { panic!("{c:?} has no vector code at {:?}", self.at) };
        // Those of the host have one that an instruction may name.
        let round = rounding(c.round).unwrap_or(RoundingControl::None);
        let ty = c.to.ty();
        let ftz = c.ftz && c.from == ScalarType::F32;
        match kind {
            Conversion::FromInt { bits: 64, signed } => {
                let code = match (is_wide(ty), signed) {
                    (true, true) => Code::EVEX_Vcvtqq2pd_zmm_k1z_zmmm512b64_er,
                    (true, false) => Code::EVEX_Vcvtuqq2pd_zmm_k1z_zmmm512b64_er,
                    (false, true) => Code::EVEX_Vcvtqq2ps_ymm_k1z_zmmm512b64_er,
                    (false, false) => Code::EVEX_Vcvtuqq2ps_ymm_k1z_zmmm512b64_er,
                };
                if is_wide(ty) {
                    let a = self.reg(&src[0], q, 0);
                    self.a.op2r(code, out, a, round);
                } else {
                    self.halves_as(code, q, &src[0], round, out);
                }
            }
            Conversion::FromInt { bits, signed } => {
                // Bits above the source's width are not the integer's.
                let mut a = self.reg(&src[0], if is_wide(ty) { q / 2 } else { q }, 0);
                if bits < 32 {
                    self.a.op2i(Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8, zmm(4), a, 32 - bits);
                    let code = if signed {
                        Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8
                    } else {
                        Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8
                    };
                    self.a.op2i(code, zmm(4), zmm(4), 32 - bits);
                    a = zmm(4);
                }
                if is_wide(ty) {
                    let half = self.half_of(a, q, 5);
                    let code = if signed {
                        Code::EVEX_Vcvtdq2pd_zmm_k1z_ymmm256b32_er
                    } else {
                        Code::EVEX_Vcvtudq2pd_zmm_k1z_ymmm256b32_er
                    };
                    self.a.op2(code, out, ymm(half));
                } else {
                    let code = if signed {
                        Code::EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er
                    } else {
                        Code::EVEX_Vcvtudq2ps_zmm_k1z_zmmm512b32_er
                    };
                    self.a.op2r(code, out, a, round);
                }
            }
            Conversion::Small(kind) => self.small(c, kind, q, src, out),
            Conversion::ToInt { bits, signed } => self.float_as_int(c, bits, signed, q, &src[0], round, out),
            Conversion::Widen => {
                let a = if ftz { self.flushed(&src[0], q / 2, 0) } else { self.reg(&src[0], q / 2, 0) };
                let half = self.half_of(a, q, 5);
                self.a.op2(Code::EVEX_Vcvtps2pd_zmm_k1z_ymmm256b32_sae, out, ymm(half));
                self.canonical(ty, out);
            }
            Conversion::Narrow if c.ftz => self.narrow_with_flush(q, &src[0], round, out),
            Conversion::Narrow => {
                self.halves_as(Code::EVEX_Vcvtpd2ps_ymm_k1z_zmmm512b64_er, q, &src[0], round, out);
                self.canonical(ty, out);
            }
            Conversion::Integral => {
                let a = if ftz { self.flushed(&src[0], q, 0) } else { self.reg(&src[0], q, 0) };
                let code = by_width(
                    ty,
                    Code::EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae,
                    Code::EVEX_Vrndscalepd_zmm_k1z_zmmm512b64_imm8_sae,
                );
                self.a.op2i(code, out, a, 8 | rounding_number(c.round));
                self.canonical(ty, out);
            }
            Conversion::Same => {
                let a = self.reg(&src[0], q, 0);
                self.copy(ty, zmm(4).into(), a.into());
                self.canonical(ty, zmm(4).into());
                self.copy(ty, out, zmm(4).into());
            }
            Conversion::FromHalf => {
                let a = self.reg(&src[0], q, 0);
                self.a.op2(Code::EVEX_Vpmovdw_ymmm256_k1z_zmm, ymm(zmm(4)), a);
                self.a.op2(Code::EVEX_Vcvtph2ps_zmm_k1z_ymmm256_sae, out, ymm(zmm(4)));
                self.canonical(ty, out);
            }
            Conversion::ToHalves { half, is_pair } => {
                let to = if is_pair || c.sat || c.relu { zmm(4) } else { at_once(out) };
                // The first source is the upper one.
                for (i, s) in src.iter().enumerate() {
                    let a = if ftz { self.flushed(s, q, 0) } else { self.reg(s, q, 0) };
                    self.narrow_half(half, a, c.round, to);
                    self.clamp_half(half, c.sat, c.relu);
                    if is_pair && i == 0 {
                        self.a.op2i(Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8, zmm(6), zmm(4), 16);
                    }
                }
                if is_pair {
                    self.a.op3(Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32, out, zmm(6), zmm(4));
                } else {
                    self.copy(Ty::B32, out, to.into());
                }
            }
            Conversion::FromBf16 => {
                let a = self.reg(&src[0], q, 0);
                self.a.op2i(Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8, out, a, 16);
                self.canonical(ty, out);
            }
            Conversion::HalfToInt { half, bits, signed } => {
                let wide = zmm(2);
                let r = self.reg(&src[0], if is_wide(ty) { q / 2 } else { q }, 2);
                if r != wide {
                    self.a.op2(load_code(Ty::B32), wide, r);
                }
                self.widen_half(half, wide);
                let s = Src::new(At::Given(wide), Ty::B32);
                self.float_as_int(Cvt { ftz: false, ..c }, bits, signed, q, &s, round, out);
            }
            Conversion::Saturate => {
                self.convert(Cvt { sat: false, ..c }, q, src, zmm(4).into());
                self.between_zero_and_one(ty, out);
            }
        }
    }

    /// `.f64` to `.f32` with `.ftz`. To nearest, a result is subnormal that would be if there were no least exponent: a number that is less than a quarter of
    /// a place below the least normal one is none.
    fn narrow_with_flush(&mut self, q: usize, s: &Src, round: RoundingControl, out: Out) {
        let code = Code::EVEX_Vcvtpd2ps_ymm_k1z_zmmm512b64_er;
        if round != RoundingControl::None {
            self.halves_as(code, q, s, round, zmm(6).into());
            self.flush(zmm(6).into());
        } else {
            let tiny = f64::from(f32::MIN_POSITIVE) * (1.0 - 1.0 / f64::from(1u32 << 25));
            for (i, to) in [(0, zmm(4)), (1, zmm(5))] {
                let a = self.reg(s, 2 * q + i, 0);
                let x = zmm(6);
                let size = self.constant(Ty::B64, u64::MAX >> 1);
                self.a.op3(Code::EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64, x, a, size);
                let least = self.constant(Ty::B64, tiny.to_bits());
                self.a.op3i(Code::EVEX_Vcmppd_kr_k1_zmm_zmmm512b64_imm8_sae, Register::K7, x, least, 0x11);
                self.copy(Ty::B64, x.into(), a.into());
                let sign = self.constant(Ty::B64, 1 << 63);
                self.a.op3(Code::EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64, Out::masked(x, Register::K7), x, sign);
                self.a.op2r(code, ymm(to), x, round);
            }
            self.a.op3i(Code::EVEX_Vinserti32x8_zmm_k1z_zmm_ymmm256_imm8, zmm(6), zmm(4), ymm(zmm(5)), 1);
        }
        self.canonical(Ty::B32, zmm(6).into());
        self.copy(Ty::B32, out, zmm(6).into());
    }

    /// The half of a vector of 32-bit lanes that is part `q` of 64-bit ones, as the lower half of a vector.
    pub(crate) fn half_of(&mut self, r: Register, q: usize, scratch: u8) -> Register {
        if q.is_multiple_of(2) {
            return r;
        }
        self.a.op2i(Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8, ymm(zmm(scratch)), r, 1);
        zmm(scratch)
    }

    /// 16 lanes of 32 bits from two vectors of 64 bits.
    pub(crate) fn halves_as(&mut self, code: Code, q: usize, s: &Src, round: RoundingControl, out: Out) {
        for (i, to) in [(0, 4), (1, 5)] {
            let a = self.reg(s, 2 * q + i, 0);
            self.a.op2r(code, ymm(zmm(to)), a, round);
        }
        self.a.op3i(Code::EVEX_Vinserti32x8_zmm_k1z_zmm_ymmm256_imm8, out, zmm(4), ymm(zmm(5)), 1);
    }

    /// To an integer: rounded, then clamped. NaN is 0 from `.f32` to at most 32 bits, else the least signed number of the width.
    #[allow(clippy::too_many_arguments, reason = "the fields of the conversion, and its part")]
    fn float_as_int(&mut self, c: Cvt, bits: u32, signed: bool, q: usize, s: &Src, round: RoundingControl, out: Out) {
        let from_wide = c.from == ScalarType::F64;
        let to_wide = bits == 64;
        let nan = if from_wide || to_wide { 1u64 << (bits - 1) } else { 0 };
        // The host's own answer to NaN is the least signed number, and to what was made zero before, zero.
        let answers_nan = signed != (nan == 0);
        // The instruction makes lanes of 32 or of 64 bits; a source of 64 bits for lanes of 32 goes by halves.
        let halves: &[usize] = if from_wide && !to_wide { &[0, 1] } else { &[0] };
        let lane = if to_wide { Ty::B64 } else { Ty::B32 };
        let (result, upper) = (if halves.len() == 1 { at_once(out) } else { zmm(4) }, zmm(6));
        for &h in halves {
            let part = if from_wide && !to_wide {
                2 * q + h
            } else if to_wide && !from_wide {
                q / 2
            } else {
                q
            };
            let flush = c.ftz && !from_wide;
            let mut a = if flush { self.flushed(s, part, 0) } else { self.reg(s, part, 0) };
            if to_wide && !from_wide {
                a = self.half_of(a, q, 1);
            }
            let wide_source = if from_wide { Ty::B64 } else { Ty::B32 };
            let cmp = float_compare(wide_source);
            if !answers_nan {
                self.a.op3i(cmp, Register::K5, a, a, UNORDERED);
            }
            if !signed {
                let max = by_width(
                    wide_source,
                    Code::EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae,
                    Code::EVEX_Vmaxpd_zmm_k1z_zmm_zmmm512b64_sae,
                );
                self.a.op3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, zmm(5), zmm(5), zmm(5));
                self.a.op3(max, zmm(5), a, zmm(5));
                a = zmm(5);
            } else if let Some(beyond) = beyond(c, bits) {
                let beyond = self.constant_rm(wide_source, beyond);
                self.a.op3i(cmp, Register::K6, a, beyond, 0x1d);
            } else {
                self.a.op3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, zmm(5), zmm(5), zmm(5));
                self.a.op3i(cmp, Register::K6, a, zmm(5), 0x1e);
            }
            let code = match (from_wide, to_wide, signed) {
                (false, false, true) => Code::EVEX_Vcvtps2dq_zmm_k1z_zmmm512b32_er,
                (false, false, false) => Code::EVEX_Vcvtps2udq_zmm_k1z_zmmm512b32_er,
                (true, false, true) => Code::EVEX_Vcvtpd2dq_ymm_k1z_zmmm512b64_er,
                (true, false, false) => Code::EVEX_Vcvtpd2udq_ymm_k1z_zmmm512b64_er,
                (false, true, true) => Code::EVEX_Vcvtps2qq_zmm_k1z_ymmm256b32_er,
                (false, true, false) => Code::EVEX_Vcvtps2uqq_zmm_k1z_ymmm256b32_er,
                (true, true, true) => Code::EVEX_Vcvtpd2qq_zmm_k1z_zmmm512b64_er,
                (true, true, false) => Code::EVEX_Vcvtpd2uqq_zmm_k1z_zmmm512b64_er,
            };
            let to = if h == 0 { result } else { upper };
            let dst = if from_wide && !to_wide { ymm(to) } else { to };
            let source = if to_wide && !from_wide { ymm(a) } else { a };
            self.a.op2r(code, dst, source, round);
            // The host's answer to what does not fit is the least number, also where the greatest is right.
            let eq = by_width(
                lane,
                Code::EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8,
                Code::EVEX_Vpcmpq_kr_k1_zmm_zmmm512b64_imm8,
            );
            if signed {
                if beyond(c, bits).is_none() {
                    let least = self.constant(lane, 1 << (lane.bits() - 1));
                    self.a.op3i(eq, Out::masked(Register::K6, Register::K6), to, least, 0);
                }
                let most = self.constant_rm(lane, lane.mask() >> 1);
                self.a.op2(load_code(lane), Out::masked(to, Register::K6), most);
            }
            if bits < 32 {
                let (low, high) =
                    if signed { (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
                let low = self.constant(lane, low.cast_unsigned() & lane.mask());
                let high = self.constant(lane, high.cast_unsigned());
                if signed {
                    self.a.op3(Code::EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32, to, to, low);
                    self.a.op3(Code::EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32, to, to, high);
                } else {
                    self.a.op3(Code::EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32, to, to, high);
                }
                let kept = self.constant(lane, (1 << bits) - 1);
                self.a.op3(Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, to, to, kept);
            }
            match (answers_nan, nan) {
                (true, _) => {}
                (false, 0) => {
                    self.a.op3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, Out::masked(to, Register::K5), to, to);
                }
                (false, nan) => {
                    let nan = self.constant(lane, nan);
                    self.a.op2(load_code(lane), Out::masked(to, Register::K5), nan);
                }
            }
        }
        if halves.len() == 2 {
            self.a.op3i(Code::EVEX_Vinserti32x8_zmm_k1z_zmm_ymmm256_imm8, result, result, ymm(upper), 1);
        }
        self.copy(lane, out, result.into());
    }
}
