//! Approximate instructions against the host's `f64` functions within the manual's bounds, and their exact results.

use handloom_ir::simt::{Exactness, FMode, Pure};
use handloom_ir::types::{Float, Rounding};

use crate::{Random, edges, run};

fn mode(ty: Float, ftz: bool) -> FMode {
    FMode { ty, round: Rounding::Nearest, ftz, sat: false, relu: false }
}

fn f32s() -> Vec<u32> {
    let mut random = Random(1);
    let mut list: Vec<u32> = edges(8, 23).into_iter().map(|a| a as u32).collect();
    list.extend((0..100_000).map(|_| random.float(8, 23) as u32));
    list.extend((0..100_000).map(|_| ((random.bits() >> 40) as f32 / (1 << 17) as f32 - 64.0).to_bits()));
    list
}

fn eval32(op: Pure, a: u32) -> f32 {
    f32::from_bits(run(op, &[a.into()]) as u32)
}

/// Distance in units of the last place of `f32`.
fn ulps(a: f32, exact: f64) -> f64 {
    if f64::from(a) == exact || a.is_nan() && exact.is_nan() {
        return 0.0;
    }
    let exponent = exact.abs().log2().floor().clamp(-126.0, 127.0);
    (f64::from(a) - exact).abs() / 2f64.powf(exponent - 23.0)
}

fn within(op: Pure, exact: impl Fn(f64) -> f64) {
    for a in f32s() {
        let (got, exact) = (eval32(op, a), exact(f64::from(f32::from_bits(a))));
        // What rounds beyond the greatest number is infinite.
        let overflow = exact.abs() > f64::from(f32::MAX) && f64::from(got) == exact.signum() * f64::INFINITY;
        assert!(overflow || ulps(got, exact) <= 1.0, "{op:?} of {a:#x}: {got:e}, exactly {exact:e}");
        if got.is_nan() {
            assert_eq!(got.to_bits(), 0x7fff_ffff, "canonical NaN");
        }
    }
}

#[test]
fn one_unit_in_the_last_place() {
    within(Pure::Sin { ftz: false }, f64::sin);
    within(Pure::Cos { ftz: false }, f64::cos);
    within(Pure::Lg2 { ftz: false }, f64::log2);
    within(Pure::Ex2 { ty: Float::F32, ftz: false }, f64::exp2);
    within(Pure::Tanh { ty: Float::F32 }, f64::tanh);
    within(Pure::FRsqrt(mode(Float::F32, false)), |a| 1.0 / a.sqrt());
    for exact in [Exactness::Approx, Exactness::Full] {
        within(Pure::FRcp { mode: mode(Float::F32, false), exact }, |a| 1.0 / a);
        within(Pure::FSqrt { mode: mode(Float::F32, false), exact }, f64::sqrt);
    }
}

#[test]
fn flushing() {
    let flush = |a: u32| if a & 0x7fff_ffff < 0x80_0000 { a & 0x8000_0000 } else { a };
    for a in f32s() {
        for op in [
            |ftz| Pure::Sin { ftz },
            |ftz| Pure::Cos { ftz },
            |ftz| Pure::Lg2 { ftz },
            |ftz| Pure::Ex2 { ty: Float::F32, ftz },
            |ftz| Pure::FRsqrt(mode(Float::F32, ftz)),
            |ftz| Pure::FRcp { mode: mode(Float::F32, ftz), exact: Exactness::Approx },
        ] {
            let expected = flush(run(op(false), &[flush(a).into()]) as u32);
            assert_eq!(run(op(true), &[a.into()]) as u32, expected, "{:?} {a:#x}", op(true));
        }
    }
}

