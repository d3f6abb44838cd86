//! All memory of a device by address: allocations that nobody owns, copies and fills, and what lies where.
//!
//! A device address is a number that a program may compute, keep, or have from a kernel, so each call looks it up and each may be refused with a
//! [`MemoryError`]. Owned memory ([`DeviceBuffer`](crate::DeviceBuffer)), variables of modules and what is allocated here come from the same
//! allocator and can all be copied and filled by address; only what was allocated here is freed by address.
//!
//! Invariants: a range is touched only while the allocation that holds all of it has not ended; no byte is touched when the range as a whole is
//! refused; of a range of no bytes the address does not matter. Copies and fills may run beside kernels and beside each other: aligned words
//! of 8 bytes are then the old or the new ones, never a mixture.

use std::fmt;
use std::sync::{Arc, OnceLock};

use handloom_diag::DriverError;

use super::access::{fill_words, read_words, write_words};
use super::blank::Blank;
use super::host::HostRanges;
use super::reserve::as_len;
use super::space::{AllocKind, Allocation, Budget, Space, SpaceKind};
use crate::error::{ErrorKind, NoRoom};

/// Bytes that are copied or filled between two looks whether the allocation is still there. Who wants to allocate waits that long.
const STEP: u64 = 1 << 20;

/// Bytes that lie on the host for a moment on their way from one place of a device to another.
const HOP: usize = 16 << 10;

/// All memory of a device: 64-bit addresses, and those below 4 GiB once a program needs them.
#[derive(Debug)]
pub struct DeviceMemory {
    pub(crate) wide: Space,
    low: OnceLock<Option<Space>>,
    host: HostRanges,
    pub(super) budget: Arc<Budget>,
    blank: Blank,
}

/// What lies at an address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// An allocation.
    Live(Allocation),
    /// Nothing now; this allocation has ended, and no other took its place.
    Freed(Allocation),
    /// Nothing, as far as is known.
    Nothing,
}

/// Some bytes at regular distances: rows of a pitched array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rows {
    /// The first byte of the first row.
    pub address: u64,
    /// Bytes from a row to the next.
    pub pitch: u64,
}

/// What a fill repeats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    /// A byte.
    B8(u8),
    /// Two bytes, at a multiple of two.
    B16(u16),
    /// Four bytes, at a multiple of four.
    B32(u32),
}

impl Word {
    /// The same repeated in 8 bytes, and its size in bytes.
    fn pattern(self) -> (u64, u64) {
        match self {
            Word::B8(v) => (u64::from(v) * 0x0101_0101_0101_0101, 1),
            Word::B16(v) => (u64::from(v) * 0x0001_0001_0001_0001, 2),
            Word::B32(v) => (u64::from(v) * 0x0000_0001_0000_0001, 4),
        }
    }
}

/// Why memory was not allocated, freed, copied or filled.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MemoryError {
    /// The range does not begin in an allocation of the device.
    Nothing {
        /// First byte.
        address: u64,
        /// Bytes of the range.
        bytes: u64,
    },
    /// The allocation in which the range begins has ended.
    Freed {
        /// First byte.
        address: u64,
        /// What was there.
        allocation: Box<Allocation>,
    },
    /// The range goes on past the end of the allocation in which it begins.
    PastEnd {
        /// First byte.
        address: u64,
        /// Bytes of the range.
        bytes: u64,
        /// Where it begins.
        allocation: Box<Allocation>,
    },
    /// What is to be freed is not the first byte of an allocation.
    NotBase {
        /// The address.
        address: u64,
        /// What lies there.
        allocation: Box<Allocation>,
    },
    /// What lies there is not the host's to free, or to copy.
    NotYours {
        /// What lies there.
        allocation: Box<Allocation>,
    },
    /// A free of memory of another kind.
    OtherCall {
        /// The address.
        address: u64,
        /// The allocation that it begins.
        allocation: Box<Allocation>,
        /// The calls that free it.
        by: &'static str,
    },
    /// The address or the pitch of a fill is no multiple of the size of its elements.
    Misaligned {
        /// The address or pitch.
        value: u64,
        /// Bytes of an element.
        element: u64,
    },
    /// Rows overlap: they are longer than the distance between them.
    Pitch {
        /// Bytes from a row to the next.
        pitch: u64,
        /// Bytes of a row.
        width: u64,
    },
    /// An allocation of no bytes.
    Empty,
    /// There is no room.
    NoRoom(NoRoom),
}

