//! Conversions to and from floats of at most 16 bits that no instruction of the host makes. Their codes are made as integers.
//!
//! A number is rounded to a format whose exponents are those of `.f32` by adding to its bits, to another one by adding the power of two whose last place is
//! that of the result: the host's addition rounds once, also where the result is subnormal, and the last bits of the sum are the significand. What is wider
//! than `.f32` is rounded to odd first (see `half`).
//!
//! Floats of at most 8 bits are widened two at a time in lanes of 16 bits: fraction and exponent move to their places, and a table has subnormal numbers,
//! which are below what that gives.

use handloom_ir::num::format::{Format, Rounder, narrow};
use handloom_ir::simt::Cvt;
use handloom_ir::types::{Rounding, ScalarType, Ty};
use iced_x86::{Code, Register, RoundingControl};

use crate::asm::{Mem, Out};
use crate::emit::*;
use crate::half::Half;
use crate::table::{integer, rounding_number};
use crate::values::{At, Src, load_code, store_code};

use Code::{
    EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er as ADD_FLOATS, EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32 as ADD,
    EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32 as AND, EVEX_Vpandnd_zmm_k1z_zmm_zmmm512b32 as AND_NOT,
    EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32 as MOST_S, EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32 as MOST,
    EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32 as LEAST, EVEX_Vpord_zmm_k1z_zmm_zmmm512b32 as OR,
    EVEX_Vpshufb_zmm_k1z_zmm_zmmm512 as BYTES, EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8 as LEFT,
    EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8 as SIGNED_RIGHT, EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8 as RIGHT,
    EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32 as SUB, EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8 as TERNARY,
    EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32 as XOR,
};
/// On halves of words.
mod halves {
    pub(super) use iced_x86::Code::{
        EVEX_Vpaddw_zmm_k1z_zmm_zmmm512 as ADD, EVEX_Vpmaxuw_zmm_k1z_zmm_zmmm512 as MOST,
        EVEX_Vpminub_zmm_k1z_zmm_zmmm512 as LEAST_BYTES, EVEX_Vpminuw_zmm_k1z_zmm_zmmm512 as LEAST,
        EVEX_Vpsllw_zmm_k1z_zmmm512_imm8 as LEFT, EVEX_Vpsraw_zmm_k1z_zmmm512_imm8 as SIGNED_RIGHT,
        EVEX_Vpsrlw_zmm_k1z_zmmm512_imm8 as RIGHT, EVEX_Vpsubusw_zmm_k1z_zmm_zmmm512 as SUB_TO_ZERO,
        EVEX_Vpsubw_zmm_k1z_zmm_zmmm512 as SUB,
    };
}
/// `a | b & c`.
const OR_AND: u32 = 0xf8;
/// `a ? c : b`.
const REPLACE: u32 = 0xac;
const K7: Register = Register::K7;
const SIZE: u64 = 0x7fff_ffff;

/// A format to round to, with what becomes of results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    format: &'static Format,
    round: Rounding,
    satfinite: bool,
    sat: bool,
    relu: bool,
}

/// Elements of a packed source or result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Elements {
    format: &'static Format,
    /// Bits from one to the next.
    step: u32,
    count: usize,
}

/// What one value is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    F32,
    F64,
    Half(Half),
    Int { bits: u32, signed: bool },
}

/// What a conversion is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Small {
    /// Of `.f32`, a source for each element, and random bits after them where the rounding has them.
    Narrow { to: Target, of: Elements },
    /// Of a pair of 16-bit floats.
    NarrowPair { from: Half, to: Target, of: Elements },
    /// Of a pair of floats of at most 8 bits.
    WidenPair { of: Elements, to: Half },
    /// To exponents, of `.f32` or of a pair of `.bf16`.
    Powers { is_pair: bool },
    /// Of exponents to a pair of `.bf16`.
    FromPowers,
    /// To one 16-bit float.
    ToHalf { from: Origin, to: Target },
    /// To `.f32`, of that itself or of a 16-bit float.
    ToF32(Origin),
    /// To `.f64`, of a 16-bit float.
    ToF64(Half),
    /// Between integers.
    Integers,
    /// To fixed point, of two `.f32` or of a pair of `.bf16`, with scales.
    ToFixed,
    /// Of fixed point to a pair of `.bf16`, with scales.
    OfFixed { to: Target },
}

