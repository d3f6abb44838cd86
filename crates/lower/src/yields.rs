//! Where threads must let others run: back edges of loops that may wait for another thread.
//!
//! A loop gets a yield on those of its back edges by which it may wait:
//! - on all, if it holds `nanosleep`, `clock` or `globaltimer`;
//! - if it reads memory that another thread may write, or waits for tensor memory, on every way around on which no exit is *counted*. A counted exit depends on a
//!   register that each turn computes from its own last value (a counter), and not on such a read: a loop with one ends by itself. So does a
//!   loop that compares a counter with a weak read of a bound, by less or greater: `i < list->length`.
//!
//! A weak load whose address moves from turn to turn is no such read: it walks a list or searches a table. A loop that waits through weak
//! loads of moving addresses has a data race and is not found; nor is one that waits through ordinary local memory.
//! Loops with several entries always yield.

use handloom_ir::simt::*;
use handloom_ir::types::{Cmp, Order, StateSpace, Varies};

use crate::graph::{Dominators, Loop, Loops, Predecessors, for_each_successor, order_blocks};

/// Puts yields into an ordered function, and orders it again.
pub(crate) fn insert(f: &mut Function) {
    let preds = Predecessors::of(f);
    let is_back = |(b, block): (usize, &Block)| {
        let mut back = false;
        for_each_successor(&block.term, |s| back |= s.idx() <= b);
        back
    };
    if !f.blocks.iter().enumerate().any(is_back) {
        return;
    }
    let doms = Dominators::of(f, &preds);
    let loops = Loops::of(f, &preds, &doms);
    let mut edges = loops.irreducible;
    for l in &loops.loops {
        let waits = Waiting::of(f, l).waits(&doms);
        edges.extend(waits.into_iter().map(|b| (b, l.head)));
    }
    if edges.is_empty() {
        return;
    }
    for (from, to) in edges {
        let (yield_block, to) = (BlockId(f.blocks.len() as u32), BlockId(to as u32));
        let span = f.blocks[from].term_span;
        f.blocks[from].term.map_successors(|s| if s == to { yield_block } else { s });
        f.blocks.push(Block { insts: vec![], term: Term::Yield { next: to }, term_span: span });
    }
    order_blocks(f);
}

/// Takes all yields out again: a caller that changes loops puts them in anew.
pub(crate) fn remove(f: &mut Function) {
    for b in &mut f.blocks {
        if let Term::Yield { next } = b.term {
            b.term = Term::Jump(next);
        }
    }
}

/// What is asked about one loop. Instructions are known by their place in `insts`.
struct Waiting<'f> {
    f: &'f Function,
    l: &'f Loop,
    insts: Vec<&'f Inst>,
    /// For each block of the loop, the place of its first instruction; one more at the end.
    starts: Vec<usize>,
    /// Registers written in the loop with the instructions that write them, sorted.
    writers: Vec<(Reg, usize)>,
    /// Registers that a turn reads before it writes them.
    carried: Vec<Reg>,
}

