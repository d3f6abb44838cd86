//! Which accesses of a trace are races, by the definitions of the *PTX ISA* chapter *Memory Consistency Model*, read word by word.
//!
//! Slow and plain on purpose: each thread has a clock with a number for each thread that it knows of, each access keeps the clock of its moment, and
//! each pair of accesses to a byte is looked at. Nothing is merged, forgotten or summed up.

use std::collections::{BTreeSet, HashMap, HashSet};

use handloom_audit::{Access, Does, Event, Met, Proxy, ProxyFence, Site, Thread, Turn};
use handloom_diag::Span;
use handloom_ir::types::{Order, Scope, StateSpace};
use handloom_runtime::Finding;

/// How far each thread is known, by its number; 0, or no place: not at all. The first two are the last `fence.sc` that comes before, and the last one of
/// which something was heard.
type Clock = Vec<u64>;

/// Places of a clock that stand for no thread.
const PASSED: usize = 0;
const HEARD: usize = 1;

/// How far a place of a clock is.
fn at(clock: &Clock, place: usize) -> u64 {
    clock.get(place).copied().unwrap_or(0)
}

/// Sets a place that was behind.
fn raise(clock: &mut Clock, place: usize, to: u64) {
    clock.resize(clock.len().max(place + 1), 0);
    clock[place] = clock[place].max(to);
}

/// What somebody tells, and how far it reaches.
type Told = (Scope, Thread, Clock);

fn join(to: &mut Clock, from: &Clock) {
    to.resize(to.len().max(from.len()), 0);
    to.iter_mut().zip(from).for_each(|(there, n)| *there = (*there).max(*n));
}

/// An access with its moment.
struct Did {
    site: Site,
    access: Access,
    /// Its number among the events of its thread, and what came before it.
    number: u64,
    before: Clock,
    /// The number of its thread.
    who: usize,
    /// How many writes of its location there had been.
    n_writes: usize,
}

impl Did {
    fn does(&self) -> Does {
        if self.access.failed { Does::Read } else { self.site.does }
    }

    fn writes(&self) -> bool {
        !matches!(self.does(), Does::Read | Does::Fence)
    }

    fn reads(&self) -> bool {
        !matches!(self.does(), Does::Write | Does::Fence)
    }

    fn is_strong(&self) -> bool {
        !matches!(self.site.order, Order::Weak | Order::Volatile)
    }

    /// Operations on `mbarrier` objects count as of the scope of a cluster at least, which the check says of itself.
    fn scope(&self) -> Scope {
        let is_barrier = self.site.does == Does::Step || self.access.turn != Turn::None;
        if is_barrier { self.site.scope.max(Scope::Cluster) } else { self.site.scope }
    }

    /// Whether it writes as stores and atomics do.
    fn writes_generically(&self) -> bool {
        self.writes() && self.site.does != Does::Step && self.site.proxy == Proxy::Generic
    }

    /// What it accesses: an address and bytes.
    fn location(&self) -> (u64, u8) {
        (self.access.addr, self.access.bytes)
    }

    fn range(&self) -> std::ops::Range<u64> {
        self.access.addr..self.access.addr + u64::from(self.access.bytes)
    }
}

/// A proxy fence, its number among the events of its thread, and what came before it.
struct Passed {
    fence: ProxyFence,
    who: Thread,
    number: u64,
    before: Clock,
}

/// A release: what came before it, its scope, who did it, and the location if it is an operation.
struct Release {
    clock: Clock,
    scope: Scope,
    who: Thread,
    on: Option<(u64, u8)>,
}

