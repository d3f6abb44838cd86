//! Sum, product, quotient and fused multiply-add against the oracle in every rounding; roots by exact squares.

use handloom_ir::simt::{Exactness, FMode, Pure};
use handloom_ir::types::{Float, Rounding};
use rustc_apfloat::Round;
use rustc_apfloat::ieee::{BFloat, Double, Half, Single};

use crate::{ROUNDINGS, Random, edges, run};

const SAMPLES: u32 = 100_000;

fn mode(ty: Float, round: Rounding) -> FMode {
    FMode { ty, round, ftz: false, sat: false, relu: false }
}

pub(crate) fn oracle_rounding(round: Rounding) -> Round {
    match round {
        Rounding::Nearest | Rounding::Stochastic => Round::NearestTiesToEven,
        Rounding::NearestAway => Round::NearestTiesToAway,
        Rounding::Zero => Round::TowardZero,
        Rounding::Down => Round::TowardNegative,
        Rounding::Up => Round::TowardPositive,
    }
}

/// Bits of an oracle's result, NaN canonical.
pub(crate) fn bits<F: rustc_apfloat::Float>(a: F) -> u64 {
    if a.is_nan() { (1 << (F::BITS - 1)) - 1 } else { a.to_bits() as u64 }
}

fn fields(ty: Float) -> (u32, u32) {
    match ty {
        Float::F16 => (5, 10),
        Float::BF16 => (8, 7),
        Float::F32 => (8, 23),
        Float::F64 => (11, 52),
        Float::F16x2 | Float::BF16x2 | Float::F32x2 => unreachable!("scalar types only"),
    }
}

fn two_operands<F: rustc_apfloat::Float>(ty: Float) {
    let (exponent, fraction) = fields(ty);
    let edges = edges(exponent, fraction);
    let mut random = Random(u64::from(fraction));
    for round in ROUNDINGS {
        let check = |x: u64, y: u64| {
            let (a, b, r) = (F::from_bits(x.into()), F::from_bits(y.into()), oracle_rounding(round));
            let m = mode(ty, round);
            let exact = Exactness::Ieee(round);
            let expected = [
                (Pure::FAdd(m), a.add_r(b, r).value),
                (Pure::FSub(m), a.sub_r(b, r).value),
                (Pure::FMul(m), a.mul_r(b, r).value),
                (Pure::FDiv { mode: m, exact }, a.div_r(b, r).value),
            ];
            for (op, value) in expected {
                assert_eq!(run(op, &[x, y]), bits(value), "{op:?} of {x:#x}, {y:#x}");
            }
        };
        for &x in &edges {
            for &y in &edges {
                check(x, y);
            }
        }
        for _ in 0..SAMPLES {
            let x = random.float(exponent, fraction);
            // Every other pair has close magnitudes.
            let y = match random.below(4) {
                0 => x ^ random.below(1 << (fraction / 2)),
                1 => x ^ random.below(1 << (fraction / 2)) ^ 1 << (exponent + fraction),
                _ => random.float(exponent, fraction),
            };
            check(x, y);
        }
    }
}

fn fused<F: rustc_apfloat::Float>(ty: Float) {
    let (exponent, fraction) = fields(ty);
    let edges = edges(exponent, fraction);
    let mut random = Random(u64::from(fraction) + 100);
    for round in ROUNDINGS {
        let check = |x: u64, y: u64, z: u64| {
            let (a, b, c) = (F::from_bits(x.into()), F::from_bits(y.into()), F::from_bits(z.into()));
            let expected = bits(a.mul_add_r(b, c, oracle_rounding(round)).value);
            assert_eq!(run(Pure::FFma(mode(ty, round)), &[x, y, z]), expected, "fma {round:?} {x:#x} {y:#x} {z:#x}");
        };
        for &x in &edges {
            for &y in &edges {
                for &z in &edges {
                    check(x, y, z);
                }
            }
        }
        for _ in 0..SAMPLES {
            let (x, y) = (random.float(exponent, fraction), random.float(exponent, fraction));
            let product = F::from_bits(x.into()).mul_r(F::from_bits(y.into()), Round::NearestTiesToEven).value;
            let z = match random.below(4) {
                0 => bits(-product).wrapping_add(random.below(3)) & (u64::MAX >> (63 - exponent - fraction)),
                // Far below the product, where only a sticky bit is left of it.
                1 => random.below(1 << fraction) | random.below(2) << (exponent + fraction),
                _ => random.float(exponent, fraction),
            };
            check(x, y, z);
        }
    }
}

