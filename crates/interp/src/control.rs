//! What the ends of blocks do: branches, calls, barriers, yields, exits.

use handloom_audit::init::Decides;
use handloom_audit::misuse::Wrong;
use handloom_diag::Span;
use handloom_ir::simt::{BarKind, Block, BlockId, Callee, FuncId, SlotId, Term, Val};
use handloom_ir::trap::{Trap, TrapKind, no_such_target};
use handloom_ir::types::Ty;

use crate::barrier::{Arrival, Misuse, of_warpgroup};
use crate::cta::{Cta, Group};
use crate::frame::Frame;
use crate::lane::{Refused, State};

/// A barrier op of one group.
struct BarrierOp<'b> {
    block: &'b Block,
    arrival: Arrival,
    id: Val,
    count: Option<Val>,
    pred: Option<Val>,
    dst: Option<handloom_ir::simt::Reg>,
    next: BlockId,
}

impl<'m> Cta<'m> {
    /// Executes the end of a block in all lanes of a group.
    pub(crate) fn end_block(&mut self, block: &'m Block, group: Group) -> Result<(), Box<Trap>> {
        match &block.term {
            Term::Jump(next) => self.resume_all(group, *next),
            Term::Branch { cond, then, otherwise } => {
                self.all_decide(Decides::Branch, block.term_span, group, *cond);
                for t in group.threads() {
                    let next = if self.get(t, *cond) & 1 == 1 { *then } else { *otherwise };
                    self.threads[t].resume(next);
                }
            }
            Term::Switch { index, targets } => self.switch(block, *index, targets, group)?,
            Term::Ret => self.ret(block, group)?,
            Term::Exit => self.exit(block, group)?,
            Term::Trap(kind) => return Err(self.trap_in(*kind, block.term_span, group)),
            Term::Barrier { kind, id, count, pred, dst, next } => {
                let (id, count, pred, dst, next) = (*id, *count, *pred, *dst, *next);
                let barrier = |arrival| BarrierOp { block, arrival, id, count, pred, dst, next };
                match kind {
                    BarKind::Sync => self.barrier(&barrier(Arrival::Sync), group)?,
                    BarKind::Arrive => self.barrier(&barrier(Arrival::Arrive), group)?,
                    BarKind::RedPopc => self.barrier(&barrier(Arrival::RedPopc), group)?,
                    BarKind::RedAnd => self.barrier(&barrier(Arrival::RedAnd), group)?,
                    BarKind::RedOr => self.barrier(&barrier(Arrival::RedOr), group)?,
                    BarKind::ClusterArrive => self.cluster_arrive(block, next, group, true)?,
                    BarKind::ClusterArriveRelaxed => self.cluster_arrive(block, next, group, false)?,
                    BarKind::ClusterWait => self.cluster_wait(block, next, group),
                    BarKind::Warpgroup | BarKind::WarpgroupStart => {
                        let orders = *kind == BarKind::Warpgroup;
                        let arrival = if orders { Arrival::Warpgroup } else { Arrival::WarpgroupStart };
                        let (id, count) = of_warpgroup(group.warp, self.barriers.n_warps());
                        let [id, count] = [id, count].map(|n| Val::Imm(n.into(), Ty::B32));
                        let op = BarrierOp { id, count: Some(count), ..barrier(arrival) };
                        self.barrier(&op, group)?;
                    }
                }
            }
            Term::Call { callee, target, signature, args, next } => {
                let targets = self.callees(block, *callee, *target, *signature, group)?;
                self.call(block, &targets, *args, *next)?;
            }
            Term::Yield { next } => {
                for t in group.threads() {
                    let lane = &mut self.threads[t];
                    lane.resume(*next);
                    lane.state = State::Yielded;
                    // Who gives way without having asked again waits for something else.
                    lane.refused = lane.refused.filter(|r| r.is_new).map(|r| Refused { is_new: false, ..r });
                    lane.span = block.term_span;
                }
            }
        }
        Ok(())
    }

