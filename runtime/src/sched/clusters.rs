//! The barrier of a cluster, as a cta of compiled code meets it.

use handloom_audit::misuse::Wrong;
use handloom_interp::cluster::ClusterBarrier;
use handloom_ir::simt::BarKind;
use handloom_plan::abi::BarrierSite;

use super::cta::CtaRun;
use crate::grid::Ended;
use crate::warp::context::Ctx;
use crate::warp::host::ClusterWait;

impl CtaRun {
    fn cluster_barrier(&mut self) -> &mut ClusterBarrier {
        let full = self.full.clone();
        let host = self.host();
        if host.cluster.is_none() {
            let mut made = ClusterBarrier::new(&full, true);
            for (w, lanes) in full.iter().enumerate() {
                made.exit(w, lanes & !host.live(w));
            }
            host.cluster = Some(made);
        }
        host.cluster.get_or_insert_with(|| ClusterBarrier::new(&full, true))
    }

    pub(super) fn cluster_arrive(&mut self, ctx: Ctx, w: usize, lanes: u32, site: &BarrierSite) -> Result<(), Ended> {
        self.cluster_barrier();
        self.sync_live(site.span)?;
        match self.cluster_barrier().arrive(w, lanes) {
            Err(why) => Err(self.misuse(&why, site.span, w, lanes)),
            Ok(phase) => {
                let warp = &mut self.host().warps[w];
                (0..32).filter(|l| lanes >> l & 1 == 1).for_each(|l| warp.cluster_phase[l] = Some(phase));
                ctx.resume(site.next, lanes);
                let releases = site.kind == BarKind::ClusterArrive;
                self.host().tell(|audit, cta| audit.cluster_arrive(cta, phase, w, lanes, releases));
                if self.host().told.is_some() {
                    self.pass_cluster_waits();
                }
                Ok(())
            }
        }
    }

    /// Lets each lane of `all` wait for the phase that it arrived in.
    pub(super) fn cluster_wait(&mut self, all: ClusterWait) {
        self.cluster_barrier();
        let host = self.host();
        let w = all.ctx.header().warp as usize;
        for lane in (0..32).filter(|l| all.lanes >> l & 1 == 1) {
            let lanes = 1 << lane;
            match (host.warps[w].cluster_phase[lane].take(), &host.cluster) {
                (Some(phase), Some(c)) if !c.is_met(phase) => {
                    host.cluster_waits.push(ClusterWait { lanes, phase, ..all });
                }
                // Choice: waiting without having arrived is undefined; there is nothing to wait for.
                (phase, _) => {
                    let site = all.site();
                    all.ctx.resume(site.next, lanes);
                    match phase {
                        Some(phase) => host.tell_cluster_wait(ClusterWait { lanes, phase, ..all }),
                        None => {
                            let thread = 32 * w as u32 + lane as u32;
                            host.tell_misuse(Wrong::WaitWithoutArrival, (site.span, thread), None);
                        }
                    }
                }
            }
        }
    }

    /// Lets lanes go on whose phase of the cluster barrier is met. Says whether there were any.
    pub(super) fn pass_cluster_waits(&mut self) -> bool {
        let host = self.host();
        let Some(cluster) = &host.cluster else { return false };
        let (mut met, left): (Vec<_>, Vec<_>) =
            host.cluster_waits.drain(..).partition(|wait| cluster.is_met(wait.phase));
        host.cluster_waits = left;
        // As in the interpreter, by thread.
        met.sort_by_key(|wait| (wait.ctx.header().warp, wait.lanes.trailing_zeros()));
        for wait in &met {
            wait.ctx.resume(wait.site().next, wait.lanes);
            host.tell_cluster_wait(*wait);
        }
        !met.is_empty()
    }

    /// Phases of the cluster barrier that this cta has completed.
    pub(crate) fn cluster_phases(&mut self) -> u64 {
        if self.done {
            return u64::MAX;
        }
        self.host().cluster.as_ref().map_or(0, ClusterBarrier::local_phases)
    }

    /// Says how many phases all ctas of the cluster have completed.
    pub(crate) fn set_cluster_phases(&mut self, phases: u64) {
        if let Some(c) = &mut self.host().cluster {
            c.set_cluster_phases(phases);
        }
    }
}
