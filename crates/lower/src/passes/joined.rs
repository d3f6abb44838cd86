//! Matrix ops of a whole warp that end blocks in a straight line, as one op.

use handloom_ir::simt::*;

use crate::graph::for_each_successor;

/// Matrix ops that are joined to one.
pub(super) trait Joined: Sized {
    /// Of a first one.
    fn of(inst: &Inst) -> Option<Self>;

    /// Whether an instruction between them may come before them all.
    fn may_follow(&self, inst: &Inst) -> bool;

    /// Adds one if it can be done together with those that there are. `n_uses`: how many operands each register is.
    fn add(&mut self, inst: &Inst, n_uses: &[u32]) -> bool;

    /// The op in the place of the first one.
    fn joined(self, first: Inst) -> Inst;
}

/// Joins ops of one kind. What is computed between them is computed before them. Returns whether there were any.
pub(super) fn join<J: Joined>(f: &mut Function) -> bool {
    let mut n_preds = vec![0u32; f.blocks.len()];
    n_preds[0] = 1;
    let mut n_uses = vec![0u32; f.regs.len()];
    for b in &f.blocks {
        for_each_successor(&b.term, |s| n_preds[s.idx()] += 1);
        for v in b.insts.iter().flat_map(|i| &i.src).chain(&b.term.sources()) {
            if let Val::Reg(r) = v {
                n_uses[r.idx()] += 1;
            }
        }
    }
    let mut joined = false;
    for first in 0..f.blocks.len() {
        let Some(mut products) = f.blocks[first].insts.last().and_then(J::of) else { continue };
        let mut between: Vec<Inst> = Vec::new();
        let mut last = first;
        while let Term::Jump(next) = f.blocks[last].term {
            let [insts @ .., inst] = &f.blocks[next.idx()].insts[..] else { break };
            // A ring of products has no first block, or that one has two predecessors.
            let may_follow = n_preds[next.idx()] == 1 && insts.iter().all(|i| products.may_follow(i));
            if !may_follow || !products.add(inst, &n_uses) {
                break;
            }
            between.extend_from_slice(insts);
            last = next.idx();
        }
        if last == first {
            continue;
        }
        let span = f.blocks[last].term_span;
        // Nothing goes to the blocks of the others any more.
        while let Term::Jump(next) = f.blocks[first].term {
            let empty = &mut f.blocks[next.idx()];
            empty.insts.clear();
            f.blocks[first].term = std::mem::replace(&mut empty.term, Term::Exit);
            if next.idx() == last {
                break;
            }
        }
        let block = &mut f.blocks[first];
        let inst = block.insts.pop().map(|inst| products.joined(inst));
        block.insts.extend(between);
        block.insts.extend(inst);
        block.term_span = span;
        joined = true;
    }
    joined
}
