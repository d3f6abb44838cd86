//! Launches in code that knows numbers among their parameters.

use std::sync::Arc;
use std::time::Duration;

use super::PreparedLaunch;
use crate::error::Lack;
use crate::grid::Grid;
use crate::memory::Space;
use crate::module::{ModuleInner, Patience, Program, Special};
use crate::run::Tier;
use crate::sched::grid::Finished;
use crate::sched::{self, Workers};

/// The programs for certain numbers of a prepared launch, each with memory of blocks that is laid out for it.
#[derive(Debug, Default)]
pub(super) struct SpecialsInUse {
    list: Vec<(Arc<Special>, Workers)>,
    /// Which of them is for the numbers that the parameters have now.
    current: Option<usize>,
    /// Which of them ran last; `None` for the general program.
    ran: Option<usize>,
}

impl PreparedLaunch {
    /// Runs all blocks of a launch for whose numbers there may be a program.
    #[inline(never)]
    pub(super) fn run_special(&mut self) -> Finished {
        self.look_for_special();
        match (self.specials.current(), &self.program) {
            (Some((special, workers)), _) => sched::run(workers, &self.grid, special),
            (None, Some(program)) => sched::run(&mut self.workers, &self.grid, program),
            (None, None) => Finished::not_begun(Lack::Window),
        }
    }

    /// Notes how long such a launch ran.
    #[inline(never)]
    pub(super) fn note_time(&mut self, run: Duration) {
        let (module, units) = (&self.grid.module, self.grid.units);
        if let Some((program, workers)) = self.specials.current() {
            program.note_time(run, workers.n_active, units);
        } else if let Some(general) = &self.program {
            general.note_time(run, self.workers.n_active, units);
            self.specials.note(general, module, run, self.workers.n_active);
        }
    }

    /// Looks for the program for the numbers that the parameters have now.
    fn look_for_special(&mut self) {
        let Some(general) = self.program.as_ref().filter(|_| self.config.tier != Tier::Careful) else { return };
        let at_once = Patience { stop: &self.config.stop, limit: self.config.timeout };
        self.specials.look(general, &self.grid, self.config.knows_params.then_some(at_once));
        let now = self.specials.ready();
        if std::mem::replace(&mut self.specials.ran, now) == now {
            return;
        }
        // Another one runs than before: blocks of that give way.
        let module = &self.grid.module;
        let Some(space) = module.device.inner.memory.space(module.space_kind()) else { return };
        for workers in std::iter::once(&mut self.workers).chain(self.specials.workers()) {
            match self.config.cooperative {
                true => workers.release(space),
                false => workers.rest(space),
            }
        }
    }
}

impl SpecialsInUse {
    /// Whether no launch was made whose numbers are worth to be constants.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Finds the program for the numbers that a grid's parameters have now. `at_once`: who waits until it is made.
    fn look(&mut self, general: &Arc<Program>, grid: &Grid, at_once: Option<Patience<'_>>) {
        let value = |place| grid.param(place);
        let is_current = |(special, _): &(Arc<Special>, Workers)| special.is_of(value);
        if self.current.and_then(|i| self.list.get(i)).is_some_and(is_current) {
            return;
        }
        self.current = self.list.iter().position(is_current);
        if self.current.is_some() {
            return;
        }
        let Some(special) = general.special(&grid.module, value) else { return };
        if let Some(patience) = at_once {
            // Who leaves runs what is there.
            _ = special.obtain(general, &grid.module, patience);
        }
        self.current = Some(self.list.len());
        self.list.push((special, Workers::default()));
    }

    /// Which program is for the numbers of now, if it is there.
    fn ready(&self) -> Option<usize> {
        self.current.filter(|i| self.list.get(*i).is_some_and(|(special, _)| special.program().is_some()))
    }

    fn workers(&mut self) -> impl Iterator<Item = &mut Workers> {
        self.list.iter_mut().map(|(_, workers)| workers)
    }

    /// The program that runs for the numbers of now, and memory for its blocks.
    fn current(&mut self) -> Option<(&Arc<Program>, &mut Workers)> {
        let (special, workers) = self.list.get_mut(self.ran?)?;
        Some((special.program()?, workers))
    }

    /// Notes that so many workers ran the general program with the numbers of now for so long.
    fn note(&self, general: &Arc<Program>, module: &ModuleInner, time: Duration, workers: usize) {
        if let Some((special, _)) = self.current.and_then(|i| self.list.get(i)) {
            special.note(general, module, time, workers);
        }
    }

    /// As [`Workers::rest`].
    pub(super) fn rest(&mut self, space: &Space) {
        self.workers().for_each(|workers| workers.rest(space));
    }

    /// As [`Workers::release`].
    pub(super) fn release(&mut self, space: &Space) {
        self.workers().for_each(|workers| workers.release(space));
        *self = SpecialsInUse::default();
    }
}
