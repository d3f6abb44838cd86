//! Lanes of a warp that ask together for something and do not get it, as those do that wait for a lock one of them has.
//!
//! Each of them reads one location by a failed `cas`, changes nothing and tells nothing. So what stands there is looked up once for all of them, and what is
//! remembered is one access of several lanes. What comes of it is the same as if each were looked at by itself.

use std::sync::Arc;

use handloom_ir::types::Scope;

use crate::bag::Bag;
use crate::clock::Clock;
use crate::event::{Access, Turn};
use crate::order::Audit;
use crate::race::{Now, bytes_of_granule};
use crate::shadow::{Entry, Tag};

/// What a lane takes over in the place of what it had read before.
type Change = (Arc<Bag>, Arc<Bag>);

impl Audit {
    /// Looks at the first ones of accesses of lanes if they read one location by relaxed accesses of a scope that fail, as a warp's `cas` does: how many. If that is
    /// none, nothing was done.
    pub(crate) fn ask_in_vain(&mut self, site: u32, scope: Scope, all: &[Access]) -> usize {
        let Some(first) = all.first().filter(|first| first.failed) else { return 0 };
        let (addr, bytes, thread) = (first.addr, first.bytes, first.thread);
        let is_plain = |a: &Access| a.failed && a.turn == Turn::None && a.begun == 0;
        let is_alike = |a: &Access| is_plain(a) && (a.addr, a.bytes) == (addr, bytes);
        let end = addr + u64::from(bytes);
        let n = all.iter().take_while(|access| is_alike(access)).count();
        if n < 2 || self.has_clusters() || addr & !3 < end.saturating_sub(4) {
            return 0;
        }
        let all = &all[..n];
        let message = self.shadow.page(addr).message(addr).filter(|m| m.bytes == bytes);
        let of = message.map(|m| (m.is_barrier, m.scope, m.writer.cta));
        let is_heard =
            of.is_none_or(|(is_barrier, of, cta)| !is_barrier && self.mutual((scope, thread.cta), (of, cta)));
        if !is_heard || self.ctas.get(thread.cta).is_none() {
            return 0;
        }
        self.take_in_vain(all, of.is_some());
        let mut left = all.iter();
        let tag = Tag::new(site, false, true, 1 + scope as u8, bytes, bytes_of_granule(addr, end, addr & !3));
        let who = thread.cta << 5 | u32::from(thread.warp);
        let entry = |lanes| Entry { time: self.now, who, lanes, tag: tag.0 };
        let (at, new) = (addr & !3, entry(all.iter().fold(0, |lanes, access| lanes | access.thread.bit())));
        while let Some(access) = left.next() {
            let now = Now { access: *access, site, strength: Some(scope), writes: false, reads: true };
            let by_itself = Entry { lanes: access.thread.bit(), ..new };
            if !self.is_added(&now, at, by_itself) {
                self.compare_granule(&now, at, by_itself);
            }
            let others = left.as_slice().iter().fold(0, |lanes, access| lanes | access.thread.bit());
            if self.shadow.joins_turn(at, Entry { lanes: others, ..new }) {
                break;
            }
        }
        self.take_out(at, new);
        n
    }

    /// What the lanes read and hear of.
    fn take_in_vain(&mut self, all: &[Access], has_message: bool) {
        let Audit { shadow, ctas, sequence, .. } = self;
        let Some(first) = all.first() else { return };
        let location = (first.addr, first.bytes);
        let mut bag =
            if has_message { shadow.page(first.addr).messages.get_mut(first.addr).map(|m| &mut m.bag) } else { None };
        let mut change: Option<Change> = None;
        let concerns = sequence.concerns(0, first.addr);
        let heard = sequence.heard_of_writes(first.addr);
        let mut passed = 0;
        for access in all {
            let thread = access.thread;
            let Some(clock) = ctas.running(thread) else { continue };
            clock.has_asked = true;
            if let Some(bag) = bag.as_deref_mut()
                && !clock.has_read(location, bag)
                && !clock.knows_all(thread, bag)
            {
                Bag::settle(bag, thread);
                clock.read_as_another(location, bag, &mut change);
            }
            clock.unheard = 0;
            let own = clock.passed();
            passed = passed.max(own);
            if (concerns || own > 0) && clock.heard() < heard {
                clock.hear(heard);
            }
        }
        if concerns || passed > 0 {
            sequence.was_read(first.addr, passed);
        }
    }
}

impl Clock {
    /// A strong read of a location found something. What another lane made of what it had read there before and of this is taken where this one had read the same.
    fn read_as_another(&mut self, location: (u64, u8), bag: &Arc<Bag>, last: &mut Option<Change>) {
        let orders = self.orders();
        let place = orders.pending.iter_mut().find(|(at, _)| *at == location);
        match (place, &*last) {
            (Some((_, there)), Some((before, after))) if Arc::ptr_eq(there, before) => *there = Arc::clone(after),
            (Some((_, there)), _) => {
                let before = Arc::clone(there);
                orders.read(location, bag);
                let after = orders.pending.iter().find(|(at, _)| *at == location).map(|(_, there)| Arc::clone(there));
                *last = after.map(|after| (before, after));
            }
            (None, _) => orders.read(location, bag),
        }
    }
}
