//! Kernels that NVRTC compiled, against what their CUDA sources say. The sources are short enough to be quoted at each reference.

use std::cell::Cell;

use handloom_runtime::{Arg, LaunchError};

use super::data::{HALF_ULP, HALF_ULP_64, Within, doubles, floats, mixed, n32, near, same, wide_words, words};
use super::functions::{black_scholes, erf, gamma, normcdf};
use super::numeric::widen;
use super::run::{Kernels, read};

/// `a * x + y` with one rounding, or two where the compiler did not contract it (`-G`).
fn axpy(contracts: bool, a: f32, x: &[f32], y: &[f32]) -> Vec<f32> {
    x.iter().zip(y).map(|(x, y)| if contracts { a.mul_add(*x, *y) } else { a * x + y }).collect()
}

/// `saxpy`, `saxpy_stride`, `saxpy4`, `daxpy`, `iops` and `small_types`. `contracts` says whether the compiler fuses products and sums.
pub fn saxpy(k: &Kernels<'_>, contracts: bool) {
    let n = 1001;
    let (x, y) = (floats(1, n), floats(4000, n));
    let dx = k.copy_of(&x);
    let scale = Arg::from(1.75_f32);

    let d = k.copy_of(&y);
    k.launch("saxpy", [8, 1, 1], [128, 1, 1], &[Arg::from(n32(n)), scale, (&dx).into(), (&d).into()]);
    same(&k.what("saxpy"), &read(&d), &axpy(contracts, 1.75, &x, &y));

    // The source asks for `fmaf`, so this one is fused in any case.
    let d = k.copy_of(&y);
    k.launch("saxpy_stride", [3, 1, 1], [96, 1, 1], &[Arg::from(n as u64), scale, (&dx).into(), (&d).into()]);
    same(&k.what("saxpy_stride"), &read(&d), &axpy(true, 1.75, &x, &y));

    let d = k.copy_of(&y);
    k.launch("saxpy4", [2, 1, 1], [128, 1, 1], &[Arg::from(250_u32), scale, (&dx).into(), (&d).into()]);
    let mut want = axpy(contracts, 1.75, &x, &y);
    want[1000] = y[1000];
    same(&k.what("saxpy4"), &read(&d), &want);

    let (x, y) = (doubles(1, n, -3.0, 3.0), doubles(4000, n, -3.0, 3.0));
    let (dx, d) = (k.copy_of(&x), k.copy_of(&y));
    k.launch("daxpy", [8, 1, 1], [128, 1, 1], &[Arg::from(n32(n)), Arg::from(0.3_f64), (&dx).into(), (&d).into()]);
    let one = |(x, y): (&f64, &f64)| if contracts { 0.3_f64.mul_add(*x, *y) } else { 0.3 * x + y };
    same(&k.what("daxpy"), &read(&d), &x.iter().zip(&y).map(one).collect::<Vec<_>>());

    integers(k);
    small_types(k);
}

/// Integer ops of both signs, added up as the source of `iops` does.
fn integers(k: &Kernels<'_>) {
    let n = 500;
    let mut v: Vec<i32> = words(7, n).into_iter().map(u32::cast_signed).collect();
    let mut w = words(900, n);
    v[..5].copy_from_slice(&[i32::MAX, i32::MIN + 1, 0, -1, 1]);
    w[..5].copy_from_slice(&[u32::MAX, u32::MAX, 0, 1, 9]);
    let one = |(v, w): (&i32, &u32)| {
        let (v, w) = (*v, *w);
        let small = [v / 7, v % 13, v.min(5), v.abs(), v >> 3, if v < 0 { !v } else { -v }];
        let large = [w / 10, w % 1000, w.max(9), w << 2];
        let product = i64::from(v) * i64::from(w);
        let terms = small.into_iter().map(i64::from).chain(large.into_iter().map(i64::from));
        terms.fold(product, i64::wrapping_add)
    };
    let want: Vec<i64> = v.iter().zip(&w).map(one).collect();
    let (dv, dw, d) = (k.copy_of(&v), k.copy_of(&w), k.zeros::<i64>(n));
    k.launch("iops", [4, 1, 1], [128, 1, 1], &[Arg::from(n32(n)), (&dv).into(), (&dw).into(), (&d).into()]);
    same(&k.what("iops"), &read(&d), &want);
}

