//! Ctas run by the interpreter, on the calling thread.

use std::sync::Arc;

use handloom_interp::{Cta, CtaEnv, Status};
use handloom_ir::simt::{FrameLayout, FuncId};
use handloom_ir::trap::Waiter;

use crate::error::Lack;
use crate::grid::{Ended, Grid};
use crate::lock::lock;
use crate::memory::{Space, View};
use crate::module::local_stride;
use crate::run::{Beside, Order};
use crate::sched::grid::{Crew, Finished, Shared, TURNS, Turn, work};
use crate::sched::{Seats, clear_local, fill_shared};
use crate::warp::KernelMemory;

/// Instructions of a turn, one for each lane: a few milliseconds, so that stop requests are seen soon.
const TURN: u64 = 1 << 18;

/// The same while it is checked what they do.
const CHECKED_TURN: u64 = 1 << 13;

/// Runs all units of a grid.
pub(crate) fn run(grid: &Grid, entry: FuncId) -> Finished {
    let module = &grid.module;
    let Some(space) = module.device.inner.memory.space(module.space_kind()) else {
        return Finished::not_begun(Lack::Window);
    };
    let frames = FrameLayout::of_module(&module.ir);
    let stride = u64::from(local_stride(&module.ir, &frames, entry, grid.stack));
    let mut crew = Interp { grid, entry, space, stride };
    // The interpreter's atomics are plain reads and writes: one thread only.
    let mut shared = Shared::new(grid, 1);
    work(&shared, 0, &mut crew);
    shared.finish()
}

struct Interp<'m> {
    grid: &'m Grid,
    entry: FuncId,
    space: &'m Space,
    stride: u64,
}

/// A cta in flight.
struct Running<'m> {
    cta: Cta<'m>,
    memory: KernelMemory,
    done: bool,
}

/// Ctas that run together, and their memory.
struct Unit<'m> {
    ctas: Vec<Running<'m>>,
    /// The cta that used its time slice up and goes on first: the others wait, as those of compiled code do.
    next: usize,
    seats: Seats,
}

impl<'m> Interp<'m> {
    fn running(&self, unit: u64, rank: u32, seats: &Seats) -> Running<'m> {
        let grid = self.grid;
        let (slab, local) = seats.at(rank);
        let mut env = CtaEnv {
            ctaid: grid.ctaid(unit, rank),
            shared_base: slab,
            local_base: local,
            local_stride: self.stride,
            local_size: self.stride,
            ..grid.env.clone()
        };
        let memory = Arc::clone(&grid.module.device.inner.memory);
        let mut view = View::new(memory, grid.module.space_kind());
        view.param = (env.param_base, grid.param_bytes);
        view.shared = (slab, u64::from(env.shared_size));
        view.local = (local, self.stride * u64::from(env.threads()));
        if grid.unit_size > 1 {
            view.peers = seats.slabs();
            env.cluster.shared_bases = seats.slabs();
        }
        // SAFETY: the slab is this unit's.
        unsafe { fill_shared(&env) }
        if grid.audit.is_some() {
            // SAFETY: the local memory is this block's.
            unsafe { clear_local(&env) }
        }
        self.space.tensors.forget(slab);
        let memory = KernelMemory::new(view, grid, grid.number(unit, rank));
        let mut cta = Cta::new(&grid.module.ir, self.entry, env);
        if let Some(audit) = &grid.audit {
            cta.audit(audit);
        }
        if let Some(counter) = &grid.counter {
            cta.count(counter);
        }
        Running { cta, memory, done: false }
    }
}

impl<'m> Crew for Interp<'m> {
    type Unit = Unit<'m>;

    fn start(&mut self, number: u64) -> Result<Unit<'m>, Ended> {
        let local = self.stride * u64::from(self.grid.env.threads());
        let seats = Seats::take(self.space, self.grid.unit_size, local)?;
        let ctas = (0..self.grid.unit_size).map(|rank| self.running(number, rank, &seats)).collect();
        Ok(Unit { ctas, next: 0, seats })
    }

    fn turn(&mut self, unit: &mut Unit<'m>) -> Result<Turn, Ended> {
        // Launches of several streams are on several threads, and atomics are plain reads and writes here too.
        let _turn = (self.grid.beside != Beside::Nobody).then(|| lock(&TURNS));
        let mut moved = unit.next > 0;
        // Of a checked launch the seed says which block of a cluster comes first too.
        let (n, seed) = (unit.ctas.len() as u64, self.grid.env.seed);
        let order = Order::new(n, if self.grid.audit.is_some() { seed } else { 0 });
        for i in std::mem::take(&mut unit.next)..unit.ctas.len() {
            let Some(r) = unit.ctas.get_mut(order.at(i as u64) as usize).filter(|r| !r.done) else { continue };
            r.memory.view.get_mut().refresh();
            let status = r.cta.run(&mut r.memory, if self.grid.audit.is_some() { CHECKED_TURN } else { TURN });
            if self.grid.audit.as_ref().is_some_and(|audit| lock(audit).is_enough()) {
                return Err(Ended::Stopped);
            }
            match status {
                Status::Done => {
                    if let Some(trap) = self.space.tensors.end(r.cta.env()) {
                        return Err(Ended::Trap(trap));
                    }
                    r.done = true;
                    self.grid.end_text(r.memory.number);
                    moved = true;
                }
                Status::Budget => {
                    unit.next = i;
                    return Ok(Turn::Busy);
                }
                Status::Waiting { changed } => moved |= changed,
                Status::Trap(trap) => return Err(Ended::Trap(trap)),
            }
        }
        if unit.ctas.len() > 1 {
            let phases = unit.ctas.iter().map(|r| r.cta.cluster_phases()).min().unwrap_or(0);
            unit.ctas.iter_mut().for_each(|r| r.cta.set_cluster_phases(phases));
        }
        Ok(if unit.ctas.iter().all(|r| r.done) {
            Turn::Done
        } else if moved {
            Turn::Moved
        } else {
            Turn::Waited
        })
    }

    fn end(&mut self, unit: Unit<'m>) {
        unit.seats.give(self.space);
    }

    fn waiters(&self, unit: &Unit<'m>) -> Vec<Waiter> {
        unit.ctas.iter().filter(|r| !r.done).flat_map(|r| r.cta.waiters()).collect()
    }
}
