//! What gives results in registers and comes later than it stands: `wgmma.mma_async`.
//!
//! Only in functions whose results may be late. Where such an instruction stands, its single registers (descriptors, predicates) are copied beside it, and
//! it is under way. It is done as a whole, with its reading of matrices in shared memory and in registers, in one place of the function that all waits
//! go through: a row of tests, one for each instruction, which lead around those that are not under way or not waited for. Until then a program
//! that looks at results sees what the registers held before, and one that writes matrices too early multiplies what it wrote.
//!
//! What is under way is done in the order in which it was begun, so that chains of products need no wait between them. The row of tests is in the order
//! of the text: an instruction that is begun while itself or a later one is under way first goes there too, and nothing is under way then. So an
//! instruction may come sooner than the wait for it, by one round of a loop.
//!
//! Loads of tensor memory are held back in another way (`loads`).
//!
//! # PTX ISA
//! Asynchronous wgmma; Memory Consistency Model for 5th generation of TensorCore instructions.

mod loads;
pub(crate) mod results;

use handloom_check::module as checked;
use handloom_check::module::{Operand, Stmt, SymbolKind};
use handloom_diag::Span;
use handloom_ir::simt::*;
use handloom_ir::types::{Cmp, Int, Sreg, Ty};
use handloom_isa::form::InRegisters;
use smallvec::smallvec;

use crate::function::FunctionCx;
use results::{Late, Place};

/// Whether a function is another one where what is asynchronous may come late.
pub(crate) fn is_timed(symbol: &checked::Symbol) -> bool {
    let SymbolKind::Func(func) = &symbol.kind else { return false };
    let stmts = func.body.iter().flat_map(|body| &body.stmts);
    stmts.into_iter().any(|stmt| matches!(stmt, Stmt::Inst(inst) if inst.form.is_timed()))
}

/// Every group.
const ALL: Val = Val::Imm(0x7fff_ffff, Ty::B32);
/// No group: their numbers begin with 1.
const NONE: Val = Val::Imm(0, Ty::B32);

fn word(n: u32) -> Val {
    Val::Imm(n.into(), Ty::B32)
}

fn compare(b: &mut Builder, cmp: Cmp, left: Val, right: Val) -> Val {
    b.pure(Pure::ICmp(cmp, Int::S32), Ty::P, &[left, right])
}

impl FunctionCx<'_> {
    pub(crate) fn late_results(&mut self, inst: &checked::Inst, what: InRegisters) {
        match what {
            InRegisters::Product => self.around(inst, |cx| cx.begin(inst)),
            InRegisters::CommitProducts => self.around(inst, |cx| {
                let groups = cx.late_place().groups;
                cx.build(inst.span, None, |b| {
                    let next = b.add(Val::Reg(groups), word(1));
                    b.copy(groups, next);
                });
            }),
            InRegisters::WaitForProducts => {
                let but = match inst.src.first() {
                    Some(Operand::Imm { bits, .. }) => u32::try_from(*bits).unwrap_or(u32::MAX),
                    _ => 0,
                };
                self.around(inst, |cx| {
                    let groups = Val::Reg(cx.late_place().groups);
                    let last = cx.build(inst.span, None, |b| b.sub(groups, word(but)));
                    cx.come(last, inst.span);
                });
                // Behind its products, of which the other warps know then.
                self.at_once(inst);
            }
            InRegisters::Load => self.hold_load(inst),
            InRegisters::WaitForLoads => self.at_once(inst),
        }
    }

    /// Where what is under way comes.
    fn late_place(&mut self) -> Place {
        if let Some(place) = self.late.place {
            return place;
        }
        let block = self.new_block();
        let [groups, last, next, newest] = self.build(Span::NONE, None, |b| [(); 4].map(|()| b.reg(Ty::B32)));
        *self.late.place.insert(Place { block, groups, last, next, newest })
    }

    /// All that is under way in groups up to `last` (B32) comes here.
    fn come(&mut self, last: Val, span: Span) {
        let place = self.late_place();
        let behind = self.new_block();
        let next = word(self.late.goes_on.len() as u32);
        self.late.goes_on.push(behind);
        self.build(span, None, |b| {
            b.copy(place.last, last);
            b.copy(place.next, next);
        });
        self.end_block(Term::Jump(place.block), span, Some(behind));
    }

    /// The instruction is under way. By seed it comes at once.
    fn begin(&mut self, inst: &checked::Inst) {
        let place = self.late_place();
        let n = self.late.begun.len() as u32;
        let group = self.build(inst.span, None, |b| b.reg(Ty::B32));
        let before = self.build(inst.span, None, |b| {
            let is_behind = compare(b, Cmp::Gt, Val::Reg(place.newest), word(n));
            b.select(is_behind, ALL, NONE)
        });
        self.come(before, inst.span);
        let mut later = checked::Inst { guard: None, ..inst.clone() };
        for source in &mut later.src {
            if let Operand::Reg { reg, .. } = source {
                *reg = self.second(*reg, inst.span);
            }
        }
        let now = self.build(inst.span, None, |b| {
            let next = b.add(Val::Reg(place.groups), word(1));
            b.copy(group, next);
            b.copy(place.newest, word(n + 1));
            let coins = b.reg(Ty::B32);
            b.push(Op::Sreg(Sreg::Late), smallvec![coins], smallvec![]);
            let coin = b.and(Val::Reg(coins), word(1 << (n % 32)));
            let is_now = b.pure(Pure::ToPred(Ty::B32), Ty::P, &[coin]);
            b.select(is_now, ALL, NONE)
        });
        self.late.begun.push((later, group));
        self.come(now, inst.span);
    }

    /// A copy of a register as it is now.
    fn second(&mut self, reg: checked::RegId, span: Span) -> checked::RegId {
        let home = self.home(reg);
        let second = self.another_home(home);
        let to = self.home(second);
        self.build(span, None, |b| b.copy(to.lo, Val::Reg(home.lo)));
        second
    }

    /// Makes the place where what is under way comes, when all of the function has been seen.
    pub(crate) fn place_late_results(&mut self) {
        let Late { place: Some(place), begun, goes_on, .. } = std::mem::take(&mut self.late) else { return };
        self.end_block(Term::Exit, Span::NONE, Some(place.block));
        let mut zeros = vec![place.groups, place.newest];
        for (inst, group) in begun {
            let (inside, behind) = (self.new_block(), self.new_block());
            let comes = self.build(inst.span, None, |b| {
                let is_begun = b.pure(Pure::ToPred(Ty::B32), Ty::P, &[Val::Reg(group)]);
                let is_named = compare(b, Cmp::Le, Val::Reg(group), Val::Reg(place.last));
                b.and(is_begun, is_named)
            });
            self.end_block(Term::Branch { cond: comes, then: inside, otherwise: behind }, inst.span, Some(inside));
            self.at_once(&inst);
            self.build(inst.span, None, |b| b.copy(group, NONE));
            self.end_block(Term::Jump(behind), inst.span, Some(behind));
            zeros.push(group);
        }
        self.end_block(Term::Switch { index: Val::Reg(place.next), targets: goes_on }, Span::NONE, None);
        self.begin_with_none(zeros);
    }

    /// Nothing is under way where the function begins.
    fn begin_with_none(&mut self, zeros: Vec<Reg>) {
        let none = |to: Reg| Inst {
            op: Op::Pure(Pure::Mov(Ty::B32)),
            dst: smallvec![to],
            src: smallvec![NONE],
            guarded: false,
            span: Span::NONE,
        };
        self.func.blocks[0].insts.splice(0..0, zeros.into_iter().map(none));
    }
}
