//! What each op does, lane by lane.

use handloom_audit::init::Decides;
use handloom_audit::misuse::Wrong;
use handloom_ir::num;
use handloom_ir::simt::{Inst, Op, SymId, SymKind, Term};
use handloom_ir::trap::Trap;
use handloom_ir::types::{StateSpace, Varies};

use crate::cta::{Cta, Group};
use crate::lane::{Place, State};
use crate::memory::Memory;
use crate::numbers::number;
use crate::sreg;
use crate::warp;

/// As many sources as a value op can have.
const MAX_SOURCES: usize = 9;

impl<'m> Cta<'m> {
    /// Executes one op in all lanes of a group. Warp-synchronising ops only arrive.
    pub(crate) fn exec(&mut self, inst: &'m Inst, group: Group, mem: &mut dyn Memory) -> Result<(), Box<Trap>> {
        match inst.op {
            Op::Pure(op) => {
                for t in group.threads() {
                    let mut src = [0; MAX_SOURCES];
                    for (value, v) in src.iter_mut().zip(&inst.src) {
                        *value = self.get(t, *v);
                    }
                    let results = num::eval(op, &src[..inst.src.len()]);
                    let shades = self.pure_shades(inst, op, t, &src[..inst.src.len()]);
                    let trace = self.kept_trace(inst, t);
                    for (reg, value) in inst.dst.iter().zip(results) {
                        self.set(t, *reg, value);
                    }
                    for (reg, shade) in inst.dst.iter().zip(shades.into_iter().flatten()) {
                        self.set_shade(t, *reg, shade);
                    }
                    self.set_trace(t, inst.dst[0], trace);
                }
            }
            Op::Sreg(s) => {
                // Time passes by itself: the loop does more than wait.
                self.touched |= s.varies() == Varies::InTime;
                for t in group.threads() {
                    let who = sreg::Asker { env: &self.env, thread: number(t), clock: self.clock };
                    let value = sreg::value(s, &who, mem);
                    self.set(t, inst.dst[0], value);
                }
            }
            Op::SymAddr(sym) => {
                let value = self.symbol(sym, mem);
                self.set_all(inst, group, |_, _| value);
                group.threads().for_each(|t| self.trace_variable(inst, t, mem));
            }
            Op::SharedAddr(sym) => {
                let value = self.shared_offset(sym);
                self.set_all(inst, group, |_, _| value);
                group.threads().for_each(|t| self.trace_variable(inst, t, mem));
            }
            Op::ParamAddr { offset } => {
                let value = self.env.param_base.wrapping_add(u64::from(offset));
                self.set_all(inst, group, |_, _| value);
            }
            Op::SlotAddr(slot) => {
                self.set_all(inst, group, |cta, t| {
                    let frame = cta.threads[t].frame();
                    frame.base.wrapping_add(cta.layouts[frame.func.idx()].offsets[slot.idx()])
                });
                group.threads().for_each(|t| self.trace_variable(inst, t, mem));
            }
            Op::ArgAddr { offset } => {
                self.set_all(inst, group, |cta, t| cta.threads[t].frame().args.wrapping_add(u64::from(offset)));
            }
            Op::Cvta { space, to_space } => {
                self.make_all(inst, group, |cta, t| cta.convert_address(space, to_space, cta.get(t, inst.src[0])));
            }
            Op::IsSpace(space) => {
                let mem = &*mem;
                self.make_all(inst, group, |cta, t| u64::from(cta.is_in_space(space, cta.get(t, inst.src[0]), mem)));
            }
            Op::Load { access, offset } => self.load(inst, access, offset, group, mem)?,
            Op::Store { access, offset } => self.store(inst, access, offset, group, mem)?,
            Op::Atom { access, offset } | Op::Red { access, offset } => {
                self.atomic(inst, access, offset, group, mem)?
            }
            // One thread of the host runs one op after the other: every order holds already.
            Op::Fence { order, scope } => self.tell_fence(inst.span, order, scope, group),
            Op::Shfl(_)
            | Op::Vote(_)
            | Op::Match { .. }
            | Op::Redux { .. }
            | Op::Matrix(_)
            | Op::Elect
            | Op::BarWarp => {
                for t in group.threads() {
                    self.reach_warp_sync(t, inst);
                }
            }
            Op::Activemask => self.set_all(inst, group, |_, _| u64::from(group.lanes)),
            Op::Builtin(builtin) => self.builtin(inst, builtin, group, mem)?,
            Op::Transfer(op) => self.transfer(inst, op, group, mem)?,
            Op::Stack(op) => self.stack(inst, op, group)?,
            Op::Image(op) => self.image(inst, op, group, mem)?,
            Op::Tensor(op) => self.tensor(inst, op, group, mem)?,
            // Time passes, but only for who reads a clock.
            Op::Nanosleep => {}
            Op::Mark => self.count_mark(inst, group),
            // Compiled code counts so.
            Op::Count(_) => {}
        }
        Ok(())
    }

    /// Sets the result of each lane.
    fn set_all(&mut self, inst: &Inst, group: Group, value: impl Fn(&Self, usize) -> u64) {
        for t in group.threads() {
            let value = value(self, t);
            self.set(t, inst.dst[0], value);
        }
    }

    /// The same of an op with sources: of what nobody wrote nothing is known.
    fn make_all(&mut self, inst: &Inst, group: Group, value: impl Fn(&Self, usize) -> u64) {
        for t in group.threads() {
            let (value, root, trace) = (value(self, t), self.unknown_source(inst, t), self.kept_trace(inst, t));
            self.set(t, inst.dst[0], value);
            self.set_trace(t, inst.dst[0], trace);
            self.shade_results(inst, t, root);
        }
    }

