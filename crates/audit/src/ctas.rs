//! Blocks that run, by number: mostly it is asked for the same one again and again.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};

use crate::clock::Clock;
use crate::event::{Met, Thread};
use crate::known::{Known, Time};
use crate::meetings::Meetings;

/// A block that runs.
#[derive(Debug)]
pub(crate) struct Cta {
    /// Address and bytes of its shared memory.
    pub(crate) shared: (u64, u64),
    /// By thread.
    pub(crate) clocks: Vec<Clock>,
    /// By warp: what all of its threads know of their block and of their warp, if they know the same, and no more than that.
    pub(crate) alike: Vec<Alike>,
    /// By barrier: what those knew that arrived at it and went on, and who they are.
    pub(crate) arrived: HashMap<u32, Arrived>,
    pub(crate) meetings: Meetings,
}

/// What the threads of a warp know.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) enum Alike {
    /// Nobody has looked since something happened to them.
    #[default]
    Unseen,
    /// Different things, or more than times of the block and of the warp.
    No,
    /// Until when all that the block did comes before them, and all that the warp did.
    Yes(Time, Time),
}

/// Those that arrived at a barrier and went on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrived {
    pub(crate) known: Known,
    /// By warp: lanes.
    pub(crate) lanes: BTreeMap<usize, u32>,
}

impl Cta {
    /// Lets all threads of the block meet that have not exited, if nobody knows more than times of the block and of its warp. Says whether.
    pub(crate) fn all_meet(&mut self, met: &Met, now: Time) -> bool {
        let is_plain = |clock: &Clock| clock.is_plain() && clock.missed().is_empty();
        if !met.is_whole || self.arrived.contains_key(&met.id) || !self.clocks.iter().all(is_plain) {
            return false;
        }
        for (warp, lanes) in &met.waited {
            let start = 32 * (warp & 31);
            let clocks = self.clocks.iter_mut().skip(start).take(32).zip(0..);
            clocks.filter(|(_, lane)| lanes >> lane & 1 == 1).for_each(|(c, _)| c.meet(now));
            if let Some(known) = self.alike.get_mut(warp & 31) {
                let has_all = *lanes == u32::MAX;
                *known = if has_all { Alike::Yes(now, now) } else { Alike::Unseen };
            }
        }
        true
    }

    /// By warp, the lanes that have arrived at a barrier and gone on.
    pub(crate) fn arrived_at(&self, id: u32) -> BTreeMap<usize, u32> {
        self.arrived.get(&id).map_or_else(BTreeMap::new, |arrived| arrived.lanes.clone())
    }

    pub(crate) fn clock(&self, who: Thread) -> Option<&Clock> {
        self.clocks.get(usize::try_from(who.number()).ok()?)
    }

    pub(crate) fn clock_mut(&mut self, who: Thread) -> Option<&mut Clock> {
        self.clocks.get_mut(usize::try_from(who.number()).ok()?)
    }
}

/// Blocks that run.
#[derive(Debug, Default)]
pub(crate) struct Ctas {
    /// In the order of their numbers.
    list: Vec<(u32, Cta)>,
    /// The place of the one that was asked for last.
    last: Cell<usize>,
}

impl Ctas {
    /// The place of a block, if it runs.
    #[inline]
    fn place(&self, number: u32) -> Option<usize> {
        let last = self.last.get();
        if self.list.get(last).is_some_and(|(n, _)| *n == number) {
            return Some(last);
        }
        let found = self.list.binary_search_by_key(&number, |(n, _)| *n).ok()?;
        self.last.set(found);
        Some(found)
    }

    /// A block.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&Cta> {
        self.place(number).map(|i| &self.list[i].1)
    }

    /// The same, to be changed.
    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Cta> {
        self.place(number).map(|i| &mut self.list[i].1)
    }

    /// What a thread that runs knows, to be changed.
    #[inline]
    pub(crate) fn running(&mut self, who: Thread) -> Option<&mut Clock> {
        let number = usize::try_from(who.number()).ok()?;
        let cta = self.get_mut(who.cta)?;
        *cta.alike.get_mut(usize::from(who.warp))? = Alike::Unseen;
        cta.clocks.get_mut(number)
    }

    /// Whether a block runs.
    pub(crate) fn has(&self, number: u32) -> bool {
        self.place(number).is_some()
    }

    /// A block starts.
    pub(crate) fn insert(&mut self, number: u32, cta: Cta) {
        match self.list.binary_search_by_key(&number, |(n, _)| *n) {
            Ok(i) => self.list[i].1 = cta,
            Err(i) => self.list.insert(i, (number, cta)),
        }
    }

    /// A block has ended.
    pub(crate) fn remove(&mut self, number: u32) -> Option<Cta> {
        self.place(number).map(|i| self.list.remove(i).1)
    }

    /// All of them, by number.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Cta> {
        self.list.iter().map(|(_, cta)| cta)
    }
}
