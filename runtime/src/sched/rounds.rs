//! The start and the end of a round: who of those that gave way goes on, and what it means that nobody can run.

use handloom_diag::Span;
use handloom_ir::trap::{Trap, TrapKind};

use super::cta::CtaRun;
use super::grid::Turn;
use crate::grid::Ended;
use crate::rows::lanes;
use crate::warp::context::{Ctx, mix};
use crate::warp::host::{CtaHost, WarpHost};

/// Rounds without a change of memory before the state of the threads is compared too: more than a unit has before others run, since what it waits for mostly comes of those.
const STILL: u32 = 160;

impl CtaRun {
    /// Lets lanes go on that gave way.
    pub(super) fn resume_yielded(&mut self) {
        // Where all of them are left out, other ctas of the cluster may run; else it would be a round for nobody.
        if self.pace.leaves_out() && (self.resume_some() || self.host_ref().env.cluster_size() > 1) {
            return;
        }
        self.holds = false;
        for warp in &mut self.host().warps {
            for y in warp.yielded.drain(..) {
                y.ctx.resume(y.site().next, y.lanes);
                y.ctx.settle();
            }
        }
    }

    /// Lets lanes go on that are not left out. Says whether there were any.
    fn resume_some(&mut self) -> bool {
        let mut any = false;
        for w in 0..self.full.len() {
            let lanes = self.pace.lanes(w as u32);
            let mut stay = false;
            self.host().warps[w].yielded.retain_mut(|y| {
                // Lanes that code takes for equal go on together.
                let go = if y.site().in_part { y.lanes & lanes } else { all_or_none(y.lanes, lanes) };
                y.ctx.resume(y.site().next, go);
                y.ctx.settle();
                any |= go != 0;
                y.lanes &= !go;
                stay |= y.lanes != 0;
                y.lanes != 0
            });
            self.holds |= stay;
        }
        any
    }

    /// What it means that nobody can run.
    pub(super) fn end_round(&mut self) -> Result<Turn, Ended> {
        let host = self.host();
        let clustered = host.env.cluster_size() > 1;
        let hopeful = host.warps.iter().any(|w| !w.yielded.is_empty()) || clustered && !host.cluster_waits.is_empty();
        if !hopeful {
            return Err(Ended::Trap(Box::new(self.deadlock())));
        }
        if self.host_ref().told.is_some() {
            // As the interpreter says it, so that blocks take the same turns.
            let now = if self.ctx().dirty != 0 { None } else { Some(self.fingerprint()) };
            let changed = now.is_none() || now != self.fingerprint || self.pace.leaves_out();
            self.fingerprint = now;
            return Ok(if changed { Turn::Moved } else { Turn::Waited });
        }
        if self.ctx().dirty != 0 {
            self.still = 0;
            self.fingerprint = None;
            return Ok(Turn::Moved);
        }
        self.still += 1;
        if self.still < STILL || self.holds {
            return Ok(Turn::Still);
        }
        // Choice: a waiting loop that counts its turns may end by itself, so the state of threads counts as a change, not only memory.
        let now = self.fingerprint();
        let same = self.fingerprint == Some(now);
        self.fingerprint = Some(now);
        Ok(if same { Turn::Waited } else { Turn::Still })
    }

    /// A number that is the same for the same state of all threads.
    fn fingerprint(&mut self) -> u64 {
        let host = self.host();
        let mut h = host.base.hash(1);
        for (w, warp) in host.warps.iter().enumerate() {
            h = own_memory(host, w, warp, h);
        }
        for w in &host.warps {
            w.yielded.iter().for_each(|y| h = mix(h, u64::from(y.site) << 32 | u64::from(y.lanes)));
            w.calls.iter().for_each(|a| h = a.memory.hash(h));
            w.parked.iter().for_each(|p| h = mix(h, p.lanes.into()));
        }
        mix(mix(h, host.waiting.len() as u64), host.cluster_waits.len() as u64)
    }

    /// The trap of a cta in which nobody can ever go on.
    fn deadlock(&self) -> Trap {
        let none = Trap::new(TrapKind::Deadlock, Span::NONE, self.host_ref().env.ctaid, [0; 3]);
        let waiters = self.waiters();
        let Some(first) = waiters.first() else { return none };
        Trap { span: first.span, thread: first.thread, waiters, ..none }
    }
}

/// A number that is the same for the same bytes of the frames that threads of a warp are in: what they store there changes their state, and is not told of.
fn own_memory(host: &CtaHost, w: usize, warp: &WarpHost, mut h: u64) -> u64 {
    let base = host.base_ctx(w);
    let start = base.header().window;
    let end = |ctx: Ctx| ctx.header().local + u64::from(ctx.tables().frame_bytes);
    let end = warp.calls.iter().map(|a| end(a.ctx)).fold(end(base), u64::max);
    let (stride, limit) = (host.env.local_stride, start + host.env.local_size);
    // SAFETY: local memory of a seat is open, and frames are a multiple of 8 bytes long; no code runs on it now.
    let word = |at: u64| unsafe { std::ptr::with_exposed_provenance::<u64>(at as usize).read_unaligned() };
    if base.tables().mems.iter().any(|site| site.interleaved.is_some()) {
        return (start..start + 32 * stride).step_by(8).fold(h, |h, at| mix(h, word(at)));
    }
    for lane in lanes(base.live()) {
        // The stack, which grows from the end, is part of it.
        let stack = limit - warp.stack_used[lane].next_multiple_of(8);
        for at in (start..end.min(stack)).chain(stack..limit).step_by(8) {
            h = mix(h, word(at + stride * lane as u64));
        }
    }
    h
}

/// All lanes, if the first of them is among those that go on.
fn all_or_none(lanes: u32, go: u32) -> u32 {
    if go >> lanes.trailing_zeros().min(31) & 1 == 1 { lanes } else { 0 }
}
