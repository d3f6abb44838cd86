//! Threads of many blocks that hand on by locks what they did, told to an audit as an engine would: what is found is what the plain analysis of the events finds.
//!
//! `HANDLOOM_HANDED=10000` takes that many seeds, from `HANDLOOM_SEED` on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use handloom_audit::{Access, Addrs, Audit, Does, Even, Event, Finding, Met, Options, Proxy, Row, Site, Thread};
use handloom_diag::Span;
use handloom_ir::types::{Order, Scope, StateSpace};
use handloom_tests::reference::order::{Lines, has_found};
use handloom_tests::rng::Rng;

/// Seeds of a plain run.
const SEEDS: u64 = 100;

/// Where locks and data lie.
const LOCKS: u64 = 4096;
const DATA: u64 = 8192;

/// What a thread does next.
#[derive(Clone, Copy, Debug)]
enum Step {
    Access(Does, Order, Scope, u64),
    /// Takes a lock, as soon as it is free, by an atomic of a scope.
    Take(Scope, usize),
    /// Gives it back.
    Give(Scope, usize),
    Fence(Order, Scope),
}

/// What a thread does at a line, where, the number of the thread, and that of its block among three.
type Statement = (Does, Order, Scope, u64, u32, u32);

/// A launch: an audit, and what threads have still to do.
struct Launch {
    audit: Audit,
    /// The statements, a line each.
    lines: Vec<Statement>,
    /// Who has each lock.
    held: [Option<Thread>; 2],
    running: BTreeMap<Thread, VecDeque<Step>>,
}

impl Launch {
    fn site(&mut self, thread: Thread, (does, order, scope): (Does, Order, Scope), addr: u64) -> u32 {
        let new = (does, order, scope, addr, thread.number(), thread.cta % 3);
        let line = self.lines.iter().position(|old| *old == new).unwrap_or(self.lines.len());
        if line == self.lines.len() {
            self.lines.push(new);
        }
        let start = 2 * u32::try_from(line).unwrap();
        let span = Span { start, end: start + 1, ..Span::NONE };
        self.audit.site(Site { span, does, order, scope, space: StateSpace::Global, proxy: Proxy::Generic })
    }

    fn access(&mut self, thread: Thread, (does, order, scope): (Does, Order, Scope), addr: u64, failed: bool) {
        let site = self.site(thread, (does, order, scope), addr);
        let access = Access { thread, addr, bytes: 4, failed, ..Access::NONE };
        match (order, does) {
            (Order::Weak, Does::Read | Does::Write) => {
                let lane = usize::from(thread.lane);
                let addrs = [Even { lanes: 1 << lane, base: addr, stride: 0 }];
                let (cta, first) = (thread.cta, 32 * usize::from(thread.warp));
                let (lanes, parts, same) = (&[lane], &[(0, 4)], &[0; 32]);
                self.audit.row(site, &Row { cta, first, lanes, addrs: Addrs::Even(&addrs), parts, same });
            }
            _ => self.audit.accesses(site, &[access]),
        }
        self.audit.end_op();
    }

    /// A thread does its next step, if it can. Says whether.
    fn step(&mut self, who: Thread) -> bool {
        let Some(step) = self.running.get(&who).and_then(|steps| steps.front()).copied() else { return false };
        let lock = |i: usize| LOCKS + 4 * u64::try_from(i).unwrap();
        match step {
            Step::Access(does, order, scope, addr) => self.access(who, (does, order, scope), addr, false),
            Step::Take(scope, i) => {
                let failed = self.held[i].is_some();
                self.access(who, (Does::Update, Order::Relaxed, scope), lock(i), failed);
                if failed {
                    return false;
                }
                self.held[i] = Some(who);
            }
            Step::Give(scope, i) => {
                self.access(who, (Does::Update, Order::Relaxed, scope), lock(i), false);
                self.held[i] = None;
            }
            Step::Fence(order, scope) => {
                let site = self.site(who, (Does::Fence, order, scope), 0);
                self.audit.fence(who, site, order, scope);
                self.audit.end_op();
            }
        }
        self.running.get_mut(&who).and_then(VecDeque::pop_front).is_some()
    }
}

