//! Every kernel of `tests/kernels` against a reference on the host, in every way in which a kernel can be run.
//!
//! Results compare by bits wherever the arithmetic is defined: integers, and floats whose order of operations the source fixes (the
//! compiler contracts `a * b + c` to one rounding; the references do the same). The tolerances of the rest are argued where they stand.

use handloom_runtime::Arg;
use handloom_tests::reference::data::{Element, HALF_ULP, Within, floats, mixed, n32, near, same, words};
use handloom_tests::reference::numeric::{fused_dot, fused_product, prefix_sums, softmax, tree_sum, widen};
use handloom_tests::reference::run::{Kernels, each_way, folder, many_ways, read, ways};
use handloom_tests::reference::small_floats::Table;
use handloom_tests::reference::{paths, pictures};

#[path = "kernels_results/algorithms.rs"]
mod algorithms;
#[path = "kernels_results/images.rs"]
mod images;
#[path = "kernels_results/matrices.rs"]
mod matrices;

#[test]
fn every_kernel_has_a_test() {
    let own = concat!(
        include_str!("kernels_results.rs"),
        include_str!("kernels_results/algorithms.rs"),
        include_str!("kernels_results/images.rs"),
        include_str!("kernels_results/matrices.rs"),
        include_str!("grid_results.rs")
    );
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(stem) = name.strip_suffix(".ptx") {
            assert!(own.contains(&format!("\"{stem}\"")), "no test names {name}");
        }
    }
}

#[test]
fn empty() {
    each_way(&ways(), "empty", |k| {
        k.launch("empty", [1, 1, 1], [1, 1, 1], &[]);
        k.launch("empty", [3, 2, 5], [7, 3, 2], &[]);
    });
}

#[test]
fn vector_add() {
    each_way(&ways(), "vector_add", |k| {
        let n = 1003;
        let (a, b) = (floats(0, n), floats(5000, n));
        let want: Vec<f32> = a.iter().zip(&b).map(|(x, y)| x + y).collect();
        let (da, db) = (k.copy_of(&a), k.copy_of(&b));
        // The last block is partial, and so is its last warp.
        for block in [1, 33, 256, 1024] {
            let c = k.zeros::<f32>(n);
            let args = [Arg::from(n32(n)), (&da).into(), (&db).into(), (&c).into()];
            k.launch("vector_add", [n32(n).div_ceil(block), 1, 1], [block, 1, 1], &args);
            same(&k.what("vector_add"), &read(&c), &want);
        }
        for (grid, block) in [(1, 64), (2, 31), (4, 128)] {
            let c = k.zeros::<f32>(1000);
            let args = [Arg::from(250_u32), (&da).into(), (&db).into(), (&c).into()];
            k.launch("vector_add4", [grid, 1, 1], [block, 1, 1], &args);
            same(&k.what("vector_add4"), &read(&c), &want[..1000]);
        }
    });
}

#[test]
fn saxpy() {
    for name in ["saxpy", "saxpy.sm_90"] {
        each_way(&ways(), name, |k| {
            for n in [1, 31, 32, 1000] {
                let (x, y) = (floats(1, n), floats(9000, n));
                let want: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 2.5_f32.mul_add(*x, *y)).collect();
                for block in [32, 100, 256] {
                    let (dx, dy) = (k.copy_of(&x), k.copy_of(&y));
                    let args = [Arg::from(n32(n)), Arg::from(2.5_f32), (&dx).into(), (&dy).into()];
                    k.launch("saxpy", [n32(n).div_ceil(block), 1, 1], [block, 1, 1], &args);
                    same(&k.what("saxpy"), &read(&dy), &want);
                }
            }
        });
    }
}

#[test]
fn stencil() {
    each_way(&ways(), "stencil", |k| {
        let (w, h) = (45, 23);
        let (input, rim) = (floats(3, w * h), floats(7777, w * h));
        let mut want = rim.clone();
        for y in 1..h - 1 {
            for x in 1..w - 1 {
                let i = y * w + x;
                let sides = (input[i - 1] + input[i + 1]) + (input[i - w] + input[i + w]);
                want[i] = 0.5_f32.mul_add(input[i], 0.125 * sides);
            }
        }
        for block in [[16, 16, 1], [32, 4, 1], [5, 7, 1]] {
            let (di, d) = (k.copy_of(&input), k.copy_of(&rim));
            let size = [Arg::from(n32(w)), Arg::from(n32(h))];
            let grid = [n32(w).div_ceil(block[0]), n32(h).div_ceil(block[1]), 1];
            let args = [size[0], size[1], Arg::from(0.5_f32), Arg::from(0.125_f32), (&di).into(), (&d).into()];
            k.launch("stencil5", grid, block, &args);
            same(&k.what("stencil5"), &read(&d), &want);
        }
    });
}

#[test]
fn reduce() {
    for name in ["reduce", "reduce.sm_90"] {
        each_way(&ways(), name, |k| {
            let blocks = 5;
            let v = floats(11, 512 * blocks);
            let pairs = |b: &[f32]| (0..256).map(|i| b[i] + b[i + 256]).collect::<Vec<_>>();
            let want: Vec<f32> = v.chunks(512).map(|b| tree_sum(&pairs(b))).collect();
            let (di, d) = (k.copy_of(&v), k.zeros::<f32>(blocks));
            k.launch("reduce256", [n32(blocks), 1, 1], [256, 1, 1], &[(&di).into(), (&d).into()]);
            same(&k.what("reduce256"), &read(&d), &want);
        });
    }
}

