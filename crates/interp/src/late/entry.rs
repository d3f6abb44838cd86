//! One thing that was begun.

use handloom_audit::Proxy;
use handloom_ir::num::whole::Rows;
use handloom_ir::simt::{Begun, Element, TensorOp};
use handloom_ir::trap::TrapKind;
use handloom_ir::types::StateSpace;

use crate::env::CtaEnv;
use crate::tensor::held::Held;
use crate::tensor::step::Doer;
use crate::transfer::reach::{Fault, Part, Reach, in_cta};
use crate::transfer::work::{What, Work};
use crate::under_way::Who;

/// What is waited for in which way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    /// By groups, or as a whole.
    Begun(Begun),
    /// By barriers.
    Told,
    /// An arrival behind all copies of a few bytes of its thread.
    Arrival,
    /// An op on tensor memory, behind all others of its thread.
    Tensor,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub(super) enum Deed {
    Work(Work),
    /// An arrival at a barrier by generic address.
    Arrive(u64),
    Tensor(Box<OnTensor>),
}

/// An op on tensor memory with all that it needs.
#[derive(Clone, Debug)]
pub(super) struct OnTensor {
    pub(super) held: Held,
    /// The allocations that had been given back when it was begun.
    pub(super) returned: u32,
    pub(super) op: TensorOp,
    pub(super) src: Vec<u64>,
    /// Its CTA.
    pub(super) env: CtaEnv,
    /// The barriers that it arrives at, by generic address.
    pub(super) told: Vec<u64>,
}

impl OnTensor {
    /// What is wrong with it, where tensor memory was deallocated after it was begun and before it happened. By the manual it has no order with
    /// what deallocates unless something waits for it.
    fn unwaited(&self, fault: Fault) -> Fault {
        let wait = if matches!(self.op, TensorOp::Store(_)) {
            "`tcgen05.wait::st`"
        } else {
            "the barrier of a `tcgen05.commit`"
        };
        let detail =
            format!("{}: nothing waited for it with {wait} before tensor memory was deallocated", fault.detail);
        Fault { detail, ..fault }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) who: Who,
    /// How many were begun before it.
    pub(super) number: u64,
    pub(super) kind: Kind,
    /// The group that it belongs to.
    pub(super) group: Option<u64>,
    /// The event at which it happens by itself.
    pub(super) due: Option<u64>,
    pub(super) deed: Deed,
}

impl Entry {
    /// Whether another thing must happen before this one, which was begun later.
    pub(super) fn follows(&self, earlier: &Entry) -> bool {
        let of_thread = (self.who.cta, self.who.thread) == (earlier.who.cta, earlier.who.thread);
        let is_before = match self.kind {
            Kind::Tensor => earlier.kind == Kind::Tensor,
            Kind::Arrival => earlier.kind == Kind::Begun(Begun::Few),
            Kind::Begun(_) | Kind::Told => false,
        };
        of_thread && is_before
    }

    /// Whether it tells a barrier.
    pub(super) fn tells(&self, barrier: u64) -> bool {
        match &self.deed {
            Deed::Work(work) => work.barriers.iter().any(|(at, _)| *at == barrier),
            Deed::Arrive(at) => *at == barrier,
            Deed::Tensor(op) => op.told.contains(&barrier),
        }
    }

    /// Reads its source, which may be written from now on.
    pub(super) fn fetch(&mut self, reach: &mut dyn Reach) {
        let Deed::Work(work) = &mut self.deed else { return };
        if !matches!(work.what, What::Held { .. } | What::HeldBox(..)) {
            reach.act_for(Some(self.who));
            work.fetch(reach);
            reach.act_for(None);
        }
    }

    /// It happens.
    ///
    /// # Errors
    /// It breaks a rule.
    pub(super) fn perform(self, reach: &mut dyn Reach) -> Result<(), Fault> {
        reach.act_for(Some(self.who));
        let done = match self.deed {
            Deed::Work(work) => {
                work.perform(reach);
                Ok(())
            }
            Deed::Arrive(at) => {
                reach.step(at, &mut |old| handloom_ir::mbarrier::step(old, 1_u64.wrapping_neg()));
                Ok(())
            }
            Deed::Tensor(op) => {
                let who = Doer { thread: self.who.thread, span: self.who.span };
                let mut away = Away { env: &op.env, inner: reach };
                let done = op.held.step(op.op, &op.src, who, &mut away);
                done.map(|_| ())
                    .map_err(|fault| if op.held.returned() == op.returned { fault } else { op.unwaited(fault) })
            }
        };
        reach.act_for(None);
        done.map_err(|fault| Fault { at: Some(self.who.span), ..fault })
    }
}

/// What a thread of one CTA of a cluster reaches, as seen by another CTA.
struct Away<'a> {
    env: &'a CtaEnv,
    inner: &'a mut dyn Reach,
}

impl Reach for Away<'_> {
    fn env(&self) -> &CtaEnv {
        self.env
    }

    fn locate(&mut self, part: &Part) -> Result<u64, TrapKind> {
        let is_own = self.env.shared_base == self.inner.env().shared_base;
        if is_own || part.space != StateSpace::Shared {
            return self.inner.locate(part);
        }
        let addr = in_cta(self.env.cluster_rank(), part.addr);
        self.inner.locate(&Part { space: StateSpace::SharedCluster, addr, ..*part })
    }

    fn space(&mut self, addr: u64) -> StateSpace {
        self.inner.space(addr)
    }

    fn read(&mut self, at: u64, to: &mut [u8]) {
        self.inner.read(at, to);
    }

    fn write(&mut self, at: u64, from: &[u8]) {
        self.inner.write(at, from);
    }

    fn copied(&mut self, from: u64, to: u64, bytes: u64) {
        self.inner.copied(from, to, bytes);
    }

    fn update(&mut self, at: u64, bytes: u32, new: &mut dyn FnMut(u64) -> u64) {
        self.inner.update(at, bytes, new);
    }

    fn read_units(&mut self, base: u64, distances: &[u32], to: &mut [[u8; 16]]) {
        self.inner.read_units(base, distances, to);
    }

    fn add_rows(&self, rows: &mut Rows<'_>) {
        self.inner.add_rows(rows);
    }

    fn widen(&self, e: Element, bits: &mut [u32]) {
        self.inner.widen(e, bits);
    }

    fn done_by_now(&mut self, at: u64, bytes: u64, writes: bool) {
        self.inner.done_by_now(at, bytes, writes);
    }

    fn act_for(&mut self, who: Option<Who>) {
        self.inner.act_for(who);
    }

    fn through(&mut self, proxy: Proxy) {
        self.inner.through(proxy);
    }

    fn look(&mut self, at: u64) -> u64 {
        self.inner.look(at)
    }

    fn step(&mut self, at: u64, new: &mut dyn FnMut(u64) -> u64) {
        self.inner.step(at, new);
    }
}
