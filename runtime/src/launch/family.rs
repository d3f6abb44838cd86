//! Which grids of a family touched the same memory without order between them: a grid, those that its threads launch, and what they copy and fill.
//!
//! The rules are those of the *CUDA C++ Programming Guide* (dynamic parallelism). What a thread did and knew when it gave a stream work comes before that work,
//! what it does later does not, since nothing on the device waits for work of a stream. Works come in the order of streams and events, those of the tail stream
//! after all others and after the grid itself. A work is over when all works are that its threads gave.
//!
//! As with streams of the host, two whose threads may tell each other something by strong accesses are not told. May be missed: accesses to memory that
//! kernels allocate, and all with work that was forgotten because there was too much of it.

use std::sync::Arc;

use handloom_audit::{Audit, Before};
use handloom_interp::CtaEnv;

use crate::children::{Order, Work};
use crate::finding::{Finding, Footprint, FoundAt, FoundIn, Touched, conflicts};
use crate::memory::Rows;
use crate::module::ModuleInner;
use crate::trap::found;

/// Most ranges that are remembered. The oldest works are forgotten first.
const MOST: usize = 1 << 20;

/// In units of so many bytes a work is held against the grid that gave it.
const PAGE: u64 = 4096;

/// A grid or a work, by its number in the family.
pub(super) type Number = usize;

/// What is known of a grid whose threads gave streams work.
#[derive(Debug)]
pub(super) struct Parent {
    /// What its threads did.
    pub(super) audit: Box<Audit>,
    pub(super) module: Arc<ModuleInner>,
    pub(super) env: CtaEnv,
}

/// A grid, a copy or a fill.
struct Member {
    /// The grid whose thread gave it.
    of: Option<Number>,
    order: Order,
    touched: Arc<Footprint>,
    reach: Reach,
    parent: Option<Parent>,
    works: Vec<Number>,
}

/// From where to where something touches memory, and writes it. Most works are seen by that to be in nobody's way.
#[derive(Clone, Copy)]
struct Reach {
    all: (u64, u64),
    written: (u64, u64),
}

impl Reach {
    fn of(touched: &Footprint) -> Reach {
        let joined = |(from, end): (u64, u64), t: &Touched| (from.min(t.address), end.max(t.address + t.bytes));
        let all = touched.ranges().iter().fold((u64::MAX, 0), joined);
        Reach { all, written: touched.ranges().iter().filter(|t| t.writes).fold((u64::MAX, 0), joined) }
    }

    fn meets(&self, other: &Reach) -> bool {
        let do_meet = |a: (u64, u64), b: (u64, u64)| a.0 < b.1 && b.0 < a.1;
        do_meet(self.written, other.all) || do_meet(self.all, other.written)
    }
}

/// The launch of the host and all below it.
#[derive(Default)]
pub(super) struct Family {
    members: Vec<Member>,
    /// The grids of which works may still come, each below the one before it: of the others nobody asks what their threads did.
    open: Vec<Number>,
    ranges: usize,
    /// So many of the first members are forgotten.
    n_forgotten: usize,
}

/// Two accesses that nothing orders.
pub(super) struct Pair {
    pub(super) first: Touched,
    pub(super) second: Touched,
    /// The first one was done by a grid above the second one; else by another work.
    pub(super) is_above: bool,
}

impl Family {
    /// The launch of the host.
    pub(super) fn new(touched: Arc<Footprint>, parent: Option<Parent>) -> Family {
        let reach = Reach::of(&touched);
        let root = Member { of: None, order: Order::default(), touched, reach, parent, works: Vec::new() };
        Family { members: vec![root], open: vec![0], ..Family::default() }
    }

    /// A work has run that a thread of a grid gave. Its number, and what nothing orders with it.
    pub(super) fn add(
        &mut self,
        of: Number,
        order: Order,
        touched: Arc<Footprint>,
        parent: Option<Parent>,
    ) -> (Number, Vec<Pair>) {
        let (number, reach) = (self.members.len(), Reach::of(&touched));
        let mut pairs = Vec::new();
        while let Some(done) = self.open.pop_if(|last| *last != of) {
            self.members[done].parent = None;
        }
        // The grids above it, each with the work on the way there: at first the one that has no number yet.
        let (mut above, mut way, mut below) = (Some(of), number, &order);
        while let Some(grid) = above {
            let member = &self.members[grid];
            if let (Some(before), Some(parent)) = (&below.before, &member.parent) {
                pairs.extend(with_parent(parent, before, below, &touched));
            }
            for work in member.works.iter().filter(|work| **work != way) {
                if !below.is_after(&self.members[*work].order) {
                    self.with_works(*work, (&touched, &reach), &mut pairs);
                }
            }
            (above, way, below) = (member.of, grid, &member.order);
        }
        self.ranges += touched.len();
        self.open.push(number);
        self.members.push(Member { of: Some(of), order, touched, reach, parent, works: Vec::new() });
        self.members[of].works.push(number);
        self.forget();
        (number, pairs)
    }