#[test]
fn reduce_guarded() {
    each_way(&ways(), "reduce_guarded", |k| {
        let n = 5001;
        let v = floats(21, n);
        let di = k.copy_of(&v);
        for (blocks, threads) in [(3, 128), (1, 32), (2, 512), (4, 8)] {
            let step = blocks * threads;
            let column = |t: usize| v[t..].iter().step_by(step).sum::<f32>();
            let want: Vec<f32> = (0..blocks)
                .map(|b| tree_sum(&(0..threads).map(|t| column(b * threads + t)).collect::<Vec<_>>()))
                .collect();
            let d = k.zeros::<f32>(blocks);
            let args = [Arg::from(n32(n)), (&di).into(), (&d).into()];
            k.launch_shared("reduce_guarded", [n32(blocks), 1, 1], [n32(threads), 1, 1], 4 * n32(threads), &args);
            same(&k.what("reduce_guarded"), &read(&d), &want);
        }
    });
}

#[test]
fn sgemm() {
    for name in ["sgemm", "sgemm.sm_90"] {
        each_way(&ways(), name, |k| {
            let n = 48;
            let (a, b) = (floats(31, n * n), floats(8000, n * n));
            let (da, db, dc) = (k.copy_of(&a), k.copy_of(&b), k.zeros::<f32>(n * n));
            let args = [Arg::from(n32(n)), (&da).into(), (&db).into(), (&dc).into()];
            k.launch("sgemm16", [3, 3, 1], [16, 16, 1], &args);
            same(&k.what("sgemm16"), &read(&dc), &fused_product(n, n, n, &a, &b));
        });
    }
}

