//! How long values of a function live: what the allocator of a single pass takes time for.

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Function, Value};

/// Values that live at the starts of blocks, about: a measure of the work of an allocator that goes from block to block.
///
/// A value lives from where it is made to its last use, in the order in which instructions were emitted. Loops are not looked at.
pub(crate) fn values_at_blocks(func: &Function) -> u64 {
    let (mut n_insts, mut n_blocks) = (0u64, 0u64);
    // The number of instructions over which each value lives, summed up.
    let mut sum = 0;
    // Where a value is made, and the number of instructions from there to its last use. Of what is used before it is made nothing is known.
    let mut made: SecondaryMap<Value, u64> = SecondaryMap::with_default(u64::MAX);
    let mut lives: SecondaryMap<Value, u64> = SecondaryMap::new();
    for block in func.layout.blocks() {
        n_blocks += 1;
        func.dfg.block_params(block).iter().for_each(|v| made[*v] = n_insts);
        for inst in func.layout.block_insts(block) {
            n_insts += 1;
            for v in func.dfg.inst_values(inst) {
                let v = func.dfg.resolve_aliases(v);
                let now = n_insts.saturating_sub(made[v]);
                sum += now.saturating_sub(lives[v]);
                lives[v] = lives[v].max(now);
            }
            func.dfg.inst_results(inst).iter().for_each(|v| made[*v] = n_insts);
        }
    }
    n_blocks * (sum / n_insts.max(1))
}
