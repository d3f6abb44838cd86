//! Products of matrices into tensor memory.
//!
//! A *line* is a part of a row of `d` that lies in one lane of tensor memory. What a lane computes it computes of the row of `a`, the metadata and the
//! scales that its own lane or its own 32 lanes have, where these are in tensor memory: matrices that all lanes need are there several times.
//!
//! Choice: the manual has the layouts in figures, which its text does not tell; this is the order of public libraries.
//!
//! # PTX ISA
//! Data Path Layout Organization; Block Scaling for tcgen05.mma; Sparse Matrices.

use std::ops::Range;

use handloom_ir::num::matrix::{end, integer_element, kept, scale, start};
use handloom_ir::num::whole::{Rows, add_integers, canonical};
use handloom_ir::simt::tensor::{COLUMNS, LANES, TensorProduct};
use handloom_ir::simt::tile::{Field, Major, Tile};
use handloom_ir::simt::{Accumulator, Element};
use handloom_ir::trap::AccessKind;
use handloom_ir::types::StateSpace;

use super::aligned::Aligned;
use super::descriptor::{Instruction, Zeros};
use super::held::Held;
use super::memory::{Address, Tensor, fault};
use crate::numbers::low32;
use crate::transfer::reach::{Fault, Part, Reach, find, in_cta};

/// A number of the host as an index.
fn at(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// A part of a row of `d` in a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Line {
    cta: usize,
    lane: u32,
    /// Of the rows of the CTA.
    row: u32,
    /// Which part of the columns.
    part: u32,
}

/// Where `d` lies: its lines, into how many parts of columns they are cut, and how many rows a CTA has.
struct Layout {
    lines: Vec<Line>,
    parts: u32,
    rows: u32,
    /// Only half of the lanes are used: those from 0 or from 16 on.
    is_half: bool,
}

fn layout(p: TensorProduct, m: u32, first: u32) -> Layout {
    let ctas = 1 + usize::from(p.pair);
    let rows = m / if p.pair { 2 } else { 1 };
    let is_half = rows == 64 && if p.pair { p.sparse } else { !p.ws };
    let parts = if is_half { 1 } else { LANES / rows };
    let lines = (0..ctas).flat_map(|cta| {
        (0..rows * parts).map(move |i| match is_half {
            true => Line { cta, lane: 32 * (i / 16) + i % 16 + first, row: i, part: 0 },
            false => Line { cta, lane: i, row: i % rows, part: i / rows },
        })
    });
    Layout { lines: lines.collect(), parts, rows, is_half }
}

/// Most elements in sixteen bytes.
const MAX_PER_UNIT: usize = 32;

/// How many elements sixteen bytes of shared memory have.
fn per_unit(e: Element) -> u32 {
    if small_bits(e).is_some() { 16 } else { 128 / e.bits() }
}

/// The bits of the elements in sixteen bytes of shared memory: as many as [`per_unit`] says.
///
/// # PTX ISA
/// Packing formats of elements in Tensor and Shared memory.
fn elements_of(e: Element, bytes: &[u8; 16]) -> [u32; MAX_PER_UNIT] {
    let mut out = [0; MAX_PER_UNIT];
    // Smaller elements lie next to each other, sixteen of them with padding behind; in registers and tensor memory each has a byte.
    match small_bits(e) {
        Some(size) => {
            let (all, left) = (u128::from_le_bytes(*bytes), if size == 4 { 2 } else { 0 });
            for (i, to) in (0..16).zip(&mut out) {
                *to = u32::try_from(all >> (size * i) & ((1 << size) - 1)).unwrap_or(0) << left;
            }
        }
        None => match e.bits() {
            4 => {
                for (to, byte) in out.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
                    *to = [u32::from(byte & 0xf), u32::from(byte >> 4)];
                }
            }
            8 => out.iter_mut().zip(bytes).for_each(|(to, byte)| *to = u32::from(*byte)),
            16 => {
                for (to, pair) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
                    *to = u32::from(u16::from_le_bytes(*pair));
                }
            }
            _ => {
                for (to, word) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
                    *to = u32::from_le_bytes(*word);
                }
            }
        },
    }
    out
}