fn elements(ty: ScalarType) -> Option<Elements> {
    use ScalarType::*;
    let (format, step, count) = match ty {
        F16 => (&Format::F16, 16, 1),
        BF16 => (&Format::BF16, 16, 1),
        TF32 => (&Format::TF32, 32, 1),
        F16x2 => (&Format::F16, 16, 2),
        BF16x2 => (&Format::BF16, 16, 2),
        E4M3x2 => (&Format::E4M3, 8, 2),
        E5M2x2 => (&Format::E5M2, 8, 2),
        E2M3x2 => (&Format::E2M3, 8, 2),
        E3M2x2 => (&Format::E3M2, 8, 2),
        E2M1x2 => (&Format::E2M1, 4, 2),
        E4M3x4 => (&Format::E4M3, 8, 4),
        E5M2x4 => (&Format::E5M2, 8, 4),
        E2M3x4 => (&Format::E2M3, 8, 4),
        E3M2x4 => (&Format::E3M2, 8, 4),
        E2M1x4 => (&Format::E2M1, 4, 4),
        _ => return None,
    };
    Some(Elements { format, step, count })
}

/// Whether exponents of a format are those of `.f32`.
fn is_long(f: &Format) -> bool {
    f.least_exponent == Format::F32.least_exponent
}

fn is_f16(f: &Format) -> bool {
    *f == Format::F16
}

impl Target {
    fn of(c: Cvt, format: &'static Format) -> Option<Target> {
        let fits = match c.round {
            Rounding::Nearest | Rounding::Stochastic => true,
            Rounding::NearestAway => is_long(format),
            Rounding::Zero | Rounding::Down | Rounding::Up => is_long(format) || is_f16(format),
        };
        let Cvt { round, satfinite, sat, relu, .. } = c;
        fits.then_some(Target { format, round, satfinite, sat, relu })
    }
}

/// What a conversion is, if there is code for it.
pub(crate) fn small(c: Cvt) -> Option<Small> {
    use ScalarType::{BF16, BF16x2, F16, F16x2, F32, F64, S2F6x2, UE8M0x2};
    let half = |ty| match ty {
        F16 | F16x2 => Some(Half::F16),
        BF16 | BF16x2 => Some(Half::Bf16),
        _ => None,
    };
    let is_exact = !c.ftz && !c.sat && c.round == Rounding::Nearest;
    let is_random = c.round == Rounding::Stochastic;
    match (c.from, c.to) {
        (F32 | BF16x2, UE8M0x2) => {
            (matches!(c.round, Rounding::Zero | Rounding::Up)).then_some(Small::Powers { is_pair: c.from == BF16x2 })
        }
        (F32 | BF16x2, S2F6x2) => is_exact.then_some(Small::ToFixed),
        (S2F6x2, BF16x2) if is_exact => Some(Small::OfFixed { to: Target::of(c, &Format::BF16)? }),
        (UE8M0x2, BF16x2) => is_exact.then_some(Small::FromPowers),
        (F32 | F16 | BF16, F32) => {
            let fits = !is_random && c.round != Rounding::NearestAway && !c.satfinite && !c.sat;
            let from = half(c.from).map_or(Origin::F32, Origin::Half);
            fits.then_some(Small::ToF32(from))
        }
        (F16 | BF16, F64) => (!c.sat && !c.relu).then_some(Small::ToF64(half(c.from)?)),
        (F32, to) => {
            let of = elements(to)?;
            let to = Target::of(c, of.format)?;
            // The bits of a single number are not shared out.
            (!is_random || of.count > 1).then_some(Small::Narrow { to, of })
        }
        (F16x2 | BF16x2, to) if !is_random && !c.ftz => {
            let of = elements(to)?;
            let to = Target::of(c, of.format)?;
            let from = half(c.from)?;
            (of.count == 2).then_some(Small::NarrowPair { from, to, of })
        }
        (from, F16x2 | BF16x2) if is_exact => {
            let of = elements(from)?;
            let is_small = of.format.sign < 8 && of.count == 2;
            is_small.then_some(Small::WidenPair { of, to: half(c.to)? })
        }
        (from, F16 | BF16) if !is_random && c.round != Rounding::NearestAway && !c.ftz => {
            let to = Target::of(c, elements(c.to)?.format)?;
            let from = match (from, integer(from)) {
                (F64, _) => Origin::F64,
                (F16 | BF16, _) => Origin::Half(half(from)?),
                (_, found) => found.map(|(bits, signed)| Origin::Int { bits, signed })?,
            };
            Some(Small::ToHalf { from, to })
        }
        (from, to) => (integer(from).is_some() && integer(to).is_some()).then_some(Small::Integers),
    }
}

