//! Addresses that go up by the same in each turn of a loop, and how many turns it has: what the head needs to decide about all of them at once.
//!
//! # The model
//! A loop that is gone round as long as a *count*, which goes up by a number in each turn, compares so with a bound has as many turns as its first count and the bound say. An
//! address to which each turn adds the same *step* is then, in the accesses of turn `t`, its first value and `t` steps: the lanes find their elements between where they are in the
//! first turn and where they are in the last one. That holds for each thread by itself, whoever goes round with it.

use std::borrow::Cow;

use handloom_ir::simt::{Block, Function, Inst, Op, Pure, Reg, Term, Val};
use handloom_ir::types::{Cmp, Int, Ty};
use handloom_plan::access::AccessClass;
use handloom_plan::analysis::cfg::{Cfg, Set};
use handloom_plan::analysis::n_definitions;

use crate::asked::reg;
use crate::firsts::write_first;
use crate::table::constant;

/// The most blocks before a loop that are looked at for what guards it.
const MOST_BEFORE: usize = 4;
/// The most blocks of a turn that are looked at for whether an access comes behind what is added to its address.
const MOST_BEHIND: usize = 64;

/// How often a loop is gone round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Turns {
    /// The count before the first turn, of 32 or 64 bits. Lanes may have different ones.
    pub(crate) first: Val,
    /// What a turn adds to it: a number, not 0, or what the loop does not change, which is to be positive.
    pub(crate) by: Val,
    /// Another turn follows where the count behind one compares so with the bound: upwards `Lt`, `Le` or `Ne`, downwards `Gt`, `Ge` or `Ne`.
    pub(crate) cmp: Cmp,
    /// Whether the comparison is one of signed integers.
    pub(crate) signed: bool,
    pub(crate) bound: Val,
    /// Whether nobody comes to the loop whose first count equals the bound.
    pub(crate) is_guarded: bool,
}

impl Turns {
    /// What a turn adds to the count, if that is a number.
    pub(crate) fn number(&self) -> Option<i32> {
        constant(self.by).map(|by| by as u32 as i32)
    }
}

/// An address that goes up in a loop, and is used there alone, before the step of a turn is added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rising {
    pub(crate) address: Reg,
    /// What it is in the first turn.
    pub(crate) first: Val,
    pub(crate) step: Val,
    pub(crate) turns: Turns,
}

/// Where a register of two definitions gets its values: block and instruction.
pub(crate) struct Definitions {
    pub(crate) outside: (usize, usize),
    pub(crate) inside: (usize, usize),
}

/// A loop whose turns are counted.
pub(crate) struct Counted<'f> {
    pub(crate) header: usize,
    pub(crate) body: &'f Set,
    /// The block that asks whether another turn follows.
    pub(crate) asks: usize,
}

/// A function as it is looked at.
pub(crate) struct Search<'f> {
    pub(crate) f: &'f Function,
    pub(crate) cfg: &'f Cfg,
    /// By register: how many instructions and ends of blocks write it.
    pub(crate) defs: Vec<u32>,
    /// By register of two definitions: the instructions that write it alone and are not predicated, in ascending order.
    writes: Places,
    /// By register: the accesses whose address it is, in ascending order.
    accesses: Places,
    /// By block: the instructions that add to the register that they write, where accesses have that as their address.
    adding: Vec<Vec<usize>>,
}

/// Blocks and instructions by register, sorted.
type Places = Vec<(Reg, (usize, usize))>;

/// Those of one register.
fn places_of(all: &Places, r: Reg) -> &[(Reg, (usize, usize))] {
    let start = all.partition_point(|(x, _)| *x < r);
    &all[start..start + all[start..].partition_point(|(x, _)| *x == r)]
}

