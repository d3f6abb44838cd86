//! Loads that come later than they stand: `tcgen05.ld`.
//!
//! Only in functions whose results may be late. A load is held back until its wait, or until a statement reads or writes its results or writes what it reads
//! itself: the order that goes through registers is kept, whoever waits. So memory that is written before the wait shows in what was loaded.
//!
//! Choice: loads come before the thread branches, calls or ends.
//!
//! # PTX ISA
//! Memory Consistency Model for 5th generation of TensorCore instructions: Register dependencies, same thread.

use handloom_check::module as checked;
use handloom_check::module::{AddrBase, Operand, RegId};
use handloom_ir::simt::{Op, Pure, Term, Val};
use handloom_ir::types::{Sreg, Ty};
use handloom_isa::form::{Control, InRegisters, Semantics};
use smallvec::smallvec;

use super::results::HeldLoad;
use crate::function::FunctionCx;

impl FunctionCx<'_> {
    /// Holds a load back. By seed it comes at once.
    pub(crate) fn hold_load(&mut self, inst: &checked::Inst) {
        let bit = self.late.n_loads % 32;
        self.late.n_loads += 1;
        let has_come = self.build(inst.span, None, |b| {
            let coins = b.reg(Ty::B32);
            b.push(Op::Sreg(Sreg::Late), smallvec![coins], smallvec![]);
            let coin = b.and(Val::Reg(coins), Val::Imm(1 << (31 - bit), Ty::B32));
            b.pure(Pure::ToPred(Ty::B32), Ty::P, &[coin])
        });
        let (now, behind) = (self.new_block(), self.new_block());
        self.end_block(Term::Branch { cond: has_come, then: now, otherwise: behind }, inst.span, Some(now));
        self.at_once(inst);
        self.end_block(Term::Jump(behind), inst.span, Some(behind));
        self.late.loads.push(HeldLoad { inst: inst.clone(), has_come });
    }

    /// The loads that must have come before a statement.
    pub(crate) fn loads_before(&mut self, inst: &checked::Inst) {
        let is_left = match inst.form.semantics {
            Semantics::Control(Control::Barrier(_)) => false,
            Semantics::Control(_) => true,
            _ => inst.form.in_registers() == Some(InRegisters::WaitForLoads),
        };
        for load in std::mem::take(&mut self.late.loads) {
            if is_left || depends(&load.inst, inst) {
                self.load_comes(&load);
            } else {
                self.late.loads.push(load);
            }
        }
    }

    /// All loads come.
    pub(crate) fn all_loads(&mut self) {
        std::mem::take(&mut self.late.loads).iter().for_each(|load| self.load_comes(load));
    }

    fn load_comes(&mut self, load: &HeldLoad) {
        let (inside, behind) = (self.new_block(), self.new_block());
        let term = Term::Branch { cond: load.has_come, then: behind, otherwise: inside };
        self.end_block(term, load.inst.span, Some(inside));
        self.at_once(&load.inst);
        self.end_block(Term::Jump(behind), load.inst.span, Some(behind));
    }
}

/// Whether a statement behind a load must find it done.
fn depends(load: &checked::Inst, inst: &checked::Inst) -> bool {
    let (given, taken) = (written(load), read(load));
    let (writes, reads) = (written(inst), read(inst));
    writes.iter().any(|r| given.contains(r) || taken.contains(r)) || reads.iter().any(|r| given.contains(r))
}

fn written(inst: &checked::Inst) -> Vec<RegId> {
    let mut all = Vec::new();
    inst.dst.iter().for_each(|o| registers(o, &mut all));
    all
}

fn read(inst: &checked::Inst) -> Vec<RegId> {
    let mut all: Vec<RegId> = inst.guard.iter().map(|(r, _)| *r).collect();
    inst.src.iter().for_each(|o| registers(o, &mut all));
    all
}

fn registers(o: &Operand, to: &mut Vec<RegId>) {
    let mut base = |base: &AddrBase| {
        if let AddrBase::Reg(r) = base {
            to.push(*r);
        }
    };
    match o {
        Operand::Reg { reg, .. } => to.push(*reg),
        Operand::Vector(parts) => parts.iter().for_each(|part| registers(part, to)),
        Operand::Addr { base: of, .. } | Operand::AddrOf { base: of, .. } => base(of),
        Operand::Point(point) => {
            base(&point.at.0);
            point.sampler.iter().for_each(|(of, _)| base(of));
            registers(&point.coordinates, to);
        }
        // A call is what all loads come before.
        Operand::Imm { .. }
        | Operand::Sreg { .. }
        | Operand::Sink
        | Operand::Label(_)
        | Operand::Labels(_)
        | Operand::Call(_) => {}
    }
}
