//! Conversions between integers and the wider floats against the oracle.

use handloom_ir::num::cvt;
use handloom_ir::simt::Cvt;
use handloom_ir::types::{Rounding, ScalarType, ScalarType::*};
use rustc_apfloat::ieee::{BFloat, Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert};

use crate::arith::{bits, oracle_rounding};
use crate::{ROUNDINGS, Random, edges};

const INTS: [ScalarType; 8] = [U8, U16, U32, U64, S8, S16, S32, S64];

/// A conversion without modifiers but the rounding.
pub(crate) fn plain(to: ScalarType, from: ScalarType, round: Rounding) -> Cvt {
    Cvt { to, from, round, integral: false, ftz: false, sat: false, relu: false, satfinite: false }
}

fn fields(t: ScalarType) -> (u32, u32) {
    match t {
        F16 => (5, 10),
        BF16 => (8, 7),
        F32 => (8, 23),
        F64 => (11, 52),
        _ => panic!("{t} is not a float of the oracle"),
    }
}

/// Sources: everything for 16 bits; else boundaries, neighbours of the destination's values, and a sample.
fn sources<A: Float + FloatConvert<B>, B: Float + FloatConvert<A>>(from: ScalarType, to: ScalarType) -> Vec<u64> {
    if from.bits() == 16 {
        return (0..=0xffff).collect();
    }
    let (exponent, fraction) = fields(from);
    let mut random = Random(u64::from(fraction));
    let mut list = edges(exponent, fraction);
    list.extend((0..50_000).map(|_| random.float(exponent, fraction)));
    let (exponent, fraction) = fields(to);
    for _ in 0..50_000 {
        let near: A = B::from_bits(random.float(exponent, fraction).into()).convert(&mut false).value;
        let half = if random.below(2) == 0 { 0 } else { 1u64 << (from_fraction(from).saturating_sub(fraction + 1)) };
        let a = (near.to_bits() as u64).wrapping_add(half).wrapping_add(random.below(5)).wrapping_sub(2);
        list.push(a & u64::MAX >> (64 - from.bits()));
    }
    list
}

fn from_fraction(t: ScalarType) -> u32 {
    fields(t).1
}

fn floats<A: Float + FloatConvert<B>, B: Float + FloatConvert<A>>(from: ScalarType, to: ScalarType) {
    for a in sources::<A, B>(from, to) {
        for round in ROUNDINGS.into_iter().chain([Rounding::NearestAway]) {
            let expected = A::from_bits(a.into()).convert_r(oracle_rounding(round), &mut false).value;
            let c = plain(to, from, round);
            assert_eq!(cvt(c, &[a]), bits::<B>(expected), "{c:?} of {a:#x}");
        }
    }
}

#[test]
fn f16_to_wider_floats() {
    floats::<Half, Half>(F16, F16);
    floats::<Half, BFloat>(F16, BF16);
    floats::<Half, Single>(F16, F32);
    floats::<Half, Double>(F16, F64);
}

#[test]
fn bf16_to_other_floats() {
    floats::<BFloat, Half>(BF16, F16);
    floats::<BFloat, BFloat>(BF16, BF16);
    floats::<BFloat, Single>(BF16, F32);
    floats::<BFloat, Double>(BF16, F64);
}

#[test]
fn f32_to_other_floats() {
    floats::<Single, Half>(F32, F16);
    floats::<Single, BFloat>(F32, BF16);
    floats::<Single, Single>(F32, F32);
    floats::<Single, Double>(F32, F64);
}

#[test]
fn f64_to_other_floats() {
    floats::<Double, Half>(F64, F16);
    floats::<Double, BFloat>(F64, BF16);
    floats::<Double, Single>(F64, F32);
    floats::<Double, Double>(F64, F64);
}

