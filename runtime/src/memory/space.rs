//! The memory of a device in one address window: allocations, and the map that finds them by address.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use handloom_interp::tensor::Tensors;
use handloom_plan::abi::HEAP_RIM;

use super::granules::Granules;
use super::mapped::{Backing, Part, Shared};
use super::ranges::Ranges;
use super::reserve::{PAGE, Reservation, Window, as_len, scrub};
use crate::error::NoRoom;

/// What an allocation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum AllocKind {
    /// A device buffer that an object of the host owns.
    Buffer,
    /// Linear memory, which the host allocates and frees by its address.
    Linear,
    /// A `.global` variable of a module.
    Global,
    /// A `.const` variable of a module: kernels may not write it.
    Const,
    /// Parameters of a launch: kernels may not write them.
    Param,
    /// Made by a kernel with `malloc`.
    Malloc,
    /// Shared memory of a cta.
    Shared,
    /// Local memory of a thread.
    Local,
    /// Memory that was mapped to reserved addresses.
    Mapped,
    /// The same, which kernels may only read.
    MappedForReading,
    /// Memory of the process that is not a device's.
    Host,
    /// The same, which the process itself may only read.
    HostForReading,
}

impl AllocKind {
    /// Whether kernels may write it.
    pub(crate) fn is_writable(self) -> bool {
        !matches!(self, AllocKind::Const | AllocKind::MappedForReading | AllocKind::HostForReading)
    }

    /// Whether only kernels and work of streams see it before a launch is over: the process and others do not.
    pub(crate) fn is_of_device(self) -> bool {
        matches!(self, AllocKind::Buffer | AllocKind::Linear | AllocKind::Global | AllocKind::Malloc)
    }
}

/// Kinds that stand in the table of granules, by number: kernels may read and write all of them, and they lie in the global state space.
const SMALL: [AllocKind; 4] = [AllocKind::Buffer, AllocKind::Linear, AllocKind::Global, AllocKind::Malloc];

/// A piece of memory that kernels may name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// First address.
    pub base: u64,
    /// Length in bytes.
    pub size: u64,
    /// What the program or the runtime uses it for.
    pub kind: AllocKind,
    /// Whether kernels may write it.
    pub writable: bool,
    /// Its name, if it has one, as a variable of a module.
    pub name: String,
    /// How it was made, for reports: `zero:2400`.
    pub origin: String,
    /// The elements of the file that it came from, if they are known.
    pub elements: Option<Elements>,
}

/// What the bytes of an allocation are, as their owner knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Elements {
    /// Type of an element: `f32`.
    pub ty: String,
    /// Bytes of an element.
    pub bytes: u64,
    /// Dimensions, the last one with the neighbours; none for a single element.
    pub shape: Vec<u64>,
}

/// How much memory some allocations may take together, and take: those of a device, or those that kernels make by `malloc`.
#[derive(Debug)]
pub struct Budget {
    limit: AtomicU64,
    used: AtomicU64,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget::new(u64::MAX)
    }
}

impl Budget {
    /// With so many bytes at most.
    pub fn new(limit: u64) -> Budget {
        Budget { limit: AtomicU64::new(limit), used: AtomicU64::new(0) }
    }

    /// Allocations from now on may take so many bytes with those that are there.
    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// The limit, and what is taken.
    pub fn get(&self) -> (u64, u64) {
        (self.limit.load(Ordering::Relaxed), self.used.load(Ordering::Relaxed))
    }

    pub(crate) fn take(&self, bytes: u64) -> Result<(), NoRoom> {
        let limit = self.limit.load(Ordering::Relaxed);
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= limit);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        taken.map(|_| ()).map_err(|_| NoRoom { bytes })
    }

    /// Takes back what was taken. A kernel may free what one of another context allocated, which counts there.
    pub(crate) fn give(&self, bytes: u64) {
        let less = |used: u64| Some(used.saturating_sub(bytes));
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// Which programs a space serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SpaceKind {
    /// 64-bit addresses.
    Wide,
    /// Addresses below 4 GiB.
    Low,
}

/// Distance of two shared slabs in bytes.
pub(crate) const SLAB: u64 = 1 << 20;

/// Bytes of a slab that are opened: the largest shared memory of a cta, 227 KiB, and the region for system software.
pub(crate) const SLAB_OPEN: u64 = 228 << 10;

/// Where the parts of a window lie: each is a start and an end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) param: (u64, u64),
    pub(crate) constant: (u64, u64),
    pub(crate) shared: (u64, u64),
    pub(crate) local: (u64, u64),
    pub(crate) heap: (u64, u64),
}

