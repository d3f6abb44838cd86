//! What a thread knows of others: up to which time what they did comes before it in causality order.
//!
//! Time is one counter for the whole launch, which goes on at each event that orders something. So one number says "all that this block did until
//! then", and a thread needs none for each other thread: what a barrier tells is a number for the block, and only what release and acquire patterns
//! tell is a map. Levels are kept apart: a block as a whole, a warp as a whole, lanes.
//!
//! Who hands something on hands on all that he knows. So whether one knows all that another one knew when he released it is mostly seen by one number:
//! whether one knows of him by himself until then ([`Last`]).
//!
//! Threads that hand something round, as the holders of a lock do, are few at a time. What is known of the last few by themselves lies apart ([`Lately`]),
//! so that who adds a time of his own to what he has been told copies no map.

use std::sync::Arc;

use crate::event::Thread;
use crate::proxy::Fenced;
use crate::sequence::Number;

/// A moment of a launch.
pub type Time = u32;

/// Blocks of a group.
const GROUP: usize = 8;

/// What is known of some blocks that follow each other. Who learns it shares what he does not add to.
type Group = [Option<Arc<OfCta>>; GROUP];

/// The group of a block, and its place in it.
fn place(cta: u32) -> (u32, usize) {
    (cta / GROUP as u32, usize::try_from(cta).unwrap_or(0) % GROUP)
}

/// What belongs to some numbers, in their order. Copied more often than it grows.
type ByNumber<K, V> = Vec<(K, V)>;

/// What belongs to a number.
#[inline]
fn at<K: Ord + Copy + Into<u32>, V>(list: &ByNumber<K, V>, number: K) -> Option<&V> {
    // Who runs now comes last, mostly.
    if let Some((last, value)) = list.last()
        && *last <= number
    {
        return (*last == number).then_some(value);
    }
    place_in(list, number).ok().map(|i| &list[i].1)
}

/// Where a number is, or would be. Mostly all numbers from 0 on are there.
#[inline]
fn place_in<K: Ord + Copy + Into<u32>, V>(list: &ByNumber<K, V>, number: K) -> Result<usize, usize> {
    let same: u32 = number.into();
    let i = usize::try_from(same).unwrap_or(usize::MAX);
    match list.get(i) {
        Some((n, _)) if *n == number => Ok(i),
        Some(_) | None => list.binary_search_by_key(&number, |(n, _)| *n),
    }
}

/// The same, which may be new.
fn at_mut<K: Ord + Copy + Into<u32>, V: Default>(list: &mut ByNumber<K, V>, number: K) -> &mut V {
    let found = place_in(list, number);
    let i = found.unwrap_or_else(|i| {
        list.insert(i, (number, V::default()));
        i
    });
    &mut list[i].1
}

/// What is known of threads, by block, warp and lane.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Known {
    /// By number of the block, cut into groups: what one knows of blocks that have ended is mostly what all know.
    groups: Arc<ByNumber<u32, Arc<Group>>>,
    /// What is known of a few threads by themselves beside that.
    lately: Lately,
    /// What of it lies behind proxy fences.
    fenced: Option<Arc<Fenced>>,
    /// The last fence of sequential consistency before it, and the last one of which something was heard.
    fences: (Number, Number),
    /// The last release that came into it.
    last: Option<Last>,
}

/// A release of a thread that is known.
///
/// Invariant: where the time of a lane by itself is known ([`OfWarp::lanes`]), all is known that it knew then. So it is never put in for lanes alone, but with
/// all that they know. The times of a warp and of a block are not so: who has exited takes what he knew with him.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Last {
    who: Thread,
    time: Time,
    /// What is known of blocks is what that thread knew then, and nothing else.
    is_all: bool,
}

/// What a thread has done itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Own {
    /// The thread.
    pub who: Thread,
    /// Until when.
    pub until: Time,
    /// Its last fence of sequential consistency, and the last one of which it has heard.
    pub fences: (Number, Number),
}

impl Own {
    /// Whether it is the same thread as another one, or later.
    #[inline]
    pub fn has(&self, other: &Own) -> bool {
        let has_fences = self.fences.0 >= other.fences.0 && self.fences.1 >= other.fences.1;
        has_fences && self.who == other.who && self.until >= other.until
    }
}

/// As many threads are in [`Lately`].
const LATELY: usize = 8;

/// Until when threads by themselves are known, each of them once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Lately {
    n: u8,
    list: [(Thread, Time); LATELY],
}

