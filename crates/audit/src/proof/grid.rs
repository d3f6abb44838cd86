//! Global memory of a launch whose blocks are all alike: what a block accesses lies at even distances from what the others do.

use std::collections::{BTreeMap, HashMap};

use handloom_ir::simt::Function;

use super::Part;
use super::area::{Area, Areas, is_plain, joined, number};
use super::mask::Mask;
use super::own::{Anywhere, Atomics, Cells, Kind, Now};
use super::value::{Known, LOCAL, LOW, PARTS, SHARED, Shape};

/// Most accesses that are kept.
const MOST_TOUCHES: usize = 1 << 14;

/// Most ranges that are compared.
const MOST_COMPARED: u64 = 1 << 24;

/// A place that is not known might be any other.
const NOT_KNOWN: &str = "places in global memory are not known";

/// How threads access memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct How {
    pub(super) kind: Kind,
    /// Bytes of each thread.
    pub(super) bytes: u8,
    /// Barriers that the block has passed, and 1.
    pub(super) stretch: u32,
    /// The instruction, by block of code.
    pub(super) inst: (usize, usize),
    /// They all do it.
    pub(super) is_sure: bool,
}

/// An access of threads to global memory.
#[derive(Clone, Debug)]
struct Touch {
    at: Known,
    threads: Mask,
    how: How,
    /// The lowest address in any block, and the end.
    range: (i128, i128),
    /// The blocks that do it.
    blocks: Part,
}

/// What is read at places that memory decides, so that nothing is known of them: if nothing else is changed at such places, what they must lie apart from is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Apart {
    /// There are such reads.
    pub(super) reads: bool,
    /// What memory holds has a part in where something is changed.
    pub(super) changes_of_memory: bool,
}

/// All accesses to global memory.
#[derive(Debug, Default)]
pub(super) struct Global {
    touches: Vec<Touch>,
    /// What is done at places that nobody knows, any of which may be any other.
    anywhere: Anywhere,
    pub(super) apart: Apart,
    /// What atomics do.
    pub(super) atomics: Atomics,
    /// What is left depends on the order of the threads of a block, by what is done in their own shared memory, too.
    pub(super) order_decides: bool,
    /// Blocks may give way to others before they end.
    pub(super) gives_way: bool,
    /// Constants are read of which it is not known which.
    reads_constants: bool,
}

