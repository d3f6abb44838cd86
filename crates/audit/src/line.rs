//! Accesses of whole rows of lanes to 128 neighbouring bytes, kept as rows as long as none of them can be a race.
//!
//! Most accesses are plain loads and stores of a warp at even distances, and most of them cannot race with anything: a few masks of four-byte granules
//! say so for all lanes at once ([`Line::admits`]). Such a line has its accesses in a list, each with what its warp knew of others. As soon as an access may
//! race, or is no such row, the list is played through, access by access (`Shadow::settle`), and from then on the line is looked at granule by granule.
//! So what is found and remembered is what it would be if nothing had been put off.

use crate::known::Time;

/// Bytes of a line.
pub const LINE: u64 = 128;

/// Most rows that are kept of a line; of a line that was only read the older half is forgotten then.
// Choice: as much as granules remember, nearly.
pub const MOST_ROWS: usize = 264;

/// Rows that are forgotten at once.
pub const FORGOTTEN: usize = 132;

/// Lanes of a warp that access a line at even distances by one instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineRow {
    /// When.
    pub time: Time,
    /// Number of the block, times 32, and of the warp.
    pub who: u32,
    /// All that the block did until then comes before it.
    pub cta: Time,
    /// The same of the warp.
    pub warp: Time,
    /// The instruction.
    pub site: u32,
    /// The lanes.
    pub lanes: u32,
    /// Where lane 0 accesses, or would, from the start of the line.
    pub base: i32,
    /// From one lane to the next.
    pub stride: u32,
    /// Bytes of each scalar, of which follow each other as many as `count`.
    pub bytes: u8,
    /// Scalars of each lane.
    pub count: u8,
    /// They are written, or else read.
    pub writes: bool,
    /// The last lane comes first.
    pub reversed: bool,
}

impl LineRow {
    /// From the start of the line, the first byte of a lane.
    pub fn place(&self, lane: u32) -> u64 {
        let at = i64::from(self.base) + i64::from(self.stride) * i64::from(lane);
        u64::try_from(at).unwrap_or(0)
    }

    /// The granules of the line that it touches.
    fn granules(&self) -> u32 {
        let size = u64::from(self.bytes) * u64::from(self.count);
        let (first, last) = (self.lanes.trailing_zeros(), 31 - self.lanes.leading_zeros());
        let is_dense = self.lanes >> first == u32::MAX >> (31 - (last - first));
        if self.stride == 0 || is_dense && u64::from(self.stride) == size {
            return between(self.place(first), self.place(last) + size);
        }
        let mut all = 0;
        let mut left = self.lanes;
        while left != 0 {
            let at = self.place(left.trailing_zeros());
            all |= between(at, at + size);
            left &= left - 1;
        }
        all
    }

    /// What says which lane touches which byte, if none is touched by two.
    fn mapping(&self) -> Option<(u32, i32)> {
        if self.lanes & (self.lanes - 1) == 0 {
            return Some((u32::MAX, self.lanes.trailing_zeros().cast_signed()));
        }
        let size = u32::from(self.bytes) * u32::from(self.count);
        (self.stride >= size).then_some((self.stride, self.base))
    }
}

/// Granules from one byte to another, which is not one of them.
fn between(start: u64, end: u64) -> u32 {
    let (first, end) = (start / 4, end.div_ceil(4));
    let below = |n: u64| if n >= 32 { u32::MAX } else { (1 << n) - 1 };
    below(end) & !below(first)
}

/// Granules that were read and granules that were written.
#[derive(Clone, Copy, Default, Debug)]
struct Touched {
    read: u32,
    written: u32,
}

impl Touched {
    fn add(&mut self, other: Touched) {
        self.read |= other.read;
        self.written |= other.written;
    }

    /// Those that another access may race with.
    fn against(self, writes: bool) -> u32 {
        self.written | if writes { self.read } else { 0 }
    }
}

