//! One cta of compiled code: its contexts, and what happens when code gives them back.
//!
//! A *round* runs lanes until each of them waits, has given way, or has ended. Within a round, code runs the contexts of the entry in order
//! ([`CtaRun::pass`]), and what it reports is handled here; functions that were called run beside it (`calls`). A plain barrier that all
//! warps reach, and in wide code one of all threads that whole warps come to together, is passed inside code; all others go through the
//! `Barriers` of the host state (`barriers`).
//!
//! Invariants: while code runs, no reference into the context block, the contexts or the host state is held; lanes stand in exactly one
//! place: pending in a context, in one of the lists of the host state, or ended.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use handloom_codegen::Code;
use handloom_diag::Span;
use handloom_interp::CtaEnv;
use handloom_interp::cluster::ClusterBarrier;
use handloom_interp::pace::Pace;
use handloom_ir::trap::{WarpTraps, no_such_target};
use handloom_plan::abi::{BadStop, CtaBlock, CtaCtx, Reason, Stop, TrapSource};

use super::calls::Called;
use super::deep::NO_STACK;
use super::grid::Turn;
use super::seats::Seats;
use super::sites::Sites;
use super::{clear_local, fill_shared};
use crate::error::Lack;
use crate::grid::{Ended, Grid};
use crate::memory::{Space, View};
use crate::module::{Left, ModuleInner, Patience, Program};
use crate::rows;
use crate::run::{Progress, Recompile, StopHandle, Tier, Watchdog};
use crate::warp::KernelMemory;
use crate::warp::context::{Contexts, Ctx};
use crate::warp::host::{CtaHost, HOLD_IN_ALL, WarpHost, Yielded};
use crate::warp::sums::Sums;

/// How long other warps may run after a trap until nobody waits for them any more.
const GRACE: Duration = Duration::from_millis(400);

/// A cta in flight, or at rest between two of them.
#[derive(Debug)]
pub(crate) struct CtaRun {
    /// What code reads. Behind a raw pointer, as code and routines hold its address.
    pub(super) cta: *mut CtaCtx,
    /// The same for a called function.
    pub(super) callee: *mut CtaCtx,
    pub(super) host: *mut CtaHost,
    pub(super) program: Arc<Program>,
    pub(super) module: Arc<ModuleInner>,
    pub(super) sites: Sites,
    /// By number, what is remembered of functions of the module.
    pub(super) called: Vec<Called>,
    /// The code of the entry that runs. It lives as long as `program`.
    pub(super) code: *const Code,
    /// The tier of the code that runs.
    pub(super) tier: Tier,
    seats: Seats,
    /// Ctas that code may run after the one that was placed, and those of them that it has begun.
    pub(super) ahead: (u32, u32),
    /// Lanes of each warp at the start.
    pub(super) full: Vec<u32>,
    pub(super) still: u32,
    pub(super) fingerprint: Option<u64>,
    /// Who goes on in which round.
    pub(super) pace: Pace,
    /// In this round, lanes that could run were held back.
    pub(super) holds: bool,
    /// No code has run since the start: nobody waits anywhere, or has called.
    pub(super) fresh: bool,
    /// What code reported in a round that [`CtaRun::sweeps`] began, until it is handled.
    pub(super) reported: Option<u32>,
    /// Traps of warps, while the others go on.
    traps: WarpTraps,
    /// What its launch shares.
    stop: StopHandle,
    recompile: Arc<Recompile>,
    progress: Option<Progress>,
    /// Ends the others when they take too long.
    grace: Option<(StopHandle, Watchdog)>,
    pub(crate) done: bool,
}

// SAFETY: the pointers lead to memory that this object alone owns, freed in its `drop`.
unsafe impl Send for CtaRun {}

/// Address of a value as the context block holds it.
pub(super) fn address<T>(p: *const T) -> u64 {
    p.expose_provenance() as u64
}

