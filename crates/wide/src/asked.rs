//! A comparison that several branches ask is made for each of them, so that each may be a guard: what feeds a guard alone can be decided once a CTA.

use std::borrow::Cow;

use handloom_ir::simt::{Function, Inst, Op, Pure, Reg, Term, Val};
use handloom_ir::types::Ty;
use handloom_plan::analysis::cfg::Cfg;

/// The function with a comparison of its own for each branch that asks one of what the first block makes.
pub(crate) fn asked_once(f: &Function) -> Cow<'_, Function> {
    let n = f.regs.len();
    let (mut asks, mut other, mut defs) = (vec![0u32; n], vec![false; n], vec![0u32; n]);
    for block in &f.blocks {
        block.insts.iter().flat_map(|i| &i.src).filter_map(reg).for_each(|r| other[r.idx()] = true);
        block.insts.iter().flat_map(|i| &i.dst).chain(block.term.result().iter()).for_each(|d| defs[d.idx()] += 1);
        match asked(&block.term) {
            Some(r) => asks[r.idx()] += 1,
            None => block.term.sources().iter().filter_map(reg).for_each(|r| other[r.idx()] = true),
        }
    }
    let several: Vec<usize> = (0..n).filter(|r| asks[*r] > 1 && !other[*r] && defs[*r] == 1).collect();
    let goes_back = || f.blocks.iter().any(|b| b.term.successors().iter().any(|t| t.idx() == 0));
    if several.is_empty() || goes_back() {
        return Cow::Borrowed(f);
    }
    let is_there = |v: &Val| match v {
        Val::Imm(..) => true,
        Val::Reg(r) => defs[r.idx()] == 1 && f.blocks[0].insts.iter().any(|i| i.dst.contains(r) && !i.guarded),
    };
    let cfg = Cfg::new(f);
    let mut changed = Cow::Borrowed(f);
    for r in several {
        let makes = |i: &&Inst| i.dst == [Reg(r as u32)] && !i.guarded && matches!(i.op, Op::Pure(Pure::ICmp(..)));
        let found = f.blocks.iter().enumerate().find_map(|(b, x)| Some((b, x.insts.iter().find(makes)?)));
        let Some((at, made)) = found.filter(|(_, i)| i.src.iter().all(is_there)) else { continue };
        for b in 0..f.blocks.len() {
            if b == at || asked(&f.blocks[b].term).is_none_or(|c| c.idx() != r) || !cfg.dominates(at, b) {
                continue;
            }
            let f = changed.to_mut();
            let own = Reg(f.regs.len() as u32);
            f.regs.push(Ty::P);
            f.blocks[b].insts.push(Inst { dst: [own].into_iter().collect(), ..made.clone() });
            if let Term::Branch { cond, .. } = &mut f.blocks[b].term {
                *cond = Val::Reg(own);
            }
        }
    }
    changed
}

/// The register that a value is read from.
pub(crate) fn reg(v: &Val) -> Option<Reg> {
    match v {
        Val::Reg(r) => Some(*r),
        Val::Imm(..) => None,
    }
}

fn asked(term: &Term) -> Option<Reg> {
    match term {
        Term::Branch { cond, .. } => reg(cond),
        _ => None,
    }
}