impl MemoryError {
    /// What sort of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            MemoryError::NoRoom(_) => ErrorKind::OutOfMemory,
            MemoryError::Nothing { .. }
            | MemoryError::Freed { .. }
            | MemoryError::PastEnd { .. }
            | MemoryError::NotBase { .. }
            | MemoryError::NotYours { .. }
            | MemoryError::OtherCall { .. }
            | MemoryError::Misaligned { .. }
            | MemoryError::Pitch { .. }
            | MemoryError::Empty => ErrorKind::InvalidValue,
        }
    }
}

impl From<MemoryError> for DriverError {
    fn from(e: MemoryError) -> DriverError {
        e.kind().into()
    }
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryError::Nothing { address, bytes: 0 } => {
                write!(f, "no allocation of the device holds {address:#x}")
            }
            MemoryError::Nothing { address, bytes } => {
                write!(f, "{bytes} bytes at {address:#x}: no allocation of the device holds that address")
            }
            MemoryError::Freed { address, allocation: a } => {
                write!(f, "{address:#x} lies in an allocation of {} bytes that was freed", a.size)
            }
            MemoryError::PastEnd { address, bytes, allocation: a } => {
                let left = a.size - (address - a.base);
                write!(f, "{bytes} bytes at {address:#x}: the allocation of {} bytes ends after {left}", a.size)
            }
            MemoryError::NotBase { address, allocation: a } => {
                write!(f, "{address:#x} is byte {} of an allocation: its first address frees it", address - a.base)
            }
            MemoryError::OtherCall { address, by, .. } => write!(f, "{address:#x} is memory that {by} frees"),
            MemoryError::NotYours { allocation: a } => {
                let what = match a.kind {
                    AllocKind::Buffer => "a buffer that its owner frees",
                    AllocKind::Global | AllocKind::Const => "a variable, which lives as long as its module",
                    AllocKind::Malloc => "memory that a kernel allocated, which only kernels use",
                    AllocKind::Mapped | AllocKind::MappedForReading => "mapped memory, which is unmapped",
                    AllocKind::Host | AllocKind::HostForReading => "memory of the process",
                    AllocKind::Linear | AllocKind::Param | AllocKind::Shared | AllocKind::Local => "not the host's",
                };
                write!(f, "{:#x} is {what}", a.base)
            }
            MemoryError::Misaligned { value, element } => {
                write!(f, "{value:#x} is no multiple of {element}, the bytes of an element")
            }
            MemoryError::Pitch { pitch, width } => write!(f, "rows of {width} bytes at a distance of {pitch}"),
            MemoryError::Empty => f.write_str("an allocation of 0 bytes: at least 1 is needed"),
            MemoryError::NoRoom(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for MemoryError {}

impl From<NoRoom> for MemoryError {
    fn from(e: NoRoom) -> MemoryError {
        MemoryError::NoRoom(e)
    }
}

impl DeviceMemory {
    /// Claims the wide window.
    pub(crate) fn claim() -> Option<DeviceMemory> {
        let budget = Arc::default();
        let wide = Space::claim(SpaceKind::Wide, Arc::clone(&budget))?;
        Some(DeviceMemory { wide, low: OnceLock::new(), host: HostRanges::default(), budget, blank: Blank::default() })
    }

    /// The space of a kind; the low one is claimed at the first use.
    pub(crate) fn space(&self, kind: SpaceKind) -> Option<&Space> {
        match kind {
            SpaceKind::Wide => Some(&self.wide),
            SpaceKind::Low => self.low.get_or_init(|| Space::claim(SpaceKind::Low, Arc::clone(&self.budget))).as_ref(),
        }
    }

    /// The space that an address belongs to, if any.
    pub(crate) fn of(&self, addr: u64) -> Option<&Space> {
        if self.wide.contains(addr) {
            return Some(&self.wide);
        }
        self.low.get().and_then(Option::as_ref).filter(|s| s.contains(addr))
    }

    /// Changes when an allocation ends.
    pub(crate) fn generation(&self) -> u64 {
        let low = self.low.get().and_then(Option::as_ref).map_or(0, Space::generation);
        self.wide.generation() + low + self.host.generation()
    }

    /// Base, size and kind of what holds an address, if kernels may use it.
    pub(crate) fn extent(&self, addr: u64) -> Option<(u64, u64, AllocKind)> {
        match self.of(addr) {
            Some(space) => space.extent(addr),
            None => self.host.extent(addr),
        }
    }

    /// Follows from now on which bytes nobody has written, of allocations of which that is [said](Self::begins_blank): checked launches that look for it tell where these decide
    /// something.
    pub fn follow_blank(&self) {
        self.blank.follow();
    }

    /// Nobody has written a range yet, if that is followed. Copies, fills and launches that write it are seen; who lets others write it says so
    /// ([`settle_blank`](Self::settle_blank)).
    pub fn begins_blank(&self, address: u64, bytes: u64) {
        self.blank.begin(address, bytes);
    }

    /// A range counts as written from now on.
    pub fn settle_blank(&self, address: u64, bytes: u64) {
        self.blank.settle(address, bytes);
    }

    /// Whether nobody has written any byte of a range, as far as that is followed.
    pub fn is_blank(&self, address: u64, bytes: u64) -> bool {
        let unwritten = self.blank.within(address, address.saturating_add(bytes));
        bytes > 0 && unwritten.iter().map(|(first, end)| end - first).sum::<u64>() == bytes
    }

    /// What nobody has written.
    pub(crate) fn blank(&self) -> &Blank {
        &self.blank
    }

    /// A launch begins: what is known of memory of the process may be out of date.
    pub(crate) fn renew_host(&self) {
        self.host.renew();
    }

    /// Lets kernels use all memory of the process, at the addresses that the process uses. An access outside of what is mapped when a launch first needs it
    /// traps.
    ///
    /// # Safety
    /// Launches are no longer contained in the memory of the device: whoever launches a kernel from now on says that it writes nothing of the process
    /// that others rely on, and that nothing that it uses is unmapped while it runs.
    pub unsafe fn open_to_process(&self) {
        self.host.open();
    }

    /// Lets kernels use a range of the process, at the addresses that the process uses, until it is taken back. It may lie in the memory of another device.
    ///
    /// # Safety
    /// The range is readable, and writable if that is said, and stays so until [`take_back`](Self::take_back) and the end of the launches that ran then; nothing but raw
    /// accesses and atomics is done there meanwhile.
    pub unsafe fn lend(&self, address: u64, bytes: u64, is_writable: bool) {
        self.host.lend(address, bytes, is_writable, None);
    }

    /// Takes a range back that was lent.
    pub fn take_back(&self, address: u64, bytes: u64, is_writable: bool) {
        self.host.take_back(address, bytes, is_writable);
    }

    /// The ranges of the process.
    pub(crate) fn host(&self) -> &HostRanges {
        &self.host
    }

    /// The allocation that holds an address: one of the device, or memory of the process that was lent.
    pub(crate) fn holding(&self, addr: u64) -> Option<Allocation> {
        match self.of(addr) {
            Some(space) => space.find(addr),
            None => self.host.nearest(addr).filter(|a| addr.wrapping_sub(a.base) < a.size),
        }
    }

    /// Whether kernels may read an address that is not the device's.
    pub fn reaches(&self, address: u64) -> bool {
        !self.owns(address) && self.host.extent(address).is_some()
    }

    /// Zero-filled memory of a kind.
    pub(crate) fn take(&self, kind: AllocKind, space: SpaceKind, bytes: u64) -> Result<u64, NoRoom> {
        self.space(space).ok_or(NoRoom { bytes })?.allocate(kind, bytes, 1, "", "")
    }

    /// Allocates zero-filled memory for programs of 64-bit addresses; returns its address, a multiple of 512.
    ///
    /// # Errors
    /// No bytes are asked for, or there is no room.
    pub fn allocate(&self, bytes: u64) -> Result<u64, MemoryError> {
        self.allocate_in(SpaceKind::Wide, bytes)
    }

    /// The same, at a multiple of `align`, which is a power of two.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
    pub fn allocate_aligned(&self, bytes: u64, align: u64) -> Result<u64, MemoryError> {
        if bytes == 0 {
            return Err(MemoryError::Empty);
        }
        Ok(self.wide.allocate(AllocKind::Linear, bytes, align, "", "")?)
    }

    /// The same below 4 GiB, for programs of any address size.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
    pub fn allocate_low(&self, bytes: u64) -> Result<u64, MemoryError> {
        self.allocate_in(SpaceKind::Low, bytes)
    }

    fn allocate_in(&self, space: SpaceKind, bytes: u64) -> Result<u64, MemoryError> {
        if bytes == 0 {
            return Err(MemoryError::Empty);
        }
        Ok(self.take(AllocKind::Linear, space, bytes)?)
    }

    /// Frees what [`allocate`](Self::allocate) returned. Its address is not handed out again at once.
    ///
    /// # Errors
    /// It is not the address of such an allocation, or was freed already.
    pub fn free(&self, address: u64) -> Result<(), MemoryError> {
        if let Some(size) = self.of(address).and_then(|space| space.free(address, Some(AllocKind::Linear))) {
            self.blank.settle(address, size);
            return Ok(());
        }
        Err(match self.find(address) {
            Found::Live(a) => {
                let allocation = Box::new(a);
                match allocation.kind {
                    AllocKind::Linear => MemoryError::NotBase { address, allocation },
                    _ => MemoryError::NotYours { allocation },
                }
            }
            Found::Freed(a) => MemoryError::Freed { address, allocation: Box::new(a) },
            Found::Nothing => MemoryError::Nothing { address, bytes: 0 },
        })
    }

    /// Whether an address is one of this device's, whatever lies there.
    pub fn owns(&self, address: u64) -> bool {
        self.of(address).is_some()
    }

    /// What lies at an address.
    pub fn find(&self, address: u64) -> Found {
        let Some(space) = self.of(address) else { return Found::Nothing };
        match space.find(address) {
            Some(a) => Found::Live(a),
            None => space.find_freed(address).map_or(Found::Nothing, Found::Freed),
        }
    }

    /// First address and size in bytes of the allocation that holds an address.
    pub fn range_of(&self, address: u64) -> Option<(u64, u64)> {
        let (base, size, _) = self.of(address)?.extent(address)?;
        Some((base, size))
    }

    /// The allocation whose edge is nearest to an address in the memory of this device.
    pub fn nearest(&self, address: u64) -> Option<Allocation> {
        self.of(address)?.nearest(address)
    }

    /// Bytes that all allocations of the device together may take; without a limit, as many as there are addresses.
    pub fn set_limit(&self, bytes: u64) {
        self.budget.set_limit(bytes);
    }

    /// Bytes that are free and bytes in all, by the limit.
    pub fn room(&self) -> (u64, u64) {
        let (limit, used) = self.budget.get();
        let total = limit.min(self.wide.heap_bytes());
        (total.saturating_sub(used), total)
    }

    /// Copies from the device to the host.
    ///
    /// # Errors
    /// The range does not lie in one allocation.
    pub fn read(&self, address: u64, to: &mut [u8]) -> Result<(), MemoryError> {
        let bytes = to.len() as u64;
        self.in_steps(address, bytes, |at, n| {
            let from = as_len(at - address);
            // SAFETY: the range lies in an allocation that does not end meanwhile, so it is open.
            unsafe { read_words(at, &mut to[from..from + as_len(n)], bytes) }
        })
    }

    /// Copies from the host to the device.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        self.blank.settle(address, from.len() as u64);
        self.in_steps(address, from.len() as u64, |at, n| {
            let start = as_len(at - address);
            // SAFETY: as in `read`; kernels hold no reference to it.
            unsafe { write_words(at, &from[start..start + as_len(n)], from.len() as u64) }
        })
    }

    /// Copies inside the device.
    // Choice: the driver API does not say what becomes of ranges that overlap; the result is as if all was read before anything is written.
    ///
    /// # Errors
    /// One of the ranges does not lie in one allocation.
    pub fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), MemoryError> {
        self.check(to, bytes)?;
        self.check(from, bytes)?;
        let unwritten = self.blank.within(from, from + bytes);
        let mut hop = [0; HOP];
        let mut done = 0;
        while done < bytes {
            let n = (bytes - done).min(HOP as u64);
            // From the end that the other range does not begin in.
            let at = if to <= from { done } else { bytes - done - n };
            let part = &mut hop[..as_len(n)];
            self.read(from + at, part)?;
            self.write(to + at, part)?;
            done += n;
        }
        self.blank.copied(to, &unwritten, from);
        Ok(())
    }

