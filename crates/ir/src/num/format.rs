//! The float formats and the one rounding routine.
//!
//! [`widen`] returns the value of any format as `f64`, exactly; [`narrow`] and [`encode`] round once into any format.
//!
//! # PTX ISA
//! Alternate Floating-Point Data Formats; Data Movement and Conversion Instructions: cvt.

use crate::types::Rounding;

/// A float format: sign, exponent with the usual bias, fraction, in this order from the top.
///
/// Codes here are bits without the sign. They grow with the magnitude, so `max` is also the limit of finite codes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// Fraction bits.
    pub fraction: u32,
    /// Exponent of the least normal number.
    pub least_exponent: i32,
    /// Code of the greatest finite number.
    pub max: u64,
    /// Code of infinity, in formats that have it.
    pub inf: Option<u64>,
    /// Code of the canonical NaN, in formats that have it.
    pub nan: Option<u64>,
    /// Position of the sign bit.
    pub sign: u32,
    /// Zero bits below the fraction; only tf32, which lives in the bits of an `f32`, has any.
    pub padding: u32,
}

impl Format {
    /// `.f16`.
    pub const F16: Format = Format::ieee(5, 10);
    /// `.bf16`.
    pub const BF16: Format = Format::ieee(8, 7);
    /// `.f32`.
    pub const F32: Format = Format::ieee(8, 23);
    /// `.f64`.
    pub const F64: Format = Format::ieee(11, 52);
    /// `.tf32`.
    // Choice: the manual leaves the layout of tf32 open. The low 13 bits of our results are zero, those of NaN too, and
    // `.satfinite` keeps NaN.
    pub const TF32: Format = Format { padding: 13, ..Format::ieee(8, 10) };
    /// `.e5m2`.
    pub const E5M2: Format = Format::ieee(5, 2);
    /// `.e4m3`: no infinity, one NaN of each sign.
    pub const E4M3: Format = Format { max: 0x7e, inf: None, ..Format::ieee(4, 3) };
    /// `.e2m3`: finite only.
    pub const E2M3: Format = Format::finite(2, 3);
    /// `.e3m2`: finite only.
    pub const E3M2: Format = Format::finite(3, 2);
    /// `.e2m1`: finite only.
    pub const E2M1: Format = Format::finite(2, 1);

    const fn ieee(exponent: u32, fraction: u32) -> Format {
        let ones = (1 << exponent) - 1;
        Format {
            fraction,
            least_exponent: 2 - (1 << (exponent - 1)),
            max: (ones << fraction) - 1,
            inf: Some(ones << fraction),
            nan: Some((1 << (exponent + fraction)) - 1),
            sign: exponent + fraction,
            padding: 0,
        }
    }

    const fn finite(exponent: u32, fraction: u32) -> Format {
        Format { max: (1 << (exponent + fraction)) - 1, inf: None, nan: None, ..Format::ieee(exponent, fraction) }
    }

    /// Code of 1.
    #[inline]
    pub const fn one(&self) -> u64 {
        ((1 - self.least_exponent) as u64) << self.fraction
    }

    /// Greatest code that is a number: infinity where there is one.
    #[inline]
    pub const fn last_number(&self) -> u64 {
        match self.inf {
            Some(inf) => inf,
            None => self.max,
        }
    }

    /// Bits of a code with a sign.
    #[inline]
    pub const fn signed(&self, negative: bool, code: u64) -> u64 {
        (code | (negative as u64) << self.sign) << self.padding
    }
}

/// A rounding modifier, with the random bits of `.rs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rounder {
    /// The modifier.
    pub mode: Rounding,
    /// Random bits; their top is aligned with the top of the discarded bits.
    pub random: u64,
    /// How many random bits there are, at most 32.
    pub random_bits: u32,
}

impl Rounder {
    /// Rounding without random bits. [`Rounding::Stochastic`] then rounds towards zero.
    #[inline]
    pub const fn new(mode: Rounding) -> Rounder {
        Rounder { mode, random: 0, random_bits: 0 }
    }

    /// Whether a number whose discarded bits are `rest`, out of `bits` (1 to 63), goes away from zero.
    #[inline]
    const fn away(self, negative: bool, odd: bool, rest: u64, bits: u32) -> bool {
        let half = 1 << (bits - 1);
        match self.mode {
            Rounding::Nearest => rest > half || (rest == half && odd),
            Rounding::NearestAway => rest >= half,
            Rounding::Zero => false,
            Rounding::Down => negative && rest != 0,
            Rounding::Up => !negative && rest != 0,
            Rounding::Stochastic => {
                let random = if self.random_bits <= bits {
                    self.random << (bits - self.random_bits)
                } else {
                    self.random >> (self.random_bits - bits)
                };
                (rest + random) >> bits != 0
            }
        }
    }

