//! What is told to an audit of the run: accesses of lanes, and events that order them.
//!
//! Local memory is each thread's own, constants and parameters are never written: nothing is told of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use handloom_audit::{Access, Audit, Does, Site, Thread};
use handloom_diag::Span;
use handloom_ir::types::{Order, Scope, StateSpace};

use crate::env::CtaEnv;

/// An audit that the blocks of a launch tell.
pub type SharedAudit = Arc<Mutex<Audit>>;

/// An audit for one event.
pub(crate) fn lock(audit: &SharedAudit) -> MutexGuard<'_, Audit> {
    audit.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells of the accesses of one op of a warp, lane by lane.
pub struct Witness<'a> {
    audit: MutexGuard<'a, Audit>,
    cta: u32,
    span: Span,
    does: Does,
    order: Order,
    scope: Scope,
    /// Numbers of the site in global and in shared memory.
    sites: [Option<u32>; 2],
}

impl<'a> Witness<'a> {
    /// Of an op in a block. `audit`: none if nobody asked for it.
    pub fn of(
        audit: Option<&'a SharedAudit>,
        env: &CtaEnv,
        span: Span,
        does: Does,
        order: (Order, Scope),
    ) -> Option<Witness<'a>> {
        let (order, scope) = order;
        Some(Witness { audit: lock(audit?), cta: env.number(), span, does, order, scope, sites: [None; 2] })
    }

    /// A thread of the block accesses bytes that lie in a state space. `same_value`: a write of what is there; `failed`: a `cas` that writes nothing.
    pub fn tell(&mut self, thread: usize, addr: u64, bytes: u32, space: StateSpace, same_value: bool, failed: bool) {
        let (space, i) = match space {
            StateSpace::Global => (StateSpace::Global, 0),
            StateSpace::Shared | StateSpace::SharedCluster => (StateSpace::Shared, 1),
            StateSpace::Generic
            | StateSpace::Reg
            | StateSpace::Sreg
            | StateSpace::Const
            | StateSpace::Local
            | StateSpace::ParamEntry
            | StateSpace::ParamFunc
            | StateSpace::Tex => return,
        };
        let Witness { span, does, order, scope, .. } = *self;
        let site = match self.sites[i] {
            Some(site) => site,
            None => *self.sites[i].insert(self.audit.site(Site { span, does, order, scope, space })),
        };
        let bytes = u8::try_from(bytes).unwrap_or(u8::MAX);
        self.audit.access(site, Access { thread: Thread::new(self.cta, thread), addr, bytes, failed, same_value });
    }
}

impl Drop for Witness<'_> {
    fn drop(&mut self) {
        self.audit.end_op();
    }
}
