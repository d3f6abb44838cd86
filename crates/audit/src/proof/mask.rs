//! Sets of threads of a block.

/// Most threads of a block.
pub(super) const MOST: usize = 1024;

const WORDS: usize = MOST / 64;

/// A set of threads, by linear number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mask([u64; WORDS]);

impl Mask {
    pub(super) const NONE: Mask = Mask([0; WORDS]);

    /// The first `n`.
    pub(super) fn first(n: usize) -> Mask {
        let mut mask = Mask::NONE;
        (0..n.min(MOST)).for_each(|i| mask.add(i));
        mask
    }

    pub(super) fn add(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }

    pub(super) fn has(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    fn with(&self, other: &Mask, f: impl Fn(u64, u64) -> u64) -> Mask {
        Mask(std::array::from_fn(|i| f(self.0[i], other.0[i])))
    }

    pub(super) fn or(&self, other: &Mask) -> Mask {
        self.with(other, |a, b| a | b)
    }

    /// Those that are not in the other.
    pub(super) fn without(&self, other: &Mask) -> Mask {
        self.with(other, |a, b| a & !b)
    }

    /// The lanes of a warp.
    pub(super) fn warp(&self, warp: usize) -> u32 {
        (self.0[warp / 2] >> (32 * (warp % 2))) as u32
    }

    /// In ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(i, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(64 * i + bit)
            })
        })
    }
}
