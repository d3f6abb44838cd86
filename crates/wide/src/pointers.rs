//! Addresses of a loop, each in a register of its own that goes up by the same in each turn.
//!
//! # The model
//! Compilers that unroll a loop go through a matrix by a chain: the next row is this one and a pitch, and the last one of a turn and a pitch is the first one of the next turn. Or they add to a pointer
//! that goes up what does not change, in each turn again. Here each such sum that accesses go by gets a register that is made before the loop and goes up at the end of each
//! turn by what the chain goes up by in one: sums modulo 2^64 stay what they are. So `rising` knows how far each of them goes, and gangs keep them for one warp.

use std::borrow::Cow;

use handloom_ir::simt::{Function, Inst, Op, Pure, Reg, Term, Val};
use handloom_ir::types::Ty;
use handloom_plan::access::AccessClass;
use handloom_plan::analysis::cfg::{Cfg, Set};
use handloom_plan::analysis::n_definitions;

use crate::asked::reg;
use crate::firsts::write_first;
use crate::rising::comes_again;

/// The most registers of their own of a loop, and the most terms of a sum.
const MOST: usize = 24;
const MOST_TERMS: usize = 40;

/// A loop that has one block at its end.
struct Loop<'f> {
    f: &'f Function,
    cfg: &'f Cfg,
    header: usize,
    body: &'f Set,
    latch: usize,
    defs: &'f [u32],
    /// Registers that a head may know.
    known: &'f Set,
    /// How many registers there were.
    n_known: usize,
}

/// A pointer of a loop: where it is written there, and what a turn adds to it.
struct Pointer {
    at: (usize, usize),
    terms: Vec<Val>,
    /// Where its first value is made.
    outside: (usize, usize),
}

/// A sum that accesses go by: its register, where it is made, the pointer, and what is added to that.
struct Sum {
    d: Reg,
    at: (usize, usize),
    root: Reg,
    terms: Vec<Val>,
}

/// What is done to a function for one loop.
#[derive(Default)]
struct Change {
    /// Blocks and instructions that are replaced.
    replaced: Vec<((usize, usize), Inst)>,
    /// Instructions that make first values, with registers of these alone.
    firsts: Vec<((usize, usize), Reg)>,
    /// At the end of the block before the loop.
    made: Vec<Inst>,
    /// At the end of each turn.
    stepped: Vec<Inst>,
    /// Sums that accesses go by no more, with what these go by instead.
    instead: Vec<(Reg, Reg)>,
    /// Types of new registers.
    regs: Vec<Ty>,
}

impl<'f> Loop<'f> {
    /// The only instruction of the loop that writes a register, which is not predicated.
    fn written(&self, r: Reg) -> Option<(usize, usize)> {
        let mut at = None;
        for b in self.body.iter() {
            for (i, inst) in self.f.blocks[b].insts.iter().enumerate().filter(|(_, i)| i.dst.contains(&r)) {
                if at.is_some() || inst.guarded || inst.dst.len() != 1 {
                    return None;
                }
                at = Some((b, i));
            }
        }
        at
    }

    fn changes(&self, r: Reg) -> bool {
        let writes = |b: usize| {
            let block = &self.f.blocks[b];
            block.insts.iter().any(|i| i.dst.contains(&r)) || block.term.result() == Some(r)
        };
        self.body.iter().any(writes)
    }

    /// A sum that an instruction of the loop makes of 64 bits, as a register that the loop changes otherwise and terms that it does not change.
    fn sum(&self, at: (usize, usize)) -> Option<(Reg, Vec<Val>)> {
        let inst = &self.f.blocks[at.0].insts[at.1];
        let (Op::Pure(Pure::Add(Ty::B64)), [a, b]) = (inst.op, inst.src.as_slice()) else { return None };
        let is_fixed = |v: &Val| reg(v).is_none_or(|r| !self.changes(r));
        let (root, term) = match (is_fixed(a), is_fixed(b)) {
            (false, true) => (reg(a)?, *b),
            (true, false) => (reg(b)?, *a),
            _ => return None,
        };
        // A sum of this turn, made before it is asked for, is put together with it.
        if self.defs[root.idx()] == 1 {
            let from = self.written(root).filter(|from| from.0 == at.0 && from.1 < at.1)?;
            let (root, mut terms) = self.sum(from)?;
            terms.push(term);
            return (terms.len() <= MOST_TERMS).then_some((root, terms));
        }
        Some((root, vec![term]))
    }

