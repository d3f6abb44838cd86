//! Kernels of `tests/kernels` whose threads, blocks and clusters wait for each other, against references on the host, in every way in which a
//! kernel can be run; and the examples of the library `handloom`.

use handloom_runtime::Arg;
use handloom_tests::reference::data::{n32, same, words};
use handloom_tests::reference::run::{each_way, many_ways, read, ways};

#[path = "../crates/handloom/examples/compare.rs"]
mod compare;
#[path = "../crates/handloom/examples/races.rs"]
mod races;
#[path = "../crates/handloom/examples/sweep.rs"]
mod sweep;
#[path = "../crates/handloom/examples/unit_test.rs"]
mod unit_test;

/// Far more than host threads.
const BLOCKS: u32 = 96;

#[test]
fn grid_sum() {
    for name in ["grid_sum", "grid_sum.sm_90"] {
        each_way(&ways(), name, |k| {
            let v = words(3, 20_000);
            let sum = v.iter().fold(0_u32, |s, v| s.wrapping_add(*v));
            let x = k.copy_of(&v);
            for (entry, blocks) in [("grid_sum", BLOCKS), ("grid_sum_runtime", BLOCKS), ("grid_sum", 1)] {
                let (parts, totals, valid) = (k.zeros::<u32>(200), k.zeros::<u32>(200), k.zeros::<u32>(1));
                let args = [Arg::from(&x), n32(v.len()).into(), (&parts).into(), (&totals).into(), (&valid).into()];
                k.launch_cooperative(entry, [blocks, 1, 1], [64, 1, 1], &args);
                same(&k.what(entry), &read::<u32>(&totals)[..blocks as usize], &vec![sum; blocks as usize]);
                same(&k.what(entry), &read::<u32>(&valid), &[1]);
                // Again: the barrier is as it was.
                k.launch_cooperative(entry, [blocks, 1, 1], [64, 1, 1], &args);
                same(&k.what(entry), &read::<u32>(&totals)[..blocks as usize], &vec![sum; blocks as usize]);
            }
        });
    }
}

#[test]
fn a_grid_that_is_not_cooperative_has_no_barrier() {
    each_way(&ways(), "grid_sum", |k| {
        let x = k.zeros::<u32>(64);
        for entry in ["grid_sum", "grid_sum_runtime"] {
            let (parts, totals, valid) = (k.zeros::<u32>(4), k.zeros::<u32>(4), k.copy_of(&[7_u32]));
            let args = [Arg::from(&x), 64_u32.into(), (&parts).into(), (&totals).into(), (&valid).into()];
            k.launch(entry, [4, 1, 1], [32, 1, 1], &args);
            // Without a handle nobody knows his rank, and the first thread tells by registers only.
            let want = if entry == "grid_sum" { 0 } else { read::<u32>(&valid)[0] };
            same(&k.what(entry), &read::<u32>(&valid), &[want]);
            same(&k.what(entry), &read::<u32>(&totals), &[0; 4]);
        }
    });
}

#[test]
fn cluster_histogram() {
    each_way(&many_ways(), "cluster_histogram", |k| {
        for (cluster, per_block) in [(2, 24_u32), (4, 100), (8, 3), (16, 5), (1, 40)] {
            let keys = words(11, 3000);
            let bins = (cluster * per_block) as usize;
            let mut want = vec![0_u32; bins];
            keys.iter().for_each(|key| want[*key as usize % bins] += 1);
            let (grid, block) = (2 * cluster, 96);
            let (x, counts, seen) = (k.copy_of(&keys), k.zeros::<u32>(bins), k.zeros::<u32>(grid as usize));
            let args = [Arg::from(&x), n32(keys.len()).into(), per_block.into(), (&counts).into(), (&seen).into()];
            let (grid3, block3, cluster3) = ([grid, 1, 1], [block, 1, 1], [cluster, 1, 1]);
            k.launch_clusters("cluster_histogram", grid3, block3, cluster3, 4 * per_block, &args);
            same(&k.what("cluster_histogram"), &read(&counts), &want);
            // What a block sees of its neighbour: the keys of its cluster's threads that fall into the neighbour's bins.
            let mut near = vec![0_u32; grid as usize];
            for (i, key) in keys.iter().enumerate() {
                let from = i as u32 / block % grid / cluster;
                let owner = *key % bins as u32 / per_block;
                near[(from * cluster + (owner + cluster - 1) % cluster) as usize] += 1;
            }
            same(&k.what("cluster_histogram"), &read(&seen), &near);
        }
    });
}

