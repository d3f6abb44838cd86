//! Whether lanes that come to a warp-level op together leave it together, whatever member masks they name.
//!
//! Lanes of one warp may name different members: parts of the warp, each of which computes for itself. Where each lane names itself and lanes that all
//! name the same ones as it does, every part finds its members and all lanes go on. Else some may have to wait for lanes that come by another
//! instruction, and what follows is executed in part.

use handloom_ir::num;
use handloom_ir::simt::*;
use handloom_ir::types::Sreg;

/// The most ops that a member mask is computed from here.
const MOST_OPS: usize = 16;

/// What the member masks of a warp-level op say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Members {
    /// There is none, or lanes that are together stay so.
    Together,
    /// So they do if they were at the end of this block, which finds the mask.
    TogetherIf(usize),
    /// That is known only where all lanes name the same.
    Open(Reg),
}

/// What is known of the op at the end of each block. `single`: registers with one definition that dominates every use.
pub(super) fn members(f: &Function, single: &[bool]) -> Vec<Members> {
    let masks = f.blocks.iter().map(|block| {
        let inst = block.insts.last().filter(|inst| inst.op.is_warp_sync())?;
        match inst.src.last() {
            Some(Val::Reg(mask)) => Some(*mask),
            Some(Val::Imm(..)) | None => None,
        }
    });
    let masks: Vec<Option<Reg>> = masks.collect();
    if masks.iter().all(Option::is_none) {
        return vec![Members::Together; masks.len()];
    }
    let mut written = vec![None; f.regs.len()];
    for (b, block) in f.blocks.iter().enumerate() {
        for inst in &block.insts {
            inst.dst.iter().filter(|d| single[d.idx()]).for_each(|d| written[d.idx()] = Some((b, inst)));
        }
    }
    let of = |mask: Reg| match written[mask.idx()] {
        // Lanes with the same value find the same lanes, and themselves among them.
        Some((b, Inst { op: Op::Match { all: false, .. }, .. })) => Members::TogetherIf(b),
        _ if by_lane(&written, Val::Reg(mask), &mut MOST_OPS.clone()).is_some_and(|masks| is_partition(&masks)) => {
            Members::Together
        }
        _ => Members::Open(mask),
    };
    masks.into_iter().map(|mask| mask.map_or(Members::Together, of)).collect()
}

/// Whether each lane names itself, and lanes that name the same ones.
fn is_partition(masks: &[u64; 32]) -> bool {
    let alike = |mask: u64| (0..32).filter(move |l| mask >> l & 1 == 1).all(|l| masks[l] == mask);
    masks.iter().enumerate().all(|(l, mask)| mask >> l & 1 == 1 && alike(*mask))
}

/// The value in each lane of what is computed from the number of the lane alone, by at most so many ops.
fn by_lane(written: &[Option<(usize, &Inst)>], v: Val, ops_left: &mut usize) -> Option<[u64; 32]> {
    let r = match v {
        Val::Imm(value, _) => return Some([value; 32]),
        Val::Reg(r) => r,
    };
    *ops_left = ops_left.checked_sub(1)?;
    let inst = written[r.idx()].map(|(_, inst)| inst).filter(|inst| !inst.guarded && inst.dst[0] == r)?;
    match inst.op {
        Op::Sreg(Sreg::Laneid) => Some(std::array::from_fn(|lane| lane as u64)),
        Op::Pure(op) => {
            let mut args = Vec::with_capacity(inst.src.len());
            for v in &inst.src {
                args.push(by_lane(written, *v, ops_left)?);
            }
            Some(std::array::from_fn(|lane| {
                let src: Vec<u64> = args.iter().map(|arg| arg[lane]).collect();
                num::eval(op, &src)[0]
            }))
        }
        _ => None,
    }
}
