//! What a launch surely touches of global memory: that is held against other launches and copies that nothing orders with it.

use handloom_ir::simt::{Inst, Op};
use handloom_ir::types::{Order, Scope, StateSpace};

use super::Part;
use super::own::Kind;
use super::value::PARTS;
use crate::event::{Does, Site, Thread};
use crate::finding::Place;
use crate::footprint::Touched;

/// Most ranges of one area.
const MOST_RANGES: u64 = 1 << 14;

/// What threads of some blocks touch by one statement, each block at the same distance from its neighbours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Area {
    /// The statement, and one of the threads.
    pub place: Place,
    /// They read it, and write it.
    pub reads: bool,
    /// As it says.
    pub writes: bool,
    /// They are strong and reach the whole device.
    is_strong: bool,
    /// First addresses and ends, of the first block.
    runs: Vec<(i128, i128)>,
    /// Along each axis: how many blocks, and how far each is from the one before.
    blocks: [(u32, i64); 3],
}

impl Area {
    /// Of an instruction that some threads execute. `runs`: what block (0, 0, 0) touches, or would; `None` if it comes to too many ranges.
    pub(super) fn new(
        (inst, kind): (&Inst, Kind),
        (thread, nctaid): (usize, [u32; 3]),
        mut runs: Vec<(i128, i128)>,
        by: &[i64; PARTS],
        (first, last): Part,
    ) -> Option<Area> {
        let does = match (kind, inst.op) {
            (Kind::Read, _) => Does::Read,
            (Kind::Write, _) => Does::Write,
            (Kind::Atomic, Op::Red { .. }) => Does::Reduce,
            (Kind::Atomic, _) => Does::Update,
        };
        let (order, scope) = match inst.op {
            Op::Load { access, .. } => (access.order, access.scope),
            Op::Store { access, .. } => (access.order, access.scope),
            Op::Atom { access, .. } | Op::Red { access, .. } => (access.order, access.scope),
            _ => return None,
        };
        let start: i128 = (0..3).map(|i| i128::from(by[i]) * i128::from(first[i])).sum();
        runs.iter_mut().for_each(|run| *run = (run.0 + start, run.1 + start));
        let mut blocks = [0, 1, 2].map(|i| (last[i] - first[i] + 1, by[i]));
        for i in [0, 1, 2, 0, 1, 2] {
            let (n, by) = blocks[i];
            // Where what neighbours touch is one range, all of them together are one.
            if runs.iter().all(|(from, end)| i128::from(by).abs() <= end - from) {
                let far = i128::from(by) * i128::from(n - 1);
                runs.iter_mut().for_each(|run| *run = (run.0 + far.min(0), run.1 + far.max(0)));
                runs = joined(runs);
                blocks[i] = (1, 0);
            }
        }
        let n = blocks.iter().try_fold(runs.len() as u64, |n, (of, _)| n.checked_mul(u64::from(*of)))?;
        if n > MOST_RANGES {
            return None;
        }
        let cta = first[0] + nctaid[0] * (first[1] + nctaid[1] * first[2]);
        let site = Site { span: inst.span, does, order, scope, space: StateSpace::Global, ..Site::NONE };
        let is_strong = kind == Kind::Atomic && scope >= Scope::Gpu;
        Some(Area {
            place: Place { site, thread: Thread::new(cta, thread) },
            reads: kind != Kind::Write,
            writes: kind != Kind::Read,
            is_strong,
            runs,
            blocks,
        })
    }

    /// Its first address.
    pub fn first(&self) -> u64 {
        self.runs.first().and_then(|(from, _)| u64::try_from(*from).ok()).unwrap_or(0)
    }

    /// The lowest address and the end of all of it.
    pub fn reach(&self) -> (u64, u64) {
        let ends = (self.runs.first().map_or(0, |run| run.0), self.runs.last().map_or(0, |run| run.1));
        let far = |(n, by): &(u32, i64)| i128::from(*by) * i128::from(n - 1);
        let (low, high) =
            self.blocks.iter().map(far).fold((0, 0), |(low, high), far| (low + far.min(0), high + far.max(0)));
        (number(ends.0 + low), number(ends.1 + high))
    }

    /// All that it is of.
    pub fn touched(&self) -> Vec<Touched> {
        let [x, y, z] = self.blocks;
        let far = |(_, by): (u32, i64), i: u32| i128::from(by) * i128::from(i);
        let mut all = Vec::new();
        for k in 0..z.0 {
            for j in 0..y.0 {
                for i in 0..x.0 {
                    let start = far(x, i) + far(y, j) + far(z, k);
                    all.extend(self.runs.iter().map(|(from, end)| (from + start, end + start)));
                }
            }
        }
        let one = |(from, end): (i128, i128)| Touched {
            addr: number(from),
            bytes: number(end - from),
            writes: self.writes,
            is_strong: self.is_strong,
            place: self.place,
        };
        joined(all).into_iter().map(one).collect()
    }
}

/// An address; what is beyond all of them is the last one.
pub(super) fn number(n: i128) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// What all threads of a launch touch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Areas {
    /// What they surely touch.
    pub list: Vec<Area>,
    /// They touch nothing else.
    pub is_all: bool,
    /// Where else they may touch something: first addresses and ends.
    pub others: Vec<(u64, u64)>,
    /// They may read, and change, any other place.
    pub is_anywhere: bool,
    /// They may read any other place.
    pub reads_anywhere: bool,
}

/// Ranges in order, those that overlap or meet as one.
pub(super) fn joined(mut all: Vec<(i128, i128)>) -> Vec<(i128, i128)> {
    all.sort_unstable();
    all.dedup_by(|next, last| {
        let is_near = next.0 <= last.1;
        if is_near {
            last.1 = last.1.max(next.1);
        }
        is_near
    });
    all
}

/// Whether loads and stores are such as others may be told something by: their order is not looked at here.
pub(super) fn is_plain(inst: &Inst) -> bool {
    match inst.op {
        Op::Load { access, .. } => access.order == Order::Weak,
        Op::Store { access, .. } => access.order == Order::Weak,
        _ => true,
    }
}
