//! What events do to the clocks of threads.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use handloom_diag::Span;
use handloom_diag::hash::FastMap;
use handloom_ir::types::{Order, Scope, StateSpace};

use crate::again::{Again, Step};
use crate::bag::{Bag, Domain};
use crate::checks::{Check, Checks};
use crate::clock::{Clock, Missed};
use crate::ctas::{Alike, Arrived, Cta, Ctas};
use crate::event::{Event, Met, Site, Thread, told_space};
use crate::finding::{Attempt, Finding, Findings};
use crate::init::{Init, Use};
use crate::known::{Known, Time};
use crate::meetings::Meetings;
use crate::memory::Memory;
use crate::misuse::Misuses;
use crate::proxy::Begun;
use crate::sequence::Sequence;
use crate::shadow::{Entry, SITE_BITS, Shadow};
use crate::told::Told;
use crate::waits::Waits;

/// Most blocks of a grid, as far as entries of shadow memory can name them.
const MOST_CTAS: u64 = 1 << 27;

/// Most releases of all threads that are remembered because a scope was too narrow, for explanations only.
const MOST_MISSED: usize = 64;

/// What counts as a race.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// `volatile` orders as the manual says; else it counts as plain.
    pub strong_volatile: bool,
    /// Unordered writes of the same value are told too.
    pub same_values: bool,
    /// The first finding is enough.
    pub first: bool,
    /// All events are kept, for those who look at a run themselves.
    pub keeps_events: bool,
    /// What was touched is wanted when the launch is over ([`Audit::footprint`]).
    pub keeps_footprint: bool,
    /// A launch in which nothing can be found, as is known before it runs, tells nothing.
    pub proves: bool,
    /// Most bytes of shadow memory.
    pub room: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            strong_volatile: false,
            same_values: false,
            first: false,
            keeps_events: false,
            keeps_footprint: false,
            proves: true,
            room: 4 << 30,
        }
    }
}

/// What is known of a launch while it runs.
#[derive(Debug)]
pub struct Audit {
    pub(crate) checks: Checks,
    pub(crate) options: Options,
    init: Option<Init>,
    memory: Option<Memory>,
    misuses: Option<Misuses>,
    pub(crate) now: Time,
    pub(crate) sites: Vec<Site>,
    numbers: FastMap<Site, u32>,
    pub(crate) ctas: Ctas,
    /// The cluster of each block that has begun, in a launch of clusters; else each block is its own.
    clusters: HashMap<u32, u32>,
    pub(crate) shadow: Shadow,
    /// Accesses to the granule that is looked at; empty between.
    pub(crate) list: Vec<Entry>,
    pub(crate) found: Findings,
    /// What fences of sequential consistency did so far.
    pub(crate) sequence: Sequence,
    /// Address and bytes of shared memory of blocks of clusters that have ended, as long as no other block has it.
    pub(crate) ended: Vec<(u64, u64)>,
    /// What was told at arrivals of clusters, by cluster and phase.
    phases: HashMap<(u32, u64), Arc<Bag>>,
    /// What asynchronous accesses found when they were begun.
    pub(crate) begun: Vec<Begun>,
    /// Whether proxy fences are told, so that those can be missed that are not there.
    pub(crate) follows_proxies: bool,
    /// Who waits at `mbarrier` objects, if somebody looks at misuse.
    pub(crate) waits: Option<Waits>,
    /// Something was released in the op that runs, so that what follows is later.
    pub(crate) has_released: bool,
    /// What the thread that runs does again and again.
    pub(crate) again: Again,
    /// What threads could not take over, and when, the last ones.
    pub(crate) missed: VecDeque<(Thread, Time, Missed)>,
    gave_up: Option<String>,
    events: Vec<Event>,
}

impl Audit {
    /// For a launch that has not begun, to find races.
    pub fn new(options: Options) -> Audit {
        Audit::for_checks(Checks::default().with(Check::Race), options)
    }

