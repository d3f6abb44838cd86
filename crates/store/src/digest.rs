//! Keys: 128 bits of all that something depends on.

use std::hash::{DefaultHasher, Hash, Hasher};

/// Bytes that are collected before they are hashed: most values that are hashed have a few.
const BLOCK: usize = 1024;

/// 128 bits that differ, as far as anybody will see, where what they were made of differs. They mean something to one build of the program alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Digest([u64; 2]);

impl Digest {
    /// Of one value.
    pub fn of(value: &impl Hash) -> Digest {
        let mut hasher = Digester::default();
        value.hash(&mut hasher);
        hasher.digest()
    }

    /// From its bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Digest {
        let n = u128::from_le_bytes(bytes);
        Digest([n as u64, (n >> 64) as u64])
    }

    /// Its bytes.
    pub fn bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.0[0].to_le_bytes());
        bytes[8..].copy_from_slice(&self.0[1].to_le_bytes());
        bytes
    }
}

/// Makes a digest of values.
#[derive(Clone, Debug)]
pub struct Digester {
    block: Box<[u8; BLOCK]>,
    /// How many were collected.
    len: usize,
    halves: [DefaultHasher; 2],
}

impl Default for Digester {
    fn default() -> Digester {
        let mut halves = [DefaultHasher::new(), DefaultHasher::new()];
        halves[1].write(b"the other half");
        Digester { block: Box::new([0; BLOCK]), len: 0, halves }
    }
}

impl Digester {
    /// Of all that was written.
    pub fn digest(mut self) -> Digest {
        self.flush();
        Digest(self.halves.map(|half| half.finish()))
    }

    fn flush(&mut self) {
        let block = &self.block[..self.len];
        self.halves.iter_mut().for_each(|half| half.write(block));
        self.len = 0;
    }

    #[cold]
    #[inline(never)]
    fn write_full(&mut self, bytes: &[u8]) {
        self.flush();
        match self.block.get_mut(..bytes.len()) {
            Some(to) => {
                to.copy_from_slice(bytes);
                self.len = bytes.len();
            }
            None => self.halves.iter_mut().for_each(|half| half.write(bytes)),
        }
    }
}

impl Hasher for Digester {
    // Code of callers is made for each size: most values have a few bytes.
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        match self.block.get_mut(self.len..end) {
            Some(to) => {
                to.copy_from_slice(bytes);
                self.len = end;
            }
            None => self.write_full(bytes),
        }
    }

    // Names of variants of types and lengths of lists, nearly all of them small: these are most of what is written.
    #[inline]
    fn write_isize(&mut self, n: isize) {
        match u8::try_from(n) {
            Ok(n) if n != u8::MAX => self.write(&[n]),
            _ => {
                self.write(&[u8::MAX]);
                self.write(&n.to_ne_bytes());
            }
        }
    }

    #[inline]
    fn write_usize(&mut self, n: usize) {
        self.write_isize(n.cast_signed());
    }

    fn finish(&self) -> u64 {
        self.clone().digest().0[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_depends_on_all_bytes_and_not_on_how_they_are_cut() {
        let of = |parts: &[&[u8]]| {
            let mut d = Digester::default();
            parts.iter().for_each(|p| d.write(p));
            d.digest()
        };
        let long = vec![7; 5000];
        let mut other = long.clone();
        other[4321] ^= 1;
        assert_eq!(of(&[&long]), of(&[&long[..10], &long[10..3000], &long[3000..]]));
        assert_ne!(of(&[&long]), of(&[&other]));
        assert_ne!(of(&[&long]), of(&[&long[1..]]));
        let [a, b] = of(&[]).0;
        assert_ne!(a, b);
    }

    #[test]
    fn numbers_of_variants_and_lengths_differ_in_a_digest() {
        let numbers = [0, 1, 254, 255, 256, usize::MAX];
        let mut all: Vec<[u8; 16]> = Vec::new();
        for a in numbers {
            all.extend(numbers.map(|b| Digest::of(&(a, b)).bytes()));
        }
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 36);
    }
}
