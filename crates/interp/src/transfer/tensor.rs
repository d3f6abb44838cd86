//! Transfers of boxes of tensors. [`handloom_ir::tensor_map`] says which elements a box has and where they lie.
//!
//! Choice: elements of `.tf32` are rounded to nearest when they are loaded. What is told to a barrier counts the bytes of elements, filled ones among
//! them, without padding; padding is left as it was. A store that begins at a negative coordinate is refused.

use handloom_audit::Proxy;
use handloom_ir::simt::{Mode, TensorTransfer, Way};
use handloom_ir::tensor_map::{
    ALIGN, Atomicity, Boxes as Lines, Coordinates, ElementType, Fill, Line, OOB_NAN, SIZE, Swizzle, TensorMap, Wrong,
};
use handloom_ir::trap::{AccessKind, TrapKind};
use handloom_ir::types::{AtomOp, CLUSTER_STRIDE, StateSpace};

use super::reach::*;
use crate::env::CtaEnv;
use crate::numbers::low32;

/// What the address of a box in shared memory is a multiple of.
const SHARED_ALIGN: u32 = 128;

/// A box that may be moved.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Boxes {
    map: TensorMap,
    lines: Lines,
    /// Generic addresses of the box in shared memory, each with its address as the swizzle counts it.
    shared: Vec<(u64, u64)>,
    way: Way,
}

fn wrong(e: Wrong) -> Fault {
    Fault::rule(format!("the tensor map is not right: {e}"))
}

/// The map at an address.
fn read_map(addr: u64, reach: &mut dyn Reach) -> Result<TensorMap, Fault> {
    let part = Part { kind: AccessKind::Read, space: StateSpace::Generic, addr, bytes: SIZE as u32, align: ALIGN };
    let at = find(reach, part)?;
    if !matches!(reach.space(at), StateSpace::Global | StateSpace::Const | StateSpace::ParamEntry) {
        return Err(Fault { kind: TrapKind::BadSpace, part: Some(part), detail: String::new(), at: None });
    }
    let mut bytes = [0; SIZE];
    reach.through(Proxy::TensorMap);
    reach.read(at, &mut bytes);
    reach.through(Proxy::Generic);
    TensorMap::decode(&bytes).map_err(wrong)
}

/// Checks a transfer. Returns the box, if it is to be moved, and the barriers with the bytes that come.
pub(super) fn prepare(t: TensorTransfer, src: &[u64], reach: &mut dyn Reach) -> Result<(Option<Boxes>, Told), Fault> {
    let mut src = src.iter().copied();
    let mut next = || src.next().unwrap_or(0);
    let box_at = if t.way == Way::Prefetch { 0 } else { next() };
    let map_at = next();
    let at: Vec<i64> = (0..t.coordinates()).map(|_| signed(next())).collect();
    let told = if matches!(t.way, Way::Load { .. }) { next() } else { 0 };
    let offsets: Vec<i64> = (0..t.offsets()).map(|_| i64::from(low32(next()))).collect();
    let mask = if matches!(t.way, Way::Load { multicast: true, .. }) { next() } else { 0 };

    let map = read_map(map_at, reach)?;
    if map.rank != usize::from(t.dims) {
        return Err(wrong(Wrong(format!("it has {} dimensions, the instruction {}", map.rank, t.dims))));
    }
    let coordinates = match t.mode {
        Mode::Tile => Coordinates::Tile(&at),
        Mode::Rows4 => Coordinates::Rows4(&at),
        Mode::Im2col => Coordinates::Im2col(&at, &offsets),
        Mode::Im2colWide { is_128 } => Coordinates::Wide {
            at: &at,
            halo: offsets.first().copied().unwrap_or(0),
            offset: offsets.get(1).copied().unwrap_or(0),
            is_128,
        },
    };
    let lines = map.boxes(coordinates).map_err(wrong)?;
    check_way(t, &map, &at)?;
    let (shared, barriers) = match t.way {
        Way::Load { to, multicast, pair } => {
            let targets: Vec<Option<u32>> = if multicast { ranks(mask).map(Some).collect() } else { vec![None] };
            let told_rank = |r: u32, env: &CtaEnv| {
                let given = (told / CLUSTER_STRIDE).checked_sub(1).and_then(|r| u32::try_from(r).ok());
                if pair { r & !1 | given.unwrap_or_else(|| env.cluster_rank()) & 1 } else { r }
            };
            let (mut places, mut barriers) = (Vec::new(), Vec::new());
            for target in targets {
                let (addr, told) = match target {
                    None => (box_at, told),
                    Some(r) => (in_cta(r, box_at), in_cta(told_rank(r, reach.env()), told)),
                };
                places.push((find_box(reach, &lines, AccessKind::Write, to, addr)?, addr % CLUSTER_STRIDE));
                barriers.push((barrier(reach, to, told)?, lines.bytes()));
            }
            (places, barriers)
        }
        Way::Store(_) => {
            let at = find_box(reach, &lines, AccessKind::Read, StateSpace::Shared, box_at)?;
            (vec![(at, box_at)], vec![])
        }
        Way::Prefetch => (vec![], vec![]),
    };
    check_lines(t.way, &lines, reach)?;
    let boxes = (t.way != Way::Prefetch).then_some(Boxes { map, lines, shared, way: t.way });
    Ok((boxes, barriers))
}

