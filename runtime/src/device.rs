//! The device: memory, buffers, the pool of host threads, and what kernels printed.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use handloom_plan::Host;

use crate::error::NoRoom;
use crate::heap::KernelHeap;
use crate::kept::CodeCache;
use crate::lock::lock;
use crate::memory::access::{fill_words, read_words, write_words};
use crate::memory::{AllocKind, Allocation, DeviceMemory, Elements, SpaceKind};
use crate::run::{Sink, UsualFloats};

/// A device: one window of memory and the threads that run kernels. A clone is the same device.
#[derive(Clone, Debug)]
pub struct Device {
    pub(crate) inner: Arc<DeviceInner>,
}

/// Somebody who keeps memory of a device for launches to come.
pub(crate) trait Resting: Send + Sync + fmt::Debug {
    /// Gives it back.
    fn give_back(&self);
}

/// How many may do that at a time.
const RESTING: usize = 64;

/// What clones of a device share.
#[derive(Debug)]
pub(crate) struct DeviceInner {
    pub(crate) memory: Arc<DeviceMemory>,
    /// The machine: what it has, as detected, or less.
    pub(crate) host: Host,
    /// Text that kernels printed and nobody took yet.
    output: Mutex<Vec<u8>>,
    /// Pools that no launch uses, by number of threads; one is made when a launch finds none.
    pools: Mutex<BTreeMap<usize, Vec<rayon::ThreadPool>>>,
    grids: AtomicU64,
    /// What kernels of checked launches allocated and freed.
    pub(crate) heap: Mutex<KernelHeap>,
    /// Code that its modules share.
    pub(crate) code: CodeCache,
    /// Those that keep memory for launches to come, the oldest first.
    resting: Mutex<VecDeque<Weak<dyn Resting>>>,
    /// Zero of `%globaltimer` and of the reports.
    pub(crate) start: Instant,
}

impl Device {
    /// A device with a window of its own.
    ///
    /// # Errors
    /// The host has no address space left for it.
    pub fn new() -> Result<Device, NoRoom> {
        Device::with_code(&CodeCache::default())
    }

    /// A device with a window of its own, whose modules share code with those of others.
    ///
    /// # Errors
    /// The host has no address space left for it.
    pub fn with_code(code: &CodeCache) -> Result<Device, NoRoom> {
        Device::on(Host::detect(), code)
    }

    /// The same, whose code and routines use what a host has: this one, or one with less ([`Host::capped`]).
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn on(host: Host, code: &CodeCache) -> Result<Device, NoRoom> {
        let memory = Arc::new(DeviceMemory::claim().ok_or(NoRoom { bytes: 0 })?);
        Ok(Device {
            inner: Arc::new(DeviceInner {
                memory,
                host,
                output: Mutex::default(),
                pools: Mutex::default(),
                grids: AtomicU64::new(1),
                heap: Mutex::default(),
                code: code.clone(),
                resting: Mutex::default(),
                start: Instant::now(),
            }),
        })
    }

    /// A zero-filled buffer for programs of 64-bit addresses.
    ///
    /// # Errors
    /// There is no room.
    pub fn zeroed(&self, bytes: u64) -> Result<DeviceBuffer, NoRoom> {
        self.buffer(SpaceKind::Wide, bytes)
    }

    /// A zero-filled buffer below 4 GiB, which programs of any address size can use.
    ///
    /// # Errors
    /// There is no room.
    pub fn zeroed_low(&self, bytes: u64) -> Result<DeviceBuffer, NoRoom> {
        self.buffer(SpaceKind::Low, bytes)
    }

    /// A buffer with a copy of `data`.
    ///
    /// # Errors
    /// There is no room.
    pub fn copy_of(&self, data: &[u8]) -> Result<DeviceBuffer, NoRoom> {
        let mut buffer = self.zeroed(data.len() as u64)?;
        buffer.write(0, data);
        Ok(buffer)
    }

    /// The cache of its code.
    pub fn code(&self) -> &CodeCache {
        &self.inner.code
    }

    /// What its code and routines may use.
    pub fn host(&self) -> &Host {
        &self.inner.host
    }

    /// Its memory by address: allocations that nobody owns, copies, and what lies where.
    pub fn memory(&self) -> &DeviceMemory {
        &self.inner.memory
    }

