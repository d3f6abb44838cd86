//! Shared memory of a block that is played through: who has accessed which bytes since the last barrier, and which were surely written.
//!
//! Threads of a warp are ordered by `bar.warp.sync` too. Two that nothing orders must not access a byte unless both read, or both are atomics.

use std::collections::HashMap;

use handloom_ir::types::{AtomOp, ScalarType};

use super::mask::Mask;

/// What an access does, as far as conflicts go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Read,
    Write,
    Atomic,
}

/// Who did something to a cell since the last barrier.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The number of the stretch between two barriers; 0: never.
    stretch: u32,
    /// How often the warp had met.
    met: u32,
    who: Who,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Who {
    Thread(u16),
    /// Several of a warp.
    Warp(u8),
    Several,
}

const NOBODY: Mark = Mark { stretch: 0, met: 0, who: Who::Several };

/// Accesses to some bytes.
#[derive(Clone, Copy, Debug)]
struct Cell {
    read: Mark,
    write: Mark,
    atomic: Mark,
    /// Bytes of the atomics.
    bytes: u8,
}

const EMPTY: Cell = Cell { read: NOBODY, write: NOBODY, atomic: NOBODY, bytes: 0 };

/// When something happens.
#[derive(Clone, Debug)]
pub(super) struct Now {
    /// Barriers that the block has passed, and 1.
    pub(super) stretch: u32,
    /// By warp: how often all of its lanes have met.
    pub(super) met: Vec<u32>,
}

impl Now {
    fn mark(&self, thread: usize) -> Mark {
        let who = Who::Thread(u16::try_from(thread).unwrap_or(u16::MAX));
        Mark { stretch: self.stretch, met: self.met[thread / 32], who }
    }

    /// Whether nothing orders what was done with what a thread does.
    fn is_beside(&self, done: &Mark, thread: usize) -> bool {
        let warp = thread / 32;
        done.stretch == self.stretch
            && match done.who {
                Who::Several => true,
                Who::Warp(w) => usize::from(w) != warp || done.met == self.met[warp],
                Who::Thread(t) => {
                    let t = usize::from(t);
                    t != thread && (t / 32 != warp || done.met == self.met[warp])
                }
            }
    }

    /// Adds a thread to those who did something.
    fn note(&self, done: &mut Mark, thread: usize) {
        let new = self.mark(thread);
        if done.stretch != self.stretch {
            *done = new;
            return;
        }
        let warp = thread / 32;
        let who = match done.who {
            Who::Thread(t) if usize::from(t) == thread => new.who,
            Who::Thread(t) if usize::from(t) / 32 == warp => Who::Warp(warp as u8),
            Who::Warp(w) if usize::from(w) == warp => done.who,
            _ => Who::Several,
        };
        *done = Mark { who, ..new };
    }
}

/// Conflicts on cells of some bytes each.
#[derive(Debug)]
pub(super) struct Cells {
    cells: Vec<Cell>,
}

impl Cells {
    pub(super) fn new(n: usize) -> Cells {
        Cells { cells: vec![EMPTY; n] }
    }

    /// A thread accesses some cells, with `bytes` in all. Says whether nothing speaks against it.
    pub(super) fn access(&mut self, now: &Now, at: (usize, usize), thread: usize, (kind, bytes): (Kind, u8)) -> bool {
        let Some(cells) = self.cells.get_mut(at.0..at.1) else { return false };
        for cell in cells {
            let conflict = match kind {
                Kind::Read => now.is_beside(&cell.write, thread) || now.is_beside(&cell.atomic, thread),
                Kind::Write => [&cell.write, &cell.read, &cell.atomic].iter().any(|done| now.is_beside(done, thread)),
                Kind::Atomic => {
                    now.is_beside(&cell.write, thread)
                        || now.is_beside(&cell.read, thread)
                        || now.is_beside(&cell.atomic, thread) && cell.bytes != bytes
                }
            };
            if conflict {
                return false;
            }
            match kind {
                Kind::Read => now.note(&mut cell.read, thread),
                Kind::Write => now.note(&mut cell.write, thread),
                Kind::Atomic => {
                    now.note(&mut cell.atomic, thread);
                    cell.bytes = bytes;
                }
            }
        }
        true
    }
}

