//! The sixteen barriers of a cta and those of its warpgroups, in terms of warps and lane masks.
//!
//! A lane that executes a barrier op first waits for the other lanes of its warp that have not exited. When the last of
//! them stands there, the warp arrives and counts as 32 threads. Lanes of `arrive` then go on, lanes of `sync` and
//! `red` wait until the barrier is met. A barrier without a count is met when every warp with a lane left has arrived;
//! a barrier with a count when that many threads have arrived. Lanes that exit are waited for no more. A met barrier
//! starts over at once.
//!
//! Both engines keep their lanes elsewhere: they tell [`Barriers`] who arrives and exits, and ask it who goes on.
//!
//! # PTX ISA
//! Parallel Synchronization and Communication Instructions: bar, barrier.

use std::fmt;

use handloom_audit::Met;
use handloom_ir::simt::BARRIERS;

use crate::warp::WARP_SIZE;

/// What an arrival does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// `barrier.arrive`: goes on when its warp has arrived.
    Arrive,
    /// `barrier.sync`: waits.
    Sync,
    /// `barrier.red.popc`: waits for the number of true predicates.
    RedPopc,
    /// `barrier.red.and`: waits for whether all predicates are true.
    RedAnd,
    /// `barrier.red.or`: waits for whether some predicate is true.
    RedOr,
    /// Waits for the warpgroup at its barrier, which no number of a program names.
    Warpgroup,
    /// The same, of which no check is told.
    WarpgroupStart,
}

/// The barrier of a warp's warpgroup, and the threads that it is for.
pub fn of_warpgroup(warp: usize, n_warps: usize) -> (u32, u32) {
    let group = warp / 4;
    let n = n_warps.saturating_sub(4 * group).min(4);
    (BARRIERS + u32::try_from(group).unwrap_or(0), WARP_SIZE * u32::try_from(n).unwrap_or(0))
}

/// What somebody waits for at a barrier.
pub fn waits_for(id: u32) -> String {
    if id < BARRIERS { format!("barrier {id}") } else { "the other warps of its warpgroup".into() }
}

impl Arrival {
    /// Whether two arrivals may meet at one barrier: `sync` and `arrive` mix, reductions only with their own kind.
    fn mixes_with(self, other: Arrival) -> bool {
        self == other || (!self.is_red() && !other.is_red())
    }

    fn is_red(self) -> bool {
        matches!(self, Arrival::RedPopc | Arrival::RedAnd | Arrival::RedOr)
    }

    fn name(self) -> &'static str {
        match self {
            Arrival::Arrive => "arrive",
            Arrival::Sync => "sync",
            Arrival::RedPopc => "red.popc",
            Arrival::RedAnd => "red.and",
            Arrival::RedOr => "red.or",
            Arrival::Warpgroup | Arrival::WarpgroupStart => "warpgroup",
        }
    }
}

/// How a program misuses barriers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misuse {
    /// The number is above 15.
    NoSuchBarrier {
        /// The number.
        id: u32,
    },
    /// The count is zero or not a multiple of 32.
    BadCount {
        /// The count.
        count: u32,
    },
    /// Two arrivals at one barrier expect different numbers of threads.
    Counts {
        /// Which barrier.
        id: u32,
        /// Threads that the earlier arrivals expect.
        earlier: u32,
        /// Threads that this one expects.
        count: u32,
    },
    /// A reduction meets another kind of arrival.
    Kinds {
        /// Which barrier.
        id: u32,
        /// What the earlier arrivals do.
        earlier: Arrival,
        /// What this one does.
        kind: Arrival,
    },
    /// A thread arrives at the cluster barrier a second time before it is met.
    ClusterTwice,
}

impl Misuse {
    /// The barrier at which arrivals do not agree.
    pub fn at(&self) -> Option<u32> {
        match self {
            Misuse::Counts { id, .. } | Misuse::Kinds { id, .. } => Some(*id),
            Misuse::NoSuchBarrier { .. } | Misuse::BadCount { .. } | Misuse::ClusterTwice => None,
        }
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misuse::NoSuchBarrier { id } => write!(f, "barrier {id} does not exist, the last one is 15"),
            Misuse::BadCount { count: 0 } => write!(f, "a thread count of 0"),
            Misuse::BadCount { count } => write!(f, "a thread count of {count}, which is not a multiple of 32"),
            Misuse::Counts { id, earlier, count } => {
                write!(f, "barrier {id} with {count} threads, while others wait there for {earlier}")
            }
            Misuse::Kinds { id, earlier, kind } => {
                write!(f, "`{}` at barrier {id}, while others are there with `{}`", kind.name(), earlier.name())
            }
            Misuse::ClusterTwice => {
                write!(f, "a second arrival at the cluster barrier before the first one was waited for")
            }
        }
    }
}

