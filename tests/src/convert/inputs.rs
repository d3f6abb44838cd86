//! Source values worth asking about.

use super::exact::Float;
use super::forms::{Elem, F16, F32, F64};
use crate::rng::Rng;

/// How many values to ask about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Amount {
    /// Random values of each source type.
    pub random: usize,
    /// One of so many ties and thresholds of the larger formats.
    pub one_of: u64,
}

/// What the ordinary test run asks.
pub const ORDINARY: Amount = Amount { random: 1 << 11, one_of: 61 };

/// What a thorough run asks: 2^20 random values of each source type, and all ties of 16-bit formats.
pub const THOROUGH: Amount = Amount { random: 1 << 20, one_of: 1 };

/// Values of one element of a source: all of them up to 16 bits, else those where something changes and random ones.
pub fn of(from: Elem, amount: Amount, rng: &mut Rng) -> Vec<u64> {
    let mask = u64::MAX >> (64 - from.step());
    let mut list = match from {
        _ if from.step() <= 16 => return (0..=mask).collect(),
        Elem::Int(bits, _) => integers(bits),
        Elem::Float(_, f) => floats(&f, amount, rng),
        Elem::Ue8m0 | Elem::S2f6 => Vec::new(),
    };
    for i in 0..amount.random {
        // Some with all bits random, some with few significant ones, where ties are.
        let bits = rng.next();
        list.push(match (i % 4, from) {
            (0 | 1, _) => bits,
            (2, Elem::Int(..)) => bits >> (bits & 63),
            (_, Elem::Int(..)) => (bits >> 40) << (bits & 63),
            (2, _) => bits & (u64::MAX << (bits % 53)),
            (_, Elem::Float(_, f)) => near_one(&f, bits),
            (_, _) => bits,
        });
    }
    list.iter_mut().for_each(|bits| *bits &= mask);
    list.sort_unstable();
    list.dedup();
    list
}

/// A number whose exponent is between -40 and 71, where most destinations have their numbers.
fn near_one(f: &Float, bits: u64) -> u64 {
    let bias = (1 << (f.exponent - 1)) - 1;
    let field = (bias + (bits >> 56) % 112).saturating_sub(40).min(2 * bias);
    let sign = bits >> 55 & 1;
    sign << f.sign() | field << f.fraction | bits & ((1 << f.fraction) - 1)
}

/// Powers of two, their neighbours and sums of two: every limit of an integer type or of a significand is one.
fn integers(bits: u32) -> Vec<u64> {
    let mut list = vec![0];
    for high in 0..bits {
        for low in 0..=high {
            // A tie of a significand of some width lies between the two.
            for around in 0..5_u64 {
                let sum = (1_u64 << high).wrapping_add(1 << low);
                list.push(sum.wrapping_add(around).wrapping_sub(2));
                list.push(0_u64.wrapping_sub(sum).wrapping_add(around).wrapping_sub(2));
                list.push((1_u64 << high).wrapping_sub(1 << low).wrapping_add(around).wrapping_sub(2));
            }
        }
    }
    list
}

