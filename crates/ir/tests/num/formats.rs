//! The small formats, tf32 and the packed and stochastic forms, against tables of all values of a format.

use handloom_ir::num::cvt;
use handloom_ir::simt::Cvt;
use handloom_ir::types::{Rounding, ScalarType, ScalarType::*};

use crate::Random;
use crate::cvt::plain;

/// A format by its definition: fields, and the codes that are not numbers.
struct Table {
    exponent: u32,
    fraction: u32,
    /// Values of all finite codes without sign, in order.
    values: Vec<f64>,
    /// Code of NaN, or of the greatest number where NaN becomes that.
    nan: u64,
    /// Whether the code after the last finite one is infinity.
    has_inf: bool,
}

impl Table {
    fn new(exponent: u32, fraction: u32, special_codes: u64, nan: u64, has_inf: bool) -> Table {
        let bias = (1 << (exponent - 1)) - 1;
        let finite = (1u64 << (exponent + fraction)) - special_codes;
        let values = (0..finite).map(|code| {
            let field = (code >> fraction) as i32;
            let rest = (code & ((1 << fraction) - 1)) as f64 / (1u64 << fraction) as f64;
            if field == 0 { rest * 2f64.powi(1 - bias) } else { (1.0 + rest) * 2f64.powi(field - bias) }
        });
        Table { exponent, fraction, values: values.collect(), nan, has_inf }
    }

    fn of(t: ScalarType) -> Table {
        match t {
            E4M3x2 | E4M3x4 => Table::new(4, 3, 1, 0x7f, false),
            E5M2x2 | E5M2x4 => Table::new(5, 2, 4, 0x7f, true),
            E2M3x2 | E2M3x4 => Table::new(2, 3, 0, 0x1f, false),
            E3M2x2 | E3M2x4 => Table::new(3, 2, 0, 0x1f, false),
            E2M1x2 | E2M1x4 => Table::new(2, 1, 0, 0x7, false),
            F16 | F16x2 => Table::new(5, 10, 1 << 10, 0x7fff, true),
            BF16 | BF16x2 => Table::new(8, 7, 1 << 7, 0x7fff, true),
            TF32 => Table::new(8, 10, 1 << 10, 0x3ffff, true),
            _ => panic!("{t} has no table"),
        }
    }

    fn sign(&self) -> u64 {
        1 << (self.exponent + self.fraction)
    }

    /// Value of the bits of one element.
    fn value(&self, a: u64) -> f64 {
        let code = a & (self.sign() - 1);
        let magnitude = match self.values.get(code as usize) {
            Some(&value) => value,
            None if self.has_inf && code as usize == self.values.len() => f64::INFINITY,
            None => f64::NAN,
        };
        if a & self.sign() != 0 { -magnitude } else { magnitude }
    }

    /// The element nearest to `x` in the manner of the rounding. Random bits: value and count.
    fn round(&self, x: f64, round: Rounding, random: (u64, i32), satfinite: bool) -> u64 {
        if x.is_nan() {
            return self.nan;
        }
        let (magnitude, negative) = (x.abs(), x.is_sign_negative());
        let last = self.values.len() - 1;
        // The number that would follow the greatest one.
        let next =
            |code: usize| self.values.get(code + 1).copied().unwrap_or(2.0 * self.values[last] - self.values[last - 1]);
        let code = self.values.partition_point(|&value| value <= magnitude) - 1;
        let (low, high) = (self.values[code], next(code));
        let (done, rest) = (magnitude - low, high - magnitude);
        let away = if magnitude >= high {
            match round {
                Rounding::Zero => false,
                Rounding::Down => negative,
                Rounding::Up => !negative,
                Rounding::Nearest | Rounding::NearestAway | Rounding::Stochastic => true,
            }
        } else {
            match round {
                Rounding::Nearest => done > rest || done == rest && code % 2 == 1,
                Rounding::NearestAway => done >= rest,
                Rounding::Zero => false,
                Rounding::Down => negative && done > 0.0,
                Rounding::Up => !negative && done > 0.0,
                Rounding::Stochastic => {
                    let one = 2f64.powi(random.1);
                    done * (one / (high - low)) >= one - random.0 as f64
                }
            }
        };
        let mut code = code as u64 + u64::from(away);
        // Infinity itself is infinite in every rounding.
        if magnitude == f64::INFINITY {
            code = last as u64 + 1;
        }
        if code > last as u64 && (satfinite || !self.has_inf) {
            code = last as u64;
        }
        code | if negative { self.sign() } else { 0 }
    }