/// A strong write with the releases that begin release patterns which end in it.
#[derive(Default)]
struct Trace {
    clusters: HashMap<u32, u32>,
    sizes: HashMap<u32, u32>,
    clocks: HashMap<Thread, Clock>,
    /// Numbers of threads, as they come.
    numbers: HashMap<Thread, usize>,
    all: Vec<Did>,
    /// By strong write and number of a thread: the first event of the thread that observes it, by number, or 0. Who knows of a later one knows of the first.
    observers: HashMap<usize, Clock>,
    /// By first address: the writes of a location, by index, the latest last.
    writes: HashMap<u64, Vec<usize>>,
    releases: Vec<Release>,
    /// By thread: its releases.
    released: HashMap<Thread, Vec<usize>>,
    /// By strong write: releases before it in its thread.
    heads: HashMap<usize, Vec<usize>>,
    /// Reads that a thread, its own, has acquired with a scope.
    acquired: HashSet<(usize, Scope)>,
    /// By thread: its strong reads that are no reductions.
    reads: HashMap<Thread, Vec<usize>>,
    /// Fences of sequential consistency: scope, thread, and what came before.
    fences: Vec<Told>,
    /// By address: the last such fence before strong writes there and what they have overwritten, and before strong reads there.
    fenced: HashMap<u64, (u64, u64)>,
    /// Arrivals at barriers of blocks that have not met, with what came before.
    arrived: HashMap<(u32, u32), Vec<(Thread, Clock)>>,
    /// What is released at arrivals of clusters.
    phases: HashMap<(u32, u64), Vec<Told>>,
    /// Whether proxy fences are told.
    follows_proxies: bool,
    proxy_fences: Vec<Passed>,
    /// What came before asynchronous accesses where they began, and how many accesses there had been, by their number.
    begun: HashMap<u32, (Clock, usize)>,
    /// Shared memory was given to another block: accesses before this index are to other memory.
    shared_since: Vec<((u64, u64), usize)>,
}

/// Whether a check found the pairs of lines that race in its launches, those and no others.
///
/// # Errors
/// The pairs that only one of the two has.
pub fn agrees(text: &str, launches: &[Vec<Event>], findings: &[Finding]) -> Result<usize, String> {
    let pair = |a: u32, b: u32| (a.min(b), a.max(b));
    let second = |f: &Finding| f.second.as_ref().map_or(f.first.line, |at| at.line);
    let races = findings.iter().filter(|f| f.kind == "race");
    has_found(text, launches, &races.map(|f| pair(f.first.line, second(f))).collect())
}

/// The same of pairs of lines, the lower one first.
///
/// # Errors
/// The pairs that only one of the two has.
pub fn has_found(text: &str, launches: &[Vec<Event>], got: &Lines) -> Result<usize, String> {
    let (want, hidden) = told_and_hidden(text, launches);
    let missed: Vec<_> = want.difference(got).collect();
    let stray: Vec<_> = got.iter().filter(|pair| !want.contains(pair) && !hidden.contains(pair)).collect();
    if missed.is_empty() && stray.is_empty() {
        return Ok(want.len());
    }
    Err(format!("pairs of lines that are missed: {missed:?}, that are none: {stray:?}"))
}

/// The pairs of lines of a text that race in its launches, the lower one first.
pub fn races_of(text: &str, launches: &[Vec<Event>]) -> Lines {
    let (told, hidden) = told_and_hidden(text, launches);
    told.into_iter().chain(hidden).collect()
}

/// Pairs of lines, the lower one first.
pub type Lines = BTreeSet<(u32, u32)>;

/// The pairs of lines that race, those first of which a check must tell.
fn told_and_hidden(text: &str, launches: &[Vec<Event>]) -> (Lines, Lines) {
    let line = |span: Span| {
        let start = usize::try_from(span.start).unwrap_or(0);
        u32::try_from(text[..start].matches('\n').count() + 1).unwrap_or(0)
    };
    let pair = |a: u32, b: u32| (a.min(b), a.max(b));
    let (mut told, mut hidden) = (BTreeSet::new(), BTreeSet::new());
    for events in launches {
        let of_launch = races(events);
        told.extend(of_launch.0.iter().map(|(a, b)| pair(line(*a), line(*b))));
        hidden.extend(of_launch.1.iter().map(|(a, b)| pair(line(*a), line(*b))));
    }
    (told, hidden)
}

/// Bytes, scope and its block or cluster.
type Alike = (std::ops::Range<u64>, Scope, u32);

/// Pairs of statements, the lower one first.
type Pairs = BTreeSet<(Span, Span)>;

/// The pairs of statements that race, and those that race only behind another access that a check tells instead.
fn races(events: &[Event]) -> (Pairs, Pairs) {
    let mut trace = Trace::default();
    events.iter().for_each(|event| trace.event(event));
    trace.races()
}

