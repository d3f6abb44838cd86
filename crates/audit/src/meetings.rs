//! Named barriers that two groups of threads share by accident.
//!
//! A barrier with a count is met by whoever comes first. Where two meetings of one number follow each other, of threads that are all different, and those
//! of the second one might as well have come before the first one was over, the groups can mix: a thread of the second one then stands in for one of the
//! first, and the other one is let go too early. That is so if no thread that waits in the second meeting knows, by causality order, of anything that
//! a thread did after it was let go from the first.
//!
//! What might hold them apart in a way that causality order does not have, as flags that are relaxed, lets nothing be told: a thread that has read what
//! another one wrote by a strong access counts as one that knows. So this needs to be told of accesses.

use std::collections::BTreeMap;

use handloom_diag::Span;

use crate::checks::Check;
use crate::clock::Clock;
use crate::event::{Met, Thread};
use crate::known::Time;
use crate::misuse::{Misuse, Wrong};
use crate::order::Audit;
use crate::shadow::Entry;

/// Numbers of barriers that a program can name.
const NAMED: u32 = 16;

/// The last meeting at a barrier of some threads of a block.
#[derive(Clone, Debug)]
struct Meeting {
    /// What a thread does after it is not before this.
    until: Time,
    /// Warps and lanes that waited.
    waited: Vec<(usize, u32)>,
    /// By warp: lanes that waited, and those that arrived and went on.
    all: BTreeMap<usize, u32>,
    /// The statement of one of them, and who it is.
    first: (Span, Thread),
}

/// The last meetings of a block, by barrier.
#[derive(Clone, Debug, Default)]
pub struct Meetings(BTreeMap<u32, Meeting>);

impl Audit {
    /// A barrier of a block is about to be met ([`barrier`](Audit::barrier)), by threads of which the first one waits at a statement.
    pub fn meeting(&mut self, cta: u64, met: &Met, at: Span) {
        self.interrupt();
        let has_all = [Check::Race, Check::Sync].into_iter().all(|check| self.checks.has(check));
        let Ok(number) = u32::try_from(cta) else { return };
        let until = self.now.saturating_add(1);
        let Some(cta) = self.ctas.get_mut(number).filter(|_| has_all && met.id < NAMED) else { return };
        let Some((warp, lanes)) = met.waited.first().copied() else { return };
        if met.is_whole {
            // All of the block meet, so whoever comes next knows.
            cta.meetings.0.remove(&met.id);
            return;
        }
        let who = |warp: usize, lane: u32| Thread::new(number, 32 * warp + usize::try_from(lane & 31).unwrap_or(0));
        let first = (at, who(warp, lanes.trailing_zeros()));
        let mut all = cta.arrived_at(met.id);
        met.waited.iter().for_each(|(warp, lanes)| *all.entry(*warp).or_default() |= lanes);
        let before = cta.meetings.0.remove(&met.id);
        let is_by_chance = before.as_ref().is_some_and(|before| {
            let is_apart = all.iter().all(|(warp, lanes)| before.all.get(warp).is_none_or(|there| there & lanes == 0));
            let knows = |me: Thread, clock: &Clock| {
                let of = |(warp, lanes): &(usize, u32)| {
                    let entry =
                        Entry { time: before.until, who: number << 5 | (*warp as u32 & 31), lanes: *lanes, tag: 0 };
                    clock.unordered(me, entry) != *lanes
                };
                clock.has_asked || before.waited.iter().any(of)
            };
            let mut threads = met.waited.iter().flat_map(|(warp, lanes)| {
                (0..32).filter(move |lane| lanes >> lane & 1 == 1).map(move |lane| who(*warp, lane))
            });
            let clock = |me: Thread| cta.clocks.get(usize::try_from(me.number()).ok()?);
            is_apart && threads.all(|me| clock(me).is_some_and(|clock| !knows(me, clock)))
        });
        let second = before.filter(|_| is_by_chance).map(|before| before.first);
        cta.meetings.0.insert(met.id, Meeting { until, waited: met.waited.clone(), all, first });
        if let Some(second) = second {
            let misuse =
                Misuse { wrong: Wrong::BarrierShared, first: second, second: Some(first), object: None, times: 1 };
            self.misuses().into_iter().for_each(|all| all.add(misuse.clone()));
        }
    }
}
