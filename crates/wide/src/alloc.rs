//! Where each register of a function lives: in vectors of the host, or in the context of the warp. Decided once, for the whole function.
//!
//! # The model
//! A register has one place for all of its life, found by a linear scan over the order of blocks. A register whose lanes vary has a place in
//! vectors (two for 32 bits, four for 64), or a row of the context; a predicate is a word with a bit for each lane; a uniform or affine register
//! is a word of 64 bits for each group of its shape.
//!
//! # Why lanes in different blocks may share a vector
//! Blocks that only part of a warp executes write vectors under the mask of their lanes. So what another register keeps in the same vector for lanes
//! that wait elsewhere stays as it is, and it is enough that no two registers of one place are live for the same lane at the same time. That holds as long
//! as a lane is at the same bytes of the vector for both: so a vector is for one width, and for one part of it.
//!
//! # Invariants
//! - What lives across blocks, and what a warp-level op reads or writes, has words in the context that nothing else uses: its *home*. There its value
//!   is while lanes are not in the code (`flow` writes and reads it).
//! - The address of a load that one later instruction of the block may do instead has its word until there; so have an index, and what is added to it, that an access
//!   reads instead of the address made of them (`indexed`).
//! - A source of an instruction and its results have different places, unless they are one register, or the result is a `fma` that takes over the place of its sum.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use handloom_diag::hash::FastMap;
use handloom_ir::simt::{Counting, Inst, Op, Pure, Reg, Val};
use handloom_ir::types::Ty;
use handloom_plan::Plan;
use handloom_plan::abi::{Loc, WarpCtx, spread};
use handloom_plan::access::AccessClass;
use handloom_plan::analysis::cfg::Set;
use handloom_plan::analysis::classes::Class;

use crate::access::Indices;
use crate::table::may_meet_by_routine;

/// Vectors 0 to 7 are for the code of one instruction; the others hold registers.
pub const FIRST_VECTOR: u8 = 8;
const VECTORS: u8 = 32;

/// Where a register lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Nowhere: it is never written, and reads as zero.
    Nowhere,
    /// In vectors, by number; the first two for 32 bits.
    Vectors([u8; 4]),
    /// A row of 32 or 64 bits a lane, at this offset of the context.
    Row(u32),
    /// A predicate: a word with a bit for each lane.
    Mask(u32),
    /// A predicate that routines write: a row whose lanes are 0 or all ones.
    Flags(u32),
    /// A uniform or affine value: a 64-bit word for each group of its shape.
    Words(u32),
}

/// The places of a function.
pub struct Places {
    /// By register.
    pub of: Vec<Place>,
    /// The row of a register in vectors that has a home; 0 for none.
    pub home: Vec<u32>,
    /// Whether its words in the context are its own.
    pub is_own: Vec<bool>,
    /// By bit, vectors of registers that live across blocks.
    pub kept: u32,
    /// Offset of the pending words.
    pub pend: u32,
    /// Offset of what the warp has done, where that is counted.
    pub work: u32,
    /// Where rows for routines begin.
    pub scratch: u32,
}

/// How many instructions a load may stand before the one that reads it from memory.
pub(crate) const MOST_APART: usize = 24;

/// Life of a register: positions of its first and last mention, loops included.
#[derive(Clone, Copy)]
struct Interval {
    reg: usize,
    start: u32,
    end: u32,
    /// Mentions, weighted by the loops around them.
    weight: u64,
    /// Mentions for each position of the life: those with few leave first.
    worth: u64,
    /// A register that may leave it its place: the sum that a `fma` adds to, and that nobody reads after it.
    from: Option<usize>,
}

/// Number of vectors of a type.
pub fn n_parts(ty: Ty) -> usize {
    if ty == Ty::B64 { 4 } else { 2 }
}