/// Lanes of one warp that go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Released {
    /// The warp.
    pub warp: usize,
    /// The lanes.
    pub lanes: u32,
    /// The barrier they stood at.
    pub id: u32,
    /// Result of a reduction; 0 otherwise.
    pub result: u32,
}

/// Lanes of one warp that are at a barrier and wait for the rest of their warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Standing {
    lanes: u32,
    /// Lanes among them that only arrive.
    leaving: u32,
    /// Predicates of the lanes.
    trues: u32,
    terms: Terms,
}

/// What arrivals at one barrier must agree on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Terms {
    kind: Arrival,
    /// Threads expected; for a barrier without a count, the threads of all warps.
    threads: u32,
    /// No count was given.
    all: bool,
}

/// One of the sixteen.
#[derive(Clone, Debug, Default)]
pub struct Barrier {
    /// By warp: its lanes that wait for their warp. None before the first one stands there, as with `warps`: a cta uses few of its barriers.
    standing: Vec<Option<Standing>>,
    /// What the warps that have arrived agreed on; `None` while none has.
    terms: Option<Terms>,
    /// Some arrival came without a count, and so expects every warp.
    all: bool,
    /// Some arrival came with a count.
    counted: bool,
    /// Threads that have arrived, 32 for each warp.
    arrived: u32,
    /// By warp: has arrived.
    warps: Vec<bool>,
    /// Lanes that wait for the barrier, by warp in the order of arrival.
    waiting: Vec<(usize, u32)>,
    /// Threads with a true predicate, and threads with one at all.
    trues: u32,
    voters: u32,
}

impl Barrier {
    /// Adds lanes that reached the barrier to those of their warp, which is one of so many.
    fn stand(
        &mut self,
        n: usize,
        (id, warp, lanes): (u32, usize, u32),
        trues: u32,
        terms: Terms,
    ) -> Result<(), Misuse> {
        if self.standing.is_empty() {
            self.standing.resize(n, None);
            self.warps.resize(n, false);
        }
        let leaving = if terms.kind == Arrival::Arrive { lanes } else { 0 };
        let slot = &mut self.standing[warp];
        match slot {
            None => *slot = Some(Standing { lanes, leaving, trues, terms }),
            Some(there) => {
                agree(id, there.terms, terms)?;
                there.lanes |= lanes;
                there.leaving |= leaving;
                there.trues |= trues;
                there.terms.all |= terms.all;
            }
        }
        Ok(())
    }

    /// Lets the warp arrive if all its lanes that are left are here.
    fn arrive_if_whole(&mut self, id: u32, warp: usize, live: u32, out: &mut Vec<Released>) -> Result<(), Misuse> {
        let Some(there) = self.standing.get(warp).copied().flatten() else { return Ok(()) };
        if live & !there.lanes != 0 {
            return Ok(());
        }
        if let Some(terms) = self.terms {
            agree(id, terms, there.terms)?;
        }
        self.standing[warp] = None;
        self.terms = Some(there.terms);
        self.all |= there.terms.all;
        self.counted |= !there.terms.all;
        self.arrived += WARP_SIZE;
        self.warps[warp] = true;
        self.trues += there.trues.count_ones();
        self.voters += there.lanes.count_ones();
        if there.leaving != 0 {
            out.push(Released { warp, lanes: there.leaving, id, result: 0 });
        }
        let stay = there.lanes & !there.leaving;
        if stay != 0 {
            self.waiting.push((warp, stay));
        }
        Ok(())
    }

    /// Whether nobody is there, nor has been since it was last met.
    fn is_idle(&self) -> bool {
        self.terms.is_none() && self.standing.iter().all(Option::is_none)
    }

    /// Starts the barrier over if it is met.
    fn complete_if_met(&mut self, id: u32, live: &[u32], out: &mut Vec<Released>, met: Option<&mut Vec<Met>>) {
        let Some(terms) = self.terms else { return };
        let by_count = self.counted && self.arrived >= terms.threads;
        let by_all = self.all && live.iter().zip(&self.warps).all(|(lanes, arrived)| *lanes == 0 || *arrived);
        if !by_count && !by_all {
            return;
        }
        let result = match terms.kind {
            Arrival::Arrive | Arrival::Sync | Arrival::Warpgroup | Arrival::WarpgroupStart => 0,
            Arrival::RedPopc => self.trues,
            Arrival::RedAnd => u32::from(self.trues == self.voters),
            Arrival::RedOr => u32::from(self.trues != 0),
        };
        if let Some(met) = met.filter(|_| terms.kind != Arrival::WarpgroupStart) {
            // With a count, who has exited is not among those that met.
            let is_whole = if self.all { by_all } else { self.warps.iter().all(|arrived| *arrived) };
            met.push(Met { id, waited: self.waiting.clone(), is_whole });
        }
        out.extend(self.waiting.drain(..).map(|(warp, lanes)| Released { warp, lanes, id, result }));
        let (standing, mut warps) = (std::mem::take(&mut self.standing), std::mem::take(&mut self.warps));
        warps.fill(false);
        *self = Barrier { standing, warps, ..Barrier::default() };
    }
}

