//! What a loop counts down from, where others read it too: a register of its own.
//!
//! # The model
//! Compilers that unroll a loop by four go round what is left, `n & 3`, in a second one, and count that down in the register that says how many turns the first one has. A head knows
//! registers that are written once. So what is written before a loop, and in it, is written to another register first, which all read that the loop is never before.

use std::borrow::Cow;

use handloom_ir::simt::{Function, Inst, Op, Pure, Reg, Val};
use handloom_ir::types::Ty;
use handloom_plan::analysis::cfg::{Cfg, Set};
use handloom_plan::analysis::n_definitions;
use smallvec::smallvec;

use crate::asked::reg;

/// Most registers that are looked at: each costs a look at the whole function.
const MOST: usize = 100;

/// Where a register is written: before a loop, and in it.
struct Count {
    r: Reg,
    before: (usize, usize),
    inside: usize,
}

/// Registers that are written twice, once in a loop and once outside of that.
fn counts(f: &Function, cfg: &Cfg) -> Vec<Count> {
    let defs = n_definitions(f);
    let mut places: Vec<(Reg, (usize, usize))> = Vec::new();
    for (b, block) in f.blocks.iter().enumerate() {
        for (i, inst) in block.insts.iter().enumerate() {
            if let ([d], false) = (inst.dst.as_slice(), inst.guarded)
                && defs[d.idx()] == 2
                && matches!(f.regs[d.idx()], Ty::B32 | Ty::B64)
            {
                places.push((*d, (b, i)));
            }
        }
    }
    places.sort_by_key(|(r, _)| r.idx());
    let in_loop = |b: usize, other: usize| {
        let header = cfg.loop_of[b];
        header.and_then(|h| cfg.body(h)).is_some_and(|body| !body.has(other))
    };
    let of_pair = |pair: &[(Reg, (usize, usize))]| match *pair {
        [(r, a), (s, b)] if r == s && in_loop(b.0, a.0) => Some(Count { r, before: a, inside: b.0 }),
        [(r, a), (s, b)] if r == s && in_loop(a.0, b.0) => Some(Count { r, before: b, inside: a.0 }),
        _ => None,
    };
    places.windows(2).filter_map(of_pair).collect()
}

/// The function in which that is so, where what is written first is made of what a head may know.
pub(crate) fn firsts_apart<'f>(
    mut f: Cow<'f, Function>,
    cfg: &Cfg,
    known: &dyn Fn(&Function) -> Set,
) -> Cow<'f, Function> {
    let mut counts = counts(&f, cfg);
    if counts.is_empty() {
        return f;
    }
    counts.truncate(MOST);
    // Registers that are added here are made of such.
    let (known, n) = (known(&f), f.regs.len());
    let mut firsts: Vec<((usize, usize), Reg)> = Vec::new();
    for c in counts {
        let (b, i) = c.before;
        let first = &f.blocks[b].insts[i];
        // A copy is known as what it copies.
        let is_copy = matches!(first.op, Op::Pure(Pure::Mov(_)));
        if is_copy || !first.src.iter().filter_map(reg).all(|r| r.idx() >= n || known.has(r.idx())) {
            continue;
        }
        let mut comes = Set::new(f.blocks.len());
        let mut work = cfg.succs[c.inside].to_vec();
        while let Some(x) = work.pop() {
            if comes.add(x) {
                work.extend(&cfg.succs[x]);
            }
        }
        let own = Reg(f.regs.len() as u32);
        let reads_first =
            |x: usize, k: usize| x != c.inside && !comes.has(x) && if x == b { k > i } else { cfg.dominates(b, x) };
        let mut reads: Vec<(usize, usize)> = Vec::new();
        for (x, block) in f.blocks.iter().enumerate() {
            let by = |k: &usize| block.insts[*k].src.contains(&Val::Reg(c.r)) && reads_first(x, *k);
            reads.extend((0..block.insts.len()).filter(by).map(|k| (x, k)));
        }
        if reads.is_empty() {
            continue;
        }
        let f = f.to_mut();
        f.regs.push(f.regs[c.r.idx()]);
        for (x, k) in reads {
            f.blocks[x].insts[k].src.iter_mut().filter(|v| **v == Val::Reg(c.r)).for_each(|v| *v = Val::Reg(own));
        }
        firsts.push((c.before, own));
    }
    firsts.sort_unstable_by_key(|(at, _)| std::cmp::Reverse(*at));
    if !firsts.is_empty() {
        let f = f.to_mut();
        for (at, own) in firsts {
            write_first(f, at, own);
        }
    }
    f
}

/// Lets an instruction write another register, which is copied to its own.
pub(crate) fn write_first(f: &mut Function, (b, i): (usize, usize), own: Reg) {
    let insts = &mut f.blocks[b].insts;
    let (r, span) = (std::mem::replace(&mut insts[i].dst, smallvec![own]), insts[i].span);
    let op = Op::Pure(Pure::Mov(f.regs[own.idx()]));
    insts.insert(i + 1, Inst { op, dst: r, src: smallvec![Val::Reg(own)], guarded: false, span });
}
