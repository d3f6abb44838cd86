//! Where the warps of a gang stop to go on one by one, and the tests that say so.

use std::mem::offset_of;

use handloom_ir::simt::Val;
use handloom_plan::abi::WarpCtx;
use iced_x86::Code;

use super::way::Gang;
use crate::access::Access;
use crate::asm::{Label, Mem};
use crate::emit::*;
use crate::flow::Way;
use crate::turns::code as turns;
use crate::values::At;

impl Emit<'_> {
    /// Tests all that the head could not decide about, for all warps. Of addresses at even distances those of the first two and of the last one say enough: the others lie between, and are aligned as
    /// these are.
    pub(super) fn test_gang(&mut self, gang: &Gang, refused: Label) {
        let f = self.f;
        for &(b, i) in &gang.tests {
            self.at = (b, i);
            let inst = &gang.insts(f, b)[i];
            let (Some(g), Some(limits)) = (self.access_of_gang(inst), self.limits_of.get(&(b, i)).copied()) else {
                self.a.jump(Code::Jmp_rel32_64, refused);
                continue;
            };
            let x = Access { limits, cold: refused, is_proven: false, ..g.x };
            let last = gang.warps - 1;
            let is_even = self.head.as_ref().is_some_and(|h| h.goes_evenly(g.runs.address));
            let members: Vec<usize> = (0..gang.warps).filter(|m| !is_even || [0, 1, last].contains(m)).collect();
            let mut known = None;
            for (lane, reach) in &g.runs.list {
                if known.replace(*reach) != Some(*reach) {
                    self.limits_of_run(&x, *reach);
                }
                for &m in &members {
                    self.go_to_member(m);
                    self.lane_value(x.class.address, *lane, RAX);
                    self.add_number(RAX, x.class.offset);
                    self.test_start(&x, RAX);
                }
            }
        }
    }

    /// Where warps may leave a way behind a block, so many instructions from its start: what lives where they stop goes to its homes.
    pub(super) fn leave_by_exit(&mut self, gang: &Gang, b: usize, number: usize) {
        let Some(exit) = gang.exit_of(b) else { return };
        let (stays, leaves) = (self.a.label(), self.a.label());
        self.go_to_member(0);
        let live = gang.alive_after(gang.warps - 1, (number, number), true);
        self.a.begin_instruction(live);
        if exit.stays_if {
            self.jump_unless(exit.cond, b, leaves);
            self.a.jump(Code::Jmp_rel32_64, stays);
            self.a.bind(leaves);
        } else {
            self.jump_unless(exit.cond, b, stays);
        }
        let before = self.held();
        let is_here = |r: usize| {
            let begun = gang.moves.iter().any(|m| m.1 == r && m.0 <= number);
            begun || gang.entered.iter().any(|e| e.0 == r)
        };
        let leaving: Vec<usize> = self.live_vectors(exit.to).into_iter().filter(|r| is_here(*r)).collect();
        for m in 0..gang.warps {
            self.go_to_member(m);
            leaving.iter().for_each(|r| self.move_register(*r, Way::Out));
        }
        self.write_alone(gang, |e, r| e.plan.facts.live.entry[exit.to].has(r));
        self.a.jump(Code::Jmp_rel32_64, exit.label);
        self.a.bind(stays);
        self.a.end_instruction(live);
        self.hold_only(&before);
    }

    /// Jumps where the condition that a block ends with, the same in all warps, does not hold.
    pub(super) fn jump_unless(&mut self, cond: Val, block: usize, to: Label) {
        match (self.in_flags.take(), self.src(cond).at) {
            (Some((_, unless)), _) => self.a.jump(unless, to),
            (None, At::Words(_, at)) => {
                self.a.imm(Code::Cmp_rm32_imm32, ctx(at), 0);
                self.a.jump(Code::Je_rel32_64, to);
            }
            (None, other) => panic!("{other:?} as a branch of b{block}"),
        }
    }

    /// The turn is settled, and the warps of the gang wait at a block, at whose start values are in their homes.
    pub(super) fn stop_before(&mut self, gang: &Gang, b: usize, label: Label) {
        let Some(settle) = self.turns.as_ref().map(|t| t.settle()) else { return };
        let step = self.member_step;
        self.a.bind(label);
        self.a.jump(Code::Call_rel32_64, settle);
        self.load32(ECX, turns::start());
        let pend = self.places.pend as i32;
        for m in 0..gang.warps {
            let to = m as i32 * step;
            self.a.imm(Code::Mov_rm32_imm32, Mem::indexed(WARP, RCX, 4, to + pend), 0);
            self.store_number(Mem::at(WARP, to + offset_of!(WarpCtx, state) as i32), b as u32);
            self.store_number(Mem::at(WARP, to + offset_of!(WarpCtx, wait_epoch) as i32), 0);
            self.store_number(Mem::at(WARP, to + pend + 4 * b as i32), u32::MAX);
        }
        let (dispatch, block) = (self.dispatch, self.block[b]);
        self.a.jump(Code::Jmp_rel32_64, dispatch);
        // Where dispatch finds them.
        if let Some((stub, any)) = self.dispatch_stub(b) {
            self.a.bind(stub);
            self.take_all(b, any);
            self.a.jump(Code::Jmp_rel32_64, block);
        }
    }
}