#[test]
fn modifiers_of_floats() {
    let mut random = Random(3);
    for (from, to) in [(F32, F16), (F32, BF16), (F64, F32), (F16, F32), (F32, F64), (F16, F16), (F32, F32), (BF16, F32)]
    {
        let ((se, sf), (de, df)) = (fields(from), fields(to));
        let (sign, one, inf) = (1u64 << (de + df), ((1u64 << (de - 1)) - 1) << df, ((1u64 << de) - 1) << df);
        let sample: Vec<u64> = (0..20_000).map(|_| random.float(se, sf)).collect();
        for a in edges(se, sf).into_iter().chain(sample) {
            for round in ROUNDINGS {
                let c = plain(to, from, round);
                let r = cvt(c, &[a]);
                let (nan, negative) = (r & (sign - 1) > inf, r & sign != 0);
                let sat = if nan || negative { 0 } else { r.min(one) };
                assert_eq!(cvt(Cvt { sat: true, ..c }, &[a]), sat, "sat {c:?} {a:#x}");
                assert_eq!(cvt(Cvt { relu: true, ..c }, &[a]), if negative { 0 } else { r }, "relu {c:?} {a:#x}");
                let finite = if r & (sign - 1) == inf { r - 1 } else { r };
                if to != F64 && from != to {
                    assert_eq!(cvt(Cvt { satfinite: true, ..c }, &[a]), finite, "satfinite {c:?} {a:#x}");
                }
                // `.ftz` touches `.f32` only: inputs always, results by what they are; to nearest also those that are tiny with any exponent.
                let flushed_source = if from == F32 && a & 0x7fff_ffff < 0x80_0000 { a & 0x8000_0000 } else { a };
                let mut flushed = cvt(c, &[flushed_source]);
                let is_tiny = f64::from_bits(a).abs() < f64::from(f32::MIN_POSITIVE) * (1.0 - 2f64.powi(-25));
                let tiny = from == F64 && round == Rounding::Nearest && is_tiny;
                if to == F32 && (tiny || flushed & 0x7fff_ffff < 0x80_0000) {
                    flushed = if negative { 1 << 31 } else { 0 };
                }
                assert_eq!(cvt(Cvt { ftz: true, ..c }, &[a]), flushed, "ftz {c:?} {a:#x}");
            }
        }
    }
    // Next to the least normal number: what ptxas makes to nearest, and what a directed rounding gives.
    let ftz = |round, a: u64| cvt(Cvt { ftz: true, ..plain(F32, F64, round) }, &[a]);
    let (tie, quarter) = (0x380f_ffff_e000_0000, 0x380f_ffff_f000_0000);
    assert_eq!([tie, quarter - 1, quarter].map(|a| ftz(Rounding::Nearest, a)), [0, 0, 0x80_0000]);
    assert_eq!(cvt(plain(F32, F64, Rounding::Nearest), &[tie]), 0x80_0000);
    let minus = 1 << 63;
    assert_eq!([tie, tie | minus].map(|a| ftz(Rounding::Up, a)), [0x80_0000, 1 << 31]);
    assert_eq!([tie, tie | minus].map(|a| ftz(Rounding::Down, a)), [0, 0x8080_0000]);
    assert_eq!([quarter, quarter | minus].map(|a| ftz(Rounding::Zero, a)), [0, 1 << 31]);
}

#[test]
fn integral_values() {
    fn check<F: Float>(t: ScalarType, values: &[u64]) {
        for &a in values {
            for round in ROUNDINGS {
                let expected = F::from_bits(a.into()).round_to_integral(oracle_rounding(round)).value;
                let c = Cvt { integral: true, ..plain(t, t, round) };
                assert_eq!(cvt(c, &[a]), bits(expected), "{c:?} {a:#x}");
            }
        }
    }
    let all: Vec<u64> = (0..=0xffff).collect();
    check::<Half>(F16, &all);
    check::<BFloat>(BF16, &all);
    let mut random = Random(4);
    let mut wide = |exponent, fraction| {
        let mut list = edges(exponent, fraction);
        list.extend((0..50_000).map(|_| random.float(exponent, fraction)));
        list
    };
    check::<Single>(F32, &wide(8, 23));
    check::<Double>(F64, &wide(11, 52));
    // A value that ptxas folds to 0 by mistake, and the flushed input of `rpi`.
    let c = Cvt { integral: true, ..plain(F64, F64, Rounding::Nearest) };
    assert_eq!(cvt(c, &[0x3fe0_0000_0000_0001]), 1f64.to_bits());
    let c = Cvt { integral: true, ..plain(F32, F32, Rounding::Up) };
    assert_eq!(cvt(c, &[1]), 0x3f80_0000);
    assert_eq!(cvt(Cvt { ftz: true, ..c }, &[1]), 0);
}

