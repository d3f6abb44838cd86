//! Memory that kernels of devices reach though it is not their own: pinned and managed memory of another device, and memory that the program registered.

use crate::code::Result;
use crate::process::{Process, may_wait, process};

/// A range that kernels of all devices may use, as long as this lives.
#[derive(Debug)]
pub struct Reach {
    base: u64,
    bytes: u64,
    is_writable: bool,
}

impl Reach {
    /// Lends a range to the devices that it is no memory of.
    pub fn new(process: &Process, base: u64, bytes: u64, is_writable: bool) -> Reach {
        for gpu in process.gpus.iter().filter(|gpu| !gpu.owns(base)) {
            process.host.lend(gpu.device.memory(), base, bytes, is_writable);
        }
        Reach { base, bytes, is_writable }
    }
}

impl Drop for Reach {
    fn drop(&mut self) {
        let Ok(process) = process() else { return };
        for gpu in process.gpus.iter().filter(|gpu| !gpu.owns(self.base)) {
            gpu.device.memory().take_back(self.base, self.bytes, self.is_writable);
        }
    }
}

/// Waits for all work that may use what kernels of all devices reach: that of all contexts. Whether it fails is told by another call.
///
/// # Errors
/// The thread may not wait.
pub fn settle(process: &Process) -> Result {
    may_wait()?;
    for (_, ctx) in process.contexts.all() {
        let _ = ctx.rt.synchronize();
    }
    Ok(())
}
