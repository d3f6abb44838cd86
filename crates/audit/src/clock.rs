//! What one thread knows, and what it has released and read that may still order something.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use handloom_ir::types::Scope;

use crate::bag::Bag;
use crate::event::Thread;
use crate::finding::Attempt;
use crate::known::{Known, Own, Time};
use crate::sequence::Number;
use crate::shadow::Entry;
use crate::told::{Mark, Told};

/// Most releases that are remembered because a scope was too narrow, for explanations only.
const MOST_MISSED: usize = 8;

/// What a thread would know if scopes were wider.
#[derive(Clone, Debug)]
pub struct Missed {
    /// What was released.
    pub known: Arc<Known>,
    /// The pair that did not meet.
    pub attempt: Attempt,
}

impl Missed {
    /// Whether an access of a lane would have come before what the thread did then.
    pub fn explains(&self, e: Entry, lane: u8) -> bool {
        self.known.unknown(e.cta(), e.warp(), 1 << lane, e.time) == 0
    }
}

/// What a thread knows.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// All that its warp did until then.
    pub warp: Time,
    /// All that its block did until then.
    pub cta: Time,
    /// When it last released something.
    pub released: Time,
    /// What release patterns and barriers of some threads told.
    pub more: Option<Arc<Known>>,
    /// Made when the thread first releases or reads something strong, or a scope was too narrow.
    pub orders: Option<Box<Orders>>,
    /// Its last fence of sequential consistency, if that is later than what is in `more`.
    pub passed: Number,
    /// The last fence of sequential consistency of which it has heard, if that is later than what is in `more`.
    pub heard: Number,
    /// The number of its last fence, if that is of sequential consistency and nobody can have heard of it; else 0.
    pub unheard: Number,
    /// The last one of which it had heard when it executed its last fence, and the scope of that.
    pub took: Option<(Number, Scope)>,
    /// When it last learned something: of what others did later it knows nothing.
    pub until: Time,
    /// How often it has learned something: as long as that is the same, the same of others comes before what it does.
    pub learned: u32,
    /// It has read something by a strong access, and so may have been told something.
    pub has_asked: bool,
}

/// A release: what the thread knew then, its scope, and its site.
#[derive(Clone, Debug)]
pub struct Released {
    /// What the thread knew.
    pub told: Told,
    /// Of the fence or the operation.
    pub scope: Scope,
    /// Of the fence or the operation.
    pub site: u32,
}

/// First halves of patterns of a thread.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    /// Its last fences that release, of different scopes.
    pub fences: Vec<Released>,
    /// Its last release operations on each location, which is an address and bytes.
    pub on: BTreeMap<(u64, u8), Vec<Released>>,
    /// What it read at a location and has not acquired.
    pub pending: Vec<((u64, u8), Arc<Bag>)>,
    /// What its last strong read did not observe, because a scope was too narrow, and a fence would have acquired.
    pub narrow: Vec<Missed>,
    /// What a scope that is too narrow did not tell.
    missed: Vec<Missed>,
}

impl Clock {
    /// The lanes of an access that is not ordered before what the thread does now.
    #[inline]
    pub fn unordered(&self, me: Thread, e: Entry) -> u32 {
        let left = self.left(me, e);
        match &self.more {
            Some(more) if left != 0 => more.unknown(e.cta(), e.warp(), left, e.time),
            Some(_) | None => left,
        }
    }

    /// Whether all of an access comes before what the thread does now, to be asked of several accesses.
    #[inline]
    pub fn orders_several(&self, me: Thread) -> impl Fn(Entry) -> bool {
        let near = OnceCell::new();
        move |e: Entry| {
            let left = self.left(me, e);
            if left != 0 && e.time > self.until {
                return false;
            }
            let knows = |more| near.get_or_init(|| Known::near(more, me.cta)).knows(e.cta(), e.warp(), left, e.time);
            left == 0 || self.more.as_deref().is_some_and(knows)
        }
    }

    /// The lanes that the thread itself and barriers do not put before it.
    #[inline]
    fn left(&self, me: Thread, e: Entry) -> u32 {
        if e.cta() != me.cta {
            return e.lanes;
        }
        if e.time <= self.cta || e.warp() == me.warp && e.time <= self.warp {
            return 0;
        }
        if e.warp() == me.warp { e.lanes & !me.bit() } else { e.lanes }
    }

