//! Numbers for the places of a function where lanes wait for each other or give way.
//!
//! The number of a barrier is its position among the barriers of the function, in the order of blocks; yields and warp-level ops are counted the
//! same way, each kind for itself. Preparing a function for emission inserts blocks but never one with such a place, and keeps their order, so
//! everybody who reads the same function has the same numbers: the interpreter, each tier of its code, and the runtime.

use super::func::{Function, Term};
use super::ids::BlockId;

/// Where lanes of a function wait for each other or give way. A number is an index.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sites {
    /// Blocks that end with a barrier.
    pub barriers: Vec<BlockId>,
    /// Blocks that end with a yield.
    pub yields: Vec<BlockId>,
    /// Blocks whose last instruction is a warp-level op.
    pub warp_ops: Vec<BlockId>,
    /// By block: the number of its place. A block has one at most, since a jump follows a warp-level op.
    by_block: Vec<Option<u32>>,
}

impl Sites {
    /// Counts the places of a function.
    pub fn of(f: &Function) -> Sites {
        let mut sites = Sites::default();
        for (id, block) in (0..).map(BlockId).zip(&f.blocks) {
            let list = match block.term {
                Term::Barrier { .. } => Some(&mut sites.barriers),
                Term::Yield { .. } => Some(&mut sites.yields),
                Term::Jump(_) if block.insts.last().is_some_and(|i| i.op.is_warp_sync()) => Some(&mut sites.warp_ops),
                Term::Jump(_)
                | Term::Branch { .. }
                | Term::Switch { .. }
                | Term::Ret
                | Term::Exit
                | Term::Trap(_)
                | Term::Call { .. } => None,
            };
            sites.by_block.push(list.map(|list| {
                list.push(id);
                // A function has fewer blocks than numbers of blocks.
                list.len() as u32 - 1
            }));
        }
        sites
    }

    /// The number of the place that a block ends with.
    ///
    /// # Panics
    /// The block has none, which is a fault of who asks.
    pub fn number(&self, block: usize) -> u32 {
        match self.by_block.get(block) {
            Some(Some(number)) => *number,
            Some(None) | None => unreachable!("bug: lanes do not wait at the end of block {block}"),
        }
    }

    /// The same, if the block has one.
    pub fn get(&self, block: usize) -> Option<u32> {
        self.by_block.get(block).copied().flatten()
    }
}
