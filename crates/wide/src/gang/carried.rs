//! Rows that a warp finds in registers, since the warp before it has read them.
//!
//! # The model
//! The warps of a CTA mostly go through neighbouring rows of a picture or a grid, and each reads some rows around its own: what is below one of them is in the middle for the next, and above for
//! the one after. Where warps go a way one after the other, and the address of one load is in each warp what that of another one was in the warp of the rank before (which is a matter of
//! the text: `head/sums.rs`), the warp reads nothing: the vectors of the other load stay, and are those of this one. Loads that so follow from each other are a *chain*. It has
//! as many rows of vectors as loads, which change their parts from rank to rank; the first rank reads all of them.
//!
//! What another warp writes meanwhile without a barrier may be seen or not. What a lane writes itself it is to see: no store stands before the loads of a chain.

use handloom_ir::simt::{Inst, Op, Reg};
use handloom_ir::types::{StateSpace, Ty};
use handloom_plan::access::AccessClass;

use super::way::{Carried, Gang};
use crate::access::Form;
use crate::asked::reg;
use crate::emit::*;

/// Loads that are compared with each other, at most.
const MOST: usize = 12;

/// A load that may be of a chain.
struct Load {
    at: (usize, usize),
    reg: Reg,
    op: Op,
    ty: Ty,
    address: Reg,
    offset: i64,
}

impl Emit<'_> {
    /// The chains of a way that so many warps go one after the other: whole ranks, and more than one.
    pub(super) fn chains_of(&mut self, way: &Gang, size: usize) -> Vec<Carried> {
        let is_of_ranks = |across: &usize| size.is_multiple_of(*across) && size > *across;
        let Some(across) = self.head.as_ref().map(|h| h.warps_of_rank()).filter(is_of_ranks) else {
            return Vec::new();
        };
        let mut loads: Vec<Load> = Vec::new();
        let insts = way.all_insts(self.f).take_while(|(_, inst)| !matches!(inst.op, Op::Store { .. }));
        for (at, inst) in insts.filter(|(_, inst)| matches!(inst.op, Op::Load { .. })) {
            self.at = at;
            if loads.len() < MOST {
                loads.extend(self.load_of_chain(way, inst));
            }
        }
        let mut chains: Vec<Carried> = Vec::new();
        // By load: the one that follows it, and whether it follows one.
        let mut next: Vec<Option<usize>> = vec![None; loads.len()];
        let mut follows = vec![false; loads.len()];
        for (k, of) in loads.iter().enumerate() {
            let is_next = |j: &usize| *j != k && !follows[*j] && self.follows(of, &loads[*j], across);
            if let Some(j) = (0..loads.len()).find(is_next) {
                (next[k], follows[j]) = (Some(j), true);
            }
        }
        let firsts = (0..loads.len()).filter(|k| !follows[*k] && next[*k].is_some());
        for (chain, first) in firsts.enumerate() {
            let all: Vec<usize> = std::iter::successors(Some(first), |k| next[*k]).collect();
            let n = all.len();
            chains.extend(all.into_iter().enumerate().map(|(age, k)| {
                let Load { at, reg, .. } = loads[k];
                Carried { at, reg, chain, age, n, across }
            }));
        }
        chains
    }

    /// A load that gangs do of a row, for all lanes, into a register of its own: that, and what is accessed.
    pub(super) fn own_row(&mut self, way: &Gang, inst: &Inst) -> Option<(Reg, AccessClass)> {
        let &[d] = inst.dst.as_slice() else { return None };
        let is_alone = self.plan.def_count[d.idx()] == 1 && self.is_in_vectors(d) && !way.common.has(d.idx());
        if !is_alone || self.is_of_head(inst) || self.table_of_merging(way, inst).is_some() {
            return None;
        }
        let g = self.access_of_gang(inst).filter(|g| g.form == Form::Row && !g.scalars && g.bit.is_some())?;
        let class = g.x.class;
        (class.count == 1 && !class.is_told).then_some((d, class))
    }

    /// A load that may be of a chain.
    fn load_of_chain(&mut self, way: &Gang, inst: &Inst) -> Option<Load> {
        let (d, class) = self.own_row(way, inst).filter(|(_, class)| class.space != StateSpace::Shared)?;
        let address = reg(&class.address).filter(|r| self.f.regs[r.idx()] == Ty::B64)?;
        Some(Load { at: self.at, reg: d, op: inst.op, ty: self.f.regs[d.idx()], address, offset: class.offset })
    }

    /// Whether a load has in each warp what another one had in the warp of the rank before.
    fn follows(&self, before: &Load, load: &Load, across: usize) -> bool {
        let access = |op| if let Op::Load { access, .. } = op { Some(access) } else { None };
        if access(before.op) != access(load.op) || before.ty != load.ty {
            return false;
        }
        let Some(head) = &self.head else { return false };
        // Both go up evenly along ranks and from rank to rank: what holds for a warp and the next one in either way holds for all.
        let n_warps = self.plan.facts.shape.n_warps() as usize;
        let warps = [0, 1, across].into_iter().filter(|w| w + across < n_warps);
        warps.into_iter().all(|w| {
            let [was, is] = [(before, w), (load, w + across)].map(|(l, w)| (l.address, l.offset, w));
            head.is_one_address(self.plan, was, is)
        })
    }
}