/// Finds places.
///
/// `elsewhere`: words that registers have outside of the context.
pub(crate) fn places(plan: &Plan, elsewhere: &[Option<u32>], indices: &Indices) -> Places {
    let f = &plan.func;
    let intervals = intervals(plan, indices);
    let written = written(plan);
    // Registers whose words in the context are their own.
    let mut own = written.clone();
    own.union(&plan.facts.live.across);
    let mut of = vec![Place::Nowhere; f.regs.len()];
    let is_vector = |i: &Interval| plan.facts.class[i.reg] == Class::Varying && f.regs[i.reg] != Ty::P;
    let (wide, narrow): (Vec<Interval>, Vec<Interval>) =
        intervals.iter().copied().filter(is_vector).partition(|i| f.regs[i.reg] == Ty::B64);
    // The share of each width that leaves the fewest mentions to memory.
    let of_share = |n: u8| {
        let (wide, w) = scan(&wide, FIRST_VECTOR, n, 4);
        let (narrow, v) = scan(&narrow, FIRST_VECTOR + 4 * n, (VECTORS - FIRST_VECTOR - 4 * n) / 2, 2);
        (w + v, wide, narrow)
    };
    // More than live at one time gain nothing.
    let most = (VECTORS - FIRST_VECTOR) / 4;
    let mut shares = (0..=most.min(most_alive(&wide, most.into()) as u8)).map(of_share);
    let mut best = shares.next();
    while let Some(of) = best.as_ref().map(|s| s.0).filter(|left| *left > 0) {
        // Of several that leave as many the first one.
        let Some(share) = shares.find(|s| s.0 < of) else { break };
        best = Some(share);
    }
    if let Some((_, wide, narrow)) = best {
        for (r, v) in wide.into_iter().chain(narrow) {
            of[r] = Place::Vectors(v);
        }
    }
    let pend = std::mem::size_of::<WarpCtx>() as u32;
    let work = (pend + 4 * f.blocks.len() as u32).next_multiple_of(8);
    let heads = if plan.options.counted == Counting::All { work + 16 } else { work };
    let mut room = Room { end: heads.next_multiple_of(64), free: FastMap::default() };
    let mut home = vec![0; f.regs.len()];
    // Homes first, then what lives in one block, sharing space.
    let mut busy = Busy::default();
    let (with_homes, others): (Vec<Interval>, Vec<Interval>) = intervals.into_iter().partition(|i| own.has(i.reg));
    for i in with_homes.into_iter().chain(others) {
        let r = i.reg;
        busy.give_before(i.start, &mut room);
        if let Some(at) = elsewhere.get(r).copied().flatten() {
            of[r] = Place::Words(at);
            continue;
        }
        let ty = f.regs[r];
        let (bytes, make): (u32, fn(u32) -> Place) = match (plan.facts.class[r], ty, of[r]) {
            (Class::Unknown, ..) => continue,
            (Class::Affine(s), ..) => (8 * s.groups() as u32, Place::Words),
            (Class::Varying, Ty::P, _) if written.has(r) => (128, Place::Flags),
            (Class::Varying, Ty::P, _) => (4, Place::Mask),
            (Class::Varying, _, Place::Vectors(_)) if !own.has(r) => continue,
            (Class::Varying, Ty::B64, _) => (256, Place::Row),
            (Class::Varying, ..) => (128, Place::Row),
        };
        let at = room.take(bytes);
        if !own.has(r) {
            busy.take(i.end, (at, bytes));
        }
        match of[r] {
            Place::Vectors(_) => home[r] = at,
            _ => of[r] = make(at),
        }
    }
    let scratch = room.end.next_multiple_of(64);
    let is_elsewhere = |r: usize| elsewhere.get(r).is_some_and(Option::is_some);
    let is_own = (0..f.regs.len()).map(|r| own.has(r) && !is_elsewhere(r)).collect();
    let vectors = |r: usize| match of[r] {
        Place::Vectors(v) => v[..n_parts(f.regs[r])].iter().fold(0, |m, v| m | 1 << v),
        _ => 0,
    };
    let kept = (0..f.regs.len()).filter(|r| own.has(*r)).fold(0, |m, r| m | vectors(r));
    Places { of, home, is_own, kept, pend, work, scratch }
}

impl Places {
    /// Where the runtime finds a register between blocks.
    pub fn home_of(&self, plan: &Plan, r: usize) -> Option<Loc> {
        if !self.is_own[r] {
            return None;
        }
        let bits = plan.func.regs[r].bits() as u8;
        Some(match (self.of[r], plan.facts.class[r]) {
            (Place::Vectors(_), _) if bits == 64 => Loc::Row64(self.home[r]),
            (Place::Vectors(_), _) => Loc::Row32(self.home[r]),
            (Place::Row(at), _) if bits == 64 => Loc::Row64(at),
            (Place::Row(at) | Place::Flags(at), _) => Loc::Row32(at),
            (Place::Words(at), Class::Affine(shape)) => Loc::Shaped { at, shape, bits },
            (Place::Nowhere | Place::Mask(_) | Place::Words(_), _) => return None,
        })
    }

    /// Bytes of a context with so many bytes of scratch space.
    pub fn ctx_bytes(&self, scratch: u32) -> u32 {
        spread(self.scratch + scratch)
    }
}

