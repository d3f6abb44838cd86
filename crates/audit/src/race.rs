//! Which pairs of accesses are races, and what strong accesses tell each other.

use std::sync::Arc;

use handloom_ir::types::{Order, Scope, StateSpace};

use crate::again::Step;
use crate::bag::{Bag, Message};
use crate::checks::Check;
use crate::clock::{Clock, Missed, Released};
use crate::event::{Access, Does, Event, Proxy, Site, Thread, Turn};
use crate::finding::{Attempt, Class, Finding, Place};
use crate::known::Time;
use crate::order::Audit;
use crate::shadow::{self, Added, Entry, Knows, Page, Shadow, Tag};
use crate::waits::Waits;

/// Scopes by the number that a tag has for them.
const SCOPES: [Scope; 4] = [Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys];

/// What a thread does to a location, as it is compared with what others did.
pub(crate) struct Now {
    pub(crate) access: Access,
    pub(crate) site: u32,
    /// The scope, if it is strong.
    pub(crate) strength: Option<Scope>,
    pub(crate) writes: bool,
    pub(crate) reads: bool,
}

impl Audit {
    /// Accesses of a warp by one op, one after the other: the same as [`access`](Audit::access) of each.
    pub fn accesses(&mut self, site: u32, all: &[Access]) {
        // Who holds a lock has something to tell.
        if let [one] = all
            && self.clock_of(one.thread).is_some_and(|clock| clock.orders.is_some())
        {
            return self.access(site, *one);
        }
        self.interrupt();
        let Some(what) = usize::try_from(site).ok().and_then(|i| self.sites.get(i)).copied() else { return };
        let strength = self.strength(&what).filter(|_| what.order == Order::Relaxed && what.proxy == Proxy::Generic);
        let room = self.options.room.saturating_sub(3 * 32 * 8 * Shadow::PAGE_COST);
        let is_quiet = !self.options.keeps_events
            && self.checks.has(Check::Race)
            && !self.has_given_up()
            && self.shadow.cost() <= room
            && !self.waits.as_ref().is_some_and(Waits::looks_at_writes);
        let Some(strength) = strength.filter(|_| is_quiet) else {
            return all.iter().for_each(|access| self.access(site, *access));
        };
        if all.len() > 1 {
            self.again.are_several();
        }
        self.shadow.fetch(all.iter().map(|access| access.addr));
        let mut left = all;
        while let Some((access, others)) = left.split_first() {
            // One of them may have got the lock.
            let together = if what.does == Does::Reduce { 0 } else { self.ask_in_vain(site, strength, left) };
            if together > 0 {
                left = &left[together..];
                continue;
            }
            left = others;
            if !self.is_relaxed(site, &what, strength, *access) {
                self.access(site, *access);
            }
        }
    }

    /// Remembers a relaxed access that tells nobody anything and is quickly seen to be no race. Says whether.
    fn is_relaxed(&mut self, site: u32, what: &Site, strength: Scope, access: Access) -> bool {
        let Access { thread, addr, bytes, .. } = access;
        let tells = |clock: &Clock| clock.orders.is_some() || self.sequence.concerns(clock.passed(), addr);
        if self.clock_of(thread).is_none_or(tells) || !self.shadow.page(addr).messages.spare(addr, bytes) {
            return false;
        }
        let does = if access.failed { Does::Read } else { what.does };
        let now = Now { access, site, strength: Some(strength), writes: does.writes(), reads: does.reads() };
        let end = addr + u64::from(bytes);
        let tag =
            |at| Tag::new(site, now.writes, now.reads, 1 + strength as u8, bytes, bytes_of_granule(addr, end, at));
        let who = thread.cta << 5 | u32::from(thread.warp);
        let is_fine = (addr & !3..end).step_by(4).all(|at| {
            let new = Entry { time: self.now, who, lanes: thread.bit(), tag: tag(at).0 };
            self.is_added(&now, at, new)
        });
        if is_fine && now.writes {
            self.shadow.page(addr).is_written = true;
        } else if is_fine {
            (addr & !3..end).step_by(4).for_each(|at| {
                let new = Entry { time: self.now, who, lanes: thread.bit(), tag: tag(at).0 };
                self.take_out(at, new);
            });
        }
        if now.reads && what.does != Does::Reduce {
            self.asks(thread);
        }
        is_fine
    }

    /// A thread accesses memory. Accesses of one op of a warp come one after the other, and are followed by [`end_op`](Audit::end_op).
    pub fn access(&mut self, site: u32, access: Access) {
        if !self.is_again(access.thread, Step::Access(site, access)) {
            self.look_at(site, access, true);
        }
    }

