//! Comparisons that several branches ask, or that are made in other blocks, are made for each branch, with what connects them, so that each may be a guard: what feeds a guard alone can be
//! decided once a CTA.

use std::borrow::Cow;

use handloom_ir::simt::{Function, Inst, Op, Pure, Reg, Term, Val};
use handloom_ir::types::Ty;
use handloom_plan::analysis::cfg::Cfg;
use handloom_plan::analysis::n_definitions;

/// The most instructions that make the predicate of a branch which gets them anew.
const MOST: usize = 12;

/// What is asked of a function.
struct Search<'f> {
    f: &'f Function,
    /// By register that one instruction makes, where that is.
    made: Vec<Option<(usize, usize)>>,
    /// By register, how often it is read.
    reads: Vec<u32>,
    /// The first block that a loop begins with: what is made before is made once.
    end: usize,
}

impl Search<'_> {
    fn new(f: &Function) -> Search<'_> {
        let end = f.led_back_to().map(|t| t.idx()).min().unwrap_or(f.blocks.len());
        let defs = n_definitions(f);
        let mut made = vec![None; f.regs.len()];
        let mut reads = vec![0; f.regs.len()];
        for (b, block) in f.blocks.iter().enumerate() {
            for (i, inst) in block.insts.iter().enumerate() {
                inst.src.iter().filter_map(reg).for_each(|r| reads[r.idx()] += 1);
                inst.dst.iter().filter(|d| defs[d.idx()] == 1).for_each(|d| made[d.idx()] = Some((b, i)));
            }
            block.term.sources().iter().filter_map(reg).for_each(|r| reads[r.idx()] += 1);
        }
        Search { f, made, reads, end }
    }

    fn inst(&self, (b, i): (usize, usize)) -> &Inst {
        &self.f.blocks[b].insts[i]
    }

    /// The comparisons of integers that a predicate is made of, and what connects them, in order, if what they compare is made once.
    fn comparisons(&self, cond: Reg) -> Option<Vec<(usize, usize)>> {
        let mut slice: Vec<(usize, usize)> = Vec::new();
        let mut work = vec![cond];
        while let Some(p) = work.pop() {
            let at = self.made[p.idx()]?;
            let inst = self.inst(at);
            if slice.contains(&at) {
                continue;
            }
            if inst.guarded || inst.dst.len() != 1 || slice.len() == MOST {
                return None;
            }
            match inst.op {
                Op::Pure(Pure::ICmp(..)) if inst.src.iter().filter_map(reg).all(|r| self.is_made_once(r)) => {}
                Op::Pure(Pure::And(Ty::P) | Pure::Or(Ty::P) | Pure::Not(Ty::P)) => {
                    for v in &inst.src {
                        work.push(reg(v)?);
                    }
                }
                _ => return None,
            }
            slice.push(at);
        }
        slice.sort_unstable();
        Some(slice)
    }

    fn is_made_once(&self, r: Reg) -> bool {
        self.made[r.idx()].is_some_and(|at| at.0 < self.end && !self.inst(at).guarded)
    }

    /// Whether all of a slice and what it compares is made before a block is come to.
    fn is_before(&self, cfg: &Cfg, slice: &[(usize, usize)], b: usize) -> bool {
        slice.iter().all(|&at| {
            let sources = self.inst(at).src.iter().filter_map(reg).filter_map(|r| self.made[r.idx()]);
            cfg.dominates(at.0, b)
                && sources.into_iter().all(|s| if s.0 == at.0 { s.1 < at.1 } else { cfg.dominates(s.0, at.0) })
        })
    }
}

/// The function with comparisons of its own for each branch that may be decided by them.
pub(crate) fn asked_once(f: &Function) -> Cow<'_, Function> {
    let s = Search::new(f);
    let mut cfg: Option<Cfg> = None;
    let mut changed = Cow::Borrowed(f);
    let mut reads = s.reads.clone();
    let mut replaced: Vec<(usize, usize)> = Vec::new();
    for (b, block) in f.blocks.iter().enumerate() {
        let Term::Branch { cond: Val::Reg(cond), .. } = block.term else { continue };
        let Some(slice) = s.comparisons(cond) else { continue };
        let made: Vec<Reg> = slice.iter().map(|at| s.inst(*at).dst[0]).collect();
        let within = |r: Reg| {
            let by_slice = slice.iter().flat_map(|at| &s.inst(*at).src).filter(|v| **v == Val::Reg(r)).count();
            by_slice as u32 + u32::from(r == cond)
        };
        let is_own = made.iter().all(|r| s.reads[r.idx()] == within(*r)) && slice.iter().all(|at| at.0 == b);
        // In loops each comparison is done in each turn.
        let may_be = b < s.end || slice.len() == 1;
        if is_own || !may_be || block.insts.last().is_some_and(|i| i.op.is_warp_sync()) {
            continue;
        }
        if !s.is_before(cfg.get_or_insert_with(|| Cfg::new(f)), &slice, b) {
            continue;
        }
        let f = changed.to_mut();
        let first = f.regs.len() as u32;
        let anew = |r: Reg| made.iter().position(|m| *m == r).map_or(r, |k| Reg(first + k as u32));
        for at in &slice {
            let mut copy = s.inst(*at).clone();
            copy.dst.iter_mut().for_each(|d| *d = anew(*d));
            copy.src.iter_mut().for_each(|v| *v = reg(v).map_or(*v, |r| Val::Reg(anew(r))));
            f.regs.push(Ty::P);
            f.blocks[b].insts.push(copy);
        }
        f.blocks[b].term.map_sources(|v| reg(&v).map_or(v, |r| Val::Reg(anew(r))));
        reads[cond.idx()] -= 1;
        replaced.extend(slice);
    }
    if let Cow::Owned(f) = &mut changed {
        remove_unread(&s, f, reads, replaced);
    }
    changed
}

/// Removes what was made for branches that have their own now.
fn remove_unread(s: &Search<'_>, f: &mut Function, mut reads: Vec<u32>, mut replaced: Vec<(usize, usize)>) {
    replaced.sort_unstable();
    replaced.dedup();
    // What reads a predicate stands behind it.
    for (b, i) in replaced.into_iter().rev() {
        let inst = s.inst((b, i));
        if reads[inst.dst[0].idx()] == 0 {
            inst.src.iter().filter_map(reg).for_each(|r| reads[r.idx()] -= 1);
            f.blocks[b].insts.remove(i);
        }
    }
}

/// The register that a value is read from.
pub(crate) fn reg(v: &Val) -> Option<Reg> {
    match v {
        Val::Reg(r) => Some(*r),
        Val::Imm(..) => None,
    }
}
