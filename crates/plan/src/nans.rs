//! Which registers may hold a NaN that is not canonical.

use handloom_ir::simt::*;

use crate::analysis::classes::Facts;
use crate::ways::{Way, way};

/// Registers that hold float results only, whose NaNs become canonical where their bits are used.
pub fn loose(f: &Function, facts: &Facts) -> Vec<bool> {
    let mut loose = vec![true; f.regs.len()];
    let mut seen = vec![false; f.regs.len()];
    for (b, block) in f.blocks.iter().enumerate() {
        for inst in &block.insts {
            let by_op = matches!(inst.op, Op::Pure(p) if p.facts().is_loose);
            for d in &inst.dst {
                seen[d.idx()] = true;
                loose[d.idx()] &= by_op;
            }
            if !facts.masked.has(b) {
                continue;
            }
            // Masked copies hand rows to routines as they are.
            let consts: Vec<Option<u64>> = inst.src.iter().map(|_| None).collect();
            let never: Vec<bool> = inst.src.iter().map(|_| false).collect();
            let in_loop = matches!(inst.op, Op::Pure(p) if matches!(way(p, &consts, &never), Way::Vector(_)));
            for v in &inst.src {
                let fine = in_loop || matches!(inst.op, Op::Pure(p) if p.facts().takes_loose && p.facts().is_loose);
                if let Val::Reg(r) = v
                    && !fine
                {
                    loose[r.idx()] = false;
                }
            }
        }
        if let Some(d) = block.term.result() {
            loose[d.idx()] = false;
        }
    }
    loose.iter().zip(seen).map(|(l, s)| *l && s).collect()
}
