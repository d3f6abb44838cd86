//! The code of gangs.

use std::mem::offset_of;

use handloom_ir::simt::{Inst, Op, Reg, Val};
use handloom_ir::types::Ty;
use handloom_plan::abi::WarpCtx;
use iced_x86::{Code, Register};

use super::Gang;
use crate::access::{Folded, Form, Held, Joints};
use crate::asm::Mem;
use crate::emit::*;
use crate::flow::Way;
use crate::turns;

impl Emit<'_> {
    /// Finds and emits what warps go side by side.
    pub(crate) fn gangs(&mut self) -> Result<(), Refusal> {
        let gangs = self.find_gangs();
        let step = self.places.ctx_bytes(self.scratch.1).cast_signed();
        for gang in &gangs {
            self.gang(gang, step)?;
        }
        if self.places.ctx_bytes(self.scratch.1).cast_signed() != step {
            return Err(Refusal { what: "a bug: contexts grew".to_owned(), span: self.f.span });
        }
        if let Some(turns) = &mut self.turns {
            turns.gangs = gangs;
        }
        Ok(())
    }

    fn gang(&mut self, gang: &Gang, step: i32) -> Result<(), Refusal> {
        let was = self.places.of.clone();
        self.in_part = false;
        self.folds.clear();
        self.folded.clear();
        self.alike.clear();
        self.proven.clear();
        self.joints = Joints::new();
        self.slow = None;
        (self.at_hand, self.in_flags) = (None, None);
        self.drop_held();
        self.a.comment(&format!("turns from b{}: {gang}", gang.start));
        self.a.bind(gang.label);
        self.member_step = step;
        for m in 0..gang.warps {
            self.go_to_member(gang, m);
            if gang.start == 0 && gang.end.is_some() {
                self.store_number(warp(offset_of!(WarpCtx, live)), u32::MAX);
            }
            gang.enters.iter().for_each(|r| self.move_register(*r, Way::In));
        }
        for &(b, n) in &gang.blocks {
            let f = self.f;
            for (i, inst) in f.blocks[b].insts[..n].iter().enumerate() {
                self.at = (b, i);
                let is_common = inst.dst.iter().any(|d| gang.common[d.idx()]);
                for m in 0..if is_common { 1 } else { gang.warps } {
                    self.go_to_member(gang, m);
                    self.scratch.0 = 0;
                    self.in_gang(gang, inst)?;
                }
                self.folded.retain(|f| !inst.src.contains(&Val::Reg(f.reg)));
                if matches!(inst.op, Op::Store { .. }) {
                    self.tell_dirty();
                }
            }
        }
        for m in 0..gang.warps {
            self.go_to_member(gang, m);
            gang.leaves.iter().for_each(|r| self.move_register(*r, Way::Out));
        }
        self.a.shift(0);
        self.member = 0;
        self.places.of = was;
        self.drop_held();
        self.next_gang(gang, step);
        Ok(())
    }

    /// What follows is for one warp of the gang.
    fn go_to_member(&mut self, gang: &Gang, m: usize) {
        self.member = m;
        self.a.shift(m as i32 * self.member_step);
        self.places.of.clone_from(&gang.places[m]);
    }

    fn in_gang(&mut self, gang: &Gang, inst: &Inst) -> Result<(), Refusal> {
        let (b, i) = self.at;
        if self.head.as_ref().is_some_and(|h| h.has(inst)) {
            return Ok(());
        }
        if self.head.as_ref().is_some_and(|h| h.is_linear(inst)) {
            self.linear_words(inst);
            return Ok(());
        }
        if matches!(inst.op, Op::Load { .. } | Op::Store { .. }) {
            let Some(g) = self.access_of_gang(inst) else {
                return Err(Refusal { what: "a bug: an access of a gang".to_owned(), span: inst.span });
            };
            if !gang.folds.contains_key(&(b, i)) {
                self.tested(inst, &g.x, &g.runs, g.scalars, g.form);
                return Ok(());
            }
            if g.form == Form::Row && self.fetches_for_row(&g.x, &g.runs) {
                let (m, _) = self.part_of_run(&g.x, &g.runs, g.form, 0);
                self.fetch_for_row(&g.x, &g.runs, m);
            }
            if self.member == 0 {
                self.folded.push(Folded { reg: inst.dst[0], x: g.x, runs: g.runs, form: g.form });
            }
            return Ok(());
        }
        self.operands.clear();
        for f in std::mem::take(&mut self.folded) {
            if inst.src.contains(&Val::Reg(f.reg)) {
                let operand = self.operand_of(&f);
                self.operands.push(operand);
            }
            self.folded.push(f);
        }
        self.inst(b, inst)?;
        self.operands.clear();
        Ok(())
    }

    /// Whose address a register is to hold for an element of the warp, and bytes from that one's element.
    pub(crate) fn member_of_run(&self, address: Reg) -> (usize, i32) {
        let head = self.head.as_ref().filter(|_| self.member > 0);
        let by = head.and_then(|h| h.constant_distance(address, self.member));
        by.map_or((self.member, 0), |by| (0, by))
    }

    /// Makes the address that a register is to hold from that of the warp before, if a register holds that.
    pub(crate) fn next_member(&mut self, h: &Held) -> bool {
        if h.of == 0 || self.f.regs[h.address.idx()] != Ty::B64 {
            return false;
        }
        let Some(step) = self.head.as_ref().and_then(|head| head.step_word(h.address)) else { return false };
        let before = |x: &&Held| Held { at: h.at, of: h.of, ..**x } == *h && x.of + 1 == h.of;
        let Some(from) = self.held().iter().find(before).map(|x| x.at) else { return false };
        self.load64(h.at, ctx(step));
        self.a.op2(Code::Add_r64_rm64, h.at, from);
        self.a.forget_written(h.at);
        true
    }

    /// The end of a gang: the next one, or warps one after the other, or what follows the turn.
    fn next_gang(&mut self, gang: &Gang, step: i32) {
        let Some(turns) = &self.turns else { return };
        let Some((_, next)) = turns.start(gang.start) else { return };
        let after = turns.after(gang.end);
        self.a.imm(Code::Add_rm64_imm32, WARP, step * gang.warps as i32);
        self.a.op2(Code::Cmp_r64_rm64, WARP, turns::gang_limit());
        self.a.jump(Code::Jb_rel32_64, gang.label);
        self.a.op2(Code::Cmp_r64_rm64, WARP, turns::limit());
        self.a.jump(Code::Jb_rel32_64, next);
        self.a.jump(Code::Jmp_rel32_64, after);
    }

    /// At the start of a turn: the way of a gang, if all that it rests on holds and there are enough warps.
    pub(crate) fn choose_gang(&mut self, start: usize, step: i32) {
        let Some(turns) = &self.turns else { return };
        let Some(gang) = turns.gangs.iter().find(|g| g.start == start) else { return };
        let Some((_, next)) = turns.start(start) else { return };
        let (label, after, place) = (gang.label, turns.after(gang.end), turns::place_of(gang.end));
        let (bits, warps) = (gang.bits.cast_signed(), gang.warps as i32);
        if bits != 0 {
            self.a.op2(Code::Mov_r32_rm32, EAX, crate::head::DECIDED);
            self.a.imm(Code::And_rm32_imm32, EAX, bits);
            self.a.imm(Code::Cmp_rm32_imm32, EAX, bits);
            self.a.jump(Code::Jne_rel32_64, next);
        }
        self.load64(RAX, turns::limit());
        self.a.imm(Code::Sub_rm64_imm32, RAX, step * (warps - 1));
        self.store64(turns::gang_limit(), RAX);
        self.a.op2(Code::Cmp_r64_rm64, WARP, RAX);
        self.a.jump(Code::Jae_rel32_64, next);
        self.store_number(turns::place(), place);
        self.a.op2(Code::Lea_r64_m, Register::RAX, Mem::label(after));
        self.store64(turns::after(), RAX);
        self.a.jump(Code::Jmp_rel32_64, label);
    }
}