#[test]
fn sgemm_guarded() {
    each_way(&ways(), "sgemm_guarded", |k| {
        for (m, n, inner) in [(37, 45, 29), (1, 1, 1), (16, 17, 33)] {
            let (a, b, c) = (floats(41, m * inner), floats(9999, inner * n), floats(77, m * n));
            let products = fused_product(m, n, inner, &a, &b);
            let want: Vec<f32> = products.iter().zip(&c).map(|(s, c)| s.mul_add(1.5, c * -0.5)).collect();
            let (da, db, dc) = (k.copy_of(&a), k.copy_of(&b), k.copy_of(&c));
            let size = [m, n, inner].map(|v| Arg::from(n32(v)));
            let arrays: [Arg<'_>; 3] = [(&da).into(), (&db).into(), (&dc).into()];
            let args =
                [size[0], size[1], size[2], Arg::from(1.5_f32), arrays[0], arrays[1], Arg::from(-0.5_f32), arrays[2]];
            k.launch("sgemm16_guarded", [n32(n).div_ceil(16), n32(m).div_ceil(16), 1], [16, 16, 1], &args);
            same(&k.what("sgemm16_guarded"), &read(&dc), &want);
        }
    });
}

#[test]
fn transpose() {
    each_way(&ways(), "transpose", |k| {
        for (w, h) in [(70, 45), (32, 32), (1, 100)] {
            let v = floats(51, w * h);
            let want: Vec<f32> = (0..w * h).map(|i| v[i % h * w + i / h]).collect();
            let (di, d) = (k.copy_of(&v), k.zeros::<f32>(w * h));
            let args = [Arg::from(n32(w)), Arg::from(n32(h)), (&di).into(), (&d).into()];
            k.launch("transpose", [n32(w).div_ceil(32), n32(h).div_ceil(32), 1], [32, 8, 1], &args);
            same(&k.what("transpose"), &read(&d), &want);
        }
    });
}

/// Steps until a point leaves the circle, with the roundings of the kernel.
fn steps(px: usize, py: usize, limit: i32, left: f32, top: f32, step: f32) -> i32 {
    let (cx, cy) = (step.mul_add(px as f32, left), step.mul_add(py as f32, top));
    let (mut x, mut y) = (0.0_f32, 0.0_f32);
    for n in 0..limit {
        let (xx, yy) = (x * x, y * y);
        if xx + yy > 4.0 {
            return n;
        }
        y = (2.0 * x).mul_add(y, cy);
        x = xx - yy + cx;
    }
    limit
}

#[test]
fn mandelbrot() {
    for name in ["mandelbrot", "mandelbrot.sm_90"] {
        each_way(&ways(), name, |k| {
            let (w, h, limit) = (61, 37, 60);
            let want: Vec<i32> = (0..w * h).map(|i| steps(i % w, i / w, limit, -2.0, -1.25, 0.045)).collect();
            for block in [[16, 16, 1], [32, 8, 1], [7, 3, 1]] {
                let d = k.zeros::<i32>(w * h);
                let args = [
                    Arg::from(n32(w)),
                    Arg::from(n32(h)),
                    Arg::from(limit),
                    Arg::from(-2.0_f32),
                    Arg::from(-1.25_f32),
                    Arg::from(0.045_f32),
                    (&d).into(),
                ];
                k.launch("mandelbrot", [n32(w).div_ceil(block[0]), n32(h).div_ceil(block[1]), 1], block, &args);
                same(&k.what("mandelbrot"), &read(&d), &want);
            }
        });
    }
}

/// The rounds of the kernel `hash`.
fn hashed(i: u32, seed: u32, rounds: u32) -> u32 {
    (0..rounds).fold(i.wrapping_mul(2_654_435_761).wrapping_add(seed), |state, _| {
        let mut s = state;
        s ^= s << 13;
        s ^= s >> 17;
        s ^= s << 5;
        s.wrapping_add(0x9e37_79b9)
    })
}

#[test]
fn hash() {
    each_way(&ways(), "hash", |k| {
        let n = 333;
        for rounds in [0_u32, 1, 5, 100] {
            let d = k.zeros::<u32>(n);
            let args = [Arg::from(n32(n)), Arg::from(9_u32), Arg::from(rounds), (&d).into()];
            k.launch("hash", [3, 1, 1], [128, 1, 1], &args);
            same(&k.what("hash"), &read(&d), &(0..n32(n)).map(|i| hashed(i, 9, rounds)).collect::<Vec<_>>());
        }
        let d = k.zeros::<u32>(n);
        k.launch("hash64", [6, 1, 1], [64, 1, 1], &[Arg::from(n32(n)), Arg::from(77_u32), (&d).into()]);
        same(&k.what("hash64"), &read(&d), &(0..n32(n)).map(|i| hashed(i, 77, 64)).collect::<Vec<_>>());
    });
}

#[test]
fn histogram() {
    each_way(&ways(), "histogram", |k| {
        // Half of the words fall into one bin, so that its atomics meet.
        let v: Vec<u32> = (0..4001).map(|i| if i % 2 == 0 { 0x4200_0000 + i } else { mixed(i) }).collect();
        let mut want = vec![0_u32; 256];
        for w in &v {
            want[(w >> 24) as usize] += 1;
        }
        let di = k.copy_of(&v);
        for (grid, block) in [(1, 32), (3, 256), (4, 100)] {
            let d = k.zeros::<u32>(256);
            let args = [Arg::from(n32(v.len())), (&di).into(), (&d).into()];
            k.launch("histogram256", [grid, 1, 1], [block, 1, 1], &args);
            same(&k.what("histogram256"), &read(&d), &want);
        }
    });
}

#[test]
fn barrier_cost() {
    each_way(&ways(), "barrier_cost", |k| {
        let (threads, turns) = (96, 7);
        for values in [1, 4, 16, 32] {
            let entry = format!("barrier{values}");
            let value = |start: usize| (0..turns).fold(start as f32, |v, _| v.mul_add(0.75, 1.0));
            let want: Vec<f32> =
                (0..2 * threads).map(|i| (0..values).fold(0.0, |sum, j| sum + value(i % threads + j))).collect();
            let d = k.zeros::<f32>(2 * threads);
            let args = [Arg::from(turns), Arg::from(0.75_f32), (&d).into()];
            k.launch(&entry, [2, 1, 1], [n32(threads), 1, 1], &args);
            same(&k.what(&entry), &read(&d), &want);
        }
    });
}

#[test]
fn sha256() {
    each_way(&ways(), "sha256", |k| {
        // The messages and digests are those of FIPS 180-2, appendix B, and the digest of the empty message.
        for (message, digest) in [
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            ),
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ] {
            let copies = 35;
            let text = k.copy_of(message.repeat(copies).as_bytes());
            let d = k.zeros::<u8>(32 * copies);
            let args = [Arg::from(n32(copies)), Arg::from(n32(message.len())), (&text).into(), (&d).into()];
            k.launch("sha256", [2, 1, 1], [32, 1, 1], &args);
            for bytes in read::<u8>(&d).chunks(32) {
                let got: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
                assert_eq!(got, digest, "{} of {message:?}", k.what("sha256"));
            }
        }
    });
}

/// Accelerations in f64; for each component also the sum of the sizes of its terms, which bounds the rounding error.
fn pulls(bodies: &[f32], softening: f64) -> Vec<(f64, f64)> {
    let at = |i: usize, c: usize| f64::from(bodies[4 * i + c]);
    let n = bodies.len() / 4;
    let mut out = Vec::new();
    for i in 0..n {
        let mut sums = [(0.0, 0.0); 4];
        for j in 0..n {
            let d = [0, 1, 2].map(|c| at(j, c) - at(i, c));
            let q = d.iter().map(|x| x * x).sum::<f64>() + softening;
            for (sum, x) in sums.iter_mut().zip(d) {
                let term = x * at(j, 3) / (q * q.sqrt());
                *sum = (sum.0 + term, sum.1 + term.abs());
            }
        }
        out.extend(sums);
    }
    out
}

