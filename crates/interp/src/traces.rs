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
use crate::frame::Trace;
use crate::memory::Memory;
use crate::witness::lock;

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
        let op = if let Op::Pure(op) = inst.op { Some(op) } else { None };
        if let Some(Pure::Select(_)) = op {
            return of(if self.get(thread, inst.src[0]) & 1 == 1 { 1 } else { 2 });
        }
        let all: Vec<Trace> = (0..inst.src.len()).map(of).filter(|trace| *trace != 0).collect();
        let [one] = all[..] else { return if all.is_empty() { 0 } else { MIXED } };
        let keeps = if let Some(Pure::And(ty)) = op {
            // A mask that leaves more than an alignment out makes something else of an address.
            let mask = if of(0) == 0 { inst.src[0] } else { inst.src[1] };
            !self.get(thread, mask) & ty.mask() < 4096
        } else if let Some(Pure::Sub(_)) = op {
            of(0) == one
        } else {
            matches!(inst.op, Op::Cvta { .. })
                || matches!(op, Some(Pure::Mov(_) | Pure::Ext { .. } | Pure::Add(_) | Pure::Or(_)))
        };
        if keeps { one } else { MIXED }
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
        let variable = if let Op::SymAddr(sym) | Op::SharedAddr(sym) = inst.op {
            let symbol = &self.module.syms[sym.idx()];
            let base = match symbol.kind {
                SymKind::Global | SymKind::Const => mem.symbol(sym),
                SymKind::Shared { offset } => self.env.shared_base.wrapping_add(u64::from(offset)),
                SymKind::DynamicShared { .. } | SymKind::Func(_) => return,
            };
            Variable { symbol: Some(sym.idx()), base, bytes: symbol.size }
        } else if let Op::SlotAddr(slot) = inst.op {
            let frame = self.threads[thread].frame();
            let base = frame.base.wrapping_add(self.layouts[frame.func.idx()].offsets[slot.idx()]);
            let size = self.module.funcs[frame.func.idx()].slots[slot.idx()].size;
            Variable { symbol: None, base, bytes: size.into() }
        } else {
            return;
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
