//! What a cta sees of memory.

use std::sync::Arc;

use handloom_audit::Before;
use handloom_ir::simt::{DeviceCall, SymId};
use handloom_ir::types::StateSpace;

use crate::tensor::memory::Tensors;

/// Why an access is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Denied {
    /// Some byte lies outside every allocation.
    OutOfBounds,
    /// A write to bytes that kernels may only read.
    WriteProtected,
}

/// A call of CUDA's device runtime, as who runs launches sees it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Which function.
    pub call: DeviceCall,
    /// Stream 0 is that of the thread.
    pub per_thread: bool,
    /// The arguments in order; three of a `dim3`.
    pub args: Vec<u64>,
    /// Linear number of the calling thread in its cta.
    pub thread: u32,
    /// What comes before what the call begins, if somebody looks at races.
    pub before: Option<Before>,
}

/// The answer to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// What the function returns.
    pub result: u64,
    /// A number to be written: where, how many bytes, which.
    pub out: Option<(u64, u32, u64)>,
    /// Memory that it made: address and bytes.
    pub fresh: Option<(u64, u64)>,
}

impl Answer {
    /// A result alone.
    pub const fn of(result: u64) -> Answer {
        Answer { result, out: None, fresh: None }
    }
}

/// Memory by generic address, and the services of a device that a kernel can ask for.
///
/// The interpreter calls [`check`](Memory::check) before each [`read`](Memory::read) and [`write`](Memory::write); a
/// range that passed is not checked again. A strong access of a word of four bytes may have had its first byte checked alone. Accesses that name `.shared` or `.local` are checked against the windows of
/// the cta and the thread instead; a generic address into them comes here, and so `check` must know the ends of both.
pub trait Memory {
    /// Whether all of `addr .. addr + bytes` may be read, or written.
    ///
    /// # Errors
    /// Says why not.
    fn check(&self, addr: u64, bytes: u32, write: bool) -> Result<(), Denied>;

    /// Reads 1, 2, 4 or 8 bytes, little-endian, zero-extended.
    fn read(&mut self, addr: u64, bytes: u32) -> u64;

    /// Writes the low 1, 2, 4 or 8 bytes of `value`, little-endian.
    fn write(&mut self, addr: u64, bytes: u32, value: u64);

    /// The state space that a generic address falls into: `Shared`, `Local`, `Const` or `ParamEntry` inside their
    /// windows, else `Global`, whether or not anything is allocated there.
    fn space(&self, addr: u64) -> StateSpace;

    /// Generic address of a variable of the module in `.global` or `.const`.
    fn symbol(&self, sym: SymId) -> u64;

    /// Device-side `malloc`: an address aligned to 16, or 0 if there is no room.
    fn allocate(&mut self, bytes: u64) -> u64;

    /// Device-side `free` of an address that is not null.
    ///
    /// # Errors
    /// The address was not given by [`allocate`](Memory::allocate), or is free already.
    fn release(&mut self, addr: u64) -> Result<(), Denied>;

    /// A function of CUDA's device runtime.
    fn device_call(&mut self, asked: &Asked) -> Answer;

    /// Text printed by the kernel.
    fn output(&mut self, text: &[u8]);

    /// The tensor memory of the device.
    fn tensors(&self) -> Arc<Tensors>;

    /// `%globaltimer`: nanoseconds, never going back.
    fn time_ns(&mut self) -> u64;
}
