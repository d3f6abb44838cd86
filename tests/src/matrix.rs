//! Elements of matrices for tests of products, and kernels that run on buffers by every way there is.

use handloom_runtime::Bounds;

use crate::device;
use crate::engines::{Argument, Job, Launch, plain};
use crate::rng::Rng;

/// A type of elements: its word, its bits, and the bits of a small number of it.
#[derive(Clone, Copy, Debug)]
pub struct Element {
    /// Its name in PTX.
    pub word: &'static str,
    /// Bits of an element.
    pub bits: usize,
    /// The bits of a number.
    pub of: fn(i64) -> u64,
    /// The least and the greatest number that is asked about.
    pub range: (i64, i64),
}

/// `.f16`
pub const F16: Element =
    Element { word: "f16", bits: 16, of: |v| u64::from(half::f16::from_f64(v as f64).to_bits()), range: (-8, 8) };
/// `.bf16`
pub const BF16: Element =
    Element { word: "bf16", bits: 16, of: |v| u64::from(half::bf16::from_f64(v as f64).to_bits()), range: (-8, 8) };
/// `.f32`
pub const F32: Element =
    Element { word: "f32", bits: 32, of: |v| u64::from((v as f32).to_bits()), range: (-1000, 1000) };
/// `.tf32`
pub const TF32: Element = Element { word: "tf32", range: (-8, 8), ..F32 };
/// `.f64`
pub const F64: Element = Element { word: "f64", bits: 64, of: |v| (v as f64).to_bits(), range: (-1000, 1000) };
/// `.e5m2`: the upper half of an `.f16`, which holds whole numbers up to 8.
pub const E5M2: Element = Element { word: "e5m2", bits: 8, of: |v| (F16.of)(v) >> 8, range: (-8, 8) };
/// `.e4m3`: another bias than `.f16` has, and three bits of its fraction.
pub const E4M3: Element = Element {
    word: "e4m3",
    bits: 8,
    of: |v| {
        let half = (F16.of)(v);
        let code = (half >> 7 & 0xff).saturating_sub(8 << 3);
        half >> 15 << 7 | code
    },
    range: (-8, 8),
};
/// `.s32`
pub const S32: Element = Element { word: "s32", bits: 32, of: |v| v as u64 & 0xffff_ffff, range: (-100_000, 100_000) };
/// `.s8`
pub const S8: Element = Element { word: "s8", bits: 8, of: |v| v as u64 & 0xff, range: (-128, 127) };
/// `.u8`
pub const U8: Element = Element { word: "u8", range: (0, 255), ..S8 };
/// `.s4`
pub const S4: Element = Element { word: "s4", bits: 4, of: |v| v as u64 & 0xf, range: (-8, 7) };
/// `.u4`
pub const U4: Element = Element { word: "u4", range: (0, 15), ..S4 };
/// `.b1`
pub const B1: Element = Element { word: "b1", bits: 1, of: |v| v as u64, range: (0, 1) };

impl Element {
    /// A number that is asked about.
    pub fn pick(&self, rng: &mut Rng) -> i64 {
        self.range.0 + rng.below((self.range.1 - self.range.0 + 1) as usize) as i64
    }

    /// Writes an element at a place that is counted in bits.
    pub fn put(&self, bytes: &mut [u8], at: usize, value: i64) {
        let bits = (self.of)(value);
        if self.bits < 8 {
            let mask = ((1_u16 << self.bits) - 1) as u8;
            let byte = &mut bytes[at / 8];
            *byte = *byte & !(mask << (at % 8)) | (bits as u8) << (at % 8);
        } else {
            bytes[at / 8..][..self.bits / 8].copy_from_slice(&bits.to_le_bytes()[..self.bits / 8]);
        }
    }
}

/// Registers of a name, in braces.
pub fn registers(name: &str, n: usize) -> String {
    let list: Vec<String> = (0..n).map(|i| format!("%{name}{i}")).collect();
    format!("{{{}}}", list.join(", "))
}

/// The type of registers that hold an accumulator.
pub fn register_type(e: &Element) -> &'static str {
    match e.word {
        "f32" => "f32",
        "f64" => "f64",
        "s32" => "s32",
        _ => "b32",
    }
}

/// Runs the kernel `k` of one cta on buffers by all who can, and looks at what they hold afterwards.
///
/// # Panics
/// When it cannot be run, or what it leaves is not right.
pub fn each_way(text: &str, threads: u32, buffers: Vec<Vec<u8>>, is_right: impl Fn(&[Vec<u8>]) -> Result<(), String>) {
    let args = (0..buffers.len()).map(|i| Argument::Buffer(i, 0)).collect();
    let launch = Launch {
        entry: "k",
        grid: [1; 3],
        block: [threads, 1, 1],
        shared_bytes: 0,
        args,
        cooperative: false,
        cluster: None,
    };
    let job = Job { name: "matrix", text, buffers, addresses: vec![], launches: vec![launch], variables: vec![] };
    device::jobs::add(&job);
    for way in plain(Bounds::Exact) {
        let outcome = job.run(way, 0).unwrap_or_else(|e| panic!("{}: {e}\n{text}", way.name));
        assert!(outcome.trap.is_none(), "{}: a trap\n{text}", way.name);
        is_right(&outcome.buffers).unwrap_or_else(|e| panic!("{}: {e}\n{text}", way.name));
        device::holds(&job, &outcome).unwrap_or_else(|e| panic!("{}: {e}\n{text}", way.name));
    }
}
