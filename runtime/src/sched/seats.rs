//! Shared and local memory for the ctas of a unit.

use crate::grid::Ended;
use crate::memory::Space;

/// Shared and local memory, one of each for every cta of a unit.
#[derive(Debug, Default)]
pub(crate) struct Seats {
    /// The base of a slab; start and end of local memory.
    list: Vec<(u64, (u64, u64))>,
}

impl Seats {
    /// Takes memory for `n` ctas with so many bytes of local memory each.
    pub(crate) fn take(space: &Space, n: u32, local_bytes: u64) -> Result<Seats, Ended> {
        let mut seats = Seats { list: Vec::with_capacity(n as usize) };
        for _ in 0..n {
            match space.take_seat(local_bytes) {
                Ok(seat) => seats.list.push(seat),
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
        self.list.get(rank as usize).map_or((0, 0), |(slab, local)| (*slab, local.0))
    }

    /// Bytes of local memory.
    pub(crate) fn local_bytes(&self) -> u64 {
        self.list.iter().map(|(_, (start, end))| end - start).sum()
    }

    /// Bases of the shared memory of all ctas.
    pub(crate) fn slabs(&self) -> Vec<u64> {
        self.list.iter().map(|(slab, _)| *slab).collect()
    }

    /// Gives all back.
    pub(crate) fn give(self, space: &Space) {
        self.list.into_iter().for_each(|seat| space.give_seat(seat));
    }
}
