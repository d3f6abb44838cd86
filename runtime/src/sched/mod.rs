//! Who runs when: units of a grid over workers, warps and activations of a cta.

pub(crate) mod grid;
mod seats;

pub(crate) use seats::Seats;

use std::sync::Arc;

use crate::launch::{Ended, Grid};
use crate::memory::Space;
use crate::module::Program;

/// What fresh shared memory is filled with.
// Choice: shared memory is undefined when a block starts. A pattern that is neither zero nor a usual number shows a missing
// initialisation; that it is always the same keeps runs repeatable.
pub(crate) const FRESH_SHARED: u8 = 0xa5;

/// Workers of a prepared launch.
#[derive(Debug, Default)]
pub(crate) struct Workers {}

impl Workers {
    pub(crate) fn release(&mut self, _space: &Space) {}
}

/// Runs all units of a grid with compiled code.
pub(crate) fn run(_workers: &mut Workers, _grid: &Grid, _program: &Arc<Program>) -> Result<(), Ended> {
    Err(Ended::Bug("no scheduler".into()))
}