#[test]
fn hand_over() {
    let taken = |seed: u32, n: u32| {
        (0..n).fold(0_u32, |s, i| s.wrapping_mul(3).wrapping_add(seed.wrapping_add(i.wrapping_mul(i))))
    };
    each_way(&many_ways(), "hand_over", |k| {
        let n = 20_u32;
        let sums = k.zeros::<u32>(16);
        k.launch("hand_over_lanes", [1, 1, 1], [32, 1, 1], &[n.into(), (&sums).into()]);
        same(&k.what("hand_over_lanes"), &read(&sums), &(0..16).map(|p| taken(p, n)).collect::<Vec<_>>());

        let sums = k.zeros::<u32>(3 * 128);
        k.launch("hand_over_warps", [3, 1, 1], [256, 1, 1], &[n.into(), (&sums).into()]);
        same(&k.what("hand_over_warps"), &read(&sums), &(0..384).map(|p| taken(p % 128, n)).collect::<Vec<_>>());

        let pairs = 40;
        let [cell, made, gone, sums] = [(); 4].map(|()| k.zeros::<u32>(pairs));
        let args = [Arg::from(n), (&cell).into(), (&made).into(), (&gone).into(), (&sums).into()];
        k.launch_cooperative("hand_over_blocks", [2 * n32(pairs), 1, 1], [32, 1, 1], &args);
        same(&k.what("hand_over_blocks"), &read(&sums), &(0..n32(pairs)).map(|p| taken(p, n)).collect::<Vec<_>>());
    });
}

/// What `group_tiles` writes: words that are as many words apart as the grid has threads.
fn tile_words(v: &[i32], size: usize, block: usize) -> Vec<Vec<u32>> {
    let bits = |v: i32| v.cast_unsigned();
    let mut out = vec![Vec::new(); 10];
    for (tile, v) in v.chunks(size).enumerate() {
        let place = tile % (block / size);
        let sum = v.iter().fold(0_u32, |s, v| s.wrapping_add(bits(*v)));
        let most = v.iter().map(|v| *v as f32).fold(f32::NEG_INFINITY, f32::max);
        let wide: i64 = v.iter().map(|v| i64::from(*v) * i64::from(*v)).sum();
        let [low, high] = [wide, wide >> 32].map(|w| (w & 0xffff_ffff) as u32);
        let from = v[(place * 37 + 5) % size];
        let any = v.iter().any(|v| v % 100 == 7);
        let all = v.iter().all(|v| v % 100 != 11);
        let (mut before, mut product) = (0, 1_u32);
        for (rank, x) in v.iter().enumerate() {
            product = product.wrapping_mul(bits(*x) | 1);
            let next = v[(rank + 1) % size];
            let where_ = n32(rank << 16 | place << 8 | (block / size));
            let votes = u32::from(any) | u32::from(all) << 1;
            let all = [sum, most.to_bits(), low, high, before, product, bits(from), votes, bits(next), where_];
            out.iter_mut().zip(all).for_each(|(words, word)| words.push(word));
            before ^= bits(*x);
        }
    }
    out
}

#[test]
fn group_tiles() {
    for name in ["group_tiles", "group_tiles.sm_90", "group_tiles.sm_100"] {
        each_way(&ways(), name, |k| {
            for (size, block) in [(64, 1024), (128, 256), (256, 512), (512, 512), (512, 1024)] {
                let grid = 2;
                let n = grid * block;
                let v: Vec<i32> = words(n32(size), n).iter().map(|w| w.cast_signed() >> 5).collect();
                let (x, out) = (k.copy_of(&v), k.zeros::<u32>(10 * n));
                let (entry, args) = (format!("tiles_{size}"), [Arg::from(&x), (&out).into()]);
                let shared = if size == 128 || size == 512 { 4 * n32(block) } else { 0 };
                k.launch_shared(&entry, [n32(grid), 1, 1], [n32(block), 1, 1], shared, &args);
                same(&k.what(&entry), &read::<u32>(&out), &tile_words(&v, size, block).concat());
            }
        });
    }
}

