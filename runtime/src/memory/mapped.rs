//! Memory that is mapped to addresses: files in memory, whose pages several addresses and several processes can have.
//!
//! A range of addresses is reserved first; pages of a file are put there, and then it is said what can be accessed. All reserved addresses are open, with
//! pages of zeros where nothing is mapped, so that whatever passes a check by range finds a page.
//!
//! Invariant: a file that is mapped cannot shrink; its seals say so.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};

use super::access::read_words;
use super::linear::DeviceMemory;
use super::reserve::{PAGE, Window, as_len};
use super::space::Budget;
use crate::error::NoRoom;

/// Bytes that are looked at and moved at a time.
const CHUNK: usize = 64 << 10;

/// Pages that lie at no address of their own.
#[derive(Debug)]
pub struct Backing {
    file: File,
    bytes: u64,
    /// What it was taken from, if it belongs to a device of this process.
    budget: Option<Arc<Budget>>,
}

/// A part of reserved addresses that can be accessed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// First address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
    /// Kernels may write it.
    pub writable: bool,
}

impl Backing {
    fn new(bytes: u64, budget: Option<Arc<Budget>>) -> Option<Backing> {
        let file = rustix::fs::memfd_create("handloom", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).ok()?;
        rustix::fs::ftruncate(&file, bytes).ok()?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).ok()?;
        Some(Backing { file: File::from(file), bytes, budget })
    }

    /// Memory of the host, which counts for no device.
    ///
    /// # Errors
    /// The host refuses it.
    pub fn of_host(bytes: u64) -> Result<Backing, NoRoom> {
        Backing::new(bytes, None).ok_or(NoRoom { bytes })
    }

    /// Pages that another process made, or this one. `None` if it is no file in memory, or one that could shrink.
    pub fn adopt(file: OwnedFd) -> Option<Backing> {
        let seals = rustix::fs::fcntl_get_seals(&file).ok()?;
        let bytes = u64::try_from(rustix::fs::fstat(&file).ok()?.st_size).ok()?;
        let fits = seals.contains(SealFlags::SHRINK) && bytes.is_multiple_of(PAGE) && bytes > 0;
        fits.then(|| Backing { file: File::from(file), bytes, budget: None })
    }

    /// Bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The file, for other processes.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// A number that no other such file of the host has.
    pub fn id(&self) -> u64 {
        rustix::fs::fstat(&self.file).map_or(0, |s| s.st_ino)
    }

    /// Fills it with a byte.
    pub fn fill(&self, value: u8) {
        let chunk = vec![value; CHUNK];
        let mut file = &self.file;
        let mut left = self.bytes;
        while left > 0 {
            let n = as_len(left.min(CHUNK as u64));
            if file.write_all(&chunk[..n]).is_err() {
                return;
            }
            left -= n as u64;
        }
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.give(self.bytes);
        }
    }
}

impl DeviceMemory {
    /// Memory of this device that lies nowhere yet: a number of whole pages, zero-filled.
    ///
    /// # Errors
    /// There is no room.
    pub fn backing(&self, bytes: u64) -> Result<Backing, NoRoom> {
        self.budget.take(bytes)?;
        let made = Backing::new(bytes, Some(Arc::clone(&self.budget)));
        made.ok_or(NoRoom { bytes }).inspect_err(|_| self.budget.give(bytes))
    }

    /// Reserves addresses, a number of whole pages.
    ///
    /// # Errors
    /// There are not so many left.
    pub fn reserve(&self, bytes: u64, align: u64) -> Result<u64, NoRoom> {
        self.wide.reserve(bytes, align.max(PAGE))
    }

    /// Gives reserved addresses back. What is mapped there is unmapped before. Says whether they were reserved.
    pub fn give_reserved(&self, base: u64) -> bool {
        self.wide.give_reserved(base)
    }