/// Space of a context that grows at its end.
struct Room {
    end: u32,
    /// By size, where space was given back.
    free: FastMap<u32, Vec<u32>>,
}

impl Room {
    fn take(&mut self, bytes: u32) -> u32 {
        let bytes = Room::whole(bytes);
        if let Some(at) = self.free.get_mut(&bytes).and_then(Vec::pop) {
            return at;
        }
        let at = self.end.next_multiple_of(bytes.min(64));
        self.end = at + bytes;
        at
    }

    fn give(&mut self, at: u32, bytes: u32) {
        self.free.entry(Room::whole(bytes)).or_default().push(at);
    }

    /// The bytes that are taken for so many.
    fn whole(bytes: u32) -> u32 {
        if bytes > 64 { bytes.next_multiple_of(64) } else { bytes.next_power_of_two() }
    }
}

/// Space that registers have until the end of their lives.
#[derive(Default)]
struct Busy {
    /// By end, those that end first on top: what was taken how long ago, and where.
    ends: BinaryHeap<Reverse<(u32, usize)>>,
    taken: Vec<(u32, u32)>,
}

impl Busy {
    fn take(&mut self, end: u32, space: (u32, u32)) {
        self.ends.push(Reverse((end, self.taken.len())));
        self.taken.push(space);
    }

    /// Gives back what ended before a place, in the order in which it was taken.
    fn give_before(&mut self, at: u32, room: &mut Room) {
        let mut ended = Vec::new();
        while let Some(Reverse((_, n))) = self.ends.peek().filter(|top| top.0.0 < at) {
            ended.push(*n);
            self.ends.pop();
        }
        ended.sort_unstable();
        for n in ended {
            let (at, bytes) = self.taken[n];
            room.give(at, bytes);
        }
    }
}

/// Predicates that the runtime writes as rows: results of warp-level ops and of barriers.
fn written(plan: &Plan) -> Set {
    let f = &plan.func;
    let mut set = Set::new(f.regs.len());
    for (n, b) in f.blocks.iter().enumerate() {
        let by_routine = |i: &&Inst| may_meet_by_routine(plan, n, i);
        let sync = b.insts.iter().filter(by_routine).flat_map(|i| &i.dst);
        sync.chain(b.term.result().iter()).for_each(|r| {
            set.add(r.idx());
        });
        // The routine reads rows.
        let read = b.insts.iter().filter(by_routine).flat_map(|i| &i.src);
        read.for_each(|v| {
            if let Val::Reg(r) = v {
                set.add(r.idx());
            }
        });
    }
    set
}