#[test]
fn exact_results() {
    let (rcp, exact) =
        (|a: f32| Pure::FRcp { mode: mode(Float::F32, a < 0.0), exact: Exactness::Approx }, f32::to_bits);
    for n in -149i32..128 {
        let power = 2f64.powi(n) as f32;
        assert_eq!(eval32(Pure::Lg2 { ftz: false }, exact(power)), n as f32);
        assert_eq!(eval32(Pure::Ex2 { ty: Float::F32, ftz: false }, exact(n as f32)), power);
        if n.abs() <= 126 {
            assert_eq!(eval32(rcp(1.0), exact(power)), 2f64.powi(-n) as f32);
        }
        if n % 2 == 0 {
            assert_eq!(eval32(Pure::FRsqrt(mode(Float::F32, false)), exact(power)), 2f64.powi(-n / 2) as f32);
            let sqrt = Pure::FSqrt { mode: mode(Float::F32, false), exact: Exactness::Approx };
            assert_eq!(eval32(sqrt, exact(power)), 2f64.powi(n / 2) as f32);
        }
    }
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let tables: [(Pure, &[(f32, f32)]); 8] = [
        (Pure::Sin { ftz: false }, &[(0.0, 0.0), (-0.0, -0.0), (inf, nan), (-inf, nan), (nan, nan)]),
        (Pure::Cos { ftz: false }, &[(0.0, 1.0), (-0.0, 1.0), (inf, nan), (-inf, nan), (nan, nan)]),
        (Pure::Lg2 { ftz: false }, &[(0.0, -inf), (-0.0, -inf), (1.0, 0.0), (inf, inf), (-1.0, nan), (-inf, nan)]),
        (
            Pure::Ex2 { ty: Float::F32, ftz: false },
            &[(0.0, 1.0), (-0.0, 1.0), (-inf, 0.0), (inf, inf), (128.0, inf), (-150.0, 0.0), (-1e30, 0.0), (nan, nan)],
        ),
        (
            Pure::Tanh { ty: Float::F32 },
            &[(0.0, 0.0), (-0.0, -0.0), (inf, 1.0), (-inf, -1.0), (1e-40, 1e-40), (-1e-40, -1e-40), (nan, nan)],
        ),
        (
            Pure::FRsqrt(mode(Float::F32, false)),
            &[(0.0, inf), (-0.0, -inf), (inf, 0.0), (-inf, nan), (-1.0, nan), (nan, nan)],
        ),
        (rcp(1.0), &[(0.0, inf), (-0.0, -inf), (inf, 0.0), (-inf, -0.0), (nan, nan)]),
        (
            Pure::FSqrt { mode: mode(Float::F32, false), exact: Exactness::Approx },
            &[(0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, nan), (-1.0, nan), (nan, nan)],
        ),
    ];
    for (op, table) in tables {
        for &(a, expected) in table {
            let expected = if expected.is_nan() { 0x7fff_ffff } else { expected.to_bits() };
            assert_eq!(run(op, &[a.to_bits().into()]), u64::from(expected), "{op:?} of {a}");
        }
    }
}

#[test]
fn approximate_division() {
    let mut random = Random(2);
    let op = Pure::FDiv { mode: mode(Float::F32, false), exact: Exactness::Approx };
    let full = Pure::FDiv { mode: mode(Float::F32, false), exact: Exactness::Full };
    let edges = edges(8, 23);
    let pairs = edges.iter().flat_map(|&a| edges.iter().map(move |&b| (a, b))).collect::<Vec<_>>();
    let sample = (0..100_000).map(|_| (random.float(8, 23), random.float(8, 23))).collect::<Vec<_>>();
    for (x, y) in pairs.into_iter().chain(sample) {
        let (a, b) = (f32::from_bits(x as u32), f32::from_bits(y as u32));
        let exact = f64::from(a) / f64::from(b);
        let right = |got: f32| ulps(got, exact) <= 0.5 || exact.abs() > f64::from(f32::MAX) && got.is_infinite();
        let got = f32::from_bits(run(op, &[x, y]) as u32);
        if b.is_finite() && f64::from(b).abs() > 2f64.powi(126) {
            if a.is_nan() || a.is_infinite() {
                assert_eq!(got.to_bits(), 0x7fff_ffff);
            } else {
                assert_eq!(got.to_bits(), if a.is_sign_negative() != b.is_sign_negative() { 1 << 31 } else { 0 });
            }
        } else {
            assert!(right(got), "{a:e} / {b:e} gives {got:e}");
        }
        assert!(right(f32::from_bits(run(full, &[x, y]) as u32)));
    }
}

#[test]
fn half_precision() {
    let value = |ty: Float, a: u64| match ty {
        Float::BF16 => f64::from(f32::from_bits((a << 16) as u32)),
        _ => {
            let (field, rest) = ((a >> 10 & 31) as i32, (a & 0x3ff) as f64);
            let magnitude = match field {
                0 => rest * 2f64.powi(-24),
                31 if rest != 0.0 => f64::NAN,
                31 => f64::INFINITY,
                _ => (rest + 1024.0) * 2f64.powi(field - 25),
            };
            if a >> 15 != 0 { -magnitude } else { magnitude }
        }
    };
    for (ty, digits, least, greatest) in [(Float::F16, 10, -14.0, 15.0), (Float::BF16, 7, -126.0, 127.0)] {
        for a in 0..=0xffffu64 {
            for (op, exact) in
                [(Pure::Ex2 { ty, ftz: false }, value(ty, a).exp2()), (Pure::Tanh { ty }, value(ty, a).tanh())]
            {
                let got = value(ty, run(op, &[a]));
                if exact.is_nan() {
                    assert_eq!(run(op, &[a]), 0x7fff);
                    continue;
                }
                let unit = 2f64.powf(exact.abs().log2().floor().clamp(least, greatest) - f64::from(digits));
                let overflow = exact.log2() >= greatest + 1.0 && got == f64::INFINITY;
                assert!(overflow || (got - exact).abs() <= 0.5001 * unit, "{op:?} of {a:#x}: {got}, exactly {exact}");
            }
        }
    }
    // The table of `ex2.approx.ftz.bf16`.
    let op = Pure::Ex2 { ty: Float::BF16, ftz: true };
    for (a, expected) in [(0xff80, 0), (0x8001, 0x3f80), (0x0001, 0x3f80), (0x7f80, 0x7f80), (0xc2fe, 0)] {
        assert_eq!(run(op, &[a]), expected);
    }
}

