//! What is known about a function before code is emitted.
//!
//! [`mod@cfg`]: dominators, post-dominators, loops, the region of a branch. [`live`]: liveness at block ends. [`shape`]: how the lanes of a
//! value relate, and what ops make of that. [`classes`]: which registers are the same in all lanes or differ by constants, which branches
//! diverge, which blocks lanes may execute in part. `members`: whether a warp-level op keeps lanes together. [`variables`]: from which variables addresses
//! are made. [`reach`]: the most that offsets can be, and how they are aligned.

use handloom_ir::simt::Function;

pub mod cfg;
pub mod classes;
pub mod live;
mod members;
pub mod reach;
pub mod shape;
pub mod variables;

/// By register: how many instructions and ends of blocks write it.
pub fn n_definitions(f: &Function) -> Vec<u32> {
    let mut n = vec![0; f.regs.len()];
    for b in &f.blocks {
        b.insts.iter().flat_map(|i| &i.dst).chain(b.term.result().iter()).for_each(|d| n[d.idx()] += 1);
    }
    n
}