impl Global {
    /// Threads access places. `at` holds for all of them, if they are known.
    pub(super) fn touch(
        &mut self,
        shape: &Shape,
        at: Option<Known>,
        threads: Mask,
        how: How,
    ) -> Result<(), &'static str> {
        if !self.anywhere.access(at.is_some(), how.kind, how.bytes) {
            return Err(NOT_KNOWN);
        }
        match at {
            Some(at) => self.touch_known(shape, at, threads, how),
            None => Ok(()),
        }
    }

    /// Threads read constants: nothing of the launch is in their way, but copies of other streams may be.
    pub(super) fn read_constant(&mut self, shape: &Shape, at: Option<Known>, threads: Mask, how: How) {
        let at = at.filter(|at| at.by[LOCAL] == 0 && at.by[LOW] == 0 && at.by[SHARED] == 0);
        // They leave room for accesses that matter more.
        let at = at.filter(|_| self.touches.len() < MOST_TOUCHES / 2);
        let is_known = at.is_some_and(|at| {
            let how = How { is_sure: how.is_sure && at.span == 0, ..how };
            self.touch_known(shape, at, threads, how).is_ok()
        });
        self.reads_constants |= !is_known;
    }

    fn touch_known(&mut self, shape: &Shape, at: Known, threads: Mask, how: How) -> Result<(), &'static str> {
        let (mut first, mut last) = (u64::MAX, 0);
        threads.iter().for_each(|t| (first, last) = (first.min(at.lanes.of(t)), last.max(at.lanes.of(t))));
        if first > last {
            return Ok(());
        }
        let (low, high) = shape.reach(&at.by);
        let range = (i128::from(first) + low, i128::from(last) + high + i128::from(at.span) + i128::from(how.bytes));
        if range.0 < 0 || range.1 > i128::from(u64::MAX) {
            return Err("addresses wrap");
        }
        // What is read again and again is one range.
        if how.kind == Kind::Read
            && let Some(known) = self.touches.iter().rev().take(8).find(|t| t.how.kind == how.kind && t.range == range)
            && known.at == at
            && known.how.stretch == how.stretch
            && (known.how.is_sure || !how.is_sure)
            && threads.without(&known.threads).is_empty()
        {
            return Ok(());
        }
        if self.touches.len() == MOST_TOUCHES {
            return Err("there are too many accesses");
        }
        self.touches.push(Touch { at, threads, how, range, blocks: shape.blocks });
        Ok(())
    }

    /// What is surely touched, each statement for itself.
    pub(super) fn areas(&self, code: &Function, nctaid: [u32; 3]) -> Areas {
        let mut by_place: BTreeMap<_, (&Touch, Vec<(i128, i128)>)> = BTreeMap::new();
        let (sure, unsure): (Vec<&Touch>, Vec<&Touch>) = self.touches.iter().partition(|t| t.how.is_sure);
        for t in sure {
            let mut threads: Vec<(i128, i128)> = Vec::new();
            for from in t.threads.iter().map(|thread| i128::from(t.at.lanes.of(thread))) {
                let end = from + i128::from(t.how.bytes);
                match threads.last_mut() {
                    Some(last) if last.1 == from => last.1 = end,
                    _ => threads.push((from, end)),
                }
            }
            let all = &mut by_place.entry((t.how.inst, t.blocks, t.at.by)).or_insert((t, Vec::new())).1;
            all.extend(joined(threads));
        }
        let is_anywhere = self.anywhere.has_unknown();
        let mut is_all = unsure.is_empty() && !self.apart.reads && !is_anywhere && !self.reads_constants;
        let mut list = Vec::new();
        let mut others: Vec<(i128, i128)> = unsure.iter().map(|t| t.range).collect();
        for (t, runs) in by_place.into_values() {
            let inst = &code.blocks[t.how.inst.0].insts[t.how.inst.1];
            let thread = t.threads.iter().next().unwrap_or(0);
            let area = Area::new((inst, t.how.kind), (thread, nctaid), joined(runs), &t.at.by, t.blocks);
            let area = area.filter(|_| is_plain(inst));
            if area.is_none() {
                is_all = false;
                let of_place = self.touches.iter().filter(|o| (o.how.inst, o.blocks) == (t.how.inst, t.blocks));
                others.extend(of_place.map(|t| t.range));
            }
            list.extend(area);
        }
        let others = joined(others).into_iter().map(|(from, end)| (number(from), number(end))).collect();
        Areas { list, is_all, others, is_anywhere, reads_anywhere: self.apart.reads }
    }

    /// What other blocks access.
    pub(super) fn add(&mut self, other: Global) -> Result<(), &'static str> {
        if self.touches.len() + other.touches.len() > MOST_TOUCHES {
            return Err("there are too many accesses");
        }
        self.touches.extend(other.touches);
        self.apart.reads |= other.apart.reads;
        self.apart.changes_of_memory |= other.apart.changes_of_memory;
        self.order_decides |= other.order_decides;
        self.gives_way |= other.gives_way;
        self.reads_constants |= other.reads_constants;
        self.atomics.add_blocks(other.atomics);
        if self.anywhere.add(&other.anywhere) { Ok(()) } else { Err(NOT_KNOWN) }
    }

    /// Whether no two threads of the grid are in each other's way; if that holds only as long as no read is of memory that is changed: what is changed.
    pub(super) fn settle(mut self, shape: &Shape) -> Result<Option<Vec<(u64, u64)>>, &'static str> {
        self.touches.sort_by_key(|t| t.range);
        let if_apart = self.changes()?;
        let mut rest = &self.touches[..];
        while let Some(first) = rest.first() {
            let mut end = first.range.1;
            let mut n = 1;
            while let Some(next) = rest.get(n).filter(|next| next.range.0 < end) {
                end = end.max(next.range.1);
                n += 1;
            }
            settle_some(shape, &rest[..n])?;
            rest = &rest[n..];
        }
        Ok(if_apart)
    }

    /// The ranges that reads at places that memory decides must lie apart from, if there are some; touches are sorted.
    fn changes(&self) -> Result<Option<Vec<(u64, u64)>>, &'static str> {
        let mut with_reads = self.anywhere;
        if !self.apart.reads || with_reads.access(false, Kind::Read, 0) {
            return Ok(None);
        }
        if self.apart.changes_of_memory || self.anywhere.is_changed_anywhere() {
            return Err(NOT_KNOWN);
        }
        let mut all: Vec<(i128, i128)> = Vec::new();
        for t in self.touches.iter().filter(|t| t.how.kind != Kind::Read) {
            match all.last_mut() {
                Some(last) if t.range.0 <= last.1 => last.1 = last.1.max(t.range.1),
                _ => all.push(t.range),
            }
        }
        // Who reads what is changed could not be told from reads that may not.
        let mut reads = self.touches.iter().filter(|t| t.how.kind == Kind::Read);
        if reads.any(|t| all.iter().any(|(low, end)| t.range.0 < *end && *low < t.range.1)) {
            return Err(NOT_KNOWN);
        }
        let number = |x: i128| u64::try_from(x).map_err(|_| NOT_KNOWN);
        all.into_iter().map(|(low, end)| Ok((number(low)?, number(end)?))).collect::<Result<_, _>>().map(Some)
    }
}

