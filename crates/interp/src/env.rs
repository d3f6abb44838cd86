//! What a cta is told by its launch.

use handloom_diag::Span;
use handloom_ir::simt::SharedRules;
use handloom_ir::trap::OwnMemory;
use handloom_ir::types::StateSpace;

use crate::under_way::{UnderWay, Who};

pub use handloom_ir::types::CLUSTER_STRIDE;

/// The cluster that a cta belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClusterEnv {
    /// Whether the launch or the kernel asked for clusters.
    pub explicit: bool,
    /// Ctas of a cluster in x, y, z.
    pub nctaid: [u32; 3],
    /// Base of the shared memory of each cta of the cluster, by rank. Empty for a cluster of one.
    pub shared_bases: Vec<u64>,
}

impl Default for ClusterEnv {
    fn default() -> Self {
        ClusterEnv { explicit: false, nctaid: [1; 3], shared_bases: Vec::new() }
    }
}

/// The launch as one cta sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CtaEnv {
    /// `%ntid`.
    pub ntid: [u32; 3],
    /// `%ctaid`.
    pub ctaid: [u32; 3],
    /// `%nctaid`.
    pub nctaid: [u32; 3],
    /// `%gridid`.
    pub gridid: u64,
    /// `%nsmid`; `%smid` is the linear cta number modulo it.
    pub nsmid: u32,
    /// Generic address of byte 0 of shared memory; a multiple of 1024.
    pub shared_base: u64,
    /// Bytes of shared memory: reserved, static and dynamic.
    pub shared_size: u32,
    /// How it is dealt out.
    pub shared_rules: SharedRules,
    /// Dynamic bytes among them.
    pub dynamic_shared: u32,
    /// Generic address of the local memory of thread 0; a multiple of 16.
    pub local_base: u64,
    /// Distance of two threads' local memory; a multiple of 16.
    pub local_stride: u64,
    /// Bytes of local memory of each thread.
    pub local_size: u64,
    /// Generic address of the entry's parameters.
    pub param_base: u64,
    /// `%envreg0` to `%envreg31`.
    pub envregs: [u32; 32],
    /// The cluster.
    pub cluster: ClusterEnv,
    /// Seed of the scheduling.
    pub seed: u64,
    /// What of the launch is under way, if what is asynchronous may come late.
    pub late: Option<UnderWay>,
}

impl Default for CtaEnv {
    /// One thread without memory.
    fn default() -> Self {
        CtaEnv {
            ntid: [1; 3],
            ctaid: [0; 3],
            nctaid: [1; 3],
            gridid: 0,
            nsmid: 1,
            shared_base: 0,
            shared_size: 0,
            shared_rules: SharedRules::default(),
            dynamic_shared: 0,
            local_base: 0,
            local_stride: 0,
            local_size: 0,
            param_base: 0,
            envregs: [0; 32],
            cluster: ClusterEnv::default(),
            seed: 0,
            late: None,
        }
    }
}

impl CtaEnv {
    /// Generic address of the local memory of a thread, by linear number in the cta.
    pub fn local_base(&self, thread: u32) -> u64 {
        self.local_base.wrapping_add(self.local_stride.wrapping_mul(u64::from(thread)))
    }

    /// Bytes of shared memory that are the program's own: static and dynamic.
    pub fn own_shared(&self) -> u32 {
        self.shared_size.saturating_sub(self.shared_rules.reserved)
    }

    /// Threads of the cta.
    pub fn threads(&self) -> u32 {
        self.ntid.iter().product()
    }

    /// `%tid` of a thread by linear number, x fastest.
    pub fn tid(&self, thread: u32) -> [u32; 3] {
        let [x, y, _] = self.ntid;
        [thread % x, thread / x % y, thread / x / y]
    }

    /// Ctas of the cluster.
    pub fn cluster_size(&self) -> u32 {
        self.cluster.nctaid.iter().product()
    }

    /// `%cluster_ctaid`.
    pub fn cluster_ctaid(&self) -> [u32; 3] {
        [0, 1, 2].map(|i| self.ctaid[i] % self.cluster.nctaid[i].max(1))
    }

    /// `%cluster_ctarank`.
    pub fn cluster_rank(&self) -> u32 {
        let [x, y, z] = self.cluster_ctaid();
        let [nx, ny, _] = self.cluster.nctaid;
        x + nx * (y + ny * z)
    }

