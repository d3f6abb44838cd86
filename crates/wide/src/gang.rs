//! Several warps side by side: straight ways of a turn, emitted for a *gang* of warps at once.
//!
//! # The model
//! A turn mostly goes one way: from its start through guards that hold in all lanes to the next barrier or the end, over accesses that the head decided about. Such a
//! way is emitted once more, after all blocks, for 2, 4 or 8 warps whose contexts follow each other, instruction by instruction: each warp has vectors of its own, chosen for
//! this way alone; what is the same in all warps is loaded once; addresses are made once and lie at distances from each other where the step from warp to warp is
//! a constant. Chains of operations that wait for each other so stand beside others, and what is done once a warp is done once a gang.
//!
//! A turn takes this way if the head has set all bits that it rests on. Warps that are left over, and all of
//! them where a bit is missing, go through the blocks one after the other.
//!
//! Where a branch asks what is the same in all warps (`common`), the way ends, and goes on with one of two others, which find values in their homes. Accesses that the head could not
//! decide about are tested for all warps of the gang at the start of their way, when nothing of it has happened: if a test refuses, the turn is settled with the
//! warps of the gang waiting at the first block of the way, and the CTA goes on by headers.

mod code;
mod common;

use std::fmt;

use handloom_diag::hash::FastMap;
use handloom_ir::simt::{Count, Inst, Op, Reg, Term, Val};
use handloom_ir::types::{Order, Sreg, StateSpace, Ty};
use handloom_plan::access::{AccessClass, Kind};

use crate::access::{Access, Form, Runs};
use crate::alloc::{FIRST_VECTOR, Place, n_parts};
use crate::asm::Label;
use crate::emit::*;
use crate::head::Going;
use crate::ops::has_vector_code;
use crate::table::{constant, has_scalar_code};

/// How many warps may go side by side, the best first, with the most instructions times warps of a way: more would be long code.
const SIZES: [(usize, usize); 3] = [(8, 64), (4, 900), (2, 900)];
/// The same in pairs of vectors of 256 bits, of which sixteen registers hold few.
const SIZES_OF_PAIRS: [(usize, usize); 2] = [(4, 64), (2, 400)];
/// Vectors in use at one time up to which instructions of several warps stand side by side in such pairs.
const MOST_OF_PAIRS: u32 = 7;
/// Where only the first warp does something in a turn.
const ALONE: [(usize, usize); 1] = [(1, 400)];
/// More warps than this go side by side only where nothing is tested.
const LARGE: usize = 4;
/// Most instructions of a way that warps go one after the other.
const SHORT: usize = 32;
/// Ways of a function.
const MOST_WAYS: usize = 24;
/// Vectors that hold registers.
const VECTORS: u8 = 32 - FIRST_VECTOR;

/// A way that several warps go side by side.
#[derive(Clone)]
pub(crate) struct Gang {
    /// The first block of the way.
    start: usize,
    /// How many warps.
    warps: usize,
    /// Whether each warp goes all of the way before the next one: see [`Emit::goes_by_warp`].
    by_warp: bool,
    /// The blocks of the way, with how many instructions of each are done.
    blocks: Vec<(usize, usize)>,
    /// The bits of the head that it rests on.
    bits: u32,
    /// Accesses that are tested at its start, by block and instruction.
    tests: Vec<(usize, usize)>,
    /// Whether it is right only for the warps that do something in the turn that starts with it.
    is_first: bool,
    /// Where it ends.
    end: End,
    /// By register: whether it is the same in all warps.
    common: Vec<bool>,
    /// By block that only some lanes execute: those. The code is for all of them, but its stores.
    going: FastMap<usize, Going>,
    /// By block and instruction that loads: the instruction that reads the value from memory.
    folds: FastMap<(usize, usize), (usize, usize)>,
    /// By warp: where registers live at first.
    places: Vec<Vec<Place>>,
    /// Where values begin, by number of the instruction in the way: a register, and by warp where it lives from then on.
    moves: Vec<(usize, usize, Vec<Place>)>,
    /// The values of the way, where somebody asks how long vectors are in use.
    alive: Vec<Alive>,
    /// A vector that no value of the way takes.
    spare: Option<u8>,
    /// Registers that are read from their homes first.
    enters: Vec<usize>,
    /// Registers that are written to their homes last.
    leaves: Vec<usize>,
    /// Where its code starts.
    label: Label,
    /// Where it goes on if it is followed by itself: registers have what they are to have at its start.
    again: Option<Label>,
}

