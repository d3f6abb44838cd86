//! What code leaves in the header of a context when it comes back: one record for each [`Reason`].
//!
//! A generator says what it leaves as a [`Stop`] of its own values and writes the [words](Stop::words); the runtime [reads](Stop::read) the same record
//! of numbers. Nobody else knows which word of a header holds what.

use std::fmt;
use std::mem::offset_of;

use super::{BarrierSite, Reason, Tables, WarpCtx};

/// The words of [`WarpCtx::words`] by what they hold.
mod index {
    /// Barrier: where its operands are, a number in the tables.
    pub const BARRIER_ARRIVALS: usize = 0;
    /// Reduction: the predicates, a bit for each lane.
    pub const BARRIER_PREDICATES: usize = 2;
    /// Trap: where what is known of it is, one of the numbers below.
    pub const TRAP_SOURCE: usize = 2;
}

/// What [`index::TRAP_SOURCE`] may hold.
mod source {
    pub const SITE: u32 = 0;
    pub const ROUTINE: u32 = 1;
    pub const APART: u32 = 2;
}

/// Why code came back, with all that belongs to the reason. `V` is what stands for a number that only running code knows: a number for the runtime, a
/// value of its own for a generator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop<V> {
    /// [`Reason::Phase`].
    Phase,
    /// [`Reason::Barrier`].
    Barrier {
        /// Number of the barrier in [`Tables::barriers`].
        site: u32,
        /// Lanes that arrived.
        lanes: V,
        /// Number of what they name in [`Tables::arrivals`].
        arrivals: u32,
        /// The predicates of a reduction, a bit for each lane.
        predicates: Option<V>,
    },
    /// [`Reason::Yield`].
    Yield {
        /// Number of the yield in [`Tables::yields`].
        site: u32,
        /// Lanes that give way.
        lanes: V,
    },
    /// [`Reason::Call`].
    Call {
        /// Number of the call in [`Tables::calls`].
        site: u32,
        /// Lanes that call.
        lanes: V,
    },
    /// [`Reason::Trap`].
    Trap(TrapSource<V>),
    /// [`Reason::Stopped`].
    Stopped,
    /// [`Reason::Idle`].
    Idle,
    /// [`Reason::Exit`].
    Exit {
        /// Lanes whose threads end.
        lanes: V,
    },
    /// [`Reason::Deopt`].
    Deopt,
}

/// Who knows what a trap is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrapSource<V> {
    /// Code raised it.
    Site {
        /// Number of the trap in [`Tables::traps`].
        site: u32,
        /// Lanes that trapped.
        lanes: V,
    },
    /// A routine recorded it.
    Routine,
    /// It is a fault of ours: lanes went apart where code expects all of them together.
    Apart {
        /// Lanes that came without the others.
        lanes: V,
    },
}

/// What code writes into a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word<V> {
    /// A number that is known when code is emitted.
    Number(u32),
    /// A number that code computes.
    Value(V),
}

/// What code left does not fit its tables, which is a fault of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadStop {
    /// No reason has this number.
    Reason(u32),
    /// The reason has no site of this number.
    Site(Reason, u32),
    /// No operands of a barrier have this number.
    Arrivals(u32),
    /// No source of traps has this number.
    TrapSource(u32),
}

impl fmt::Display for BadStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadStop::Reason(number) => write!(f, "code came back with reason {number}"),
            BadStop::Site(reason, number) => write!(f, "code came back with {reason:?} at site {number}"),
            BadStop::Arrivals(number) => write!(f, "code came back with operands {number} of a barrier"),
            BadStop::TrapSource(number) => write!(f, "code came back with a trap of source {number}"),
        }
    }
}

impl std::error::Error for BadStop {}

/// Offset of a word of [`WarpCtx::words`].
const fn word(index: usize) -> usize {
    offset_of!(WarpCtx, words) + 4 * index
}

impl<V> Stop<V> {
    /// The number that code returns.
    pub fn reason(&self) -> Reason {
        match self {
            Stop::Phase => Reason::Phase,
            Stop::Barrier { .. } => Reason::Barrier,
            Stop::Yield { .. } => Reason::Yield,
            Stop::Call { .. } => Reason::Call,
            Stop::Trap(_) => Reason::Trap,
            Stop::Stopped => Reason::Stopped,
            Stop::Idle => Reason::Idle,
            Stop::Exit { .. } => Reason::Exit,
            Stop::Deopt => Reason::Deopt,
        }
    }

