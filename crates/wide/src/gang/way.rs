//! What is known of a way of a gang: see the folder's model.

use std::fmt;

use handloom_diag::hash::FastMap;
use handloom_ir::simt::{Function, Inst, Op, Reg, Val};
use handloom_plan::analysis::cfg::Set;

use crate::access::Held;
use crate::alloc::{FIRST_VECTOR, Place};
use crate::asm::Label;
use crate::head::Going;

/// How many warps may go side by side, the best first, with the most instructions times warps of a way: more would be long code.
pub(super) const SIZES: [(usize, usize); 3] = [(8, 240), (4, 900), (2, 900)];
/// Vectors that hold registers.
pub(super) const VECTORS: u8 = 32 - FIRST_VECTOR;

/// A way that several warps go side by side.
#[derive(Clone)]
pub(crate) struct Gang {
    /// The first block of the way.
    pub(super) start: usize,
    /// How many warps.
    pub(super) warps: usize,
    /// Whether each warp goes all of the way before the next one: see `goes_by_warp`.
    pub(super) by_warp: bool,
    /// The blocks of the way, with how many instructions of each are done.
    pub(super) blocks: Vec<(usize, usize)>,
    /// By block: its instructions where predicates hold that the head decided, if that makes others of them (`bare`).
    pub(super) bare: FastMap<usize, Vec<Inst>>,
    /// The bits of the head that it rests on.
    pub(super) bits: u32,
    /// Accesses that are tested at its start, by block and instruction.
    pub(super) tests: Vec<(usize, usize)>,
    /// Whether it is right only for the warps that do something in the turn that starts with it.
    pub(super) is_first: bool,
    /// Whether it is of all warps of the CTA, and goes on behind barriers.
    pub(super) is_whole: bool,
    /// Where it ends.
    pub(super) end: End,
    /// Registers that are the same in all warps.
    pub(super) common: Set,
    /// Blocks that only some lanes execute. The code is for all of them, but its stores and what others keep.
    pub(super) guarded: FastMap<usize, Guarded>,
    /// By block and instruction that loads: the instruction that reads the value from memory.
    pub(super) folds: FastMap<(usize, usize), (usize, usize)>,
    /// Loads whose rows stay for the warps that follow.
    pub(super) carried: Vec<Carried>,
    /// Loads of rows that lie beside others.
    pub(super) shifted: Vec<Shifted>,
    /// Loads of rows that go through shared memory.
    pub(super) passed: Vec<Passed>,
    /// Registers that it reads first, and by warp where each lives from the start on.
    pub(super) entered: Vec<(usize, Vec<Place>)>,
    /// Where values begin, by number of the instruction in the way: a register, and by warp where it lives from then on.
    pub(super) moves: Vec<(usize, usize, Vec<Place>)>,
    /// The values of the way, where somebody asks how long vectors are in use.
    pub(super) alive: Vec<Alive>,
    /// Vectors that no value of the way takes.
    pub(super) spare: Vec<u8>,
    /// Scalars that are kept for the first warp alone.
    pub(super) alone: Vec<(Reg, Alone)>,
    /// Those of the blocks that it may go on with, which there are no ways from: warps stop before them, and go on one by one. With the code that stops them.
    pub(super) stops: Vec<(usize, Label)>,
    /// Where all warps of it may leave it in its midst.
    pub(super) exits: Vec<Exit>,
    /// Registers that are written to their homes last.
    pub(super) leaves: Vec<usize>,
    /// Where its code starts.
    pub(super) label: Label,
    /// Where it goes on if it is followed by itself: registers have what they are to have at its start.
    pub(super) again: Option<Label>,
}

/// What is known of a block that only some lanes execute.
#[derive(Clone, Copy)]
pub(super) struct Guarded {
    /// Those.
    pub(super) going: Going,
    /// The block where all lanes meet again.
    pub(super) meet: usize,
}

/// Where all warps leave a way, by a condition that is the same in all of them, for a block that no way goes through: they stop before it, and go on one by one. Where they would stay, but
/// accesses of the block behind are not right, they stop before that one: in a loop the head knows them in all turns or not at all, and the condition may say that they are not done in some.
#[derive(Clone)]
pub(super) struct Exit {
    /// The block at whose end that is.
    pub(super) from: usize,
    /// The condition.
    pub(super) cond: Val,
    /// Whether they stay where it holds.
    pub(super) stays_if: bool,
    /// The block that follows if they stay.
    pub(super) stay: usize,
    /// Its accesses whose addresses are known before it, by block and instruction, each with the bit that says that it is right, if there is one.
    pub(super) tests: Vec<((usize, usize), Option<u32>)>,
    /// The block that they leave for.
    pub(super) to: usize,
    /// The code that stops them there.
    pub(super) label: Label,
    /// The code that stops them where they would stay.
    pub(super) refused: Label,
}

