//! Reads of a warp at scattered places, put off as long as nobody writes near them.
//!
//! Reads race with nothing but writes. So those of a page that nobody has written in this launch are put down in a list, eight bytes each, and played
//! through in their order when the page is touched in any other way, or the list is long: then its granules are near in the caches. What is found and
//! remembered is what it would be if nothing had been put off (as in `line`).

use crate::clock::Clock;
use crate::event::Thread;
use crate::known::Time;
use crate::order::Audit;
use crate::race::bytes_of_granule;
use crate::row::{Addrs, Row};
use crate::shadow::{Entry, PAGE, Tag};

/// Most reads of a page that are put off.
const MOST: usize = 2048;

/// Most rows that they are of.
const MOST_ROWS: usize = 1 << 16;

/// What the reads of a row have in common.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    time: Time,
    /// Number of the block, times 32, and of the warp.
    who: u32,
    /// All that the block did until then comes before it.
    cta: Time,
    /// The same of the warp.
    warp: Time,
    site: u32,
    bytes: u8,
}

/// A read: the number of its row, its place in the page, its lane.
#[derive(Clone, Copy, Debug)]
pub struct Read(u64);

impl Read {
    fn new(row: usize, addr: u64, lane: usize) -> Read {
        Read((row as u64) << 17 | (addr % PAGE) << 5 | (lane as u64 & 31))
    }

    fn row(self) -> usize {
        usize::try_from(self.0 >> 17).unwrap_or(usize::MAX)
    }

    fn offset(self) -> u64 {
        self.0 >> 5 & (PAGE - 1)
    }

    fn lane(self) -> u8 {
        u8::try_from(self.0 & 31).unwrap_or(0)
    }
}

impl Audit {
    /// Puts reads of a row off, one scalar for each lane, where nobody has written. Gives the other lanes in their order, and how many they are; `None` if
    /// nothing can be put off.
    pub(crate) fn put_off(&mut self, site: u32, row: &Row<'_>) -> Option<([usize; 32], usize)> {
        let (Addrs::Each(addrs), [(skip, bytes)]) = (row.addrs, row.parts) else { return None };
        let warp = row.first / 32;
        let (cta, since) = self.times_of(row.cta, warp).filter(|_| *bytes <= 4)?;
        if self.shadow.heads.len() >= MOST_ROWS {
            self.shadow.put_off_pages().into_iter().for_each(|at| self.play(at));
            self.shadow.heads.clear();
        }
        let who = row.cta << 5 | u32::try_from(warp).unwrap_or(0);
        let number = self.shadow.heads.len();
        self.shadow.heads.push(Head { time: self.now, who, cta, warp: since, site, bytes: *bytes });
        let (mut left, mut n) = ([0; 32], 0);
        for lane in row.lanes.iter().copied() {
            let addr = addrs[lane].wrapping_add(u64::from(*skip));
            let page = self.shadow.page(addr);
            if page.is_written {
                left[n] = lane;
                n += 1;
                continue;
            }
            page.later.push(Read::new(number, addr, lane));
            let is_full = page.later.len() >= MOST;
            self.shadow.n_later += 1;
            if is_full {
                self.play(addr);
            }
        }
        Some((left, n))
    }

    /// Plays through what was put off on the page of an address.
    pub(crate) fn play(&mut self, addr: u64) {
        let base = addr & !(PAGE - 1);
        let reads = std::mem::take(&mut self.shadow.page(addr).later);
        self.shadow.n_later -= reads.len();
        for read in reads {
            let Some(head) = self.shadow.heads.get(read.row()).copied() else { continue };
            let addr = base + read.offset();
            self.settle(addr);
            let at = addr & !3;
            let mask = bytes_of_granule(addr, addr + u64::from(head.bytes), at);
            let tag = Tag::new(head.site, false, true, 0, head.bytes, mask);
            let [_, _, _, warp] = (head.who & 31).to_be_bytes();
            let thread = Thread { cta: head.who >> 5, warp, lane: read.lane() };
            let new = Entry { time: head.time, who: head.who, lanes: thread.bit(), tag: tag.0 };
            self.add_late(at, new, thread, &Clock { warp: head.warp, cta: head.cta, ..Clock::default() });
        }
    }
}
