//! What a cta of compiled code does for a counted launch beside its code.

use super::cta::CtaRun;
use crate::grid::Grid;
use crate::warp::counted::{Counted, Work};

impl CtaRun {
    /// The cta begins: it counts for its launch, from nothing.
    pub(super) fn start_counting(&mut self, grid: &Grid) {
        let Some(sums) = &grid.sums else { return };
        let host = self.host();
        if host.counted.as_ref().is_none_or(|counted| !counted.is_of(sums)) {
            host.counted = Some(Counted::new(sums));
        }
        // SAFETY: tables belong to the program, and are never written.
        if let Some(at) = unsafe { &*host.base_tables }.work {
            (0..host.warps.len()).for_each(|w| _ = Work::of(host.base_ctx(w), at).take());
        }
        let counters = host.counted.as_mut().map_or(0, Counted::words);
        self.ctx().counts = counters;
    }

    /// Its launch has ended: what it counted is part of the sum.
    pub(super) fn hand_in(&mut self) {
        self.host().counted = None;
        self.ctx().counts = 0;
    }
}
