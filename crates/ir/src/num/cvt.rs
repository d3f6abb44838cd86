//! Conversions between all types of `cvt`.
//!
//! Every element is read exactly, as an integer or as an `f64`, and written with one rounding. Packed types are
//! converted element by element: sources of their own fill the destination from the top, a packed source keeps its
//! places.
//!
//! # PTX ISA
//! Data Movement and Conversion Instructions: cvt.

use crate::simt::Cvt;
use crate::types::{Rounding, ScalarType};

use super::format::{Format, Rounder, encode, narrow, power_of_two, widen};
use super::int::{range, sext};

/// What the bits of an element mean.
#[derive(Clone, Copy)]
enum Kind {
    /// An integer; predicates and untyped bits count as unsigned.
    Int { bits: u32, signed: bool },
    /// A float.
    Float(&'static Format),
    /// A power of two without sign.
    Ue8m0,
    /// A signed byte in units of 1/64.
    S2f6,
}

/// How a type is made of elements: their meaning, and the distance in bits from one to the next.
#[inline]
const fn shape(ty: ScalarType) -> (Kind, u32) {
    use ScalarType::*;
    const fn int(bits: u32, signed: bool) -> Kind {
        Kind::Int { bits, signed }
    }
    match ty {
        Pred => (int(1, false), 1),
        B8 | U8 => (int(8, false), 8),
        B16 | U16 => (int(16, false), 16),
        B32 | U32 => (int(32, false), 32),
        // No conversion takes `.b128`; it reads as its lower half.
        B64 | U64 | B128 => (int(64, false), 64),
        S8 => (int(8, true), 8),
        S16 => (int(16, true), 16),
        S32 => (int(32, true), 32),
        S64 => (int(64, true), 64),
        U16x2 => (int(16, false), 16),
        S16x2 => (int(16, true), 16),
        U8x4 => (int(8, false), 8),
        S8x4 => (int(8, true), 8),
        U4x8 => (int(4, false), 4),
        S4x8 => (int(4, true), 4),
        F16 => (Kind::Float(&Format::F16), 16),
        F16x2 => (Kind::Float(&Format::F16), 16),
        BF16 => (Kind::Float(&Format::BF16), 16),
        BF16x2 => (Kind::Float(&Format::BF16), 16),
        F32 => (Kind::Float(&Format::F32), 32),
        F32x2 => (Kind::Float(&Format::F32), 32),
        F64 => (Kind::Float(&Format::F64), 64),
        TF32 => (Kind::Float(&Format::TF32), 32),
        E4M3 => (Kind::Float(&Format::E4M3), 8),
        E5M2 => (Kind::Float(&Format::E5M2), 8),
        E4M3x2 => (Kind::Float(&Format::E4M3), 8),
        E5M2x2 => (Kind::Float(&Format::E5M2), 8),
        E2M3x2 => (Kind::Float(&Format::E2M3), 8),
        E3M2x2 => (Kind::Float(&Format::E3M2), 8),
        E2M1x2 => (Kind::Float(&Format::E2M1), 4),
        UE8M0x2 => (Kind::Ue8m0, 8),
        S2F6x2 => (Kind::S2f6, 8),
        E4M3x4 => (Kind::Float(&Format::E4M3), 8),
        E5M2x4 => (Kind::Float(&Format::E5M2), 8),
        E2M3x4 => (Kind::Float(&Format::E2M3), 8),
        E3M2x4 => (Kind::Float(&Format::E3M2), 8),
        E2M1x4 => (Kind::Float(&Format::E2M1), 4),
    }
}

/// Converts. The sources are those of `Pure::sources`; a scale that is left out is one.
#[inline]
pub fn cvt(c: Cvt, src: &[u64]) -> u64 {
    let ((from, from_step), from_count) = (shape(c.from), c.from.elements());
    let ((to, to_step), to_count) = (shape(c.to), c.to.elements());
    if to_count == 1 {
        let random = if matches!(c.round, Rounding::Stochastic) { src[1] } else { 0 };
        return element(c, from, to, src[0], random_bits(c, 0, random), 127);
    }
    // Sources of their own: the first goes to the top. A packed source: all elements are in it.
    let own_sources = from_count == 1;
    let extra = src.get(if own_sources { to_count as usize } else { 1 }).copied();
    let scales = if c.is_scaled() { extra.unwrap_or(0x7f7f) } else { 0x7f7f };
    let mut result = 0;
    for at in 0..to_count {
        let bits = if own_sources {
            src[(to_count - 1 - at) as usize]
        } else {
            src[0] >> (from_step * at) & (u64::MAX >> (64 - from_step))
        };
        let round = random_bits(c, at, extra.unwrap_or(0));
        let scale = (scales >> (8 * (at & 1)) & 0xff) as i32;
        result |= element(c, from, to, bits, round, scale) << (to_step * at);
    }
    result
}

/// The rounding of the element at a place, with its random bits.
///
/// The manual gives the bits of `.f16x2` and `.bf16x2` in words, and of the x4 forms the 16 bits that each pair shares.
// Choice: how a pair of an x4 form shares its 16 bits is only in a figure of the manual. The lower element takes
// them as they are, the upper one in reversed order. That is what public probes of devices of sm_100 report.
#[inline]
fn random_bits(c: Cvt, at: u32, random: u64) -> Rounder {
    if !matches!(c.round, Rounding::Stochastic) {
        return Rounder::new(c.round);
    }
    let half = |at: u32| random >> (16 * at) & 0xffff;
    let byte = |at: u32| random >> (8 * at) & 0xff;
    let (random, random_bits) = match (c.to.elements(), c.to) {
        (1 | 2, ScalarType::F16 | ScalarType::F16x2) => (half(at) & 0x1fff, 13),
        (1 | 2, _) => (half(at), 16),
        (_, to) => {
            let pair = at / 2;
            let shared = if matches!(to, ScalarType::E2M1x4) { byte(pair + 2) << 8 | byte(pair) } else { half(pair) };
            (if at.is_multiple_of(2) { shared } else { shared.reverse_bits() >> 48 }, 16)
        }
    };
    Rounder { mode: c.round, random, random_bits }
}

/// Converts one element. `scale` is the code of a ue8m0 factor of the `.s2f6` conversions.
#[inline]
fn element(c: Cvt, from: Kind, to: Kind, bits: u64, round: Rounder, scale: i32) -> u64 {
    match (from, to) {
        (Kind::Int { bits: width, signed }, Kind::Int { bits: to, signed: to_signed }) => {
            let a = read_int(width, signed, bits);
            let (low, high) = range(to, to_signed);
            (if c.sat { a.clamp(low, high) } else { a }) as u64 & u64::MAX >> (64 - to)
        }
        (Kind::Int { bits: width, signed }, Kind::Float(f)) => {
            let rounded = match (round.mode, f.fraction, signed) {
                (Rounding::Nearest, 52, true) => (sext(bits, width) as f64).to_bits(),
                (Rounding::Nearest, 52, false) => ((bits & u64::MAX >> (64 - width)) as f64).to_bits(),
                (Rounding::Nearest, 23, true) => u64::from((sext(bits, width) as f32).to_bits()),
                (Rounding::Nearest, 23, false) => u64::from(((bits & u64::MAX >> (64 - width)) as f32).to_bits()),
                _ => {
                    let a = read_int(width, signed, bits);
                    encode(f, a < 0, 0, a.unsigned_abs() as u64, round, c.satfinite)
                }
            };
            clamp(c, f, rounded)
        }
        // No form of `cvt` makes these from integers; they take the integer through `f64`.
        (Kind::Int { bits: width, signed }, Kind::Ue8m0) => to_ue8m0(c, read_int(width, signed, bits) as f64),
        (Kind::Int { bits: width, signed }, Kind::S2f6) => {
            to_s2f6(c, read_int(width, signed, bits) as f64, round.mode, scale)
        }
        (from, Kind::Int { bits: to, signed }) => to_int(c, read_float(c, from, bits, scale), to, signed, round.mode),
        (from, Kind::Float(f)) => to_float(c, f, read_float(c, from, bits, scale), round),
        (from, Kind::Ue8m0) => to_ue8m0(c, read_float(c, from, bits, scale)),
        (from, Kind::S2f6) => to_s2f6(c, read_float(c, from, bits, scale), round.mode, scale),
    }
}

#[inline]
fn read_int(bits: u32, signed: bool, a: u64) -> i128 {
    if signed { i128::from(sext(a, bits)) } else { i128::from(a & u64::MAX >> (64 - bits)) }
}

/// The exact value of a float, after flushing an `.f32` source.
#[inline]
fn read_float(c: Cvt, from: Kind, bits: u64, scale: i32) -> f64 {
    match from {
        Kind::Float(f) => match f.fraction {
            52 => f64::from_bits(bits),
            23 => {
                let a = f32::from_bits(bits as u32);
                f64::from(if c.ftz && a.is_subnormal() { 0f32.copysign(a) } else { a })
            }
            _ => widen(f, bits),
        },
        Kind::Ue8m0 => ue8m0(bits as i32 & 0xff),
        Kind::S2f6 => sext(bits, 8) as f64 / 64.0 * ue8m0(scale),
        Kind::Int { bits: width, signed } => read_int(width, signed, bits) as f64,
    }
}

#[inline]
fn ue8m0(code: i32) -> f64 {
    if code == 0xff { f64::NAN } else { power_of_two(code - 127) }
}

/// Rounds to an integral value.
#[inline]
fn integral(a: f64, mode: Rounding) -> f64 {
    match mode {
        Rounding::Nearest => a.round_ties_even(),
        Rounding::NearestAway => a.round(),
        Rounding::Down => a.floor(),
        Rounding::Up => a.ceil(),
        // No form rounds to an integer with random bits.
        Rounding::Zero | Rounding::Stochastic => a.trunc(),
    }
}

/// An integer from a float: rounded, then clamped to the type.
#[inline]
fn to_int(c: Cvt, a: f64, bits: u32, signed: bool, mode: Rounding) -> u64 {
    let mask = u64::MAX >> (64 - bits);
    if a.is_nan() {
        let wide = matches!(c.from, ScalarType::F64) || bits == 64;
        return if wide { 1 << (bits - 1) } else { 0 };
    }
    // Conversion from float to integer saturates in Rust too; narrower types are then clamped as integers.
    let a = integral(a, mode);
    if signed {
        let top = (mask >> 1) as i64;
        (a as i64).clamp(-top - 1, top) as u64 & mask
    } else {
        (a as u64).min(mask)
    }
}

/// A float from a float.
#[inline]
fn to_float(c: Cvt, f: &'static Format, a: f64, round: Rounder) -> u64 {
    let a = if c.integral && c.from == c.to { integral(a, round.mode) } else { a };
    let rounded = match (round.mode, f.fraction) {
        (_, 52) if !a.is_nan() => a.to_bits(),
        (mode, 23) => {
            let rounded = if mode == Rounding::Nearest && !a.is_nan() && !c.satfinite {
                u64::from((a as f32).to_bits())
            } else {
                narrow(f, a, round, c.satfinite)
            };
            if c.ftz && is_tiny(mode, a, rounded) { f.signed(a.is_sign_negative(), 0) } else { rounded }
        }
        _ => narrow(f, a, round, c.satfinite),
    };
    clamp(c, f, rounded)
}

/// Whether an `.f32` result, made of `a`, is one that `.ftz` makes zero.
// Choice: the manual does not say when a result counts as subnormal. What a directed rounding brings to the least normal number is none. To
// nearest, ptxas rounds as if there were no least exponent and looks at that: what is less than a quarter of a place below the least normal
// number becomes that number. An NVIDIA H100 (driver 580.159.04) does so by directed roundings too.
#[inline]
fn is_tiny(mode: Rounding, a: f64, rounded: u64) -> bool {
    const LEAST: f64 = f32::MIN_POSITIVE as f64;
    match mode {
        Rounding::Nearest => a.abs() < LEAST * (1.0 - 1.0 / 33_554_432.0),
        _ => rounded & ((1 << Format::F32.sign) - 1) < 1 << Format::F32.fraction,
    }
}

/// `.sat` and `.relu` of a float result.
// Choice: `.relu` makes +0 of -0 too. The manual leaves NaN with `.relu` open for formats without NaN; it stays the
// greatest number there.
#[inline]
fn clamp(c: Cvt, f: &Format, a: u64) -> u64 {
    if !(c.sat || c.relu) {
        return a;
    }
    let code = a >> f.padding;
    if code >> f.sign & 1 != 0 {
        return 0;
    }
    match (c.sat, code > f.last_number()) {
        (true, true) => 0,
        (true, false) => f.signed(false, code.min(f.one())),
        (false, _) => a,
    }
}

/// The exponent of a float; the sign is dropped.
#[inline]
fn to_ue8m0(c: Cvt, a: f64) -> u64 {
    let bits = a.abs().to_bits();
    if a.is_nan() {
        return 0xff;
    }
    let (exponent, fraction) = ((bits >> 52) as i32 - 1023, bits & ((1 << 52) - 1));
    let up = match c.round {
        Rounding::Up => fraction != 0,
        // Choice: only `.rz` and `.rp` exist. The nearer power, as a number, would be decided at one half of the
        // fraction.
        Rounding::Nearest | Rounding::NearestAway => fraction >= 1 << 51,
        Rounding::Zero | Rounding::Down | Rounding::Stochastic => false,
    };
    // Zero and what lies below 2^-127 become that power, whose code is 0. (An exponent that small stays far below 0,
    // also that of an `f64` subnormal number.)
    let code = (exponent + i32::from(up) + 127).max(0) as u64;
    if code < 0xff {
        code
    } else if c.satfinite {
        0xfe
    } else {
        0xff
    }
}

/// A signed byte in units of 1/64 from a float divided by its scale.
#[inline]
fn to_s2f6(c: Cvt, a: f64, mode: Rounding, scale: i32) -> u64 {
    // The division by a power of two is exact: operands of `.f32` and `.bf16` are far inside the range of `f64`.
    let a = a / ue8m0(scale) * 64.0;
    let byte = if a.is_nan() { 127 } else { integral(a, mode).clamp(-128.0, 127.0) as i64 };
    (if c.relu { byte.max(0) } else { byte }) as u64 & 0xff
}
