//! Where threads must let others run: back edges of loops that may wait for another thread.
//!
//! A loop gets a yield on those of its back edges by which it may wait:
//! - on all, if it holds `nanosleep`, `clock` or `globaltimer`;
//! - if it reads memory that another thread may write, or waits for tensor memory, on every way around on which no exit is *counted*. A counted exit depends on a
//!   register that each turn computes from its own last value (a counter), and not on such a read, neither by its operands nor by a branch that chooses whether it
//!   steps: a loop with one ends by itself. So does a loop that compares a counter with a weak read of a bound, by less or greater: `i < list->length`.
//!
//! A weak load whose address moves from turn to turn is no such read: it walks a list or searches a table. A loop that waits through weak
//! loads of moving addresses has a data race and is not found; nor is one that waits through ordinary local memory.
//! Optimised code has *patience* with a loop all of whose such reads are at addresses that move in every turn, as where a key looks for its place in a table by `atomicCAS`: it yields once in
//! [`PATIENCE`] turns.
//! Loops with several entries always yield, and so do the outer ones of many inside each other where a look at all that is in each would take long: a yield is
//! never wrong.

use handloom_diag::Span;
use handloom_ir::simt::*;
use handloom_ir::types::{Cmp, Int, Order, StateSpace, Ty, Varies};
use smallvec::smallvec;

use crate::counters::Writers;
use crate::graph::{Dominators, Edges, Loop, Loops, for_each_successor, order_blocks};
use crate::origins::Origins;

/// Turns of a loop for each yield, a power of two, where code has patience.
const PATIENCE: u64 = 64;

/// Puts yields into an ordered function, and orders it again. `has_patience`: in some loops one for many turns.
pub(crate) fn insert(f: &mut Function, has_patience: bool) {
    let preds = Edges::into_blocks(f);
    if f.led_back_to().next().is_none() {
        return;
    }
    let doms = Dominators::of(f, &preds);
    let loops = Loops::of(f, &preds, &doms);
    let mut edges = loops.irreducible;
    let writers = Writers::of(f);
    let timed: Vec<bool> = f.blocks.iter().map(|b| b.insts.iter().any(|i| reads_time(&i.op))).collect();
    let n_insts: Vec<usize> = f.blocks.iter().map(|b| b.insts.len() + 1).collect();
    let mut patient = Vec::new();
    let mut n_left = LEAST_LOOKED_AT + MOST_TURNS * n_insts.iter().sum::<usize>();
    for l in loops.loops.iter().rev() {
        let mut waiting = l.latches.clone();
        if !l.blocks.iter().any(|b| timed[*b]) {
            // Each is looked for once, however many latches ask, and only as far as the last one has to.
            let (mut found, mut rest) = (Vec::new(), l.blocks.iter().rev().copied().filter(|b| leaves(f, l, *b)));
            waiting.retain(|&latch| {
                let counts = |b: usize| doms.dominates(b, latch) && writers.is_counted(l, (b, latch), &doms);
                let is_counted =
                    found.iter().any(|b| counts(*b)) || rest.by_ref().inspect(|b| found.push(*b)).any(counts);
                !is_counted
            });
            if !waiting.is_empty() {
                n_left = n_left.saturating_sub(l.blocks.iter().map(|b| n_insts[*b]).sum());
            }
            if !waiting.is_empty() && n_left > 0 {
                let (found, is_moving) = waits(f, l, &doms, &preds);
                waiting.retain(|latch| found.contains(latch));
                if is_moving && has_patience && l.head != 0 && !waiting.is_empty() {
                    let first = |p: &usize| !l.contains(*p);
                    let entries: Vec<usize> = preds.of_node(l.head).iter().copied().filter(first).collect();
                    patient.push((l.head, entries, std::mem::take(&mut waiting)));
                }
            }
        }
        edges.extend(waiting.into_iter().map(|b| (b, l.head)));
    }
    if edges.is_empty() && patient.is_empty() {
        return;
    }
    for (from, to) in edges {
        let to = BlockId(to as u32);
        insert_block(f, (&[from], to), vec![], Term::Yield { next: to }, f.blocks[from].term_span);
    }
    for (head, entries, latches) in patient {
        count_turns(f, BlockId(head as u32), &entries, &latches);
    }
    order_blocks(f);
}

/// Puts a block between some blocks and one behind them.
fn insert_block(
    f: &mut Function,
    (from, to): (&[usize], BlockId),
    insts: Vec<Inst>,
    term: Term,
    term_span: Span,
) -> BlockId {
    let made = BlockId(f.blocks.len() as u32);
    for b in from {
        f.blocks[*b].term.map_successors(|s| if s == to { made } else { s });
    }
    f.blocks.push(Block { insts, term, term_span });
    made
}

