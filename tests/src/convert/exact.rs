//! Exact numbers and the formats that hold some of them.

use std::cmp::Ordering;

/// A magnitude, `mantissa * 2^(exponent - 127)`. Zero has the least exponent and no bits; every other mantissa has its top bit set, so
/// the derived order is the order of the numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Magnitude {
    exponent: i32,
    mantissa: u128,
}

impl Magnitude {
    /// Zero.
    pub const ZERO: Magnitude = Magnitude { exponent: i32::MIN, mantissa: 0 };

    /// `integer * 2^exponent`.
    pub fn new(integer: u128, exponent: i32) -> Magnitude {
        if integer == 0 {
            return Magnitude::ZERO;
        }
        let up = integer.leading_zeros();
        Magnitude { exponent: exponent + 127 - up.cast_signed(), mantissa: integer << up }
    }

    /// The product with a power of two.
    pub fn scaled(self, exponent: i32) -> Magnitude {
        if self.mantissa == 0 { self } else { Magnitude { exponent: self.exponent + exponent, ..self } }
    }

    /// The integer below or at the number, and how the rest compares with one half; `None` for no rest. What does not fit is `u128::MAX`.
    pub fn integer(self) -> (u128, Option<Ordering>) {
        match self.exponent {
            128.. => (u128::MAX, None),
            0..=127 => {
                let below = 127 - self.exponent.cast_unsigned();
                let whole = self.mantissa >> below;
                let rest = self.mantissa - (whole << below);
                (whole, (rest != 0).then(|| rest.cmp(&(1 << below >> 1))))
            }
            -1 => (0, Some(self.mantissa.cmp(&(1 << 127)))),
            _ if self.mantissa == 0 => (0, None),
            _ => (0, Some(Ordering::Less)),
        }
    }
}

/// What some bits mean.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// No number.
    Nan,
    /// Infinity; true for the negative one.
    Infinite(bool),
    /// A number; true for a minus sign.
    Finite(bool, Magnitude),
}

/// A float format of sign, exponent and fraction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Float {
    /// Exponent bits.
    pub exponent: u32,
    /// Fraction bits.
    pub fraction: u32,
    /// Zero bits below the fraction.
    pub padding: u32,
    /// The largest finite code, without sign.
    pub max: u64,
    /// Code of infinity, if there is one.
    pub infinite: Option<u64>,
    /// Code of the NaN that results have, if there is one.
    pub nan: Option<u64>,
}

const fn ieee(exponent: u32, fraction: u32) -> Float {
    let infinite = ((1 << exponent) - 1) << fraction;
    let nan = (1 << (exponent + fraction)) - 1;
    Float { exponent, fraction, padding: 0, max: infinite - 1, infinite: Some(infinite), nan: Some(nan) }
}

const fn finite(exponent: u32, fraction: u32) -> Float {
    let max = (1 << (exponent + fraction)) - 1;
    Float { exponent, fraction, padding: 0, max, infinite: None, nan: None }
}

/// `.f16`.
pub const F16: Float = ieee(5, 10);
/// `.bf16`.
pub const BF16: Float = ieee(8, 7);
/// `.f32`.
pub const F32: Float = ieee(8, 23);
/// `.f64`.
pub const F64: Float = ieee(11, 52);
/// `.tf32`, in the upper bits of an `.f32`.
pub const TF32: Float = Float { padding: 13, ..ieee(8, 10) };
/// `.e4m3`: all ones is NaN, no infinity.
pub const E4M3: Float = Float { exponent: 4, fraction: 3, padding: 0, max: 0x7e, infinite: None, nan: Some(0x7f) };
/// `.e5m2`.
pub const E5M2: Float = ieee(5, 2);
/// `.e2m3`.
pub const E2M3: Float = finite(2, 3);
/// `.e3m2`.
pub const E3M2: Float = finite(3, 2);
/// `.e2m1`.
pub const E2M1: Float = finite(2, 1);

/// Where a magnitude lies among the codes of a format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The code at or below; codes go on above the largest finite one as if exponents did.
    pub code: u64,
    /// Against the middle to the next code; `None` if the code is exact.
    pub rest: Option<Ordering>,
}

impl Float {
    /// The magnitude of a code without sign. Codes beyond the largest count as if exponents went on.
    pub fn magnitude(&self, code: u64) -> Magnitude {
        let bias = (1 << (self.exponent - 1)) - 1;
        let field = i32::try_from(code >> self.fraction).expect("an exponent");
        let fraction = u128::from(code & ((1 << self.fraction) - 1));
        let below = self.fraction.cast_signed();
        if field == 0 {
            Magnitude::new(fraction, 1 - bias - below)
        } else {
            Magnitude::new(fraction + (1 << self.fraction), field - bias - below)
        }
    }

    /// Position of the sign, without padding.
    pub fn sign(&self) -> u32 {
        self.exponent + self.fraction
    }

    /// What the bits mean. Bits above the sign do not count.
    pub fn value(&self, bits: u64) -> Value {
        let bits = bits >> self.padding;
        let code = bits & ((1 << self.sign()) - 1);
        let negative = bits >> self.sign() & 1 != 0;
        if self.infinite == Some(code) {
            Value::Infinite(negative)
        } else if code > self.max {
            Value::Nan
        } else {
            Value::Finite(negative, self.magnitude(code))
        }
    }

