//! Memory that kernels of checked launches allocated and freed, with the places: what one launch frees another one may use.

use std::collections::BTreeMap;

use crate::finding::{Allocated, FoundAt};

/// Most blocks that are remembered of each kind. Those at the lowest addresses are forgotten first, so that only places are missed.
const MOST: usize = 1 << 16;

/// Memory that was freed, and where.
#[derive(Clone, Debug)]
pub(crate) struct Freed {
    pub(crate) block: Allocated,
    pub(crate) at: FoundAt,
}

/// What is known of the memory that kernels of a device allocate.
#[derive(Debug, Default)]
pub(crate) struct KernelHeap {
    live: BTreeMap<u64, Allocated>,
    freed: BTreeMap<u64, Freed>,
}

impl KernelHeap {
    /// Memory was allocated.
    pub(crate) fn add(&mut self, block: Allocated) {
        self.live.insert(block.address, block);
        if self.live.len() > MOST {
            self.live.pop_first();
        }
    }

    /// Memory was freed that was added before.
    pub(crate) fn free(&mut self, address: u64, at: FoundAt) {
        if let Some(block) = self.live.remove(&address) {
            self.freed.insert(address, Freed { block, at });
        }
        if self.freed.len() > MOST {
            self.freed.pop_first();
        }
    }

    /// The memory that held an address and was freed, unless it is other memory now.
    pub(crate) fn find(&self, address: u64) -> Option<&Freed> {
        let has = |block: &Allocated| address - block.address < block.bytes.max(1);
        if self.live.range(..=address).next_back().is_some_and(|(_, block)| has(block)) {
            return None;
        }
        self.freed.range(..=address).next_back().map(|(_, freed)| freed).filter(|freed| has(&freed.block))
    }
}