    /// The 32-bit words that code writes before it returns: their offsets in the context.
    pub fn words(self) -> impl Iterator<Item = (usize, Word<V>)> {
        let (at_lanes, at_site) = (offset_of!(WarpCtx, lanes), offset_of!(WarpCtx, site));
        let of = |lanes| Some((at_lanes, Word::Value(lanes)));
        let at = |site| Some((at_site, Word::Number(site)));
        let source = |number| Some((word(index::TRAP_SOURCE), Word::Number(number)));
        let words = match self {
            Stop::Phase | Stop::Stopped | Stop::Idle | Stop::Deopt => [None, None, None, None],
            Stop::Barrier { site, lanes, arrivals, predicates } => [
                at(site),
                of(lanes),
                Some((word(index::BARRIER_ARRIVALS), Word::Number(arrivals))),
                predicates.map(|v| (word(index::BARRIER_PREDICATES), Word::Value(v))),
            ],
            Stop::Yield { site, lanes } | Stop::Call { site, lanes } => [at(site), of(lanes), None, None],
            Stop::Trap(TrapSource::Site { site, lanes }) => [at(site), of(lanes), source(source::SITE), None],
            Stop::Trap(TrapSource::Routine) => [source(source::ROUTINE), None, None, None],
            Stop::Trap(TrapSource::Apart { lanes }) => [source(source::APART), of(lanes), None, None],
            Stop::Exit { lanes } => [of(lanes), None, None, None],
        };
        words.into_iter().flatten()
    }
}

impl Stop<u32> {
    /// What code left in a header, with its sites tested against the tables of the code.
    ///
    /// # Errors
    /// It does not fit the tables.
    pub fn read(reason: u32, header: &WarpCtx, tables: &Tables) -> Result<Stop<u32>, BadStop> {
        let reason = Reason::from_u32(reason).ok_or(BadStop::Reason(reason))?;
        let (lanes, words) = (header.lanes, header.words);
        let site_of = |n: usize| match (header.site as usize) < n {
            true => Ok(header.site),
            false => Err(BadStop::Site(reason, header.site)),
        };
        Ok(match reason {
            Reason::Phase => Stop::Phase,
            Reason::Barrier => {
                let site = site_of(tables.barriers.len())?;
                let arrivals = words[index::BARRIER_ARRIVALS];
                if arrivals as usize >= tables.arrivals.len() {
                    return Err(BadStop::Arrivals(arrivals));
                }
                let predicates = tables.barrier(site).takes_predicate().then_some(words[index::BARRIER_PREDICATES]);
                Stop::Barrier { site, lanes, arrivals, predicates }
            }
            Reason::Yield => Stop::Yield { site: site_of(tables.yields.len())?, lanes },
            Reason::Call => Stop::Call { site: site_of(tables.calls.len())?, lanes },
            Reason::Trap => Stop::Trap(match words[index::TRAP_SOURCE] {
                source::SITE => TrapSource::Site { site: site_of(tables.traps.len())?, lanes },
                source::ROUTINE => TrapSource::Routine,
                source::APART => TrapSource::Apart { lanes },
                other => return Err(BadStop::TrapSource(other)),
            }),
            Reason::Stopped => Stop::Stopped,
            Reason::Idle => Stop::Idle,
            Reason::Exit => Stop::Exit { lanes },
            Reason::Deopt => Stop::Deopt,
        })
    }
}

impl WarpCtx {
    /// The number of the plain barrier that the context waits at inside code, in the epoch `epoch`.
    pub fn plain_barrier(&self, epoch: u32, tables: &Tables) -> Option<u32> {
        (self.wait_epoch == epoch && self.state != tables.skip()).then_some(self.site)
    }

    /// Where code writes that number.
    pub const PLAIN_BARRIER: usize = offset_of!(WarpCtx, site);

    /// Where code writes what the lanes of the context bring to a reduction that they wait for inside code: a bit for each.
    pub const PREDICATES: usize = offset_of!(WarpCtx, words) + 4 * index::BARRIER_PREDICATES;

    /// What stands there.
    pub fn predicates(&self) -> u32 {
        self.words[index::BARRIER_PREDICATES]
    }
}

impl BarrierSite {
    /// Whether a result is a predicate; else it is a count.
    pub fn result_is_predicate(&self) -> bool {
        use handloom_ir::simt::BarKind::*;
        match self.kind {
            RedAnd | RedOr => true,
            Sync | Arrive | RedPopc | ClusterArrive | ClusterArriveRelaxed | ClusterWait | Warpgroup
            | WarpgroupStart => false,
        }
    }
}