/// The rules of a direction.
fn check_way(t: TensorTransfer, map: &TensorMap, at: &[i64]) -> Result<(), Fault> {
    let is_flipped = map.swizzle == Swizzle::Bytes128 && map.atomicity == Atomicity::Bytes32Flip8;
    match t.way {
        Way::Load { .. } | Way::Prefetch => Ok(()),
        Way::Store(op) => {
            if is_flipped {
                return Err(wrong(Wrong("a swizzle with a flip of 8 bytes is for loads".into())));
            }
            if map.element == ElementType::B4x16P64 {
                return Err(wrong(Wrong("elements of `.b4x16_p64` are only loaded".into())));
            }
            if let Some(n) = at.iter().find(|n| **n < 0) {
                return Err(Fault::rule(format!("a store to a tensor begins at the coordinate {n}")));
            }
            match op {
                Some(op) if !map.element.reduced_as().is_some_and(|ty| reduces(op, ty)) => {
                    let name = format!("{op:?}").to_lowercase();
                    Err(wrong(Wrong(format!("there is no `.{name}` of its elements, {:?}", map.element))))
                }
                Some(_) | None => Ok(()),
            }
        }
    }
}

/// The whole box in shared memory.
fn find_box(
    reach: &mut dyn Reach,
    lines: &Lines,
    kind: AccessKind,
    space: StateSpace,
    addr: u64,
) -> Result<u64, Fault> {
    let bytes = u32::try_from(lines.shared_bytes()).unwrap_or(u32::MAX);
    find(reach, Part { kind, space, addr, bytes, align: SHARED_ALIGN })
}

/// Bytes from the first to the last unit of a line that lies in the tensor.
fn extent(lines: &Lines, line: &Line) -> u64 {
    u64::from(line.count - 1) * u64::from(lines.step) + u64::from(lines.unit)
}

/// Whether what lies in the tensor may be accessed: all of it at once, where one allocation holds it, else line by line.
fn check_lines(way: Way, lines: &Lines, reach: &mut dyn Reach) -> Result<(), Fault> {
    let kind = match way {
        Way::Load { .. } | Way::Prefetch => AccessKind::Read,
        Way::Store(None) => AccessKind::Write,
        Way::Store(Some(_)) => AccessKind::Atomic,
    };
    let mut inside = lines.lines.iter().filter(|l| l.count > 0);
    let Some(first) = inside.next() else { return Ok(()) };
    let ends = |l: &Line| (l.at, l.at.saturating_add(extent(lines, l)));
    let (low, high) = inside.map(ends).fold(ends(first), |(a, b), (c, d)| (a.min(c), b.max(d)));
    let part = |addr: u64, bytes: u64| {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        Part { kind, space: StateSpace::Global, addr, bytes, align: 1 }
    };
    if u32::try_from(high - low).is_ok() && reach.locate(&part(low, high - low)).is_ok() {
        return Ok(());
    }
    for line in lines.lines.iter().filter(|l| l.count > 0) {
        find(reach, part(line.at, extent(lines, line)))?;
    }
    Ok(())
}

