//! How far an address goes up in a loop: see `rising`.

use handloom_ir::simt::{Reg, Val};
use handloom_ir::types::{Cmp, Ty};
use handloom_plan::Plan;
use iced_x86::{Code, Register};

use super::{FRAME_WORDS, Head, reg};
use crate::asm::{Label, Mem};
use crate::emit::*;
use crate::rising::{Rising, Turns, rising};

/// Addresses that go further in a loop, in bytes as a power of two, are tested in each turn.
const FURTHEST: u32 = 46;

impl Head {
    /// Finds the addresses that rise by what the launch decides.
    pub(super) fn find_rising(&mut self, plan: &Plan) {
        let is_one = |v: Val| {
            let same = self.course_of(v).is_some_and(|c| !c.is_linear && !c.by_cta);
            same && plan.facts.arg(v).shape.is_some_and(|s| s.is_uniform())
        };
        let fits = |r: &Rising| {
            let of_turns = [r.turns.first, r.turns.bound];
            reg(r.first).is_some_and(|r| self.courses[r.idx()].is_some())
                && [r.step].into_iter().chain(of_turns).all(is_one)
        };
        self.rising = rising(&plan.func, &plan.facts.cfg).into_iter().filter(fits).collect();
    }

    /// How an address rises, if it does.
    pub(super) fn rises(&self, address: Reg) -> Option<&Rising> {
        self.rising.iter().find(|r| r.address == address)
    }

    /// Whether what says how far an address rises has words.
    pub(super) fn knows_rise(&self, r: &Rising) -> bool {
        let has = |v: Val| reg(v).is_none_or(|r| self.same[r.idx()].is_some());
        has(r.step) && has(r.turns.first) && has(r.turns.bound)
    }

    /// The first value of an address that rises.
    pub(crate) fn first_value(&self, address: Reg) -> Option<Reg> {
        let rises = self.rises(address).filter(|r| self.knows_rise(r));
        rises.and_then(|r| reg(r.first)).filter(|r| self.same[r.idx()].is_some() || self.linear[r.idx()].is_some())
    }

    fn rise_word(&self) -> Mem {
        ctx(FRAME_WORDS + 8 * (self.spare + 18))
    }
}

impl Emit<'_> {
    /// Writes how far an address is from its first value in the last turn; to `failed` if that is not known or no multiple of an access's bytes. Uses `rax`, `rcx`, `rdx`, `rsi`.
    pub(super) fn rise(&mut self, head: &Head, r: &Rising, bytes: i64, failed: Label) {
        self.last_turn(&r.turns, failed);
        self.lane_value(r.step, 0, RCX);
        if self.ty(r.step) != Ty::B64 {
            self.a.op2(Code::Movsxd_r64_rm32, RCX, ECX);
        }
        if bytes > 1 {
            self.a.imm(Code::Test_rm32_imm32, ECX, (bytes - 1) as i32);
            self.a.jump(Code::Jne_rel32_64, failed);
        }
        self.a.op2(Code::Imul_r64_rm64, RAX, RCX);
        self.a.jump(Code::Jo_rel32_64, failed);
        self.a.op2(Code::Mov_r64_rm64, RDX, RAX);
        self.a.imm8(Code::Sar_rm64_imm8, RDX, FURTHEST);
        self.a.imm(Code::Add_rm64_imm32, RDX, 1);
        self.a.imm(Code::Cmp_rm64_imm32, RDX, 1);
        self.a.jump(Code::Ja_rel32_64, failed);
        self.store64(head.rise_word(), RAX);
    }

    /// Adds how far an address rises to its ends in the first turn, in `rax` and `rcx`; to `wraps` if one of 32 bits wraps. Uses `rdx`, `rsi`.
    pub(super) fn ends_of_rise(&mut self, head: &Head, is_short: bool, wraps: Label) {
        self.load64(RDX, head.rise_word());
        self.up_and_down(RDX, RSI);
        self.a.op2(Code::Add_r64_rm64, RAX, RSI);
        self.a.op2(Code::Add_r64_rm64, RCX, RDX);
        if is_short {
            for (r, low) in [(RAX, EAX), (RCX, ECX)] {
                self.a.op2(Code::Mov_r32_rm32, EDX, low);
                self.a.op2(Code::Cmp_r64_rm64, RDX, r);
                self.a.jump(Code::Jne_rel32_64, wraps);
            }
        }
    }

    /// The number of the last turn of a loop, in `rax`, the first being 0; to `unknown` if the count wraps.
    fn last_turn(&mut self, turns: &Turns, unknown: Label) {
        let size = turns.by.unsigned_abs();
        let rises = turns.by > 0;
        for (v, to, low) in [(turns.bound, RAX, EAX), (turns.first, RCX, ECX)] {
            self.lane_value(v, 0, to);
            if turns.signed {
                self.a.op2(Code::Movsxd_r64_rm32, to, low);
            } else {
                self.a.op2(Code::Mov_r32_rm32, low, low);
            }
        }
        if turns.cmp == Cmp::Ne {
            // It meets the bound, if it does so at all, after this distance modulo the width.
            if !rises {
                self.a.op2(Code::Xchg_rm64_r64, RAX, RCX);
            }
            self.a.op2(Code::Sub_r32_rm32, EAX, ECX);
            self.a.jump(Code::Je_rel32_64, unknown);
            self.divide(size);
            self.a.op2(Code::Test_rm32_r32, EDX, EDX);
            self.a.jump(Code::Jne_rel32_64, unknown);
            self.a.imm(Code::Sub_rm64_imm32, RAX, 1);
            return;
        }
        // The last count that another turn follows.
        match turns.cmp {
            Cmp::Lt => self.a.imm(Code::Sub_rm64_imm32, RAX, 1),
            Cmp::Gt => self.a.imm(Code::Add_rm64_imm32, RAX, 1),
            _ => {}
        }
        for r in [RAX, RCX] {
            self.a.op2(Code::Mov_r64_rm64, RDX, r);
            self.a.imm(Code::Add_rm64_imm32, RDX, turns.by);
            if turns.signed {
                self.a.op2(Code::Movsxd_r64_rm32, RSI, EDX);
            } else {
                self.a.op2(Code::Mov_r32_rm32, Register::ESI, EDX);
            }
            self.a.op2(Code::Cmp_r64_rm64, RSI, RDX);
            self.a.jump(Code::Jne_rel32_64, unknown);
        }
        if !rises {
            self.a.op2(Code::Xchg_rm64_r64, RAX, RCX);
        }
        self.a.op2(Code::Sub_r64_rm64, RAX, RCX);
        // One turn is gone round in any case. The distance is one of 32 bits.
        self.a.op2(Code::Mov_r64_rm64, RDX, RAX);
        self.a.imm8(Code::Sar_rm64_imm8, RDX, 63);
        self.a.op1(Code::Not_rm64, RDX);
        self.a.op2(Code::And_r64_rm64, RAX, RDX);
        self.divide(size);
    }
}