impl<'f> Search<'f> {
    pub(crate) fn new(f: &'f Function, cfg: &'f Cfg) -> Search<'f> {
        let (mut writes, mut accesses) = (Places::new(), Places::new());
        let defs = n_definitions(f);
        for (b, block) in f.blocks.iter().enumerate() {
            for (i, inst) in block.insts.iter().enumerate() {
                if let ([r], false) = (inst.dst.as_slice(), inst.guarded)
                    && defs[r.idx()] == 2
                {
                    writes.push((*r, (b, i)));
                }
                if let Some(r) = AccessClass::of(inst).and_then(|class| reg(&class.address)) {
                    accesses.push((r, (b, i)));
                }
            }
        }
        writes.sort_unstable();
        accesses.sort_unstable();
        // Counters of loops inside each other are asked for in all of these: those that are no addresses are left out here.
        let mut is_address = vec![false; f.regs.len()];
        accesses.iter().for_each(|(r, _)| is_address[r.idx()] = true);
        let is_adding = |i: &Inst| i.dst.first().is_some_and(|d| is_address[d.idx()]) && added(i).is_some();
        let adding = |b: &Block| (0..b.insts.len()).filter(|i| is_adding(&b.insts[*i])).collect();
        let adding = f.blocks.iter().map(adding).collect();
        Search { f, cfg, defs, writes, accesses, adding }
    }

    pub(crate) fn inst(&self, (b, i): (usize, usize)) -> &'f Inst {
        &self.f.blocks[b].insts[i]
    }

    /// The loop with a header, if it has one latch, which asks by a condition whether another turn follows; with the condition and what it is then.
    pub(crate) fn counted(&self, header: usize, body: &'f Set) -> Option<(Counted<'f>, Reg, bool)> {
        let mut latches = self.cfg.preds[header].iter().copied().filter(|p| body.has(*p));
        let (latch, None) = (latches.next()?, latches.next()) else { return None };
        let (mut asks, mut on) = (latch, header);
        if let (Term::Jump(_), [before]) = (&self.f.blocks[latch].term, self.cfg.preds[latch].as_slice())
            && self.f.blocks[latch].insts.is_empty()
            && latch != header
        {
            (asks, on) = (*before, latch);
        }
        let Term::Branch { cond: Val::Reg(cond), then, otherwise } = &self.f.blocks[asks].term else { return None };
        let (then, otherwise) = (then.idx(), otherwise.idx());
        let leaves = if then == on { otherwise } else { then };
        let fits = (then == on) != (otherwise == on) && !body.has(leaves);
        fits.then_some((Counted { header, body, asks }, *cond, then == on))
    }

    /// Where a register is written, if that is once in a loop, in each turn of it, and once before: whoever comes into the loop comes from there.
    pub(crate) fn definitions(&self, l: &Counted<'_>, r: Reg) -> Option<Definitions> {
        let &[(_, a), (_, b)] = places_of(&self.writes, r) else { return None };
        let (inside, outside) = if l.body.has(a.0) { (a, b) } else { (b, a) };
        if !l.body.has(inside.0) || l.body.has(outside.0) {
            return None;
        }
        let in_turn = self.cfg.loop_of[inside.0] == Some(l.header) && self.cfg.dominates(inside.0, l.asks);
        let fits =
            in_turn && self.cfg.dominates(outside.0, l.header) && !comes_again(self.cfg, (l.header, l.body), outside.0);
        fits.then_some(Definitions { outside, inside })
    }

    /// The number of turns of a loop, with the instruction that makes the first count.
    pub(crate) fn turns(&self, l: &Counted<'_>, cond: Reg, goes_on: bool) -> Option<(Turns, (usize, usize))> {
        let insts = &self.f.blocks[l.asks].insts;
        let at = insts.iter().position(|i| i.dst[..] == [cond] && !i.guarded)?;
        let Op::Pure(Pure::ICmp(cmp, Int { ty: Ty::B32 | Ty::B64, signed })) = insts[at].op else { return None };
        if self.defs[cond.idx()] != 1 {
            return None;
        }
        let cmp = if goes_on { Some(cmp) } else { cmp.opposite() };
        let sides = [(0, 1, cmp?), (1, 0, cmp?.swapped())];
        sides.into_iter().find_map(|(count, bound, cmp)| {
            let count = reg(&insts[at].src[count])?;
            let d = self.definitions(l, count)?;
            let by = added(self.inst(d.inside))?;
            let bound = insts[at].src[bound];
            let is_guarded = cmp == Cmp::Ne && self.is_guarded(l, d.outside, bound);
            let turns = Turns { first: Val::Reg(count), by, cmp, signed, bound, is_guarded };
            let fits = match (cmp, turns.number()) {
                (Cmp::Lt | Cmp::Le, by) => by.is_none_or(|by| by > 0),
                (Cmp::Gt | Cmp::Ge, Some(by)) => by < 0 && by != i32::MIN,
                (Cmp::Ne, Some(by)) => by != 0 && by != i32::MIN,
                _ => false,
            };
            // A number of 64 bits is one that 32 hold.
            let is_short =
                |v: Val| constant(v).is_none_or(|n| self.f.ty(v) != Ty::B64 || i32::try_from(n.cast_signed()).is_ok());
            // The count is asked behind what the turn adds to it.
            let is_behind = d.inside.0 != l.asks || d.inside.1 < at;
            (fits && is_behind && is_short(by)).then_some((turns, d.outside))
        })
    }

    /// Whether a loop is come to only where what an instruction writes, its first count, differs from the bound.
    fn is_guarded(&self, l: &Counted<'_>, outside: (usize, usize), bound: Val) -> bool {
        let first = self.inst(outside);
        // What is copied never changes; the count itself has its first value from there on.
        let copied = copied(self, outside);
        let is_first = |v: Val, (b, i): (usize, usize)| {
            let is_behind = if b == outside.0 { i > outside.1 } else { self.cfg.dominates(outside.0, b) };
            Some(v) == copied || v == Val::Reg(first.dst[0]) && is_behind
        };
        // Along the only way to the loop.
        let mut from = l.header;
        for _ in 0..MOST_BEFORE {
            let mut before = self.cfg.preds[from].iter().copied().filter(|p| !l.body.has(*p));
            let (Some(b), None) = (before.next(), before.next()) else { return false };
            if let Term::Branch { cond: Val::Reg(cond), then, otherwise } = self.f.blocks[b].term
                && then != otherwise
                && self.defs[cond.idx()] == 1
                && let Some(k) = self.f.blocks[b].insts.iter().position(|i| i.dst[..] == [cond] && !i.guarded)
                && let Op::Pure(Pure::ICmp(cmp, _)) = self.f.blocks[b].insts[k].op
            {
                let is_of = |a: Val, c: Val| is_first(a, (b, k)) && c == bound;
                let differs = cmp == if then.idx() == from { Cmp::Ne } else { Cmp::Eq };
                let src = &self.f.blocks[b].insts[k].src;
                if differs && (is_of(src[0], src[1]) || is_of(src[1], src[0])) {
                    return true;
                }
            }
            from = b;
        }
        false
    }

    /// Whether all accesses by a register lie in a loop, before what a turn adds to it.
    fn is_used_before(&self, l: &Counted<'_>, r: Reg, (b, i): (usize, usize)) -> bool {
        let is_before = |&(y, k): &(usize, usize)| {
            if y == b { k < i } else { self.cfg.dominates(y, b) || !follows_in_turn(self.cfg, l, b, y) }
        };
        let all = places_of(&self.accesses, r);
        !all.is_empty() && all.iter().all(|(_, at)| l.body.has(at.0) && is_before(at))
    }

    /// What rises, with the instructions that make first values: of the address and of the count.
    fn rising(&self) -> Vec<(Rising, [(usize, usize); 2])> {
        let mut found = Vec::new();
        for (header, body) in &self.cfg.loops {
            let Some((l, cond, goes_on)) = self.counted(*header, body) else { continue };
            let Some((turns, first_count)) = self.turns(&l, cond, goes_on) else { continue };
            let adding = body.iter().flat_map(|b| self.adding[b].iter().map(move |i| (b, *i)));
            for at in adding {
                let Some(step) = added(self.inst(at)) else { continue };
                let r = self.inst(at).dst[0];
                let Some(d) = self.definitions(&l, r).filter(|d| d.inside == at) else { continue };
                if self.is_used_before(&l, r, at) {
                    let rising = Rising { address: r, first: Val::Reg(r), step, turns };
                    found.push((rising, [d.outside, first_count]));
                }
            }
        }
        found
    }
}

