//! Whole algorithms, small enough to be read: bodies that pull each other, digests, transposes, sorting, option prices, prefix sums, softmax.

use handloom_tests::reference::functions;
use handloom_tests::reference::numeric::softmax as softmax_of;

use crate::cases::{Case, Input, Job, Scale, kernel, size, zeros};
use crate::data::{Expected, double_bytes, float_bytes, floats, index, mixed, mixed_float, word_bytes};
use crate::native::Source;

/// A C program of `c/`.
macro_rules! case {
    ($name:literal, $ptx:literal, $entry:literal, $c:literal, $judged:literal, $beside:expr, $unit:literal, $job:expr) => {
        Case {
            name: $name,
            ptx: kernel!($ptx),
            first: None,
            entry: $entry,
            c: Source { name: $c, text: include_str!(concat!("../c/", $c, ".c")), needs_cuda_headers: false, cxx: &[] },
            judged: $judged,
            beside: $beside,
            floor: None,
            goal: None,
            unit: $unit,
            job: $job,
        }
    };
}

/// All cases.
pub const CASES: &[Case] = &[
    case!("nbody", "nbody", "accelerations", "nbody", "simd", &[], "GFLOP/s", nbody),
    case!("sha256", "sha256", "sha256", "sha256", "one_by_one", &[], "GB/s", sha256),
    case!("transpose", "transpose", "transpose", "transpose", "tiled", &["plain"], "GB/s", transpose),
    case!("bitonic sort", "bitonic", "bitonic_sort", "bitonic", "network", &["library"], "G/s", bitonic),
    case!("black-scholes f64", "black_scholes", "black_scholes", "black_scholes", "plain", &[], "G/s", black_scholes),
    case!("scan of blocks", "scan", "scan_blocks", "scan", "plain", &[], "GB/s", scan),
    case!("softmax f16", "corpus/triton/softmax_f16.sm80", "softmax", "softmax", "plain", &[], "GB/s", softmax),
];

fn nbody(scale: Scale) -> Job {
    const SOFTENING: f32 = 0.01;
    let n = scale.of(4096, 1024, 300);
    let mut bodies = floats(0, 4 * n);
    for mass in bodies.iter_mut().skip(3).step_by(4) {
        *mass = (*mass + 0.5) / n as f32;
    }
    let (all, _) = bodies.as_chunks::<4>();
    let want: Vec<f32> = all
        .iter()
        .flat_map(|own| {
            let mut sum = [0.0_f64; 3];
            for other in all {
                let d: [f64; 3] = std::array::from_fn(|i| f64::from(other[i] - own[i]));
                let square: f64 = d.iter().map(|d| d * d).sum::<f64>() + f64::from(SOFTENING);
                let pull = f64::from(other[3]) / (square * square.sqrt());
                sum.iter_mut().zip(d).for_each(|(sum, d)| *sum += d * pull);
            }
            [sum[0] as f32, sum[1] as f32, sum[2] as f32, 0.0]
        })
        .collect();
    // All masses together are a half, so the sizes of the terms add up to less than 20; each of `n` additions is off by 2^-24 of that.
    let within = n as f32 * 20.0 * 0.5_f32.powi(24);
    Job {
        label: format!("{n} bodies"),
        grid: [n.div_ceil(256), 1, 1],
        block: [256, 1, 1],
        shared: 16 * 256,
        inputs: vec![Input::Word(n), Input::Float(SOFTENING), Input::Buffer(float_bytes(&bodies)), zeros(4 * n)],
        output: 3,
        sizes: vec![n],
        work: 20.0 * f64::from(n) * f64::from(n),
        expected: Expected::Floats(want.clone(), within),
        expected_c: Expected::Floats(want, within),
    }
}

const SHA_WORDS: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];