#[test]
fn tiles_that_do_different_rounds() {
    for name in ["group_tiles", "group_tiles.sm_90", "group_tiles.sm_100"] {
        each_way(&many_ways(), name, |k| {
            let (grid, block) = (3, 512);
            let mut v = words(77, grid * block);
            let (x, out) = (k.copy_of(&v), k.zeros::<u32>(v.len()));
            k.launch("tiles_apart", [n32(grid), 1, 1], [n32(block), 1, 1], &[Arg::from(&x), (&out).into()]);
            for (tile, v) in v.chunks_mut(128).enumerate() {
                for round in 0..3 + 2 * n32(tile % (block / 128)) {
                    let sum = v.iter().fold(0_u32, |s, v| s.wrapping_add(*v ^ round));
                    v.iter_mut().zip(0..).for_each(|(v, rank)| *v = sum.wrapping_add(rank));
                }
                for half in v.chunks_mut(64) {
                    let mut sum = 0_u32;
                    for v in half {
                        sum += *v & 255;
                        *v = v.wrapping_add(sum);
                    }
                }
                for warp in v.chunks_mut(32) {
                    let all = warp.to_vec();
                    warp.iter_mut().enumerate().for_each(|(lane, v)| *v ^= all[lane ^ 9]);
                }
            }
            same(&k.what("tiles_apart"), &read(&out), &v);
        });
    }
}

#[test]
fn examples_of_the_library() {
    for example in [compare::main, races::main, sweep::main, unit_test::main] {
        example().unwrap();
    }
}

#[test]
fn launches_of_the_device() {
    each_way(&ways(), "device_launch", |k| {
        let one = [1; 3];
        let mut v: Vec<i32> = words(5, 600).into_iter().map(|w| (w % 1000).cast_signed()).collect();
        let x = k.copy_of(&v);
        k.launch("quicksort", one, one, &[Arg::from(&x), n32(v.len()).into()]);
        v.sort_unstable();
        same("quicksort", &read(&x), &v);

        let v = words(7, 1024);
        let mut want = vec![0_u32; 63];
        for (leaf, part) in v.chunks(32).enumerate() {
            want[31 + leaf] = part.iter().fold(0, |s, v| s.wrapping_add(*v));
        }
        (0..31).rev().for_each(|i| want[i] = want[2 * i + 1].wrapping_add(want[2 * i + 2]));
        let (x, sums) = (k.copy_of(&v), k.zeros::<u32>(63));
        let args = [Arg::from(&x), n32(v.len()).into(), (&sums).into(), 0_u32.into()];
        k.launch("sum_tree", one, [32, 1, 1], &args);
        same("sum_tree", &read(&sums), &want);

        // A chain of tails is longer than launches can be nested.
        let p = k.zeros::<u32>(1);
        k.launch("chain", one, one, &[Arg::from(&p), 100_u32.into()]);
        same("chain", &read(&p), &[100 * 101 / 2]);

        // The limits, with the numbers of cudaErrorLaunchMaxDepthExceeded and cudaErrorLaunchPendingCountExceeded.
        let p = k.zeros::<u32>(4);
        k.launch("deep", one, one, &[Arg::from(&p), 0_u32.into()]);
        same("deep", &read(&p), &[24, 65, 65, 0]);
        // So many launches take a while: once for each engine and generator.
        if k.way.seed == 0 {
            let p = k.zeros::<u32>(3);
            k.launch("flood", one, one, &[Arg::from(&p), 2060_u32.into()]);
            same("flood", &read(&p), &[2048, 2048, 69]);
        }

        let (p, codes) = (k.copy_of(&[1_u32, 0, 0]), k.zeros::<u32>(18));
        k.launch("streams", one, one, &[Arg::from(&p), (&codes).into()]);
        same("streams", &read(&p), &[((1 + 3) * 5 + 7) * 2 + 1, 54, 0x1111_1111]);
        // cudaErrorInvalidValue, InvalidConfiguration, InvalidMemcpyDirection, InvalidResourceHandle.
        same("codes", &read(&codes), &[0, 0, 0, 0, 0, 0, 0, 0, 0, 400, 400, 1, 1, 9, 1, 21, 1, 1]);

        let codes = k.zeros::<u32>(14);
        k.launch("facts", one, one, &[Arg::from(&codes)]);
        let name = u32::from_le_bytes([b'c', b'I', b'e', 0]);
        same("facts", &read(&codes), &[0, 32, 101, 0, 2048, 0, 0, 0, 1, 0, 42, 0, 1, name]);
    });
}
