//! Kernels of Triton. The last two parameters are scratch buffers, which these kernels do not use. The operations were read from the code.

use half::{bf16, f16};
use handloom_runtime::Arg;

use super::data::{HALF_ULP, Within, bytes_of, floats, mixed, n32, near, same};
use super::functions::erf;
use super::numeric::{softmax, widen};
use super::run::{Kernels, read};

/// Softmax of rows of f16, up to 512 columns.
pub fn softmax_f16(k: &Kernels<'_>) {
    for columns in [1, 77, 128, 300, 512] {
        let (rows, stride) = (3, columns + 5);
        let v: Vec<f16> = floats(1, rows * stride).iter().map(|v| f16::from_f32(v * 8.0)).collect();
        let (di, d, unused) = (k.copy_of(&v), k.zeros::<f16>(v.len()), k.zeros::<u8>(16));
        let size = [Arg::from(n32(columns)), Arg::from(n32(stride))];
        let args = [(&di).into(), (&d).into(), size[0], size[1], (&unused).into(), (&unused).into()];
        k.launch_shared("softmax", [n32(rows), 1, 1], [128, 1, 1], 1024, &args);
        let got = read::<f16>(&d);
        for (row, out) in v.chunks(stride).zip(got.chunks(stride)) {
            let exact: Vec<f64> = row[..columns].iter().map(|v| f64::from(*v)).collect();
            // Half a unit in the last place of f16, 2^-11, or of its subnormals, 2^-25; the f32 before that is off by less than 64 half
            // units of its own, which 1/100 of it covers.
            let within = Within { absolute: 0.5_f64.powi(25), relative: 1.01 * 0.5_f64.powi(11) };
            near(&k.what("softmax"), &out[..columns], &softmax(&exact), within);
            same(&k.what("softmax"), &out[columns..], &[f16::from_bits(0); 5]);
        }
    }
}

/// An inclusive scan of 256 values as the kernel does it: by doubling distances in each 32, then over the eights of them in order.
fn scan(v: &[f32], combine: impl Fn(f32, f32) -> f32) -> Vec<f32> {
    let mut before = None;
    let mut out = Vec::new();
    for chunk in v.chunks(32) {
        let mut part = chunk.to_vec();
        for distance in [1, 2, 4, 8, 16] {
            let old = part.clone();
            for i in distance..32 {
                part[i] = combine(old[i - distance], old[i]);
            }
        }
        let total = part[31];
        out.extend(part.iter().map(|x| before.map_or(*x, |b| combine(b, *x))));
        before = Some(before.map_or(total, |b| combine(b, total)));
    }
    out
}

/// A reduction by exchanges over half the width, then a quarter, and so on, as each of the lanes sees it.
fn butterfly(v: &[f32], combine: &impl Fn(f32, f32) -> f32) -> Vec<f32> {
    let mut all = v.to_vec();
    let mut distance = v.len() / 2;
    while distance > 0 {
        all = (0..v.len()).map(|i| combine(all[i], all[i ^ distance])).collect();
        distance /= 2;
    }
    all
}

/// What each lane of the four warps has at the end of the reduction in its warp. The operation is not commutative, so the lanes differ, and
/// all lanes of a warp then write to the same word of shared memory: the manual leaves open which one wins.
fn reductions(x: &[f32], combine: &impl Fn(f32, f32) -> f32) -> Vec<f32> {
    let pairs: Vec<f32> = (0..128).map(|i| combine(x[i], x[i + 128])).collect();
    pairs.chunks(32).flat_map(|warp| butterfly(warp, combine)).collect()
}