/// The same for accesses that may meet.
fn settle_some(shape: &Shape, touches: &[Touch]) -> Result<(), &'static str> {
    if touches.iter().all(|t| t.how.kind == Kind::Read) {
        return Ok(());
    }
    // Reads that no write comes near are nobody's concern; the ranges of others hold them together.
    let changes: Vec<(i128, i128)> = touches.iter().filter(|t| t.how.kind != Kind::Read).map(|t| t.range).collect();
    let is_near = |t: &&Touch| changes.iter().any(|(low, end)| t.range.0 < *end && *low < t.range.1);
    let mut near: Vec<&Touch> = touches.iter().filter(is_near).collect();
    if near.iter().all(|t| t.how.kind == Kind::Atomic && t.how.bytes == near[0].how.bytes) {
        return Ok(());
    }
    if near.iter().any(|t| t.at.span > 0) {
        return Err(NOT_KNOWN);
    }
    if near.iter().any(|t| t.at.by != near[0].at.by) {
        return Err("blocks access memory at distances that differ");
    }
    near.sort_by_key(|t| (t.blocks, t.how.stretch));
    let grain = near.iter().map(|t| u64::from(t.how.bytes)).min().unwrap_or(1).min(4);
    let parts: Vec<&[&Touch]> = near.chunk_by(|a, b| a.blocks == b.blocks).collect();
    let mut left = MOST_COMPARED;
    let runs: Vec<Runs> = parts.iter().map(|part| Runs::of(part, grain)).collect();
    for (i, part) in parts.iter().enumerate() {
        inside(part, grain, shape)?;
        (i..parts.len()).try_for_each(|k| between(&runs[i], &runs[k], near[0].at.by, &mut left))?;
    }
    Ok(())
}

/// The cells of an access of a thread.
fn cells(t: &Touch, thread: usize, grain: u64) -> (u64, u64) {
    let at = t.at.lanes.of(thread);
    (at / grain, (at + u64::from(t.how.bytes)).div_ceil(grain))
}

/// Whether no two threads of a block are in each other's way.
fn inside(touches: &[&Touch], grain: u64, shape: &Shape) -> Result<(), &'static str> {
    let mut places: HashMap<u64, usize> = HashMap::new();
    for t in touches {
        for (from, to) in t.threads.iter().map(|thread| cells(t, thread, grain)) {
            for cell in from..to {
                let new = places.len();
                places.entry(cell).or_insert(new);
            }
        }
    }
    let mut all = Cells::new(places.len());
    let mut now = Now { stretch: 0, met: vec![0; shape.threads.div_ceil(32)] };
    for t in touches {
        now.stretch = t.how.stretch;
        for thread in t.threads.iter() {
            let (from, to) = cells(t, thread, grain);
            for at in (from..to).map(|cell| places[&cell]) {
                if !all.access(&now, (at, at + 1), thread, (t.how.kind, t.how.bytes)) {
                    return Err("threads of a block access one place in global memory");
                }
            }
        }
    }
    Ok(())
}