    /// Puts pages at reserved addresses, from `offset` of the backing on. All are multiples of a page. They can be accessed when
    /// [`expose`](Self::expose) says so. Says whether the host did it.
    pub fn map(&self, at: u64, bytes: u64, backing: &Backing, offset: u64) -> bool {
        let fits = offset.checked_add(bytes).is_some_and(|end| end <= backing.bytes);
        let end = at.checked_add(bytes);
        fits && end.is_some_and(|end| self.wide.place(at, end, Some((backing, offset))))
    }

    /// Takes pages from reserved addresses, which cannot be accessed any more. Says whether the host did it.
    pub fn unmap(&self, at: u64, bytes: u64) -> bool {
        at.checked_add(bytes).is_some_and(|end| self.wide.place(at, end, None))
    }

    /// Says which parts of reserved addresses can be accessed, beginning with their first one; all others cannot any more.
    pub fn expose(&self, reserved: u64, parts: &[Part]) {
        self.wide.expose(reserved, parts);
    }

    /// Makes an allocation one that other processes can map: the file, where in it the allocation begins, and its size. No kernel of this device runs
    /// meanwhile: what it writes could get lost. Whole pages are shared, with what else lies in them.
    pub fn share(&self, base: u64) -> Option<(Arc<Backing>, u64, u64)> {
        self.of(base).filter(|space| std::ptr::eq(*space, &raw const self.wide))?.share(base)
    }
}

/// Pages of the heap that lie in a file for other processes.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// As large as the heap: a page of the heap is the page of the file at the same distance from its start.
    file: Option<Arc<Backing>>,
    heap: u64,
    /// Start to end of the pages that lie there.
    pages: BTreeMap<u64, u64>,
}

impl Shared {
    /// Moves the pages of a range there.
    pub(crate) fn share(&mut self, window: &Window, heap: (u64, u64), start: u64, end: u64) -> Option<Arc<Backing>> {
        if self.file.is_none() {
            self.file = Some(Arc::new(Backing::new(heap.1 - heap.0, None)?));
            self.heap = heap.0;
        }
        let file = Arc::clone(self.file.as_ref()?);
        let mut at = start / PAGE * PAGE;
        let end = end.next_multiple_of(PAGE);
        while at < end {
            let before = self.pages.range(..=at).next_back();
            if let Some((_, &stop)) = before.filter(|(_, stop)| at < **stop) {
                at = stop;
                continue;
            }
            let stop = self.pages.range(at..end).next().map_or(end, |(next, _)| *next);
            Self::copy_out(&file, at, stop, self.heap).ok()?;
            if !window.map(at, stop, file.file(), at - self.heap) {
                return None;
            }
            self.pages.insert(at, stop);
            at = stop;
        }
        Some(file)
    }

    /// Writes pages to their place in the file, but for those that hold nothing but zeros.
    fn copy_out(file: &Backing, start: u64, end: u64, heap: u64) -> std::io::Result<()> {
        use std::os::unix::fs::FileExt;
        let mut chunk = vec![0; CHUNK];
        let mut at = start;
        while at < end {
            let part = &mut chunk[..as_len((end - at).min(CHUNK as u64))];
            let n = part.len() as u64;
            // SAFETY: whole pages of the open part of a heap.
            unsafe { read_words(at, part, n) };
            for (i, page) in part.chunks(as_len(PAGE)).enumerate() {
                if page.iter().any(|b| *b != 0) {
                    file.file.write_all_at(page, at - heap + i as u64 * PAGE)?;
                }
            }
            at += n;
        }
        Ok(())
    }