/// `o[i] = (short)(a[i] * c[i] + (d[i] >> 2)); p[i] = (unsigned char)(b[i] ^ (a[i] + d[i]))`, on a grid of three dimensions.
fn small_types(k: &Kernels<'_>) {
    let n = 8000;
    let bits = words(3, n);
    let a: Vec<i8> = bits.iter().map(|w| w.to_le_bytes()[0].cast_signed()).collect();
    let b: Vec<u8> = bits.iter().map(|w| w.to_le_bytes()[1]).collect();
    let c: Vec<i16> =
        words(9000, n).iter().map(|w| i16::from_le_bytes([w.to_le_bytes()[0], w.to_le_bytes()[1]])).collect();
    let d: Vec<u16> = bits.iter().map(|w| u16::from_le_bytes([w.to_le_bytes()[2], w.to_le_bytes()[3]])).collect();
    let low = |v: i32| [v.to_le_bytes()[0], v.to_le_bytes()[1]];
    let o = |i: usize| i16::from_le_bytes(low(i32::from(a[i]) * i32::from(c[i]) + i32::from(d[i] >> 2)));
    let p = |i: usize| low(i32::from(b[i]) ^ (i32::from(a[i]) + i32::from(d[i])))[0];
    let (da, db, dc, dd) = (k.copy_of(&a), k.copy_of(&b), k.copy_of(&c), k.copy_of(&d));
    let (to, tp) = (k.zeros::<i16>(n), k.zeros::<u8>(n));
    let args = [Arg::from(n32(n)), (&da).into(), (&db).into(), (&dc).into(), (&dd).into(), (&to).into(), (&tp).into()];
    k.launch("small_types", [1, 4, 2], [64, 16, 1], &args);
    same(&k.what("small_types"), &read(&to), &(0..n).map(o).collect::<Vec<_>>());
    same(&k.what("small_types"), &read(&tp), &(0..n).map(p).collect::<Vec<_>>());
}

/// `layernorm`, `gelu` and `adam`. `is_fast` says that the compiler was asked for fast and inexact functions.
pub fn layernorm(k: &Kernels<'_>, is_fast: bool) {
    let rows = 3;
    for (c, block) in [(100, 32_u32), (333, 96), (1000, 256)] {
        let x = floats(5, rows * c);
        let (gain, bias) = (floats(77, c), floats(8888, c));
        let mut want = Vec::new();
        for row in widen(&x).chunks(c) {
            let mean = row.iter().sum::<f64>() / c as f64;
            let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / c as f64;
            let scale = (variance + f64::from(1e-5_f32)).sqrt().recip();
            want.extend(
                row.iter().zip(&gain).zip(&bias).map(|((v, g), b)| (v - mean) * scale * f64::from(*g) + f64::from(*b)),
            );
        }
        let (dx, dg, db, dy) = (k.copy_of(&x), k.copy_of(&gain), k.copy_of(&bias), k.zeros::<f32>(x.len()));
        let args = [(&dx).into(), (&dg).into(), (&db).into(), (&dy).into(), Arg::from(n32(c)), Arg::from(1e-5_f32)];
        k.launch("layernorm", [n32(rows), 1, 1], [block, 1, 1], &args);
        // Inputs are in [-0.5, 0.5), so the mean is near 0, the variance near 1/12, and |(v - mean) scale| below 2: nothing cancels. A
        // sum has at most 4 terms a thread, 5 steps of the tree and 8 warps: 17 half units of the sum of sizes, which for the mean
        // (sizes 1/4 on average) is scaled up by 3.5. The square root takes half of the 17 and its own 3, the fast division 4 more,
        // the products 3: below 100 half units of 1.
        let within = Within { absolute: 100.0 * HALF_ULP, relative: 2.0 * HALF_ULP };
        near(&k.what("layernorm"), &read::<f32>(&dy), &want, within);
    }
    gelu(k, is_fast);
    adam(k);
}

