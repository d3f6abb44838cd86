//! Virtual memory: addresses that are reserved, memory that lies nowhere, and what is mapped where.
//!
//! Choice: reserved addresses belong to the device of the current context, the first one without a context. Memory of every device, and of the host, can
//! be mapped there, but only kernels of that device reach it.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use handloom_runtime::{Backing, Part, meminfo};

use crate::code::{Code, Result};
use crate::context;
use crate::gpu::Gpu;
use crate::memory::{Allocated, POISON, Use};
use crate::process::{Process, may_wait, process};

/// What sizes and addresses are multiples of: a large page of the host.
pub const GRANULARITY: u64 = 2 << 20;

/// Kernels may read.
const READ: u64 = 1;
/// Kernels may read and write.
const READ_WRITE: u64 = 3;

/// Where memory is, or who accesses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    /// A device, by its number.
    Device(i32),
    /// The host.
    Host,
}

/// Memory that lies nowhere until it is mapped.
pub struct Physical {
    /// Its handle.
    pub handle: u64,
    /// Where it is.
    pub location: Location,
    /// Whether other processes may have it.
    pub is_shareable: bool,
    backing: Backing,
    uses: Mutex<Uses>,
}

/// Who needs it.
#[derive(Default)]
struct Uses {
    /// References of the program.
    references: u64,
    /// Places where it is mapped.
    mapped: u64,
}

/// A range of addresses.
struct Reserved {
    bytes: u64,
    ordinal: i32,
    /// What is mapped, by its first address.
    maps: BTreeMap<u64, Mapped>,
}

/// Memory at its addresses.
struct Mapped {
    bytes: u64,
    physical: Arc<Physical>,
    /// How kernels of the device may access it.
    access: u64,
}

/// All reserved addresses, by the first one.
#[derive(Default)]
pub struct Ranges(Mutex<BTreeMap<u64, Reserved>>);

impl Ranges {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Reserved>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reserved range that holds all of another one, which is not empty.
fn holding(all: &mut BTreeMap<u64, Reserved>, at: u64, bytes: u64) -> Result<(u64, &mut Reserved)> {
    let (base, range) = all.range_mut(..=at).next_back().ok_or(Code::INVALID_VALUE)?;
    let fits = bytes > 0 && at - base <= range.bytes && bytes <= range.bytes - (at - base);
    if fits { Ok((*base, range)) } else { Err(Code::INVALID_VALUE) }
}

impl Reserved {
    /// First addresses of the mappings that make up a range without a gap.
    fn mappings(&self, at: u64, bytes: u64) -> Result<Vec<u64>> {
        let found: Vec<u64> = self.maps.range(at..at + bytes).map(|(start, _)| *start).collect();
        let mut next = at;
        for start in &found {
            if *start != next {
                return Err(Code::INVALID_VALUE);
            }
            next += self.maps[start].bytes;
        }
        if next == at + bytes { Ok(found) } else { Err(Code::INVALID_VALUE) }
    }

    /// Tells the device what can be accessed: neighbours are one piece, since a program uses them as one.
    fn expose(&self, gpu: &Gpu, base: u64) {
        let mut parts: Vec<Part> = Vec::new();
        for (start, map) in self.maps.iter().filter(|(_, map)| map.access != 0) {
            let writable = map.access == READ_WRITE;
            match parts.last_mut() {
                Some(last) if last.base + last.size == *start && last.writable == writable => last.size += map.bytes,
                _ => parts.push(Part { base: *start, size: map.bytes, writable }),
            }
        }
        gpu.device.memory().expose(base, &parts);
    }
}

impl Physical {
    fn uses(&self) -> MutexGuard<'_, Uses> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes.
    pub fn bytes(&self) -> u64 {
        self.backing.bytes()
    }

    /// Changes who needs it; its handle goes with the last one.
    fn change(&self, process: &Process, change: impl FnOnce(&mut Uses)) {
        let mut uses = self.uses();
        change(&mut uses);
        if uses.references == 0 && uses.mapped == 0 {
            process.physicals.remove(self.handle);
        }
    }