    fn resume_all(&mut self, group: Group, next: BlockId) {
        for t in group.threads() {
            self.threads[t].resume(next);
        }
    }

    fn switch(&mut self, block: &Block, index: Val, targets: &[BlockId], group: Group) -> Result<(), Box<Trap>> {
        self.all_decide(Decides::Operand, block.term_span, group, index);
        let (mut outside, mut ways) = (Vec::new(), Vec::new());
        for t in group.threads() {
            let index = self.get32(t, index);
            let way = usize::try_from(index).ok();
            match way.and_then(|i| targets.get(i)) {
                Some(next) => self.threads[t].resume(*next),
                None => outside.push((t, index)),
            }
            ways.extend(way.filter(|i| *i < targets.len()));
        }
        self.count_ways(block.term_span, &ways);
        let Some((_, index)) = outside.first() else { return Ok(()) };
        let detail = no_such_target(u64::from(*index), targets.len());
        let mut trap = self.trap_of(TrapKind::BadCall, block.term_span, outside.iter().map(|(t, _)| *t));
        trap.detail = detail;
        Err(trap)
    }

    /// Whom each lane calls.
    fn callees(
        &self,
        block: &Block,
        callee: Callee,
        target: Option<Val>,
        signature: (u32, u32),
        group: Group,
    ) -> Result<Vec<(usize, FuncId)>, Box<Trap>> {
        let handle = match (callee, target) {
            (Callee::Direct(f), _) => return Ok(group.threads().map(|t| (t, f)).collect()),
            (Callee::Indirect, Some(v)) => v,
            (Callee::Indirect, None) => unreachable!("bug: an indirect call without a target"),
        };
        self.all_decide(Decides::Operand, block.term_span, group, handle);
        let mut good = Vec::new();
        let mut bad: Vec<(usize, String)> = Vec::new();
        for t in group.threads() {
            match self.function_of(self.get(t, handle), signature) {
                Ok(f) => good.push((t, f)),
                Err(why) => bad.push((t, why)),
            }
        }
        let Some((_, why)) = bad.first() else { return Ok(good) };
        let detail = why.clone();
        let mut trap = self.trap_of(TrapKind::BadCall, block.term_span, bad.iter().map(|(t, _)| *t));
        trap.detail = detail;
        Err(trap)
    }

    /// The function of a handle, if it may be called by a call of this signature.
    fn function_of(&self, handle: u64, signature: (u32, u32)) -> Result<FuncId, String> {
        let id = FuncId::of_handle(handle);
        let found = id.and_then(|id| Some((id, self.module.funcs.get(id.idx())?)));
        match found {
            None => Err(format!("{handle:#x} is no function of the module")),
            Some((_, func)) if func.is_entry => Err(format!("`{}` is a kernel", func.name)),
            Some((_, func)) if (func.param_bytes, func.result_bytes) != signature => Err(format!(
                "`{}` has {} bytes of parameters and results, {} of them results; the call has {} and {}",
                func.name, func.param_bytes, func.result_bytes, signature.0, signature.1
            )),
            Some((id, _)) => Ok(id),
        }
    }