impl Trace {
    fn event(&mut self, event: &Event) {
        match event {
            Event::StartCta { cta, threads, cluster, shared, proxies } => {
                self.follows_proxies = *proxies;
                self.clusters.insert(*cta, *cluster);
                self.sizes.insert(*cta, *threads);
                self.shared_since.push((*shared, self.all.len()));
            }
            Event::Access { site, access } => self.access(*site, *access),
            Event::Fence { who, order, scope } => self.fence(*who, *order, *scope),
            Event::Arrive { cta, id, warp, lanes } => {
                for who in lanes_of(*cta, *warp, *lanes) {
                    let clock = self.step(who);
                    self.arrived.entry((*cta, *id)).or_default().push((who, clock));
                }
            }
            Event::Barrier { cta, met } => self.barrier(*cta, met),
            Event::WarpBarrier { cta, warp, lanes } => {
                let all: Vec<Thread> = lanes_of(*cta, *warp, *lanes).collect();
                self.meet(&all, Clock::default());
            }
            Event::ClusterArrive { cta, phase, warp, lanes, releases } => {
                for who in lanes_of(*cta, *warp, *lanes) {
                    let clock = self.step(who);
                    let mine = || self.releases_of(who).map(|i| &self.releases[i]).filter(|r| r.on.is_none());
                    let told: Vec<Told> = match releases {
                        true => vec![(Scope::Cluster, who, clock)],
                        false => mine().map(|r| (r.scope, who, r.clock.clone())).collect(),
                    };
                    self.phases.entry((self.clusters[cta], *phase)).or_default().extend(told);
                }
            }
            Event::ClusterWait { who, phase } => {
                let told = self.phases.get(&(self.clusters[&who.cta], *phase)).cloned().unwrap_or_default();
                let mine = told.iter().filter(|(scope, by, _)| self.mutual((*scope, *by), (Scope::Cluster, *who)));
                let mut all = Clock::default();
                mine.for_each(|(_, _, clock)| join(&mut all, clock));
                join(self.clocks.entry(*who).or_default(), &all);
            }
            Event::ProxyFence { who, fence } => {
                let before = self.step(*who);
                self.proxy_fences.push(Passed { fence: *fence, who: *who, number: before[self.numbers[who]], before });
            }
            Event::Begin { who, number } => {
                let clock = self.step(*who);
                self.begun.insert(*number, (clock, self.all.len()));
            }
        }
    }

    /// The thread does something: the clock then, with this event in it.
    fn step(&mut self, who: Thread) -> Clock {
        let at = self.number(who);
        let clock = self.clocks.entry(who).or_default();
        clock.resize(clock.len().max(at + 1), 0);
        clock[at] += 1;
        clock.clone()
    }

    fn number(&mut self, who: Thread) -> usize {
        let new = self.numbers.len() + 2;
        *self.numbers.entry(who).or_insert(new)
    }

    fn barrier(&mut self, cta: u32, met: &Met) {
        let waited: Vec<Thread> = met.waited.iter().flat_map(|(warp, lanes)| lanes_of(cta, *warp, *lanes)).collect();
        let arrived = self.arrived.remove(&(cta, met.id)).unwrap_or_default();
        let mut told = Clock::default();
        // Only what came before the arrival, not what the thread did between it and the meeting.
        arrived.iter().for_each(|(_, clock)| join(&mut told, clock));
        if met.is_whole {
            // Nobody else is left: the rest has exited, and counts as if it had arrived, which the check says of itself.
            let all = (0..self.sizes[&cta]).map(|n| Thread::new(cta, usize::try_from(n).unwrap()));
            let gone = all.filter(|who| !waited.contains(who) && !arrived.iter().any(|(a, _)| a == who));
            let clocks: Vec<Clock> = gone.filter_map(|who| self.clocks.get(&who).cloned()).collect();
            clocks.iter().for_each(|clock| join(&mut told, clock));
        }
        self.meet(&waited, told);
    }

    fn meet(&mut self, all: &[Thread], mut told: Clock) {
        for who in all {
            let clock = self.step(*who);
            join(&mut told, &clock);
        }
        for who in all {
            join(self.clocks.entry(*who).or_default(), &told);
        }
    }

    fn includes(&self, scope: Scope, who: Thread, other: Thread) -> bool {
        match scope {
            Scope::Cta => who.cta == other.cta,
            Scope::Cluster => self.clusters[&who.cta] == self.clusters[&other.cta],
            Scope::Gpu | Scope::Sys => true,
        }
    }

    fn mutual(&self, a: (Scope, Thread), b: (Scope, Thread)) -> bool {
        self.includes(a.0, a.1, b.1) && self.includes(b.0, b.1, a.1)
    }

    fn morally_strong(&self, a: &Did, b: &Did) -> bool {
        let ends = (a.scope(), a.access.thread);
        a.is_strong() && b.is_strong() && a.range() == b.range() && self.mutual(ends, (b.scope(), b.access.thread))
    }