    /// Sets `count` words.
    ///
    /// # Errors
    /// The range does not lie in one allocation, or is not aligned to its words.
    pub fn fill(&self, address: u64, word: Word, count: u64) -> Result<(), MemoryError> {
        let (pattern, element) = word.pattern();
        if !address.is_multiple_of(element) {
            return Err(MemoryError::Misaligned { value: address, element });
        }
        // More bytes than there are numbers are too many for any allocation.
        let bytes = count.saturating_mul(element);
        self.blank.settle(address, bytes);
        self.in_steps(address, bytes, |at, n| {
            // SAFETY: as in `write`.
            unsafe { fill_words(at, n, pattern) }
        })
    }

    /// Sets the words of `height` rows of `width` words each.
    ///
    /// # Errors
    /// The rows do not lie in one allocation, overlap, or are not aligned to their words.
    pub fn fill_rows(&self, rows: Rows, word: Word, width: u64, height: u64) -> Result<(), MemoryError> {
        let (_, element) = word.pattern();
        if height > 1 && !rows.pitch.is_multiple_of(element) {
            return Err(MemoryError::Misaligned { value: rows.pitch, element });
        }
        let height = self.check_rows(rows, width.saturating_mul(element), height)?;
        (0..height).try_for_each(|row| self.fill(rows.address + row * rows.pitch, word, width))
    }