impl CtaRun {
    /// Takes memory for ctas of a launch.
    pub(crate) fn new(grid: &Grid, program: &Arc<Program>, space: &Space) -> Result<CtaRun, Ended> {
        let tier = program.preferred();
        let code = entry_code(program, tier)?;
        let n_warps = grid.env.threads().div_ceil(32);
        let stride = u64::from(program.local_stride());
        let seats = Seats::take(space, 1, stride * 32 * u64::from(n_warps))?;
        let (slab, local) = seats.at(0);
        let env = CtaEnv {
            shared_base: slab,
            local_base: local,
            local_stride: stride,
            local_size: stride,
            ..grid.env.clone()
        };
        let mut view = View::new(Arc::clone(&grid.module.device.inner.memory), grid.module.space_kind());
        view.param = (env.param_base, grid.param_bytes);
        view.shared = (slab, u64::from(env.shared_size));
        view.local = (local, stride * 32 * u64::from(n_warps));
        let base = Contexts::new(&code.tables, n_warps as usize);
        let full = (0..n_warps).map(|w| lanes_of(env.threads() - 32 * w)).collect();
        // Who may read an allocation is looked at by all rules.
        let (granules, granules_size) = if grid.unread.is_none() { view.space().granules() } else { (0, 0) };
        let cta = CtaCtx {
            cur: base.first(),
            first: base.first(),
            end: base.end(),
            arrived: 0,
            retired: 0,
            n_warps,
            epoch: 1,
            ctaid: [0; 3],
            nctaid: env.nctaid,
            param: env.param_base,
            shared_base: slab,
            shared_size: u64::from(env.shared_size),
            routines: address(rows::TABLE.as_ptr()),
            symbols: address(grid.module.symbol_values().as_ptr()),
            sites: 0,
            heap_low: 0,
            heap_high: 0,
            stop: grid.stop.address(),
            host: 0,
            tables: address(&raw const *code.tables),
            dynamic_shared: env.dynamic_shared,
            dirty: 0,
            fence: 0,
            fresh: 0,
            more: 0,
            counts: 0,
            outside: 0,
            passed: 0,
            granules,
            granules_size,
        };
        let host = CtaHost {
            env,
            machine: grid.module.device.inner.host,
            memory: KernelMemory::new(view, grid, 0),
            unread: grid.unread.clone(),
            trap: None,
            refused: Vec::new(),
            failure: None,
            base_tables: &raw const *code.tables,
            base,
            warps: (0..n_warps).map(|_| WarpHost::default()).collect(),
            barriers: None,
            cluster: None,
            waiting: Vec::new(),
            cluster_waits: Vec::new(),
            was_left: false,
            images: Default::default(),
            told: None,
            counted: None,
            sums: Sums::default(),
        };
        let mut run = CtaRun {
            cta: Box::into_raw(Box::new(CtaBlock::new(cta))).cast(),
            callee: Box::into_raw(Box::new(CtaBlock::new(cta))).cast(),
            host: Box::into_raw(Box::new(host)),
            program: Arc::clone(program),
            module: Arc::clone(&grid.module),
            sites: Sites::default(),
            called: vec![Called::default(); grid.module.ir.funcs.len()],
            code,
            tier,
            seats,
            ahead: (0, 0),
            full,
            still: 0,
            fingerprint: None,
            pace: Pace::default(),
            holds: false,
            fresh: true,
            reported: None,
            traps: WarpTraps::default(),
            stop: grid.stop.clone(),
            recompile: Arc::clone(&grid.recompile),
            progress: grid.progress.clone(),
            grace: None,
            done: true,
        };
        if let Some(audit) = grid.audit.as_ref().filter(|_| program.tells()) {
            run.tell(audit, grid.undo.as_ref());
        }
        run.prepare_contexts();
        run.ctx().host = address(run.host);
        run.use_sites()?;
        Ok(run)
    }

    /// The context block. Only while no code runs.
    pub(super) fn ctx(&mut self) -> &mut CtaCtx {
        // SAFETY: the block is this object's, and `self` is borrowed as long as the reference lives.
        unsafe { &mut *self.cta }
    }

    /// The host state. Only while no code runs.
    pub(super) fn host(&mut self) -> &mut CtaHost {
        // SAFETY: as in `ctx`.
        unsafe { &mut *self.host }
    }

    /// The host state, to read.
    pub(super) fn host_ref(&self) -> &CtaHost {
        // SAFETY: as in `ctx`.
        unsafe { &*self.host }
    }

