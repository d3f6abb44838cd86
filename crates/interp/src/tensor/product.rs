//! Products of matrices into tensor memory.
//!
//! A *line* is a part of a row of `d` that lies in one lane of tensor memory. What a lane computes it computes of the row of `a`, the metadata and the
//! scales that its own lane or its own 32 lanes have, where these are in tensor memory: matrices that all lanes need are there several times.
//!
//! Choice: the manual has the layouts in figures, which its text does not tell; this is the order of public libraries.
//!
//! # PTX ISA
//! Data Path Layout Organization; Block Scaling for tcgen05.mma; Sparse Matrices.

use std::borrow::Cow;
use std::sync::OnceLock;

use handloom_ir::num::matrix::{end, float_element, integer_element, kept, scale, start};
use handloom_ir::num::whole::add_integers;
use handloom_ir::simt::tensor::{LANES, TensorProduct};
use handloom_ir::simt::tile::{Field, Major, Tile};
use handloom_ir::simt::{Accumulator, Element};
use handloom_ir::trap::AccessKind;
use handloom_ir::types::StateSpace;

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

/// Elements of `a` or `b`, as products take them.
trait Number: Copy + Default + 'static {
    fn of(e: Element, bits: u64) -> Self;
    fn negated(self) -> Self;

    /// All numbers of a format by their bits, where they are many and each takes time.
    fn all(_: Element) -> Option<&'static [Self]> {
        None
    }
}

/// The numbers of `.f16`, made when they are first asked for.
static HALVES: OnceLock<Vec<f32>> = OnceLock::new();

impl Number for f32 {
    fn of(e: Element, bits: u64) -> f32 {
        float_element(e, bits)
    }

    fn negated(self) -> f32 {
        -self
    }

    fn all(e: Element) -> Option<&'static [f32]> {
        (e == Element::F16).then(|| {
            HALVES.get_or_init(|| (0..1 << 16).map(|bits| float_element(Element::F16, bits)).collect()).as_slice()
        })
    }
}

impl Number for i32 {
    fn of(e: Element, bits: u64) -> i32 {
        integer_element(e, bits)
    }

    fn negated(self) -> i32 {
        -self
    }
}

/// Most elements in sixteen bytes.
const MAX_PER_UNIT: usize = 32;

/// How bits become elements.
struct Decoder<T: Number> {
    e: Element,
    negates: bool,
    /// By the bits, where these are few or the numbers are known.
    table: Cow<'static, [T]>,
}

impl<T: Number> Decoder<T> {
    fn new(e: Element, negates: bool) -> Decoder<T> {
        let n = if e.bits() <= 8 { 1_u64 << e.bits() } else { 0 };
        let table = match T::all(e) {
            Some(all) => Cow::Borrowed(all),
            None => (0..n).map(|bits| T::of(e, bits)).collect(),
        };
        Decoder { e, negates, table }
    }

    fn decode(&self, bits: u64) -> T {
        let known = usize::try_from(bits).ok().and_then(|i| self.table.get(i));
        let value = known.copied().unwrap_or_else(|| T::of(self.e, bits));
        if self.negates { value.negated() } else { value }
    }

    /// The elements in sixteen bytes of shared memory: as many as [`per_unit`](Decoder::per_unit) says.
    ///
    /// # PTX ISA
    /// Packing formats of elements in Tensor and Shared memory.
    fn unit(&self, bytes: [u8; 16]) -> [T; MAX_PER_UNIT] {
        let mut out = [T::default(); MAX_PER_UNIT];
        if self.e.bits() == 16 {
            for (to, pair) in out.iter_mut().zip(bytes.chunks_exact(2)) {
                *to = self.decode(u64::from(u16::from_le_bytes([pair[0], pair[1]])));
            }
            return out;
        }
        let all = u128::from_le_bytes(bytes);
        // Smaller elements lie next to each other, sixteen of them with padding behind; in registers and tensor memory each has a byte.
        let (size, left) = match small_bits(self.e) {
            Some(4) => (4, 2),
            Some(bits) => (bits, 0),
            None => (self.e.bits(), 0),
        };
        let mask = (1_u128 << size) - 1;
        for (i, to) in (0..self.per_unit()).zip(&mut out) {
            *to = self.decode(u64::try_from(all >> (size * i) & mask).unwrap_or(0) << left);
        }
        out
    }

