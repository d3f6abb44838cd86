//! Vectors for the registers of a way, of each warp of a gang.

use handloom_diag::hash::FastMap;
use handloom_ir::simt::{Op, Pure, Reg, Val};
use handloom_plan::analysis::cfg::Set;

use super::way::{Alive, Carried, End, Exit, Gang, Life, VECTORS, stores_result};
use crate::alloc::{FIRST_VECTOR, Place, n_parts};
use crate::asked::reg;
use crate::emit::*;

/// Those of all values.
#[derive(Default)]
struct Lives {
    all: Vec<Life>,
    /// By register, the last one, and whether it was made in the way.
    last: FastMap<usize, (usize, bool)>,
}

impl Lives {
    fn begin(&mut self, reg: usize, at: usize, is_made: bool) {
        self.last.insert(reg, (self.all.len(), is_made));
        self.all.push(Life { reg, start: at, end: at });
    }

    fn read(&mut self, reg: usize, at: usize, is_there_before: bool) {
        if !self.last.contains_key(&reg) {
            self.begin(reg, if is_there_before { 0 } else { at }, false);
        }
        self.all[self.last[&reg].0].end = at;
    }

    /// `reads`: the instruction reads the register too.
    fn write(&mut self, reg: usize, at: usize, reads: bool) {
        match self.last.get_mut(&reg) {
            Some((life, is_made)) if reads => {
                *is_made = true;
                self.all[*life].end = at;
            }
            _ => self.begin(reg, at, true),
        }
    }

    /// The end of the way: registers that were written in it and live on.
    fn end(&mut self, at: usize, lives_on: &dyn Fn(usize) -> bool) -> Vec<usize> {
        let mut leaves: Vec<usize> = Vec::new();
        for (reg, (life, is_made)) in &self.last {
            if *is_made && lives_on(*reg) {
                self.all[*life].end = at;
                leaves.push(*reg);
            }
        }
        leaves.sort_unstable();
        leaves
    }
}