/// Who has accessed cells, warp by warp: lanes of one must not be in each other's way, unless all do atomics.
#[derive(Debug, Default)]
pub(super) struct LanesOfWarps(HashMap<(usize, usize), Lanes>);

/// Lanes of a warp that have accessed a cell since they met.
#[derive(Debug)]
struct Lanes {
    stretch: u32,
    met: u32,
    /// Which thread, if it is one.
    one: Option<usize>,
    /// What they did, if all did one thing.
    kind: Option<Kind>,
}

impl LanesOfWarps {
    /// A thread accesses some cells. Says whether nothing speaks against it.
    pub(super) fn access(&mut self, now: &Now, at: (usize, usize), thread: usize, kind: Kind) -> bool {
        let warp = thread / 32;
        let (stretch, met) = (now.stretch, now.met[warp]);
        (at.0..at.1).all(|cell| {
            let new = || Lanes { stretch, met, one: Some(thread), kind: Some(kind) };
            let there = self.0.entry((cell, warp)).or_insert_with(new);
            if (there.stretch, there.met) != (stretch, met) {
                *there = new();
            }
            there.one = there.one.filter(|one| *one == thread);
            there.kind = there.kind.filter(|all| *all == kind);
            there.one.is_some() || matches!(there.kind, Some(Kind::Read | Kind::Atomic))
        })
    }
}

/// Bytes of shared memory that were surely written: by whom last, and in which stretch first.
#[derive(Debug)]
pub(super) struct Written {
    /// By cell: who has written it first, and when.
    first: Vec<Mark>,
    /// Cells that were never written.
    left: usize,
    /// The stretch in which the last one was.
    last: u32,
}

impl Written {
    /// Of so many cells, of which the first ones begin with contents.
    pub(super) fn new(n: usize, with_contents: usize) -> Written {
        let left = n - with_contents.min(n);
        let mut first = vec![NOBODY; n];
        first.iter_mut().take(with_contents).for_each(|cell| cell.met = u32::MAX);
        Written { first, left, last: 0 }
    }

    /// A thread surely writes cells.
    pub(super) fn write(&mut self, now: &Now, (from, to): (usize, usize), thread: usize) {
        for cell in self.first.get_mut(from..to).into_iter().flatten().filter(|c| c.stretch == 0 && c.met == 0) {
            *cell = now.mark(thread);
            self.left -= 1;
            self.last = now.stretch;
        }
    }

    /// Whether what a thread reads was written before: by itself, or before a barrier.
    pub(super) fn has(&self, now: &Now, (from, to): (usize, usize), thread: usize) -> bool {
        let Some(cells) = self.first.get(from..to) else { return false };
        cells.iter().all(|cell| (cell.stretch != 0 || cell.met == u32::MAX) && !now.is_beside(cell, thread))
    }

    /// Whether all cells were written before the last barrier.
    pub(super) fn has_all(&self, now: &Now) -> bool {
        self.left == 0 && self.last < now.stretch
    }
}

/// Accesses at places that nobody knows, in one stretch.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Anywhere {
    /// Whether some are plain reads, at known or unknown places.
    reads: [bool; 2],
    writes: bool,
    /// Bytes of the atomics at known places, if there are some, and of those at unknown ones; different ones are 255.
    atomics: [u8; 2],
}

impl Anywhere {
    /// An access. Says whether nothing speaks against it: the place that is not known may be any other.
    pub(super) fn access(&mut self, is_known: bool, kind: Kind, bytes: u8) -> bool {
        let i = usize::from(!is_known);
        match kind {
            Kind::Read => self.reads[i] = true,
            Kind::Write if is_known => self.writes = true,
            Kind::Write => return false,
            Kind::Atomic => self.atomics[i] = joined(self.atomics[i], bytes),
        }
        self.is_fine()
    }

