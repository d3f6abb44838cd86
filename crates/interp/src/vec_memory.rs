//! A memory of a few byte vectors, for tests of the interpreter and of what is built on it.

use std::collections::BTreeMap;
use std::sync::Arc;

use handloom_ir::simt::SymId;
use handloom_ir::simt::device_call::Part;
use handloom_ir::types::StateSpace;

use crate::memory::{Answer, Asked, Denied, Memory};
use crate::tensor::memory::Tensors;

/// Where `malloc` of a [`VecMemory`] begins to place allocations.
const HEAP_BASE: u64 = 0x7000_0000_0000;

/// One run of bytes.
#[derive(Clone, Debug)]
struct Region {
    base: u64,
    bytes: Vec<u8>,
    space: StateSpace,
    writable: bool,
}

/// Memory made of regions that do not touch; everything between them is out of bounds.
#[derive(Clone, Debug, Default)]
pub struct VecMemory {
    regions: Vec<Region>,
    symbols: BTreeMap<SymId, u64>,
    heap: BTreeMap<u64, usize>,
    heap_next: u64,
    clock_ns: u64,
    tensors: Arc<Tensors>,
    /// What the kernel printed.
    pub printed: Vec<u8>,
}

impl VecMemory {
    /// Memory without any byte.
    pub fn new() -> VecMemory {
        VecMemory { heap_next: HEAP_BASE, ..VecMemory::default() }
    }

    /// Adds `size` zero bytes from `base` on.
    pub fn add(&mut self, base: u64, size: usize, space: StateSpace, writable: bool) {
        self.regions.push(Region { base, bytes: vec![0; size], space, writable });
    }

    /// Gives a symbol its address.
    pub fn set_symbol(&mut self, sym: SymId, addr: u64) {
        self.symbols.insert(sym, addr);
    }

    /// Writes bytes from outside, also to regions that kernels may only read.
    ///
    /// # Panics
    /// The range is not inside one region.
    pub fn put(&mut self, addr: u64, bytes: &[u8]) {
        let (region, start) = self.find_mut(addr, bytes.len()).expect("the range is inside a region");
        region.bytes[start..start + bytes.len()].copy_from_slice(bytes);
    }

    /// Reads bytes from outside.
    ///
    /// # Panics
    /// The range is not inside one region.
    pub fn get(&self, addr: u64, len: usize) -> &[u8] {
        let (region, start) = self.find(addr, len).expect("the range is inside a region");
        &region.bytes[start..start + len]
    }

    /// Reads `count` words of 32 bits from outside.
    ///
    /// # Panics
    /// The range is not inside one region.
    pub fn words(&self, addr: u64, count: usize) -> Vec<u32> {
        let bytes = self.get(addr, count * 4);
        bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect()
    }

    fn find(&self, addr: u64, len: usize) -> Option<(&Region, usize)> {
        self.regions.iter().find_map(|r| Some((r, offset_in(r, addr, len)?)))
    }

    fn find_mut(&mut self, addr: u64, len: usize) -> Option<(&mut Region, usize)> {
        self.regions.iter_mut().find_map(|r| {
            let start = offset_in(r, addr, len)?;
            Some((r, start))
        })
    }
}

/// Index of the first byte of the range in the region, if all of it lies there.
fn offset_in(region: &Region, addr: u64, len: usize) -> Option<usize> {
    let start = usize::try_from(addr.checked_sub(region.base)?).ok()?;
    (start.checked_add(len)? <= region.bytes.len()).then_some(start)
}

/// A number of bytes as an index type.
fn len(bytes: u32) -> usize {
    usize::try_from(bytes).expect("a host has at least 32-bit indices")
}

impl Memory for VecMemory {
    fn check(&self, addr: u64, bytes: u32, write: bool) -> Result<(), Denied> {
        let (region, _) = self.find(addr, len(bytes)).ok_or(Denied::OutOfBounds)?;
        if write && !region.writable { Err(Denied::WriteProtected) } else { Ok(()) }
    }

    fn read(&mut self, addr: u64, bytes: u32) -> u64 {
        let mut word = [0; 8];
        word[..len(bytes)].copy_from_slice(self.get(addr, len(bytes)));
        u64::from_le_bytes(word)
    }

    fn write(&mut self, addr: u64, bytes: u32, value: u64) {
        self.put(addr, &value.to_le_bytes()[..len(bytes)]);
    }

    fn space(&self, addr: u64) -> StateSpace {
        self.find(addr, 1).map_or(StateSpace::Global, |(r, _)| r.space)
    }

    fn symbol(&self, sym: SymId) -> u64 {
        self.symbols.get(&sym).copied().unwrap_or(0)
    }

    fn allocate(&mut self, bytes: u64) -> u64 {
        let Ok(size) = usize::try_from(bytes) else { return 0 };
        if bytes > 1 << 30 {
            return 0;
        }
        let base = self.heap_next;
        self.heap_next += bytes.next_multiple_of(16) + 16;
        self.heap.insert(base, size);
        self.add(base, size, StateSpace::Global, true);
        base
    }

    fn release(&mut self, addr: u64) -> Result<(), Denied> {
        self.heap.remove(&addr).ok_or(Denied::OutOfBounds)?;
        self.regions.retain(|r| r.base != addr);
        Ok(())
    }

    /// Nobody runs launches here.
    fn device_call(&mut self, asked: &Asked) -> Answer {
        const NOT_SUPPORTED: u64 = 801;
        Answer::of(if asked.call.result() == Part::Int { NOT_SUPPORTED } else { 0 })
    }

    fn output(&mut self, text: &[u8]) {
        self.printed.extend_from_slice(text);
    }

    fn tensors(&self) -> Arc<Tensors> {
        Arc::clone(&self.tensors)
    }

    fn time_ns(&mut self) -> u64 {
        self.clock_ns += 1_000;
        self.clock_ns
    }
}
