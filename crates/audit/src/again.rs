//! A thread that does the same again and again while nobody else does anything, as one that takes a lock in a loop.
//!
//! Once a round has been like the two before it, and nothing was found or learned in the last one, the next one changes nothing but times: each access takes
//! the place of the one of the round before in what is remembered, each release that of the release before. So whole rounds are passed over from then on, as if the
//! last one that was looked at had been done later. As soon as anything else happens, what was done of one more is looked at ([`Audit::interrupt`]). What is left is
//! the same as if all had been looked at, but for times, which stand in the same order.
//! Three rounds and not two, since a thread may hear of a fence by what it has left itself a round ago (`sequence`).
//!
//! Rounds are looked for from a fence on: who executes none seldom holds a lock.

use handloom_ir::types::{Order, Scope};

use crate::event::{Access, Thread, Turn};
use crate::order::Audit;

/// Most steps that are kept: of rounds that are a third of that.
const MOST: usize = 128;

/// What a thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Access(u32, Access),
    Fence(u32, Order, Scope),
    /// The op is over.
    End,
}

/// What the thread that runs has done since nobody else did anything.
#[derive(Debug, Default)]
pub(crate) struct Again {
    who: Option<Thread>,
    /// Its last steps, or a round once rounds are counted.
    steps: Vec<Step>,
    /// Steps of a round; 0 if there is none.
    period: usize,
    /// How many steps in a row were what was done a round before.
    alike: usize,
    /// How often the thread had learned something a round ago.
    learned: u32,
    /// If rounds are counted: steps of one that has begun, none of which is looked at yet.
    left: Option<usize>,
}

impl Again {
    /// Whether rounds are counted.
    #[inline]
    pub(crate) fn is_counting(&self) -> bool {
        self.left.is_some()
    }

    /// Something was found: it is to be found as often as it is done.
    pub(crate) fn found(&mut self) {
        self.alike = 0;
    }

    /// Whether an op that is one step of a thread, and its end, are the next ones of rounds that are counted. If so they are counted too.
    #[inline]
    fn repeats(&mut self, who: Thread, step: Step) -> bool {
        let Some(n) = &mut self.left else { return false };
        let is_next = self.who == Some(who)
            && self.steps.get(*n) == Some(&step)
            && self.steps.get(*n + 1).is_some_and(|after| *after == Step::End);
        if is_next {
            *n = if *n + 2 == self.period { 0 } else { *n + 2 };
        }
        is_next
    }

    fn start(&mut self, who: Thread, step: Step) {
        self.who = Some(who);
        self.steps.push(step);
    }

    /// Keeps a step that is looked at now.
    fn keep(&mut self, step: Step, learned: u32) {
        let n = self.steps.len();
        if self.period > 0 && self.steps[n - self.period] == step {
            self.alike += 1;
        } else {
            let is_fence = matches!(step, Step::Fence(..));
            let before = self.steps.iter().rposition(|old| is_fence && *old == step);
            self.period = before.map_or(0, |before| n - before);
            self.alike = usize::from(self.period > 0);
        }
        if self.alike == self.period {
            self.learned = learned;
        }
        self.steps.push(step);
    }

    /// Whether a step begins a round after which nothing changes any more.
    fn begins(&mut self, step: Step, learned: u32) -> bool {
        let n = self.steps.len();
        if self.period == 0 || self.alike < 2 * self.period || self.steps[n - self.period] != step {
            return false;
        }
        let is_quiet = self.learned == learned;
        if !is_quiet {
            (self.learned, self.alike) = (learned, self.period);
        }
        is_quiet
    }
}

impl Audit {
    /// Whether a thread does again what it did, so that a step need not be looked at now.
    #[inline]
    pub(crate) fn is_again(&mut self, who: Thread, step: Step) -> bool {
        match self.again.who {
            None => self.may_start(who, step),
            Some(_) => self.goes_along_again(who, step),
        }
    }

    /// The same of the end of an op.
    #[inline]
    pub(crate) fn ends_again(&mut self) -> bool {
        self.again.who.is_some_and(|who| self.goes_along_again(who, Step::End))
    }

