//! The rules of [`rules`](crate::rules) for one request, for who counts many: the same results, without sets.

use handloom_ir::simt::Does;

use crate::counter::{Space, Traffic};
use crate::rules::{BANKS, Lane, SECTOR, WORD};

/// Most lanes of a request.
const LANES: usize = 32;

impl Traffic {
    /// As [`of_request`](Traffic::of_request).
    pub fn of_request_quickly(key: (Space, Does, u32), lanes: &[Lane]) -> Traffic {
        let (space, does, bytes) = key;
        let n = lanes.len();
        if space == Space::Local || n == 0 || n > LANES {
            return Traffic::of_request(key, lanes);
        }
        let count = u64::try_from(n).unwrap_or(0);
        let size = u64::from(bytes);
        let mut one = Traffic { requests: 1, lanes: count, bytes: count * size, ..Traffic::default() };
        let is_apart = bytes.is_power_of_two() && size <= SECTOR && lanes.iter().all(|(_, at)| at & (size - 1) == 0);
        if !is_apart {
            return Traffic::of_request(key, lanes);
        }
        // Elements are the same or apart, and none lies in two sectors.
        if lanes.windows(2).all(|w| w[0].1 < w[1].1) && space != Space::Shared {
            one.touched = one.bytes;
            one.most_on_one = u64::from(does == Does::Atomic);
            match space {
                Space::Global => {
                    let edges = lanes.windows(2).filter(|w| w[0].1 / SECTOR != w[1].1 / SECTOR).count();
                    one.sectors = 1 + u64::try_from(edges).unwrap_or(0);
                }
                Space::Const => (one.passes, one.least_passes) = (count, 1),
                Space::Shared | Space::Local | Space::Param => {}
            }
            return one;
        }
        let mut by_element = Different::default();
        let scale = size.trailing_zeros();
        lanes.iter().for_each(|(_, at)| by_element.add(at >> scale));
        let (different, most) = (u64::try_from(by_element.n).unwrap_or(0), by_element.most());
        one.touched = different * size;
        if space == Space::Global {
            let mut sectors = Different::default();
            by_element.all().for_each(|element| sectors.add((element << scale) / SECTOR));
            one.sectors = u64::try_from(sectors.n).unwrap_or(0);
        }
        if does == Does::Atomic {
            one.most_on_one = most;
        }
        match space {
            Space::Global | Space::Local => {}
            // One part, and its elements are words.
            Space::Shared if size == WORD => (one.passes, one.least_passes) = (by_element.longest(), 1),
            Space::Shared => (one.passes, one.least_passes) = passes(lanes, size),
            Space::Const => (one.passes, one.least_passes) = (different, 1),
            Space::Param => {}
        }
        one
    }
}

/// Different numbers, and how often each comes. Those that are alike in their lowest bits form a list.
struct Different {
    numbers: [u64; LANES],
    times: [u8; LANES],
    next: [u8; LANES],
    first: [u8; LANES],
    n: usize,
}

const NONE: u8 = u8::MAX;

impl Default for Different {
    fn default() -> Different {
        Different { numbers: [0; LANES], times: [0; LANES], next: [NONE; LANES], first: [NONE; LANES], n: 0 }
    }
}

impl Different {
    /// Adds a number, of [`LANES`] at most.
    fn add(&mut self, number: u64) {
        let list = usize::try_from(number % LANES as u64).unwrap_or(0);
        let mut at = self.first[list];
        while at != NONE {
            let i = usize::from(at);
            if self.numbers[i] == number {
                self.times[i] += 1;
                return;
            }
            at = self.next[i];
        }
        let i = self.n;
        (self.numbers[i], self.times[i], self.next[i]) = (number, 1, self.first[list]);
        self.first[list] = u8::try_from(i).unwrap_or(NONE);
        self.n += 1;
    }

    fn all(&self) -> impl Iterator<Item = u64> {
        self.numbers[..self.n].iter().copied()
    }

    /// How often the most frequent one comes.
    fn most(&self) -> u64 {
        self.times[..self.n].iter().copied().max().map_or(0, u64::from)
    }

    /// How many different ones are alike in their lowest bits, at most.
    fn longest(&self) -> u64 {
        let mut of_list = [0_u8; LANES];
        self.all().for_each(|number| of_list[usize::try_from(number % LANES as u64).unwrap_or(0)] += 1);
        of_list.into_iter().max().map_or(0, u64::from)
    }
}

/// How many lanes did an atomic on each word of shared memory, and what each request of words comes to.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// Lanes of all requests, by word.
    lanes: Vec<u64>,
    /// Lanes of the request that is being counted, by word; between requests all are 0.
    now: Vec<u8>,
}

impl Words {
    /// Makes room for the words that lanes start in. Addresses are offsets in shared memory, of which the caller bounds the highest.
    fn reach(&mut self, lanes: &[Lane]) {
        let highest = lanes.iter().map(|(_, at)| at / WORD).max().unwrap_or(0);
        let n = usize::try_from(highest).unwrap_or(0) + 1;
        if self.lanes.len() < n {
            self.lanes.resize(n, 0);
            self.now.resize(n, 0);
        }
    }

    /// Adds lanes by the word that each starts in.
    pub fn add(&mut self, lanes: &[Lane]) {
        self.reach(lanes);
        lanes.iter().for_each(|(_, at)| self.lanes[word_of(*at)] += 1);
    }

