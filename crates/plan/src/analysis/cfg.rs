//! The control-flow graph: predecessors, dominators, post-dominators, reachability.

use handloom_ir::simt::{BlockId, Function};

/// A set of small numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Set {
    words: Vec<u64>,
}

impl Set {
    /// An empty set for numbers below `n`.
    pub fn new(n: usize) -> Set {
        Set { words: vec![0; n.div_ceil(64)] }
    }

    /// Whether `i` is in it.
    pub fn has(&self, i: usize) -> bool {
        self.words[i / 64] >> (i % 64) & 1 == 1
    }

    /// Adds `i`; tells whether it was new.
    pub fn add(&mut self, i: usize) -> bool {
        let w = &mut self.words[i / 64];
        let new = *w >> (i % 64) & 1 == 0;
        *w |= 1 << (i % 64);
        new
    }

    /// Removes `i`.
    pub fn remove(&mut self, i: usize) {
        self.words[i / 64] &= !(1 << (i % 64));
    }

    /// Adds all of `other`; tells whether anything was new.
    pub fn union(&mut self, other: &Set) -> bool {
        let mut changed = false;
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            changed |= *b & !*a != 0;
            *a |= *b;
        }
        changed
    }

    /// The members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &w)| {
            let mut w = w;
            std::iter::from_fn(move || {
                if w == 0 {
                    return None;
                }
                let bit = w.trailing_zeros() as usize;
                w &= w - 1;
                Some(i * 64 + bit)
            })
        })
    }

    /// Whether it has no member.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|w| *w == 0)
    }
}

/// Facts about the graph. Block numbers are positions: the entry is 0 and loops are contiguous.
#[derive(Debug)]
pub struct Cfg {
    /// Successors of each block.
    pub succs: Vec<Vec<usize>>,
    /// Predecessors of each block.
    pub preds: Vec<Vec<usize>>,
    /// Immediate dominator; the entry has itself.
    pub idom: Vec<usize>,
    /// Immediate post-dominator; `None` when only the end of the function is one.
    pub ipdom: Vec<Option<usize>>,
    /// For each block the header of the innermost natural loop around it.
    pub loop_of: Vec<Option<usize>>,
    /// Bodies of natural loops by header (headers included).
    pub loops: Vec<(usize, Set)>,
}

impl Cfg {
    /// Builds the facts.
    pub fn new(f: &Function) -> Cfg {
        let n = f.blocks.len();
        let succs: Vec<Vec<usize>> =
            f.blocks.iter().map(|b| b.term.successors().into_iter().map(BlockId::idx).collect()).collect();
        let mut preds = vec![Vec::new(); n];
        for (i, ss) in succs.iter().enumerate() {
            for &s in ss {
                if !preds[s].contains(&i) {
                    preds[s].push(i);
                }
            }
        }
        let idom = dominators(n, &preds);
        let ipdom = post_dominators(n, &succs, &preds);
        let (loops, loop_of) = natural_loops(n, &succs, &preds, &idom);
        Cfg { succs, preds, idom, ipdom, loop_of, loops }
    }

    /// Whether `a` dominates `b`.
    pub fn dominates(&self, a: usize, mut b: usize) -> bool {
        loop {
            if a == b {
                return true;
            }
            if b == 0 || self.idom[b] == b {
                return false;
            }
            b = self.idom[b];
        }
    }

    /// Blocks that lanes may execute between a branch at `b` and the block where they meet again (without that block).
    pub fn region(&self, b: usize) -> Set {
        let stop = self.ipdom[b];
        let mut set = Set::new(self.succs.len());
        let mut work: Vec<usize> = self.succs[b].clone();
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
            let last = body.iter().max().unwrap_or(*h);
            last - h + 1 != body.iter().count()
        });
        entries || latches || apart
    }

    /// Body of the loop with this header, if it is one.
    pub fn body(&self, header: usize) -> Option<&Set> {
        self.loops.iter().find(|(h, _)| *h == header).map(|(_, s)| s)
    }
}