    /// The same. `quick`: what is quickly seen to be no race is not looked at by all rules.
    pub(crate) fn look_at(&mut self, site: u32, access: Access, quick: bool) {
        let Some(what) = usize::try_from(site).ok().and_then(|i| self.sites.get(i)).copied() else { return };
        let waits = self.waits.as_mut().filter(|waits| waits.concerns(&access));
        if let Some(mut misuse) = waits.and_then(|waits| waits.access(&what, &access)) {
            let offset = |addr| self.shared_offset(access.thread.cta, addr).unwrap_or(addr);
            misuse.object = misuse.object.map(|(addr, _)| (addr, offset(addr)));
            self.again.found();
            self.misuses().into_iter().for_each(|all| all.add(misuse.clone()));
        }
        if self.has_given_up() || !self.checks.has(Check::Race) {
            return;
        }
        self.looks_for_exit(&what, &access);
        self.keep(|_| Event::Access { site: what, access });
        let does = if access.failed { Does::Read } else { what.does };
        let strength = self.strength(&what);
        let now = Now { access, site, strength, writes: does.writes(), reads: does.reads() };
        if let Some(scope) = strength {
            self.take(&now, &what, scope);
            self.hear(&now);
        }
        self.compare_begun(&now, &what, quick);
        match strength {
            Some(scope) if now.writes => self.tell(&now, &what, scope),
            None if now.writes => {
                let page = self.shadow.page(access.addr);
                overwrite(page, access.addr, access.bytes);
            }
            Some(_) | None => {}
        }
        if self.shadow.cost() > self.options.room {
            let room = self.options.room >> 20;
            self.give_up(format!("what is remembered of accesses takes more than {room} MiB"));
        }
    }

    /// The scope of a strong access.
    pub(crate) fn strength(&self, site: &Site) -> Option<Scope> {
        manual_strength(site).filter(|_| site.order != Order::Volatile || self.options.strong_volatile)
    }

    /// Whether a scope of a thread has another one.
    fn reaches(&self, scope: Scope, from: u32, to: u32) -> bool {
        match scope {
            _ if from == to => true,
            Scope::Cta => false,
            Scope::Cluster => self.cluster_of(from) == self.cluster_of(to),
            Scope::Gpu | Scope::Sys => true,
        }
    }

    /// Whether two strong accesses include each other in their scopes.
    pub(crate) fn mutual(&self, (a, of_a): (Scope, u32), (b, of_b): (Scope, u32)) -> bool {
        self.reaches(a, of_a, of_b) && self.reaches(b, of_b, of_a)
    }

    /// The first half of a strong access: what it reads may tell something.
    fn take(&mut self, now: &Now, what: &Site, scope: Scope) {
        let Access { thread, addr, bytes, turn, .. } = now.access;
        if !now.reads || what.does == Does::Reduce {
            return;
        }
        self.asks(thread);
        let found = self.shadow.page(addr).message(addr).filter(|m| m.bytes == bytes);
        let found = found.map(|m| (m.is_barrier, m.scope, m.writer.cta));
        // What asynchronous copies of the cluster tell a barrier, who waits there with the scope of his block learns too.
        let is_barrier = found.is_some_and(|(is_barrier, ..)| is_barrier);
        let scope = if is_barrier { scope.max(Scope::Cluster) } else { scope };
        if let Some((_, of, cta)) = found {
            let reaches = self.mutual((scope, thread.cta), (of, cta));
            let Audit { shadow, ctas, .. } = self;
            let message = shadow.page(addr).messages.get_mut(addr);
            if !reaches {
                let message = message.map(|m| {
                    Bag::settle(&mut m.bag, thread);
                    m.clone()
                });
                message.into_iter().for_each(|m| self.miss(now, what, scope, &m));
            } else if let (Some(m), Some(clock)) = (message, ctas.running(thread)) {
                // Who asks whether a phase has ended is told what was released until then, and nothing by the answer that it has not.
                let bag = match turn {
                    Turn::No => None,
                    Turn::Yes => m.done.as_mut(),
                    Turn::None | Turn::Arrives | Turn::Ends => Some(&mut m.bag),
                };
                if let Some(bag) =
                    bag.filter(|bag| !clock.has_read((addr, bytes), bag) && !clock.knows_all(thread, bag))
                {
                    Bag::settle(bag, thread);
                    clock.orders().read((addr, bytes), bag);
                }
            }
        }
        if !matches!(what.order, Order::Acquire | Order::AcqRel | Order::Sc) {
            return;
        }
        let orders = self.clock(thread).and_then(|c| c.orders.as_ref());
        let pending =
            orders.and_then(|o| o.pending.iter().find(|(at, _)| *at == (addr, bytes))).map(|(_, bag)| Arc::clone(bag));
        if let Some(bag) = pending
            && self.acquire(thread, now.site, scope, &bag)
            && let Some(clock) = self.clock(thread)
        {
            clock.orders().pending.retain(|(at, _)| *at != (addr, bytes));
        }
    }

