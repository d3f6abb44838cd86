//! Memory of the process that is not the device's, as far as kernels may use it: ranges that were lent, also of the memory of another device, and all of
//! it where a device is open.
//!
//! Of an open device the readable mappings of the process are what allocations are elsewhere: an access outside of them traps. They are looked up when an
//! address lies in none that is known, and forgotten when a launch begins, since the process maps and unmaps memory as it likes.
//!
//! Invariants: no mapping that was looked up reaches into a reservation, where devices have their own memory; what was forgotten changes the generation, so that caches of
//! ranges are thrown away as when an allocation ends.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use super::reserve::is_reserved;
use super::space::{AllocKind, Allocation, Elements};

/// Memory of the process.
#[derive(Debug, Default)]
pub(crate) struct HostRanges {
    /// There is something to look up.
    is_used: AtomicBool,
    is_open: AtomicBool,
    state: RwLock<State>,
    generation: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// What was lent. Ranges may overlap, as arrays that are parts of one array do.
    lent: BTreeMap<Range, Lent>,
    /// Mappings as they were when they were looked up, in ascending order.
    seen: Vec<Mapping>,
}

/// First address of a range, its end, and whether it may be written.
type Range = (u64, u64, bool);

/// A range that was lent.
#[derive(Debug, Default)]
struct Lent {
    /// How often.
    count: usize,
    /// What its bytes are, if that is known.
    elements: Option<Elements>,
}

/// Neighbouring mappings of the process with the same access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Mapping {
    start: u64,
    end: u64,
    is_writable: bool,
}

impl HostRanges {
    /// All memory of the process may be used from now on.
    pub(super) fn open(&self) {
        self.is_open.store(true, Ordering::Release);
        self.is_used.store(true, Ordering::Release);
    }

    /// A range may be used from now on, until it was taken back as often as it was lent.
    pub(crate) fn lend(&self, start: u64, bytes: u64, is_writable: bool, elements: Option<Elements>) {
        let range = (start, start.saturating_add(bytes), is_writable);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let lent = state.lent.entry(range).or_default();
        lent.count += 1;
        lent.elements = elements.or_else(|| lent.elements.take());
        self.is_used.store(true, Ordering::Release);
    }

    /// A range that was lent may not be used any more.
    pub(crate) fn take_back(&self, start: u64, bytes: u64, is_writable: bool) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let range = (start, start.saturating_add(bytes), is_writable);
        let Some(found) = state.lent.get_mut(&range) else { return };
        found.count -= 1;
        if found.count == 0 {
            state.lent.remove(&range);
            self.generation.fetch_add(1, Ordering::Release);
        }
    }

    /// The range that was lent whose edge is nearest to an address; one that holds it, if there is one.
    pub(crate) fn nearest(&self, addr: u64) -> Option<Allocation> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let distance = |start: u64, end: u64| if addr < start { start - addr } else { (addr + 1).saturating_sub(end) };
        let near = state.lent.iter().min_by_key(|((start, end, _), _)| distance(*start, *end));
        near.map(|(&(base, end, writable), lent)| Allocation {
            base,
            size: end - base,
            kind: if writable { AllocKind::Host } else { AllocKind::HostForReading },
            writable,
            name: String::new(),
            origin: String::new(),
            elements: lent.elements.clone(),
        })
    }

    /// Changes when a range ends, or may have ended.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Forgets mappings: the process may have changed them.
    pub(super) fn renew(&self) {
        if self.is_open.load(Ordering::Acquire) {
            self.state.write().unwrap_or_else(PoisonError::into_inner).seen.clear();
            self.generation.fetch_add(1, Ordering::Release);
        }
    }

    /// First address, size and kind of the range that holds an address.
    #[inline]
    pub(super) fn extent(&self, addr: u64) -> Option<(u64, u64, AllocKind)> {
        if self.is_used.load(Ordering::Acquire) { self.look_up(addr) } else { None }
    }

    fn look_up(&self, addr: u64) -> Option<(u64, u64, AllocKind)> {
        {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(found) = state.lent_at(addr).or_else(|| holding(&state.seen, addr)) {
                return Some(found);
            }
        }
        if !self.is_open.load(Ordering::Acquire) || is_reserved(addr) {
            return None;
        }
        let seen = mappings(&std::fs::read("/proc/self/maps").ok()?);
        let found = holding(&seen, addr);
        self.state.write().unwrap_or_else(PoisonError::into_inner).seen = seen;
        found
    }
}

