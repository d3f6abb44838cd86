//! Products of matrices by tensor cores.

use half::{bf16, f16};
use handloom_runtime::{Arg, DeviceBuffer};
use handloom_tests::reference::data::{mixed, n32, same};
use handloom_tests::reference::products::{eighths, halves, map_of_halves, product, turned};
use handloom_tests::reference::run::{Kernels, each_way, read, ways};

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
        let want = product(&a, &b, depth);
        let (x, y, d) = (k.copy_of(&halves(&a)), k.copy_of(&halves(&b)), k.zeros::<f32>(want.len()));
        let sizes = [m, n, depth].map(|size| Arg::from(n32(size)));
        let args = [&[(&x).into(), (&y).into(), (&d).into()][..], &sizes].concat();
        k.launch("tensor_product", [2, 2, 1], [128, 1, 1], &args);
        same(&k.what("tensor_product"), &read(&d), &want);
    });
}

#[test]
fn wmma_products() {
    each_way(&ways(), "wmma_products", |k| {
        let one = [1; 3];
        let warp = [32, 1, 1];
        let run = |entry: &str, a: &DeviceBuffer, b: &DeviceBuffer, c: &DeviceBuffer| {
            k.launch(entry, one, warp, &[a.into(), b.into(), c.into()]);
        };

        let (m, n, depth) = (32, 64, 48);
        let (a, b, before) = (eighths(3, m * depth), eighths(11, n * depth), eighths(5, m * n));
        let sums: Vec<f32> = product(&a, &b, depth).iter().zip(&before).map(|(p, c)| p + c).collect();
        let (x, y, c) = (k.copy_of(&halves(&a)), k.copy_of(&halves(&b)), k.copy_of(&before));
        let sizes = [n, depth].map(|size| Arg::from(n32(size)));
        k.launch("halves", [2, 2, 1], [32, 2, 1], &[&[(&x).into(), (&y).into(), (&c).into()][..], &sizes].concat());
        same(&k.what("halves"), &read(&c), &sums);

        // Twice a half and the product; sums are multiples of 1/64 below 32, which f16 holds.
        let (a, b) = (eighths(2, 8 * 16), eighths(7, 32 * 16));
        let want: Vec<f32> = product(&a, &b, 16).iter().map(|p| 2.0 * (p + 0.5)).collect();
        let (x, y) = (k.copy_of(&turned(&halves(&a), 16)), k.copy_of(&turned(&halves(&b), 16)));
        let c = k.zeros::<f16>(8 * 32);
        run("halves_turned", &x, &y, &c);
        same(&k.what("halves_turned"), &read(&c), &turned(&halves(&want), 32));

        let brains = |v: &[f32]| -> Vec<bf16> { v.iter().map(|x| bf16::from_f32(*x)).collect() };
        let (a, b) = (eighths(4, 32 * 16), eighths(9, 8 * 16));
        let c = k.zeros::<f32>(32 * 8);
        run("brains", &k.copy_of(&brains(&a)), &k.copy_of(&brains(&b)), &c);
        same(&k.what("brains"), &read(&c), &product(&a, &b, 16));

        // A part in 2^12 more than a number of tf32 is rounded off.
        let (a, b) = (eighths(6, 16 * 8), eighths(1, 16 * 8));
        let more = |v: &[f32]| -> Vec<f32> { v.iter().map(|x| x * (1.0 + 1.0 / 4096.0)).collect() };
        let c = k.zeros::<f32>(16 * 16);
        run("floats", &k.copy_of(&more(&a)), &k.copy_of(&turned(&more(&b), 8)), &c);
        same(&k.what("floats"), &read(&c), &product(&a, &b, 8));

        let doubles = |v: &[f32]| -> Vec<f64> { v.iter().map(|x| f64::from(*x)).collect() };
        let (a, b, before) = (eighths(8, 8 * 4), eighths(3, 8 * 4), eighths(2, 64));
        let sums: Vec<f32> = product(&a, &b, 4).iter().zip(&before).map(|(p, c)| p + c).collect();
        let c = k.copy_of(&turned(&doubles(&before), 8));
        run("doubles", &k.copy_of(&doubles(&a)), &k.copy_of(&doubles(&b)), &c);
        same(&k.what("doubles"), &read(&c), &turned(&doubles(&sums), 8));

        let depth = 48;
        let bytes = |from: u32, n: usize| -> Vec<i8> {
            (from..from + n32(n)).map(|i| mixed(i).to_le_bytes()[0].cast_signed()).collect()
        };
        let (a, b) = (bytes(1, 32 * depth), bytes(5000, 8 * depth));
        let dot = |i: usize| -> i32 {
            let (a, b) = (&a[i / 8 * depth..][..depth], &b[i % 8 * depth..][..depth]);
            a.iter().zip(b).map(|(x, y)| i32::from(*x) * i32::from(*y)).sum::<i32>() - 7
        };
        let c = k.zeros::<i32>(32 * 8);
        let (x, y) = (k.copy_of(&a), k.copy_of(&b));
        let args = [(&x).into(), (&y).into(), (&c).into(), Arg::from(n32(depth))];
        k.launch("bytes", one, warp, &args);
        same(&k.what("bytes"), &read(&c), &(0..256).map(dot).collect::<Vec<i32>>());

        let (a, b): (Vec<u32>, Vec<u32>) = ((0..32).map(mixed).collect(), (100..132).map(mixed).collect());
        let differ = |i: usize| -> u32 { (0..4).map(|w| (a[i / 8 * 4 + w] ^ b[i % 8 * 4 + w]).count_ones()).sum() };
        let c = k.zeros::<u32>(64);
        run("bits", &k.copy_of(&a), &k.copy_of(&b), &c);
        same(&k.what("bits"), &read(&c), &(0..64).map(differ).collect::<Vec<u32>>());
    });
}

/// A product of matrices that are no multiples of tiles, by tensor maps.
fn by_maps(
    k: &Kernels<'_>,
    (m, n, depth): (usize, usize, usize),
    boxes: [u32; 2],
    grid: [u32; 3],
    block: u32,
    shared_bytes: u32,
) {
    let (a, b) = (eighths(3, m * depth), eighths(11, n * depth));
    let (x, y, c) = (k.copy_of(&halves(&a)), k.copy_of(&halves(&b)), k.zeros::<f32>(m * n));
    let maps = [map_of_halves(&x, m, depth, boxes[0]), map_of_halves(&y, n, depth, boxes[1])];
    let sizes = [m, n, depth].map(|size| Arg::from(n32(size)));
    let args = [&[Arg::Bytes(&maps[0]), Arg::Bytes(&maps[1]), (&c).into()][..], &sizes].concat();
    k.launch_shared("", grid, [block, 1, 1], shared_bytes, &args);
    same(&k.what(""), &read(&c), &product(&a, &b, depth));
}

#[test]
fn tma_product() {
    each_way(&ways(), "tma_product", |k| by_maps(k, (200, 72, 264), [128, 32], [2, 2, 1], 384, 3 * 24576));
}

#[test]
fn pair_product() {
    each_way(&ways(), "pair_product", |k| by_maps(k, (300, 150, 200), [128, 64], [4, 2, 1], 192, 2 * 24576));
}
