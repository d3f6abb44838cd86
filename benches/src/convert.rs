//! Arrays converted from one type to another, beside the same loop in C; for the small floats, beside the host code of the CUDA headers.
//!
//! References are computed here, in Rust: `as` and bit arithmetic, for small floats a division by the step of the exponent. They and C must
//! give the same bits.

use crate::cases::{Case, Input, Job, Scale, kernel, size};
use crate::data::{Expected, index, mixed, mixed_float};
use crate::native::Source;

const LOOPS: Source =
    Source { name: "convert", text: include_str!("../c/convert.c"), needs_cuda_headers: false, cxx: &[] };
const HEADERS: Source = Source {
    name: "convert_headers",
    text: include_str!("../c/convert_headers.c"),
    needs_cuda_headers: true,
    cxx: &[],
};

const fn case(name: &'static str, c: Source, judged: &'static str, floor: f64, job: fn(Scale) -> Job) -> Case {
    let ptx = kernel!("convert");
    Case {
        name,
        ptx,
        first: None,
        entry: judged,
        c,
        judged,
        beside: &[],
        floor: Some(floor),
        goal: None,
        unit: "G/s",
        job,
    }
}

/// All conversions.
pub const CASES: &[Case] = &[
    case("cvt f32 to f16", LOOPS, "f32_to_f16", 0.5, |s| job(s, 0, 4, floats, |i| bytes(f16_of(mixed_float(i))))),
    case("cvt f16 to f32", LOOPS, "f16_to_f32", 0.5, |s| job(s, 1, 4, |i| bytes(f16_of(mixed_float(i))), wide_f16)),
    case("cvt f32 to bf16", LOOPS, "f32_to_bf16", 0.5, |s| job(s, 2, 4, floats, |i| bytes(bf16_of(mixed_float(i))))),
    case("cvt f32 to s32", LOOPS, "f32_to_s32", 0.5, |s| {
        job(s, 3, 4, |i| bytes((mixed_float(i) * 4e6).to_bits()), |i| bytes((mixed_float(i) * 4e6) as i32 as u32))
    }),
    case("cvt s32 to f32", LOOPS, "s32_to_f32", 0.5, |s| {
        job(s, 4, 4, |i| bytes(mixed(i)), |i| bytes((mixed(i).cast_signed() as f32).to_bits()))
    }),
    case("cvt u8 to f32", LOOPS, "u8_to_f32", 0.5, |s| {
        job(s, 5, 4, |i| vec![mixed(i) as u8], |i| bytes(f32::from(mixed(i) as u8).to_bits()))
    }),
    case("cvt f64 to s64", LOOPS, "f64_to_s64", 0.5, |s| {
        let value = |i: u32| f64::from(mixed_float(i)) * 1e15;
        job(s, 6, 8, move |i| value(i).to_le_bytes().to_vec(), move |i| (value(i) as i64).to_le_bytes().to_vec())
    }),
    case("cvt s64 to f64", LOOPS, "s64_to_f64", 0.5, |s| {
        let value = |i: u32| (u64::from(mixed(i)) << 32 | u64::from(mixed(!i))).cast_signed();
        job(s, 7, 8, move |i| value(i).to_le_bytes().to_vec(), move |i| (value(i) as f64).to_le_bytes().to_vec())
    }),
    case("cvt f32 to e4m3x2", HEADERS, "f32_to_e4m3", 5.0, |s| {
        job(s, 0, 8, pairs, |i| vec![e4m3_of(small(2 * i)), e4m3_of(small(2 * i + 1))])
    }),
    case("cvt e4m3x2 to f16x2", HEADERS, "e4m3_to_f16", 5.0, |s| {
        let halves = |i: u32| [f16_of_e4m3(mixed(i) as u8), f16_of_e4m3((mixed(i) >> 8) as u8)];
        job(s, 1, 4, |i| (mixed(i) as u16).to_le_bytes().to_vec(), move |i| halves(i).concat())
    }),
    case("cvt f32 to e2m1x2", HEADERS, "f32_to_e2m1", 5.0, |s| {
        job(s, 2, 8, pairs, |i| vec![e2m1_of(small(2 * i)) | e2m1_of(small(2 * i + 1)) << 4])
    }),
];

