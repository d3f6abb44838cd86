//! The order of blocks in a long function.
//!
//! Cranelift brings blocks into an order of its own before it gives registers to values: each after those that lead to it, and of two that a branch
//! leads to the second one first. What is emitted has code that leaves a copy, or goes back to the start of a loop, first in some branches and second in
//! others. Such a block then comes after all the rest of the function, and what it reads lives all the way there. With many of them an allocator
//! takes time in proportion to the square of their number.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, Function, InstBuilder, InstructionData};

/// Turns branches around so that blocks come in the order in which they were emitted, as far as each may come after those that lead to it.
pub(crate) fn keep_order(func: &mut Function) {
    let blocks: Vec<Block> = func.layout.blocks().collect();
    let mut position: SecondaryMap<Block, usize> = SecondaryMap::new();
    for (i, block) in blocks.iter().enumerate() {
        position[*block] = i;
    }
    for block in blocks {
        let Some(end) = func.layout.last_inst(block) else { continue };
        let InstructionData::Brif { opcode, arg, blocks: [then, otherwise] } = func.dfg.insts[end] else { continue };
        let at = |call: cranelift_codegen::ir::BlockCall| position[call.block(&func.dfg.value_lists)];
        if at(then) >= at(otherwise) {
            continue;
        }
        let made = func.dfg.value_def(arg).inst().filter(|made| func.layout.inst_block(*made) == Some(block));
        let comparison = made.map(|made| func.dfg.insts[made]);
        let mut cursor = FuncCursor::new(func).at_inst(end);
        let opposite = match comparison {
            Some(InstructionData::IntCompare { cond, args: [x, y], .. }) => cursor.ins().icmp(cond.complement(), x, y),
            _ => cursor.ins().icmp_imm_s(IntCC::Equal, arg, 0),
        };
        func.dfg.insts[end] = InstructionData::Brif { opcode, arg: opposite, blocks: [otherwise, then] };
    }
}
