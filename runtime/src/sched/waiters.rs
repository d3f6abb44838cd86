//! Where the threads of a cta stand, for reports.

use handloom_diag::Span;
use handloom_ir::trap::Waiter;

use super::cta::{CtaRun, plain_barrier_span};
use crate::warp::context::Ctx;

impl CtaRun {
    /// Where the threads that are left stand, and what they wait for. Lanes of a warp at one place are one entry.
    pub(crate) fn waiters(&self) -> Vec<Waiter> {
        let host = self.host_ref();
        let mut found: Vec<(usize, u32, Span, String)> = Vec::new();
        let mut add = |w: usize, lanes: u32, span: Span, what: &str| {
            if lanes == 0 {
                return;
            }
            match found.iter_mut().find(|(x, _, s, t)| *x == w && *s == span && t == what) {
                Some((_, mask, _, _)) => *mask |= lanes,
                None => found.push((w, lanes, span, what.to_owned())),
            }
        };
        for b in &host.waiting {
            add(b.warp, b.lanes, b.span, &format!("barrier {}", b.id));
        }
        for c in &host.cluster_waits {
            add(c.ctx.header().warp as usize, c.lanes, c.span, "the cluster barrier");
        }
        for (w, warp) in host.warps.iter().enumerate() {
            warp.yielded.iter().for_each(|y| add(w, y.lanes, y.span, "memory"));
            for p in &warp.parked {
                add(w, p.lanes, p.ctx.tables().syncs[p.site].span, &format!("lanes {:#010x}", p.members));
            }
            for ctx in std::iter::once(host.base_ctx(w)).chain(warp.calls.iter().map(|a| a.ctx)) {
                pending(ctx).into_iter().for_each(|(lanes, span)| add(w, lanes, span, "its turn"));
            }
            let base = host.base_ctx(w);
            let h = base.header();
            if h.wait_epoch == self.epoch() && base.is_runnable() {
                add(w, h.live, plain_barrier_span(base.tables(), h.state), "barrier 0");
            }
        }
        // Lanes that code holds, as when it was stopped in a loop, stand in no list.
        for w in 0..host.warps.len() {
            let told = found.iter().filter(|(x, ..)| *x == w).fold(0, |m, (_, lanes, ..)| m | lanes);
            let ctx = host.warps[w].calls.last().map_or(host.base_ctx(w), |a| a.ctx);
            let left = host.live(w) & !told;
            let state = ctx.header().state as usize;
            let span = ctx.tables().block_spans.get(state).copied().unwrap_or(Span::NONE);
            if left != 0 {
                found.push((w, left, span, "its turn".into()));
            }
        }
        found.sort_by_key(|(w, lanes, ..)| (*w, lanes.trailing_zeros()));
        let waiter = |(w, lanes, span, what): (usize, u32, Span, String)| Waiter {
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
