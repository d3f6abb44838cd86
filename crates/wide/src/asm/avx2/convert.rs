//! Conversions between integers and floats, exact and rounded once.
//!
//! Unsigned numbers and those of 64 bits are made of parts that `.f64` holds: adding 2^52 to a whole number below it puts the number into the low bits,
//! and the other way round.

use iced_x86::{Code, Register, RoundingControl};

use super::super::{Asm, Mem, Rm};
use super::Ops;
use super::masks::low;
use super::state::Lanes;

use Code::{
    VEX_Vaddpd_ymm_ymm_ymmm256 as ADD_PD, VEX_Vaddps_ymm_ymm_ymmm256 as ADD_PS, VEX_Vandpd_ymm_ymm_ymmm256 as AND_PD,
    VEX_Vcmppd_ymm_ymm_ymmm256_imm8 as CMP_PD, VEX_Vcmpps_ymm_ymm_ymmm256_imm8 as CMP_PS,
    VEX_Vmulpd_ymm_ymm_ymmm256 as MUL_PD, VEX_Vmulps_ymm_ymm_ymmm256 as MUL_PS, VEX_Vpand_ymm_ymm_ymmm256 as AND,
    VEX_Vpor_ymm_ymm_ymmm256 as OR, VEX_Vpsllq_ymm_ymm_imm8 as LEFT_Q, VEX_Vpsrld_ymm_ymm_imm8 as RIGHT_D,
    VEX_Vpsrlq_ymm_ymm_imm8 as RIGHT_Q, VEX_Vpxor_ymm_ymm_ymmm256 as XOR, VEX_Vroundpd_ymm_ymmm256_imm8 as ROUND_PD,
    VEX_Vroundps_ymm_ymmm256_imm8 as ROUND_PS, VEX_Vsubpd_ymm_ymm_ymmm256 as SUB_PD,
};

/// Below what.
const LESS: u32 = 0x11;
/// From what on.
const FROM: u32 = 0x1d;
/// 2^52, as bits.
const MAGIC: u64 = 0x4330_0000_0000_0000;

fn number(round: RoundingControl) -> u32 {
    8 | match round {
        RoundingControl::RoundDown => 1,
        RoundingControl::RoundUp => 2,
        RoundingControl::RoundTowardZero => 3,
        _ => 0,
    }
}

impl Asm {
    /// Whether an expansion takes its rounding along, so that the host's own stays.
    pub(super) fn rounds_by_itself(&self, code: Code) -> bool {
        use Code::*;
        matches!(
            code,
            EVEX_Vcvtps2dq_zmm_k1z_zmmm512b32_er
                | EVEX_Vcvtps2udq_zmm_k1z_zmmm512b32_er
                | EVEX_Vcvtpd2dq_ymm_k1z_zmmm512b64_er
                | EVEX_Vcvtpd2udq_ymm_k1z_zmmm512b64_er
                | EVEX_Vcvtps2qq_zmm_k1z_ymmm256b32_er
                | EVEX_Vcvtps2uqq_zmm_k1z_ymmm256b32_er
                | EVEX_Vcvtpd2qq_zmm_k1z_zmmm512b64_er
                | EVEX_Vcvtpd2uqq_zmm_k1z_zmmm512b64_er
                | EVEX_Vcvtqq2pd_zmm_k1z_zmmm512b64_er
                | EVEX_Vcvtuqq2pd_zmm_k1z_zmmm512b64_er
                | EVEX_Vcvtqq2ps_ymm_k1z_zmmm512b64_er
                | EVEX_Vcvtuqq2ps_ymm_k1z_zmmm512b64_er
                | EVEX_Vcvtudq2ps_zmm_k1z_zmmm512b32_er
        )
    }

