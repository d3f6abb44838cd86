//! What strong writes in a page tell those who read them, by address.

use super::{GRANULES, PAGE};
use crate::bag::Message;

/// Most bytes of a location.
const LARGEST: u64 = 16;

/// The messages of a page. Most pages have none.
#[derive(Debug, Default)]
pub struct Messages(Option<Box<Table>>);

/// At least one, or there was one.
#[derive(Debug)]
struct Table {
    /// In the order of addresses.
    list: Vec<(u64, Box<Message>)>,
    /// Granules in which one begins, a bit each.
    begins: [u64; GRANULES / 64],
}

/// The number of a granule in its page.
fn granule(addr: u64) -> usize {
    usize::try_from(addr % PAGE / 4).unwrap_or(0)
}

impl Table {
    /// Whether one begins in a granule, of which there may be several.
    fn may_begin(&self, addr: u64) -> bool {
        let i = granule(addr);
        self.begins[i / 64] >> (i % 64) & 1 == 1
    }

    fn place(&self, addr: u64) -> Result<usize, usize> {
        match self.list.as_slice() {
            // Mostly one location of a page is strong.
            [(at, _)] if *at == addr => Ok(0),
            list => list.binary_search_by_key(&addr, |(at, _)| *at),
        }
    }

    /// The places of those that touch bytes from an address on, the page having no others below them.
    fn touching(&self, addr: u64, bytes: u8) -> std::ops::Range<usize> {
        let end = addr + u64::from(bytes);
        let base = addr & !(PAGE - 1);
        let low = addr.saturating_sub(LARGEST - 1).max(base);
        if !(low & !3..end).step_by(4).any(|at| self.may_begin(at)) {
            return 0..0;
        }
        let first = self.list.partition_point(|(at, m)| *at + u64::from(m.bytes) <= addr);
        first..self.list.partition_point(|(at, _)| *at < end).max(first)
    }
}

impl Messages {
    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|some| some.list.is_empty())
    }

    /// The one at an address.
    #[inline]
    pub fn get(&self, addr: u64) -> Option<&Message> {
        let some = self.0.as_ref()?;
        let place = some.may_begin(addr).then(|| some.place(addr).ok())??;
        Some(&some.list[place].1)
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, addr: u64) -> Option<&mut Message> {
        let some = self.0.as_mut()?;
        let place = some.may_begin(addr).then(|| some.place(addr).ok())??;
        Some(&mut some.list[place].1)
    }

    /// Whether some of them touch bytes from an address on, other than one that begins there.
    pub fn has_others(&self, addr: u64, bytes: u8) -> bool {
        let Some(some) = &self.0 else { return false };
        some.list[some.touching(addr, bytes)].iter().any(|(at, _)| *at != addr)
    }

    /// Whether none of them touches bytes from an address on.
    pub fn spare(&self, addr: u64, bytes: u8) -> bool {
        self.0.as_ref().is_none_or(|some| some.touching(addr, bytes).is_empty())
    }

    /// Leaves one at an address.
    pub fn insert(&mut self, addr: u64, message: Message) {
        let new = || Box::new(Table { list: Vec::new(), begins: [0; GRANULES / 64] });
        let some = self.0.get_or_insert_with(new);
        let i = granule(addr);
        some.begins[i / 64] |= 1 << (i % 64);
        match some.place(addr) {
            Ok(place) => *some.list[place].1 = message,
            Err(place) => some.list.insert(place, (addr, Box::new(message))),
        }
    }

    /// Forgets those that touch bytes from an address on.
    pub fn forget(&mut self, addr: u64, bytes: u8) {
        let Some(some) = &mut self.0 else { return };
        let gone = some.touching(addr, bytes);
        if gone.is_empty() {
            return;
        }
        for (at, _) in some.list.drain(gone) {
            let i = granule(at);
            some.begins[i / 64] &= !(1 << (i % 64));
        }
        // Of several that began in one granule some may be left.
        let near = some.list.iter().map(|(at, _)| granule(*at)).filter(|i| granule(addr).abs_diff(*i) <= 4);
        near.for_each(|i| some.begins[i / 64] |= 1 << (i % 64));
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0 = None;
    }
}