/// SHA-256 of a text (FIPS 180-4).
fn digest(text: &[u8]) -> [u8; 32] {
    let mut hash: [u32; 8] =
        [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];
    let mut padded = text.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((8 * text.len() as u64).to_be_bytes());
    for block in padded.as_chunks::<64>().0 {
        let mut w = [0_u32; 64];
        for (w, bytes) in w.iter_mut().zip(block.as_chunks().0) {
            *w = u32::from_be_bytes(*bytes);
        }
        for i in 16..64 {
            let (early, late) = (w[i - 15], w[i - 2]);
            let early = early.rotate_right(7) ^ early.rotate_right(18) ^ early >> 3;
            let late = late.rotate_right(17) ^ late.rotate_right(19) ^ late >> 10;
            w[i] = w[i - 16].wrapping_add(early).wrapping_add(w[i - 7]).wrapping_add(late);
        }
        let mut s = hash;
        for (w, k) in w.iter().zip(SHA_WORDS) {
            let one = s[4].rotate_right(6) ^ s[4].rotate_right(11) ^ s[4].rotate_right(25);
            let choice = (s[4] & s[5]) ^ (!s[4] & s[6]);
            let one = s[7].wrapping_add(one).wrapping_add(choice).wrapping_add(k).wrapping_add(*w);
            let two = s[0].rotate_right(2) ^ s[0].rotate_right(13) ^ s[0].rotate_right(22);
            let two = two.wrapping_add((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
            s = [one.wrapping_add(two), s[0], s[1], s[2], s[3].wrapping_add(one), s[4], s[5], s[6]];
        }
        hash.iter_mut().zip(s).for_each(|(h, s)| *h = h.wrapping_add(s));
    }
    let mut out = [0; 32];
    out.as_chunks_mut().0.iter_mut().zip(hash).for_each(|(o, h)| *o = h.to_be_bytes());
    out
}

fn sha256(scale: Scale) -> Job {
    const BYTES: u32 = 119;
    let n = scale.of(32 << 10, 2 << 10, 50);
    let data: Vec<u8> = (0..n * BYTES).map(|i| mixed(i).to_be_bytes()[0]).collect();
    let want: Vec<u32> = data
        .chunks_exact(index(BYTES))
        .flat_map(|text| digest(text).as_chunks().0.iter().map(|c| u32::from_le_bytes(*c)).collect::<Vec<_>>())
        .collect();
    Job {
        label: format!("{n} messages"),
        grid: [n.div_ceil(128), 1, 1],
        block: [128, 1, 1],
        shared: 0,
        inputs: vec![Input::Word(n), Input::Word(BYTES), Input::Buffer(data), zeros(8 * n)],
        output: 3,
        sizes: vec![n, BYTES],
        work: f64::from(n) * f64::from(BYTES),
        expected: Expected::Words(want.clone()),
        expected_c: Expected::Words(want),
    }
}

fn transpose(scale: Scale) -> Job {
    let n = scale.of(2048, 128, 64);
    let from: Vec<u32> = floats(0, n * n).iter().map(|v| v.to_bits()).collect();
    let want: Vec<u32> = (0..n * n).map(|i| from[index(i % n * n + i / n)]).collect();
    Job {
        label: format!("{n}x{n}"),
        grid: [n / 32, n / 32, 1],
        block: [32, 8, 1],
        shared: 0,
        inputs: vec![Input::Word(n), Input::Word(n), Input::Buffer(word_bytes(&from)), zeros(n * n)],
        output: 3,
        sizes: vec![n],
        work: 8.0 * f64::from(n) * f64::from(n),
        expected: Expected::Words(want.clone()),
        expected_c: Expected::Words(want),
    }
}

fn bitonic(scale: Scale) -> Job {
    let n = scale.of(1 << 20, 16 << 10, 1 << 10);
    let from: Vec<u32> = (0..n).map(mixed).collect();
    let mut want = from.clone();
    want.chunks_mut(512).for_each(<[u32]>::sort_unstable);
    Job {
        label: size(4 * n),
        grid: [n / 512, 1, 1],
        block: [256, 1, 1],
        shared: 0,
        inputs: vec![Input::Buffer(word_bytes(&from)), zeros(n)],
        output: 1,
        sizes: vec![n],
        work: f64::from(n),
        expected: Expected::Words(want.clone()),
        expected_c: Expected::Words(want),
    }
}

fn black_scholes(scale: Scale) -> Job {
    const RATE: f64 = 0.02;
    const VOLATILITY: f64 = 0.3;
    let n = scale.of(128 << 10, 4 << 10, 300);
    let between = |i: u32, low: f64, span: f64| span * (f64::from(mixed_float(i)) + 0.5) + low;
    let options =
        (0..n).map(|i| (between(3 * i, 10.0, 20.0), between(3 * i + 1, 5.0, 30.0), between(3 * i + 2, 0.25, 5.0)));
    let (mut spot, mut strike, mut years) = (Vec::new(), Vec::new(), Vec::new());
    let (mut want, mut puts) = (Vec::new(), Vec::new());
    for (s, k, t) in options {
        let (call, put) = functions::black_scholes(s, k, t, RATE, VOLATILITY);
        spot.push(s);
        strike.push(k);
        years.push(t);
        want.push(call);
        puts.push(put);
    }
    want.extend(puts);
    let buffer = |v: &[f64]| Input::Buffer(double_bytes(v));
    // The functions are right to some units in the last place, of numbers up to 35; the reference's distribution to less than 1e-13.
    let within = 1e-11;
    Job {
        label: format!("{n} options"),
        grid: [n.div_ceil(256), 1, 1],
        block: [256, 1, 1],
        shared: 0,
        inputs: vec![
            Input::Word(n),
            Input::Double(RATE),
            Input::Double(VOLATILITY),
            buffer(&spot),
            buffer(&strike),
            buffer(&years),
            zeros(4 * n),
        ],
        output: 6,
        sizes: vec![n],
        work: f64::from(n),
        expected: Expected::Doubles(want.clone(), within),
        expected_c: Expected::Doubles(want, within),
    }
}

fn scan(scale: Scale) -> Job {
    let n = scale.of(4 << 20, 16 << 10, 1 << 10);
    let from: Vec<u32> = (0..n).map(mixed).collect();
    let mut want = from.clone();
    for block in want.chunks_mut(256) {
        let mut sum = 0_u32;
        for v in block {
            sum = sum.wrapping_add(*v);
            *v = sum;
        }
    }
    Job {
        label: size(4 * n),
        grid: [n / 256, 1, 1],
        block: [256, 1, 1],
        shared: 0,
        inputs: vec![Input::Word(n), Input::Buffer(word_bytes(&from)), zeros(n), zeros(n / 256)],
        output: 2,
        sizes: vec![n],
        work: 8.0 * f64::from(n),
        expected: Expected::Words(want.clone()),
        expected_c: Expected::Words(want),
    }
}

/// The kernel that Triton makes of its softmax: one block of 128 threads a row of up to 512 columns.
fn softmax(scale: Scale) -> Job {
    const COLUMNS: u32 = 512;
    let rows = scale.of(4096, 64, 3);
    let from: Vec<half::f16> = (0..rows * COLUMNS).map(|i| half::f16::from_f32(8.0 * mixed_float(i))).collect();
    let want: Vec<f64> = from
        .chunks_exact(index(COLUMNS))
        .flat_map(|row| softmax_of(&row.iter().map(|v| v.to_f64()).collect::<Vec<_>>()))
        .collect();
    let unused = || Input::Buffer(vec![0; 16]);
    // Half a unit in the last place of a half is 2^-11 of it; what is before that is off by less than a hundredth of it.
    let within = 1.01 * 0.5_f64.powi(11);
    Job {
        label: format!("{rows}x{COLUMNS}"),
        grid: [rows, 1, 1],
        block: [128, 1, 1],
        shared: 1024,
        inputs: vec![
            Input::Buffer(from.iter().flat_map(|v| v.to_le_bytes()).collect()),
            zeros(rows * COLUMNS / 2),
            Input::Word(COLUMNS),
            Input::Word(COLUMNS),
            unused(),
            unused(),
        ],
        output: 1,
        sizes: vec![rows, COLUMNS],
        work: 4.0 * f64::from(rows) * f64::from(COLUMNS),
        expected: Expected::Halves(want.clone(), within),
        expected_c: Expected::Halves(want, within),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_say_what_their_kernels_take() {
        for case in CASES {
            crate::cases::check_job(case);
        }
    }

    #[test]
    fn digests_are_those_of_the_standard() {
        let hex = |text: &[u8]| digest(text).iter().map(|b| format!("{b:02x}")).collect::<String>();
        assert_eq!(hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(hex(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
