//! How the registers of a function are read.

use handloom_ir::simt::{Inst, Reg, Val};
use handloom_plan::Plan;

/// How often registers are read, and by whom.
pub(crate) struct Uses {
    count: Vec<u32>,
    by_vectors: Vec<bool>,
}

impl Uses {
    /// Of all registers. `by_vectors`: whether an instruction is a value op on vectors.
    pub(crate) fn of(plan: &Plan, by_vectors: &dyn Fn(&Inst) -> bool) -> Uses {
        let f = &plan.func;
        let mut uses = Uses { count: vec![0; f.regs.len()], by_vectors: vec![true; f.regs.len()] };
        for block in &f.blocks {
            block.insts.iter().for_each(|inst| uses.note(&inst.src, by_vectors(inst)));
            uses.note(&block.term.sources(), false);
        }
        uses
    }

    fn note(&mut self, sources: &[Val], by_vectors: bool) {
        for v in sources {
            if let Val::Reg(r) = v {
                self.count[r.idx()] += 1;
                self.by_vectors[r.idx()] &= by_vectors;
            }
        }
    }

    /// How often a register is read in the text.
    pub(crate) fn count(&self, r: Reg) -> u32 {
        self.count[r.idx()]
    }

    /// Whether value ops on vectors alone read a register.
    pub(crate) fn is_by_vectors(&self, r: Reg) -> bool {
        self.by_vectors[r.idx()]
    }
}