/// `a * b` as an index.
fn index(a: u32, b: u32) -> usize {
    usize::try_from(u64::from(a) * u64::from(b)).unwrap_or(usize::MAX)
}

impl Boxes {
    /// Generic addresses of its places in shared memory.
    pub(super) fn in_shared(&self) -> Vec<u64> {
        self.shared.iter().map(|(at, _)| *at).collect()
    }

    /// Its size there.
    pub(super) fn shared_bytes(&self) -> u64 {
        self.lines.shared_bytes()
    }

    pub(super) fn is_load(&self) -> bool {
        matches!(self.way, Way::Load { .. })
    }

    /// Moves it from one side to the other.
    pub(super) fn perform(&self, reach: &mut dyn Reach) {
        match self.way {
            Way::Load { .. } => self.load(reach),
            Way::Store(_) => {
                let lines = self.read_box(reach);
                self.write_box(reach, &lines);
            }
            Way::Prefetch => {}
        }
    }

    /// Lines with their distances in shared memory.
    fn each_line(&self) -> impl Iterator<Item = (u64, &Line)> {
        (0_u64..).map(|i| i * u64::from(self.lines.pitch)).zip(&self.lines.lines)
    }

    fn load(&self, reach: &mut dyn Reach) {
        let mut line_bytes = vec![0; index(self.lines.units, self.lines.unit)];
        for (offset, line) in self.each_line() {
            self.read_line(reach, line, &mut line_bytes);
            for (at, named) in &self.shared {
                self.each_chunk(*named + offset, |to, bytes| {
                    reach.write(at + (to - named), &line_bytes[bytes.clone()]);
                    self.each_run(line, |from, run| {
                        each_common(&run, &bytes, |i, n| {
                            reach.copied(
                                from + (i - run.start) as u64,
                                at + (to - named) + (i - bytes.start) as u64,
                                n,
                            );
                        });
                    });
                });
            }
        }
    }

    /// What a store has of the box, as lines of the tensor.
    pub(super) fn read_box(&self, reach: &mut dyn Reach) -> Vec<Vec<u8>> {
        let Some((at, named)) = self.shared.first().copied() else { return vec![] };
        let line = |(offset, line): (u64, &Line)| {
            let mut packed = vec![0; index(self.lines.units, self.lines.unit)];
            if line.count > 0 {
                let mut from = vec![0; index(self.lines.units, self.lines.shared_unit)];
                self.each_shared_chunk(named + offset, |place, bytes| {
                    reach.read(at + (place - named), &mut from[bytes]);
                });
                self.pack(&from, &mut packed);
            }
            packed
        };
        self.each_line().map(line).collect()
    }

    /// Stores lines, or reduces what lies there.
    pub(super) fn write_box(&self, reach: &mut dyn Reach, lines: &[Vec<u8>]) {
        let (Way::Store(op), Some((at, named))) = (self.way, self.shared.first().copied()) else { return };
        for ((offset, line), bytes) in self.each_line().zip(lines).filter(|((_, line), _)| line.count > 0) {
            self.write_line(reach, line, bytes, op);
            if op.is_none() && self.map.element != ElementType::B6x16 {
                self.each_shared_chunk(named + offset, |place, bytes| {
                    self.each_run(line, |to, run| {
                        each_common(&run, &bytes, |i, n| {
                            reach.copied(
                                at + (place - named) + (i - bytes.start) as u64,
                                to + (i - run.start) as u64,
                                n,
                            );
                        });
                    });
                });
            }
        }
    }

    /// Where units of the tensor lie: address, and range of the line.
    fn each_run(&self, line: &Line, mut run: impl FnMut(u64, std::ops::Range<usize>)) {
        let l = &self.lines;
        if line.count == 0 {
            return;
        }
        if l.step == l.unit {
            return run(line.at, index(line.first, l.unit)..index(line.first + line.count, l.unit));
        }
        for k in 0..line.count {
            let at = line.at + u64::from(k) * u64::from(l.step);
            run(at, index(line.first + k, l.unit)..index(line.first + k + 1, l.unit));
        }
    }

