//! Brings a function into the form that emission wants.

use std::collections::HashSet;

use handloom_ir::simt::{Block, BlockId, Function, Inst, Op, Pure, Reg, Term, Val};

use crate::analysis::n_definitions;

/// The function with one back edge for each loop header, so that lanes that went different ways in a loop's body meet before the next iteration. Positions of blocks change; the order stays.
pub fn single_latches(f: &Function) -> Function {
    let mut f = f.clone();
    let mut header = 0;
    while header < f.blocks.len() {
        let latches: Vec<usize> = (header..f.blocks.len())
            .filter(|&b| f.blocks[b].term.successors().contains(&BlockId(header as u32)))
            .collect();
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
        block.term.map_successors(|s| if to_latch && s.idx() == header { BlockId(at as u32) } else { moved(s) });
    }
    let span = f.blocks[last].term_span;
    f.blocks.insert(at, Block { insts: Vec::new(), term: Term::Jump(BlockId(header as u32)), term_span: span });
}

/// Writes zero at the start to registers that are read on some path before they are written. Their homes hold what another call or CTA left there,
/// and a shape must cover the zero.
pub fn zero_first(f: &mut Function, regs: &[Reg]) {
    let zero = |r: &Reg| {
        let ty = f.regs[r.idx()];
        Inst { op: Op::Pure(Pure::Mov(ty)), dst: vec![*r], src: vec![Val::Imm(0, ty)], guarded: false, span: f.span }
    };
    let zeros: Vec<Inst> = regs.iter().map(zero).collect();
    let repeats = f.blocks.iter().any(|b| b.term.successors().contains(&BlockId(0)));
    if repeats {
        f.blocks.iter_mut().for_each(|b| b.term.map_successors(|s| BlockId(s.0 + 1)));
        f.blocks.insert(0, Block { insts: zeros, term: Term::Jump(BlockId(1)), term_span: f.span });
    } else {
        f.blocks[0].insts.splice(0..0, zeros);
    }
}

/// Moves the computation of addresses before the first memory access of its block, as far as it needs nothing that was read there.
///
/// Tests that an address does not wrap then stand where nothing has happened yet, and so may be asked for.
pub fn addresses_first(f: &mut Function) {
    let defs = n_definitions(f);
    for block in &mut f.blocks {
        let wanted = address_slice(block);
        let mut held_back = HashSet::new();
        // An instruction that stays may read what the last turn of a loop left in a register.
        let mut read: HashSet<Reg> = HashSet::new();
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        let mut started = false;
        for (inst, wanted) in std::mem::take(&mut block.insts).into_iter().zip(wanted) {
            let ready = inst.src.iter().all(|v| !matches!(v, Val::Reg(r) if held_back.contains(r)));
            let alone = inst.dst.iter().all(|d| defs[d.idx()] == 1 && !read.contains(d));
            // What stands before the first access stays where it is.
            started |= !inst.op.is_value();
            if !started || (wanted && ready && alone && inst.op.is_value()) {
                first.push(inst);
            } else {
                held_back.extend(inst.dst.iter().copied());
                read.extend(inst.src.iter().filter_map(|v| match v {
                    Val::Reg(r) => Some(*r),
                    Val::Imm(..) => None,
                }));
                rest.push(inst);
            }
        }
        first.append(&mut rest);
        block.insts = first;
    }
}

/// Which instructions of a block compute an address for it.
fn address_slice(block: &Block) -> Vec<bool> {
    let mut needed: HashSet<Reg> = HashSet::new();
    let mut wanted = vec![false; block.insts.len()];
    for (i, inst) in block.insts.iter().enumerate().rev() {
        if let (Op::Load { .. } | Op::Store { .. } | Op::Atom { .. } | Op::Red { .. }, Some(Val::Reg(r))) =
            (inst.op, inst.src.first())
        {
            needed.insert(*r);
        }
        if inst.op.is_value() && inst.dst.iter().any(|d| needed.contains(d)) {
            wanted[i] = true;
            needed.extend(inst.src.iter().filter_map(|v| match v {
                Val::Reg(r) => Some(*r),
                Val::Imm(..) => None,
            }));
        }
    }
    wanted
}
