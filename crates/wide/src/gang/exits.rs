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
    /// Tests all that the head could not decide about, for all warps.
    pub(super) fn test_gang(&mut self, gang: &Gang, refused: Label) {
        for &at in &gang.tests {
            self.test_of_gang(gang, at, refused);
        }
    }

    /// Tests an access for all warps. Of addresses at even distances those of the first two and of the last one say enough: the others lie between, and are aligned as these are.
    fn test_of_gang(&mut self, gang: &Gang, at: (usize, usize), refused: Label) {
        self.at = at;
        let inst = &gang.insts(self.f, at.0)[at.1];
        let (Some(g), Some(limits)) = (self.access_of_gang(inst), self.limits_of.get(&at).copied()) else {
            self.a.jump(Code::Jmp_rel32_64, refused);
            return;
        };
        let x = Access { limits, cold: refused, is_proven: false, ..g.x };
        let last = gang.warps - 1;
        let of = self.distance_of(g.runs.address);
        let is_even = self.head.as_ref().is_some_and(|h| h.goes_evenly(of));
        let members: Vec<usize> = (0..gang.warps).filter(|m| !is_even || [0, 1, last].contains(m)).collect();
        let mut known = None;
        for (lane, reach) in &g.runs.list {
            if known.replace(*reach) != Some(*reach) {
                self.limits_of_run(&x, *reach);
            }
            for &m in &members {
                self.go_to_member(m);
                if !self.hold_from_first(g.runs.address, *lane, RAX, m) {
                    self.lane_value(x.class.address, *lane, RAX);
                }
                self.a.shift(m as i32 * self.member_step);
                self.add_number(RAX, x.class.offset);
                self.test_start(&x, RAX);
            }
        }
    }

    /// Where warps may leave a way behind a block, so many instructions from its start: by the branch, or because an access behind it is not right.
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
        self.bring_home(gang, exit.to, number);
        self.a.jump(Code::Jmp_rel32_64, exit.label);
        self.a.bind(stays);
        if !exit.tests.is_empty() {
            self.hold_only(&before);
            let (refused, passed) = (self.a.label(), self.a.label());
            for &(at, bit) in &exit.tests {
                self.test_for_exit(gang, at, bit, refused);
            }
            self.a.jump(Code::Jmp_rel32_64, passed);
            self.a.bind(refused);
            self.bring_home(gang, exit.stay, number);
            self.a.jump(Code::Jmp_rel32_64, exit.refused);
            self.a.bind(passed);
        }
        self.a.end_instruction(live);
        self.hold_only(&before);
    }

    /// Tests an access for all warps, unless the head has found that it is right.
    fn test_for_exit(&mut self, gang: &Gang, at: (usize, usize), bit: Option<u32>, refused: Label) {
        let passed = self.a.label();
        if let Some(bit) = bit {
            self.a.imm(Code::Test_rm32_imm32, crate::head::DECIDED, bit.cast_signed());
            self.a.jump(Code::Jne_rel32_64, passed);
        }
        let (here, before) = (self.at, self.held());
        self.test_of_gang(gang, at, refused);
        self.at = here;
        self.go_to_member(0);
        self.a.bind_if_wanted(passed);
        self.hold_only(&before);
    }

    /// What lives where warps stop goes to its homes, so many instructions from the start of the way.
    fn bring_home(&mut self, gang: &Gang, to: usize, number: usize) {
        let is_here = |r: usize| {
            let begun = gang.moves.iter().any(|m| m.1 == r && m.0 <= number);
            begun || gang.entered.iter().any(|e| e.0 == r)
        };
        let leaving: Vec<usize> = self.live_vectors(to).into_iter().filter(|r| is_here(*r)).collect();
        for m in 0..gang.warps {
            self.go_to_member(m);
            leaving.iter().for_each(|r| self.move_register(*r, Way::Out));
        }
        self.write_alone(gang, |e, r| e.plan.facts.live.entry[to].has(r));
        self.go_to_member(0);
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
