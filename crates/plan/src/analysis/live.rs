//! Liveness of registers at the ends of blocks.

use handloom_ir::simt::{Function, Val};

use super::cfg::{Cfg, Set};

/// Live registers at the start and end of each block.
#[derive(Debug)]
pub struct Live {
    /// Live at the start.
    pub entry: Vec<Set>,
    /// Live at the end.
    pub exit: Vec<Set>,
}

impl Live {
    /// Backward data flow over the blocks.
    pub fn new(f: &Function, cfg: &Cfg) -> Live {
        let (n, regs) = (f.blocks.len(), f.regs.len());
        // What a block reads before it writes it lives at its start, whatever comes behind it.
        let mut entry = vec![Set::new(regs); n];
        let mut writes = vec![Set::new(regs); n];
        for (b, block) in f.blocks.iter().enumerate() {
            let mut read = |v: &Val, written: &Set| {
                if let Val::Reg(r) = v
                    && !written.has(r.idx())
                {
                    entry[b].add(r.idx());
                }
            };
            for inst in &block.insts {
                inst.src.iter().for_each(|v| read(v, &writes[b]));
                // A guarded result keeps its old value in lanes whose guard is 0: the old value is read.
                if inst.guarded {
                    inst.dst.iter().for_each(|d| read(&Val::Reg(*d), &writes[b]));
                }
                inst.dst.iter().for_each(|d| {
                    writes[b].add(d.idx());
                });
            }
            block.term.sources().iter().for_each(|v| read(v, &writes[b]));
        }
        let mut exit = vec![Set::new(regs); n];
        // Blocks that a block leads to have changed since it was looked at.
        let mut is_stale = vec![true; n];
        while is_stale.contains(&true) {
            for b in (0..n).rev() {
                if !std::mem::replace(&mut is_stale[b], false) {
                    continue;
                }
                for &s in &cfg.succs[b] {
                    exit[b].union(&entry[s]);
                }
                // The result of a barrier is written on the way to the next block.
                if let Some(r) = f.blocks[b].term.result() {
                    exit[b].remove(r.idx());
                }
                if entry[b].union_without(&exit[b], &writes[b]) {
                    cfg.preds[b].iter().for_each(|p| is_stale[*p] = true);
                }
            }
        }
        Live { entry, exit }
    }
}
