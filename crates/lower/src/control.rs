//! Instructions that change control flow.

use handloom_check::module as checked;
use handloom_check::module::{LabelId, Operand};
use handloom_diag::Span;
use handloom_ir::simt::*;
use handloom_ir::trap::TrapKind;
use handloom_ir::types::*;
use handloom_isa::form::{Control, Role};
use smallvec::smallvec;

use crate::function::FunctionCx;

impl FunctionCx<'_> {
    pub(crate) fn control(&mut self, inst: &checked::Inst, control: Control) {
        match control {
            Control::Bra => {
                let to = self.label(branch_target(inst));
                let next = self.new_block();
                self.branch_on_guard(inst, to, next, next);
            }
            Control::BrxIdx => self.around(inst, |cx| cx.switch(inst)),
            Control::Call => self.call(inst),
            Control::Ret => self.around(inst, |cx| cx.leave_function(inst.span)),
            Control::Exit => self.around(inst, |cx| cx.end_block(Term::Exit, inst.span, None)),
            Control::Trap => self.around(inst, |cx| cx.end_block(Term::Trap(TrapKind::Trap), inst.span, None)),
            Control::Brkpt => self.around(inst, |cx| cx.end_block(Term::Trap(TrapKind::Breakpoint), inst.span, None)),
            Control::Barrier(kind) => self.around(inst, |cx| cx.barrier(inst, kind)),
        }
    }

    fn switch(&mut self, inst: &checked::Inst) {
        let mut index = None;
        let mut targets = Vec::new();
        for operand in inst.dst.iter().chain(&inst.src) {
            match operand {
                Operand::Labels(list) => targets = list.iter().map(|l| self.label(*l)).collect(),
                Operand::Reg { .. } | Operand::Imm { .. } => index = Some(self.source_value(operand, inst.span)),
                other => panic!("bug: lower: {other:?} in a `brx.idx`"),
            }
        }
        let Some(index) = index else { panic!("bug: lower: `brx.idx` without an index") };
        let index = self.build(inst.span, None, |b| b.ext(index, b.ty(index).bits().min(32), false, Ty::B32));
        self.end_block(Term::Switch { index, targets }, inst.span, None);
    }

    /// Returns from the function; in an entry that ends the thread.
    pub(crate) fn leave_function(&mut self, span: Span) {
        if self.decl.is_entry {
            return self.end_block(Term::Exit, span, None);
        }
        self.store_register_results(span);
        if let Some(at) = self.stack_at_entry {
            self.build(span, None, |b| b.push(Op::Stack(StackOp::Restore), smallvec![], smallvec![Val::Reg(at)]));
        }
        self.end_block(Term::Ret, span, None);
    }

    /// The operands are a number, a count and a predicate, as far as the form has them.
    fn barrier(&mut self, inst: &checked::Inst, kind: BarKind) {
        let is_relaxed = inst.u.order(Role::Order) == Some(Order::Relaxed);
        let kind = if kind == BarKind::ClusterArrive && is_relaxed { BarKind::ClusterArriveRelaxed } else { kind };
        let mut numbers = Vec::new();
        let mut pred = None;
        for operand in &inst.src {
            let v = self.source_value(operand, inst.span);
            match self.func.ty(v) {
                Ty::P => pred = Some(v),
                Ty::B16 | Ty::B32 | Ty::B64 => numbers.push(v),
            }
        }
        let result = inst.dst.iter().find_map(|o| match o {
            Operand::Reg { reg, .. } => Some(self.home(*reg)),
            _ => None,
        });
        let ty = match kind {
            BarKind::RedAnd | BarKind::RedOr => Ty::P,
            BarKind::Sync
            | BarKind::Arrive
            | BarKind::RedPopc
            | BarKind::ClusterArrive
            | BarKind::ClusterArriveRelaxed
            | BarKind::ClusterWait
            | BarKind::Warpgroup
            | BarKind::WarpgroupStart => Ty::B32,
        };
        // A wider register gets the count through a fresh one, because the end of a block only writes.
        let direct = result.filter(|h| self.func.ty(Val::Reg(h.lo)) == ty);
        let dst = match (direct, result) {
            (Some(h), _) => Some(h.lo),
            (None, Some(_)) => Some(self.build(inst.span, None, |b| b.reg(ty))),
            (None, None) => None,
        };
        let next = self.new_block();
        let id = numbers.first().copied().unwrap_or(Val::Imm(0, Ty::B32));
        let count = numbers.get(1).copied();
        self.end_block(Term::Barrier { kind, id, count, pred, dst, next }, inst.span, Some(next));
        if let (None, Some(home), Some(dst)) = (direct, result, dst) {
            let to = self.func.ty(Val::Reg(home.lo));
            let v = self.build(inst.span, None, |b| b.ext(Val::Reg(dst), 32, false, to));
            self.write_results(&[(home, v)], inst.span);
        }
    }
}

fn branch_target(inst: &checked::Inst) -> LabelId {
    let label = inst.src.iter().chain(&inst.dst).find_map(|o| match o {
        Operand::Label(l) => Some(*l),
        _ => None,
    });
    label.unwrap_or_else(|| panic!("bug: lower: `{}` without a label", inst.form.opcode))
}