    /// Every value and midpoint of the format with its neighbours among `f32`, infinities, NaN, and a sample.
    fn sources(&self, step: usize) -> Vec<f32> {
        let mut random = Random(self.values.len() as u64);
        let mut list = vec![0.0, f32::INFINITY, f32::NAN, f32::MAX, f32::MIN_POSITIVE, f32::from_bits(1)];
        for (code, &value) in self.values.iter().enumerate().step_by(step) {
            let next = self.values.get(code + 1).copied().unwrap_or(value * 1.5);
            for a in [value, (value + next) / 2.0] {
                let bits = (a as f32).to_bits();
                list.extend((bits.saturating_sub(2)..=bits + 2).map(f32::from_bits));
            }
        }
        list.extend((0..5_000).map(|_| f32::from_bits(random.float(8, 23) as u32)));
        let top = self.values[self.values.len() - 1];
        list.extend((0..5_000).map(|_| ((random.bits() >> 11) as f64 / (1u64 << 53) as f64 * top * 1.1) as f32));
        list.iter().flat_map(|&a| [a, -a]).collect()
    }
}

fn element_step(t: ScalarType) -> u32 {
    match t {
        E2M1x2 | E2M1x4 => 4,
        F16x2 | BF16x2 => 16,
        _ => 8,
    }
}

const SMALL: [ScalarType; 5] = [E4M3x2, E5M2x2, E2M3x2, E3M2x2, E2M1x2];

fn relu(table: &Table, a: u64) -> u64 {
    if a & table.sign() != 0 { 0 } else { a }
}

#[test]
fn pairs_of_f32_to_small_formats() {
    for to in SMALL {
        let table = Table::of(to);
        let c = Cvt { satfinite: true, ..plain(to, F32, Rounding::Nearest) };
        let step = element_step(to);
        let sources = table.sources(1);
        for (i, &a) in sources.iter().enumerate() {
            let b = sources[(i * 7 + 3) % sources.len()];
            let src = [a.to_bits().into(), b.to_bits().into()];
            let [upper, lower] = [a, b].map(|x| table.round(x.into(), Rounding::Nearest, (0, 0), true));
            assert_eq!(cvt(c, &src), upper << step | lower, "{to} of {a}, {b}");
            let c = Cvt { relu: true, ..c };
            assert_eq!(cvt(c, &src), relu(&table, upper) << step | relu(&table, lower), "relu {to} of {a}, {b}");
        }
    }
}

#[test]
fn packed_16_bit_floats_to_small_formats() {
    for to in SMALL {
        let table = Table::of(to);
        let step = element_step(to);
        for from in [F16x2, BF16x2] {
            let source = Table::of(from);
            let c = Cvt { satfinite: true, ..plain(to, from, Rounding::Nearest) };
            for low in 0..=0xffffu64 {
                let high = low.wrapping_mul(0x9e37) & 0xffff;
                let [upper, lower] = [high, low].map(|a| table.round(source.value(a), Rounding::Nearest, (0, 0), true));
                assert_eq!(cvt(c, &[high << 16 | low]), upper << step | lower, "{to} of {high:#x}, {low:#x}");
            }
        }
    }
}