    /// Whether a number above the greatest finite one becomes infinite.
    #[inline]
    const fn overflows(self, negative: bool) -> bool {
        match self.mode {
            Rounding::Nearest | Rounding::NearestAway => true,
            // Choice: the manual says nothing of `.rs` above the greatest number; we overflow as `.rn` does.
            Rounding::Stochastic => true,
            Rounding::Zero => false,
            Rounding::Down => negative,
            Rounding::Up => !negative,
        }
    }
}

/// The number `significand * 2^exponent`, rounded to the format.
///
/// A significand that fills all 64 bits may have its lowest bit set for a non-zero tail below it; every other one is
/// exact. `finite` is `.satfinite`: what overflows becomes the greatest number.
#[inline]
pub fn encode(f: &Format, negative: bool, exponent: i32, significand: u64, round: Rounder, finite: bool) -> u64 {
    if significand == 0 {
        return f.signed(negative, 0);
    }
    let top = exponent + 63 - significand.leading_zeros() as i32;
    let scale = top.max(f.least_exponent);
    // The weight of the last bit kept is 2^(scale - fraction); that many bits of the significand lie below it.
    let discarded = scale - f.fraction as i32 - exponent;
    let rounded = if discarded <= 0 {
        significand << -discarded
    } else {
        let (significand, bits) = if discarded < 64 {
            (significand, discarded as u32)
        } else {
            (jam(significand, discarded as u32 - 63), 63)
        };
        let kept = significand >> bits;
        let rest = significand & ((1 << bits) - 1);
        kept + u64::from(round.away(negative, kept & 1 != 0, rest, bits))
    };
    // `rounded` has its leading one except below the normal numbers, and there the code is `rounded` itself. A carry
    // out of the fraction moves to the next exponent by itself.
    let code = (((scale - f.least_exponent) as u64) << f.fraction) + rounded;
    f.signed(negative, if code > f.max { overflow(f, negative, round, finite) } else { code })
}

/// Shift right, with the lowest bit set when a one was shifted out.
#[inline]
pub(super) const fn jam(a: u64, by: u32) -> u64 {
    if by >= 64 { (a != 0) as u64 } else { (a >> by) | ((a & ((1 << by) - 1)) != 0) as u64 }
}

#[inline]
fn overflow(f: &Format, negative: bool, round: Rounder, finite: bool) -> u64 {
    if finite || !round.overflows(negative) { f.max } else { infinity(f) }
}

/// What a format without infinity has in its place: NaN, else the greatest number.
#[inline]
fn infinity(f: &Format) -> u64 {
    f.inf.or(f.nan).unwrap_or(f.max)
}

/// Rounds an `f64` to the format. NaN becomes the canonical one, or the greatest number where there is none.
#[inline]
pub fn narrow(f: &Format, a: f64, round: Rounder, finite: bool) -> u64 {
    let bits = a.to_bits();
    let negative = bits >> 63 != 0;
    let field = (bits >> 52) as i32 & 0x7ff;
    let fraction = bits & ((1 << 52) - 1);
    match field {
        0x7ff if fraction != 0 => f.signed(false, f.nan.unwrap_or(f.max)),
        0x7ff => f.signed(negative, if finite { f.max } else { infinity(f) }),
        0 => encode(f, negative, -1074, fraction, round, finite),
        _ => encode(f, negative, field - 1075, fraction | 1 << 52, round, finite),
    }
}

/// The value of the bits of a format; exact. Bits above the format's own are ignored.
#[inline]
pub fn widen(f: &Format, bits: u64) -> f64 {
    let bits = bits >> f.padding;
    let code = bits & ((1 << f.sign) - 1);
    if code > f.last_number() {
        return f64::NAN;
    }
    let magnitude = if f.inf == Some(code) {
        f64::INFINITY
    } else {
        let field = (code >> f.fraction) as i32;
        let fraction = code & ((1 << f.fraction) - 1);
        if field == 0 {
            fraction as f64 * power_of_two(f.least_exponent - f.fraction as i32)
        } else {
            let exponent = field - 1 + f.least_exponent;
            f64::from_bits(((exponent + 1023) as u64) << 52 | fraction << (52 - f.fraction))
        }
    };
    if bits >> f.sign & 1 != 0 { -magnitude } else { magnitude }
}

/// `2^exponent`, also below the normal numbers; infinite above the greatest exponent, zero below the least.
#[inline]
pub(super) fn power_of_two(exponent: i32) -> f64 {
    match exponent {
        1024.. => f64::INFINITY,
        -1022..1024 => f64::from_bits(((exponent + 1023) as u64) << 52),
        -1074..-1022 => f64::from_bits(1 << (exponent + 1074)),
        ..-1074 => 0.0,
    }
}
