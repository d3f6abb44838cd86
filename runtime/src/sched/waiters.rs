//! Where the threads of a cta stand, for reports.

use std::collections::BTreeMap;

use handloom_diag::Span;
use handloom_ir::trap::Waiter;

use super::cta::CtaRun;
use crate::warp::context::Ctx;

impl CtaRun {
    /// Where the threads that are left stand, and what they wait for. Lanes of a warp at one place are one entry.
    pub(crate) fn waiters(&self) -> Vec<Waiter> {
        self.show_start();
        let host = self.host_ref();
        // By what a line of the report shows: warp, statement, and what is waited for.
        let mut found: BTreeMap<(usize, Span, String), u32> = BTreeMap::new();
        let mut add = |w: usize, lanes: u32, span: Span, what: &str| {
            if lanes != 0 {
                *found.entry((w, span, what.to_owned())).or_default() |= lanes;
            }
        };
        for b in &host.waiting {
            add(b.warp, b.lanes, b.site().span, &handloom_interp::barrier::waits_for(b.id));
        }
        for c in &host.cluster_waits {
            add(c.ctx.header().warp as usize, c.lanes, c.site().span, "the cluster barrier");
        }
        for (w, warp) in host.warps.iter().enumerate() {
            warp.yielded.iter().for_each(|y| add(w, y.lanes, y.site().span, "memory"));
            for p in &warp.parked {
                add(w, p.lanes, p.op().span, &format!("lanes {:#010x}", p.members));
            }
            let base = host.base_ctx(w);
            let h = base.header();
            // Its lanes are pending already at the block after the barrier.
            let at_barrier = h.plain_barrier(self.epoch(), base.tables());
            if let Some(site) = at_barrier {
                let site = base.tables().barrier(site);
                let id = site.waited.map_or(0, |waited| waited.id);
                add(w, h.live, site.span, &handloom_interp::barrier::waits_for(id));
            }
            let base = at_barrier.is_none().then_some(base);
            for ctx in base.into_iter().chain(warp.calls.iter().map(|a| a.ctx)) {
                pending(ctx).into_iter().for_each(|(lanes, span)| add(w, lanes, span, "its turn"));
            }
        }
        // Lanes that code holds, as when it was stopped in a loop, stand in no list.
        for w in 0..host.warps.len() {
            let told = found.iter().filter(|((x, ..), _)| *x == w).fold(0, |m, (_, lanes)| m | lanes);
            let ctx = host.warps[w].calls.last().map_or(host.base_ctx(w), |a| a.ctx);
            let left = host.live(w) & !told;
            let state = ctx.header().state as usize;
            let span = ctx.tables().block_spans.get(state).copied().unwrap_or(Span::NONE);
            if left != 0 {
                *found.entry((w, span, "its turn".into())).or_default() |= left;
            }
        }
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_by_key(|((w, ..), lanes)| (*w, lanes.trailing_zeros()));
        let waiter = |((w, span, what), lanes): ((usize, Span, String), u32)| Waiter {
            cta: host.env.ctaid,
            thread: host.env.tid(w as u32 * 32 + lanes.trailing_zeros().min(31)),
            count: lanes.count_ones(),
            span,
            what,
        };
        found.into_iter().map(waiter).collect()
    }

    fn epoch(&self) -> u32 {
        // SAFETY: the block is this object's and no code runs on it.
        unsafe { (*self.cta).epoch }
    }
}

/// Lanes that could run, by the block they would run.
fn pending(ctx: Ctx) -> Vec<(u32, Span)> {
    let t = ctx.tables();
    (0..t.n_blocks)
        .map(|b| (ctx.pend(b), t.block_spans.get(b as usize).copied().unwrap_or(Span::NONE)))
        .filter(|(lanes, _)| *lanes != 0)
        .collect()
}
