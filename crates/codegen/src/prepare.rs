//! Gives each loop one latch, so that lanes that went different ways in its body meet before the next iteration.

use handloom_ir::simt::{Block, BlockId, Function, Term};

/// The function with one back edge for each loop header. Positions of blocks change; the order stays.
pub fn single_latches(f: &Function) -> Function {
    let mut f = f.clone();
    let mut header = 0;
    while header < f.blocks.len() {
        let latches: Vec<usize> =
            (header..f.blocks.len()).filter(|&b| f.blocks[b].term.successors().contains(&BlockId(header as u32))).collect();
        let branch_twice = |b: usize| f.blocks[b].term.successors().iter().filter(|s| s.idx() == header).count() > 1;
        if latches.len() > 1 || latches.iter().any(|&b| branch_twice(b)) {
            insert_latch(&mut f, header, &latches);
        }
        header += 1;
    }
    f
}

fn insert_latch(f: &mut Function, header: usize, latches: &[usize]) {
    let last = latches[latches.len() - 1];
    let at = last + 1;
    let moved = |b: BlockId| if b.idx() >= at { BlockId(b.0 + 1) } else { b };
    for (i, block) in f.blocks.iter_mut().enumerate() {
        let to_latch = latches.contains(&i);
        block.term.map_successors(|s| {
            if to_latch && s.idx() == header { BlockId(at as u32) } else { moved(s) }
        });
    }
    let span = f.blocks[last].term_span;
    f.blocks.insert(at, Block { insts: Vec::new(), term: Term::Jump(BlockId(header as u32)), term_span: span });
}