impl State {
    /// The range that holds an address and was lent: rather one that may be written.
    fn lent_at(&self, addr: u64) -> Option<(u64, u64, AllocKind)> {
        let before = self.lent.range(..=(addr, u64::MAX, true)).rev();
        let mut holding = before.filter(|((_, end, _), _)| addr < *end).map(|(range, _)| *range).peekable();
        let last = holding.peek().copied();
        let (start, end, is_writable) = holding.find(|(_, _, is_writable)| *is_writable).or(last)?;
        Mapping { start, end, is_writable }.at(addr)
    }
}

fn holding(seen: &[Mapping], addr: u64) -> Option<(u64, u64, AllocKind)> {
    seen[..seen.partition_point(|m| m.start <= addr)].last()?.at(addr)
}

impl Mapping {
    /// What holds an address at or after its start.
    fn at(&self, addr: u64) -> Option<(u64, u64, AllocKind)> {
        let kind = if self.is_writable { AllocKind::Host } else { AllocKind::HostForReading };
        (addr < self.end).then_some((self.start, self.end - self.start, kind))
    }
}

/// The readable mappings in a text of the form of `/proc/self/maps`, but those of the system and of devices.
fn mappings(text: &[u8]) -> Vec<Mapping> {
    let mut all: Vec<Mapping> = Vec::new();
    for line in String::from_utf8_lossy(text).lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(range), Some(access)) = (words.next(), words.next()) else { continue };
        let path = words.nth(3).unwrap_or_default();
        let hex = |t: &str| u64::from_str_radix(t, 16).ok();
        let Some((Some(start), Some(end))) = range.split_once('-').map(|(s, e)| (hex(s), hex(e))) else { continue };
        // Pages of the system and of devices may refuse an access that the mapping allows.
        let is_odd = path.starts_with("[v") || path.starts_with("/dev/") && !path.starts_with("/dev/shm/");
        if !access.starts_with('r') || is_odd || is_reserved(start) {
            continue;
        }
        let is_writable = access.as_bytes().get(1) == Some(&b'w');
        match all.last_mut() {
            Some(last) if last.end == start && last.is_writable == is_writable => last.end = end,
            Some(_) | None => all.push(Mapping { start, end, is_writable }),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_read_and_joined() {
        let text = b"00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/x y\n00651000-00652000 rw-p 0 0:0 0\n00652000-00655000 rw-p 00000000 00:00 0 [heap]\n\
            7f00-8000 ---p 0 0:0 0\n8000-9000 rw-s 0 0:0 0 /dev/dri/card0\n9000-a000 rw-s 0 0:0 0 /dev/shm/x\nb000-c000 r--p 0 0:0 0 [vvar]\nnonsense\n";
        let m = |start, end, is_writable| Mapping { start, end, is_writable };
        let want = [m(0x40_0000, 0x45_2000, false), m(0x65_1000, 0x65_5000, true), m(0x9000, 0xa000, true)];
        assert_eq!(mappings(text), want);
    }

    #[test]
    fn what_is_open_is_found_and_what_is_lent_is_exact() {
        let data = [1_u8; 64];
        let at = data.as_ptr().expose_provenance() as u64;
        let ranges = HostRanges::default();
        assert_eq!(ranges.extent(at), None);
        ranges.lend(at, 16, true, None);
        assert_eq!(ranges.extent(at + 15), Some((at, 16, AllocKind::Host)));
        assert_eq!(ranges.extent(at + 16), None);
        // A part of it that may only be read, twice: what may be written stays so, and the rest of the part is for reading.
        ranges.lend(at + 8, 24, false, None);
        ranges.lend(at + 8, 24, false, None);
        assert_eq!(ranges.extent(at + 12), Some((at, 16, AllocKind::Host)));
        assert_eq!(ranges.extent(at + 31), Some((at + 8, 24, AllocKind::HostForReading)));
        assert_eq!(ranges.nearest(at + 40).map(|a| (a.base, a.size)), Some((at + 8, 24)));
        ranges.take_back(at + 8, 24, false);
        assert!(ranges.extent(at + 31).is_some());
        ranges.take_back(at + 8, 24, false);
        assert!(ranges.extent(at + 31).is_none());
        ranges.take_back(at + 8, 24, false);
        let before = ranges.generation();
        ranges.take_back(at, 16, true);
        assert!(ranges.extent(at).is_none() && ranges.generation() != before);
        ranges.open();
        let (base, size, kind) = ranges.extent(at).unwrap();
        assert!(base <= at && at + 64 <= base + size && kind == AllocKind::Host);
        assert_eq!(ranges.extent(at + 63), Some((base, size, kind)));
        let text: &'static str = "constant";
        assert_eq!(ranges.extent(text.as_ptr().expose_provenance() as u64).unwrap().2, AllocKind::HostForReading);
        assert_eq!(ranges.extent(8), None);
    }
}