#[test]
fn sums_products_and_quotients_of_f16() {
    two_operands::<Half>(Float::F16);
}

#[test]
fn sums_products_and_quotients_of_bf16() {
    two_operands::<BFloat>(Float::BF16);
}

#[test]
fn sums_products_and_quotients_of_f32() {
    two_operands::<Single>(Float::F32);
}

#[test]
fn sums_products_and_quotients_of_f64() {
    two_operands::<Double>(Float::F64);
}

#[test]
fn fma_of_f16() {
    fused::<Half>(Float::F16);
}

#[test]
fn fma_of_bf16() {
    fused::<BFloat>(Float::BF16);
}

#[test]
fn fma_of_f32() {
    fused::<Single>(Float::F32);
}

#[test]
fn fma_of_f64() {
    fused::<Double>(Float::F64);
}

#[test]
fn reciprocals_are_quotients_of_one() {
    let mut random = Random(7);
    for (ty, one) in [(Float::F32, 0x3f80_0000), (Float::F64, 0x3ff0_0000_0000_0000)] {
        let (exponent, fraction) = fields(ty);
        let sample = (0..50_000).map(|_| random.float(exponent, fraction));
        let values: Vec<u64> = edges(exponent, fraction).into_iter().chain(sample).collect();
        for round in ROUNDINGS {
            let (m, exact) = (mode(ty, round), Exactness::Ieee(round));
            for &a in &values {
                let quotient = run(Pure::FDiv { mode: m, exact }, &[one, a]);
                assert_eq!(run(Pure::FRcp { mode: m, exact }, &[a]), quotient, "rcp {round:?} {a:#x}");
            }
        }
    }
}

/// Checks a root by comparing squares of integers.
fn check_root(ty: Float, round: Rounding, a: u64, root: u64) {
    let (_, fraction) = fields(ty);
    let split = |x: u64| {
        let (field, rest) = ((x >> fraction) as i32, u128::from(x & ((1 << fraction) - 1)));
        if field == 0 { (rest, 1) } else { (rest | 1 << fraction, field) }
    };
    let bias = (1 << (fields(ty).0 - 1)) - 1;
    // a = s * 2^x, root = m * 2^e
    let ((s, x), (m, e)) = (split(a), split(root));
    let (x, e) = (x - bias - fraction as i32, e - bias - fraction as i32);
    let what = format!("sqrt {round:?} {a:#x} gives {root:#x}");
    assert!(m >> fraction == 1, "{what}: a root is normal");
    // In units of a sixteenth of the square of the root's last place. The neighbour below a power of two is half as
    // far.
    let up = u32::try_from(x - 2 * e + 4).expect("the root is not far too great");
    assert!(up < s.leading_zeros(), "{what}: the root is far too small");
    let exact = s << up;
    let square = |quarters: u128| quarters * quarters;
    let below = if m == 1 << fraction { 2 } else { 4 };
    let right = match round {
        Rounding::Zero | Rounding::Down => square(4 * m) <= exact && exact < square(4 * m + 4),
        Rounding::Up => square(4 * m - below) < exact && exact <= square(4 * m),
        _ => square(4 * m - below / 2) < exact && exact < square(4 * m + 2),
    };
    assert!(right, "{what}");
}

