//! Functions called by lanes of a warp: each call in progress has a context of its own and a frame behind the caller's in local memory.
//! No host stack is held, so recursion ends in a trap and not in a crash.

use handloom_codegen::Code;
use handloom_ir::simt::{Callee, FuncId};
use handloom_ir::trap::TrapKind;
use handloom_plan::abi::{CallSite, CtaCtx, Reason, Tables, WarpCtx};

use super::cta::{CtaRun, address};
use super::deep;
use crate::grid::Ended;
use crate::rows::lanes;
use crate::run::Tier;
use crate::warp::context::{Contexts, Ctx};
use crate::warp::host::Activation;

/// What a worker remembers of a function that it called.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Called {
    /// Its calls have left the code of the tier: they start in careful code.
    pub(super) is_careful: bool,
    /// Where it stood among others with frames, and among those with code.
    frame: u32,
    code: u32,
}

/// Finished contexts of a function that a warp keeps for its next calls.
const SPARE: usize = 64;

impl CtaRun {
    /// Enters functions: one activation for each function that lanes call.
    pub(super) fn call(&mut self, ctx: Ctx, site: &CallSite, lanes: u32, caller: Option<usize>) -> Result<(), Ended> {
        if let Callee::Direct(f) = site.callee {
            return self.enter(ctx, site, caller, f, lanes);
        }
        let mut targets = [0; 32];
        if let Some(loc) = site.target {
            ctx.read_row(loc, lanes, &mut targets);
        }
        let (mut groups, mut n) = ([(FuncId(0), 0); 32], 0);
        let mut bad: Option<(u32, String)> = None;
        let mut left = lanes;
        while left != 0 {
            let target = targets[left.trailing_zeros() as usize & 31];
            let lanes = lanes_where(left, |lane| targets[lane] == target);
            left &= !lanes;
            match self.callee_of(site, target) {
                Ok(f) => {
                    groups[n] = (f, lanes);
                    n += 1;
                }
                Err(why) => bad.get_or_insert((0, why)).0 |= lanes,
            }
        }
        if let Some((lanes, why)) = bad {
            let mut trap = self.host().trap_of(TrapKind::BadCall, site.span, ctx.of_header(|h| h.warp), lanes);
            trap.detail = why;
            return Err(Ended::Trap(trap));
        }
        // The last one runs first: keep the order of lanes.
        groups[..n].iter().rev().try_for_each(|&(f, lanes)| self.enter(ctx, site, caller, f, lanes))
    }

    /// The function at an address, if the call may call it.
    fn callee_of(&mut self, site: &CallSite, target: u64) -> Result<FuncId, String> {
        let id = FuncId::of_handle(target);
        let found = id.and_then(|id| Some((id, self.module.ir.funcs.get(id.idx())?)));
        match found {
            None => Err(format!("{target:#x} is no function of the module")),
            Some((_, f)) if f.is_entry => Err(format!("`{}` is a kernel", f.name)),
            Some((_, f)) if (f.param_bytes, f.result_bytes) != site.signature => Err(format!(
                "`{}` has {} bytes of parameters and results, {} of them results; the call has {} and {}",
                f.name, f.param_bytes, f.result_bytes, site.signature.0, site.signature.1
            )),
            Some((id, f)) if self.program.frames().get_at(id, &mut self.called[id.idx()].frame).is_none() => {
                Err(format!("{target:#x} would be `{}`, whose address the module does not take", f.name))
            }
            Some((id, _)) => Ok(id),
        }
    }

    fn enter(&mut self, ctx: Ctx, site: &CallSite, caller: Option<usize>, f: FuncId, lanes: u32) -> Result<(), Ended> {
        let mut known = self.called[f.idx()];
        let (number, local, window) = ctx.of_header(|h| (h.warp, h.local, h.window));
        let host = self.host_ref();
        let (warp, env) = (&host.warps[number as usize], &host.env);
        let depth = caller.and_then(|i| warp.calls.get(i)).map_or(1, |a| a.depth);
        let allocated = if warp.stack_used == [0; 32] {
            0
        } else {
            (0..32).filter(|l| lanes >> l & 1 == 1).map(|l| warp.stack_used[l]).max().unwrap_or(0)
        };
        let (limit, used) = (env.local_base(32 * number) + env.local_size - allocated, env.local_size);
        let tier = if known.is_careful { Tier::Careful } else { self.tier };
        let frame = self.program.frames().get_at(f, &mut known.frame);
        let (Some(frame), Some(code)) = (frame, self.program.codes(tier)?.get_at(f, &mut known.code)) else {
            return Err(Ended::bug(format!("`{}` is called and has no code", self.module.ir.funcs[f.idx()].name)));
        };
        let Some((frame, _)) = frame.place(local + site.frame_end, limit) else {
            let mut trap = self.host().trap_of(TrapKind::Stack, site.span, number, lanes);
            trap.detail = format!("{used} bytes of local memory are used up {depth} calls deep");
            return Err(Ended::Trap(trap));
        };
        let code: *const Code = code;
        self.called[f.idx()] = known;
        let mut call = self.spare_call(number as usize, f.idx(), code);
        call.ctx.start(WarpCtx {
            live: lanes,
            state: 0,
            wait_epoch: 0,
            warp: number,
            lanes: 0,
            site: 0,
            words: [0; 4],
            local: frame,
            args: local + u64::from(site.args),
            window,
        });
        (call.tier, call.caller, call.lanes) = (tier, ctx, lanes);
        (call.next, call.depth, call.held) = (site.next, depth + 1, 0);
        self.host().warps[number as usize].calls.push(call);
        Ok(())
    }

