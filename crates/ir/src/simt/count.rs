//! What compiled code of a counted launch counts by itself ([`Op::Count`](super::Op)): words of an array that each host thread has for itself.

use std::fmt;

use handloom_diag::Span;
use serde::{Deserialize, Serialize};

use crate::types::StateSpace;

/// How much a launch counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Counting {
    /// Nothing.
    #[default]
    Nothing,
    /// Statements, lanes and ways of branches.
    Coverage,
    /// Accesses and what warps wait for too.
    All,
}

/// What an access does, as counts tell it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Does {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads, changes and writes in one.
    Atomic,
}

impl Does {
    /// As people read it.
    pub fn word(self) -> &'static str {
        match self {
            Does::Load => "load",
            Does::Store => "store",
            Does::Atomic => "atomic",
        }
    }
}

/// The part of memory that a lane of a counted access touches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Touch {
    /// State space of the address.
    pub space: StateSpace,
    /// What is done.
    pub does: Does,
    /// Bytes from the first that is touched to the last.
    pub bytes: u32,
    /// Added to the address.
    pub offset: i64,
}

/// What is counted where the op stands. `at` is the number of a counter: its first word in the array, or its place among accesses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Count {
    /// (guard): lanes begin a statement. the others are made of it when passes are done.
    Mark,
    /// Lanes execute the block: [`Counts::BLOCK`] words, and so many statements for the warp.
    Block {
        /// Its counter.
        at: u32,
        /// Statements that begin in it.
        statements: u32,
    },
    /// guard: which lanes of the block it lets act, [`Counts::GUARD`] words.
    Guard {
        /// Its counter.
        at: u32,
    },
    /// The lanes that the branch at the end of the block sends to one of its targets, [`Counts::GUARD`] words.
    Branch {
        /// Its counter.
        at: u32,
        /// The first target; else the other one.
        then: bool,
    },
    /// address, (guard): lanes access memory.
    Access {
        /// Its counter: for each of two groups of lanes [`Counts::ACCESS`] words, by what the address of its first lane is modulo that number.
        at: u32,
        /// Its place in [`Counts::accesses`].
        site: u32,
        /// Where, and what.
        touch: Touch,
    },
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Count::Mark => write!(f, "count.mark"),
            Count::Block { at, statements } => write!(f, "count.block {at}, {statements}"),
            Count::Guard { at } => write!(f, "count.guard {at}"),
            Count::Branch { at, then } => write!(f, "count.branch.{} {at}", if *then { "then" } else { "else" }),
            Count::Access { at, touch, .. } => {
                write!(f, "count.{}.{}.{} {at}", touch.does.word(), touch.space.name(), touch.bytes)
            }
        }
    }
}

/// Statements that are executed whenever a block is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CountedBlock {
    /// Its words: times that all 32 lanes executed it together, where code knows that they do; times that others did; lanes of those; lanes
    /// that ever came, of those.
    pub at: u32,
    /// Those without a guard, as often as they stand in it.
    pub plain: Vec<Span>,
    /// Those that no lane acts at.
    pub idle: Vec<Span>,
    /// Those with a guard, or that are branches: the words say how many lanes acted; how often some lanes acted and others did not; which lanes ever acted.
    pub guarded: Vec<(u32, Span)>,
    /// Accesses of all lanes of the block to the entry's parameters, at one constant address.
    pub params: Vec<(Touch, Span)>,
}

/// What all counters of an entry mean.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Words of the array.
    pub words: u32,
    /// The blocks of all functions that statements begin in.
    pub blocks: Vec<CountedBlock>,
    /// Accesses: first word, statement, what they touch.
    pub accesses: Vec<(u32, Span, Touch)>,
}

impl Counts {
    /// Words of a block.
    pub const BLOCK: u32 = 4;
    /// Words of a guard or a branch.
    pub const GUARD: u32 = 3;
    /// Words of an access.
    pub const ACCESS: u32 = 32;
}
