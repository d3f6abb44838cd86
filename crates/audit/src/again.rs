//! A thread that does the same again and again while nobody else does anything, as one that takes a lock in a loop.
//!
//! Once a round has been like the one before it, and nothing was found or learned in it, the next one changes nothing but times: each access takes
//! the place of the one of the round before in what is remembered, each release that of the release before. So whole rounds are passed over from then on, as if the
//! last one that was looked at had been done later. As soon as anything else happens, what was done of one more is looked at ([`Audit::interrupt`]). What is left is
//! the same as if all had been looked at, but for times, which stand in the same order.
//! A thread may hear of a fence by what it has left itself a round ago (`sequence`): if it learns something by that, it does so in the second round, and there is a third.
//!
//! Rounds are looked for from a fence on: who executes none seldom holds a lock.
//!
//! Who tells the steps may remember what they were, and say by a [`Count`] that the next one was done.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use handloom_ir::types::{Order, Scope};

use crate::event::{Access, Thread, Turn};
use crate::order::Audit;

/// Most steps that are kept: of rounds that are half of that.
const MOST: usize = 128;

/// What a thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Access(u32, Access),
    Fence(u32, Order, Scope),
    /// The op is over.
    End,
}

/// How far rounds that are counted have come: the number of the rounds, counted from 1 on for the launch, and the step that comes next. An audit and the engine that
/// tells it, which run on one thread, look at the same.
#[derive(Clone, Debug, Default)]
pub struct Count(Arc<AtomicU64>);

impl Count {
    /// The number of the rounds that are counted, and of the step that comes next; `None` if none are.
    #[inline]
    pub fn next(&self) -> Option<(u32, u32)> {
        let word = self.0.load(Ordering::Relaxed);
        let halves = (u32::try_from(word >> 32), u32::try_from(word & u64::from(u32::MAX)));
        if let (true, (Ok(rounds), Ok(step))) = (word != 0, halves) { Some((rounds, step)) } else { None }
    }

    /// The step that comes next was done once more by its thread, whole, as it was in the round before: another one comes next.
    #[inline]
    pub fn pass(&self, rounds: u32, next: u32) {
        self.0.store(u64::from(rounds) << 32 | u64::from(next), Ordering::Relaxed);
    }

