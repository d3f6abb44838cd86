//! Which elements a transfer takes, and where they lie in shared memory.
//!
//! A transfer is *lines*: elements (or slices of an interleaved tensor) that follow each other in dimension 0 and in shared memory. Lines follow each
//! other at [`Boxes::pitch`]; each byte then changes places as the swizzle says.
//!
//! Choice: where the manual's figures are not at hand. A line that is shorter than the span of the swizzle takes the whole span. Dimension 0 of an
//! interleaved tensor is counted in slices, and one slice of channels (the last dimension but one) is taken. Halo pixels of im2col along W go on behind
//! the last pixel, past the end of the box.

use super::map::*;
use super::rules::Wrong;

/// Where a transfer begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coordinates<'c> {
    /// Of a box: one in each dimension.
    Tile(&'c [i64]),
    /// A column and four rows.
    Rows4(&'c [i64]),
    /// Of pixels, and the offsets of the filter in W, H, D; none where pixels are stored.
    Im2col(&'c [i64], &'c [i64]),
    /// Of pixels along W, the halo and the offset; none where pixels are stored.
    Wide {
        /// One in each dimension.
        at: &'c [i64],
        /// Pixels after the last, or after each 32.
        halo: i64,
        /// Added along W.
        offset: i64,
        /// 128 pixels.
        is_128: bool,
    },
}

/// A line: what of it lies in the tensor. The rest is filled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line {
    /// Address of the first unit that lies in the tensor.
    pub at: u64,
    /// Its number in the line.
    pub first: u32,
    /// How many units lie in the tensor.
    pub count: u32,
}

/// The lines of a transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Boxes {
    /// The lines.
    pub lines: Vec<Line>,
    /// Units of a line.
    pub units: u32,
    /// Bytes of a unit in global memory.
    pub unit: u32,
    /// Bytes of a unit in shared memory.
    pub shared_unit: u32,
    /// Bytes from one unit to the next in global memory.
    pub step: u32,
    /// Bytes from one line to the next in shared memory.
    pub pitch: u32,
}

impl Boxes {
    /// Bytes that are moved, filled ones among them.
    pub fn bytes(&self) -> u64 {
        self.lines.len() as u64 * u64::from(self.units * self.unit)
    }

    /// Bytes of shared memory from the first to the last.
    pub fn shared_bytes(&self) -> u64 {
        self.lines.len() as u64 * u64::from(self.pitch)
    }
}

/// Most lines of a transfer: more would not fit shared memory.
const MAX_LINES: u64 = 1 << 16;

impl TensorMap {
    /// Bytes of a unit of dimension 0 in global memory.
    fn unit(&self) -> u32 {
        match self.interleave.slice() {
            0 => self.element.group_bytes(),
            slice => slice,
        }
    }

    fn stride(&self, dim: usize) -> u64 {
        if dim == 0 { u64::from(self.unit()) } else { self.strides[dim - 1] }
    }

    fn step(&self, dim: usize) -> i64 {
        if dim == 0 && self.interleave == Interleave::None { 1 } else { self.element_strides[dim].into() }
    }

    /// The lines of a transfer.
    ///
    /// # Errors
    /// The map is not for it, or a coordinate may not be.
    pub fn boxes(&self, at: Coordinates<'_>) -> Result<Boxes, Wrong> {
        let fits = matches!(
            (at, self.shape),
            (Coordinates::Tile(_) | Coordinates::Rows4(_), Shape::Tiled { .. })
                | (Coordinates::Im2col(..), Shape::Im2col { .. })
                | (Coordinates::Wide { .. }, Shape::Wide { .. })
        );
        if !fits {
            let made_for = match self.shape {
                Shape::Tiled { .. } => "tiles",
                Shape::Im2col { .. } => "im2col",
                Shape::Wide { .. } => "im2col along W",
            };
            return Err(Wrong(format!("it is for {made_for}, not for this copy")));
        }
        let is_plain = self.interleave == Interleave::None;
        let group = if is_plain { self.element.group() } else { 1 };
        let column = match at {
            Coordinates::Tile(c) | Coordinates::Rows4(c) | Coordinates::Im2col(c, _) => c[0],
            Coordinates::Wide { at, .. } => at[0],
        };
        let multiple = if group == 16 { 128 } else { i64::from(group) };
        if column % multiple != 0 {
            return Err(Wrong(format!("its coordinate {column} in dimension 0 must be a multiple of {multiple}")));
        }
        let shared_unit = if is_plain { self.element.shared_bytes() } else { self.unit() };
        let (units, starts) = match (at, self.shape) {
            (Coordinates::Tile(c), Shape::Tiled { size }) => (self.extent(&size, 0), self.tile(c, &size)?),
            (Coordinates::Rows4(c), Shape::Tiled { size }) => (self.extent(&size, 0), self.rows(c, &size)?),
            (Coordinates::Im2col(c, offsets), Shape::Im2col { lower, upper, channels, pixels }) => {
                let corners = (lower.map(i64::from), upper.map(i64::from));
                let starts = self.pixels(c, offsets, corners, pixels);
                (if is_plain { channels } else { 1 }, starts)
            }
            (Coordinates::Wide { at, halo, offset, is_128 }, Shape::Wide { lower, upper, channels, pixels }) => {
                let ends = (i64::from(lower) + offset, i64::from(upper) + offset);
                let count = if is_128 { 128 } else { pixels };
                (channels, self.pixels_along(at, ends, offset, halo, count, if is_128 { 32 } else { count }))
            }
            _ => return Err(Wrong("it is for another kind of copy".into())),
        };
        let units = units / group;
        let step = u64::from(self.unit()) * self.step(0).unsigned_abs();
        let lines = starts.iter().map(|c| self.line(c, units, i64::from(group))).collect();
        let bytes = units * shared_unit;
        Ok(Boxes {
            lines,
            units,
            unit: self.unit(),
            shared_unit,
            step: u32::try_from(step).unwrap_or(u32::MAX),
            pitch: bytes.max(self.swizzle.span()),
        })
    }

