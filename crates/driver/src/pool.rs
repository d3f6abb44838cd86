//! Memory pools: where stream-ordered allocations are counted.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::code::{Code, Result};
use crate::gpu::Gpu;
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
}

impl Pool {
    /// A pool of a device that may hold so many bytes; 0 for no limit of its own.
    pub fn new(ordinal: i32, is_default: bool, max_bytes: u64) -> Pool {
        let reuse = [const { AtomicU64::new(1) }; 3];
        Pool { ordinal, is_default, reuse, threshold: AtomicU64::new(0), high: AtomicU64::new(0), max_bytes }
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
    if pool.ordinal != ctx.gpu.ordinal {
        return Err(Code::INVALID_VALUE);
    }
    pool.note(process.memory.of_pool(handle), bytes)?;
    process.memory.allocate(ctx, bytes, crate::memory::Use::Pool(handle))
}
