//! The order of fences of sequential consistency (`fence.sc`, `membar`).
//!
//! The manual leaves open which of two such fences comes first, but for what other axioms force. So of two fences the one that ran earlier tells the
//! later one something only if the other order would contradict the values that were seen: if something behind the first one reached, at one location
//! and by strong accesses (*communication order*), something that comes before the second one. In every other case the same run with the other order
//! is as good, and there the two fences keep nothing apart.
//!
//! Fences are counted as they come. Everything that is known goes along with the number of the last fence before it, and with that of the last fence of
//! which something was heard so ([`Told`]). Choice: who heard of a fence counts as having heard of all that ran before it.

use std::collections::BTreeMap;

use handloom_diag::hash::FastMap;
use handloom_ir::types::Scope;

use crate::bag::Domain;
use crate::event::Thread;
use crate::order::Audit;
use crate::race::Now;
use crate::told::Told;

/// Most fences of a domain that are kept apart; who heard of an older one takes the oldest that is kept.
const MOST_KEPT: usize = 1 << 12;

/// As many of the last ones are looked at before others.
const FEW: usize = 4;

/// Of as many one is put together with all before it, once one behind them is.
const STEP: usize = 16;

/// The number of a fence, from 1 on; 0: of none.
pub type Number = u32;

/// What fences of sequential consistency did so far.
#[derive(Clone, Default, Debug)]
pub struct Sequence {
    count: Number,
    /// By who may take it, in the order of numbers.
    told: BTreeMap<Domain, Fences>,
    /// By address: the last fence before a strong write there or something that such a write has overwritten, and the one before a strong read there.
    at: FastMap<u64, (Number, Number)>,
}

/// Fences of which the same may hear.
#[derive(Clone, Default, Debug)]
struct Fences {
    /// The last ones of them, the first of which says all that was told before it.
    list: Vec<Passed>,
    /// Some are of a smaller scope than the device.
    has_narrow: bool,
}

/// A fence.
#[derive(Clone, Debug)]
struct Passed {
    number: Number,
    /// What its thread knew.
    told: Told,
    /// And all that fences before it told: that is put together where somebody asks.
    is_all: bool,
    /// Its thread knew that itself.
    knew_all: bool,
}

impl Fences {
    /// What is told by the fences up to one.
    fn all_until(&mut self, last: usize) -> &mut Told {
        let start = self.list[..=last].iter().rposition(|fence| fence.is_all).unwrap_or(0);
        if start < last {
            let mut all = self.list[start].told.clone();
            for (i, fence) in self.list.iter_mut().enumerate().take(last + 1).skip(start + 1) {
                all.learn(&fence.told);
                // So that who asks for an earlier one later does not begin so far before it.
                if i == last || (i - start).is_multiple_of(STEP) {
                    (fence.told, fence.is_all) = (all.clone(), true);
                }
            }
        }
        &mut self.list[last].told
    }

    /// How many fences have numbers up to one. There are no more than numbers from the first one to it, and mostly hardly less.
    fn place(&self, heard: Number) -> usize {
        let Some(first) = self.list.first() else { return 0 };
        let most =
            heard.checked_sub(first.number).map_or(0, |n| usize::try_from(n).unwrap_or(usize::MAX).saturating_add(1));
        let (mut end, mut step) = (most.min(self.list.len()), 1);
        // Twice as far back at each step: what lies behind is later.
        while let Some(start) = end.checked_sub(step) {
            if self.list[start].number <= heard {
                return start + self.list[start..end].partition_point(|fence| fence.number <= heard);
            }
            (end, step) = (start, 2 * step);
        }
        self.list[..end].partition_point(|fence| fence.number <= heard)
    }

    /// What is told by the fences up to a number, if there are any.
    fn heard(&mut self, heard: Number) -> Option<&mut Told> {
        // Mostly it is one of the last.
        let late = self.list.iter().rev().take(FEW).position(|fence| fence.number <= heard);
        let end = match late {
            Some(after) => self.list.len() - after,
            None => self.place(heard),
        };
        // What came before those that are kept is in the oldest one.
        let last = if end == 0 && self.list.len() >= MOST_KEPT / 2 { Some(0) } else { end.checked_sub(1) };
        last.map(|last| self.all_until(last))
    }

    /// One more, of a thread that knew so much. `before`: up to which fence it knew what was told here, and its own last one.
    fn push(&mut self, number: Number, told: &Told, before: (Number, Number)) {
        if self.list.len() >= MOST_KEPT {
            self.all_until(MOST_KEPT / 2);
            self.list.drain(..MOST_KEPT / 2);
        }
        // Who hands a lock on tells all that was told to him, mostly.
        let has_all = |last: &Passed| last.number <= before.0 || last.knew_all && last.number == before.1;
        let knew_all = self.list.last().is_none_or(has_all);
        self.list.push(Passed { number, told: told.clone(), is_all: knew_all, knew_all });
    }
}

impl Sequence {
    /// Whether an access by somebody who knows of a fence, or one to an address, may tell or hear something.
    pub fn concerns(&self, known: Number, addr: u64) -> bool {
        known > 0 || self.count > 0 && self.at.contains_key(&addr)
    }

