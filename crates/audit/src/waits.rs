//! Who waits at `mbarrier` objects: threads that asked whether a phase has ended, were told that it has not, and ask again without having done anything
//! else that orders memory. Nothing can have told anybody else that they do not wait any more, so what happens to the object meanwhile happens to them.

use std::collections::{BTreeMap, HashMap};

use handloom_diag::Span;
use handloom_ir::types::{Order, StateSpace};

use crate::event::{Access, Site, Thread, Turn};
use crate::misuse::{Misuse, Wrong};

/// A thread that was told that a phase has not ended.
#[derive(Clone, Debug)]
struct Wait {
    object: u64,
    /// The question.
    span: Span,
    /// The phase that it waits for: how many have ended before it.
    phase: u64,
    /// Who has written the object since.
    over: Option<(Span, Thread)>,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// By object: phases that have ended since it was written.
    phases: BTreeMap<u64, u64>,
    waiting: HashMap<Thread, Wait>,
}

impl Waits {
    /// Whether plain writes matter.
    pub fn looks_at_writes(&self) -> bool {
        !self.phases.is_empty() || !self.waiting.is_empty()
    }

    /// Whether an access matters.
    #[inline]
    pub fn concerns(&self, access: &Access) -> bool {
        access.turn != Turn::None || self.looks_at_writes()
    }

    /// How many phases of an object have ended.
    pub fn phases(&self, object: u64) -> u64 {
        self.phases.get(&object).copied().unwrap_or(0)
    }

    /// A thread does something that may order what it did before.
    pub fn goes_on(&mut self, who: Thread) {
        if !self.waiting.is_empty() {
            self.waiting.remove(&who);
        }
    }

    /// Bytes are written, so that an object there is one no more, or a new one.
    pub fn overwritten(&mut self, (addr, bytes): (u64, u64), by: (Span, Thread)) {
        let hit = |object: u64| object < addr.saturating_add(bytes) && addr < object.saturating_add(8);
        self.phases.retain(|object, _| !hit(*object));
        let others = self.waiting.iter_mut().filter(|(who, wait)| hit(wait.object) && **who != by.1);
        others.for_each(|(_, wait)| wait.over = wait.over.or(Some(by)));
    }

    /// An access. Says what is wrong with it.
    pub fn access(&mut self, site: &Site, access: &Access) -> Option<Misuse> {
        let who = access.thread;
        match access.turn {
            Turn::Arrives => self.goes_on(who),
            Turn::Ends => {
                *self.phases.entry(access.addr).or_default() += 1;
                self.goes_on(who);
            }
            Turn::Yes | Turn::No => return self.ask(site.span, access),
            Turn::None => {
                if site.does.writes() && !access.failed && site.space == StateSpace::Shared && self.looks_at_writes() {
                    self.overwritten((access.addr, access.bytes.into()), (site.span, who));
                }
                if site.order != Order::Weak {
                    self.goes_on(who);
                }
            }
        }
        None
    }

    fn ask(&mut self, span: Span, access: &Access) -> Option<Misuse> {
        let (who, object, now) = (access.thread, access.addr, self.phases(access.addr));
        let before = self.waiting.remove(&who).filter(|wait| (wait.object, wait.span) == (object, span));
        let misuse = |wrong, second| Misuse { wrong, first: (span, who), second, object: Some((object, 0)), times: 1 };
        if let Some(by) = before.as_ref().and_then(|wait| wait.over) {
            return Some(misuse(Wrong::MbarrierOverwritten, Some(by)));
        }
        if access.turn == Turn::Yes {
            return None;
        }
        let phase = before.map_or(now, |wait| wait.phase);
        let wrong = (now >= phase + 2).then(|| misuse(Wrong::MbarrierPhase, None));
        let phase = if wrong.is_some() { now } else { phase };
        self.waiting.insert(who, Wait { object, span, phase, over: None });
        wrong
    }
}