/// Yields once in [`PATIENCE`] turns of a loop, which a register counts from its entries on.
fn count_turns(f: &mut Function, head: BlockId, entries: &[usize], latches: &[usize]) {
    let mut new = |ty| {
        f.regs.push(ty);
        Reg(f.regs.len() as u32 - 1)
    };
    let (turns, of_round, is_last) = (new(Ty::B32), new(Ty::B32), new(Ty::P));
    let span = f.blocks[latches[0]].term_span;
    let inst = |op, dst, src: [Val; 2], n: usize| {
        let src = src.into_iter().take(n).collect();
        Inst { op: Op::Pure(op), dst: smallvec![dst], src, guarded: false, span }
    };
    let number = |x| Val::Imm(x, Ty::B32);
    let start = inst(Pure::Mov(Ty::B32), turns, [number(0); 2], 1);
    insert_block(f, (entries, head), vec![start], Term::Jump(head), span);
    let count = vec![
        inst(Pure::Add(Ty::B32), turns, [Val::Reg(turns), number(1)], 2),
        inst(Pure::And(Ty::B32), of_round, [Val::Reg(turns), number(PATIENCE - 1)], 2),
        inst(Pure::ICmp(Cmp::Eq, Int { ty: Ty::B32, signed: false }), is_last, [Val::Reg(of_round), number(0)], 2),
    ];
    let yields = insert_block(f, (&[], head), vec![], Term::Yield { next: head }, span);
    let ways = Term::Branch { cond: Val::Reg(is_last), then: yields, otherwise: head };
    insert_block(f, (latches, head), count, ways, span);
}

/// So often, at most, all instructions of a function are looked at because they are in a loop that no simple counter ends, and so many more: in time in proportion
/// to the function.
const MOST_TURNS: usize = 16;

/// See [`MOST_TURNS`].
const LEAST_LOOKED_AT: usize = 20_000;

/// Whether a block of a loop may lead out of it.
fn leaves(f: &Function, l: &Loop, block: usize) -> bool {
    let mut leaves = false;
    for_each_successor(&f.blocks[block].term, |s| leaves |= !l.contains(s.idx()));
    leaves
}

/// Whether a loop calls functions.
fn calls(f: &Function, l: &Loop) -> bool {
    l.blocks.iter().any(|&b| matches!(f.blocks[b].term, Term::Call { .. }))
}

/// Takes all yields out again: a caller that changes loops puts them in anew.
pub(crate) fn remove(f: &mut Function) {
    for b in &mut f.blocks {
        if let Term::Yield { next } = b.term {
            b.term = Term::Jump(next);
        }
    }
}

/// The latches by which a loop that does not read the time goes around while it waits. One behind a counted exit is none: going around by that one alone ends. And whether all that it
/// reads of others is at addresses that move in every turn.
fn waits(f: &Function, l: &Loop, doms: &Dominators, preds: &Edges) -> (Vec<usize>, bool) {
    let insts = || l.blocks.iter().flat_map(|&b| &f.blocks[b].insts);
    let calls = calls(f, l);
    if !calls && !insts().any(|i| may_read_others(&i.op)) {
        return (Vec::new(), false);
    }
    let waiting = Waiting::of(f, l, preds, doms);
    if !calls && !waiting.origins.any(READS_OTHERS) {
        return (Vec::new(), false);
    }
    let counted: Vec<usize> = (0..l.blocks.len()).filter(|&n| waiting.is_counted_exit(n)).collect();
    let is_counted = |latch: usize| counted.iter().any(|&n| doms.dominates(l.blocks[n], latch));
    (l.latches.iter().copied().filter(|&latch| !is_counted(latch)).collect(), !calls && waiting.always_moves())
}

/// What is asked about one loop. Instructions are known by their place in [`Origins::insts`].
struct Waiting<'f> {
    f: &'f Function,
    l: &'f Loop,
    origins: Origins<'f>,
}

/// A mark of [`Origins`]: each turn computes what the instruction writes from its own last value.
const COUNTS: u8 = 1;
/// A mark: it reads what another thread may write while the loop waits.
const READS_OTHERS: u8 = 2;
/// A mark: it reads memory other than by a weak load.
const READS_IN_ORDER: u8 = 4;

