//! Kernels of tinygrad, by its own PTX renderer and by its CUDA renderer with NVRTC. Parameters are the output, then the inputs. Sizes are
//! part of the code; the operations were read from the code and the names of the files.

use half::{bf16, f16};
use handloom_runtime::Arg;

use super::data::{Element, HALF_ULP, HALF_ULP_64, Within, doubles, floats, n32, near, same, wide_words, words};
use super::numeric::{product, softmax, widen};
use super::run::{Kernels, read};
use super::threefry::{threefry2x32, unit_float};

/// Runs the only entry with an output of `n` values and the inputs, and reads the output.
fn run<T: Element>(k: &Kernels<'_>, grid: [u32; 3], block: [u32; 3], n: usize, inputs: &[&dyn Input]) -> Vec<T> {
    let d = k.zeros::<T>(n);
    let buffers: Vec<_> = inputs.iter().map(|i| i.on(k)).collect();
    let args: Vec<Arg<'_>> = std::iter::once(&d).chain(&buffers).map(Arg::from).collect();
    k.launch("", grid, block, &args);
    read(&d)
}

/// Values for a parameter.
trait Input {
    /// A buffer with them.
    fn on(&self, k: &Kernels<'_>) -> handloom_runtime::DeviceBuffer;
}

impl<T: Element> Input for Vec<T> {
    fn on(&self, k: &Kernels<'_>) -> handloom_runtime::DeviceBuffer {
        k.copy_of(self)
    }
}

/// Element by element: 64 values, four a thread.
fn map<T: Element>(k: &Kernels<'_>, inputs: &[&dyn Input], want: &[T]) {
    same(&k.what("E_16_4"), &run::<T>(k, [1, 1, 1], [16, 1, 1], 64, inputs), want);
}

/// The sum of two vectors of 1,000.
pub fn add(k: &Kernels<'_>) {
    let (a, b) = (floats(1, 1000), floats(4000, 1000));
    let want: Vec<f32> = a.iter().zip(&b).map(|(x, y)| x + y).collect();
    same(&k.what("add"), &run(k, [125, 1, 1], [2, 1, 1], 1000, &[&a, &b]), &want);
}

/// Division and remainder that round down, and small operations on words and bytes.
pub fn idiv(k: &Kernels<'_>, part: &str) {
    let w = words(1, 64);
    match part {
        "0" => {
            let mut a: Vec<i32> = w.into_iter().map(u32::cast_signed).collect();
            let mut b: Vec<i32> = words(500, 64).into_iter().map(|w| u32::cast_signed(w) >> (w % 28) | 1).collect();
            (a[0], b[0], a[1], b[1], a[2], b[2], a[3], b[3]) = (7, -2, -7, 2, -8, 2, 0, -5);
            let one = |(a, b): (&i32, &i32)| a.div_euclid(*b) - i32::from(*b < 0 && a.rem_euclid(*b) != 0);
            map(k, &[&a, &b], &a.iter().zip(&b).map(one).collect::<Vec<_>>());
        }
        "1" => {
            let mut a: Vec<i64> = wide_words(1, 64).into_iter().map(u64::cast_signed).collect();
            let mut b: Vec<i64> =
                wide_words(500, 64).into_iter().map(|w| u64::cast_signed(w) >> (w % 60) | 1).collect();
            (a[0], b[0], a[1], b[1], a[2], b[2], a[3], b[3]) = (7, -2, -7, 2, 1 << 31, 3, 0, -5);
            // The remainder has the sign of the divisor.
            let one = |(a, b): (&i64, &i64)| {
                let r = a % b;
                if r != 0 && (r < 0) != (*b < 0) { r + b } else { r }
            };
            map(k, &[&a, &b], &a.iter().zip(&b).map(one).collect::<Vec<_>>());
        }
        "2" => {
            let a: Vec<u8> = w.iter().map(|w| w.to_le_bytes()[0]).collect();
            map(k, &[&a], &a.iter().map(|v| v.wrapping_mul(3)).collect::<Vec<_>>());
        }
        "3" => map(k, &[&w], &w.iter().map(|v| v << 2).collect::<Vec<_>>()),
        "4" => map(k, &[&w], &w.iter().map(|v| v >> 3).collect::<Vec<_>>()),
        "5" => map(k, &[&w], &w.iter().map(|v| v ^ 5).collect::<Vec<_>>()),
        _ => panic!("no reference for part {part} of idiv"),
    }
}

/// Conversions. Inputs stay in the range of the target, because PTX and C differ outside it.
pub fn casts(k: &Kernels<'_>, part: &str) {
    let unit = floats(1, 64);
    let scaled = |factor: f32| unit.iter().map(|v| v * factor).collect::<Vec<f32>>();
    let mut wide = scaled(1e5);
    // Ties, the smallest numbers, overflow, infinity, NaN.
    wide[..10].copy_from_slice(&[
        2049.0,
        2051.0,
        5.96e-8,
        2.98e-8,
        65_519.996,
        65_520.0,
        f32::INFINITY,
        f32::NAN,
        -0.0,
        f32::MAX,
    ]);
    match part {
        "0" => map(k, &[&wide], &wide.iter().map(|v| f16::from_f32(*v)).collect::<Vec<_>>()),
        "1" => map(k, &[&wide], &wide.iter().map(|v| bf16::from_f32(*v)).collect::<Vec<_>>()),
        "2" => map(k, &[&scaled(250.0)], &scaled(250.0).iter().map(|v| *v as i8).collect::<Vec<_>>()),
        "3" => {
            let v: Vec<f32> = scaled(255.0).iter().map(|v| v + 127.5).collect();
            map(k, &[&v], &v.iter().map(|v| *v as u8).collect::<Vec<_>>());
        }
        "4" => map(k, &[&scaled(1.8e19)], &scaled(1.8e19).iter().map(|v| *v as i64).collect::<Vec<_>>()),
        "5" => map(k, &[&wide], &widen(&wide)),
        "6" => {
            wide[20] = 0.0;
            map(k, &[&wide], &wide.iter().map(|v| u8::from(*v != 0.0)).collect::<Vec<_>>());
        }
        "7" => {
            let v: Vec<f16> = scaled(1e5).iter().map(|v| f16::from_f32(*v)).collect();
            map(k, &[&v], &v.iter().map(|v| v.to_f32() as i32).collect::<Vec<_>>());
        }
        "8" => {
            let mut v = wide_words(1, 64);
            (v[0], v[1], v[2]) = (u64::MAX, (1 << 25) + 2, (1 << 40) + (1 << 16));
            map(k, &[&v], &v.iter().map(|v| *v as f32).collect::<Vec<_>>());
        }
        _ => panic!("no reference for part {part} of casts"),
    }
}

/// Rows of 100 values.
fn rows(n: usize) -> Vec<f32> {
    floats(1, 100 * n).into_iter().map(|v| 10.0 * v).collect()
}

fn largest(row: &[f32]) -> f32 {
    row.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}

/// The largest of each of 32 rows, then its first place.
pub fn argmax(k: &Kernels<'_>, part: &str) {
    let mut v = rows(32);
    // A tie: the first place counts.
    (v[130], v[170]) = (6.0, 6.0);
    let tops: Vec<f32> = v.chunks(100).map(largest).collect();
    if part == "0" {
        same(&k.what("argmax"), &run(k, [1, 1, 1], [32, 1, 1], 32, &[&v]), &tops);
    } else {
        let place = |(row, top): (&[f32], &f32)| row.iter().position(|x| x == top).map(|i| n32(i).cast_signed());
        let want: Vec<i32> = v.chunks(100).zip(&tops).filter_map(place).collect();
        same(&k.what("argmax"), &run(k, [1, 1, 1], [32, 1, 1], 32, &[&v, &tops]), &want);
    }
}

/// The largest, the logarithm of the sum of exponentials, and the result of logsoftmax over 64 rows.
pub fn logsoftmax(k: &Kernels<'_>, part: &str) {
    let v = rows(64);
    let tops: Vec<f32> = v.chunks(100).map(largest).collect();
    let sums: Vec<f64> = v
        .chunks(100)
        .zip(&tops)
        .map(|(row, top)| row.iter().map(|x| f64::from(x - top).exp()).sum::<f64>().ln())
        .collect();
    match part {
        "0" => same(&k.what("logsoftmax"), &run(k, [2, 1, 1], [32, 1, 1], 64, &[&v]), &tops),
        "1" => {
            let got = run::<f32>(k, [2, 1, 1], [32, 1, 1], 64, &[&v, &tops]);
            // A term exp(-a) with a below 10: the product with log2 e is off by 1.5 half units of a number below 16, that is 24 ln 2, or
            // 17 half units of the result; the approximation adds 4 and the 99 additions at most 99. The logarithm of a sum that is
            // off by 120 half units is off by that much absolutely; `lg2.approx` adds less than 4, and the result is below 5: 8 more.
            near(&k.what("logsoftmax"), &got, &sums, Within { absolute: 132.0 * HALF_ULP, relative: 0.0 });
        }
        _ => {
            let rounded: Vec<f32> = sums.iter().map(|s| *s as f32).collect();
            let got = run::<f32>(k, [25, 2, 1], [32, 1, 1], v.len(), &[&v, &tops, &rounded]);
            let want: Vec<f32> = (0..v.len()).map(|i| (v[i] - tops[i / 100]) - rounded[i / 100]).collect();
            same(&k.what("logsoftmax"), &got, &want);
            // The three kernels together are a logsoftmax: numbers below 16 with three roundings.
            let whole: Vec<f64> = widen(&v).chunks(100).flat_map(|r| softmax(r).into_iter().map(f64::ln)).collect();
            near(&k.what("logsoftmax"), &got, &whole, Within { absolute: 48.0 * HALF_ULP, relative: 0.0 });
        }
    }
}

/// The largest of each 2 by 2 of 4 images of 32 by 16.
pub fn maxpool(k: &Kernels<'_>) {
    let v = floats(1, 2048);
    let one = |i: usize| {
        let at = i / 8 * 32 + i % 8 * 2;
        largest(&[v[at], v[at + 1], v[at + 16], v[at + 17]])
    };
    let want: Vec<f32> = (0..512).map(one).collect();
    same(&k.what("maxpool"), &run(k, [4, 1, 1], [16, 8, 1], 512, &[&v]), &want);
}

/// Sums in two steps: 4,096 values a block, then 256 values. 16 threads sum their part in order, then one sums the 16 parts in order.
pub fn sum_big(k: &Kernels<'_>, part: &str) {
    // The code is for 256 blocks; a few are enough.
    let (blocks, each) = if part == "0" { (6, 256) } else { (1, 16) };
    let v = floats(1, blocks * 16 * each);
    let in_order = |v: &[f32]| v.iter().fold(0.0_f32, |s, x| s + x);
    let block = |v: &[f32]| in_order(&v.chunks(each).map(in_order).collect::<Vec<_>>());
    let want: Vec<f32> = v.chunks(16 * each).map(block).collect();
    same(&k.what("sum_big"), &run(k, [n32(blocks), 1, 1], [16, 1, 1], blocks, &[&v]), &want);
}

/// A product of matrices of 128 by 128.
pub fn matmul_f32(k: &Kernels<'_>) {
    let (a, b) = (floats(1, 128 * 128), floats(90_000, 128 * 128));
    let got = run::<f32>(k, [2, 4, 1], [8, 16, 1], 128 * 128, &[&a, &b]);
    // 128 terms below 1/4 in any grouping; 128 products and 128 additions of partial sums below 32, at most half a unit each.
    let within = Within { absolute: (128.0 * 0.25 + 128.0 * 32.0) * HALF_ULP, relative: 0.0 };
    near(&k.what("matmul"), &got, &product(128, 128, 128, &a, &b), within);
}

/// A convolution by 3 by 3 with a step of 2 and a rim of zeros: 4 channels of 16 by 16 to 4 of 8 by 8.
pub fn conv2d_wino(k: &Kernels<'_>) {
    let (v, w) = (floats(1, 1024), floats(7000, 144));
    let got = run::<f32>(k, [2, 1, 1], [2, 8, 8], 256, &[&v, &w]);
    let one = |i: usize| {
        let (out, y, x) = (i / 64, i / 8 % 8, i % 8);
        let mut sum = 0.0;
        for tap in 0..36 {
            let (channel, dy, dx) = (tap / 9, tap / 3 % 3, tap % 3);
            if let (Some(sy), Some(sx)) = ((2 * y + dy).checked_sub(1), (2 * x + dx).checked_sub(1)) {
                sum += f64::from(v[channel * 256 + sy * 16 + sx]) * f64::from(w[out * 36 + tap]);
            }
        }
        sum
    };
    // 36 terms below 1/4 in any grouping: 36 products and 36 additions of partial sums below 9, at most half a unit each.
    let within = Within { absolute: (36.0 * 0.25 + 36.0 * 9.0) * HALF_ULP, relative: 0.0 };
    near(&k.what("conv2d"), &got, &(0..256).map(one).collect::<Vec<_>>(), within);
}

/// A generator of numbers: the counter of 64 bits moves on by `n`, then each of `n` numbers comes from its place, by Threefry under a key
/// that is itself Threefry of the counter under the seed.
pub fn random(k: &Kernels<'_>, part: &str, n: u32) {
    for (low, seed) in [(n, [1, 2]), (u32::MAX - 3, [0xdead_beef, 7]), (5, [0, 0])] {
        let counter = vec![low, 9];
        match part {
            "0" => {
                let d = k.copy_of(&counter);
                k.launch("", [1, 1, 1], [1, 1, 1], &[(&d).into()]);
                let sum = (u64::from(counter[1]) << 32 | u64::from(low)) + u64::from(n);
                same(&k.what("counter"), &read::<u64>(&d), &[sum]);
            }
            "1" => {
                // The numbers are those of the counter before it moved on.
                let before = (u64::from(counter[1]) << 32 | u64::from(low)) - u64::from(n);
                let halves = [before & 0xffff_ffff, before >> 32].map(|h| u32::try_from(h).expect("32 bits"));
                let key = threefry2x32(halves, seed);
                let half = n / 2;
                let pairs: Vec<[u32; 2]> = (0..half).map(|i| threefry2x32([i, i + half], key)).collect();
                let want: Vec<f32> = (0..2).flat_map(|side| pairs.iter().map(move |p| unit_float(p[side]))).collect();
                let got = run::<f32>(k, [half / 32, 1, 1], [32, 1, 1], want.len(), &[&counter, &seed.to_vec()]);
                same(&k.what("random"), &got, &want);
            }
            _ => return normal(k),
        }
    }
}

/// Numbers of the normal distribution from pairs of uniform ones, after Box and Muller: `cos(2 pi u) sqrt(-2 ln(1 - v))`.
fn normal(k: &Kernels<'_>) {
    // v stays away from 0, where the approximate logarithm has no relative bound.
    let u: Vec<f32> =
        floats(1, 8192).into_iter().enumerate().map(|(i, v)| if i < 4096 { v + 0.5 } else { v * 0.9 + 0.5 }).collect();
    let got = run::<f32>(k, [32, 1, 1], [32, 1, 1], 4096, &[&u]);
    let one = |i: usize| {
        let (u, v) = (f64::from(u[i]), f64::from(u[i + 4096]));
        (std::f64::consts::TAU * u).cos() * (-2.0 * (1.0 - v).ln()).sqrt()
    };
    // The radius is between 0.3 and 2.5. `sin.approx.f32` is within 2^-20.5 on [-2 pi, 2 pi] and its argument, below 8, within 8 half units
    // and the constants of the code as much: 2.5 (12 + 16) half units. The square of the radius is off by 2^-22 ln 2 and 4 half units of 6,
    // below 30 half units; the radius by that over 0.6, below 50. Together below 128.
    near(
        &k.what("normal"),
        &got,
        &(0..4096).map(one).collect::<Vec<_>>(),
        Within { absolute: 128.0 * HALF_ULP, relative: 0.0 },
    );
}

/// `sin(a) + exp2(b) + log2(c)` in f64.
pub fn trig_f64(k: &Kernels<'_>) {
    let mut a = doubles(1, 64, -30.0, 30.0);
    (a[0], a[1], a[2]) = (1e10, -3e15, 0.0);
    let (b, c) = (doubles(500, 64, -5.0, 5.0), doubles(900, 64, 0.01, 50.0));
    let got = run::<f64>(k, [1, 1, 1], [16, 1, 1], 64, &[&a, &b, &c]);
    let want: Vec<f64> = (0..64).map(|i| a[i].sin() + b[i].exp2() + c[i].log2()).collect();
    // Three numbers below 32, each good to 2 units in the last place, and two additions: below 8 half units of 64.
    near(&k.what("trig"), &got, &want, Within { absolute: 512.0 * HALF_ULP_64, relative: 0.0 });
}