    /// Where the text of a launch goes that may have a sink of its own.
    pub(crate) fn sink(&self, own: Option<&Sink>) -> Sink {
        let inner = Arc::clone(&self.inner);
        own.cloned().unwrap_or_else(|| Sink::new(move |text| inner.add_output(text)))
    }

    fn buffer(&self, kind: SpaceKind, bytes: u64) -> Result<DeviceBuffer, NoRoom> {
        let base = self.inner.memory.take(AllocKind::Buffer, kind, bytes)?;
        Ok(DeviceBuffer { memory: Arc::clone(&self.inner.memory), base, len: bytes })
    }

    /// Takes the text that kernels have printed since the last call, in the order of launches and within a launch of blocks. What the lowest block
    /// that has not ended prints is there while it runs. Launches with a sink of their own ([`LaunchConfig::output`](crate::LaunchConfig::output)) leave nothing here.
    pub fn take_output(&self) -> Vec<u8> {
        std::mem::take(&mut lock(&self.inner.output))
    }
}

impl DeviceInner {
    pub(crate) fn add_output(&self, text: &[u8]) {
        lock(&self.output).extend_from_slice(text);
    }

    /// Notes who keeps memory from now on. When too many do, the one that began first gives it back.
    pub(crate) fn add_resting(&self, new: Weak<dyn Resting>) {
        let mut all = lock(&self.resting);
        all.push_back(new);
        if all.len() <= RESTING {
            return;
        }
        let oldest = all.pop_front();
        drop(all);
        if let Some(oldest) = oldest.and_then(|oldest| oldest.upgrade()) {
            oldest.give_back();
        }
    }

    /// `%gridid` of the next launch.
    pub(crate) fn next_grid(&self) -> u64 {
        self.grids.fetch_add(1, Ordering::Relaxed)
    }
}

/// A pool of threads that a launch has to itself. Launches do not share one: the blocks of one may wait for those of the other.
pub(crate) struct Pool<'d> {
    device: &'d DeviceInner,
    size: usize,
    /// There until it is given back.
    threads: Option<rayon::ThreadPool>,
}

impl<'d> Pool<'d> {
    /// A pool of so many threads, or `None` if the host refuses threads.
    pub(crate) fn take(device: &'d DeviceInner, size: usize) -> Option<Pool<'d>> {
        let idle = lock(&device.pools).get_mut(&size).and_then(Vec::pop);
        let name = |i: usize| format!("handloom-{i}");
        let make = || {
            rayon::ThreadPoolBuilder::new()
                .num_threads(size)
                .thread_name(name)
                .start_handler(|_| UsualFloats::set())
                .build()
                .ok()
        };
        let threads = idle.or_else(make)?;
        Some(Pool { device, size, threads: Some(threads) })
    }
}

impl std::ops::Deref for Pool<'_> {
    type Target = rayon::ThreadPool;

    fn deref(&self) -> &rayon::ThreadPool {
        match &self.threads {
            Some(threads) => threads,
            None => unreachable!("a pool has its threads until it is dropped"),
        }
    }
}

impl Drop for Pool<'_> {
    fn drop(&mut self) {
        let idle = self.threads.take();
        lock(&self.device.pools).entry(self.size).or_default().extend(idle);
    }
}

/// Memory of a device that the host made. Freed when dropped.
#[derive(Debug)]
pub struct DeviceBuffer {
    memory: Arc<DeviceMemory>,
    base: u64,
    len: u64,
}

impl DeviceBuffer {
    /// Its address, as kernels see it.
    pub fn address(&self) -> u64 {
        self.base
    }

    /// Its size in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it holds no byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether programs of 32-bit addresses can use it.
    pub fn is_low(&self) -> bool {
        self.base < 1 << 32
    }

    /// Says how it was made, for trap reports: `zero:2400`.
    pub fn set_origin(&mut self, origin: &str) {
        self.annotate(|a| origin.clone_into(&mut a.origin));
    }

    /// Names it for trap reports, which use the name where no parameter was bound to it.
    pub fn set_name(&mut self, name: &str) {
        self.annotate(|a| name.clone_into(&mut a.name));
    }

    /// Says what its bytes are, for trap reports.
    pub fn set_elements(&mut self, elements: Elements) {
        self.annotate(|a| a.elements = Some(elements));
    }

    fn annotate(&self, change: impl FnOnce(&mut Allocation)) {
        if let Some(space) = self.memory.of(self.base) {
            space.annotate(self.base, change);
        }
    }

