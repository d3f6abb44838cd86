//! The kernels, their data, and what must come out of them.
//!
//! References are computed here, in Rust, with the operations of the PTX in its order, so our result must fit to the last bit. C may
//! contract and reorder; how far its result may be off is said at each case.

use handloom_tests::reference::paths;

use crate::data::{Expected, float_bytes, floats, index, mixed, word_bytes};
use crate::native::Source;

/// The text of a kernel of `tests/kernels`.
macro_rules! kernel {
    ($name:literal) => {
        include_str!(concat!("../../tests/kernels/", $name, ".ptx"))
    };
}
pub(crate) use kernel;

/// A C program of `c/`.
macro_rules! source {
    ($name:literal) => {
        $crate::native::Source {
            name: $name,
            text: include_str!(concat!("../c/", $name, ".c")),
            needs_cuda_headers: false,
            cxx: &[],
        }
    };
}
pub(crate) use source;

/// How much work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Arrays of 64 MiB where arrays matter: the one that is judged.
    Full,
    /// Arrays of 64 KiB.
    Small,
    /// Enough to see that it works.
    Tiny,
}

impl Scale {
    /// One of three numbers.
    pub fn of(self, full: u32, small: u32, tiny: u32) -> u32 {
        match self {
            Scale::Full => full,
            Scale::Small => small,
            Scale::Tiny => tiny,
        }
    }
}

/// A kernel and its partner in C.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// Text of its module.
    pub ptx: &'static str,
    /// An entry that one thread runs once before, with the first argument: what only the device can make, such as objects with virtual functions.
    pub first: Option<&'static str>,
    /// Its entry.
    pub entry: &'static str,
    /// The C program.
    pub c: Source,
    /// The variant that the ratio is to.
    pub judged: &'static str,
    /// Other variants, shown beside.
    pub beside: &'static [&'static str],
    /// Least ratio.
    pub floor: Option<f64>,
    /// The ratio that is aimed at, where an experiment reached it.
    pub goal: Option<f64>,
    /// What is counted, in thousands of millions a second.
    pub unit: &'static str,
    /// Its data.
    pub job: fn(Scale) -> Job,
}

/// One argument.
#[derive(Clone, Debug)]
pub enum Input {
    /// A buffer with these bytes.
    Buffer(Vec<u8>),
    /// A word, signed or not.
    Word(u32),
    /// A float.
    Float(f32),
    /// A double.
    Double(f64),
}

/// The work of a case at some scale.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its size, for people.
    pub label: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Arguments of the kernel.
    pub inputs: Vec<Input>,
    /// Which argument is written.
    pub output: usize,
    /// Arguments of the C program.
    pub sizes: Vec<u32>,
    /// Bytes or operations of one run.
    pub work: f64,
    /// Our result.
    pub expected: Expected,
    /// The result of C.
    pub expected_c: Expected,
}