/// What an instruction adds to the register that it writes.
pub(crate) fn added(inst: &Inst) -> Option<Val> {
    let own = Val::Reg(*inst.dst.first()?);
    match (inst.op, inst.src.as_slice()) {
        (Op::Pure(Pure::Add(Ty::B32 | Ty::B64)), [a, b]) if *a == own && *b != own => Some(*b),
        (Op::Pure(Pure::Add(Ty::B32 | Ty::B64)), [a, b]) if *b == own && *a != own => Some(*a),
        _ => None,
    }
}

/// Whether a block of a loop may be come to behind another one in the same turn: also where that is far away.
fn follows_in_turn(cfg: &Cfg, l: &Counted<'_>, behind: usize, block: usize) -> bool {
    let mut seen = Set::new(cfg.succs.len());
    let mut work = vec![behind];
    for _ in 0..MOST_BEHIND {
        let Some(b) = work.pop() else { return false };
        for s in cfg.succs[b].iter().copied().filter(|s| l.body.has(*s) && *s != l.header) {
            if s == block {
                return true;
            }
            if seen.add(s) {
                work.push(s);
            }
        }
    }
    true
}

/// Whether a loop that was left may be come to again without a block.
pub(crate) fn comes_again(cfg: &Cfg, (header, body): (usize, &Set), without: usize) -> bool {
    let mut seen = Set::new(cfg.succs.len());
    let mut work: Vec<usize> = body.iter().flat_map(|b| &cfg.succs[b]).copied().filter(|b| !body.has(*b)).collect();
    while let Some(b) = work.pop() {
        if b == header {
            return true;
        }
        if b != without && seen.add(b) {
            work.extend(&cfg.succs[b]);
        }
    }
    false
}