    /// What a strong access has in common with others that it is morally strong with: two that have the same are no race.
    fn alike(&self, did: &Did) -> Option<Alike> {
        let group = match did.scope() {
            Scope::Cta => did.access.thread.cta,
            Scope::Cluster => self.clusters[&did.access.thread.cta],
            Scope::Gpu | Scope::Sys => 0,
        };
        (did.is_strong() && !self.follows_proxies).then(|| (did.range(), did.scope(), group))
    }

    fn fence(&mut self, who: Thread, order: Order, scope: Scope) {
        let clock = self.step(who);
        if matches!(order, Order::Acquire | Order::AcqRel | Order::Sc) {
            let reads = self.reads.get(&who).cloned().unwrap_or_default();
            reads.into_iter().for_each(|read| self.acquire(who, scope, read));
        }
        if order == Order::Sc {
            // Only those that must come first: something behind them reached something before this one, at one location.
            let heard = usize::try_from(at(&self.clocks[&who], HEARD)).unwrap();
            let earlier: Vec<Clock> = self.fences[..heard]
                .iter()
                .filter(|(s, t, _)| self.mutual((*s, *t), (scope, who)))
                .map(|f| f.2.clone())
                .collect();
            earlier.iter().for_each(|clock| join(self.clocks.entry(who).or_default(), clock));
            let number = u64::try_from(self.fences.len()).unwrap() + 1;
            raise(self.clocks.entry(who).or_default(), PASSED, number);
            let clock = self.clocks[&who].clone();
            self.fences.push((scope, who, clock));
        }
        if matches!(order, Order::Release | Order::AcqRel | Order::Sc) {
            let mut known = clock;
            join(&mut known, &self.clocks[&who]);
            self.release(Release { clock: known, scope, who, on: None });
        }
    }

    fn release(&mut self, release: Release) {
        self.released.entry(release.who).or_default().push(self.releases.len());
        self.releases.push(release);
    }

    fn releases_of(&self, who: Thread) -> impl Iterator<Item = usize> {
        self.released.get(&who).into_iter().flatten().copied()
    }

    /// An acquire pattern ends, which begins with a strong read.
    fn acquire(&mut self, who: Thread, scope: Scope, read: usize) {
        // Who has acquired it knows it from then on.
        if !self.acquired.insert((read, scope)) {
            return;
        }
        let observed = self.observed(read, |_| false);
        let heads: BTreeSet<usize> =
            observed.iter().flat_map(|write| self.heads.get(write).into_iter().flatten().copied()).collect();
        let mut told = Clock::default();
        for release in heads.into_iter().map(|head| &self.releases[head]) {
            if self.mutual((release.scope, release.who), (scope, who)) {
                join(&mut told, &release.clock);
            }
        }
        join(self.clocks.entry(who).or_default(), &told);
    }

    fn access(&mut self, site: Site, access: Access) {
        let who = access.thread;
        let of_thread = self.number(who);
        let number = self.step(who)[of_thread];
        let index = self.all.len();
        let before = Clock::default();
        self.all.push(Did { site, access, number, before, who: of_thread, n_writes: 0 });
        let is_strong = self.all[index].is_strong();
        if is_strong && self.all[index].reads() {
            self.all[index].n_writes = self.writes.get(&access.addr).map_or(0, Vec::len);
            // Behind a write that the thread has observed before there is none that it has not.
            let is_known = |write: &usize| {
                self.observers.get(write).and_then(|by| by.get(of_thread)).is_some_and(|number| *number != 0)
            };
            for write in self.observed(index, is_known) {
                let by = self.observers.entry(write).or_default();
                by.resize(by.len().max(of_thread + 1), 0);
                by[of_thread] = number;
            }
            if site.does != Does::Reduce {
                self.reads.entry(who).or_default().push(index);
            }
            if matches!(site.order, Order::Acquire | Order::AcqRel | Order::Sc) && site.does != Does::Reduce {
                let here: Vec<usize> = self.reads[&who].clone();
                let here = here.into_iter().filter(|i| self.all[*i].location() == (access.addr, access.bytes));
                here.collect::<Vec<_>>().into_iter().for_each(|read| {
                    let scope = self.all[index].scope();
                    self.acquire(who, scope, read);
                });
            }
        }
        if is_strong {
            self.hear(index);
        }
        self.all[index].before = self.clocks[&who].clone();
        if !self.all[index].writes() {
            return;
        }
        if is_strong {
            if matches!(site.order, Order::Release | Order::AcqRel | Order::Sc) {
                let clock = self.clocks[&who].clone();
                self.release(Release { clock, scope: site.scope, who, on: Some((access.addr, access.bytes)) });
            }
            let is_here =
                |i: &usize| self.releases[*i].on.is_none_or(|location| location == (access.addr, access.bytes));
            let heads = self.releases_of(who).filter(is_here).collect();
            self.heads.insert(index, heads);
        }
        for byte in self.all[index].range() {
            self.writes.entry(byte).or_default().push(index);
        }
    }