/// A line.
#[derive(Debug, Default)]
pub struct Line {
    /// Its rows in their order.
    pub rows: Vec<LineRow>,
    /// The block that came last.
    cta: u32,
    /// Its warp that came last.
    who: u32,
    /// When.
    time: Time,
    /// Which lane of that warp touches which byte of `own`.
    mapping: (u32, i32),
    /// By that warp, each byte by the lane that the mapping says.
    own: Touched,
    /// By threads of the block in any way.
    some: Touched,
    /// Threads of other warps are among those.
    has_others: bool,
    /// By that warp, before what all of it does now.
    of_warp: Touched,
    /// By threads of the block, before what all of it does now.
    of_cta: Touched,
    /// By other blocks.
    of_others: Touched,
}

impl Line {
    /// Whether a row races with nothing of the line, and is kept. `block`: number of its block.
    pub fn admits(&mut self, row: &LineRow) -> bool {
        let block = row.who >> 5;
        let touched = row.granules();
        if self.rows.is_empty() {
            *self = Line { rows: std::mem::take(&mut self.rows), cta: block, who: row.who, ..Line::default() };
        }
        if block != self.cta {
            let all = [self.own, self.some, self.of_warp, self.of_cta];
            all.into_iter().for_each(|t| self.of_others.add(t));
            (self.own, self.some, self.of_warp, self.of_cta) = Default::default();
            (self.cta, self.who, self.has_others) = (block, row.who, false);
        } else if self.time <= row.cta {
            let all = [self.own, self.some, self.of_warp];
            all.into_iter().for_each(|t| self.of_cta.add(t));
            (self.own, self.some, self.of_warp) = Default::default();
            (self.who, self.has_others) = (row.who, false);
        } else if row.who == self.who && !self.has_others && self.time <= row.warp {
            let all = [self.own, self.some];
            all.into_iter().for_each(|t| self.of_warp.add(t));
            (self.own, self.some) = Default::default();
        }
        let mapping = row.mapping();
        let is_own = row.who == self.who && mapping.is_some_and(|m| m == self.mapping || self.own.against(true) == 0);
        let mut before = self.of_others.against(row.writes) | self.some.against(row.writes);
        if !is_own {
            before |= self.own.against(row.writes);
        }
        if row.who != self.who {
            before |= self.of_warp.against(row.writes);
        }
        // Lanes that write to one place race with each other.
        if before & touched != 0 || row.writes && mapping.is_none() {
            return false;
        }
        if row.who != self.who {
            let all = [self.own, self.of_warp];
            all.into_iter().for_each(|t| self.some.add(t));
            (self.own, self.of_warp) = Default::default();
            (self.who, self.has_others) = (row.who, true);
        }
        let new =
            if row.writes { Touched { read: 0, written: touched } } else { Touched { read: touched, written: 0 } };
        match mapping {
            Some(m) if self.own.against(true) == 0 || m == self.mapping => {
                self.mapping = m;
                self.own.add(new);
            }
            _ => self.some.add(new),
        }
        self.time = row.time;
        if self.rows.last() == Some(row) {
            return true;
        }
        if self.rows.len() >= MOST_ROWS {
            if self.rows.iter().any(|r| r.writes) {
                return false;
            }
            self.rows.drain(..FORGOTTEN);
        }
        // Most lines that are kept so have one row.
        if self.rows.is_empty() {
            self.rows.reserve_exact(1);
        }
        self.rows.push(*row);
        true
    }

    /// Nothing was done.
    pub fn clear(&mut self) {
        self.rows.clear();
    }
}

/// Lanes at even distances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Even {
    /// Which.
    pub lanes: u32,
    /// The address of lane 0, or what it would be.
    pub base: u64,
    /// From one lane to the next.
    pub stride: u32,
}

impl Even {
    /// No lanes.
    pub const NONE: Even = Even { lanes: 0, base: 0, stride: 0 };

