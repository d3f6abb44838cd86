//! What one request of a warp costs memory: the rules by which lanes share a sector, a bank, or an address.
//!
//! A request is one access of the lanes of a warp that execute it together. The rules are those that the *CUDA C++ Programming Guide* gives for devices of
//! compute capability 5.0 and later; caches are not modelled.

use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a sector: the unit in which global and local memory move.
pub const SECTOR: u64 = 32;

/// Bytes of a word of shared memory: neighbouring words lie in neighbouring banks.
pub const WORD: u64 = 4;

/// Banks of shared memory.
pub const BANKS: u64 = 32;

/// Bytes that shared memory moves in one pass at most: a word of each bank.
const PASS: u64 = WORD * BANKS;

/// A lane and the first byte that it accesses.
pub type Lane = (usize, u64);

/// Different sectors that lanes touch with `bytes` bytes each.
pub fn sectors(lanes: &[Lane], bytes: u32) -> u64 {
    let sectors: BTreeSet<u64> = lanes.iter().flat_map(|(_, at)| units(*at, bytes, SECTOR)).collect();
    count(sectors.len())
}

/// Different bytes that lanes touch with `bytes` bytes each: those that several lanes touch count once.
pub fn touched(lanes: &[Lane], bytes: u32) -> u64 {
    let mut starts: Vec<u64> = lanes.iter().map(|(_, at)| *at).collect();
    starts.sort_unstable();
    let (mut sum, mut end) = (0, 0);
    for at in starts {
        let next = at + u64::from(bytes);
        sum += next - at.max(end).min(next);
        end = end.max(next);
    }
    sum
}

/// Where a byte of a thread's local memory lies among the bytes of the warp: neighbouring lanes have neighbouring words, so that one variable of all lanes
/// lies in one piece.
pub fn interleaved(lane: usize, offset: u64) -> u64 {
    offset / WORD * PASS + count(lane) * WORD + offset % WORD
}

/// The pieces of one word at most that lanes touch in [interleaved] local memory, and the bytes of a piece.
pub fn local(lanes: &[Lane], bytes: u32) -> (Vec<Lane>, u32) {
    let piece = bytes.clamp(1, 4);
    let pieces = |(lane, at): &Lane| {
        let (lane, at) = (*lane, *at);
        (0..bytes / piece).map(move |i| (lane, interleaved(lane, at + u64::from(i * piece))))
    };
    (lanes.iter().flat_map(pieces).collect(), piece)
}

/// Passes of shared memory for a request: how many it takes, and how many it would take if no two words lay in one bank.
///
/// A pass serves as many lanes as together access 128 bytes: all 32 of accesses of up to 4 bytes, half a warp of 8 bytes, a quarter of 16 bytes. In each of
/// these parts a bank gives one word a pass, to all lanes that want it: lanes that want different words of one bank wait for each other.
pub fn passes(lanes: &[Lane], bytes: u32) -> (u64, u64) {
    let per_part = usize::try_from(PASS / u64::from(bytes.max(4)).min(PASS)).unwrap_or(1);
    let mut parts: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
    for (lane, at) in lanes {
        parts.entry(lane / per_part).or_default().extend(units(*at, bytes, WORD));
    }
    let taken = parts.values().map(|words| {
        let mut of_bank = [0_u64; BANKS as usize];
        words.iter().for_each(|word| of_bank[usize::try_from(word % BANKS).unwrap_or(0)] += 1);
        of_bank.into_iter().max().unwrap_or(0)
    });
    (taken.sum(), count(parts.len()))
}

/// Different addresses of a request: constant memory serves them one after the other.
pub fn addresses(lanes: &[Lane]) -> u64 {
    count(lanes.iter().map(|(_, at)| at).collect::<BTreeSet<_>>().len())
}

/// Most lanes of a request on one address: atomics on one address are done one after the other.
pub fn most_on_one(lanes: &[Lane]) -> u64 {
    let mut by_address: BTreeMap<u64, u64> = BTreeMap::new();
    lanes.iter().for_each(|(_, at)| *by_address.entry(*at).or_default() += 1);
    by_address.into_values().max().unwrap_or(0)
}

