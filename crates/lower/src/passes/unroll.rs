//! Loops around barriers whose turns constants count: each turn becomes code of its own.
//!
//! In `for (s = blockDim.x / 2; s > 0; s >>= 1)` distances and bounds are constants then, as if the turns had been written out: it is known which warps have
//! nothing to do, and at which distances accesses lie. Where what is known goes up or down by the same each time, as the tiles of a product do, nothing is gained by that: a loop
//! keeps its sums in registers.

use handloom_diag::hash::FastMap;
use handloom_ir::simt::*;
use handloom_ir::types::Ty;

use super::fold::constant;
use super::values::{Values, definitions, for_each_source};
use crate::graph::{Dominators, Edges, Loop, Loops};

/// The most turns of a loop.
const MOST_TURNS: usize = 32;

/// The most instructions that a function has afterwards.
const MOST_INSTS: usize = 1_500;

/// Blocks in front of a loop that are looked at for a constant that it begins with, at most.
const MOST_STEPS: usize = 16;

/// Whether there is a loop to unroll in an ordered function.
pub fn may_unroll(f: &Function) -> bool {
    find(f, |_, _, _| ()).is_some()
}

/// Unrolls one loop of an ordered function. Returns whether there was any; what is left is to be tidied up.
pub(super) fn unroll(f: &mut Function) -> bool {
    let written = |body: &Body<'_>, turns: &[Turn], doms: &Dominators| {
        body.write_out(turns, &body.locals(&Values::of(f, doms)), doms)
    };
    let Some((l, made)) = find(f, written) else { return false };
    let first = BlockId(f.blocks.len() as u32);
    for b in (0..f.blocks.len()).filter(|b| !l.contains(*b)) {
        f.blocks[b].term.map_successors(|s| if s.idx() == l.head { first } else { s });
    }
    f.blocks.extend(made.blocks);
    f.regs = made.regs;
    true
}

/// A loop to unroll, and what is made of its turns.
fn find<T>(f: &Function, make: impl Fn(&Body<'_>, &[Turn], &Dominators) -> T) -> Option<(Loop, T)> {
    if !f.blocks.iter().any(is_barrier) || f.led_back_to().next().is_none() {
        return None;
    }
    let preds = Edges::into_blocks(f);
    let doms = Dominators::of(f, &preds);
    let mut loops = Loops::of(f, &preds, &doms).loops;
    let size = |b: &usize| f.blocks[*b].insts.len() + 1;
    let whole: usize = (0..f.blocks.len()).map(|b| size(&b)).sum();
    let found = loops.iter().enumerate().find_map(|(n, l)| {
        let has_barrier = l.blocks.iter().any(|b| is_barrier(&f.blocks[*b]));
        let calls = l.blocks.iter().any(|b| matches!(f.blocks[*b].term, Term::Call { .. } | Term::Yield { .. }));
        if !has_barrier || calls {
            return None;
        }
        let own: usize = l.blocks.iter().map(size).sum();
        let most = MOST_TURNS.min(MOST_INSTS.saturating_sub(whole) / own);
        let body = Body::of(f, l, &loops, &doms);
        let turns = body.turns(&preds, most)?;
        Some((n, make(&body, &turns, &doms)))
    });
    found.map(|(n, made)| (loops.swap_remove(n), made))
}

fn is_barrier(block: &Block) -> bool {
    matches!(block.term, Term::Barrier { .. })
}

/// What some registers hold.
type Known = FastMap<Reg, u64>;

/// What is known in a turn: at its start, and behind the definitions of it.
struct Turn {
    start: Known,
    behind: Known,
}

struct Body<'a> {
    f: &'a Function,
    l: &'a Loop,
    /// The blocks that each turn goes through once, in order.
    spine: Vec<usize>,
    /// Registers that a turn writes once, in a block of these, and where.
    once: FastMap<Reg, (usize, usize)>,
}

/// The blocks of a turn with the registers of a turn, and those registers' types.
struct Written {
    blocks: Vec<Block>,
    regs: Vec<Ty>,
}

