//! The control-flow graph: predecessors, dominators, post-dominators, reachability.

use handloom_ir::simt::{BlockId, Function, dominators};
use smallvec::SmallVec;

/// A set of small numbers. It has room for those from the first to the last word of them that it was made for or that came into it: the registers that live at
/// one place of a function have numbers that lie close together, as they are numbered in the order in which they are met.
#[derive(Clone, Default, Debug)]
pub struct Set {
    /// The number of words before the first of `words`: they are 0.
    skipped: usize,
    words: Vec<u64>,
}

impl Set {
    /// An empty set for numbers below `n`.
    pub fn new(n: usize) -> Set {
        Set { skipped: 0, words: vec![0; n.div_ceil(64)] }
    }

    /// The set of all numbers below `n`.
    pub fn full(n: usize) -> Set {
        let mut set = Set::new(n);
        for (i, word) in set.words.iter_mut().enumerate() {
            *word = u64::MAX >> (64 - (n - 64 * i).min(64));
        }
        set
    }

    /// A set with these members, in room for them alone.
    pub fn of(members: &[usize]) -> Set {
        let mut set = Set::default();
        let ends = members.iter().min().zip(members.iter().max());
        ends.into_iter().for_each(|(first, last)| set.make_room(first / 64, last / 64 + 1));
        members.iter().for_each(|m| _ = set.add(*m));
        set
    }

    /// Makes room for the words from `first` to before `end`.
    fn make_room(&mut self, first: usize, end: usize) {
        if self.words.is_empty() {
            self.skipped = first;
        } else if first < self.skipped {
            self.words.splice(..0, std::iter::repeat_n(0, self.skipped - first));
            self.skipped = first;
        }
        if end > self.skipped + self.words.len() {
            self.words.resize(end - self.skipped, 0);
        }
    }

    /// The word with so many words before it.
    fn word(&self, at: usize) -> u64 {
        self.words.get(at.wrapping_sub(self.skipped)).copied().unwrap_or(0)
    }

    /// Whether `i` is in it.
    pub fn has(&self, i: usize) -> bool {
        self.word(i / 64) >> (i % 64) & 1 == 1
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Adds `i`; tells whether it was new.
    pub fn add(&mut self, i: usize) -> bool {
        if (i / 64).wrapping_sub(self.skipped) >= self.words.len() {
            self.make_room(i / 64, i / 64 + 1);
        }
        let w = &mut self.words[i / 64 - self.skipped];
        let new = *w >> (i % 64) & 1 == 0;
        *w |= 1 << (i % 64);
        new
    }

    /// Removes `i`.
    pub fn remove(&mut self, i: usize) {
        if let Some(word) = self.words.get_mut((i / 64).wrapping_sub(self.skipped)) {
            *word &= !(1 << (i % 64));
        }
    }

    /// Adds all of `other`; tells whether anything was new.
    pub fn union(&mut self, other: &Set) -> bool {
        let mut changed = false;
        for (a, b) in self.words_for(other).iter_mut().zip(&other.words) {
            changed |= *b & !*a != 0;
            *a |= *b;
        }
        changed
    }

    /// Adds what of `other` is not in `without`; tells whether anything was new.
    pub(super) fn union_without(&mut self, other: &Set, without: &Set) -> bool {
        let mut changed = false;
        let mut add = |(a, b): (&mut u64, &u64), c: u64| {
            let new = *b & !c & !*a;
            changed |= new != 0;
            *a |= new;
        };
        let words = self.words_for(other).iter_mut().zip(&other.words);
        if (without.skipped, without.words.len()) == (other.skipped, other.words.len()) {
            words.zip(&without.words).for_each(|(ab, c)| add(ab, *c));
        } else {
            (other.skipped..).zip(words).for_each(|(at, ab)| add(ab, without.word(at)));
        }
        changed
    }

    /// The words for those numbers that another set has room for, which this one then has too.
    fn words_for(&mut self, other: &Set) -> &mut [u64] {
        if other.words.is_empty() {
            return &mut [];
        }
        let end = other.skipped + other.words.len();
        self.make_room(other.skipped, end);
        &mut self.words[other.skipped - self.skipped..end - self.skipped]
    }

    /// What is in this set and in another one, in ascending order.
    pub fn both(&self, other: &Set) -> Vec<usize> {
        let words = self.words.iter().enumerate().map(|(i, a)| a & other.word(self.skipped + i)).collect();
        Set { skipped: self.skipped, words }.iter().collect()
    }

    /// The members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(move |(i, &w)| {
            let mut w = w;
            std::iter::from_fn(move || {
                if w == 0 {
                    return None;
                }
                let bit = w.trailing_zeros() as usize;
                w &= w - 1;
                Some((self.skipped + i) * 64 + bit)
            })
        })
    }

    /// The greatest member.
    pub fn last(&self) -> Option<usize> {
        let i = self.words.iter().rposition(|w| *w != 0)?;
        Some((self.skipped + i) * 64 + self.words[i].ilog2() as usize)
    }

    /// Whether it has no member.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|w| *w == 0)
    }
}