impl Default for Lately {
    fn default() -> Lately {
        Lately { n: 0, list: [(Thread { cta: 0, warp: 0, lane: 0 }, 0); LATELY] }
    }
}

impl Lately {
    fn all(&self) -> &[(Thread, Time)] {
        self.list.get(..usize::from(self.n)).unwrap_or(&self.list)
    }

    /// Those among the lanes of a warp of whom it does not say what they did at a time.
    #[inline]
    fn unknown(&self, cta: u32, warp: u8, lanes: u32, time: Time) -> u32 {
        let is_of = |(who, t): &&(Thread, Time)| (who.cta, who.warp) == (cta, warp) && time <= *t;
        self.all().iter().filter(is_of).fold(lanes, |left, (who, _)| left & !who.bit())
    }

    /// Until when a thread is known.
    fn of(&self, who: Thread) -> Time {
        self.all().iter().find(|(w, _)| *w == who).map_or(0, |(_, time)| *time)
    }

    /// A thread is known until a time. Says whether there was room for that.
    fn learn(&mut self, (who, time): (Thread, Time)) -> bool {
        let n = usize::from(self.n);
        if let Some((_, there)) = self.list.iter_mut().take(n).find(|(w, _)| *w == who) {
            *there = time.max(*there);
            return true;
        }
        let Some(free) = self.list.get_mut(n) else { return false };
        *free = (who, time);
        self.n += 1;
        true
    }

    /// Leaves those of whom something holds.
    fn retain(&mut self, keeps: impl Fn(&(Thread, Time)) -> bool) {
        let before = *self;
        *self = Lately::default();
        for entry in before.all().iter().filter(|entry| keeps(entry)) {
            self.learn(*entry);
        }
    }
}

/// What is known, where one looks for what is known of a block.
#[derive(Clone, Copy, Debug)]
pub struct Near<'a> {
    known: &'a Known,
    cta: u32,
    of: Option<&'a OfCta>,
    /// The last time of a thread by itself in [`Lately`].
    latest: Time,
}

impl Near<'_> {
    /// Whether all is known that lanes of a warp did at a time.
    #[inline]
    pub fn knows(&self, cta: u32, warp: u8, lanes: u32, time: Time) -> bool {
        let left = if time > self.latest { lanes } else { self.known.lately.unknown(cta, warp, lanes, time) };
        let of = if cta == self.cta { self.of } else { self.known.of(cta) };
        left == 0 || of.is_some_and(|of| of.knows(warp, left, time))
    }
}

