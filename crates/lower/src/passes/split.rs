//! Registers that are used again for something else.
//!
//! A definition whose value is not looked at after its block gets a register of its own, so that it becomes a value that other passes
//! understand. Hand-written PTX uses few registers many times; `sroa` gives registers that are written wherever the slot was.

use handloom_ir::simt::*;
use smallvec::{SmallVec, smallvec};

use super::values::for_each_source;
use crate::graph::for_each_successor;

/// Splits what it can in one walk.
pub fn split_ranges(f: &mut Function) {
    let Some(shared) = Shared::of(f) else { return };
    let live_out = shared.live_out(f);
    let n = shared.n;
    // Position of the last whole definition, and the new name of the current one, stamped with the block.
    let mut last: Vec<(usize, usize)> = vec![(usize::MAX, 0); n];
    let mut name: Vec<(usize, Reg)> = vec![(usize::MAX, Reg(0)); n];
    for b in 0..f.blocks.len() {
        let Function { blocks, regs, .. } = f;
        let block = &mut blocks[b];
        for (k, i) in block.insts.iter().enumerate().filter(|(_, i)| !i.guarded) {
            i.dst.iter().filter_map(|d| shared.number(*d)).for_each(|d| last[d] = (b, k));
        }
        if let Some(d) = block.term.result().and_then(|d| shared.number(d)) {
            last[d] = (b, usize::MAX);
        }
        let renamed = |v: Val, name: &[(usize, Reg)]| match v {
            Val::Reg(r) => match shared.number(r).map(|s| name[s]) {
                Some((at, new)) if at == b => Val::Reg(new),
                _ => v,
            },
            Val::Imm(..) => v,
        };
        for (k, i) in block.insts.iter_mut().enumerate() {
            i.src.iter_mut().for_each(|s| *s = renamed(*s, &name));
            for d in &mut i.dst {
                let Some(s) = shared.number(*d) else { continue };
                let ends_here = (last[s].0 == b && k < last[s].1) || !live_out[b].has(s);
                if i.guarded {
                    // It keeps the old value in some lanes, so it goes on with the old name.
                    if name[s].0 == b {
                        *d = name[s].1;
                    }
                } else if ends_here {
                    regs.push(regs[d.idx()]);
                    *d = Reg(regs.len() as u32 - 1);
                    name[s] = (b, *d);
                } else {
                    name[s].0 = usize::MAX;
                }
            }
        }
        block.term.map_sources(|v| renamed(v, &name));
    }
}

/// The registers with more than one definition, numbered.
struct Shared {
    numbers: Vec<u32>,
    n: usize,
}

const NONE: u32 = u32::MAX;

impl Shared {
    /// None if there are no such registers.
    fn of(f: &Function) -> Option<Shared> {
        let mut n_defs = vec![0u8; f.regs.len()];
        for b in &f.blocks {
            let written = b.insts.iter().flat_map(|i| &i.dst).copied().chain(b.term.result());
            written.for_each(|d| n_defs[d.idx()] = n_defs[d.idx()].saturating_add(1));
        }
        let mut n = 0;
        let mut number = |defs: u8| {
            if defs < 2 {
                return NONE;
            }
            n += 1;
            n - 1
        };
        let numbers: Vec<u32> = n_defs.into_iter().map(&mut number).collect();
        (n > 0).then_some(Shared { numbers, n: n as usize })
    }

    fn number(&self, r: Reg) -> Option<usize> {
        self.numbers.get(r.idx()).filter(|n| **n != NONE).map(|n| *n as usize)
    }

    /// Which of them are read after each block before they are written.
    fn live_out(&self, f: &Function) -> Vec<Set> {
        let n_blocks = f.blocks.len();
        let mut read: Vec<Set> = Vec::with_capacity(n_blocks);
        let mut written: Vec<Set> = Vec::with_capacity(n_blocks);
        for b in &f.blocks {
            let (mut reads, mut writes) = (Set::empty(self.n), Set::empty(self.n));
            let mut see = |v: Val, writes: &Set| {
                if let Val::Reg(r) = v
                    && let Some(s) = self.number(r).filter(|s| !writes.has(*s))
                {
                    reads.add(s);
                }
            };
            for i in &b.insts {
                i.src.iter().for_each(|v| see(*v, &writes));
                if i.guarded {
                    i.dst.iter().for_each(|d| see(Val::Reg(*d), &writes));
                }
                i.dst.iter().filter_map(|d| self.number(*d)).for_each(|s| writes.add(s));
            }
            for_each_source(&b.term, |v| see(v, &writes));
            b.term.result().and_then(|d| self.number(d)).into_iter().for_each(|s| writes.add(s));
            read.push(reads);
            written.push(writes);
        }
        let mut live_in = read.clone();
        let mut live_out = vec![Set::empty(self.n); n_blocks];
        let mut changed = true;
        while changed {
            changed = false;
            for b in (0..n_blocks).rev() {
                for_each_successor(&f.blocks[b].term, |s| live_out[b].join(&live_in[s.idx()]));
                changed |= live_in[b].join_without(&live_out[b], &written[b]);
            }
        }
        live_out
    }
}

/// A set of small numbers.
#[derive(Clone)]
struct Set(SmallVec<[u64; 4]>);

impl Set {
    fn empty(n: usize) -> Set {
        Set(smallvec![0; n.div_ceil(64)])
    }

    fn has(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }

    fn add(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }

    fn join(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }

    /// Adds what is in `other` and not in `but`; whether anything was new.
    fn join_without(&mut self, other: &Set, but: &Set) -> bool {
        let mut changed = false;
        for (a, (b, c)) in self.0.iter_mut().zip(other.0.iter().zip(&but.0)) {
            let joined = *a | (b & !c);
            changed |= joined != *a;
            *a = joined;
        }
        changed
    }
}
