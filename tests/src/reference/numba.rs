//! Kernels that Numba compiled. An array is passed as seven parameters or more: owner, parent, number of items, bytes of an item, address,
//! then lengths and strides in bytes by dimension. The operations were read from the code.

use handloom_runtime::{Arg, DeviceBuffer};

use super::data::{HALF_ULP, HALF_ULP_64, Within, doubles, floats, mixed, n32, near, same, wide_words};
use super::functions::{black_scholes, erf};
use super::numeric::{fused_product, product};
use super::run::{Kernels, read};

/// The parameters of an array whose last dimension is contiguous, but for a factor on all strides.
fn array<'a>(buffer: &'a DeviceBuffer, item: u64, shape: &[u64], factor: u64) -> Vec<Arg<'a>> {
    let mut args = vec![Arg::from(0_u64), Arg::from(0_u64), Arg::from(shape.iter().product::<u64>()), Arg::from(item)];
    args.push(buffer.into());
    args.extend(shape.iter().map(|n| Arg::from(*n)));
    args.extend((0..shape.len()).map(|i| Arg::from(item * factor * shape[i + 1..].iter().product::<u64>())));
    args
}

/// `y += a * x` over arrays with strides, by a loop over the grid.
pub fn axpy_strided(k: &Kernels<'_>) {
    let n = 777;
    let (x, y) = (doubles(1, 2 * n, -4.0, 4.0), doubles(5000, 3 * n, -4.0, 4.0));
    let a = 0.3_f32;
    let mut want = y.clone();
    for i in 0..n {
        want[3 * i] = x[2 * i].mul_add(f64::from(a), y[3 * i]);
    }
    for (grid, block) in [(7, 128), (2, 96), (1, 33)] {
        let (dx, dy) = (k.copy_of(&x), k.copy_of(&y));
        let args = [vec![Arg::from(a)], array(&dx, 8, &[n as u64], 2), array(&dy, 8, &[n as u64], 3)].concat();
        k.launch("", [grid, 1, 1], [block, 1, 1], &args);
        same(&k.what("axpy_strided"), &read(&dy), &want);
    }
}

/// A product of matrices through tiles of 16 by 16; sizes are multiples of 16.
pub fn matmul_shared(k: &Kernels<'_>) {
    let (m, n, inner) = (48, 32, 64);
    let (a, b) = (floats(1, m * inner), floats(9000, inner * n));
    let (da, db, dc) = (k.copy_of(&a), k.copy_of(&b), k.zeros::<f32>(m * n));
    let shape = |r: usize, c: usize| [r as u64, c as u64];
    let args = [array(&da, 4, &shape(m, inner), 1), array(&db, 4, &shape(inner, n), 1), array(&dc, 4, &shape(m, n), 1)];
    k.launch("", [n32(m) / 16, n32(n) / 16, 1], [16, 16, 1], &args.concat());
    let got = read::<f32>(&dc);
    if k.name().contains("debug") {
        // Not contracted: 64 products and 64 sums of terms below 1/4, partial sums below 16, each off by half a unit.
        near(
            &k.what("matmul_shared"),
            &got,
            &product(m, n, inner, &a, &b),
            Within { absolute: (64.0 * 0.25 + 64.0 * 4.0) * HALF_ULP, relative: 0.0 },
        );
    } else {
        same(&k.what("matmul_shared"), &got, &fused_product(m, n, inner, &a, &b));
    }
}

/// The sum of an array: shuffles in each warp, then an atomic addition. Whole numbers, so that the order does not matter.
pub fn reduce_shfl(k: &Kernels<'_>) {
    let n = 1000;
    let v: Vec<f64> = (0..n32(n)).map(|i| f64::from(mixed(i) % 4096) - 2048.0).collect();
    for block in [32, 64, 256] {
        let (di, d) = (k.copy_of(&v), k.zeros::<f64>(1));
        let args = [array(&di, 8, &[n as u64], 1), array(&d, 8, &[1], 1)].concat();
        k.launch("", [n32(n).div_ceil(block), 1, 1], [block, 1, 1], &args);
        same(&k.what("reduce_shfl"), &read(&d), &[v.iter().sum::<f64>()]);
    }
}