    /// A strong read does not observe the write before it, since the two do not include each other in their scopes: what it would have been told if they did.
    fn miss(&mut self, now: &Now, what: &Site, scope: Scope, message: &Message) {
        let of = |number: u32| usize::try_from(number).ok().and_then(|i| self.sites.get(i)).copied();
        // The release itself, or the write of its pattern that is narrower.
        let release = message.bag.from.filter(|(_, scope)| *scope <= message.scope);
        let (release, of_release) = release.unwrap_or((message.site, message.scope));
        let Some(release) = of(release) else { return };
        let attempt = Attempt { release: (release, of_release), acquire: (*what, scope) };
        let missed: Vec<Missed> = message.bag.all().map(|told| Missed { known: told.whole(), attempt }).collect();
        let acquires = matches!(what.order, Order::Acquire | Order::AcqRel | Order::Sc);
        let who = now.access.thread;
        if acquires {
            self.misses(who, &missed);
        } else if let Some(clock) = self.clock(who) {
            clock.orders().narrow = missed;
        }
    }

    /// The second half of a strong access: what it writes may tell something.
    fn tell(&mut self, now: &Now, what: &Site, scope: Scope) {
        let Access { thread, addr, bytes, .. } = now.access;
        let cluster = self.cluster(thread);
        let of_old = self.shadow.page(addr).message(addr).filter(|m| m.bytes == bytes).map(|m| (m.scope, m.writer.cta));
        let continues = now.reads && of_old.is_some_and(|of| self.mutual((scope, thread.cta), of));
        if matches!(what.order, Order::Release | Order::AcqRel | Order::Sc) {
            let told = self.snapshot(thread);
            let released = Released { told, scope, site: now.site };
            if let Some(clock) = self.clock(thread) {
                let on = clock.orders().on.entry((addr, bytes)).or_default();
                on.retain(|r| r.scope > scope);
                on.push(released);
            }
        }
        let Audit { shadow, ctas, .. } = self;
        let orders = ctas.get(thread.cta).and_then(|cta| cta.clock(thread)?.orders.as_deref());
        let fences: &[Released] = orders.map_or(&[], |o| &o.fences);
        let on = orders.filter(|o| !o.on.is_empty()).and_then(|o| o.on.get(&(addr, bytes)));
        let own = || fences.iter().chain(on.map_or(&[][..], |on| on));
        let page = shadow.page(addr);
        let is_step = what.does == Does::Step;
        let ends = is_step && now.access.turn != Turn::Arrives;
        let site = now.site;
        // Mostly what a location tells goes on.
        if continues
            && !page.messages.has_others(addr, bytes)
            && let Some(m) = page.messages.get_mut(addr)
        {
            let is_new = |r: &Released| !m.bag.holds(&r.told, r.scope, thread, cluster);
            if own().any(is_new) || own().last().is_some_and(|r| m.bag.from != Some((r.site, r.scope))) {
                let bag = Arc::make_mut(&mut m.bag);
                own().for_each(|r| bag.put(&r.told, r.scope, thread, cluster, r.site));
                bag.prune(|cta| ctas.has(cta));
            }
            if ends {
                m.done = Some(Arc::clone(&m.bag));
            }
            (m.writer, m.scope, m.site, m.is_barrier) = (thread, scope, site, is_step);
            page.is_written = true;
            return;
        }
        let old = if continues { page.message(addr).cloned() } else { None };
        overwrite(page, addr, bytes);
        if own().next().is_none() && old.is_none() {
            return;
        }
        let (mut bag, mut done) = old.map_or_else(Default::default, |m| (m.bag, m.done));
        if own().next().is_some() {
            let bag = Arc::make_mut(&mut bag);
            own().for_each(|r| bag.put(&r.told, r.scope, thread, cluster, r.site));
            bag.prune(|cta| ctas.has(cta));
        }
        if !bag.is_empty() {
            if ends {
                done = Some(Arc::clone(&bag));
            }
            page.messages.insert(addr, Message { writer: thread, scope, site, bytes, is_barrier: is_step, bag, done });
        }
    }