    /// What a turn adds to a register, if it is a pointer: written once in the loop, in its last block, and before the loop made of what a head knows.
    fn pointer(&self, r: Reg) -> Option<Pointer> {
        let at = self.written(r).filter(|at| at.0 == self.latch && self.defs[r.idx()] == 2)?;
        let (root, terms) = self.sum(at)?;
        let blocks = self.f.blocks.iter().enumerate().filter(|(b, _)| !self.body.has(*b));
        let mut places = blocks.flat_map(|(b, x)| (0..x.insts.len()).map(move |i| (b, i)));
        let outside = places.find(|(b, i)| self.f.blocks[*b].insts[*i].dst == [r])?;
        let first = &self.f.blocks[outside.0].insts[outside.1];
        let is_known = root == r && first.src.iter().chain(&terms).all(|v| self.knows(v));
        // Whoever comes into the loop comes from there.
        let is_first =
            self.cfg.dominates(outside.0, self.header) && !comes_again(self.cfg, (self.header, self.body), outside.0);
        (is_known && is_first && !first.guarded).then_some(Pointer { at, terms, outside })
    }

    fn knows(&self, v: &Val) -> bool {
        // Registers that were added for another loop are made of such, if they are no pointers.
        let knows = |r: Reg| if r.idx() < self.n_known { self.known.has(r.idx()) } else { self.defs[r.idx()] == 1 };
        reg(v).is_none_or(knows)
    }

    /// Whether all that reads a sum stands behind it in its block, and are addresses of accesses or sums.
    fn is_for_addresses(&self, r: Reg, at: (usize, usize)) -> bool {
        let mut accesses = false;
        for (b, block) in self.f.blocks.iter().enumerate() {
            if block.term.sources().contains(&Val::Reg(r)) {
                return false;
            }
            for (i, inst) in block.insts.iter().enumerate().filter(|(_, i)| i.src.contains(&Val::Reg(r))) {
                let is_behind = b == at.0 && i > at.1;
                let is_address = AccessClass::of(inst).is_some_and(|c| c.address == Val::Reg(r))
                    && inst.src.iter().filter(|v| **v == Val::Reg(r)).count() == 1;
                let is_sum = !is_address && self.sum((b, i)).is_some();
                if !is_behind || !is_address && !is_sum {
                    return false;
                }
                accesses |= is_address;
            }
        }
        accesses
    }

    fn change(&self) -> Option<Change> {
        let mut c = Change::default();
        let mut pointers: Vec<(Reg, Pointer)> = Vec::new();
        let mut sums: Vec<Sum> = Vec::new();
        for (i, inst) in self.f.blocks[self.latch].insts.iter().enumerate() {
            let ([d], false) = (inst.dst.as_slice(), inst.guarded) else { continue };
            if self.defs[d.idx()] == 1
                && let Some((root, terms)) = self.sum((self.latch, i))
                && self.is_for_addresses(*d, (self.latch, i))
            {
                sums.push(Sum { d: *d, at: (self.latch, i), root, terms });
            }
        }
        for Sum { root, .. } in &sums {
            if !pointers.iter().any(|(r, _)| r == root)
                && let Some(pointer) = self.pointer(*root)
            {
                pointers.push((*root, pointer));
            }
        }
        // Sums are made of what a pointer is in the turn, not in the next one.
        sums.retain(|Sum { at, root, terms, .. }| {
            let is_before = |p: &Pointer| at.1 < p.at.1;
            pointers.iter().any(|(r, p)| r == root && is_before(p)) && terms.iter().all(|v| self.knows(v))
        });
        pointers.retain(|(r, _)| sums.iter().any(|s| s.root == *r));
        if sums.is_empty() || sums.len() > MOST {
            return None;
        }
        let n = self.f.regs.len();
        let mut steps: Vec<(Reg, Val, Reg)> = Vec::new();
        for (r, pointer) in &pointers {
            let at = pointer.at;
            let span = self.f.blocks[at.0].insts[at.1].span;
            let step = self.total(&mut c, n, &pointer.terms, span);
            c.replaced.push((at, add(*r, Val::Reg(*r), step, span)));
            let first = c.register(n);
            c.firsts.push((pointer.outside, first));
            steps.push((*r, step, first));
        }
        for Sum { d, at, root, terms } in sums {
            let span = self.f.blocks[at.0].insts[at.1].span;
            let own = c.register(n);
            let by = self.total(&mut c, n, &terms, span);
            let &(_, step, first) = steps.iter().find(|s| s.0 == root)?;
            c.made.push(add(own, Val::Reg(first), by, span));
            c.stepped.push(add(own, Val::Reg(own), step, span));
            c.instead.push((d, own));
        }
        Some(c)
    }