/// `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`.
#[test]
fn gross_f64() {
    let rcp = Pure::FRcp { mode: mode(Float::F64, true), exact: Exactness::Approx };
    let rsqrt = Pure::FRsqrt(mode(Float::F64, true));
    let upper = |a: u64| a & 0xffff_ffff_0000_0000;
    let (inf, nan) = (f64::INFINITY.to_bits(), 0x7fff_ffff_0000_0000);
    let sign = 1 << 63;
    for (a, of_rcp, of_rsqrt) in [
        (0, inf, inf),
        (sign, sign | inf, sign | inf),
        (0x000f_ffff_ffff_ffff, inf, inf),
        (sign | 1, sign | inf, sign | inf),
        (inf, 0, 0),
        (sign | inf, sign, nan),
        (inf | 1 << 40, nan, nan),
        (1f64.to_bits(), 1f64.to_bits(), 1f64.to_bits()),
        (1f64.to_bits() + 0xffff_ffff, 1f64.to_bits(), 1f64.to_bits()),
        (4f64.to_bits(), 0.25f64.to_bits(), 0.5f64.to_bits()),
        ((-4f64).to_bits(), (-0.25f64).to_bits(), nan),
        (f64::MAX.to_bits(), 0, 2f64.powi(-512).to_bits()),
    ] {
        assert_eq!(run(rcp, &[a]), of_rcp, "rcp {a:#x}");
        assert_eq!(run(rsqrt, &[a]), of_rsqrt, "rsqrt {a:#x}");
    }
    let mut random = Random(3);
    for _ in 0..100_000 {
        let a = random.float(11, 52);
        for (op, f) in [(rcp, (|a| 1.0 / a) as fn(f64) -> f64), (rsqrt, |a| 1.0 / a.sqrt())] {
            let got = run(op, &[a]);
            assert_eq!(got, upper(got), "the lower word is zero");
            let source = f64::from_bits(upper(a));
            if !source.is_normal() || f(source).is_nan() || !f(source).is_normal() {
                continue;
            }
            let error = (f64::from_bits(got) / f(source) - 1.0).abs();
            assert!(error <= 2f64.powi(-20), "{op:?} {a:#x}");
        }
    }
}

#[test]
fn f64_rsqrt_is_within_one_unit() {
    let op = Pure::FRsqrt(mode(Float::F64, false));
    let mut random = Random(4);
    for i in 0..100_000u64 {
        let a = if i < 2 { 1 + i } else { random.float(11, 52) & (u64::MAX >> 1) };
        let x = f64::from_bits(a);
        let y = run(op, &[a]);
        if x == 0.0 || !x.is_finite() {
            let expected = if x.is_nan() { u64::MAX >> 1 } else { (1.0 / x.sqrt()).to_bits() };
            assert_eq!(y, expected);
            continue;
        }
        // With scaled significands: y - 1 < 1/sqrt(x) < y + 1 in units of the last place, as integers.
        let (field, rest) = (a >> 52, a & ((1 << 52) - 1));
        let (s, e) = if field == 0 { (rest, -1074i32) } else { (rest | 1 << 52, field as i32 - 1075) };
        let up = s.leading_zeros() as i32 - 11;
        let (s, e) = (u128::from(s) << up, e - up);
        let (s, e) = if e % 2 == 0 { (s, e) } else { (s << 1, e - 1) };
        let (m, me) = (u128::from(y & ((1 << 52) - 1) | 1 << 52), (y >> 52) as i32 - 1075);
        // s * 2^e * (m * 2^me)^2 is about 1. s has 53 or 54 bits and m 53, so the product needs 160: split it.
        let product = |m: u128| {
            let square = m * m;
            let (high, low) = (square >> 64, square & u128::from(u64::MAX));
            let (low, high) = (s * low, s * high);
            (high + (low >> 64), low & u128::from(u64::MAX))
        };
        let shift = -(e + 2 * me) - 64;
        let one = (1u128 << shift, 0);
        assert!(product(m - 1) < one && one < product(m + 1), "rsqrt of {x:e} gives {:e}", f64::from_bits(y));
    }
}

#[test]
fn huge_arguments_are_reduced_exactly() {
    // Recorded: sine and cosine by a series in 400-bit integers after reduction by as many bits of pi, rounded to
    // `.f32`.
    let cases = [
        (0x7180_0000, 0xbf5f_476d, 0x3efa_75a0),
        (0x7f7f_ffff, 0xbf05_99b3, 0x3f5a_5f96),
        (0x7f00_0000, 0x3f1f_9631, 0x3f48_2b8f),
        (0x5015_02f9, 0xbef9_9a64, 0x3f5f_84c5),
    ];
    for (a, sin, cos) in cases {
        assert_eq!(run(Pure::Sin { ftz: false }, &[a]), sin);
        assert_eq!(run(Pure::Cos { ftz: false }, &[a]), cos);
    }
}