    pub(super) fn conversion(&mut self, o: Ops) -> bool {
        use Code::*;
        let way = number(o.round);
        let Rm::Reg(from) = o.rm else {
            // What a routine or a half conversion reads is always in a register.
            return false;
        };
        // Each half of the result from a half of the source, or from half of its lower half.
        let same = |s: &mut Asm, lanes: Lanes, f: &dyn Fn(&mut Asm, Register) -> Register| {
            s.each(o.out, lanes, |s, h| {
                let x = s.half(from, h);
                f(s, x)
            });
        };
        let wider = |s: &mut Asm, code: Code, f: &dyn Fn(&mut Asm, Register) -> Register| {
            let x = s.half(from, 0);
            let made = s.both(|s, h| {
                let part = s.quarter(x, h);
                let x = s.x2(code, part);
                f(s, x)
            });
            s.set_halves(o.out, Lanes::Q, &made);
        };
        let narrower = |s: &mut Asm, f: &dyn Fn(&mut Asm, Register) -> Register| {
            let [x, y] = s.both(|s, h| {
                let x = s.half(from, h);
                f(s, x)
            });
            let r = s.x3i(VEX_Vinserti128_ymm_ymm_xmmm128_imm8, x, low(y), 1);
            s.set_halves(o.out, Lanes::D, &[r]);
        };
        match o.code {
            EVEX_Vcvtps2dq_zmm_k1z_zmmm512b32_er => same(self, Lanes::D, &|s, x| {
                if o.round == RoundingControl::None {
                    return s.x2(VEX_Vcvtps2dq_ymm_ymmm256, x);
                }
                let whole = s.x2i(ROUND_PS, x, way);
                s.x2(VEX_Vcvttps2dq_ymm_ymmm256, whole)
            }),
            EVEX_Vcvtps2udq_zmm_k1z_zmmm512b32_er => same(self, Lanes::D, &|s, x| s.unsigned_of_singles(x, way)),
            EVEX_Vcvtudq2ps_zmm_k1z_zmmm512b32_er => same(self, Lanes::D, &|s, x| {
                // Both halves are exact; their sum is rounded.
                let kept = s.all(Lanes::D, 0xffff);
                let lower = s.x3(AND, x, kept);
                let lower = s.x2(VEX_Vcvtdq2ps_ymm_ymmm256, lower);
                let upper = s.x2i(RIGHT_D, x, 16);
                let upper = s.x2(VEX_Vcvtdq2ps_ymm_ymmm256, upper);
                let by = s.all(Lanes::D, u64::from(65536f32.to_bits()));
                let upper = s.x3(MUL_PS, upper, by);
                s.rounded(o.round, |s| s.x3(ADD_PS, upper, lower))
            }),
            EVEX_Vcvtudq2pd_zmm_k1z_ymmm256b32_er => wider(self, VEX_Vpmovzxdq_ymm_xmmm128, &|s, x| {
                let magic = s.all(Lanes::Q, MAGIC);
                let x = s.x3(OR, x, magic);
                s.x3(SUB_PD, x, magic)
            }),
            EVEX_Vcvtqq2pd_zmm_k1z_zmmm512b64_er => same(self, Lanes::Q, &|s, x| s.double_of(x, true, o.round)),
            EVEX_Vcvtuqq2pd_zmm_k1z_zmmm512b64_er => same(self, Lanes::Q, &|s, x| s.double_of(x, false, o.round)),
            EVEX_Vcvtqq2ps_ymm_k1z_zmmm512b64_er => narrower(self, &|s, x| s.single_of(x, true, o.round)),
            EVEX_Vcvtuqq2ps_ymm_k1z_zmmm512b64_er => narrower(self, &|s, x| s.single_of(x, false, o.round)),
            EVEX_Vcvtpd2ps_ymm_k1z_zmmm512b64_er => narrower(self, &|s, x| s.xmm2(VEX_Vcvtpd2ps_xmm_ymmm256, x)),
            EVEX_Vcvttpd2dq_ymm_k1z_zmmm512b64_sae => {
                narrower(self, &|s, x| s.xmm2(VEX_Vcvttpd2dq_xmm_ymmm256, x));
            }
            EVEX_Vcvtpd2dq_ymm_k1z_zmmm512b64_er => narrower(self, &|s, x| {
                let whole = s.x2i(ROUND_PD, x, way);
                s.xmm2(VEX_Vcvttpd2dq_xmm_ymmm256, whole)
            }),
            EVEX_Vcvtpd2udq_ymm_k1z_zmmm512b64_er => narrower(self, &|s, x| s.unsigned_of_doubles(x, way)),
            EVEX_Vcvttpd2udq_ymm_k1z_zmmm512b64_sae => {
                narrower(self, &|s, x| s.unsigned_of_doubles(x, number(RoundingControl::RoundTowardZero)));
            }
            EVEX_Vcvtpd2qq_zmm_k1z_zmmm512b64_er => same(self, Lanes::Q, &|s, x| s.words_of_doubles(x, true, way)),
            EVEX_Vcvtpd2uqq_zmm_k1z_zmmm512b64_er => same(self, Lanes::Q, &|s, x| s.words_of_doubles(x, false, way)),
            EVEX_Vcvtps2qq_zmm_k1z_ymmm256b32_er => {
                wider(self, VEX_Vcvtps2pd_ymm_xmmm128, &|s, x| s.words_of_doubles(x, true, way));
            }
            EVEX_Vcvtps2uqq_zmm_k1z_ymmm256b32_er => {
                wider(self, VEX_Vcvtps2pd_ymm_xmmm128, &|s, x| s.words_of_doubles(x, false, way));
            }
            EVEX_Vcvtps2ph_ymmm256_k1z_zmm_imm8_sae => narrower(self, &|s, x| {
                let t = s.temp();
                s.raw2i(VEX_Vcvtps2ph_xmmm128_ymm_imm8, low(t), x.into(), o.n);
                t
            }),
            _ => return false,
        }
        true
    }

