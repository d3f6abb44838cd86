//! Addresses of a loop that are made, in each turn, of a number that goes up by the same: pointers in their place.
//!
//! # The model
//! `a[row * n + j]` with indices of 32 bits is a sum, an extension and a product in each turn. As long as the sum does not wrap, what each turn adds to the address is the same, and a
//! register of its own can go up by that: it is made before the loop, by the same instructions, of the first value of the number. That no sum wraps in any turn is for the head to test
//! ([`Climb`]), as what lanes extend is; so there are such pointers only where code may rest on tests. Sums of 64 bits and their products are what they are modulo the width.

use std::borrow::Cow;

use handloom_diag::Span;
use handloom_diag::hash::FastMap;
use handloom_ir::simt::{Function, Inst, Op, Pure, Reg, Term, Val, Vals};
use handloom_ir::types::{Int, Ty};
use handloom_plan::access::AccessClass;
use handloom_plan::analysis::cfg::{Cfg, Set};
use smallvec::smallvec;

use crate::access::reg;
use crate::pointers::{add, put_around};
use crate::rising::{Counted, Definitions, Search, Turns, added, copied};
use crate::table::constant;

/// The most pointers of a loop, and the most instructions that make one.
const MOST: usize = 24;
const MOST_INSTS: usize = 16;
/// The most instructions of a loop's last block.
const MOST_OF_BLOCK: usize = 1_000;
/// The most instructions that are looked at for all loops: each that changes costs a look at the whole function.
const MOST_LOOKED_AT: usize = 400_000;

/// A sum of 32 bits that is extended in each turn of a loop, and must not wrap in any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Climb {
    /// What it is in the first turn.
    pub(crate) first: Val,
    /// Whether it is read as signed.
    pub(crate) signed: bool,
    /// What a turn adds to it.
    pub(crate) step: Val,
    pub(crate) turns: Turns,
}

/// What an address is made of in a turn.
#[derive(Clone, Default)]
struct Chain {
    /// The number that goes up: a register.
    root: Option<Reg>,
    /// What the address goes up by where that goes up by one.
    scale: i64,
    /// Instructions of one block, in ascending order.
    insts: Vec<usize>,
    /// The sums that are extended, and whether as signed.
    extended: Vec<(Val, bool)>,
}

/// A loop that has such addresses.
struct Loop<'s, 'f> {
    s: &'s Search<'f>,
    of: Counted<'f>,
    known: &'s Set,
    /// The block that is looked at.
    block: usize,
    /// By register that it writes: the instruction, if that is one and stands alone.
    made: FastMap<usize, Option<usize>>,
    /// By register that the loop writes.
    changes: &'s Set,
    /// By register that goes up: where it is written, and what a turn adds.
    roots: FastMap<usize, Option<(Definitions, Val)>>,
}

impl Loop<'_, '_> {
    fn inst(&self, i: usize) -> &Inst {
        self.s.inst((self.block, i))
    }

    /// Looks at another block of the loop.
    fn look_at(&mut self, block: usize) {
        self.block = block;
        self.made.clear();
        for (i, inst) in self.s.f.blocks[block].insts.iter().enumerate() {
            let alone = (!inst.guarded && inst.dst.len() == 1).then_some(i);
            inst.dst.iter().for_each(|d| _ = self.made.entry(d.idx()).and_modify(|at| *at = None).or_insert(alone));
        }
    }

    fn knows(&self, v: &Val) -> bool {
        reg(*v).is_none_or(|r| self.known.has(r.idx()))
    }

    /// A register that each turn adds the same to, in the last block, with a first value that a head may know.
    fn root(&mut self, r: Reg) -> bool {
        if !self.roots.contains_key(&r.idx()) {
            let found = self.s.definitions(&self.of, r).filter(|d| d.inside.0 == self.of.asks);
            let with_step = found.and_then(|d| added(self.s.inst(d.inside)).map(|step| (d, step)));
            let fits = |(d, step): &(Definitions, Val)| {
                let first = self.s.inst(d.outside);
                !first.guarded && first.dst.len() == 1 && first.src.iter().all(|v| self.knows(v)) && self.knows(step)
            };
            let found = with_step.filter(fits);
            self.roots.insert(r.idx(), found);
        }
        self.roots[&r.idx()].is_some()
    }

