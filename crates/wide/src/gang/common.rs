//! Scalars that are the same in all warps of a CTA wherever these are at the same place of the same turn: what loops of a CTA count by.

use handloom_ir::simt::{Op, Term, Val};
use handloom_plan::analysis::cfg::Set;

use crate::emit::*;

/// Blocks that are looked at, at most, for one branch. Of thousands of branches that all lead to the end, each has all of the function before it.
const MOST_FOLLOWED: usize = 500;

impl Emit<'_> {
    /// By register: whether it is the same in all warps. Everything counts as such until it is found to be made of something else, or written where only some warps come.
    pub(crate) fn common_values(&self) -> Vec<bool> {
        let f = self.f;
        let of_head =
            |r: usize| self.head.as_ref().is_some_and(|h| h.is_same_in_warps(handloom_ir::simt::Reg(r as u32)));
        let mut common: Vec<bool> = (0..f.regs.len())
            .map(|r| self.plan.facts.class[r].shape().is_some_and(|s| s.is_uniform()) || of_head(r))
            .collect();
        // What follows from that warps part at a block is the same each time.
        let (mut parted, mut is_parted_anywhere) = (Set::new(f.blocks.len()), false);
        loop {
            let before = common.iter().filter(|c| **c).count();
            for (b, block) in f.blocks.iter().enumerate() {
                for inst in &block.insts {
                    let from = |v: &Val| matches!(v, Val::Imm(..)) || matches!(v, Val::Reg(r) if common[r.idx()]);
                    let fits = matches!(inst.op, Op::Pure(_)) && !inst.guarded && inst.src.iter().all(from);
                    if !fits {
                        inst.dst.iter().filter(|d| !of_head(d.idx())).for_each(|d| common[d.idx()] = false);
                    }
                }
                block.term.result().iter().for_each(|d| common[d.idx()] = false);
                let asks = match &block.term {
                    Term::Branch { cond: Val::Reg(c), .. } => !common[c.idx()],
                    Term::Switch { .. } => true,
                    _ => false,
                };
                if asks && parted.add(b) {
                    self.leave_out_parted(b, &mut common, &mut is_parted_anywhere);
                }
            }
            if common.iter().filter(|c| **c).count() == before {
                return common;
            }
        }
    }

    /// After a branch that warps take differently: what some of them write and all may read where they come together is not the same in all.
    /// `anywhere`: whether that was said already of a branch after which they may be anywhere.
    fn leave_out_parted(&self, b: usize, common: &mut [bool], anywhere: &mut bool) {
        let f = self.f;
        let to: Vec<usize> = f.blocks[b].term.successors().iter().map(|t| t.idx()).collect();
        let (low, high) = (to.iter().copied().min().unwrap_or(0), to.iter().copied().max().unwrap_or(0));
        // Blocks that follow it and come together at the last of its targets, without waiting for anybody: all warps there went the same way.
        let is_plain = |x: usize| {
            let term = &f.blocks[x].term;
            matches!(term, Term::Jump(_) | Term::Branch { .. } | Term::Ret | Term::Exit)
                && term.successors().iter().all(|t| (low..=high).contains(&t.idx()))
        };
        let is_local = low > b && high - low <= MOST_FOLLOWED && (low..high).all(is_plain);
        if !is_local && std::mem::replace(anywhere, true) {
            return;
        }
        let parted = if is_local { low..high } else { 0..f.blocks.len() };
        for d in f.blocks[parted].iter().flat_map(|x| &x.insts).flat_map(|i| &i.dst) {
            let differs = match is_local {
                true => self.plan.facts.live.entry[high].has(d.idx()),
                false => self.plan.def_count[d.idx()] != 1,
            };
            if differs {
                common[d.idx()] = false;
            }
        }
    }
}
