//! Tensor memory: who has which, and what `tcgen05` does with it.
//!
//! Each CTA has tensor memory of its own, found by the base of its shared memory, so that the CTAs of a pair find each other's. It is made when an op first
//! asks for it. [`Held::step`] is the meaning of all ops, for both engines; [`product`] that of products.
//!
//! Choice: what is asynchronous is done at once, as it may be: a program must not look at results before it waits, so that it cannot tell. An allocation
//! waits in a loop that the lowering makes; tensor memory of a CTA is not shared with other CTAs that would be on the same processor.
//!
//! Choice: tensor memory that is still allocated when its CTA ends is a trap, since the manual demands that it is deallocated.
//!
//! # PTX ISA
//! TensorCore 5th Generation Family Instructions.

mod descriptor;
mod memory;
mod product;
mod step;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use handloom_ir::simt::{Inst, TensorOp};
use handloom_ir::trap::{Trap, TrapKind};

use crate::cta::{Cta, Group};
use crate::env::CtaEnv;
use crate::memory::Memory;
use crate::numbers::number;
use crate::transfer::{Fault, Thread};

pub use memory::Tensor;
pub use step::Doer;

/// What an op changed and returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Done {
    /// The results, in the order of the op.
    pub values: [u64; 8],
    /// Something changed that another thread may wait for.
    pub changed: bool,
}

type One = Arc<Mutex<Tensor>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All tensor memory of a device that is in use.
#[derive(Debug, Default)]
pub struct Tensors {
    /// Whether there ever was any: CTAs that start ask for it.
    any: AtomicBool,
    /// By the base of the shared memory of the CTA.
    of: Mutex<BTreeMap<u64, One>>,
}

impl Tensors {
    fn find(&self, base: u64) -> One {
        self.any.store(true, Ordering::Relaxed);
        Arc::clone(lock(&self.of).entry(base).or_default())
    }

    /// Forgets what a CTA had at this place, before another one starts there.
    pub fn forget(&self, base: u64) {
        if self.any.load(Ordering::Relaxed) {
            lock(&self.of).remove(&base);
        }
    }

    /// Forgets what a CTA had that has ended, and returns the trap if it had not deallocated all of it.
    pub fn end(&self, env: &CtaEnv) -> Option<Box<Trap>> {
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        let one = lock(&self.of).remove(&env.shared_base)?;
        let (span, thread) = lock(&one).left()?;
        let mut trap = Trap::new(TrapKind::BadTensor, span, env.ctaid, env.tid(thread));
        trap.detail = "the block ended without `tcgen05.dealloc` of what this allocated".into();
        Some(Box::new(trap))
    }
}

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

    fn own(&self) -> usize {
        self.own
    }

    /// The rank of a CTA of the pair.
    fn rank(&self, cta: u32) -> u32 {
        self.rank + cta
    }

    fn lock(&self, cta: usize) -> MutexGuard<'_, Tensor> {
        lock(&self.tensors[cta])
    }
}

impl<'m> Cta<'m> {
    /// An op on tensor memory, in each lane or for all of them.
    pub(crate) fn tensor(
        &mut self,
        inst: &'m Inst,
        op: TensorOp,
        group: Group,
        mem: &mut dyn Memory,
    ) -> Result<(), Box<Trap>> {
        let held = Held::of(op, &self.env, &mem.tensors());
        let mut refused: Vec<(usize, Fault)> = Vec::new();
        let mut shared: Option<Done> = None;
        for t in group.threads() {
            let done = match (&held, shared) {
                (_, Some(done)) => Ok(done),
                (Err(fault), None) => Err(fault.clone()),
                (Ok(held), None) => {
                    let src: Vec<u64> = inst.src.iter().map(|v| self.get(t, *v)).collect();
                    let who = Doer { thread: number(t), span: inst.span };
                    held.step(op, &src, who, &mut Thread { cta: self, mem, thread: t })
                }
            };
            match done {
                Ok(done) => {
                    self.touched |= done.changed;
                    inst.dst.iter().zip(done.values).for_each(|(d, v)| self.set(t, *d, v));
                    shared = op.is_of_warp().then_some(done);
                }
                Err(fault) => refused.push((t, fault)),
            }
        }
        let Some((first, fault)) = refused.first() else { return Ok(()) };
        let same = refused.iter().filter(|(_, f)| f.kind == fault.kind).map(|(t, _)| *t);
        let mut trap = self.trap_of(fault.kind, inst.span, same);
        fault.clone().tell(&mut trap, &self.env, number(*first), |addr| mem.space(addr));
        Err(trap)
    }
}