    /// Lets code use the caches of the entry in its tier.
    pub(super) fn use_sites(&mut self) -> Result<(), Ended> {
        let program = Arc::clone(&self.program);
        self.ctx().sites = self.sites.of(&program, self.tier, program.entry(), &mut 0)?;
        Ok(())
    }

    /// Writes what is the same in the contexts of all ctas that start in this code.
    fn prepare_contexts(&mut self) {
        let stride = u64::from(self.program.local_stride());
        let host = self.host();
        for w in 0..host.warps.len() {
            let local = host.env.local_base + 32 * stride * w as u64;
            host.base_ctx(w).update(|h| {
                h.warp = w as u32;
                (h.local, h.window) = (local, local);
            });
        }
    }

    /// Writes the headers of a cta whose code has not run and would have started its warps by itself.
    pub(super) fn show_start(&self) {
        let host = self.host_ref();
        // SAFETY: tables belong to the program, and are never written.
        if self.fresh && !self.done && unsafe { &*host.base_tables }.starts_warps {
            host.base.start_all(host.base_tables, &self.full);
        }
    }

    /// Its place in the order in which text is printed.
    pub(crate) fn number(&self) -> u64 {
        self.host_ref().memory.number
    }

    /// The tier of the code that runs.
    pub(crate) fn tier(&self) -> Tier {
        self.tier
    }

    /// Waits for the code of a tier, if it is not there.
    pub(super) fn obtain(&self, tier: Tier) -> Result<(), Ended> {
        if self.program.has(tier) {
            return Ok(());
        }
        let patience = Patience { stop: &self.stop, limit: None };
        let wait = || self.program.obtain(&self.module, tier, patience);
        self.recompile.during(tier, self.progress.as_ref(), wait).map_err(|Left| Ended::Stopped)
    }

    /// Bytes of its local memory.
    pub(crate) fn local_bytes(&self) -> u64 {
        self.seats.local_bytes()
    }

    /// Base of its shared memory.
    pub(crate) fn slab(&self) -> u64 {
        self.seats.at(0).0
    }

    /// Says which cta of the grid it is.
    #[inline]
    pub(crate) fn place(&mut self, grid: &Grid, unit: u64, rank: u32) {
        self.host().memory.number = grid.number(unit, rank);
        // Word by word: read back as a whole behind such writes, an array would wait for them.
        let [x, y, z] = grid.ctaid(unit, rank);
        let cta = self.ctx();
        (cta.ctaid[0], cta.ctaid[1], cta.ctaid[2]) = (x, y, z);
        let env = &mut self.host().env;
        (env.ctaid[0], env.ctaid[1], env.ctaid[2]) = (x, y, z);
    }

    /// Puts a placed cta at its first instruction. `peers`: bases of the shared memory of its cluster.
    pub(crate) fn start(&mut self, grid: &Grid, peers: &[u64], heap: (u64, u64)) {
        let first = self.host_ref().base.first();
        {
            let cta = self.ctx();
            cta.cur = first;
            cta.arrived = 0;
            cta.retired = 0;
            cta.epoch = 1;
            cta.dirty = 0;
            (cta.fresh, cta.more) = (1, 0);
            cta.passed = 0;
            (cta.heap_low, cta.heap_high) = heap;
        }
        // SAFETY: as in `host`; a field of its own keeps `full` readable beside it.
        let host = unsafe { &mut *self.host };
        host.env.gridid = grid.env.gridid;
        // SAFETY: tables belong to the program, and are never written.
        if !unsafe { &*host.base_tables }.starts_warps {
            host.base.start_all(host.base_tables, &self.full);
        }
        if host.was_left {
            host.was_left = false;
            host.warps.iter_mut().for_each(WarpHost::reset);
            host.barriers = None;
            host.cluster = None;
        }
        if peers.len() > 1 {
            host.memory.view.get_mut().peers = peers.to_vec();
            host.env.cluster.shared_bases = peers.to_vec();
            host.cluster = Some(ClusterBarrier::new(&self.full, false));
            host.was_left = true;
        }
        let stale = host.memory.view.get_mut().refresh();
        // SAFETY: the slab is this cta's.
        unsafe { fill_shared(&host.env) }
        if grid.clears_local {
            // SAFETY: as above.
            unsafe { clear_local(&host.env) }
        }
        host.memory.view.get_mut().space().tensors.forget(host.env.shared_base);
        if stale {
            self.sites.clear();
        }
        self.still = 0;
        self.fingerprint = None;
        self.pace = Pace::default();
        self.fresh = true;
        self.reported = None;
        self.done = false;
        self.start_counting(grid);
        if let Some(audit) = grid.audit.as_ref().filter(|_| self.program.tells()) {
            self.tell_start(audit, grid.undo.as_ref());
        }
    }