    /// What nothing orders of something and a work with all works below it.
    fn with_works(&self, work: Number, (touched, reach): (&Footprint, &Reach), pairs: &mut Vec<Pair>) {
        let Member { touched: other, reach: of_other, works, .. } = &self.members[work];
        if reach.meets(of_other) {
            pairs.extend(pairs_of(other.ranges(), touched.ranges(), false));
        }
        works.iter().for_each(|below| self.with_works(*below, (touched, reach), pairs));
    }

    fn forget(&mut self) {
        while self.ranges > MOST && self.n_forgotten + 1 < self.members.len() {
            let oldest = &mut self.members[self.n_forgotten];
            self.ranges -= oldest.touched.len();
            (oldest.touched, oldest.parent) = (Arc::default(), None);
            self.n_forgotten += 1;
        }
    }

    /// A copy or a fill that a thread of a grid gave, as what it touches.
    pub(super) fn touched_by(&self, of: Number, work: &Work, order: &Order) -> Arc<Footprint> {
        let (Some(parent), Some(before)) = (&self.members[of].parent, &order.before) else { return Arc::default() };
        let rows = |rows: Rows, (width, height): (u64, u64), writes: bool| {
            let does = if writes { "write" } else { "read" };
            let at = found::work_at(&before.place, does, &parent.module, &parent.env);
            let (height, bytes) = if rows.pitch == width { (1, width * height) } else { (height, width) };
            let of_row = move |row| Touched::by_call(rows.address + row * rows.pitch, bytes, writes, &at);
            (0..height).filter(move |_| bytes > 0).map(of_row)
        };
        let all: Vec<Touched> = match *work {
            Work::Launch(_) => Vec::new(),
            Work::Copy { to, from, width, height } => {
                rows(to, (width, height), true).chain(rows(from, (width, height), false)).collect()
            }
            Work::Fill { to, width, height, .. } => rows(to, (width, height), true).collect(),
        };
        Arc::new(Footprint::of(all))
    }

    /// All that the family touched.
    pub(super) fn touched(&self) -> Arc<Footprint> {
        let all = self.members.iter().flat_map(|member| member.touched.ranges().iter().cloned());
        Arc::new(Footprint::of(all.collect()))
    }
}

/// What nothing orders of a grid and a work below it.
fn with_parent(parent: &Parent, before: &Before, order: &Order, touched: &Footprint) -> Vec<Pair> {
    if order.is_after_all() {
        return Vec::new();
    }
    let mut near: Vec<(u64, u64)> = Vec::new();
    for range in touched.ranges() {
        let (from, end) = (range.address & !(PAGE - 1), (range.address + range.bytes).next_multiple_of(PAGE));
        match near.last_mut().filter(|(_, last)| from <= *last) {
            Some((_, last)) => *last = end.max(*last),
            None => near.push((from, end)),
        }
    }
    let beside = parent.audit.touched_beside(before, &near);
    let mut beside = found::touched(&beside, &parent.module, &parent.env);
    beside.sort_by_key(|t| t.address);
    pairs_of(&beside, touched.ranges(), true)
}

/// What of two lists is in each other's way. A read of bytes that its grid writes too, in the way of the same write, says nothing more: an audit has forgotten
/// it where the write came later, and who knew before the grid ran what it touches has not.
fn pairs_of(a: &[Touched], b: &[Touched], is_above: bool) -> Vec<Pair> {
    let all = conflicts(a, b);
    let both =
        |(x, y): &(&Touched, &Touched)| (x.address.max(y.address), (x.address + x.bytes).min(y.address + y.bytes));
    let mut written: Vec<(u64, u64)> = all.iter().filter(|(x, y)| x.writes && y.writes).map(both).collect();
    written.sort_unstable();
    written.dedup_by(|next, last| {
        let goes_on = next.0 <= last.1;
        last.1 = if goes_on { last.1.max(next.1) } else { last.1 };
        goes_on
    });
    let is_written = |(from, end): (u64, u64)| {
        let near = written.partition_point(|(start, _)| *start <= from);
        near.checked_sub(1).is_some_and(|i| end <= written[i].1)
    };
    all.into_iter()
        .filter(|pair| pair.0.writes && pair.1.writes || !is_written(both(pair)))
        .map(|(a, b)| Pair { first: a.clone(), second: b.clone(), is_above })
        .collect()
}

impl Pair {
    /// The finding of it. `data`: names bytes of memory.
    pub(super) fn finding(&self, data: impl FnOnce(u64, u64) -> FoundIn) -> Finding {
        let Pair { first: a, second: b, is_above } = self;
        let start = a.address.max(b.address);
        let data = data(start, (a.address + a.bytes).min(b.address + b.bytes) - start);
        let (who, other, fix) = match is_above {
            true => (
                "by a grid",
                "by a grid or a copy that it began",
                "begin it after that, or in the tail stream (`cudaStreamTailLaunch`)",
            ),
            false => (
                "by a grid or a copy of the device",
                "by another one",
                "give both to one stream, or let one stream wait for an event of the other one",
            ),
        };
        let (does, does_other) = (a.at.does, b.at.does);
        let message =
            format!("nothing orders the {does} of {}+{} {who} and its {does_other} {other}", data.what, data.offset);
        let places = (FoundAt::clone(&a.at), Some(FoundAt::clone(&b.at)));
        Finding { fix: Some(fix), ..Finding::new("race", "unordered", message, places, data) }
    }
}