    /// Generic address of a variable, or handle of a function.
    fn symbol(&self, sym: SymId, mem: &dyn Memory) -> u64 {
        match self.module.syms[sym.idx()].kind {
            SymKind::Global | SymKind::Const => mem.symbol(sym),
            SymKind::Shared { offset } | SymKind::DynamicShared { offset } => {
                self.env.shared_base.wrapping_add(u64::from(offset))
            }
            SymKind::Func(f) => f.handle(),
        }
    }

    /// Offset of a variable in shared memory.
    fn shared_offset(&self, sym: SymId) -> u64 {
        let symbol = &self.module.syms[sym.idx()];
        match symbol.kind {
            SymKind::Shared { offset } | SymKind::DynamicShared { offset } => u64::from(offset),
            SymKind::Global | SymKind::Const | SymKind::Func(_) => {
                unreachable!("bug: `SharedAddr` of `{}`, which is not in shared memory", symbol.name)
            }
        }
    }

    /// Lets a lane wait at a warp-synchronising op.
    pub(crate) fn reach_warp_sync(&mut self, thread: usize, inst: &'m Inst) {
        let mask = *inst.src.last().expect("bug: a warp-synchronising op without member mask");
        self.decides(Decides::Operand, inst.span, thread, mask);
        let mask = self.get32(thread, mask);
        if mask >> (thread % 32) & 1 == 0 {
            self.tell_misuse(Wrong::MaskWithoutCaller, (inst.span, thread), None, None);
        }
        let lane = &mut self.threads[thread];
        lane.state = State::WarpSync { inst, mask };
        lane.span = inst.span;
    }

    /// Lets those lanes of a warp go on whose warp-synchronising op all named lanes have reached: ops of the same kind
    /// with the same member mask, at whatever place.
    pub(crate) fn pass_warp_syncs(&mut self, warp: usize) {
        let live = self.live(warp);
        let mut seen: Vec<(Op, u32, u32)> = Vec::new();
        for (t, bit) in self.warp_threads(warp) {
            if let State::WarpSync { inst, mask, .. } = self.threads[t].state {
                match seen.iter_mut().find(|(op, m, _)| (*op, *m) == (inst.op, mask)) {
                    Some((_, _, arrived)) => *arrived |= bit,
                    None => seen.push((inst.op, mask, bit)),
                }
            }
        }
        for (op, mask, arrived) in seen {
            // Choice: a lane that its own mask does not name is undefined; it takes part when the named ones are there.
            if mask & live & !arrived == 0 {
                self.complete_warp_sync(op, Group { warp, lanes: arrived });
            }
        }
    }

    /// Computes the results of a warp-synchronising op for all lanes that arrived.
    fn complete_warp_sync(&mut self, op: Op, group: Group) {
        let active = group.lanes;
        if op == Op::BarWarp {
            let live = self.live(group.warp);
            self.tell(|audit, cta| audit.warp_barrier(cta, group.warp, active, live));
        }
        // Sources before the mask by lane: nothing has changed them while lanes waited.
        let mut inputs: Vec<[u64; 32]> = Vec::new();
        let mut n_results = 0;
        for t in group.threads() {
            let State::WarpSync { inst, .. } = self.threads[t].state else { continue };
            inputs.resize(inst.src.len() - 1, [0; 32]);
            n_results = inst.dst.len();
            for (row, v) in inputs.iter_mut().zip(&inst.src) {
                row[t % 32] = self.get(t, *v);
            }
        }
        let mut results = vec![[0; 32]; n_results];
        warp::complete(op, active, &inputs, &mut results);
        let shades = self.warp_shades(group);
        for t in group.threads() {
            let State::WarpSync { inst, .. } = self.threads[t].state else { continue };
            for (reg, row) in inst.dst.iter().zip(&results) {
                self.set(t, *reg, row[t % 32]);
            }
        }
        if let Some(shades) = shades {
            self.shade_warp(op, group, &inputs, &shades);
        }
        // They stand at the block behind it at once, as in compiled code: at the end of their own, they would run before lanes that stand between the two.
        self.clock += u64::from(active.count_ones());
        for t in group.threads() {
            let Place { func, block, .. } = self.threads[t].place;
            let Term::Jump(next) = self.module.funcs[func.idx()].blocks[block.idx()].term else {
                unreachable!("bug: no jump follows a warp-synchronising op")
            };
            self.threads[t].resume(next);
        }
    }

    /// `cvta`: only addresses in shared memory change.
    fn convert_address(&self, space: StateSpace, to_space: bool, addr: u64) -> u64 {
        match (space, to_space) {
            (StateSpace::Shared, true) => addr.wrapping_sub(self.env.shared_base),
            (StateSpace::Shared, false) => self.env.shared_base.wrapping_add(addr),
            (StateSpace::SharedCluster, true) => self.env.cluster_offset(addr),
            (StateSpace::SharedCluster, false) => self.env.cluster_address(addr),
            (
                StateSpace::Generic
                | StateSpace::Reg
                | StateSpace::Sreg
                | StateSpace::Const
                | StateSpace::Global
                | StateSpace::Local
                | StateSpace::ParamEntry
                | StateSpace::ParamFunc
                | StateSpace::Tex,
                _,
            ) => addr,
        }
    }
}