    fn per_unit(&self) -> u32 {
        if small_bits(self.e).is_some() { 16 } else { 128 / self.e.bits() }
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

    /// Sixteen bytes of a line.
    fn unit(&self, line: u32, unit: u32, reach: &mut dyn Reach) -> Result<[u8; 16], Fault> {
        let offset = self.tile.address(line, 16 * unit);
        let mut bytes = [0; 16];
        let place = if offset + 16 <= self.size {
            self.base + u64::from(offset)
        } else {
            let (space, addr) = match self.rank {
                None => (StateSpace::Shared, u64::from(offset)),
                Some(rank) => (StateSpace::SharedCluster, in_cta(rank, u64::from(offset))),
            };
            find(reach, Part { kind: AccessKind::Read, space, addr, bytes: 16, align: 16 })?
        };
        reach.read(place, &mut bytes);
        Ok(bytes)
    }

    /// Calls `put` for the elements of rows or columns from `first` on, some that follow each other at a time: with the row or column and the depth of
    /// the first of them. They go along the depth, or along rows or columns, as the matrix lies.
    fn each<T: Number>(
        &self,
        decoder: &Decoder<T>,
        (first, count): (u32, u32),
        depth: u32,
        reach: &mut dyn Reach,
        put: &mut dyn FnMut(u32, u32, &[T]),
    ) -> Result<(), Fault> {
        let per = decoder.per_unit();
        match self.tile.major {
            Major::K => {
                for mn in 0..count {
                    for unit in 0..depth.div_ceil(per) {
                        let values = decoder.unit(self.unit(first + mn, unit, reach)?);
                        put(mn, unit * per, &values[..at(per.min(depth - unit * per))]);
                    }
                }
            }
            Major::Mn => {
                let units = first / per..(first + count).div_ceil(per);
                for k in 0..depth {
                    for unit in units.clone() {
                        let values = decoder.unit(self.unit(k, unit, reach)?);
                        let from = first.max(unit * per);
                        let to = (first + count).min((unit + 1) * per);
                        put(from - first, k, &values[at(from - unit * per)..at(to - unit * per)]);
                    }
                }
            }
        }
        Ok(())
    }
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

/// Rows of `a` by line and all of `b` by parts of its columns.
struct Operands<T> {
    a: Vec<Vec<T>>,
    /// For each part, by depth and column.
    b: Vec<Vec<T>>,
    depths: Vec<Vec<u16>>,
}

pub(super) fn product(p: TensorProduct, src: &[u64], held: &Held, reach: &mut dyn Reach) -> Result<(), Fault> {
    let s = p.sources(src);
    let i = Instruction::decode(p, low32(s.instruction))?;
    let d = Address::of(s.d);
    let layout = layout(p, i.m, d.lane);
    let lanes = if layout.is_half { [0, 16] } else { [0, 0] };
    let a = p.a_in_tensor.then(|| Address::of(s.a));
    let metadata = Address::of(s.metadata);
    let scales = s.scales.map(Address::of);
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
    if i.d == Accumulator::S32 {
        let o = plan.operands(s.a, s.b, &zeros, reach)?;
        plan.integers(&o, adds, s.lanes);
    } else {
        let o = plan.operands(s.a, s.b, &zeros, reach)?;
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

    fn operands<T: Number>(&self, a: u64, b: u64, zeros: &Zeros, reach: &mut dyn Reach) -> Result<Operands<T>, Fault> {
        let i = &self.i;
        let n_ctas = 1 + u32::from(self.p.pair);
        let rank = |cta: u32| self.p.pair.then(|| self.held.rank(cta));
        let decoder = Decoder::new(i.elements[0], i.negates[0]);
        let a = if let Some(address) = self.a {
            self.layout.lines.iter().map(|line| self.row_of_a(*line, address, &decoder)).collect()
        } else {
            let (rows, stored) = (self.layout.rows, at(self.stored));
            let mut of_cta = Vec::new();
            for cta in 0..n_ctas {
                let mut all = vec![T::default(); at(rows) * stored];
                let matrix = Shared::new("a", a, i.majors[0], rank(cta), reach)?;
                let by_depth = matrix.tile.major == Major::K;
                matrix.each(&decoder, (0, rows), self.stored, reach, &mut |row, k, values| {
                    let first = at(row) * stored + at(k);
                    if by_depth {
                        all[first..first + values.len()].copy_from_slice(values);
                    } else {
                        all[first..].iter_mut().step_by(stored).zip(values).for_each(|(to, v)| *to = *v);
                    }
                })?;
                of_cta.push(all);
            }
            self.layout.lines.iter().map(|l| of_cta[l.cta][at(l.row) * stored..][..stored].to_vec()).collect()
        };
        let decoder = Decoder::new(i.elements[1], i.negates[1]);
        let count = at(self.count);
        let mut parts = vec![vec![T::default(); at(i.k) * count]; at(self.layout.parts)];
        let n_local = i.n / n_ctas;
        for cta in 0..n_ctas {
            let matrix = Shared::new("b", b, i.majors[1], rank(cta), reach)?;
            let by_depth = matrix.tile.major == Major::K;
            matrix.each(&decoder, (zeros.shift, n_local), i.k, reach, &mut |n, k, values| {
                let first = at(cta * n_local + n);
                if by_depth {
                    if !zeros.mask[first] {
                        let part = &mut parts[first / count][at(k) * count + first % count..];
                        part.iter_mut().step_by(count).zip(values).for_each(|(to, v)| *to = *v);
                    }
                    return;
                }
                for (n, v) in (first..).zip(values).filter(|(n, _)| !zeros.mask[*n]) {
                    parts[n / count][at(k) * count + n % count] = *v;
                }
            })?;
        }
        let depths = self.layout.lines.iter().map(|line| self.depths(*line)).collect();
        Ok(Operands { a, b: parts, depths })
    }

    /// The elements of `a` that the lane of a line has.
    fn row_of_a<T: Number>(&self, line: Line, address: Address, decoder: &Decoder<T>) -> Vec<T> {
        let bits = self.i.elements[0].bits();
        let per = 32 / bits;
        // Choice: with a shift a lane has the row of the next one, and the last lane its own.
        let lane = if self.p.a_shift { (line.lane + 1).min(LANES - 1) } else { line.lane };
        let t = self.held.lock(line.cta);
        let mask = u64::MAX >> (64 - bits);
        let element = |k: u32| u64::from(t.cell(lane, address.column + k / per)) >> (k % per * bits) & mask;
        (0..self.stored).map(|k| decoder.decode(element(k))).collect()
    }

    /// The depths of the elements of a row of `a` that are there.
    fn depths(&self, line: Line) -> Vec<u16> {
        let as_depth = |k: usize| u16::try_from(k).unwrap_or(0);
        if !self.p.sparse {
            return (0..at(self.i.k)).map(as_depth).collect();
        }
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

    /// Whether a lane is written. `lanes`: masks of those that are not, if there are any.
    fn writes(&self, line: Line, lanes: &[u64]) -> bool {
        lanes.get(4 * line.cta + at(line.lane / 32)).is_none_or(|word| word >> (line.lane % 32) & 1 == 0)
    }

    fn write(&self, t: &mut Tensor, line: Line, values: impl Iterator<Item = u32>) {
        t.row_mut(line.lane, self.d.column, self.count).iter_mut().zip(values).for_each(|(cell, value)| *cell = value);
    }

    /// `adds`: what `d` is multiplied by before the products are added, if it is.
    fn floats(&self, o: &Operands<f32>, adds: Option<f32>, lanes: &[u64], reach: &dyn Reach) {
        let i = &self.i;
        let mut sums: Vec<f32> = Vec::new();
        for (n, line) in self.layout.lines.iter().enumerate().filter(|(_, line)| self.writes(**line, lanes)) {
            let mut t = self.held.lock(line.cta);
            let (a, depths, b) = (&o.a[n], &o.depths[n], &o.b[at(line.part)]);
            let old = t.row(line.lane, self.d.column, self.count);
            let scaled = |value: f32, scale: f32| if scale == 1.0 { value } else { value * scale };
            sums.clear();
            match (adds, i.d) {
                (None, _) => sums.resize(old.len(), 0.0),
                (Some(scale), Accumulator::F32) => {
                    sums.extend(old.iter().map(|bits| scaled(f32::from_bits(*bits), scale)))
                }
                (Some(scale), d @ (Accumulator::F16 | Accumulator::F64 | Accumulator::S32)) => {
                    sums.extend(old.iter().map(|bits| scaled(start(d, u64::from(*bits) & d.mask()), scale)))
                }
            }
            match self.p.scales {
                None => reach.add_floats(a, depths, b, &mut sums),
                Some(blocks) => {
                    let size = a.len() / usize::from(blocks);
                    let mut all: Vec<f64> = sums.iter().map(|sum| f64::from(*sum)).collect();
                    for block in 0..usize::from(blocks) {
                        let mut sums = vec![0.0; sums.len()];
                        let part = block * size..(block + 1) * size;
                        reach.add_floats(&a[part.clone()], &depths[part], b, &mut sums);
                        let of_a = self.scale(&t, 0, line.lane, line.row, block);
                        for (column, (to, sum)) in (0..).zip(all.iter_mut().zip(sums)) {
                            *to += f64::from(sum) * (of_a * self.scale(&t, 1, line.lane, column, block));
                        }
                    }
                    #[expect(clippy::cast_possible_truncation, reason = "this is the rounding of the sum")]
                    sums.iter_mut().zip(all).for_each(|(to, sum)| *to = sum as f32);
                }
            }
            match i.d {
                // What `end` does, without a call for each cell.
                Accumulator::F32 => {
                    self.write(&mut t, *line, sums.iter().map(|s| if s.is_nan() { 0x7fff_ffff } else { s.to_bits() }))
                }
                d @ (Accumulator::F16 | Accumulator::F64 | Accumulator::S32) => {
                    self.write(&mut t, *line, sums.iter().map(|sum| low32(end(d, *sum))))
                }
            }
        }
    }

    /// The scale of a block of a row of `a` or a column of `b`, counted in the CTA or in the line: 32 of them go down the lanes, the next 32 are in the
    /// next column.
    fn scale(&self, t: &Tensor, matrix: usize, lane: u32, n: u32, block: usize) -> f64 {
        let word = t.cell(32 * (lane / 32) + n % 32, self.scales[matrix].column + n / 32);
        let byte = self.i.scale_ids[matrix] + u32::try_from(block).unwrap_or(0);
        scale(self.i.scale, u64::from(word >> (8 * (byte % 4)) & 0xff))
    }

    fn integers(&self, o: &Operands<i32>, adds: bool, lanes: &[u64]) {
        for (n, line) in self.layout.lines.iter().enumerate().filter(|(_, line)| self.writes(**line, lanes)) {
            let mut t = self.held.lock(line.cta);
            let old: Vec<i32> = t.row(line.lane, self.d.column, self.count).iter().map(|c| c.cast_signed()).collect();
            let mut sums = vec![0; old.len()];
            add_integers(&o.a[n], &o.depths[n], &o.b[at(line.part)], &mut sums);
            let sum = |(old, sum): (i32, i32)| match (adds, self.i.saturates) {
                (false, _) => sum,
                (true, false) => old.wrapping_add(sum),
                (true, true) => old.saturating_add(sum),
            };
            self.write(&mut t, *line, old.into_iter().zip(sums).map(sum).map(i32::cast_unsigned));
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