    /// Compares an access with those before it, and remembers it. `quick`: as long as it is no race by masks and times.
    pub(crate) fn compare(&mut self, now: &Now, quick: bool) {
        let Access { thread, addr, bytes, .. } = now.access;
        let end = addr + u64::from(bytes);
        let mut at = addr & !3;
        while at < end {
            let strength = now.strength.map_or(0, |s| 1 + s as u8);
            let tag = Tag::new(now.site, now.writes, now.reads, strength, bytes, bytes_of_granule(addr, end, at));
            let who = thread.cta << 5 | u32::from(thread.warp);
            let new = Entry { time: self.now, who, lanes: thread.bit(), tag: tag.0 };
            if !quick || !self.is_added(now, at, new) {
                self.compare_granule(now, at, new);
            }
            if now.strength.is_some() && !now.writes {
                self.take_out(at, new);
            }
            at += 4;
        }
    }

    /// Lanes that have read by a strong access did so before: what they did then is left out as far as nobody knows of it who does not know of this.
    pub(crate) fn take_out(&mut self, at: u64, new: Entry) {
        let Audit { shadow, ctas, .. } = self;
        let Some(cta) = ctas.get(new.cta()) else { return };
        shadow.take_out(at, new, |time, lanes| {
            let number = |lane: u32| usize::try_from(u32::from(new.warp()) << 5 | lane).unwrap_or(usize::MAX);
            let hides = |lane: &u32| {
                lanes >> lane & 1 == 1 && cta.clocks.get(number(*lane)).is_some_and(|clock| time > clock.told())
            };
            (0..32).filter(hides).fold(0, |hidden, lane| hidden | 1 << lane)
        });
    }

    /// Remembers an access to a granule if it is quickly seen that it is no race. Says whether.
    pub(crate) fn is_added(&mut self, now: &Now, at: u64, new: Entry) -> bool {
        self.settle(at);
        let me = now.access.thread;
        let Audit { shadow, ctas, list, .. } = self;
        let clock = ctas.get(me.cta).and_then(|cta| cta.clocks.get(usize::try_from(me.number()).ok()?));
        let Some(clock) = clock else { return false };
        // Scopes that have every block, or the one that both are in; the others are looked at elsewhere.
        let is_wide = |scope: Option<Scope>| matches!(scope, Some(Scope::Gpu | Scope::Sys));
        let (mine, bytes) = (now.strength, u32::from(now.access.bytes));
        let is_strong = |e: Entry| {
            let theirs = strength_of(e);
            let is_near = mine.is_some() && theirs.is_some() && e.cta() == me.cta;
            e.tag().bytes() == bytes && (is_near || is_wide(mine) && is_wide(theirs))
        };
        let told = if mine.is_some() { clock.told() } else { Time::MAX };
        let knows = Knows { since: 0, learned: Some(clock.learned), told };
        shadow.add_ordered(at, new, list, knows, clock.orders_several(me), is_strong) != Added::Conflict
    }

    /// A thread reads something by a strong access.
    fn asks(&mut self, who: Thread) {
        if let Some(clock) = self.ctas.get_mut(who.cta).and_then(|cta| cta.clock_mut(who)) {
            clock.has_asked = true;
        }
    }

    /// What a thread that runs knows.
    fn clock_of(&self, who: Thread) -> Option<&Clock> {
        self.ctas.get(who.cta)?.clocks.get(usize::try_from(who.number()).ok()?)
    }

    /// Whether an access does what was done before and no more: it was done by the same lane and nothing was ordered since, or it reads as another lane of
    /// its warp just did and comes after all that was written. Nearly all reads of a row of lanes are so. A strong read also where it need not come after writes.
    fn goes_along(&mut self, now: &Now, at: u64, new: Entry) -> bool {
        if self.shadow.has(at, new) {
            return true;
        }
        if now.strength.is_some() && !now.writes && self.joins(now, at, new) {
            return true;
        }
        let Some((n, few)) = self.shadow.few(at).filter(|_| !now.writes) else { return false };
        let before = &few[..n];
        let Some(place) = before.iter().position(|e| e.is_like(&new)) else { return false };
        let is_after = |e: &Entry| self.unordered(now.access.thread, *e) == 0;
        let is_fine = before.iter().all(|e| !e.tag().writes() || e.tag().mask() & new.tag().mask() == 0 || is_after(e));
        if is_fine {
            self.shadow.add_lanes(at, place, new.lanes);
        }
        is_fine
    }