/// `0.5 v (1 + tanh(0.7978845608 (v + 0.044715 v^3))) + v normcdf(v) + v / (1 + exp(-v)) + erf(v)`.
fn gelu(k: &Kernels<'_>, is_fast: bool) {
    let v: Vec<f32> = floats(31, 400).into_iter().map(|v| 6.0 * v).collect();
    let one = |v: f64| {
        let inner = 0.797_884_560_8 * (v + 0.044_715 * v * v * v);
        0.5 * v * (1.0 + inner.tanh()) + v * normcdf(v) + v / (1.0 + (-v).exp()) + erf(v)
    };
    let want: Vec<f64> = widen(&v).into_iter().map(one).collect();
    let (dv, d) = (k.copy_of(&v), k.zeros::<f32>(v.len()));
    k.launch("gelu", [4, 1, 1], [128, 1, 1], &[(&dv).into(), (&d).into(), Arg::from(n32(v.len()))]);
    // Each of the four terms is below 3, and CUDA's guide bounds `tanhf`, `normcdff`, `expf` and `erff` by 5 units in the last place:
    // four terms, each within 16 half units of 4. With fast functions `tanh.approx.f32`, within 2^-10.98 relative by the manual, rules:
    // half of v times that is below 7.5e-4.
    let absolute = if is_fast { 7.6e-4 } else { 256.0 * HALF_ULP };
    near(&k.what("gelu"), &read::<f32>(&d), &want, Within { absolute, relative: 0.0 });
}

/// One step of Adam.
fn adam(k: &Kernels<'_>) {
    let n = 300;
    let (p, g, m) = (floats(1, n), floats(1000, n), floats(2000, n));
    let v: Vec<f32> = floats(3000, n).into_iter().map(|v| v + 0.75).collect();
    let (b1, b2) = (0.9_f32, 0.95_f32);
    let (dp, dg, dm, dv) = (k.copy_of(&p), k.copy_of(&g), k.copy_of(&m), k.copy_of(&v));
    let mut args: Vec<Arg<'_>> = vec![(&dp).into(), (&dg).into(), (&dm).into(), (&dv).into(), Arg::from(n32(n))];
    args.extend([0.01_f32, b1, b2, 1e-8].map(Arg::from));
    args.push(Arg::from(5_u32));
    k.launch("adam", [3, 1, 1], [128, 1, 1], &args);
    let (b1, b2) = (f64::from(b1), f64::from(b2));
    let at = |a: &[f32], i: usize| f64::from(a[i]);
    let m1: Vec<f64> = (0..n).map(|i| b1 * at(&m, i) + (1.0 - b1) * at(&g, i)).collect();
    let v1: Vec<f64> = (0..n).map(|i| b2 * at(&v, i) + (1.0 - b2) * at(&g, i).powi(2)).collect();
    let step = |i: usize| {
        let (mh, vh) = (m1[i] / (1.0 - b1.powi(5)), v1[i] / (1.0 - b2.powi(5)));
        f64::from(0.01_f32) * mh / (vh.sqrt() + 1e-8)
    };
    // Numbers up to 1 with at most 4 roundings each.
    let within = Within { absolute: 4.0 * HALF_ULP, relative: 0.0 };
    near(&k.what("adam"), &read::<f32>(&dm), &m1, within);
    near(&k.what("adam"), &read::<f32>(&dv), &v1, Within { absolute: 8.0 * HALF_ULP, relative: 0.0 });
    // The step is below 0.02; `powf` by fast functions is within 2^-19 here, and 1 - 0.95^5 is above 0.2: 1e-5 of the step is less
    // than 4 half units of 1, and the subtraction adds one.
    let want: Vec<f64> = (0..n).map(|i| at(&p, i) - step(i)).collect();
    near(&k.what("adam"), &read::<f32>(&dp), &want, Within { absolute: 6.0 * HALF_ULP, relative: 0.0 });
}

/// The functions of `d1`, each good to 2 units in the last place by CUDA's guide.
fn first_terms(x: f64, y: f64) -> [f64; 9] {
    [x.sin(), y.cos(), x.exp(), y.ln(), x.powf(y), x.sqrt(), y.sqrt().recip(), x / y, 1.0 / x]
}

/// The functions of `d2`.
fn second_terms(x: f64, y: f64) -> [f64; 17] {
    let round = x.abs().floor() + if x.abs().fract() < 0.5 { 0.0 } else { 1.0 };
    [
        x.tan(),
        x.atan2(y),
        x.tanh(),
        erf(y),
        x.cbrt(),
        y.ln_1p(),
        x.exp2(),
        y.log10(),
        x % y,
        x.hypot(y),
        gamma(x),
        x.asin(),
        y.acosh(),
        round.copysign(x),
        y.floor(),
        4.0 * x,
        x.copysign(y),
    ]
}

