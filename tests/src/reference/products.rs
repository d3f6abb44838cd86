//! Products of matrices and attention, as Triton makes them for several targets (`tests/kernels/corpus/make.py`), and what tests of products share. The last
//! two parameters of Triton's kernels are scratch buffers.

use half::f16;
use handloom_ir::tensor_map::{Atomicity, ElementType, Fill, Interleave, Promotion, Shape, Swizzle, TensorMap};
use handloom_runtime::{Arg, DeviceBuffer};

use super::data::{Element, Within, floats, mixed, n32, near, same};
use super::run::{Kernels, read};

/// Dynamic shared memory, more than any of the kernels asks for.
const SHARED_BYTES: u32 = 80 << 10;

/// Eighths from -1 to 1: halves and floats of eight bits hold them, and `.f32` every sum of their products.
pub fn eighths(seed: usize, n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7 + i / 5 + seed) % 17) as f32 / 8.0 - 1.0).collect()
}

/// Halves that are so much.
pub fn halves(v: &[f32]) -> Vec<f16> {
    v.iter().map(|x| f16::from_f32(*x)).collect()
}

/// `a` times `b`, of which both have lines of `depth` elements along the depth. For numbers all of whose sums are exact.
pub fn product(a: &[f32], b: &[f32], depth: usize) -> Vec<f32> {
    let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f32>();
    a.chunks(depth).flat_map(|x| b.chunks(depth).map(move |y| dot(x, y))).collect()
}

/// Lines of `n` elements as columns.
pub fn turned<T: Copy>(v: &[T], n: usize) -> Vec<T> {
    let lines = v.len() / n;
    (0..v.len()).map(|i| v[i % lines * n + i / lines]).collect()
}

/// A tensor map of rows of `depth` halves, in boxes of 64 halves and so many rows with a swizzle of 128 bytes.
///
/// # Panics
/// There is no such map.
pub fn map_of_halves(of: &DeviceBuffer, rows: usize, depth: usize, in_box: u32) -> [u8; 128] {
    let map = TensorMap {
        element: ElementType::F16,
        rank: 2,
        address: of.address(),
        dims: [depth as u64, rows as u64, 0, 0, 0],
        strides: [2 * depth as u64, 0, 0, 0],
        element_strides: [1; 5],
        interleave: Interleave::None,
        swizzle: Swizzle::Bytes128,
        atomicity: Atomicity::Bytes16,
        promotion: Promotion::None,
        fill: Fill::Zero,
        shape: Shape::Tiled { size: [64, in_box, 0, 0, 0] },
    };
    map.encode().expect("a tensor map")
}

/// Launches a kernel of Triton: 128 threads, unless it says otherwise itself.
fn launch(k: &Kernels<'_>, grid: [usize; 2], threads: u32, args: &[Arg<'_>]) {
    let scratch = k.zeros::<u8>(512 * grid[0]);
    let args = [args, &[(&scratch).into(), (&scratch).into()]].concat();
    k.launch_shared("", [n32(grid[0]), n32(grid[1]), 1], [threads, 1, 1], SHARED_BYTES, &args);
}

fn is_for(k: &Kernels<'_>, target: &str) -> bool {
    k.name().ends_with(&format!(".sm{target}"))
}

fn matmul<T: Element, S: Element>(k: &Kernels<'_>, convert: impl Fn(&[f32]) -> Vec<T>, sums: impl Fn(f32) -> S) {
    // Rows end within a tile; lines are multiples of 16 elements.
    let (m, n, depth) = (71, 48, 80);
    let (a, b) = (eighths(3, m * depth), eighths(11, n * depth));
    let (x, y, c) = (k.copy_of(&convert(&a)), k.copy_of(&convert(&turned(&b, depth))), k.zeros::<S>(m * n));
    let sizes = [m, n, depth, depth, n, n].map(|size| Arg::from(n32(size)));
    launch(k, [2, 2], 128, &[&[(&x).into(), (&y).into(), (&c).into()][..], &sizes].concat());
    let want: Vec<S> = product(&a, &b, depth).into_iter().map(sums).collect();
    same(&k.what("matmul"), &read::<S>(&c), &want);
}

/// Of halves.
pub fn matmul_f16(k: &Kernels<'_>) {
    matmul(k, halves, |sum| sum);
}

/// Of `.tf32`.
pub fn matmul_tf32(k: &Kernels<'_>) {
    matmul(k, <[f32]>::to_vec, |sum| sum);
}

/// Of `.e5m2`: the upper half of halves.
pub fn matmul_e5m2(k: &Kernels<'_>) {
    matmul(k, |v| halves(v).into_iter().map(|x| x.to_bits().to_be_bytes()[0]).collect(), |sum| sum);
}

/// Of bytes: eight times the eighths.
pub fn matmul_s8(k: &Kernels<'_>) {
    matmul(k, |v| v.iter().map(|x| (x * 8.0) as i8).collect(), |sum| (sum * 64.0) as i32);
}

