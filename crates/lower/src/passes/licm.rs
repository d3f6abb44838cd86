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
    let mut written = Written::of(f);
    // Of blocks of many loops inside each other, those are looked at in each that have something that may move.
    let mut n_movable = n_movable(f, &loops, &written, |i| is_movable(i, &values, &rooms));
    for l in &loops.loops {
        let mut moved = Vec::new();
        for &b in &l.blocks {
            if n_movable[b] == 0 {
                continue;
            }
            let each_turn = l.latches.iter().all(|&latch| doms.dominates(b, latch));
            let mut moves = |i: &Inst| {
                let moves = is_movable(i, &values, &rooms)
                    && (each_turn || is_cheap(&i.op))
                    && i.src.iter().all(|s| !matches!(s, Val::Reg(r) if written.is_in(l, *r)));
                if moves {
                    i.dst.iter().for_each(|d| written.moved(*d));
                }
                moves
            };
            let out = f.blocks[b].insts.extract_if(.., |i| moves(i));
            let n = moved.len();
            moved.extend(out);
            n_movable[b] -= moved.len() - n;
        }
        if !moved.is_empty() {
            let front = block_in_front(f, &preds, l);
            f.blocks[front].insts.extend(moved);
        }
    }
}

/// By block: how many instructions may move at most: all that they read is from outside of the innermost loop, or may move too.
fn n_movable(f: &Function, loops: &Loops, written: &Written, is_movable: impl Fn(&Inst) -> bool) -> Vec<usize> {
    let mut innermost: Vec<Option<&Loop>> = vec![None; f.blocks.len()];
    for l in &loops.loops {
        l.blocks.iter().for_each(|b| innermost[*b] = Some(l));
    }
    let mut may_move = vec![false; f.regs.len()];
    let mut n_in_block = |(block, l): (&Block, Option<&Loop>)| {
        let Some(l) = l else { return 0 };
        let mut n = 0;
        for i in &block.insts {
            let stays = |v: &Val| matches!(v, Val::Reg(r) if !may_move[r.idx()] && written.is_in(l, *r));
            if is_movable(i) && !i.src.iter().any(stays) {
                i.dst.iter().for_each(|d| may_move[d.idx()] = true);
                n += 1;
            }
        }
        n
    };
    f.blocks.iter().zip(innermost).map(&mut n_in_block).collect()
}

/// The blocks that write registers.
struct Written {
    blocks: Edges,
    /// By register: what wrote it is in front of all loops that are still to be looked at.
    is_moved: Vec<bool>,
}

impl Written {
    fn of(f: &Function) -> Written {
        let mut pairs = Vec::new();
        for (b, block) in f.blocks.iter().enumerate() {
            let written = block.insts.iter().flat_map(|i| &i.dst).copied().chain(block.term.result());
            pairs.extend(written.map(|d| (d.idx(), b)));
        }
        Written { blocks: Edges::of_pairs(f.regs.len(), pairs), is_moved: vec![false; f.regs.len()] }
    }

    /// Notes that the only writer of a register moves out of the loop that is looked at.
    fn moved(&mut self, r: Reg) {
        self.is_moved[r.idx()] = true;
    }

    /// Whether a loop writes a register.
    fn is_in(&self, l: &Loop, r: Reg) -> bool {
        let blocks = self.blocks.of_node(r.idx());
        let inside = blocks[blocks.partition_point(|b| *b < l.head)..].iter();
        !self.is_moved[r.idx()] && inside.take_while(|b| Some(*b) <= l.blocks.last()).any(|b| l.contains(*b))
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