/// A few blocks by their positions.
pub type Blocks = SmallVec<[usize; 2]>;

/// Facts about the graph. Block numbers are positions: the entry is 0 and loops are contiguous.
#[derive(Debug)]
pub struct Cfg {
    /// Successors of each block.
    pub succs: Vec<Blocks>,
    /// Predecessors of each block.
    pub preds: Vec<Blocks>,
    /// Immediate dominator; the entry has itself.
    pub idom: Vec<usize>,
    /// Immediate post-dominator; `None` when only the end of the function is one.
    pub ipdom: Vec<Option<usize>>,
    /// For each block the header of the innermost natural loop around it.
    pub loop_of: Vec<Option<usize>>,
    /// Bodies of natural loops by header (headers included).
    pub loops: Vec<(usize, Set)>,
    /// For each header the header of the innermost loop around its loop.
    outer: Vec<Option<usize>>,
    /// For each header the place of its loop in `loops`.
    loop_at: Vec<Option<usize>>,
    /// For each block its place in a walk of the dominator tree, and where the walk has left what it dominates.
    walk: Vec<(usize, usize)>,
}

impl Cfg {
    /// Builds the facts.
    pub fn new(f: &Function) -> Cfg {
        let n = f.blocks.len();
        let succs: Vec<Blocks> =
            f.blocks.iter().map(|b| b.term.successors().into_iter().map(BlockId::idx).collect()).collect();
        let mut preds = vec![Blocks::new(); n];
        for (i, ss) in succs.iter().enumerate() {
            for &s in ss {
                if preds[s].last() != Some(&i) {
                    preds[s].push(i);
                }
            }
        }
        let idom = dominators(n, 0, |b| &succs[b], |b| &preds[b]);
        let idom = idom.into_iter().enumerate().map(|(b, d)| d.unwrap_or(b)).collect::<Vec<_>>();
        let ipdom = post_dominators(n, &succs, &preds);
        let walk = walk_of(&idom);
        let (loops, loop_of, outer) = Default::default();
        let mut cfg = Cfg { succs, preds, idom, ipdom, loop_of, loops, outer, loop_at: vec![None; n], walk };
        (cfg.loops, cfg.loop_of, cfg.outer) = cfg.natural_loops();
        cfg.loops.iter().enumerate().for_each(|(i, (h, _))| cfg.loop_at[*h] = Some(i));
        cfg
    }

    /// Whether `a` dominates `b`.
    pub fn dominates(&self, a: usize, b: usize) -> bool {
        let (from, to) = self.walk[a];
        (from..to).contains(&self.walk[b].0)
    }

    /// Bodies of natural loops, and for each block the header of the innermost one around it, and around its loop if it is a header.
    fn natural_loops(&self) -> Loops {
        let n = self.succs.len();
        let mut headers: Vec<usize> = Vec::new();
        let mut latches = vec![Blocks::new(); n];
        for (b, ss) in self.succs.iter().enumerate() {
            for &h in ss.iter().filter(|h| self.dominates(**h, b)) {
                if latches[h].is_empty() {
                    headers.push(h);
                }
                latches[h].push(b);
            }
        }
        let mut loops: Vec<(usize, Set)> = Vec::with_capacity(headers.len());
        // The header in whose body a block was last seen.
        let mut seen = vec![usize::MAX; n];
        for h in headers {
            let mut body = vec![h];
            seen[h] = h;
            let mut work = std::mem::take(&mut latches[h]).into_vec();
            while let Some(x) = work.pop() {
                if std::mem::replace(&mut seen[x], h) != h {
                    body.push(x);
                    work.extend(&self.preds[x]);
                }
            }
            loops.push((h, Set::of(&body)));
        }
        // Innermost: the smallest body that holds the block; bodies of nested loops are subsets.
        let mut sized: Vec<(usize, usize)> = loops.iter().enumerate().map(|(i, (_, s))| (s.len(), i)).collect();
        sized.sort_unstable();
        let (mut loop_of, mut outer) = (vec![None; n], vec![None; n]);
        for (_, i) in sized.into_iter().rev() {
            let (h, body) = &loops[i];
            outer[*h] = loop_of[*h];
            body.iter().for_each(|b| loop_of[b] = Some(*h));
        }
        (loops, loop_of, outer)
    }