/// Lives of all registers, in the order of their starts.
fn intervals(plan: &Plan, indices: &Indices) -> Vec<Interval> {
    let f = &plan.func;
    let n = f.blocks.len();
    let mut depth = vec![0u32; n];
    for (_, body) in &plan.facts.cfg.loops {
        body.iter().for_each(|b| depth[b] += 1);
    }
    let mut all: Vec<Interval> = (0..f.regs.len())
        .map(|reg| Interval { reg, start: u32::MAX, end: 0, weight: 0, worth: 0, from: None })
        .collect();
    let mut at = 0;
    // Of each block, where it begins and ends.
    let mut places: Vec<(u32, u32)> = Vec::with_capacity(n);
    let mut sums: Vec<(usize, usize, u32)> = Vec::new();
    for (b, block) in f.blocks.iter().enumerate() {
        let weight = 10u64.pow(depth[b].min(6));
        let mut mention = |r: usize, at: u32, weight: u64| {
            let i = &mut all[r];
            i.start = i.start.min(at);
            i.end = i.end.max(at);
            i.weight += weight;
        };
        let start = at;
        // By what is loaded: where from, and where the load stands. The load may be done where the value is read, so the address lives until there.
        let mut loaded: VecDeque<(Reg, usize, u32)> = VecDeque::new();
        for (i, inst) in block.insts.iter().enumerate() {
            at += 1;
            indices.read_late((b, i)).iter().for_each(|r| mention(r.idx(), at, 0));
            while loaded.front().is_some_and(|l| at - l.2 > MOST_APART as u32) {
                loaded.pop_front();
            }
            for (_, address, _) in loaded.iter().filter(|l| inst.src.contains(&Val::Reg(l.0))) {
                mention(*address, at, 0);
            }
            if let (Op::Load { .. }, [d], Some(Val::Reg(address))) =
                (inst.op, inst.dst.as_slice(), AccessClass::of(inst).map(|c| c.address))
            {
                let is_word = matches!(plan.facts.class[address.idx()], Class::Affine(_));
                loaded.extend(is_word.then_some((*d, address.idx(), at)));
            }
            let reads = inst.src.iter().filter_map(|v| match v {
                Val::Reg(r) => Some(r.idx()),
                Val::Imm(..) => None,
            });
            // What is made only where a test refuses is hardly ever there.
            let weigh = |r: usize| if indices.delayed.has(r) { 0 } else { weight };
            reads.chain(inst.dst.iter().map(|d| d.idx())).for_each(|r| mention(r, at, weigh(r)));
            if let (Op::Pure(Pure::FFma(_)), [d], Some(Val::Reg(sum))) = (inst.op, inst.dst.as_slice(), inst.src.get(2))
            {
                sums.push((d.idx(), sum.idx(), at));
            }
        }
        at += 1;
        for v in block.term.sources() {
            if let Val::Reg(r) = v {
                mention(r.idx(), at, weight);
            }
        }
        block.term.result().iter().for_each(|r| mention(r.idx(), at, weight));
        places.push((start, at));
        at += 1;
    }
    // What lives from block to block is mentioned where it lives first and last. What a block before this one leads here with was mentioned there, and what a
    // block behind goes on with will be.
    let (live, cfg) = (&plan.facts.live, &plan.facts.cfg);
    for (b, (start, end)) in places.iter().enumerate() {
        if cfg.preds[b].iter().all(|p| *p >= b) {
            live.entry[b].iter().for_each(|r| all[r].start = all[r].start.min(*start));
        }
        if cfg.succs[b].iter().any(|s| *s <= b) {
            live.exit(b).iter().for_each(|r| all[r].end = all[r].end.max(*end));
        }
    }
    for (d, sum, at) in sums {
        if all[d].start == at && d != sum {
            all[d].from = Some(sum);
        }
    }
    all.retain(|i| i.start != u32::MAX);
    all.iter_mut().for_each(|i| i.worth = i.weight.saturating_mul(1 << 16) / u64::from(i.end - i.start + 1));
    all.sort_by_key(|i| i.start);
    all
}

/// How many of some lives, in the order of their starts, are at one time, counted up to `enough`.
fn most_alive(list: &[Interval], enough: usize) -> usize {
    let mut ends: BinaryHeap<Reverse<u32>> = BinaryHeap::new();
    for i in list {
        while ends.peek().is_some_and(|end| end.0 < i.start) {
            ends.pop();
        }
        ends.push(Reverse(i.end));
        if ends.len() >= enough {
            return enough;
        }
    }
    ends.len()
}

/// Gives sets of vectors, `n` of them of `size` vectors each, to those that are mentioned most for the time that they live. Returns who got which, and the
/// mentions of the others.
fn scan(list: &[Interval], first: u8, n: u8, size: u8) -> (Vec<(usize, [u8; 4])>, u64) {
    let mut free: Vec<u8> = (0..n).rev().collect();
    let mut active: Vec<(Interval, u8)> = Vec::new();
    let mut done: Vec<(usize, [u8; 4])> = Vec::new();
    let mut left = 0;
    let set = |k: u8| std::array::from_fn(|part| first + k * size + part as u8);
    // None of those that are active ends before this.
    let mut first_end = u32::MAX;
    for i in list {
        let mut taken_over = None;
        let mut stays = |(a, k): &(Interval, u8)| {
            if a.end == i.start && i.from == Some(a.reg) {
                taken_over = Some(*k);
                done.push((a.reg, set(*k)));
                return false;
            }
            let lives = a.end >= i.start;
            if !lives {
                free.push(*k);
                done.push((a.reg, set(*k)));
            }
            lives
        };
        if first_end <= i.start {
            active.retain(&mut stays);
            first_end = active.iter().map(|(a, _)| a.end).min().unwrap_or(u32::MAX);
        }
        first_end = first_end.min(i.end);
        if let Some(k) = taken_over {
            active.push((*i, k));
            continue;
        }
        if free.is_empty() {
            let least = active.iter().map(|(a, _)| a.worth).enumerate().min_by_key(|(_, worth)| *worth);
            if let Some((at, _)) = least.filter(|l| l.1 < i.worth) {
                let (out, k) = active.swap_remove(at);
                left += out.weight;
                free.push(k);
            }
        }
        match free.pop() {
            Some(k) => active.push((*i, k)),
            None => left += i.weight,
        }
    }
    done.extend(active.iter().map(|(a, k)| (a.reg, set(*k))));
    (done, left)
}