#[test]
fn nbody() {
    each_way(&ways(), "nbody", |k| {
        let n = 100;
        let bodies = floats(61, 4 * n);
        let (db, dr) = (k.copy_of(&bodies), k.zeros::<f32>(4 * n));
        let args = [Arg::from(n32(n)), Arg::from(0.01_f32), (&db).into(), (&dr).into()];
        k.launch_shared("accelerations", [2, 1, 1], [64, 1, 1], 16 * 64, &args);
        let got = read::<f32>(&dr);
        // `rsqrt.approx.f32` is within 2^-22.9 relative, that is below 3 half units in the last place, and enters three times. The
        // differences of coordinates, the sum of squares, three products and the addition add at most half a unit each, the squares
        // one and a half times: a term is off by less than 24 half units. 128 additions, each off by half a unit of a partial sum,
        // add at most 128. All of it relative to the sum of the sizes of the terms, because the terms cancel.
        for (i, (g, (sum, sizes))) in got.iter().zip(pulls(&bodies, f64::from(0.01_f32))).enumerate() {
            let off = (f64::from(*g) - sum).abs();
            assert!(off <= 152.0 * HALF_ULP * sizes, "{} [{i}]: {g} {sum}", k.what("accelerations"));
        }
        let speeds = floats(5000, 4 * n);
        let dv = k.copy_of(&speeds);
        let args = [Arg::from(n32(n)), Arg::from(0.125_f32), (&dr).into(), (&dv).into(), (&db).into()];
        k.launch("advance", [2, 1, 1], [64, 1, 1], &args);
        let moves = |i: usize| i % 4 != 3;
        let v: Vec<f32> =
            (0..4 * n).map(|i| if moves(i) { got[i].mul_add(0.125, speeds[i]) } else { speeds[i] }).collect();
        let p: Vec<f32> =
            (0..4 * n).map(|i| if moves(i) { v[i].mul_add(0.125, bodies[i]) } else { bodies[i] }).collect();
        same(&k.what("advance"), &read(&dv), &v);
        same(&k.what("advance"), &read(&db), &p);
    });
}

#[test]
fn scan() {
    for name in ["scan", "scan.sm_90"] {
        each_way(&ways(), name, |k| {
            for (n, block) in [(1500, 256_u32), (100, 32), (3000, 1024)] {
                let v: Vec<u32> = words(71, n).iter().map(|w| w % 1000).collect();
                let blocks = n32(n).div_ceil(block);
                let sums_of = |n: usize| k.zeros::<u32>(n);
                let (di, d) = (k.copy_of(&v), sums_of(n));
                let (s, s2, unused) = (sums_of(blocks as usize), sums_of(blocks as usize), sums_of(1));
                let args = [Arg::from(n32(n)), (&di).into(), (&d).into(), (&s).into()];
                k.launch("scan_blocks", [blocks, 1, 1], [block, 1, 1], &args);
                let args = [Arg::from(blocks), (&s).into(), (&s2).into(), (&unused).into()];
                k.launch("scan_blocks", [1, 1, 1], [32, 1, 1], &args);
                let args = [Arg::from(n32(n)), (&s2).into(), (&d).into()];
                k.launch("add_offsets", [blocks, 1, 1], [block, 1, 1], &args);
                same(&k.what("scan"), &read(&d), &prefix_sums(&v));
            }
        });
    }
}

#[test]
fn softmax_of_rows() {
    each_way(&ways(), "softmax", |k| {
        for entry in ["softmax", "softmax_fast"] {
            for columns in [1, 7, 100, 333] {
                let rows = 3;
                let v = floats(81, columns * rows);
                let want: Vec<f64> = widen(&v).chunks(columns).flat_map(softmax).collect();
                // Arguments of the exponential are in (-1, 0]. The difference and the product with log2 e are off by half a unit of a
                // number below 2, that is 4 half units of the result together; `ex2.approx` by 4 half units; so does the sum; its
                // 4 additions of a thread and 10 of the trees and the division add 15. That is 31 half units; the next power of two.
                let within = Within { absolute: 0.0, relative: 32.0 * HALF_ULP };
                for block in [32, 96, 256] {
                    let (di, d) = (k.copy_of(&v), k.zeros::<f32>(v.len()));
                    let args = [Arg::from(n32(columns)), (&di).into(), (&d).into()];
                    k.launch(entry, [n32(rows), 1, 1], [block, 1, 1], &args);
                    near(&k.what(entry), &read::<f32>(&d), &want, within);
                }
            }
        }
    });
}

#[test]
fn matvec() {
    each_way(&ways(), "matvec", |k| {
        let (rows, columns) = (50, 77);
        let (a, x) = (floats(91, rows * columns), floats(9000, columns));
        let (da, dx) = (k.copy_of(&a), k.copy_of(&x));
        let size = [Arg::from(n32(rows)), Arg::from(n32(columns))];
        let d = k.zeros::<f32>(rows);
        let args = [size[0], size[1], (&da).into(), (&dx).into(), (&d).into()];
        k.launch("matvec_thread", [1, 1, 1], [64, 1, 1], &args);
        let want: Vec<f32> = a.chunks(columns).map(|row| fused_dot(row.iter().copied(), x.iter().copied())).collect();
        same(&k.what("matvec_thread"), &read(&d), &want);
        let d = k.zeros::<f32>(rows);
        let args = [size[0], size[1], (&da).into(), (&dx).into(), (&d).into()];
        k.launch("matvec_warp", [13, 1, 1], [128, 1, 1], &args);
        let lane =
            |row: &[f32], l: usize| fused_dot(row[l..].iter().step_by(32).copied(), x[l..].iter().step_by(32).copied());
        // Lane 0 of a `shfl.down` tree adds the upper half to the lower, like the tree in shared memory.
        let want: Vec<f32> =
            a.chunks(columns).map(|row| tree_sum(&(0..32).map(|l| lane(row, l)).collect::<Vec<_>>())).collect();
        same(&k.what("matvec_warp"), &read(&d), &want);
    });
}