/// Where a way ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// At the barrier of a block, or at the end of the function.
    Place(Option<usize>),
    /// At a branch of a block to two others, by a condition that is the same in all warps.
    Branch(usize, Val, usize, usize),
    /// At a jump of a block back to another one.
    Back(usize, usize),
}

/// A turn that gangs may go.
#[derive(Clone)]
pub(crate) struct Team {
    /// The block that it starts at.
    start: usize,
    /// The first of its ways.
    first: usize,
    /// The first blocks of all of them.
    ways: Vec<usize>,
    /// The bits of the head that all its ways rest on.
    bits: u32,
    /// Where it ends, if there is one place.
    place: Option<Option<usize>>,
    /// Whether headers are written before the turn has ended: what says that warps live is to be there.
    needs_live: bool,
    /// How many warps go, if a constant says so, all of them go the same way, and nothing stops them on it.
    fixed: Option<usize>,
}

impl fmt::Display for Gang {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blocks: Vec<String> = self.blocks.iter().map(|(b, _)| format!("b{b}")).collect();
        write!(out, "{} warps side by side through {}", self.warps, blocks.join(", "))?;
        write!(out, ", {} loads are operands", self.folds.len())?;
        write!(out, ", {} accesses are tested", self.tests.len())?;
        let mut going: Vec<_> = self.going.iter().collect();
        going.sort_unstable_by_key(|(b, _)| **b);
        going.into_iter().try_for_each(|(b, going)| match going {
            Going::Known(lanes) => write!(out, ", b{b} in lanes {lanes:#x}"),
            Going::Written(..) => write!(out, ", b{b} in lanes that the head wrote down"),
        })
    }
}

/// An access of a gang: all that is to be known for its code.
pub(crate) struct GangAccess {
    x: Access,
    runs: Runs,
    form: Form,
    scalars: bool,
    /// The bit that says that it is right; else it is to be tested.
    bit: Option<u32>,
}

fn reg(v: &Val) -> Option<Reg> {
    match v {
        Val::Reg(r) => Some(*r),
        Val::Imm(..) => None,
    }
}

/// The search for the ways of a function.
struct Search {
    /// By register: whether it is the same in all warps wherever these are at the same place.
    common: Vec<bool>,
    /// By first block, and whether a turn starts with it: the way, without places.
    known: FastMap<(usize, bool), Option<Gang>>,
    ways: Vec<Gang>,
    /// The first blocks of ways that lead to the one that is looked at.
    path: Vec<usize>,
}

/// The life of one value of a register, by numbers of instructions in a way; from 0 on if it is there before.
#[derive(Clone, Copy)]
struct Life {
    reg: usize,
    start: usize,
    end: usize,
}

/// A value, and its vectors by bit from the first that holds registers: of each warp, or the same ones for all.
#[derive(Clone)]
struct Alive {
    life: Life,
    vectors: Vec<u32>,
    /// Whether it stays while other warps go their way.
    stays: bool,
}

/// Those of all values.
#[derive(Default)]
struct Lives {
    all: Vec<Life>,
    /// By register, the last one, and whether it was made in the way.
    last: FastMap<usize, (usize, bool)>,
}

impl Lives {
    fn begin(&mut self, reg: usize, at: usize, is_made: bool) {
        self.last.insert(reg, (self.all.len(), is_made));
        self.all.push(Life { reg, start: at, end: at });
    }

