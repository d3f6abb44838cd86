//! Values that a loop computes anew each turn, moved in front of it.
//!
//! Only ops that are safe in lanes that would not have executed them move: value ops (no division traps here) and loads of parameters.

use handloom_ir::simt::*;
use handloom_ir::types::StateSpace;

use super::dce::{Room, is_safe, rooms};
use super::simplify::is_repeatable;
use super::values::Values;
use crate::graph::{Dominators, Edges, Loop, Loops};

/// Hoists out of all loops of an ordered function, outer loops first. New blocks are at the end: order them.
pub fn hoist(f: &mut Function) {
    let preds = Edges::into_blocks(f);
    let is_back = |b: usize| preds.of_node(b).iter().any(|&p| p >= b);
    if !(0..f.blocks.len()).any(is_back) {
        return;
    }
    let doms = Dominators::of(f, &preds);
    let values = Values::of(f, &doms);
    let rooms = rooms(f);
    let loops = Loops::of(f, &preds, &doms);
    let mut written_in = vec![usize::MAX; f.regs.len()];
    for (n, l) in loops.loops.iter().enumerate() {
        for &b in &l.blocks {
            let block = &f.blocks[b];
            let written = block.insts.iter().flat_map(|i| &i.dst).copied().chain(block.term.result());
            written.for_each(|d| written_in[d.idx()] = n);
        }
        let mut moved = Vec::new();
        for &b in &l.blocks {
            let each_turn = l.latches.iter().all(|&latch| doms.dominates(b, latch));
            let insts = std::mem::take(&mut f.blocks[b].insts);
            let (out, stay): (Vec<Inst>, Vec<Inst>) = insts.into_iter().partition(|i| {
                let moves = is_movable(i, &values, &rooms)
                    && (each_turn || is_cheap(&i.op))
                    && i.src.iter().all(|s| !matches!(s, Val::Reg(r) if written_in[r.idx()] == n));
                if moves {
                    i.dst.iter().for_each(|d| written_in[d.idx()] = usize::MAX);
                }
                moves
            });
            f.blocks[b].insts = stay;
            moved.extend(out);
        }
        if !moved.is_empty() {
            let front = block_in_front(f, &preds, l);
            f.blocks[front].insts.extend(moved);
        }
    }
}

fn is_movable(i: &Inst, values: &Values, rooms: &[Option<Room>]) -> bool {
    let reads = if let Op::Load { access, offset } = i.op {
        access.space == StateSpace::ParamEntry && is_safe(i, access, offset, rooms)
    } else {
        true
    };
    reads && is_repeatable(i) && values.is_value(i.dst[0])
}

/// Whether an op costs little where its result is not needed after all.
fn is_cheap(op: &Op) -> bool {
    !matches!(op, Op::Pure(p) if p.facts().costly)
}

/// A block that leads to the head of a loop from outside and to nothing else.
fn block_in_front(f: &mut Function, preds: &Edges, l: &Loop) -> usize {
    let head = BlockId(l.head as u32);
    // Blocks made meanwhile lead to the heads of other loops only.
    let mut outside: Vec<usize> = preds.of_node(l.head).iter().copied().filter(|b| !l.contains(*b)).collect();
    outside.dedup();
    if let [only] = outside[..] {
        let block = &f.blocks[only];
        let ends_with_sync = block.insts.last().is_some_and(|i| i.op.is_warp_sync());
        if block.term == Term::Jump(head) && !ends_with_sync {
            return only;
        }
    }
    let front = BlockId(f.blocks.len() as u32);
    for b in outside {
        f.blocks[b].term.map_successors(|s| if s == head { front } else { s });
    }
    let span = f.blocks[l.head].insts.first().map_or(f.blocks[l.head].term_span, |i| i.span);
    f.blocks.push(Block { insts: vec![], term: Term::Jump(head), term_span: span });
    front.idx()
}