/// Where something changes: numbers of the destinations, the middles between them, and the neighbours of both; the limits of integers;
/// integers and halves; special values and NaNs with payloads. Both signs.
fn floats(f: &Float, amount: Amount, rng: &mut Rng) -> Vec<u64> {
    let fraction = f.fraction;
    let ones = (1_u64 << fraction) - 1;
    let fields = 1_u64 << f.exponent;
    let mut codes = vec![0, 1, 2, ones, ones - 1];
    for field in 0..fields {
        // Each exponent, with the patterns at the ends; f64 has so many that most are asked once.
        let base = field << fraction;
        for low in [0, 1, ones, ones >> 1, (ones >> 1) + 1, (ones >> 1) + 2, rng.next() & ones] {
            codes.push(base | low);
        }
    }
    let infinite = (fields - 1) << fraction;
    codes.extend([infinite - 1, infinite, infinite + 1, infinite | ones, infinite | 1 << (fraction - 1)]);
    codes.extend((0..200).map(|_| infinite | rng.next() & ones));
    let mut around = |code: u64| {
        for by in 0..5_u64 {
            codes.push(code.wrapping_add(by).wrapping_sub(2));
        }
    };
    // Numbers and middles of the small formats and, thinned, of the larger ones.
    let smaller = [super::exact::E4M3, super::exact::E5M2, super::exact::E2M3, super::exact::E3M2, super::exact::E2M1];
    for to in smaller {
        for code in 0..2 << to.sign() {
            around(code_of(f, &to, code));
        }
    }
    let mut wide = vec![super::exact::F16, super::exact::BF16, super::exact::TF32];
    if *f == super::exact::F64 {
        wide.push(super::exact::F32);
    }
    for to in wide {
        let count = 2_u64 << to.sign();
        // At most about 2^17 of a format.
        let step = amount.one_of * (count >> 17).max(1);
        let mut code = rng.next() % step;
        while code < count {
            around(code_of(f, &to, code));
            code += 1 + rng.next() % (2 * step - 1).max(1);
        }
    }
    // Integers and halves: small ones, and where types end.
    for half in 0..1200_u64 {
        around(real(f, half as f64 / 2.0));
    }
    for power in 6..66 {
        let limit = 2_f64.powi(power);
        for by in [-1.0, -0.5, 0.0, 0.5, 1.0] {
            around(real(f, limit + by));
        }
    }
    let sign = 1_u64 << (fraction + f.exponent);
    let positive: Vec<u64> = codes.into_iter().map(|c| c & (sign - 1)).collect();
    positive.iter().flat_map(|c| [*c, c | sign]).collect()
}

/// The code of an `f64` in `.f32` or `.f64`.
fn real(f: &Float, a: f64) -> u64 {
    if *f == super::exact::F32 { u64::from((a as f32).to_bits()) } else { a.to_bits() }
}

/// A number of a coarser format, or the middle above it for odd codes, as the code of a finer one.
fn code_of(f: &Float, coarse: &Float, twice: u64) -> u64 {
    let finer = Float { fraction: coarse.fraction + 1, padding: 0, ..*coarse };
    f.place(finer.magnitude(twice)).code
}

/// Whole sources of a form: what its elements can be, side by side in other orders, and random bits or factors.
pub fn sources(form: &super::forms::Form, amount: Amount, rng: &mut Rng) -> Vec<Vec<u64>> {
    let values = of(form.from, amount, rng);
    let n = values.len();
    let step = form.from.step();
    if form.packed {
        // All pairs of small elements; of larger ones each in both places.
        let bits = 2 * step;
        let count = if bits <= 16 { 1 << bits } else { n as u64 };
        let wide = bits > 16;
        let packed: Vec<u64> = (0..count)
            .map(|i| if wide { values[i as usize] | values[(i * 40_503 + 7) as usize % n] << step } else { i })
            .collect();
        if !form.scaled {
            return vec![packed];
        }
        // Each element meets each factor, in both places, where there are as few as that.
        let factors = (0..count).map(|i| if wide { rng.next() & 0xffff } else { i >> 8 | (i & 0xff) << 8 });
        let twisted = |i: u64| if step == 8 { (i & 0xff) | (i >> 8) << 8 } else { i };
        let factors = factors.collect();
        return vec![packed.into_iter().map(twisted).collect(), factors];
    }
    let own = form.count as usize;
    let mut list: Vec<Vec<u64>> =
        (0..own).map(|k| (0..n).map(|i| values[(i + k * (n / 4 + 1)) % n]).collect()).collect();
    if form.scaled {
        // Factors that bring the quotient near one, mostly.
        list.push((0..n).map(|_| rng.next() & 0xffff).collect());
    } else if super::oracle::sources(form) > own {
        list.push((0..n).map(|_| rng.next() & 0xffff_ffff).collect());
    }
    list
}

/// Types whose sources are few enough to be asked about all.
pub fn is_exhaustive(from: Elem) -> bool {
    ![F32, F64].contains(&from) && (from == F16 || from.step() <= 16)
}