/// One step of Jacobi's method: a quarter of the sum of four neighbours; the rim is left alone.
pub fn jacobi(k: &Kernels<'_>) {
    let (w, h) = (37, 29);
    let (v, rim) = (floats(1, w * h), floats(7000, w * h));
    let mut want = rim.clone();
    for i in 1..w - 1 {
        for j in 1..h - 1 {
            let at = |i: usize, j: usize| v[i * h + j];
            want[i * h + j] = (((at(i - 1, j) + at(i + 1, j)) + at(i, j - 1)) + at(i, j + 1)) * 0.25;
        }
    }
    for block in [[16, 16, 1], [8, 4, 1], [5, 7, 1]] {
        let (di, d) = (k.copy_of(&v), k.copy_of(&rim));
        let shape = [w as u64, h as u64];
        let args = [array(&di, 4, &shape, 1), array(&d, 4, &shape, 1)].concat();
        k.launch("", [n32(w).div_ceil(block[0]), n32(h).div_ceil(block[1]), 1], block, &args);
        same(&k.what("jacobi"), &read(&d), &want);
    }
}

/// Steps of `z = z * z + c` in f64, at most `limit`; the result is the last `z` plus the number of steps, as pairs of f32.
pub fn mandel(k: &Kernels<'_>) {
    let (n, limit) = (600_usize, 50);
    let c: Vec<f32> = (0..n).flat_map(|i| [(i % 30) as f32 * 0.1 - 2.0, (i / 30) as f32 * 0.125 - 1.25]).collect();
    let mut want = Vec::new();
    for pair in c.chunks(2) {
        let (cr, ci) = (f64::from(pair[0]), f64::from(pair[1]));
        let (mut r, mut i, mut steps) = (0.0_f64, 0.0_f64, 0);
        while steps < limit {
            let product = r * i;
            let im = r.mul_add(i, product) + ci;
            (r, i) = (r * r - i * i + cr, im);
            if r.mul_add(r, i * i) > 4.0 {
                break;
            }
            steps += 1;
        }
        want.extend([(r + f64::from(steps)) as f32, (i + 0.0) as f32]);
    }
    let (dc, d) = (k.copy_of(&c), k.zeros::<f32>(2 * n));
    let args = [array(&dc, 8, &[n as u64], 1), array(&d, 8, &[n as u64], 1), vec![Arg::from(limit)]].concat();
    k.launch("", [5, 1, 1], [128, 1, 1], &args);
    same(&k.what("mandel"), &read(&d), &want);
}

/// Values of European calls in f64.
pub fn blackscholes(k: &Kernels<'_>) {
    let n = 100;
    let (s, x, t) = (doubles(1, n, 5.0, 30.0), doubles(500, n, 1.0, 100.0), doubles(900, n, 0.25, 10.0));
    let (ds, dx, dt, d) = (k.copy_of(&s), k.copy_of(&x), k.copy_of(&t), k.zeros::<f64>(n));
    let one = |b| array(b, 8, &[n as u64], 1);
    let args = [one(&ds), one(&dx), one(&dt), one(&d), vec![Arg::from(0.02_f64), Arg::from(0.3_f64)]].concat();
    k.launch("", [1, 1, 1], [128, 1, 1], &args);
    let want: Vec<f64> = (0..n).map(|i| black_scholes(s[i], x[i], t[i], 0.02, 0.3).0).collect();
    // Differences of numbers below 100 whose factors are good to about 10 units in the last place: 1e-13 is 900 of 1.
    near(&k.what("blackscholes"), &read::<f64>(&d), &want, Within { absolute: 1e-13, relative: 1e-13 });
}

/// The sum of what the warp functions give: ballot, all, any, match, shuffles, a counting barrier, the lanes below, the active lanes.
pub fn warp(k: &Kernels<'_>) {
    for threads in [32_usize, 64] {
        for spread in [2, 5, 40] {
            let v: Vec<i32> = (0..n32(threads))
                .map(|i| i32::try_from(mixed(i) % spread).expect("small") + 2 - spread as i32 % 4)
                .collect();
            let nonzero = n32(v.iter().filter(|v| **v != 0).count());
            let mut want = Vec::new();
            for warp in v.chunks(32) {
                let votes = |f: &dyn Fn(i32) -> bool| {
                    warp.iter().enumerate().fold(0_u32, |m, (i, v)| m | u32::from(f(*v)) << i)
                };
                for (lane, own) in warp.iter().enumerate() {
                    let terms = [
                        votes(&|v| v > 0),
                        u32::from(votes(&|v| v > 1) == !0),
                        votes(&|v| v == *own),
                        u32::from(votes(&|v| v > 2) != 0),
                        warp[lane ^ 3].cast_unsigned(),
                        warp[lane.saturating_sub(1)].cast_unsigned(),
                        nonzero,
                        (1 << lane) - 1,
                        !0,
                    ];
                    want.push(terms.into_iter().fold(0, u32::wrapping_add));
                }
            }
            let (di, d) = (k.copy_of(&v), k.zeros::<u32>(threads));
            let args = [array(&di, 4, &[threads as u64], 1), array(&d, 4, &[threads as u64], 1)].concat();
            k.launch("", [1, 1, 1], [n32(threads), 1, 1], &args);
            same(&k.what("warp"), &read(&d), &want);
        }
    }
}