    fn read(&mut self, reg: usize, at: usize, is_there_before: bool) {
        if !self.last.contains_key(&reg) {
            self.begin(reg, if is_there_before { 0 } else { at }, false);
        }
        self.all[self.last[&reg].0].end = at;
    }

    /// `reads`: the instruction reads the register too.
    fn write(&mut self, reg: usize, at: usize, reads: bool) {
        match self.last.get_mut(&reg) {
            Some((life, is_made)) if reads => {
                *is_made = true;
                self.all[*life].end = at;
            }
            _ => self.begin(reg, at, true),
        }
    }

    /// The end of the way: registers that were written in it and live on.
    fn end(&mut self, at: usize, lives_on: &dyn Fn(usize) -> bool) -> Vec<usize> {
        let mut leaves: Vec<usize> = Vec::new();
        for (reg, (life, is_made)) in &self.last {
            if *is_made && lives_on(*reg) {
                self.all[*life].end = at;
                leaves.push(*reg);
            }
        }
        leaves.sort_unstable();
        leaves
    }
}

impl Gang {
    /// Whether it ends with the branch of a block.
    fn is_asked(&self, block: usize) -> bool {
        matches!(self.end, End::Branch(b, ..) if b == block)
    }

    /// Vectors that somebody reads after instructions were done for a warp, those of two numbers and all between. `of_all`: done for all warps.
    fn alive_after(&self, member: usize, (first, last): (usize, usize), of_all: bool) -> u32 {
        let mut live = 0;
        for a in &self.alive {
            for (m, vectors) in a.vectors.iter().enumerate() {
                // Warps behind this one still have the instructions before them, and so has what all of them read.
                let is_shared = a.vectors.len() == 1;
                let is_done = self.by_warp || of_all || if is_shared { member + 1 == self.warps } else { m <= member };
                let done = if is_done { last } else { first - 1 };
                if a.stays || a.life.start <= last && a.life.end > done {
                    live |= vectors;
                }
            }
        }
        live
    }

    /// The most vectors that are in use at one time.
    fn most_in_use(&self) -> u32 {
        let at = |n: usize| self.alive.iter().filter(move |a| a.life.start <= n && a.life.end >= n);
        let count = |n: usize| at(n).flat_map(|a| &a.vectors).map(|v| v.count_ones()).sum();
        self.alive.iter().map(|a| count(a.life.start)).max().unwrap_or(0)
    }

    /// Whether it may follow itself with nothing to test: a loop, whose values stay in registers.
    fn comes_back(&self) -> bool {
        self.tests.is_empty() && self.successors().contains(&self.start)
    }

    /// The blocks that it may go on with.
    fn successors(&self) -> Vec<usize> {
        match self.end {
            End::Place(_) => Vec::new(),
            End::Branch(_, _, then, otherwise) => vec![then, otherwise],
            End::Back(_, to) => vec![to],
        }
    }
}