    /// What a register is made of that an instruction reads; `None` of what is no sum of one number that goes up.
    fn chain(&mut self, r: Reg, before: usize, room: usize) -> Option<Chain> {
        if !self.changes.has(r.idx()) {
            return None;
        }
        if self.root(r) {
            // Each turn adds in the last block, behind all others.
            let at = self.roots[&r.idx()].as_ref()?.0.inside.1;
            return (self.block != self.of.asks || before <= at).then(|| Chain {
                root: Some(r),
                scale: 1,
                ..Chain::default()
            });
        }
        let i = (*self.made.get(&r.idx())?).filter(|i| *i < before && self.s.defs[r.idx()] == 1)?;
        let room = room.checked_sub(1)?;
        let inst = self.inst(i).clone();
        let Op::Pure(op) = inst.op else { return None };
        let fixed = |l: &Self, v: Val| reg(v).is_none_or(|r| !l.changes.has(r.idx()) && l.knows(&v));
        let mut of_one = |v: Val| self.chain(reg(v)?, i, room);
        let mut chain = match (op, &inst.src[..]) {
            (Pure::Add(Ty::B32 | Ty::B64) | Pure::Sub(Ty::B32 | Ty::B64), &[a, b]) => {
                match (fixed(self, a), fixed(self, b)) {
                    (false, true) => self.chain(reg(a)?, i, room)?,
                    (true, false) if matches!(op, Pure::Add(_)) => self.chain(reg(b)?, i, room)?,
                    _ => return None,
                }
            }
            (Pure::Ext { bits: 32, signed, from: Ty::B32, to: Ty::B64 }, &[v]) => {
                let mut chain = of_one(v)?;
                chain.extended.push((v, signed));
                chain
            }
            (Pure::MulWide(Int { ty: Ty::B32, signed }), &[a, b]) => {
                let (v, by) = if reg(a).is_some() { (a, b) } else { (b, a) };
                let by = constant(by)? as u32;
                let mut chain = of_one(v)?;
                chain.extended.push((v, signed));
                let by = if signed { i64::from(by.cast_signed()) } else { i64::from(by) };
                chain.scale = chain.scale.checked_mul(by)?;
                chain
            }
            (Pure::Shl(Ty::B64), &[v, by]) => {
                let by = constant(by).filter(|by| *by < 32)?;
                let mut chain = of_one(v)?;
                chain.scale = chain.scale.checked_mul(1 << by)?;
                chain
            }
            _ => return None,
        };
        i32::try_from(chain.scale).ok()?;
        chain.insts.push(i);
        Some(chain)
    }
}

/// What is done to a function for one loop.
#[derive(Default)]
struct Change {
    /// New registers, by number from the first one on.
    regs: Vec<Ty>,
    n: usize,
    /// At the end of the block before the loop.
    made: Vec<Inst>,
    /// At the end of each turn.
    stepped: Vec<Inst>,
    /// Registers of addresses, with what accesses go by instead.
    instead: FastMap<usize, Reg>,
    /// By block and instruction: what the same before the loop writes.
    copies: FastMap<(usize, usize), Reg>,
    /// First values with registers of their own, by place.
    firsts: Vec<((usize, usize), Reg)>,
    /// By number and size: what a turn adds to a pointer.
    steps: Vec<((Val, i64), Val)>,
    climbs: Vec<Climb>,
}

impl Change {
    fn register(&mut self, ty: Ty) -> Reg {
        self.regs.push(ty);
        Reg((self.n + self.regs.len() - 1) as u32)
    }

    fn write(&mut self, op: Pure, src: Vals, span: Span) -> Reg {
        let r = self.register(op.results().0);
        self.made.push(Inst { op: Op::Pure(op), dst: smallvec![r], src, guarded: false, span });
        r
    }

    /// The first value of what an instruction of the outside writes, as one that never changes.
    fn first(&mut self, s: &Search<'_>, at: (usize, usize)) -> Val {
        if let Some(v) = copied(s, at) {
            return v;
        }
        if let Some((_, r)) = self.firsts.iter().find(|(place, _)| *place == at) {
            return Val::Reg(*r);
        }
        let r = self.register(s.f.regs[s.inst(at).dst[0].idx()]);
        self.firsts.push((at, r));
        Val::Reg(r)
    }