    /// A conversion to 128 bits.
    fn xmm2(&mut self, code: Code, x: Register) -> Register {
        let t = self.temp();
        self.raw2(code, low(t), x.into());
        t
    }

    /// Code under a rounding.
    fn rounded(&mut self, round: RoundingControl, code: impl FnOnce(&mut Asm) -> Register) -> Register {
        let is_own = matches!(round, RoundingControl::None | RoundingControl::RoundToNearest);
        if !is_own {
            self.set_rounding(round);
        }
        let r = code(self);
        if !is_own {
            self.set_rounding(RoundingControl::RoundToNearest);
        }
        r
    }

    fn all_doubles(&mut self, x: f64) -> Mem {
        self.all(Lanes::Q, x.to_bits())
    }

    /// Integers of 64 bits as `.f64`: both halves are exact, their sum is rounded.
    fn double_of(&mut self, x: Register, signed: bool, round: RoundingControl) -> Register {
        let magic = self.all(Lanes::Q, MAGIC);
        let low_half = self.all(Lanes::Q, 0xffff_ffff);
        let lower = self.only(|s| {
            let lower = s.x3(AND, x, low_half);
            let lower = s.x3(OR, lower, magic);
            s.x3(SUB_PD, lower, magic)
        });
        let upper = self.only(|s| {
            let mut upper = s.x2i(RIGHT_Q, x, 32);
            // A signed half goes up by 2^31 as an integer, and down by it as a float.
            let mut off = f64::from_bits(MAGIC);
            if signed {
                let flip = s.all(Lanes::Q, 1 << 31);
                upper = s.x3(XOR, upper, flip);
                off += 2f64.powi(31);
            }
            let upper = s.x3(OR, upper, magic);
            let off = s.all_doubles(off);
            let upper = s.x3(SUB_PD, upper, off);
            let by = s.all_doubles(2f64.powi(32));
            s.x3(MUL_PD, upper, by)
        });
        self.rounded(round, |s| s.x3(ADD_PD, upper, lower))
    }

    /// Integers of 64 bits as `.f32`, in the lower half. Those that `.f64` does not hold lose eleven bits to one that says whether there were any: then
    /// `.f64` holds them, and the one rounding to `.f32` is right, since its last place is above that bit.
    fn single_of(&mut self, x: Register, signed: bool, round: RoundingControl) -> Register {
        let exact = self.only(|s| {
            let kept = s.all(Lanes::Q, 0x7ff);
            let tail = s.x3(AND, x, kept);
            let some = s.x3(Code::VEX_Vpaddq_ymm_ymm_ymmm256, tail, kept);
            let sticky = s.x3(OR, x, some);
            let cut = s.all(Lanes::Q, !0x7ff);
            let sticky = s.x3(AND, sticky, cut);
            // Whether it is below 2^53, its sign apart.
            let small = if signed {
                let c = s.all(Lanes::Q, 1 << 53);
                let moved = s.x3(Code::VEX_Vpaddq_ymm_ymm_ymmm256, x, c);
                s.x2i(RIGHT_Q, moved, 54)
            } else {
                s.x2i(RIGHT_Q, x, 53)
            };
            let zero = s.zero();
            let is_small = s.x3(Code::VEX_Vpcmpeqq_ymm_ymm_ymmm256, small, zero);
            s.blend(sticky, x, is_small)
        });
        let double = self.double_of(exact, signed, RoundingControl::None);
        self.rounded(round, |s| s.xmm2(Code::VEX_Vcvtpd2ps_xmm_ymmm256, double))
    }