/// What a thread does in its life. `is_sound`: all is as it should be; else it is mostly.
fn life(rng: &mut Rng, is_sound: bool) -> VecDeque<Step> {
    let mut all = VecDeque::new();
    let scope = |rng: &mut Rng| if rng.one_in(12) && !is_sound { Scope::Cta } else { Scope::Gpu };
    let fence = |rng: &mut Rng| {
        let order = if rng.one_in(4) { Order::AcqRel } else { Order::Sc };
        (!rng.one_in(10) || is_sound).then(|| Step::Fence(order, scope(rng)))
    };
    for _ in 0..1 + rng.below(3) {
        let i = rng.below(2);
        let at = DATA + 4 * u64::try_from(if rng.one_in(8) && !is_sound { 1 - i } else { i }).unwrap();
        if rng.one_in(6) {
            // A flag instead of a lock.
            let order = [Order::Relaxed, Order::Acquire, Order::Release][rng.below(3)];
            let does = if order == Order::Release { Does::Write } else { Does::Read };
            all.extend(fence(rng).filter(|_| rng.one_in(2)));
            all.push_back(Step::Access(does, order, Scope::Gpu, LOCKS + 64));
            all.extend(fence(rng).filter(|_| rng.one_in(2)));
        }
        if rng.one_in(8) {
            all.push_back(Step::Access(Does::Reduce, Order::Relaxed, Scope::Gpu, LOCKS + 128));
        }
        let start = all.len();
        all.push_back(Step::Take(Scope::Gpu, i));
        all.extend(fence(rng));
        all.push_back(Step::Access(Does::Read, Order::Weak, Scope::Gpu, at));
        if rng.one_in(3) {
            all.extend(fence(rng));
        }
        all.push_back(Step::Access(Does::Write, Order::Weak, Scope::Gpu, at));
        all.extend(fence(rng));
        all.push_back(Step::Give(Scope::Gpu, i));
        // Again and again, all of it or what comes after the flag.
        if rng.one_in(8) {
            let start = if rng.one_in(2) { start } else { 0 };
            let round: Vec<Step> = all.iter().skip(start).copied().collect();
            let part = if is_sound { 0 } else { rng.below(round.len()) };
            let n = rng.below(9) * round.len() + part;
            all.extend(round.into_iter().cycle().take(n));
            // Nobody leaves with a lock.
            if part > 0 {
                all.extend([0, 1].map(|i| Step::Give(Scope::Gpu, i)));
            }
        }
    }
    all
}

/// The findings of a launch, and its events if they are kept. Of each block some threads do something; there are few blocks at a time.
fn run(seed: u64, keeps_events: bool) -> (Vec<Finding>, Vec<Event>, usize) {
    let mut rng = Rng::new(seed);
    let audit = Audit::new(Options { keeps_events, ..Options::default() });
    let mut launch = Launch { audit, lines: Vec::new(), held: [None; 2], running: BTreeMap::new() };
    let (n_blocks, at_a_time) = (2 + rng.below(24), 1 + rng.below(3));
    let whole = Met { id: 0, waited: vec![(0, u32::MAX), (1, u32::MAX)], is_whole: true };
    let mut next = 0;
    loop {
        let blocks: BTreeSet<u32> = launch.running.keys().map(|who| who.cta).collect();
        if blocks.len() < at_a_time && next < n_blocks {
            let cta = u32::try_from(next).unwrap();
            launch.audit.start_cta(cta.into(), 64, None, (1 << 20 | u64::from(cta % 3) << 14, 64));
            for n in [0, 1, 40].into_iter().take(1 + rng.below(3)) {
                launch.running.insert(Thread::new(cta, n), life(&mut rng, seed.is_multiple_of(4)));
            }
            next += 1;
            continue;
        }
        let all: Vec<Thread> = launch.running.keys().copied().collect();
        if all.is_empty() {
            break;
        }
        let who = *rng.pick(&all);
        // A thread goes on for a while, or for long; who waits asks a few times.
        let (most, mut asked) = (if rng.one_in(4) { 200 } else { 6 }, 0);
        for _ in 0..1 + rng.below(most) {
            asked += usize::from(!launch.step(who));
            if asked > 3 {
                break;
            }
        }
        if rng.one_in(40) {
            launch.audit.barrier(who.cta.into(), &whole);
        }
        launch.running.retain(|_, steps| !steps.is_empty());
        if !launch.running.keys().any(|other| other.cta == who.cta) {
            launch.audit.end_cta(who.cta.into());
        }
    }
    let (events, lines) = (launch.audit.take_events(), launch.lines.len());
    let (found, why) = launch.audit.finish();
    assert_eq!(why, None);
    (found, events, lines)
}

#[test]
fn what_locks_hand_on_is_what_the_definitions_say() {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let (first, seeds) = (number("HANDLOOM_SEED").unwrap_or(0), number("HANDLOOM_HANDED").unwrap_or(SEEDS));
    let (mut clean, mut races) = (0, 0);
    for seed in first..first + seeds {
        let (quick, ..) = run(seed, false);
        let (found, events, lines) = run(seed, true);
        assert_eq!(quick, found, "seed {seed}: what is quickly looked at");
        let text = "-\n".repeat(lines);
        let line = |span: Span| span.start / 2 + 1;
        let pair = |f: &Finding| {
            let (a, b) = (line(f.first.site.span), line(f.second.site.span));
            (a.min(b), a.max(b))
        };
        let got: Lines = found.iter().map(pair).collect();
        let n = has_found(&text, &[events], &got).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        assert!(n == 0 || !seed.is_multiple_of(4), "seed {seed}: {n} races");
        (clean, races) = (clean + u32::from(n == 0), races + n);
    }
    assert!(clean > 0 && races > 100, "{clean} launches without races, {races} races");
}
