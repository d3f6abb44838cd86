//! A fast hash for short names and small numbers. Not safe against chosen collisions, which can only make a table slow.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map with the fast hash. Nobody looks at its order.
pub type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FastHasher>>;

/// A set with the fast hash. Nobody looks at its order.
pub type FastSet<K> = HashSet<K, BuildHasherDefault<FastHasher>>;

const FACTOR: u64 = 0x517c_c1b7_2722_0a95;

/// Multiply and rotate, eight bytes at a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct FastHasher(u64);

impl FastHasher {
    #[inline]
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    }
}

impl Hasher for FastHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, tail) = bytes.as_chunks::<8>();
        for w in words {
            self.mix(u64::from_le_bytes(*w));
        }
        if !tail.is_empty() {
            let word = tail.iter().rev().fold(0, |acc, &b| (acc << 8) | u64::from(b));
            self.mix(word);
        }
    }

    #[inline]
    fn write_u8(&mut self, n: u8) {
        self.mix(u64::from(n));
    }

    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.mix(u64::from(n));
    }

    #[inline]
    fn write_u64(&mut self, n: u64) {
        self.mix(n);
    }

    #[inline]
    fn write_i64(&mut self, n: i64) {
        self.mix(n.cast_unsigned());
    }

    #[inline]
    fn write_usize(&mut self, n: usize) {
        self.mix(n as u64);
    }

    #[inline]
    fn write_isize(&mut self, n: isize) {
        self.mix(n.cast_unsigned() as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        // The table uses the top bits and the low bits: the product's top bits are the good ones.
        self.0 ^ (self.0 >> 32)
    }
}