    /// `.f32` as unsigned integers of 32 bits; what does not fit is all ones.
    fn unsigned_of_singles(&mut self, x: Register, way: u32) -> Register {
        let whole = self.x2i(ROUND_PS, x, way);
        let half = self.all(Lanes::D, u64::from(2f32.powi(31).to_bits()));
        let is_low = self.x3i(CMP_PS, whole, half, LESS);
        // The upper half is moved down before, and up after the conversion.
        let off = self.x3(Code::VEX_Vandnps_ymm_ymm_ymmm256, is_low, half);
        let moved = self.x3(Code::VEX_Vsubps_ymm_ymm_ymmm256, whole, off);
        let n = self.x2(Code::VEX_Vcvttps2dq_ymm_ymmm256, moved);
        let sign = self.all(Lanes::D, 1 << 31);
        let up = self.x3(Code::VEX_Vpandn_ymm_ymm_ymmm256, is_low, sign);
        let n = self.x3(XOR, n, up);
        let zero = self.zero();
        let not_below = self.x3i(CMP_PS, whole, zero, FROM);
        let most = self.all(Lanes::D, u64::from(2f32.powi(32).to_bits()));
        let not_above = self.x3i(CMP_PS, whole, most, LESS);
        let fits = self.x3(AND, not_below, not_above);
        let ones = self.ones();
        self.blend(ones, n, fits)
    }

    /// `.f64` as unsigned integers of 32 bits, in the lower half; what does not fit is all ones.
    fn unsigned_of_doubles(&mut self, x: Register, way: u32) -> Register {
        let whole = self.x2i(ROUND_PD, x, way);
        let magic = self.all(Lanes::Q, MAGIC);
        let n = self.x3(ADD_PD, whole, magic);
        let fits = self.fits(whole, 0.0, 2f64.powi(32));
        let ones = self.ones();
        let n = self.blend(ones, n, fits);
        // The lower halves of the lanes.
        self.narrow_pair(n, n)
    }

    fn fits(&mut self, x: Register, low: f64, high: f64) -> Register {
        let (low, high) = (self.all_doubles(low), self.all_doubles(high));
        let not_below = self.x3i(CMP_PD, x, low, FROM);
        let below = self.x3i(CMP_PD, x, high, LESS);
        self.x3(AND_PD, not_below, below)
    }

    /// `.f64` as integers of 64 bits; what does not fit is the least signed, or the greatest unsigned number.
    fn words_of_doubles(&mut self, x: Register, signed: bool, way: u32) -> Register {
        let whole = self.x2i(ROUND_PD, x, way);
        let n = self.only(|s| {
            let down = s.all_doubles(2f64.powi(-32));
            let scaled = s.x3(MUL_PD, whole, down);
            let upper = s.x2i(ROUND_PD, scaled, number(RoundingControl::RoundDown));
            let up = s.all_doubles(2f64.powi(32));
            let away = s.x3(MUL_PD, upper, up);
            let lower = s.x3(SUB_PD, whole, away);
            let magic = s.all(Lanes::Q, MAGIC);
            let lower = s.x3(ADD_PD, lower, magic);
            // With 2^51 more a negative number stands in the low bits as well, as its complement.
            let off = s.all_doubles(2f64.powi(52) + if signed { 2f64.powi(51) } else { 0.0 });
            let upper = s.x3(ADD_PD, upper, off);
            let upper = s.x2i(LEFT_Q, upper, 32);
            let low_half = s.all(Lanes::Q, 0xffff_ffff);
            let lower = s.x3(AND, lower, low_half);
            s.x3(OR, upper, lower)
        });
        let fits =
            if signed { self.fits(whole, -2f64.powi(63), 2f64.powi(63)) } else { self.fits(whole, 0.0, 2f64.powi(64)) };
        let other = self.all(Lanes::Q, if signed { 1 << 63 } else { u64::MAX });
        let other = self.x2(Code::VEX_Vmovdqu_ymm_ymmm256, other);
        self.blend(other, n, fits)
    }
}
