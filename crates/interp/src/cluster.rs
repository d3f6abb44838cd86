//! The barrier of a cluster, as far as one cta knows it.
//!
//! Each thread arrives once in a phase. The cta's part of a phase is complete when all its threads that are left have
//! arrived. A cluster of one cta completes the phase thereby; in a larger one the runtime says how many phases all ctas
//! have completed.
//!
//! # PTX ISA
//! Parallel Synchronization and Communication Instructions: barrier.cluster.

use crate::barrier::Misuse;

/// The cta's part of the cluster barrier.
#[derive(Clone, Debug)]
pub struct ClusterBarrier {
    /// By warp: lanes that have not exited.
    live: Vec<u32>,
    /// By warp: lanes that have arrived in the current phase.
    arrived: Vec<u32>,
    /// Phases that this cta has completed.
    local: u64,
    /// Phases that all ctas of a larger cluster have completed; `None` for a cluster of one.
    cluster: Option<u64>,
}

impl ClusterBarrier {
    /// A barrier at rest; `live[w]` holds the lanes that warp `w` starts with.
    pub fn new(live: &[u32], single: bool) -> ClusterBarrier {
        ClusterBarrier {
            live: live.to_vec(),
            arrived: vec![0; live.len()],
            local: 0,
            cluster: if single { None } else { Some(0) },
        }
    }

    /// Lanes of a warp arrive. Returns the number of the phase, which they may wait for.
    ///
    /// # Errors
    /// A lane has arrived in this phase already.
    pub fn arrive(&mut self, warp: usize, lanes: u32) -> Result<u64, Misuse> {
        let phase = self.local;
        if self.arrived[warp] & lanes != 0 || self.cluster.is_some_and(|met| met < phase) {
            return Err(Misuse::ClusterTwice);
        }
        self.arrived[warp] |= lanes;
        self.complete_if_met();
        Ok(phase)
    }

    /// Lanes of a warp end.
    pub fn exit(&mut self, warp: usize, lanes: u32) {
        self.live[warp] &= !lanes;
        self.complete_if_met();
    }

    /// Whether all threads of the cluster have arrived in the phase.
    pub fn is_met(&self, phase: u64) -> bool {
        phase < self.cluster.unwrap_or(self.local)
    }

    /// Phases that this cta has completed; all of them once its threads have exited.
    pub fn local_phases(&self) -> u64 {
        if self.live.iter().all(|lanes| *lanes == 0) { u64::MAX } else { self.local }
    }

    /// Says how many phases all ctas of the cluster have completed: the least of their
    /// [`local_phases`](Self::local_phases).
    pub fn set_cluster_phases(&mut self, phases: u64) {
        if self.cluster.is_some() {
            self.cluster = Some(phases);
        }
    }

    fn complete_if_met(&mut self) {
        let some = self.arrived.iter().any(|lanes| *lanes != 0);
        if some && self.live.iter().zip(&self.arrived).all(|(live, arrived)| live & !arrived == 0) {
            self.local += 1;
            self.arrived.fill(0);
        }
    }
}