/// All cases.
pub const CASES: &[Case] = &[
    Case {
        name: "saxpy",
        ptx: kernel!("saxpy"),
        first: None,
        entry: "saxpy",
        c: source!("saxpy"),
        judged: "plain",
        beside: &[],
        floor: Some(0.5),
        goal: Some(0.95),
        unit: "GB/s",
        job: saxpy,
    },
    Case {
        name: "stencil",
        ptx: kernel!("stencil"),
        first: None,
        entry: "stencil5",
        c: source!("stencil"),
        judged: "plain",
        beside: &[],
        floor: Some(0.5),
        goal: Some(0.95),
        unit: "GB/s",
        job: stencil,
    },
    Case {
        name: "reduce",
        ptx: kernel!("reduce"),
        first: None,
        entry: "reduce256",
        c: source!("reduce"),
        judged: "plain",
        beside: &["simd", "tree"],
        floor: Some(0.5),
        goal: None,
        unit: "GB/s",
        job: reduce,
    },
    Case {
        name: "sgemm16",
        ptx: kernel!("sgemm"),
        first: None,
        entry: "sgemm16",
        c: source!("sgemm"),
        judged: "ikj",
        beside: &["tiled"],
        floor: Some(0.5),
        goal: Some(0.7),
        unit: "GFLOP/s",
        job: sgemm,
    },
    Case {
        name: "mandelbrot",
        ptx: kernel!("mandelbrot"),
        first: None,
        entry: "mandelbrot",
        c: source!("mandelbrot"),
        judged: "plain",
        beside: &[],
        floor: Some(2.0),
        goal: Some(4.6),
        unit: "GFLOP/s",
        job: mandelbrot,
    },
    Case {
        name: "hash",
        ptx: kernel!("hash"),
        first: None,
        entry: "hash",
        c: source!("hash"),
        judged: "plain",
        beside: &["interchanged"],
        floor: Some(4.0),
        goal: Some(12.0),
        unit: "Gop/s",
        job: hash,
    },
    // The same with the number of rounds as a constant, for which gcc makes vectors. No floor was ever set for it.
    Case {
        name: "hash64",
        ptx: kernel!("hash"),
        first: None,
        entry: "hash64",
        c: source!("hash"),
        judged: "fixed",
        beside: &[],
        floor: None,
        goal: None,
        unit: "Gop/s",
        job: hash64,
    },
    Case {
        name: "histogram",
        ptx: kernel!("histogram"),
        first: None,
        entry: "histogram256",
        c: source!("histogram"),
        judged: "plain",
        beside: &[],
        floor: None,
        goal: None,
        unit: "GB/s",
        job: histogram,
    },
    // Video instructions on four bytes: `vadd4` with `.sat`, and `vabsdiff4`.
    Case {
        name: "vadd4",
        ptx: kernel!("video_words"),
        first: None,
        entry: "add_bytes",
        c: source!("bytes"),
        judged: "add",
        beside: &[],
        floor: Some(0.25),
        goal: None,
        unit: "GB/s",
        job: vadd4,
    },
    Case {
        name: "vabsdiff4",
        ptx: kernel!("video_words"),
        first: None,
        entry: "distance_bytes",
        c: source!("bytes"),
        judged: "distance",
        beside: &[],
        floor: Some(0.25),
        goal: None,
        unit: "GB/s",
        job: vabsdiff4,
    },
    // Virtual functions and recursion: every lane follows a path of its own.
    Case {
        name: "raytracer",
        ptx: kernel!("raytracer"),
        first: Some("furnish_world"),
        entry: "render",
        c: Source {
            cxx: &[
                ("raytracer.cc", include_str!("../c/raytracer.cc")),
                ("raytracer.cu", include_str!("../../tests/kernels/raytracer.cu")),
            ],
            ..source!("raytracer")
        },
        judged: "calls",
        beside: &[],
        // One fifteenth.
        floor: Some(0.0667),
        goal: None,
        unit: "Gpath/s",
        job: raytracer,
    },
];

fn raytracer(scale: Scale) -> Job {
    let side = scale.of(96, 48, 8);
    let (samples, turns) = (scale.of(4, 2, 1), 7);
    let want = paths::picture(side, side, samples, turns);
    Job {
        label: format!("{side}x{side}"),
        grid: [side.div_ceil(8), side.div_ceil(8), 1],
        block: [8, 8, 1],
        shared: 0,
        inputs: vec![
            // More than the world takes.
            Input::Buffer(vec![0; 4096]),
            zeros(3 * side * side),
            Input::Word(side),
            Input::Word(side),
            Input::Word(samples),
            Input::Word(turns),
        ],
        output: 1,
        sizes: vec![side, side, samples, turns],
        work: f64::from(side * side * samples),
        expected: Expected::exactly(&want),
        expected_c: Expected::exactly(&want),
    }
}