    /// For a launch that has not begun.
    pub fn for_checks(checks: Checks, options: Options) -> Audit {
        Audit {
            checks,
            init: checks.has(Check::Init).then(Init::default),
            memory: checks.has(Check::Memory).then(Memory::default),
            misuses: checks.has(Check::Sync).then(Misuses::default),
            options,
            now: 1,
            sites: Vec::new(),
            numbers: FastMap::default(),
            ctas: Ctas::default(),
            clusters: HashMap::new(),
            shadow: Shadow::default(),
            list: Vec::new(),
            found: Findings::default(),
            sequence: Sequence::default(),
            ended: Vec::new(),
            phases: HashMap::new(),
            begun: Vec::new(),
            follows_proxies: false,
            waits: checks.has(Check::Sync).then(Waits::default),
            has_released: false,
            again: Again::default(),
            missed: VecDeque::new(),
            gave_up: None,
            events: Vec::new(),
        }
    }

    /// The races that were found, and why the check ended before the launch did, if it did.
    pub fn finish(&mut self) -> (Vec<Finding>, Option<String>) {
        (std::mem::take(&mut self.found).into_list(), self.gave_up.take())
    }

    /// What is known of bits that nobody wrote, if that is asked for and the check has not ended.
    pub fn init(&mut self) -> Option<&mut Init> {
        if self.gave_up.is_some() { None } else { self.init.as_mut() }
    }

    /// What is known of memory that kernels allocate, if that is asked for.
    pub fn memory(&mut self) -> Option<&mut Memory> {
        self.memory.as_mut()
    }

    /// The space that accesses to a state space are told of, and its number from 0; `None` where nobody looks.
    pub fn told_space(&self, space: StateSpace) -> Option<(StateSpace, usize)> {
        told_space(space, self.options.keeps_footprint)
    }

    /// Whether somebody looks at accesses.
    pub fn has_races(&self) -> bool {
        self.checks.has(Check::Race)
    }

    /// Misuse of barriers and masks, if that is asked for.
    pub fn misuses(&mut self) -> Option<&mut Misuses> {
        self.misuses.as_mut()
    }

    /// What is known of memory, once: the launch is over.
    pub fn take_memory(&mut self) -> Option<Memory> {
        self.memory.take()
    }

    /// The uses of bits that nobody wrote. To be asked once, when the launch is over.
    pub fn take_uses(&mut self) -> Vec<Use> {
        self.init.take().map_or_else(Vec::new, Init::finish)
    }