impl Layout {
    /// In sixty-fourths of the window: parameters, constants, shared and local memory in the first quarter, the rest is the heap. The first
    /// and the last page of each part stay closed; before the heap, which code may read a little before, more than that.
    fn of(base: u64, size: u64) -> Layout {
        let unit = size / 64;
        let part = |from: u64, to: u64| (base + from * unit + 16 * PAGE, base + to * unit - 16 * PAGE);
        let shared = (base + 2 * unit, base + 6 * unit);
        Layout { param: part(0, 1), constant: part(1, 2), shared, local: part(6, 24), heap: part(24, 64) }
    }
}

fn within(range: (u64, u64), addr: u64) -> bool {
    range.0 <= addr && addr < range.1
}

/// A part of the window from which memory is handed out.
#[derive(Debug)]
struct Area {
    ranges: Ranges,
    /// Addresses below it are open.
    top: u64,
    end: u64,
}

impl Area {
    fn new(range: (u64, u64)) -> Area {
        Area { ranges: Ranges::new(range.0, range.1), top: range.0, end: range.1 }
    }

    /// For memory that the runtime hands out for each launch.
    fn internal(range: (u64, u64)) -> Area {
        Area { ranges: Ranges::at_once(range.0, range.1), ..Area::new(range) }
    }

    fn take(&mut self, window: &Window, bytes: u64, align: u64) -> Result<(u64, u64), NoRoom> {
        let no_room = NoRoom { bytes };
        let (at, stop) = self.ranges.take(bytes, align).ok_or(no_room)?;
        if stop > self.top {
            // Open at least as much as is open already, up to 64 MiB, so that many small allocations need few calls.
            let step = (stop - self.top).max((64 << 20).min(stop - at + (256 << 10)));
            let top = (self.top + step).next_multiple_of(PAGE).min(self.end);
            if !window.open(self.top, top) {
                self.ranges.give(at, stop);
                return Err(no_room);
            }
            self.top = top;
        }
        Ok((at, stop))
    }
}

#[derive(Debug)]
struct State {
    param: Area,
    constant: Area,
    local: Area,
    heap: Area,
    /// By base; the end of the taken range beside it. Boxes, as kernels may make and free many thousands, and the maps move what they hold.
    map: BTreeMap<u64, (Box<Allocation>, u64)>,
    /// Freed allocations that nothing has replaced, by base.
    freed: BTreeMap<u64, Box<Allocation>>,
    free_slabs: Vec<u64>,
    next_slab: u64,
    /// Reserved addresses: the first one, and the end of the taken range.
    reserved: BTreeMap<u64, u64>,
    shared: Shared,
}

/// The memory of a device in one window.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) layout: Layout,
    state: RwLock<State>,
    /// The end of the open part of the heap, which only grows: each launch asks for it.
    heap_top: AtomicU64,
    /// Changes whenever an allocation ends, so that caches of allocations can be thrown away.
    generation: AtomicU64,
    budget: Arc<Budget>,
    /// Small allocations of the heap. `None`: all are found by the map.
    granules: Option<Granules>,
    /// Tensor memory, by slab.
    pub(crate) tensors: Arc<Tensors>,
    // The window is dropped last: nothing above holds a reference into it.
    window: Window,
}

