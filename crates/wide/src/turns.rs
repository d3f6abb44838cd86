//! Warps and CTAs one after the other inside the code, without a header between them.
//!
//! # The model
//! A *turn* takes all warps of a CTA from one place of the function to the next: from its start, or from behind a barrier of all threads, to such a barrier
//! or to the end. As long as every warp of a turn comes to the same place, nothing of this is written anywhere: a warp starts at the stub that
//! [`NEXT`] names, and after the last one the code goes on at [`AFTER`]. Values that live over a barrier are in their homes. After the last turn the
//! next CTA starts, if the runtime allowed one (`CtaCtx::more`).
//!
//! # Loops
//! A loop that reads a stream by an index of each thread reads a little of it in each of its turns, far from what it reads in the next one; all warps together read a
//! piece without gaps. So where nothing lives in vectors from one turn of such a loop to the next, its back edge is a place as barriers are, but that nobody waits there: each warp that goes
//! back as a whole gives way to the next one. Only what no order of warps changes may stand in it.
//!
//! Whoever leaves the code, or comes to another place than the warps before, first *settles* the turn: headers and pending words of all other warps are
//! written as the contract wants them, and from then on the CTA goes from context to context by their headers (`flow`). If it ends so without leaving the code, the next one starts as after
//! a last turn.

pub(crate) mod code;

use crate::asm::Label;

/// Words of the stack: where the next warp of the turn starts.
const NEXT: i32 = 0;
/// Where the code goes on after the last warp.
const AFTER: i32 = 8;
/// Where the warps before came to, or one of the numbers below.
const PLACE: i32 = 16;
/// The block that the turn started at.
const START: i32 = 20;
/// The end of the contexts of warps that do something in the turn.
const LIMIT: i32 = 24;
/// Where streams were read last: see `Emit::fetch_ahead`.
pub(crate) const STREAMS: i32 = 32;
/// Where the context of the first warp must lie before for another gang to go.
const GANG_LIMIT: i32 = 64;
/// Where the next gang of the turn starts.
const GANG_NEXT: i32 = 72;
/// Not 0 where the CTA began since the code was entered: then nothing of it is anywhere but here.
const BEGUN: i32 = 80;
/// Not 0 where warps before the one that runs were put at a loop when the turn was settled, and have not gone on.
const BEHIND: i32 = 84;
/// How many streams are remembered.
pub(crate) const N_STREAMS: i32 = 4;
/// What accesses found of their lanes: see `found`.
pub(crate) const FOUND: i32 = 96;
/// Bytes of all of them.
pub(crate) const WORDS: i32 = FOUND + 8 * crate::found::N_FOUND as i32;

/// The CTA goes by headers.
const SETTLED: u32 = 0;
/// No warp of the turn has come anywhere yet.
const NOWHERE: u32 = 1;
/// The end of the function.
const END: u32 = 2;
/// The barrier at the end of block 0; others follow, and behind those of all blocks the back edges to them.
const BARRIERS: u32 = 3;

/// The byte that shared memory of a new CTA is filled with, as the runtime does.
const FRESH_SHARED: u8 = 0xa5;

/// Labels of what belongs to turns.
pub(crate) struct Turns {
    /// By block that turns start at: the start of a turn, and that of a warp of it.
    starts: Vec<Option<(Label, Label)>>,
    /// Headers of loops whose warps go in turn, in ascending order.
    loops: Vec<usize>,
    /// Of those whose header part of a warp may execute: a copy of the header for all lanes.
    whole: Vec<(usize, Label)>,
    /// By block that ends in a barrier of all threads: what follows when all warps have come there.
    afters: Vec<Label>,
    /// By block: the only block that a turn may have started at that comes to it.
    from: Vec<Option<usize>>,
    /// A warp has come to the place of the turn, which may have started at several blocks.
    ended: Label,
    /// All warps of the CTA have ended.
    done: Label,
    /// Writes headers of a turn that is not to go on.
    settle: Label,
    /// What is emitted after all blocks.
    cold: Vec<Elsewhere>,
    /// Warps that go side by side.
    pub(crate) gangs: Vec<Chosen>,
    /// Where rows of CTAs go in strips.
    pub(crate) strip: Option<Strip>,
}

/// How rows of CTAs go in strips.
#[derive(Clone, Copy)]
pub(crate) struct Strip {
    /// What it rests on.
    pub(crate) bits: u32,
    pub(crate) label: Label,
    /// The most CTAs of a grid that goes so.
    pub(crate) ctas: Option<i32>,
}

/// How a turn is gone by gangs.
#[derive(Clone)]
pub(crate) struct Chosen {
    pub(crate) start: usize,
    pub(crate) bits: u32,
    pub(crate) place: Option<Option<usize>>,
    pub(crate) warps: usize,
    /// The first blocks of its ways.
    pub(crate) ways: Vec<usize>,
    pub(crate) label: Label,
    /// How many warps go, if that is a constant and nothing stops them, and where all of them start then.
    pub(crate) fixed: Option<(usize, Label)>,
}

impl Turns {
    /// The start of a turn at a block, and that of a warp of it.
    pub(crate) fn start(&self, block: usize) -> Option<(Label, Label)> {
        self.starts[block]
    }

    /// Writes headers of a turn that is not to go on.
    pub(crate) fn settle(&self) -> Label {
        self.settle
    }

    /// What follows when all warps have come to a barrier, or to the end.
    pub(crate) fn after(&self, barrier: Option<usize>) -> Label {
        barrier.map_or(self.done, |b| self.afters[b])
    }
}

/// The number of a place that warps come to: a barrier, or the end.
pub(crate) fn place_of(barrier: Option<usize>) -> u32 {
    barrier.map_or(END, |b| BARRIERS + b as u32)
}

/// The first warp of a turn came to a place, or one came elsewhere than the others.
struct Elsewhere {
    start: Label,
    /// A warp has come to the place of the turn.
    ended: Label,
    /// Where the turn started, if there is one block for that.
    from: Option<usize>,
    place: u32,
    /// Where the code goes on if all warps come there.
    after: Label,
    /// What is done in a CTA that goes by headers.
    settled: Label,
}