/// The lanes of a mask.
#[inline]
fn lanes_of(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = (mask != 0).then(|| usize::try_from(mask.trailing_zeros() & 31).unwrap_or(0));
        mask &= mask.wrapping_sub(1);
        lane
    })
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct OfCta {
    all: Time,
    warps: ByNumber<u8, OfWarp>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct OfWarp {
    all: Time,
    /// Shared with those who learned it and do not add to it.
    lanes: Option<Arc<[Time; 32]>>,
}

impl OfCta {
    /// Whether it says what lanes of a warp did at a time.
    #[inline]
    fn knows(&self, warp: u8, lanes: u32, time: Time) -> bool {
        if time <= self.all {
            return true;
        }
        let Some(of) = at(&self.warps, warp) else { return false };
        let is_late = |times: &[Time; 32]| lanes_of(lanes).any(|lane| time > times[lane]);
        time <= of.all || of.lanes.as_ref().is_some_and(|times| !is_late(times))
    }

    /// Those among the lanes of a warp of whom it does not say what they did at a time.
    #[inline]
    fn unknown(&self, warp: u8, lanes: u32, time: Time) -> u32 {
        if time <= self.all {
            return 0;
        }
        let Some(of) = at(&self.warps, warp) else { return lanes };
        if time <= of.all {
            return 0;
        }
        let Some(times) = &of.lanes else { return lanes };
        lanes_of(lanes).filter(|lane| time > times[*lane]).fold(0, |late, lane| late | 1 << lane)
    }

    /// Whether it says all that another one says.
    fn includes(&self, other: &OfCta) -> bool {
        self.all >= other.all
            && other.warps.iter().all(|(warp, theirs)| {
                let mine = at(&self.warps, *warp);
                let since = self.all.max(mine.map_or(0, |mine| mine.all));
                let mine = mine.and_then(|mine| mine.lanes.as_ref());
                since >= theirs.all
                    && theirs.lanes.as_ref().is_none_or(|theirs| {
                        // All at once: that is quicker than to stop at the first.
                        match mine {
                            Some(mine) if Arc::ptr_eq(mine, theirs) => true,
                            Some(mine) => {
                                let pairs = mine.iter().zip(theirs.iter());
                                !pairs.fold(false, |late, (mine, time)| late | ((*mine).max(since) < *time))
                            }
                            None => !theirs.iter().fold(false, |late, time| late | (since < *time)),
                        }
                    })
            })
    }

    fn join(&mut self, other: &OfCta) {
        self.all = self.all.max(other.all);
        for (warp, theirs) in &other.warps {
            let mine = at_mut(&mut self.warps, *warp);
            mine.all = mine.all.max(theirs.all);
            match (&mut mine.lanes, &theirs.lanes) {
                (_, None) => {}
                (None, Some(theirs)) => mine.lanes = Some(Arc::clone(theirs)),
                (Some(mine), Some(theirs)) if Arc::ptr_eq(mine, theirs) => {}
                (Some(mine), Some(theirs)) => {
                    Arc::make_mut(mine).iter_mut().zip(theirs.iter()).for_each(|(m, t)| *m = (*m).max(*t));
                }
            }
        }
    }
}

impl Known {
    fn of(&self, cta: u32) -> Option<&OfCta> {
        let (group, place) = place(cta);
        at(&self.groups, group)?[place].as_deref()
    }

    fn of_mut(&mut self, cta: u32) -> &mut OfCta {
        if let Some(last) = &mut self.last {
            last.is_all = false;
        }
        let (group, place) = place(cta);
        let group = Arc::make_mut(at_mut(Arc::make_mut(&mut self.groups), group));
        Arc::make_mut(group[place].get_or_insert_default())
    }

    /// Moves what is known of threads by themselves to the rest.
    fn settle(&mut self) {
        let is_all = self.last.is_some_and(|last| last.is_all);
        for (who, time) in std::mem::take(&mut self.lately).all() {
            let of = at_mut(&mut self.of_mut(who.cta).warps, who.warp);
            let there = &mut Arc::make_mut(of.lanes.get_or_insert_default())[usize::from(who.lane & 31)];
            *there = (*there).max(*time);
        }
        // That is what was known before.
        if let Some(last) = &mut self.last {
            last.is_all = is_all;
        }
    }

    /// Those among the lanes of a warp of whom it is not known what they did at a time.
    pub fn unknown(&self, cta: u32, warp: u8, lanes: u32, time: Time) -> u32 {
        let left = self.lately.unknown(cta, warp, lanes, time);
        if left == 0 { 0 } else { self.of(cta).map_or(left, |of| of.unknown(warp, left, time)) }
    }

    /// What is known, to be asked several times of one block, most of all.
    pub fn near(&self, cta: u32) -> Near<'_> {
        let latest = self.lately.all().iter().fold(0, |latest, (_, time)| latest.max(*time));
        Near { known: self, cta, of: self.of(cta), latest }
    }

    /// All that a block did until a time.
    pub fn learn_cta(&mut self, cta: u32, time: Time) {
        if time > self.of(cta).map_or(0, |of| of.all) {
            let of = self.of_mut(cta);
            of.all = time;
            of.warps.retain(|(_, w)| w.all > time || w.lanes.as_ref().is_some_and(|l| l.iter().any(|t| *t > time)));
            self.lately.retain(|(who, t)| who.cta != cta || *t > time);
        }
    }

    /// All that a warp did until a time.
    pub fn learn_warp(&mut self, cta: u32, warp: u8, time: Time) {
        let of = self.of(cta);
        let of_warp = of.and_then(|of| at(&of.warps, warp)).map_or(0, |of| of.all);
        if time > of_warp.max(of.map_or(0, |of| of.all)) {
            at_mut(&mut self.of_mut(cta).warps, warp).all = time;
        }
    }

    /// All that lanes of a warp did until a time.
    pub fn learn_lanes(&mut self, cta: u32, warp: u8, lanes: u32, time: Time) {
        if let (true, Ok(lane)) = (lanes.is_power_of_two(), u8::try_from(lanes.trailing_zeros())) {
            return self.learn_thread(Thread { cta, warp, lane }, time);
        }
        let of = at_mut(&mut self.of_mut(cta).warps, warp);
        if lanes == u32::MAX {
            of.all = of.all.max(time);
            return;
        }
        let times = Arc::make_mut(of.lanes.get_or_insert_default());
        for (lane, t) in (0..32).zip(times.iter_mut()) {
            if lanes >> lane & 1 == 1 {
                *t = (*t).max(time);
            }
        }
    }

    /// All that a thread did until a time.
    pub fn learn_thread(&mut self, who: Thread, time: Time) {
        if let Some(last) = &mut self.last {
            last.is_all = false;
        }
        self.learn_lately((who, time));
    }

    fn learn_lately(&mut self, entry: (Thread, Time)) {
        if !self.lately.learn(entry) {
            self.settle();
            self.lately.learn(entry);
        }
    }

    /// A thread knows so much at a time and releases it. `is_first`: it has released nothing else at this time.
    pub fn release(&mut self, who: Thread, time: Time, is_first: bool) {
        self.last = Some(Last { who, time, is_all: is_first });
    }

    /// The time of a lane by itself until which it is known.
    pub fn time_of(&self, who: Thread) -> Time {
        let lately = self.lately.of(who);
        let lanes = self.of(who.cta).and_then(|of| at(&of.warps, who.warp)?.lanes.as_ref());
        lanes.map_or(lately, |times| times[usize::from(who.lane & 31)].max(lately))
    }

    /// The last release that came into it: whose, and when.
    #[inline]
    pub fn last(&self) -> Option<(Thread, Time)> {
        self.last.map(|last| (last.who, last.time))
    }

    /// The last fence of sequential consistency before it.
    pub fn passed(&self) -> Number {
        self.fences.0
    }

    /// A fence of sequential consistency.
    pub fn pass(&mut self, number: Number) {
        self.fences.0 = number;
    }

    /// The last fence of sequential consistency of which something was heard.
    pub fn heard(&self) -> Number {
        self.fences.1
    }

    /// Fences up to a number have been heard of.
    pub fn hear(&mut self, number: Number) {
        self.fences.1 = number;
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
        Known { groups: Arc::clone(&self.groups), lately: self.lately, ..Known::default() }
    }

    /// Whether it says all that another one says, so that [`learn`](Known::learn) changes nothing. `own`: what the one who asks has done comes to it.
    pub fn has(&self, other: &Arc<Known>, own: Option<&Own>) -> bool {
        std::ptr::eq(self, Arc::as_ptr(other)) || self.includes(other, own)
    }

    /// Whether it says as much of fences as somebody knew who knew so much of others.
    pub fn has_fences(&self, other: Option<&Known>, theirs: Own, own: Option<&Own>) -> bool {
        let (passed, heard) = other.map_or((0, 0), |other| other.fences);
        self.has_numbers((passed.max(theirs.fences.0), heard.max(theirs.fences.1)), own)
            && other.is_none_or(|other| self.has_fenced(other))
    }

    fn has_numbers(&self, (passed, heard): (Number, Number), own: Option<&Own>) -> bool {
        let own = own.map_or((0, 0), |own| own.fences);
        self.fences.0.max(own.0) >= passed && self.fences.1.max(own.1) >= heard
    }

    /// What lies behind proxy fences must be the very same.
    fn has_fenced(&self, other: &Known) -> bool {
        match (&self.fenced, &other.fenced) {
            (_, None) => true,
            (Some(mine), Some(theirs)) => Arc::ptr_eq(mine, theirs),
            (None, Some(_)) => false,
        }
    }

    /// Whether it says all that another one says.
    fn includes(&self, other: &Known, own: Option<&Own>) -> bool {
        if !self.has_fenced(other) || !self.has_numbers(other.fences, own) {
            return false;
        }
        let is_own = |who: Thread, time: Time| own.is_some_and(|own| own.who == who && own.until >= time);
        if let Some(last) = other.last {
            let is_own = is_own(last.who, last.time);
            if last.is_all && (is_own || self.lately.of(last.who) >= last.time) {
                return true;
            }
            if !is_own && self.unknown(last.who.cta, last.who.warp, last.who.bit(), last.time) != 0 {
                return false;
            }
            if last.is_all && self.time_of(last.who) >= last.time {
                return true;
            }
        }
        let has_lately = |(who, time): &(Thread, Time)| {
            is_own(*who, *time) || self.unknown(who.cta, who.warp, who.bit(), *time) == 0
        };
        if !other.lately.all().iter().all(has_lately) {
            return false;
        }
        Arc::ptr_eq(&self.groups, &other.groups)
            || other.groups.iter().all(|(number, theirs)| self.includes_group(*number, theirs))
    }

    fn includes_group(&self, number: u32, theirs: &Arc<Group>) -> bool {
        let Some(mine) = at(&self.groups, number) else { return false };
        let has = |(mine, theirs): (&Option<Arc<OfCta>>, &Option<Arc<OfCta>>)| match (mine, theirs) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(mine), Some(theirs)) => Arc::ptr_eq(mine, theirs) || mine.includes(theirs),
        };
        Arc::ptr_eq(mine, theirs) || mine.iter().zip(theirs.iter()).all(has)
    }

    /// All that somebody else knows. Where one of the two says all that the other one says, it is kept as it is.
    pub fn learn(mine: &mut Arc<Known>, theirs: &Arc<Known>) {
        if Arc::ptr_eq(mine, theirs) || mine.includes(theirs, None) {
        } else if theirs.includes(mine, None) {
            *mine = Arc::clone(theirs);
        } else {
            Arc::make_mut(mine).join(theirs);
        }
    }

    /// All that somebody else knows.
    pub fn join(&mut self, other: &Known) {
        match (&mut self.fenced, &other.fenced) {
            (_, None) => {}
            (None, Some(theirs)) => self.fenced = Some(Arc::clone(theirs)),
            (Some(mine), Some(theirs)) if Arc::ptr_eq(mine, theirs) => {}
            (Some(mine), Some(theirs)) => Arc::make_mut(mine).join(theirs),
        }
        self.fences = (self.fences.0.max(other.fences.0), self.fences.1.max(other.fences.1));
        let last = [self.last, other.last].into_iter().flatten().max_by_key(|last| last.time);
        self.last = last.map(|last| Last { is_all: false, ..last });
        for (who, time) in other.lately.all() {
            if self.time_of(*who) < *time {
                self.learn_lately((*who, *time));
            }
        }
        if Arc::ptr_eq(&self.groups, &other.groups) {
            return;
        }
        for (number, theirs) in other.groups.iter() {
            // Mostly it is known already, and nothing is copied.
            if self.includes_group(*number, theirs) {
                continue;
            }
            let groups = Arc::make_mut(&mut self.groups);
            match groups.binary_search_by_key(number, |(n, _)| *n) {
                Err(place) => groups.insert(place, (*number, Arc::clone(theirs))),
                Ok(place) if Arc::ptr_eq(&groups[place].1, theirs) => {}
                Ok(place) => {
                    let mine = Arc::make_mut(&mut groups[place].1);
                    mine.iter_mut().zip(theirs.iter()).for_each(|(mine, theirs)| join(mine, theirs));
                }
            }
        }
    }
}

