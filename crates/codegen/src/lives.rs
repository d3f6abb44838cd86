//! How long values of a function live: what allocators take time for.

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Function, Value};

/// Instructions over which a value may live and still count as used at once. With more values around it than that, the host has no register for it.
const AT_ONCE: u64 = 64;

/// How long values live: from definitions to last uses, in the order in which instructions were emitted. Loops are not looked at.
pub(crate) struct Lives {
    n_insts: u64,
    n_blocks: u64,
    /// The number of instructions over which each value lives, summed up.
    sum: u64,
    /// Values that are not used at once.
    pub(crate) n_kept: u64,
}

impl Lives {
    pub(crate) fn of(func: &Function) -> Lives {
        // Where a value is made, and the number of instructions from there to its last use. Of what is used before it is made nothing is known.
        let mut made: SecondaryMap<Value, u64> = SecondaryMap::with_default(u64::MAX);
        let mut lives: SecondaryMap<Value, u64> = SecondaryMap::new();
        let mut found = Lives { n_insts: 0, n_blocks: 0, sum: 0, n_kept: 0 };
        for block in func.layout.blocks() {
            found.n_blocks += 1;
            func.dfg.block_params(block).iter().for_each(|v| made[*v] = found.n_insts);
            for inst in func.layout.block_insts(block) {
                found.n_insts += 1;
                for v in func.dfg.inst_values(inst) {
                    let v = func.dfg.resolve_aliases(v);
                    let (now, before) = (found.n_insts.saturating_sub(made[v]), lives[v]);
                    if now > before {
                        lives[v] = now;
                        found.sum += now - before;
                        found.n_kept += u64::from(before <= AT_ONCE && now > AT_ONCE);
                    }
                }
                func.dfg.inst_results(inst).iter().for_each(|v| made[*v] = found.n_insts);
            }
        }
        found
    }

    /// The values that live at an instruction, on average.
    fn mean(&self) -> u64 {
        self.sum / self.n_insts.max(1)
    }

    /// What is long, and that there is much of it: a measure of the work of an allocator that takes decisions back.
    pub(crate) fn crowd(&self) -> u64 {
        self.sum.saturating_mul(self.mean())
    }

    /// Values at the starts of blocks: a measure of the work of one that goes from block to block.
    pub(crate) fn at_blocks(&self) -> u64 {
        self.n_blocks * self.mean()
    }
}