    /// What a fence takes by whose thread fences up to a number have been heard of, put together if somebody else has told it.
    fn take(
        &mut self,
        heard: Number,
        scope: Scope,
        who: Thread,
        cluster: Option<u32>,
        mut learn: impl FnMut(&mut Told),
    ) {
        if heard == 0 {
            return;
        }
        let has_all = Domain::within(scope, who, cluster).any(|domain| domain == Domain::All);
        for domain in Domain::within(scope, who, cluster) {
            let Some(fences) = self.told.get_mut(&domain) else { continue };
            // What is told to all comes from there.
            if domain == Domain::All || !has_all || fences.has_narrow {
                fences.heard(heard).into_iter().for_each(&mut learn);
            }
        }
    }

    /// A thread that knows so much has executed the last fence. `unheard`: the number of one that it executed before with the same scope, if nobody can have
    /// heard of that: who hears of a later one finds all in that. `before`: up to which fence it has taken what was told to those of the scope, and its own last one.
    fn put(
        &mut self,
        told: &Told,
        unheard: Option<Number>,
        before: (Number, Number),
        scope: Scope,
        who: Thread,
        cluster: Option<u32>,
    ) {
        let is_narrow = Domain::within(scope, who, cluster).all(|domain| domain != Domain::All);
        for domain in Domain::within(scope, who, cluster) {
            let fences = self.told.entry(domain).or_default();
            fences.has_narrow |= is_narrow;
            match fences.list.last_mut().filter(|last| Some(last.number) == unheard) {
                Some(last) => {
                    last.number = self.count;
                    last.told.learn(told);
                }
                None => fences.push(self.count, told, before),
            }
        }
    }

    /// A block has ended: what its threads alone may take, nobody takes any more.
    pub fn forget(&mut self, cta: u32) {
        self.told.remove(&Domain::Cta(cta));
    }

    /// Up to which fence those hear of some who read an address.
    pub fn heard_of_writes(&self, addr: u64) -> Number {
        self.at.get(&addr).map_or(0, |(written, _)| *written)
    }

    /// Those have read an address who know of fences up to a number.
    pub fn was_read(&mut self, addr: u64, own: Number) {
        let there = self.at.get(&addr).copied().unwrap_or_default();
        if there.1 < own {
            self.at.insert(addr, (there.0, own));
        }
    }

    /// An access by who knows of fences up to a number: up to which one he hears of some.
    fn meet(&mut self, own: Number, now: &Now) -> Number {
        let there = self.at.get(&now.access.addr).copied().unwrap_or_default();
        let heard = if now.writes { there.0.max(there.1) } else { there.0 };
        let left =
            (if now.writes { heard.max(own) } else { there.0 }, if now.reads { there.1.max(own) } else { there.1 });
        if left != there {
            self.at.insert(now.access.addr, left);
        }
        heard
    }
}

impl Audit {
    /// A thread executes a fence of sequential consistency: what it learns, and what those learn that execute one later.
    pub(crate) fn pass_sequence(&mut self, who: Thread, site: u32, scope: Scope) {
        let (now, cluster) = (self.now, self.cluster(who));
        self.has_released = true;
        let Audit { sequence, ctas, .. } = self;
        let Some(clock) = ctas.running(who) else { return };
        let heard = clock.heard();
        // Who has heard of nothing since the last one learned all by that.
        if clock.took != Some((heard, scope)) {
            clock.took = Some((heard, scope));
            sequence.take(heard, scope, who, cluster, |told| {
                if !clock.knows(who, told) {
                    told.settle();
                    clock.learn(who, told, now);
                }
            });
        }
        sequence.count = sequence.count.saturating_add(1);
        let number = sequence.count;
        let is_only = clock.orders().fences.iter().all(|f| f.scope <= scope);
        // Who hears of a fence of somebody else between the two would miss the first one.
        let unheard = Some(clock.unheard).filter(|n| is_only && *n > 0 && n + 1 == number);
        let before = (heard, std::mem::replace(&mut clock.passed, number));
        clock.unheard = number;
        let told = clock.release(who, now, scope, site);
        sequence.put(told, unheard, before, scope, who, cluster);
    }

    /// A strong access, which may tell of fences before it and hear of others.
    pub(crate) fn hear(&mut self, now: &Now) {
        let who = now.access.thread;
        let Audit { sequence, ctas, .. } = self;
        let Some(clock) = ctas.running(who) else { return };
        clock.unheard = 0;
        let own = clock.passed();
        if !sequence.concerns(own, now.access.addr) {
            return;
        }
        let heard = sequence.meet(own, now);
        if clock.heard() < heard {
            clock.hear(heard);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_found_by_number() {
        let mut state = 3_u32;
        for n in 0..60 {
            let mut number = 5;
            let mut fences = Fences::default();
            for _ in 0..n {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                number += if state >> 29 == 0 { 1 + (state >> 20) % 40 } else { 1 };
                fences.list.push(Passed { number, told: Told::default(), is_all: true, knew_all: true });
            }
            for heard in 0..number + 3 {
                assert_eq!(fences.place(heard), fences.list.partition_point(|fence| fence.number <= heard), "{heard}");
            }
        }
    }
}