/// `d1`, `d2`, `i64` and `blackscholes`.
pub fn math64(k: &Kernels<'_>) {
    let sum = |terms: &[f64]| (terms.iter().sum::<f64>(), terms.iter().map(|t| t.abs()).sum::<f64>());
    let compare = |entry: &str, x: Vec<f64>, terms: &dyn Fn(f64, f64) -> (f64, f64), units: f64| {
        let (dx, d) = (k.copy_of(&x), k.zeros::<f64>(32));
        k.launch(entry, [1, 1, 1], [32, 1, 1], &[(&dx).into(), (&d).into()]);
        for (i, g) in read::<f64>(&d).into_iter().enumerate() {
            let (want, sizes) = terms(x[i], x[i + 32]);
            assert!((g - want).abs() <= units * HALF_ULP_64 * sizes, "{} [{i}]: {g} {want}", k.what(entry));
        }
    };
    // Each term is within 4 half units of its size, and 8 additions are off by half a unit of a partial sum each: 12; the reference
    // itself has as much.
    let x = [doubles(1, 32, 0.1, 9.0), doubles(50, 32, 0.2, 4.0)].concat();
    compare("d1", x, &|x, y| sum(&first_terms(x, y)), 24.0);
    // A large second argument takes the slow reduction of the cosine; the power of a number below 1 is then 0.
    let x = [doubles(1, 32, 0.1, 0.9), doubles(50, 32, 3e9, 4e9)].concat();
    compare("d1", x, &|x, y| sum(&first_terms(x, y)), 24.0);
    // `tgamma` is allowed 10 units, the others 2; 16 additions: 20 + 16. The reference adds as much, and its gamma, good to 1e-14, about
    // 90 half units.
    let x = [doubles(1, 32, 0.1, 0.95), doubles(50, 32, 1.1, 6.0)].concat();
    compare("d2", x, &|x, y| sum(&second_terms(x, y)), 160.0);
    wide_integers(k);
    options(k);
}

/// The sum of divisions, remainders, products, shifts and bit counts of 64 bits, modulo 2^64.
fn wide_integers(k: &Kernels<'_>) {
    let mut a: Vec<i64> = wide_words(1, 64).into_iter().map(u64::cast_signed).collect();
    let mut b = wide_words(900, 64);
    // Operands of 32 bits take another way through the division.
    (a[3], a[35], a[4], a[36], a[5], a[37]) = (77, 5, i64::MAX, -1, -9, 1 << 40);
    (b[6], b[38], b[7], b[39]) = (0xffff_ffff, 3, u64::MAX, 1);
    let want: Vec<u64> = (0..32)
        .map(|i| {
            let (x, y, u, v) = (a[i], a[i + 32], b[i], b[i + 32]);
            let high = (i128::from(x) * i128::from(y)) >> 64;
            let high = u64::try_from(high & i128::from(u64::MAX)).expect("64 bits");
            let high_u = u64::try_from((u128::from(u) * u128::from(v)) >> 64).expect("64 bits");
            let ffs = if x == 0 { 0 } else { x.trailing_zeros() + 1 };
            let shifted = [x / y, x % y, x >> (y & 63), x << 5, x.min(y), x.max(y), x.wrapping_abs()];
            let bits = [u / v, u % v, high, high_u, u >> 3, u.reverse_bits()];
            let counts = [u.count_ones(), x.leading_zeros(), ffs].map(u64::from);
            let all = shifted.into_iter().map(i64::cast_unsigned).chain(bits).chain(counts);
            all.fold(0, u64::wrapping_add)
        })
        .collect();
    let (da, db, d) = (k.copy_of(&a), k.copy_of(&b), k.zeros::<u64>(32));
    k.launch("i64", [1, 1, 1], [32, 1, 1], &[(&da).into(), (&db).into(), (&d).into()]);
    same(&k.what("i64"), &read(&d), &want);
}

/// Values of options in f64.
fn options(k: &Kernels<'_>) {
    let n = 100;
    let (s, x, t) = (doubles(1, n, 5.0, 30.0), doubles(500, n, 1.0, 100.0), doubles(900, n, 0.25, 10.0));
    let (ds, dx, dt) = (k.copy_of(&s), k.copy_of(&x), k.copy_of(&t));
    let (dc, dp) = (k.zeros::<f64>(n), k.zeros::<f64>(n));
    let mut args: Vec<Arg<'_>> = vec![(&ds).into(), (&dx).into(), (&dt).into(), (&dc).into(), (&dp).into()];
    args.extend([Arg::from(0.02_f64), Arg::from(0.3_f64), Arg::from(n32(n))]);
    k.launch("blackscholes", [1, 1, 1], [128, 1, 1], &args);
    let (calls, puts): (Vec<f64>, Vec<f64>) = (0..n).map(|i| black_scholes(s[i], x[i], t[i], 0.02, 0.3)).unzip();
    // Values are differences of numbers below 100 whose factors are good to about 10 units in the last place: 1e-13 is 900 of 1.
    let within = Within { absolute: 1e-13, relative: 1e-13 };
    near(&k.what("blackscholes"), &read::<f64>(&dc), &calls, within);
    near(&k.what("blackscholes"), &read::<f64>(&dp), &puts, within);
}

