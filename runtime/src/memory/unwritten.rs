//! Memory of the device that somebody allocated and nobody has written.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use handloom_audit::Ranges;

use super::DeviceMemory;
use crate::lock::lock;

/// The ranges, where somebody asks for them.
#[derive(Default, Debug)]
pub(crate) struct Unwritten {
    ranges: Mutex<Ranges>,
    /// There are some.
    has_some: AtomicBool,
}

impl Unwritten {
    fn change(&self, act: impl FnOnce(&mut Ranges)) {
        let mut ranges = lock(&self.ranges);
        act(&mut ranges);
        self.has_some.store(!ranges.is_empty(), Ordering::Release);
    }

    /// All of them.
    pub(crate) fn all(&self) -> Ranges {
        if self.has_some.load(Ordering::Acquire) { lock(&self.ranges).clone() } else { Ranges::new() }
    }

    /// A range was written, or is gone.
    pub(crate) fn settle(&self, addr: u64, bytes: u64) {
        if self.has_some.load(Ordering::Acquire) {
            self.change(|ranges| ranges.remove(addr, addr.saturating_add(bytes)));
        }
    }
}

impl DeviceMemory {
    /// What lies there was allocated just now, and counts as written by nobody for checks that look for such bytes, until it is written. Host and kernels must
    /// write it by calls and launches of this device alone.
    pub fn mark_unwritten(&self, address: u64, bytes: u64) {
        self.unwritten.change(|ranges| ranges.add(address, address.saturating_add(bytes)));
    }

    /// What lies there may be written by somebody whom nobody sees.
    pub fn forget_unwritten(&self, address: u64, bytes: u64) {
        self.unwritten.settle(address, bytes);
    }
}