    /// A file of it for another process.
    ///
    /// # Errors
    /// It was not made for that, or the host has no more files.
    pub fn export(&self) -> Result<OwnedFd> {
        if !self.is_shareable {
            return Err(Code::INVALID_VALUE);
        }
        self.backing.file().try_clone_to_owned().map_err(|_| Code::OPERATING_SYSTEM)
    }
}

fn add(backing: Backing, location: Location, is_shareable: bool) -> Result<u64> {
    let uses = Mutex::new(Uses { references: 1, mapped: 0 });
    let make = |handle| Physical { handle, location, is_shareable, backing, uses };
    process()?.physicals.add_with(make).map(|(handle, _)| handle).ok_or(Code::OUT_OF_MEMORY)
}

/// Makes memory that lies nowhere, and returns its handle.
///
/// # Errors
/// The size is no multiple of the granularity, or there is no room.
pub fn create(bytes: u64, location: Location, is_shareable: bool) -> Result<u64> {
    if bytes == 0 || !bytes.is_multiple_of(GRANULARITY) {
        return Err(Code::INVALID_VALUE);
    }
    let process = process()?;
    if meminfo("MemAvailable:").is_some_and(|free| bytes > free) {
        return Err(Code::OUT_OF_MEMORY);
    }
    let backing = match location {
        Location::Device(ordinal) => process.gpu(ordinal)?.device.memory().backing(bytes),
        Location::Host => Backing::of_host(bytes),
    };
    let backing = backing.map_err(|_| Code::OUT_OF_MEMORY)?;
    if process.config.poison {
        backing.fill(POISON[0]);
    }
    add(backing, location, is_shareable)
}

/// Takes over memory of another process, and returns its handle here.
///
/// # Errors
/// It is no such memory.
pub fn import(file: OwnedFd) -> Result<u64> {
    let backing = Backing::adopt(file).filter(|b| b.bytes().is_multiple_of(GRANULARITY)).ok_or(Code::INVALID_VALUE)?;
    let ordinal = context::current().map_or(0, |ctx| ctx.gpu.ordinal);
    add(backing, Location::Device(ordinal), true)
}

/// Memory by its handle, to which the program has a reference.
///
/// # Errors
/// There is none.
pub fn by_handle(handle: u64) -> Result<Arc<Physical>> {
    let found = process()?.physicals.get(handle);
    found.filter(|p| p.uses().references > 0).ok_or(Code::INVALID_VALUE)
}

/// Takes a reference to memory away. It lives as long as it is mapped.
///
/// # Errors
/// There is none.
pub fn release(handle: u64) -> Result {
    by_handle(handle)?.change(process()?, |uses| uses.references = uses.references.saturating_sub(1));
    Ok(())
}

/// Adds a reference to the memory that is mapped at an address, and returns its handle.
///
/// # Errors
/// None is.
pub fn retain(address: u64) -> Result<u64> {
    let process = process()?;
    let mut all = process.ranges.all();
    let (_, range) = holding(&mut all, address, 1)?;
    let (start, map) = range.maps.range(..=address).next_back().ok_or(Code::INVALID_VALUE)?;
    if address - start >= map.bytes {
        return Err(Code::INVALID_VALUE);
    }
    map.physical.change(process, |uses| uses.references += 1);
    Ok(map.physical.handle)
}

/// Reserves addresses.
///
/// # Errors
/// The size or the alignment is wrong, or there are not so many.
pub fn reserve(bytes: u64, align: u64) -> Result<u64> {
    let process = process()?;
    if bytes == 0 || !bytes.is_multiple_of(GRANULARITY) || !(align == 0 || align.is_power_of_two()) {
        return Err(Code::INVALID_VALUE);
    }
    let ordinal = context::current().map_or(0, |ctx| ctx.gpu.ordinal);
    let memory = process.gpu(ordinal)?.device.memory();
    let base = memory.reserve(bytes, align.max(GRANULARITY)).map_err(|_| Code::OUT_OF_MEMORY)?;
    process.ranges.all().insert(base, Reserved { bytes, ordinal, maps: BTreeMap::new() });
    Ok(base)
}

/// Gives reserved addresses back.
///
/// # Errors
/// They were not reserved like this, or something is mapped there.
pub fn give_back(base: u64, bytes: u64) -> Result {
    let process = process()?;
    let mut all = process.ranges.all();
    let range = all.get(&base).filter(|r| r.bytes == bytes && r.maps.is_empty()).ok_or(Code::INVALID_VALUE)?;
    process.gpu(range.ordinal)?.device.memory().give_reserved(base);
    all.remove(&base);
    Ok(())
}

/// Maps memory to reserved addresses. Nobody may access it yet.
///
/// # Errors
/// The addresses are not reserved, or something is mapped there; sizes are wrong.
pub fn map(at: u64, bytes: u64, offset: u64, handle: u64) -> Result {
    let process = process()?;
    let physical = by_handle(handle)?;
    let fits = offset.checked_add(bytes).is_some_and(|end| end <= physical.bytes());
    if !fits || [at, bytes, offset].iter().any(|n| !n.is_multiple_of(GRANULARITY)) {
        return Err(Code::INVALID_VALUE);
    }
    let mut all = process.ranges.all();
    let (_, range) = holding(&mut all, at, bytes)?;
    let before = range.maps.range(..at + bytes).next_back();
    if before.is_some_and(|(start, map)| start + map.bytes > at) {
        return Err(Code::INVALID_VALUE);
    }
    let gpu = process.gpu(range.ordinal)?;
    if !gpu.device.memory().map(at, bytes, &physical.backing, offset) {
        return Err(Code::OUT_OF_MEMORY);
    }
    physical.change(process, |uses| uses.mapped += 1);
    let ordinal = if let Location::Device(ordinal) = physical.location { ordinal } else { range.ordinal };
    let id = process.next_id();
    process.memory.add(Allocated { base: at, bytes, kind: Use::Mapped(handle), ctx: 0, ordinal, id, reach: None });
    range.maps.insert(at, Mapped { bytes, physical, access: 0 });
    Ok(())
}

/// Unmaps what is mapped at a range of addresses, after the work that may use it.
///
/// # Errors
/// It does not begin and end with something that is mapped, or has gaps.
pub fn unmap(at: u64, bytes: u64) -> Result {
    let process = process()?;
    {
        let mut all = process.ranges.all();
        holding(&mut all, at, bytes)?.1.mappings(at, bytes)?;
    }
    may_wait()?;
    // Work that was given before may still use it. Whether that fails is told by another call.
    process.contexts.all().iter().for_each(|(_, ctx)| drop(ctx.rt.synchronize()));
    let mut all = process.ranges.all();
    let (base, range) = holding(&mut all, at, bytes)?;
    let gone = range.mappings(at, bytes)?;
    let gone: Vec<(u64, Mapped)> = gone.into_iter().filter_map(|s| Some((s, range.maps.remove(&s)?))).collect();
    let gpu = process.gpu(range.ordinal)?;
    range.expose(gpu, base);
    for (start, map) in &gone {
        gpu.device.memory().unmap(*start, map.bytes);
        map.physical.change(process, |uses| uses.mapped = uses.mapped.saturating_sub(1));
        let _ = process.memory.take(*start, |kind| matches!(kind, Use::Mapped(_)));
    }
    Ok(())
}

/// Says who may access what is mapped at a range of addresses, and how.
///
/// # Errors
/// The range is not mapped as a whole, or a device is to reach memory that it cannot.
pub fn set_access(at: u64, bytes: u64, who: &[(Location, u64)]) -> Result {
    let process = process()?;
    let mut all = process.ranges.all();
    let (base, range) = holding(&mut all, at, bytes)?;
    let maps = range.mappings(at, bytes)?;
    for (location, access) in who {
        if !matches!(*access, 0 | READ | READ_WRITE) {
            return Err(Code::INVALID_VALUE);
        }
        match location {
            Location::Device(ordinal) => {
                process.gpu(*ordinal)?;
                // Kernels reach the memory of their own device only.
                if *ordinal != range.ordinal && *access != 0 {
                    return Err(Code::NOT_SUPPORTED);
                }
            }
            // Of memory of a device the host has no part, as on a GPU beside the host.
            Location::Host if maps.iter().any(|m| range.maps[m].physical.location != Location::Host) => {
                return Err(Code::NOT_SUPPORTED);
            }
            Location::Host => {}
        }
    }
    let own = Location::Device(range.ordinal);
    for (_, access) in who.iter().filter(|(location, _)| *location == own) {
        for start in &maps {
            if let Some(map) = range.maps.get_mut(start) {
                map.access = *access;
            }
        }
    }
    range.expose(process.gpu(range.ordinal)?, base);
    Ok(())
}

/// How somebody may access an address.
///
/// # Errors
/// Nothing is mapped there.
pub fn access(location: Location, address: u64) -> Result<u64> {
    let process = process()?;
    let mut all = process.ranges.all();
    let (_, range) = holding(&mut all, address, 1)?;
    let found = range.maps.range(..=address).next_back().filter(|(start, map)| address - **start < map.bytes);
    let (_, map) = found.ok_or(Code::INVALID_VALUE)?;
    Ok(match location {
        Location::Device(ordinal) if process.gpu(ordinal)?.ordinal == range.ordinal => map.access,
        Location::Device(_) => 0,
        Location::Host if map.physical.location == Location::Host => READ_WRITE,
        Location::Host => 0,
    })
}
