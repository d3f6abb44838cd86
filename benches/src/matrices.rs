//! Products of matrices: from registers, from shared memory, into tensor memory, beside the most that the host's vectors can do.
//!
//! Elements are eighths between -1 and 1, so that every sum is exact in whatever order it is made.

use half::f16;

use crate::cases::{Case, Input, Job, Scale, kernel, source, zeros};
use crate::data::{Expected, float_bytes, index, mixed, word_bytes};

const fn case(
    name: &'static str,
    ptx: &'static str,
    entry: &'static str,
    judged: &'static str,
    floor: f64,
    job: fn(Scale) -> Job,
) -> Case {
    let (c, unit) = if matches!(judged.as_bytes(), b"dots") {
        (source!("dots"), "Gop/s")
    } else {
        (source!("multiply_add"), "GFLOP/s")
    };
    Case { name, ptx, first: None, entry, c, judged, beside: &[], floor: Some(floor), goal: None, unit, job }
}

/// All cases. `mma` are products that share `a`, `mma apart` those that share nothing.
pub const CASES: &[Case] = &[
    case("mma", kernel!("mma_sums"), "mma_sums", "peak", 0.4, shared),
    case("mma apart", include_str!("../ptx/mma_apart.ptx"), "mma_apart", "peak", 0.3, apart),
    case("mma s8", include_str!("../ptx/mma_bytes.ptx"), "mma_bytes", "dots", 0.3, bytes),
    case("wgmma", include_str!("../ptx/wgmma.ptx"), "wgmma_sums", "peak", 0.5, wgmma),
    case("tcgen05", include_str!("../ptx/tcgen05.ptx"), "tcgen05_sums", "peak", 0.5, tcgen05),
];

/// Products of a warp in one turn.
const PRODUCTS: usize = 4;

/// Eighths as halves.
fn halves(first: u32, n: u32) -> Vec<f16> {
    (first..first + n).map(|i| f16::from_f32((mixed(i) % 17) as f32 / 8.0 - 1.0)).collect()
}

