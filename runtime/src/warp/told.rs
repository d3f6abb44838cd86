//! Who is told what the threads of a cta of compiled code do.

use handloom_audit::init::Filled;
use handloom_audit::misuse::{Misuse, Wrong};
use handloom_audit::{Audit, Met, Thread};
use handloom_diag::Span;
use handloom_interp::SharedAudit;
use handloom_interp::barrier::Released;

use super::host::{BarWait, ClusterWait, CtaHost};
use super::repeats::Repeats;
use crate::lock::lock;
use crate::memory::Undo;

/// What routines need to tell an audit.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) audit: SharedAudit,
    /// Whether accesses are held against the variables that their addresses are made from.
    pub(crate) has_memory: bool,
    /// Whether the audit looks at accesses.
    pub(crate) has_races: bool,
    /// Whether it is told how barriers and masks are used.
    pub(crate) has_misuses: bool,
    /// What the launch has written, and which bytes of its own memory the block has: where bytes that nobody wrote are looked for.
    pub(crate) bits: Option<(Undo, Filled)>,
    /// By memory site of the code: the numbers of its statement in global and in shared memory, once it was told of.
    pub(crate) sites: Vec<[Option<u32>; 2]>,
    /// What the thread that runs does again and again.
    pub(crate) repeats: Repeats,
}

impl Told {
    /// For a launch that begins.
    pub(crate) fn new(shared: &SharedAudit, undo: Option<&Undo>) -> Told {
        let mut audit = lock(shared);
        let (has_memory, has_races) = (audit.memory().is_some(), audit.has_races());
        let has_misuses = audit.misuses().is_some();
        let bits = undo.map(|undo| (undo.clone(), Filled::default()));
        let (repeats, sites) = (Repeats::new(audit.count()), Vec::new());
        Told { audit: SharedAudit::clone(shared), has_memory, has_races, has_misuses, bits, sites, repeats }
    }
}

impl CtaHost {
    /// What an op carries of bits that nobody wrote cannot be told here.
    pub(crate) fn doubt(&self) {
        if let Some((undo, _)) = self.told.as_ref().and_then(|told| told.bits.as_ref()) {
            undo.doubt();
        }
    }

    /// Something happened to the clocks of the block.
    pub(crate) fn tell(&self, what: impl FnOnce(&mut Audit, u64)) {
        if let Some(told) = &self.told {
            what(&mut lock(&told.audit), self.env.linear_ctaid());
        }
    }

    /// Barriers or masks are used in a way that is not allowed, by threads at statements.
    pub(crate) fn tell_misuse(&self, wrong: Wrong, first: (Span, u32), second: Option<(Span, u32)>) {
        let cta = self.env.number();
        let step = |(span, thread): (Span, u32)| (span, Thread::new(cta, thread as usize));
        let misuse = Misuse { wrong, first: step(first), second: second.map(step), object: None, times: 1 };
        self.tell(|audit, _| {
            if let Some(misuses) = audit.misuses() {
                misuses.add(misuse);
            }
        });
    }

    /// A lane has waited for a phase of the barrier of its cluster.
    pub(crate) fn tell_cluster_wait(&self, wait: ClusterWait) {
        let (number, thread) =
            (self.env.number(), CtaHost::thread(&wait.ctx.header(), wait.lanes.trailing_zeros() as usize));
        self.tell(|audit, _| audit.cluster_wait(Thread::new(number, thread as usize), wait.phase));
    }

    /// A barrier is met, and nobody has gone on yet.
    pub(crate) fn tell_meeting(&self, met: &Met) {
        let place = |(warp, lanes): &(usize, u32)| {
            let lane = lanes & lanes.wrapping_neg();
            let mut waiting = self.waiting.iter();
            let wait = waiting.find(|w| w.warp == *warp && w.id == met.id && w.lanes & lane != 0);
            wait.map(|wait| wait.site().span)
        };
        let at = met.waited.first().and_then(place).unwrap_or(Span::NONE);
        self.tell(|audit, cta| {
            audit.meeting(cta, met, at);
            audit.barrier(cta, met);
        });
    }

    /// Lanes of a warp that waited for one barrier go on: did they wait at one instruction?
    pub(crate) fn tell_divergence(&self, r: Released) {
        if self.told.is_none() {
            return;
        }
        let place = |lane: u32| {
            let is_there = |w: &&BarWait| w.warp == r.warp && w.id == r.id && w.lanes >> lane & 1 == 1;
            self.waiting.iter().find(is_there).map(|w| (w.site().span, 32 * r.warp as u32 + lane))
        };
        let mut at = (0..32).filter(|lane| r.lanes >> lane & 1 == 1).filter_map(place);
        if let Some(first) = at.next()
            && let Some(second) = at.find(|(span, _)| *span != first.0)
        {
            self.tell_misuse(Wrong::DivergentWarp, first, Some(second));
        }
    }
}