impl<'a> Body<'a> {
    fn of(f: &'a Function, l: &'a Loop, loops: &[Loop], doms: &Dominators) -> Body<'a> {
        let is_inner = |b: usize| loops.iter().any(|i| i.head != l.head && l.contains(i.head) && i.contains(b));
        let is_always = |b: usize| l.latches.iter().all(|latch| doms.dominates(b, *latch)) && !is_inner(b);
        let spine: Vec<usize> = l.blocks.iter().copied().filter(|b| is_always(*b)).collect();
        let mut once = FastMap::default();
        for (r, at) in definitions(f).into_iter().enumerate() {
            let mut inside = at.into_iter().filter(|(b, _)| l.contains(*b));
            if let (Some((b, i)), None) = (inside.next(), inside.next())
                && spine.binary_search(&b).is_ok()
                && !f.blocks[b].insts[i].guarded
            {
                once.insert(Reg(r as u32), (b, i));
            }
        }
        l.blocks.iter().filter_map(|b| f.blocks[*b].term.result()).for_each(|d| _ = once.remove(&d));
        Body { f, l, spine, once }
    }

    /// What is known in each turn, if it is known of each whether it is the last one, and there are at most so many.
    fn turns(&self, preds: &Edges, most: usize) -> Option<Vec<Turn>> {
        let entries = preds.of_node(self.l.head).iter().copied().filter(|p| !self.l.contains(*p));
        let entries: Vec<usize> = entries.collect();
        let begins_with = |r: Reg| {
            let mut all = entries.iter().map(|p| self.constant_behind(*p, r, preds));
            let first = all.next()??;
            all.all(|x| x == Some(first)).then_some(first)
        };
        let mut start: Known = self.once.keys().filter_map(|r| Some((*r, begins_with(*r)?))).collect();
        if start.is_empty() {
            return None;
        }
        let mut turns = Vec::new();
        while turns.len() < most {
            let mut behind = start.clone();
            let is_last = self.turn(&mut behind)?;
            turns.push(Turn { start: std::mem::replace(&mut start, behind.clone()), behind });
            if is_last {
                return self.is_uneven(&turns).then_some(turns);
            }
        }
        None
    }

    /// Whether a number that is known does not go up or down by the same from turn to turn, or says by how much something is shifted.
    fn is_uneven(&self, turns: &[Turn]) -> bool {
        let [first, second, others @ ..] = turns else { return false };
        let step = |r: &Reg, a: &Turn, b: &Turn| Some(b.behind.get(r)?.wrapping_sub(*a.behind.get(r)?));
        let mut shifts = self.l.blocks.iter().flat_map(|b| &self.f.blocks[*b].insts).filter_map(|i| match i.op {
            Op::Pure(Pure::Shl(_) | Pure::Shr { .. }) => i.src.get(1),
            _ => None,
        });
        if shifts.any(|v| matches!(v, Val::Reg(r) if step(r, first, second).is_some_and(|by| by != 0))) {
            return true;
        }
        let Some(third) = others.first() else { return false };
        let mut numbers = third.behind.keys().filter(|r| self.f.regs[r.idx()] != Ty::P);
        numbers.any(|r| match (step(r, first, second), step(r, second, third)) {
            (Some(a), Some(b)) => a & self.f.regs[r.idx()].mask() != b & self.f.regs[r.idx()].mask(),
            _ => false,
        })
    }

    /// The constant that a register holds behind a block in front of the loop, whatever leads there, if it is one.
    fn constant_behind(&self, b: usize, r: Reg, preds: &Edges) -> Option<u64> {
        let (mut blocks, mut n_seen, mut constant) = (vec![b], 0, None);
        while let Some(b) = blocks.get(n_seen).copied() {
            let block = &self.f.blocks[b];
            if n_seen == MOST_STEPS || block.term.result() == Some(r) {
                return None;
            }
            n_seen += 1;
            match block.insts.iter().rev().find(|i| i.dst.contains(&r)) {
                Some(i) => match (i.op, &i.src[..]) {
                    (Op::Pure(Pure::Mov(_)), [Val::Imm(x, _)]) if !i.guarded && constant.is_none_or(|c| c == *x) => {
                        constant = Some(*x);
                    }
                    _ => return None,
                },
                // Nobody has written it at the entry.
                None if b == 0 => return None,
                None => {
                    let before = preds.of_node(b).iter().filter(|p| !blocks[..].contains(p)).copied();
                    let before: Vec<usize> = before.collect();
                    blocks.extend(before);
                }
            }
        }
        constant
    }

    /// Goes through a turn. Says whether it is the last one, if that is known.
    fn turn(&self, known: &mut Known) -> Option<bool> {
        let mut stays = false;
        for b in &self.spine {
            let block = &self.f.blocks[*b];
            for (i, inst) in block.insts.iter().enumerate() {
                let result = self.result(inst, known);
                for d in &inst.dst {
                    match result.filter(|_| self.once.get(d) == Some(&(*b, i))) {
                        Some(x) => _ = known.insert(*d, x),
                        None => _ = known.remove(d),
                    }
                }
            }
            if let Term::Branch { cond, then, otherwise } = &block.term
                && let Some(x) = held(*cond, known)
            {
                let (to, other) = if x == 0 { (otherwise, then) } else { (then, otherwise) };
                if !self.l.contains(to.idx()) {
                    return Some(true);
                }
                stays |= !self.l.contains(other.idx());
            }
        }
        stays.then_some(false)
    }

    /// The only result of an instruction, if that is known.
    fn result(&self, inst: &Inst, known: &Known) -> Option<u64> {
        let Op::Pure(op) = inst.op else { return None };
        let source = |v: &Val| held(*v, known).map_or(*v, |x| Val::Imm(x, self.f.ty(*v)));
        let sources: Vals = inst.src.iter().map(source).collect();
        held(constant(op, &sources)?, known)
    }

    /// Registers that nobody reads outside of the turn that writes them.
    fn locals(&self, values: &Values) -> Vec<Reg> {
        let mut is_local = vec![false; self.f.regs.len()];
        for b in &self.l.blocks {
            let all = self.f.blocks[*b].insts.iter().filter(|i| !i.guarded).flat_map(|i| &i.dst);
            all.filter(|d| values.is_value(**d)).for_each(|d| is_local[d.idx()] = true);
        }
        let mut read = |v: Val| {
            if let Val::Reg(r) = v {
                is_local[r.idx()] = false;
            }
        };
        for (_, block) in self.f.blocks.iter().enumerate().filter(|(b, _)| !self.l.contains(*b)) {
            block.insts.iter().flat_map(|i| &i.src).for_each(|v| read(*v));
            for_each_source(&block.term, &mut read);
        }
        (0..is_local.len()).filter(|r| is_local[*r]).map(|r| Reg(r as u32)).collect()
    }

    /// The blocks of all turns, with numbers as they come behind the blocks that there are.
    fn write_out(&self, turns: &[Turn], locals: &[Reg], doms: &Dominators) -> Written {
        let n_own = self.l.blocks.len();
        let mut made = Written { blocks: Vec::new(), regs: self.f.regs.clone() };
        for (t, turn) in turns.iter().enumerate() {
            let mut name: FastMap<Reg, Reg> = FastMap::default();
            for r in locals {
                name.insert(*r, Reg(made.regs.len() as u32));
                made.regs.push(self.f.regs[r.idx()]);
            }
            let first = self.f.blocks.len() + t * n_own;
            for b in &self.l.blocks {
                let mut block = self.f.blocks[*b].clone();
                let source = |v: Val, i: usize| {
                    let Val::Reg(r) = v else { return v };
                    let is_behind = |at: &(usize, usize)| match at.0 == *b {
                        true => at.1 < i,
                        false => doms.dominates(at.0, *b),
                    };
                    let known = self.once.get(&r).and_then(|at| {
                        let known = if is_behind(at) { &turn.behind } else { &turn.start };
                        known.get(&r)
                    });
                    match known {
                        Some(x) => Val::Imm(*x, self.f.regs[r.idx()]),
                        None => Val::Reg(name.get(&r).copied().unwrap_or(r)),
                    }
                };
                for (i, inst) in block.insts.iter_mut().enumerate() {
                    inst.src.iter_mut().for_each(|v| *v = source(*v, i));
                    inst.dst.iter_mut().for_each(|d| *d = name.get(d).copied().unwrap_or(*d));
                }
                let end = block.insts.len();
                block.term.map_sources(|v| source(v, end));
                block.term.map_successors(|s| match self.l.blocks.binary_search(&s.idx()) {
                    // Nothing comes behind the last turn.
                    Ok(0) if t + 1 < turns.len() => BlockId((first + n_own) as u32),
                    Ok(k) => BlockId((first + k) as u32),
                    Err(_) => s,
                });
                made.blocks.push(block);
            }
        }
        made
    }
}

/// What a source holds.
fn held(v: Val, known: &Known) -> Option<u64> {
    match v {
        Val::Imm(x, _) => Some(x),
        Val::Reg(r) => known.get(&r).copied(),
    }
}