    /// Adds a strong read to one of another lane, if it races with nothing there. Says whether.
    fn joins(&mut self, now: &Now, at: u64, new: Entry) -> bool {
        let mut list = std::mem::take(&mut self.list);
        self.shadow.read(at, &mut list);
        let mask = new.tag().mask();
        let is_fine = |e: &Entry| {
            let is_apart = !e.tag().writes() || e.tag().mask() & mask == 0;
            is_apart || self.morally_strong(now, *e) || self.unordered(now.access.thread, *e) == 0
        };
        let place = list.iter().position(|e| e.is_like(&new)).filter(|_| list.iter().all(is_fine));
        list.clear();
        self.list = list;
        place.is_some_and(|place| {
            self.shadow.add_lanes(at, place, new.lanes);
            true
        })
    }

    pub(crate) fn compare_granule(&mut self, now: &Now, at: u64, new: Entry) {
        self.settle(at);
        if self.goes_along(now, at, new) {
            return;
        }
        let Access { thread, addr, .. } = now.access;
        let mut list = std::mem::take(&mut self.list);
        self.shadow.read(at, &mut list);
        let is_known = list.iter().any(|e| e.is_like(&new) && e.lanes & new.lanes != 0);
        let mask = new.tag().mask();
        for e in list.iter().filter(|e| !is_known && e.tag().mask() & mask != 0) {
            let tag = e.tag();
            let conflict = tag.writes() || now.writes;
            if !conflict || self.morally_strong(now, *e) {
                continue;
            }
            let unordered = self.unordered(thread, *e);
            if unordered == 0 || tag.writes() && tag.strength() > 0 && self.was_observed(thread, *e, &list, mask) {
                continue;
            }
            // Accesses of several granules are told once: where they begin to overlap.
            let start = addr.max(at & !u64::from(tag.bytes() - 1));
            if start & !3 == at {
                self.tell_race(now, *e, unordered, start, None);
            }
        }
        let told = self.clock_of(thread).filter(|_| now.strength.is_some()).map_or(Time::MAX, Clock::told);
        shadow::leave(&mut list, new, told, |e| self.covers(now, new, e));
        shadow::add(&mut list, new);
        self.shadow.write(at, &list);
        list.clear();
        self.list = list;
    }

    /// The lanes of an earlier access that is not ordered before what a thread does now.
    pub(crate) fn unordered(&self, me: Thread, e: Entry) -> u32 {
        self.clock_of(me).map_or(e.lanes, |clock| clock.unordered(me, e))
    }

    /// Both are strong, of one size, and reach each other.
    fn morally_strong(&self, now: &Now, e: Entry) -> bool {
        let theirs = strength_of(e);
        let (Some(mine), Some(theirs)) = (now.strength, theirs) else { return false };
        let same_size = e.tag().bytes() == u32::from(now.access.bytes);
        let is_step = |site: u32| {
            let site = usize::try_from(site).ok().and_then(|i| self.sites.get(i));
            site.is_some_and(|s| s.does == Does::Step)
        };
        let (me, them) = (now.access.thread.cta, e.cta());
        let of_barrier = || is_step(now.site) || is_step(e.tag().site());
        same_size
            && (self.mutual((mine, me), (theirs, them))
                || of_barrier() && self.mutual((mine.max(Scope::Cluster), me), (theirs.max(Scope::Cluster), them)))
    }

    /// Whether a strong read that comes before what the thread does now may have seen a strong write: then the write comes before it too.
    /// Of the accesses `before` it, those to bytes of `mask` count.
    fn was_observed(&self, me: Thread, e: Entry, before: &[Entry], mask: u32) -> bool {
        let Some(of_write) = strength_of(e) else { return false };
        before.iter().filter(|z| z.tag().mask() & mask != 0).any(|z| {
            let reads = z.tag().reads() && z.time >= e.time && z.tag().bytes() == e.tag().bytes();
            let mutual = strength_of(*z).is_some_and(|s| self.mutual((s, z.cta()), (of_write, e.cta())));
            reads && mutual && self.unordered(me, *z) != z.lanes
        })
    }