    /// Enters functions. The argument block is a slot of the caller's frame.
    fn call(
        &mut self,
        block: &Block,
        targets: &[(usize, FuncId)],
        args: SlotId,
        next: BlockId,
    ) -> Result<(), Box<Trap>> {
        let mut entered = Vec::new();
        let mut overflow = Vec::new();
        for (t, func) in targets {
            let caller = self.threads[*t].frame();
            let local = self.env.local_base(crate::numbers::number(*t));
            let limit = local.saturating_add(self.env.local_size) - self.threads[*t].stack_used;
            match self.layouts[func.idx()].place(caller.end, limit) {
                Some((base, end)) => {
                    let args = caller.base.wrapping_add(self.layouts[caller.func.idx()].offsets[args.idx()]);
                    let regs = vec![0; self.module.funcs[func.idx()].regs.len()];
                    let (shades, traces) = (self.new_shades(*func), self.new_traces(*func));
                    self.with_init(|init| init.renew(base, end - base));
                    entered.push((*t, Frame { func: *func, regs, shades, traces, base, end, args, next }));
                }
                None => overflow.push(*t),
            }
        }
        if let Some(first) = overflow.first() {
            let depth = self.threads[*first].frames.len();
            let mut trap = self.trap_of(TrapKind::Stack, block.term_span, overflow.iter().copied());
            trap.detail = format!("{} bytes of local memory are used up {depth} calls deep", self.env.local_size);
            return Err(trap);
        }
        for (t, frame) in entered {
            let lane = &mut self.threads[t];
            lane.place.path = self.paths.enter(lane.place.path, lane.place.func, lane.place.block);
            lane.place.func = frame.func;
            lane.frames.push(frame);
            lane.resume(BlockId(0));
        }
        Ok(())
    }

    /// Leaves functions; lanes in the entry end.
    fn ret(&mut self, block: &Block, group: Group) -> Result<(), Box<Trap>> {
        let mut ended = 0;
        for t in group.threads() {
            let lane = &mut self.threads[t];
            if lane.frames.len() == 1 {
                ended |= 1 << (t % 32);
                continue;
            }
            if let Some(done) = lane.frames.pop() {
                lane.place.path = self.paths.leave(lane.place.path);
                lane.place.func = lane.frame().func;
                lane.resume(done.next);
            }
        }
        if ended == 0 { Ok(()) } else { self.exit(block, Group { warp: group.warp, lanes: ended }) }
    }

    /// Ends threads. Whoever waited for nobody else goes on.
    fn exit(&mut self, block: &Block, group: Group) -> Result<(), Box<Trap>> {
        for t in group.threads() {
            let lane = &mut self.threads[t];
            lane.state = State::Exited;
            lane.frames.clear();
            self.paths.release(lane.place.path);
        }
        self.barriers.exit(group.warp, group.lanes).map_err(|why| self.misuse_of_rest(why, block, group))?;
        self.cluster.exit(group.warp, group.lanes);
        self.pass_barriers();
        self.pass_cluster_waits();
        self.pass_warp_syncs(group.warp);
        Ok(())
    }

    /// Arrives at barriers of the cta; lanes may name different ones.
    fn barrier(&mut self, op: &BarrierOp<'_>, group: Group) -> Result<(), Box<Trap>> {
        std::iter::once(op.id).chain(op.count).for_each(|v| {
            self.all_decide(Decides::Operand, op.block.term_span, group, v);
        });
        let mut arrivals: Vec<(u32, Option<u32>, u32)> = Vec::new();
        let mut preds = 0;
        for t in group.threads() {
            let id = self.get32(t, op.id);
            let count = op.count.map(|v| self.get32(t, v));
            let bit = 1 << (t % 32);
            if op.pred.is_some_and(|p| self.get(t, p) & 1 == 1) {
                preds |= bit;
            }
            match arrivals.iter_mut().find(|(i, c, _)| (*i, *c) == (id, count)) {
                Some((_, _, lanes)) => *lanes |= bit,
                None => arrivals.push((id, count, bit)),
            }
            let lane = &mut self.threads[t];
            lane.state = State::Barrier { id, dst: op.dst, next: op.next };
            lane.span = op.block.term_span;
        }
        for (id, count, lanes) in arrivals {
            if op.arrival == Arrival::Arrive {
                self.tell(|audit, cta| audit.arrive(cta, id, group.warp, lanes));
            }
            self.barriers
                .arrive(group.warp, lanes, op.arrival, id, count, preds)
                .map_err(|why| self.misuse(why, op.block.term_span, Group { warp: group.warp, lanes }))?;
        }
        self.pass_barriers();
        Ok(())
    }

