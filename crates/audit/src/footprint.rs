//! Which bytes of global memory a launch has touched, and how: what is held against other launches and copies that nothing orders with it.

use handloom_ir::types::{Scope, StateSpace};

use crate::event::Thread;
use crate::finding::Place;
use crate::order::Audit;
use crate::race::strength_of;
use crate::shadow::Entry;

/// Neighbouring bytes that were touched in one way by one statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Touched {
    /// The first byte.
    pub addr: u64,
    /// How many.
    pub bytes: u64,
    /// They were written, or else read.
    pub writes: bool,
    /// All that did so are strong and reach the whole device.
    pub is_strong: bool,
    /// One of those who did.
    pub place: Place,
}

impl Audit {
    /// What is remembered of global memory, by address: writes apart from reads, weak accesses apart from strong ones.
    ///
    /// What a write covers is not remembered; it conflicts with all that the write conflicts with.
    pub fn footprint(&mut self) -> Vec<Touched> {
        self.interrupt();
        self.settle_range(0, u64::MAX);
        self.touched_in(0, u64::MAX, |_| true)
    }

    /// The same of granules that begin in a range, and of those accesses for which something holds. Nothing is put off any more.
    pub(crate) fn touched_in(&self, from: u64, end: u64, holds: impl Fn(&Entry) -> bool) -> Vec<Touched> {
        let mut open: [Option<Touched>; 4] = [None; 4];
        let mut all = Vec::new();
        for (at, list) in self.shadow.within(from, end) {
            for (kind, open) in open.iter_mut().enumerate() {
                let (writes, is_strong) = (kind & 1 == 1, kind & 2 == 2);
                let is_of = |e: &&Entry| {
                    let tag = e.tag();
                    let reaches = strength_of(**e).is_some_and(|scope| scope >= Scope::Gpu);
                    (if writes { tag.writes() } else { tag.reads() }) && reaches == is_strong && holds(e)
                };
                let mask = list.iter().filter(is_of).fold(0, |mask, e| mask | e.tag().mask());
                let place = list.iter().find(is_of).and_then(|e| self.place(*e));
                let Some(place) = place.filter(|p| p.site.space == StateSpace::Global) else { continue };
                for byte in (0..4).filter(|byte| mask >> byte & 1 == 1) {
                    let addr = at + byte;
                    let goes_on = open.as_mut().filter(|t| t.addr + t.bytes == addr && t.place.site == place.site);
                    if let Some(t) = goes_on {
                        t.bytes += 1;
                    } else {
                        all.extend(open.replace(Touched { addr, bytes: 1, writes, is_strong, place }));
                    }
                }
            }
        }
        all.extend(open.into_iter().flatten());
        all
    }

    fn place(&self, e: Entry) -> Option<Place> {
        let site = usize::try_from(e.tag().site()).ok().and_then(|i| self.sites.get(i)).copied()?;
        let lane = u8::try_from(e.lanes.trailing_zeros() & 31).unwrap_or(0);
        Some(Place { site, thread: Thread { cta: e.cta(), warp: e.warp(), lane } })
    }
}
