//! Predicates that accesses are guarded by: whether they hold in all lanes of a CTA is decided once, as guards of blocks are.
//!
//! # The model
//! Triton guards every access by itself, in straight code. Where a predicate is made of comparisons that the head may decide, it has bits as a guard has, and gangs do what it guards
//! for all lanes where it holds in all of them (`gang::bare`). All other code asks each lane.

use handloom_ir::simt::{Inst, Op, Pure, Reg, Val};
use handloom_plan::Plan;

use super::{Head, Known, reg};

/// The most such predicates of a function.
const MOST: usize = 8;
/// Most instructions that make one.
const MOST_INSTS: usize = 16;

impl Head {
    /// Finds them. Bits of guards come first.
    pub(super) fn find_known(&mut self, plan: &Plan) {
        let f = &plan.func;
        let insts = f.blocks.iter().enumerate();
        let insts = insts.flat_map(|(b, x)| x.insts.iter().enumerate().map(move |(i, inst)| ((b, i), inst)));
        let guarded = insts.filter(|(_, i)| matches!(i.op, Op::Load { .. } | Op::Store { .. }));
        for (at, p) in guarded.filter_map(|(at, i)| Some((at, reg(i.guard()?)?))) {
            if self.known.len() == MOST || self.bits > 28 {
                return;
            }
            let is_new = !self.known.iter().any(|k| k.cond == p);
            if let Some(insts) = Some(at).filter(|_| is_new).and_then(|at| self.makers(plan, p, at)) {
                self.known.push(Known { cond: p, insts, bits: (1 << self.bits, 2 << self.bits) });
                self.bits += 2;
            }
        }
    }

    /// The comparisons that make a predicate which an instruction reads, and what connects them, in order, if the head may decide it.
    fn makers(&self, plan: &Plan, p: Reg, reader: (usize, usize)) -> Option<Vec<(usize, usize)>> {
        let f = &plan.func;
        let mut made: Vec<(usize, usize)> = Vec::new();
        let mut work = vec![(p, reader)];
        while let Some((p, (b, i))) = work.pop() {
            // Made before it is read, on each way.
            let find = |b: usize, n: usize| Some((b, f.blocks[b].insts[..n].iter().position(|i| i.dst.contains(&p))?));
            let in_first = || find(0, f.blocks[0].insts.len()).filter(|_| b != 0);
            let at @ (b, i) = find(b, i).or_else(in_first)?;
            let inst = &f.blocks[b].insts[i];
            if made.contains(&at) {
                continue;
            }
            if plan.def_count[p.idx()] != 1 || inst.guarded || !self.decides(plan, inst) || made.len() == MOST_INSTS {
                return None;
            }
            made.push(at);
            if !matches!(inst.op, Op::Pure(Pure::ICmp(..))) {
                for v in &inst.src {
                    work.push((reg(*v)?, at));
                }
            } else if inst.src.iter().filter_map(|v| reg(*v)).any(|r| plan.def_count[r.idx()] != 1) {
                return None;
            }
        }
        made.sort_unstable();
        Some(made)
    }

    /// Leaves those whose comparisons are of values with words.
    pub(super) fn leave_known_with_words(&mut self, plan: &Plan) {
        let has = |v: &Val| reg(*v).is_none_or(|r| self.same[r.idx()].is_some() || self.linear[r.idx()].is_some());
        let compares = |k: &Known| {
            let insts = k.insts.iter().map(|&(b, i)| &plan.func.blocks[b].insts[i]);
            insts.filter(|i| matches!(i.op, Op::Pure(Pure::ICmp(..)))).flat_map(|i| &i.src).all(has)
        };
        let left = self.known.iter().filter(|k| compares(k)).cloned().collect();
        self.known = left;
    }

    /// The bit that says that the predicate which guards an instruction at a place, or asks there which of two values is taken, holds in all lanes.
    pub(crate) fn bit_of_predicate(&self, plan: &Plan, p: Val, (b, i): (usize, usize)) -> Option<u32> {
        let p = reg(p)?;
        let known = self.known.iter().find(|k| k.cond == p)?;
        let makes = |&&(b, i): &&(usize, usize)| plan.func.blocks[b].insts[i].dst.contains(&p);
        let &(made, at) = known.insts.iter().find(makes)?;
        // What reads it before it is made, in a loop, finds something else at first.
        (made == b && at < i || made == 0 && b != 0).then_some(known.bits.0)
    }

    /// Whether an instruction makes such a predicate, or a part of one.
    pub(crate) fn makes_known(&self, at: (usize, usize)) -> bool {
        self.known.iter().any(|k| k.insts.contains(&at))
    }
}

impl Known {
    pub(super) fn insts<'p>(&self, plan: &'p Plan) -> Vec<&'p Inst> {
        self.insts.iter().map(|&(b, i)| &plan.func.blocks[b].insts[i]).collect()
    }
}