    /// Runs until all lanes wait or have ended.
    pub(crate) fn round(&mut self) -> Result<Turn, Ended> {
        let turn = self.run_warps();
        let turn = if self.has_enough() { Err(Ended::Stopped) } else { turn };
        // What else came of it, but for a fault of ours, may have come of the trap.
        match (self.traps.report(!matches!(turn, Err(Ended::Stopped))), turn) {
            (None, turn) => turn,
            (Some(_), Err(bug @ (Ended::Failed(_) | Ended::NoRoom(_)))) => Err(bug),
            (Some(trap), _) => Err(Ended::Trap(trap)),
        }
    }

    fn run_warps(&mut self) -> Result<Turn, Ended> {
        if self.reported.is_none() {
            self.begin_round();
        }
        loop {
            self.pass()?;
            let cta = self.ctx();
            if cta.retired == cta.n_warps {
                self.done = true;
                self.tell_end();
                let host = self.host();
                rows::end_counted(host);
                rows::end_transfers(host).map_err(Ended::Trap)?;
                if let Some(trap) = host.memory.view.get_mut().space().tensors.end(&host.env) {
                    return Err(Ended::Trap(trap));
                }
                return Ok(Turn::Done);
            }
            self.host().was_left = true;
            if !self.settle()? && !self.leave_in_part() {
                let turn = self.end_round()?;
                // After a trap, only who has given way may still trap too.
                let may_trap = || self.host_ref().warps.iter().any(|w| !w.yielded.is_empty());
                if self.traps.is_empty() || turn == Turn::Waited || !may_trap() {
                    return Ok(turn);
                }
                if self.is_stopped() {
                    return Err(Ended::Stopped);
                }
                self.begin_round();
            }
        }
    }

    /// Decides who goes on.
    fn begin_round(&mut self) {
        let changed = std::mem::take(&mut self.ctx().dirty) != 0;
        if changed {
            // A loop that looks at the time changes something in each round.
            let may_hold = |w: &&mut WarpHost| w.held_in_all < HOLD_IN_ALL;
            self.host().warps.iter_mut().filter(may_hold).for_each(|w| w.held = 0);
        }
        self.holds = false;
        if !self.fresh {
            // SAFETY: as in `host`; a field of its own keeps `pace` writable beside it.
            self.pace.next_round(unsafe { &(*self.host).env }, changed);
            self.resume_yielded();
            self.pass_cluster_waits();
        }
    }

    /// Runs what can run once: calls in progress, then the contexts of the entry until code has been through all of them.
    fn pass(&mut self) -> Result<(), Ended> {
        let mut reported = self.reported.take();
        if reported.is_none() && !std::mem::replace(&mut self.fresh, false) {
            for w in 0..self.full.len() {
                if !self.host().warps[w].calls.is_empty() {
                    let ran = self.run_calls(w);
                    self.unless_trapped(w, ran)?;
                }
            }
        }
        if reported.is_none() {
            let first = self.host().base.first();
            self.ctx().cur = first;
        }
        loop {
            let number = reported.take().unwrap_or_else(|| self.call_entry());
            let reason = self.reason(number)?;
            if reason == Reason::Phase {
                return Ok(());
            }
            self.host().was_left = true;
            let warp = self.ctx().cur;
            let ctx =
                Ctx { warp: std::ptr::with_exposed_provenance_mut(warp as usize), tables: self.host().base_tables };
            if reason == Reason::Deopt {
                self.change_code()?;
                continue;
            }
            let w = ctx.header().warp as usize;
            let handled = self.handle_entry(reason, ctx, w);
            if self.unless_trapped(w, handled)? {
                self.settle_context(reason, ctx);
            }
        }
    }