/// Bytes for people.
pub fn size(bytes: u32) -> String {
    match bytes {
        b if b >= 1 << 20 => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

/// A buffer of zeros.
pub fn zeros(words: u32) -> Input {
    Input::Buffer(vec![0; 4 * index(words)])
}

fn saxpy(scale: Scale) -> Job {
    let n = scale.of(16 << 20, 16 << 10, 1000);
    let a = 0.75_f32;
    let (x, y) = (floats(0, n), floats(n, n));
    let want: Vec<f32> = x.iter().zip(&y).map(|(x, y)| a.mul_add(*x, *y)).collect();
    Job {
        label: size(4 * n),
        grid: [n.div_ceil(256), 1, 1],
        block: [256, 1, 1],
        shared: 0,
        inputs: vec![Input::Word(n), Input::Float(a), Input::Buffer(float_bytes(&x)), Input::Buffer(float_bytes(&y))],
        output: 3,
        sizes: vec![n],
        work: 12.0 * f64::from(n),
        expected: Expected::exactly(&want),
        // One rounding more without contraction.
        expected_c: Expected::Floats(want, 1e-6),
    }
}

fn stencil(scale: Scale) -> Job {
    let (width, height) = (scale.of(4096, 128, 70), scale.of(4096, 128, 21));
    let (centre, side) = (0.5_f32, 0.125_f32);
    let from = floats(0, width * height);
    let mut want = vec![0.0_f32; from.len()];
    let w = index(width);
    for y in 1..index(height) - 1 {
        for i in y * w + 1..(y + 1) * w - 1 {
            let sides = (from[i - 1] + from[i + 1]) + (from[i - w] + from[i + w]);
            want[i] = from[i].mul_add(centre, sides * side);
        }
    }
    Job {
        label: if scale == Scale::Full { format!("{width}x{height}") } else { size(4 * width * height) },
        grid: [width.div_ceil(32), height.div_ceil(8), 1],
        block: [32, 8, 1],
        shared: 0,
        inputs: vec![
            Input::Word(width),
            Input::Word(height),
            Input::Float(centre),
            Input::Float(side),
            Input::Buffer(float_bytes(&from)),
            zeros(width * height),
        ],
        output: 5,
        sizes: vec![width, height],
        // Each element read once and written once.
        work: 8.0 * f64::from(width * height),
        expected: Expected::exactly(&want),
        expected_c: Expected::Floats(want, 1e-6),
    }
}

fn reduce(scale: Scale) -> Job {
    let n = scale.of(16 << 20, 16 << 10, 4 * 512);
    let from = floats(0, n);
    let want: Vec<f32> = from.chunks_exact(512).map(tree).collect();
    let sum: f64 = from.iter().map(|v| f64::from(*v)).sum();
    let size_of_all: f64 = from.iter().map(|v| f64::from(v.abs())).sum();
    Job {
        label: size(4 * n),
        grid: [n / 512, 1, 1],
        block: [256, 1, 1],
        shared: 0,
        inputs: vec![Input::Buffer(float_bytes(&from)), zeros(n / 512)],
        output: 1,
        sizes: vec![n],
        work: 4.0 * f64::from(n),
        expected: Expected::exactly(&want),
        // Far inside the bound for sums in any order, n * 2^-24 of the sum of sizes; a lost strip of elements would still show.
        expected_c: Expected::Near(sum, 1e-5 * size_of_all),
    }
}

/// The sum of 512 numbers as the kernel makes it.
fn tree(of: &[f32]) -> f32 {
    let mut part: Vec<f32> = (0..256).map(|t| of[t] + of[t + 256]).collect();
    let mut half = 128;
    while half > 0 {
        for t in 0..half {
            part[t] += part[t + half];
        }
        half /= 2;
    }
    part[0]
}

fn sgemm(scale: Scale) -> Job {
    let size = scale.of(512, 128, 32);
    let n = index(size);
    let (a, b) = (floats(0, size * size), floats(size * size, size * size));
    let mut want = vec![0.0_f32; n * n];
    for (i, row) in want.chunks_exact_mut(n).enumerate() {
        for k in 0..n {
            let v = a[i * n + k];
            for (c, b) in row.iter_mut().zip(&b[k * n..]) {
                *c = v.mul_add(*b, *c);
            }
        }
    }
    Job {
        label: format!("{size}"),
        grid: [size / 16, size / 16, 1],
        block: [16, 16, 1],
        shared: 0,
        inputs: vec![
            Input::Word(size),
            Input::Buffer(float_bytes(&a)),
            Input::Buffer(float_bytes(&b)),
            zeros(size * size),
        ],
        output: 3,
        sizes: vec![size],
        work: 2.0 * f64::from(size).powi(3),
        expected: Expected::exactly(&want),
        expected_c: Expected::Floats(want, 1e-3),
    }
}

fn mandelbrot(scale: Scale) -> Job {
    let (width, height) = (scale.of(1024, 128, 40), scale.of(1024, 128, 25));
    let limit = scale.of(256, 256, 40);
    let (left, top, step) = (-2.0_f32, -1.25_f32, 2.5 / height as f32);
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let want: Vec<u32> =
        pixels.map(|(x, y)| steps((x as f32).mul_add(step, left), (y as f32).mul_add(step, top), limit)).collect();
    let turns: f64 = want.iter().map(|n| f64::from(*n)).sum();
    Job {
        label: format!("{width}x{height}"),
        grid: [width.div_ceil(32), height.div_ceil(8), 1],
        block: [32, 8, 1],
        shared: 0,
        inputs: vec![
            Input::Word(width),
            Input::Word(height),
            Input::Word(limit),
            Input::Float(left),
            Input::Float(top),
            Input::Float(step),
            zeros(width * height),
        ],
        output: 6,
        sizes: vec![width, height, limit],
        work: 7.0 * turns,
        expected: Expected::Words(want.clone()),
        // Contracted otherwise, a point near the edge may leave a step sooner or later.
        expected_c: Expected::MostWords(want, 0.01),
    }
}

/// Steps until a point leaves the circle.
fn steps(cx: f32, cy: f32, limit: u32) -> u32 {
    let (mut x, mut y) = (0.0_f32, 0.0_f32);
    for n in 0..limit {
        let (xx, yy) = (x * x, y * y);
        if xx + yy > 4.0 {
            return n;
        }
        y = (x + x).mul_add(y, cy);
        x = cx + (xx - yy);
    }
    limit
}

const SEED: u32 = 12_345;
const ROUNDS: u32 = 64;

/// A job of `n` elements by blocks of 256 threads whose last argument is written, all zero before.
pub fn job(n: u32, threads: u32, mut inputs: Vec<Input>, work: f64, looked_at: u32, want: Vec<u32>) -> Job {
    inputs.push(Input::Buffer(vec![0; 4 * want.len()]));
    Job {
        label: size(4 * n),
        grid: [threads.div_ceil(256), 1, 1],
        block: [256, 1, 1],
        shared: 0,
        output: inputs.len() - 1,
        inputs,
        sizes: vec![n, looked_at],
        work,
        expected: Expected::Words(want.clone()),
        expected_c: Expected::Words(want),
    }
}

/// `with_rounds`: the number of rounds is an argument.
fn hash_job(scale: Scale, with_rounds: bool) -> Job {
    let n = scale.of(16 << 20, 16 << 10, 500);
    let want: Vec<u32> = (0..n).map(hash_of).collect();
    let mut inputs = vec![Input::Word(n), Input::Word(SEED)];
    if with_rounds {
        inputs.push(Input::Word(ROUNDS));
    }
    job(n, n, inputs, 7.0 * f64::from(ROUNDS) * f64::from(n), ROUNDS, want)
}

fn hash(scale: Scale) -> Job {
    hash_job(scale, true)
}

fn hash64(scale: Scale) -> Job {
    hash_job(scale, false)
}

fn hash_of(i: u32) -> u32 {
    let mut state = i.wrapping_mul(2_654_435_761).wrapping_add(SEED);
    for _ in 0..ROUNDS {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state = state.wrapping_add(0x9e37_79b9);
    }
    state
}

fn histogram(scale: Scale) -> Job {
    let n = scale.of(16 << 20, 16 << 10, 5000);
    let data: Vec<u32> = (0..n).map(mixed).collect();
    let mut want = vec![0; 256];
    for v in &data {
        want[index(v >> 24)] += 1;
    }
    Job {
        label: size(4 * n),
        grid: [scale.of(1024, 16, 4), 1, 1],
        block: [256, 1, 1],
        shared: 0,
        inputs: vec![Input::Word(n), Input::Buffer(word_bytes(&data)), zeros(256)],
        output: 2,
        sizes: vec![n],
        work: 4.0 * f64::from(n),
        expected: Expected::Words(want.clone()),
        expected_c: Expected::Words(want),
    }
}

/// Bytes of two arrays of words, one by one.
fn bytes_job(scale: Scale, byte: fn(u8, u8) -> u8) -> Job {
    let n = scale.of(16 << 20, 16 << 10, 1000);
    let (a, b): (Vec<u32>, Vec<u32>) = (0..n).map(|i| (mixed(i), mixed(n + i))).unzip();
    let word = |(a, b): (&u32, &u32)| {
        let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
        u32::from_le_bytes(std::array::from_fn(|i| byte(a[i], b[i])))
    };
    let want: Vec<u32> = a.iter().zip(&b).map(word).collect();
    Job {
        label: size(4 * n),
        grid: [n.div_ceil(256), 1, 1],
        block: [256, 1, 1],
        shared: 0,
        inputs: vec![Input::Word(n), Input::Buffer(word_bytes(&a)), Input::Buffer(word_bytes(&b)), zeros(n)],
        output: 3,
        sizes: vec![n],
        work: 12.0 * f64::from(n),
        expected: Expected::Words(want.clone()),
        expected_c: Expected::Words(want),
    }
}

fn vadd4(scale: Scale) -> Job {
    bytes_job(scale, u8::saturating_add)
}

fn vabsdiff4(scale: Scale) -> Job {
    bytes_job(scale, u8::abs_diff)
}

/// A case's job fits its kernel and its C program.
#[cfg(test)]
pub fn check_job(case: &Case) {
    let job = (case.job)(Scale::Tiny);
    let parameters = (0..).take_while(|i| case.ptx.contains(&format!("{}_param_{i}", case.entry))).count();
    assert_eq!(job.inputs.len(), parameters, "{}", case.name);
    assert!(matches!(job.inputs[job.output], Input::Buffer(_)), "{}", case.name);
    assert!(job.work > 0.0 && case.c.text.contains(case.judged), "{}", case.name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_say_what_their_kernels_take() {
        CASES.iter().for_each(check_job);
    }

    #[test]
    fn points_inside_stay() {
        assert_eq!(steps(0.0, 0.0, 50), 50);
        assert_eq!(steps(2.0, 2.0, 50), 1);
    }
}
