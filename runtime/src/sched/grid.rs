//! The units of a grid (ctas, or clusters of them) over workers.
//!
//! A worker takes units in order. The front unit runs until it ends or waits for others; then the worker starts another one, and when none is
//! left or none fits, its units take turns, so that blocks which wait for each other all go on even on one thread.
//!
//! Deadlock: `moves` counts what happened while somebody waited. A worker whose units all waited through a full turn, with `moves` unchanged
//! and nothing left to start, says so with that number. When all workers say the same number, nothing will ever happen again: each full turn saw
//! all that the others had done. A worker adds to `moves` when it starts to wait and when it has no unit left, so that what it did before
//! is seen by others' later turns.
//!
//! Units that give way to each other in strict alternation might do so for ever. So after a while some of their quanta are shorter or longer,
//! as the seed decides ([`Resident::plan`]).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use handloom_interp::pace::{pauses, splitmix};
use handloom_ir::trap::{Trap, TrapKind, Waiter};

use crate::error::Lack;
use crate::grid::{Ended, Grid};
use crate::lock::lock;
use crate::run::{Beside, Silence, Turns};

/// Turns in which a unit only waits before another one is started.
const PATIENCE: u32 = 2;

/// Turns in which a unit waits and changes memory before it gives way.
const NOISE: u32 = 64;

/// Quanta of a unit in which it changed memory, before they vary.
const AFTER: u32 = 64;

/// How long units run without a look at anything, in nanoseconds.
const BURST_NS: u64 = 10_000_000;

/// How long a worker of a launch that is not alone rests when all that it has waits.
const LOOK: Duration = Duration::from_micros(50);

/// Longest quantum that varies, in turns, as a power of 2.
const LONGEST: u64 = 7;

/// Held for a turn of a unit by launches that may run beside others and whose atomics may be plain reads and writes: those of the interpreter, and
/// checked ones, which run beside such.
pub(crate) static TURNS: Mutex<()> = Mutex::new(());

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

    /// Runs a unit that has not run, and up to `most` units of the next numbers as long as each ends at once. Says whether the one that `unit` is at last
    /// has ended too; else [`Crew::turn`] goes on with it. A turn says more, but whoever asks waits until all parts of that are written.
    fn sweeps(&mut self, _unit: &mut Self::Unit, _most: u64) -> bool {
        false
    }

    /// How many units have ended before the one that a unit is now, since it began.
    fn passed(&self, _unit: &Self::Unit) -> u64 {
        0
    }

    /// Whether it wants to be told of each unit how long it ran.
    fn is_timed(&self) -> bool {
        false
    }

    /// Is told that units ran for so long.
    fn ran_for(&mut self, _time: Duration) {}

    /// Nanoseconds that a unit takes, as far as known; 0 if it is not.
    fn unit_ns(&self) -> u64 {
        0
    }

    /// Runs a unit until it ends, waits, or has used up a time slice.
    fn turn(&mut self, unit: &mut Self::Unit) -> Result<Turn, Ended>;

    /// Takes back what a unit holds.
    fn end(&mut self, unit: Self::Unit);

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
    /// Of a launch with several workers, by worker: 1 + the number of moves at which it found itself stuck; the largest number when it has ended.
    stuck: Vec<AtomicU64>,
    deadlock: AtomicBool,
    /// Of a launch that is not alone.
    silence: Silence,
    waiters: Mutex<Vec<(u64, Vec<Waiter>)>>,
    /// Units that ran to their end.
    done: AtomicU64,
}

/// What came of a launch.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) result: Result<(), Ended>,
    /// Units that ran to their end.
    pub(crate) units: u64,
}

impl Finished {
    /// A launch for whose units there is no room.
    pub(crate) fn not_begun(lack: Lack) -> Finished {
        Finished { result: Err(Ended::NoRoom(lack)), units: 0 }
    }
}

/// A worker that has ended.
const OUT: u64 = u64::MAX;

