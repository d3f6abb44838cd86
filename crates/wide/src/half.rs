//! Floats of 16 bits, computed in `.f32`; also what `num` computes in `.f64` for `.f32`.
//!
//! Why the bits are those of `num`, which rounds once: a result in `.f32` that is rounded to odd (of the two neighbours of an inexact result the one
//! whose last bit is one) keeps all that a second rounding asks for, since `.f32` has at least two bits more than both formats everywhere, its
//! subnormal numbers included. Sums to nearest are right as well, because 24 bits are twice 11 and two more.

use handloom_ir::simt::{Exactness, FMode, Pure};
use handloom_ir::types::{Float, Rounding, Ty};
use iced_x86::{Code, Register, RoundingControl};

use crate::asm::Out;
use crate::emit::*;
use crate::table::{MinMax, float_cmp, rounding_number};
use crate::values::{At, Src, UNORDERED, load_code, store_code};

const K5: Register = Register::K5;
const K6: Register = Register::K6;
const K7: Register = Register::K7;
const AND: Code = Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32;
const OR: Code = Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32;
const XOR: Code = Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32;
const LEFT: Code = Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8;
const RIGHT: Code = Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8;

/// A format of 16 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Half {
    F16,
    Bf16,
}

impl Half {
    /// The format of a type or of its elements, and whether there are two.
    pub(crate) fn of(ty: Float) -> Option<(Half, bool)> {
        match ty {
            Float::F16 => Some((Half::F16, false)),
            Float::F16x2 => Some((Half::F16, true)),
            Float::BF16 => Some((Half::Bf16, false)),
            Float::BF16x2 => Some((Half::Bf16, true)),
            Float::F32 | Float::F64 | Float::F32x2 => None,
        }
    }

    /// Bits of the exponent.
    fn exponent(self) -> u64 {
        if self == Half::F16 { 0x7c00 } else { 0x7f80 }
    }

    fn one(self) -> u64 {
        if self == Half::F16 { 0x3c00 } else { 0x3f80 }
    }
}

/// The constants that [`Emit::narrow_half`] reads as vectors.
pub(crate) fn half_constants(half: Half, round: Rounding) -> impl Iterator<Item = u64> {
    let is_sum = half == Half::Bf16 && round != Rounding::Zero;
    [0x7fff].into_iter().chain([1, 1 << 16].into_iter().filter(move |_| is_sum))
}

/// Whether an op has code here.
pub(crate) fn has_code(op: Pure) -> bool {
    let nearest = |m: FMode| Half::of(m.ty).is_some() && m.round == Rounding::Nearest;
    match op {
        Pure::FAdd(m) | Pure::FSub(m) | Pure::FMul(m) | Pure::FFma(m) => nearest(m),
        Pure::FMin { ty, .. } | Pure::FMax { ty, .. } | Pure::FAbs { ty, .. } | Pure::FNeg { ty, .. } => {
            Half::of(ty).is_some()
        }
        Pure::FRsqrt(m) => m.ty == Float::F32,
        Pure::FDiv { mode, exact: Exactness::Approx } => mode.ty == Float::F32,
        _ => false,
    }
}

