//! The units of a grid (ctas, or clusters of them) over workers.
//!
//! A worker takes units in order. The front unit runs until it ends or waits for others; then the worker starts another one, and when none is
//! left or none fits, its units take turns, so that blocks which wait for each other all go on even on one thread.
//!
//! Deadlock: `moves` counts what happened while somebody waited. A worker whose units all waited through a full turn, with `moves` unchanged
//! and nothing left to start, says so with that number. When all workers say the same number, nothing will ever happen again: each full turn saw
//! all that the others had done. A worker adds to `moves` when it starts to wait and when it has no unit left, so that what it did before
//! is seen by others' later turns.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use handloom_ir::trap::{Trap, TrapKind, Waiter};

use crate::device::lock;
use crate::launch::{Ended, Grid};

/// Turns in which a unit only waits before another one is started.
const PATIENCE: u32 = 2;

/// Turns in which a unit waits and changes memory before it gives way.
const NOISE: u32 = 64;

/// How a turn of a unit went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// All its threads have ended.
    Done,
    /// It computes.
    Busy,
    /// It waits, and something has changed that others may see.
    Moved,
    /// It waits, and has changed nothing that others see; it may still be about to go on by itself.
    Still,
    /// It waits, and nothing at all has changed since its last turn.
    Waited,
}

/// An engine, as a worker sees it.
pub(crate) trait Crew {
    /// A cta, or the ctas of a cluster, in flight.
    type Unit;

    /// Starts a unit.
    fn start(&mut self, number: u64) -> Result<Self::Unit, Ended>;

    /// Puts a unit that has ended at its first instruction as another one, if nothing of it has to be taken back first. Says whether.
    fn again(&mut self, _unit: &mut Self::Unit, _number: u64) -> bool {
        false
    }

    /// Runs a unit until it ends, waits, or has used up a time slice.
    fn turn(&mut self, unit: &mut Self::Unit) -> Result<Turn, Ended>;

    /// Takes back what a unit holds. Gives what it printed.
    fn end(&mut self, unit: Self::Unit) -> Vec<u8>;

    /// Who of a unit waits where.
    fn waiters(&self, unit: &Self::Unit) -> Vec<Waiter>;
}

/// What the workers of a launch share.
#[derive(Debug)]
pub(crate) struct Shared<'g> {
    pub(crate) grid: &'g Grid,
    /// Positions of the order that were taken.
    taken: AtomicU64,
    chunk: u64,
    /// Number of the lowest unit that trapped. Higher ones need not run: a launch reports the same trap however it was scheduled.
    limit: AtomicU64,
    failure: Mutex<Option<(u64, Ended)>>,
    moves: AtomicU64,
    /// By worker: 1 + the number of moves at which it found itself stuck; the largest number when it has ended.
    stuck: Vec<AtomicU64>,
    deadlock: AtomicBool,
    waiters: Mutex<Vec<(u64, Vec<Waiter>)>>,
    printed: Mutex<Vec<(u64, Vec<u8>)>>,
}

/// A worker that has ended.
const OUT: u64 = u64::MAX;