#[test]
fn spin_lock() {
    for name in ["spin_lock", "spin_lock.sm_90"] {
        each_way(&many_ways(), name, |k| {
            let zeros = |n: usize| k.zeros::<u32>(n);
            let (l, c) = (zeros(2), zeros(2));
            k.launch("spin_lanes", [1, 1, 1], [64, 1, 1], &[Arg::from(5_u32), (&l).into(), (&c).into()]);
            same(&k.what("spin_lanes"), &read::<u32>(&c), &[160, 160]);
            let c = zeros(3);
            k.launch("spin_warps", [3, 1, 1], [256, 1, 1], &[Arg::from(5_u32), (&c).into()]);
            same(&k.what("spin_warps"), &read::<u32>(&c), &[40, 40, 40]);
            let (l, c) = (zeros(1), zeros(1));
            k.launch("spin_blocks", [20, 1, 1], [32, 1, 1], &[Arg::from(5_u32), (&l).into(), (&c).into()]);
            same(&k.what("spin_blocks"), &read::<u32>(&c), &[100]);
            for entry in ["spin_all", "spin_inside"] {
                let (l, c) = (zeros(1), zeros(1));
                k.launch(entry, [4, 1, 1], [96, 1, 1], &[(&l).into(), (&c).into()]);
                same(&k.what(entry), &read::<u32>(&c), &[384]);
            }
            let s = zeros(100);
            k.launch("pass_down", [1, 1, 1], [100, 1, 1], &[(&s).into()]);
            same(&k.what("pass_down"), &read::<u32>(&s), &(0..100).map(|i| 100 - i).collect::<Vec<_>>());
        });
    }
}

#[test]
fn ticket_lock() {
    each_way(&many_ways(), "ticket_lock", |k| {
        let n = 320;
        let (state, order, tickets) = (k.zeros::<u32>(2), k.zeros::<u32>(n), k.zeros::<u32>(n));
        let args = [(&state).into(), (&order).into(), (&tickets).into()];
        k.launch("ticket_lock", [5, 1, 1], [64, 1, 1], &args);
        same(&k.what("ticket_lock"), &read::<u32>(&state), &[n32(n), n32(n)]);
        let (order, tickets) = (read::<u32>(&order), read::<u32>(&tickets));
        let back: Vec<u32> = tickets.iter().map(|t| order[*t as usize]).collect();
        same(&k.what("ticket_lock"), &back, &(0..n32(n)).collect::<Vec<_>>());
    });
}

#[test]
fn lookback() {
    for name in ["lookback", "lookback.sm_90"] {
        each_way(&many_ways(), name, |k| {
            // 47 tiles, so that a tile looks back over more than one warp's worth of tiles; the last one is partial.
            let n = 12_000;
            let tiles = n32(n).div_ceil(256);
            let v = words(101, n);
            let (di, d, status, next) =
                (k.copy_of(&v), k.zeros::<u32>(n), k.zeros::<u64>(tiles as usize), k.zeros::<u32>(1));
            let args = [Arg::from(n32(n)), (&di).into(), (&d).into(), (&status).into(), (&next).into()];
            k.launch("scan_lookback", [tiles, 1, 1], [256, 1, 1], &args);
            same(&k.what("scan_lookback"), &read(&d), &prefix_sums(&v));
        });
    }
}

#[test]
fn last_block() {
    each_way(&many_ways(), "last_block", |k| {
        // More blocks than threads of a block, so that the last block loops over the parts.
        let (n, blocks) = (9000, 260);
        let v = words(111, n);
        let (di, sums, done, result) = (k.copy_of(&v), k.zeros::<u32>(blocks), k.zeros::<u32>(1), k.zeros::<u32>(1));
        // Twice, because the kernel leaves its counter ready for the next launch.
        for _ in 0..2 {
            let args = [Arg::from(n32(n)), (&di).into(), (&sums).into(), (&done).into(), (&result).into()];
            k.launch("sum_last_block", [n32(blocks), 1, 1], [256, 1, 1], &args);
            same(&k.what("sum_last_block"), &read::<u32>(&result), &prefix_sums(&v)[n - 1..]);
            same(&k.what("sum_last_block"), &read::<u32>(&done), &[0]);
        }
    });
}

#[test]
fn grid_barrier() {
    for name in ["grid_barrier", "grid_barrier.sm_90"] {
        each_way(&many_ways(), name, |k| {
            let (n, turns) = (6 * 64, 8);
            let v: Vec<u32> = (0..n).map(|i| i * 1000).collect();
            let zeros = || k.zeros::<u32>(1);
            let (even, odd) = (k.copy_of(&v), k.zeros::<u32>(v.len()));
            let (arrived, generation) = (zeros(), zeros());
            let args = [Arg::from(turns), (&even).into(), (&odd).into(), (&arrived).into(), (&generation).into()];
            k.launch_cooperative("rotate_turns", [6, 1, 1], [64, 1, 1], &args);
            let want: Vec<u32> = (0..n).map(|i| v[((i + turns) % n) as usize] + turns).collect();
            same(&k.what("rotate_turns"), &read(&even), &want);
        });
    }
}