    /// Copies `height` rows of `width` bytes inside the device, one after the other.
    ///
    /// # Errors
    /// The rows do not lie in one allocation, or overlap each other.
    pub fn copy_rows(&self, to: Rows, from: Rows, width: u64, height: u64) -> Result<(), MemoryError> {
        self.check_rows(to, width, height)?;
        let height = self.check_rows(from, width, height)?;
        (0..height).try_for_each(|row| self.copy(to.address + row * to.pitch, from.address + row * from.pitch, width))
    }

    /// Whether rows lie in one allocation; returns how many of them have bytes.
    pub(crate) fn check_rows(&self, rows: Rows, width: u64, height: u64) -> Result<u64, MemoryError> {
        if width == 0 || height == 0 {
            return Ok(0);
        }
        if height > 1 && rows.pitch < width {
            return Err(MemoryError::Pitch { pitch: rows.pitch, width });
        }
        self.check(rows.address, (height - 1).saturating_mul(rows.pitch).saturating_add(width))?;
        Ok(height)
    }

    /// Whether a range lies in one allocation that the host may touch.
    ///
    /// # Errors
    /// It does not.
    pub fn check(&self, address: u64, bytes: u64) -> Result<(), MemoryError> {
        match self.of(address) {
            _ if bytes == 0 => Ok(()),
            Some(space) if space.with(address, |a| a.is_some_and(|a| holds(a, address, bytes))) => Ok(()),
            Some(_) | None => Err(self.refusal(address, bytes)),
        }
    }