    /// Bodies of the loops around a block, inner ones before outer ones.
    pub fn around(&self, b: usize) -> impl Iterator<Item = &Set> {
        std::iter::successors(self.loop_of[b], |h| self.outer[*h]).filter_map(|h| self.body(h))
    }

    /// Blocks that lanes may execute between a branch at `b` and the block where they meet again (without that block).
    pub fn region(&self, b: usize) -> Set {
        let stop = self.ipdom[b];
        let mut set = Set::new(self.succs.len());
        let mut work = self.succs[b].to_vec();
        while let Some(x) = work.pop() {
            if Some(x) != stop && set.add(x) {
                work.extend(&self.succs[x]);
            }
        }
        set
    }

    /// Whether a loop has several entries, several latches or blocks apart from each other: lanes then need not meet where paths do.
    pub fn is_odd(&self) -> bool {
        let retreats = |b: usize| self.succs[b].iter().filter(move |&&s| s <= b);
        let entries = (0..self.succs.len()).any(|b| retreats(b).any(|&s| !self.dominates(s, b)));
        let latches = self.loops.iter().any(|(h, _)| self.preds[*h].iter().filter(|p| *p >= h).count() > 1);
        let apart = self.loops.iter().any(|(h, body)| {
            let last = body.last().unwrap_or(*h);
            last - h + 1 != body.len()
        });
        entries || latches || apart
    }

    /// Whether no loop is inside the one with this header.
    pub fn is_innermost(&self, header: usize) -> bool {
        self.body(header).is_some_and(|body| body.iter().all(|b| self.loop_of[b] == Some(header)))
    }

    /// Body of the loop with this header, if it is one.
    pub fn body(&self, header: usize) -> Option<&Set> {
        self.loop_at[header].map(|i| &self.loops[i].1)
    }
}

/// Immediate post-dominators with a virtual end; blocks from which the end cannot be reached (endless loops) have none. Each of these counts as one that may be the last of some lanes: others that part from
/// such lanes do not meet them.
fn post_dominators(n: usize, succs: &[Blocks], preds: &[Blocks]) -> Vec<Option<usize>> {
    let end = [n];
    let of_ends = |ends: &[usize], behind: &[(usize, Blocks)]| {
        let before = |b: usize| if b == n { ends } else { &preds[b] };
        let after = |b: usize| match behind.binary_search_by_key(&b, |(b, _)| *b) {
            Ok(i) => &behind[i].1[..],
            Err(_) if succs[b].is_empty() => &end,
            Err(_) => &succs[b],
        };
        let mut found = dominators(n + 1, n, before, after);
        found.truncate(n);
        found
    };
    let mut ends: Vec<usize> = (0..n).filter(|b| succs[*b].is_empty()).collect();
    let mut found = of_ends(&ends, &[]);
    let endless = found.iter().enumerate().filter(|(_, d)| d.is_none()).map(|(b, _)| b);
    let behind: Vec<(usize, Blocks)> = endless.map(|b| (b, succs[b].iter().copied().chain(end).collect())).collect();
    if !behind.is_empty() {
        ends.extend(behind.iter().map(|(b, _)| b));
        found = of_ends(&ends, &behind);
    }
    found.into_iter().map(|d| d.filter(|d| *d < n)).collect()
}

/// For each block its place in a walk of the dominator tree that comes to a block before all that it dominates, and the place behind these.
/// (An immediate dominator has a smaller number than its block.)
fn walk_of(idom: &[usize]) -> Vec<(usize, usize)> {
    let mut size = vec![1; idom.len()];
    for b in (0..idom.len()).rev().filter(|b| idom[*b] != *b) {
        size[idom[b]] += size[b];
    }
    let mut walk = vec![(0, 0); idom.len()];
    // Where the next block that a block dominates comes, and at last the next one that none does.
    let (mut next, mut next_root) = (vec![0; idom.len()], 0);
    for b in 0..idom.len() {
        let place = if idom[b] == b { &mut next_root } else { &mut next[idom[b]] };
        let from = *place;
        *place += size[b];
        walk[b] = (from, from + size[b]);
        next[b] = from + 1;
    }
    walk
}

type Loops = (Vec<(usize, Set)>, Vec<Option<usize>>, Vec<Option<usize>>);