    /// A code that is at or below a magnitude if that is normal in this format. Nothing depends on its being right.
    fn guess(&self, a: Magnitude) -> u64 {
        let bias = (1 << (self.exponent - 1)) - 1;
        let Ok(field) = u64::try_from(a.exponent.saturating_add(bias)) else { return 0 };
        let fraction = a.mantissa << 1 >> (128 - self.fraction);
        (field << self.fraction).saturating_add(u64::try_from(fraction).unwrap_or(0))
    }

    /// The neighbours of a magnitude, by search: from where its own exponent and first bits say that they lie, if they do.
    pub fn place(&self, a: Magnitude) -> Place {
        let (mut code, mut above) = (0, (1 << self.sign()) + 1);
        if self.magnitude(above) <= a {
            // Farther out nothing matters but that it is out.
            return Place { code: above, rest: None };
        }
        let guess = self.guess(a);
        if guess < above && self.magnitude(guess) <= a && a < self.magnitude(guess + 1) {
            (code, above) = (guess, guess + 1);
        }
        while above - code > 1 {
            let middle = code + (above - code) / 2;
            if self.magnitude(middle) <= a { code = middle } else { above = middle }
        }
        // In a format with one more fraction bit, the odd codes are the middles.
        let finer = Float { fraction: self.fraction + 1, ..*self };
        let rest = (self.magnitude(code) != a).then(|| a.cmp(&finer.magnitude(2 * code + 1)));
        Place { code, rest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustc_apfloat::ieee::{BFloat, Double, Float8E4M3FN, Float8E5M2, Half, Single};
    use rustc_apfloat::{Float as _, FloatConvert, Round};

    #[test]
    fn formats_have_the_values_of_the_manual() {
        let one = Magnitude::new(1, 0);
        for (f, code) in [(F16, 0x3c00), (BF16, 0x3f80), (F32, 0x3f80_0000), (E4M3, 0x38), (E5M2, 0x3c), (E2M1, 2)] {
            assert_eq!(f.magnitude(code), one);
        }
        assert_eq!(F16.magnitude(F16.max), Magnitude::new(65504, 0));
        assert_eq!(E4M3.magnitude(E4M3.max), Magnitude::new(448, 0));
        assert_eq!(E5M2.magnitude(E5M2.max), Magnitude::new(57344, 0));
        assert_eq!(E2M3.magnitude(E2M3.max), Magnitude::new(15, -1));
        assert_eq!(E3M2.magnitude(E3M2.max), Magnitude::new(28, 0));
        assert_eq!(E2M1.magnitude(E2M1.max), Magnitude::new(6, 0));
        assert_eq!(F64.value((-0.75_f64).to_bits()), Value::Finite(true, Magnitude::new(3, -2)));
    }

    #[test]
    fn integers_and_their_rests() {
        assert_eq!(Magnitude::new(7, -1).integer(), (3, Some(Ordering::Equal)));
        assert_eq!(Magnitude::new(13, -2).integer(), (3, Some(Ordering::Less)));
        assert_eq!(Magnitude::new(3, -2).integer(), (0, Some(Ordering::Greater)));
        assert_eq!(Magnitude::new(1, -9).integer(), (0, Some(Ordering::Less)));
        assert_eq!(Magnitude::new(5, 3).integer(), (40, None));
        assert_eq!(Magnitude::ZERO.integer(), (0, None));
    }

    /// The searched neighbours against a float library that many others use.
    #[test]
    fn places_agree_with_a_float_library() {
        fn check<B: rustc_apfloat::Float>(f: &Float, sources: &[u32])
        where
            Single: FloatConvert<B>,
        {
            for &a in sources {
                let Value::Finite(false, magnitude) = F32.value(u64::from(a)) else { continue };
                let place = f.place(magnitude);
                let up = match place.rest {
                    None | Some(Ordering::Less) => 0,
                    Some(Ordering::Equal) => place.code & 1,
                    Some(Ordering::Greater) => 1,
                };
                for (round, code) in
                    [(Round::NearestTiesToEven, place.code + up), (Round::TowardZero, place.code.min(f.max))]
                {
                    let theirs: B = Single::from_bits(a.into()).convert_r(round, &mut false).value;
                    let overflows = theirs.is_infinite() || theirs.is_nan();
                    assert_eq!(overflows, code > f.max, "{a:#x}");
                    assert!(overflows || theirs.to_bits() == u128::from(code), "{a:#x} {round:?}");
                }
            }
        }
        let mut rng = crate::rng::Rng::new(1);
        let sources: Vec<u32> = (0..60_000).map(|_| (rng.next() >> 33) as u32).collect();
        check::<Half>(&F16, &sources);
        check::<BFloat>(&BF16, &sources);
        check::<Double>(&F64, &sources[..2000]);
        check::<Float8E4M3FN>(&E4M3, &sources);
        check::<Float8E5M2>(&E5M2, &sources);
    }
}