    /// Lets lanes go on whose barrier is met.
    fn pass_barriers(&mut self) {
        for met in self.barriers.take_met() {
            let waits = met.waited.first().map(|(warp, lanes)| 32 * warp + lanes.trailing_zeros() as usize);
            let at = waits.map_or(Span::NONE, |t| self.threads[t].span);
            self.tell(|audit, cta| {
                audit.meeting(cta, &met, at);
                audit.barrier(cta, &met);
            });
        }
        let mut met = Vec::new();
        for released in self.barriers.take_released() {
            let group = Group { warp: released.warp, lanes: released.lanes };
            self.tell_divergence(group);
            if let Some(t) = group.threads().next()
                && let State::Barrier { id, .. } = self.threads[t].state
            {
                met.push((id, group.warp, self.threads[t].span));
            }
            for t in group.threads() {
                let State::Barrier { dst, next, .. } = self.threads[t].state else { continue };
                if let Some(reg) = dst {
                    self.set(t, reg, u64::from(released.result));
                }
                self.threads[t].resume(next);
            }
        }
        self.count_meeting(met);
    }

    /// `releases`: what was done before comes before what others do after they have waited.
    fn cluster_arrive(&mut self, block: &Block, next: BlockId, group: Group, releases: bool) -> Result<(), Box<Trap>> {
        let phase =
            self.cluster.arrive(group.warp, group.lanes).map_err(|why| self.misuse(why, block.term_span, group))?;
        self.tell(|audit, cta| audit.cluster_arrive(cta, phase, group.warp, group.lanes, releases));
        for t in group.threads() {
            let lane = &mut self.threads[t];
            lane.cluster_phase = Some(phase);
            lane.resume(next);
        }
        self.pass_cluster_waits();
        Ok(())
    }

    fn cluster_wait(&mut self, block: &Block, next: BlockId, group: Group) {
        for t in group.threads() {
            let lane = &mut self.threads[t];
            match lane.cluster_phase.take() {
                Some(phase) if !self.cluster.is_met(phase) => {
                    lane.state = State::ClusterWait { phase, next };
                    lane.span = block.term_span;
                }
                Some(phase) => {
                    lane.resume(next);
                    self.tell_cluster_wait(t, phase);
                }
                // Choice: waiting without having arrived is undefined; there is nothing to wait for.
                None => {
                    lane.resume(next);
                    self.tell_misuse(Wrong::WaitWithoutArrival, (block.term_span, t), None, None);
                }
            }
        }
    }

    /// Lets lanes go on whose phase of the cluster barrier is met.
    pub(crate) fn pass_cluster_waits(&mut self) {
        for t in 0..self.threads.len() {
            let lane = &mut self.threads[t];
            if let State::ClusterWait { phase, next } = lane.state
                && self.cluster.is_met(phase)
            {
                lane.resume(next);
                self.tell_cluster_wait(t, phase);
            }
        }
    }

    /// The rest of a warp has arrived since some of it ended: it is those who wait that are named.
    fn misuse_of_rest(&self, why: Misuse, block: &Block, ended: Group) -> Box<Trap> {
        let all = Group { warp: ended.warp, lanes: u32::MAX };
        let there = |t: usize| match self.threads.get(t).map(|lane| (&lane.state, lane.span)) {
            Some((State::Barrier { id, .. }, span)) if why.at() == Some(*id) => Some(span),
            _ => None,
        };
        let Some(span) = all.threads().find_map(there) else {
            return self.misuse(why, block.term_span, ended);
        };
        let lanes = all.threads().filter(|t| there(*t) == Some(span)).fold(0, |lanes, t| lanes | 1 << (t % 32));
        self.misuse(why, span, Group { warp: ended.warp, lanes })
    }

    fn misuse(&self, why: Misuse, span: Span, group: Group) -> Box<Trap> {
        let mut trap = self.trap_in(TrapKind::Barrier, span, group);
        trap.detail = why.to_string();
        trap
    }
}
