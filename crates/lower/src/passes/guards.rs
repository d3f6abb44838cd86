//! Stores that a branch guards, as stores under its predicate.
//!
//! # The model
//! `if (v < d[i]) d[i] = v` is a branch around a block of one store. Where the lanes of a warp part at such a branch, as they do where it asks for what they have read, the store under a
//! predicate costs less than a block that some lanes execute, and code that several warps go through side by side may have it. Branches on the number of a thread or on what is the same in
//! all threads stay: engines decide these for many lanes at once.
//!
//! Value ops of such a block, for the address mostly, are done by all lanes then: cheap ones, whose results nobody else reads.

use handloom_ir::simt::*;
use handloom_ir::types::{Order, Sreg, StateSpace, Ty};
use smallvec::smallvec;

use super::values::{Values, definitions};
use crate::graph::{Dominators, Edges};

/// Stores and value ops, at most, of a block that becomes part of the one before it.
const MOST_STORES: usize = 2;
const MOST_VALUES: usize = 4;
/// Instructions that are looked at to find out what a predicate is made of.
const MOST_MAKERS: usize = 64;

/// Makes stores under predicates of an ordered function. Returns whether there were any; blocks that nobody reaches are left.
pub fn predicate_stores(f: &mut Function) -> bool {
    let found = candidates(f);
    if found.is_empty() {
        return false;
    }
    let preds = Edges::into_blocks(f);
    let doms = Dominators::of(f, &preds);
    let values = Values::of(f, &doms);
    let made = definitions(f);
    let mut any = false;
    for (b, sides, meet) in found {
        let Term::Branch { cond, then, .. } = f.blocks[b].term else { continue };
        let is_alone = |s: &usize| preds.of_node(*s).len() == 1;
        if !sides.iter().all(is_alone) || !values.is_fixed(cond) || !part_by_data(f, &made, cond) {
            continue;
        }
        let are_values = |s: &usize| f.blocks[*s].insts.iter().flat_map(|i| &i.dst).all(|d| values.is_value(*d));
        if !sides.iter().all(are_values) {
            continue;
        }
        for s in sides {
            let mut guard = cond;
            if s != then.idx() {
                let not = f.register(Ty::P);
                let span = f.blocks[b].term_span;
                let op = Op::Pure(Pure::Not(Ty::P));
                f.blocks[b].insts.push(Inst { op, dst: smallvec![not], src: smallvec![cond], guarded: false, span });
                guard = Val::Reg(not);
            }
            let mut moved = std::mem::take(&mut f.blocks[s].insts);
            for store in moved.iter_mut().filter(|i| matches!(i.op, Op::Store { .. })) {
                store.src.push(guard);
                store.guarded = true;
            }
            f.blocks[b].insts.extend(moved);
        }
        f.blocks[b].term = Term::Jump(meet);
        any = true;
    }
    any
}

/// Blocks that end with a branch around one or two short blocks of stores, with these, and the block where all lanes meet.
fn candidates(f: &Function) -> Vec<(usize, Vec<usize>, BlockId)> {
    let end_of = |s: BlockId| match f.blocks[s.idx()].term {
        Term::Jump(to) if is_short(&f.blocks[s.idx()]) => Some(to),
        _ => None,
    };
    let of_block = |(b, block): (usize, &Block)| {
        let Term::Branch { then, otherwise, .. } = block.term else { return None };
        if block.insts.last().is_some_and(|i| i.op.is_warp_sync()) || then == otherwise {
            return None;
        }
        let (sides, meet) = match (end_of(then), end_of(otherwise)) {
            (Some(to), _) if to == otherwise => (vec![then.idx()], to),
            (_, Some(to)) if to == then => (vec![otherwise.idx()], to),
            (Some(to), Some(other)) if to == other => (vec![then.idx(), otherwise.idx()], to),
            _ => return None,
        };
        let is_apart = !sides.contains(&b) && meet.idx() != b;
        is_apart.then_some((b, sides, meet))
    };
    f.blocks.iter().enumerate().filter_map(of_block).collect()
}

/// Whether a block is short, and has stores and what they need alone.
fn is_short(block: &Block) -> bool {
    let is_store = |i: &&Inst| matches!(i.op, Op::Store { access, .. } if access.order == Order::Weak && !i.guarded);
    let is_value = |i: &&Inst| matches!(i.op, Op::Pure(p) if !p.facts().costly && !i.guarded);
    let (stores, values) = (block.insts.iter().filter(is_store).count(), block.insts.iter().filter(is_value).count());
    (1..=MOST_STORES).contains(&stores) && values <= MOST_VALUES && stores + values == block.insts.len()
}

/// Whether a predicate is made of what lanes have read at places of their own, or have got from each other.
fn part_by_data(f: &Function, definitions: &[Vec<(usize, usize)>], cond: Val) -> bool {
    let mut seen: Vec<Reg> = Vec::new();
    let mut work = vec![cond];
    let (mut is_read, mut by_thread) = (false, false);
    while let Some(v) = work.pop() {
        let Val::Reg(r) = v else { continue };
        if seen.contains(&r) || r.idx() >= definitions.len() {
            continue;
        }
        seen.push(r);
        if seen.len() > MOST_MAKERS {
            return false;
        }
        for &(b, i) in &definitions[r.idx()] {
            let inst = &f.blocks[b].insts[i];
            match inst.op {
                Op::Load { access, .. } => {
                    is_read |= !matches!(access.space, StateSpace::ParamEntry | StateSpace::Const);
                }
                Op::Sreg(Sreg::Tid(_) | Sreg::Laneid) => by_thread = true,
                Op::Atom { .. } => (is_read, by_thread) = (true, true),
                _ => {}
            }
            if is_read && by_thread {
                return true;
            }
            work.extend(&inst.src);
        }
    }
    false
}
