//! Results that stand in registers and come later than their instruction: those of `wgmma.mma_async`.
//!
//! Only in functions whose results may be late. Such an instruction is done where it stands, but what it gives goes to a second register beside each
//! register that it names; a wait moves it there. Until then a program that looks sees what the register held before. What a product adds to is in the
//! second register if that one's turn has not come, so that chains of products need no wait between them.
//!
//! Choice: what such an instruction reads it reads at once, also matrices in shared memory.
//!
//! Registers that `tcgen05.ld` loads are there when they are read: the manual keeps the order of what depends on a register, whoever waits.
//!
//! # PTX ISA
//! Asynchronous wgmma; Memory Consistency Model for 5th generation of TensorCore instructions.

pub(crate) mod results;

use handloom_check::module as checked;
use handloom_check::module::{Operand, Stmt, SymbolKind};
use handloom_diag::Span;
use handloom_ir::simt::*;
use handloom_ir::types::{Cmp, Int, Sreg, Ty};
use handloom_isa::form::InRegisters;

use crate::function::FunctionCx;
use results::{Arrival, Second};

/// Whether a function is another one where what is asynchronous may come late.
pub(crate) fn is_timed(symbol: &checked::Symbol) -> bool {
    let SymbolKind::Func(func) = &symbol.kind else { return false };
    let stmts = func.body.iter().flat_map(|body| &body.stmts);
    stmts.into_iter().any(|stmt| matches!(stmt, Stmt::Inst(inst) if inst.form.is_timed()))
}

fn word(n: u32) -> Val {
    Val::Imm(n.into(), Ty::B32)
}

impl FunctionCx<'_> {
    pub(crate) fn late_results(&mut self, inst: &checked::Inst, what: InRegisters) {
        match what {
            InRegisters::Product => self.around(inst, |cx| cx.late_result(inst)),
            InRegisters::CommitProducts => self.around(inst, |cx| {
                let groups = cx.groups();
                cx.build(inst.span, None, |b| {
                    let next = b.add(Val::Reg(groups), word(1));
                    b.copy(groups, next);
                });
            }),
            InRegisters::WaitForProducts => {
                self.at_once(inst);
                let but = match inst.src.first() {
                    Some(Operand::Imm { bits, .. }) => u32::try_from(*bits).unwrap_or(u32::MAX),
                    _ => 0,
                };
                self.arrive(inst, but);
            }
        }
    }

    fn groups(&mut self) -> Reg {
        match self.late.groups {
            Some(groups) => groups,
            None => {
                let groups = self.build(Span::NONE, None, |b| b.reg(Ty::B32));
                *self.late.groups.insert(groups)
            }
        }
    }

    /// The instruction in its place, and its results beside their registers.
    fn late_result(&mut self, inst: &checked::Inst) {
        let mut homes = Vec::new();
        inst.dst.iter().for_each(|operand| self.registers(operand, &mut homes));
        homes.sort_unstable();
        homes.dedup();
        let seconds: Vec<(Reg, Second)> = homes.into_iter().map(|r| (r, self.second(r))).collect();
        let own: Vec<Val> = self.build(inst.span, None, |b| {
            let keep = |(home, second): &(Reg, Second)| {
                let ty = b.ty(Val::Reg(*home));
                let own = b.pure(Pure::Mov(ty), ty, &[Val::Reg(*home)]);
                let is_late = b.pure(Pure::ToPred(Ty::B32), Ty::P, &[Val::Reg(second.group)]);
                let newest = b.select(is_late, Val::Reg(second.value), own);
                b.copy(*home, newest);
                own
            };
            seconds.iter().map(keep).collect()
        });
        let mut now = inst.clone();
        now.guard = None;
        self.at_once(&now);
        let groups = self.groups();
        let bit = self.late.n % 32;
        self.late.n += 1;
        self.build(inst.span, None, |b| {
            let coins = b.reg(Ty::B32);
            b.push(Op::Sreg(Sreg::Late), vec![coins], vec![]);
            let coin = b.and(Val::Reg(coins), word(1 << bit));
            let is_now = b.pure(Pure::ToPred(Ty::B32), Ty::P, &[coin]);
            let next = b.add(Val::Reg(groups), word(1));
            let group = b.select(is_now, word(0), next);
            for ((home, second), own) in seconds.into_iter().zip(own) {
                b.copy(second.value, Val::Reg(home));
                b.copy(second.group, group);
                let shown = b.select(is_now, Val::Reg(home), own);
                b.copy(home, shown);
            }
        });
    }

    /// The registers of a destination.
    fn registers(&self, operand: &Operand, to: &mut Vec<Reg>) {
        match operand {
            Operand::Reg { reg, .. } => to.push(self.home(*reg).lo),
            Operand::Vector(parts) => parts.iter().for_each(|part| self.registers(part, to)),
            Operand::Sink => {}
            other => panic!("bug: lower: {other:?} is a destination"),
        }
    }

    fn second(&mut self, home: Reg) -> Second {
        if let Some(second) = self.late.seconds.get(&home) {
            return *second;
        }
        let ty = self.func.regs[home.idx()];
        let second = self.build(Span::NONE, None, |b| Second { value: b.reg(ty), group: b.reg(Ty::B32) });
        self.late.seconds.insert(home, second);
        second
    }

    /// Results come here; which ones is known when all of the function has been seen.
    fn arrive(&mut self, inst: &checked::Inst, but: u32) {
        let (inside, behind) = (self.new_block(), self.new_block());
        self.branch_on_guard(inst, inside, behind, inside);
        self.late.arrivals.push(Arrival { block: inside, span: inst.span, but });
        self.end_block(Term::Jump(behind), inst.span, Some(behind));
    }

    /// Moves results to their registers, in each place where they come.
    pub(crate) fn place_late_results(&mut self) {
        let groups = self.groups_if_any();
        let seconds: Vec<(Reg, Second)> = self.late.seconds.iter().map(|(home, second)| (*home, *second)).collect();
        for Arrival { block, span, but } in std::mem::take(&mut self.late.arrivals) {
            let mut b = Builder { func: &mut self.func, block, span, guard: None, carry: None };
            for (home, second) in &seconds {
                let group = Val::Reg(second.group);
                let mut comes = b.pure(Pure::ToPred(Ty::B32), Ty::P, &[group]);
                if let Some(groups) = groups {
                    let last = b.add(group, word(but));
                    let is_old = b.pure(Pure::ICmp(Cmp::Le, Int::U32), Ty::P, &[last, Val::Reg(groups)]);
                    comes = b.and(comes, is_old);
                }
                let new = b.select(comes, Val::Reg(second.value), Val::Reg(*home));
                b.copy(*home, new);
                let left = b.select(comes, word(0), group);
                b.copy(second.group, left);
            }
        }
        self.begin_with_none(groups);
    }

    /// Nothing is under way where the function begins.
    fn begin_with_none(&mut self, groups: Option<Reg>) {
        let seconds = self.late.seconds.values().map(|second| second.group);
        let none = |to: Reg| Inst {
            op: Op::Pure(Pure::Mov(Ty::B32)),
            dst: vec![to],
            src: vec![word(0)],
            guarded: false,
            span: Span::NONE,
        };
        let counts: Vec<Inst> = groups.into_iter().chain(seconds).map(none).collect();
        self.func.blocks[0].insts.splice(0..0, counts);
    }

    fn groups_if_any(&self) -> Option<Reg> {
        self.late.groups
    }
}
