//! The order of fences of sequential consistency (`fence.sc`, `membar`).
//!
//! The manual leaves open which of two such fences comes first, but for what other axioms force. So of two fences the one that ran earlier tells the
//! later one something only if the other order would contradict the values that were seen: if something behind the first one reached, at one location
//! and by strong accesses (*communication order*), something that comes before the second one. In every other case the same run with the other order
//! is as good, and there the two fences keep nothing apart.
//!
//! Fences are counted as they come. Everything that is known goes along with the number of the last fence before it, and with that of the last fence of
//! which something was heard so ([`Known`]). Choice: who heard of a fence counts as having heard of all that ran before it.

use std::collections::BTreeMap;
use std::sync::Arc;

use handloom_diag::hash::FastMap;
use handloom_ir::types::Scope;

use crate::bag::Domain;
use crate::event::Thread;
use crate::known::Known;
use crate::order::Audit;
use crate::race::Now;

/// Most fences of a domain that are kept apart; who heard of an older one takes the oldest that is kept.
const MOST_KEPT: usize = 1 << 12;

/// As many of the last ones are looked at before others.
const FEW: usize = 4;

/// The number of a fence, from 1 on; 0: of none.
pub type Number = u32;

/// What fences of sequential consistency did so far.
#[derive(Clone, Default, Debug)]
pub struct Sequence {
    count: Number,
    /// By who may take it: what those knew together that executed a fence up to the one of the number.
    told: BTreeMap<Domain, Vec<(Number, Arc<Known>)>>,
    /// By address: the last fence before a strong write there or something that such a write has overwritten, and the one before a strong read there.
    at: FastMap<u64, (Number, Number)>,
}

impl Sequence {
    /// Whether an access by somebody who knows of a fence, or one to an address, may tell or hear something.
    pub fn concerns(&self, known: Number, addr: u64) -> bool {
        known > 0 || self.count > 0 && self.at.contains_key(&addr)
    }

    /// What a fence takes by whose thread fences up to a number have been heard of.
    fn take(
        &self,
        heard: Number,
        scope: Scope,
        who: Thread,
        cluster: Option<u32>,
    ) -> impl Iterator<Item = &Arc<Known>> {
        let of_domain = move |domain: Domain| {
            let list = self.told.get(&domain)?;
            // Mostly it is one of the last.
            let late = list.iter().rev().take(FEW).position(|(number, _)| *number <= heard);
            let end = match late {
                Some(after) => list.len() - after,
                None => list.partition_point(|(number, _)| *number <= heard),
            };
            // What came before those that are kept is in the oldest one.
            let last =
                if end == 0 && list.len() >= MOST_KEPT / 2 { list.first() } else { list.get(end.checked_sub(1)?) };
            last.map(|(_, known)| known)
        };
        Domain::within(scope, who, cluster).filter(move |_| heard > 0).filter_map(of_domain)
    }

    /// A thread executes another fence, and nobody can have heard of the one of a number, which it executed before with the same scope: who hears of a later
    /// one finds all in that.
    fn take_back(&mut self, number: Number, scope: Scope, who: Thread, cluster: Option<u32>) {
        for domain in Domain::within(scope, who, cluster) {
            if let Some(list) = self.told.get_mut(&domain)
                && list.last().is_some_and(|(last, _)| *last == number)
            {
                list.pop();
            }
        }
    }

    /// A thread that knows so much has executed the last fence.
    fn put(&mut self, known: &Arc<Known>, scope: Scope, who: Thread, cluster: Option<u32>) {
        // Domains that hold the same until now hold the same then.
        let mut last: Option<(*const Known, Arc<Known>)> = None;
        for domain in Domain::within(scope, who, cluster) {
            let list = self.told.entry(domain).or_default();
            let before = list.last().map(|(_, before)| before);
            let all = match (before, &last) {
                (None, _) => Arc::clone(known),
                (Some(before), Some((same, all))) if Arc::as_ptr(before) == *same => Arc::clone(all),
                (Some(before), _) if known.has(before) => Arc::clone(known),
                (Some(before), _) => {
                    let mut all = Arc::clone(known);
                    Known::learn(&mut all, before);
                    last = Some((Arc::as_ptr(before), Arc::clone(&all)));
                    all
                }
            };
            if list.len() >= MOST_KEPT {
                list.drain(..MOST_KEPT / 2);
            }
            list.push((self.count, all));
        }
    }

    /// A block has ended: what its threads alone may take, nobody takes any more.
    pub fn forget(&mut self, cta: u32) {
        self.told.remove(&Domain::Cta(cta));
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
    /// A thread executes a fence of sequential consistency: what it learns. Behind it, [`pass_sequence`](Audit::pass_sequence) and [`tell_sequence`](Audit::tell_sequence).
    pub(crate) fn take_sequence(&mut self, who: Thread, scope: Scope) {
        let cluster = self.cluster(who);
        let heard = self.clock(who).map_or(0, |clock| clock.heard());
        let Audit { sequence, ctas, .. } = self;
        if let Some(clock) = ctas.get_mut(who.cta).and_then(|cta| cta.clock_mut(who)) {
            sequence.take(heard, scope, who, cluster).for_each(|known| clock.learn(known));
        }
        sequence.count = sequence.count.saturating_add(1);
    }

    /// What it knows then, and has done itself, to be released.
    pub(crate) fn pass_sequence(&mut self, who: Thread, scope: Scope) -> Arc<Known> {
        let (now, number, cluster) = (self.now, self.sequence.count, self.cluster(who));
        self.has_released = true;
        let Audit { sequence, ctas, .. } = self;
        let Some(clock) = ctas.get_mut(who.cta).and_then(|cta| cta.clock_mut(who)) else { return Arc::default() };
        // What the thread released by its last fence is gone with that, so that nothing is copied. Who hears of a fence of somebody else between the two would miss it.
        if clock.orders().forget_fences(scope) && clock.unheard > 0 && clock.unheard + 1 == number {
            sequence.take_back(clock.unheard, scope, who, cluster);
        }
        clock.pass(who, now, number)
    }

    /// What those learn that execute one later.
    pub(crate) fn tell_sequence(&mut self, who: Thread, scope: Scope, known: &Arc<Known>) {
        let cluster = self.cluster(who);
        self.sequence.put(known, scope, who, cluster);
    }

    /// A strong access, which may tell of fences before it and hear of others.
    pub(crate) fn hear(&mut self, now: &Now) {
        let who = now.access.thread;
        let own = self.clock(who).map_or(0, |clock| {
            clock.unheard = 0;
            clock.passed()
        });
        if !self.sequence.concerns(own, now.access.addr) {
            return;
        }
        let heard = self.sequence.meet(own, now);
        if let Some(clock) = self.clock(who).filter(|clock| clock.heard() < heard) {
            clock.hear(heard);
        }
    }
}
