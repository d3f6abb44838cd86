//! What the values of a loop are computed from, in time in proportion to the loop.
//!
//! An instruction that reads a register has its value from the last writer in front of it in its block, or, where there is none, from any
//! writer in the loop. [`Origins`] has these edges (the writers of one register are one node, so that many readers of it share their list),
//! and marks on instructions that are handed on along them: [`Origins::spread`].

use handloom_ir::simt::*;

use crate::graph::{Edges, Loop};

/// The instructions of a loop and what each is computed from. They are known by their place in `insts`.
pub(crate) struct Origins<'f> {
    pub(crate) insts: Vec<&'f Inst>,
    /// For each block of the loop, the place of its first instruction; one more at the end.
    starts: Vec<usize>,
    /// Registers written in the loop with the instructions that write them, sorted.
    writers: Vec<(Reg, usize)>,
    /// From an instruction or a register to what it is computed from. Registers stand behind instructions, each at the number of its
    /// first entry in `writers`.
    edges: Edges,
    /// The parts of `edges` in which each node is computed from each other, those that others are computed from first.
    parts: Vec<Vec<usize>>,
    /// The part of each node.
    part_of: Vec<usize>,
    /// For each part, what any of its nodes is marked with, or any that it is computed from.
    marks: Vec<u8>,
}

impl<'f> Origins<'f> {
    pub(crate) fn of(f: &'f Function, l: &Loop) -> Origins<'f> {
        let mut insts = Vec::new();
        let mut starts = vec![0];
        for &b in &l.blocks {
            insts.extend(&f.blocks[b].insts);
            starts.push(insts.len());
        }
        let mut writers: Vec<(Reg, usize)> =
            insts.iter().enumerate().flat_map(|(k, i)| i.dst.iter().map(move |d| (*d, k))).collect();
        writers.sort_unstable();
        let mut origins = Origins {
            insts,
            starts,
            writers,
            edges: Edges::default(),
            parts: Vec::new(),
            part_of: Vec::new(),
            marks: Vec::new(),
        };
        origins.connect();
        origins
    }

    /// Registers written in the loop with the instructions that write them, sorted.
    pub(crate) fn writers(&self) -> &[(Reg, usize)] {
        &self.writers
    }

    fn connect(&mut self) {
        let mut edges = Edges::default();
        for b in self.starts.windows(2) {
            for k in b[0]..b[1] {
                edges.push_node(self.insts[k].src.iter().filter_map(|s| self.node_seen(*s, (b[0], k))));
            }
        }
        for (i, (r, _)) in self.writers.iter().enumerate() {
            let is_first = i == 0 || self.writers[i - 1].0 != *r;
            let all = if is_first { self.all_writers(*r) } else { &[] };
            edges.push_node(all.iter().map(|(_, k)| *k));
        }
        (self.parts, self.part_of) = edges.parts();
        self.marks = vec![0; self.parts.len()];
        self.edges = edges;
    }

    /// The places of the instructions of the `n`th block of the loop.
    pub(crate) fn places_of(&self, n: usize) -> (usize, usize) {
        (self.starts[n], self.starts[n + 1])
    }

    /// The places from the start of an instruction's block up to it.
    pub(crate) fn in_front(&self, k: usize) -> (usize, usize) {
        (self.starts[self.block_of(k)], k)
    }

    /// The number of an instruction's block in the loop.
    pub(crate) fn block_of(&self, k: usize) -> usize {
        self.starts.partition_point(|&s| s <= k) - 1
    }

    /// Marks each instruction with what `mark` says of it and with the marks of all that it is computed from.
    pub(crate) fn spread(&mut self, mark: impl Fn(&Self, usize) -> u8) {
        for p in 0..self.parts.len() {
            let mut marks = self.marks[p];
            for &node in &self.parts[p] {
                if node < self.insts.len() {
                    marks |= mark(self, node);
                }
                for &from in self.edges.of_node(node) {
                    marks |= self.marks[self.part_of[from]];
                }
            }
            self.marks[p] = marks;
        }
    }

    /// The marks of all that values are computed from, as they are after the places `at` of one block.
    pub(crate) fn marks(&self, values: &[Val], at: (usize, usize)) -> u8 {
        values.iter().filter_map(|v| self.node_seen(*v, at)).fold(0, |all, node| all | self.marks[self.part_of[node]])
    }

    /// Whether any instruction has a mark.
    pub(crate) fn any(&self, mark: u8) -> bool {
        self.marks.iter().any(|m| m & mark != 0)
    }

    /// Whether an instruction is computed from itself in the turn before.
    pub(crate) fn is_of_itself(&self, k: usize) -> bool {
        self.parts[self.part_of[k]].len() > 1 || self.edges.of_node(k).contains(&k)
    }

    /// The last writer of a register at the given places, or all of the loop if none is there.
    pub(crate) fn writers_seen(&self, r: Reg, (from, to): (usize, usize)) -> &[(Reg, usize)] {
        let all = self.all_writers(r);
        let n_before = all.partition_point(|(_, k)| *k < to);
        match all[..n_before].last() {
            Some((_, k)) if *k >= from => &all[n_before - 1..n_before],
            _ => all,
        }
    }

    /// The node that a value is of, as it is after the places `at` of one block: an instruction, or a register written in the loop.
    fn node_seen(&self, v: Val, at: (usize, usize)) -> Option<usize> {
        let Val::Reg(r) = v else { return None };
        match self.writers_seen(r, at) {
            [] => None,
            [(_, k)] => Some(*k),
            _ => Some(self.insts.len() + self.first_writer(r)),
        }
    }

    fn first_writer(&self, r: Reg) -> usize {
        self.writers.partition_point(|(w, _)| *w < r)
    }

    fn all_writers(&self, r: Reg) -> &[(Reg, usize)] {
        let start = self.first_writer(r);
        &self.writers[start..start + self.writers[start..].partition_point(|(w, _)| *w == r)]
    }
}
