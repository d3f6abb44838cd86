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
        let mut all = [0_u64; LANES];
        all.iter_mut().zip(lanes).for_each(|(to, (_, at))| *to = *at);
        let all = &mut all[..n];
        if !all.is_sorted() {
            all.sort_unstable();
        }
        // The end of what was touched, the first sector that was not, and how many lanes were on one address in a row.
        let (mut end, mut sector, mut row, mut most, mut different) = (0, 0, 0, 0, 0);
        for (i, at) in all.iter().copied().enumerate() {
            let next = at + size;
            one.touched += next - at.max(end).min(next);
            end = end.max(next);
            let (first, last) = (at / SECTOR, (at + size.max(1) - 1) / SECTOR);
            let from = if i == 0 { first } else { first.max(sector) };
            one.sectors += (last + 1).saturating_sub(from);
            sector = if i == 0 { last + 1 } else { sector.max(last + 1) };
            let is_new = i == 0 || all[i - 1] != at;
            different += u64::from(is_new);
            row = if is_new { 1 } else { row + 1 };
            most = row.max(most);
        }
        if does == Does::Atomic {
            one.most_on_one = most;
        }
        match space {
            Space::Global | Space::Local => {}
            Space::Shared => (one.passes, one.least_passes) = passes(lanes, size),
            Space::Const => (one.passes, one.least_passes) = (different, 1),
            Space::Param => {}
        }
        if space != Space::Global {
            one.sectors = 0;
        }
        one
    }
}

/// As [`passes`](crate::rules::passes).
fn passes(lanes: &[Lane], bytes: u64) -> (u64, u64) {
    // Lanes of a part: as many as access 128 bytes together.
    let per_part = usize::try_from(WORD * BANKS / bytes.clamp(WORD, WORD * BANKS)).unwrap_or(1);
    let (mut sum, mut parts) = (0, 0);
    let mut left = lanes;
    while let Some((lane, _)) = left.first() {
        let part = lane / per_part;
        let n = left.iter().take_while(|(l, _)| l / per_part == part).count();
        let (now, later) = left.split_at(n);
        sum += of_part(now, bytes);
        parts += 1;
        left = later;
    }
    (sum, parts)
}

/// Different words of the bank that has most of them.
fn of_part(lanes: &[Lane], bytes: u64) -> u64 {
    let mut words = [0_u64; 4 * LANES];
    let mut n = 0;
    for (_, at) in lanes {
        for word in at / WORD..=(at + bytes.max(1) - 1) / WORD {
            if n < words.len() && (n == 0 || words[n - 1] != word) {
                words[n] = word;
                n += 1;
            }
        }
    }
    let words = &mut words[..n];
    if !words.is_sorted() {
        words.sort_unstable();
    }
    let mut of_bank = [0_u64; BANKS as usize];
    let mut before = None;
    for word in words.iter().copied() {
        if before.replace(word) != Some(word) {
            of_bank[usize::try_from(word % BANKS).unwrap_or(0)] += 1;
        }
    }
    of_bank.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
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
}