/// The first value of a register that an instruction copies from what never changes.
pub(crate) fn copied(s: &Search<'_>, at: (usize, usize)) -> Option<Val> {
    let inst = s.inst(at);
    match (inst.op, inst.src.as_slice()) {
        (Op::Pure(Pure::Mov(_)), [v]) if reg(v).is_none_or(|r| s.defs[r.idx()] == 1) => Some(*v),
        _ => None,
    }
}

/// The addresses that rise, whose first values are copied from registers that never change.
pub(crate) fn rising(f: &Function, cfg: &Cfg) -> Vec<Rising> {
    if cfg.loops.is_empty() {
        return Vec::new();
    }
    let s = Search::new(f, cfg);
    let with_first = |(r, [address, count]): (Rising, [(usize, usize); 2])| {
        let turns = Turns { first: copied(&s, count)?, ..r.turns };
        Some(Rising { first: copied(&s, address)?, turns, ..r })
    };
    s.rising().into_iter().filter_map(with_first).collect()
}

/// The function with registers of their own for the first values of what rises, if they are made of what is known.
pub(crate) fn first_values_apart<'f>(
    f: Cow<'f, Function>,
    cfg: &Cfg,
    known: &dyn Fn(&Function) -> Set,
) -> Cow<'f, Function> {
    let s = Search::new(&f, cfg);
    let found = s.rising();
    if found.is_empty() {
        return f;
    }
    let set = known(&f);
    let known = |v: &Val| reg(v).is_none_or(|r| set.has(r.idx()));
    let mut places: Vec<(usize, usize)> = Vec::new();
    for (r, firsts) in found {
        let all = [&r.step, &r.turns.bound, &r.turns.by];
        let is_made = firsts.iter().all(|at| s.inst(*at).src.iter().all(known));
        if is_made && all.into_iter().all(known) {
            places.extend(firsts.iter().filter(|at| copied(&s, **at).is_none()));
        }
    }
    places.sort_unstable();
    places.dedup();
    if places.is_empty() {
        return f;
    }
    let mut f = f.into_owned();
    for (b, i) in places.into_iter().rev() {
        let own = Reg(f.regs.len() as u32);
        f.regs.push(f.regs[f.blocks[b].insts[i].dst[0].idx()]);
        write_first(&mut f, (b, i), own);
    }
    Cow::Owned(f)
}