    /// An op of a warp that is nothing but an access: whether it is one more step of rounds that are counted, which then has ended. Else nothing was done, and it is
    /// still to be told by [`access`](Audit::access), [`accesses`](Audit::accesses) or [`row`](Audit::row), and [`end_op`](Audit::end_op).
    #[inline]
    pub fn repeats(&mut self, site: u32, access: Access) -> bool {
        self.again.repeats(access.thread, Step::Access(site, access))
    }

    /// The same of an op that is nothing but a fence of one thread.
    #[inline]
    pub fn repeats_fence(&mut self, who: Thread, site: u32, order: Order, scope: Scope) -> bool {
        self.again.repeats(who, Step::Fence(site, order, scope))
    }

    fn may_start(&mut self, who: Thread, step: Step) -> bool {
        let is_plain = !self.options.keeps_events && !self.has_clusters() && self.has_races();
        if is_plain && matches!(step, Step::Fence(..)) {
            self.again.start(who, step);
        }
        false
    }

    fn goes_along_again(&mut self, who: Thread, step: Step) -> bool {
        if self.again.who == Some(who) {
            let again = &mut self.again;
            if let Some(n) = &mut again.left {
                if again.steps[*n] == step {
                    *n = if *n + 1 == again.period { 0 } else { *n + 1 };
                    return true;
                }
            } else {
                let is_plain = match step {
                    Step::Access(_, access) => access.turn == Turn::None && access.begun == 0,
                    Step::Fence(..) | Step::End => true,
                };
                let learned = self.ctas.running(who).map_or(0, |clock| clock.learned);
                if is_plain && again.begins(step, learned) {
                    again.steps.drain(..again.steps.len() - again.period);
                    again.left = Some(1);
                    return true;
                }
                if is_plain && again.steps.len() < MOST {
                    again.keep(step, learned);
                    return false;
                }
            }
        }
        self.interrupt();
        self.may_start(who, step)
    }

    /// Something else happens: what was done of a round that was to be counted is looked at.
    #[inline]
    pub(crate) fn interrupt(&mut self) {
        if let Some(who) = self.again.who {
            self.catch_up(who);
        }
    }

    fn catch_up(&mut self, who: Thread) {
        let Again { mut steps, left, .. } = std::mem::take(&mut self.again);
        for step in &steps[..left.unwrap_or(0)] {
            match *step {
                Step::Access(site, access) => self.look_at(site, access, true),
                Step::Fence(site, order, scope) => self.pass_fence(who, site, order, scope),
                Step::End => self.end_step(),
            }
        }
        steps.clear();
        self.again.steps = steps;
    }
}

#[cfg(test)]
mod tests {
    use handloom_diag::Span;
    use handloom_ir::types::StateSpace;

    use super::*;
    use crate::event::{Does, Proxy, Site};
    use crate::order::Options;

    /// Threads take a lock in turns, many times each: but for the first rounds nothing is looked at.
    #[test]
    fn rounds_are_counted() {
        let mut audit = Audit::new(Options::default());
        audit.start_cta(0, 64, None, (0, 0));
        let site = |audit: &mut Audit, line: u32, does: Does, order: Order| {
            let span = Span { start: line, end: line + 1, ..Span::NONE };
            let proxy = Proxy::Generic;
            audit.site(Site { span, does, order, scope: Scope::Gpu, space: StateSpace::Global, proxy })
        };
        let [take, give] = [0, 1].map(|line| site(&mut audit, line, Does::Update, Order::Relaxed));
        let fences = [2, 3].map(|line| site(&mut audit, line, Does::Fence, Order::Sc));
        let data = site(&mut audit, 4, Does::Write, Order::Weak);
        for number in [0, 32, 0, 32] {
            let thread = Thread::new(0, number);
            let mut counted = Vec::new();
            for _ in 0..9 {
                let access = |addr| Access { thread, addr, bytes: 4, ..Access::NONE };
                audit.accesses(take, &[access(64)]);
                audit.end_op();
                audit.fence(thread, fences[0], Order::Sc, Scope::Gpu);
                audit.end_op();
                audit.access(data, access(128));
                audit.end_op();
                audit.fence(thread, fences[1], Order::Sc, Scope::Gpu);
                audit.end_op();
                audit.accesses(give, &[access(64)]);
                audit.end_op();
                counted.push(audit.again.is_counting());
            }
            assert_eq!(counted, [false, false, false, true, true, true, true, true, true]);
        }
        audit.interrupt();
        assert!(audit.finish().0.is_empty());
    }
}
