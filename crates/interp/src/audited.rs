//! What a cta tells an audit beside accesses: that it begins, fences, waits.

use std::sync::Arc;

use handloom_audit::{Audit, Does, Site, Thread};
use handloom_diag::Span;
use handloom_ir::types::{Order, Scope, StateSpace};

use crate::cta::{Cta, Group};
use crate::env::CtaEnv;
use crate::order::StartOrder;
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
        lock(audit).start_cta(env.linear_ctaid(), env.threads(), cluster, (env.shared_base, env.shared_size.into()));
        self.barriers.keep_met();
        // What a GPU leaves open, the seed decides: which warp comes first, and which lane of an access.
        self.order = Some(StartOrder::new(n_warps(&self.env), self.env.seed));
        self.audit = Some(Arc::clone(audit));
    }

    /// Lanes execute a fence.
    pub(crate) fn tell_fence(&mut self, span: Span, order: Order, scope: Scope, group: Group) {
        let Some(audit) = &self.audit else { return };
        let mut audit = lock(audit);
        let site = audit.site(Site { span, does: Does::Fence, order, scope, space: StateSpace::Generic });
        for t in group.threads() {
            audit.fence(Thread::new(self.env.number(), t), site, order, scope);
        }
        audit.end_op();
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
