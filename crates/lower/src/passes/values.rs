//! Which registers are values.

use handloom_ir::simt::*;

use crate::graph::Dominators;

/// The registers with one definition that dominates all their uses, or with none: each reads the same value wherever it is read.
pub(crate) struct Values {
    /// The block of the definition; `None` for registers that are no values.
    block: Vec<Option<u32>>,
}

const NONE: u32 = u32::MAX;

impl Values {
    /// Of an ordered function.
    pub(crate) fn of(f: &Function, doms: &Dominators) -> Values {
        let mut scan = Scan { block: vec![NONE; f.regs.len()], bad: vec![false; f.regs.len()] };
        for (b, block) in f.blocks.iter().enumerate() {
            for i in &block.insts {
                i.src.iter().for_each(|v| scan.read(*v, b, doms));
                i.dst.iter().for_each(|d| scan.write(*d, b));
            }
            for_each_source(&block.term, |v| scan.read(v, b, doms));
            if let Some(d) = block.term.result() {
                scan.write(d, b);
            }
        }
        // A register that is never written reads the same everywhere.
        let is_value = |(block, bad): (u32, bool)| match block {
            NONE => Some(0),
            block => (!bad).then_some(block),
        };
        Values { block: scan.block.into_iter().zip(scan.bad).map(is_value).collect() }
    }

    /// Whether a source is a constant or a value.
    pub(crate) fn is_fixed(&self, v: Val) -> bool {
        match v {
            Val::Imm(..) => true,
            Val::Reg(r) => self.is_value(r),
        }
    }

    /// Whether a register is a value. Registers made after the analysis are none.
    pub(crate) fn is_value(&self, r: Reg) -> bool {
        self.block.get(r.idx()).is_some_and(Option::is_some)
    }

    /// The block that defines a value.
    pub(crate) fn block(&self, r: Reg) -> Option<usize> {
        self.block.get(r.idx()).copied().flatten().map(|b| b as usize)
    }
}

/// By register: the instructions that write it, as blocks and places in these.
pub(crate) fn definitions(f: &Function) -> Vec<Vec<(usize, usize)>> {
    let mut of = vec![Vec::new(); f.regs.len()];
    for (b, block) in f.blocks.iter().enumerate() {
        for (i, inst) in block.insts.iter().enumerate() {
            inst.dst.iter().for_each(|d| of[d.idx()].push((b, i)));
        }
    }
    of
}

/// A walk in block order: the definition of a value comes before its uses.
struct Scan {
    block: Vec<u32>,
    bad: Vec<bool>,
}

impl Scan {
    fn read(&mut self, v: Val, b: usize, doms: &Dominators) {
        if let Val::Reg(r) = v {
            let at = self.block[r.idx()];
            self.bad[r.idx()] |= at == NONE || !doms.dominates(at as usize, b);
        }
    }

    fn write(&mut self, d: Reg, b: usize) {
        self.bad[d.idx()] |= self.block[d.idx()] != NONE;
        self.block[d.idx()] = b as u32;
    }
}

/// [`Term::sources`] without a list.
pub(crate) fn for_each_source(term: &Term, mut f: impl FnMut(Val)) {
    match term {
        Term::Branch { cond, .. } => f(*cond),
        Term::Switch { index, .. } => f(*index),
        Term::Barrier { id, count, pred, .. } => [Some(*id), *count, *pred].into_iter().flatten().for_each(f),
        Term::Call { target, .. } => target.iter().copied().for_each(f),
        Term::Jump(_) | Term::Ret | Term::Exit | Term::Trap(_) | Term::Yield { .. } => {}
    }
}