    /// Writes bytes from `offset` on.
    ///
    /// # Panics
    /// They do not fit.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        self.expect_inside(offset, data.len() as u64);
        // SAFETY: the range was just checked to lie in this buffer, which is open memory as long as it lives.
        unsafe { write_words(self.base + offset, data, data.len() as u64) }
    }

    /// Reads bytes from `offset` on.
    ///
    /// # Panics
    /// They lie not all in the buffer.
    pub fn read(&self, offset: u64, to: &mut [u8]) {
        self.expect_inside(offset, to.len() as u64);
        // SAFETY: as in `write`.
        unsafe { read_words(self.base + offset, to, to.len() as u64) }
    }

    /// A copy of all bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = vec![0; usize::try_from(self.len).unwrap_or(0)];
        self.read(0, &mut out);
        out
    }

    /// Sets all bytes to one value.
    pub fn fill(&mut self, value: u8) {
        // SAFETY: all of this buffer, as in `write`.
        unsafe { fill_words(self.base, self.len, u64::from_ne_bytes([value; 8])) }
    }

    fn expect_inside(&self, offset: u64, bytes: u64) {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= self.len);
        assert!(inside, "bytes {offset}..+{bytes} of a buffer of {} bytes", self.len);
    }

    pub(crate) fn belongs_to(&self, device: &DeviceInner) -> bool {
        Arc::ptr_eq(&self.memory, &device.memory)
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if let Some(space) = self.memory.of(self.base) {
            space.free(self.base, Some(AllocKind::Buffer));
        }
    }
}

/// Memory of the process that kernels may use as a buffer, at the addresses that the process uses, as long as this lives.
#[derive(Debug)]
pub struct HostBuffer {
    memory: Arc<DeviceMemory>,
    start: u64,
    bytes: u64,
    is_writable: bool,
}

impl HostBuffer {
    /// Lends a range to the kernels of a device. Ranges may overlap, and one may be lent several times. `elements` says what its bytes are, for reports.
    ///
    /// # Safety
    /// The range is readable, and writable if that is said, and stays so until this is dropped and the launches that ran then have ended; nothing but raw
    /// accesses and atomics is done there meanwhile.
    pub unsafe fn lend(
        device: &Device,
        start: u64,
        bytes: u64,
        is_writable: bool,
        elements: Option<Elements>,
    ) -> HostBuffer {
        let memory = Arc::clone(&device.inner.memory);
        if bytes > 0 {
            memory.host().lend(start, bytes, is_writable, elements);
        }
        HostBuffer { memory, start, bytes, is_writable }
    }

    /// Its address, as kernels see it.
    pub fn address(&self) -> u64 {
        self.start
    }

    /// Whether kernels may write it.
    pub fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// A copy of its bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = vec![0; usize::try_from(self.bytes).unwrap_or(0)];
        // SAFETY: the range was promised to be readable as long as this lives.
        unsafe { read_words(self.start, &mut out, self.bytes) }
        out
    }

    /// Writes its first bytes.
    ///
    /// # Panics
    /// They do not fit, or it may not be written.
    pub fn write(&self, data: &[u8]) {
        let bytes = data.len() as u64;
        assert!(self.is_writable && bytes <= self.bytes, "{bytes} bytes for {} of the process", self.bytes);
        // SAFETY: the range was promised to be writable as long as this lives.
        unsafe { write_words(self.start, data, bytes) }
    }

    pub(crate) fn belongs_to(&self, device: &DeviceInner) -> bool {
        Arc::ptr_eq(&self.memory, &device.memory)
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        self.memory.host().take_back(self.start, self.bytes, self.is_writable);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_read_back_and_are_zero_when_recycled() {
        let d = Device::new().unwrap();
        let mut b = d.copy_of(&[1, 2, 3]).unwrap();
        b.write(1, &[9]);
        assert_eq!(b.to_vec(), [1, 9, 3]);
        drop(b);
        for _ in 0..10 {
            let mut big = d.zeroed(20 << 20).unwrap();
            assert!(big.to_vec().iter().all(|x| *x == 0));
            big.fill(7);
        }
    }

    #[test]
    #[should_panic(expected = "of a buffer of 4 bytes")]
    fn a_write_past_the_end_panics() {
        Device::new().unwrap().zeroed(4).unwrap().write(1, &[0; 4]);
    }
}
