//! Comparison, minimum and maximum, signs and `testp` against the host's floats and the manual's text.

use handloom_ir::simt::Pure;
use handloom_ir::types::{Cmp, Float, TestProperty};

use crate::{Random, edges, run};

const COMPARISONS: [Cmp; 14] = [
    Cmp::Eq,
    Cmp::Ne,
    Cmp::Lt,
    Cmp::Le,
    Cmp::Gt,
    Cmp::Ge,
    Cmp::Equ,
    Cmp::Neu,
    Cmp::Ltu,
    Cmp::Leu,
    Cmp::Gtu,
    Cmp::Geu,
    Cmp::Num,
    Cmp::Nan,
];

/// Value by the definition of the format: sign, exponent, fraction.
fn value(exponent: u32, fraction: u32, a: u64) -> f64 {
    let field = (a >> fraction & ((1 << exponent) - 1)) as i32;
    let rest = (a & ((1 << fraction) - 1)) as f64;
    let bias = (1 << (exponent - 1)) - 1;
    let magnitude = if field == (1 << exponent) - 1 {
        if rest == 0.0 { f64::INFINITY } else { f64::NAN }
    } else {
        let (significand, scale) = if field == 0 { (rest, 1) } else { (rest + (1u64 << fraction) as f64, field) };
        // In two steps: the weight of the last place may be subnormal.
        significand * 2f64.powi((scale - bias) / 2) * 2f64.powi(scale - bias - (scale - bias) / 2 - fraction as i32)
    };
    if a >> (exponent + fraction) & 1 != 0 { -magnitude } else { magnitude }
}

fn pairs(ty: Float, visit: impl Fn(u32, u32, u64, u64)) {
    let (exponent, fraction) = match ty {
        Float::F16 => (5, 10),
        Float::BF16 => (8, 7),
        Float::F32 => (8, 23),
        _ => (11, 52),
    };
    let mut random = Random(u64::from(fraction));
    let edges = edges(exponent, fraction);
    for &a in &edges {
        for &b in &edges {
            visit(exponent, fraction, a, b);
        }
    }
    for _ in 0..10_000 {
        visit(exponent, fraction, random.float(exponent, fraction), random.float(exponent, fraction));
    }
}

#[test]
fn comparisons() {
    for ty in [Float::F16, Float::BF16, Float::F32, Float::F64] {
        pairs(ty, |exponent, fraction, a, b| {
            for ftz in [false, true] {
                let flush = |x: f64| {
                    let least = value(exponent, fraction, 1 << fraction);
                    if ftz && ty != Float::F64 && x.abs() < least { 0.0 } else { x }
                };
                let (x, y) = (flush(value(exponent, fraction, a)), flush(value(exponent, fraction, b)));
                let order = x.partial_cmp(&y);
                for cmp in COMPARISONS {
                    use std::cmp::Ordering::*;
                    let expected = match cmp {
                        Cmp::Eq => order == Some(Equal),
                        Cmp::Ne => matches!(order, Some(Less | Greater)),
                        Cmp::Lt => order == Some(Less),
                        Cmp::Le => matches!(order, Some(Less | Equal)),
                        Cmp::Gt => order == Some(Greater),
                        Cmp::Ge => matches!(order, Some(Greater | Equal)),
                        Cmp::Equ => matches!(order, None | Some(Equal)),
                        Cmp::Neu => matches!(order, None | Some(Less | Greater)),
                        Cmp::Ltu => matches!(order, None | Some(Less)),
                        Cmp::Leu => matches!(order, None | Some(Less | Equal)),
                        Cmp::Gtu => matches!(order, None | Some(Greater)),
                        Cmp::Geu => matches!(order, None | Some(Greater | Equal)),
                        Cmp::Num => order.is_some(),
                        Cmp::Nan => order.is_none(),
                    };
                    let op = Pure::FCmp { cmp, ty, ftz };
                    assert_eq!(run(op, &[a, b]), u64::from(expected), "{op:?} {a:#x} {b:#x}");
                }
            }
        });
    }
}

#[test]
fn minimum_and_maximum() {
    for ty in [Float::F16, Float::BF16, Float::F32, Float::F64] {
        pairs(ty, |exponent, fraction, a, b| {
            let sign = 1u64 << (exponent + fraction);
            for flags in 0..16 {
                let [max, ftz, nan, xorsign] = [1, 2, 4, 8].map(|bit| flags & bit != 0);
                let flush = |x: u64| {
                    if ftz && ty != Float::F64 && x & (sign - 1) < 1 << fraction { x & sign } else { x }
                };
                let (mut x, mut y) = (flush(a), flush(b));
                let result_sign = (x ^ y) & sign;
                if xorsign {
                    (x, y) = (x & !sign, y & !sign);
                }
                let is_nan = |x| value(exponent, fraction, x).is_nan();
                let mut expected = match (is_nan(x), is_nan(y)) {
                    (true, true) => sign - 1,
                    (true, false) => {
                        if nan {
                            sign - 1
                        } else {
                            y
                        }
                    }
                    (false, true) => {
                        if nan {
                            sign - 1
                        } else {
                            x
                        }
                    }
                    (false, false) => {
                        let less = value(exponent, fraction, x).total_cmp(&value(exponent, fraction, y)).is_lt();
                        if less != max { x } else { y }
                    }
                };
                if xorsign && !is_nan(expected) {
                    expected = expected & !sign | result_sign;
                }
                let op = if max { Pure::FMax { ty, ftz, nan, xorsign } } else { Pure::FMin { ty, ftz, nan, xorsign } };
                assert_eq!(run(op, &[a, b]), expected, "{op:?} {a:#x} {b:#x}");
            }
        });
    }
}

#[test]
fn signs_move_bits() {
    for ty in [Float::F16, Float::BF16, Float::F32, Float::F64] {
        pairs(ty, |exponent, fraction, a, b| {
            let sign = 1u64 << (exponent + fraction);
            assert_eq!(run(Pure::FAbs { ty, ftz: false }, &[a]), a & !sign);
            assert_eq!(run(Pure::FNeg { ty, ftz: false }, &[a]), a ^ sign);
            assert_eq!(run(Pure::Copysign(ty), &[a, b]), b & !sign | a & sign);
            let subnormal = a & !sign < 1 << fraction && ty != Float::F64;
            assert_eq!(run(Pure::FNeg { ty, ftz: true }, &[a]), if subnormal { a & sign } else { a } ^ sign);
        });
    }
}

#[test]
fn properties() {
    for (ty, exponent, fraction) in [(Float::F32, 8, 23), (Float::F64, 11, 52)] {
        for a in edges(exponent, fraction) {
            let x = if ty == Float::F32 { f64::from(f32::from_bits(a as u32)) } else { f64::from_bits(a) };
            let subnormal = if ty == Float::F32 {
                f32::from_bits(a as u32).is_subnormal()
            } else {
                f64::from_bits(a).is_subnormal()
            };
            for (property, expected) in [
                (TestProperty::Finite, x.is_finite()),
                (TestProperty::Infinite, x.is_infinite()),
                (TestProperty::Number, !x.is_nan()),
                (TestProperty::NotANumber, x.is_nan()),
                (TestProperty::Normal, x.is_finite() && !subnormal),
                (TestProperty::Subnormal, subnormal),
            ] {
                let op = Pure::Testp { property, ty };
                assert_eq!(run(op, &[a]), u64::from(expected), "{op:?} {a:#x}");
            }
        }
    }
}