/// All that somebody else knows of a block.
fn join(mine: &mut Option<Arc<OfCta>>, theirs: &Option<Arc<OfCta>>) {
    match (mine, theirs) {
        (_, None) => {}
        (mine @ None, Some(theirs)) => *mine = Some(Arc::clone(theirs)),
        (Some(mine), Some(theirs)) => {
            if !Arc::ptr_eq(mine, theirs) && !mine.includes(theirs) {
                Arc::make_mut(mine).join(theirs);
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

    /// What is learned from somebody is the larger time of each, whether one says all that the other one says or not.
    #[test]
    fn who_learns_knows_what_both_knew() {
        let mut state = 1_u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut shared = [0; 3];
        for turn in 0..300 {
            let mut small = |n| u32::try_from(random(n)).unwrap();
            let mut some = |known: &mut Known| {
                for _ in 0..small(6) {
                    let (cta, warp, time) = ([0, 1, 40][small(3) as usize], u8::try_from(small(3)).unwrap(), small(9));
                    match small(3) {
                        0 => known.learn_cta(cta, time),
                        1 => known.learn_warp(cta, warp, time),
                        _ => known.learn_lanes(cta, warp, small(16), time),
                    }
                }
            };
            let mut first = Known::default();
            some(&mut first);
            let mut second = if turn % 2 == 0 { first.clone() } else { Known::default() };
            some(&mut second);
            let (first, second) = (Arc::new(first), Arc::new(second));
            let mut both = Arc::clone(&first);
            Known::learn(&mut both, &second);
            let kind = if Arc::ptr_eq(&both, &first) { 0 } else { 1 + usize::from(!Arc::ptr_eq(&both, &second)) };
            shared[kind] += 1;
            for (cta, warp, lane, time) in [0, 1, 40]
                .iter()
                .flat_map(|c| (0..3).flat_map(move |w| (0..5).flat_map(move |l| (1..10).map(move |t| (*c, w, l, t)))))
            {
                let unknown = |known: &Known| known.unknown(cta, warp, 1 << lane, time) != 0;
                assert_eq!(unknown(&both), unknown(&first) && unknown(&second));
            }
        }
        assert!(shared.iter().all(|n| *n > 20), "{shared:?}");
    }
}