impl Emit<'_> {
    /// The store that follows an instruction in a way, if it stores what that has made and nothing is done between the two: its block, and its number there. `k`: the number of the block in the way.
    pub(super) fn stored_next(&self, way: &Gang, (k, i): (usize, usize)) -> Option<(usize, usize)> {
        let (b, n) = way.blocks[k];
        let goes_on = || way.exit_of(b).is_none() && self.plain_barrier(b).is_none();
        let next = match way.blocks.get(k + 1) {
            _ if i + 1 < n => (b, i + 1),
            Some((next, 1..)) if goes_on() => (*next, 0),
            _ => return None,
        };
        let inst = |(b, i): (usize, usize)| &way.insts(self.f, b)[i];
        stores_result(inst((b, i)), inst(next)).then_some(next)
    }

    /// Places for so many warps, if there are enough vectors: rows of chains stay for the warps that follow, and rows for those beside them, if there are enough for that too.
    pub(super) fn places_with_chains(&mut self, way: &Gang, size: usize) -> Option<Gang> {
        // Of few registers, what stays is in memory again.
        if !self.a.has_wide_vectors() {
            return self.places_of_gang(way, size);
        }
        let carried = if way.by_warp { self.chains_of(way, size) } else { Vec::new() };
        let has_chains = !carried.is_empty();
        let mut chained = Gang { carried, ..way.clone() };
        let mut folds = std::mem::take(&mut chained.folds);
        folds.retain(|at, _| chained.carried(*at).is_none());
        chained.folds = folds;
        let with_rows = self.with_shifted(&chained).and_then(|with| self.places_of_gang(&with, size));
        let with_chains = || if has_chains { self.places_of_gang(&chained, size) } else { None };
        if let Some(places) = with_rows.or_else(with_chains) {
            return Some(places);
        }
        let with_passed = self.with_passed(way, size).and_then(|with| self.places_of_gang(&with, size));
        with_passed.or_else(|| self.places_of_gang(way, size))
    }

    /// Places for so many warps, if there are enough vectors.
    pub(super) fn places_of_gang(&self, way: &Gang, size: usize) -> Option<Gang> {
        let f = self.f;
        // A register that is written anew is another value, which may live elsewhere.
        let mut lives = Lives::default();
        let mut stored: Vec<(usize, usize)> = Vec::new();
        // Loads of chains, by the number of the instruction.
        let mut carried: Vec<(usize, Carried)> = Vec::new();
        let mut takes: Vec<(usize, usize, usize)> = Vec::new();
        let mut at = 0;
        let (first, last) = (way.start, way.blocks.last()?.0);
        let mut delayed: Vec<Reg> = Vec::new();
        let mut written = Set::new(f.regs.len());
        let insts = way.blocks.iter().flat_map(|&(b, n)| &way.insts(f, b)[..n]);
        insts.flat_map(|i| &i.dst).for_each(|d| _ = written.add(d.idx()));
        for (k, &(b, n)) in way.blocks.iter().enumerate() {
            for (i, inst) in way.insts(f, b)[..n].iter().enumerate() {
                at += 1;
                if self.head.as_ref().is_some_and(|h| h.has(inst)) {
                    continue;
                }
                if way.folds.contains_key(&(b, i)) {
                    delayed.push(inst.dst[0]);
                    continue;
                }
                carried.extend(way.carried((b, i)).map(|c| (at, *c)));
                // Lanes that do not go keep what they have.
                let kept = inst.dst.iter().copied().filter(|d| self.is_kept_by_others(way, b, *d));
                let reads = inst.src.iter().filter_map(reg).filter(|r| !delayed.contains(r));
                let beside = way.shifted((b, i)).map(|s| s.of);
                let reads: Vec<Reg> = reads.chain(kept).chain(beside).collect();
                for r in reads.iter().filter(|r| self.is_in_vectors(**r)) {
                    lives.read(r.idx(), at, self.plan.facts.live.entry[first].has(r.idx()));
                }
                let is_stored = self.stored_next(way, (k, i)).is_some();
                for d in inst.dst.iter().filter(|d| self.is_in_vectors(**d)) {
                    lives.write(d.idx(), at, reads.contains(d));
                    if is_stored {
                        stored.push((d.idx(), at));
                    }
                }
                if let (Op::Pure(Pure::FFma(_)), [d], Some(Val::Reg(sum))) =
                    (inst.op, inst.dst.as_slice(), inst.src.get(2))
                {
                    takes.push((d.idx(), sum.idx(), at));
                }
            }
            // What warps that leave here need is written to its home, unless it is there. (Behind the last instruction, so that nothing takes its place over.)
            let needed = way.exit_of(b).into_iter().flat_map(Exit::stops).flat_map(|(b, _)| self.live_vectors(b));
            for r in needed {
                if lives.last.contains_key(&r) || way.comes_back() && written.has(r) {
                    lives.read(r, at + 1, self.plan.facts.live.entry[first].has(r));
                }
            }
        }
        let mut gang = Gang { warps: size, ..way.clone() };
        if way.end != End::Place(None) {
            gang.leaves = lives.end(at + 1, &|r| self.plan.facts.live.exit(last).has(r));
        }
        if way.comes_back() {
            // What it reads first is there when it comes back.
            let entered: Vec<usize> = lives.all.iter().filter(|l| l.start == 0).map(|l| l.reg).collect();
            entered.into_iter().for_each(|r| lives.all[lives.last[&r].0].end = at + 1);
        }
        let mut lives = lives.all;
        lives.sort_unstable_by_key(|l| (l.start, l.reg));
        let mut free: Vec<u8> = (0..VECTORS).rev().map(|v| v + FIRST_VECTOR).collect();
        let mut active: Vec<(Life, Vec<u8>)> = Vec::new();
        let mut entered: Vec<(usize, Vec<Place>)> = Vec::new();
        let mut taken = 0_u32;
        // By chain.
        let mut rows: Vec<Vec<u8>> = Vec::new();
        for (_, c) in carried.iter().filter(|(_, c)| c.age == 0) {
            let n = c.n_vectors(n_parts(f.regs[c.reg.idx()]));
            rows.resize(rows.len().max(c.chain + 1), Vec::new());
            rows[c.chain] = free.split_off(free.len().checked_sub(n)?);
            taken = rows[c.chain].iter().fold(taken, |t, v| t | 1 << v);
        }
        if way.by_warp {
            // What is the same in all warps is there while the others go: nothing else may take its vectors before it is made for the first one.
            lives.sort_by_key(|l| !way.common.has(l.reg));
        }
        for life in lives {
            let r = life.reg;
            if let Some((_, c)) = carried.iter().find(|(at, c)| c.reg.idx() == r && *at == life.start) {
                let rows = &rows[c.chain];
                let places = (0..size).map(|m| c.place(m, rows, n_parts(f.regs[r]))).collect();
                gang.moves.push((life.start, r, places));
                continue;
            }
            // Each warp stores it before the next one makes it.
            let is_stored = life.end == life.start + 1 && stored.contains(&(r, life.start));
            let copies = if way.common.has(r) || way.by_warp || is_stored { 1 } else { size };
            let parts = n_parts(f.regs[r]);
            let sum = takes.iter().find(|t| t.0 == r && t.2 == life.start && t.1 != r).map(|t| t.1);
            let mut over = None;
            active.retain(|(a, v)| {
                let stays = way.by_warp && way.common.has(a.reg);
                // What all warps read has one copy, as what each stores before the next one makes it: the first of them does not take it over.
                let is_of_all = way.common.has(a.reg) && !way.common.has(r);
                let takes = sum == Some(a.reg) && a.end == life.start && v.len() == copies * parts;
                let leaves = takes && !is_of_all && !stays;
                if leaves {
                    over = Some(v.clone());
                } else if a.end < life.start && !stays {
                    free.extend(v);
                    return false;
                }
                !leaves
            });
            let vectors = match over {
                Some(v) => v,
                None if free.len() >= copies * parts => free.split_off(free.len() - copies * parts),
                None => return None,
            };
            let of_warp = |m: usize| {
                let own = &vectors[if copies == 1 { 0 } else { m * parts }..];
                Place::Vectors(std::array::from_fn(|q| own.get(q).filter(|_| q < parts).copied().unwrap_or(0)))
            };
            let places = (0..size).map(of_warp).collect();
            if life.start == 0 {
                entered.push((r, places));
            } else {
                gang.moves.push((life.start, r, places));
            }
            taken = vectors.iter().fold(taken, |t, v| t | 1 << v);
            if !self.a.has_wide_vectors() {
                let bits = |v: &[u8]| v.iter().fold(0, |m, v| m | 1 << (v - FIRST_VECTOR));
                let of = vectors.chunks(parts).take(copies).map(bits).collect();
                gang.alive.push(Alive { life, vectors: of, stays: way.by_warp && way.common.has(r) });
            }
            active.push((life, vectors));
        }
        entered.sort_unstable_by_key(|(r, _)| *r);
        gang.entered = entered;
        gang.moves.sort_by_key(|m| m.0);
        gang.spare = (FIRST_VECTOR..FIRST_VECTOR + VECTORS).filter(|v| taken >> v & 1 == 0).collect();
        Some(gang)
    }
}
