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
        let mut reads = vec![Set::new(regs); n];
        let mut writes = vec![Set::new(regs); n];
        for (b, block) in f.blocks.iter().enumerate() {
            let mut read = |v: &Val, written: &Set| {
                if let Val::Reg(r) = v
                    && !written.has(r.idx())
                {
                    reads[b].add(r.idx());
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
        // The result of a barrier is written on the way to the next block.
        let results: Vec<Option<usize>> = f.blocks.iter().map(|b| b.term.result().map(|r| r.idx())).collect();
        let mut entry = vec![Set::new(regs); n];
        let mut exit = vec![Set::new(regs); n];
        let mut changed = true;
        while changed {
            changed = false;
            for b in (0..n).rev() {
                let mut out = Set::new(regs);
                for &s in &cfg.succs[b] {
                    out.union(&entry[s]);
                }
                if let Some(r) = results[b] {
                    out.remove(r);
                }
                let mut live = out.clone();
                for r in writes[b].iter() {
                    live.remove(r);
                }
                live.union(&reads[b]);
                changed |= live != entry[b];
                entry[b] = live;
                exit[b] = out;
            }
        }
        Live { entry, exit }
    }
}
