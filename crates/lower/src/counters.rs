//! Loops that a counter ends, found by a look at few instructions: those that a branch out of the loop is computed from.
//!
//! What is found here would be found by a look at the whole loop too ([`Origins`](crate::origins::Origins)). But loops inside each other, each with its counter,
//! are looked at in time in proportion to their number and not to all that is inside them.

use handloom_ir::simt::*;

use crate::graph::{Dominators, Edges, Loop};

/// So many instructions are looked at for a branch, at most.
const MOST: usize = 8;

/// The instructions of a function by number, and who writes a register.
pub(crate) struct Writers<'f> {
    f: &'f Function,
    /// The number of the first instruction of each block; one more at the end.
    starts: Vec<usize>,
    /// From each register to the instructions that write it.
    by_register: Edges,
}

/// An instruction that a branch is computed from, and those that its sources come from.
struct Step {
    number: usize,
    sources: Vec<usize>,
}

impl<'f> Writers<'f> {
    pub(crate) fn of(f: &'f Function) -> Writers<'f> {
        let mut starts = vec![0];
        let mut written = Vec::new();
        let mut n = 0;
        for b in &f.blocks {
            for i in &b.insts {
                written.extend(i.dst.iter().map(|d| (d.idx(), n)));
                n += 1;
            }
            starts.push(n);
        }
        Writers { f, starts, by_register: Edges::of_pairs(f.regs.len(), written) }
    }

    /// Whether the branch at the end of a block of a loop is computed from a counter, and from nothing but value ops, all of which are done in each turn that ends
    /// with a latch.
    pub(crate) fn is_counted(&self, l: &Loop, (block, latch): (usize, usize), doms: &Dominators) -> bool {
        let Term::Branch { cond, .. } = self.f.blocks[block].term else { return false };
        let at = (self.starts[block], self.starts[block + 1]);
        let is_done = |s: &Step| doms.dominates(self.block_of(s.number), latch);
        self.steps(l, cond, at).is_some_and(|steps| steps.iter().all(is_done) && self.count(&steps, doms))
    }

    /// All that a value is computed from in a loop, as it is after the places `at` of one block; `None` if that is much, or more than value ops that are the only
    /// ones to write what they are read for.
    fn steps(&self, l: &Loop, value: Val, at: (usize, usize)) -> Option<Vec<Step>> {
        let mut steps: Vec<Step> = Vec::new();
        let mut todo = Vec::from_iter(self.writer(l, value, at)?);
        while let Some(number) = todo.pop() {
            if steps.iter().any(|s| s.number == number) {
                continue;
            }
            let block = self.block_of(number);
            let inst = &self.f.blocks[block].insts[number - self.starts[block]];
            if steps.len() == MOST || !matches!(inst.op, Op::Pure(_)) {
                return None;
            }
            let mut sources = Vec::new();
            for v in &inst.src {
                sources.extend(self.writer(l, *v, (self.starts[block], number))?);
            }
            todo.extend(&sources);
            steps.push(Step { number, sources });
        }
        Some(steps)
    }

    /// Whether each turn computes one of some values from its own last value: one that is computed from itself, and read where it is still that of the turn before.
    fn count(&self, steps: &[Step], doms: &Dominators) -> bool {
        let is_carried = |x: usize, reader: usize| !self.comes_first(x, reader, doms) && leads_to(steps, x, x);
        steps.iter().any(|reader| reader.sources.iter().any(|x| is_carried(*x, reader.number)))
    }

    /// Whether each turn that comes to the instruction `b` came to `a` before.
    fn comes_first(&self, a: usize, b: usize, doms: &Dominators) -> bool {
        let [of_a, of_b] = [a, b].map(|k| self.block_of(k));
        if of_a == of_b { a < b } else { doms.dominates(of_a, of_b) }
    }

    /// The only instruction of a loop that a value can be of, as it is after the places `at` of one block: `Some(None)` if the loop does not change it,
    /// `None` if it can be of several.
    fn writer(&self, l: &Loop, value: Val, (from, to): (usize, usize)) -> Option<Option<usize>> {
        let Val::Reg(r) = value else { return Some(None) };
        let all = self.by_register.of_node(r.idx());
        if let Some(last) = all[..all.partition_point(|k| *k < to)].last().filter(|k| **k >= from) {
            return Some(Some(*last));
        }
        let [first, end] = [l.blocks[0], l.blocks[l.blocks.len() - 1] + 1].map(|b| self.starts[b]);
        let inside = all[all.partition_point(|k| *k < first)..].iter().copied().take_while(|k| *k < end);
        let mut writers = inside.filter(|k| l.contains(self.block_of(*k)));
        match (writers.next(), writers.next()) {
            (only, None) => Some(only),
            (_, Some(_)) => None,
        }
    }

    fn block_of(&self, number: usize) -> usize {
        self.starts.partition_point(|s| *s <= number) - 1
    }
}

/// Whether one of some instructions is computed from another, both by number.
fn leads_to(steps: &[Step], from: usize, to: usize) -> bool {
    let (mut seen, mut todo) = (Vec::new(), vec![from]);
    while let Some(number) = todo.pop() {
        for source in steps.iter().filter(|s| s.number == number).flat_map(|s| &s.sources) {
            if !seen.contains(source) {
                seen.push(*source);
                todo.push(*source);
            }
        }
    }
    seen.contains(&to)
}