    /// As [`add`](Words::add), of an atomic on one word a lane: returns what [`of_request`](Traffic::of_request) returns of it. Addresses are multiples of
    /// [`WORD`], of 32 lanes at most.
    pub fn request(&mut self, lanes: &[Lane]) -> Traffic {
        self.reach(lanes);
        let (mut different, mut most) = (0_u64, 0_u8);
        let mut of_bank = [0_u8; LANES];
        for (_, at) in lanes {
            let word = word_of(*at);
            let before = self.now[word];
            self.now[word] = before + 1;
            self.lanes[word] += 1;
            most = most.max(before + 1);
            different += u64::from(before == 0);
            of_bank[word % LANES] += u8::from(before == 0);
        }
        lanes.iter().for_each(|(_, at)| self.now[word_of(*at)] = 0);
        let count = u64::try_from(lanes.len()).unwrap_or(0);
        Traffic {
            requests: 1,
            lanes: count,
            bytes: count * WORD,
            touched: different * WORD,
            passes: of_bank.into_iter().max().map_or(0, u64::from),
            least_passes: 1,
            most_on_one: u64::from(most),
            ..Traffic::default()
        }
    }

    /// Words that lanes started in, and how many.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        (0..).zip(self.lanes.iter().copied()).filter(|(_, lanes)| *lanes > 0)
    }

    /// Adds those of another one.
    pub fn merge(&mut self, other: &Words) {
        if self.lanes.len() < other.lanes.len() {
            self.lanes.resize(other.lanes.len(), 0);
            self.now.resize(other.lanes.len(), 0);
        }
        self.lanes.iter_mut().zip(&other.lanes).for_each(|(mine, theirs)| *mine += theirs);
    }
}

/// The number of the word that a byte lies in.
fn word_of(at: u64) -> usize {
    usize::try_from(at / WORD).unwrap_or(usize::MAX)
}

/// As [`passes`](crate::rules::passes), of elements that are powers of two.
fn passes(lanes: &[Lane], bytes: u64) -> (u64, u64) {
    // Lanes of a part: as many as access 128 bytes together.
    let by = (WORD * BANKS / bytes.clamp(WORD, WORD * BANKS)).trailing_zeros();
    let (mut sum, mut parts) = (0, 0);
    let mut left = lanes;
    while let Some((lane, _)) = left.first() {
        let part = lane >> by;
        let n = left.iter().take_while(|(l, _)| l >> by == part).count();
        let (now, later) = left.split_at(n);
        let mut words = Different::default();
        for (_, at) in now {
            let first = at / WORD;
            (0..bytes.div_ceil(WORD)).for_each(|i| words.add(first + i));
        }
        sum += words.longest();
        parts += 1;
        left = later;
    }
    (sum, parts)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A number that follows from another one, spread over all bits.
    fn next(x: &mut u64) -> u64 {
        *x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *x >> 33
    }

    #[test]
    fn quick_counts_are_the_slow_ones() {
        let mut x = 7;
        for round in 0..20_000 {
            let bytes = [1, 2, 4, 8, 16, 12, 32][(next(&mut x) % 7) as usize];
            let unit = if bytes == 12 { 16 } else { u64::from(bytes) };
            let far = [1, 4, 32, 1000][(next(&mut x) % 4) as usize];
            let mask = if round % 3 == 0 { u64::from(u32::MAX) } else { next(&mut x) };
            let (base, stride) = (next(&mut x) % 64, next(&mut x) % 5);
            let is_even = round % 2 == 0;
            let mut at = |l: usize| match is_even {
                true => (base + stride * l as u64) * unit,
                false => (base + next(&mut x) % (32 * far)) * unit,
            };
            let lanes: Vec<Lane> = (0..32).map(|l| (l, at(l))).filter(|(l, _)| mask >> l & 1 == 1).collect();
            for space in [Space::Global, Space::Shared, Space::Const, Space::Local, Space::Param] {
                for does in [Does::Load, Does::Atomic] {
                    let key = (space, does, bytes);
                    if lanes.is_empty() || (space == Space::Local && bytes == 12) {
                        continue;
                    }
                    let (want, got) = (Traffic::of_request(key, &lanes), Traffic::of_request_quickly(key, &lanes));
                    assert_eq!(want, got, "{key:?} {lanes:?}");
                }
            }
        }
    }

    #[test]
    fn words_of_atomics_are_counted_as_the_rules_say() {
        let mut x = 11;
        let (mut words, mut want) = (Words::default(), BTreeMap::<u64, u64>::new());
        for round in 0..5_000 {
            let far = [1, 4, 33, 256, 10_000][round % 5];
            let mask = if round % 3 == 0 { u64::from(u32::MAX) } else { next(&mut x) | 1 };
            let lanes = (0..32).filter(|l| mask >> l & 1 == 1);
            let lanes: Vec<Lane> = lanes.map(|l| (l, next(&mut x) % far * WORD)).collect();
            lanes.iter().for_each(|(_, at)| *want.entry(at / WORD).or_default() += 1);
            let slow = Traffic::of_request((Space::Shared, Does::Atomic, 4), &lanes);
            assert_eq!(words.request(&lanes), slow, "{lanes:?}");
        }
        assert_eq!(words.iter().collect::<BTreeMap<_, _>>(), want);
        let mut all = Words::default();
        all.add(&[(0, 8), (1, 8), (2, 10)]);
        all.merge(&words);
        *want.entry(2).or_default() += 3;
        assert_eq!(all.iter().collect::<BTreeMap<_, _>>(), want);
    }
}
