//! Several warps side by side: a straight way of a turn, emitted for a *gang* of warps at once.
//!
//! # The model
//! A turn mostly goes one way: from its start through guards that hold in all lanes to the next barrier or the end, over accesses that the head decided about. Such a
//! way is emitted once more, after all blocks, for 2 or 4 warps whose contexts follow each other, instruction by instruction: each warp has vectors of its own, chosen for
//! this way alone; what is the same in all warps is loaded once; addresses are made once and lie at distances from each other where the step from warp to warp is
//! a constant. Chains of operations that wait for each other so stand beside others, and what is done once a warp is done once a gang.
//!
//! A turn takes this way if the head has set all bits that it rests on. Nothing in it tests, refuses or leaves: so it needs no way back. Warps that are left over, and all of
//! them where a bit is missing, go through the blocks one after the other.

mod code;

use std::collections::HashMap;
use std::fmt;

use handloom_ir::simt::{Inst, Op, Reg, Term, Val};
use handloom_ir::types::{Order, Sreg, StateSpace, Ty};
use handloom_plan::access::{AccessClass, Kind};

use crate::access::{Access, Form, Runs};
use crate::alloc::{FIRST_VECTOR, Place, n_parts};
use crate::asm::Label;
use crate::emit::*;
use crate::ops::has_vector_code;
use crate::table::{constant, has_scalar_code};

/// How many warps may go side by side, the best first.
const SIZES: [usize; 2] = [4, 2];
/// Instructions of the IR times warps: more would be long code.
const MOST: usize = 400;
/// Vectors that hold registers.
const VECTORS: u8 = 32 - FIRST_VECTOR;

/// A way that several warps go side by side.
#[derive(Clone)]
pub(crate) struct Gang {
    /// The block that turns start at.
    pub(crate) start: usize,
    /// How many warps.
    pub(crate) warps: usize,
    /// The blocks of the way, with how many instructions of each are done.
    blocks: Vec<(usize, usize)>,
    /// The bits of the head that it rests on.
    pub(crate) bits: u32,
    /// The block whose barrier it ends at; `None` for the end of the function.
    pub(crate) end: Option<usize>,
    /// By register: whether it is the same in all warps.
    common: Vec<bool>,
    /// By block and instruction that loads: the instruction that reads the value from memory.
    folds: HashMap<(usize, usize), (usize, usize)>,
    /// By warp: where registers live.
    places: Vec<Vec<Place>>,
    /// Registers that are read from their homes first.
    enters: Vec<usize>,
    /// Registers that are written to their homes last.
    leaves: Vec<usize>,
    /// Where its code starts.
    pub(crate) label: Label,
}

impl fmt::Display for Gang {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blocks: Vec<String> = self.blocks.iter().map(|(b, _)| format!("b{b}")).collect();
        write!(out, "{} warps side by side through {}", self.warps, blocks.join(", "))?;
        write!(out, " if the head has set {:#x}; {} loads are operands", self.bits, self.folds.len())
    }
}

/// An access of a gang: all that is to be known for its code.
pub(crate) struct GangAccess {
    x: Access,
    runs: Runs,
    form: Form,
    scalars: bool,
    bit: u32,
}

fn reg(v: &Val) -> Option<Reg> {
    match v {
        Val::Reg(r) => Some(*r),
        Val::Imm(..) => None,
    }
}