    /// Handles what code reported of a context of the entry, and runs what it called.
    fn handle_entry(&mut self, reason: Reason, ctx: Ctx, w: usize) -> Result<(), Ended> {
        self.handle(reason, ctx, None)?;
        if self.host().warps[w].calls.is_empty() { Ok(()) } else { self.run_calls(w) }
    }

    /// Whether a warp goes on. If it trapped, it stops there, and the others go on until they trap, wait or end.
    fn unless_trapped(&mut self, w: usize, result: Result<(), Ended>) -> Result<bool, Ended> {
        match result {
            Ok(()) => return Ok(true),
            Err(Ended::Trap(trap)) if trap.kind.is_of_one_warp() => self.traps.add(w as u32, trap),
            Err(why) => return Err(why),
        }
        if self.grace.is_none() {
            let stop = StopHandle::new();
            // Without a thread for it, nobody waits for the others.
            let watchdog = Watchdog::start(&stop, None, GRACE).ok_or(Ended::Stopped)?;
            self.ctx().stop = stop.address();
            self.grace = Some((stop, watchdog));
        }
        let host = self.host();
        // Before the calls, whose contexts these may be.
        host.waiting.retain(|x| x.warp != w);
        host.cluster_waits.retain(|x| x.ctx.header().warp as usize != w);
        let warp = &mut host.warps[w];
        warp.parked.clear();
        warp.yielded.clear();
        warp.calls.clear();
        host.base_ctx(w).clear();
        Ok(false)
    }

    /// Lets a context go on with the lanes that code left in it, unless they wait for lanes that gave way.
    pub(super) fn settle_context(&mut self, reason: Reason, ctx: Ctx) {
        let w = ctx.of_header(|h| h.warp);
        let passes = self.pace.lets_pass(w);
        let host = self.host();
        // Who is told sees what the interpreter does: it holds nobody back.
        let passes = passes || host.told.is_some();
        let warp = &mut host.warps[w as usize];
        // Who gives way may call functions, and park at warp-level ops, in each turn.
        if matches!(reason, Reason::Barrier | Reason::Exit) {
            warp.forget_held();
        }
        if !ctx.settle() || reason != Reason::Yield || passes {
            return;
        }
        match warp.held.cmp(&warp.most_held()) {
            Ordering::Less => {
                (warp.held, warp.held_in_all) = (warp.held + 1, warp.held_in_all + 1);
                self.holds = true;
                ctx.update(|h| h.state = ctx.tables().skip());
            }
            // Lanes of this warp go on although others wait: it may be for them.
            Ordering::Equal => (warp.in_vain, warp.held) = (warp.in_vain + 1, warp.held + 1),
            Ordering::Greater => {}
        }
    }

    /// Whether code that looks where it goes back would leave: who asked for it, or time is up.
    pub(super) fn is_stopped(&self) -> bool {
        self.grace.as_ref().map_or(&self.stop, |(stop, _)| stop).is_set()
    }

    /// The reason that code gave, unless a routine met a fault of ours.
    pub(super) fn reason(&mut self, number: u32) -> Result<Reason, Ended> {
        if self.host_ref().failure.is_some()
            && let Some(failure) = self.host().failure.take()
        {
            return Err(failure.into());
        }
        if number == Reason::Phase as u32 {
            return Ok(Reason::Phase);
        }
        if number == NO_STACK {
            return Err(Ended::NoRoom(Lack::Stack));
        }
        Reason::from_u32(number).ok_or_else(|| self.bad_stop(BadStop::Reason(number)))
    }

    fn bad_stop(&self, why: BadStop) -> Ended {
        let func = &self.module.ir.funcs[self.program.entry().idx()];
        Ended::bug(format!("`{}`: {why}", func.name))
    }