/// Numbers of the units of a size that bytes lie in.
fn units(at: u64, bytes: u32, size: u64) -> std::ops::RangeInclusive<u64> {
    at / size..=(at + u64::from(bytes.max(1)) - 1) / size
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 32 lanes from `base` on, `stride` bytes apart.
    fn warp(base: u64, stride: u64) -> Vec<Lane> {
        (0..32).map(|lane| (lane, base + stride * count(lane))).collect()
    }

    #[test]
    fn sectors_by_stride() {
        // 128 bytes in a row are four sectors; from the middle of one they touch five.
        assert_eq!(sectors(&warp(256, 4), 4), 4);
        assert_eq!(sectors(&warp(272, 4), 4), 5);
        // Every second word: twice the sectors. From 32 bytes on, each lane has its own.
        assert_eq!(sectors(&warp(0, 8), 4), 8);
        assert_eq!(sectors(&warp(0, 32), 4), 32);
        assert_eq!(sectors(&warp(0, 4096), 4), 32);
        // One address for all; elements of one and of 16 bytes.
        assert_eq!(sectors(&warp(64, 0), 4), 1);
        assert_eq!(sectors(&warp(0, 1), 1), 1);
        assert_eq!(sectors(&warp(0, 16), 16), 16);
        // An access over the edge of a sector.
        assert_eq!(sectors(&[(0, 28)], 8), 2);
        assert_eq!(sectors(&[], 4), 0);
    }

    #[test]
    fn bytes_that_lanes_share_count_once() {
        assert_eq!(touched(&warp(0, 4), 4), 128);
        assert_eq!(touched(&warp(0, 0), 4), 4);
        assert_eq!(touched(&warp(0, 2), 4), 31 * 2 + 4);
        assert_eq!(touched(&[(0, 100), (1, 0)], 8), 16);
    }

    #[test]
    fn words_of_shared_memory_meet_in_banks() {
        // Strides in words of 4 bytes, as the guide's figures have them: 1 and 3 meet nowhere, 2 in pairs, 32 all, 33 nowhere.
        for (stride, want) in [(1, 1), (2, 2), (3, 1), (4, 4), (16, 16), (32, 32), (33, 1), (0, 1)] {
            assert_eq!(passes(&warp(0, 4 * stride), 4), (want, 1), "stride {stride}");
        }
        // Bytes and halves of one word are one word.
        assert_eq!(passes(&warp(0, 1), 1), (1, 1));
        assert_eq!(passes(&warp(0, 2), 2), (1, 1));
        // 32 lanes a row of 128 bytes apart, each with another byte of its word, are 32 words of one bank.
        assert_eq!(passes(&warp(0, 128), 1), (32, 1));
    }

    #[test]
    fn wide_accesses_go_by_halves_and_quarters() {
        // 8 bytes in a row: two halves, each in all banks once.
        assert_eq!(passes(&warp(0, 8), 8), (2, 2));
        // 16 bytes: four quarters.
        assert_eq!(passes(&warp(0, 16), 16), (4, 4));
        // Doubles two apart: in each half, lanes 0 and 8 meet.
        assert_eq!(passes(&warp(0, 16), 8), (4, 2));
        // Doubles a row of 128 bytes apart: 16 words in each of two banks, for both halves.
        assert_eq!(passes(&warp(0, 128), 8), (32, 2));
        // Vectors of 16 bytes a row apart: eight in four banks, for each quarter.
        assert_eq!(passes(&warp(0, 128), 16), (32, 4));
        // One address for all: each part takes a pass.
        assert_eq!(passes(&warp(0, 0), 8), (2, 2));
        // Half of the lanes are enough for one part.
        assert_eq!(passes(&warp(0, 8)[..16], 8), (1, 1));
    }

    #[test]
    fn local_memory_is_interleaved() {
        // One variable of all lanes is one row; a lane's neighbouring words are a row apart.
        let all: Vec<Lane> = (0..32).map(|lane| (lane, 8)).collect();
        let sectors_of = |lanes: &[Lane], bytes| {
            let (pieces, piece) = local(lanes, bytes);
            (sectors(&pieces, piece), touched(&pieces, piece))
        };
        assert_eq!(sectors_of(&all, 4), (4, 128));
        assert_eq!(interleaved(3, 9), 2 * 128 + 12 + 1);
        assert_eq!(sectors_of(&all, 8), (8, 256));
        // A byte of each lane's word.
        assert_eq!(sectors_of(&all, 1), (4, 32));
        // Each lane elsewhere: each a sector.
        let apart: Vec<Lane> = (0..32).map(|lane| (lane, 4 * count(lane))).collect();
        assert_eq!(sectors_of(&apart, 4), (32, 128));
    }

    #[test]
    fn lanes_on_one_address() {
        assert_eq!(most_on_one(&warp(0, 0)), 32);
        assert_eq!(most_on_one(&warp(0, 4)), 1);
        assert_eq!(most_on_one(&[(0, 8), (1, 4), (2, 8)]), 2);
        assert_eq!((addresses(&warp(0, 0)), addresses(&warp(0, 4)), addresses(&[])), (1, 32, 0));
    }
}
