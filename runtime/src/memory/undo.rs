//! What memory held before a launch wrote it, so that the launch can be taken back and run again by somebody who looks closer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use handloom_diag::hash::FastMap;

use super::access;
use crate::lock::lock;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// What a launch has written, and whether it must be taken back. One host thread writes, and nobody else sees it before the launch is over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Undo(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    doubt: AtomicBool,
    /// What nobody had written when the launch began, by address: first bytes and ends.
    blank: Vec<(u64, u64)>,
    kept: Mutex<Kept>,
}

/// Bytes as they were.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    places: FastMap<u64, usize>,
    pages: Vec<(u64, Box<Page>)>,
    /// The page that was asked for last, and its place.
    last: Option<(u64, usize)>,
}

#[derive(Debug)]
struct Page {
    old: [u8; PAGE as usize],
    /// A bit for each byte that is kept.
    kept: [u64; PAGE as usize / 64],
}

impl Undo {
    /// Of a launch that has written nothing yet. `blank`: what nobody has written, by address: first bytes and ends.
    pub(crate) fn new(blank: Vec<(u64, u64)>) -> Undo {
        Undo(Arc::new(Inner { blank, ..Inner::default() }))
    }

    /// Whether some of a range was not written when the launch began.
    pub(crate) fn began_blank(&self, from: u64, bytes: u64) -> bool {
        let after = self.0.blank.partition_point(|(_, end)| *end <= from);
        self.0.blank.get(after).is_some_and(|(first, _)| *first < from + bytes)
    }

    /// Whether nobody has written some of the bytes of an access.
    pub(crate) fn is_blank(&self, addr: u64, bytes: u32) -> bool {
        if !self.began_blank(addr, bytes.into()) {
            return false;
        }
        let kept = self.kept();
        (addr..addr + u64::from(bytes)).any(|at| self.began_blank(at, 1) && !kept.has(at, 1))
    }

    /// What was seen so far does not tell all that is asked for.
    pub(crate) fn doubt(&self) {
        self.0.doubt.store(true, Ordering::Relaxed);
    }

    /// Whether that is so.
    pub(crate) fn is_doubted(&self) -> bool {
        self.0.doubt.load(Ordering::Relaxed)
    }

    /// For accesses of one op.
    pub(crate) fn kept(&self) -> MutexGuard<'_, Kept> {
        lock(&self.0.kept)
    }

    /// The ranges that were written, in no order.
    pub(crate) fn written(&self) -> Vec<(u64, u64)> {
        let mut all: Vec<(u64, u64)> = Vec::new();
        for (number, page) in &self.kept().pages {
            let bits = page
                .kept
                .iter()
                .enumerate()
                .flat_map(|(line, kept)| (0..64).map(move |i| (64 * line + i, kept >> i & 1 == 1)));
            for (at, _) in bits.filter(|(_, is_kept)| *is_kept) {
                let at = number * PAGE + at as u64;
                match all.last_mut() {
                    Some((_, end)) if *end == at => *end += 1,
                    _ => all.push((at, at + 1)),
                }
            }
        }
        all
    }

    /// Writes back what memory held. No code of the launch runs.
    pub(crate) fn restore(&self) {
        for (number, page) in std::mem::take(&mut *self.kept()).pages {
            for (line, kept) in page.kept.iter().enumerate() {
                for i in (0..64).filter(|i| kept >> i & 1 == 1) {
                    let at = 64 * line + i;
                    // SAFETY: a kernel wrote the byte behind a check, and allocations of a launch outlive it.
                    unsafe { access::store(number * PAGE + at as u64, 1, u64::from(page.old[at])) }
                }
            }
        }
    }
}

impl Kept {
    /// Whether at most 16 aligned bytes were written.
    pub(crate) fn has(&self, addr: u64, bytes: u32) -> bool {
        let bits = (u64::MAX >> (64 - bytes.clamp(1, 16))) << (addr % 64);
        let page = self.places.get(&(addr / PAGE)).map(|place| &self.pages[*place].1);
        page.is_some_and(|page| page.kept[(addr % PAGE) as usize / 64] & bits == bits)
    }

    /// Keeps at most 16 aligned bytes that are about to be written.
    ///
    /// # Safety
    /// They passed a check for writing.
    #[inline]
    pub(crate) unsafe fn keep(&mut self, addr: u64, bytes: u32) {
        let number = addr / PAGE;
        let place = match self.last {
            Some((last, place)) if last == number => place,
            _ => {
                let new = self.pages.len();
                let place = *self.places.entry(number).or_insert(new);
                if place == new {
                    self.pages
                        .push((number, Box::new(Page { old: [0; PAGE as usize], kept: [0; PAGE as usize / 64] })));
                }
                self.last = Some((number, place));
                place
            }
        };
        let page = &mut self.pages[place].1;
        let at = (addr % PAGE) as usize;
        let bits = (u64::MAX >> (64 - bytes.clamp(1, 16))) << (at % 64);
        let word = &mut page.kept[at / 64];
        let new = bits & !*word;
        *word |= bits;
        if new == 0 {
            return;
        }
        if new == bits && bytes <= 8 && bytes.is_power_of_two() {
            // SAFETY: by the caller's promise.
            let old = unsafe { access::load(addr, bytes) };
            let bytes = bytes as usize;
            page.old[at..at + bytes].copy_from_slice(&old.to_le_bytes()[..bytes]);
            return;
        }
        for i in (0..64).filter(|i| new >> i & 1 == 1) {
            let byte = at / 64 * 64 + i;
            // SAFETY: by the caller's promise.
            page.old[byte] = unsafe { access::load(number * PAGE + byte as u64, 1) } as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{AllocKind, DeviceMemory};

    #[test]
    fn what_was_written_is_taken_back_and_nothing_else() {
        let memory = DeviceMemory::claim().unwrap();
        let at = memory.wide.allocate(AllocKind::Buffer, 3 * PAGE, PAGE, "", "").unwrap();
        // SAFETY: the test's own allocation, in aligned words.
        unsafe {
            (0..3 * PAGE / 8).for_each(|i| access::store(at + 8 * i, 8, i + 1));
            let undo = Undo::default();
            for (addr, bytes) in [(at, 16), (at + 4, 4), (at + PAGE - 2, 2), (at + 2 * PAGE + 8, 8), (at, 16)] {
                undo.kept().keep(addr, bytes);
                access::store(addr, bytes.min(8), u64::MAX);
            }
            // Somebody else's bytes between.
            access::store(at + 64, 8, 7);
            undo.restore();
            for i in 0..3 * PAGE / 8 {
                assert_eq!(access::load(at + 8 * i, 8), if i == 8 { 7 } else { i + 1 }, "word {i}");
            }
        }
    }
}
