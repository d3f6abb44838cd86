//! Functions called by lanes of a warp: each call in progress has a context of its own and a frame behind the caller's in local memory.
//! No host stack is held, so recursion ends in a trap and not in a crash.

use std::sync::Arc;

use handloom_codegen::abi::{CallSite, CtaCtx, Reason, WarpCtx};
use handloom_ir::simt::{Callee, FuncId};
use handloom_ir::trap::TrapKind;

use super::context::{Contexts, Ctx};
use super::cta::{CtaRun, address};
use super::host::Activation;
use crate::launch::Ended;
use crate::module::Tier;

impl CtaRun {
    /// Enters functions: one activation for each function that lanes call.
    pub(super) fn call(&mut self, ctx: Ctx, h: &WarpCtx, caller: Option<usize>) -> Result<(), Ended> {
        let Some(site) = ctx.tables().calls.get(h.a as usize) else {
            return Err(Ended::Bug(format!("`{}` has no call {}", ctx.tables().name, h.a)));
        };
        let mut groups: Vec<(FuncId, u32)> = Vec::new();
        let mut bad: Option<(u32, String)> = None;
        for lane in (0..32).filter(|l| h.lanes >> l & 1 == 1) {
            match self.callee_of(ctx, site, lane) {
                Ok(f) => match groups.iter_mut().find(|(g, _)| *g == f) {
                    Some((_, lanes)) => *lanes |= 1 << lane,
                    None => groups.push((f, 1 << lane)),
                },
                Err(why) => bad.get_or_insert((0, why)).0 |= 1 << lane,
            }
        }
        if let Some((lanes, why)) = bad {
            let mut trap = self.host().trap_of(TrapKind::BadCall, site.span, h.warp, lanes);
            trap.detail = why;
            return Err(Ended::Trap(trap));
        }
        // The last one runs first: keep the order of lanes.
        groups.into_iter().rev().try_for_each(|(f, lanes)| self.enter(ctx, h, site, caller, f, lanes))
    }

    fn callee_of(&self, ctx: Ctx, site: &CallSite, lane: usize) -> Result<FuncId, String> {
        let target = match (site.callee, site.target) {
            (Callee::Direct(f), _) => return Ok(f),
            (Callee::Indirect, Some(loc)) => ctx.read(loc, lane),
            (Callee::Indirect, None) => 0,
        };
        let id = FuncId::of_handle(target);
        let found = id.and_then(|id| Some((id, self.program.ir().funcs.get(id.idx())?)));
        match found {
            None => Err(format!("{target:#x} is no function of the module")),
            Some((_, f)) if f.is_entry => Err(format!("`{}` is a kernel", f.name)),
            Some((_, f)) if (f.param_bytes, f.result_bytes) != site.signature => Err(format!(
                "`{}` has {} bytes of parameters and results, {} of them results; the call has {} and {}",
                f.name, f.param_bytes, f.result_bytes, site.signature.0, site.signature.1
            )),
            Some((id, _)) => Ok(id),
        }
    }

    fn enter(
        &mut self,
        ctx: Ctx,
        h: &WarpCtx,
        site: &CallSite,
        caller: Option<usize>,
        f: FuncId,
        lanes: u32,
    ) -> Result<(), Ended> {
        let program = Arc::clone(&self.program);
        let w = h.warp as usize;
        let calls = &self.host().warps[w].calls;
        let depth = caller.and_then(|i| calls.get(i)).map_or(1, |a| a.depth);
        let frames = program.frames();
        let env = &self.host_ref().env;
        let stack = env.local_base(32 * h.warp);
        let of_lanes = |taken: &[u64; 32]| (0..32).filter(|l| lanes >> l & 1 == 1).map(|l| taken[l]).max().unwrap_or(0);
        let allocated = of_lanes(&self.host_ref().warps[w].stack_used);
        let (limit, used) = (stack + env.local_size - allocated, env.local_size);
        let Some((local, _)) = frames[f.idx()].place(h.local + site.frame_end, limit) else {
            let mut trap = self.host().trap_of(TrapKind::Stack, site.span, h.warp, lanes);
            trap.detail = format!("{used} bytes of local memory are used up {depth} calls deep");
            return Err(Ended::Trap(trap));
        };
        let Some(code) = &program.codes(self.tier).map_err(Ended::Bug)?[f.idx()] else {
            return Err(Ended::Bug(format!("`{}` is called and has no code", program.ir().funcs[f.idx()].name)));
        };
        let memory = Contexts::new(&code.tables, 1);
        let callee = memory.at(0, &raw const *code.tables);
        callee.start(WarpCtx {
            live: lanes,
            state: 0,
            wait_epoch: 0,
            warp: h.warp,
            lanes: 0,
            next: 0,
            a: 0,
            b: 0,
            c: 0,
            d: 0,
            local,
            args: h.local + u64::from(site.args),
            host: 0,
            yields: 0,
            from: 0,
        });
        self.host().warps[w].calls.push(Activation {
            memory,
            ctx: callee,
            func: f.idx(),
            caller: ctx,
            lanes,
            next: h.next,
            depth: depth + 1,
        });
        Ok(())
    }