/// Attention of one head of 32 elements, of which what comes later may be hidden.
pub fn attention(k: &Kernels<'_>) {
    let (n, d, scale) = (77, 32, 0.25_f32);
    let is_causal = k.name().contains("causal");
    let [q, key, v] =
        [1, 5000, 9000].map(|from| halves(&floats(from, n * d).iter().map(|x| 2.0 * x).collect::<Vec<_>>()));
    let (dq, dk, dv, o) = (k.copy_of(&q), k.copy_of(&key), k.copy_of(&v), k.zeros::<f16>(n * d));
    launch(k, [2, 1], 128, &[(&dq).into(), (&dk).into(), (&dv).into(), (&o).into(), Arg::from(scale), n32(n).into()]);
    let mut want = Vec::new();
    for (i, row) in q.chunks(d).enumerate() {
        let seen = if is_causal { i + 1 } else { n };
        let dot = |y: &[f16]| row.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
        let shares: Vec<f64> = key.chunks(d).take(seen).map(|y| (dot(y) * f64::from(scale)).exp()).collect();
        let all: f64 = shares.iter().sum();
        want.extend(
            (0..d).map(|c| shares.iter().enumerate().map(|(j, s)| s * f64::from(v[j * d + c])).sum::<f64>() / all),
        );
    }
    // Values are below 1, and so are their means. Shares are rounded to halves, by up to 2^-11 of themselves, and so is the result; the .f32 of
    // scores (below 8) and sums, of which there are fewer than 128, are off by less than 2^-16.
    let within = Within { absolute: 0.5_f64.powi(11) + 0.5_f64.powi(16), relative: 1.01 * 0.5_f64.powi(11) };
    near(&k.what("attention"), &read::<f16>(&o), &want, within);
}

/// Products of blocks of 32 small floats with a scale each.
pub fn scaled(k: &Kernels<'_>) {
    let (m, n, depth) = (77, 37, 160);
    let is_packed = k.name().contains("mxfp4");
    // What the numbers of .e2m1 are, and the same as .e4m3. With scales from 1/4 to 4 all sums of products are exact.
    let values = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let bytes = [0x00, 0x30, 0x38, 0x3c, 0x40, 0x44, 0x48, 0x4c];
    let make = |from: u32, rows: usize| {
        let numbers: Vec<u8> = (from..from + n32(rows * depth)).map(|i| mixed(i).to_le_bytes()[0] & 15).collect();
        let scales: Vec<u8> = (from..from + n32(rows * depth / 32)).map(|i| 125 + (mixed(i) >> 8) as u8 % 5).collect();
        let number = |(i, n): (usize, &u8)| {
            let scale = f32::from(scales[i / 32]) - 127.0;
            values[usize::from(n & 7)] * if n & 8 == 8 { -1.0 } else { 1.0 } * scale.exp2()
        };
        let exact: Vec<f32> = numbers.iter().enumerate().map(number).collect();
        let stored: Vec<u8> = if is_packed {
            numbers.chunks(2).map(|pair| pair[0] | pair[1] << 4).collect()
        } else {
            numbers.iter().map(|n| bytes[usize::from(n & 7)] | n >> 3 << 7).collect()
        };
        (exact, k.copy_of(&stored), k.copy_of(&scales))
    };
    let ((a, x, xs), (b, y, ys)) = (make(1, m), make(90_000, n));
    let c = k.zeros::<f32>(m * n);
    let sizes = [m, n, depth].map(|size| Arg::from(n32(size)));
    launch(
        k,
        [1, 2],
        128,
        &[&[(&x).into(), (&xs).into(), (&y).into(), (&ys).into(), (&c).into()][..], &sizes].concat(),
    );
    same(&k.what("scaled"), &read(&c), &product(&a, &b, depth));
}

/// Products whose blocks take tile after tile, by tensor maps of the host or of their own; with `ws` their warps have different work.
pub fn persistent(k: &Kernels<'_>) {
    let (m, n, depth) = (150, 112, 144);
    let rows = if is_for(k, "90") && !k.name().contains("made_maps") { 64 } else { 128 };
    let threads = match k.name().split('/').next_back().unwrap_or_default() {
        "persistent.sm90" => 128,
        "made_maps.sm90" => 384,
        _ => 256,
    };
    let (a, b) = (eighths(3, m * depth), eighths(11, n * depth));
    let (x, y, z) = (k.copy_of(&halves(&a)), k.copy_of(&halves(&b)), k.zeros::<f16>(m * n));
    let sizes = [m, n, depth].map(|size| Arg::from(n32(size)));
    if k.name().contains("made_maps") {
        launch(k, [3, 1], threads, &[&[(&x).into(), (&y).into(), (&z).into()][..], &sizes].concat());
    } else {
        let maps = [map_of_halves(&x, m, depth, rows), map_of_halves(&y, n, depth, 64), map_of_halves(&z, m, n, rows)];
        let mut args: Vec<Arg<'_>> = Vec::new();
        for (map, [lines, length]) in maps.iter().zip([[m, depth], [n, depth], [m, n]]) {
            args.extend([Arg::Bytes(map), n32(lines).into(), n32(length).into(), (length as u64).into(), 1_u64.into()]);
        }
        args.extend(sizes);
        launch(k, [3, 1], threads, &args);
    }
    same(&k.what("persistent"), &read(&z), &halves(&product(&a, &b, depth)));
}