#[test]
fn small_formats_to_packed_16_bit_floats() {
    for from in SMALL {
        let table = Table::of(from);
        let step = element_step(from);
        let nan_codes = matches!(from, E4M3x2 | E5M2x2);
        for to in [F16x2, BF16x2] {
            let destination = Table::of(to);
            for a in 0..=0xffffu64 >> (16 - 2 * step) {
                for relu in [false, true] {
                    let c = Cvt { relu, ..plain(to, from, Rounding::Nearest) };
                    let result = cvt(c, &[a]);
                    for (at, place) in [(0, 0), (step, 16)] {
                        let element = a >> at & (2 * table.sign() - 1);
                        let (got, value) = (result >> place & 0xffff, table.value(element));
                        if value.is_nan() {
                            assert!(nan_codes && got == 0x7fff);
                        } else if relu && element & table.sign() != 0 {
                            assert_eq!(got, 0);
                        } else {
                            assert_eq!(destination.value(got).to_bits(), value.to_bits(), "{c:?} {a:#x}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn pairs_of_f32_to_packed_16_bit_floats() {
    let mut random = Random(2);
    for to in [F16x2, BF16x2] {
        let table = Table::of(to);
        for round in [Rounding::Nearest, Rounding::Zero] {
            for (satfinite, with_relu) in [(false, false), (true, false), (true, true)] {
                let c = Cvt { satfinite, relu: with_relu, ..plain(to, F32, round) };
                for _ in 0..50_000 {
                    let [a, b] = [0; 2].map(|_| random.float(8, 23));
                    let [upper, lower] = [a, b].map(|x| {
                        let r = table.round(f32::from_bits(x as u32).into(), round, (0, 0), satfinite);
                        if with_relu { relu(&table, r) } else { r }
                    });
                    assert_eq!(cvt(c, &[a, b]), upper << 16 | lower, "{c:?} {a:#x} {b:#x}");
                }
            }
        }
    }
}

#[test]
fn f32_to_tf32() {
    let table = Table::of(TF32);
    for a in table.sources(37) {
        for round in [Rounding::Nearest, Rounding::Zero, Rounding::NearestAway] {
            for satfinite in [false, true] {
                let c = Cvt { satfinite, ..plain(TF32, F32, round) };
                let expected = table.round(a.into(), round, (0, 0), satfinite) << 13;
                assert_eq!(cvt(c, &[a.to_bits().into()]), expected, "{c:?} {a}");
                let clamped = if expected >> 31 != 0 { 0 } else { expected };
                assert_eq!(cvt(Cvt { relu: true, ..c }, &[a.to_bits().into()]), clamped);
            }
        }
    }
}

#[test]
fn stochastic_rounding_of_pairs() {
    let mut random = Random(8);
    for to in [F16x2, BF16x2] {
        let table = Table::of(to);
        let count = if to == F16x2 { 13 } else { 16 };
        for satfinite in [false, true] {
            let c = Cvt { satfinite, ..plain(to, F32, Rounding::Stochastic) };
            for _ in 0..50_000 {
                let [a, b] = [0; 2].map(|_| random.float(8, 23));
                let rbits = random.int(32);
                let value = |x: u64| f64::from(f32::from_bits(x as u32));
                let bits = |half: u64| (half & ((1 << count) - 1), count);
                let upper = table.round(value(a), Rounding::Stochastic, bits(rbits >> 16), satfinite);
                let lower = table.round(value(b), Rounding::Stochastic, bits(rbits & 0xffff), satfinite);
                assert_eq!(cvt(c, &[a, b, rbits]), upper << 16 | lower, "{c:?} {a:#x} {b:#x} {rbits:#x}");
            }
        }
    }
}

#[test]
fn stochastic_rounding_of_four() {
    let mut random = Random(9);
    for to in [E4M3x4, E5M2x4, E2M3x4, E3M2x4, E2M1x4] {
        let table = Table::of(to);
        let step = element_step(to);
        let top = table.values[table.values.len() - 1] as f32;
        let c = Cvt { satfinite: true, ..plain(to, F32, Rounding::Stochastic) };
        for _ in 0..20_000 {
            let src = [0; 4].map(|_| {
                if random.below(4) == 0 {
                    f32::from_bits(random.float(8, 23) as u32)
                } else {
                    ((random.bits() >> 40) as f32 / (1 << 23) as f32 - 1.0) * top * 1.1
                }
            });
            let r = random.int(32);
            let (ab, ef) = if to == E2M1x4 {
                (r >> 24 << 8 | r >> 8 & 0xff, (r >> 16 & 0xff) << 8 | r & 0xff)
            } else {
                (r >> 16, r & 0xffff)
            };
            let reversed = |a: u64| (0..16).map(|i| (a >> i & 1) << (15 - i)).sum::<u64>();
            let random_bits = [reversed(ab), ab, reversed(ef), ef];
            let elements =
                [0, 1, 2, 3].map(|i| table.round(src[i].into(), Rounding::Stochastic, (random_bits[i], 16), true));
            let mut bits: Vec<u64> = src.iter().map(|a| a.to_bits().into()).collect();
            bits.push(r);
            let expected = elements.iter().fold(0, |result, element| result << step | element);
            assert_eq!(cvt(c, &bits), expected, "{c:?} {src:?} {r:#x}");
            let clamped = elements.iter().fold(0, |result, &element| result << step | relu(&table, element));
            assert_eq!(cvt(Cvt { relu: true, ..c }, &bits), clamped);
        }
    }
}

#[test]
fn stochastic_rounding_is_exact_on_average() {
    let c = plain(BF16x2, F32, Rounding::Stochastic);
    for a in [1.0f32 + 1.0 / 512.0, -3.7, 1e-40] {
        let sum: f64 = (0..=0xffffu64)
            .map(|r| f64::from(f32::from_bits((cvt(c, &[0, a.to_bits().into(), r]) << 16) as u32)))
            .sum();
        let gap = f64::from(a.abs()) / 64.0;
        assert!((sum / 65536.0 - f64::from(a)).abs() < gap / 65536.0 + 1e-44, "{a}: {}", sum / 65536.0);
    }
}

#[test]
fn ue8m0_is_a_table_of_powers() {
    let powers: Vec<f64> = (0..255).map(|code| 2f64.powi(code - 127)).collect();
    let expected = |x: f64, up: bool, satfinite: bool| -> u64 {
        let x = x.abs();
        if x.is_nan() {
            return 0xff;
        }
        let found = if up {
            powers.iter().position(|&power| power >= x)
        } else if x == f64::INFINITY {
            None
        } else {
            Some(powers.iter().rposition(|&power| power <= x).unwrap_or(0))
        };
        found.map_or(if satfinite { 0xfe } else { 0xff }, |code| code as u64)
    };
    let mut sources: Vec<u32> = vec![0, 1, 2, 0x3f_ffff, 0x40_0000, 0x40_0001, 0x7f7f_ffff, 0x7f80_0000, 0x7fc0_0000];
    sources.extend((0..255).flat_map(|field: u32| [0, 1, 2, 0x7f_ffff].map(|rest| field << 23 | rest)));
    let mut random = Random(10);
    sources.extend((0..5_000).map(|_| random.float(8, 23) as u32));
    for (up, round) in [(true, Rounding::Up), (false, Rounding::Zero)] {
        for satfinite in [false, true] {
            let c = Cvt { satfinite, ..plain(UE8M0x2, F32, round) };
            for &a in &sources {
                let b = a ^ 0x8000_0000;
                let [upper, lower] = [a, b].map(|x| expected(f32::from_bits(x).into(), up, satfinite));
                assert_eq!(upper, lower, "the sign is dropped");
                assert_eq!(cvt(c, &[a.into(), b.into()]), upper << 8 | lower, "{c:?} {a:#x}");
            }
            let c = Cvt { from: BF16x2, ..c };
            for a in 0..=0xffffu64 {
                let b = 0xffff - a;
                let [upper, lower] = [b, a].map(|x| expected(f32::from_bits((x << 16) as u32).into(), up, satfinite));
                assert_eq!(cvt(c, &[b << 16 | a]), upper << 8 | lower, "{c:?} {a:#x}");
            }
        }
    }
    let table = Table::of(BF16x2);
    for code in 0..=0xffu64 {
        let result = cvt(plain(BF16x2, UE8M0x2, Rounding::Nearest), &[code << 8 | 0x7f]);
        assert_eq!(result & 0xffff, 0x3f80);
        match powers.get(code as usize) {
            Some(&power) => assert_eq!(table.value(result >> 16), power),
            None => assert_eq!(result >> 16, 0x7fff),
        }
    }
}

#[test]
fn s2f6_is_a_byte_in_64ths() {
    let mut random = Random(11);
    // Nearest of the 256 values, ties to the even byte.
    let nearest = |x: f64| -> i64 {
        if x.is_nan() {
            return 127;
        }
        let distance = |n: i64| (n as f64 / 64.0 - x).abs();
        let clamped = x.clamp(-2.0, 127.0 / 64.0);
        let low = (clamped * 64.0).floor() as i64;
        let high = (low + 1).min(127);
        if x != clamped || distance(low) < distance(high) || distance(low) == distance(high) && low % 2 == 0 {
            low
        } else {
            high
        }
    };
    for _ in 0..100_000 {
        let [a, b] = [0; 2].map(|_| match random.below(3) {
            0 => f32::from_bits(random.float(8, 23) as u32),
            1 => (random.below(1200) as f32 - 600.0) / 256.0,
            _ => (random.bits() >> 40) as f32 / (1 << 22) as f32 - 2.0,
        });
        let src = [a.to_bits().into(), b.to_bits().into()];
        for clamped in [false, true] {
            let c = Cvt { satfinite: true, relu: clamped, ..plain(S2F6x2, F32, Rounding::Nearest) };
            let byte = |n: i64| (if clamped { n.max(0) } else { n }) as u64 & 0xff;
            let expected = byte(nearest(a.into())) << 8 | byte(nearest(b.into()));
            assert_eq!(cvt(c, &src), expected, "{a} {b}");
            assert_eq!(cvt(c, &[src[0], src[1], 0x7f7f]), expected);
            let scaled = byte(nearest(f64::from(a) / 4.0)) << 8 | byte(nearest(f64::from(b) * 2.0));
            assert_eq!(cvt(c, &[src[0], src[1], 0x817e]), scaled);
        }
    }
    let nan_scale = cvt(plain(S2F6x2, F32, Rounding::Nearest), &[0x3f80_0000, 0x3f80_0000, 0xff7f]);
    assert_eq!(nan_scale, 0x7f40);
    let bf16 = Table::of(BF16x2);
    for a in 0..=0xffffu64 {
        let c = Cvt { satfinite: true, ..plain(S2F6x2, BF16x2, Rounding::Nearest) };
        let expected = (nearest(bf16.value(a)) as u64 & 0xff) << 8 | 0x40;
        assert_eq!(cvt(c, &[a << 16 | 0x3f80, 0x7f7f]), expected, "{a:#x}");
        let up = cvt(plain(BF16x2, S2F6x2, Rounding::Nearest), &[a, 0x8079]);
        assert_eq!(bf16.value(up >> 16), (a >> 8) as u8 as i8 as f64 / 32.0);
        assert_eq!(bf16.value(up & 0xffff), a as u8 as i8 as f64 / 4096.0);
    }
}