impl<'g> Shared<'g> {
    pub(crate) fn new(grid: &'g Grid, workers: usize) -> Shared<'g> {
        Shared {
            grid,
            taken: AtomicU64::new(0),
            chunk: (grid.units / (32 * workers as u64)).clamp(1, 1 << 20),
            limit: AtomicU64::new(u64::MAX),
            failure: Mutex::new(None),
            moves: AtomicU64::new(0),
            stuck: (0..workers).map(|_| AtomicU64::new(0)).collect(),
            deadlock: AtomicBool::new(false),
            waiters: Mutex::default(),
            printed: Mutex::default(),
        }
    }

    fn claim(&self) -> std::ops::Range<u64> {
        let start = self.taken.fetch_add(self.chunk, Ordering::Relaxed).min(self.grid.units);
        start..(start + self.chunk).min(self.grid.units)
    }

    fn fail(&self, unit: u64, why: Ended) {
        let mut failure = lock(&self.failure);
        if failure.as_ref().is_none_or(|(u, _)| unit < *u) {
            *failure = Some((unit, why));
            self.limit.fetch_min(unit, Ordering::AcqRel);
        }
    }

    fn all_stuck(&self, moves: u64) -> bool {
        let same = |s: &AtomicU64| [OUT, moves + 1].contains(&s.load(Ordering::SeqCst));
        self.moves.load(Ordering::SeqCst) == moves && self.stuck.iter().all(same)
    }

    /// What came of the launch, when all workers have ended. What was printed goes to the device, by unit.
    pub(crate) fn finish(self) -> Result<(), Ended> {
        let mut printed = self.printed.into_inner().unwrap_or_default();
        printed.sort_by_key(|(unit, _)| *unit);
        printed.iter().for_each(|(_, text)| self.grid.module.device.inner.add_output(text));
        if let Some((_, why)) = self.failure.into_inner().unwrap_or_default() {
            return Err(why);
        }
        let mut all = self.waiters.into_inner().unwrap_or_default();
        all.sort_by_key(|(unit, _)| *unit);
        let nobody = all.is_empty();
        let waiting =
            |kind| Err(Ended::Trap(Box::new(waiting_trap(kind, all.into_iter().flat_map(|(_, w)| w).collect()))));
        if self.deadlock.load(Ordering::SeqCst) {
            return waiting(TrapKind::Deadlock);
        }
        if !self.grid.stop.is_set() {
            return Ok(());
        }
        // A stop that came after the last block is no stop.
        if self.taken.load(Ordering::Relaxed) >= self.grid.units && nobody {
            return Ok(());
        }
        if self.grid.stop.is_timeout() { waiting(TrapKind::Timeout) } else { Err(Ended::Stopped) }
    }
}

/// A trap about threads that wait, placed at the first of them.
fn waiting_trap(kind: TrapKind, waiters: Vec<Waiter>) -> Trap {
    let none = Trap::new(kind, handloom_diag::Span::NONE, [0; 3], [0; 3]);
    let Some(first) = waiters.first() else { return none };
    Trap { span: first.span, cta: first.cta, thread: first.thread, waiters, ..none }
}

/// A unit in flight.
struct Resident<U> {
    number: u64,
    unit: U,
    /// Turns in a row in which it waited.
    fruitless: u32,
}

/// Takes and runs units until none is left, or the launch ends.
pub(crate) fn work<C: Crew>(shared: &Shared<'_>, me: usize, crew: &mut C) {
    let mut worker =
        Worker { shared, me, crew, range: 0..0, residents: VecDeque::new(), quiet: 0, since: 0, waits: false };
    while let Err((number, why)) = worker.run() {
        // Lower units may still run: one of them may trap too, and then it is the one to report.
        let ends_all = !matches!(why, Ended::Trap(_));
        shared.fail(if ends_all { 0 } else { number }, why);
    }
    worker.clear();
    shared.moves.fetch_add(1, Ordering::SeqCst);
    shared.stuck[me].store(OUT, Ordering::SeqCst);
}

struct Worker<'w, 'g, C: Crew> {
    shared: &'w Shared<'g>,
    me: usize,
    crew: &'w mut C,
    /// Positions that are this worker's to start.
    range: std::ops::Range<u64>,
    residents: VecDeque<Resident<C::Unit>>,
    /// Turns in a row that only waited, and the number of moves when they began.
    quiet: usize,
    since: u64,
    /// Some unit has waited and not ended since.
    waits: bool,
}

impl<C: Crew> Worker<'_, '_, C> {
    fn run(&mut self) -> Result<(), (u64, Ended)> {
        loop {
            if self.residents.is_empty() {
                self.waits = false;
                if !self.sprint()? {
                    return Ok(());
                }
                continue;
            }
            if self.is_interrupted() {
                self.tell_waiters();
                return Ok(());
            }
            let Some(mut front) = self.residents.pop_front() else { continue };
            if front.number > self.shared.limit.load(Ordering::Relaxed) {
                self.end(front.number, front.unit);
                continue;
            }
            let turn = self.crew.turn(&mut front.unit);
            if !self.after(front, turn)? {
                return Ok(());
            }
        }
    }

    /// Runs units one after the other as long as each ends in its first turn, as those of most grids do. Says whether one is left to go on with;
    /// it is the only resident.
    fn sprint(&mut self) -> Result<bool, (u64, Ended)> {
        let mut next = self.next_number();
        while let Some((number, position)) = next {
            let unit = match self.crew.start(number) {
                Ok(unit) => unit,
                Err(why) => return Err(self.not_started(number, position, why)),
            };
            let mut front = Resident { number, unit, fruitless: 0 };
            loop {
                if self.is_interrupted() {
                    self.residents.push_front(front);
                    return Ok(true);
                }
                match self.crew.turn(&mut front.unit) {
                    Ok(Turn::Done) => self.count_done(),
                    turn => return self.after(front, turn),
                }
                next = self.next_number();
                match next {
                    Some((number, _)) if self.crew.again(&mut front.unit, number) => front.number = number,
                    Some(_) | None => break,
                }
            }
            self.end(front.number, front.unit);
        }
        Ok(false)
    }

    /// Somebody asked for the end, or nothing will ever happen again.
    fn is_interrupted(&self) -> bool {
        self.shared.grid.stop.is_set() || self.shared.deadlock.load(Ordering::Relaxed)
    }