/// Runs of cells, in order.
fn runs<'a>(touches: impl Iterator<Item = &'a &'a Touch>, grain: u64) -> Vec<(i128, i128)> {
    let bytes = |(from, to): (u64, u64)| (i128::from(from * grain), i128::from(to * grain));
    joined(touches.flat_map(|t| t.threads.iter().map(|thread| bytes(cells(t, thread, grain)))).collect())
}

/// What a part of the blocks accesses, all of them at the same distances.
struct Runs {
    blocks: Part,
    all: Vec<(i128, i128)>,
    changed: Vec<(i128, i128)>,
}

impl Runs {
    fn of(touches: &[&Touch], grain: u64) -> Runs {
        let blocks = touches.first().map_or(([0; 3], [0; 3]), |t| t.blocks);
        let changed = runs(touches.iter().filter(|t| t.how.kind != Kind::Read), grain);
        Runs { blocks, all: runs(touches.iter(), grain), changed }
    }
}

/// Whether no two blocks of two parts are in each other's way. `by`: how far what a block accesses lies from what its neighbours do.
fn between(a: &Runs, b: &Runs, by: [i64; PARTS], left: &mut u64) -> Result<(), &'static str> {
    let ends = |all: &[(i128, i128)]| Some((all.first()?.0, all.last()?.1));
    let (Some(of_a), Some(of_b)) = (ends(&a.all), ends(&b.all)) else { return Ok(()) };
    // What `b` accesses comes near if it is moved further than one of these, and less far than the other.
    let near = (of_a.0 - of_b.1, of_a.1 - of_b.0);
    // How far a block of `b` may be from one of `a`, along an axis.
    let far = |i: usize| {
        let distance = |to: u32, from: u32| i128::from(to) - i128::from(from);
        (distance(b.blocks.0[i], a.blocks.1[i]), distance(b.blocks.1[i], a.blocks.0[i]))
    };
    let (along_x, along_y, along_z) = (far(0), far(1), far(2));
    let x = i128::from(by[0]);
    for dz in along_z.0..=along_z.1 {
        for dy in along_y.0..=along_y.1 {
            *left = left.checked_sub(1).ok_or("there are too many blocks")?;
            let start = i128::from(by[1]) * dy + i128::from(by[2]) * dz;
            // Along x only blocks that come near are looked at.
            let (from, to) = match x {
                0 if near.0 < start && start < near.1 => along_x,
                0 => continue,
                _ => {
                    let ends = [(near.0 - start) / x, (near.1 - start) / x];
                    (ends[0].min(ends[1]) - 1, ends[0].max(ends[1]) + 1)
                }
            };
            for dx in from.max(along_x.0)..=to.min(along_x.1) {
                let distance = start + x * dx;
                if (dx, dy, dz) == (0, 0, 0) || distance <= near.0 || near.1 <= distance {
                    continue;
                }
                let cost = a.all.len() + a.changed.len() + b.all.len() + b.changed.len();
                *left = left.checked_sub(cost as u64).ok_or("there are too many blocks")?;
                if do_meet(&a.changed, &b.all, distance) || do_meet(&b.changed, &a.all, -distance) {
                    return Err("blocks access one place in global memory");
                }
            }
        }
    }
    Ok(())
}

/// Whether some run meets one of others that are moved.
fn do_meet(changed: &[(i128, i128)], all: &[(i128, i128)], distance: i128) -> bool {
    let (mut i, mut k) = (0, 0);
    while let (Some(a), Some(b)) = (changed.get(i), all.get(k)) {
        let b = (b.0 + distance, b.1 + distance);
        if a.0 < b.1 && b.0 < a.1 {
            return true;
        }
        if a.1 <= b.1 { i += 1 } else { k += 1 }
    }
    false
}

/// Whether an address is one of shared memory, as the part of it that is its base says; `None` if it is neither that nor one of global memory.
pub(super) fn is_shared(by: &[i64; PARTS]) -> Option<bool> {
    match by[SHARED] {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}
