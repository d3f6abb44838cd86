//! How values of the head go up from a CTA to the next one, along a row of the grid or down a column.
//!
//! # The model
//! Along a row steps are constants. Down a column they mostly are made of the width of a picture, which is a parameter: the launch computes them once, by the values of the first CTA,
//! if it takes CTAs by columns at all ([`CtaCtx::by_columns`]), and writes them into words. Where both ways know a step and it is the same constant, no word is needed.

use std::mem::offset_of;

use handloom_ir::simt::{Inst, Op, Pure, Reg, Val};
use handloom_ir::types::{Int, Sreg, Ty};
use handloom_plan::Plan;
use handloom_plan::abi::CtaCtx;
use iced_x86::{Code, Register};

use super::{FRAME_WORDS, Head, Row, Step, Steps, reg};
use crate::asm::Label;
use crate::emit::*;

const NOTHING: Step = Step::Number(0);

impl Steps {
    pub(super) fn of(&self, r: Reg) -> Step {
        self.by[r.idx()].unwrap_or(NOTHING)
    }

    fn of_value(&self, v: Val) -> Step {
        reg(v).map_or(NOTHING, |r| self.of(r))
    }
}

impl Head {
    /// The steps of all values of the head where this component of `%ctaid` goes up by 1, if they are even.
    pub(super) fn steps_along(&self, plan: &Plan, dim: u8) -> Option<Steps> {
        let f = &plan.func;
        let mut steps = Steps { by: vec![None; f.regs.len()], checks: Vec::new() };
        let is_by_cta = |r: Reg| self.courses[r.idx()].is_some_and(|c| c.by_cta);
        for &(b, i) in &self.insts {
            let inst = &f.blocks[b].insts[i];
            if !is_by_cta(inst.dst[0]) {
                continue;
            }
            let step = self.step_along(inst, dim, &steps)?;
            if let Op::Pure(Pure::Ext { signed, .. } | Pure::MulWide(Int { signed, .. })) = inst.op {
                let rising = inst.src.iter().filter(|v| steps.of_value(**v) != NOTHING);
                let rising: Vec<_> = rising.map(|v| (*v, signed)).collect();
                steps.checks.extend(rising);
            }
            inst.dst.iter().for_each(|d| steps.by[d.idx()] = Some(step));
        }
        let uneven = |g: &super::Group| match steps.of(g.from) {
            Step::Number(s) => i64::from(s) % g.key.3 != 0,
            Step::Launched => false,
        };
        let rises = steps.by.iter().any(|s| s.is_some_and(|s| s != NOTHING));
        (rises && !self.groups.iter().any(uneven)).then_some(steps)
    }

    /// The step of what an instruction makes.
    fn step_along(&self, inst: &Inst, dim: u8, steps: &Steps) -> Option<Step> {
        let of = |i: usize| steps.of_value(inst.src[i]);
        let constant = |i: usize| crate::table::constant(inst.src[i]);
        let is_launched = |i: usize| {
            reg(inst.src[i]).is_some_and(|r| {
                self.same[r.idx()].is_some() && self.courses[r.idx()].is_some_and(|c| !c.by_cta && !c.is_linear)
            })
        };
        // Down a column alone: along a row such values are asked about one by one.
        let launched = (dim == 1).then_some(Step::Launched);
        let number = |ty: Ty, n: Option<i64>| {
            let n = if ty == Ty::B32 { i64::from(n? as i32) } else { n? };
            i32::try_from(n).ok().map(Step::Number)
        };
        match inst.op {
            Op::Sreg(Sreg::Ctaid(d)) if d == dim => Some(Step::Number(1)),
            _ if inst.src.iter().all(|v| steps.of_value(*v) == NOTHING) => Some(NOTHING),
            Op::Cvta { .. }
            | Op::Pure(
                Pure::Mov(Ty::B32 | Ty::B64)
                | Pure::Ext { bits: 32, from: Ty::B32, to: Ty::B64, .. }
                | Pure::Ext { bits: 32, from: Ty::B64, to: Ty::B32, .. },
            ) => Some(of(0)),
            Op::Pure(op @ (Pure::Add(ty @ (Ty::B32 | Ty::B64)) | Pure::Sub(ty @ (Ty::B32 | Ty::B64)))) => {
                match (of(0), of(1)) {
                    (Step::Number(a), Step::Number(b)) => {
                        let (a, b) = (i64::from(a), i64::from(b));
                        number(ty, Some(if matches!(op, Pure::Add(_)) { a + b } else { a - b }))
                    }
                    _ => launched,
                }
            }
            Op::Pure(Pure::Shl(ty @ (Ty::B32 | Ty::B64))) => {
                let by = constant(1).filter(|by| *by < 32)?;
                match of(0) {
                    Step::Number(n) => number(ty, Some(i64::from(n) << by)),
                    Step::Launched => launched,
                }
            }
            Op::Pure(op @ (Pure::Mul(ty @ (Ty::B32 | Ty::B64)) | Pure::MulWide(Int { ty: ty @ Ty::B32, .. }))) => {
                let k = usize::from(of(0) == NOTHING);
                let by = constant(1 - k);
                if of(1 - k) != NOTHING || by.is_none() && !is_launched(1 - k) {
                    return None;
                }
                let (Step::Number(n), Some(by)) = (of(k), by) else { return launched };
                let by = match op {
                    Pure::MulWide(Int { signed: false, .. }) => i64::from(by as u32),
                    _ if ty == Ty::B32 => i64::from(by as u32 as i32),
                    _ => by.cast_signed(),
                };
                let to = if matches!(op, Pure::MulWide(_)) { Ty::B64 } else { ty };
                number(to, i64::from(n).checked_mul(by))
            }
            _ => None,
        }
    }