/// Division and remainder that round down, with zero for a divisor of zero and for an overflow, plus shifts and bit counts.
pub fn idiv(k: &Kernels<'_>) {
    let n = 200;
    let mut a: Vec<i64> = wide_words(1, n).into_iter().map(u64::cast_signed).collect();
    let mut b: Vec<i64> = wide_words(900, n).into_iter().map(|w| u64::cast_signed(w) >> (w % 60)).collect();
    (a[0], b[0], a[1], b[1], a[2], b[2]) = (5, 0, i64::MIN, -1, 77, 10);
    (a[3], b[3], a[4], b[4], a[5], b[5]) = (-77, 10, 77, -10, 0, -3);
    let one = |(a, b): (&i64, &i64)| {
        let (a, b) = (*a, *b);
        let (quotient, rest) = match (a.checked_div(b), a.checked_rem(b)) {
            (Some(q), Some(r)) if r != 0 && (r < 0) != (b < 0) => (q - 1, r + b),
            (Some(q), Some(r)) => (q, r),
            _ => (0, 0),
        };
        let low = u32::try_from(a.cast_unsigned() & 0xffff_ffff).expect("32 bits");
        let ffs = if b == 0 { 0 } else { b.trailing_zeros() + 1 };
        let counts = [low.reverse_bits(), ffs, a.count_ones(), b.leading_zeros()].map(i64::from);
        [quotient, rest, a << 3, b >> 2].into_iter().chain(counts).fold(0, i64::wrapping_add)
    };
    let want: Vec<i64> = a.iter().zip(&b).map(one).collect();
    let (da, db, d) = (k.copy_of(&a), k.copy_of(&b), k.zeros::<i64>(n));
    let args = [&da, &db, &d].map(|b| array(b, 8, &[n as u64], 1)).concat();
    k.launch("", [2, 1, 1], [128, 1, 1], &args);
    same(&k.what("idiv"), &read(&d), &want);
}

/// `sin(x) + cos(y) + exp(x) + log(y) + pow(x, y) + sqrt(x) + tanh(y) + erf(x) + atan2(x, y) + floor(x) + fmod(x, y)`.
pub fn math64(k: &Kernels<'_>) {
    let n = 100;
    let (x, y) = (doubles(1, n, 0.1, 9.0), doubles(5000, n, 0.2, 4.0));
    let (dx, dy, d) = (k.copy_of(&x), k.copy_of(&y), k.zeros::<f64>(n));
    let args = [&dx, &dy, &d].map(|b| array(b, 8, &[n as u64], 1)).concat();
    k.launch("", [1, 1, 1], [128, 1, 1], &args);
    for (i, g) in read::<f64>(&d).into_iter().enumerate() {
        let (x, y) = (x[i], y[i]);
        let first = [x.sin(), y.cos(), x.exp(), y.ln(), x.powf(y), x.sqrt()];
        let second = [y.tanh(), erf(x), x.atan2(y), x.floor(), x % y];
        let terms = first.into_iter().chain(second);
        let (sum, sizes) = terms.fold((0.0, 0.0), |(s, z), t: f64| (s + t, z + t.abs()));
        // Terms within 4 half units, 10 additions; the reference as much again.
        assert!((g - sum).abs() <= 28.0 * HALF_ULP_64 * sizes, "{} [{i}]: {g} {sum}", k.what("math64"));
    }
}

/// A function that the compiler folded: the number of the thread, doubled from 2 on.
pub fn devfn(k: &Kernels<'_>) {
    let d = k.zeros::<i32>(40);
    k.launch("", [1, 1, 1], [40, 1, 1], &array(&d, 4, &[40], 1));
    same(&k.what("devfn"), &read(&d), &(0..40).map(|i| if i > 1 { 2 * i } else { i }).collect::<Vec<_>>());
}

/// `print("thread", i, n, 1.5)`.
pub fn prints(k: &Kernels<'_>) {
    let _ = k.output();
    k.launch("", [1, 1, 1], [3, 1, 1], &[Arg::from(-7_i32)]);
    let text = k.output();
    let mut got: Vec<&str> = text.lines().collect();
    got.sort_unstable();
    assert_eq!(got, ["thread 0 -7 1.500000", "thread 1 -7 1.500000", "thread 2 -7 1.500000"], "{}", k.what("prints"));
}
