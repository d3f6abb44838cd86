//! Brings a function into the form that emission wants.

use handloom_diag::hash::FastMap;

use handloom_ir::simt::{Block, BlockId, Function, Inst, Op, Pure, Reg, Term, Val, Vals};

use handloom_ir::types::{Cmp, Int, Ty};
use smallvec::smallvec;

use crate::analysis::cfg::Cfg;
use crate::analysis::classes::may_wait;
use crate::analysis::n_definitions;

/// Gives a function one back edge for each loop header, so that lanes that went different ways in a loop's body meet before the next iteration. Positions of blocks change; the order stays.
pub fn single_latches(f: &mut Function) {
    // The blocks that lead back to each header, in ascending order, one that does so twice as two.
    let mut latches: Vec<Vec<usize>> = vec![Vec::new(); f.blocks.len()];
    for (b, block) in f.blocks.iter().enumerate() {
        block.term.successors().iter().filter(|s| s.idx() <= b).for_each(|s| latches[s.idx()].push(b));
    }
    let several = |h: &usize| latches[*h].len() > 1;
    // Headers with the last block that leads to them, in the order of the new blocks: those of inner loops first.
    let mut added: Vec<(usize, usize)> =
        (0..f.blocks.len()).filter(several).filter_map(|h| Some((*latches[h].last()?, h))).collect();
    if added.is_empty() {
        return;
    }
    added.sort_unstable_by_key(|&(last, h)| (last, std::cmp::Reverse(h)));
    let moved = |b: usize| BlockId((b + added.partition_point(|(last, _)| *last < b)) as u32);
    let latch_of: FastMap<usize, BlockId> =
        added.iter().enumerate().map(|(k, &(last, h))| (h, BlockId((last + 1 + k) as u32))).collect();
    let mut blocks = Vec::with_capacity(f.blocks.len() + added.len());
    let mut next = added.iter().peekable();
    for (b, mut block) in std::mem::take(&mut f.blocks).into_iter().enumerate() {
        block.term.map_successors(|s| match latch_of.get(&s.idx()) {
            Some(latch) if s.idx() <= b => *latch,
            _ => moved(s.idx()),
        });
        let span = block.term_span;
        blocks.push(block);
        while let Some((_, h)) = next.next_if(|(last, _)| *last == b) {
            blocks.push(Block { insts: Vec::new(), term: Term::Jump(moved(*h)), term_span: span });
        }
    }
    f.blocks = blocks;
}

