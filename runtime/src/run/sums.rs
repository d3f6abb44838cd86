//! What compiled code of a counted launch counted, and the sum of it over all ctas.

use std::sync::Mutex;

use handloom_diag::Span;
use handloom_diag::hash::FastMap;
use handloom_ir::simt::Counts;
use handloom_profile::{MOST_ADDRESSES, Space, Traffic, Waits, Warps, Words};

use crate::lock::lock;

/// Where accesses may be.
pub(crate) const SPACES: [Space; 5] = [Space::Global, Space::Shared, Space::Local, Space::Const, Space::Param];

/// Lanes by address, of [`MOST_ADDRESSES`] addresses at most.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses {
    /// An address and its lanes, or 0 lanes where nothing is; as many as a power of two.
    slots: Vec<(u64, u64)>,
    used: usize,
}

impl Addresses {
    /// Adds lanes of an address.
    pub(crate) fn add(&mut self, at: u64, lanes: u64) {
        if 2 * self.used >= self.slots.len() {
            let old = std::mem::take(&mut self.slots);
            self.slots = vec![(0, 0); (2 * old.len()).max(64)];
            for (at, lanes) in old.into_iter().filter(|(_, lanes)| *lanes > 0) {
                let slot = self.slot(at);
                self.slots[slot] = (at, lanes);
            }
        }
        let slot = self.slot(at);
        if self.slots[slot].1 > 0 {
            self.slots[slot].1 += lanes;
        } else if self.used < MOST_ADDRESSES {
            self.slots[slot] = (at, lanes);
            self.used += 1;
        }
    }

    /// Where an address is, or would be.
    fn slot(&self, at: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while self.slots[slot].1 > 0 && self.slots[slot].0 != at {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.slots.iter().copied().filter(|(_, lanes)| *lanes > 0)
    }
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    /// What code added to.
    pub(crate) words: Vec<u64>,
    /// By access: what it came to, by space.
    pub(crate) accesses: Vec<[Traffic; SPACES.len()]>,
    /// By access that is atomic: lanes by address.
    pub(crate) addresses: FastMap<u32, Addresses>,
    /// By access that is atomic, and lanes that did it in a row: how often from an address on.
    pub(crate) rows: FastMap<(u32, u64), Addresses>,
    /// By access, lanes that did it, and the address of lane 0 modulo a sector: how often.
    pub(crate) masked: FastMap<(u32, u32, u32), u64>,
    /// By barrier.
    pub(crate) waits: Vec<(Span, Waits)>,
    /// By asynchronous copy: bytes that it read and wrote.
    pub(crate) copies: FastMap<Span, u64>,
    /// By access that is atomic: lanes by word of shared memory.
    pub(crate) words_of_shared: FastMap<u32, Words>,
    pub(crate) warps: Warps,
}

impl Counted {
    /// What waiting at a barrier comes to. There are few.
    pub(crate) fn waits_at(&mut self, span: Span) -> &mut Waits {
        let at = self.waits.iter().position(|(known, _)| *known == span).unwrap_or_else(|| {
            self.waits.push((span, Waits::default()));
            self.waits.len() - 1
        });
        &mut self.waits[at].1
    }

    /// What an access comes to in a space.
    pub(crate) fn access(&mut self, number: u32, space: Space) -> &mut Traffic {
        let number = number as usize;
        if self.accesses.len() <= number {
            self.accesses.resize(number + 1, Default::default());
        }
        &mut self.accesses[number][space as usize]
    }

    /// Adds what others counted, but for the words.
    fn add(&mut self, other: &Counted) {
        if self.accesses.len() < other.accesses.len() {
            self.accesses.resize(other.accesses.len(), Default::default());
        }
        for (mine, theirs) in self.accesses.iter_mut().zip(&other.accesses) {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| mine.add(theirs));
        }
        for (site, addresses) in &other.addresses {
            let all = self.addresses.entry(*site).or_default();
            addresses.iter().for_each(|(at, lanes)| all.add(at, lanes));
        }
        for (key, firsts) in &other.rows {
            let all = self.rows.entry(*key).or_default();
            firsts.iter().for_each(|(first, times)| all.add(first, times));
        }
        other.masked.iter().for_each(|(key, n)| *self.masked.entry(*key).or_default() += n);
        other.waits.iter().for_each(|(span, w)| self.waits_at(*span).add(w));
        other.copies.iter().for_each(|(span, bytes)| *self.copies.entry(*span).or_default() += bytes);
        for (number, words) in &other.words_of_shared {
            self.words_of_shared.entry(*number).or_default().merge(words);
        }
        self.warps.add(&other.warps);
    }
}

/// Where ctas of a launch leave what they counted.
#[derive(Debug)]
pub(crate) struct Sums {
    words: usize,
    /// Words that are masks of lanes: ways to add them differ.
    masks: Vec<usize>,
    all: Mutex<Counted>,
}

impl Sums {
    /// For a launch whose counters mean this.
    pub(crate) fn new(counts: &Counts) -> Sums {
        let of_block = counts.blocks.iter().map(|b| b.at as usize + 3);
        let of_guards = counts.blocks.iter().flat_map(|b| &b.guarded).map(|(at, _)| *at as usize + 2);
        let words = counts.words as usize;
        Sums { words, masks: of_block.chain(of_guards).collect(), all: Mutex::default() }
    }

    /// For a cta that begins to count.
    pub(crate) fn nothing(&self) -> Counted {
        Counted { words: vec![0; self.words.max(1)], ..Counted::default() }
    }

    /// All of it.
    pub(crate) fn take(&self) -> Counted {
        std::mem::take(&mut *lock(&self.all))
    }

    /// Adds what a cta counted.
    pub(crate) fn add(&self, mine: &Counted) {
        let mut all = lock(&self.all);
        all.words.resize(mine.words.len(), 0);
        let masks: Vec<u64> = self.masks.iter().map(|at| all.words[*at] | mine.words[*at]).collect();
        all.words.iter_mut().zip(&mine.words).for_each(|(sum, n)| *sum = sum.wrapping_add(*n));
        self.masks.iter().zip(masks).for_each(|(at, mask)| all.words[*at] = mask);
        all.add(mine);
    }
}
