//! Memory: accesses of each width, strided and gathered; atomics in shared and global memory, a lock, full fences; beside C with C11 atomics.

use crate::cases::{Case, Input, Job, Scale, job};
use crate::data::{index, mixed, word_bytes};
use crate::native::Source;

const C: Source = Source { name: "memory", text: include_str!("../c/memory.c"), needs_cuda_headers: false, cxx: &[] };

const fn case(
    name: &'static str,
    entry: &'static str,
    judged: &'static str,
    floor: Option<f64>,
    unit: &'static str,
    job: fn(Scale) -> Job,
) -> Case {
    let ptx = include_str!("../ptx/memory.ptx");
    Case { name, ptx, first: None, entry, c: C, judged, beside: &[], floor, goal: None, unit, job }
}

/// All cases.
pub const CASES: &[Case] = &[
    case("copy v1", "copy1", "copy", Some(0.9), "GB/s", |s| copy(s, 1)),
    case("copy v2", "copy2", "copy", Some(0.9), "GB/s", |s| copy(s, 2)),
    case("copy v4", "copy4", "copy", Some(0.9), "GB/s", |s| copy(s, 4)),
    case("strided", "strided", "strided", None, "GB/s", strided),
    case("gather", "gather", "gather", None, "GB/s", gather),
    case("shared counts", "shared_counts", "shared_counts", Some(0.67), "G/s", shared_counts),
    case("atomics on 4 words", "counts_few", "counts_few", None, "G/s", |s| counts(s, 4)),
    case("atomics on 65536", "counts_many", "counts_many", None, "G/s", |s| counts(s, 65_536)),
    case("atomics on 1 word", "count_one", "count_one", None, "G/s", |s| counts(s, 1)),
    case("spin lock", "lock", "lock", None, "G/s", lock),
    case("fence.sc", "fence_sc", "fence_sc", None, "G/s", fences),
];

/// Numbers of words are powers of two.
fn words(scale: Scale) -> u32 {
    scale.of(16 << 20, 16 << 10, 1 << 10)
}

fn copy(scale: Scale, width: u32) -> Job {
    let n = words(scale);
    let from: Vec<u32> = (0..n).map(mixed).collect();
    let inputs = vec![Input::Word(n / width), Input::Buffer(word_bytes(&from))];
    let mut job = job(n, n / width, inputs, 8.0 * f64::from(n), 0, from);
    // Few and large blocks: it is the copying that is measured, not the starting of blocks.
    (job.grid, job.block) = ([(n / width).div_ceil(1024), 1, 1], [1024, 1, 1]);
    job
}

fn strided(scale: Scale) -> Job {
    let n = words(scale);
    let from: Vec<u32> = (0..n).map(mixed).collect();
    let want = (0..n).map(|i| mixed(i.wrapping_mul(33) & (n - 1))).collect();
    job(n, n, vec![Input::Word(n), Input::Buffer(word_bytes(&from))], 8.0 * f64::from(n), 0, want)
}

fn gather(scale: Scale) -> Job {
    let n = words(scale);
    let from: Vec<u32> = (0..n).map(mixed).collect();
    let indices: Vec<u32> = (0..n).map(|i| mixed(n + i) % n).collect();
    let want = indices.iter().map(|i| from[index(*i)]).collect();
    let inputs = vec![Input::Word(n), Input::Buffer(word_bytes(&indices)), Input::Buffer(word_bytes(&from))];
    job(n, n, inputs, 12.0 * f64::from(n), 0, want)
}

/// 64 increments of each of so many threads.
fn shared_counts(scale: Scale) -> Job {
    let n = scale.of(1 << 20, 1 << 12, 1 << 9);
    let mut want = vec![0; index(n)];
    for i in 0..n {
        for turn in 0..64_u32 {
            let hash = turn.wrapping_mul(0x0100_0003).wrapping_add(i).wrapping_mul(0x9e37_79b1);
            want[index(i / 256 * 256 + (hash >> 24))] += 1;
        }
    }
    job(n, n, vec![], 64.0 * f64::from(n), 0, want)
}

fn counts(scale: Scale, places: u32) -> Job {
    let n = scale.of(1 << 22, 1 << 14, 1 << 10);
    let mut want = vec![0; index(places)];
    (0..n).for_each(|i| want[index(i % places)] += 1);
    job(n, n, vec![Input::Word(n)], f64::from(n), places, want)
}

/// Hand-overs of a lock among 64 blocks.
fn lock(scale: Scale) -> Job {
    const BLOCKS: u32 = 64;
    let each = scale.of(1 << 12, 1 << 6, 4);
    let n = BLOCKS * each;
    let sum = (1..=n).fold(0_u32, u32::wrapping_add);
    let mut job = job(n, 0, vec![Input::Word(each)], f64::from(n), 3, vec![0, n, sum]);
    (job.grid, job.block) = ([BLOCKS, 1, 1], [32, 1, 1]);
    job.label = format!("{n}");
    job
}

fn fences(scale: Scale) -> Job {
    let n = scale.of(1 << 18, 1 << 12, 1 << 9);
    job(n, n, vec![], 16.0 * f64::from(n), 0, vec![120; index(n)])
}
