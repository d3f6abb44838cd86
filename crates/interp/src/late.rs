//! What is asynchronous and comes late: everything that threads have begun and that has not happened yet.
//!
//! A copy that is begun is kept with the thread that began it and happens as a whole, its reading and its writing, where something waits for it: a group
//! that its thread waits for, the phase of a barrier that somebody asks about, the end of its CTA. So a program that looks before it waits sees what was
//! there before, and one that writes the source too early copies that. Where a launch goes by seed, each may happen sooner: at once, or some
//! instructions of this kind later.
//!
//! What a thread begins keeps its order only where the manual says so: ops on tensor memory, and what `cp.async.mbarrier.arrive` arrives for.
//!
//! All that the CTAs of a cluster have begun is one queue, which one host thread at a time works on.
//!
//! Choice: what nobody waits for happens when its CTA ends.
//!
//! # PTX ISA
//! Data Movement and Conversion Instructions: Asynchronous copy, Async proxy; Memory Consistency Model for 5th generation of TensorCore instructions.

mod entry;
mod queue;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use handloom_diag::Span;
use handloom_ir::simt::TensorOp;

use crate::env::CtaEnv;
use crate::numbers::low32;
use crate::tensor::Held;
use crate::transfer::{Fault, Reach, Work};
use queue::Queue;

/// When the results of asynchronous instructions come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum AsyncOrder {
    /// At once.
    #[default]
    Earliest,
    /// Where something waits for them.
    Latest,
    /// In between, as the seed of the launch says.
    Seed,
}

impl AsyncOrder {
    /// All of them.
    pub const ALL: [AsyncOrder; 3] = [AsyncOrder::Earliest, AsyncOrder::Latest, AsyncOrder::Seed];

    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            AsyncOrder::Earliest => "earliest",
            AsyncOrder::Latest => "latest",
            AsyncOrder::Seed => "seed",
        }
    }

    /// The one of a name.
    pub fn named(name: &str) -> Option<AsyncOrder> {
        AsyncOrder::ALL.into_iter().find(|order| order.name() == name)
    }
}

/// Who began something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Who {
    /// Linear number of the CTA in the grid.
    pub cta: u64,
    /// Linear number of the thread in the CTA.
    pub thread: u32,
    /// The statement.
    pub span: Span,
}

impl Who {
    /// A thread of a CTA at a statement.
    pub fn new(env: &CtaEnv, thread: u32, span: Span) -> Who {
        Who { cta: env.linear_ctaid(), thread, span }
    }
}

/// What of a launch is under way. A clone is the same.
#[derive(Clone, Debug)]
pub struct Late(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The seed, if it decides; else everything is as late as can be.
    seed: Option<u64>,
    /// By the base of the shared memory of the first CTA of a cluster.
    queues: Mutex<BTreeMap<u64, Arc<Mutex<Queue>>>>,
}

impl PartialEq for Late {
    fn eq(&self, other: &Late) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Late {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Late {
    /// For a launch: `None` if everything happens at once.
    pub fn of(order: AsyncOrder, seed: u64) -> Option<Late> {
        let seed = match order {
            AsyncOrder::Earliest => return None,
            AsyncOrder::Latest => None,
            AsyncOrder::Seed => Some(seed),
        };
        Some(Late(Arc::new(Shared { seed, queues: Mutex::default() })))
    }

    fn key(env: &CtaEnv) -> u64 {
        env.cluster.shared_bases.first().copied().unwrap_or(env.shared_base)
    }

    fn queue(&self, env: &CtaEnv) -> Arc<Mutex<Queue>> {
        Arc::clone(lock(&self.0.queues).entry(Late::key(env)).or_insert_with(|| Arc::new(Mutex::new(Queue::new(self.0.seed)))))
    }

    /// A thread begins a transfer, or says when others come. Says whether anything has changed.
    pub(crate) fn begin(&self, work: Work, who: Who, reach: &mut dyn Reach) -> Result<bool, Fault> {
        let queue = self.queue(reach.env());
        lock(&queue).begin(work, who, reach)
    }

    /// A thread begins an op on tensor memory. Says whether anything has changed.
    pub(crate) fn begin_tensor(
        &self,
        held: &Held,
        op: TensorOp,
        src: &[u64],
        who: Who,
        reach: &mut dyn Reach,
    ) -> Result<bool, Fault> {
        let queue = self.queue(reach.env());
        lock(&queue).begin_tensor(held, op, src, who, reach)
    }

    /// A CTA has ended: what it has begun happens now.
    ///
    /// # Errors
    /// Something of it breaks a rule.
    pub fn end(&self, reach: &mut dyn Reach) -> Result<(), Fault> {
        let queue = self.queue(reach.env());
        lock(&queue).end(reach)
    }

    /// [`Sreg::Late`](handloom_ir::types::Sreg::Late) of a CTA.
    pub(crate) fn coins(&self, env: &CtaEnv) -> u32 {
        self.0.seed.map_or(0, |seed| low32(queue::mixed(seed ^ queue::mixed(env.linear_ctaid()))))
    }
}