    /// A call of a function, with a context: one that has ended, or new.
    ///
    /// Each warp has its own, and takes the one that it left last: a loop that does the same again then finds the same again, which the search for
    /// deadlocks rests on.
    fn spare_call(&mut self, w: usize, func: usize, code: *const Code) -> Box<Activation> {
        // SAFETY: the program keeps the code, and this object the program.
        let tables: *const Tables = unsafe { &raw const *(*code).tables };
        let spare = &mut self.host().warps[w].spare;
        while let Some(call) = spare.get_mut(func).and_then(Vec::pop) {
            // Another one is of the code before.
            if call.ctx.tables == tables {
                return call;
            }
        }
        // SAFETY: as above.
        let memory = Contexts::new(unsafe { &*tables }, 1);
        let ctx = memory.at(0, tables);
        Box::new(Activation {
            memory,
            ctx,
            code,
            tier: Tier::Quick,
            func,
            caller: ctx,
            lanes: 0,
            next: 0,
            depth: 0,
            held: 0,
        })
    }

    /// Runs calls in progress of a warp, the latest first, until none can go on.
    pub(super) fn run_calls(&mut self, w: usize) -> Result<(), Ended> {
        self.leave_finished(w);
        loop {
            let runnable = self.host().warps[w].calls.iter().rposition(|a| a.ctx.is_runnable());
            let Some(i) = runnable else { return Ok(()) };
            // Code asks where it goes back; functions that call each other need not go back anywhere.
            if self.is_stopped() {
                return Err(Ended::Stopped);
            }
            let calls = &self.host().warps[w].calls;
            let (ctx, code) = (calls[i].ctx, calls[i].code);
            let (tier, func) = (calls[i].tier, calls[i].func);
            let place = &mut self.called[func].code;
            let sites = self.sites.of(&self.program, tier, FuncId(func as u32), place)?;
            let reason = self.run_activation(ctx, sites, code)?;
            self.count_call(w, ctx);
            match reason {
                Reason::Deopt => {
                    self.change_callee(w, i)?;
                    continue;
                }
                // Its lanes have ended or wait, unless others are to go on.
                Reason::Phase => {}
                _ => self.handle(reason, ctx, Some(i))?,
            }
            if ctx.live() == 0 {
                if reason == Reason::Exit {
                    // Its callers may be finished with it.
                    self.leave_finished(w);
                } else {
                    self.leave(w, i);
                }
            } else {
                self.settle_context(reason, ctx);
            }
        }
    }

    /// Runs the context of a call until something happens.
    fn run_activation(&mut self, ctx: Ctx, sites: u64, code: *const Code) -> Result<Reason, Ended> {
        // SAFETY: the program keeps the code, and this object the program.
        let code = unsafe { &*code };
        let at = address(ctx.warp);
        let of_entry: *const CtaCtx = self.ctx();
        // SAFETY: both are blocks of this object's, one and another; nobody uses them now.
        unsafe { self.callee.copy_from_nonoverlapping(of_entry, 1) }
        // SAFETY: as above.
        let block = unsafe { &mut *self.callee };
        (block.cur, block.first, block.end) = (at, at, at + u64::from(code.tables.ctx_bytes));
        (block.arrived, block.retired) = (0, 0);
        // Never met: a function's barriers leave the code.
        (block.n_warps, block.epoch) = (u32::MAX, u32::MAX);
        (block.sites, block.tables) = (sites, address(ctx.tables));
        // SAFETY: as for the entry: the block describes one context of this code, and no reference into it or the host state is alive.
        let reason = unsafe { deep::call(code, self.callee) };
        // SAFETY: as above; code has come back.
        let dirty = unsafe { (*self.callee).dirty };
        self.ctx().dirty |= dirty;
        self.reason(reason)
    }

    /// Lets lanes of calls whose lanes have all returned, or gone on before, go on in their callers.
    fn leave_finished(&mut self, w: usize) {
        while let Some(i) = self.host().warps[w].calls.iter().rposition(|a| a.ctx.live() == 0) {
            self.leave(w, i);
        }
    }

    /// Lets lanes that have returned go on in their callers although lanes that called with them have not: where nobody else can go on, the others may wait for them.
    /// Says whether there were any.
    pub(super) fn leave_in_part(&mut self) -> bool {
        let (mut any, mut holds) = (false, false);
        for w in 0..self.full.len() {
            let warp = &mut self.host().warps[w];
            let (gives_way, most) = (!warp.yielded.is_empty(), warp.most_held());
            for a in &mut warp.calls {
                let returned = a.lanes & !a.ctx.live();
                if returned == 0 {
                    continue;
                }
                // Who gave way mostly comes back soon.
                if gives_way && a.held < most {
                    a.held += 1;
                    holds = true;
                    continue;
                }
                a.caller.resume(a.next, returned);
                a.lanes &= !returned;
                (a.held, warp.in_vain) = (0, warp.in_vain + 1);
                any = true;
            }
        }
        self.holds |= holds;
        any
    }

    /// Lets the lanes of a call that all have returned go on in the caller, and keeps its context.
    fn leave(&mut self, w: usize, i: usize) {
        let warp = &mut self.host().warps[w];
        let done = warp.calls.remove(i);
        done.caller.resume(done.next, done.lanes);
        debug_assert!((0..done.ctx.tables().n_blocks).all(|b| done.ctx.pend(b) == 0), "a finished call has lanes");
        if warp.spare.len() <= done.func {
            warp.spare.resize_with(done.func + 1, Vec::new);
        }
        let spare = &mut warp.spare[done.func];
        if spare.len() < SPARE {
            spare.push(done);
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

/// Those of some lanes for which something holds.
pub(super) fn lanes_where(among: u32, holds: impl Fn(usize) -> bool) -> u32 {
    lanes(among).filter(|lane| holds(*lane)).fold(0, |m, lane| m | 1 << lane)
}