#[test]
fn square_roots_bracket_their_argument() {
    let mut random = Random(11);
    for ty in [Float::F32, Float::F64, Float::F16, Float::BF16] {
        let (exponent, fraction) = fields(ty);
        let inf = ((1u64 << exponent) - 1) << fraction;
        let squares = (0..20_000).map(|_| {
            // Near squares of short numbers, where roundings differ.
            let short = 1.0 + (random.below(1 << (fraction / 2)) as f64) / (1u64 << (fraction / 2)) as f64;
            let square = short * short;
            let near = match ty {
                Float::F32 => u64::from((square as f32).to_bits()),
                Float::F64 => square.to_bits(),
                _ => random.bits() & (inf - 1),
            };
            near.wrapping_add(random.below(3)).wrapping_sub(1)
        });
        let squares: Vec<u64> = squares.collect();
        let sample: Vec<u64> = (0..50_000).map(|_| random.float(exponent, fraction)).collect();
        for round in ROUNDINGS {
            let op = Pure::FSqrt { mode: mode(ty, round), exact: Exactness::Ieee(round) };
            for a in edges(exponent, fraction).into_iter().chain(squares.iter().copied()).chain(sample.iter().copied())
            {
                let sign = 1 << (exponent + fraction);
                let root = run(op, &[a]);
                if a & !sign == 0 || a == inf {
                    assert_eq!(root, a);
                } else if a & sign != 0 || a > inf {
                    assert_eq!(root, sign - 1);
                } else {
                    check_root(ty, round, a, root);
                }
            }
        }
    }
}

/// Clamping and flushing of results, from plain results of the same op.
#[test]
fn modes_of_results() {
    let mut random = Random(13);
    for ty in [Float::F16, Float::BF16, Float::F32, Float::F64] {
        let (exponent, fraction) = fields(ty);
        let sign = 1u64 << (exponent + fraction);
        let inf = ((1u64 << exponent) - 1) << fraction;
        let one = ((1u64 << (exponent - 1)) - 1) << fraction;
        let flush = |a: u64| if ty != Float::F64 && a & (sign - 1) < 1 << fraction { a & sign } else { a };
        for _ in 0..40_000 {
            let src = [0; 3].map(|_| random.float(exponent, fraction));
            let plain = mode(ty, ROUNDINGS[random.below(4) as usize]);
            for op in [Pure::FAdd, Pure::FSub, Pure::FMul, Pure::FFma] {
                let r = run(op(plain), &src);
                let (nan, negative) = (r & (sign - 1) > inf, r & sign != 0);
                let sat = if nan || negative { 0 } else { r.min(one) };
                assert_eq!(run(op(FMode { sat: true, ..plain }), &src), sat, "sat {:?}", op(plain));
                let relu = if negative { 0 } else { r };
                assert_eq!(run(op(FMode { relu: true, ..plain }), &src), relu, "relu {:?}", op(plain));
                let flushed = flush(run(op(plain), &src.map(flush)));
                assert_eq!(run(op(FMode { ftz: true, ..plain }), &src), flushed, "ftz {:?} {src:x?}", op(plain));
                let both = if flushed & (sign - 1) > inf || flushed & sign != 0 { 0 } else { flushed.min(one) };
                assert_eq!(run(op(FMode { ftz: true, sat: true, ..plain }), &src), both);
            }
            if ty != Float::F32 {
                continue;
            }
            let exact = Exactness::Ieee(plain.round);
            for op in [
                |mode, exact| Pure::FDiv { mode, exact },
                |mode, exact| Pure::FRcp { mode, exact },
                |mode, exact| Pure::FSqrt { mode, exact },
            ] {
                let flushed = flush(run(op(plain, exact), &src.map(flush)));
                assert_eq!(run(op(FMode { ftz: true, ..plain }, exact), &src), flushed);
            }
        }
    }
}