impl<'f> Waiting<'f> {
    fn of(f: &'f Function, l: &'f Loop, preds: &Edges, doms: &Dominators) -> Waiting<'f> {
        let mut origins = Origins::of(f, l);
        let carried = carried(f, l, preds, origins.writers());
        let is_carried = |d: &Reg| carried.binary_search(d).is_ok();
        origins.spread(|o, k| if o.insts[k].dst.iter().any(is_carried) && o.is_of_itself(k) { COUNTS } else { 0 });
        let calls = calls(f, l);
        origins.spread(|o, k| {
            let others = if reads_others(o, k) || calls && may_read_results(&o.insts[k].op) { READS_OTHERS } else { 0 };
            let in_order = if reads_in_order(&o.insts[k].op) { READS_IN_ORDER } else { 0 };
            others | in_order
        });
        let mut waiting = Waiting { f, l, origins };
        waiting.mark_chosen(doms);
        waiting
    }

    /// Where what is read chooses the way through a turn, what is not written in every turn depends on it: a counter that steps only if a flag was seen.
    fn mark_chosen(&mut self, doms: &Dominators) {
        let (f, l) = (self.f, self.l);
        let chooses = |n: usize| {
            let mut n_inside = 0;
            let term = &f.blocks[l.blocks[n]].term;
            for_each_successor(term, |s| n_inside += usize::from(l.contains(s.idx())));
            n_inside > 1 && self.origins.marks(&term.sources(), self.origins.places_of(n)) & READS_OTHERS != 0
        };
        if (0..l.blocks.len()).any(chooses) {
            let is_always = |b: usize| l.latches.iter().all(|latch| doms.dominates(b, *latch));
            let always: Vec<bool> = l.blocks.iter().map(|b| is_always(*b)).collect();
            self.origins.spread(|o, k| if always[o.block_of(k)] { 0 } else { READS_OTHERS });
        }
    }

    /// Whether all that is read of others is at addresses that move in every turn.
    fn always_moves(&self) -> bool {
        let o = &self.origins;
        let moves = |k: usize| matches!(o.insts[k].src.first(), Some(a) if counts(o.marks(&[*a], o.in_front(k))));
        (0..o.insts.len()).all(|k| !may_read_others(&o.insts[k].op) || moves(k))
    }

    /// Whether the `n`th block of the loop leaves it by a counter.
    fn is_counted_exit(&self, n: usize) -> bool {
        let block = &self.f.blocks[self.l.blocks[n]];
        if !leaves(self.f, self.l, self.l.blocks[n]) {
            return false;
        }
        let at = self.origins.places_of(n);
        counts(self.origins.marks(&block.term.sources(), at)) || self.reaches_bound(&block.term, at)
    }

    /// Whether a branch compares a counter with a bound in memory that changes only by a race: as long as it stays, the counter reaches it.
    fn reaches_bound(&self, term: &Term, at: (usize, usize)) -> bool {
        let Term::Branch { cond: Val::Reg(cond), .. } = term else { return false };
        let [(_, k)] = self.origins.writers_seen(*cond, at) else { return false };
        let inst = self.origins.insts[*k];
        let Op::Pure(Pure::ICmp(Cmp::Lt | Cmp::Le | Cmp::Gt | Cmp::Ge, _)) = inst.op else { return false };
        let [a, b] = [0, 1].map(|i| self.origins.marks(&inst.src[i..=i], self.origins.in_front(*k)));
        let stays = |side: u8| side & (COUNTS | READS_IN_ORDER) == 0;
        counts(a) && stays(b) || counts(b) && stays(a)
    }
}

/// Whether a value with these marks counts, and no other thread can keep it from that.
fn counts(marks: u8) -> bool {
    marks & (COUNTS | READS_OTHERS) == COUNTS
}

/// Whether the `k`th instruction reads what another thread may write while the loop waits. A weak load whose address moves from turn to
/// turn does not.
fn reads_others(origins: &Origins, k: usize) -> bool {
    let inst = origins.insts[k];
    let moves = || origins.marks(&inst.src[..1], origins.in_front(k)) & COUNTS != 0;
    may_read_others(&inst.op) && (reads_in_order(&inst.op) || !moves())
}

/// Whether an op reads what another thread may write, or waits for tensor memory.
fn may_read_others(op: &Op) -> bool {
    match op {
        Op::Load { access, .. } => matches!(
            access.space,
            StateSpace::Global | StateSpace::Shared | StateSpace::SharedCluster | StateSpace::Generic
        ),
        op => reads_in_order(op),
    }
}

/// Whether an op reads memory of its thread, where a function leaves its results.
fn may_read_results(op: &Op) -> bool {
    matches!(op, Op::Load { access, .. } if matches!(access.space, StateSpace::Local | StateSpace::ParamFunc))
}

/// Whether it does so other than by a weak load.
fn reads_in_order(op: &Op) -> bool {
    match op {
        Op::Load { access, .. } => access.order != Order::Weak,
        op => matches!(op, Op::Atom { .. } | Op::Tensor(TensorOp::Alloc { .. })),
    }
}

fn reads_time(op: &Op) -> bool {
    matches!(op, Op::Nanosleep) || matches!(op, Op::Sreg(s) if s.varies() == Varies::InTime)
}

/// Registers written in the loop that are live where a turn starts: liveness within the loop, only for them. Sorted.
fn carried(f: &Function, l: &Loop, preds: &Edges, writers: &[(Reg, usize)]) -> Vec<Reg> {
    let mut regs: Vec<Reg> = writers.iter().map(|(r, _)| *r).collect();
    regs.dedup();
    let words = regs.len().div_ceil(64);
    let number = |v: Val| match v {
        Val::Reg(r) => regs.binary_search(&r).ok(),
        Val::Imm(..) => None,
    };
    let mut live_in: Vec<Vec<u64>> = vec![vec![0; words]; l.blocks.len()];
    // Blocks that more may live at the start of than was found.
    let mut is_open = vec![true; l.blocks.len()];
    while is_open.contains(&true) {
        for (k, &b) in l.blocks.iter().enumerate().rev() {
            if !std::mem::take(&mut is_open[k]) {
                continue;
            }
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
                preds.of_node(b).iter().filter_map(|p| l.blocks.binary_search(p).ok()).for_each(|p| is_open[p] = true);
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