    /// A strong access hears of the fences before those that it comes behind in communication order, and tells of those before itself.
    fn hear(&mut self, index: usize) {
        let (reads, writes) = (self.all[index].reads(), self.all[index].writes());
        let Access { thread, addr, .. } = self.all[index].access;
        let (of_writes, of_reads) = self.fenced.entry(addr).or_default();
        let heard = if writes { (*of_writes).max(*of_reads) } else { *of_writes };
        let clock = self.clocks.entry(thread).or_default();
        let own = at(clock, PASSED);
        if writes {
            *of_writes = heard.max(own);
        }
        if reads {
            *of_reads = own.max(*of_reads);
        }
        raise(clock, HEARD, heard);
    }

    /// The writes that a strong read observes: the one that it reads, and those before that through atomics, as far as one that `is_last`.
    fn observed(&self, read: usize, is_last: impl Fn(&usize) -> bool) -> Vec<usize> {
        let mut found = Vec::new();
        // Who asks an `mbarrier` object sees what came until the last end of a phase, and nothing if the answer is no.
        let turn = self.all[read].access.turn;
        let mut is_seen = turn != Turn::Yes;
        if turn == Turn::No {
            return found;
        }
        let mut at = read;
        let list = self.writes.get(&self.all[read].access.addr).map_or(&[][..], Vec::as_slice);
        for write in list[..self.all[read].n_writes].iter().rev() {
            if is_last(write) || !self.morally_strong(&self.all[*write], &self.all[at]) {
                break;
            }
            is_seen |= self.all[*write].access.turn == Turn::Ends;
            if is_seen {
                found.push(*write);
            }
            at = *write;
            if !self.all[at].reads() {
                break;
            }
        }
        found
    }

    /// Whether the first comes before the second in causality order.
    fn is_ordered(&self, a: usize, b: usize) -> bool {
        let before = |x: &Did, y: &Did| y.before.get(x.who).is_some_and(|n| x.number <= *n);
        let (first, second) = (&self.all[a], &self.all[b]);
        if before(first, second) {
            return true;
        }
        let observed = self.observers.get(&a).into_iter().flatten().zip(&second.before);
        let mut known = observed.enumerate().filter(|(_, (number, known))| **number != 0 && number <= known);
        known.any(|(who, (number, _))| (who, *number) != (second.who, second.number))
    }

    /// Whether a write comes before an access through another proxy, and no proxy fence stands between them: on no way from the one to the other.
    fn wants_fence(&self, write: usize, access: usize) -> bool {
        let (first, second) = (&self.all[write], &self.all[access]);
        let (before, since) = match self.begun.get(&second.access.begun) {
            Some((clock, since)) => (clock, *since),
            None => (&second.before, access),
        };
        if !self.follows_proxies || !first.writes_generically() || write >= since || !self.is_ordered(write, access) {
            return false;
        }
        let knows = |clock: &Clock, who: Thread, number: u64| {
            self.numbers.get(&who).and_then(|at| clock.get(*at)).is_some_and(|n| number <= *n)
        };
        let comes_after = |f: &&Passed| knows(&f.before, first.access.thread, first.number);
        let comes_before = |f: &&Passed| knows(before, f.who, f.number);
        let mut fences = self.proxy_fences.iter();
        match second.site.proxy {
            Proxy::Generic | Proxy::Unsaid => false,
            Proxy::Async => {
                let place = usize::from(second.site.space == StateSpace::Shared);
                let is_of = |f: &&Passed| matches!(f.fence, ProxyFence::Async(spaces) if spaces[place]);
                !fences.any(|f| is_of(&f) && comes_after(&f) && comes_before(&f))
            }
            Proxy::TensorMap => {
                let releases = fences.filter(|f| f.fence == ProxyFence::MapRelease).filter(comes_after);
                let acquires =
                    || self.proxy_fences.iter().filter(|f| f.fence == ProxyFence::MapAcquire).filter(comes_before);
                !releases.into_iter().any(|r| acquires().any(|a| knows(&a.before, r.who, r.number)))
            }
        }
    }

