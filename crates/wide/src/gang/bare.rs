//! The instructions of a way where the predicates that guard its accesses hold in all lanes.
//!
//! # The model
//! Such an access is one without a guard, and what takes one of two values by such a predicate takes the first one: a load then makes what the program makes of it and of the value for
//! lanes without it. What makes a predicate is left out where nobody else in the function reads it.

use handloom_ir::simt::{Inst, Op, Pure, Reg, Val};
use smallvec::smallvec;

use crate::asked::reg;
use crate::emit::*;

impl Emit<'_> {
    /// The instructions of a block as they are where all bits hold that are given beside; `None` if nothing in it is guarded so.
    pub(super) fn bare(&self, b: usize) -> Option<(Vec<Inst>, u32)> {
        let head = self.head.as_ref().filter(|_| !self.counts())?;
        let insts = &self.f.blocks[b].insts;
        let bit_of = |p: Val, i: usize| head.bit_of_predicate(self.plan, p, (b, i));
        let is_access = |i: &Inst| matches!(i.op, Op::Load { .. } | Op::Store { .. });
        let guard_of = |(i, inst): (usize, &Inst)| bit_of(inst.guard().filter(|_| is_access(inst))?, i);
        let bits = insts.iter().enumerate().filter_map(guard_of).fold(0, |m, bit| m | bit);
        if bits == 0 {
            return None;
        }
        let holds = |p: Val, i: usize| bit_of(p, i).is_some_and(|bit| bits & bit != 0);
        let mut bare = insts.clone();
        for (i, inst) in bare.iter_mut().enumerate() {
            if guard_of((i, inst)).is_some() {
                inst.src.pop();
                inst.guarded = false;
            } else if let Op::Pure(Pure::Select(ty)) = inst.op
                && !inst.guarded
                && holds(inst.src[0], i)
            {
                inst.op = Op::Pure(Pure::Mov(ty));
                inst.src = smallvec![inst.src[1]];
            }
        }
        for i in 0..bare.len() {
            self.make_at_once(&mut bare, i);
        }
        self.leave_out_predicates(b, &mut bare);
        Some((bare, bits))
    }

    /// Lets a load make what a copy makes of its value, for which alone the value is there.
    fn make_at_once(&self, bare: &mut [Inst], i: usize) {
        let (Op::Pure(Pure::Mov(_)), &[Val::Reg(from)], [to]) = (bare[i].op, &bare[i].src[..], &bare[i].dst[..]) else {
            return;
        };
        let to = *to;
        let is_one = |r: Reg| self.plan.def_count[r.idx()] == 1 && !self.places.is_own[r.idx()];
        let is_alike = std::mem::discriminant(&self.place(from)) == std::mem::discriminant(&self.place(to));
        let load = bare[..i].iter().position(|l| matches!(l.op, Op::Load { .. }) && l.dst.contains(&from));
        let (true, Some(load)) = (is_one(from) && is_one(to) && is_alike && self.uses.count(from) == 1, load) else {
            return;
        };
        bare[load].dst.iter_mut().filter(|d| **d == from).for_each(|d| *d = to);
        bare[i] = Inst { op: Op::Mark, dst: smallvec![], src: smallvec![], ..bare[i].clone() };
    }

    /// Leaves out what makes predicates that nobody reads any more: neither here nor in another block.
    fn leave_out_predicates(&self, b: usize, bare: &mut [Inst]) {
        let Some(head) = &self.head else { return };
        let is_read_in = |r: Reg, insts: &[Inst]| insts.iter().flat_map(|i| &i.src).any(|v| reg(v) == Some(r));
        let is_read_elsewhere = |r: Reg| {
            self.f.blocks.iter().enumerate().any(|(x, block)| {
                x != b && is_read_in(r, &block.insts) || block.term.sources().iter().any(|v| reg(v) == Some(r))
            })
        };
        for i in (0..bare.len()).rev() {
            let &[p] = &bare[i].dst[..] else { continue };
            if head.makes_known((b, i)) && !is_read_in(p, bare) && !is_read_elsewhere(p) {
                bare[i] = Inst { op: Op::Mark, dst: smallvec![], src: smallvec![], ..bare[i].clone() };
            }
        }
    }
}