    /// Runs calls in progress of a warp, the latest first, until none can go on.
    pub(super) fn run_calls(&mut self, w: usize) -> Result<(), Ended> {
        loop {
            self.leave_finished(w);
            let calls = &self.host().warps[w].calls;
            let Some(i) = calls.iter().rposition(|a| a.ctx.is_runnable()) else { return Ok(()) };
            let (ctx, func) = (calls[i].ctx, calls[i].func);
            let reason = self.run_activation(ctx, func)?;
            if reason == Reason::Deopt {
                self.change_callee(w, i)?;
                continue;
            }
            self.handle(reason, ctx, Some(i))?;
            // A context that a call has left is gone.
            if self.host().warps[w].calls.get(i).is_some_and(|a| a.ctx == ctx) {
                self.settle_context(reason, ctx);
            }
        }
    }

    /// Runs the context of a call until something happens.
    fn run_activation(&mut self, ctx: Ctx, func: usize) -> Result<Reason, Ended> {
        let program = Arc::clone(&self.program);
        let code = program.codes(Tier::Quick).map_err(Ended::Bug)?[func].as_ref();
        // A context stays with the code that it was made for.
        let code = match code {
            Some(c) if std::ptr::eq(&raw const *c.tables, ctx.tables) => c,
            _ => match &program.codes(Tier::Careful).map_err(Ended::Bug)?[func] {
                Some(c) => c,
                None => return Err(Ended::Bug("a call lost its code".into())),
            },
        };
        let at = address(ctx.warp);
        let block = CtaCtx {
            cur: at,
            first: at,
            end: at + u64::from(code.tables.ctx_bytes),
            arrived: 0,
            retired: 0,
            // Never met: a function's barriers leave the code.
            n_warps: u32::MAX,
            epoch: u32::MAX,
            sites: address(self.sites[func].as_ptr()),
            tables: address(ctx.tables),
            ..*self.ctx()
        };
        // SAFETY: `callee` is a block of this object's; nobody uses it now.
        unsafe { self.callee.write(block) }
        // SAFETY: as for the entry: the block describes one context of this code, and no reference into it or the host state is alive.
        let reason = unsafe { code.call(self.callee) };
        // SAFETY: as above; code has come back.
        let dirty = unsafe { (*self.callee).dirty };
        self.ctx().dirty |= dirty;
        self.reason(reason)
    }

    /// Lets lanes of calls whose lanes have all returned go on in their callers.
    fn leave_finished(&mut self, w: usize) {
        let calls = &mut self.host().warps[w].calls;
        while let Some(i) = calls.iter().rposition(|a| a.ctx.header().live == 0) {
            let done = calls.remove(i);
            done.caller.resume(done.next, done.lanes);
        }
    }

    /// Lanes end their threads inside a call: they leave it and all its callers.
    pub(super) fn exit(&mut self, w: usize, call: Option<usize>, lanes: u32) {
        let base = self.host().base_ctx(w);
        let warp = &mut self.host().warps[w];
        let mut ctx = call.and_then(|i| warp.calls.get(i)).map(|a| a.ctx);
        while let Some(at) = ctx {
            at.update(|h| h.live &= !lanes);
            ctx = warp.calls.iter_mut().find(|a| a.ctx == at).map(|a| {
                a.lanes &= !lanes;
                a.caller
            });
        }
        base.update(|h| h.live &= !lanes);
        if base.header().live == 0 && !warp.retired {
            warp.retired = true;
            base.update(|h| h.state = base.tables().skip());
            self.ctx().retired += 1;
        }
    }
}
