//! Inputs from numbers, bytes of buffers, and comparisons that name the first difference.

use half::{bf16, f16};

/// A value of device memory.
pub trait Element: Copy + std::fmt::Debug {
    /// Bytes in memory.
    const BYTES: usize;
    /// Appends the bytes.
    fn put(self, to: &mut Vec<u8>);
    /// Reads the bytes back.
    fn get(from: &[u8]) -> Self;
    /// Whether both are the same bits; all NaNs count as the same, because their payload is left open.
    fn same(self, other: Self) -> bool;
}

macro_rules! elements {
    ($($t:ty: |$a:ident, $b:ident| $same:expr;)*) => {$(
        impl Element for $t {
            const BYTES: usize = size_of::<$t>();
            fn put(self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }
            fn get(from: &[u8]) -> Self {
                <$t>::from_le_bytes(from.try_into().expect("as many bytes as the type has"))
            }
            fn same(self, other: Self) -> bool {
                let ($a, $b) = (self, other);
                $same
            }
        }
    )*};
}

elements! {
    u8: |a, b| a == b;
    i8: |a, b| a == b;
    u16: |a, b| a == b;
    i16: |a, b| a == b;
    u32: |a, b| a == b;
    i32: |a, b| a == b;
    u64: |a, b| a == b;
    i64: |a, b| a == b;
    f16: |a, b| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    bf16: |a, b| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    f32: |a, b| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    f64: |a, b| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
}

/// The bytes of values.
pub fn bytes_of<T: Element>(values: &[T]) -> Vec<u8> {
    let mut out = Vec::with_capacity(values.len() * T::BYTES);
    values.iter().for_each(|v| v.put(&mut out));
    out
}

/// The values of bytes.
///
/// # Panics
/// The bytes are no whole number of values.
pub fn values_of<T: Element>(bytes: &[u8]) -> Vec<T> {
    assert!(bytes.len().is_multiple_of(T::BYTES), "{} bytes are no whole number of values", bytes.len());
    bytes.chunks_exact(T::BYTES).map(T::get).collect()
}

/// A number that fits 32 bits.
///
/// # Panics
/// It does not.
pub fn n32(n: usize) -> u32 {
    u32::try_from(n).expect("sizes of tests fit 32 bits")
}

/// Well mixed bits for a number: inputs that any host makes alike (the finaliser of MurmurHash3).
pub fn mixed(i: u32) -> u32 {
    let mut z = i.wrapping_mul(0x9e37_79b9).wrapping_add(0x7f4a_7c15);
    z = (z ^ z >> 16).wrapping_mul(0x85eb_ca6b);
    z = (z ^ z >> 13).wrapping_mul(0xc2b2_ae35);
    z ^ z >> 16
}

/// Words, `n` of them, different for each `from`.
pub fn words(from: u32, n: usize) -> Vec<u32> {
    (from..from + n32(n)).map(mixed).collect()
}

/// 64-bit words, `n` of them.
pub fn wide_words(from: u32, n: usize) -> Vec<u64> {
    (from..from + n32(n)).map(|i| u64::from(mixed(i)) << 32 | u64::from(mixed(i ^ 0x5555_5555))).collect()
}

/// Floats in [-0.5, 0.5) with 24 bits.
pub fn floats(from: u32, n: usize) -> Vec<f32> {
    words(from, n).into_iter().map(|w| (w >> 8) as f32 / 16_777_216.0 - 0.5).collect()
}

/// Doubles in [`low`, `high`).
pub fn doubles(from: u32, n: usize, low: f64, high: f64) -> Vec<f64> {
    words(from, n).into_iter().map(|w| low + (high - low) * (f64::from(w) / 4_294_967_296.0)).collect()
}

/// Whether both are the same bits.
///
/// # Panics
/// They are not; the first difference is told.
#[track_caller]
pub fn same<T: Element>(what: &str, got: &[T], want: &[T]) {
    assert_eq!(got.len(), want.len(), "{what}: number of values");
    if let Some(i) = got.iter().zip(want).position(|(g, w)| !g.same(*w)) {
        let n = got.iter().zip(want).filter(|(g, w)| !g.same(**w)).count();
        panic!("{what}: [{i}] is {:?}, should be {:?}; {n} of {} differ", got[i], want[i], got.len());
    }
}

/// How far a result may be from the reference: `absolute + relative * |reference|`.
#[derive(Clone, Copy, Debug)]
pub struct Within {
    /// In the unit of the result.
    pub absolute: f64,
    /// In parts of the reference.
    pub relative: f64,
}

/// Half a unit in the last place of an f32, relative: 2^-24.
pub const HALF_ULP: f64 = 1.0 / 16_777_216.0;
/// Half a unit in the last place of an f64, relative: 2^-53.
pub const HALF_ULP_64: f64 = f64::EPSILON / 2.0;

/// Whether all values are near the reference. Infinities and NaNs must be the same.
///
/// # Panics
/// One is not; the first is told.
#[track_caller]
pub fn near<T: Element + Into<f64>>(what: &str, got: &[T], want: &[f64], within: Within) {
    assert_eq!(got.len(), want.len(), "{what}: number of values");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let g: f64 = (*g).into();
        let is_near = if w.is_finite() {
            (g - w).abs() <= within.absolute + within.relative * w.abs()
        } else {
            g == *w || g.is_nan() && w.is_nan()
        };
        assert!(is_near, "{what}: [{i}] is {g:?}, should be {w:?} within {within:?}; off by {:e}", (g - w).abs());
    }
}