fn half_bytes(values: &[f16]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Where an element of a fragment lies in the registers of a warp, counted in elements: of `rows` registers side by side that have the same depths,
/// of which each holds `per`.
fn place(row: usize, depth: usize, per: usize, rows: usize, registers: usize) -> usize {
    let (word, lane) = (depth / per / 4 * rows + row / 8, 4 * (row % 8) + depth / per % 4);
    (lane * registers + word) * per + depth % per
}

/// The sums of a warp's products as its lanes hold them, by the elements that were multiplied: `of` has the one of a product, row, column.
fn sums_of_lanes<T>(of: impl Fn(usize, usize, usize) -> T) -> Vec<T> {
    let all = (0..32).flat_map(|lane| (0..PRODUCTS).flat_map(move |p| (0..4).map(move |i| (lane, p, i))));
    all.map(|(lane, p, i)| of(p, lane / 4 + 8 * (i / 2), 2 * (lane % 4) + i % 2)).collect()
}

fn job(label: String, blocks: u32, inputs: [Vec<u8>; 2], times: u32, steps: u32, expected: Vec<u32>) -> Job {
    let [a, b] = inputs;
    let out = vec![0; 4 * expected.len()];
    // Where both matrices lie in one buffer there is no second.
    let mut inputs = vec![Input::Buffer(a)];
    if !b.is_empty() {
        inputs.push(Input::Buffer(b));
    }
    inputs.extend([Input::Buffer(out), Input::Word(times)]);
    Job {
        label,
        grid: [blocks, 1, 1],
        block: [128, 1, 1],
        shared: 0,
        output: inputs.len() - 2,
        inputs,
        sizes: vec![steps / 4096],
        work: 2.0 * f64::from(steps),
        expected: Expected::Words(expected),
        expected_c: Expected::exactly(&[2.0; 8]),
    }
}

fn shared(scale: Scale) -> Job {
    let (warps, times) = (scale.of(32, 4, 4), scale.of(1000, 200, 5));
    // Eighths between -1 and 1: halves hold them, and their products.
    let eighths =
        |first: u32, n: u32| -> Vec<f32> { (first..first + n).map(|i| (mixed(i) % 17) as f32 / 8.0 - 1.0).collect() };
    let (a, b) = (eighths(0, warps * 256), eighths(warps * 256, warps * 512));
    let mut want = vec![0.0_f32; 512 * index(warps)];
    for (w, out) in want.chunks_exact_mut(512).enumerate() {
        for (i, sum) in out.iter_mut().enumerate() {
            let (row, column) = (i / 32, i % 32);
            for _ in 0..times {
                *sum =
                    (0..16).fold(*sum, |sum, k| a[256 * w + 16 * row + k].mul_add(b[512 * w + 32 * k + column], sum));
            }
        }
    }
    // 4 products of 16 by 16 and 16 by 8 elements.
    let steps = warps * times * 4 * 16 * 16 * 8;
    Job {
        label: format!("{warps} warps"),
        grid: [warps / 4, 1, 1],
        block: [128, 1, 1],
        shared: 0,
        inputs: vec![
            Input::Buffer(float_bytes(&a)),
            Input::Buffer(float_bytes(&b)),
            zeros(512 * warps),
            Input::Word(times),
        ],
        output: 2,
        sizes: vec![steps / 4096],
        work: 2.0 * f64::from(steps),
        expected: Expected::exactly(&want),
        expected_c: Expected::exactly(&[2.0; 8]),
    }
}

fn apart(scale: Scale) -> Job {
    let (warps, times) = (scale.of(32, 4, 4), scale.of(1000, 200, 5));
    let (a, b) = (halves(0, warps * 1024), halves(warps * 1024, warps * 512));
    let mut want = Vec::new();
    for w in 0..index(warps) {
        let (a, b) = (&a[1024 * w..][..1024], &b[512 * w..][..512]);
        want.extend(sums_of_lanes(|p, row, column| {
            // A lane has four registers of `a` and two of `b` for each product.
            let products = (0..16).map(|k| {
                let (i, j) = (place(row, k, 2, 2, 4 * PRODUCTS), place(column, k, 2, 1, 2 * PRODUCTS));
                a[i + 8 * p].to_f32() * b[j + 4 * p].to_f32()
            });
            (times as f32 * products.sum::<f32>()).to_bits()
        }));
    }
    let steps = warps * times * 4 * 16 * 16 * 8;
    job(format!("{warps} warps"), warps / 4, [half_bytes(&a), half_bytes(&b)], times, steps, want)
}

fn bytes(scale: Scale) -> Job {
    let (warps, times) = (scale.of(32, 4, 4), scale.of(1000, 200, 5));
    let (a, b): (Vec<u32>, Vec<u32>) =
        ((0..warps * 128).map(mixed).collect(), (warps * 128..warps * 384).map(mixed).collect());
    let (a, b) = (word_bytes(&a), word_bytes(&b));
    let signed = |byte: u8| i32::from(byte.cast_signed());
    let mut want = Vec::new();
    for w in 0..index(warps) {
        let (a, b) = (&a[512 * w..][..512], &b[1024 * w..][..1024]);
        want.extend(sums_of_lanes(|p, row, column| {
            let products = (0..32).map(|k| {
                let (i, j) = (place(row, k, 4, 2, 4), place(column, k, 4, 1, 2 * PRODUCTS));
                signed(a[i]) * signed(b[j + 8 * p])
            });
            products.sum::<i32>().wrapping_mul(times.cast_signed()).cast_unsigned()
        }));
    }
    let steps = warps * times * 4 * 16 * 32 * 8;
    job(format!("{warps} warps"), warps / 4, [a, b], times, steps, want)
}

/// A matrix as it lies in shared memory: 64 elements in a line of 128 bytes, whose sixteenths change places.
fn swizzled(matrix: &[f16]) -> Vec<u8> {
    let mut out = vec![0; 2 * matrix.len()];
    for (i, v) in matrix.iter().enumerate() {
        let (line, at) = (i / 64, 2 * (i % 64));
        out[128 * line + (at ^ (line % 8) << 4)..][..2].copy_from_slice(&v.to_le_bytes());
    }
    out
}

/// Both matrices, and `times` the sum of the products of a row and a column.
fn both(rows: u32, columns: u32, times: u32) -> (Vec<u8>, impl Fn(usize, usize) -> u32) {
    let (a, b) = (halves(0, rows * 64), halves(rows * 64, columns * 64));
    let image = [swizzled(&a), swizzled(&b)].concat();
    let floats = |v: &[f16]| v.iter().map(|v| v.to_f32()).collect::<Vec<f32>>();
    let (a, b) = (floats(&a), floats(&b));
    let sum = move |row: usize, column: usize| {
        let products = a[64 * row..][..64].iter().zip(&b[64 * column..][..64]).map(|(a, b)| a * b);
        (times as f32 * products.sum::<f32>()).to_bits()
    };
    (image, sum)
}

fn wgmma(scale: Scale) -> Job {
    let (blocks, times) = (scale.of(2, 1, 1), scale.of(500, 100, 2));
    let (image, sum) = both(64, 128, times);
    let mut want = Vec::new();
    for thread in 0..128 {
        let (row, column) = (thread / 32 * 16 + thread % 32 / 4, 2 * (thread % 4));
        want.extend((0..64).map(|i| sum(row + 8 * (i / 2 % 2), column + i % 2 + 8 * (i / 4))));
    }
    let steps = blocks * times * 64 * 64 * 128;
    let want = want.repeat(index(blocks));
    job(format!("{blocks} warpgroups"), blocks, [image, vec![]], times, steps, want)
}

fn tcgen05(scale: Scale) -> Job {
    let (blocks, times) = (scale.of(2, 1, 1), scale.of(200, 40, 2));
    let (image, sum) = both(128, 192, times);
    let one: Vec<u32> = (0..128 * 192).map(|i| sum(i / 192, i % 192)).collect();
    let steps = blocks * times * 128 * 64 * 192;
    job(format!("{blocks} blocks"), blocks, [image, vec![]], times, steps, one.repeat(index(blocks)))
}