    /// Whether nothing can race with an earlier access that does not race with the new one.
    fn covers(&self, now: &Now, new: Entry, e: Entry) -> bool {
        let (old, tag) = (e.tag(), new.tag());
        let is_stronger = now.writes || !old.writes();
        let same = old.strength() == tag.strength() && old.bytes() == tag.bytes() && e.cta() == new.cta();
        let is_weaker = now.strength.is_none() || same;
        old.mask() & !tag.mask() == 0 && is_stronger && is_weaker && self.unordered(now.access.thread, e) == 0
    }

    /// What a thread of which this one knows, or would if scopes were wider, could not take over, because a scope was too narrow, and so could not hand on.
    fn explained_by_others(&self, me: Thread, e: Entry, lane: u8) -> Option<Attempt> {
        let mine = self.clock_of(me)?;
        let mut all = self.missed.iter().filter(|(_, _, m)| m.explains(e, lane));
        let found = all.find(|(who, time, _)| {
            let moment = Entry { time: *time, who: who.cta << 5 | u32::from(who.warp), lanes: who.bit(), tag: 0 };
            let is_known = || mine.unordered(me, moment) == 0 || explained(mine, moment, who.lane).is_some();
            *who != me && is_known()
        });
        found.map(|(_, _, m)| m.attempt)
    }

    /// `class`: if it is not one of those that two accesses make by themselves.
    pub(crate) fn tell_race(&mut self, now: &Now, e: Entry, unordered: u32, addr: u64, class: Option<Class>) {
        self.again.found();
        let me = now.access.thread;
        let lane = u8::try_from(unordered.trailing_zeros() & 31).unwrap_or(0);
        let them = Thread { cta: e.cta(), warp: e.warp(), lane };
        let tag = e.tag();
        let tried = self
            .clock_of(me)
            .and_then(|clock| explained(clock, e, lane))
            .or_else(|| self.explained_by_others(me, e, lane));
        // What copies move has no size of its own, and warps do not wait for it.
        let is_copy = |number: u32| {
            let site = usize::try_from(number).ok().and_then(|i| self.sites.get(i));
            site.is_some_and(|site| site.proxy != Proxy::Generic && site.order == Order::Weak)
        };
        let is_same_size = tag.bytes() == u32::from(now.access.bytes);
        let has_copy = is_copy(now.site) || is_copy(tag.site());
        let both_write = tag.writes() && now.writes && !tag.reads() && !now.reads;
        let are_strong = now.strength.is_some() && tag.strength() > 0;
        let class = if let Some(class) = class {
            class
        } else if both_write && now.access.same_value {
            Class::SameValue
        } else if are_strong && is_same_size {
            Class::AtomicScopes
        } else if tried.is_some() {
            Class::ScopeTooNarrow
        } else if !is_same_size && !has_copy {
            Class::MixedSize
        } else if !has_copy && me.cta == them.cta && me.warp == them.warp {
            Class::SameWarp
        } else {
            Class::Unordered
        };
        if class == Class::SameValue && !self.options.same_values {
            return;
        }
        let site = |number: u32| usize::try_from(number).ok().and_then(|i| self.sites.get(i)).copied();
        let (Some(first), Some(second)) = (site(tag.site()), site(now.site)) else { return };
        let end_of_e = (addr & !u64::from(tag.bytes() - 1)) + u64::from(tag.bytes());
        let end = end_of_e.min(now.access.addr + u64::from(now.access.bytes));
        let is_shared = second.space == StateSpace::Shared;
        let are_mutual = manual_strength(&first)
            .zip(manual_strength(&second))
            .is_some_and(|(a, b)| self.mutual((a, them.cta), (b, me.cta)));
        self.found.add(Finding {
            class,
            first: Place { site: first, thread: them },
            second: Place { site: second, thread: me },
            addr,
            bytes: u32::try_from(end - addr).unwrap_or(1),
            shared_offset: self.shared_offset(me.cta, addr).filter(|_| is_shared),
            tried: tried.filter(|_| !matches!(class, Class::MissingProxyFence | Class::AtomicScopes)),
            is_by_volatile: !are_strong && is_same_size && are_mutual,
            pairs: u64::from(unordered.count_ones()),
        });
    }
}

/// The scope of an access that is strong, as the manual says.
fn manual_strength(site: &Site) -> Option<Scope> {
    match site.order {
        Order::Weak => None,
        Order::Volatile | Order::Mmio => Some(Scope::Sys),
        Order::Relaxed | Order::Acquire | Order::Release | Order::AcqRel | Order::Sc => Some(site.scope),
    }
}

/// The bytes of a granule that an access touches, as a mask.
pub(crate) fn bytes_of_granule(addr: u64, end: u64, at: u64) -> u8 {
    let (first, last) = (addr.max(at) - at, end.min(at + 4) - at);
    let below = |n: u64| (1_u8 << (n & 7)) - 1;
    below(last) & !below(first)
}

