//! Shared and local memory for the ctas of a unit.

use crate::launch::Ended;
use crate::memory::Space;

/// Shared slabs and local memory, one of each for every cta of a unit.
#[derive(Debug, Default)]
pub(crate) struct Seats {
    slabs: Vec<u64>,
    locals: Vec<(u64, u64)>,
}

impl Seats {
    /// Takes memory for `n` ctas with so many bytes of local memory each.
    pub(crate) fn take(space: &Space, n: u32, local_bytes: u64) -> Result<Seats, Ended> {
        let mut seats = Seats::default();
        for _ in 0..n {
            let got = space.take_slab().and_then(|slab| {
                seats.slabs.push(slab);
                space.take_local(local_bytes)
            });
            match got {
                Ok(local) => seats.locals.push(local),
                Err(e) => {
                    seats.give(space);
                    return Err(e.into());
                }
            }
        }
        Ok(seats)
    }

    /// Bases of the shared and the local memory of a cta.
    pub(crate) fn at(&self, rank: u32) -> (u64, u64) {
        let i = rank as usize;
        (self.slabs.get(i).copied().unwrap_or(0), self.locals.get(i).map_or(0, |l| l.0))
    }

    /// Bases of the shared memory of all ctas.
    pub(crate) fn slabs(&self) -> Vec<u64> {
        self.slabs.clone()
    }

    /// Gives all back.
    pub(crate) fn give(self, space: &Space) {
        self.slabs.into_iter().for_each(|s| space.give_slab(s));
        self.locals.into_iter().for_each(|l| space.give_local(l));
    }
}