    /// The instructions of a chain, before the loop. Returns what the last of them writes.
    fn copy(&mut self, l: &Loop<'_, '_>, chain: &Chain, first: Val) -> Option<Val> {
        let of = |c: &Self, v: Val| match reg(v) {
            Some(r) if Some(r) == chain.root => first,
            Some(r) => {
                let made = l.made.get(&r.idx()).copied().flatten();
                made.and_then(|i| c.copies.get(&(l.block, i))).map_or(v, |r| Val::Reg(*r))
            }
            None => v,
        };
        let mut last = None;
        for &i in &chain.insts {
            let inst = l.inst(i);
            let Op::Pure(op) = inst.op else { return None };
            let copy = match self.copies.get(&(l.block, i)) {
                Some(r) => *r,
                None => {
                    let src = inst.src.iter().map(|v| of(self, *v)).collect();
                    self.write(op, src, inst.span)
                }
            };
            self.copies.insert((l.block, i), copy);
            last = Some(Val::Reg(copy));
        }
        last
    }

    /// What a turn adds to a pointer, where it adds `step` to a number.
    fn step(&mut self, step: Val, scale: i64, is_short: bool, span: Span) -> Val {
        if let Some((_, v)) = self.steps.iter().find(|(key, _)| *key == (step, scale)) {
            return *v;
        }
        let by = Val::Imm(scale.cast_unsigned(), Ty::B64);
        let v = match (constant(step), is_short) {
            (Some(n), true) => Val::Imm(i64::from(n as u32 as i32).wrapping_mul(scale).cast_unsigned(), Ty::B64),
            (Some(n), false) => Val::Imm(n.cast_signed().wrapping_mul(scale).cast_unsigned(), Ty::B64),
            (None, true) => {
                let factor = Val::Imm(u64::from((scale as i32).cast_unsigned()), Ty::B32);
                Val::Reg(self.write(Pure::MulWide(Int { ty: Ty::B32, signed: true }), smallvec![step, factor], span))
            }
            (None, false) => Val::Reg(self.write(Pure::Mul(Ty::B64), smallvec![step, by], span)),
        };
        self.steps.push(((step, scale), v));
        v
    }

    fn apply(mut self, f: &mut Function, before: usize, latch: usize) -> Vec<Climb> {
        f.regs.append(&mut self.regs);
        let mut blocks: Vec<usize> = self.copies.keys().map(|(b, _)| *b).collect();
        blocks.sort_unstable();
        blocks.dedup();
        for &b in &blocks {
            for inst in &mut f.blocks[b].insts {
                if let Some(class) = AccessClass::of(inst)
                    && let Some(own) = reg(class.address).and_then(|r| self.instead.get(&r.idx()))
                {
                    let from = class.address;
                    inst.src.iter_mut().filter(|v| **v == from).for_each(|v| *v = Val::Reg(*own));
                }
            }
        }
        // What made addresses is mostly read by nobody now.
        let mut reads = f.n_reads();
        for &b in &blocks {
            for k in (0..f.blocks[b].insts.len()).rev() {
                let inst = &f.blocks[b].insts[k];
                let is_read = |d: &Reg| reads[d.idx()] > 0;
                if self.copies.contains_key(&(b, k)) && !inst.dst.iter().any(is_read) {
                    inst.src.iter().filter_map(|v| reg(*v)).for_each(|r| reads[r.idx()] -= 1);
                    f.blocks[b].insts.remove(k);
                }
            }
        }
        put_around(f, (before, latch), self.firsts, self.made, self.stepped);
        self.climbs
    }
}

/// Whether lanes go through a block in each turn of a loop with a last block, or in each but for those in which a guard is not passed by all threads, as `lower` asks for: the other side of
/// its branch asks the guard.
fn is_passed(s: &Search<'_>, b: usize, latch: usize) -> bool {
    if s.cfg.dominates(b, latch) {
        return true;
    }
    let &[p] = s.cfg.preds[b].as_slice() else { return false };
    let asks = |x: usize| {
        let block = &s.f.blocks[x];
        matches!(block.term, Term::Branch { .. }) && block.insts.iter().all(|i| matches!(i.op, Op::Pure(_)))
    };
    s.cfg.dominates(p, latch) && s.cfg.succs[p].iter().any(|x| *x != b && asks(*x))
}