/// Whether a later arrival fits the earlier ones.
fn agree(id: u32, earlier: Terms, later: Terms) -> Result<(), Misuse> {
    if !earlier.kind.mixes_with(later.kind) {
        return Err(Misuse::Kinds { id, earlier: earlier.kind, kind: later.kind });
    }
    if earlier.threads != later.threads {
        return Err(Misuse::Counts { id, earlier: earlier.threads, count: later.threads });
    }
    Ok(())
}

/// All barriers of a cta.
#[derive(Clone, Debug)]
pub struct Barriers {
    /// By warp: lanes that have not exited.
    live: Vec<u32>,
    bars: Vec<Barrier>,
    /// A bit for each of them where somebody stands or has arrived.
    busy: u64,
    released: Vec<Released>,
    /// Meetings since they were asked for, if somebody asks.
    met: Option<Vec<Met>>,
}

impl Barriers {
    /// Barriers at rest; `live[w]` holds the lanes that warp `w` starts with.
    pub fn new(live: &[u32]) -> Barriers {
        let groups = live.chunks(4).map(|_| Barrier::default());
        Barriers {
            live: live.to_vec(),
            bars: (0..BARRIERS).map(|_| Barrier::default()).chain(groups).collect(),
            busy: 0,
            released: Vec::new(),
            met: None,
        }
    }

    /// Lanes of a warp execute a barrier op; bit `i` of `preds` is the predicate of lane `i`.
    ///
    /// # Errors
    /// The program misuses the barrier. Where warps disagree it is found when the later warp has arrived as a whole.
    pub fn arrive(
        &mut self,
        warp: usize,
        lanes: u32,
        kind: Arrival,
        id: u32,
        count: Option<u32>,
        preds: u32,
    ) -> Result<(), Misuse> {
        if !matches!(kind, Arrival::Warpgroup | Arrival::WarpgroupStart) && id >= BARRIERS {
            return Err(Misuse::NoSuchBarrier { id });
        }
        if let Some(count) = count
            && (count == 0 || !count.is_multiple_of(WARP_SIZE))
        {
            return Err(Misuse::BadCount { count });
        }
        let whole_cta = WARP_SIZE * u32::try_from(self.live.len()).unwrap_or(u32::MAX / WARP_SIZE);
        // Choice: a count of all warps' threads and no count are the same barrier, as they are one instruction on the
        // device.
        let terms = Terms { kind, threads: count.unwrap_or(whole_cta), all: count.is_none() };
        let bar = &mut self.bars[usize::try_from(id).unwrap_or(0)];
        self.busy |= 1 << id;
        bar.stand(self.live.len(), (id, warp, lanes), preds & lanes, terms)?;
        self.settle(id, warp)
    }

    /// Lets a warp arrive at a barrier if all of it is there, and starts the barrier over if it is met.
    fn settle(&mut self, id: u32, warp: usize) -> Result<(), Misuse> {
        let bar = &mut self.bars[usize::try_from(id).unwrap_or(0)];
        bar.arrive_if_whole(id, warp, self.live[warp], &mut self.released)?;
        bar.complete_if_met(id, &self.live, &mut self.released, self.met.as_mut());
        if bar.is_idle() {
            self.busy &= !(1 << id);
        }
        Ok(())
    }

    /// Lanes of a warp end.
    ///
    /// # Errors
    /// The rest of the warp has thereby arrived, at a barrier where others wait for something else.
    pub fn exit(&mut self, warp: usize, lanes: u32) -> Result<(), Misuse> {
        self.live[warp] &= !lanes;
        let mut left = self.busy;
        while left != 0 {
            self.settle(left.trailing_zeros(), warp)?;
            left &= left - 1;
        }
        Ok(())
    }

    /// Whether nobody stands at a barrier, has arrived at one that is not met, or was released since that was asked for.
    pub fn is_idle(&self) -> bool {
        self.busy == 0 && self.released.is_empty()
    }

    /// Warps of the cta.
    pub fn n_warps(&self) -> usize {
        self.live.len()
    }

    /// Remembers who met whom, for [`take_met`](Self::take_met).
    pub fn keep_met(&mut self) {
        self.met = Some(Vec::new());
    }

    /// Takes the barriers that were met since the last call.
    pub fn take_met(&mut self) -> Vec<Met> {
        self.met.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Whether lanes go on, or have met, since that was asked for.
    pub fn has_news(&self) -> bool {
        !self.released.is_empty() || self.met.as_ref().is_some_and(|met| !met.is_empty())
    }

    /// Takes the lanes that go on since the last call.
    pub fn take_released(&mut self) -> Vec<Released> {
        std::mem::take(&mut self.released)
    }
}
