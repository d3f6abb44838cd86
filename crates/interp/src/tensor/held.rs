//! What an op works on: the tensor memory of its CTA, or that of a pair.

use std::sync::MutexGuard;

use handloom_ir::simt::TensorOp;
use handloom_ir::trap::TrapKind;

use super::memory::{One, Tensor, Tensors, lock};
use crate::env::CtaEnv;
use crate::transfer::reach::Fault;

/// The tensor memory that an op works on.
#[derive(Clone, Debug)]
pub struct Held {
    /// That of the CTA, or of both CTAs of its pair by the lowest bit of their ranks.
    tensors: Vec<One>,
    own: usize,
    /// The rank of the first.
    rank: u32,
}

impl Held {
    /// Finds what an op of a CTA works on.
    ///
    /// # Errors
    /// It wants a pair of CTAs, and there is none.
    pub fn of(op: TensorOp, env: &CtaEnv, tensors: &Tensors) -> Result<Held, Fault> {
        if !op.is_of_pair() {
            return Ok(Held { tensors: vec![tensors.find(env.shared_base)], own: 0, rank: 0 });
        }
        let rank = env.cluster_rank();
        if (rank | 1) >= env.cluster_size() {
            let size = env.cluster_size();
            let text = format!("`.cta_group::2` in block {rank} of a cluster of {size}, which has no block beside it");
            return Err(Fault::of(TrapKind::BadTensor, text));
        }
        let base = |rank: u32| usize::try_from(rank).ok().and_then(|r| env.cluster.shared_bases.get(r));
        let both = [rank & !1, rank | 1].map(|r| base(r).copied().unwrap_or(env.shared_base));
        Ok(Held { tensors: both.map(|b| tensors.find(b)).into(), own: usize::from(rank % 2 == 1), rank: rank & !1 })
    }

    pub(super) fn own(&self) -> usize {
        self.own
    }

    /// The rank of a CTA of the pair.
    pub(super) fn rank(&self, cta: u32) -> u32 {
        self.rank + cta
    }

    /// How many allocations were given back so far.
    pub(crate) fn returned(&self) -> u32 {
        self.tensors.iter().map(|one| lock(one).returned()).sum()
    }

    pub(super) fn lock(&self, cta: usize) -> MutexGuard<'_, Tensor> {
        lock(&self.tensors[cta])
    }
}
