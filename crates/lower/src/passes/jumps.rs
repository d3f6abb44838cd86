//! Jumps: branches on constants, jumps to jumps, and blocks in a straight line.

use handloom_ir::simt::*;

use crate::graph::{for_each_successor, order_blocks};

/// Simplifies the control flow of a function and orders its blocks.
///
/// Two blocks are not joined after a warp-synchronising op: it stays the last one of its block. Returns whether a branch was decided.
pub fn tidy(f: &mut Function) -> bool {
    let mut decided = false;
    for b in &mut f.blocks {
        decided |= decide(&mut b.term);
    }
    thread(f);
    for b in &mut f.blocks {
        decided |= decide(&mut b.term);
    }
    // Blocks that nothing reaches any more would count as predecessors below.
    order_blocks(f);
    if join(f) {
        order_blocks(f);
    }
    decided
}

/// A branch whose way is known is a jump.
fn decide(term: &mut Term) -> bool {
    let to = match term {
        Term::Branch { then, otherwise, .. } if then == otherwise => *then,
        Term::Branch { cond: Val::Imm(p, _), then, otherwise } => {
            if *p == 0 {
                *otherwise
            } else {
                *then
            }
        }
        Term::Switch { index: Val::Imm(i, _), targets } => {
            match usize::try_from(*i).ok().and_then(|i| targets.get(i)) {
                Some(to) => *to,
                None => return false,
            }
        }
        _ => return false,
    };
    *term = Term::Jump(to);
    true
}

/// Edges to a block that only jumps go to its target.
fn thread(f: &mut Function) {
    let mut forward: Vec<BlockId> = (0..f.blocks.len() as u32).map(BlockId).collect();
    let mut any = false;
    for (i, b) in f.blocks.iter().enumerate() {
        if let (true, Term::Jump(to)) = (b.insts.is_empty(), &b.term) {
            forward[i] = *to;
            any |= to.idx() != i;
        }
    }
    if !any {
        return;
    }
    let resolve = |b: BlockId| {
        let mut at = b;
        // A ring of jumps is an endless loop; it stays one.
        for _ in 0..forward.len() {
            let next = forward[at.idx()];
            if next == at || next == b {
                break;
            }
            at = next;
        }
        at
    };
    for b in &mut f.blocks {
        b.term.map_successors(resolve);
    }
}

/// Joins each block with the only one that follows it, if that follows nothing else.
fn join(f: &mut Function) -> bool {
    let mut n_preds = vec![0u32; f.blocks.len()];
    n_preds[0] = 1;
    for b in &f.blocks {
        for_each_successor(&b.term, |s| n_preds[s.idx()] += 1);
    }
    let mut joined = false;
    for i in 0..f.blocks.len() {
        while let Term::Jump(to) = f.blocks[i].term {
            let ends_with_sync = f.blocks[i].insts.last().is_some_and(|i| i.op.is_warp_sync());
            if to.idx() == i || n_preds[to.idx()] != 1 || ends_with_sync {
                break;
            }
            let next = &mut f.blocks[to.idx()];
            let insts = std::mem::take(&mut next.insts);
            let (term, span) = (std::mem::replace(&mut next.term, Term::Exit), next.term_span);
            let block = &mut f.blocks[i];
            block.insts.extend(insts);
            block.term = term;
            block.term_span = span;
            joined = true;
        }
    }
    joined
}
