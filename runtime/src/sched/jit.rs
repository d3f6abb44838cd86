//! Ctas of compiled code as units of a grid, on the calling thread and on those of a pool.

use std::sync::Arc;
use std::time::Duration;

use handloom_ir::trap::Waiter;

use super::cta::CtaRun;
use super::grid::{Crew, Finished, Shared, TURNS, Turn, work};
use crate::device::Pool;
use crate::error::Lack;
use crate::grid::{Ended, Grid};
use crate::lock::lock;
use crate::memory::Space;
use crate::module::{Program, Special};
use crate::run::{Beside, Tier};

/// How many ctas of a launch that rests keep their memory, and how many bytes of local memory they keep at most.
const RESTING_CTAS: usize = 8;
const RESTING_BYTES: u64 = 4 << 20;

/// Ctas at rest. They change hands for each block of a grid, so it is a pointer that moves.
type Idle = Vec<Box<CtaRun>>;

/// Workers of a prepared launch, with the memory that ctas leave behind for the next ones.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    list: Vec<Idle>,
    /// Host threads of the last run.
    pub(crate) n_active: usize,
}

impl Workers {
    /// Gives all device memory back.
    pub(crate) fn release(&mut self, space: &Space) {
        self.list.drain(..).flatten().for_each(|mut run| run.release(space));
    }
}

impl Workers {
    /// Gives device memory back but that of some ctas with little local memory, which a small launch needs.
    pub(crate) fn rest(&mut self, space: &Space) {
        let (mut ctas, mut bytes) = (0, 0);
        let mut is_much = |run: &CtaRun| {
            ctas += 1;
            bytes += run.local_bytes();
            ctas > RESTING_CTAS || bytes > RESTING_BYTES
        };
        for list in &mut self.list {
            list.extract_if(.., |run| is_much(run)).for_each(|mut run| run.release(space));
        }
    }
}

/// Runs all units of a grid with compiled code.
pub(crate) fn run(workers: &mut Workers, grid: &Grid, program: &Arc<Program>) -> Finished {
    let module = &grid.module;
    let Some(space) = module.device.inner.memory.space(module.space_kind()) else {
        return Finished::not_begun(Lack::Window);
    };
    let most = usize::try_from(grid.units).unwrap_or(usize::MAX);
    let is_alone = grid.threads < 2 || program.is_for_one(grid.units);
    let pool = if is_alone { None } else { Pool::take(&module.device.inner, grid.threads - 1) };
    let n = if pool.is_some() { grid.threads.min(most) } else { 1 };
    workers.n_active = n;
    if workers.list.len() < n {
        workers.list.resize_with(n, Vec::new);
    }
    let heap = space.open_heap();
    let mut shared = Shared::new(grid, n);
    grid.recompile.begin(n);
    let one = |me: usize, free: &mut Idle| {
        let mut crew = Jit { grid, program, space, free, heap, tier: None, lean: Duration::ZERO, known: None };
        work(&shared, me, &mut crew);
        grid.recompile.end(crew.tier);
        crew.known.into_iter().flat_map(|known| known.free).for_each(|mut run| run.release(space));
    };
    let mut lists = workers.list.iter_mut().take(n).enumerate();
    match (lists.next(), &pool) {
        (Some((_, mine)), Some(pool)) => pool.in_place_scope(|scope| {
            for (me, free) in lists {
                scope.spawn(move |_| one(me, free));
            }
            one(0, mine);
        }),
        (Some((_, mine)), None) => one(0, mine),
        (None, _) => {}
    }
    if grid.sums.is_some() {
        workers.list.iter_mut().flatten().for_each(|run| run.hand_in());
    }
    shared.finish()
}

struct Jit<'g> {
    grid: &'g Grid,
    program: &'g Arc<Program>,
    space: &'g Space,
    free: &'g mut Idle,
    heap: (u64, u64),
    /// The highest tier that a cta started in.
    tier: Option<Tier>,
    /// Time in code that may rise.
    lean: Duration,
    /// There where it runs for long.
    known: Option<Box<Known>>,
}

/// What a worker of a long launch knows of a program for the numbers among its parameters.
#[derive(Default)]
struct Known {
    special: Option<Arc<Special>>,
    /// There are too many numbers, or nothing is gained by a program for these.
    is_over: bool,
    /// It, once it is there: new ctas run it.
    program: Option<Arc<Program>>,
    /// Ctas that ran it.
    free: Idle,
}