impl Space {
    /// Claims a window.
    pub(crate) fn claim(kind: SpaceKind, budget: Arc<Budget>) -> Option<Space> {
        let reservation = match kind {
            SpaceKind::Wide => Reservation::wide(),
            SpaceKind::Low => Reservation::low(),
        };
        let window = reservation?.claim()?;
        let layout = Layout::of(window.base, window.size);
        if !window.open_to_read(layout.heap.0 - HEAP_RIM, layout.heap.0) {
            return None;
        }
        let state = State {
            param: Area::internal(layout.param),
            constant: Area::new(layout.constant),
            local: Area::internal(layout.local),
            heap: Area::new(layout.heap),
            map: BTreeMap::new(),
            freed: BTreeMap::new(),
            free_slabs: Vec::new(),
            next_slab: layout.shared.0 + PAGE,
            reserved: BTreeMap::new(),
            shared: Shared::default(),
        };
        Some(Space {
            layout,
            state: RwLock::new(state),
            heap_top: AtomicU64::new(layout.heap.0),
            generation: AtomicU64::new(0),
            budget,
            granules: Granules::new(layout.heap),
            tensors: Arc::default(),
            window,
        })
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes an allocation of zero bytes that kernels find by address.
    pub(crate) fn allocate(
        &self,
        kind: AllocKind,
        bytes: u64,
        align: u64,
        name: &str,
        origin: &str,
    ) -> Result<u64, NoRoom> {
        let mut state = self.write();
        let state = &mut *state;
        let area = if kind == AllocKind::Const { &mut state.constant } else { &mut state.heap };
        self.budget.take(bytes)?;
        let (base, stop) = area.take(&self.window, bytes, align).inspect_err(|_| self.budget.give(bytes))?;
        self.heap_top.store(state.heap.top, Ordering::Release);
        state.forget_freed(base, stop);
        let allocation = Allocation {
            base,
            size: bytes,
            kind,
            writable: kind.is_writable(),
            name: name.to_owned(),
            origin: origin.to_owned(),
            elements: None,
        };
        state.map.insert(base, (Box::new(allocation), stop));
        if let (Some(granules), Some(kind)) = (&self.granules, SMALL.iter().position(|k| *k == kind)) {
            granules.begin(base, bytes, kind as u32);
        }
        Ok(base)
    }

    /// Ends an allocation, and returns its size in bytes. `None`: there was none of this base and, if `only` is given, of this kind.
    pub(crate) fn free(&self, base: u64, only: Option<AllocKind>) -> Option<u64> {
        let mut state = self.write();
        let state = &mut *state;
        match state.map.get(&base) {
            Some((a, _)) if only.is_none_or(|k| k == a.kind) => {}
            Some(_) | None => return None,
        }
        let (allocation, stop) = state.map.remove(&base)?;
        let size = allocation.size;
        if SMALL.contains(&allocation.kind) {
            self.granules.iter().for_each(|g| g.end(base, size));
        }
        self.generation.fetch_add(1, Ordering::Release);
        self.budget.give(size);
        let area = if allocation.kind == AllocKind::Const { &mut state.constant } else { &mut state.heap };
        state.shared.take_back(&self.window, base, stop);
        // SAFETY: the range was handed out by this area, so it is open, and its allocation has just ended.
        unsafe { scrub(base, stop) };
        let reused = area.ranges.give(base, stop);
        state.freed.insert(base, allocation);
        for (start, end) in reused {
            let gone: Vec<u64> = state.freed.range(start..end).map(|(b, _)| *b).collect();
            gone.iter().for_each(|b| drop(state.freed.remove(b)));
        }
        Some(size)
    }

    /// Takes addresses of the heap behind which no memory lies yet.
    pub(crate) fn reserve(&self, bytes: u64, align: u64) -> Result<u64, NoRoom> {
        let mut state = self.write();
        let (base, stop) = state.heap.take(&self.window, bytes, align)?;
        self.heap_top.store(state.heap.top, Ordering::Release);
        state.forget_freed(base, stop);
        state.reserved.insert(base, stop);
        Ok(base)
    }

    /// Gives reserved addresses back, to which nothing is mapped. Says whether they were reserved.
    pub(crate) fn give_reserved(&self, base: u64) -> bool {
        let mut state = self.write();
        let Some(stop) = state.reserved.remove(&base) else { return false };
        state.heap.ranges.give(base, stop);
        true
    }

    /// Says which parts of reserved addresses can be accessed, and whether kernels may write them: nothing else there can be from now on.
    pub(crate) fn expose(&self, reserved: u64, parts: &[Part]) {
        let mut state = self.write();
        let state = &mut *state;
        let Some(&stop) = state.reserved.get(&reserved) else { return };
        state.forget_freed(reserved, stop);
        let old: Vec<u64> = state.map.range(reserved..stop).map(|(base, _)| *base).collect();
        for base in &old {
            if let Some((gone, _)) = state.map.remove(base) {
                state.freed.insert(*base, gone);
            }
        }
        for part in parts {
            let kind = if part.writable { AllocKind::Mapped } else { AllocKind::MappedForReading };
            let Part { base, size, writable } = *part;
            let (name, origin) = (String::new(), String::new());
            state.freed.remove(&base);
            let allocation = Allocation { base, size, kind, writable, name, origin, elements: None };
            state.map.insert(base, (Box::new(allocation), base + size));
        }
        if !old.is_empty() {
            self.generation.fetch_add(1, Ordering::Release);
        }
    }

    /// Puts pages of a file at addresses that are reserved, or fresh pages of zeros without one. Says whether the host did it.
    pub(crate) fn place(&self, start: u64, end: u64, file: Option<(&Backing, u64)>) -> bool {
        let state = self.write();
        let inside = state.reserved.range(..=start).next_back().is_some_and(|(_, stop)| end <= *stop);
        inside
            && match file {
                Some((file, offset)) => self.window.map(start, end, file.file(), offset),
                None => self.window.unmap(start, end),
            }
    }

    /// Moves the pages of an allocation into a file of which other processes can map them, unless they lie there. The result is the file, where in it
    /// the allocation begins, and its size. No kernel runs meanwhile: what it wrote could get lost.
    pub(crate) fn share(&self, base: u64) -> Option<(Arc<Backing>, u64, u64)> {
        let mut state = self.write();
        let state = &mut *state;
        let size = state.map.get(&base).filter(|(a, _)| a.kind == AllocKind::Linear)?.0.size;
        let file = state.shared.share(&self.window, self.layout.heap, base, base + size)?;
        Some((file, base - self.layout.heap.0, size))
    }

    /// Works on an allocation that holds `addr`, which does not end meanwhile; without one, on `None`.
    pub(crate) fn with<R>(&self, addr: u64, work: impl FnOnce(Option<&Allocation>) -> R) -> R {
        work(self.read().containing(addr))
    }

    /// Bytes that the heap has room for at most.
    pub(crate) fn heap_bytes(&self) -> u64 {
        self.layout.heap.1 - self.layout.heap.0
    }

    /// Changes what reports say of an allocation.
    pub(crate) fn annotate(&self, base: u64, change: impl FnOnce(&mut Allocation)) {
        if let Some((a, _)) = self.write().map.get_mut(&base) {
            change(a);
        }
    }

    /// A block for entry parameters; found through the launch, not through the map.
    pub(crate) fn take_param(&self, bytes: u64) -> Result<(u64, u64), NoRoom> {
        self.write().param.take(&self.window, bytes, 1)
    }

    /// Gives back what [`take_param`](Self::take_param) gave.
    pub(crate) fn give_param(&self, block: (u64, u64)) {
        self.write().param.ranges.give(block.0, block.1);
    }

    /// Memory of a cta, found through it: the base of a slab of shared memory, and local memory for its threads.
    pub(crate) fn take_seat(&self, local_bytes: u64) -> Result<(u64, (u64, u64)), NoRoom> {
        let mut state = self.write();
        let local = state.local.take(&self.window, local_bytes, PAGE)?;
        if let Some(slab) = state.free_slabs.pop() {
            return Ok((slab, local));
        }
        let slab = state.next_slab;
        // Lanes that take no part may be said to lie before it: hosts pass over them slowly where there is no page.
        let before = slab - PAGE;
        if slab + SLAB > self.layout.shared.1 || !self.window.open(before, slab + SLAB_OPEN) {
            state.local.ranges.give(local.0, local.1);
            return Err(NoRoom { bytes: SLAB_OPEN });
        }
        self.window.touch(before);
        state.next_slab += SLAB;
        Ok((slab, local))
    }

    /// Gives back what [`take_seat`](Self::take_seat) gave.
    pub(crate) fn give_seat(&self, seat: (u64, (u64, u64))) {
        let mut state = self.write();
        state.free_slabs.push(seat.0);
        let local = seat.1;
        state.local.ranges.give(local.0, local.1);
    }

    /// The allocation that holds the byte at `addr`.
    pub(crate) fn find(&self, addr: u64) -> Option<Allocation> {
        self.read().containing(addr).cloned()
    }

    /// Base, size and kind of the allocation that holds the byte at `addr`.
    pub(crate) fn extent(&self, addr: u64) -> Option<(u64, u64, AllocKind)> {
        self.read().containing(addr).map(|a| (a.base, a.size, a.kind))
    }

    /// The same of a small allocation of the heap.
    #[inline]
    pub(crate) fn small(&self, addr: u64) -> Option<(u64, u64, AllocKind)> {
        let (base, size, kind) = self.granules.as_ref()?.find(addr)?;
        Some((base, size, *SMALL.get(kind as usize)?))
    }

    /// The table of small allocations, and the bytes of the heap that it is for; zeros without one.
    pub(crate) fn granules(&self) -> (u64, u64) {
        self.granules.as_ref().map_or((0, 0), Granules::table)
    }

    /// The freed allocation that held the byte at `addr`, if nothing has replaced it.
    pub(crate) fn find_freed(&self, addr: u64) -> Option<Allocation> {
        let state = self.read();
        let (_, a) = state.freed.range(..=addr).next_back()?;
        (addr - a.base < a.size).then(|| a.as_ref().clone())
    }

    /// The allocation whose edge is nearest to `addr`.
    pub(crate) fn nearest(&self, addr: u64) -> Option<Allocation> {
        let state = self.read();
        let below = state.map.range(..=addr).next_back().map(|(_, (a, _))| a);
        let above = state.map.range(addr..).next().map(|(_, (a, _))| a);
        let distance = |a: &Allocation| {
            if addr < a.base { a.base - addr } else { addr.saturating_sub(a.base + a.size) }
        };
        below.into_iter().chain(above).min_by_key(|a| distance(a)).map(|a| a.as_ref().clone())
    }

    /// Whether the window contains the address.
    pub(crate) fn contains(&self, addr: u64) -> bool {
        addr.wrapping_sub(self.window.base) < self.window.size
    }

    /// Whether the address lies in the part for constants.
    pub(crate) fn is_const(&self, addr: u64) -> bool {
        within(self.layout.constant, addr)
    }

    /// Whether the address lies in the part for entry parameters.
    pub(crate) fn is_param(&self, addr: u64) -> bool {
        within(self.layout.param, addr)
    }

    /// Whether the address lies in the part for shared memory.
    pub(crate) fn is_shared(&self, addr: u64) -> bool {
        within(self.layout.shared, addr)
    }

    /// Whether the address lies in the part for local memory.
    pub(crate) fn is_local(&self, addr: u64) -> bool {
        within(self.layout.local, addr)
    }

    /// The open part of the heap: every byte in it may be touched without a fault.
    pub(crate) fn open_heap(&self) -> (u64, u64) {
        (self.layout.heap.0, self.heap_top.load(Ordering::Acquire))
    }

    /// Number of allocations that have ended.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Shared slabs that can be had at most.
    pub(crate) fn max_slabs(&self) -> usize {
        as_len((self.layout.shared.1 - self.layout.shared.0) / SLAB)
    }
}

impl State {
    /// Forgets what was freed in a range that is handed out again.
    fn forget_freed(&mut self, base: u64, stop: u64) {
        let stale: Vec<u64> =
            self.freed.range(..stop).rev().take_while(|(b, a)| **b + a.size > base).map(|(b, _)| *b).collect();
        for b in stale {
            self.freed.remove(&b);
        }
    }