    /// Works on a range in steps, each while its allocation is sure to be there.
    fn in_steps(&self, address: u64, bytes: u64, mut work: impl FnMut(u64, u64)) -> Result<(), MemoryError> {
        self.check(address, bytes)?;
        let mut done = 0;
        while done < bytes {
            let (at, n) = (address + done, STEP.min(bytes - done));
            let step = |a: Option<&Allocation>| a.is_some_and(|a| holds(a, at, n)).then(|| work(at, n)).is_some();
            if !self.of(at).is_some_and(|space| space.with(at, step)) {
                return Err(self.refusal(at, n));
            }
            done += n;
        }
        Ok(())
    }

    /// Why a range was refused.
    fn refusal(&self, address: u64, bytes: u64) -> MemoryError {
        match self.find(address) {
            Found::Live(a) if a.kind == AllocKind::Malloc => MemoryError::NotYours { allocation: Box::new(a) },
            Found::Live(a) => MemoryError::PastEnd { address, bytes, allocation: Box::new(a) },
            Found::Freed(a) => MemoryError::Freed { address, allocation: Box::new(a) },
            Found::Nothing => MemoryError::Nothing { address, bytes },
        }
    }
}

/// Whether an allocation that holds `address` holds all of a range, and the host may touch it.
// Choice: memory that a kernel allocated is not the host's, as the CUDA programming guide has it.
fn holds(a: &Allocation, address: u64, bytes: u64) -> bool {
    a.kind != AllocKind::Malloc && bytes <= a.size - (address - a.base)
}