fn fib(n: i32) -> i32 {
    if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
}

fn ackermann(m: i32, n: i32) -> i32 {
    match (m, n) {
        (0, _) => n + 1,
        (_, 0) => ackermann(m - 1, 1),
        _ => ackermann(m - 1, ackermann(m, n - 1)),
    }
}

/// Recursion, tables of functions, structures by value, virtual functions, pointers in globals, switches, the heap, large parameters.
/// `launched` counts the launches of `k_glob` in this module, whose counter lives as long as the module: there is one for each width of vectors.
pub fn devcall(k: &Kernels<'_>, launched: &Cell<i32>) {
    let n = 48;
    let lanes = || 0..i32::try_from(n).expect("few threads");
    let block = [n32(n), 1, 1];
    let d = k.zeros::<i32>(n);
    k.launch("k_fib", [1, 1, 1], block, &[(&d).into()]);
    same(&k.what("k_fib"), &read(&d), &lanes().map(|i| fib(i & 15) + ackermann(2, i & 3)).collect::<Vec<_>>());

    let select: Vec<i32> = (0..n32(n)).map(|i| i32::try_from(mixed(i) % 9).expect("a digit")).collect();
    let v: Vec<f32> = floats(5, n).into_iter().map(|v| 9.0 * v).collect();
    let one = |(s, v): (&i32, &f32)| [v + 2.0, v * 2.0, v.max(2.0)][(s % 3) as usize];
    let (ds, d) = (k.copy_of(&select), k.copy_of(&v));
    k.launch("k_fptr", [1, 1, 1], block, &[(&ds).into(), (&d).into()]);
    same(&k.what("k_fptr"), &read(&d), &select.iter().zip(&v).map(one).collect::<Vec<_>>());

    let d = k.zeros::<f64>(n);
    k.launch("k_struct", [1, 1, 1], block, &[(&d).into()]);
    same(&k.what("k_struct"), &read(&d), &lanes().map(|i| f64::from(4 * i + i + 120)).collect::<Vec<_>>());

    let select: Vec<i32> = lanes().map(|i| i % 2).collect();
    let (ds, d) = (k.copy_of(&select), k.zeros::<f32>(n));
    k.launch("k_virt", [1, 1, 1], block, &[(&ds).into(), (&d).into()]);
    #[allow(clippy::approx_constant, reason = "the kernel's own constant")]
    let circle = 3.141_59_f32 * 3.0 * 3.0;
    same(&k.what("k_virt"), &read(&d), &select.iter().map(|s| if *s == 0 { circle } else { 4.0 }).collect::<Vec<_>>());

    // With one thread, because threads race for the counter.
    for i in [3, 0, 14] {
        launched.set(launched.get() + 1);
        let (di, d) = (k.copy_of(&[i]), k.zeros::<i32>(1));
        k.launch("k_glob", [1, 1, 1], [1, 1, 1], &[(&d).into(), (&di).into()]);
        let text = i32::from(b"hello"[(i % 5) as usize]);
        same(&k.what("k_glob"), &read(&d), &[7 + launched.get() + (i & 3) + 1 + (i & 15) * i + text]);
    }
    switch(k);
    heap(k);
    parameters(k);
}

/// `switch (v) { case 0: v = o[1] * 3; break; ... default: return; } o[threadIdx.x] = v;`
fn switch(k: &Kernels<'_>) {
    // Threads 0 to 8 return, so that nobody writes what the others read.
    let x: Vec<i32> = (0..40).map(|i| if i < 9 { 9 + i } else { (i * 7 + 3) % 12 - 1 }).collect();
    let o: Vec<i32> = words(40, 40).into_iter().map(|w| u32::cast_signed(w) >> 4).collect();
    let one = |(i, v): (usize, &i32)| match *v {
        0 => o[1] * 3,
        1 => o[2] ^ 5,
        2 => o[3] / 7,
        3 => 3 + o[5],
        4 => -4,
        5 => o[5] << 2,
        6 => 99,
        7 => o[8] - 49,
        8 => 8 | 0x100,
        _ => o[i],
    };
    let want: Vec<i32> = x.iter().enumerate().map(one).collect();
    let (dx, d) = (k.copy_of(&x), k.copy_of(&o));
    k.launch("k_switch", [1, 1, 1], [40, 1, 1], &[(&dx).into(), (&d).into()]);
    same(&k.what("k_switch"), &read(&d), &want);
}