#[test]
fn video_words() {
    each_way(&ways(), "video_words", |k| {
        let n = 5000;
        let (a, b) = (words(7, n), words(70_000, n));
        let bytes = |f: fn(u8, u8) -> u8| -> Vec<u32> {
            let word = |(a, b): (&u32, &u32)| {
                let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
                u32::from_le_bytes(std::array::from_fn(|i| f(a[i], b[i])))
            };
            a.iter().zip(&b).map(word).collect()
        };
        let (da, db) = (k.copy_of(&a), k.copy_of(&b));
        for (entry, want) in [("add_bytes", bytes(u8::saturating_add)), ("distance_bytes", bytes(u8::abs_diff))] {
            for block in [32, 100, 256] {
                let to = k.zeros::<u32>(n);
                let args = [Arg::from(n32(n)), (&da).into(), (&db).into(), (&to).into()];
                k.launch(entry, [n32(n).div_ceil(block), 1, 1], [block, 1, 1], &args);
                same(&k.what(entry), &read(&to), &want);
            }
        }
    });
}

#[test]
fn block_match() {
    let (w, h) = (64, 48);
    let picture = pictures::grey(&pictures::scene(w, h, 0, 0));
    let searched = pictures::with_rim(&pictures::grey(&pictures::scene(w, h, 3, -2)), w, h);
    let want = pictures::block_match(&picture, &searched, w, h);
    // A block that nothing hides is found where the scene has moved to, and is the same to the last byte.
    let whole = (0..6).flat_map(|y| (0..8).map(move |x| (x, y))).filter(|(x, y)| *x < 7 && *y > 0);
    assert!(whole.into_iter().all(|(x, y)| want[y * 8 + x] == 9 * (4 - 2) + (4 + 3)));
    each_way(&ways(), "block_match", |k| {
        let (dp, ds, best) = (k.copy_of(&picture), k.copy_of(&searched), k.zeros::<u32>(w * h / 64));
        let args = [Arg::from(n32(w / 4)), (&dp).into(), (&ds).into(), (&best).into()];
        k.launch("block_match", [n32(w / 8), n32(h / 8), 1], [96, 1, 1], &args);
        same(&k.what("block_match"), &read(&best), &want);
    });
}

#[test]
fn alpha_blend() {
    // Random bytes: a colour above its alpha, which a sound picture does not have, must be clamped.
    let n = 3001;
    let (above, below) = (words(31, n), words(91_000, n));
    let pixels = |v: &[u32]| v.iter().map(|w| w.to_le_bytes()).collect::<Vec<_>>();
    let want = pictures::blend(&pixels(&above), &pixels(&below));
    let want: Vec<u32> = want.into_iter().map(u32::from_le_bytes).collect();
    each_way(&ways(), "alpha_blend", |k| {
        let (da, db) = (k.copy_of(&above), k.copy_of(&below));
        for block in [33, 256] {
            let to = k.zeros::<u32>(n);
            let args = [Arg::from(n32(n)), (&da).into(), (&db).into(), (&to).into()];
            k.launch("alpha_blend", [n32(n).div_ceil(block), 1, 1], [block, 1, 1], &args);
            same(&k.what("alpha_blend"), &read(&to), &want);
        }
    });
}

#[test]
fn yuv_to_rgb() {
    let (w, h) = (72, 20);
    let random = |from, n| words(from, n).into_iter().map(|v| (v >> 24) as u8).collect::<Vec<u8>>();
    let scene = pictures::planes(&pictures::scene(w, h, 0, 0), w, h);
    // Random planes leave the range of colours on both sides.
    for planes in [scene, [random(5, w * h), random(6000, w * h / 4), random(9000, w * h / 4)]] {
        let want = pictures::colours(&planes, w, h).concat();
        each_way(&ways(), "yuv_to_rgb", |k| {
            let [y, u, v] = [0, 1, 2].map(|i| k.copy_of(&planes[i]));
            for block in [32, 7] {
                let to = k.zeros::<u8>(4 * w * h);
                let args = [Arg::from(n32(w / 4)), (&y).into(), (&u).into(), (&v).into(), (&to).into()];
                k.launch("yuv_to_rgb", [n32(w / 4).div_ceil(block), n32(h), 1], [block, 1, 1], &args);
                same(&k.what("yuv_to_rgb"), &read(&to), &want);
            }
        });
    }
}