    /// Takes the events so far, if they are kept.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.interrupt();
        std::mem::take(&mut self.events)
    }

    pub(crate) fn keep(&mut self, event: impl FnOnce(&Audit) -> Event) {
        if self.options.keeps_events {
            let event = event(self);
            self.events.push(event);
        }
    }

    /// Whether there is a finding, and no more are asked for.
    pub fn is_enough(&self) -> bool {
        let has_found = || {
            !self.found.is_empty()
                || self.init.as_ref().is_some_and(Init::has_found)
                || self.misuses.as_ref().is_some_and(|m| !m.list().is_empty())
                || self.memory.as_ref().is_some_and(|m| !m.strays().is_empty())
        };
        self.options.first && has_found()
    }

    /// Whether the check has ended.
    pub fn has_given_up(&self) -> bool {
        self.gave_up.is_some()
    }

    pub(crate) fn give_up(&mut self, why: impl Into<String>) {
        if self.gave_up.is_none() {
            self.gave_up = Some(why.into());
            self.shadow = Shadow::default();
        }
    }

    /// The number of a site.
    pub fn site(&mut self, site: Site) -> u32 {
        if let Some(known) = self.numbers.get(&site) {
            return *known;
        }
        let new = u32::try_from(self.sites.len()).unwrap_or(u32::MAX);
        if new >> SITE_BITS != 0 {
            self.give_up(format!("the kernel has more than {} places that touch memory", 1 << SITE_BITS));
            return 0;
        }
        self.sites.push(site);
        self.numbers.insert(site, new);
        new
    }

    /// A block starts. `cluster`: the number of its cluster, if it is one of several blocks; `shared`: address and bytes of its shared memory, which holds nothing of others.
    pub fn start_cta(&mut self, cta: u64, threads: u32, cluster: Option<u32>, shared: (u64, u64)) {
        self.interrupt();
        if self.checks == Checks::default() {
            return;
        }
        if cta >= MOST_CTAS {
            self.give_up(format!("the grid has more than {MOST_CTAS} blocks"));
        }
        let number = u32::try_from(cta).unwrap_or(u32::MAX);
        self.shadow.forget(shared.0, shared.1);
        self.ended.retain(|(base, _)| *base != shared.0);
        if let Some(cluster) = cluster {
            self.clusters.insert(number, cluster);
        }
        let proxies = self.follows_proxies;
        self.keep(|audit| Event::StartCta { cta: number, threads, cluster: audit.cluster_of(number), shared, proxies });
        // Nobody asks what threads know where races are not looked for.
        let threads = if self.has_races() { usize::try_from(threads).unwrap_or(0) } else { 0 };
        let clocks = vec![Clock::default(); threads];
        let alike = vec![Alike::Unseen; threads.div_ceil(32)];
        self.ctas.insert(number, Cta { shared, clocks, alike, arrived: HashMap::new(), meetings: Meetings::default() });
    }

    /// A block has ended.
    pub fn end_cta(&mut self, cta: u64) {
        self.interrupt();
        let Ok(number) = u32::try_from(cta) else { return };
        if let Some(ended) = self.ctas.remove(number) {
            self.leaves_cluster(number, &ended);
            if self.has_clusters() {
                self.ended.push(ended.shared);
            }
            self.shadow.forget(ended.shared.0, ended.shared.1);
            self.sequence.forget(number);
        }
    }

    /// A range is other memory from now on: nobody has touched it.
    pub fn renew(&mut self, addr: u64, bytes: u64) {
        self.interrupt();
        self.settle_range(addr, bytes);
        self.shadow.renew(addr, bytes);
    }

    /// The op of a warp is over. Call it after each op that told something.
    pub fn end_op(&mut self) {
        if self.init.as_ref().is_some_and(|init| init.cost() > self.options.room) {
            self.give_up(format!(
                "what is remembered of bytes that nobody wrote takes more than {} MiB",
                self.options.room >> 20
            ));
        }
        if !self.ends_again() {
            self.end_step();
        }
    }

    /// The op is over, as far as order goes.
    pub(crate) fn end_step(&mut self) {
        if std::mem::take(&mut self.has_released) {
            self.tick();
        }
    }

    /// What happens from now on is later than what happened.
    fn tick(&mut self) {
        match self.now.checked_add(1) {
            Some(next) => self.now = next,
            None => self.give_up("the launch has more than 2^32 events that order memory"),
        }
    }

    /// A thread that runs, with its clock.
    pub(crate) fn clock(&mut self, who: Thread) -> Option<&mut Clock> {
        self.ctas.running(who)
    }

    /// Until when all that a block did comes before every thread of a warp, and all that the warp did, if they know that and no more.
    pub(crate) fn times_of(&mut self, cta: u32, warp: usize) -> Option<(Time, Time)> {
        let cta = self.ctas.get_mut(cta)?;
        let known = cta.alike.get_mut(warp)?;
        if let Alike::Unseen = known {
            let end = cta.clocks.len().min(32 * warp + 32);
            let clocks = &cta.clocks[32 * warp..end];
            let first = clocks.first()?;
            let is_plain = clocks.iter().all(|c| c.is_plain() && (c.cta, c.warp) == (first.cta, first.warp));
            *known = if is_plain { Alike::Yes(first.cta, first.warp) } else { Alike::No };
        }
        if let Alike::Yes(cta, warp) = *known { Some((cta, warp)) } else { None }
    }

    /// The cluster of a thread, if it is more than its block.
    pub(crate) fn cluster(&self, who: Thread) -> Option<u32> {
        self.clusters.get(&who.cta).copied()
    }

    /// The place of an address in the shared memory of a block that runs: of this one, or another one.
    pub fn shared_offset(&self, cta: u32, addr: u64) -> Option<u64> {
        let inside = |cta: &Cta| Some(addr.wrapping_sub(cta.shared.0)).filter(|inside| *inside < cta.shared.1);
        self.ctas.get(cta).into_iter().chain(self.ctas.all()).find_map(inside)
    }

    /// Whether blocks are in clusters of several.
    pub(crate) fn has_clusters(&self) -> bool {
        !self.clusters.is_empty()
    }

    /// The cluster of a block that has begun.
    pub(crate) fn cluster_of(&self, cta: u32) -> u32 {
        self.clusters.get(&cta).copied().unwrap_or(cta)
    }

    /// All that a thread knows and did.
    pub(crate) fn snapshot(&mut self, who: Thread) -> Told {
        let now = self.now;
        self.has_released = true;
        self.clock(who).map_or_else(Told::default, |clock| clock.snapshot(who, now))
    }

    /// A thread executes a fence.
    pub fn fence(&mut self, who: Thread, site: u32, order: Order, scope: Scope) {
        if !self.is_again(who, Step::Fence(site, order, scope)) {
            self.pass_fence(who, site, order, scope);
        }
    }

    /// The same, which is looked at now.
    pub(crate) fn pass_fence(&mut self, who: Thread, site: u32, order: Order, scope: Scope) {
        self.keep(|_| Event::Fence { who, order, scope });
        self.goes_on(who);
        if !self.has_races() {
            return;
        }
        let acquires = matches!(order, Order::Acquire | Order::AcqRel | Order::Sc);
        let releases = matches!(order, Order::Release | Order::AcqRel | Order::Sc);
        if acquires && let Some(orders) = self.clock(who).and_then(|c| c.orders.as_mut()) {
            let mut pending = std::mem::take(&mut orders.pending);
            pending.retain(|(_, bag)| !self.acquire(who, site, scope, bag));
            if let Some(clock) = self.clock(who) {
                clock.orders().pending = pending;
            }
        }
        if acquires
            && let Some(clock) = self.clock(who)
            && clock.orders.is_some()
        {
            let narrow = std::mem::take(&mut clock.orders().narrow);
            self.misses(who, &narrow);
        }
        if order == Order::Sc {
            self.pass_sequence(who, site, scope);
        } else if releases {
            let now = self.now;
            self.has_released = true;
            if let Some(clock) = self.clock(who) {
                clock.unheard = 0;
                clock.release(who, now, scope, site);
            }
        }
    }

    /// A thread takes what its scope lets it take. Says whether that was all.
    pub(crate) fn acquire(&mut self, who: Thread, site: u32, scope: Scope, bag: &Bag) -> bool {
        let (cluster, now) = (self.cluster(who), self.now);
        let site_of = |number: u32| usize::try_from(number).ok().and_then(|i| self.sites.get(i)).copied();
        let attempt = bag.from.and_then(|(from, of)| {
            let (release, acquire) = ((site_of(from)?, of), (site_of(site)?, scope));
            Some(Attempt { release, acquire })
        });
        let Some(clock) = self.clock(who) else { return true };
        bag.take(scope, who, cluster).for_each(|told| clock.learn(who, told, now));
        // What is known by now explains nothing.
        let left: Vec<&Told> = bag.left(scope, who, cluster).filter(|told| !clock.knows(who, told)).collect();
        let missed = |attempt| left.iter().map(|told| Missed { known: told.whole(), attempt }).collect();
        let missed: Vec<Missed> = attempt.map_or_else(Vec::new, missed);
        let is_all = left.is_empty();
        self.misses(who, &missed);
        is_all
    }

    /// A thread cannot take over something, since a scope is too narrow. Others will not hear of it from this thread either.
    pub(crate) fn misses(&mut self, who: Thread, list: &[Missed]) {
        if list.is_empty() {
            return;
        }
        let now = self.now;
        if let Some(clock) = self.clock(who) {
            clock.miss(list);
        }
        for new in list {
            let is_there = self.missed.iter().any(|(by, _, m)| *by == who && Arc::ptr_eq(&m.known, &new.known));
            if !is_there {
                if self.missed.len() >= MOST_MISSED {
                    self.missed.pop_front();
                }
                self.missed.push_back((who, now, new.clone()));
            }
        }
    }

    /// Lanes of a warp arrive at a barrier of their block and do not wait for it.
    pub fn arrive(&mut self, cta: u64, id: u32, warp: usize, lanes: u32) {
        self.interrupt();
        let Ok(cta) = u32::try_from(cta) else { return };
        self.keep(|_| Event::Arrive { cta, id, warp, lanes });
        if !self.has_races() {
            return self.all_go_on(cta, warp, lanes);
        }
        for who in threads(cta, warp, lanes) {
            let known = self.snapshot(who);
            self.goes_on(who);
            if let Some(cta) = self.ctas.get_mut(cta) {
                let arrived = cta.arrived.entry(id).or_default();
                arrived.known.join(&known.whole());
                *arrived.lanes.entry(warp).or_default() |= who.bit();
            }
        }
        self.end_op();
    }

    /// A barrier of a block is met.
    pub fn barrier(&mut self, cta: u64, met: &Met) {
        self.interrupt();
        let Ok(number) = u32::try_from(cta) else { return };
        self.keep(|_| Event::Barrier { cta: number, met: met.clone() });
        if !self.has_races() {
            return met.waited.iter().for_each(|(warp, lanes)| self.all_go_on(number, *warp, *lanes));
        }
        let now = self.now;
        let Some(cta) = self.ctas.get_mut(number) else { return };
        if cta.all_meet(met, now) {
            met.waited.iter().for_each(|(warp, lanes)| self.all_go_on(number, *warp, *lanes));
            return self.tick();
        }
        let arrived = cta.arrived.remove(&met.id);
        let all: Vec<Thread> = met.waited.iter().flat_map(|(warp, lanes)| threads(number, *warp, *lanes)).collect();
        let gone = if met.is_whole { absent(cta, number, met, arrived.as_ref()) } else { vec![] };
        gone.iter().for_each(|who| cta.clock_mut(*who).into_iter().for_each(Clock::settle));
        match arrived {
            None if met.is_whole => {
                // What they did is known as what the block did, what they know is not.
                let told = gone.iter().filter_map(|who| cta.clock(*who)?.more.as_deref());
                let told = told.fold(None, |all: Option<Known>, more| {
                    let mut all = all.unwrap_or_default();
                    all.join(more);
                    Some(all)
                });
                meet(cta, &all, now, |clock, _| clock.meet(now), told);
            }
            arrived => {
                let mut known = arrived.unwrap_or_default().known;
                for who in gone {
                    if let Some(clock) = cta.clock_mut(who) {
                        known.join(&clock.snapshot(who, now).whole());
                    }
                }
                met.waited.iter().for_each(|(warp, lanes)| {
                    known.learn_lanes(number, warp_number(*warp), *lanes, now);
                });
                meet(cta, &all, now, |_, _| {}, Some(known));
            }
        }
        all.iter().for_each(|who| self.goes_on(*who));
        self.tick();
    }

    /// Lanes of a warp have met at `bar.warp.sync`. `live`: those that have not exited.
    pub fn warp_barrier(&mut self, cta: u64, warp: usize, lanes: u32, live: u32) {
        self.interrupt();
        let Ok(number) = u32::try_from(cta) else { return };
        self.keep(|_| Event::WarpBarrier { cta: number, warp, lanes });
        if !self.has_races() {
            return self.all_go_on(number, warp, lanes);
        }
        let now = self.now;
        let Some(cta) = self.ctas.get_mut(number) else { return };
        let all: Vec<Thread> = threads(number, warp, lanes).collect();
        if live & !lanes == 0 {
            meet(cta, &all, now, |clock, _| clock.warp = now, None);
        } else {
            let mut known = Known::default();
            known.learn_lanes(number, warp_number(warp), lanes, now);
            meet(cta, &all, now, |_, _| {}, Some(known));
        }
        all.iter().for_each(|who| self.goes_on(*who));
        self.tick();
    }

    /// Lanes of a warp arrive at a phase of the barrier of their cluster. `releases`: what they did is told; else only what their fences have released.
    pub fn cluster_arrive(&mut self, cta: u64, phase: u64, warp: usize, lanes: u32, releases: bool) {
        self.interrupt();
        let Ok(number) = u32::try_from(cta) else { return };
        self.keep(|_| Event::ClusterArrive { cta: number, phase, warp, lanes, releases });
        if !self.has_races() {
            return self.all_go_on(number, warp, lanes);
        }
        for who in threads(number, warp, lanes) {
            self.goes_on(who);
            let (cluster, number) = (self.cluster(who), self.cluster_of(who.cta));
            if releases {
                let known = self.snapshot(who);
                let domain = cluster.map_or(Domain::Cta(who.cta), Domain::Cluster);
                Arc::make_mut(self.phases.entry((number, phase)).or_default()).tell(domain, &known);
                continue;
            }
            self.clock(who).into_iter().for_each(Clock::settle);
            let fences = self.clock(who).and_then(|c| c.orders.as_ref()).map_or_else(Vec::new, |o| o.fences.clone());
            let bag = Arc::make_mut(self.phases.entry((number, phase)).or_default());
            fences.iter().for_each(|r| bag.put(&r.told, r.scope, who, cluster, r.site));
        }
        self.end_op();
    }

    /// A thread has waited for a phase of the barrier of its cluster.
    pub fn cluster_wait(&mut self, who: Thread, phase: u64) {
        self.interrupt();
        self.keep(|_| Event::ClusterWait { who, phase });
        self.goes_on(who);
        if !self.has_races() {
            return;
        }
        let cluster = self.cluster(who);
        let number = self.cluster_of(who.cta);
        let Audit { phases, ctas, now, .. } = self;
        let Some(bag) = phases.get_mut(&(number, phase)) else { return };
        Bag::settle(bag, who);
        if let Some(clock) = ctas.get_mut(who.cta).and_then(|cta| cta.clock_mut(who)) {
            bag.take(Scope::Cluster, who, cluster).for_each(|told| clock.learn(who, told, *now));
        }
    }

    /// How many phases of an `mbarrier` object have ended since it was written.
    pub fn phases_of(&self, object: u64) -> u64 {
        self.waits.as_ref().map_or(0, |waits| waits.phases(object))
    }

    /// A thread makes an `mbarrier` object invalid.
    pub fn invalidate(&mut self, object: u64, by: (Span, Thread)) {
        self.interrupt();
        if let Some(waits) = &mut self.waits {
            waits.overwritten((object, 8), by);
        }
        if let Some(init) = self.init() {
            init.renew(object, 8);
        }
    }

    /// The same of lanes of a warp.
    fn all_go_on(&mut self, cta: u32, warp: usize, lanes: u32) {
        if self.waits.is_some() {
            threads(cta, warp, lanes).for_each(|who| self.goes_on(who));
        }
    }

    /// A thread does something that may order what it did before: it does not just ask an `mbarrier` object again and again.
    fn goes_on(&mut self, who: Thread) {
        if let Some(waits) = &mut self.waits {
            waits.goes_on(who);
        }
    }
}