    /// Whether another thread of its warp knows the same of all others.
    pub fn is_alike(&self, other: &Clock) -> bool {
        let is_same = match (&self.more, &other.more) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (Some(_), None) | (None, Some(_)) => false,
        };
        is_same && (self.warp, self.cta) == (other.warp, other.cta)
    }

    /// All that the thread knows and has done itself, to be released.
    pub fn snapshot(&mut self, me: Thread, now: Time) -> Told {
        self.unheard = 0;
        let mark = self.mark(me, now);
        Told::new(self.more.as_ref(), mark)
    }

    /// What the thread has done itself, to be released.
    fn mark(&mut self, me: Thread, now: Time) -> Mark {
        let is_first = self.released < now;
        self.released = now;
        let own = Own { until: now, ..self.own(me) };
        Mark { own, cta: self.cta, warp: self.warp, learned: self.learned, is_first }
    }

    /// When it last told something to others, or met them: nobody knows of single accesses that came later.
    pub fn told(&self) -> Time {
        self.released.max(self.until)
    }

    /// What it has done comes before what it does.
    fn own(&self, me: Thread) -> Own {
        Own { who: me, until: Time::MAX, fences: (self.passed, self.heard) }
    }

    /// A fence of a scope releases what the thread knows and has done. Those of its scope or a smaller one count no more.
    pub fn release(&mut self, me: Thread, now: Time, scope: Scope, site: u32) -> &Told {
        let mark = self.mark(me, now);
        let Clock { more, orders, .. } = self;
        let fences = &mut orders.get_or_insert_default().fences;
        // Mostly there is one, and nothing has been learned since.
        let is_renewed = match fences.as_mut_slice() {
            [one] => one.scope <= scope && one.told.renew(&mark),
            _ => false,
        };
        if !is_renewed {
            fences.retain(|f| f.scope > scope);
            fences.push(Released { told: Told::new(more.as_ref(), mark), scope, site });
        }
        let last = fences.len() - 1;
        (fences[last].scope, fences[last].site) = (scope, site);
        &fences[last].told
    }

    /// Whether a thread that asks again learns nothing from a bag, whatever its scope.
    pub fn knows_all(&self, me: Thread, bag: &Bag) -> bool {
        bag.all().all(|told| self.knows(me, told))
    }

    /// Whether it has read a bag at a location, and has not acquired it.
    #[inline]
    pub fn has_read(&self, location: (u64, u8), bag: &Arc<Bag>) -> bool {
        let is_it = |(at, there): &((u64, u8), Arc<Bag>)| *at == location && Arc::ptr_eq(there, bag);
        self.orders.as_ref().is_some_and(|orders| orders.pending.iter().any(is_it))
    }

    /// Whether it knows all that others released.
    pub fn knows(&self, me: Thread, told: &Told) -> bool {
        told.is_before(me, self.until) && told.is_known(self.more.as_deref(), Some(&self.own(me)))
    }

    /// Takes over what others know.
    pub fn learn(&mut self, me: Thread, told: &Told, now: Time) {
        if self.knows(me, told) {
            return;
        }
        self.learns(now);
        match &mut self.more {
            None => self.more = Some(told.whole()),
            Some(more) => Known::learn(more, &told.whole()),
        }
    }

    /// All of its block meet.
    pub fn meet(&mut self, now: Time) {
        (self.cta, self.warp) = (now, now);
        self.learns(now);
    }

    /// It learns something.
    pub fn learns(&mut self, now: Time) {
        self.until = now;
        self.learned += 1;
    }

    /// What release patterns and barriers told, to be changed.
    fn know(&mut self) -> &mut Known {
        Arc::make_mut(self.more.get_or_insert_default())
    }

    /// The last fence of sequential consistency that comes before what it does now.
    #[inline]
    pub fn passed(&self) -> Number {
        self.more.as_ref().map_or(0, |more| more.passed()).max(self.passed)
    }

    /// The last one of which it has heard.
    #[inline]
    pub fn heard(&self) -> Number {
        self.more.as_ref().map_or(0, |more| more.heard()).max(self.heard)
    }

    /// It hears of fences up to a number.
    pub fn hear(&mut self, number: Number) {
        self.heard = number;
        if self.more.is_none() {
            self.settle();
        }
    }

    /// Whether it knows nothing but times of its block and its warp.
    pub fn is_plain(&self) -> bool {
        self.more.is_none() && self.passed == 0
    }

    /// Puts down with the rest which fences it has executed and of which it has heard, before others take over what it knows.
    pub fn settle(&mut self) {
        self.unheard = 0;
        if self.passed > self.more.as_ref().map_or(0, |more| more.passed()) {
            let passed = self.passed;
            self.know().pass(passed);
        }
        if self.heard > self.more.as_ref().map_or(0, |more| more.heard()) {
            let heard = self.heard;
            self.know().hear(heard);
        }
    }

    /// Remembers what it cannot take over.
    pub fn miss(&mut self, list: &[Missed]) {
        for missed in list {
            let there = &mut self.orders().missed;
            if there.iter().any(|m| Arc::ptr_eq(&m.known, &missed.known)) {
                continue;
            }
            if there.len() >= MOST_MISSED {
                there.remove(0);
            }
            there.push(missed.clone());
        }
    }

    /// What it could not take over.
    pub fn missed(&self) -> &[Missed] {
        self.orders.as_ref().map_or(&[], |orders| &orders.missed)
    }

    /// First halves of patterns.
    pub fn orders(&mut self) -> &mut Orders {
        self.orders.get_or_insert_default()
    }
}