#[test]
fn convert() {
    /// One entry of `from` elements to `to` elements, with a block that is not full at the end.
    fn one<A: Element, B: Element>(k: &Kernels<'_>, entry: &str, from: &[A], want: &[B], threads: usize) {
        let (di, d) = (k.copy_of(from), k.zeros::<B>(want.len()));
        let grid = [n32(threads).div_ceil(128), 1, 1];
        k.launch(entry, grid, [128, 1, 1], &[Arg::from(n32(threads)), (&di).into(), (&d).into()]);
        same(&k.what(entry), &read(&d), want);
    }
    each_way(&ways(), "convert", |k| {
        let n = 1003;
        let mut values: Vec<f32> = floats(3, n).iter().zip(words(5, n)).map(|(v, w)| v * (w % 64) as f32).collect();
        values[..4].copy_from_slice(&[0.0, -0.0, 1.0, -65504.0]);
        let (f16, e4m3, e2m1) = (Table::f16(), Table::e4m3(), Table::e2m1());
        let halves: Vec<u16> = values.iter().map(|v| f16.code(*v, 15) as u16).collect();
        let widened: Vec<f32> = halves.iter().map(|h| f16.number(u32::from(*h), 15)).collect();
        one(k, "f32_to_f16", &values, &halves, n);
        one(k, "f16_to_f32", &halves, &widened, n);
        // To nearest, ties to even: for numbers that are no NaN.
        let rounded = |v: &f32| ((v.to_bits() + 0x7fff + (v.to_bits() >> 16 & 1)) >> 16) as u16;
        one(k, "f32_to_bf16", &values, &values.iter().map(rounded).collect::<Vec<u16>>(), n);
        one(k, "f32_to_s32", &values, &values.iter().map(|v| *v as i32).collect::<Vec<i32>>(), n);
        let ints: Vec<i32> = words(1, n).iter().map(|w| w.cast_signed()).collect();
        one(k, "s32_to_f32", &ints, &ints.iter().map(|v| *v as f32).collect::<Vec<f32>>(), n);
        let bytes: Vec<u8> = ints.iter().map(|v| *v as u8).collect();
        one(k, "u8_to_f32", &bytes, &bytes.iter().map(|v| f32::from(*v)).collect::<Vec<f32>>(), n);
        let longs: Vec<i64> = ints.iter().map(|v| i64::from(*v) * i64::from(*v >> 3)).collect();
        let doubles: Vec<f64> = longs.iter().map(|v| *v as f64).collect();
        one(k, "s64_to_f64", &longs, &doubles, n);
        let parts: Vec<f64> = doubles.iter().map(|v| v / 1024.0).collect();
        one(k, "f64_to_s64", &parts, &parts.iter().map(|v| *v as i64).collect::<Vec<i64>>(), n);
        let codes: Vec<u8> = values[..1002].iter().map(|v| e4m3.code(*v, 7) as u8).collect();
        one(k, "f32_to_e4m3", &values[..1002], &codes, 501);
        let wide: Vec<u16> = codes.iter().map(|c| f16.code(e4m3.number(u32::from(*c), 7), 15) as u16).collect();
        one(k, "e4m3_to_f16", &codes, &wide, 501);
        let nibbles = values[..1002].chunks(2).map(|v| (e2m1.code(v[0], 3) | e2m1.code(v[1], 3) << 4) as u8);
        one(k, "f32_to_e2m1", &values[..1002], &nibbles.collect::<Vec<u8>>(), 501);
    });
}

/// Codes and scales of rows whose largest number becomes 448.
fn rows_in_e4m3(table: &Table, v: &[f32], length: usize) -> (Vec<u8>, Vec<f32>) {
    let scale = |row: &[f32]| match row.iter().fold(0_f32, |m, v| m.max(v.abs())) {
        0.0 => 1.0,
        most => most / 448.0,
    };
    let scales: Vec<f32> = v.chunks(length).map(scale).collect();
    let codes = v.iter().enumerate().map(|(i, v)| table.code(v / scales[i / length], 7) as u8).collect();
    (codes, scales)
}

#[test]
fn quantise_e4m3() {
    let table = Table::e4m3();
    each_way(&ways(), "quantise_e4m3", |k| {
        let (m, n, inner) = (19, 37, 150);
        let mut a: Vec<f32> =
            floats(61, m * inner).iter().enumerate().map(|(i, v)| v * (1 + i / inner) as f32).collect();
        a[inner..2 * inner].fill(0.0);
        let b = floats(4000, n * inner);
        let quantised = |k: &Kernels<'_>, v: &[f32], rows: usize| {
            let (codes, scales) = rows_in_e4m3(&table, v, inner);
            let (di, d, ds) = (k.copy_of(v), k.zeros::<u8>(v.len()), k.zeros::<f32>(rows));
            let args = [Arg::from(n32(inner / 2)), (&di).into(), (&d).into(), (&ds).into()];
            k.launch("quantise_rows", [n32(rows), 1, 1], [128, 1, 1], &args);
            same(&k.what("scales"), &read(&ds), &scales);
            same(&k.what("codes"), &read(&d), &codes);
            (d, ds, codes, scales)
        };
        let (da, das, a_codes, a_scales) = quantised(k, &a, m);
        let (db, dbs, b_codes, b_scales) = quantised(k, &b, n);
        let numbers = |codes: &[u8]| codes.iter().map(|c| table.number(u32::from(*c), 7)).collect::<Vec<f32>>();
        let (x, y) = (numbers(&a_codes), numbers(&b_codes));
        let mut want = vec![0_f32; m * n];
        for (i, row) in want.chunks_mut(n).enumerate() {
            for (j, d) in row.iter_mut().enumerate() {
                let sum = (0..inner).fold(0_f32, |sum, l| x[i * inner + l].mul_add(y[j * inner + l], sum));
                *d = sum * a_scales[i] * b_scales[j];
            }
        }
        // What was asked for at the end: the product of the matrices as they were. A factor is off by at most half a step, 2^-4 of itself, or
        // half of the least step, 2^-10, times the scale; the sums of both bound the difference, with room for the roundings of f32.
        for (i, row) in want.chunks(n).enumerate() {
            for (j, d) in row.iter().enumerate() {
                let off = |v: f32, scale: f32| f64::from(v.abs()) / 16.0 + f64::from(scale) / 1024.0;
                let (mut exact, mut bound) = (0.0, 0.0);
                for l in 0..inner {
                    let (v, w) = (a[i * inner + l], b[j * inner + l]);
                    let (dv, dw) = (off(v, a_scales[i]), off(w, b_scales[j]));
                    exact += f64::from(v) * f64::from(w);
                    bound += dv * f64::from(w.abs()) + dw * f64::from(v.abs()) + dv * dw;
                }
                assert!(
                    (f64::from(*d) - exact).abs() <= bound * 1.001,
                    "{i} {j}: {d} for {exact}, off by more than {bound}"
                );
            }
        }
        let d = k.zeros::<f32>(m * n);
        let sizes = [m, n, inner / 2].map(|v| Arg::from(n32(v)));
        let arrays: [Arg<'_>; 5] = [(&da).into(), (&das).into(), (&db).into(), (&dbs).into(), (&d).into()];
        let args: Vec<Arg<'_>> = sizes.into_iter().chain(arrays).collect();
        k.launch("product_e4m3", [n32(n).div_ceil(16), n32(m).div_ceil(8), 1], [16, 8, 1], &args);
        same(&k.what("product_e4m3"), &read(&d), &want);
    });
}