impl Emit<'_> {
    /// The ways of gangs of a function, and the turns that go them. Asked after all blocks have been emitted, since only then it is known what the head decides.
    pub(crate) fn find_gangs(&mut self) -> (Vec<Gang>, Vec<Team>) {
        let mut teams = Vec::new();
        let threads = self.plan.facts.shape.ntid.iter().product::<u32>();
        if !threads.is_multiple_of(32) || self.turns.is_none() || self.head.is_none() {
            return (Vec::new(), teams);
        }
        let n_warps = (threads / 32) as usize;
        let mut search =
            Search { common: self.common_values(), known: FastMap::default(), ways: Vec::new(), path: Vec::new() };
        for start in self.starts_of_turns() {
            // Those that have something to do in the turn, where that is a constant.
            let head = self.head.as_ref().filter(|_| !self.counts());
            let active = head.and_then(|h| h.n_active(self.plan, start)).unwrap_or(n_warps);
            let sizes = match active {
                1 if n_warps > 1 => &ALONE[..],
                _ if self.a.has_wide_vectors() => &SIZES,
                _ => &SIZES_OF_PAIRS,
            };
            for &(size, most) in sizes.iter().filter(|s| s.0 <= n_warps.min(active)) {
                let before = search.ways.len();
                search.path.clear();
                let found = self.ways_from(start, size, most, &mut search);
                let team = found.and_then(|first| self.team(start, first, &search.ways));
                if let Some(team) = team {
                    teams.push(team);
                    break;
                }
                search.ways.truncate(before);
            }
        }
        (search.ways, teams)
    }

    /// The number of the way that begins at a block, with all that it may go on with. (That of a way that leads to it is not known yet.)
    fn ways_from(&mut self, start: usize, size: usize, most: usize, search: &mut Search) -> Option<usize> {
        let is_first = search.path.is_empty();
        if let Some(k) =
            search.ways.iter().position(|w| w.start == start && w.warps == size && (is_first || !w.is_first))
        {
            return Some(k);
        }
        if search.path.contains(&start) {
            // A loop: warps go round it together, if they aren't to go through it in turn, and values stay in registers where there are few of these.
            let stays = self.a.has_wide_vectors() || search.path.last() == Some(&start);
            return (stays && !self.goes_in_turn(start)).then_some(search.ways.len());
        }
        if search.ways.len() >= MOST_WAYS {
            return None;
        }
        if !search.known.contains_key(&(start, is_first)) {
            // Who counts lanes knows them when code is made.
            let way = self.way_from(start, &search.common, is_first, !self.counts());
            let way = way.or_else(|| self.way_from(start, &search.common, is_first, false));
            search.known.insert((start, is_first), way);
        }
        let way = search.known[&(start, is_first)].as_ref()?;
        // Tests are long, and gain nothing by more warps.
        if self.length(way) * size > most || size > LARGE && !way.tests.is_empty() {
            return None;
        }
        let mut gang = self.places_of_gang(way, size)?;
        let is_crowded = !self.a.has_wide_vectors() && gang.most_in_use() > MOST_OF_PAIRS;
        if is_crowded && !way.by_warp && matches!(way.end, End::Place(_)) {
            gang = self.places_of_gang(&Gang { by_warp: true, ..way.clone() }, size).unwrap_or(gang);
        }
        if is_crowded && gang.comes_back() {
            return None;
        }
        gang.label = self.a.label();
        if gang.comes_back() {
            gang.again = Some(self.a.label());
        }
        search.path.push(start);
        for to in gang.successors() {
            self.ways_from(to, size, most, search)?;
        }
        search.path.pop();
        search.ways.push(gang);
        Some(search.ways.len() - 1)
    }

    /// The turn from a block, if gangs may go it.
    fn team(&self, start: usize, first: usize, ways: &[Gang]) -> Option<Team> {
        let mut all: Vec<usize> = vec![first];
        let mut at = 0;
        while let Some(&k) = all.get(at) {
            at += 1;
            for to in ways[k].successors() {
                let k = ways.iter().position(|w| w.start == to && w.warps == ways[k].warps && !w.is_first)?;
                if !all.contains(&k) {
                    all.push(k);
                }
            }
        }
        let mut places: Vec<Option<usize>> = Vec::new();
        for k in &all {
            if let End::Place(place) = ways[*k].end
                && !places.contains(&place)
            {
                places.push(place);
            }
        }
        // Warps that do nothing in the turn come to where the others do.
        let head = self.head.as_ref().filter(|_| !self.counts());
        let idle = head.and_then(|h| h.idle(start));
        let does = all.iter().any(|k| self.length(&ways[*k]) > 0);
        if !does || idle.is_some_and(|i| places.iter().any(|p| *p != i.barrier)) {
            return None;
        }
        let first_way = &ways[first];
        let is_straight = matches!(first_way.end, End::Place(_)) && first_way.tests.is_empty();
        let n_active = match head {
            Some(h) => h.n_active(self.plan, start),
            None => Some(self.plan.facts.shape.ntid.iter().product::<u32>() as usize / 32),
        };
        Some(Team {
            fixed: n_active.filter(|n| is_straight && n.is_multiple_of(first_way.warps)),
            start,
            first,
            ways: all.iter().map(|k| ways[*k].start).collect(),
            bits: all.iter().fold(0, |m, k| m | ways[*k].bits),
            place: if let [place] = places[..] { Some(place) } else { None },
            needs_live: start == 0
                && all.iter().any(|k| !ways[*k].tests.is_empty() || ways[*k].end != End::Place(None)),
        })
    }

    /// Instructions of a way that code is emitted for.
    fn length(&self, way: &Gang) -> usize {
        let is_nothing = |inst: &&Inst| {
            matches!(inst.op, Op::Count(_)) || self.head.as_ref().is_some_and(|h| h.has(inst) || h.is_linear(inst))
        };
        way.blocks.iter().map(|&(b, n)| self.f.blocks[b].insts[..n].iter().filter(|i| !is_nothing(i)).count()).sum()
    }

    /// The way from a block, without places for registers. `is_first`: a turn starts with it. `for_some`: it may go through what is guarded for some lanes.
    fn way_from(&mut self, start: usize, common: &[bool], is_first: bool, for_some: bool) -> Option<Gang> {
        let f = self.f;
        let mut way = Gang {
            start,
            warps: 0,
            by_warp: false,
            blocks: Vec::new(),
            bits: 0,
            tests: Vec::new(),
            is_first: false,
            end: End::Place(None),
            common: vec![false; f.regs.len()],
            going: FastMap::default(),
            folds: FastMap::default(),
            places: Vec::new(),
            moves: Vec::new(),
            alive: Vec::new(),
            spare: None,
            enters: Vec::new(),
            leaves: Vec::new(),
            label: self.a.label(),
            again: None,
        };
        let mut written: Vec<Reg> = Vec::new();
        let mut b = start;
        loop {
            let block = &f.blocks[b];
            let guard = self.head.as_ref().and_then(|h| h.guard_of(b));
            let n = guard.map_or(block.insts.len(), |g| g.from);
            for (i, inst) in block.insts[..n].iter().enumerate() {
                self.at = (b, i);
                let going = way.going.get(&b).copied();
                if let Some(bit) = self.fits_gang(inst)? {
                    way.bits |= bit;
                    if !self.fits_lanes(inst, going) {
                        return None;
                    }
                } else if going.is_some() {
                    return None;
                } else {
                    // Tested at the start, where its address must be known.
                    let is_late = inst.src.first().and_then(reg).is_none_or(|r| written.contains(&r));
                    if is_late || f.blocks.len() == 1 {
                        return None;
                    }
                    way.tests.push((b, i));
                }
                let is_nothing = self.head.as_ref().is_some_and(|h| h.has(inst) || h.is_linear(inst));
                if !is_nothing {
                    written.extend(&inst.dst);
                }
                let of_all = |v: &Val| match v {
                    Val::Imm(..) => true,
                    Val::Reg(r) => way.common[r.idx()] || self.is_same_in_warps(*r),
                };
                let is_alone = inst.dst.iter().all(|d| self.plan.def_count[d.idx()] == 1 && self.is_in_vectors(*d));
                let is_common = !inst.dst.is_empty()
                    && is_alone
                    && matches!(inst.op, Op::Load { .. } | Op::Pure(_))
                    && inst.src.iter().all(of_all);
                if is_common && !is_nothing {
                    inst.dst.iter().for_each(|d| way.common[d.idx()] = true);
                }
            }
            way.blocks.push((b, n));
            let next = match &block.term {
                Term::Jump(t) => t.idx(),
                Term::Branch { cond: cond @ Val::Reg(c), then, otherwise } => {
                    let (then, otherwise) = (then.idx(), otherwise.idx());
                    if let Some(guard) = guard {
                        // What is guarded stands before what follows.
                        let low = then < otherwise;
                        let head = self.head.as_ref().filter(|_| for_some);
                        if let Some((going, blocks)) = head.and_then(|h| h.going(self.plan, b, is_first && b == start))
                        {
                            match going {
                                Going::Written(_, bit) => way.bits |= bit,
                                Going::Known(_) => way.is_first = true,
                            }
                            way.going.extend(blocks.into_iter().map(|x| (x, going)));
                        } else {
                            way.bits |= if low { guard.bits.0 } else { guard.bits.1 };
                        }
                        then.min(otherwise)
                    } else if common[c.idx()] && then != otherwise {
                        way.end = End::Branch(b, *cond, then, otherwise);
                        break;
                    } else {
                        return None;
                    }
                }
                Term::Ret | Term::Exit if f.is_entry => break,
                _ => {
                    self.plain_barrier(b)?;
                    way.end = End::Place(Some(b));
                    break;
                }
            };
            if next <= b {
                way.end = End::Back(b, next);
                break;
            }
            b = next;
        }
        self.find_folds_of(&mut way);
        way.by_warp = self.goes_by_warp(&way);
        Some(way)
    }

    /// Whether warps go a way one after the other, although their code stands side by side: a host reads and writes several streams of memory faster if what lies
    /// at one place is read and written before what follows it, and a short way needs no other warp to keep it busy. With one or two reads that is no gain.
    fn goes_by_warp(&self, way: &Gang) -> bool {
        let insts = || way.blocks.iter().flat_map(|&(b, n)| &self.f.blocks[b].insts[..n]);
        let is_far = |i: &Inst| AccessClass::of(i).is_some_and(|c| c.space != StateSpace::Shared);
        let n_reads = insts().filter(|i| matches!(i.op, Op::Load { .. }) && is_far(i)).count();
        let writes = insts().any(|i| matches!(i.op, Op::Store { .. }) && is_far(i));
        let pays = !self.a.has_wide_vectors() || n_reads > 2 && writes;
        matches!(way.end, End::Place(_)) && pays && self.length(way) <= SHORT
    }

    fn is_in_vectors(&self, r: Reg) -> bool {
        matches!(self.place(r), Place::Vectors(_))
    }

    fn is_same_in_warps(&self, r: Reg) -> bool {
        self.head.as_ref().is_some_and(|h| h.is_same_in_warps(r))
    }

    /// Whether a gang may do an instruction: the bits that it rests on, or nothing if it is to be tested.
    fn fits_gang(&mut self, inst: &Inst) -> Option<Option<u32>> {
        if self.head.as_ref().is_some_and(|h| h.has(inst) || h.is_linear(inst)) {
            return Some(Some(0));
        }
        let fits = match inst.op {
            Op::Pure(op) if inst.dst.len() == 1 && !inst.guarded => {
                if self.is_affine(inst.dst[0]) {
                    let values: Vec<Option<u64>> = inst.src.iter().map(|v| constant(*v)).collect();
                    let is_odd = |v: &Val| reg(v).is_some_and(|r| self.plan.may_hold_odd_nan[r.idx()]);
                    let is_clean = op.facts().takes_loose || !inst.src.iter().any(is_odd);
                    is_clean && has_scalar_code(op, &values)
                } else {
                    has_vector_code(op)
                }
            }
            Op::Sreg(Sreg::Tid(0..3) | Sreg::Laneid) => true,
            Op::Load { .. } | Op::Store { .. } => match self.fixed_of_gang(inst) {
                Some((_, bit)) => return Some(Some(bit)),
                None => return self.access_of_gang(inst).map(|g| g.bit),
            },
            Op::Mark => true,
            Op::Count(Count::Block { .. } | Count::Branch { .. }) => !self.is_counted(),
            _ => false,
        };
        fits.then_some(Some(0))
    }

    /// Where a load or store at a constant address of shared memory is, and the bit that it rests on, if its value varies.
    fn fixed_of_gang(&self, inst: &Inst) -> Option<(i32, u32)> {
        let (at, bit) = self.head.as_ref()?.fixed(inst)?;
        inst.dst.iter().all(|d| self.is_in_vectors(*d)).then_some((at, bit))
    }

    /// Whether an access may be done for some lanes: loads are done for all of them.
    fn fits_lanes(&mut self, inst: &Inst, going: Option<Going>) -> bool {
        let Some(going) = going.filter(|_| matches!(inst.op, Op::Store { .. })) else { return true };
        let is_fixed = self.fixed_of_gang(inst).is_some();
        let form = if is_fixed { Some(Form::Same) } else { self.access_of_gang(inst).map(|g| g.form) };
        match (form, going) {
            (Some(Form::Row), _) => true,
            // Of several lanes the last one is right.
            (Some(Form::Same), Going::Known(lanes)) => {
                lanes == 1 && AccessClass::of(inst).is_some_and(|c| c.bits >= 32)
            }
            _ => false,
        }
    }

    /// What is to be known of an access of a gang: one that the head may decide about.
    fn access_of_gang(&mut self, inst: &Inst) -> Option<GangAccess> {
        use StateSpace::{Const, Generic, Global, Shared};
        let class = AccessClass::of(inst)?;
        let short = self.ty(class.address) != Ty::B64;
        let n_scalars = inst.dst.iter().filter(|d| matches!(self.place(**d), Place::Words(_))).count();
        let fits = matches!(class.kind, Kind::Load | Kind::Store)
            && matches!(class.space, Global | Const | Generic | Shared)
            && class.order == Order::Weak
            && !class.is_single
            && !inst.guarded
            && class.wants_all()
            && (n_scalars == 0 || n_scalars == inst.dst.len())
            && (!short || class.space == Shared);
        if !fits {
            return None;
        }
        let Val::Reg(r) = class.address else { return None };
        let bit = self.head.as_ref()?.bit_of(&class, r);
        if bit.is_none() && !self.limits_of.contains_key(&self.at) {
            return None;
        }
        let was = std::mem::replace(&mut self.in_part, false);
        let (x, form, scalars) = self.kind_of_access(inst, class, crate::access::Limits::Safe, LANES);
        let x = Access { is_proven: true, ..x };
        let runs = self.runs(inst, &x, form, scalars);
        self.in_part = was;
        Some(GangAccess { x, runs: runs?, form, scalars, bit })
    }

    /// Finds loads that are done where they are read, in a way.
    fn find_folds_of(&mut self, way: &mut Gang) {
        for &(b, n) in &way.blocks {
            let insts = &self.f.blocks[b].insts[..n];
            // Fewer lanes than a vector has are read on their own.
            if matches!(way.going.get(&b), Some(Going::Known(lanes)) if *lanes != u32::MAX) {
                continue;
            }
            for i in 0..n {
                let is_common = insts[i].dst.iter().any(|d| way.common[d.idx()]);
                if is_common || !matches!(insts[i].op, Op::Load { .. }) {
                    continue;
                }
                let taken = |j: usize| way.folds.values().any(|reader| *reader == (b, j));
                if let Some(j) = self.reader_of(insts, i, &|_| false, &taken) {
                    way.folds.insert((b, i), (b, j));
                }
            }
        }
    }

    /// Places for so many warps, if there are enough vectors.
    fn places_of_gang(&self, way: &Gang, size: usize) -> Option<Gang> {
        let f = self.f;
        // A register that is written anew is another value, which may live elsewhere.
        let mut lives = Lives::default();
        let mut takes: Vec<(usize, usize, usize)> = Vec::new();
        let mut at = 0;
        let (first, last) = (way.start, way.blocks.last()?.0);
        let mut delayed: Vec<Reg> = Vec::new();
        for &(b, n) in &way.blocks {
            for (i, inst) in f.blocks[b].insts[..n].iter().enumerate() {
                at += 1;
                if self.head.as_ref().is_some_and(|h| h.has(inst)) {
                    continue;
                }
                if way.folds.contains_key(&(b, i)) {
                    delayed.push(inst.dst[0]);
                    continue;
                }
                let reads: Vec<Reg> = inst.src.iter().filter_map(reg).filter(|r| !delayed.contains(r)).collect();
                for r in reads.iter().filter(|r| self.is_in_vectors(**r)) {
                    lives.read(r.idx(), at, self.plan.facts.live.entry[first].has(r.idx()));
                }
                for d in inst.dst.iter().filter(|d| self.is_in_vectors(**d)) {
                    lives.write(d.idx(), at, reads.contains(d));
                }
                if let (Op::Pure(handloom_ir::simt::Pure::FFma(_)), [d], Some(Val::Reg(sum))) =
                    (inst.op, inst.dst.as_slice(), inst.src.get(2))
                {
                    takes.push((d.idx(), sum.idx(), at));
                }
            }
        }
        let mut gang = Gang { warps: size, ..way.clone() };
        if way.end != End::Place(None) {
            gang.leaves = lives.end(at + 1, &|r| self.plan.facts.live.exit[last].has(r));
        }
        if way.comes_back() {
            // What it reads first is there when it comes back.
            let entered: Vec<usize> = lives.all.iter().filter(|l| l.start == 0).map(|l| l.reg).collect();
            entered.into_iter().for_each(|r| lives.all[lives.last[&r].0].end = at + 1);
        }
        let mut lives = lives.all;
        lives.sort_unstable_by_key(|l| (l.start, l.reg));
        gang.enters = lives.iter().take_while(|l| l.start == 0).map(|l| l.reg).collect();
        let mut free: Vec<u8> = (0..VECTORS).rev().map(|v| v + FIRST_VECTOR).collect();
        let mut active: Vec<(Life, Vec<u8>)> = Vec::new();
        gang.places = vec![self.places.of.clone(); size];
        let mut taken = 0_u32;
        if way.by_warp {
            // What is the same in all warps is there while the others go: nothing else may take its vectors before it is made for the first one.
            lives.sort_by_key(|l| !way.common[l.reg]);
        }
        for life in lives {
            let r = life.reg;
            let copies = if way.common[r] || way.by_warp { 1 } else { size };
            let parts = n_parts(f.regs[r]);
            let sum = takes.iter().find(|t| t.0 == r && t.2 == life.start && t.1 != r).map(|t| t.1);
            let mut over = None;
            active.retain(|(a, v)| {
                let stays = way.by_warp && way.common[a.reg];
                let leaves = sum == Some(a.reg) && a.end == life.start && v.len() == copies * parts && !stays;
                if leaves {
                    over = Some(v.clone());
                } else if a.end < life.start && !stays {
                    free.extend(v);
                    return false;
                }
                !leaves
            });
            let vectors = match over {
                Some(v) => v,
                None if free.len() >= copies * parts => free.split_off(free.len() - copies * parts),
                None => return None,
            };
            let of_warp = |m: usize| {
                let own = &vectors[if copies == 1 { 0 } else { m * parts }..];
                Place::Vectors(std::array::from_fn(|q| own.get(q).filter(|_| q < parts).copied().unwrap_or(0)))
            };
            if life.start == 0 {
                gang.places.iter_mut().enumerate().for_each(|(m, places)| places[r] = of_warp(m));
            } else {
                gang.moves.push((life.start, r, (0..size).map(of_warp).collect()));
            }
            taken = vectors.iter().fold(taken, |t, v| t | 1 << v);
            if !self.a.has_wide_vectors() {
                let bits = |v: &[u8]| v.iter().fold(0, |m, v| m | 1 << (v - FIRST_VECTOR));
                let of = vectors.chunks(parts).take(copies).map(bits).collect();
                gang.alive.push(Alive { life, vectors: of, stays: way.by_warp && way.common[r] });
            }
            active.push((life, vectors));
        }
        gang.moves.sort_by_key(|m| m.0);
        gang.spare = (FIRST_VECTOR..FIRST_VECTOR + VECTORS).find(|v| taken >> v & 1 == 0);
        Some(gang)
    }
}
