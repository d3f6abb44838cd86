//! Which vectors hold something for lanes that wait elsewhere while a block runs.
//!
//! # The model
//! Blocks write vectors for all lanes, also for those that are elsewhere, unless a mask keeps them: with AVX2 that is a read of the old value and a blend for
//! each half of each result. It is wanted only where a lane that waits at another block finds something in the vector there. The lowest block with lanes runs, so lanes
//! wait at blocks behind it, and only at those that some lanes were sent to while others went on to a lower one: in a loop, mostly at its exit alone.

use handloom_ir::simt::{Function, Term};
use handloom_plan::Plan;

use crate::alloc::{Place, Places, n_parts};

/// Blocks up to which it is looked for.
const MOST: usize = 64;

/// The blocks behind one, by bit.
fn behind(block: usize) -> u64 {
    !(u64::MAX >> (63 - block))
}

/// Whether lanes that part come together again by the order of blocks alone: nobody waits inside of a block, or for other warps.
fn goes_by_blocks(f: &Function, is_masked: &dyn Fn(usize) -> bool) -> bool {
    let is_plain = |term: &Term| {
        matches!(
            term,
            Term::Jump(_) | Term::Branch { .. } | Term::Switch { .. } | Term::Ret | Term::Exit | Term::Trap(_)
        )
    };
    let masked = f.blocks.iter().enumerate().filter(|(b, _)| is_masked(*b));
    f.blocks.len() <= MOST
        && masked.map(|(_, x)| x).all(|x| is_plain(&x.term) && !x.insts.iter().any(|i| i.op.is_warp_sync()))
}

/// By block: the blocks at which lanes may wait while it runs, by bit.
fn waiting(f: &Function) -> Vec<u64> {
    let mut waits = vec![0_u64; f.blocks.len()];
    loop {
        let before = waits.clone();
        for (b, block) in f.blocks.iter().enumerate() {
            // The lowest of those that have lanes after it runs next, and the others wait.
            let next = block.term.successors().iter().fold(waits[b], |m, t| m | 1 << t.idx());
            for n in (0..f.blocks.len()).filter(|n| next >> n & 1 == 1) {
                waits[n] |= next & behind(n);
            }
        }
        if waits == before {
            return waits;
        }
    }
}

/// By block: vectors that hold something for lanes which wait elsewhere while it runs, by bit. Nothing, if that is not known.
pub(crate) fn awaited(plan: &Plan, places: &Places) -> Vec<u32> {
    let f = &plan.func;
    if !goes_by_blocks(f, &|b| plan.facts.masked.has(b)) {
        return Vec::new();
    }
    let vectors = |r: usize| match places.of[r] {
        Place::Vectors(v) => v[..n_parts(f.regs[r])].iter().fold(0_u32, |m, v| m | 1 << v),
        Place::Nowhere | Place::Row(_) | Place::Mask(_) | Place::Flags(_) | Place::Words(_) => 0,
    };
    let found: Vec<u32> = plan.facts.live.entry.iter().map(|live| live.iter().fold(0, |m, r| m | vectors(r))).collect();
    let of = |at: &u64| (0..f.blocks.len()).filter(|b| at >> b & 1 == 1).fold(0, |m, b| m | found[b]);
    waiting(f).iter().map(of).collect()
}
