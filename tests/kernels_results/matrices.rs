//! Products of matrices by tensor cores.

use handloom_runtime::Arg;
use handloom_tests::reference::data::{n32, same};
use handloom_tests::reference::run::{each_way, read, ways};

/// Eighths: halves hold them, and `.f32` every sum of their products.
fn eighths(seed: usize, n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7 + i / 5 + seed) % 17) as f32 / 8.0 - 1.0).collect()
}

#[test]
fn mma_sums() {
    each_way(&ways(), "mma_sums", |k| {
        let (warps, times) = (6, 3);
        let (a, b) = (eighths(3, warps * 256), eighths(11, warps * 512));
        let mut want = vec![0.0_f32; warps * 512];
        for (i, sum) in want.iter_mut().enumerate() {
            let (warp, row, column) = (i / 512, i % 512 / 32, i % 32);
            *sum = (0..16).map(|k| a[256 * warp + 16 * row + k] * b[512 * warp + 32 * k + column]).sum::<f32>() * 3.0;
        }
        for block in [32, 64, 192] {
            let (x, y, d) = (k.copy_of(&a), k.copy_of(&b), k.zeros::<f32>(want.len()));
            let args = [(&x).into(), (&y).into(), (&d).into(), Arg::from(times)];
            k.launch("mma_sums", [n32(warps) * 32 / block, 1, 1], [block, 1, 1], &args);
            same(&k.what("mma_sums"), &read(&d), &want);
        }
    });
}

/// Products in tensor memory, with a block that reaches over the ends of both matrices.
#[test]
fn tensor_product() {
    each_way(&ways(), "tensor_product", |k| {
        let (m, n, depth) = (150, 70, 128);
        let (a, b) = (eighths(3, m * depth), eighths(11, n * depth));
        let halves = |v: &[f32]| -> Vec<u16> { v.iter().map(|x| half::f16::from_f32(*x).to_bits()).collect() };
        let product = |i: usize| {
            let (a, b) = (&a[i / n * depth..][..depth], &b[i % n * depth..][..depth]);
            a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>()
        };
        let want: Vec<f32> = (0..m * n).map(product).collect();
        let (x, y, d) = (k.copy_of(&halves(&a)), k.copy_of(&halves(&b)), k.zeros::<f32>(want.len()));
        let sizes = [m, n, depth].map(|size| Arg::from(n32(size)));
        let args = [&[(&x).into(), (&y).into(), (&d).into()][..], &sizes].concat();
        k.launch("tensor_product", [2, 2, 1], [128, 1, 1], &args);
        same(&k.what("tensor_product"), &read(&d), &want);
    });
}