impl Emit<'_> {
    /// A part of such a conversion.
    pub(crate) fn small(&mut self, c: Cvt, kind: Small, q: usize, src: &[Src], out: Out) {
        match kind {
            Small::Narrow { to, of } => self.narrow_words(c, to, of, q, src, out),
            Small::NarrowPair { from, to, of } => {
                let s = self.kept(&src[0], q);
                for upper in [true, false] {
                    self.element(&s, q, 0, true, upper);
                    self.widen_half(from, zmm(0));
                    self.narrow_to(to, zmm(0), None);
                    self.put_element(of.step, upper, !upper, out);
                }
            }
            Small::WidenPair { of, to } => self.widen_pair(c, of, to, q, &src[0], out),
            Small::Powers { is_pair } => {
                let s = if is_pair { vec![self.kept(&src[0], q)] } else { src.to_vec() };
                for upper in [true, false] {
                    let r = if is_pair {
                        self.element(&s[0], q, 0, true, upper);
                        self.widen_half(Half::Bf16, zmm(0));
                        zmm(0)
                    } else {
                        let i = u8::from(!upper);
                        let s = &s[usize::from(i)];
                        if c.ftz { self.flushed(s, q, i) } else { self.reg(s, q, i) }
                    };
                    self.exponent(c, r);
                    self.put_element(8, upper, !upper, out);
                }
            }
            Small::FromPowers => self.powers_to_pair(q, &src[0], out),
            Small::ToHalf { from, to } => {
                self.as_f32(from, q, &src[0]);
                if c.integral && c.from == c.to {
                    self.integral(c.round);
                }
                self.narrow_to(to, zmm(0), None);
                self.copy(Ty::B32, out, zmm(4).into());
            }
            Small::ToF32(from) => self.single(c, from, q, &src[0], out),
            Small::ToF64(half) => {
                self.element(&src[0], q / 2, 0, false, false);
                self.widen_half(half, zmm(0));
                let r = self.half_of(zmm(0), q, 1);
                self.a.op2(Code::EVEX_Vcvtps2pd_zmm_k1z_ymmm256b32_sae, out, ymm(r));
                self.canonical(Ty::B64, out);
            }
            Small::ToFixed => self.make_fixed(c, q, src, out),
            Small::OfFixed { to } => {
                let src = [self.kept(&src[0], q), src[1]];
                for upper in [true, false] {
                    self.fixed_as_f32(q, &src, upper);
                    self.narrow_to(to, zmm(0), None);
                    self.put_element(16, upper, !upper, out);
                }
            }
            Small::Integers => self.clamp_integers(c, q, &src[0], out),
        }
    }

    /// Puts the element in vector 4 below those in vector 7.
    pub(crate) fn put_element(&mut self, step: u32, is_first: bool, is_last: bool, out: Out) {
        if is_first {
            self.a.op2i(LEFT, zmm(7), zmm(4), step);
        } else if is_last {
            self.a.op3(OR, out, zmm(7), zmm(4));
        } else {
            self.a.op3(OR, zmm(7), zmm(7), zmm(4));
            self.a.op2i(LEFT, zmm(7), zmm(7), step);
        }
    }

    fn narrow_words(&mut self, c: Cvt, to: Target, of: Elements, q: usize, src: &[Src], out: Out) {
        // Of more sources than there are vectors for sources, none stays in those.
        let src: Vec<Src> = if of.count > 2 { src.iter().map(|s| self.kept(s, q)).collect() } else { src.to_vec() };
        let random = src.get(of.count).map(|bits| self.random_bits(of, q, bits));
        for (i, s) in src[..of.count].iter().enumerate() {
            let at = if of.count > 2 { 0 } else { i as u8 };
            let x = if c.ftz { self.flushed(s, q, at) } else { self.reg(s, q, at) };
            if let Some([bits, turned]) = random {
                // Elements 0 and 2 take their bits as they are, of four the others reversed.
                let number = of.count - 1 - i;
                let from = if of.count == 4 && number % 2 == 1 { turned } else { bits };
                self.a.op2(load_code(Ty::B32), zmm(3), ctx(from));
                // Reversed, the halves have changed places.
                let upper = (number / of.count.div_ceil(2).min(2) == 1) != (from == turned && of.count == 4);
                if upper {
                    self.a.op2i(RIGHT, zmm(3), zmm(3), 16);
                }
                let kept = self.constant(Ty::B32, (1 << random_count(of.format)) - 1);
                self.a.op3(AND, zmm(3), zmm(3), kept);
            }
            self.narrow_to(to, x, random.map(|_| zmm(3)));
            if of.count == 1 {
                self.copy(Ty::B32, out, zmm(4).into());
            } else {
                self.put_element(of.step, i == 0, i + 1 == of.count, out);
            }
        }
    }

    /// Rows of random bits, as they are shared out, and reversed.
    fn random_bits(&mut self, of: Elements, q: usize, bits: &Src) -> [u32; 2] {
        let rows = self.take_scratch(256);
        let (given, turned) = (zmm(4), zmm(5));
        let r = self.reg(bits, q, 2);
        self.a.op2(load_code(Ty::B32), given, r);
        if of.count == 4 && of.step == 4 {
            // Each pair has two bytes that are not neighbours.
            let order = self.a.bytes(std::array::from_fn(|i| (i % 16 / 4 * 4 + [0, 2, 1, 3][i % 4]) as u8));
            self.a.op3(BYTES, given, given, Mem::constant(order, 0));
        }
        self.a.store(store_code(Ty::B32), ctx(rows), given, ALL);
        if of.count == 4 {
            let s = Src::new(At::Given(given), Ty::B32);
            self.reversed(Ty::B32, 0, &[s], turned.into());
            self.a.store(store_code(Ty::B32), ctx(rows + 128), turned, ALL);
        }
        [rows, rows + 128]
    }

    /// A word for each lane as operand.
    fn word(&mut self, x: u32) -> Mem {
        self.constant(Ty::B32, x.into())
    }

    /// The same 16 bits in both halves of each lane.
    fn twice(&mut self, x: u16) -> Mem {
        self.word(u32::from(x) << 16 | u32::from(x))
    }

    /// Rounds the `.f32` in a register to a format: its code with the sign in vector 4. Uses vectors 5 and 6.
    fn narrow_to(&mut self, t: Target, x: Register, random: Option<Register>) {
        let f = t.format;
        let (code, y) = (zmm(4), zmm(5));
        if is_f16(f) && random.is_none() {
            let round = rounding_number(t.round);
            self.f16_of_lanes(code, x, round);
            let size = self.word(0x7fff);
            self.a.op3(AND, code, code, size);
        } else if is_long(f) {
            self.round_bits(t, x, random);
        } else {
            self.round_sum(t, x, random);
        }
        if t.satfinite {
            let most = self.word(f.max as u32);
            self.a.op3(LEAST, code, code, most);
        }
        if t.sat {
            let one = self.word(f.one() as u32);
            self.a.op3(LEAST, code, code, one);
        }
        if t.sat || t.relu {
            self.a.op2i(SIGNED_RIGHT, y, x, 31);
            self.a.op3(AND_NOT, code, y, code);
        } else {
            self.a.op2i(RIGHT, y, x, 31 - f.sign);
            let sign = self.word(1 << f.sign);
            self.a.op3i(TERNARY, code, y, sign, OR_AND);
        }
        self.a.op3i(Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae, K7, x, x, 3);
        let nan = self.word(if t.sat { 0 } else { f.nan.unwrap_or(f.max) as u32 });
        self.a.op2(load_code(Ty::B32), Out::masked(code, K7), nan);
        if f.padding > 0 {
            self.a.op2i(LEFT, code, code, f.padding);
        }
    }

    /// The size of a number in a format whose exponents are those of `.f32`: a carry moves the exponent by itself, up to infinity.
    fn round_bits(&mut self, t: Target, x: Register, random: Option<Register>) {
        let (code, y) = (zmm(4), zmm(5));
        let cut = 23 - t.format.fraction;
        let rest = (1 << cut) - 1;
        let size = self.word(SIZE as u32);
        self.a.op3(AND, code, x, size);
        match t.round {
            Rounding::Zero => {}
            Rounding::Nearest => {
                // Half of the last place, less one bit if that is even.
                self.a.op2i(RIGHT, y, x, cut);
                let one = self.word(1);
                self.a.op3(AND, y, y, one);
                self.a.op3(ADD, code, code, y);
                let most = self.word(rest >> 1);
                self.a.op3(ADD, code, code, most);
            }
            Rounding::NearestAway => {
                let half = self.word(rest / 2 + 1);
                self.a.op3(ADD, code, code, half);
            }
            Rounding::Down | Rounding::Up => {
                self.a.op2i(SIGNED_RIGHT, y, x, 31);
                let rest = self.word(rest);
                self.a.op3(if t.round == Rounding::Up { AND_NOT } else { AND }, y, y, rest);
                self.a.op3(ADD, code, code, y);
            }
            Rounding::Stochastic => {
                // As many random bits as are dropped.
                if let Some(random) = random {
                    self.a.op3(ADD, code, code, random);
                }
            }
        }
        self.a.op2i(RIGHT, code, code, cut);
    }

    /// The size of a number in another format, to nearest or by random bits.
    fn round_sum(&mut self, t: Target, x: Register, random: Option<Register>) {
        let f = t.format;
        let (code, scale, y) = (zmm(4), zmm(5), zmm(6));
        let cut = 23 - f.fraction;
        let least = (f.least_exponent + 127).cast_unsigned();
        // What is above the greatest number stays so, but has an exponent that leaves room.
        let beyond = (f.max >> f.fraction) as u32 + least;
        let size = self.word(SIZE as u32);
        self.a.op3(AND, code, x, size);
        let limit = self.word(beyond << 23);
        self.a.op3(LEAST, code, code, limit);
        let exponent = self.word(0x7f80_0000);
        self.a.op3(AND, scale, code, exponent);
        if let Some(random) = random {
            // What is dropped moves so that the random bits are at its top.
            let n = random_count(f);
            self.a.op2(load_code(Ty::B32), y, scale);
            let low = self.word(least << 23);
            self.a.op3(MOST, scale, scale, low);
            self.a.op3(SUB, y, scale, y);
            self.a.op2i(RIGHT, y, y, 23);
            if cut > n {
                let by = self.word(cut - n);
                self.a.op3(ADD, y, y, by);
            }
            let fraction = self.word(0x007f_ffff);
            self.a.op3(AND, code, code, fraction);
            let one = self.word(0x0080_0000);
            self.a.op3(OR, code, code, one);
            self.a.op3(Code::EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32, code, code, y);
            self.a.op3(ADD, code, code, random);
            self.a.op2i(RIGHT, code, code, n);
        } else {
            let low = self.word(least << 23);
            self.a.op3(MOST, scale, scale, low);
            let up = self.word(cut << 23);
            self.a.op3(ADD, y, scale, up);
            self.a.op3(ADD_FLOATS, code, code, y);
            self.a.op3(SUB, code, code, y);
        }
        self.a.op2i(RIGHT, scale, scale, cut);
        self.a.op3(ADD, code, code, scale);
        let low = self.word(least << f.fraction);
        self.a.op3(SUB, code, code, low);
        if !t.satfinite {
            let most = self.word(f.inf.or(f.nan).unwrap_or(f.max) as u32);
            self.a.op3(LEAST, code, code, most);
        }
    }

    /// The exponent of a number without its sign, in vector 4.
    fn exponent(&mut self, c: Cvt, x: Register) {
        let (code, size) = (zmm(4), zmm(5));
        let kept = self.word(SIZE as u32);
        self.a.op3(AND, size, x, kept);
        if c.round == Rounding::Up {
            let rest = self.word(0x007f_ffff);
            self.a.op3(ADD, code, size, rest);
            self.a.op2i(RIGHT, code, code, 23);
            // 2^-127 is a subnormal number, and the least exponent is for all up to it.
            let least = self.word(0x0040_0000);
            self.a.op3i(Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8, K7, size, least, 2);
            self.a.op3(XOR, Out::masked(code, K7), code, code);
        } else {
            self.a.op2i(RIGHT, code, size, 23);
        }
        let most = self.word(if c.satfinite { 0xfe } else { 0xff });
        self.a.op3(LEAST, code, code, most);
        self.a.op3i(Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae, K7, x, x, 3);
        let nan = self.word(0xff);
        self.a.op2(load_code(Ty::B32), Out::masked(code, K7), nan);
    }

    fn powers_to_pair(&mut self, q: usize, s: &Src, out: Out) {
        let (code, r, zero) = (zmm(4), zmm(5), zmm(6));
        let a = self.reg(s, q, 0);
        let places = self
            .a
            .bytes(std::array::from_fn(|i| [(i % 16 / 4 * 4) as u8, 0x80, (i % 16 / 4 * 4 + 1) as u8, 0x80][i % 4]));
        self.a.op3(BYTES, code, a, Mem::constant(places, 0));
        self.a.op2i(halves::LEFT, r, code, 7);
        // 2^-127 is a subnormal number, and the last code is NaN.
        let least = self.twice(0x40);
        self.a.op3(halves::MOST, r, r, least);
        let last = self.twice(0xfe);
        self.a.op3(halves::SUB_TO_ZERO, code, code, last);
        self.a.op3(XOR, zero, zero, zero);
        self.a.op3(halves::SUB, code, zero, code);
        let nan = self.twice(0x7fff);
        self.a.op3i(TERNARY, r, code, nan, OR_AND);
        self.copy(Ty::B32, out, r.into());
    }

    /// Two floats of at most 8 bits to 16 bits each.
    fn widen_pair(&mut self, c: Cvt, of: Elements, to: Half, q: usize, s: &Src, out: Out) {
        let from = of.format;
        let wide: &Format = if to == Half::F16 { &Format::F16 } else { &Format::BF16 };
        let (code, size, r, t, other) = (zmm(4), zmm(5), zmm(6), zmm(3), zmm(7));
        let a = self.reg(s, q, 0);
        // Codes in the upper byte of each half.
        if of.step == 8 {
            let places = self.a.bytes(std::array::from_fn(|i| {
                [0x80, (i % 16 / 4 * 4) as u8, 0x80, (i % 16 / 4 * 4 + 1) as u8][i % 4]
            }));
            self.a.op3(BYTES, code, a, Mem::constant(places, 0));
        } else {
            self.a.op2i(LEFT, r, a, 20);
            self.a.op2i(LEFT, code, a, 8);
            let low = self.word(0x0f00);
            self.a.op3(AND, code, code, low);
            let high = self.word(0x0f00_0000);
            self.a.op3i(TERNARY, code, r, high, OR_AND);
        }
        let kept = self.twice(((1 << from.sign) - 1) << 8);
        self.a.op3(AND, size, code, kept);
        // Subnormal numbers by a table of their bytes; others find the greatest byte.
        let subnormal = |i: usize| {
            let value = i as f64 * 2f64.powi(from.least_exponent - from.fraction.cast_signed());
            narrow(wide, value, Rounder::new(Rounding::Nearest), false)
        };
        let count = 1 << from.fraction;
        let high = |i: usize| if i < count { (subnormal(i) >> 8) as u8 } else { 0xff };
        let low = |i: usize| if i < count { subnormal(i) as u8 } else { 0 };
        let most = self.twice(0x0f00);
        self.a.op3(halves::LEAST_BYTES, r, size, most);
        let table = self.a.bytes(std::array::from_fn(|i| high(i % 16)));
        self.a.op2(load_code(Ty::B32), t, Mem::constant(table, 0));
        if (0..count).all(|i| low(i) == 0) {
            self.a.op3(BYTES, r, t, r);
        } else {
            self.a.op3(BYTES, other, t, r);
            self.a.op2i(halves::RIGHT, r, r, 8);
            let table = self.a.bytes(std::array::from_fn(|i| low(i % 16)));
            self.a.op2(load_code(Ty::B32), t, Mem::constant(table, 0));
            self.a.op3(BYTES, r, t, r);
            self.a.op3(OR, r, r, other);
        }
        // Exponent and fraction at their places.
        let by = wide.fraction.cast_signed() - from.fraction.cast_signed() - 8;
        let shift = if by < 0 { halves::RIGHT } else { halves::LEFT };
        let moved = if by == 0 {
            size
        } else {
            self.a.op2i(shift, t, size, by.unsigned_abs());
            t
        };
        let bias = (from.least_exponent - wide.least_exponent).cast_unsigned() << wide.fraction;
        let bias = self.twice(bias as u16);
        self.a.op3(halves::ADD, t, moved, bias);
        self.a.op3(halves::LEAST, r, r, t);
        if let Some(infinite) = from.inf {
            let found = if c.satfinite { wide.max } else { wide.inf.unwrap_or(wide.max) };
            self.above(infinite - 1, size, t);
            let found = self.twice(found as u16);
            self.a.op3i(TERNARY, t, r, found, REPLACE);
            self.a.op2(load_code(Ty::B32), r, t);
        }
        if from.sign < 7 {
            self.a.op2i(halves::LEFT, code, code, 7 - from.sign);
        }
        if c.relu {
            self.a.op2i(halves::SIGNED_RIGHT, code, code, 15);
            self.a.op3(AND_NOT, r, code, r);
        } else {
            let sign = self.twice(0x8000);
            self.a.op3i(TERNARY, r, code, sign, OR_AND);
        }
        if from.nan.is_some() {
            self.above(from.last_number(), size, t);
            let nan = self.twice(0x7fff);
            self.a.op3i(TERNARY, t, r, nan, REPLACE);
            self.copy(Ty::B32, out, t.into());
        } else {
            self.copy(Ty::B32, out, r.into());
        }
    }

    /// Ones in halves whose upper byte is above a number. Uses vector 7.
    fn above(&mut self, code: u64, size: Register, to: Register) {
        let zero = zmm(7);
        let last = self.twice((code << 8) as u16);
        self.a.op3(halves::SUB_TO_ZERO, to, size, last);
        let one = self.twice(1);
        self.a.op3(halves::LEAST, to, to, one);
        self.a.op3(XOR, zero, zero, zero);
        self.a.op3(halves::SUB, to, zero, to);
    }

    /// A value as `.f32`, exactly or rounded to odd, in vector 0.
    fn as_f32(&mut self, from: Origin, q: usize, s: &Src) {
        let x = zmm(0);
        match from {
            Origin::F32 => {
                let r = self.reg(s, q, 0);
                self.copy(Ty::B32, x.into(), r.into());
            }
            Origin::Half(half) => {
                self.element(s, q, 0, false, false);
                self.widen_half(half, x);
            }
            Origin::Int { bits, signed } if bits < 32 => {
                let r = self.reg(s, q, 0);
                self.a.op2i(LEFT, zmm(4), r, 32 - bits);
                self.a.op2i(if signed { SIGNED_RIGHT } else { RIGHT }, zmm(4), zmm(4), 32 - bits);
                self.a.op2(Code::EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er, x, zmm(4));
            }
            Origin::Int { bits: 32, signed } => {
                let code = if signed {
                    Code::EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er
                } else {
                    Code::EVEX_Vcvtudq2ps_zmm_k1z_zmmm512b32_er
                };
                let r = self.reg(s, q, 0);
                self.a.op2r(code, zmm(1), r, RoundingControl::RoundDown);
                self.a.op2r(code, zmm(2), r, RoundingControl::RoundUp);
                self.odd_one();
            }
            Origin::Int { signed, .. } => {
                self.both_ways(
                    if signed {
                        Code::EVEX_Vcvtqq2ps_ymm_k1z_zmmm512b64_er
                    } else {
                        Code::EVEX_Vcvtuqq2ps_ymm_k1z_zmmm512b64_er
                    },
                    q,
                    s,
                );
            }
            Origin::F64 => self.both_ways(Code::EVEX_Vcvtpd2ps_ymm_k1z_zmmm512b64_er, q, s),
        }
    }

    fn both_ways(&mut self, code: Code, q: usize, s: &Src) {
        self.halves_as(code, q, s, RoundingControl::RoundDown, zmm(1).into());
        self.halves_as(code, q, s, RoundingControl::RoundUp, zmm(2).into());
        self.odd_one();
    }

    /// Of results in both directions the odd one, in vector 0.
    fn odd_one(&mut self) {
        let one = self.word(1);
        self.a.op3(Code::EVEX_Vptestmd_kr_k1_zmm_zmmm512b32, K7, zmm(1), one);
        self.a.op2(load_code(Ty::B32), Out::masked(zmm(2), K7), zmm(1));
        self.a.op2(load_code(Ty::B32), zmm(0), zmm(2));
    }

    /// Makes vector 0 integral.
    fn integral(&mut self, round: Rounding) {
        let code = Code::EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae;
        self.a.op2i(code, zmm(0), zmm(0), 8 | rounding_number(round));
    }

    fn single(&mut self, c: Cvt, from: Origin, q: usize, s: &Src, out: Out) {
        self.as_f32(from, q, s);
        let x = zmm(0);
        if c.ftz {
            self.flush(x.into());
        }
        if c.integral && c.from == c.to {
            self.integral(c.round);
        }
        self.canonical(Ty::B32, x.into());
        if c.relu {
            self.a.op3(XOR, zmm(4), zmm(4), zmm(4));
            self.a.op3(MOST_S, out, x, zmm(4));
        } else {
            self.copy(Ty::B32, out, x.into());
        }
    }
}

/// How many random bits a number takes.
fn random_count(f: &Format) -> u32 {
    if is_f16(f) { 13 } else { 16 }
}