impl Emit<'_> {
    /// The gangs of a function. Asked after all blocks have been emitted, since only then it is known what the head decides.
    pub(crate) fn find_gangs(&mut self) -> Vec<Gang> {
        let threads = self.plan.facts.shape.ntid.iter().product::<u32>();
        if !self.a.has_wide_vectors() || !threads.is_multiple_of(32) || self.turns.is_none() || self.head.is_none() {
            return Vec::new();
        }
        let n_warps = (threads / 32) as usize;
        let starts = self.starts_of_turns();
        let mut gangs = Vec::new();
        for start in starts {
            let Some(way) = self.way_from(start) else { continue };
            let n = way.blocks.iter().map(|(_, n)| n).sum::<usize>();
            let found = SIZES.into_iter().filter(|size| *size <= n_warps && n * size <= MOST);
            let mut found = found.filter_map(|size| self.places_of_gang(&way, size));
            gangs.extend(found.next());
        }
        gangs
    }

    /// The way of a turn, without places for registers.
    fn way_from(&mut self, start: usize) -> Option<Gang> {
        let f = self.f;
        let mut way = Gang {
            start,
            warps: 0,
            blocks: Vec::new(),
            bits: 0,
            end: None,
            common: vec![false; f.regs.len()],
            folds: HashMap::new(),
            places: Vec::new(),
            enters: Vec::new(),
            leaves: Vec::new(),
            label: self.a.label(),
        };
        let mut works = false;
        let mut b = start;
        loop {
            let block = &f.blocks[b];
            let guard = self.head.as_ref().and_then(|h| h.guard_of(b));
            let n = guard.map_or(block.insts.len(), |g| g.from);
            for inst in &block.insts[..n] {
                let bits = self.fits_gang(inst)?;
                way.bits |= bits;
                let is_nothing = self.head.as_ref().is_some_and(|h| h.has(inst) || h.is_linear(inst));
                works |= !is_nothing;
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
                Term::Branch { then, otherwise, .. } => {
                    let (then, otherwise) = (then.idx(), otherwise.idx());
                    // What is guarded stands before what follows.
                    let (to, bit) =
                        if then < otherwise { (then, guard?.bits.0) } else { (otherwise, guard?.bits.1) };
                    way.bits |= bit;
                    to
                }
                Term::Ret | Term::Exit if f.is_entry => break,
                _ if self.plain_barrier(b).is_some() => {
                    way.end = Some(b);
                    break;
                }
                _ => return None,
            };
            if next <= b {
                return None;
            }
            b = next;
        }
        // Warps that do nothing in the turn come to where the others do.
        let idle = self.head.as_ref().and_then(|h| h.idle(start));
        if !works || idle.is_some_and(|i| i.barrier != way.end) {
            return None;
        }
        self.find_folds_of(&mut way);
        Some(way)
    }

    fn is_in_vectors(&self, r: Reg) -> bool {
        matches!(self.place(r), Place::Vectors(_))
    }

    fn is_same_in_warps(&self, r: Reg) -> bool {
        self.head.as_ref().is_some_and(|h| h.is_same_in_warps(r))
    }

    /// Whether a gang may do an instruction: the bits that it rests on.
    fn fits_gang(&mut self, inst: &Inst) -> Option<u32> {
        if self.head.as_ref().is_some_and(|h| h.has(inst) || h.is_linear(inst)) {
            return Some(0);
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
            Op::Load { .. } | Op::Store { .. } => return self.access_of_gang(inst).map(|g| g.bit),
            Op::Hint => true,
            _ => false,
        };
        fits.then_some(0)
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
        let bit = self.head.as_ref()?.bit_of(&class, r)?;
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
        // Life of each register: first and last mention, and what it may take over.
        let mut lives: HashMap<usize, (usize, usize)> = HashMap::new();
        let mut takes: Vec<(usize, usize, usize)> = Vec::new();
        let mut written = vec![false; f.regs.len()];
        let mut note = |r: Reg, at: usize| {
            if self.is_in_vectors(r) {
                let life = lives.entry(r.idx()).or_insert((at, at));
                *life = (life.0.min(at), life.1.max(at));
            }
        };
        let mut at = 0;
        let (first, last) = (way.start, way.blocks.last()?.0);
        let mut delayed: HashMap<(usize, usize), Reg> = HashMap::new();
        for &(b, n) in &way.blocks {
            for (i, inst) in f.blocks[b].insts[..n].iter().enumerate() {
                at += 1;
                if self.head.as_ref().is_some_and(|h| h.has(inst)) {
                    continue;
                }
                if let Some(reader) = way.folds.get(&(b, i)) {
                    delayed.insert(*reader, inst.dst[0]);
                    continue;
                }
                let is_delayed = |r: &Reg| delayed.values().any(|d| d == r);
                inst.src.iter().filter_map(reg).filter(|r| !is_delayed(r)).for_each(|r| note(r, at));
                for d in &inst.dst {
                    note(*d, at);
                    written[d.idx()] = true;
                }
                if let (Op::Pure(handloom_ir::simt::Pure::FFma(_)), [d], Some(Val::Reg(sum))) =
                    (inst.op, inst.dst.as_slice(), inst.src.get(2))
                {
                    takes.push((d.idx(), sum.idx(), at));
                }
            }
        }
        let end = at + 1;
        let lives_after = |r: usize| self.plan.facts.live.exit[last].has(r);
        let is_entered = |r: usize| self.plan.facts.live.entry[first].has(r);
        let mut gang = Gang { warps: size, ..way.clone() };
        for (r, life) in &mut lives {
            if is_entered(*r) {
                life.0 = 0;
                gang.enters.push(*r);
            }
            if written[*r] && way.end.is_some() && lives_after(*r) {
                life.1 = end;
                gang.leaves.push(*r);
            }
        }
        gang.enters.sort_unstable();
        gang.leaves.sort_unstable();
        let mut order: Vec<(usize, (usize, usize))> = lives.into_iter().collect();
        order.sort_unstable_by_key(|(r, life)| (life.0, *r));
        let mut free: Vec<u8> = (0..VECTORS).rev().map(|v| v + FIRST_VECTOR).collect();
        let mut active: Vec<(usize, usize, Vec<u8>)> = Vec::new();
        gang.places = vec![self.places.of.clone(); size];
        for (r, (start, until)) in order {
            let copies = if way.common[r] { 1 } else { size };
            let parts = n_parts(f.regs[r]);
            let sum = takes.iter().find(|t| t.0 == r && t.2 == start && t.1 != r).map(|t| t.1);
            let mut over = None;
            active.retain(|(a, end, v)| {
                let leaves = sum == Some(*a) && *end == start && v.len() == copies * parts;
                if leaves {
                    over = Some(v.clone());
                } else if *end < start {
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
            for (m, places) in gang.places.iter_mut().enumerate() {
                let from = if way.common[r] { 0 } else { m * parts };
                let own = &vectors[from..from + parts];
                places[r] = Place::Vectors(std::array::from_fn(|q| own.get(q).copied().unwrap_or(0)));
            }
            active.push((r, until, vectors));
        }
        Some(gang)
    }
}