/// Prefix sums, sorting, counting, a scan and a reduction with `a b + a`, the place of the largest, a gather, and reversing.
pub fn scan_sort(k: &Kernels<'_>) {
    let n = 256;
    let mut x: Vec<f32> = (0..n32(n)).map(|i| (mixed(i) % 2000) as f32 / 1024.0 - 1.1).collect();
    x[..6].copy_from_slice(&[3.0, 14.5, 15.9, 16.2, 100.0, -1.05]);
    // A tie for the largest: the first place counts.
    x[200] = 100.0;
    let product = |a: f32, b: f32| a.mul_add(b, a);

    let mut sorted = x.clone();
    sorted.sort_by(f32::total_cmp);
    let gathered: Vec<f32> = (0..n).map(|i| x[7 * i % n]).collect();
    let reversed: Vec<f32> = x.iter().rev().copied().collect();
    let first = [scan(&x, |a, b| a + b), scan(&x, product), gathered, reversed].concat();
    let mut counts = vec![0_u32; 16];
    for v in &x {
        // Numbers below 1 in size are 0 as integers.
        if *v > -1.0 && *v < 16.0 {
            counts[v.trunc().abs() as usize] += 1;
        }
    }

    let (di, d1, d2) = (k.copy_of(&x), k.zeros::<f32>(first.len()), k.zeros::<f32>(n + 2));
    let (d3, unused) = (k.zeros::<u32>(16), k.zeros::<u8>(16));
    let args = [(&di).into(), (&d1).into(), (&d2).into(), (&d3).into(), (&unused).into(), (&unused).into()];
    k.launch_shared("scan_sort", [1, 1, 1], [128, 1, 1], 4096, &args);
    same(&k.what("scans"), &read(&d1), &first);
    let second = read::<f32>(&d2);
    same(&k.what("sorted"), &second[..n], &sorted);
    same(&k.what("argmax"), &second[n..=n], &[4.0]);
    let reduced = reductions(&x, &product);
    let is_one = |warps: [usize; 4]| butterfly(&warps.map(|w| reduced[w]), &product)[0] == second[n + 1];
    // The same lane writes in each warp, whichever it is: see `reductions`.
    assert!(
        (0..32).any(|lane| is_one([0, 1, 2, 3].map(|w| 32 * w + lane))),
        "{}: {}",
        k.what("reduced"),
        second[n + 1]
    );
    same(&k.what("counts"), &read(&d3), &counts);
}

/// The terms of the sum that `mathfn` forms for the value at a place.
fn terms(i: usize, x: f64) -> [f64; 21] {
    let whole = (x.trunc() / 7.0).trunc() + (i % 5) as f64;
    let first = [x.exp(), x.ln(), x.sin(), x.cos(), x.sqrt(), x.sqrt().recip(), erf(x), x.exp2(), x.log2()];
    let second = [x.floor(), x.ceil(), x.abs(), 1.0 / (1.0 + (-x).exp()), x * x + x, x / (x + 1.0), x.sqrt(), whole];
    let third = [x.max(0.0), x.min(2.0), x.clamp(0.0, 1.0), 0.0];
    let mut all = [0.0; 21];
    all.iter_mut().zip(first.into_iter().chain(second).chain(third)).for_each(|(to, from)| *to = from);
    all
}

/// The sum of twenty functions of a value.
pub fn mathfn(k: &Kernels<'_>) {
    let n = 500;
    let x: Vec<f32> = floats(1, n).into_iter().map(|v| 10.0 * v + 5.125).collect();
    let (di, d, unused) = (k.copy_of(&x), k.zeros::<f32>(n), k.zeros::<u8>(16));
    let args = [(&di).into(), (&d).into(), Arg::from(n32(n)), (&unused).into(), (&unused).into()];
    k.launch("mathfn", [2, 1, 1], [128, 1, 1], &args);
    for (i, (g, x)) in read::<f32>(&d).into_iter().zip(widen(&x)).enumerate() {
        let all = terms(i, x);
        let (sum, sizes): (f64, f64) = (all.iter().sum(), all.iter().map(|t| t.abs()).sum());
        // The exponentials have arguments below 16 that are rounded once: 24 half units, and 4 by the approximation; the others less.
        // Twenty additions add 20. Logarithms and `erf` are off by units of 1, which `cos` and the rest of the sum cover.
        let within = 48.0 * HALF_ULP * (sizes + 1.0);
        assert!((f64::from(g) - sum).abs() <= within, "{} [{i}]: {g} {sum}", k.what("mathfn"));
    }
}