/// Immediate dominators by iteration over positions (a reverse post-order, up to irreducible graphs, where it still converges).
fn dominators(n: usize, preds: &[Vec<usize>]) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let mut idom = vec![NONE; n];
    if n == 0 {
        return idom;
    }
    idom[0] = 0;
    let meet = |idom: &[usize], mut a: usize, mut b: usize| {
        while a != b {
            while a > b {
                a = idom[a];
            }
            while b > a {
                b = idom[b];
            }
        }
        a
    };
    let mut changed = true;
    while changed {
        changed = false;
        for b in 1..n {
            // An immediate dominator stands before its block in the order, so `meet` walks down.
            let new = preds[b].iter().copied().filter(|&p| idom[p] != NONE).reduce(|x, y| meet(&idom, x, y));
            if let Some(d) = new
                && idom[b] != d
            {
                idom[b] = d;
                changed = true;
            }
        }
    }
    for (b, d) in idom.iter_mut().enumerate() {
        if *d == NONE {
            *d = b;
        }
    }
    idom
}

/// Immediate post-dominators with a virtual end; blocks from which the end cannot be reached (endless loops) have none.
fn post_dominators(n: usize, succs: &[Vec<usize>], preds: &[Vec<usize>]) -> Vec<Option<usize>> {
    // Reverse post-order of the reversed graph from the virtual end `n`.
    let mut order = Vec::with_capacity(n + 1);
    let mut seen = vec![false; n + 1];
    let exits: Vec<usize> = (0..n).filter(|&b| succs[b].is_empty()).collect();
    let mut stack: Vec<(usize, usize)> = vec![(n, 0)];
    seen[n] = true;
    while let Some((b, i)) = stack.pop() {
        let next = if b == n { exits.get(i) } else { preds[b].get(i) };
        match next {
            Some(&p) => {
                stack.push((b, i + 1));
                if !seen[p] {
                    seen[p] = true;
                    stack.push((p, 0));
                }
            }
            None => order.push(b),
        }
    }
    order.reverse();
    let mut number = vec![usize::MAX; n + 1];
    for (i, &b) in order.iter().enumerate() {
        number[b] = i;
    }
    let mut ipdom = vec![usize::MAX; n + 1];
    ipdom[n] = n;
    let mut changed = true;
    while changed {
        changed = false;
        for &b in order.iter().skip(1) {
            let mut new = usize::MAX;
            let targets: &[usize] = if succs[b].is_empty() { &[n] } else { &succs[b] };
            for &s in targets {
                if ipdom[s] == usize::MAX {
                    continue;
                }
                new = if new == usize::MAX {
                    s
                } else {
                    let (mut x, mut y) = (new, s);
                    while x != y {
                        while number[x] > number[y] {
                            x = ipdom[x];
                        }
                        while number[y] > number[x] {
                            y = ipdom[y];
                        }
                    }
                    x
                };
            }
            if new != usize::MAX && ipdom[b] != new {
                ipdom[b] = new;
                changed = true;
            }
        }
    }
    (0..n).map(|b| if ipdom[b] < n { Some(ipdom[b]) } else { None }).collect()
}

type Loops = (Vec<(usize, Set)>, Vec<Option<usize>>);

fn natural_loops(n: usize, succs: &[Vec<usize>], preds: &[Vec<usize>], idom: &[usize]) -> Loops {
    let dominates = |a: usize, mut b: usize| loop {
        if a == b {
            return true;
        }
        if b == 0 || idom[b] == b {
            return false;
        }
        b = idom[b];
    };
    let mut loops: Vec<(usize, Set)> = Vec::new();
    for (b, ss) in succs.iter().enumerate() {
        for &h in ss {
            if !dominates(h, b) {
                continue;
            }
            let idx = loops.iter().position(|(x, _)| *x == h).unwrap_or_else(|| {
                let mut s = Set::new(n);
                s.add(h);
                loops.push((h, s));
                loops.len() - 1
            });
            let body = &mut loops[idx].1;
            let mut work = vec![b];
            while let Some(x) = work.pop() {
                if body.add(x) {
                    work.extend(&preds[x]);
                }
            }
        }
    }
    // Innermost: the smallest body that holds the block; bodies of nested loops are subsets.
    let size = |s: &Set| s.iter().count();
    let mut sized: Vec<(usize, usize)> = loops.iter().enumerate().map(|(i, (_, s))| (size(s), i)).collect();
    sized.sort_unstable();
    let mut loop_of = vec![None; n];
    for (b, of) in loop_of.iter_mut().enumerate() {
        *of = sized.iter().find(|(_, i)| loops[*i].1.has(b)).map(|(_, i)| loops[*i].0);
    }
    (loops, loop_of)
}