    fn stop(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// An op that was looked at.
#[derive(Clone, Copy, Debug, Default)]
enum Before {
    /// None, or something else than accesses.
    #[default]
    Other,
    /// One access at a site so far, and how often its thread had learned something before.
    One(u32, Access, u32),
    /// Several.
    Several,
    /// One, and the op is over.
    Alone(u32, Access, u32),
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
    /// By step: how often the thread had learned something before.
    learned: Vec<u32>,
    /// The last op, while no steps are kept.
    before: Before,
    /// How often rounds were counted.
    rounds: u32,
    /// If rounds are counted: steps of one that has begun, none of which is looked at yet.
    count: Count,
}

impl Again {
    /// Steps of a round that has begun, if rounds are counted.
    #[inline]
    fn left(&self) -> Option<usize> {
        self.count.next().and_then(|(_, next)| usize::try_from(next).ok())
    }

    /// So many steps of a round were done.
    #[inline]
    fn pass(&self, n: usize) {
        self.count.pass(self.rounds, if n == self.period { 0 } else { u32::try_from(n).unwrap_or(0) });
    }

    /// Whether rounds are counted.
    pub(crate) fn is_counting(&self) -> bool {
        self.left().is_some()
    }

    /// Something was found: it is to be found as often as it is done.
    pub(crate) fn found(&mut self) {
        (self.period, self.alike) = (0, 0);
        self.steps.clear();
        self.learned.clear();
    }

    /// Several lanes do what follows, some of which are not looked at one by one.
    pub(crate) fn are_several(&mut self) {
        self.before = Before::Several;
    }

    /// Whether an op that is one step of a thread, and its end, are the next ones of rounds that are counted. If so they are counted too.
    #[inline]
    fn repeats(&mut self, who: Thread, step: Step) -> bool {
        let Some(n) = self.left() else { return false };
        let is_next = self.who == Some(who)
            && self.steps.get(n) == Some(&step)
            && self.steps.get(n + 1).is_some_and(|after| *after == Step::End);
        if is_next {
            self.pass(n + 2);
        }
        is_next
    }

    /// Something else is done: the steps so far.
    fn end(&mut self) -> Vec<Step> {
        self.count.stop();
        self.learned.clear();
        (self.who, self.period, self.alike, self.before) = (None, 0, 0, Before::Other);
        std::mem::take(&mut self.steps)
    }

    /// Begins with a fence, or with the access before it by which a lock was taken: who has done some rounds mostly has let it go.
    fn start(&mut self, who: Thread, step: Step, learned: u32) {
        self.who = Some(who);
        if let Before::Alone(site, access, learned) = std::mem::take(&mut self.before)
            && access.thread == who
        {
            self.steps.extend([Step::Access(site, access), Step::End]);
            self.learned.extend([learned; 2]);
        }
        self.steps.push(step);
        self.learned.push(learned);
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
            // Steps before the two fences may be the same too.
            let pairs = self.steps.iter().rev().zip(self.steps[..before.unwrap_or(0)].iter().rev());
            self.alike = pairs.take_while(|(a, b)| a == b).count() + usize::from(self.period > 0);
        }
        self.steps.push(step);
        self.learned.push(learned);
    }

    /// Whether a step begins a round after which nothing changes any more.
    fn begins(&mut self, step: Step, learned: u32) -> bool {
        let n = self.steps.len();
        if self.period == 0 || self.alike < self.period || self.steps[n - self.period] != step {
            return false;
        }
        let is_quiet = self.learned[n - self.period] == learned;
        if !is_quiet {
            self.alike = 0;
        }
        is_quiet
    }
}

/// Whether an access is done where it stands, and is none to an `mbarrier` object.
fn is_plain(access: &Access) -> bool {
    access.turn == Turn::None && access.begun == 0
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
        match self.again.who {
            Some(who) => self.goes_along_again(who, Step::End),
            None => {
                self.again.before = match self.again.before {
                    Before::One(site, access, learned) => Before::Alone(site, access, learned),
                    Before::Other | Before::Several | Before::Alone(..) => Before::Other,
                };
                false
            }
        }
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

    /// How far rounds that are counted have come.
    pub fn count(&self) -> Count {
        self.again.count.clone()
    }

    fn may_start(&mut self, who: Thread, step: Step) -> bool {
        if self.options.keeps_events || self.has_clusters() || !self.has_races() {
            return false;
        }
        let learned = self.ctas.get(who.cta).and_then(|cta| cta.clock(who)).map_or(0, |clock| clock.learned);
        match (step, self.again.before) {
            (Step::Fence(..), _) => self.again.start(who, step, learned),
            (Step::Access(site, access), Before::Other | Before::Alone(..)) if is_plain(&access) => {
                self.again.before = Before::One(site, access, learned);
            }
            (Step::Access(..), _) => self.again.before = Before::Several,
            (Step::End, _) => self.again.before = Before::Other,
        }
        false
    }

    fn goes_along_again(&mut self, who: Thread, step: Step) -> bool {
        if self.again.who == Some(who) {
            let again = &mut self.again;
            if let Some(n) = again.left() {
                if again.steps[n] == step {
                    again.pass(n + 1);
                    return true;
                }
            } else {
                let may_repeat = match step {
                    Step::Access(_, access) => is_plain(&access),
                    Step::Fence(..) | Step::End => true,
                };
                let learned = self.ctas.running(who).map_or(0, |clock| clock.learned);
                if may_repeat && again.begins(step, learned) {
                    again.steps.drain(..again.steps.len() - again.period);
                    again.rounds += 1;
                    again.pass(1);
                    return true;
                }
                if may_repeat && again.steps.len() < MOST {
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
        match self.again.who {
            Some(who) => self.catch_up(who),
            None => self.again.before = Before::Other,
        }
    }

    fn catch_up(&mut self, who: Thread) {
        let left = self.again.left().unwrap_or(0);
        let mut steps = self.again.end();
        for step in &steps[..left] {
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
            assert_eq!(counted, [false, false, true, true, true, true, true, true, true]);
        }
        audit.interrupt();
        assert!(audit.finish().0.is_empty());
    }
}