/// Memory from `malloc` is there; what was freed is told by a zero.
fn heap(k: &Kernels<'_>) {
    // One thread, because the others would read the pointer of the first while it writes it.
    let d = k.zeros::<u64>(1);
    k.launch("k_heap", [1, 1, 1], [1, 1, 1], &[(&d).into(), Arg::from(100_u32)]);
    assert!(read::<u64>(&d)[0] != 0, "{}", k.what("k_heap"));
}

/// `struct P { int n; float a[3]; double d; unsigned char c; }`, `bool`, `short`, `char`, `float3` and `double2` by value.
fn parameters(k: &Kernels<'_>) {
    let mut p = [0_u8; 32];
    p[..4].copy_from_slice(&3_i32.to_le_bytes());
    for (i, a) in [1.5_f32, -2.25, 8.0].into_iter().enumerate() {
        p[4 + 4 * i..8 + 4 * i].copy_from_slice(&a.to_le_bytes());
    }
    p[16..24].copy_from_slice(&0.5_f64.to_le_bytes());
    p[24] = 200;
    let v3 = [1.0_f32, 16.0, 2.0].map(f32::to_le_bytes).concat();
    let d2 = [4.0_f64, 1024.0].map(f64::to_le_bytes).concat();
    let d = k.zeros::<f32>(6);
    let small = [Arg::Bytes(&[1]), Arg::Bytes(&[0x9c, 0xff]), Arg::Bytes(&[0xf9])];
    let args = [Arg::Bytes(&p), (&d).into(), small[0], small[1], small[2], Arg::Bytes(&v3), Arg::Bytes(&d2)];
    k.launch("k_param", [1, 1, 1], [6, 1, 1], &args);
    // All numbers are multiples of 1/4 below 2^12, so that no order of operations rounds.
    let rest = 0.5 + 200.0 + 1.0 - 100.0 - 7.0 + 16.0 + 1024.0;
    let want: Vec<f32> = (0..6).map(|i| [1.5_f32, -2.25, 8.0][i % 3] * 3.0 + rest).collect();
    same(&k.what("k_param"), &read(&d), &want);
}

/// `printf` with each kind of argument. Lines of different threads may come in any order.
pub fn printf(k: &Kernels<'_>) {
    let _ = k.output();
    k.launch("hello", [1, 1, 1], [3, 1, 1], &[Arg::from(5_u32), Arg::from(2.0_f64 / 3.0), Arg::from(0_u64)]);
    let text = k.output();
    let mut got: Vec<&str> = text.lines().collect();
    got.sort_unstable();
    let values = " 0.67 str c 123456789abcdef (nil) %";
    let mut want = vec!["hello from block 0 thread 0 of 5", "hello from block 0 thread 1 of 5", values, values];
    want.extend(["plain"; 3]);
    want.sort_unstable();
    assert_eq!(got, want, "{}", k.what("hello"));
}

/// The word of the trap that a launch ended with, or `ended`.
fn ending(result: Result<(), LaunchError>) -> String {
    match result {
        Ok(()) => "ended".to_owned(),
        Err(LaunchError::Trap(report)) => report.kind().word().to_owned(),
        Err(other) => other.to_string(),
    }
}

/// `assert(i < n && "index out of range"); if (x[i] < 0) __trap(); if (x[i] == 12345) brkpt; if (x[i] == 777) exit;`
pub fn assert(k: &Kernels<'_>) {
    let cases = [(4_u32, [1, 2, 3, 777], "ended"), (3, [1, 2, 3, 4], "assert"), (4, [1, 2, -3, 4], "trap")];
    for (n, x, want) in cases.into_iter().chain([(4, [1, 12345, 3, 4], "breakpoint")]) {
        let dx = k.copy_of(&x);
        let result = k.try_launch("chk", [1, 1, 1], [4, 1, 1], 0, &[(&dx).into(), Arg::from(n)]);
        if let Err(LaunchError::Trap(report)) = &result
            && want == "assert"
        {
            assert!(report.message().contains("i < n && \"index out of range\""), "{}", report.message());
        }
        assert_eq!(ending(result), want, "{}", k.what("chk"));
    }
}