/// The threads of a block that are not among those that met, nor arrived: they have exited, if nobody else is left.
fn absent(cta: &Cta, number: u32, met: &Met, arrived: Option<&Arrived>) -> Vec<Thread> {
    let n_warps = cta.clocks.len().div_ceil(32);
    let is_there = |who: &Thread| {
        let warp = usize::from(who.warp);
        let waited = met.waited.iter().any(|(w, lanes)| *w == warp && lanes & who.bit() != 0);
        waited || arrived.and_then(|a| a.lanes.get(&warp)).is_some_and(|lanes| lanes & who.bit() != 0)
    };
    let n_waited: u32 = met.waited.iter().map(|(_, lanes)| lanes.count_ones()).sum();
    if usize::try_from(n_waited) == Ok(cta.clocks.len()) {
        return vec![];
    }
    let all = (0..n_warps).flat_map(|warp| threads(number, warp, u32::MAX));
    all.take(cta.clocks.len()).filter(|who| !is_there(who)).collect()
}

/// The threads of lanes of a warp.
fn threads(cta: u32, warp: usize, lanes: u32) -> impl Iterator<Item = Thread> {
    (0..32).filter(move |lane| lanes >> lane & 1 == 1).map(move |lane| Thread { cta, warp: warp_number(warp), lane })
}

