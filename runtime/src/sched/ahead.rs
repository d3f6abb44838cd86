//! A cta whose code goes on by itself: to its end in one call, and from one cta of the grid to the next.

use handloom_plan::abi::Reason;

use super::cta::CtaRun;
use super::deep;
use crate::grid::Grid;

impl CtaRun {
    /// Lets code of a cta that was just started go on with up to `most` further ones of the grid.
    #[inline]
    pub(crate) fn allow(&mut self, grid: &Grid, most: u64) {
        // SAFETY: tables belong to the program, and are never written.
        let runs_on = unsafe { &*self.host_ref().base_tables }.runs_on;
        let host = self.host_ref();
        let is_alone = host.cluster.is_none() && host.env.late.is_none();
        let is_kept = !grid.clears_local && host.env.shared_rules.reserved == 0;
        let is_simple = runs_on && self.fresh && is_alone && is_kept;
        let cta = self.ctx();
        let more = if is_simple { u32::try_from(most).unwrap_or(u32::MAX) } else { 0 };
        cta.more = more;
        self.ahead = (more, 0);
    }

    /// The ctas that have ended before the one that is placed now, since code was allowed to run more than one.
    pub(crate) fn passed(&self) -> u64 {
        u64::from(self.ahead.1)
    }

    /// Notes which cta code is at.
    fn follow(&mut self) {
        self.host().sums.flush();
        let (more, passed) = self.ahead;
        let now = more - self.ctx().more;
        if now != passed {
            self.ahead.1 = now;
            let ctaid = self.ctx().ctaid;
            let host = self.host();
            host.env.ctaid = ctaid;
            host.memory.number += u64::from(now - passed);
        }
    }

    /// Runs a cta that was just started. Says whether it ended at once and left nothing to do, as most do; else [`CtaRun::round`] goes on with it. The
    /// answer comes in a register: the whole result of a round is written in parts and then read at once, which waits three times a launch.
    #[inline]
    pub(crate) fn sweeps(&mut self) -> bool {
        let host = self.host_ref();
        let is_simple = host.told.is_none() && host.counted.is_none() && host.env.late.is_none();
        if !self.fresh || !is_simple {
            return false;
        }
        (self.fresh, self.holds) = (false, false);
        let number = self.call_entry();
        let cta = self.ctx();
        let is_through = number == Reason::Phase as u32 && cta.retired == cta.n_warps;
        let host = self.host();
        self.done = is_through && host.failure.is_none() && host.memory.view.get_mut().space().tensors.is_empty();
        self.reported = (!self.done).then_some(number);
        self.done
    }

    /// Calls code with the contexts of the entry. Why it came back.
    #[inline]
    pub(super) fn call_entry(&mut self) -> u32 {
        let waits = self.host_ref().barriers.as_ref().is_some_and(|b| !b.is_idle());
        self.ctx().outside = u32::from(waits);
        // SAFETY: the program keeps the code. The block was set up by `new` and `start` as the contract says, its tables are those of
        // the code, and no reference into it, the contexts or the host state is alive.
        let number = unsafe { deep::call(&*self.code, self.cta) };
        self.follow();
        number
    }
}
