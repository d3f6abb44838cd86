//! What is told to an audit of the run: accesses of lanes, and events that order them.
//!
//! Local memory is each thread's own, constants and parameters are never written: nothing is told of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use handloom_audit::init::{Decides, Shade, Source};
use handloom_audit::{Access, Audit, Does, Proxy, Site, Thread, Turn};
use handloom_counts::Counter;
use handloom_diag::Span;
use handloom_ir::mbarrier;
use handloom_ir::types::{Order, Scope, StateSpace};

use crate::env::{CLUSTER_STRIDE, CtaEnv};

/// An audit that the blocks of a launch tell.
pub type SharedAudit = Arc<Mutex<Audit>>;

/// A counter that the blocks of a launch tell.
pub type SharedCounter = Arc<Mutex<Counter>>;

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
    proxy: Proxy,
    /// When it was begun, if that was before.
    begun: u32,
    /// Numbers of the site in global and in shared memory.
    sites: [Option<u32>; 2],
    /// Shared memory of the block.
    shared_base: u64,
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
        let (audit, cta, shared_base) = (lock(audit?), env.number(), env.shared_base);
        Some(Witness {
            audit,
            cta,
            span,
            does,
            order,
            scope,
            proxy: Proxy::Generic,
            begun: 0,
            sites: [None; 2],
            shared_base,
        })
    }

    /// The same by a way that is not that of loads and stores. `begun`: when, as the audit has numbered it.
    pub fn through(mut self, proxy: Proxy, begun: u32) -> Witness<'a> {
        (self.proxy, self.begun) = (proxy, begun);
        self
    }

    /// A thread of the block accesses bytes that lie in a state space. `same_value`: a write of what is there; `failed`: a `cas` that writes nothing.
    pub fn tell(&mut self, thread: usize, addr: u64, bytes: u32, space: StateSpace, same_value: bool, failed: bool) {
        let bytes = u8::try_from(bytes).unwrap_or(u8::MAX);
        let thread = Thread::new(self.cta, thread);
        self.tell_access(
            Access { thread, addr, bytes, failed, same_value, turn: Turn::None, begun: self.begun },
            space,
        );
    }

    /// The same of 8 bytes that are an `mbarrier` object.
    pub fn tell_turn(&mut self, thread: usize, addr: u64, space: StateSpace, turn: Turn) {
        let thread = Thread::new(self.cta, thread);
        self.tell_access(Access { thread, addr, bytes: 8, turn, ..Access::NONE }, space);
    }

    /// The opaque state of an `mbarrier` object that is as it was found: with the number of its phase, which programs cannot see.
    pub fn state(&self, object: u64, found: u64) -> u64 {
        let kept = (1 << mbarrier::BYTES_BIT) - 1;
        found & kept | self.audit.phases_of(object) << mbarrier::BYTES_BIT
    }

    fn tell_access(&mut self, access: Access, space: StateSpace) {
        let Some((space, i)) = self.audit.told_space(space) else { return };
        let Witness { span, does, order, scope, proxy, .. } = *self;
        let site = match self.sites[i] {
            Some(site) => site,
            None => *self.sites[i].insert(self.audit.site(Site { span, does, order, scope, space, proxy })),
        };
        self.audit.access(site, access);
    }
}

/// Which bits nobody wrote.
impl Witness<'_> {
    /// Of at most 8 bytes that a thread reads.
    pub fn load(&mut self, thread: usize, addr: u64, bytes: u32, space: StateSpace) -> Shade {
        let inside = addr.wrapping_sub(self.shared_base);
        let is_shared = matches!(space, StateSpace::Shared | StateSpace::SharedCluster);
        let offset = match is_shared {
            true if inside < CLUSTER_STRIDE => Some(inside),
            true => self.audit.shared_offset(self.cta, addr),
            false => None,
        };
        let place = (space, offset);
        let (span, who) = (self.span, Thread::new(self.cta, thread));
        self.audit.init().map_or_else(Shade::default, |init| init.load(span, who, addr, bytes, place))
    }

    /// A shade, and this place as its root if it has none.
    pub fn rooted(&mut self, thread: usize, shade: Shade) -> Shade {
        if shade.is_known() || !shade.is_new() {
            return shade;
        }
        let (span, who) = (self.span, Thread::new(self.cta, thread));
        let Some(init) = self.audit.init() else { return Shade::default() };
        Shade { root: init.origin(span, who, Source::Register), ..shade }
    }

    /// A thread has stored elements with one access: their addresses, bytes, and shades.
    pub fn store(&mut self, thread: usize, elements: &[(u64, u32, Shade)], space: StateSpace) {
        let (span, who) = (self.span, Thread::new(self.cta, thread));
        let Some(init) = self.audit.init() else { return };
        let whole = elements.iter().map(|(_, bytes, _)| bytes).sum();
        for (addr, bytes, shade) in elements {
            init.store(*addr, *bytes, whole, *shade);
        }
        if space == StateSpace::Global {
            init.stored(span, who, elements);
        }
    }

    /// What a thread read decides something.
    pub fn decides(&mut self, class: Decides, thread: usize, shade: Shade) {
        let (span, who) = (self.span, Thread::new(self.cta, thread));
        if let Some(init) = self.audit.init() {
            init.decides(class, span, who, shade);
        }
    }

    /// Bytes are copied with what is not known of them. `to_global`: where the host sees them.
    pub fn copy(&mut self, thread: usize, from: u64, to: u64, bytes: u64, to_global: bool) {
        let mut done = 0;
        while done < bytes {
            let n = (bytes - done).min(8);
            let size = u32::try_from(n).unwrap_or(8);
            let shade = self.load(thread, from + done, size, StateSpace::Shared);
            let space = if to_global { StateSpace::Global } else { StateSpace::Shared };
            self.store(thread, &[(to + done, size, shade)], space);
            done += n;
        }
    }
}

impl Drop for Witness<'_> {
    fn drop(&mut self) {
        self.audit.end_op();
    }
}