/// Products, quotients and fused sums next to the least normal number: a result that is rounded to it is none that `.ftz` makes zero.
fn next_to_least_normal<F: rustc_apfloat::Float>(ty: Float) {
    let (exponent, fraction) = fields(ty);
    let (least, one, sign) =
        (1u64 << fraction, ((1u64 << (exponent - 1)) - 1) << fraction, 1u64 << (exponent + fraction));
    let near = |code: u64| (0..6).map(move |k| code - 3 + k);
    let factors: Vec<u64> = near(one).chain(near(one + least)).chain(near(one - least)).collect();
    let small: Vec<u64> = near(least).chain(near(2 * least)).chain(near(3 * least)).collect();
    let kept = |r: F| {
        let r = bits(r);
        if r & (sign - 1) < least { r & sign } else { r }
    };
    let flushed = |a: u64| if a & (sign - 1) < least { a & sign } else { a };
    let mut n_least = 0;
    for round in ROUNDINGS {
        let m = FMode { ftz: true, ..mode(ty, round) };
        let r = oracle_rounding(round);
        for (&x, &y) in factors.iter().flat_map(|x| small.iter().map(move |y| (x, y))) {
            for negative in [0, sign] {
                let y = y | negative;
                let (a, b) = (F::from_bits(flushed(x).into()), F::from_bits(flushed(y).into()));
                let mut check = |op: Pure, src: &[u64], value: F| {
                    let expected = kept(value);
                    n_least += usize::from(expected & (sign - 1) == least);
                    assert_eq!(run(op, src), expected, "{op:?} of {src:x?}");
                };
                check(Pure::FMul(m), &[x, y], a.mul_r(b, r).value);
                check(Pure::FAdd(m), &[y, 3 * least], b.add_r(F::from_bits((3 * least).into()), r).value);
                check(Pure::FSub(m), &[y, 3 * least], b.sub_r(F::from_bits((3 * least).into()), r).value);
                // A little more and a little less than the product.
                for z in [least, least | sign, one - 60 % (one / least) * least, 0] {
                    let c = F::from_bits(z.into());
                    check(Pure::FFma(m), &[x, y, z], a.mul_add_r(b, c, r).value);
                }
                if ty == Float::F32 {
                    let exact = Exactness::Ieee(round);
                    check(Pure::FDiv { mode: m, exact }, &[y, x], b.div_r(a, r).value);
                    let reciprocal = F::from_bits(one.into()).div_r(F::from_bits((x + 126 * least).into()), r).value;
                    check(Pure::FRcp { mode: m, exact }, &[x + 126 * least], reciprocal);
                }
            }
        }
    }
    assert!(n_least > 500, "only {n_least} results are the least normal number");
}

#[test]
fn ftz_next_to_the_least_normal_number() {
    next_to_least_normal::<Single>(Float::F32);
    next_to_least_normal::<Half>(Float::F16);
}

#[test]
fn packed_types_work_element_by_element() {
    let mut random = Random(17);
    let cases = [(Float::F16x2, Float::F16, 16), (Float::BF16x2, Float::BF16, 16), (Float::F32x2, Float::F32, 32)];
    for (packed, scalar, step) in cases {
        let (exponent, fraction) = fields(scalar);
        for _ in 0..20_000 {
            let low = [0; 3].map(|_| random.float(exponent, fraction));
            let high = [0; 3].map(|_| random.float(exponent, fraction));
            let both: Vec<u64> = low.iter().zip(high).map(|(low, high)| low | high << step).collect();
            let ops: [fn(Float) -> Pure; 9] = [
                |ty| Pure::FAdd(mode(ty, Rounding::Nearest)),
                |ty| Pure::FSub(mode(ty, Rounding::Down)),
                |ty| Pure::FMul(FMode { ftz: true, ..mode(ty, Rounding::Up) }),
                |ty| Pure::FFma(FMode { relu: true, ..mode(ty, Rounding::Nearest) }),
                |ty| Pure::FMin { ty, ftz: false, nan: false, xorsign: true },
                |ty| Pure::FMax { ty, ftz: true, nan: true, xorsign: false },
                |ty| Pure::FAbs { ty, ftz: false },
                |ty| Pure::FNeg { ty, ftz: true },
                |ty| Pure::Ex2 { ty, ftz: false },
            ];
            for op in ops {
                let expected = run(op(scalar), &low) | run(op(scalar), &high) << step;
                assert_eq!(run(op(packed), &both), expected, "{:?} of {both:x?}", op(packed));
            }
        }
    }
}
