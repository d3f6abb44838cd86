//! Accesses through different proxies: which of them want a proxy fence between them.
//!
//! A write through the generic proxy comes before a later access through another one only if a proxy fence stands somewhere on the way from the one to
//! the other. So what a thread knows of others has a second half: what of it lies behind a proxy fence ([`Fenced`]); it goes wherever the first half
//! goes. An asynchronous access is held against what its thread knew when it began, here and where races are looked for.
//!
//! Asked for are fences between generic writes and later accesses of the async proxy, and of what reads tensor maps. Choice: a generic read before a
//! write of the async proxy needs none if the two are ordered, since pipelines that fill a buffer again when its readers have arrived at a barrier leave
//! it out everywhere. The other way no fence is needed: the end of what is asynchronous is one.

use std::sync::Arc;

use crate::event::{Access, Does, Event, Proxy, ProxyFence, Site, Thread};
use crate::finding::Class;
use crate::known::{Known, Time};
use crate::order::Audit;
use crate::race::{Now, bytes_of_granule};

use handloom_ir::types::StateSpace;

/// What lies behind proxy fences.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fenced {
    /// Fences of the async proxy, in global and in shared memory.
    is_async: [Option<Arc<Known>>; 2],
    /// First halves of fences of tensor maps.
    released: Option<Arc<Known>>,
    /// Both halves.
    map: Option<Arc<Known>>,
}

fn join(mine: &mut Option<Arc<Known>>, theirs: Option<&Arc<Known>>) {
    match (mine, theirs) {
        (_, None) => {}
        (mine @ None, Some(theirs)) => *mine = Some(Arc::clone(theirs)),
        (Some(mine), Some(theirs)) => Known::learn(mine, theirs),
    }
}

impl Fenced {
    /// All that is behind fences for somebody else.
    pub fn join(&mut self, other: &Fenced) {
        self.is_async.iter_mut().zip(&other.is_async).for_each(|(mine, theirs)| join(mine, theirs.as_ref()));
        join(&mut self.released, other.released.as_ref());
        join(&mut self.map, other.map.as_ref());
    }

    /// A thread that knows so much executes a fence.
    fn pass(&mut self, fence: ProxyFence, known: &Known) {
        match fence {
            ProxyFence::Async(spaces) => {
                let known = Arc::new(known.plain());
                let named = self.is_async.iter_mut().zip(spaces).filter(|(_, is_named)| *is_named);
                named.for_each(|(mine, _)| *mine = Some(Arc::clone(&known)));
            }
            ProxyFence::MapRelease => self.released = Some(Arc::new(known.plain())),
            ProxyFence::MapAcquire => join(&mut self.map, self.released.clone().as_ref()),
        }
    }

    /// What comes before an access through a proxy.
    fn of(&self, proxy: Proxy, space: StateSpace) -> Option<&Known> {
        match proxy {
            Proxy::Async => self.is_async[usize::from(space == StateSpace::Shared)].as_deref(),
            Proxy::TensorMap => self.map.as_deref(),
            Proxy::Generic | Proxy::Unsaid => None,
        }
    }
}

/// The moment when something asynchronous began.
#[derive(Clone, Debug)]
pub struct Begun {
    who: Thread,
    time: Time,
    fenced: Option<Arc<Fenced>>,
    knew: Knew,
}

/// What the thread knew then: all that its warp and its block did until these times, and more.
#[derive(Clone, Debug)]
struct Knew(Time, Time, Option<Arc<Known>>);

impl Audit {
    /// Proxy fences are told of this launch. Else none is missed.
    pub fn follow_proxies(&mut self, follows: bool) {
        self.interrupt();
        self.follows_proxies = follows;
    }

    fn fenced(&mut self, who: Thread) -> Option<Arc<Fenced>> {
        self.clock(who)?.more.as_ref()?.fenced().cloned()
    }

    /// A thread executes a proxy fence.
    pub fn proxy_fence(&mut self, who: Thread, fence: ProxyFence) {
        self.interrupt();
        if !self.has_races() || self.has_given_up() {
            return;
        }
        self.keep(|_| Event::ProxyFence { who, fence });
        let known = self.snapshot(who).whole();
        if let Some(clock) = self.clock(who) {
            clock.learned += 1;
            Arc::make_mut(clock.more.get_or_insert_default()).fenced_mut().pass(fence, &known);
        }
        self.end_op();
    }

    /// A thread begins something whose accesses, by another proxy, may come later. They name it by the number that this gives.
    pub fn begin(&mut self, who: Thread) -> u32 {
        self.interrupt();
        if !self.has_races() || !self.follows_proxies || self.has_given_up() {
            return 0;
        }
        let (time, fenced) = (self.now, self.fenced(who));
        let knew = self.clock(who).map_or(Knew(0, 0, None), |c| Knew(c.warp, c.cta, c.more.clone()));
        self.begun.push(Begun { who, time, fenced, knew });
        let number = u32::try_from(self.begun.len()).unwrap_or(0);
        self.keep(|_| Event::Begin { who, number });
        // What the thread writes from now on is no business of it.
        self.has_released = true;
        self.end_op();
        number
    }