/// What is done for a loop, with the block before it and its last one.
fn change(s: &Search<'_>, header: usize, body: &Set, known: &Set) -> Option<(Change, usize, usize)> {
    let &[a, b] = s.cfg.preds[header].as_slice() else { return None };
    let (before, latch) = if body.has(a) { (b, a) } else { (a, b) };
    let (of, cond, goes_on) = s.counted(header, body)?;
    if body.has(before) || of.asks != latch || s.f.blocks[latch].insts.len() > MOST_OF_BLOCK {
        return None;
    }
    let is_plain = matches!(s.f.blocks[before].term, Term::Jump(_) | Term::Branch { .. });
    let (turns, first_count) = s.turns(&of, cond, goes_on)?;
    let has = |v: &Val| reg(*v).is_none_or(|r| known.has(r.idx()));
    if !is_plain || ![turns.by, turns.bound].iter().chain(&s.inst(first_count).src).all(has) {
        return None;
    }
    let mut changes = Set::new(s.f.regs.len());
    for b in body.iter() {
        let block = &s.f.blocks[b];
        let all = block.insts.iter().flat_map(|i| &i.dst).copied().chain(block.term.result());
        all.for_each(|d| _ = changes.add(d.idx()));
    }
    let n_blocks = s.f.blocks.len();
    let made = FastMap::default();
    let mut l = Loop { s, of, known, block: n_blocks, made, changes: &changes, roots: FastMap::default() };
    let mut c = Change { n: s.f.regs.len(), ..Change::default() };
    let count = c.first(s, first_count);
    let turns = Turns { first: count, ..turns };
    let blocks = body.iter().filter(|b| s.cfg.loop_of[*b] == Some(header) && is_passed(s, *b, latch));
    let insts = blocks.flat_map(|b| (0..s.f.blocks[b].insts.len()).map(move |i| (b, i)));
    for (b, i) in insts.take(MOST_OF_BLOCK) {
        let inst = &s.f.blocks[b].insts[i];
        let Some(address) = AccessClass::of(inst).and_then(|class| reg(class.address)) else { continue };
        if c.instead.contains_key(&address.idx()) || c.instead.len() == MOST {
            continue;
        }
        if l.block != b {
            l.look_at(b);
        }
        // A pointer that goes up itself, and sums of it, are what others look at.
        let Some(chain) = l.chain(address, i, MOST_INSTS).filter(|x| x.scale != 1 || !x.extended.is_empty()) else {
            continue;
        };
        let Some((d, step)) = chain.root.and_then(|r| l.roots[&r.idx()].as_ref()) else { continue };
        let (outside, step, is_short) = (d.outside, *step, s.f.regs[chain.root?.idx()] == Ty::B32);
        let first = c.first(s, outside);
        let span = inst.span;
        let address_first = c.copy(&l, &chain, first)?;
        for (v, signed) in &chain.extended {
            let r = reg(*v)?;
            let own = if Some(r) == chain.root {
                first
            } else {
                Val::Reg(*c.copies.get(&(b, l.made.get(&r.idx()).copied().flatten()?))?)
            };
            if !c.climbs.iter().any(|x| x.first == own && x.signed == *signed) {
                c.climbs.push(Climb { first: own, signed: *signed, step, turns });
            }
        }
        let by = c.step(step, chain.scale, is_short, span);
        let own = c.register(Ty::B64);
        c.made.push(Inst {
            op: Op::Pure(Pure::Mov(Ty::B64)),
            dst: smallvec![own],
            src: smallvec![address_first],
            guarded: false,
            span,
        });
        c.stepped.push(add(own, Val::Reg(own), by, span));
        c.instead.insert(address.idx(), own);
    }
    (!c.instead.is_empty()).then_some((c, before, latch))
}

/// The function with pointers in the place of such addresses, and what must not wrap then.
pub(crate) fn climbing_apart<'f>(
    mut f: Cow<'f, Function>,
    cfg: &Cfg,
    known: &dyn Fn(&Function) -> Set,
) -> (Cow<'f, Function>, Vec<Climb>) {
    let mut climbs = Vec::new();
    let n_insts: usize = f.blocks.iter().map(|b| b.insts.len() + 1).sum();
    let mut loops = cfg.loops.iter().filter(|(header, body)| {
        let mut latches = cfg.preds[*header].iter().filter(|p| body.has(**p));
        latches.next().is_some_and(|p| cfg.loop_of[*p] == Some(*header)) && latches.next().is_none()
    });
    for _ in 0..(MOST_LOOKED_AT / n_insts).max(1) {
        let (s, set) = (Search::new(&f, cfg), known(&f));
        let Some((c, before, latch)) = loops.find_map(|(header, body)| change(&s, *header, body, &set)) else { break };
        climbs.extend(c.apply(f.to_mut(), before, latch));
    }
    (f, climbs)
}
