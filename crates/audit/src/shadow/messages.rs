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
    /// In no order.
    list: Vec<Place>,
    /// By granule: 1 + the place in the list of one that begins there, or 0.
    first: [u16; GRANULES],
    /// 1 + a place that is free, or 0.
    free: u16,
    /// How many there are.
    n: usize,
}

/// A place in the list.
#[derive(Debug)]
struct Place {
    addr: u64,
    /// 1 + the place of the next one that begins in the same granule, or is free too, or 0.
    next: u16,
    /// None if it is free.
    message: Option<Box<Message>>,
}

/// The number of a granule in its page.
fn granule(addr: u64) -> usize {
    usize::try_from(addr % PAGE / 4).unwrap_or(0)
}

/// The place of a number, if it is none of 0.
fn place(number: u16) -> Option<usize> {
    usize::from(number).checked_sub(1)
}

impl Table {
    /// The place of the one at an address.
    #[inline]
    fn place(&self, addr: u64) -> Option<usize> {
        let mut at = place(self.first[granule(addr)])?;
        while self.list[at].addr != addr {
            at = place(self.list[at].next)?;
        }
        Some(at)
    }

    /// The places of those that touch bytes from an address on, the page having no others below them.
    #[inline]
    fn touching(&self, addr: u64, bytes: u8) -> impl Iterator<Item = usize> {
        let end = addr + u64::from(bytes);
        let low = addr.saturating_sub(LARGEST - 1).max(addr & !(PAGE - 1)) & !3;
        (low..end).step_by(4).flat_map(move |at| self.beginning(at)).filter(move |i| {
            let here = &self.list[*i];
            let size = here.message.as_ref().map_or(0, |m| u64::from(m.bytes));
            here.addr < end && here.addr + size > addr
        })
    }

    /// Takes out the one at a place.
    fn remove(&mut self, i: usize) {
        let (granule, next) = (granule(self.list[i].addr), self.list[i].next);
        match place(self.first[granule]).filter(|first| *first != i) {
            None => self.first[granule] = next,
            Some(mut before) => {
                while let Some(after) = place(self.list[before].next).filter(|after| *after != i) {
                    before = after;
                }
                self.list[before].next = next;
            }
        }
        self.list[i] = Place { addr: 0, next: self.free, message: None };
        self.free = u16::try_from(i + 1).unwrap_or(0);
        self.n -= 1;
    }

    /// The places of those that begin in the granule of an address.
    #[inline]
    fn beginning(&self, addr: u64) -> impl Iterator<Item = usize> {
        let mut next = self.first[granule(addr)];
        std::iter::from_fn(move || {
            let here = place(next)?;
            next = self.list[here].next;
            Some(here)
        })
    }
}

impl Messages {
    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|some| some.n == 0)
    }

    /// The one at an address.
    #[inline]
    pub fn get(&self, addr: u64) -> Option<&Message> {
        let some = self.0.as_ref()?;
        some.list[some.place(addr)?].message.as_deref()
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, addr: u64) -> Option<&mut Message> {
        let some = self.0.as_mut()?;
        let place = some.place(addr)?;
        some.list[place].message.as_deref_mut()
    }

    /// Whether some of them touch bytes from an address on, other than one that begins there.
    pub fn has_others(&self, addr: u64, bytes: u8) -> bool {
        let Some(some) = &self.0 else { return false };
        some.touching(addr, bytes).any(|i| some.list[i].addr != addr)
    }

    /// Whether none of them touches bytes from an address on.
    pub fn spare(&self, addr: u64, bytes: u8) -> bool {
        self.0.as_ref().is_none_or(|some| some.touching(addr, bytes).next().is_none())
    }

    /// Leaves one at an address.
    pub fn insert(&mut self, addr: u64, message: Message) {
        let new = || Box::new(Table { list: Vec::new(), first: [0; GRANULES], free: 0, n: 0 });
        let some = self.0.get_or_insert_with(new);
        if let Some(i) = some.place(addr) {
            match &mut some.list[i].message {
                Some(there) => **there = message,
                none => *none = Some(Box::new(message)),
            }
            return;
        }
        some.n += 1;
        let first = &mut some.first[granule(addr)];
        let new = Place { addr, next: *first, message: Some(Box::new(message)) };
        match place(some.free) {
            Some(i) => {
                let old = std::mem::replace(&mut some.list[i], new);
                *first = std::mem::replace(&mut some.free, old.next);
            }
            None => {
                some.list.push(new);
                // A page has 4096 bytes, in each of which at most one begins.
                *first = u16::try_from(some.list.len()).unwrap_or(0);
            }
        }
    }

    /// Forgets those that touch bytes from an address on.
    pub fn forget(&mut self, addr: u64, bytes: u8) {
        let Some(some) = &mut self.0 else { return };
        loop {
            let gone = some.touching(addr, bytes).next();
            match gone {
                Some(i) => some.remove(i),
                None => return,
            }
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use handloom_ir::types::Scope;

    use super::*;
    use crate::event::Thread;

    /// What is at an address, and who touches what, is what a map says.
    #[test]
    fn a_table_holds_what_a_map_holds() {
        let mut state = 5_u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let (mut table, mut map) = (Messages::default(), BTreeMap::<u64, (u8, u32)>::new());
        let mut most = 0;
        for site in 0..20_000 {
            let bytes = 1_u8 << random(5);
            let base = 7 * PAGE + if random(2) == 0 { 0 } else { PAGE - 64 };
            let addr = (base + random(64)) & !(u64::from(bytes) - 1);
            let end = addr + u64::from(bytes);
            let touches = |(at, (size, _)): &(&u64, &(u8, u32))| **at < end && **at + u64::from(*size) > addr;
            assert_eq!(table.spare(addr, bytes), !map.iter().any(|one| touches(&one)));
            assert_eq!(table.has_others(addr, bytes), map.iter().any(|one| touches(&one) && *one.0 != addr));
            assert_eq!(table.get(addr).map(|m| (m.bytes, m.site)), map.get(&addr).copied());
            if random(3) > 0 {
                table.forget(addr, bytes);
                map.retain(|at, of| !touches(&(at, of)));
            }
            if random(4) > 0 {
                let (writer, scope) = (Thread { cta: 0, warp: 0, lane: 0 }, Scope::Gpu);
                let message =
                    Message { writer, scope, site, bytes, is_barrier: false, bag: Arc::default(), done: None };
                table.insert(addr, message);
                map.insert(addr, (bytes, site));
            }
            assert_eq!(table.is_empty(), map.is_empty());
            most = most.max(map.len());
        }
        assert!(most > 20, "{most}");
        let kept = table.0.map_or(0, |some| some.list.len());
        assert_eq!(kept, most, "places that are free are taken again");
    }
}
