//! What the CTAs of a cluster have begun.

use std::collections::BTreeMap;

use handloom_ir::mbarrier::PHASE_BIT;
use handloom_ir::simt::{Begun, TensorOp, Wait};

use super::entry::{Deed, Entry, Kind, OnTensor};
use super::open::OpenCopies;
use crate::env::CtaEnv;
use crate::tensor::held::Held;
use crate::tensor::step::barriers_of;
use crate::transfer::reach::{Fault, Reach};
use crate::transfer::work::{What, When, Work};
use crate::under_way::Who;

/// Most events that something waits for by seed, unless it waits for somebody who asks.
const MOST_EVENTS: u64 = 8;

#[derive(Debug)]
pub(super) struct Queue {
    seed: Option<u64>,
    /// In the order in which they were begun.
    begun: Vec<Entry>,
    /// How many there were.
    count: u64,
    /// Groups of a thread.
    groups: BTreeMap<(u64, u32, Begun), u64>,
    /// Ops that came here.
    events: u64,
    watches: bool,
    pub(super) open: OpenCopies,
}

/// A number that depends on all bits of another one.
pub(super) fn mixed(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

impl Queue {
    pub(super) fn new(seed: Option<u64>, watches: bool) -> Queue {
        let open = OpenCopies::default();
        Queue { seed, begun: Vec::new(), count: 0, groups: BTreeMap::new(), events: 0, watches, open }
    }

    pub(super) fn begin(&mut self, work: Work, who: Who, reach: &mut dyn Reach) -> Result<bool, Fault> {
        if let What::When(when) = work.what {
            return self.when(when, who, reach);
        }
        let kind = match (&work.what, work.barriers.is_empty()) {
            (What::Nothing, true) => return Ok(false),
            // `st.bulk` is an ordinary store.
            (What::Zeros { .. } | What::Bytes { now: true, .. }, _) => {
                work.perform(reach);
                return Ok(true);
            }
            (What::Few { .. }, _) => Kind::Begun(Begun::Few),
            (_, false) => Kind::Told,
            (_, true) => Kind::Begun(Begun::Bulk),
        };
        if self.watches {
            let of = if let Kind::Begun(of) = kind { Some(of) } else { None };
            self.open.begin(&work, (who, self.count), of);
        }
        self.add(who, kind, Deed::Work(work), reach)
    }

    pub(super) fn begin_tensor(
        &mut self,
        held: &Held,
        op: TensorOp,
        src: &[u64],
        who: Who,
        reach: &mut dyn Reach,
    ) -> Result<bool, Fault> {
        let told = barriers_of(op, src, reach)?;
        let is_store = matches!(op, TensorOp::Store(_));
        let kind = if is_store { Kind::Begun(Begun::TensorStores) } else { Kind::Tensor };
        let env = CtaEnv { late: None, ..reach.env().clone() };
        let deed = OnTensor { held: held.clone(), returned: held.returned(), op, src: src.to_vec(), env, told };
        self.add(who, kind, Deed::Tensor(Box::new(deed)), reach)
    }

    fn add(&mut self, who: Who, kind: Kind, deed: Deed, reach: &mut dyn Reach) -> Result<bool, Fault> {
        let due = self.seed.and_then(|seed| {
            let place = mixed(who.cta) ^ mixed(u64::from(who.thread) << 32 | u64::from(who.span.start));
            let random = mixed(seed ^ mixed(place ^ mixed(self.events)));
            match random % 4 {
                0 => None,
                1 => Some(0),
                _ => Some(self.events + 1 + random / 4 % MOST_EVENTS),
            }
        });
        self.begun.push(Entry { who, number: self.count, kind, group: None, due, deed });
        self.count += 1;
        self.passed(reach)
    }

    /// An event has passed: what is due happens.
    fn passed(&mut self, reach: &mut dyn Reach) -> Result<bool, Fault> {
        self.events += 1;
        let now = self.events;
        self.perform_all(|e| e.due.is_some_and(|due| due <= now), reach)
    }

    /// All that a test names happens, with what goes before it. Says whether there was any.
    fn perform_all(&mut self, mut names: impl FnMut(&Entry) -> bool, reach: &mut dyn Reach) -> Result<bool, Fault> {
        let mut any = false;
        while let Some(i) = self.begun.iter().position(&mut names) {
            self.perform(i, reach)?;
            any = true;
        }
        Ok(any)
    }

    /// One happens, behind those that it follows.
    fn perform(&mut self, i: usize, reach: &mut dyn Reach) -> Result<(), Fault> {
        let last = self.begun.remove(i);
        let mut at = 0;
        let mut left = i;
        while at < left {
            if last.follows(&self.begun[at]) {
                self.begun.remove(at).perform(reach)?;
                left -= 1;
            } else {
                at += 1;
            }
        }
        last.perform(reach)
    }

    fn when(&mut self, when: When, who: Who, reach: &mut dyn Reach) -> Result<bool, Fault> {
        let changed = match when {
            When::Commit(of) => {
                self.commit(of, who);
                false
            }
            When::Wait(wait) => self.wait(wait, who, reach)?,
            When::Arrive(at, expects) => {
                if expects {
                    reach.step(at, &mut |old| old.wrapping_add(1));
                }
                self.open.arrive(at, who);
                return self.add(who, Kind::Arrival, Deed::Arrive(at), reach);
            }
            When::Ask(at, word) => self.ask(at, word, reach)?,
        };
        Ok(self.passed(reach)? || changed)
    }

    fn of_thread(e: &Entry, of: Begun, who: Who) -> bool {
        e.kind == Kind::Begun(of) && (e.who.cta, e.who.thread) == (who.cta, who.thread)
    }

    fn commit(&mut self, of: Begun, who: Who) {
        let next = self.groups.entry((who.cta, who.thread, of)).or_default();
        for e in self.begun.iter_mut().filter(|e| Queue::of_thread(e, of, who)) {
            e.group.get_or_insert(*next);
        }
        self.open.commit(of, who, *next);
        *next += 1;
    }

    fn wait(&mut self, wait: Wait, who: Who, reach: &mut dyn Reach) -> Result<bool, Fault> {
        let groups = self.groups.get(&(who.cta, who.thread, wait.of)).copied().unwrap_or(0);
        let is_named = |e: &Entry| {
            let is_early = |but: u32| e.group.is_some_and(|group| group + u64::from(but) < groups);
            Queue::of_thread(e, wait.of, who) && wait.but.is_none_or(is_early)
        };
        // What has happened before counts as done again: who comes after the wait, but not in order after it, is not in order after the copy.
        for waited in self.open.wait(wait, who, groups) {
            if self.begun.iter().all(|e| e.number != waited.number) {
                reach.act_for(Some(waited.who));
                reach.through(waited.proxy);
                waited.from.into_iter().for_each(|from| reach.done_by_now(from.at, from.bytes, false));
                waited.to.into_iter().for_each(|to| reach.done_by_now(to.at, to.bytes, true));
                reach.act_for(None);
            }
        }
        if wait.read {
            self.begun.iter_mut().filter(|e| is_named(e)).for_each(|e| e.fetch(reach));
            return Ok(false);
        }
        self.perform_all(is_named, reach)
    }

    /// Somebody asks whether a phase has ended: what is missing for it happens.
    fn ask(&mut self, at: u64, word: u64, reach: &mut dyn Reach) -> Result<bool, Fault> {
        let mut any = false;
        while (reach.look(at) ^ word) >> PHASE_BIT & 1 == 0
            && let Some(i) = self.begun.iter().position(|e| e.tells(at))
        {
            self.perform(i, reach)?;
            any = true;
        }
        if (reach.look(at) ^ word) >> PHASE_BIT & 1 == 1 {
            let begun = &self.begun;
            self.open.seen(at, |number| begun.iter().any(|e| e.number == number));
        }
        Ok(any)
    }

    pub(super) fn end(&mut self, reach: &mut dyn Reach) -> Result<(), Fault> {
        let cta = reach.env().linear_ctaid();
        self.perform_all(|e| e.who.cta == cta, reach)?;
        self.groups.retain(|(of, ..), _| *of != cta);
        Ok(())
    }
}
