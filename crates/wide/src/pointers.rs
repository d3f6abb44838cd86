//! Addresses of a loop, each in a register of its own that goes up by the same in each turn.
//!
//! # The model
//! Compilers that unroll a loop go through a matrix by a chain: the next row is this one and a pitch, and the last one of a turn and a pitch is the first one of the next turn. Or they add to a pointer
//! that goes up what does not change, in each turn again. Here each such sum that accesses go by gets a register that is made before the loop and goes up at the end of each
//! turn by what the chain goes up by in one: sums modulo 2^64 stay what they are. So `rising` knows how far each of them goes, and gangs keep them for one warp.

use std::borrow::Cow;

use handloom_diag::hash::FastMap;
use handloom_ir::simt::{Function, Inst, Op, Pure, Reg, Term, Val};
use handloom_ir::types::Ty;
use handloom_plan::access::AccessClass;
use handloom_plan::analysis::cfg::{Cfg, Set};
use handloom_plan::analysis::n_definitions;
use smallvec::smallvec;

use crate::asked::reg;
use crate::firsts::write_first;
use crate::rising::comes_again;

/// The most registers of their own of a loop, and the most terms of a sum.
const MOST: usize = 24;
const MOST_TERMS: usize = 40;
/// The most loops of a function: each costs a look at the whole function.
const MOST_LOOPS: usize = 100;
/// The most instructions of a loop's last block: what reads its sums is looked for in all of it.
const MOST_INSTS: usize = 4_000;

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
    /// By register that the loop writes: where, if that is one place.
    writes: FastMap<usize, Option<(usize, usize)>>,
    /// By register: how often it is read.
    reads: &'f [u32],
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
        let at = (*self.writes.get(&r.idx())?)?;
        let inst = &self.f.blocks[at.0].insts[at.1];
        (!inst.guarded && inst.dst.len() == 1).then_some(at)
    }

    fn changes(&self, r: Reg) -> bool {
        self.writes.contains_key(&r.idx())
    }

    /// A sum that an instruction of the loop makes of 64 bits, as a register that the loop changes otherwise and terms that it does not change.
    fn sum(&self, at: (usize, usize)) -> Option<(Reg, Vec<Val>)> {
        self.sum_of(at, MOST_TERMS)
    }

    /// The same, of so many terms at most.
    fn sum_of(&self, at: (usize, usize), most: usize) -> Option<(Reg, Vec<Val>)> {
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
            let (root, mut terms) = self.sum_of(from, most.checked_sub(1)?)?;
            terms.push(term);
            return Some((root, terms));
        }
        Some((root, vec![term]))
    }

    /// What a turn adds to a register, if it is a pointer: written once in the loop, in its last block, and before the loop made of what a head knows.
    fn pointer(&self, r: Reg) -> Option<Pointer> {
        let at = self.written(r).filter(|at| at.0 == self.latch && self.defs[r.idx()] == 2)?;
        let (root, terms) = self.sum(at)?;
        let blocks = self.f.blocks.iter().enumerate().filter(|(b, _)| !self.body.has(*b));
        let mut places = blocks.flat_map(|(b, x)| (0..x.insts.len()).map(move |i| (b, i)));
        let outside = places.find(|(b, i)| self.f.blocks[*b].insts[*i].dst[..] == [r])?;
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
        let (mut accesses, mut n) = (false, 0);
        for (i, inst) in self.f.blocks[at.0].insts.iter().enumerate().skip(at.1 + 1) {
            let in_inst = inst.src.iter().filter(|v| **v == Val::Reg(r)).count();
            if in_inst == 0 {
                continue;
            }
            let is_address = in_inst == 1 && AccessClass::of(inst).is_some_and(|c| c.address == Val::Reg(r));
            if !is_address && self.sum((at.0, i)).is_none() {
                return false;
            }
            n += in_inst as u32;
            accesses |= is_address;
        }
        // All of them.
        accesses && n == self.reads[r.idx()]
    }

    fn change(&self) -> Option<Change> {
        let mut c = Change::default();
        let mut pointers: Vec<(Reg, Pointer)> = Vec::new();
        let mut sums: Vec<Sum> = Vec::new();
        for (i, inst) in self.f.blocks[self.latch].insts.iter().enumerate() {
            let [d] = inst.dst.as_slice() else { continue };
            if may_be_sum(inst, self.defs)
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
        // What made the sums is read by nobody now, or only by what made others, which stand behind it.
        let (defs, mut reads) = (n_definitions(f), f.n_reads());
        for k in (0..f.blocks[latch].insts.len()).rev() {
            let inst = &f.blocks[latch].insts[k];
            let is_sum = matches!(inst.op, Op::Pure(Pure::Add(Ty::B64))) && !inst.guarded;
            if is_sum && inst.dst.iter().all(|d| defs[d.idx()] == 1 && reads[d.idx()] == 0) {
                inst.src.iter().filter_map(reg).for_each(|r| reads[r.idx()] -= 1);
                f.blocks[latch].insts.remove(k);
            }
        }
        put_around(f, (before, latch), self.firsts, self.made, self.stepped);
    }
}

