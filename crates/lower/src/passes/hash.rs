//! A fast hash for tables of ops: keys are small and come from our own compiler, so nobody picks them to collide.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table whose order is never looked at.
pub(crate) type Table<K, V> = HashMap<K, V, BuildHasherDefault<Multiply>>;

/// Rotate, xor and multiply by an odd constant, a word at a time.
#[derive(Default)]
pub(crate) struct Multiply(u64);

impl Multiply {
    fn word(&mut self, w: u64) {
        self.0 = (self.0.rotate_left(5) ^ w).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.word(u64::from(*b)));
    }

    fn write_u8(&mut self, v: u8) {
        self.word(u64::from(v));
    }

    fn write_u32(&mut self, v: u32) {
        self.word(u64::from(v));
    }

    fn write_u64(&mut self, v: u64) {
        self.word(v);
    }

    fn write_i64(&mut self, v: i64) {
        self.word(v.cast_unsigned());
    }

    fn write_usize(&mut self, v: usize) {
        self.word(v as u64);
    }

    fn write_isize(&mut self, v: isize) {
        self.word(v.cast_unsigned() as u64);
    }
}