    fn begun(&self, access: &Access) -> Option<&Begun> {
        self.begun.get(usize::try_from(access.begun).ok()?.checked_sub(1)?)
    }

    /// Compares an access with those before it, of which only those are ordered that its thread knew of when it began.
    pub(crate) fn compare_begun(&mut self, now: &Now, what: &Site, quick: bool) {
        let who = now.access.thread;
        let mut knew = self.begun(&now.access).filter(|begun| begun.who == who).map(|begun| begun.knew.clone());
        self.exchange(who, &mut knew);
        self.compare_proxies(now, what);
        self.compare(now, quick);
        self.exchange(who, &mut knew);
    }

    fn exchange(&mut self, who: Thread, knew: &mut Option<Knew>) {
        if let Some(Knew(warp, cta, more)) = knew
            && let Some(clock) = self.clock(who)
        {
            std::mem::swap(&mut clock.warp, warp);
            std::mem::swap(&mut clock.cta, cta);
            std::mem::swap(&mut clock.more, more);
        }
    }

    /// Tells of generic writes that come before an access through another proxy, and have no fence on the way to it.
    fn compare_proxies(&mut self, now: &Now, what: &Site) {
        if !self.follows_proxies || matches!(what.proxy, Proxy::Generic | Proxy::Unsaid) {
            return;
        }
        let thread = now.access.thread;
        let (until, fenced) = match self.begun(&now.access) {
            Some(begun) => (begun.time, begun.fenced.clone()),
            None => (self.now, self.fenced(thread)),
        };
        let start = now.access.addr;
        (start & !3..start + u64::from(now.access.bytes)).step_by(4).for_each(|at| self.settle(at));
        let known = fenced.as_ref().and_then(|f| f.of(what.proxy, what.space));
        let is_generic_write = |site: u32| {
            let site = usize::try_from(site).ok().and_then(|i| self.sites.get(i));
            site.is_some_and(|s| s.proxy == Proxy::Generic && s.does.writes() && s.does != Does::Step)
        };
        let (addr, end) = (now.access.addr, now.access.addr + u64::from(now.access.bytes));
        let mut missed = Vec::new();
        let mut at = addr & !3;
        while at < end {
            let mask = u32::from(bytes_of_granule(addr, end, at));
            let mut list = Vec::new();
            self.shadow.read(at, &mut list);
            for e in list.into_iter().filter(|e| e.time <= until && e.tag().writes() && e.tag().mask() & mask != 0) {
                if !is_generic_write(e.tag().site()) || self.unordered(thread, e) != 0 {
                    continue;
                }
                let left = known.map_or(e.lanes, |known| known.unknown(e.cta(), e.warp(), e.lanes, e.time));
                let start = addr.max(at & !u64::from(e.tag().bytes() - 1));
                if left != 0 && start & !3 == at {
                    missed.push((e, left, start));
                }
            }
            at += 4;
        }
        for (e, left, start) in missed {
            self.tell_race(now, e, left, start, Some(Class::MissingProxyFence));
        }
    }
}

#[cfg(test)]
mod tests {
    use handloom_diag::Span;
    use handloom_ir::types::{Order, Scope};

    use super::*;
    use crate::order::Options;

    /// A copy reads what another thread has written, and its thread is told of that before the copy happens: `begun` after that, or before.
    fn found(begun_after: bool) -> Vec<Class> {
        let mut audit = Audit::new(Options::default());
        audit.follow_proxies(true);
        audit.start_cta(0, 64, None, (0, 0));
        let (copier, writer) = (Thread::new(0, 0), Thread::new(0, 32));
        let does = |audit: &mut Audit, thread, does, order, addr, (proxy, begun)| {
            let space = StateSpace::Global;
            let site = Site { span: Span::NONE, does, order, scope: Scope::Gpu, space, proxy };
            let number = audit.site(site);
            audit.access(number, Access { thread, addr, bytes: 4, begun, ..Access::NONE });
            audit.end_op();
        };
        let plain = (Proxy::Generic, 0);
        let early = audit.begin(copier);
        does(&mut audit, writer, Does::Write, Order::Weak, 64, plain);
        audit.proxy_fence(writer, ProxyFence::Async([true; 2]));
        does(&mut audit, writer, Does::Write, Order::Release, 128, plain);
        does(&mut audit, copier, Does::Read, Order::Acquire, 128, plain);
        let begun = if begun_after { audit.begin(copier) } else { early };
        does(&mut audit, copier, Does::Read, Order::Weak, 64, (Proxy::Async, begun));
        audit.finish().0.iter().map(|race| race.class).collect()
    }

    #[test]
    fn a_copy_comes_after_what_was_known_when_it_began() {
        assert_eq!(found(true), []);
        assert_eq!(found(false), [Class::Unordered]);
    }
}