impl<'f> Waiting<'f> {
    fn of(f: &'f Function, l: &'f Loop) -> Waiting<'f> {
        let mut insts = Vec::new();
        let mut starts = vec![0];
        for &b in &l.blocks {
            insts.extend(&f.blocks[b].insts);
            starts.push(insts.len());
        }
        let mut writers: Vec<(Reg, usize)> =
            insts.iter().enumerate().flat_map(|(k, i)| i.dst.iter().map(move |d| (*d, k))).collect();
        writers.sort_unstable();
        let carried = carried(f, l, &writers);
        Waiting { f, l, insts, starts, writers, carried }
    }

    /// The latches by which the loop goes around while it waits. One behind a counted exit is none: going around by that one alone ends.
    fn waits(&self, doms: &Dominators) -> Vec<usize> {
        if self.insts.iter().any(|i| reads_time(&i.op)) {
            return self.l.latches.clone();
        }
        let counted: Vec<usize> = (0..self.l.blocks.len()).filter(|&n| self.is_counted_exit(n)).collect();
        let is_counted = |latch: usize| counted.iter().any(|&n| doms.dominates(self.l.blocks[n], latch));
        let calls = self.l.blocks.iter().any(|&b| matches!(self.f.blocks[b].term, Term::Call { .. }));
        if calls || (0..self.insts.len()).any(|k| self.reads_others(k)) {
            self.l.latches.iter().copied().filter(|&latch| !is_counted(latch)).collect()
        } else {
            Vec::new()
        }
    }

    /// Whether the `n`th block of the loop leaves it by a counter.
    fn is_counted_exit(&self, n: usize) -> bool {
        let block = &self.f.blocks[self.l.blocks[n]];
        let mut leaves = false;
        for_each_successor(&block.term, |s| leaves |= !self.l.contains(s.idx()));
        if !leaves {
            return false;
        }
        let at = (self.starts[n], self.starts[n + 1]);
        let from = self.dependencies(&block.term.sources(), at);
        let counts = !from.iter().any(|&k| self.reads_others(k)) && from.iter().any(|&k| self.is_counter(k));
        counts || self.reaches_bound(&block.term, at)
    }

    /// Whether a branch compares a counter with a bound in memory that changes only by a race: as long as it stays, the counter reaches it.
    fn reaches_bound(&self, term: &Term, at: (usize, usize)) -> bool {
        let Term::Branch { cond: Val::Reg(cond), .. } = term else { return false };
        let [(_, k)] = self.writers_seen(*cond, at) else { return false };
        let inst = self.insts[*k];
        let Op::Pure(Pure::ICmp(Cmp::Lt | Cmp::Le | Cmp::Gt | Cmp::Ge, _)) = inst.op else { return false };
        let [a, b] = [0, 1].map(|i| self.dependencies(&inst.src[i..=i], self.in_front(*k)));
        let counts =
            |side: &[usize]| side.iter().any(|&k| self.is_counter(k)) && !side.iter().any(|&k| self.reads_others(k));
        let is_weak = |k: usize| match self.insts[k].op {
            Op::Load { access, .. } => access.order == Order::Weak,
            op => !matches!(op, Op::Atom { .. }),
        };
        let stays = |side: &[usize]| side.iter().all(|&k| is_weak(k) && !self.is_counter(k));
        counts(&a) && stays(&b) || counts(&b) && stays(&a)
    }

    /// Whether each turn computes what the instruction writes from its own last value.
    fn is_counter(&self, k: usize) -> bool {
        let is_carried = |d: &Reg| self.carried.binary_search(d).is_ok();
        self.insts[k].dst.iter().any(is_carried) && self.dependencies(&self.insts[k].src, self.in_front(k)).contains(&k)
    }

    /// Whether it reads what another thread may write while the loop waits.
    fn reads_others(&self, k: usize) -> bool {
        let op = self.insts[k].op;
        if let Op::Load { access, .. } = op {
            let written_by_others = matches!(
                access.space,
                StateSpace::Global | StateSpace::Shared | StateSpace::SharedCluster | StateSpace::Generic
            );
            return written_by_others && (access.order != Order::Weak || !self.moves(k));
        }
        matches!(op, Op::Atom { .. } | Op::Tensor(TensorOp::Alloc { .. }))
    }

    /// Whether the address of a load changes from turn to turn.
    fn moves(&self, k: usize) -> bool {
        self.dependencies(&self.insts[k].src[..1], self.in_front(k)).iter().any(|&k| self.is_counter(k))
    }

    /// The places from the start of an instruction's block up to it.
    fn in_front(&self, k: usize) -> (usize, usize) {
        (self.starts[self.starts.partition_point(|&s| s <= k) - 1], k)
    }

    /// The instructions of the loop that values are computed from, as they are after the places `at` of one block.
    fn dependencies(&self, values: &[Val], at: (usize, usize)) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        let mut seen = vec![false; self.insts.len()];
        let mut work: Vec<(Val, (usize, usize))> = values.iter().map(|v| (*v, at)).collect();
        while let Some((v, at)) = work.pop() {
            let Val::Reg(r) = v else { continue };
            for &(_, k) in self.writers_seen(r, at) {
                if !std::mem::replace(&mut seen[k], true) {
                    found.push(k);
                    work.extend(self.insts[k].src.iter().map(|s| (*s, self.in_front(k))));
                }
            }
        }
        found
    }

    /// The last writer of a register at the given places, or all of the loop if none is there.
    fn writers_seen(&self, r: Reg, (from, to): (usize, usize)) -> &[(Reg, usize)] {
        let start = self.writers.partition_point(|(w, _)| *w < r);
        let all = &self.writers[start..start + self.writers[start..].partition_point(|(w, _)| *w == r)];
        let n_before = all.partition_point(|(_, k)| *k < to);
        match all[..n_before].last() {
            Some((_, k)) if *k >= from => &all[n_before - 1..n_before],
            _ => all,
        }
    }
}

fn reads_time(op: &Op) -> bool {
    matches!(op, Op::Nanosleep) || matches!(op, Op::Sreg(s) if s.varies() == Varies::InTime)
}

/// Registers written in the loop that are live where a turn starts: liveness within the loop, only for them. Sorted.
fn carried(f: &Function, l: &Loop, writers: &[(Reg, usize)]) -> Vec<Reg> {
    let mut regs: Vec<Reg> = writers.iter().map(|(r, _)| *r).collect();
    regs.dedup();
    let words = regs.len().div_ceil(64);
    let number = |v: Val| match v {
        Val::Reg(r) => regs.binary_search(&r).ok(),
        Val::Imm(..) => None,
    };
    let mut live_in: Vec<Vec<u64>> = vec![vec![0; words]; l.blocks.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for (k, &b) in l.blocks.iter().enumerate().rev() {
            let mut live = vec![0u64; words];
            for_each_successor(&f.blocks[b].term, |s| {
                if let Ok(j) = l.blocks.binary_search(&s.idx()) {
                    live.iter_mut().zip(&live_in[j]).for_each(|(a, b)| *a |= b);
                }
            });
            for v in f.blocks[b].term.sources() {
                set(&mut live, number(v), true);
            }
            for i in f.blocks[b].insts.iter().rev() {
                i.dst.iter().for_each(|d| set(&mut live, number(Val::Reg(*d)), false));
                i.src.iter().for_each(|s| set(&mut live, number(*s), true));
            }
            if live != live_in[k] {
                live_in[k] = live;
                changed = true;
            }
        }
    }
    let at_head = live_in.first().map_or(&[][..], |l| l);
    let is_set = |i: usize| at_head[i / 64] >> (i % 64) & 1 == 1;
    regs.iter().enumerate().filter(|(i, _)| is_set(*i)).map(|(_, r)| *r).collect()
}

fn set(live: &mut [u64], number: Option<usize>, on: bool) {
    if let Some(i) = number {
        let bit = 1 << (i % 64);
        if on {
            live[i / 64] |= bit;
        } else {
            live[i / 64] &= !bit;
        }
    }
}