/// Puts instructions around a loop: registers of their own for first values, at their places, what is made at the end of the block before, and what is done at the end of each turn.
pub(crate) fn put_around(
    f: &mut Function,
    (before, latch): (usize, usize),
    mut firsts: Vec<((usize, usize), Reg)>,
    made: Vec<Inst>,
    stepped: Vec<Inst>,
) {
    firsts.sort_unstable_by_key(|(at, _)| std::cmp::Reverse(*at));
    for (at, first) in firsts {
        write_first(f, at, first);
    }
    f.blocks[before].insts.extend(made);
    // What the branch asks is made last.
    let block = &mut f.blocks[latch];
    let asked = block.insts.last().is_some_and(|i| i.dst.iter().any(|d| block.term.sources().contains(&Val::Reg(*d))));
    let at = block.insts.len() - usize::from(asked);
    block.insts.splice(at..at, stepped);
}

/// What a loop writes: where, if that is one place.
fn writes_of(f: &Function, body: &Set) -> FastMap<usize, Option<(usize, usize)>> {
    let mut writes: FastMap<usize, Option<(usize, usize)>> = FastMap::default();
    for b in body.iter() {
        let block = &f.blocks[b];
        for (i, inst) in block.insts.iter().enumerate() {
            for d in &inst.dst {
                writes.entry(d.idx()).and_modify(|at| *at = None).or_insert(Some((b, i)));
            }
        }
        if let Some(d) = block.term.result() {
            writes.insert(d.idx(), None);
        }
    }
    writes
}

/// Whether an instruction may be a sum that accesses go by.
fn may_be_sum(inst: &Inst, defs: &[u32]) -> bool {
    let is_sum = matches!(inst.op, Op::Pure(Pure::Add(Ty::B64))) && !inst.guarded;
    is_sum && matches!(inst.dst.as_slice(), [d] if defs[d.idx()] == 1)
}

pub(crate) fn add(to: Reg, a: Val, b: Val, span: handloom_diag::Span) -> Inst {
    Inst { op: Op::Pure(Pure::Add(Ty::B64)), dst: smallvec![to], src: smallvec![a, b], guarded: false, span }
}

/// The function with pointers of their own for what accesses of loops go by.
pub(crate) fn pointers_apart<'f>(
    mut f: Cow<'f, Function>,
    cfg: &Cfg,
    known: &dyn Fn(&Function) -> Set,
) -> Cow<'f, Function> {
    let (known, n_known) = (known(&f), f.regs.len());
    let (mut defs, mut reads) = (n_definitions(&f), f.n_reads());
    let mut n_changes = 0;
    for (header, body) in &cfg.loops {
        let [a, b] = cfg.preds[*header].as_slice() else { continue };
        let (before, latch) = if body.has(*a) { (*b, *a) } else { (*a, *b) };
        let is_inner = cfg.loop_of[latch] == Some(*header);
        if body.has(before)
            || !body.has(latch)
            || !is_inner
            || f.blocks[latch].insts.len() > MOST_INSTS
            || !f.blocks[latch].insts.iter().any(|i| may_be_sum(i, &defs))
            || !matches!(f.blocks[before].term, Term::Jump(_) | Term::Branch { .. })
        {
            continue;
        }
        let (writes, header) = (writes_of(&f, body), *header);
        let known = &known;
        let l = Loop { f: &f, cfg, header, body, latch, defs: &defs, known, n_known, writes, reads: &reads };
        if let Some(change) = l.change() {
            change.apply(f.to_mut(), before, latch);
            n_changes += 1;
            if n_changes == MOST_LOOPS {
                break;
            }
            (defs, reads) = (n_definitions(&f), f.n_reads());
        }
    }
    f
}