/// A job of elements: `kind` is the index of the variant in C, `widest` the larger of the two elements in bytes.
fn job(scale: Scale, kind: u32, widest: u32, from: impl Fn(u32) -> Vec<u8>, to: impl Fn(u32) -> Vec<u8>) -> Job {
    let n = scale.of((64 << 20) / widest, (64 << 10) / widest, 1000);
    let fill = |f: &dyn Fn(u32) -> Vec<u8>| {
        let mut all = Vec::with_capacity(index(n * widest));
        (0..n).for_each(|i| all.extend(f(i)));
        all
    };
    let want = fill(&to);
    let words = want.as_chunks().0.iter().map(|w| u32::from_le_bytes(*w)).collect::<Vec<u32>>();
    let zeros = vec![0; want.len()];
    Job {
        label: size(n * widest),
        grid: [n.div_ceil(BLOCK), 1, 1],
        block: [BLOCK, 1, 1],
        shared: 0,
        inputs: vec![Input::Word(n), Input::Buffer(fill(&from)), Input::Buffer(zeros)],
        output: 2,
        sizes: vec![n, kind],
        work: f64::from(n),
        expected: Expected::Words(words.clone()),
        expected_c: Expected::Words(words),
    }
}

/// Threads of a block.
const BLOCK: u32 = 1024;

fn bytes<const N: usize>(value: impl Into<Word<N>>) -> Vec<u8> {
    value.into().0.to_vec()
}

/// Bytes of a number.
struct Word<const N: usize>([u8; N]);

impl From<u32> for Word<4> {
    fn from(v: u32) -> Self {
        Word(v.to_le_bytes())
    }
}

impl From<u16> for Word<2> {
    fn from(v: u16) -> Self {
        Word(v.to_le_bytes())
    }
}

fn floats(i: u32) -> Vec<u8> {
    bytes(mixed_float(i).to_bits())
}

/// A float between -8 and 8.
fn small(i: u32) -> f32 {
    mixed_float(i) * 16.0
}

fn pairs(i: u32) -> Vec<u8> {
    [small(2 * i), small(2 * i + 1)].iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn wide_f16(i: u32) -> Vec<u8> {
    // What was rounded to 11 bits, as a number.
    bytes(steps_of(mixed_float(i), 10, -14).1.to_bits())
}

/// A float in whole steps of a format, to nearest, and the number that this is: 10 fraction bits and the least exponent -14 for f16.
fn steps_of(a: f32, fraction: i32, least: i32) -> (i32, f32) {
    let exponent = ((a.to_bits() >> 23 & 0xff).cast_signed() - 127).max(least);
    let step = 2_f32.powi(exponent - fraction);
    let steps = (a.abs() / step).round_ties_even();
    // A number of steps that reaches the next power of two has the next exponent's code by itself.
    let code = (steps as i32) + ((exponent - least) << fraction);
    (code, (steps * step).copysign(a))
}

fn f16_of(a: f32) -> u16 {
    (steps_of(a, 10, -14).0 as u16) | if a.is_sign_negative() { 0x8000 } else { 0 }
}

fn bf16_of(a: f32) -> u16 {
    (steps_of(a, 7, -126).0 as u16) | if a.is_sign_negative() { 0x8000 } else { 0 }
}

fn e4m3_of(a: f32) -> u8 {
    (steps_of(a, 3, -6).0 as u8) | if a.is_sign_negative() { 0x80 } else { 0 }
}

fn e2m1_of(a: f32) -> u8 {
    (steps_of(a, 1, 0).0.min(7) as u8) | if a.is_sign_negative() { 8 } else { 0 }
}

fn f16_of_e4m3(code: u8) -> Vec<u8> {
    let (field, fraction) = (i32::from(code >> 3 & 15), f32::from(code & 7));
    let size = if field == 0 { fraction / 512.0 } else { (8.0 + fraction) * 2_f32.powi(field - 10) };
    let nan = code & 0x7f == 0x7f;
    let sign = if code & 0x80 != 0 { 0x8000 } else { 0 };
    bytes(if nan { 0x7fff } else { f16_of(size) | sign })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_know_numbers_of_each_format() {
        assert_eq!((f16_of(1.0), f16_of(-0.000_03), f16_of(0.3)), (0x3c00, 0x81f7, 0x34cd));
        assert_eq!((bf16_of(1.0), bf16_of(0.3)), (0x3f80, 0x3e9a));
        assert_eq!((e4m3_of(1.0), e4m3_of(-7.9), e4m3_of(0.001)), (0x38, 0xd0, 0x01));
        assert_eq!((e2m1_of(1.0), e2m1_of(-8.0), e2m1_of(0.25), e2m1_of(5.1)), (2, 15, 0, 7));
        assert_eq!((f16_of_e4m3(0x7f), f16_of_e4m3(0xb8)), (vec![0xff, 0x7f], vec![0x00, 0xbc]));
    }

    #[test]
    fn jobs_say_what_their_kernels_take() {
        for case in CASES {
            let job = (case.job)(Scale::Tiny);
            let parameters = case.ptx.matches(&format!("{}_param_", case.entry)).count() / 2;
            assert_eq!(job.inputs.len(), parameters, "{}", case.name);
            assert!(case.c.text.contains(case.judged), "{}", case.name);
        }
    }
}