impl Exit {
    /// The blocks that they may stop before, each with the code that does it.
    pub(super) fn stops(&self) -> impl Iterator<Item = (usize, Label)> {
        let refused = (!self.tests.is_empty()).then_some((self.stay, self.refused));
        std::iter::once((self.to, self.label)).chain(refused)
    }
}

/// Where a way ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// At the barrier of a block, or at the end of the function.
    Place(Option<usize>),
    /// At a branch of a block to two others, by a condition that is the same in all warps.
    Branch(usize, Val, usize, usize),
    /// Where a block goes on with another one that is before it, or is the header of a loop.
    Back(usize, usize),
}

/// A load of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Carried {
    /// Its block, and its number there.
    pub(super) at: (usize, usize),
    pub(super) reg: Reg,
    /// The number of the chain.
    pub(super) chain: usize,
    /// How many ranks after the first load of the chain it has what that one has read.
    pub(super) age: usize,
    /// How many loads the chain has.
    pub(super) n: usize,
    /// How many warps a rank has.
    pub(super) across: usize,
}

impl Carried {
    /// Whether a warp of a gang has the row of a load already.
    pub(super) fn is_there(&self, member: usize) -> bool {
        self.age > 0 && member >= self.across
    }

    /// Vectors of its chain, for values of so many parts.
    pub(super) fn n_vectors(&self, parts: usize) -> usize {
        self.n * self.across * parts
    }

    /// Where a warp of a gang has its row, in vectors of the chain.
    pub(super) fn place(&self, member: usize, vectors: &[u8], parts: usize) -> Place {
        let (file, rank) = (member % self.across, member / self.across);
        let row = (rank + self.n - self.age) % self.n;
        let own = &vectors[(file * self.n + row) * parts..];
        Place::Vectors(std::array::from_fn(|q| if q < parts { own[q] } else { 0 }))
    }
}

/// A load of a row that lies beside one that registers hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shifted {
    /// Its block, and its number there.
    pub(super) at: (usize, usize),
    /// The same of the load of that row.
    pub(super) row: (usize, usize),
    /// What that one fills.
    pub(super) of: Reg,
    /// How many elements it lies behind that one.
    pub(super) by: i32,
}

/// A load from shared memory that gets what a warp brings there from device memory, before it is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Passed {
    /// Its block, and its number there.
    pub(super) at: (usize, usize),
    /// The same of the load from device memory.
    pub(super) from: (usize, usize),
    /// The same of the store to shared memory.
    pub(super) store: (usize, usize),
    /// Which warp that is of, in the gang.
    pub(super) member: usize,
    /// The part of its vectors.
    pub(super) part: usize,
}

/// The strip that code is emitted for.
pub(crate) struct InStrip {
    /// How far accesses are behind those of the CTA before, but for their scales.
    pub(super) unit: i32,
    /// Addresses that have words, in their order.
    pub(super) saved: Vec<Held>,
}

/// What the words of the first warp say of the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Alone {
    /// They have the same.
    Same,
    /// They are as far from it as they are in this value of the head.
    Apart(Reg),
}

/// The life of one value of a register, by numbers of instructions in a way; from 0 on if it is there before.
#[derive(Clone, Copy)]
pub(super) struct Life {
    pub(super) reg: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A value, and its vectors by bit from the first that holds registers: of each warp, or the same ones for all.
#[derive(Clone)]
pub(super) struct Alive {
    pub(super) life: Life,
    pub(super) vectors: Vec<u32>,
    /// Whether it stays while other warps go their way.
    pub(super) stays: bool,
}

impl fmt::Display for Gang {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blocks: Vec<String> = self.blocks.iter().map(|(b, _)| format!("b{b}")).collect();
        write!(out, "{} warps side by side through {}", self.warps, blocks.join(", "))?;
        if self.is_whole {
            write!(out, ", behind barriers too")?;
        }
        write!(out, ", {} loads are operands", self.folds.len())?;
        write!(out, ", {} accesses are tested", self.tests.len())?;
        let n_there = self.carried.iter().filter(|c| c.age > 0).count();
        if n_there > 0 {
            write!(out, ", {n_there} loads are there since the rank before")?;
        }
        if !self.shifted.is_empty() {
            write!(out, ", {} loads are beside others", self.shifted.len())?;
        }
        if !self.passed.is_empty() {
            write!(out, ", {} loads get what goes to shared memory", self.passed.len())?;
        }
        self.stops.iter().try_for_each(|(b, _)| write!(out, ", stops before b{b}"))?;
        self.exits.iter().try_for_each(|x| write!(out, ", leaves b{} for b{}", x.from, x.to))?;
        let mut going: Vec<_> = self.guarded.iter().collect();
        going.sort_unstable_by_key(|(b, _)| **b);
        going.into_iter().try_for_each(|(b, guarded)| match guarded.going {
            Going::Known(lanes) => write!(out, ", b{b} in lanes {lanes:#x}"),
            Going::Written(..) => write!(out, ", b{b} in lanes that the head wrote down"),
        })
    }
}

