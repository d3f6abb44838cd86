//! What a cta of compiled code does for a counted launch beside its code.

use super::cta::CtaRun;
use crate::grid::Grid;
use crate::warp::context::Ctx;
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

    /// Code of a call has come back: the statements that it executed are the warp's.
    pub(super) fn count_call(&mut self, warp: usize, call: Ctx) {
        let host = self.host();
        // SAFETY: tables belong to the program, and are never written.
        let (Some(at), Some(of_call)) = (unsafe { &*host.base_tables }.work, call.tables().work) else { return };
        Work::of(host.base_ctx(warp), at).add(Work::of(call, of_call).take());
    }

    /// Its launch has ended: what it counted is part of the sum.
    pub(super) fn hand_in(&mut self) {
        self.host().counted = None;
        self.ctx().counts = 0;
    }
}
