//! Words that begin with a line of the host's cache, so that none of its vectors lies in two of them.

use std::ops::{Deref, DerefMut};

/// Bytes of a line, and of the widest vector.
const LINE: usize = 64;

#[derive(Debug)]
pub(super) struct Aligned {
    words: Vec<u32>,
    first: usize,
    count: usize,
}

impl Aligned {
    pub(super) fn filled(value: u32, count: usize) -> Aligned {
        let words = vec![value; count + LINE / size_of::<u32>()];
        let first = words.as_ptr().align_offset(LINE);
        // No alignment may be found, by the rules of the language; then the words begin anywhere.
        Aligned { first: first.min(words.len() - count), words, count }
    }
}

impl Clone for Aligned {
    fn clone(&self) -> Aligned {
        let mut other = Aligned::filled(0, self.count);
        other.copy_from_slice(self);
        other
    }
}

impl Deref for Aligned {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.words[self.first..self.first + self.count]
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [u32] {
        &mut self.words[self.first..self.first + self.count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_begin_with_a_line() {
        for count in [0, 1, 100, 65_536] {
            let words = Aligned::filled(7, count);
            assert!(words.iter().all(|word| *word == 7) && words.len() == count);
            for words in [words.clone(), words] {
                assert_eq!(words.as_ptr().addr() % LINE, 0);
            }
        }
    }
}