/// What a byte means as a number with four bits of exponent and three of mantissa, or five and two, without the sign.
fn small_float(code: u8, mantissa_bits: i32, bias: i32) -> f64 {
    let (exponent, mantissa) = (i32::from(code) >> mantissa_bits, i32::from(code) & ((1 << mantissa_bits) - 1));
    let fraction = f64::from(mantissa) / f64::from(1 << mantissa_bits);
    if exponent == 0 { fraction * 2_f64.powi(1 - bias) } else { (1.0 + fraction) * 2_f64.powi(exponent - bias) }
}

/// The nearest of the finite numbers, ties to the even code, larger ones to the largest.
fn to_small_float(x: f32, mantissa_bits: i32, bias: i32, largest: u8) -> (u8, f64) {
    let size = f64::from(x.abs());
    let distance = |code: &u8| (small_float(*code, mantissa_bits, bias) - size).abs();
    let nearest = (0..=largest).min_by(|a, b| distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1))));
    let code = nearest.expect("there are codes");
    let sign = if x.is_sign_negative() { 0x80 } else { 0 };
    (code | sign, small_float(code, mantissa_bits, bias).copysign(f64::from(x)))
}

/// Conversions of 256 values to f16, bf16, e4m3, e5m2, i8 and f64, and the sum of the first four read back.
pub fn casts(k: &Kernels<'_>) {
    let mut x: Vec<f32> = floats(1, 256).into_iter().map(|v| 200.0 * v).collect();
    x[..8].copy_from_slice(&[0.0, -0.0, 1.0625, 1.1875, 0.001, -0.0009, 17.0, 19.0]);
    let dx = k.copy_of(&x);
    let sizes = [2_usize, 2, 1, 1, 1, 8];
    let outs: Vec<_> = sizes.iter().map(|s| k.zeros::<u8>(256 * s)).collect();
    let unused = k.zeros::<u8>(16);
    let args: Vec<Arg<'_>> = std::iter::once(&dx).chain(&outs).chain([&unused, &unused]).map(Arg::from).collect();
    k.launch("casts", [1, 1, 1], [128, 1, 1], &args);
    let halves: Vec<f16> = x.iter().map(|v| f16::from_f32(*v)).collect();
    let brains: Vec<bf16> = x.iter().map(|v| bf16::from_f32(*v)).collect();
    let (codes4, values4): (Vec<u8>, Vec<f64>) = x.iter().map(|v| to_small_float(*v, 3, 7, 0x7e)).unzip();
    let (codes5, values5): (Vec<u8>, Vec<f64>) = x.iter().map(|v| to_small_float(*v, 2, 15, 0x7b)).unzip();
    let want = [
        bytes_of(&halves),
        bytes_of(&brains),
        codes4,
        codes5,
        bytes_of(&x.iter().map(|v| *v as i8).collect::<Vec<_>>()),
        bytes_of(&widen(&x)),
    ];
    for (i, (out, want)) in outs.iter().zip(&want).enumerate() {
        same(&k.what(&format!("output {i}")), &out.to_vec(), want);
    }
    let sum = |i: usize| values4[i] as f32 + values5[i] as f32 + halves[i].to_f32() + brains[i].to_f32();
    same(&k.what("sums"), &read(&dx), &(0..256).map(sum).collect::<Vec<_>>());
}

/// Each of 128 threads prints its place and its value, zero past the end.
pub fn dbg(k: &Kernels<'_>) {
    let _ = k.output();
    let x: Vec<i32> = (0..100).map(|i| 1000 + i).collect();
    let (di, unused) = (k.copy_of(&x), k.zeros::<u8>(16));
    let args = [(&di).into(), Arg::from(100_u32), (&unused).into(), (&unused).into()];
    k.launch("dbg", [1, 1, 1], [128, 1, 1], &args);
    let text = k.output();
    let mut got: Vec<&str> = text.lines().collect();
    got.sort_unstable();
    let value = |i: usize| x.get(i).copied().unwrap_or(0);
    let mut want: Vec<String> = (0..128).map(|i| line(i, value(i))).collect();
    want.sort_unstable();
    assert_eq!(got, want, "{}", k.what("dbg"));
}

/// The format that the program has.
fn line(i: usize, value: i32) -> String {
    format!("pid (0, 0, 0) idx ({i:3}) v: {value}")
}
