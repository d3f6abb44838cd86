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
mod open;
mod queue;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use handloom_ir::simt::TensorOp;

use crate::env::CtaEnv;
use crate::numbers::low32;
use crate::tensor::held::Held;
use crate::tensor::step::{Doer, Done};
use crate::transfer::reach::{Fault, Reach};
use crate::transfer::work::{Range, Work};
use crate::under_way::{UnderWay, Who};
pub use open::Unwaited;
use queue::Queue;

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the cluster of a CTA has begun.
fn queue(late: &UnderWay, env: &CtaEnv) -> Arc<Mutex<Queue>> {
    let cluster = env.cluster.shared_bases.first().copied().unwrap_or(env.shared_base);
    late.kept(cluster, || Mutex::new(Queue::new(late.seed(), late.watches())))
}

/// A thread begins a transfer, or says when others come: it happens now, or where results may be late, when its time has come. Says whether anything has
/// changed.
///
/// # Errors
/// What comes now breaks a rule.
pub fn begin(work: Work, who: Who, reach: &mut dyn Reach) -> Result<bool, Fault> {
    match reach.env().late.clone() {
        Some(late) => lock(&queue(&late, reach.env())).begin(work, who, reach),
        None => Ok(work.perform(reach)),
    }
}

/// A thread does an op on tensor memory, or begins it.
///
/// # Errors
/// The rule that it breaks; then it has changed nothing.
pub fn step(held: &Held, op: TensorOp, src: &[u64], who: Doer, reach: &mut dyn Reach) -> Result<Done, Fault> {
    match reach.env().late.clone() {
        Some(late) if op.is_asynchronous() => {
            let begun = reach.begin(who.thread);
            let by = Who { begun, ..reach.env().who(who.thread, who.span) };
            let changed = lock(&queue(&late, reach.env())).begin_tensor(held, op, src, by, reach)?;
            Ok(Done { changed, ..Done::default() })
        }
        Some(_) | None => held.step(op, src, who, reach),
    }
}

/// A CTA has ended: what it has begun happens now.
///
/// # Errors
/// Something of it breaks a rule.
pub fn end(late: &UnderWay, reach: &mut dyn Reach) -> Result<(), Fault> {
    lock(&queue(late, reach.env())).end(reach)
}

/// Whether there may be a copy that a CTA should wait for.
pub(crate) fn is_open(late: &UnderWay, env: &CtaEnv) -> bool {
    late.watches() && !lock(&queue(late, env)).open.is_empty()
}

/// The copy that an access of a CTA should have waited for, and why.
pub(crate) fn unwaited(
    late: &UnderWay,
    env: &CtaEnv,
    (at, bytes): (u64, u64),
    writes: bool,
) -> Option<(Who, Unwaited)> {
    lock(&queue(late, env)).open.unwaited(Range { at, bytes }, writes)
}

/// Who in a CTA that has ended began copies that nobody waited for. They are forgotten.
pub(crate) fn left_open(late: &UnderWay, env: &CtaEnv) -> Vec<Who> {
    if late.watches() { lock(&queue(late, env)).open.end(env.linear_ctaid()) } else { vec![] }
}

/// [`Sreg::Late`](handloom_ir::types::Sreg::Late) of a CTA.
pub(crate) fn coins(env: &CtaEnv) -> u32 {
    let seed = env.late.as_ref().and_then(UnderWay::seed);
    seed.map_or(0, |seed| low32(queue::mixed(seed ^ queue::mixed(env.linear_ctaid()))))
}