impl Crew for Jit<'_> {
    type Unit = Unit;

    #[inline(always)]
    fn start(&mut self, number: u64) -> Result<Unit, Ended> {
        if self.grid.unit_size > 1 {
            return self.start_cluster(number);
        }
        let mut run = self.seat()?;
        run.place(self.grid, number, 0);
        run.start(self.grid, &[], self.heap);
        Ok(Unit::One(run))
    }

    #[inline]
    fn again(&mut self, unit: &mut Unit, number: u64) -> bool {
        match unit {
            Unit::One(run) if run.is_clean() && run.is_current() && run.is_of(self.now()) => {
                run.place(self.grid, number, 0);
                run.start(self.grid, &[], self.heap);
                true
            }
            Unit::One(_) | Unit::Cluster(_) => false,
        }
    }

    #[inline]
    fn sweeps(&mut self, unit: &mut Unit, most: u64) -> bool {
        match unit {
            Unit::One(run) => {
                run.allow(self.grid, most);
                !self.takes_turns() && run.sweeps()
            }
            Unit::Cluster(_) => false,
        }
    }

    #[inline]
    fn passed(&self, unit: &Unit) -> u64 {
        match unit {
            Unit::One(run) => run.passed(),
            Unit::Cluster(_) => 0,
        }
    }

    #[inline]
    fn is_timed(&self) -> bool {
        self.program.may_rise() || self.seeks()
    }

    #[inline]
    fn ran_for(&mut self, time: Duration) {
        if self.program.may_rise() {
            self.lean += time;
            if self.program.is_long(self.lean) {
                self.program.rise(&self.grid.module);
            }
        } else if self.seeks() {
            self.seek(time);
        }
    }

    fn unit_ns(&self) -> u64 {
        self.program.unit_ns()
    }

    #[inline]
    fn turn(&mut self, unit: &mut Unit) -> Result<Turn, Ended> {
        let _turn = self.takes_turns().then(|| lock(&TURNS));
        match unit {
            Unit::One(run) => run.round(),
            Unit::Cluster(ctas) => turn_of_cluster(self.grid, ctas),
        }
    }

    #[inline]
    fn end(&mut self, unit: Unit) {
        match unit {
            Unit::One(run) => self.leave(run),
            Unit::Cluster(ctas) => ctas.into_iter().for_each(|run| self.leave(run)),
        }
    }

    fn waiters(&self, unit: &Unit) -> Vec<Waiter> {
        match unit {
            Unit::One(run) => run.waiters(),
            Unit::Cluster(ctas) => ctas.iter().filter(|r| !r.done).flat_map(|run| run.waiters()).collect(),
        }
    }
}

/// A turn of all ctas of a cluster.
fn turn_of_cluster(grid: &Grid, ctas: &mut Idle) -> Result<Turn, Ended> {
    let mut turn = Turn::Waited;
    for run in ctas.iter_mut().filter(|r| !r.done) {
        let of_cta = run.round()?;
        if of_cta == Turn::Done {
            grid.end_text(run.number());
        }
        turn = match (of_cta, turn) {
            (Turn::Done | Turn::Busy | Turn::Moved, _) | (_, Turn::Moved) => Turn::Moved,
            (Turn::Still, _) | (_, Turn::Still) => Turn::Still,
            (Turn::Waited, t) => t,
        };
    }
    let phases = ctas.iter_mut().map(|run| run.cluster_phases()).min().unwrap_or(0);
    ctas.iter_mut().for_each(|r| r.set_cluster_phases(phases));
    Ok(if ctas.iter().all(|r| r.done) { Turn::Done } else { turn })
}

impl Jit<'_> {
    /// The program that new ctas run.
    #[inline]
    fn now(&self) -> &Arc<Program> {
        self.known.as_ref().and_then(|known| known.program.as_ref()).unwrap_or(self.program)
    }

    /// Ctas at rest that ran the program that new ones run.
    #[inline]
    fn free(&mut self) -> &mut Idle {
        match &mut self.known {
            Some(known) if known.program.is_some() => &mut known.free,
            Some(_) | None => self.free,
        }
    }

    /// Whether there may come a program for the numbers among its parameters.
    #[inline]
    fn seeks(&self) -> bool {
        let is_open = |known: &Known| known.program.is_none() && !known.is_over;
        !self.program.places().is_empty() && self.known.as_deref().is_none_or(is_open)
    }

    /// Notes that code that does not know the numbers ran for so long, and takes the program that does if it is there.
    #[inline(never)]
    fn seek(&mut self, time: Duration) {
        let (known, module) = (self.known.get_or_insert_default(), &self.grid.module);
        // Blocks have left quick code, or never started in it.
        if self.program.preferred() == Tier::Careful && self.program.has(Tier::Quick) {
            known.is_over = true;
            return;
        }
        if known.special.is_none() {
            known.special = self.program.special(module, |place| self.grid.param(place));
        }
        match &known.special {
            Some(special) if !special.is_settled() => special.note(self.program, module, time, 1),
            special => {
                known.program = special.as_ref().and_then(|special| special.program().cloned());
                known.is_over = known.program.is_none();
            }
        }
    }

    /// Whether others wait while a unit runs.
    fn takes_turns(&self) -> bool {
        self.grid.audit.is_some() && self.grid.beside != Beside::Nobody
    }

    #[inline(never)]
    fn start_cluster(&mut self, number: u64) -> Result<Unit, Ended> {
        let n = self.grid.unit_size;
        let mut ctas = Idle::new();
        for _ in 0..n {
            match self.seat() {
                Ok(run) => ctas.push(run),
                Err(e) => {
                    self.free().append(&mut ctas);
                    return Err(e);
                }
            }
        }
        let peers: Vec<u64> = ctas.iter().map(|run| run.slab()).collect();
        for (rank, run) in (0..).zip(&mut ctas) {
            run.place(self.grid, number, rank);
            run.start(self.grid, &peers, self.heap);
        }
        Ok(Unit::Cluster(ctas))
    }

    /// Takes a cta back.
    #[inline]
    fn leave(&mut self, mut run: Box<CtaRun>) {
        if run.done && run.is_current() && run.is_of(self.now()) {
            self.free().push(run);
        } else {
            // A cta that did not end, or whose code is no longer the best, leaves nothing for the next one.
            run.release(self.space);
        }
    }

    /// Memory for a cta: what another one left, or new.
    #[inline(always)]
    fn seat(&mut self) -> Result<Box<CtaRun>, Ended> {
        let run = match self.free().pop() {
            Some(run) => run,
            None => CtaRun::new(self.grid, self.now(), self.space).map(Box::new)?,
        };
        self.tier = self.tier.max(Some(run.tier()));
        Ok(run)
    }
}

/// A cta, or a cluster of them.
#[derive(Debug)]
pub(crate) enum Unit {
    /// One cta.
    One(Box<CtaRun>),
    /// The ctas of a cluster, by rank.
    Cluster(Idle),
}