/// Writes the first `n` halves in sixteen bytes of each row or column to their places, as [`Shared::elements`] does.
fn halves(units: &[[u8; 16]], n: usize, steps: [usize; 2], to: &mut [u32]) {
    if steps[0] == 1 {
        // Depth by depth, so that what is written lies side by side.
        for (k, row) in to.chunks_mut(steps[1]).enumerate().take(n) {
            for (to, unit) in row.iter_mut().zip(units) {
                *to = u32::from(u16::from_le_bytes([unit[2 * k], unit[2 * k + 1]]));
            }
        }
        return;
    }
    for (mn, unit) in units.iter().enumerate() {
        let row = &mut to[mn * steps[0]..][..n];
        for (to, half) in row.iter_mut().zip(unit.as_chunks::<2>().0) {
            *to = u32::from(u16::from_le_bytes(*half));
        }
    }
}

/// Makes the bits of elements numbers, in their place: floats or integers.
fn decode(e: Element, negates: bool, bits: &mut [u32], reach: &dyn Reach) {
    if e.is_integer() {
        bits.iter_mut().for_each(|v| *v = integer_element(e, u64::from(*v)).cast_unsigned());
        if negates {
            bits.iter_mut().for_each(|v| *v = v.wrapping_neg());
        }
    } else {
        reach.widen(e, bits);
        if negates {
            bits.iter_mut().for_each(|v| *v ^= 1 << 31);
        }
    }
}

/// Bits of an element that has a byte in registers and in tensor memory, and less in shared memory.
fn small_bits(e: Element) -> Option<u32> {
    if e == Element::E2m1 { Some(4) } else { matches!(e, Element::E3m2 | Element::E2m3).then_some(6) }
}

/// A matrix in shared memory of a CTA.
struct Shared {
    tile: Tile,
    /// The CTA, if it is not the own one.
    rank: Option<u32>,
    base: u64,
    size: u32,
}

impl Shared {
    fn new(
        what: &str,
        descriptor: u64,
        major: Major,
        rank: Option<u32>,
        reach: &mut dyn Reach,
    ) -> Result<Shared, Fault> {
        let Some(tile) = Tile::of_tensor(descriptor, major) else {
            let mode = Field::TENSOR_MODE.of(descriptor);
            return Err(fault(format!("the descriptor of `{what}` has the swizzling mode {mode}, which there is not")));
        };
        if Field::ABSOLUTE.of(descriptor) == 1 {
            return Err(fault(format!(
                "the descriptor of `{what}` has a leading dimension by address, which is not supported"
            )));
        }
        let env = reach.env();
        let base = match rank {
            None => env.shared_base,
            Some(rank) => env.cluster_address(in_cta(rank, 0)),
        };
        Ok(Shared { tile, rank, base, size: env.shared_size })
    }

    /// Sixteen bytes of each of some lines.
    fn units(&self, lines: Range<u32>, unit: u32, held: &mut Units, reach: &mut dyn Reach) -> Result<(), Fault> {
        let column = self.tile.column(16 * unit);
        held.distances.clear();
        held.distances.extend(lines.map(|line| column.address(line)));
        held.bytes.resize(held.distances.len(), [0; 16]);
        if held.distances.iter().fold(0, |last, d| last.max(*d)) + 16 <= self.size {
            reach.read_units(self.base, &held.distances, &mut held.bytes);
            return Ok(());
        }
        for (distance, to) in held.distances.iter().zip(&mut held.bytes) {
            let place = if distance + 16 <= self.size {
                self.base + u64::from(*distance)
            } else {
                let (space, addr) = match self.rank {
                    None => (StateSpace::Shared, u64::from(*distance)),
                    Some(rank) => (StateSpace::SharedCluster, in_cta(rank, u64::from(*distance))),
                };
                find(reach, Part { kind: AccessKind::Read, space, addr, bytes: 16, align: 16 })?
            };
            reach.read(place, to);
        }
        Ok(())
    }

