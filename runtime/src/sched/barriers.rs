//! Barriers that lanes come to outside of code, and who goes on behind them.

use handloom_diag::Span;
use handloom_interp::barrier::{Arrival, Barriers, Misuse, of_warpgroup};
use handloom_ir::simt::BarKind;
use handloom_ir::trap::TrapKind;
use handloom_plan::abi::{AT_ANOTHER, Arrivals, Waited};

use super::calls::lanes_where;
use super::cta::CtaRun;
use crate::grid::Ended;
use crate::warp::context::{Ctx, predicate};
use crate::warp::host::{BarWait, ClusterWait};

impl CtaRun {
    /// Makes the bookkeeping of barriers if it is not there, and tells it who has ended.
    pub(super) fn sync_live(&mut self, span: Span) -> Result<(), Ended> {
        let n = self.full.len();
        // SAFETY: as in `host`; a field of its own keeps `full` readable beside it.
        let host = unsafe { &mut *self.host };
        let barriers = host.barriers.get_or_insert_with(|| {
            self.full.iter().zip(&mut host.warps).for_each(|(lanes, w)| w.known_live = *lanes);
            Barriers::new(&self.full)
        });
        let mut misuse = None;
        for w in 0..n {
            let live = host.base.at(w, host.base_tables).header().live;
            let gone = host.warps[w].known_live & !live;
            if gone != 0 {
                host.warps[w].known_live = live;
                if let Some(c) = &mut host.cluster {
                    c.exit(w, gone);
                }
                if let Err(why) = barriers.exit(w, gone) {
                    misuse.get_or_insert((why, w, gone));
                }
            }
        }
        match misuse {
            Some((why, w, gone)) => {
                // The rest of the warp has arrived since some of it ended: it is those who wait that are named.
                let there = |x: &&BarWait| x.warp == w && why.at() == Some(x.id);
                let first = self.host_ref().waiting.iter().filter(there).min_by_key(|x| x.lanes.trailing_zeros());
                let span = first.map_or(span, |x| x.site().span);
                let all = self.host_ref().waiting.iter().filter(there).filter(|x| x.site().span == span);
                let lanes = all.fold(0, |lanes, x| lanes | x.lanes);
                Err(self.misuse(&why, span, w, if lanes == 0 { gone } else { lanes }))
            }
            None => Ok(()),
        }
    }

    pub(super) fn misuse(&mut self, why: &Misuse, span: Span, w: usize, lanes: u32) -> Ended {
        let mut trap = self.host().trap_of(TrapKind::Barrier, span, w as u32, lanes);
        trap.detail = why.to_string();
        Ended::Trap(trap)
    }

    /// Lanes arrive at a barrier: at as many as they name.
    pub(super) fn arrive(
        &mut self,
        (ctx, site): (Ctx, u32),
        at: Arrivals,
        lanes: u32,
        predicates: u32,
    ) -> Result<(), Ended> {
        let warp = ctx.header().warp as usize;
        let mut left = lanes;
        while left != 0 {
            let named = |lane| (ctx.read(at.id, lane) as u32, at.count.map(|count| ctx.read(count, lane) as u32));
            let (id, count) = named(left.trailing_zeros() as usize);
            let together = if at.is_one() { left } else { lanes_where(left, |lane| named(lane) == (id, count)) };
            left &= !together;
            self.barrier(BarWait { warp, ctx, site, lanes: together, id }, count, predicates & together)?;
        }
        Ok(())
    }