    /// The sum of what the loop does not change, made before it.
    fn total(&self, c: &mut Change, n: usize, terms: &[Val], span: handloom_diag::Span) -> Val {
        let mut number = 0_u64;
        let mut sum: Option<Val> = None;
        for v in terms {
            match (*v, sum) {
                (Val::Imm(x, _), _) => number = number.wrapping_add(x),
                (v, None) => sum = Some(v),
                (v, Some(so_far)) => {
                    let r = c.register(n);
                    c.made.push(add(r, so_far, v, span));
                    sum = Some(Val::Reg(r));
                }
            }
        }
        match sum {
            None => Val::Imm(number, Ty::B64),
            Some(v) if number == 0 => v,
            Some(v) => {
                let r = c.register(n);
                c.made.push(add(r, v, Val::Imm(number, Ty::B64), span));
                Val::Reg(r)
            }
        }
    }
}

impl Change {
    fn register(&mut self, n: usize) -> Reg {
        self.regs.push(Ty::B64);
        Reg((n + self.regs.len() - 1) as u32)
    }

    fn apply(self, f: &mut Function, before: usize, latch: usize) {
        f.regs.extend(self.regs);
        for ((b, i), inst) in self.replaced {
            f.blocks[b].insts[i] = inst;
        }
        for inst in &mut f.blocks[latch].insts {
            if let Some(class) = AccessClass::of(inst)
                && let Some((_, own)) = self.instead.iter().find(|(d, _)| class.address == Val::Reg(*d))
            {
                let from = class.address;
                inst.src.iter_mut().filter(|v| **v == from).for_each(|v| *v = Val::Reg(*own));
            }
        }
        // What made the sums is read by nobody now, or only by what made others.
        let defs = n_definitions(f);
        loop {
            let is_read = |d: &Reg| {
                let v = Val::Reg(*d);
                f.blocks.iter().any(|b| b.term.sources().contains(&v) || b.insts.iter().any(|i| i.src.contains(&v)))
            };
            let is_idle = |i: &Inst| match (i.op, i.dst.as_slice()) {
                (Op::Pure(Pure::Add(Ty::B64)), [d]) => !i.guarded && defs[d.idx()] == 1 && !is_read(d),
                _ => false,
            };
            let Some(k) = f.blocks[latch].insts.iter().position(is_idle) else { break };
            f.blocks[latch].insts.remove(k);
        }
        let mut firsts = self.firsts;
        firsts.sort_unstable_by_key(|(at, _)| std::cmp::Reverse(*at));
        for (at, first) in firsts {
            write_first(f, at, first);
        }
        f.blocks[before].insts.extend(self.made);
        // What the branch asks is made last.
        let block = &mut f.blocks[latch];
        let asked =
            block.insts.last().is_some_and(|i| i.dst.iter().any(|d| block.term.sources().contains(&Val::Reg(*d))));
        let at = block.insts.len() - usize::from(asked);
        block.insts.splice(at..at, self.stepped);
    }
}

fn add(to: Reg, a: Val, b: Val, span: handloom_diag::Span) -> Inst {
    Inst { op: Op::Pure(Pure::Add(Ty::B64)), dst: vec![to], src: vec![a, b], guarded: false, span }
}

/// The function with pointers of their own for what accesses of loops go by.
pub(crate) fn pointers_apart<'f>(mut f: Cow<'f, Function>, known: &dyn Fn(&Function) -> Set) -> Cow<'f, Function> {
    let goes_back =
        |(b, block): (usize, &handloom_ir::simt::Block)| block.term.successors().iter().any(|t| t.idx() <= b);
    if !f.blocks.iter().enumerate().any(goes_back) {
        return f;
    }
    let (cfg, known, n_known) = (Cfg::new(&f), known(&f), f.regs.len());
    for (header, body) in &cfg.loops {
        let [a, b] = cfg.preds[*header].as_slice() else { continue };
        let (before, latch) = if body.has(*a) { (*b, *a) } else { (*a, *b) };
        let is_inner = cfg.loop_of[latch] == Some(*header);
        if body.has(before)
            || !body.has(latch)
            || !is_inner
            || !matches!(f.blocks[before].term, Term::Jump(_) | Term::Branch { .. })
        {
            continue;
        }
        let defs = n_definitions(&f);
        let found =
            Loop { f: &f, cfg: &cfg, header: *header, body, latch, defs: &defs, known: &known, n_known }.change();
        if let Some(change) = found {
            change.apply(f.to_mut(), before, latch);
        }
    }
    f
}