    fn read_line(&self, reach: &mut dyn Reach, line: &Line, to: &mut [u8]) {
        match self.map.fill {
            Fill::Zero => to.fill(0),
            Fill::Nan => to.chunks_mut(2).for_each(|half| half.copy_from_slice(&OOB_NAN.to_le_bytes()[..half.len()])),
        }
        let is_tf32 = matches!(self.map.element, ElementType::TF32 | ElementType::TF32Ftz);
        self.each_run(line, |at, range| {
            reach.read(at, &mut to[range.clone()]);
            if is_tf32 {
                to[range].as_chunks_mut::<4>().0.iter_mut().for_each(|word| *word = to_tf32(*word));
            }
        });
    }

    fn write_line(&self, reach: &mut dyn Reach, line: &Line, from: &[u8], op: Option<AtomOp>) {
        let reduce = op.zip(self.map.element.reduced_as());
        self.each_run(line, |at, range| put(reach, at, &from[range], u16::MAX, reduce));
    }

    /// Pieces of a line that keep together in shared memory: where each goes, and its range of the line as it lies in global memory.
    fn each_chunk(&self, line_at: u64, mut chunk: impl FnMut(u64, std::ops::Range<usize>)) {
        let (unit, shared) = (self.lines.unit, self.lines.shared_unit);
        if unit == shared {
            return self.each_shared_chunk(line_at, chunk);
        }
        // A unit with padding is a chunk of 16 bytes.
        for i in 0..self.lines.units {
            let at = line_at + u64::from(i) * u64::from(shared);
            chunk(self.map.swizzle.place(self.map.atomicity, at), index(i, unit)..index(i + 1, unit));
        }
    }

    /// The same, with its range as it lies in shared memory.
    fn each_shared_chunk(&self, line_at: u64, mut chunk: impl FnMut(u64, std::ops::Range<usize>)) {
        let bytes = index(self.lines.units, self.lines.shared_unit);
        if self.map.swizzle == Swizzle::None {
            return chunk(line_at, 0..bytes);
        }
        let size = if self.map.atomicity == Atomicity::Bytes32Flip8 { 8 } else { 16 };
        for (start, at) in (0..bytes).step_by(size).zip((line_at..).step_by(size)) {
            chunk(self.map.swizzle.place(self.map.atomicity, at), start..start + size);
        }
    }

    /// Elements as they lie in shared memory, as they lie in global memory.
    fn pack(&self, from: &[u8], to: &mut [u8]) {
        if self.map.element != ElementType::B6x16 {
            return to.copy_from_slice(from);
        }
        for (bytes, packed) in from.as_chunks::<16>().0.iter().zip(to.as_chunks_mut::<12>().0) {
            let bits = bytes.iter().rev().fold(0_u128, |all, byte| all << 6 | u128::from(byte & 0x3f));
            packed.copy_from_slice(&bits.to_le_bytes()[..12]);
        }
    }
}

/// The bytes that two ranges have in common: the first one, and how many.
fn each_common(a: &std::ops::Range<usize>, b: &std::ops::Range<usize>, each: impl FnOnce(usize, u64)) {
    let (start, end) = (a.start.max(b.start), a.end.min(b.end));
    if start < end {
        each(start, (end - start) as u64);
    }
}

/// An `.f32` with the fraction of `.tf32`, to nearest.
fn to_tf32(word: [u8; 4]) -> [u8; 4] {
    let bits = u32::from_le_bytes(word);
    let is_number = bits & 0x7f80_0000 != 0x7f80_0000;
    let rounded = if is_number { bits.wrapping_add(0xfff + (bits >> 13 & 1)) } else { bits };
    let is_nan = bits & 0x7fff_ffff > 0x7f80_0000;
    let kept = if is_nan { 0x7fff_ffff } else { rounded };
    (kept & !0x1fff).to_le_bytes()
}
