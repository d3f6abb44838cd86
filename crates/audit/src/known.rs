//! What a thread knows of others: up to which time what they did comes before it in causality order.
//!
//! Time is one counter for the whole launch, which goes on at each event that orders something. So one number says "all that this block did until
//! then", and a thread needs none for each other thread: what a barrier tells is a number for the block, and only what release and acquire patterns
//! tell is a map. Levels are kept apart: a block as a whole, a warp as a whole, lanes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::event::Thread;
use crate::proxy::Fenced;

/// A moment of a launch.
pub type Time = u32;

/// What is known of threads, by block, warp and lane.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Known {
    ctas: BTreeMap<u32, OfCta>,
    /// What of it lies behind proxy fences.
    fenced: Option<Arc<Fenced>>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct OfCta {
    all: Time,
    warps: BTreeMap<u8, OfWarp>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct OfWarp {
    all: Time,
    lanes: Option<Box<[Time; 32]>>,
}

impl Known {
    /// Those among the lanes of a warp of whom it is not known what they did at a time.
    pub fn unknown(&self, cta: u32, warp: u8, lanes: u32, time: Time) -> u32 {
        let Some(of) = self.ctas.get(&cta) else { return lanes };
        if time <= of.all {
            return 0;
        }
        let Some(of) = of.warps.get(&warp) else { return lanes };
        if time <= of.all {
            return 0;
        }
        let Some(times) = &of.lanes else { return lanes };
        let late = (0..32).zip(times.iter()).filter(|(_, t)| time > **t);
        late.fold(0, |mask, (lane, _)| mask | 1 << lane) & lanes
    }

    /// All that a block did until a time.
    pub fn learn_cta(&mut self, cta: u32, time: Time) {
        if time > 0 {
            let of = self.ctas.entry(cta).or_default();
            of.all = of.all.max(time);
            let all = of.all;
            of.warps.retain(|_, w| w.all > all || w.lanes.as_ref().is_some_and(|l| l.iter().any(|t| *t > all)));
        }
    }

    /// All that a warp did until a time.
    pub fn learn_warp(&mut self, cta: u32, warp: u8, time: Time) {
        if time > 0 {
            let of = self.ctas.entry(cta).or_default().warps.entry(warp).or_default();
            of.all = of.all.max(time);
        }
    }

    /// All that lanes of a warp did until a time.
    pub fn learn_lanes(&mut self, cta: u32, warp: u8, lanes: u32, time: Time) {
        let of = self.ctas.entry(cta).or_default().warps.entry(warp).or_default();
        if lanes == u32::MAX {
            of.all = of.all.max(time);
            return;
        }
        let times = of.lanes.get_or_insert_with(Box::default);
        for (lane, t) in (0..32).zip(times.iter_mut()) {
            if lanes >> lane & 1 == 1 {
                *t = (*t).max(time);
            }
        }
    }

    /// All that a thread did until a time.
    pub fn learn_thread(&mut self, who: Thread, time: Time) {
        self.learn_lanes(who.cta, who.warp, who.bit(), time);
    }

    /// What of it lies behind proxy fences.
    pub fn fenced(&self) -> Option<&Arc<Fenced>> {
        self.fenced.as_ref()
    }

    /// The same, to be changed.
    pub fn fenced_mut(&mut self) -> &mut Fenced {
        Arc::make_mut(self.fenced.get_or_insert_default())
    }

    /// The same without what lies behind proxy fences.
    pub fn plain(&self) -> Known {
        Known { ctas: self.ctas.clone(), fenced: None }
    }

    /// All that somebody else knows.
    pub fn join(&mut self, other: &Known) {
        match (&mut self.fenced, &other.fenced) {
            (_, None) => {}
            (None, Some(theirs)) => self.fenced = Some(Arc::clone(theirs)),
            (Some(mine), Some(theirs)) if Arc::ptr_eq(mine, theirs) => {}
            (Some(mine), Some(theirs)) => Arc::make_mut(mine).join(theirs),
        }
        for (cta, theirs) in &other.ctas {
            let mine = self.ctas.entry(*cta).or_default();
            mine.all = mine.all.max(theirs.all);
            for (warp, theirs) in &theirs.warps {
                let mine = mine.warps.entry(*warp).or_default();
                mine.all = mine.all.max(theirs.all);
                if let Some(theirs) = &theirs.lanes {
                    let mine = mine.lanes.get_or_insert_with(Box::default);
                    mine.iter_mut().zip(theirs.iter()).for_each(|(m, t)| *m = (*m).max(*t));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_looked_at_together() {
        let mut known = Known::default();
        known.learn_lanes(1, 2, 0b110, 5);
        assert_eq!(known.unknown(1, 2, 0b111, 5), 0b001);
        assert_eq!(known.unknown(1, 2, 0b111, 6), 0b111);
        known.learn_warp(1, 2, 4);
        assert_eq!(known.unknown(1, 2, 0b111, 4), 0);
        assert_eq!(known.unknown(1, 3, 1, 1), 1);
        known.learn_cta(1, 9);
        assert_eq!(known.unknown(1, 3, 1, 9), 0);
        let mut other = Known::default();
        assert_eq!(other, Known::default());
        other.join(&known);
        assert_eq!(other.unknown(1, 0, u32::MAX, 9), 0);
        assert_eq!(other.unknown(0, 0, 1, 1), 1);
    }
}
