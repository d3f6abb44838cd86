//! Memory pools: where stream-ordered allocations are counted.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use handloom_runtime::Backing;

use crate::code::{Code, Result};
use crate::gpu::Gpu;
use crate::ipc::{self, HANDLE};
use crate::memory::{PAGE, Use};
use crate::process::{Process, process};

/// A pool.
#[derive(Debug)]
pub struct Pool {
    /// Number of its device.
    pub ordinal: i32,
    /// Whether it came with the device.
    pub is_default: bool,
    reuse: [AtomicU64; 3],
    threshold: AtomicU64,
    high: AtomicU64,
    max_bytes: u64,
    /// Whether other processes may have its memory.
    pub is_shareable: bool,
    /// How other processes know it, once somebody asked.
    exported: OnceLock<Option<Backing>>,
    /// The process that it is one of, if it was imported.
    theirs: Option<u64>,
}

/// How the file of a pool begins.
const MAGIC: u64 = u64::from_le_bytes(*b"HndlPol1");

impl Pool {
    /// A pool of a device that may hold so many bytes; 0 for no limit of its own.
    pub fn new(ordinal: i32, is_default: bool, max_bytes: u64) -> Pool {
        let reuse = [const { AtomicU64::new(1) }; 3];
        let (threshold, high, exported) = (AtomicU64::new(0), AtomicU64::new(0), OnceLock::new());
        Pool { ordinal, is_default, reuse, threshold, high, max_bytes, is_shareable: false, exported, theirs: None }
    }

    /// The same, whose memory other processes may have.
    #[must_use]
    pub fn shareable(self, is_shareable: bool) -> Pool {
        Pool { is_shareable, ..self }
    }

    /// A file that stands for it in other processes.
    ///
    /// # Errors
    /// It was not made for that, or the host has no file.
    pub fn export(&self) -> Result<OwnedFd> {
        if !self.is_shareable {
            return Err(Code::INVALID_VALUE);
        }
        let make = || {
            let backing = Backing::of_host(PAGE).ok()?;
            let words = [MAGIC, std::process::id().into()].map(u64::to_le_bytes).concat();
            File::from(backing.file().try_clone_to_owned().ok()?).write_all_at(&words, 0).ok()?;
            Some(backing)
        };
        let file = self.exported.get_or_init(make).as_ref().ok_or(Code::OUT_OF_MEMORY)?;
        file.file().try_clone_to_owned().map_err(|_| Code::OPERATING_SYSTEM)
    }

    /// A pool of another process, by the file that stands for it. Nothing is allocated from it here.
    ///
    /// # Errors
    /// The file stands for no pool.
    pub fn import(ordinal: i32, file: OwnedFd) -> Result<Pool> {
        let mut words = [0; 16];
        let backing = Backing::adopt(file).ok_or(Code::INVALID_VALUE)?;
        let file = File::from(backing.file().try_clone_to_owned().map_err(|_| Code::OPERATING_SYSTEM)?);
        file.read_exact_at(&mut words, 0).map_err(|_| Code::INVALID_VALUE)?;
        let (all, _) = words.as_chunks::<8>();
        let [magic, process] = [0, 1].map(|i| u64::from_le_bytes(all[i]));
        if magic != MAGIC {
            return Err(Code::INVALID_VALUE);
        }
        Ok(Pool { theirs: Some(process), ..Pool::new(ordinal, false, 0) })
    }

    /// Maps memory of the pool that it stands for, by a handle of that memory, and returns its address.
    ///
    /// # Errors
    /// It is no pool of another process, the handle is not one of its, or the process is not there any more.
    pub fn open(&self, own: u64, handle: &[u8; HANDLE]) -> Result<u64> {
        let process = self.theirs.ok_or(Code::INVALID_VALUE)?;
        if ipc::name_of(handle)?.process() != process {
            return Err(Code::INVALID_VALUE);
        }
        ipc::open(handle, Use::ForeignPool(own))
    }