    /// What others do. Says the same of all together.
    pub(super) fn add(&mut self, other: &Anywhere) -> bool {
        for i in 0..2 {
            self.reads[i] |= other.reads[i];
            self.atomics[i] = joined(self.atomics[i], other.atomics[i]);
        }
        self.writes |= other.writes;
        self.is_fine()
    }

    /// Whether something is done at places that nobody knows.
    pub(super) fn has_unknown(&self) -> bool {
        self.reads[1] || self.atomics[1] != 0
    }

    /// Whether something is changed at places that nobody knows.
    pub(super) fn is_changed_anywhere(&self) -> bool {
        self.atomics[1] != 0
    }

    fn is_fine(&self) -> bool {
        let has_atomics = self.atomics != [0, 0];
        let unknown_atomics = self.atomics[1] != 0
            && (self.reads != [false; 2]
                || self.writes
                || self.atomics[1] == u8::MAX
                || ![0, self.atomics[1]].contains(&self.atomics[0]));
        let unknown_reads = self.reads[1] && (self.writes || has_atomics);
        !unknown_atomics && !unknown_reads
    }
}

/// Bytes of their own memory that threads have surely written.
#[derive(Debug)]
pub(super) struct OwnBytes {
    /// By byte of the frame.
    by: Vec<Mask>,
}

impl OwnBytes {
    /// Largest frames that are looked at.
    const MOST: u64 = 1 << 12;

    /// Of frames of so many bytes.
    pub(super) fn new(bytes: u64) -> OwnBytes {
        OwnBytes { by: vec![Mask::NONE; bytes.min(OwnBytes::MOST) as usize] }
    }

    /// Those from one to another, if they are looked at.
    fn range((from, end): (u64, u64)) -> std::ops::Range<usize> {
        from.min(OwnBytes::MOST + 1) as usize..end.min(OwnBytes::MOST + 1) as usize
    }

    /// A thread surely writes some.
    pub(super) fn write(&mut self, at: (u64, u64), thread: usize) {
        self.by.get_mut(OwnBytes::range(at)).into_iter().flatten().for_each(|byte| byte.add(thread));
    }

    /// Whether it has written them all.
    pub(super) fn has(&self, at: (u64, u64), thread: usize) -> bool {
        self.by.get(OwnBytes::range(at)).is_some_and(|bytes| bytes.iter().all(|byte| byte.has(thread)))
    }
}

/// What the atomics of a memory do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Atomics {
    /// What, if there are some: more than one thing may give one result or another, by who comes first.
    pub(super) does: Option<(AtomOp, ScalarType)>,
    /// Something depends on who comes first.
    pub(super) depends: bool,
    /// Several threads of a block do them; else one alone.
    pub(super) are_of_several: bool,
    /// The one that does, of the blocks that were seen.
    pub(super) thread: Option<usize>,
}

impl Atomics {
    /// Those of an instruction that some threads may execute.
    pub(super) fn of(does: (AtomOp, ScalarType), depends: bool, threads: &Mask) -> Atomics {
        let mut all = threads.iter();
        let thread = all.next();
        Atomics { does: Some(does), depends, are_of_several: all.next().is_some(), thread }
    }

    /// Adds others of the same blocks.
    pub(super) fn add(&mut self, other: Atomics) {
        self.are_of_several |= self.thread.zip(other.thread).is_some_and(|(a, b)| a != b);
        self.add_blocks(other);
    }

    /// Adds those of other blocks.
    pub(super) fn add_blocks(&mut self, other: Atomics) {
        self.depends |= other.depends || self.does.zip(other.does).is_some_and(|(a, b)| a != b);
        self.are_of_several |= other.are_of_several;
        (self.does, self.thread) = (self.does.or(other.does), self.thread.or(other.thread));
    }

    /// Whether what is left depends on the order of the threads of a block. Blocks come in the seed's order in all code.
    pub(super) fn order_decides(&self) -> bool {
        self.depends && self.are_of_several
    }
}

/// Bytes of all atomics: 0 are none, and 255 different ones.
fn joined(a: u8, b: u8) -> u8 {
    match (a, b) {
        (0, n) | (n, 0) => n,
        (a, b) if a == b => a,
        _ => u8::MAX,
    }
}