    /// The address of a lane.
    #[inline]
    pub fn of(&self, lane: usize) -> u64 {
        self.base.wrapping_add(u64::from(self.stride).wrapping_mul(lane as u64))
    }

    /// The addresses of the first and of the last lane.
    #[inline]
    pub fn ends(&self) -> (u64, u64) {
        let (first, last) = (self.lanes.trailing_zeros() & 31, 31 - (self.lanes | 1).leading_zeros());
        let at = |lane: u32| self.base.wrapping_add(u64::from(self.stride).wrapping_mul(u64::from(lane)));
        (at(first), at(last))
    }
}

/// Cuts lanes, in ascending order, into parts at even distances, none of which is negative or great. Returns how many there are.
pub fn parts_at_even_distances(lanes: u32, addrs: &[u64; 32], parts: &mut [Even; 32]) -> usize {
    let mut n = 0;
    let mut left = lanes;
    while left != 0 {
        let first = left.trailing_zeros();
        let start = addrs[at(first)];
        left &= left - 1;
        let mut part = Even { lanes: 1 << first, base: start, stride: 0 };
        if left != 0 {
            let second = left.trailing_zeros();
            let by = addrs[at(second)].wrapping_sub(start);
            let steps = u64::from(second - first);
            if by < 1 << 20 && by.is_multiple_of(steps) {
                let stride = by / steps;
                let base = start.wrapping_sub(stride * u64::from(first));
                part = Even { base, stride: u32::try_from(stride).unwrap_or(0), ..part };
                while left != 0 {
                    let lane = left.trailing_zeros();
                    if addrs[at(lane)] != base.wrapping_add(stride * u64::from(lane)) {
                        break;
                    }
                    part.lanes |= 1 << lane;
                    left &= left - 1;
                }
            }
        }
        parts[n] = part;
        n += 1;
    }
    n
}

fn at(lane: u32) -> usize {
    usize::try_from(lane & 31).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_tiles_are_two_parts() {
        let cut = |lanes: u32, of: &dyn Fn(u64) -> u64| {
            let mut addrs = [0; 32];
            (0..32).zip(&mut addrs).for_each(|(lane, a)| *a = of(lane));
            let mut parts = [Even::NONE; 32];
            let n = parts_at_even_distances(lanes, &addrs, &mut parts);
            parts[..n].to_vec()
        };
        let all = cut(u32::MAX, &|lane| 512 + 4 * lane);
        assert_eq!(all, [Even { lanes: u32::MAX, base: 512, stride: 4 }]);
        let tile = cut(u32::MAX, &|lane| 512 + 4 * (lane % 16) + 4096 * (lane / 16));
        let second = Even { lanes: 0xffff_0000, base: 512 + 4096 - 64, stride: 4 };
        assert_eq!(tile, [Even { lanes: 0xffff, base: 512, stride: 4 }, second]);
        let holes = cut(0b1010_0100, &|lane| 64 + 8 * lane);
        assert_eq!(holes, [Even { lanes: 0b1010_0100, base: 64, stride: 8 }]);
        assert_eq!(cut(0b11, &|lane| 4096 - 8 * lane).len(), 2);
    }

    #[test]
    fn granules_are_those_of_the_bytes() {
        let row = LineRow {
            time: 1,
            who: 0,
            cta: 0,
            warp: 0,
            site: 0,
            lanes: 0b110,
            base: -4,
            stride: 4,
            bytes: 4,
            count: 1,
            writes: false,
            reversed: false,
        };
        assert_eq!(row.granules(), 0b11);
        assert_eq!(LineRow { lanes: 0b1010, stride: 8, base: 0, ..row }.granules(), 1 << 2 | 1 << 6);
        assert_eq!(LineRow { lanes: 0xff, bytes: 1, stride: 1, base: 2, ..row }.granules(), 0b111);
        assert_eq!(LineRow { lanes: u32::MAX, base: 0, ..row }.granules(), u32::MAX);
    }
}