    /// A word for each step that differs between the two ways, or that the launch computes.
    pub(super) fn words_of_steps(&mut self, along: Option<&Steps>, down: Option<&Steps>) -> Vec<Option<u32>> {
        let n = self.same.len();
        let (Some(down), along) = (down, along) else { return vec![None; n] };
        let mut words = vec![None; n];
        for (r, word) in words.iter_mut().enumerate() {
            let is_one = down.by[r] != Some(Step::Launched) && along.is_some_and(|a| a.by[r] == down.by[r]);
            if down.by[r].is_some() && !is_one {
                *word = Some(FRAME_WORDS + 8 * self.words);
                self.words += 1;
            }
        }
        words
    }
}

impl Emit<'_> {
    /// Writes the steps of the way that the launch goes, or that no CTAs are asked about together: those along rows are not known, or not even.
    pub(super) fn launched_rises(&mut self, head: &Head) {
        let Some(row) = &head.row else { return };
        let [by_rows, none, end] = std::array::from_fn(|_| self.a.label());
        self.a.imm(Code::Cmp_rm32_imm32, cta(offset_of!(CtaCtx, by_columns)), 0);
        self.a.jump(Code::Je_rel32_64, by_rows);
        match &row.down {
            Some(down) => self.rises_down(head, row, down, none),
            None => self.a.jump(Code::Jmp_rel32_64, none),
        }
        self.a.jump(Code::Jmp_rel32_64, end);
        self.a.bind(by_rows);
        match &row.along {
            Some(along) => {
                for (r, word) in row.words_of.iter().enumerate() {
                    if let (Some(word), Step::Number(n)) = (word, along.by[r].unwrap_or(NOTHING)) {
                        self.a.imm(Code::Mov_rm64_imm32, ctx(*word), n);
                    }
                }
                self.a.jump(Code::Jmp_rel32_64, end);
            }
            None => {}
        }
        self.a.bind(none);
        self.go_alone(row);
        self.a.bind(end);
    }

    fn rises_down(&mut self, head: &Head, row: &Row, down: &Steps, none: Label) {
        let f = self.f;
        for &(b, i) in &head.insts {
            let inst = &f.blocks[b].insts[i];
            let Some(word) = row.words_of[inst.dst[0].idx()] else { continue };
            self.at = (b, i);
            match down.of(inst.dst[0]) {
                Step::Number(n) => self.a.imm(Code::Mov_rm64_imm32, ctx(word), n),
                Step::Launched => {
                    let of = |e: &mut Self, v: Val, to: Register| match reg(v).map(|r| (row.words_of[r.idx()], r)) {
                        Some((Some(word), _)) => e.load64(to, ctx(word)),
                        Some((None, r)) => match down.of(r) {
                            Step::Number(n) => e.a.number(to, i64::from(n).cast_unsigned()),
                            Step::Launched => {}
                        },
                        None => e.a.number(to, 0),
                    };
                    self.step_of_result(inst, &of, &|v| down.of_value(v) != NOTHING);
                    self.a.op2(Code::Movsxd_r64_rm32, RCX, EAX);
                    self.a.op2(Code::Cmp_r64_rm64, RCX, RAX);
                    self.a.jump(Code::Jne_rel32_64, none);
                    self.store64(ctx(word), RAX);
                }
            }
        }
        for g in head.groups.iter().filter(|g| down.of(g.from) == Step::Launched && g.key.3 > 1) {
            if let Some(word) = row.words_of[g.from.idx()] {
                self.a.imm(Code::Test_rm32_imm32, ctx(word), (g.key.3 - 1) as i32);
                self.a.jump(Code::Jne_rel32_64, none);
            }
        }
    }
}