    /// Base of the shared memory that a `.shared::cluster` offset names, and the offset in it; `None` if the cluster
    /// has no such cta.
    pub fn cluster_part(&self, offset: u64) -> Option<(u64, u64)> {
        let inside = offset % CLUSTER_STRIDE;
        let base = match (offset / CLUSTER_STRIDE).checked_sub(1) {
            None => Some(self.shared_base),
            Some(rank) if rank == u64::from(self.cluster_rank()) => Some(self.shared_base),
            Some(rank) => usize::try_from(rank).ok().and_then(|r| self.cluster.shared_bases.get(r)).copied(),
        };
        base.map(|b| (b, inside))
    }

    /// Generic address of a `.shared::cluster` offset. The offset of no cta gives an address that nobody may access.
    pub fn cluster_address(&self, offset: u64) -> u64 {
        // The upper half of a slab is never open.
        let nowhere = (self.shared_base, (offset % CLUSTER_STRIDE) | (CLUSTER_STRIDE / 2));
        let (base, inside) = self.cluster_part(offset).unwrap_or(nowhere);
        base.wrapping_add(inside)
    }

    /// The `.shared::cluster` offset of a generic address: plain for the own cta, by rank for others.
    pub fn cluster_offset(&self, addr: u64) -> u64 {
        let own = addr.wrapping_sub(self.shared_base);
        if own < CLUSTER_STRIDE {
            return own;
        }
        (1_u64..)
            .zip(&self.cluster.shared_bases)
            .find(|(_, base)| addr.wrapping_sub(**base) < CLUSTER_STRIDE)
            .map_or(own, |(slot, base)| slot * CLUSTER_STRIDE + (addr - base))
    }

    /// The shared or local memory that an access of a thread aimed at. `falls_into`: the space that the address would lie
    /// in as a generic one.
    pub fn aim(&self, thread: u32, space: StateSpace, addr: u64, falls_into: StateSpace) -> Option<OwnMemory> {
        // What the program calls its shared memory starts where its variables do.
        let shared = |base: u64| OwnMemory {
            space: StateSpace::Shared,
            base: base.wrapping_add(u64::from(self.shared_rules.reserved)),
            size: u64::from(self.own_shared()),
        };
        match (space, falls_into) {
            (StateSpace::Shared, _) => Some(shared(0)),
            (StateSpace::SharedCluster, _) => self.cluster_part(addr).map(|(_, inside)| shared(addr - inside)),
            (StateSpace::Local | StateSpace::ParamFunc, _) | (_, StateSpace::Local) => {
                Some(OwnMemory { space: StateSpace::Local, base: self.local_base(thread), size: self.local_size })
            }
            (_, StateSpace::Shared | StateSpace::SharedCluster) => {
                // What no cta of the cluster has lies in the upper half of a slab.
                let mut slabs = std::iter::once(&self.shared_base).chain(&self.cluster.shared_bases).copied();
                slabs.find(|base| addr.wrapping_sub(*base) < CLUSTER_STRIDE / 2).map(shared)
            }
            _ => None,
        }
    }

    /// Linear number of its cluster in the grid, x fastest.
    pub fn linear_cluster(&self) -> u32 {
        let shape = self.cluster.nctaid.map(|n| n.max(1));
        let [x, y, z] = [0, 1, 2].map(|i| self.ctaid[i] / shape[i]);
        let [nx, ny, _] = [0, 1, 2].map(|i| self.nctaid[i] / shape[i]);
        x.wrapping_add(nx.wrapping_mul(y.wrapping_add(ny.wrapping_mul(z))))
    }

    /// A thread of the cta at a statement.
    pub fn who(&self, thread: u32, span: Span) -> Who {
        Who { cta: self.linear_ctaid(), thread, span, begun: 0 }
    }

    /// Linear number of the cta in the grid as audits know it: those that do not fit are refused when they start.
    #[inline]
    pub fn number(&self) -> u32 {
        u32::try_from(self.linear_ctaid()).unwrap_or(u32::MAX)
    }

    /// Linear number of the cta in the grid, x fastest.
    #[inline]
    pub fn linear_ctaid(&self) -> u64 {
        let [x, y, z] = self.ctaid.map(u64::from);
        let [nx, ny, _] = self.nctaid.map(u64::from);
        x + nx * (y + ny * z)
    }
}
