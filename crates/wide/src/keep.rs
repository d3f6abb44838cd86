//! Calls of routines, and which vectors they keep: those that somebody reads after the call.
//!
//! A block that all lanes execute keeps what lives after the instruction. In another one, lanes that wait elsewhere have their values in vectors too: so it
//! keeps all that lives across blocks as well. What a routine writes only for some lanes keeps the others. Each set of vectors has one piece of code
//! that saves and restores it, after all blocks.

use handloom_ir::simt::{Reg, Val};
use handloom_plan::abi::CtaCtx;
use iced_x86::{Code, Register};

use crate::alloc::{FIRST_VECTOR, Place, n_parts};
use crate::asm::{Label, Mem};
use crate::calls::Kept;
use crate::emit::*;
use crate::values::{load_code, store_code};
use handloom_ir::types::Ty;

/// Vectors that a call may keep for nothing.
const FEW: u32 = 3;
/// Pieces of code from which on there are no others but one that keeps all.
const MOST: usize = 24;

impl Emit<'_> {
    /// The code that calls a routine from the instruction being emitted.
    pub(crate) fn call_here(&mut self) -> Label {
        let kept = if self.a.has_wide_vectors() { self.kept_here() } else { 0 };
        let wanted = (kept, self.in_part);
        // One that keeps a few more will do, and any that keeps more will once there are many.
        let more = |k: &Kept| (k.0 & !wanted.0).count_ones();
        let fits = |k: &&Kept| k.1 == wanted.1 && wanted.0 & !k.0 == 0;
        let nearest = self.calls.order.iter().filter(fits).min_by_key(|k| more(k)).copied();
        let is_full = self.calls.is_rare || self.calls.order.len() >= MOST;
        let kept = match nearest {
            Some(k) if is_full || more(&k) <= FEW => k,
            _ if is_full && self.a.has_wide_vectors() => (u32::MAX >> FIRST_VECTOR, wanted.1),
            _ => wanted,
        };
        if let Some(label) = self.calls.code.get(&kept) {
            return *label;
        }
        let label = self.a.label();
        self.calls.code.insert(kept, label);
        self.calls.order.push(kept);
        label
    }

    /// Vectors of a register, by bit.
    fn vectors(&self, r: usize) -> u32 {
        match self.places.of[r] {
            Place::Vectors(v) => v[..n_parts(self.f.regs[r])].iter().fold(0, |m, v| m | 1 << (v - FIRST_VECTOR)),
            Place::Nowhere | Place::Row(_) | Place::Mask(_) | Place::Flags(_) | Place::Words(_) => 0,
        }
    }

    fn kept_here(&mut self) -> u32 {
        let (b, i) = self.at;
        if self.calls.live.get(b).is_none_or(Vec::is_empty) {
            let list = self.live_vectors_of(b);
            self.calls.live.resize(self.f.blocks.len(), Vec::new());
            self.calls.live[b] = list;
        }
        let mut live = self.calls.live[b][i];
        // Lanes that take no part keep their results.
        if let Some(inst) = self.f.blocks[b].insts.get(i).filter(|inst| inst.guarded || self.in_part) {
            live = inst.dst.iter().fold(live, |m, d| m | self.vectors(d.idx()));
        }
        if !self.in_part {
            return live;
        }
        if let Some(held) = self.awaited.get(b) {
            return live | held >> FIRST_VECTOR;
        }
        let across = self.calls.across.unwrap_or_else(|| {
            (0..self.f.regs.len()).filter(|r| self.places.is_own[*r]).fold(0, |m, r| m | self.vectors(r))
        });
        self.calls.across = Some(across);
        live | across
    }

    /// The start of an instruction: vectors that it reads for the last time are read where they lie.
    pub(crate) fn begin_instruction(&mut self) {
        if !self.a.has_wide_vectors() {
            let live = self.kept_here();
            self.a.begin_instruction(live);
        }
    }

    /// The end of an instruction: vectors that nobody reads any more need no place.
    pub(crate) fn end_instruction(&mut self) {
        if !self.a.has_wide_vectors() {
            let live = self.kept_here();
            self.a.end_instruction(live);
        }
    }

    /// Vectors that live after each instruction of a block, and after its end.
    fn live_vectors_of(&self, b: usize) -> Vec<u32> {
        let block = &self.f.blocks[b];
        let of = |v: &Val| match v {
            Val::Reg(Reg(r)) => self.vectors(*r as usize),
            Val::Imm(..) => 0,
        };
        // Sets of registers: vectors are shared only by what does not live at one time.
        let mut live = self.plan.facts.live.exit(b).iter().fold(0, |m, r| m | self.vectors(r));
        let mut after = vec![live; block.insts.len() + 1];
        live = block.term.sources().iter().fold(live, |m, v| m | of(v));
        for (i, inst) in block.insts.iter().enumerate().rev() {
            after[i] = live;
            let written = inst.dst.iter().fold(0, |m, d| m | self.vectors(d.idx()));
            if !inst.guarded {
                live &= !written;
            }
            live = inst.src.iter().fold(live, |m, v| m | of(v));
            let late = self.indices.read_late((b, i));
            live = late.iter().fold(live, |m, r| m | self.vectors(r.idx()));
        }
        after
    }

    /// The code of all calls: see [`Emit::routine`].
    pub(crate) fn call_routines(&mut self) {
        for kept in std::mem::take(&mut self.calls.order) {
            let label = self.calls.code[&kept];
            self.a.bind(label);
            let vectors: Vec<u8> = (0..32).filter(|v| kept.0 >> v & 1 == 1).map(|v| v + FIRST_VECTOR).collect();
            self.a.imm(Code::Sub_rm64_imm32, RSP, 8);
            let area = |e: &mut Self| {
                if !vectors.is_empty() {
                    e.a.op2(Code::Lea_r64_m, Register::R10, Mem::at(RSP, 16 + 63));
                    e.a.imm(Code::And_rm64_imm32, Register::R10, -64);
                }
            };
            area(self);
            for (i, v) in (0..).zip(&vectors) {
                self.a.store(store_code(Ty::B64), Mem::at(Register::R10, 64 * i), zmm(*v), ALL);
            }
            self.a.op0(Code::VEX_Vzeroupper);
            self.a.op2(Code::Mov_r64_rm64, Register::RDI, CTA);
            self.a.op2(Code::Mov_r64_rm64, RSI, WARP);
            self.load64(Register::R10, cta(std::mem::offset_of!(CtaCtx, routines)));
            self.a.op1(Code::Call_rm64, Mem::indexed(Register::R10, RAX, 1, 0));
            area(self);
            for (i, v) in (0..).zip(&vectors) {
                self.a.op2(load_code(Ty::B64), zmm(*v), Mem::at(Register::R10, 64 * i));
            }
            if kept.1 {
                self.set_masks();
            }
            self.a.imm(Code::Add_rm64_imm32, RSP, 8);
            self.a.op2(Code::Test_rm64_r64, RAX, RAX);
            self.a.op0(Code::Retnq);
        }
    }
}