impl Orders {
    /// A strong read of a location found something.
    pub fn read(&mut self, location: (u64, u8), bag: &Arc<Bag>) {
        match self.pending.iter_mut().find(|(at, _)| *at == location) {
            None => self.pending.push((location, Arc::clone(bag))),
            Some((_, there)) if Arc::ptr_eq(there, bag) => {}
            // Who asks again and again is mostly told what he was told before, and more.
            Some((_, there)) if bag.includes(there) => *there = Arc::clone(bag),
            Some((_, there)) => Arc::make_mut(there).join(bag),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads hand on what they know, meet in part of a warp or with all of it that are left: what one knows of another one is what a time for each pair of them
    /// says, whichever way it was learned.
    #[test]
    fn what_is_handed_on_is_what_plain_times_say() {
        let mut state = 7_u64;
        let mut random = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % n
        };
        let all: Vec<Thread> = (0..2_u32)
            .flat_map(|cta| (0..2).flat_map(move |warp| (0..3).map(move |lane| Thread { cta: 9 * cta, warp, lane })))
            .collect();
        let n = all.len();
        let join =
            |mine: &mut [Time], theirs: &[Time]| mine.iter_mut().zip(theirs).for_each(|(m, t)| *m = (*m).max(*t));
        for _ in 0..200 {
            let mut clocks = vec![Clock::default(); n];
            let mut plain = vec![vec![0; n]; n];
            let mut released: Vec<(Told, Vec<Time>)> = Vec::new();
            let mut now = 1;
            for _ in 0..120 {
                let me = random(n);
                match random(8) {
                    0..3 => {
                        let mut times = plain[me].clone();
                        times[me] = now;
                        let told = match random(2) {
                            0 => clocks[me].snapshot(all[me], now),
                            _ => clocks[me].release(all[me], now, Scope::Gpu, 1).clone(),
                        };
                        released.push((told, times));
                        // An op with several elements releases more than once at a time.
                        now += Time::try_from(random(2)).unwrap();
                    }
                    3..6 => {
                        let n = released.len().max(1);
                        let Some((told, times)) = released.get_mut(random(n)) else { continue };
                        if random(2) == 0 {
                            told.settle();
                        }
                        clocks[me].learn(all[me], told, now);
                        join(&mut plain[me], times);
                    }
                    6 => {
                        // What two hand on together.
                        let (Some((first, a)), Some((second, b))) = (released.first(), released.last()) else {
                            continue;
                        };
                        let (mut both, mut times) = (first.clone(), a.clone());
                        both.learn(second);
                        join(&mut times, b);
                        released.push((both, times));
                    }
                    _ => {
                        // Of its warp all are left but one, who knows what he knows for himself.
                        let warp = me / 3 * 3..me / 3 * 3 + 3;
                        let left: Vec<usize> = warp.clone().filter(|t| *t != me).collect();
                        let mut times = vec![0; n];
                        left.iter().for_each(|t| join(&mut times, &plain[*t]));
                        warp.for_each(|t| times[t] = now);
                        let more: Vec<Arc<Known>> = left.iter().filter_map(|t| clocks[*t].more.clone()).collect();
                        for t in left {
                            more.iter().for_each(|known| clocks[t].learn(all[t], &Arc::clone(known).into(), now));
                            clocks[t].warp = now;
                            clocks[t].learns(now);
                            plain[t].clone_from(&times);
                        }
                        now += 1;
                    }
                }
            }
            for (me, them) in (0..n).flat_map(|me| (0..n).map(move |them| (me, them))).filter(|(me, them)| me != them) {
                let who = all[them].cta << 5 | u32::from(all[them].warp);
                let known =
                    |time| clocks[me].unordered(all[me], Entry { time, who, lanes: all[them].bit(), tag: 0 }) == 0;
                let until = (1..=now).take_while(|time| known(*time)).last().unwrap_or(0);
                assert_eq!(until, plain[me][them], "{me} {them}");
            }
        }
    }
}