/// The scope of an earlier access that was strong.
pub(crate) fn strength_of(e: Entry) -> Option<Scope> {
    let number = e.tag().strength().checked_sub(1)?;
    usize::try_from(number).ok().and_then(|i| SCOPES.get(i)).copied()
}

/// The release and the acquire that would have ordered an access of a lane with wider scopes.
fn explained(clock: &Clock, e: Entry, lane: u8) -> Option<Attempt> {
    clock.missed().iter().find(|m| m.explains(e, lane)).map(|m| m.attempt)
}

/// What strong writes told at bytes that are written anew.
pub(crate) fn overwrite(page: &mut Page, addr: u64, bytes: u8) {
    page.is_written = true;
    page.messages.forget(addr, bytes);
}

#[cfg(test)]
mod tests {
    use handloom_diag::Span;

    use super::*;
    use crate::event::Met;
    use crate::order::Options;

    fn site(does: Does) -> Site {
        Site { span: Span::NONE, does, order: Order::Weak, scope: Scope::Gpu, space: StateSpace::Global, ..Site::NONE }
    }

    fn does(audit: &mut Audit, what: Does, thread: usize, addr: u64) {
        let site = audit.site(site(what));
        let thread = Thread::new(0, thread);
        audit.access(site, Access { thread, addr, bytes: 4, ..Access::NONE });
        audit.end_op();
    }

    #[test]
    fn barriers_order_and_nothing_else_does() {
        let mut audit = Audit::new(Options::default());
        audit.start_cta(0, 64, None, (0, 0));
        does(&mut audit, Does::Write, 0, 64);
        audit.barrier(0, &Met { id: 0, waited: vec![(0, u32::MAX), (1, u32::MAX)], is_whole: true });
        does(&mut audit, Does::Read, 40, 64);
        does(&mut audit, Does::Write, 3, 64);
        let (found, gave_up) = audit.finish();
        let [race] = &found[..] else { panic!("{found:?}") };
        assert_eq!((race.class, race.first.thread.number(), race.second.thread.number()), (Class::Unordered, 40, 3));
        assert_eq!(gave_up, None);
    }

    /// A thread hands on that it has seen a strong write, and reads again: who is told comes after the write.
    #[test]
    fn what_was_seen_before_a_release_comes_before_what_follows_it() {
        for (again, times) in [(Order::Relaxed, 0), (Order::Relaxed, 1), (Order::Relaxed, 5), (Order::Weak, 3)] {
            let mut audit = Audit::new(Options::default());
            (0..3).for_each(|cta| audit.start_cta(cta, 32, None, (0, 0)));
            let mut of = |does, order| audit.site(Site { order, ..site(does) });
            let (write, read) = (of(Does::Write, Order::Relaxed), of(Does::Read, Order::Relaxed));
            let (tell, take) = (of(Does::Write, Order::Release), of(Does::Read, Order::Acquire));
            let (weak, again) = (of(Does::Read, Order::Weak), of(Does::Read, again));
            let mut go = |site, cta, addr| {
                audit.access(site, Access { thread: Thread::new(cta, 0), addr, bytes: 4, ..Access::NONE });
                audit.end_op();
            };
            go(write, 0, 64);
            go(read, 1, 64);
            for _ in 0..times {
                go(tell, 1, 128);
                go(again, 1, 64);
            }
            go(tell, 1, 128);
            go(take, 2, 128);
            go(again, 1, 64);
            go(weak, 2, 64);
            let mut list = Vec::new();
            audit.shadow.read(64, &mut list);
            assert!(audit.finish().0.is_empty(), "{times}");
            assert!(list.len() < 6, "{list:?}");
        }
    }