impl Gang {
    /// The instructions of a block of it.
    pub(super) fn insts<'i>(&'i self, f: &'i Function, b: usize) -> &'i [Inst] {
        self.bare.get(&b).unwrap_or(&f.blocks[b].insts)
    }

    /// All of them, each with its block and its number there.
    pub(super) fn all_insts<'i>(&'i self, f: &'i Function) -> impl Iterator<Item = ((usize, usize), &'i Inst)> {
        let of_block = move |&(b, n): &(usize, usize)| {
            self.insts(f, b)[..n].iter().enumerate().map(move |(i, inst)| ((b, i), inst))
        };
        self.blocks.iter().flat_map(of_block)
    }

    /// Whether it ends with the branch of a block, or may leave by it.
    pub(super) fn is_asked(&self, block: usize) -> bool {
        matches!(self.end, End::Branch(b, ..) if b == block) || self.exit_of(block).is_some()
    }

    /// Where it may be left at the end of a block.
    pub(super) fn exit_of(&self, block: usize) -> Option<&Exit> {
        self.exits.iter().find(|x| x.from == block)
    }

    /// Whether it may follow itself with nothing to test: a loop, whose values stay in registers.
    pub(super) fn comes_back(&self) -> bool {
        self.tests.is_empty() && self.successors().contains(&self.start)
    }

    /// What is known of an instruction that is a load of a chain.
    pub(super) fn carried(&self, at: (usize, usize)) -> Option<&Carried> {
        self.carried.iter().find(|c| c.at == at)
    }

    /// What is known of an instruction that loads a row beside another one.
    pub(super) fn shifted(&self, at: (usize, usize)) -> Option<&Shifted> {
        self.shifted.iter().find(|s| s.at == at)
    }

    /// What is known of a load that gets what goes to shared memory.
    pub(super) fn passed(&self, at: (usize, usize)) -> Option<&Passed> {
        self.passed.iter().find(|p| p.at == at)
    }

    /// Whether an instruction brings something to shared memory that a load behind it does.
    pub(super) fn is_done_later(&self, at: (usize, usize)) -> bool {
        self.passed.iter().any(|p| p.from == at || p.store == at)
    }

    /// Whether warps stop before a block that it may go on with.
    pub(super) fn stops_before(&self, block: usize) -> bool {
        self.stops.iter().any(|(b, _)| *b == block)
    }

    /// The blocks that it may go on with.
    pub(super) fn successors(&self) -> Vec<usize> {
        match self.end {
            End::Place(_) => Vec::new(),
            End::Branch(_, _, then, otherwise) => vec![then, otherwise],
            End::Back(_, to) => vec![to],
        }
    }

    /// Vectors that somebody reads after instructions were done for a warp, those of two numbers and all between. `of_all`: done for all warps.
    pub(super) fn alive_after(&self, member: usize, (first, last): (usize, usize), of_all: bool) -> u32 {
        let mut live = 0;
        for a in &self.alive {
            for (m, vectors) in a.vectors.iter().enumerate() {
                // Warps behind this one still have the instructions before them, and so has what all of them read.
                let is_shared = a.vectors.len() == 1;
                let is_done = self.by_warp || of_all || if is_shared { member + 1 == self.warps } else { m <= member };
                let done = if is_done { last } else { first - 1 };
                if a.stays || a.life.start <= last && a.life.end > done {
                    live |= vectors;
                }
            }
        }
        live
    }

    /// The most vectors that are in use at one time.
    pub(super) fn most_in_use(&self) -> u32 {
        let at = |n: usize| self.alive.iter().filter(move |a| a.life.start <= n && a.life.end >= n);
        // A result may take the vectors of what it is made of.
        let count = |n: usize| at(n).flat_map(|a| &a.vectors).fold(0_u32, |all, v| all | v).count_ones();
        self.alive.iter().map(|a| count(a.life.start)).max().unwrap_or(0)
    }
}

/// Whether an instruction stores what the one before it has made.
pub(super) fn stores_result(made: &Inst, store: &Inst) -> bool {
    let is_made = matches!(made.op, Op::Pure(_) | Op::Load { .. }) && !made.dst.is_empty();
    is_made && matches!(store.op, Op::Store { .. }) && made.dst.iter().any(|d| store.src.contains(&Val::Reg(*d)))
}