fn warp_number(warp: usize) -> u8 {
    u8::try_from(warp & 31).unwrap_or(0)
}

/// Threads of a block come to know what each of them knows, and `told`. `step`: what a clock says after that.
fn meet(cta: &mut Cta, all: &[Thread], now: Time, step: impl Fn(&mut Clock, Thread), told: Option<Known>) {
    for who in all {
        if let Some(known) = cta.alike.get_mut(usize::from(who.warp)) {
            *known = Alike::Unseen;
        }
    }
    let number = |who: &Thread| usize::try_from(who.number()).unwrap_or(usize::MAX);
    all.iter().for_each(|who| cta.clock_mut(*who).into_iter().for_each(Clock::settle));
    let mut known: Vec<Arc<Known>> = told.map(Arc::new).into_iter().collect();
    let mut missed: Vec<Missed> = Vec::new();
    let mut latest = 0;
    let is_part = !known.is_empty();
    for clock in all.iter().filter_map(|who| cta.clocks.get(number(who))) {
        if let Some(more) = &clock.more
            && !known.iter().any(|k| Arc::ptr_eq(k, more))
        {
            known.push(Arc::clone(more));
        }
        for m in clock.missed() {
            if !missed.iter().any(|there| Arc::ptr_eq(&there.known, &m.known)) {
                missed.push(m.clone());
            }
        }
        latest = latest.max(clock.cta);
    }
    // What one knows of its warp as a whole, those of other warps learn; where all of a block or a warp meet, the step says more.
    if is_part {
        let mut marks = Known::default();
        for who in all {
            if let Some(clock) = cta.clocks.get(number(who)) {
                marks.learn_warp(who.cta, who.warp, clock.warp);
            }
        }
        known.push(Arc::new(marks));
    }
    let joined = match known.as_slice() {
        [] => None,
        [one] => Some(Arc::clone(one)),
        [first, rest @ ..] => {
            let mut joined = Known::clone(first);
            rest.iter().for_each(|k| joined.join(k));
            Some(Arc::new(joined))
        }
    };
    for who in all {
        let Some(clock) = cta.clocks.get_mut(number(who)) else { continue };
        clock.cta = clock.cta.max(latest);
        clock.learns(now);
        step(clock, *who);
        if let Some(joined) = &joined {
            clock.more = Some(Arc::clone(joined));
        }
        clock.miss(&missed);
    }
}