/// Writes zero at the start to registers that are read on some path before they are written. Their homes hold what another call or CTA left there,
/// and a shape must cover the zero.
pub fn zero_first(f: &mut Function, regs: &[Reg]) {
    let zero = |r: &Reg| {
        let ty = f.regs[r.idx()];
        Inst {
            op: Op::Pure(Pure::Mov(ty)),
            dst: smallvec![*r],
            src: smallvec![Val::Imm(0, ty)],
            guarded: false,
            span: f.span,
        }
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

/// The most branches of which it is asked whether they guard something where lanes wait: each costs a look at the blocks behind it.
const MOST_GUARDS: usize = 64;

/// Bits of the number of a lane.
const WARP_BITS: u32 = 5;

/// Compares what numbers have above their five lowest bits where that is what a branch asks: `%tid.x < 32` is `%tid.x >> 5 < 1`, which whole warps answer alike. Only where the branch guards
/// something in which lanes wait for each other, since code that parts of warps may wait in is slow from there on; what else guards is for others to decide.
pub fn warps_apart(f: &mut Function, cfg: &Cfg) {
    let waits = |b: usize| may_wait(&f.blocks[b]);
    if !(0..f.blocks.len()).any(waits) {
        return;
    }
    let mut made: FastMap<Reg, (usize, usize)> = FastMap::default();
    for (b, block) in f.blocks.iter().enumerate() {
        let of_warps = block.insts.iter().enumerate().filter(|(_, inst)| of_warps(inst).is_some());
        made.extend(of_warps.map(|(i, inst)| (inst.dst[0], (b, i))));
    }
    let asked = f.blocks.iter().enumerate().filter_map(|(b, block)| match block.term {
        Term::Branch { cond: Val::Reg(cond), .. } => made.get(&cond).map(|at| (b, *at)),
        _ => None,
    });
    let guards = asked.take(MOST_GUARDS).filter(|(b, _)| cfg.region(*b).iter().any(waits));
    let mut places: Vec<(usize, usize)> = guards.map(|(_, at)| at).collect();
    places.sort_unstable();
    places.dedup();
    for (b, i) in places.into_iter().rev() {
        let inst = &f.blocks[b].insts[i];
        let Some((a, cmp, int, above)) = of_warps(inst) else { continue };
        let shifted = Reg(f.regs.len() as u32);
        f.regs.push(Ty::B32);
        let number = |n: u32| Val::Imm(u64::from(n), Ty::B32);
        let make = |op: Pure, d: Reg, src: [Val; 2]| Inst {
            op: Op::Pure(op),
            dst: smallvec![d],
            src: Vals::from_slice(&src),
            ..inst.clone()
        };
        let made = [
            make(Pure::Shr(int), shifted, [Val::Reg(a), number(WARP_BITS)]),
            make(Pure::ICmp(cmp, int), inst.dst[0], [Val::Reg(shifted), number(above)]),
        ];
        f.blocks[b].insts.splice(i..=i, made);
    }
}

/// A comparison with the first or the last number of a warp: the other number, how that compares, and what it compares with above the five lowest bits.
fn of_warps(inst: &Inst) -> Option<(Reg, Cmp, Int, u32)> {
    let (Op::Pure(Pure::ICmp(cmp, int @ Int { ty: Ty::B32, signed })), [_], false) =
        (inst.op, &inst.dst[..], inst.guarded)
    else {
        return None;
    };
    let (a, n, cmp) = match inst.src[..] {
        [Val::Reg(a), Val::Imm(n, _)] => (a, n as u32, cmp),
        [Val::Imm(n, _), Val::Reg(a)] => (a, n as u32, cmp.swapped()),
        _ => return None,
    };
    let low = match cmp {
        Cmp::Lt | Cmp::Ge => 0,
        Cmp::Le | Cmp::Gt => (1 << WARP_BITS) - 1,
        _ => return None,
    };
    let above = if signed { (n.cast_signed() >> WARP_BITS).cast_unsigned() } else { n >> WARP_BITS };
    (n % (1 << WARP_BITS) == low).then_some((a, cmp, int, above))
}

/// Instructions that are moved to the start of a block, at most: what they make is kept until it is used, and allocators take time for each value that
/// is kept at each block. The block of the corpus with most of them has some hundreds.
const MOST_FIRST: usize = 1_000;

/// Moves the computation of addresses before the first memory access of its block, as far as it needs nothing that was read there. Of a long block it moves
/// the first ones.
///
/// Tests that an address does not wrap then stand where nothing has happened yet, and so may be asked for.
pub fn addresses_first(f: &mut Function) {
    let defs = n_definitions(f);
    // By register, the block that does with it what the name says.
    let nowhere = vec![u32::MAX; f.regs.len()];
    let (mut needed, mut held_back, mut read) = (nowhere.clone(), nowhere.clone(), nowhere);
    let (mut wanted, mut rest) = (Vec::new(), Vec::new());
    for (b, block) in (0..).zip(&mut f.blocks) {
        address_slice(block, b, &mut needed, &mut wanted);
        if !wanted.contains(&true) {
            continue;
        }
        let mut first = Vec::with_capacity(block.insts.len());
        let (mut started, mut n_moved) = (false, 0);
        for (inst, wanted) in std::mem::take(&mut block.insts).into_iter().zip(&wanted) {
            let ready = inst.src.iter().all(|v| !matches!(v, Val::Reg(r) if held_back[r.idx()] == b));
            // An instruction that stays may read what the last turn of a loop left in a register.
            let alone = inst.dst.iter().all(|d| defs[d.idx()] == 1 && read[d.idx()] != b);
            // What stands before the first access stays where it is.
            started |= !inst.op.is_value();
            if !started {
                first.push(inst);
            } else if *wanted && ready && alone && inst.op.is_value() && n_moved < MOST_FIRST {
                n_moved += 1;
                first.push(inst);
            } else {
                inst.dst.iter().for_each(|d| held_back[d.idx()] = b);
                note_read(&inst, b, &mut read);
                rest.push(inst);
            }
        }
        first.append(&mut rest);
        block.insts = first;
    }
}

/// Notes that a block reads what an instruction of it reads.
fn note_read(inst: &Inst, b: u32, by: &mut [u32]) {
    for v in &inst.src {
        if let Val::Reg(r) = v {
            by[r.idx()] = b;
        }
    }
}

/// Which instructions of a block compute an address for it.
fn address_slice(block: &Block, b: u32, needed: &mut [u32], wanted: &mut Vec<bool>) {
    wanted.clear();
    wanted.resize(block.insts.len(), false);
    for (i, inst) in block.insts.iter().enumerate().rev() {
        if let (Op::Load { .. } | Op::Store { .. } | Op::Atom { .. } | Op::Red { .. }, Some(Val::Reg(r))) =
            (inst.op, inst.src.first())
        {
            needed[r.idx()] = b;
        }
        if inst.op.is_value() && inst.dst.iter().any(|d| needed[d.idx()] == b) {
            wanted[i] = true;
            note_read(inst, b, needed);
        }
    }
}