fn to_ints<F: Float>(from: ScalarType) {
    let (exponent, fraction) = fields(from);
    let mut values: Vec<u64> = if from.bits() == 16 { (0..=0xffff).collect() } else { edges(exponent, fraction) };
    let mut random = Random(5);
    if from.bits() > 16 {
        values.extend((0..20_000).map(|_| random.float(exponent, fraction)));
        // Halves, and the limits of the integer types.
        for power in [7, 8, 15, 16, 31, 32, 63, 64] {
            for add in [-1.0, -0.5, 0.0, 0.5, 1.0] {
                for a in [2f64.powi(power) + add, -(2f64.powi(power)) + add] {
                    let b = if from == F32 { u64::from((a as f32).to_bits()) } else { a.to_bits() };
                    values.extend([b - 1, b, b + 1]);
                }
            }
        }
        for n in -600..600 {
            let a = f64::from(n) / 2.0;
            values.push(if from == F32 { u64::from((a as f32).to_bits()) } else { a.to_bits() });
        }
    }
    for to in INTS {
        let (width, signed) = (to.bits() as usize, to.is_signed());
        let mask = u64::MAX >> (64 - width);
        for round in ROUNDINGS {
            for &a in &values {
                let (x, r) = (F::from_bits(a.into()), oracle_rounding(round));
                let expected = if x.is_nan() {
                    if from == F64 || width == 64 { 1 << (width - 1) } else { 0 }
                } else if signed {
                    x.to_i128_r(width, r, &mut false).value as u64 & mask
                } else {
                    x.to_u128_r(width, r, &mut false).value as u64 & mask
                };
                let c = plain(to, from, round);
                assert_eq!(cvt(c, &[a]), expected, "{c:?} {a:#x}");
                assert_eq!(cvt(Cvt { sat: true, integral: true, ..c }, &[a]), expected, "sat changes nothing");
                if from == F32 {
                    let flushed = if a & 0x7fff_ffff < 0x80_0000 { 0 } else { expected };
                    assert_eq!(cvt(Cvt { ftz: true, ..c }, &[a]), flushed);
                }
            }
        }
    }
}

#[test]
fn f16_to_integers() {
    to_ints::<Half>(F16);
}

#[test]
fn bf16_to_integers() {
    to_ints::<BFloat>(BF16);
}

#[test]
fn f32_to_integers() {
    to_ints::<Single>(F32);
}

#[test]
fn f64_to_integers() {
    to_ints::<Double>(F64);
}

fn int_values(t: ScalarType, random: &mut Random) -> Vec<u64> {
    if t.bits() <= 16 {
        (0..1 << t.bits()).collect()
    } else {
        let mask = u64::MAX >> (64 - t.bits());
        let corners = [0, 1, mask, mask - 1, mask >> 1, (mask >> 1) + 1, 0xfffff7, 0x1ff_ffff, 0xff_ffff, 0x100_0001];
        corners.into_iter().chain((0..20_000).map(|_| random.int(t.bits()))).collect()
    }
}

fn number(t: ScalarType, a: u64) -> i128 {
    let top = 1i128 << (t.bits() - 1);
    let a = i128::from(a);
    if t.is_signed() && a >= top { a - 2 * top } else { a }
}

fn from_ints<F: Float>(to: ScalarType) {
    let (exponent, fraction) = fields(to);
    let one = ((1u64 << (exponent - 1)) - 1) << fraction;
    let mut random = Random(6);
    for from in INTS {
        for a in int_values(from, &mut random) {
            let x = number(from, a);
            for round in ROUNDINGS {
                let c = plain(to, from, round);
                let expected = bits(F::from_i128_r(x, oracle_rounding(round)).value);
                assert_eq!(cvt(c, &[a]), expected, "{c:?} {x}");
                let sat = if x > 0 { one } else { 0 };
                assert_eq!(cvt(Cvt { sat: true, ..c }, &[a]), sat, "sat {c:?} {x}");
            }
        }
    }
}

#[test]
fn integers_to_floats() {
    from_ints::<Half>(F16);
    from_ints::<BFloat>(BF16);
    from_ints::<Single>(F32);
    from_ints::<Double>(F64);
}

#[test]
fn integers_to_integers() {
    let mut random = Random(7);
    for from in INTS {
        for a in int_values(from, &mut random) {
            let x = number(from, a);
            for to in INTS {
                let mask = i128::from(u64::MAX >> (64 - to.bits()));
                let c = plain(to, from, Rounding::Nearest);
                assert_eq!(i128::from(cvt(c, &[a])), x & mask, "{c:?} {x}");
                let (low, high) = if to.is_signed() { (-(1i128 << (to.bits() - 1)), mask >> 1) } else { (0, mask) };
                let sat = Cvt { sat: true, ..c };
                assert_eq!(i128::from(cvt(sat, &[a])), x.clamp(low, high) & mask, "{sat:?} {x}");
            }
        }
    }
}
