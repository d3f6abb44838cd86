//! The variables that addresses are made from.
//!
//! While that is checked, a frame has for each register the variable whose address it holds, as far as that is known: through moves, sums, differences,
//! masks, conversions of addresses and selections. Memory, other lanes and all other ops forget it.

use handloom_audit::Does;
use handloom_audit::memory::{Stray, Variable};
use handloom_ir::simt::{FuncId, Inst, Op, Pure, Reg, SymKind, Val};
use handloom_ir::types::StateSpace;

use crate::cta::Cta;
use crate::env::CLUSTER_STRIDE;
use crate::memory::Memory;
use crate::witness::lock;

/// A number of a variable, in the order in which they were met, from 1 on.
pub(crate) type Trace = u32;

/// Something was computed from addresses, and may lead from one variable to another.
const MIXED: Trace = Trace::MAX;

impl Cta<'_> {
    /// The traces of a frame before its first instruction.
    pub(crate) fn new_traces(&self, func: FuncId) -> Vec<Trace> {
        if self.traced { vec![0; self.module.funcs[func.idx()].regs.len()] } else { Vec::new() }
    }

    fn trace(&self, thread: usize, v: Val) -> Trace {
        match v {
            Val::Reg(r) => self.threads[thread].frame().traces.get(r.idx()).copied().unwrap_or(0),
            Val::Imm(..) => 0,
        }
    }

    /// What an op keeps of the variable of its sources. To be asked before the result is set.
    pub(crate) fn kept_trace(&self, inst: &Inst, thread: usize) -> Trace {
        if !self.traced {
            return 0;
        }
        let of = |i: usize| inst.src.get(i).map_or(0, |v| self.trace(thread, *v));
        match inst.op {
            Op::Pure(Pure::Mov(_) | Pure::Ext { .. }) | Op::Cvta { .. } => of(0),
            // A mask that leaves more than an alignment out makes something else of an address.
            Op::Pure(Pure::And(ty)) if (0..2).any(|i| of(i) != 0) => {
                let mask = (0..2).find(|i| of(*i) == 0).map_or(0, |i| self.get(thread, inst.src[i]));
                if !mask & ty.mask() < 4096 { of(0).max(of(1)) } else { MIXED }
            }
            Op::Pure(Pure::Add(_) | Pure::Or(_)) => match (of(0), of(1)) {
                (one, 0) | (0, one) => one,
                _ => MIXED,
            },
            Op::Pure(Pure::Sub(_)) => match (of(0), of(1)) {
                (one, 0) => one,
                _ => MIXED,
            },
            Op::Pure(Pure::Select(_)) => {
                let chosen = if self.get(thread, inst.src[0]) & 1 == 1 { 1 } else { 2 };
                of(chosen)
            }
            _ if (0..inst.src.len()).any(|i| of(i) != 0) => MIXED,
            _ => 0,
        }
    }

    /// Sets the variable of a register that was written just now.
    pub(crate) fn set_trace(&mut self, thread: usize, reg: Reg, trace: Trace) {
        if trace != 0
            && let Some(place) = self.threads[thread].frame_mut().traces.get_mut(reg.idx())
        {
            *place = trace;
        }
    }

    /// The result of an op is the address of a variable.
    pub(crate) fn trace_variable(&mut self, inst: &Inst, thread: usize, mem: &dyn Memory) {
        if !self.traced {
            return;
        }
        let variable = match inst.op {
            Op::SymAddr(sym) | Op::SharedAddr(sym) => {
                let symbol = &self.module.syms[sym.idx()];
                let base = match symbol.kind {
                    SymKind::Global | SymKind::Const => mem.symbol(sym),
                    SymKind::Shared { offset } => self.env.shared_base.wrapping_add(u64::from(offset)),
                    SymKind::DynamicShared { .. } | SymKind::Func(_) => return,
                };
                Variable { symbol: Some(sym.idx()), base, bytes: symbol.size }
            }
            Op::SlotAddr(slot) => {
                let frame = self.threads[thread].frame();
                let base = frame.base.wrapping_add(self.layouts[frame.func.idx()].offsets[slot.idx()]);
                let size = self.module.funcs[frame.func.idx()].slots[slot.idx()].size;
                Variable { symbol: None, base, bytes: size.into() }
            }
            _ => return,
        };
        // A variable without a size is declared elsewhere.
        if variable.bytes == 0 {
            return;
        }
        let next = Trace::try_from(self.variables.len() + 1).unwrap_or(0);
        let trace = *self.variable_numbers.entry(variable).or_insert(next);
        if trace == next {
            self.variables.push(variable);
        }
        self.set_trace(thread, inst.dst[0], trace);
    }

    /// Tells of an access that leaves the variable that its address was made from. `addr`: generic address of its first byte.
    pub(crate) fn check_variable(
        &self,
        inst: &Inst,
        thread: usize,
        (addr, bytes): (u64, u32),
        does: Does,
        space: StateSpace,
    ) {
        let trace = self.trace(thread, inst.src[0]);
        let Some(variable) = usize::try_from(trace).ok().and_then(|i| self.variables.get(i.checked_sub(1)?)) else {
            return;
        };
        // What `mapa` makes of an address lies in another block.
        let apart = |at: u64| at.wrapping_sub(self.env.shared_base) >= CLUSTER_STRIDE;
        if apart(addr) && !apart(variable.base) {
            return;
        }
        let is_inside =
            addr.wrapping_sub(variable.base).checked_add(bytes.into()).is_some_and(|end| end <= variable.bytes);
        if is_inside {
            return;
        }
        let stray =
            Stray { variable: *variable, addr, bytes, does, space, at: (inst.span, self.who(thread)), times: 1 };
        if let Some(audit) = &self.audit
            && let Some(memory) = lock(audit).memory()
        {
            memory.stray(stray);
        }
    }
}