    /// What is found, and what is remembered of some words, when threads of two blocks access them by chance in many ways.
    fn run(seed: u64, quick: bool) -> (Vec<Vec<Entry>>, Vec<Finding>) {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut random = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % n
        };
        let mut audit = Audit::new(Options::default());
        (0..2).for_each(|cta| audit.start_cta(cta, 128, None, (0, 0)));
        for _ in 0..400 {
            let cta = u32::try_from(random(2)).unwrap();
            match random(40) {
                0 => {
                    let waited = (0..4).map(|w| (w, u32::MAX)).collect();
                    audit.barrier(cta.into(), &Met { id: 0, waited, is_whole: true });
                }
                1 => audit.warp_barrier(cta.into(), random(4), u32::MAX, u32::MAX),
                2 | 3 => {
                    let fence = audit.site(site(Does::Fence));
                    let order = [Order::Sc, Order::AcqRel][random(2)];
                    audit.fence(Thread::new(cta, 32 * random(4) + random(3)), fence, order, Scope::Gpu);
                    audit.end_op();
                }
                _ => {}
            }
            let does = [Does::Read, Does::Write, Does::Update, Does::Reduce][random(4)];
            let order = [Order::Weak, Order::Relaxed, Order::Relaxed, Order::AcqRel][random(4).min(2 + random(2))];
            let scope = [Scope::Gpu, Scope::Sys, Scope::Gpu, Scope::Cta, Scope::Cluster][random(5)];
            let end = u32::try_from(random(2)).unwrap();
            let span = Span { end, ..Span::NONE };
            let site = audit.site(Site { span, does, order, scope, space: StateSpace::Global, ..Site::NONE });
            let bytes = [4, 4, 4, 8, 2][random(5)];
            let addr = (4 * random(4)) as u64 & !(u64::from(bytes) - 1);
            let (warp, lanes, all_fail) = (random(4), 1 + random(4), random(4) == 0);
            let mut access = |lane| {
                let thread = Thread::new(cta, 32 * warp + lane);
                Access { thread, addr, bytes, failed: all_fail || random(8) == 0, ..Access::NONE }
            };
            let all: Vec<Access> = (0..lanes).map(&mut access).collect();
            match (quick, does) {
                (true, Does::Update | Does::Reduce) => audit.accesses(site, &all),
                _ => all.into_iter().for_each(|access| audit.look_at(site, access, quick)),
            }
            audit.end_op();
        }
        audit.settle_range(0, 64);
        let words = (0..32).step_by(4).map(|at| {
            let mut list = Vec::new();
            audit.shadow.read(at, &mut list);
            list
        });
        (words.collect(), audit.finish().0)
    }

    #[test]
    fn a_quick_look_finds_what_all_rules_find() {
        let mut found = 0;
        for seed in 0..60 {
            let (quick, full) = (run(seed, true), run(seed, false));
            assert_eq!(quick.1, full.1, "seed {seed}");
            assert_eq!(quick.0, full.0, "seed {seed}: what is remembered differs");
            found += full.1.len();
        }
        assert!(found > 200, "{found}");
    }

    /// Atomics of more blocks on one word than are remembered, and some of threads that did the same before.
    #[test]
    fn a_full_chain_is_changed_as_a_list_is() {
        let left = |quick: bool| {
            let mut audit = Audit::new(Options::default());
            let what = Site { order: Order::Relaxed, ..site(Does::Update) };
            let [first, second] = [0, 1].map(|end| audit.site(Site { span: Span { end, ..Span::NONE }, ..what }));
            for cta in 0..200 {
                audit.start_cta(cta.into(), 32, None, (0, 0));
                let thread = Thread::new(cta, 0);
                audit.fence(thread, first, Order::Sc, Scope::Gpu);
                audit.end_op();
                for (site, failed) in [(first, false), (first, cta % 3 == 0), (second, cta % 5 == 0), (second, false)] {
                    let access = Access { thread, addr: 64, bytes: 4, failed, ..Access::NONE };
                    if quick {
                        audit.accesses(site, &[access])
                    } else {
                        audit.look_at(site, access, false)
                    }
                    audit.has_released = cta % 2 == 0;
                    audit.end_op();
                }
            }
            let mut list = Vec::new();
            audit.shadow.read(64, &mut list);
            (list, audit.finish().0)
        };
        let (quick, full) = (left(true), left(false));
        assert_eq!(quick, full);
        assert!(quick.0.len() > 120, "{}", quick.0.len());
    }

    #[test]
    fn who_has_no_room_says_so_and_keeps_what_was_found() {
        let mut audit = Audit::new(Options { room: 2 * Shadow::PAGE_COST, ..Options::default() });
        audit.start_cta(0, 64, None, (0, 0));
        does(&mut audit, Does::Write, 0, 64);
        does(&mut audit, Does::Write, 40, 64);
        (0..3).for_each(|page| does(&mut audit, Does::Write, 0, page << 12));
        assert!(audit.has_given_up());
        does(&mut audit, Does::Write, 41, 0);
        let (found, gave_up) = audit.finish();
        assert_eq!(found.len(), 1);
        assert!(gave_up.unwrap().contains("MiB"));
    }
}