    /// Lanes arrive at one barrier. `count`: threads expected, where it was written; `predicates`: those of a reduction.
    fn barrier(&mut self, mut wait: BarWait, mut count: Option<u32>, predicates: u32) -> Result<(), Ended> {
        let (BarWait { warp: w, ctx, site: number, lanes, .. }, site) = (wait, wait.site());
        let kind = match site.kind {
            BarKind::ClusterArrive | BarKind::ClusterArriveRelaxed => {
                return self.cluster_arrive(ctx, w, lanes, site);
            }
            BarKind::ClusterWait => {
                self.cluster_wait(ClusterWait { ctx, site: number, lanes, phase: 0 });
                return Ok(());
            }
            BarKind::Sync | BarKind::Arrive | BarKind::RedPopc | BarKind::RedAnd | BarKind::RedOr => {
                arrival_of(site.kind)
            }
            BarKind::Warpgroup | BarKind::WarpgroupStart => {
                let (id, threads) = of_warpgroup(w, self.full.len());
                (wait.id, count) = (id, Some(threads));
                if site.kind == BarKind::Warpgroup { Arrival::Warpgroup } else { Arrival::WarpgroupStart }
            }
        };
        let arrived = self.ctx().arrived;
        if arrived >= AT_ANOTHER || self.host_ref().told.is_some() && arrived > 0 {
            // Either all wait inside code, or nobody.
            self.take_arrivals()?;
        }
        self.sync_live(site.span)?;
        let host = self.host();
        if kind == Arrival::Arrive {
            host.tell(|audit, cta| audit.arrive(cta, wait.id, w, lanes));
        }
        host.waiting.push(wait);
        let Some(barriers) = &mut host.barriers else { return Ok(()) };
        if let Err(why) = barriers.arrive(w, lanes, kind, wait.id, count, predicates) {
            return Err(self.misuse(&why, site.span, w, lanes));
        }
        self.pass_barriers();
        Ok(())
    }

    /// Lets lanes go on whose barrier is met.
    pub(super) fn pass_barriers(&mut self) {
        let host = self.host();
        let Some(barriers) = host.barriers.as_mut().filter(|b| b.has_news()) else { return };
        let (met, released) = (barriers.take_met(), barriers.take_released());
        met.iter().for_each(|met| host.tell_meeting(met));
        host.count_meeting(&released);
        for r in released {
            host.tell_divergence(r);
            host.waiting.retain_mut(|wait| {
                let go = wait.lanes & r.lanes;
                if wait.warp != r.warp || wait.id != r.id || go == 0 {
                    return true;
                }
                let site = wait.site();
                if let Some(loc) = site.result {
                    let result = if site.result_is_predicate() { predicate(r.result != 0) } else { r.result.into() };
                    wait.ctx.write_row(loc, go, &[result; 32]);
                }
                wait.ctx.resume(site.next, go);
                wait.lanes &= !go;
                wait.lanes != 0
            });
        }
    }

    /// Moves contexts that arrived at a barrier inside code, but not all of them, to the barriers of the host state.
    pub(super) fn take_arrivals(&mut self) -> Result<(), Ended> {
        let epoch = self.ctx().epoch;
        let tables = self.host().base_tables;
        for w in 0..self.full.len() {
            let ctx = self.host().base.at(w, tables);
            let h = ctx.header();
            let Some(site) = h.plain_barrier(epoch, ctx.tables()) else { continue };
            ctx.set_pend(h.state, 0);
            ctx.update(|h| {
                h.wait_epoch = 0;
                h.state = ctx.tables().skip();
            });
            let at = ctx.tables().barrier(site);
            let (span, waited, kind) = (at.span, at.waited, arrival_of(at.kind));
            let Some(Waited { id, threads }) = waited else { return Err(Ended::bug("code waits where it cannot")) };
            self.sync_live(span)?;
            let host = self.host();
            host.waiting.push(BarWait { warp: w, ctx, site, lanes: h.live, id });
            if let Some(b) = &mut host.barriers
                && let Err(why) = b.arrive(w, h.live, kind, id, threads, h.predicates() & h.live)
            {
                return Err(self.misuse(&why, span, w, h.live));
            }
        }
        self.ctx().arrived = 0;
        Ok(())
    }
}

/// What an arrival at a barrier of the CTA does; those at others count as waiting.
fn arrival_of(kind: BarKind) -> Arrival {
    match kind {
        BarKind::Arrive => Arrival::Arrive,
        BarKind::RedPopc => Arrival::RedPopc,
        BarKind::RedAnd => Arrival::RedAnd,
        BarKind::RedOr => Arrival::RedOr,
        _ => Arrival::Sync,
    }
}