    /// Does what a turn of a unit asks for. Says whether the worker goes on.
    fn after(&mut self, mut front: Resident<C::Unit>, turn: Result<Turn, Ended>) -> Result<bool, (u64, Ended)> {
        match turn {
            Err(Ended::Stopped) => {
                self.residents.push_front(front);
                self.tell_waiters();
                return Ok(false);
            }
            Err(why) => {
                self.end(front.number, front.unit);
                return Err((front.number, why));
            }
            Ok(Turn::Done) => {
                self.done(front.number, front.unit);
                if self.waits {
                    self.moved();
                }
            }
            Ok(Turn::Busy) => self.residents.push_front(front),
            Ok(Turn::Moved) => {
                self.moved();
                front.fruitless += 1;
                let gives_way = front.fruitless >= NOISE;
                self.wait(front, gives_way)?;
            }
            Ok(turn @ (Turn::Still | Turn::Waited)) => {
                front.fruitless += 1;
                let gives_way = front.fruitless >= PATIENCE;
                self.quiet_turn();
                if turn == Turn::Still {
                    self.quiet = 0;
                }
                self.wait(front, gives_way)?;
            }
        }
        Ok(true)
    }

    /// A unit has ended by itself.
    fn done(&mut self, number: u64, unit: C::Unit) {
        self.end(number, unit);
        self.count_done();
    }

    #[inline]
    fn count_done(&self) {
        if let Some(p) = &self.shared.grid.progress {
            p.add(u64::from(self.shared.grid.unit_size));
        }
    }

    /// Something happened that others may wait for.
    fn moved(&mut self) {
        self.quiet = 0;
        self.shared.moves.fetch_add(1, Ordering::SeqCst);
    }

    fn quiet_turn(&mut self) {
        if !self.waits {
            self.waits = true;
            self.moved();
        }
        if self.quiet == 0 {
            self.since = self.shared.moves.load(Ordering::SeqCst);
        }
        self.quiet += 1;
    }

    /// Puts a waiting unit back; if it gives way, behind the others, of which there may now be one more.
    fn wait(&mut self, mut unit: Resident<C::Unit>, gives_way: bool) -> Result<(), (u64, Ended)> {
        if !gives_way {
            self.residents.push_front(unit);
            return Ok(());
        }
        unit.fruitless = 0;
        self.residents.push_back(unit);
        self.waits = true;
        if self.start_another()? {
            self.moved();
        } else if self.quiet > self.residents.len() * (PATIENCE as usize + 1) {
            self.say_stuck();
        }
        Ok(())
    }

    /// All units waited through a full turn and nothing can be started.
    fn say_stuck(&mut self) {
        let moves = self.shared.moves.load(Ordering::SeqCst);
        self.quiet = 0;
        if moves != self.since {
            return;
        }
        self.shared.stuck[self.me].store(moves + 1, Ordering::SeqCst);
        if self.shared.all_stuck(moves) {
            self.shared.deadlock.store(true, Ordering::SeqCst);
        } else {
            // Others still run: they are what this worker waits for.
            std::thread::yield_now();
        }
    }

    /// The next unit, if there is one, and its position in the order.
    fn next_number(&mut self) -> Option<(u64, u64)> {
        loop {
            if self.range.is_empty() {
                self.range = self.shared.claim();
            }
            let position = self.range.next()?;
            let number = self.shared.grid.order.at(position);
            if number <= self.shared.limit.load(Ordering::Relaxed) {
                return Some((number, position));
            }
        }
    }

    /// A unit could not be started. It is not lost: it can be started when there is room.
    fn not_started(&mut self, number: u64, position: u64, why: Ended) -> (u64, Ended) {
        self.range = position..self.range.end;
        (number, why)
    }

    /// Starts the next unit if there is one and room for it, to run first. Says whether there was.
    fn start_another(&mut self) -> Result<bool, (u64, Ended)> {
        let Some((number, position)) = self.next_number() else { return Ok(false) };
        match self.crew.start(number) {
            Ok(unit) => {
                self.residents.push_front(Resident { number, unit, fruitless: 0 });
                Ok(true)
            }
            Err(why) => match self.not_started(number, position, why) {
                (_, Ended::NoRoom(_)) if !self.residents.is_empty() => Ok(false),
                why => Err(why),
            },
        }
    }

    fn end(&mut self, number: u64, unit: C::Unit) {
        let text = self.crew.end(unit);
        if !text.is_empty() {
            lock(&self.shared.printed).push((number, text));
        }
    }

    fn tell_waiters(&mut self) {
        let told: Vec<_> = self.residents.iter().map(|r| (r.number, self.crew.waiters(&r.unit))).collect();
        lock(&self.shared.waiters).extend(told);
    }

    fn clear(&mut self) {
        while let Some(r) = self.residents.pop_front() {
            self.end(r.number, r.unit);
        }
    }
}