impl Emit<'_> {
    /// A part of an op that [`has_code`] names.
    pub(crate) fn half_op(&mut self, op: Pure, q: usize, src: &[Src], out: Out) {
        let (ty, ftz) = match op {
            Pure::FRsqrt(m) => {
                self.inverse_root(m, q, &src[0], out);
                return;
            }
            Pure::FDiv { mode, .. } => {
                self.divide_roughly(mode, q, src, out);
                return;
            }
            Pure::FAdd(m) | Pure::FSub(m) | Pure::FMul(m) | Pure::FFma(m) => (m.ty, m.ftz),
            Pure::FMin { ty, ftz, .. }
            | Pure::FMax { ty, ftz, .. }
            | Pure::FAbs { ty, ftz }
            | Pure::FNeg { ty, ftz } => (ty, ftz),
            other => panic!("{other:?} has no code here"),
        };
        let Some((half, is_pair)) = Half::of(ty) else { panic!("{op:?} is of no half") };
        // Both elements are taken from a source, so one in a vector below stays in memory.
        let src: Vec<Src> = src.iter().map(|s| self.kept(s, q)).collect();
        for upper in [false, true].into_iter().take(if is_pair { 2 } else { 1 }) {
            for (i, s) in src.iter().enumerate() {
                self.element(s, q, i as u8, is_pair, upper);
                if ftz {
                    self.flush_half(half, zmm(i as u8));
                }
            }
            self.on_element(op, half);
            if is_pair && !upper {
                self.a.op2(load_code(Ty::B32), zmm(7), zmm(4));
            }
        }
        if is_pair {
            self.a.op2i(LEFT, zmm(4), zmm(4), 16);
            self.a.op3(OR, out, zmm(4), zmm(7));
        } else {
            self.copy(Ty::B32, out, zmm(4).into());
        }
    }

    /// A source that is not in a vector that the code of an op uses.
    pub(crate) fn kept(&mut self, s: &Src, q: usize) -> Src {
        let At::Given(r) = s.at else { return *s };
        let at = self.take_scratch(64 * (q as u32 + 1));
        self.a.store(store_code(Ty::B32), ctx(at + 64 * q as u32), r, ALL);
        Src { at: At::Row(at), ..*s }
    }

    /// An element of each lane, in vector `i`.
    pub(crate) fn element(&mut self, s: &Src, q: usize, i: u8, is_pair: bool, upper: bool) {
        let (r, to) = (self.reg(s, q, i), zmm(i));
        if upper {
            self.a.op2i(RIGHT, to, r, 16);
        } else if is_pair {
            let c = self.constant(Ty::B32, 0xffff);
            self.a.op3(AND, to, r, c);
        } else if r != to {
            self.a.op2(load_code(Ty::B32), to, r);
        }
    }

    /// Makes subnormal numbers zero of their sign.
    fn flush_half(&mut self, half: Half, r: Register) {
        let c = self.constant(Ty::B32, half.exponent());
        self.a.op3(Code::EVEX_Vptestnmd_kr_k1_zmm_zmmm512b32, K7, r, c);
        let c = self.constant(Ty::B32, 0x8000);
        self.a.op3(AND, Out::masked(r, K7), r, c);
    }

    /// Elements in a register as `.f32`, in the same register.
    pub(crate) fn widen_half(&mut self, half: Half, r: Register) {
        match half {
            Half::F16 => {
                self.a.op2(Code::EVEX_Vpmovdw_ymmm256_k1z_zmm, ymm(r), r);
                self.a.op2(Code::EVEX_Vcvtph2ps_zmm_k1z_ymmm256_sae, r, ymm(r));
            }
            Half::Bf16 => self.a.op2i(LEFT, r, r, 16),
        }
    }

    /// Lanes of `.f32` as `.f16`, each in the lower half of its lane, with any NaN.
    pub(crate) fn f16_of_lanes(&mut self, to: Register, r: Register, round: u32) {
        if self.a.has_wide_vectors() {
            self.a.op2i(Code::EVEX_Vcvtps2ph_ymmm256_k1z_zmm_imm8_sae, ymm(to), r, round);
            self.a.op2(Code::EVEX_Vpmovzxwd_zmm_k1z_ymmm256, to, ymm(to));
        } else {
            self.a.f16_of_lanes(to, r, round);
        }
    }

    /// Rounds the `.f32` in a register to nearest, or towards zero to `.bf16`; NaN is canonical. Uses vector 5 and `k6`, and reads the source first.
    pub(crate) fn narrow_half(&mut self, half: Half, r: Register, round: Rounding, to: Register) {
        self.a.op3i(Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae, K7, r, r, UNORDERED);
        match half {
            Half::F16 => {
                let round = rounding_number(round);
                self.f16_of_lanes(to, r, round);
            }
            Half::Bf16 if round == Rounding::Zero => self.a.op2i(RIGHT, to, r, 16),
            Half::Bf16 => {
                // Half of the last place, less one bit if that is even.
                const ADD: Code = Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32;
                let (one, c) = (self.constant_rm(Ty::B32, 1), self.constant_rm(Ty::B32, 0x7fff));
                if self.a.has_wide_vectors() {
                    let last = self.constant_rm(Ty::B32, 1 << 16);
                    self.a.op3(Code::EVEX_Vptestmd_kr_k1_zmm_zmmm512b32, K6, r, last);
                    self.a.op3(ADD, to, r, c);
                    self.a.op3(ADD, Out::masked(to, K6), to, one);
                } else {
                    self.a.op2i(RIGHT, zmm(5), r, 16);
                    self.a.op3(AND, zmm(5), zmm(5), one);
                    self.a.op3(ADD, to, r, zmm(5));
                    self.a.op3(ADD, to, to, c);
                }
                self.a.op2i(RIGHT, to, to, 16);
            }
        }
        let nan = self.constant_rm(Ty::B32, 0x7fff);
        self.a.op2(load_code(Ty::B32), Out::masked(to, K7), nan);
    }

    /// `.sat` and `.relu` of the element in vector 4.
    pub(crate) fn clamp_half(&mut self, half: Half, sat: bool, relu: bool) {
        let r = zmm(4);
        if !(sat || relu) {
            return;
        }
        if sat {
            // As integers only positive numbers are at most infinity; a NaN is above it and becomes zero.
            let c = self.constant(Ty::B32, half.exponent());
            self.a.op3i(Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8, K7, r, c, 2);
            let one = self.constant(Ty::B32, half.one());
            self.a.op3(Code::EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32, zmm(5), r, one);
            self.a.op3(XOR, r, r, r);
            self.a.op2(load_code(Ty::B32), Out::masked(r, K7), zmm(5));
        } else {
            let sign = self.constant(Ty::B32, 0x8000);
            self.a.op3(Code::EVEX_Vptestmd_kr_k1_zmm_zmmm512b32, K7, r, sign);
            self.a.op3(XOR, Out::masked(r, K7), r, r);
        }
    }

    /// An op on elements in vectors 0 to 2, as integers; the result is in vector 4.
    fn on_element(&mut self, op: Pure, half: Half) {
        match op {
            Pure::FAbs { .. } => {
                let c = self.constant(Ty::B32, 0x7fff);
                self.a.op3(AND, zmm(4), zmm(0), c);
            }
            Pure::FNeg { .. } => {
                let c = self.constant(Ty::B32, 0x8000);
                self.a.op3(XOR, zmm(4), zmm(0), c);
            }
            Pure::FMin { nan, xorsign, .. } | Pure::FMax { nan, xorsign, .. } => {
                let max = matches!(op, Pure::FMax { .. });
                self.widen_half(half, zmm(0));
                self.widen_half(half, zmm(1));
                self.min_max_of(MinMax { max, float: Float::F32, nan, xorsign });
                self.a.op2(load_code(Ty::B32), zmm(0), zmm(4));
                // Exact.
                self.narrow_half(half, zmm(0), Rounding::Nearest, zmm(4));
            }
            Pure::FAdd(m) | Pure::FSub(m) | Pure::FMul(m) | Pure::FFma(m) => {
                let n = if matches!(op, Pure::FFma(_)) { 3 } else { 2 };
                for i in 0..n {
                    self.widen_half(half, zmm(i));
                }
                match op {
                    Pure::FAdd(_) => {
                        self.a.op3(Code::EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er, zmm(0), zmm(0), zmm(1));
                    }
                    Pure::FSub(_) => {
                        self.a.op3(Code::EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er, zmm(0), zmm(0), zmm(1));
                    }
                    _ => self.rounded_to_odd(n == 3),
                }
                self.narrow_half(half, zmm(0), Rounding::Nearest, zmm(4));
                if m.ftz {
                    self.flush_half(half, zmm(4));
                }
                self.clamp_half(half, m.sat, m.relu);
            }
            other => panic!("{other:?} has no code here"),
        }
    }

    /// `a * b`, or `a * b + c`, of vectors 0 to 2, rounded to odd: of the results of both directions the odd one. An exact result is even in both, or
    /// the same; a zero of two signs is that of the second.
    fn rounded_to_odd(&mut self, is_fma: bool) {
        let (down, up) = (zmm(4), zmm(5));
        for (to, round) in [(down, RoundingControl::RoundDown), (up, RoundingControl::RoundUp)] {
            if is_fma {
                self.a.op2(load_code(Ty::B32), to, zmm(2));
                self.a.op3r(Code::EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er, to, zmm(0), zmm(1), round);
            } else {
                self.a.op3r(Code::EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er, to, zmm(0), zmm(1), round);
            }
        }
        let one = self.constant(Ty::B32, 1);
        self.a.op3(Code::EVEX_Vptestmd_kr_k1_zmm_zmmm512b32, K5, down, one);
        self.a.op2(load_code(Ty::B32), Out::masked(up, K5), down);
        self.a.op2(load_code(Ty::B32), zmm(0), up);
    }

    /// A comparison of halves.
    pub(crate) fn compare_halves(&mut self, op: Pure, q: usize, src: &[Src], k: Register) {
        let Pure::FCmp { cmp, ty, ftz } = op else { panic!("{op:?} compares nothing") };
        let Some((half, _)) = Half::of(ty) else { panic!("{op:?} is of no half") };
        for i in 0..2u8 {
            self.element(&src[usize::from(i)], q, i, false, false);
            if ftz {
                self.flush_half(half, zmm(i));
            }
            self.widen_half(half, zmm(i));
        }
        self.a.op3i(Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae, k, zmm(0), zmm(1), float_cmp(cmp));
    }

    /// `1 / sqrt(a)` of `.f32`, in `.f64`, rounded once more.
    fn inverse_root(&mut self, m: FMode, q: usize, s: &Src, out: Out) {
        let a = if m.ftz { self.flushed(s, q, 0) } else { self.reg(s, q, 0) };
        for (h, to) in [(0, zmm(4)), (1, zmm(5))] {
            if h == 0 {
                self.a.op2(Code::EVEX_Vcvtps2pd_zmm_k1z_ymmm256b32_sae, zmm(1), ymm(a));
            } else {
                self.a.op2i(Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8, ymm(zmm(1)), a, 1);
                self.a.op2(Code::EVEX_Vcvtps2pd_zmm_k1z_ymmm256b32_sae, zmm(1), ymm(zmm(1)));
            }
            let root = self.inverse_root_double();
            self.a.op2(Code::EVEX_Vcvtpd2ps_ymm_k1z_zmmm512b64_er, ymm(to), root);
        }
        self.a.op3i(Code::EVEX_Vinserti32x8_zmm_k1z_zmm_ymmm256_imm8, zmm(4), zmm(4), ymm(zmm(5)), 1);
        // No such root is subnormal.
        self.finish_float(FMode { ftz: false, ..m }, out);
    }

    /// `1 / sqrt(a)` of the `.f64` in vector 1, which was a `.f32`; the vector that holds it.
    ///
    /// The instruction that guesses is right to 2^-14, each of two steps by Newton squares that, times 1.5, and what they round adds less than 2^-52.4:
    /// together less than 2^-52. A root and a quotient, as `num` makes them, err by less than 2^-52 too. No root of a `.f32` is nearer than 2^-51.8 to the
    /// middle between two others, so all three round to the same one.
    fn inverse_root_double(&mut self) -> Register {
        let (x, guess, half_x, first, second) = (zmm(1), zmm(2), zmm(3), zmm(6), zmm(7));
        if !self.a.has_wide_vectors() {
            let one = self.constant(Ty::B64, 1f64.to_bits());
            self.a.op2(Code::EVEX_Vsqrtpd_zmm_k1z_zmmm512b64_er, x, x);
            self.a.op2(load_code(Ty::B64), guess, one);
            self.a.op3(Code::EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er, guess, guess, x);
            return guess;
        }
        let half = self.constant(Ty::B64, 0.5f64.to_bits());
        self.a.op2(Code::EVEX_Vrsqrt14pd_zmm_k1z_zmmm512b64, guess, x);
        self.a.op3(Code::EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er, half_x, x, half);
        for (y, next) in [(guess, first), (first, second)] {
            self.a.op3(Code::EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er, next, half_x, y);
            self.a.op3(Code::EVEX_Vfnmadd213pd_zmm_k1z_zmm_zmmm512b64_er, next, y, half);
            self.a.op3(Code::EVEX_Vfmadd213pd_zmm_k1z_zmm_zmmm512b64_er, next, y, y);
        }
        // Of zeros, infinities and what has no root the guess is right, and steps make a NaN.
        self.a.op3i(Code::EVEX_Vcmppd_kr_k1_zmm_zmmm512b64_imm8_sae, K7, second, second, UNORDERED);
        self.a.op2(load_code(Ty::B64), Out::masked(second, K7), guess);
        second
    }

    /// Canonical NaNs, flushing and clamping of the `.f32` in vector 4.
    fn finish_float(&mut self, m: FMode, out: Out) {
        self.canonical(Ty::B32, zmm(4).into());
        if m.ftz {
            self.flush(zmm(4).into());
        }
        self.copy(Ty::B32, out, zmm(4).into());
    }

    /// `div.approx.f32`: the reciprocal of a divisor above 2^126 counts as zero.
    fn divide_roughly(&mut self, m: FMode, q: usize, src: &[Src], out: Out) {
        let [a, b] =
            [0, 1].map(|i| if m.ftz { self.flushed(&src[i], q, i as u8) } else { self.reg(&src[i], q, i as u8) });
        self.a.op3(Code::EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er, zmm(4), a, b);
        let c = self.constant(Ty::B32, 0x7fff_ffff);
        self.a.op3(AND, zmm(5), b, c);
        // As integers: above 2^126, and finite.
        let low = self.constant(Ty::B32, u64::from(2f32.powi(126).to_bits()));
        self.a.op3i(Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8, K7, zmm(5), low, 6);
        let high = self.constant(Ty::B32, 0x7f80_0000);
        self.a.op3i(Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8, Out::masked(K7, K7), zmm(5), high, 1);
        let c = self.constant(Ty::B32, 0x8000_0000);
        self.a.op3(AND, zmm(5), b, c);
        self.a.op3(Code::EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er, Out::masked(zmm(4), K7), a, zmm(5));
        self.finish_float(m, out);
    }
}
