//! Copies that nothing has waited for, as a check knows them: whether they have happened or not, so that what is found depends on no seed.
//!
//! A copy stays open until its group is waited for, or somebody has seen the end of a phase of its barrier. What may be missed: global memory in copies of
//! tensors, results of reductions, copies of a later phase of a barrier whose earlier one is asked for late. Nothing is reported of a copy that was waited
//! for.

use handloom_audit::Proxy;
use handloom_ir::simt::{Begun, Wait};

use crate::transfer::work::{Range, Work};
use crate::under_way::Who;

/// An open copy to one place.
#[derive(Clone, Debug)]
struct Open {
    who: Who,
    /// Its number among all that was begun.
    number: u64,
    /// What is waited for by groups.
    of: Option<Begun>,
    group: Option<u64>,
    /// A barrier that is told of it, by generic address.
    barrier: Option<u64>,
    to: Option<Range>,
    from: Option<Range>,
    /// By which way it reaches memory, if it reads and writes all of these bytes and no others.
    whole: Option<Proxy>,
}

/// What a copy has done for its thread now that that has waited for it, and may have done before.
pub(super) struct Waited {
    pub(super) who: Who,
    pub(super) number: u64,
    pub(super) proxy: Proxy,
    pub(super) to: Option<Range>,
    pub(super) from: Option<Range>,
}

/// What is wrong with an access or an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unwaited {
    /// It touches what a copy writes.
    Target,
    /// It writes what a copy reads.
    Source,
}

#[derive(Default, Debug)]
pub(super) struct OpenCopies(Vec<Open>);

fn overlap(a: Option<Range>, b: Range) -> bool {
    a.is_some_and(|a| a.at < b.at.saturating_add(b.bytes) && b.at < a.at.saturating_add(a.bytes))
}

impl OpenCopies {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn begin(&mut self, work: &Work, (who, number): (Who, u64), of: Option<Begun>) {
        let all = work.footprint().into_iter();
        let whole = work.is_whole().then(|| work.proxy());
        self.0.extend(all.map(|(barrier, to, from)| Open { who, number, of, group: None, barrier, to, from, whole }));
    }

    fn of_thread(open: &Open, of: Begun, who: Who) -> bool {
        open.of == Some(of) && (open.who.cta, open.who.thread) == (who.cta, who.thread)
    }

    pub(super) fn commit(&mut self, of: Begun, who: Who, group: u64) {
        for open in self.0.iter_mut().filter(|open| OpenCopies::of_thread(open, of, who)) {
            open.group.get_or_insert(group);
        }
    }

    /// `groups`: how many the thread has made. Returns what has been waited for by that.
    pub(super) fn wait(&mut self, wait: Wait, who: Who, groups: u64) -> Vec<Waited> {
        let is_named = |open: &Open| {
            let is_early = |but: u32| open.group.is_some_and(|group| group + u64::from(but) < groups);
            OpenCopies::of_thread(open, wait.of, who) && wait.but.is_none_or(is_early)
        };
        let waited = |open: &Open| {
            let to = open.to.filter(|_| !wait.read);
            Some(Waited { who: open.who, number: open.number, proxy: open.whole?, to, from: open.from })
        };
        let all = self.0.iter().filter(|open| is_named(open)).filter_map(waited).collect();
        if wait.read {
            self.0.iter_mut().filter(|open| is_named(open)).for_each(|open| open.from = None);
        } else {
            self.0.retain(|open| !is_named(open));
        }
        all
    }

    /// A barrier is told of the copies of a few bytes of a thread.
    pub(super) fn arrive(&mut self, barrier: u64, who: Who) {
        for open in self.0.iter_mut().filter(|open| OpenCopies::of_thread(open, Begun::Few, who)) {
            open.barrier.get_or_insert(barrier);
        }
    }

    /// A phase of a barrier has ended, and somebody has seen it. `is_left`: what has not happened, and so was not waited for.
    pub(super) fn seen(&mut self, barrier: u64, is_left: impl Fn(u64) -> bool) {
        self.0.retain(|open| open.barrier != Some(barrier) || is_left(open.number));
    }

    /// The first copy that an access should have waited for.
    pub(super) fn unwaited(&self, access: Range, writes: bool) -> Option<(Who, Unwaited)> {
        self.0.iter().find_map(|open| {
            let what = if overlap(open.to, access) {
                Unwaited::Target
            } else if writes && overlap(open.from, access) {
                Unwaited::Source
            } else {
                return None;
            };
            Some((open.who, what))
        })
    }

    /// A CTA has ended: who began copies in groups that nobody waited for.
    ///
    /// Choice: a copy to global memory needs no wait for its bytes, only until its source was read, which ends with its CTA.
    pub(super) fn end(&mut self, cta: u64) -> Vec<Who> {
        let (ended, left) = std::mem::take(&mut self.0).into_iter().partition(|open: &Open| open.who.cta == cta);
        self.0 = left;
        let ended: Vec<Open> = ended;
        let is_left = |open: &&Open| match open.of {
            Some(Begun::Few) => open.barrier.is_none(),
            Some(Begun::Bulk) => open.from.is_some(),
            Some(Begun::TensorStores) | None => false,
        };
        ended.iter().filter(is_left).map(|open| open.who).collect()
    }
}