    /// Whether a byte is written between two accesses to it, in order with both. `between`: all accesses to it that come between.
    fn is_overwritten(&self, between: &[usize], first: usize, second: usize) -> bool {
        let mut writes = between.iter().filter(|i| self.all[**i].writes());
        writes.any(|i| self.is_ordered(first, *i) && self.is_ordered(*i, second))
    }

    /// Whether another access to all its bytes has come after an earlier one, in order, that races with a later one just as well: of a thread's two stores the
    /// last one is told. `between`: all accesses to the byte that come between the two.
    fn is_hidden(&self, between: &[usize], first: usize, second: usize) -> bool {
        let [earlier, later] = [first, second].map(|i| &self.all[i]);
        let kind = |did: &Did| (did.site.order == Order::Weak, did.site.scope, did.access.bytes);
        between.iter().any(|&i| {
            let between = &self.all[i];
            let (range, all) = (between.range(), earlier.range());
            let has_all = range.start <= all.start && all.end <= range.end;
            let is_stronger = between.writes() || !earlier.writes();
            let is_weaker = between.site.order == Order::Weak || kind(between) == kind(earlier);
            let races = || !self.morally_strong(between, later) && !self.is_ordered(i, second);
            has_all && is_stronger && is_weaker && self.is_ordered(first, i) && races()
        })
    }

    fn races(&self) -> (Pairs, Pairs) {
        let mut by_byte: HashMap<u64, Vec<usize>> = HashMap::new();
        // By byte: what the first strong access had in common with all that are morally strong with it, and the places in the list of those that are not like it,
        // and of those that write.
        let mut alike: HashMap<u64, (Option<Alike>, [Vec<usize>; 2])> = HashMap::new();
        let (mut found, mut hidden) = (Pairs::new(), Pairs::new());
        let mut owners = self.shared_since.iter().peekable();
        for (i, did) in self.all.iter().enumerate() {
            while let Some(((base, size), _)) = owners.next_if(|(_, from)| *from <= i) {
                by_byte.retain(|byte, _| byte.wrapping_sub(*base) >= *size);
                alike.retain(|byte, _| byte.wrapping_sub(*base) >= *size);
            }
            let mine = self.alike(did);
            for byte in did.range() {
                let list = by_byte.entry(byte).or_default();
                let (first, [others, writers]) = alike.entry(byte).or_default();
                *first = first.take().or(mine.clone());
                let is_alike = mine.is_some() && *first == mine;
                let everywhere: Vec<usize> = if is_alike || !did.writes() { vec![] } else { (0..list.len()).collect() };
                let places = if is_alike {
                    &*others
                } else if did.writes() {
                    &everywhere
                } else {
                    &*writers
                };
                for n in places.iter().copied() {
                    let other = &list[n];
                    let between = &list[n + 1..];
                    let earlier = &self.all[*other];
                    let pair = if earlier.site.span < did.site.span {
                        (earlier.site.span, did.site.span)
                    } else {
                        (did.site.span, earlier.site.span)
                    };
                    let conflict = earlier.writes() || did.writes();
                    // Of plain writes of the same value the check says nothing.
                    let same = did.access.same_value && did.does() == Does::Write && earlier.does() == Does::Write;
                    if !conflict || found.contains(&pair) {
                        continue;
                    }
                    let is_race = !same && !self.morally_strong(earlier, did) && !self.is_ordered(*other, i);
                    if is_race && self.is_hidden(between, *other, i) {
                        hidden.insert(pair);
                    } else if is_race || self.wants_fence(*other, i) && !self.is_overwritten(between, *other, i) {
                        found.insert(pair);
                    }
                }
                if !is_alike {
                    others.push(list.len());
                }
                if did.writes() {
                    writers.push(list.len());
                }
                list.push(i);
            }
        }
        (found, hidden)
    }
}

fn lanes_of(cta: u32, warp: usize, lanes: u32) -> impl Iterator<Item = Thread> {
    (0..32).filter(move |lane| lanes >> lane & 1 == 1).map(move |lane| Thread::new(cta, warp * 32 + lane))
}