/// The code of the least power of two that is not below a sixth of the largest number.
fn block_scale(block: &[f32]) -> u8 {
    let least = f64::from(block.iter().fold(0_f32, |m, v| m.max(v.abs())) / 6.0);
    (0..255).find(|code| 2_f64.powi(i32::from(*code) - 127) >= least).unwrap_or(254)
}

#[test]
fn quantise_e2m1() {
    let table = Table::e2m1();
    each_way(&ways(), "quantise_e2m1", |k| {
        let (rows, blocks) = (45, 5);
        let mut v: Vec<f32> = floats(71, 32 * rows * blocks)
            .iter()
            .enumerate()
            .map(|(i, v)| v * 2_f32.powi((i / 32 % 40) as i32 - 20))
            .collect();
        v[32..64].fill(0.0);
        v[64] = 1e38;
        let scales: Vec<u8> = v.chunks(32).map(block_scale).collect();
        let power = |i: usize| 2_f64.powi(i32::from(scales[i]) - 127) as f32;
        let code = |i: usize| table.code(v[i] / power(i / 32), 3);
        let codes: Vec<u8> = (0..v.len() / 2).map(|i| (code(2 * i) | code(2 * i + 1) << 4) as u8).collect();
        let (di, d, ds) = (k.copy_of(&v), k.zeros::<u8>(codes.len()), k.zeros::<u8>(scales.len()));
        let args = [Arg::from(n32(scales.len())), (&di).into(), (&d).into(), (&ds).into()];
        k.launch("quantise_blocks", [n32(scales.len()).div_ceil(64), 1, 1], [64, 1, 1], &args);
        same(&k.what("scales"), &read(&ds), &scales);
        same(&k.what("codes"), &read(&d), &codes);

        let number = |i: usize| table.number(u32::from(codes[i / 2] >> (4 * (i % 2)) & 15), 3);
        let back: Vec<f32> = (0..v.len()).map(|i| number(i) * power(i / 32)).collect();
        for (i, (v, b)) in v.iter().zip(&back).enumerate() {
            // Numbers of at most 6 stand at most 2 apart.
            assert!((f64::from(*v) - f64::from(*b)).abs() <= f64::from(power(i / 32)), "{v} became {b}");
        }
        let to = k.zeros::<f32>(v.len());
        let args = [Arg::from(n32(codes.len())), (&d).into(), (&ds).into(), (&to).into()];
        k.launch("dequantise_blocks", [n32(codes.len()).div_ceil(96), 1, 1], [96, 1, 1], &args);
        same(&k.what("dequantise_blocks"), &read(&to), &back);

        let x = floats(5, 32 * blocks);
        let part = |b: usize, first: usize| (0..32).fold(0_f32, |s, i| number(32 * b + i).mul_add(x[first + i], s));
        let row =
            |r: usize| (0..blocks).fold(0_f32, |s, b| part(r * blocks + b, 32 * b).mul_add(power(r * blocks + b), s));
        let want: Vec<f32> = (0..rows).map(row).collect();
        let (dx, dy) = (k.copy_of(&x), k.zeros::<f32>(rows));
        let sizes = [rows, blocks].map(|v| Arg::from(n32(v)));
        let args = [sizes[0], sizes[1], (&d).into(), (&ds).into(), (&dx).into(), (&dy).into()];
        k.launch("matvec_e2m1", [2, 1, 1], [32, 1, 1], &args);
        same(&k.what("matvec_e2m1"), &read(&dy), &want);
    });
}

#[test]
fn raytracer() {
    each_way(&ways(), "raytracer", |k| {
        // More than the world takes. Its objects hold addresses of functions, so only the device can make them.
        let world = k.zeros::<u8>(4096);
        k.launch("furnish_world", [1, 1, 1], [1, 1, 1], &[(&world).into()]);
        for (w, h, samples, turns, block) in [(13_u32, 11_u32, 2_u32, 8_u32, [8, 8, 1]), (16, 4, 1, 0, [32, 1, 1])] {
            let d = k.zeros::<f32>(3 * (w * h) as usize);
            let sizes = [w, h, samples, turns].map(Arg::from);
            let args = [(&world).into(), (&d).into(), sizes[0], sizes[1], sizes[2], sizes[3]];
            k.launch("render", [w.div_ceil(block[0]), h.div_ceil(block[1]), 1], block, &args);
            same(&k.what("render"), &read(&d), &paths::picture(w, h, samples, turns));
        }
    });
}