    fn containing(&self, addr: u64) -> Option<&Allocation> {
        let (_, (a, _)) = self.map.range(..=addr).next_back()?;
        (addr - a.base < a.size).then_some(a.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_by_address_and_remembers_what_was_freed() {
        let s = Space::claim(SpaceKind::Wide, Arc::default()).unwrap();
        let a = s.allocate(AllocKind::Buffer, 2400, 1, "", "zero:2400").unwrap();
        let b = s.allocate(AllocKind::Const, 16, 1, "table", "").unwrap();
        assert_eq!(a % 512, 0);
        assert_eq!(s.find(a + 2399).unwrap().base, a);
        assert!(s.find(a + 2400).is_none());
        assert!(s.find(a - 1).is_none());
        assert!(!s.find(b).unwrap().writable);
        assert!(s.is_const(b) && !s.is_const(a));
        assert_eq!(s.nearest(a + 2404).unwrap().base, a);
        let g = s.generation();
        assert_eq!(s.free(a + 1, None), None);
        assert_eq!(s.free(a, None), Some(2400));
        assert_eq!(s.free(a, None), None);
        assert!(s.generation() > g);
        assert!(s.find(a).is_none());
        assert_eq!(s.find_freed(a + 5).unwrap().origin, "zero:2400");
    }

    #[test]
    fn the_low_space_lies_below_4_gib() {
        let Some(s) = Space::claim(SpaceKind::Low, Arc::default()) else { return };
        let a = s.allocate(AllocKind::Buffer, 1 << 20, 1, "", "").unwrap();
        assert!(a + (1 << 20) < 1 << 32);
        assert!(s.take_seat(64).unwrap().0 + SLAB < 1 << 32);
    }

    #[test]
    fn too_much_is_refused() {
        let s = Space::claim(SpaceKind::Wide, Arc::default()).unwrap();
        assert_eq!(s.allocate(AllocKind::Buffer, 1 << 50, 1, "", ""), Err(NoRoom { bytes: 1 << 50 }));
        assert!(s.allocate(AllocKind::Buffer, u64::MAX, 1, "", "").is_err());
    }
}
