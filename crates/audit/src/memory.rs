//! Memory that kernels allocate and free, and accesses that leave the variable that their address was made from.

use std::collections::{BTreeMap, HashMap};

use handloom_diag::Span;
use handloom_ir::types::StateSpace;

use crate::event::{Does, Thread};

/// A statement, and who executed it.
pub type Step = (Span, Thread);

/// Memory that a kernel allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// Its first byte.
    pub addr: u64,
    /// How many.
    pub bytes: u64,
    /// Where it was allocated.
    pub made: Step,
    /// Where it was freed.
    pub freed: Option<Step>,
}

impl Block {
    fn has(&self, addr: u64) -> bool {
        addr.wrapping_sub(self.addr) < self.bytes
    }
}

/// A variable, as far as addresses are known to be made from it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Variable {
    /// Number of the symbol; `None` for memory of a function.
    pub symbol: Option<usize>,
    /// Generic address of its first byte.
    pub base: u64,
    /// How many bytes it has.
    pub bytes: u64,
}

/// An access that is no part of the variable that its address was made from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stray {
    /// The variable.
    pub variable: Variable,
    /// Generic address of the first byte outside of it.
    pub addr: u64,
    /// How many bytes of the access.
    pub bytes: u32,
    /// What it does.
    pub does: Does,
    /// State space that the address lies in.
    pub space: StateSpace,
    /// Where.
    pub at: Step,
    /// How often.
    pub times: u64,
}

/// What is known of the memory of a launch.
#[derive(Debug, Default)]
pub struct Memory {
    live: BTreeMap<u64, Block>,
    ended: BTreeMap<u64, Block>,
    /// Memory of earlier launches that was freed.
    freed_before: Vec<(u64, Step)>,
    strays: Vec<Stray>,
    by_place: HashMap<(Span, Option<usize>, Does), usize>,
}

impl Memory {
    /// A kernel allocates memory.
    pub fn allocate(&mut self, addr: u64, bytes: u64, made: Step) {
        let over: Vec<u64> = self.ended.range(..addr + bytes).rev().take(8).map(|(base, _)| *base).collect();
        for base in over {
            if self.ended.get(&base).is_some_and(|b| b.addr + b.bytes > addr) {
                self.ended.remove(&base);
            }
        }
        self.live.insert(addr, Block { addr, bytes, made, freed: None });
    }

    /// A kernel frees memory.
    pub fn free(&mut self, addr: u64, freed: Step) {
        match self.live.remove(&addr) {
            Some(block) => drop(self.ended.insert(addr, Block { freed: Some(freed), ..block })),
            None => self.freed_before.push((addr, freed)),
        }
    }

    /// The memory that holds an address, or that held it last.
    pub fn find(&self, addr: u64) -> Option<&Block> {
        let last = |of: &'_ BTreeMap<u64, Block>| of.range(..=addr).next_back().map(|(base, _)| *base);
        let live = last(&self.live).and_then(|base| self.live.get(&base)).filter(|b| b.has(addr));
        live.or_else(|| last(&self.ended).and_then(|base| self.ended.get(&base)).filter(|b| b.has(addr)))
    }

    /// What was allocated and not freed.
    pub fn live(&self) -> impl Iterator<Item = &Block> {
        self.live.values()
    }

    /// What was allocated and freed, as long as it is not other memory.
    pub fn ended(&self) -> impl Iterator<Item = &Block> {
        self.ended.values()
    }

    /// First addresses of memory that others had allocated and that was freed, and where that was.
    pub fn freed_before(&self) -> &[(u64, Step)] {
        &self.freed_before
    }

    /// An access leaves the variable that its address was made from.
    pub fn stray(&mut self, new: Stray) {
        let key = (new.at.0, new.variable.symbol, new.does);
        match self.by_place.get(&key) {
            Some(i) => self.strays[*i].times += new.times,
            None => {
                self.by_place.insert(key, self.strays.len());
                self.strays.push(new);
            }
        }
    }

    /// Those that were seen.
    pub fn strays(&self) -> &[Stray] {
        &self.strays
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_found_after_it_was_freed_until_it_is_other_memory() {
        let step = (Span::NONE, Thread::new(0, 0));
        let mut memory = Memory::default();
        memory.allocate(64, 16, step);
        assert!(memory.find(79).is_some_and(|b| b.freed.is_none()) && memory.find(80).is_none());
        memory.free(64, step);
        assert!(memory.find(70).is_some_and(|b| b.freed.is_some()));
        memory.allocate(72, 16, step);
        assert!(memory.find(64).is_none());
        memory.free(400, step);
        assert_eq!((memory.live().count(), memory.freed_before()), (1, &[(400, step)][..]));
    }
}