impl<'g> Shared<'g> {
    pub(crate) fn new(grid: &'g Grid, workers: usize) -> Shared<'g> {
        Shared {
            grid,
            taken: AtomicU64::new(0),
            // One worker shares with nobody.
            chunk: (grid.units / if workers == 1 { 1 } else { 32 * workers as u64 }).clamp(1, 1 << 20),
            limit: AtomicU64::new(u64::MAX),
            failure: Mutex::new(None),
            moves: AtomicU64::new(0),
            stuck: if workers == 1 { Vec::new() } else { (0..workers).map(|_| AtomicU64::new(0)).collect() },
            deadlock: AtomicBool::new(false),
            silence: Silence::default(),
            waiters: Mutex::default(),
            done: AtomicU64::new(0),
        }
    }

    /// Adds to a number of this launch, and returns what it was. One worker needs no locked instruction for that, each of which takes some
    /// hundredths of a small launch.
    #[inline]
    fn add(&self, to: &AtomicU64, n: u64) -> u64 {
        if self.stuck.is_empty() {
            let was = to.load(Ordering::Relaxed);
            to.store(was.wrapping_add(n), Ordering::Relaxed);
            was
        } else {
            to.fetch_add(n, Ordering::SeqCst)
        }
    }

    /// Says at which number of moves a worker is stuck, or that it has ended.
    fn set_stuck(&self, worker: usize, number: u64) {
        if let Some(stuck) = self.stuck.get(worker) {
            stuck.store(number, Ordering::SeqCst);
        }
    }

    fn claim(&self) -> std::ops::Range<u64> {
        let start = self.add(&self.taken, self.chunk).min(self.grid.units);
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

    /// What came of the launch, when all workers have ended.
    pub(crate) fn finish(&mut self) -> Finished {
        if let Some(printer) = &self.grid.printer {
            printer.finish();
        }
        let units = self.done.load(Ordering::Relaxed);
        Finished { result: self.result(), units }
    }

    fn result(&mut self) -> Result<(), Ended> {
        if let Some((_, why)) = self.failure.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(why);
        }
        let mut all = std::mem::take(self.waiters.get_mut().unwrap_or_else(PoisonError::into_inner));
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
        match self.grid.stop.is_timeout() {
            false => Err(Ended::Stopped),
            true if self.grid.recompile.was_left() => Err(Ended::Trap(Box::new(self.grid.compiling_trap()))),
            true => waiting(TrapKind::Timeout),
        }
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
    /// One of them changed memory.
    moved: bool,
    /// Times it gave way and had changed memory before.
    quanta: u32,
    /// Turns of this quantum, if it varies.
    quantum: Option<u32>,
    /// The epoch in which it waited last; see [`Worker::epoch`].
    waited_in: u64,
}

impl<U> Resident<U> {
    fn new(number: u64, unit: U) -> Resident<U> {
        Resident { number, unit, fruitless: 0, moved: false, quanta: 0, quantum: None, waited_in: 0 }
    }

    /// Whether it waited for so long that another one should run. `noise`: as [`NOISE`].
    fn gives_way(&self, turn: Turn, noise: u32) -> bool {
        let usual = if turn == Turn::Moved { noise } else { PATIENCE };
        // One that only waits gains nothing from waiting longer.
        let most = self.quantum.filter(|_| self.moved).unwrap_or(usual);
        self.fruitless >= most
    }

    /// It has given way: decides on its next quantum.
    fn plan(&mut self, seed: u64) {
        self.fruitless = 0;
        if !std::mem::take(&mut self.moved) {
            return;
        }
        self.quanta = self.quanta.saturating_add(1);
        let mut state = seed ^ self.number.rotate_left(32) ^ u64::from(self.quanta);
        let choice = splitmix(&mut state);
        // Few of them: most of those that vary are shorter, and to change units costs time.
        let varies = self.quanta >= AFTER && choice >> 60 == 0;
        self.quantum = varies.then(|| 1 << (choice % (LONGEST + 1)));
    }
}

/// How many units run without a look at the clock, at who prints, and at what is done. Whoever waits for that waits for some milliseconds.
struct Burst {
    units: u64,
}

impl Burst {
    /// For units that take so many nanoseconds; 0 if nobody knows.
    fn new(unit_ns: u64) -> Burst {
        Burst { units: BURST_NS.checked_div(unit_ns).unwrap_or(1).max(1) }
    }

    /// When a burst of so many units begins, if it teaches anything: not one far below the limit, which is all that a small launch has.
    #[inline]
    fn begin(&self, units: u64) -> Option<Instant> {
        (units > self.units / 8).then(Instant::now)
    }

    /// Learns from a burst that took so long; `whole`: all of its units ran.
    #[inline]
    fn learn(&mut self, took: Duration, whole: bool) {
        if took > Duration::from_nanos(2 * BURST_NS) {
            self.units = (self.units / 4).max(1);
        } else if whole && took < Duration::from_nanos(BURST_NS / 8) {
            self.units = self.units.saturating_mul(4);
        }
    }
}

/// Takes and runs units until none is left, or the launch ends.
pub(crate) fn work<C: Crew>(shared: &Shared<'_>, me: usize, crew: &mut C) {
    let crew_ns = crew.unit_ns();
    let mut worker = Worker {
        shared,
        me,
        crew,
        range: 0..0,
        residents: VecDeque::new(),
        epoch: 1,
        n_waited: 0,
        since: None,
        waits: false,
        n_done: 0,
        burst: Burst::new(crew_ns),
        turns: shared.grid.turns.as_deref().map(Turns::new),
    };
    while let Err((number, why)) = worker.run() {
        // Lower units may still run: one of them may trap too, and then it is the one to report.
        let ends_all = !matches!(why, Ended::Trap(_));
        shared.fail(if ends_all { 0 } else { number }, why);
    }
    worker.clear();
    shared.add(&shared.done, worker.n_done);
    shared.add(&shared.moves, 1);
    shared.set_stuck(me, OUT);
}

struct Worker<'w, 'g, C: Crew> {
    shared: &'w Shared<'g>,
    me: usize,
    crew: &'w mut C,
    /// Positions that are this worker's to start.
    range: std::ops::Range<u64>,
    residents: VecDeque<Resident<C::Unit>>,
    /// Counts the times that something happened which others may wait for.
    epoch: u64,
    /// Residents that waited in this epoch, by a turn after `since` was read.
    n_waited: usize,
    /// The number of moves when this epoch was first quiet.
    since: Option<u64>,
    /// Some unit has waited and not ended since.
    waits: bool,
    /// Units that ran to their end.
    n_done: u64,
    /// How many units may run without a look at anything.
    burst: Burst,
    /// Of a traced launch: what it runs.
    turns: Option<Turns<'g>>,
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
            let start = self.turns.is_some().then(Instant::now);
            let turn = self.crew.turn(&mut front.unit);
            self.note(front.number, 1, start);
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
            let mut front = Resident::new(number, unit);
            loop {
                if self.is_interrupted() {
                    self.residents.push_front(front);
                    return Ok(true);
                }
                let most = self.run_ahead(front.number);
                let begin = self.burst.begin(most);
                let timed = begin.or_else(|| (self.shared.grid.units > 1 && self.crew.is_timed()).then(Instant::now));
                let noted = self.turns.is_some().then(|| begin.unwrap_or_else(Instant::now));
                let rest =
                    if self.crew.sweeps(&mut front.unit, most) { None } else { Some(self.crew.turn(&mut front.unit)) };
                let passed = self.crew.passed(&front.unit);
                self.note(front.number, passed + 1, noted);
                if let Some(took) = timed.map(|begin| begin.elapsed()) {
                    if begin.is_some() {
                        self.burst.learn(took, passed == most);
                    }
                    self.crew.ran_for(took);
                }
                (0..passed).for_each(|i| self.count_done(front.number + i));
                front.number += passed;
                self.range.start += passed;
                match rest {
                    None | Some(Ok(Turn::Done)) => self.count_done(front.number),
                    Some(turn) => return self.after(front, turn),
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

    /// Notes what ran since a time, if that is traced.
    #[inline]
    fn note(&mut self, first: u64, units: u64, start: Option<Instant>) {
        if let (Some(turns), Some(start)) = (&mut self.turns, start) {
            let size = u64::from(self.shared.grid.unit_size);
            turns.add(first * size, units * size, start);
        }
    }

    /// How many units may follow one that starts without a look at anything in between: those of the next positions, if they have the next numbers, and not
    /// for long.
    #[inline]
    fn run_ahead(&self, number: u64) -> u64 {
        let grid = self.shared.grid;
        let last = self.range.end.wrapping_sub(1);
        let is_next = self.range.start < self.range.end && grid.order.at(self.range.start) == number + 1;
        let limit = self.shared.limit.load(Ordering::Relaxed);
        if !is_next
            || grid.order.at(last) < number
            || grid.printer.is_some()
            || grid.unit_size > 1
            || limit != u64::MAX
            || grid.turns.as_ref().is_some_and(|turns| turns.one_by_one)
        {
            return 0;
        }
        let left = self.range.end - self.range.start;
        if grid.order.at(last) == number + left { left.min(self.burst.units) } else { 0 }
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
            Ok(Turn::Busy) => {
                self.next_epoch();
                self.residents.push_front(front);
            }
            Ok(turn @ (Turn::Moved | Turn::Still | Turn::Waited)) => {
                front.fruitless += 1;
                if turn == Turn::Moved {
                    front.moved = true;
                    self.moved();
                } else {
                    self.quiet_turn(&mut front, turn);
                }
                self.wait(front, turn)?;
            }
        }
        Ok(true)
    }

    /// A unit has ended by itself.
    fn done(&mut self, number: u64, unit: C::Unit) {
        self.end(number, unit);
        self.count_done(number);
    }

    #[inline]
    fn count_done(&mut self, unit: u64) {
        self.n_done += 1;
        self.end_text(unit);
        if let Some(p) = &self.shared.grid.progress {
            p.add(u64::from(self.shared.grid.unit_size));
        }
    }

    /// Something happened that others may wait for.
    fn moved(&mut self) {
        self.next_epoch();
        self.shared.add(&self.shared.moves, 1);
    }

    fn next_epoch(&mut self) {
        self.shared.silence.end();
        self.renew_epoch();
    }

    fn renew_epoch(&mut self) {
        self.epoch += 1;
        self.n_waited = 0;
        self.since = None;
    }

    /// A unit had a turn that changed nothing which others see.
    fn quiet_turn(&mut self, unit: &mut Resident<C::Unit>, turn: Turn) {
        if !self.waits {
            self.waits = true;
            self.moved();
        }
        if turn == Turn::Still {
            self.next_epoch();
        } else if self.since.is_none() {
            // What other workers did before now, this turn may have missed: the unit's next one counts.
            self.since = Some(self.shared.moves.load(Ordering::SeqCst));
        } else if unit.waited_in != self.epoch {
            unit.waited_in = self.epoch;
            self.n_waited += 1;
        }
    }

    /// Puts a waiting unit back; if it gives way, behind the others, of which there may now be one more.
    fn wait(&mut self, mut unit: Resident<C::Unit>, turn: Turn) -> Result<(), (u64, Ended)> {
        let Grid { audit, env, .. } = &self.shared.grid;
        // Where threads give way after strong reads, so do blocks.
        let noise = if audit.is_some() && pauses(env.seed) { 1 } else { NOISE };
        if !unit.gives_way(turn, noise) {
            self.residents.push_front(unit);
            return Ok(());
        }
        unit.plan(self.shared.grid.env.seed);
        self.residents.push_back(unit);
        self.waits = true;
        if self.start_another()? {
            self.moved();
        } else if self.n_waited == self.residents.len() {
            self.say_stuck();
        }
        Ok(())
    }

    /// All units waited through a full turn and nothing can be started.
    fn say_stuck(&mut self) {
        let moves = self.shared.moves.load(Ordering::SeqCst);
        let since = self.since;
        self.renew_epoch();
        if since != Some(moves) {
            return;
        }
        self.shared.set_stuck(self.me, moves + 1);
        let grid = self.shared.grid;
        if !self.shared.all_stuck(moves) {
            // Others still run: they are what this worker waits for.
            std::thread::yield_now();
        } else if grid.beside == Beside::Nobody
            || grid.quiet.is_some_and(|limit| self.shared.silence.lasts(moves, limit))
        {
            self.shared.deadlock.store(true, Ordering::SeqCst);
        } else {
            // Others may still change what the units wait for.
            std::thread::sleep(LOOK);
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
                self.residents.push_front(Resident::new(number, unit));
                Ok(true)
            }
            Err(why) => match self.not_started(number, position, why) {
                (_, Ended::NoRoom(_)) if !self.residents.is_empty() => Ok(false),
                why => Err(why),
            },
        }
    }

    fn end(&mut self, number: u64, unit: C::Unit) {
        self.crew.end(unit);
        self.end_text(number);
    }

    /// A unit prints no more.
    #[inline]
    fn end_text(&self, unit: u64) {
        let grid = self.shared.grid;
        if grid.printer.is_some() {
            (0..grid.unit_size).for_each(|rank| grid.end_text(grid.number(unit, rank)));
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
