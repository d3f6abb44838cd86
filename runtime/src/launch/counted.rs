//! Counted launches: who counts, and what lies at the addresses that were counted.

use std::sync::{Arc, Mutex};

use handloom_interp::SharedCounter;
use handloom_profile::{Facts, Launch, describe};

use super::LaunchConfig;
use crate::grid::{Ended, Grid};
use crate::lock::lock;
use crate::trap::{Binding, found};

/// Counts launches that are given it ([`LaunchConfig::count`]), and those that their threads make. Launches of one shape count together. A clone counts the same.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<Mutex<Vec<Counted>>>);

/// The launches of a shape.
#[derive(Debug)]
struct Counted {
    shape: Shape,
    counter: SharedCounter,
    runs: u64,
    blocks: u64,
    launch: Launch,
}

/// Launches that differ in it are counted apart: entry, grid, block, bytes of dynamic shared memory.
type Shape = (Arc<str>, [u32; 3], [u32; 3], u32);

fn shape(grid: &Grid) -> Shape {
    (Arc::clone(&grid.entry.0), grid.env.nctaid, grid.env.ntid, grid.env.dynamic_shared)
}

impl Tally {
    /// What was counted until now, in the order in which launches began. Of a module that was not lowered with marks
    /// (`handloom_lower::lower_marked`) there are no statements.
    pub fn launches(&self) -> Vec<Launch> {
        lock(&self.0).iter().map(|counted| counted.launch.clone()).collect()
    }

    /// Who counts a launch that begins.
    pub(super) fn begin(&self, grid: &Grid) -> SharedCounter {
        let (mut all, shape) = (lock(&self.0), shape(grid));
        if let Some(known) = all.iter().find(|c| c.shape == shape) {
            return Arc::clone(&known.counter);
        }
        let counter = SharedCounter::default();
        all.push(Counted { shape, counter: Arc::clone(&counter), runs: 0, blocks: 0, launch: Launch::default() });
        counter
    }

    /// A launch has ended.
    pub(super) fn end(&self, grid: &Grid, bindings: &[Binding], result: &Result<(), Ended>, blocks: u64) {
        let (mut all, shape) = (lock(&self.0), shape(grid));
        let Some(counted) = all.iter_mut().find(|c| c.shape == shape) else { return };
        counted.runs += 1;
        counted.blocks += blocks;
        let env = &grid.env;
        let facts = Facts {
            entry: grid.entry.0.to_string(),
            grid: env.nctaid,
            block: env.ntid,
            shared_bytes: [env.own_shared().saturating_sub(env.dynamic_shared), env.dynamic_shared],
            runs: counted.runs,
            blocks: counted.blocks,
            ended: match result {
                Ok(()) => "ok".to_owned(),
                Err(Ended::Trap(trap)) => trap.kind.word().to_owned(),
                Err(Ended::Stopped | Ended::NoRoom(_) | Ended::Failed(_)) => "stopped".to_owned(),
            },
        };
        let name = |addr: u64| found::name_at(addr, grid, bindings);
        counted.launch = describe(&facts, &lock(&counted.counter), (&grid.module.ir, &grid.module.sources), &name);
    }
}

impl LaunchConfig {
    /// The same, counted.
    #[must_use]
    pub fn counted(mut self, tally: &Tally) -> LaunchConfig {
        self.count = Some(tally.clone());
        self
    }
}