    /// Handles what code reported of a context. `call`: the call in progress that the context is for.
    pub(super) fn handle(&mut self, reason: Reason, ctx: Ctx, call: Option<usize>) -> Result<(), Ended> {
        let tables = ctx.tables();
        let (w, stop) = ctx.of_header(|h| (h.warp as usize, Stop::read(reason as u32, h, tables)));
        match stop.map_err(|why| self.bad_stop(why))? {
            Stop::Barrier { site, lanes, arrivals, predicates } => {
                let at = tables.arrivals[arrivals as usize];
                self.arrive((ctx, site), at, lanes, predicates.unwrap_or(0))?;
            }
            Stop::Yield { site, lanes } => self.host().warps[w].yielded.push(Yielded { ctx, site, lanes }),
            Stop::Call { site, lanes } => self.call(ctx, &tables.calls[site as usize], lanes, call)?,
            Stop::Trap(source) => return Err(self.trap(ctx, source)),
            Stop::Stopped => return Err(Ended::Stopped),
            Stop::Idle => rows::complete_parked(self.host(), w),
            Stop::Exit { lanes } => {
                self.exit(w, call, lanes);
                if self.host().told.is_some() {
                    self.after_exit(w)?;
                }
            }
            Stop::Phase | Stop::Deopt => {}
        }
        Ok(())
    }

    fn trap(&mut self, ctx: Ctx, source: TrapSource<u32>) -> Ended {
        let name = &ctx.tables().name;
        match source {
            TrapSource::Site { site, lanes } => {
                let site = &ctx.tables().traps[site as usize];
                let mut trap = self.host().trap_of(site.kind, site.span, ctx.header().warp, lanes);
                if let Some((index, targets)) = site.index {
                    let index = ctx.read(index, lanes.trailing_zeros().min(31) as usize);
                    trap.detail = no_such_target(index, targets);
                }
                Ended::Trap(trap)
            }
            TrapSource::Routine => {
                self.host().refused.clear();
                match self.host().trap.take() {
                    Some(trap) => Ended::Trap(trap),
                    None => Ended::bug(format!("a routine of `{name}` failed without a trap")),
                }
            }
            TrapSource::Apart { lanes } => {
                Ended::bug(format!("lanes {lanes:#x} of `{name}` went apart where code expects them together"))
            }
        }
    }

    /// When code has been through all contexts: passes what can be passed. Says whether somebody can run now.
    fn settle(&mut self) -> Result<bool, Ended> {
        if self.ctx().arrived > 0 {
            self.take_arrivals()?;
        }
        // Who arrives later says first who has ended until then.
        let host = self.host_ref();
        if host.cluster.is_some() || host.barriers.as_ref().is_some_and(|b| !b.is_idle()) {
            self.sync_live(Span::NONE)?;
            self.pass_barriers();
            self.pass_cluster_waits();
        }
        for w in 0..self.full.len() {
            if !self.host().warps[w].parked.is_empty() {
                rows::complete_parked(self.host(), w);
            }
        }
        let host = self.host();
        Ok((0..host.warps.len())
            .any(|w| host.base_ctx(w).is_runnable() || host.warps[w].calls.iter().any(|a| a.ctx.is_runnable())))
    }

    /// Whether it has ended and left nothing to take back: code ran to the end by itself.
    #[inline]
    pub(crate) fn is_clean(&self) -> bool {
        self.done && !self.host_ref().was_left
    }

    /// Whether a new cta may start in the code that this one ran.
    pub(crate) fn is_current(&self) -> bool {
        self.tier == self.program.preferred()
    }

    /// Whether it runs code of a program.
    pub(super) fn is_of(&self, program: &Arc<Program>) -> bool {
        Arc::ptr_eq(&self.program, program)
    }

    /// Gives its memory back.
    pub(crate) fn release(&mut self, space: &Space) {
        std::mem::take(&mut self.seats).give(space);
    }
}

impl Drop for CtaRun {
    fn drop(&mut self) {
        // SAFETY: made by `Box::into_raw` in `new`, freed only here.
        unsafe {
            drop(Box::from_raw(self.cta.cast::<CtaBlock>()));
            drop(Box::from_raw(self.callee.cast::<CtaBlock>()));
            drop(Box::from_raw(self.host));
        }
    }
}

/// The code of the entry.
pub(super) fn entry_code(program: &Program, tier: Tier) -> Result<&Code, Ended> {
    let codes = program.codes(tier)?;
    codes.get(program.entry()).ok_or_else(|| Ended::bug("the entry has no code"))
}

/// The lanes of a warp with so many threads left for it.
fn lanes_of(threads: u32) -> u32 {
    1_u32.checked_shl(threads).map_or(u32::MAX, |top| top - 1)
}
