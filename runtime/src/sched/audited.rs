//! What a cta of compiled code tells an audit beside accesses: that it begins and ends, who meets at barriers, who has exited. As `interp::audited`.

use std::sync::Arc;

use handloom_audit::Audit;
use handloom_diag::Span;
use handloom_interp::barrier::Barriers;
use handloom_interp::{SharedAudit, own_memory};

use super::cta::CtaRun;
use crate::grid::Ended;
use crate::lock::lock;
use crate::memory::Undo;
use crate::rows;
use crate::run::Order;
use crate::warp::told::Told;

impl CtaRun {
    /// Lets routines tell an audit, and puts contexts into the order in which the seed lets warps take their turns.
    pub(super) fn tell(&mut self, audit: &SharedAudit, undo: Option<&Undo>) {
        let told = Told::new(audit, undo);
        let n = self.full.len();
        let seed = self.host_ref().env.seed;
        let order = Order::new(n as u64, seed);
        let order: Vec<usize> = (0..n as u64).map(|i| order.at(i) as usize).collect();
        let host = self.host();
        host.base.arrange(&order);
        host.told = Some(told);
    }

    /// The cta begins.
    pub(super) fn tell_start(&mut self, audit: &SharedAudit, undo: Option<&Undo>) {
        let is_silent = self.program.passes_barriers();
        let full = self.full.clone();
        let host = self.host();
        let env = &host.env;
        let cluster = (env.cluster_size() > 1).then(|| env.linear_cluster());
        let shared = (env.shared_base, env.shared_size.into());
        lock(audit).follow_proxies(env.late.is_some());
        lock(audit).start_cta(env.linear_ctaid(), env.threads(), cluster, shared);
        if let Some(told) = host.told.as_mut().filter(|told| !Arc::ptr_eq(&told.audit, audit)) {
            // Another launch of the same code: its audit numbers statements anew.
            *told = Told::new(audit, undo);
        }
        if let Some((_, filled)) = host.told.as_mut().and_then(|told| told.bits.as_mut()) {
            filled.begin(own_memory(&host.env));
        }
        if is_silent {
            return;
        }
        let mut barriers = Barriers::new(&full);
        barriers.keep_met();
        host.barriers = Some(barriers);
        host.was_left = true;
        full.iter().zip(&mut host.warps).for_each(|(lanes, w)| w.known_live = *lanes);
    }

    /// The cta has ended.
    pub(super) fn tell_end(&mut self) {
        self.host().tell(Audit::end_cta);
    }

    /// Lanes of a warp have exited: whoever waited for nobody else goes on.
    pub(super) fn after_exit(&mut self, w: usize) -> Result<(), Ended> {
        self.sync_live(Span::NONE)?;
        self.pass_barriers();
        self.pass_cluster_waits();
        rows::complete_parked(self.host(), w);
        Ok(())
    }

    /// Whether nothing more is asked for, because something was found, or the launch is to be run again.
    pub(super) fn has_enough(&mut self) -> bool {
        self.host().told.as_ref().is_some_and(|told| {
            told.bits.as_ref().is_some_and(|(undo, _)| undo.is_doubted()) || lock(&told.audit).is_enough()
        })
    }
}