    /// Writes the bits of the elements of rows or columns from `first` on to their places. Of the element of row or column `mn`, counted from there,
    /// and depth `k` that is `mn * steps[0] + k * steps[1]`.
    fn elements(
        &self,
        e: Element,
        (first, count): (u32, u32),
        depth: u32,
        steps: [usize; 2],
        to: &mut [u32],
        reach: &mut dyn Reach,
    ) -> Result<(), Fault> {
        let per = per_unit(e);
        let mut held = Units::default();
        match self.tile.major {
            Major::K => {
                for unit in 0..depth.div_ceil(per) {
                    self.units(first..first + count, unit, &mut held, reach)?;
                    let n = at(per.min(depth - unit * per));
                    if e.bits() == 16 {
                        halves(&held.bytes, n, steps, &mut to[at(unit * per) * steps[1]..]);
                        continue;
                    }
                    for (mn, bytes) in held.bytes.iter().enumerate() {
                        let to = &mut to[mn * steps[0] + at(unit * per) * steps[1]..];
                        let elements = elements_of(e, bytes);
                        to.iter_mut().step_by(steps[1]).zip(&elements[..n]).for_each(|(to, v)| *to = *v);
                    }
                }
            }
            Major::Mn => {
                for unit in first / per..(first + count).div_ceil(per) {
                    self.units(0..depth, unit, &mut held, reach)?;
                    let (from, end) = (first.max(unit * per), (first + count).min((unit + 1) * per));
                    for (k, bytes) in held.bytes.iter().enumerate() {
                        let to = &mut to[at(from - first) * steps[0] + k * steps[1]..];
                        let elements = elements_of(e, bytes);
                        let elements = &elements[at(from - unit * per)..at(end - unit * per)];
                        to.iter_mut().step_by(steps[0]).zip(elements).for_each(|(to, v)| *to = *v);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Sixteen bytes of some lines, and where they lie.
#[derive(Default)]
struct Units {
    distances: Vec<u32>,
    bytes: Vec<[u8; 16]>,
}

/// What a product is made of, checked.
struct Plan<'h> {
    p: TensorProduct,
    i: Instruction,
    held: &'h Held,
    layout: Layout,
    d: Address,
    metadata: Address,
    scales: [Address; 2],
    /// Columns of a line.
    count: u32,
    /// Elements of a row of `a` that are there.
    stored: u32,
    /// `a` in tensor memory.
    a: Option<Address>,
}

/// The numbers of both matrices: floats by their bits, or integers.
struct Operands {
    /// Rows of `a`, by line.
    a: Vec<u32>,
    /// All of `b`, by depth.
    b: Aligned,
    /// The depths of the elements of `a`, by line; empty where all are there.
    depths: Vec<u16>,
}

pub(super) fn product(p: TensorProduct, src: &[u64], held: &Held, reach: &mut dyn Reach) -> Result<(), Fault> {
    let s = p.sources(src);
    let i = Instruction::decode(p, low32(s.instruction))?;
    let d = Address::of(s.d);
    let layout = layout(p, i.m, d.lane);
    let lanes = if layout.is_half { [0, 16] } else { [0, 0] };
    let a = p.a_in_tensor.then(|| Address::of(s.a));
    let metadata = Address::of(s.metadata);
    let scales = s.scales.map(Address::of_scales);
    let like_d = [("`d`", Some(d)), ("`a`", a), ("the metadata", p.sparse.then_some(metadata))];
    for (what, address) in like_d {
        let Some(address) = address else { continue };
        if !lanes.contains(&address.lane) {
            let wanted = if layout.is_half { "0 or 16" } else { "0" };
            return Err(fault(format!(
                "{what} begins at lane {}, with this shape it begins at lane {wanted}",
                address.lane
            )));
        }
        if address.lane != d.lane {
            return Err(fault(format!("{what} begins at lane {}, and `d` at lane {}", address.lane, d.lane)));
        }
    }
    let (count, stored) = (i.n / layout.parts, i.k / (1 + u32::from(p.sparse)));
    let plan = Plan { p, i, held, layout, d, metadata, scales, count, stored, a };
    plan.check()?;
    let zeros = Zeros::decode(s.zeros, i.m, i.n);
    let adds = s.adds != 0;
    let o = plan.operands(s.a, s.b, &zeros, reach)?;
    if i.d == Accumulator::S32 {
        plan.integers(&o, adds, s.lanes);
    } else {
        let scale = (0..s.shift.min(64)).fold(1.0, |scale: f32, _| scale / 2.0);
        plan.floats(&o, adds.then_some(scale), s.lanes, &*reach);
    }
    Ok(())
}

impl Plan<'_> {
    /// Whether all that is read and written in tensor memory is allocated.
    fn check(&self) -> Result<(), Fault> {
        let n_ctas = 1 + usize::from(self.p.pair);
        for cta in 0..n_ctas {
            let t = self.held.lock(cta);
            t.check("`d`", self.d.column, self.count)?;
            if let Some(a) = self.a {
                t.check("`a`", a.column, (self.stored * self.i.elements[0].bits()).div_ceil(32))?;
            }
            if self.p.sparse {
                t.check("the metadata", self.metadata.column + self.i.selector, self.metadata_columns())?;
            }
            if self.p.scales.is_some() {
                for (what, address, n) in [
                    ("the scales of `a`", self.scales[0], self.layout.rows),
                    ("the scales of `b`", self.scales[1], self.count),
                ] {
                    if address.lane != 0 {
                        return Err(fault(format!("{what} begin at lane {}, they begin at lane 0", address.lane)));
                    }
                    t.check(what, address.column, n.div_ceil(32))?;
                }
            }
        }
        Ok(())
    }

    fn metadata_columns(&self) -> u32 {
        if self.i.elements[0].bits() >= 16 { 1 } else { 2 }
    }

    fn operands(&self, a: u64, b: u64, zeros: &Zeros, reach: &mut dyn Reach) -> Result<Operands, Fault> {
        let i = &self.i;
        let n_ctas = 1 + u32::from(self.p.pair);
        let rank = |cta: u32| self.p.pair.then(|| self.held.rank(cta));
        let stored = at(self.stored);
        let mut of_a = vec![0; self.layout.lines.len() * stored];
        if let Some(address) = self.a {
            for (line, to) in self.layout.lines.iter().zip(of_a.chunks_mut(stored)) {
                self.row_of_a(*line, address, to);
            }
        } else {
            let rows = at(self.layout.rows);
            for cta in 0..n_ctas {
                let matrix = Shared::new("a", a, i.majors[0], rank(cta), reach)?;
                // The lines of a CTA are all its rows, as often as `b` has parts.
                let per_cta = rows * at(self.layout.parts) * stored;
                let to = &mut of_a[at(cta) * per_cta..][..per_cta];
                matrix.elements(i.elements[0], (0, self.layout.rows), self.stored, [stored, 1], to, reach)?;
                for part in 1..at(self.layout.parts) {
                    to.copy_within(..rows * stored, part * rows * stored);
                }
            }
        }
        decode(i.elements[0], i.negates[0], &mut of_a, &*reach);
        let (n, n_local) = (at(i.n), i.n / n_ctas);
        let mut of_b = Aligned::filled(0, at(i.k) * n);
        for cta in 0..n_ctas {
            let matrix = Shared::new("b", b, i.majors[1], rank(cta), reach)?;
            let to = &mut of_b[at(cta * n_local)..];
            matrix.elements(i.elements[1], (zeros.shift, n_local), i.k, [1, n], to, reach)?;
        }
        decode(i.elements[1], i.negates[1], &mut of_b, &*reach);
        if zeros.mask.contains(&true) {
            for row in of_b.chunks_mut(n) {
                row.iter_mut().zip(&zeros.mask).filter(|(_, zero)| **zero).for_each(|(v, _)| *v = 0);
            }
        }
        let depths = match self.p.sparse {
            true => self.layout.lines.iter().flat_map(|line| self.depths(*line)).collect(),
            false => vec![],
        };
        Ok(Operands { a: of_a, b: of_b, depths })
    }

    /// The bits of the elements of `a` that the lane of a line has.
    fn row_of_a(&self, line: Line, address: Address, to: &mut [u32]) {
        let bits = self.i.elements[0].bits();
        let per = 32 / bits;
        // Choice: with a shift a lane has the row of the next one, and the last lane its own.
        let lane = if self.p.a_shift { (line.lane + 1).min(LANES - 1) } else { line.lane };
        let t = self.held.lock(line.cta);
        let mask = u32::MAX >> (32 - bits);
        for (k, to) in (0..).zip(to) {
            *to = t.cell(lane, address.column + k / per) >> (k % per * bits) & mask;
        }
    }

    /// The depths of the elements of a row of a sparse `a` that are there.
    fn depths(&self, line: Line) -> Vec<u16> {
        let as_depth = |k: usize| u16::try_from(k).unwrap_or(0);
        let chunk = self.i.elements[0].chunk();
        let t = self.held.lock(line.cta);
        let first = self.metadata.column + self.i.selector;
        let chunks = (0..at(self.i.k) / chunk.0).flat_map(|c| {
            let n = u32::try_from(c).unwrap_or(0);
            let (lane, column, bit) = if self.metadata_columns() == 1 {
                // Of sixteen lanes, eight have four chunks of two rows, and eight the next four.
                let within = line.lane % 16;
                (line.lane - within + within % 8 + 8 * (n / 4), first, 16 * (within / 8) + 4 * (n % 4))
            } else {
                (line.lane, first + n / 8, 4 * (n % 8))
            };
            kept(chunk, c, u64::from(t.cell(lane, column)) >> bit)
        });
        chunks.map(as_depth).collect()
    }

    /// Lines that follow each other and multiply the same part of `b` in one CTA: the first of them, and how many.
    fn runs(&self) -> impl Iterator<Item = (usize, usize)> {
        let rows = at(self.layout.rows);
        (0..self.layout.lines.len()).step_by(rows.max(1)).map(move |first| (first, rows))
    }

    /// Whether a lane is written. `lanes`: masks of those that are not, if there are any.
    fn writes(&self, line: Line, lanes: &[u64]) -> bool {
        lanes.get(4 * line.cta + at(line.lane / 32)).is_none_or(|word| word >> (line.lane % 32) & 1 == 0)
    }

    fn write(&self, t: &mut Tensor, line: Line, values: impl Iterator<Item = u32>) {
        t.row_mut(line.lane, self.d.column, self.count).iter_mut().zip(values).for_each(|(cell, value)| *cell = value);
    }

    /// `adds`: what `d` is multiplied by before the products are added, if it is.
    fn floats(&self, o: &Operands, adds: Option<f32>, lanes: &[u64], reach: &dyn Reach) {
        let (n, stored) = (at(self.count), at(self.stored));
        for (first, count) in self.runs() {
            let lines = &self.layout.lines[first..first + count];
            let mut t = self.held.lock(lines[0].cta);
            let b = &o.b[at(lines[0].part) * n..];
            let of_lines = |of: &[u16]| if of.is_empty() { 0..0 } else { first * stored..(first + count) * stored };
            let (a, depths) = (&o.a[first * stored..][..count * stored], &o.depths[of_lines(&o.depths)]);
            if self.is_in_place(adds) && lines.iter().all(|line| self.writes(*line, lanes)) {
                self.add_in_place([a, b], depths, adds.is_some(), (lines, &mut t), reach);
                continue;
            }
            let mut sums = vec![0; count * n];
            if let Some(scale) = adds {
                lines.iter().zip(sums.chunks_mut(n)).for_each(|(line, sums)| self.start(&t, *line, scale, sums));
            }
            match self.p.scales {
                None => {
                    let (sums, pitch) = (&mut sums, at(self.i.n));
                    reach.add_rows(&mut Rows { a, stored, depths, b, pitch, sums, sums_pitch: n, n, rows: count });
                }
                Some(blocks) => self.add_scaled([a, b], depths, blocks, (lines, &t), &mut sums, reach),
            }
            for (line, sums) in lines.iter().zip(sums.chunks(n)).filter(|(line, _)| self.writes(**line, lanes)) {
                match self.i.d {
                    // What `end` does, without a call for each cell.
                    Accumulator::F32 => {
                        self.write(&mut t, *line, sums.iter().copied().map(canonical));
                    }
                    d @ (Accumulator::F16 | Accumulator::F64 | Accumulator::S32) => {
                        self.write(&mut t, *line, sums.iter().map(|sum| low32(end(d, f32::from_bits(*sum)))));
                    }
                }
            }
        }
    }

    /// Whether the sums are the cells of `d`, as they are. `adds`: as of [`floats`](Plan::floats).
    fn is_in_place(&self, adds: Option<f32>) -> bool {
        self.p.scales.is_none() && self.i.d == Accumulator::F32 && adds.is_none_or(|scale| scale == 1.0)
    }

    /// Adds the products of some lines to their cells, all of which are written.
    fn add_in_place(
        &self,
        [a, b]: [&[u32]; 2],
        depths: &[u16],
        adds: bool,
        (lines, t): (&[Line], &mut Tensor),
        reach: &dyn Reach,
    ) {
        let (n, stored, sums_pitch) = (at(self.count), at(self.stored), at(COLUMNS));
        let mut done = 0;
        // Where only half of the lanes are used, sixteen of them follow each other.
        for lines in lines.chunk_by(|line, next| line.lane + 1 == next.lane) {
            let (rows, Line { lane, .. }) = (lines.len(), lines[0]);
            let elements = done * stored..(done + rows) * stored;
            let depths = if depths.is_empty() { depths } else { &depths[elements.clone()] };
            let (a, pitch) = (&a[elements], at(self.i.n));
            let sums = t.rows_mut(lane..lane + low32(rows as u64), self.d.column, self.count);
            if !adds {
                sums.chunks_mut(sums_pitch).for_each(|row| row[..n].fill(0));
            }
            reach.add_rows(&mut Rows { a, stored, depths, b, pitch, sums, sums_pitch, n, rows });
            done += rows;
        }
    }

    /// What the sums of a line start from.
    fn start(&self, t: &Tensor, line: Line, scale: f32, sums: &mut [u32]) {
        let old = t.row(line.lane, self.d.column, self.count);
        match self.i.d {
            Accumulator::F32 if scale == 1.0 => sums.copy_from_slice(old),
            d @ (Accumulator::F16 | Accumulator::F32 | Accumulator::F64 | Accumulator::S32) => {
                for (sum, bits) in sums.iter_mut().zip(old) {
                    let value = start(d, u64::from(*bits) & d.mask());
                    *sum = if scale == 1.0 { value } else { value * scale }.to_bits();
                }
            }
        }
    }

    /// Adds products of blocks with their scales, which lie in the tensor memory of the lines.
    fn add_scaled(
        &self,
        [a, b]: [&[u32]; 2],
        depths: &[u16],
        blocks: u8,
        (lines, t): (&[Line], &Tensor),
        sums: &mut [u32],
        reach: &dyn Reach,
    ) {
        let (n, stored) = (at(self.count), at(self.stored));
        let size = stored / usize::from(blocks);
        let mut all: Vec<f64> = sums.iter().map(|sum| f64::from(f32::from_bits(*sum))).collect();
        // The scales of the columns lie in each 32 lanes anew.
        let mut of_b: Vec<(u32, Vec<f64>)> = Vec::new();
        for block in 0..usize::from(blocks) {
            let part: Vec<u32> = a.chunks(stored).flat_map(|row| &row[block * size..][..size]).copied().collect();
            let depths: Vec<u16> = if depths.is_empty() {
                (0..part.len()).map(|i| u16::try_from(block * size + i % size).unwrap_or(0)).collect()
            } else {
                depths.chunks(stored).flat_map(|row| &row[block * size..][..size]).copied().collect()
            };
            sums.fill(0);
            let (a, depths, pitch, sums_pitch) = (&part, &depths, at(self.i.n), n);
            let sums_of_block = &mut *sums;
            reach.add_rows(&mut Rows {
                a,
                stored: size,
                depths,
                b,
                pitch,
                sums: sums_of_block,
                sums_pitch,
                n,
                rows: lines.len(),
            });
            of_b.clear();
            for (line, (all, sums)) in lines.iter().zip(all.chunks_mut(n).zip(sums.chunks(n))) {
                let of_a = self.scale(t, 0, line.lane, line.row, block);
                let warp = line.lane / 32;
                if of_b.last().is_none_or(|(of, _)| *of != warp) {
                    of_b.push((warp, (0..self.count).map(|n| self.scale(t, 1, line.lane, n, block)).collect()));
                }
                let Some((_, of_b)) = of_b.last() else { continue };
                for (to, (sum, of_b)) in all.iter_mut().zip(sums.iter().zip(of_b)) {
                    *to += f64::from(f32::from_bits(*sum)) * (of_a * of_b);
                }
            }
        }
        #[expect(clippy::cast_possible_truncation, reason = "this is the rounding of the sum")]
        sums.iter_mut().zip(all).for_each(|(to, sum)| *to = (sum as f32).to_bits());
    }

    /// The scale of a block of a row of `a` or a column of `b`, counted in the CTA or in the line: 32 of them go down the lanes, the next 32 are in the
    /// next column.
    fn scale(&self, t: &Tensor, matrix: usize, lane: u32, n: u32, block: usize) -> f64 {
        let word = t.cell(32 * (lane / 32) + n % 32, self.scales[matrix].column + n / 32);
        let byte = self.i.scale_ids[matrix] + u32::try_from(block).unwrap_or(0);
        scale(self.i.scale, u64::from(word >> (8 * (byte % 4)) & 0xff))
    }

    fn integers(&self, o: &Operands, adds: bool, lanes: &[u64]) {
        let (n, stored) = (at(self.count), at(self.stored));
        let in_order: Vec<u16> = (0..stored).map(|k| u16::try_from(k).unwrap_or(0)).collect();
        for (i, line) in self.layout.lines.iter().enumerate().filter(|(_, line)| self.writes(**line, lanes)) {
            let mut t = self.held.lock(line.cta);
            let old: Vec<i32> = t.row(line.lane, self.d.column, self.count).iter().map(|c| c.cast_signed()).collect();
            let mut sums = vec![0; n];
            let of_line = i * stored..(i + 1) * stored;
            let depths = if o.depths.is_empty() { &in_order } else { &o.depths[of_line.clone()] };
            add_integers(&o.a[of_line], depths, &o.b[at(line.part) * n..], at(self.i.n), &mut sums);
            let sum = |(old, sum): (i32, u32)| match (adds, self.i.saturates) {
                (false, _) => sum,
                (true, false) => old.cast_unsigned().wrapping_add(sum),
                (true, true) => old.saturating_add(sum.cast_signed()).cast_unsigned(),
            };
            self.write(&mut t, *line, old.into_iter().zip(sums).map(sum));
        }
    }
}

#[cfg(test)]
mod tests {
    use handloom_ir::simt::tensor::Kind;

    use super::*;

    fn of(pair: bool, ws: bool, sparse: bool, m: u32) -> Layout {
        let p = TensorProduct {
            kind: Kind::F16,
            pair,
            ws,
            a_in_tensor: false,
            a_shift: false,
            sparse,
            scales: None,
            masked: false,
        };
        layout(p, m, 0)
    }

    /// Each row and part is in one lane.
    #[test]
    fn lines_cover_the_matrix() {
        for (pair, ws, sparse, m, parts) in [
            (false, false, false, 128, 1),
            (false, false, false, 64, 1),
            (false, true, false, 128, 1),
            (false, true, false, 64, 2),
            (false, true, true, 32, 4),
            (true, false, false, 256, 1),
            (true, false, false, 128, 2),
            (true, false, true, 128, 1),
        ] {
            let l = of(pair, ws, sparse, m);
            assert_eq!(l.parts, parts);
            let mut places: Vec<(usize, u32, u32)> = l.lines.iter().map(|l| (l.cta, l.row, l.part)).collect();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), at(m * parts));
            let mut lanes: Vec<(usize, u32)> = l.lines.iter().map(|l| (l.cta, l.lane)).collect();
            lanes.sort_unstable();
            lanes.dedup();
            assert_eq!(lanes.len(), places.len());
            assert!(lanes.iter().all(|(_, lane)| *lane < LANES));
        }
    }
}
