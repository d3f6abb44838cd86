//! What a cta tells an audit beside accesses: that it begins, fences, waits.

use std::sync::Arc;

use handloom_audit::misuse::{Misuse, Wrong};
use handloom_audit::{Audit, Does, ProxyFence, Site, Thread};
use handloom_diag::Span;
use handloom_ir::types::{Order, Scope, StateSpace};
use handloom_ir::{mbarrier, simt};

use crate::cta::{Cta, Group};
use crate::env::CtaEnv;
use crate::order::StartOrder;
use crate::pace::pauses;
use crate::under_way::Who;
use crate::warp::WARP_SIZE;
use crate::witness::{SharedAudit, lock};

/// Warps of a block.
fn n_warps(env: &CtaEnv) -> u64 {
    u64::from(env.threads().div_ceil(WARP_SIZE))
}

impl Cta<'_> {
    /// Tells an audit all that happens from now on. Call it before anything does.
    pub fn audit(&mut self, audit: &SharedAudit) {
        let env = &self.env;
        let cluster = (env.cluster_size() > 1).then(|| env.linear_cluster());
        let mut told = lock(audit);
        told.follow_proxies(env.late.is_some());
        told.start_cta(env.linear_ctaid(), env.threads(), cluster, (env.shared_base, env.shared_size.into()));
        if let Some(init) = told.init() {
            for (base, bytes) in own_memory(env) {
                init.renew(base, bytes);
            }
            self.shaded = true;
        }
        self.traced = told.memory().is_some();
        self.pauses = told.has_races() && pauses(env.seed);
        drop(told);
        for t in 0..self.threads.len() {
            let Some(func) = self.threads[t].frames.first().map(|frame| frame.func) else { continue };
            let (shades, traces) = (self.new_shades(func), self.new_traces(func));
            let frame = self.threads[t].frame_mut();
            (frame.shades, frame.traces) = (shades, traces);
        }
        self.barriers.keep_met();
        // What a GPU leaves open, the seed decides: which warp comes first, and which lane of an access.
        self.order = Some(StartOrder::new(n_warps(&self.env), self.env.seed));
        self.audit = Some(Arc::clone(audit));
    }

    /// Barriers or masks are used in a way that is not allowed. `object`: address of an `mbarrier` object.
    pub(crate) fn tell_misuse(
        &self,
        wrong: Wrong,
        first: (Span, usize),
        second: Option<(Span, usize)>,
        object: Option<u64>,
    ) {
        let step = |(span, thread): (Span, usize)| (span, self.who(thread));
        let object = object.map(|addr| (addr, addr.wrapping_sub(self.env.shared_base)));
        let misuse = Misuse { wrong, first: step(first), second: second.map(step), object, times: 1 };
        self.tell(|audit, _| {
            if let Some(misuses) = audit.misuses() {
                misuses.add(misuse);
            }
        });
    }

    /// A copy is not waited for as it should be. `access`: what comes too early.
    pub(crate) fn tell_copy(&self, wrong: Wrong, copy: Who, access: Option<(Span, usize)>) {
        let cta = u32::try_from(copy.cta).unwrap_or(u32::MAX);
        let first = (copy.span, Thread::new(cta, usize::try_from(copy.thread).unwrap_or(0)));
        let second = access.map(|(span, thread)| (span, self.who(thread)));
        self.tell(|audit, _| {
            if let Some(misuses) = audit.misuses() {
                misuses.add(Misuse { wrong, first, second, object: None, times: 1 });
            }
        });
    }

    /// Lanes of a warp that waited for one barrier go on: did they wait at one instruction?
    pub(crate) fn tell_divergence(&self, group: Group) {
        let mut at = group.threads().map(|t| (self.threads[t].span, t));
        if self.audit.is_some()
            && let Some(first) = at.next()
            && let Some(second) = at.find(|(span, _)| *span != first.0)
        {
            self.tell_misuse(Wrong::DivergentWarp, first, Some(second), None);
        }
    }

    /// The block has ended.
    pub(crate) fn tell_end(&self) {
        self.tell(Audit::end_cta);
        self.with_init(|init| own_memory(&self.env).into_iter().for_each(|(base, bytes)| init.settle(base, bytes)));
    }

    /// Lanes execute a fence.
    pub(crate) fn tell_fence(&mut self, span: Span, order: Order, scope: Scope, group: Group) {
        let Some(audit) = &self.audit else { return };
        let mut audit = lock(audit);
        let site = audit.site(Site { span, does: Does::Fence, order, scope, space: StateSpace::Generic, ..Site::NONE });
        for t in group.threads() {
            audit.fence(Thread::new(self.env.number(), t), site, order, scope);
        }
        audit.end_op();
    }

    /// Lanes execute a proxy fence.
    pub(crate) fn tell_proxy_fence(&self, fence: simt::ProxyFence, threads: impl Iterator<Item = usize>) {
        let fence = match fence {
            simt::ProxyFence::Async(None) => ProxyFence::Async([true; 2]),
            simt::ProxyFence::Async(Some(space)) => {
                ProxyFence::Async([space == StateSpace::Global, space != StateSpace::Global])
            }
            simt::ProxyFence::MapRelease => ProxyFence::MapRelease,
            simt::ProxyFence::MapAcquire => ProxyFence::MapAcquire,
        };
        threads.for_each(|t| self.tell(|audit, _| audit.proxy_fence(self.who(t), fence)));
    }

    /// A thread asks by the word that an arrival has returned whether the phase of that has ended.
    pub(crate) fn check_state(&self, span: Span, thread: usize, object: u64, state: u64) {
        let is_state = state >> mbarrier::COUNT_BITS & mbarrier::PENDING != 0;
        let mut late = false;
        self.tell(|audit, _| {
            let since = audit.phases_of(object).wrapping_sub(state >> mbarrier::BYTES_BIT);
            late = audit.misuses().is_some() && since & (u64::MAX >> mbarrier::BYTES_BIT) >= 2;
        });
        if is_state && late {
            self.tell_misuse(Wrong::MbarrierPhase, (span, thread), None, Some(object));
        }
    }

    /// A thread has waited for a phase of the cluster barrier.
    pub(crate) fn tell_cluster_wait(&self, thread: usize, phase: u64) {
        self.tell(|audit, _| audit.cluster_wait(Thread::new(self.env.number(), thread), phase));
    }

    /// Something happened to the clocks of the block.
    pub(crate) fn tell(&self, what: impl FnOnce(&mut Audit, u64)) {
        if let Some(audit) = &self.audit {
            what(&mut lock(audit), self.env.linear_ctaid());
        }
    }
}

/// Memory of a block that begins without contents, by address and bytes: shared memory but for its reserved part, and local memory.
pub fn own_memory(env: &CtaEnv) -> [(u64, u64); 2] {
    let shared = env.shared_base.wrapping_add(u64::from(env.shared_rules.reserved));
    [(shared, u64::from(env.own_shared())), (env.local_base, env.local_stride * u64::from(env.threads()))]
}