    /// Elements of a box that are taken in a dimension.
    fn extent(&self, size: &[u32; MAX_RANK], dim: usize) -> u32 {
        if self.interleave != Interleave::None && dim + 2 == self.rank {
            return 1;
        }
        size[dim].div_ceil(u32::try_from(self.step(dim)).unwrap_or(1))
    }

    /// Coordinates of the first element of each line of a box.
    fn tile(&self, c: &[i64], size: &[u32; MAX_RANK]) -> Result<Vec<[i64; MAX_RANK]>, Wrong> {
        let extents: Vec<u32> = (0..self.rank).map(|d| self.extent(size, d)).collect();
        let n: u64 = extents[1..].iter().map(|n| u64::from(*n)).product();
        if n > MAX_LINES {
            return Err(Wrong(format!("its box has {n} lines, more than shared memory has room for")));
        }
        let mut at = [0; MAX_RANK];
        at[..self.rank].copy_from_slice(&c[..self.rank]);
        let mut index = [0_u32; MAX_RANK];
        let mut starts = Vec::new();
        for _ in 0..n {
            let mut here = at;
            for d in 1..self.rank {
                here[d] += i64::from(index[d]) * self.step(d);
            }
            starts.push(here);
            for d in 1..self.rank {
                index[d] += 1;
                if index[d] < extents[d] {
                    break;
                }
                index[d] = 0;
            }
        }
        Ok(starts)
    }

    /// The four rows of a gather or scatter.
    fn rows(&self, c: &[i64], size: &[u32; MAX_RANK]) -> Result<Vec<[i64; MAX_RANK]>, Wrong> {
        if self.interleave != Interleave::None {
            return Err(Wrong("rows are not taken from an interleaved tensor".into()));
        }
        if size[1] != 1 {
            return Err(Wrong(format!("its box has {} rows, not 1", size[1])));
        }
        Ok(c[1..5].iter().map(|row| [c[0], *row, 0, 0, 0]).collect())
    }

    /// Pixels in the order of a convolution: along W, then H, then D within the box, then the next image.
    fn pixels(
        &self,
        c: &[i64],
        offsets: &[i64],
        (lower, upper): ([i64; 3], [i64; 3]),
        count: u32,
    ) -> Vec<[i64; MAX_RANK]> {
        let spatial = self.spatial();
        let mut at = [0; MAX_RANK];
        at[..self.rank].copy_from_slice(&c[..self.rank]);
        let mut starts = Vec::new();
        for _ in 0..count {
            let mut here = at;
            for (i, d) in spatial.clone().enumerate() {
                here[d] += offsets.get(i).copied().unwrap_or(0);
            }
            starts.push(here);
            let mut is_over = true;
            for (i, d) in spatial.clone().enumerate() {
                at[d] += self.step(d);
                if at[d] <= self.last(d) + upper[i] {
                    is_over = false;
                    break;
                }
                at[d] = lower[i];
            }
            at[self.rank - 1] += i64::from(is_over);
        }
        starts
    }

    /// Pixels along W, then of the next image, with a halo after each `per`.
    fn pixels_along(
        &self,
        c: &[i64],
        (lower, upper): (i64, i64),
        offset: i64,
        halo: i64,
        count: u32,
        per: u32,
    ) -> Vec<[i64; MAX_RANK]> {
        let mut at = [0; MAX_RANK];
        at[..self.rank].copy_from_slice(&c[..self.rank]);
        at[1] += offset;
        let mut starts = Vec::new();
        for i in 1..=count {
            starts.push(at);
            if i % per == 0 {
                for k in 1..=halo {
                    let mut here = at;
                    here[1] += k * self.step(1);
                    starts.push(here);
                }
            }
            at[1] += self.step(1);
            if at[1] > self.last(1) + upper {
                at[1] = lower;
                at[self.rank - 1] += 1;
            }
        }
        starts
    }

    /// The last coordinate of a dimension.
    fn last(&self, dim: usize) -> i64 {
        i64::try_from(self.dims[dim]).unwrap_or(i64::MAX) - 1
    }

    /// What of a line lies in the tensor.
    fn line(&self, c: &[i64; MAX_RANK], units: u32, group: i64) -> Line {
        let outside = Line { at: 0, first: 0, count: 0 };
        let mut at = self.address;
        for (d, c) in c.iter().enumerate().take(self.rank).skip(1) {
            match u64::try_from(*c) {
                Ok(n) if n < self.dims[d] => at = at.wrapping_add(n.wrapping_mul(self.stride(d))),
                _ => return outside,
            }
        }
        let (begin, dim) = (c[0].div_euclid(group), (self.last(0) + 1).div_euclid(group));
        let step = self.step(0);
        // The first unit at 0 or after it, and the first at the end or after it.
        let first = (-begin).max(0).unsigned_abs().div_ceil(step.unsigned_abs());
        let end = (dim - begin).max(0).unsigned_abs().div_ceil(step.unsigned_abs()).min(u64::from(units));
        if first >= end {
            return outside;
        }
        let place = begin.wrapping_add_unsigned(first * step.unsigned_abs()).unsigned_abs();
        let number = |n: u64| u32::try_from(n).unwrap_or(0);
        Line { at: at.wrapping_add(place * u64::from(self.unit())), first: number(first), count: number(end - first) }
    }
}