    /// Notes an allocation of its.
    ///
    /// # Errors
    /// It would hold too much.
    pub fn note(&self, used: u64, bytes: u64) -> Result {
        let sum = used.checked_add(bytes).ok_or(Code::OUT_OF_MEMORY)?;
        if self.max_bytes != 0 && sum > self.max_bytes {
            return Err(Code::OUT_OF_MEMORY);
        }
        self.high.fetch_max(sum, Ordering::Relaxed);
        Ok(())
    }

    /// An attribute by its number: whether it has 32 bits, and its value.
    ///
    /// # Errors
    /// There is none.
    pub fn attribute(&self, used: u64, number: u32) -> Result<(bool, u64)> {
        Ok(match number {
            1..=3 => (true, self.reuse[number as usize - 1].load(Ordering::Relaxed)),
            4 => (false, self.threshold.load(Ordering::Relaxed)),
            5 | 7 => (false, used),
            6 | 8 => (false, self.high.load(Ordering::Relaxed).max(used)),
            9 => (true, 1),
            10 => (true, 0),
            11 => (true, u64::try_from(self.ordinal).unwrap_or(0)),
            12 => (true, 1),
            13 => (false, self.max_bytes),
            14 => (true, 0),
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    /// Sets an attribute.
    ///
    /// # Errors
    /// There is none, or it cannot be set.
    pub fn set_attribute(&self, number: u32, value: u64) -> Result {
        match number {
            1..=3 if value <= 1 => self.reuse[number as usize - 1].store(value, Ordering::Relaxed),
            4 => self.threshold.store(value, Ordering::Relaxed),
            6 | 8 if value == 0 => self.high.store(0, Ordering::Relaxed),
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    }

    /// Whether an attribute has 32 bits.
    ///
    /// # Errors
    /// There is none.
    pub fn is_narrow(number: u32) -> Result<bool> {
        match number {
            1..=3 | 9..=12 | 14 => Ok(true),
            4..=8 | 13 => Ok(false),
            _ => Err(Code::INVALID_VALUE),
        }
    }
}

/// The handle by which another process gets memory of a pool that may be shared.
///
/// # Errors
/// It is no such memory.
pub fn export_memory(address: u64) -> Result<[u8; HANDLE]> {
    let process = process()?;
    let found = process.memory.find(address).ok_or(Code::INVALID_VALUE)?;
    let Use::Pool(pool) = found.kind else { return Err(Code::INVALID_VALUE) };
    if !process.pools.get(pool).is_some_and(|pool| pool.is_shareable) {
        return Err(Code::INVALID_VALUE);
    }
    ipc::handle_of(address, |kind| kind == Use::Pool(pool))
}

/// Handle of the default pool of a device.
///
/// # Errors
/// There is no room for it.
pub fn default_of(process: &Process, gpu: &Gpu) -> Result<u64> {
    let handle = *gpu.default_pool.get_or_init(|| process.pools.add(Pool::new(gpu.ordinal, true, 0)).unwrap_or(0));
    if handle == 0 { Err(Code::OUT_OF_MEMORY) } else { Ok(handle) }
}

/// Handle of the pool that a device allocates from.
///
/// # Errors
/// As [`default_of`].
pub fn current_of(process: &Process, gpu: &Gpu) -> Result<u64> {
    match gpu.pool() {
        0 => default_of(process, gpu),
        pool => Ok(pool),
    }
}

/// Allocates memory of a pool, in the current context's device or that of the pool.
///
/// # Errors
/// There is no room, or the pool is one of another device.
pub fn allocate(ctx: &crate::context::Ctx, handle: u64, bytes: u64) -> Result<u64> {
    let process = process()?;
    let pool = process.pools.get(handle).ok_or(Code::INVALID_VALUE)?;
    if pool.ordinal != ctx.gpu.ordinal || pool.theirs.is_some() {
        return Err(Code::INVALID_VALUE);
    }
    pool.note(process.memory.of_pool(handle), bytes)?;
    process.memory.allocate(ctx, bytes, Use::Pool(handle))
}
