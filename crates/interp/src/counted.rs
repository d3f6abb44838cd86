//! What is told to a counter of the launch: statements that begin, accesses, ways, barriers.

use std::sync::{Arc, MutexGuard, PoisonError};

use handloom_counts::{Counter, Space};
use handloom_diag::Span;
use handloom_ir::simt::{Does, Inst};
use handloom_ir::types::StateSpace;

use crate::access::Request;
use crate::cta::{Cta, Group};
use crate::env::CLUSTER_STRIDE;
use crate::memory::Memory;
use crate::numbers::number;
use crate::witness::SharedCounter;

fn lock(counter: &SharedCounter) -> MutexGuard<'_, Counter> {
    counter.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cta<'_> {
    /// Tells a counter all that happens from now on. Call it before anything does.
    pub fn count(&mut self, counter: &SharedCounter) {
        self.counter = Some(Arc::clone(counter));
    }

    fn told(&self) -> Option<MutexGuard<'_, Counter>> {
        self.counter.as_ref().map(lock)
    }

    /// Lanes begin a statement.
    pub(crate) fn count_mark(&self, inst: &Inst, group: Group) {
        let Some(mut counter) = self.told() else { return };
        let acts = |t: &usize| inst.guard().is_none_or(|g| self.get(*t, g) & 1 == 1);
        let active = group.threads().filter(acts).fold(0, |mask, t| mask | 1 << (t % 32));
        counter.mark(inst.span, (self.env.linear_ctaid(), group.warp), group.lanes, active);
    }

    /// Lanes access memory: threads with generic addresses.
    pub(crate) fn count_access(
        &self,
        span: Span,
        request: &Request,
        located: &[(usize, u64)],
        does: Does,
        mem: &dyn Memory,
    ) {
        let Some(mut counter) = self.told() else { return };
        let Some((skip, bytes)) = request.extent() else { return };
        let mut left: Vec<(Space, (usize, u64))> = Vec::new();
        for (t, addr) in located.iter().copied() {
            let Some(space) = Space::of(request.falls_into(addr, mem)) else { continue };
            let addr = addr + skip;
            let inside = addr.wrapping_sub(self.env.shared_base);
            let at = match space {
                // The place in the thread's own says which lanes share a sector.
                Space::Local => addr.wrapping_sub(self.env.local_base(number(t))),
                // Of all blocks one variable is one place; what lies in another block of the cluster keeps its address.
                Space::Shared if inside < CLUSTER_STRIDE => inside,
                Space::Shared | Space::Global | Space::Const | Space::Param => addr,
            };
            left.push((space, (t % 32, at)));
        }
        // Lanes of a generic access may be in different spaces.
        while let Some((space, _)) = left.first().copied() {
            let lanes: Vec<_> = left.extract_if(.., |(other, _)| *other == space).map(|(_, lane)| lane).collect();
            counter.access(span, (space, does, bytes), &lanes);
        }
    }

    /// A copy that may come late moves bytes.
    pub(crate) fn count_copy(&self, span: Span, bytes: usize, space: StateSpace) {
        if let (Some(mut counter), Some(_)) = (self.told(), Space::of(space)) {
            counter.copy(span, u64::try_from(bytes).unwrap_or(0));
        }
    }

    /// Lanes go the ways of a `brx.idx`.
    pub(crate) fn count_ways(&self, span: Span, ways: &[usize]) {
        if let Some(mut counter) = self.told() {
            counter.scatter(span, ways);
        }
    }

    /// Warps are let go by barriers: their numbers, the warps, and where they waited.
    pub(crate) fn count_meeting(&self, mut released: Vec<(u32, usize, Span)>) {
        let Some(mut counter) = self.told() else { return };
        while let Some((id, _, _)) = released.first().copied() {
            let warps: Vec<_> = released.extract_if(.., |(of, _, _)| *of == id).map(|(_, w, span)| (w, span)).collect();
            counter.meet(self.env.linear_ctaid(), &warps);
        }
    }

    /// The block has ended.
    pub(crate) fn count_end(&self) {
        if let Some(mut counter) = self.told() {
            counter.end(self.env.linear_ctaid());
        }
    }
}