    /// Puts fresh pages in place of those of a range that lie there as a whole: nobody uses them any more.
    pub(crate) fn take_back(&mut self, window: &Window, start: u64, end: u64) {
        let Some(file) = &self.file else { return };
        let (first, last) = (start.next_multiple_of(PAGE), end / PAGE * PAGE);
        let found: Vec<(u64, u64)> =
            self.pages.range(..last).map(|(s, e)| (*s, *e)).filter(|(_, e)| *e > first).collect();
        for (s, e) in found {
            let (from, to) = (s.max(first), e.min(last));
            if from >= to || !window.unmap(from, to) {
                continue;
            }
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = rustix::fs::fallocate(file.file(), flags, from - self.heap, to - from);
            self.pages.remove(&s);
            if s < from {
                self.pages.insert(s, from);
            }
            if to < e {
                self.pages.insert(to, e);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Word;

    fn memory() -> DeviceMemory {
        DeviceMemory::claim().unwrap()
    }

    #[test]
    fn pages_have_several_addresses() {
        let m = memory();
        m.set_limit(1 << 20);
        let backing = m.backing(4 * PAGE).unwrap();
        assert_eq!(m.room().0, (1 << 20) - 4 * PAGE);
        assert!(m.backing(1 << 20).is_err());
        let base = m.reserve(16 * PAGE, 1 << 21).unwrap();
        assert!(base.is_multiple_of(1 << 21) && m.check(base, 1).is_err());
        assert!(m.map(base, 4 * PAGE, &backing, 0) && m.map(base + 4 * PAGE, 4 * PAGE, &backing, 0));
        assert!(!m.map(base, 5 * PAGE, &backing, 0) && !m.map(base + (1 << 30), PAGE, &backing, 0));
        m.expose(base, &[Part { base, size: 8 * PAGE, writable: true }]);
        // A copy over the border of the two.
        m.write(base + 4 * PAGE - 2, &[1, 2, 3, 4]).unwrap();
        let mut back = [0; 2];
        m.read(base, &mut back).unwrap();
        assert_eq!(back, [3, 4]);
        m.expose(base, &[Part { base: base + 4 * PAGE, size: 4 * PAGE, writable: false }]);
        assert!(m.check(base, 1).is_err() && m.check(base + 4 * PAGE, 4 * PAGE).is_ok());
        m.expose(base, &[]);
        assert!(m.unmap(base, 8 * PAGE) && m.give_reserved(base) && !m.give_reserved(base));
        drop(backing);
        assert_eq!(m.room().0, 1 << 20);
    }

    #[test]
    fn allocations_are_shared_where_they_lie() {
        let m = memory();
        let all: Vec<u64> = (0..3).map(|_| m.allocate(3000).unwrap()).collect();
        for (i, a) in all.iter().enumerate() {
            m.fill(*a, Word::B8(i as u8 + 1), 3000).unwrap();
        }
        let read = |file: &Backing, offset: u64| {
            use std::os::unix::fs::FileExt;
            let mut bytes = vec![0; 3000];
            file.file.read_exact_at(&mut bytes, offset).unwrap();
            bytes
        };
        // Neighbours lie in the same pages.
        let (file, at, size) = m.share(all[1]).unwrap();
        assert_eq!((read(&file, at), size), (vec![2; 3000], 3000));
        let (other, first, _) = m.share(all[0]).unwrap();
        assert_eq!((other.id(), read(&other, first)), (file.id(), vec![1; 3000]));
        m.fill(all[1], Word::B8(9), 3000).unwrap();
        assert_eq!((read(&file, at), m.share(all[1]).unwrap().1), (vec![9; 3000], at));
        m.free(all[1]).unwrap();
        assert!(m.share(all[1]).is_none());
        assert_eq!((read(&file, at), read(&file, first)), (vec![0; 3000], vec![1; 3000]));
        // Another process would map the file.
        let adopted = Backing::adopt(file.file().try_clone_to_owned().unwrap()).unwrap();
        let base = m.reserve(2 * PAGE, 1).unwrap();
        assert!(m.map(base, 2 * PAGE, &adopted, first / PAGE * PAGE));
        let seen = base + first % PAGE;
        m.expose(base, &[Part { base: seen, size: 3000, writable: true }]);
        m.fill(seen, Word::B8(7), 3000).unwrap();
        let mut back = vec![0; 3000];
        m.read(all[0], &mut back).unwrap();
        assert_eq!(back, vec![7; 3000]);
        assert!(Backing::adopt(File::open("/dev/null").unwrap().into()).is_none());
    }
}
