//! Which code a block gets: whether lanes may be pending at it, and whether its full copy follows that of the block before.

use handloom_ir::simt::{Function, Term};

use crate::analysis::cfg::Set;
use crate::analysis::classes::Facts;

/// Blocks that lanes may be pending at. `any`: code of an earlier tier may have stopped at each of them.
pub fn pendable(f: &Function, facts: &Facts, any: bool) -> Set {
    let mut set = Set::new(f.blocks.len());
    if any {
        (0..f.blocks.len()).for_each(|b| {
            set.add(b);
        });
        return set;
    }
    set.add(0);
    for (b, block) in f.blocks.iter().enumerate() {
        let parts = facts.masked.has(b) || facts.diverges[b] || block.term.suspends();
        if facts.masked.has(b) {
            set.add(b);
        }
        if parts {
            block.term.successors().iter().for_each(|s| {
                set.add(s.idx());
            });
        }
    }
    set
}

/// Blocks of one chain, at most. Each keeps its own view of values while it is emitted.
const DEEPEST: usize = 24;

/// Blocks whose full copy follows that of the only block that goes to them. Lanes that come to one by themselves stay masked. A block that may let go of part of the
/// lanes has no full copy.
pub fn chained(f: &Function, facts: &Facts, pendable: &Set) -> Set {
    let mut set = Set::new(f.blocks.len());
    let mut depth = vec![0; f.blocks.len()];
    for b in 0..f.blocks.len() {
        let next: Vec<usize> = match &f.blocks[b].term {
            Term::Jump(t) => vec![t.idx()],
            Term::Branch { then, otherwise, .. } if then != otherwise => vec![then.idx(), otherwise.idx()],
            _ => vec![],
        };
        for t in next {
            let alone = t > b && facts.cfg.preds[t].len() == 1 && !facts.parts.has(t);
            if alone && (!pendable.has(t) || facts.masked.has(t)) && depth[b] < DEEPEST {
                set.add(t);
                depth[t] = depth[b] + 1;
            }
        }
    }
    set
}
