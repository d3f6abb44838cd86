//! Parameters of an entry that are worth to be constants: those that count the turns of loops around barriers.

use std::collections::BTreeSet;

use handloom_ir::simt::*;
use handloom_ir::types::{Order, StateSpace, Ty};
use smallvec::smallvec;

use crate::graph::{Dominators, Edges, Loop, Loops};
use crate::passes::values::definitions;

/// Instructions from which the turns of a loop are computed, at most.
const MOST_ORIGINS: usize = 64;

/// Places of the parameters, at most.
const MOST_PLACES: usize = 4;

/// The parameters of an ordered entry on which it depends, and on nothing else that is not known, how many turns its loops around barriers take; none where there are many.
pub fn that_count_turns(f: &Function) -> Vec<ParamPlace> {
    let has_barrier = |b: &usize| matches!(f.blocks[*b].term, Term::Barrier { .. });
    if !f.is_entry || !(0..f.blocks.len()).any(|b| has_barrier(&b)) || f.led_back_to().next().is_none() {
        return Vec::new();
    }
    let preds = Edges::into_blocks(f);
    let doms = Dominators::of(f, &preds);
    let reads = Reads { f, writers: definitions(f) };
    let loops = Loops::of(f, &preds, &doms).loops;
    let counted = loops.iter().filter(|l| l.blocks.iter().any(has_barrier)).filter_map(|l| reads.of_turns(l));
    let places: BTreeSet<ParamPlace> = counted.flatten().collect();
    if places.len() > MOST_PLACES { Vec::new() } else { places.into_iter().collect() }
}

/// Makes constants of what is known of the parameters of an entry.
pub(crate) fn fix(f: &mut Function, known: &[ParamValue]) {
    if known.is_empty() {
        return;
    }
    let reads = Reads { f, writers: definitions(f) };
    let mut constants = Vec::new();
    for (b, block) in f.blocks.iter().enumerate() {
        for (i, inst) in block.insts.iter().enumerate() {
            let place = reads.place(inst);
            constants.extend(known.iter().find(|k| Some(k.place) == place).map(|k| (b, i, k.value)));
        }
    }
    for (b, i, value) in constants {
        become_constant(&mut f.blocks[b].insts[i], &f.regs, value);
    }
}

/// Makes an instruction of one result write a constant, cut to the width of that.
pub(crate) fn become_constant(i: &mut Inst, regs: &[Ty], value: u64) {
    let ty = regs[i.dst[0].idx()];
    (i.op, i.src) = (Op::Pure(Pure::Mov(ty)), smallvec![Val::Imm(value & ty.mask(), ty)]);
}

struct Reads<'f> {
    f: &'f Function,
    /// By register: who writes it.
    writers: Vec<Vec<(usize, usize)>>,
}

impl Reads<'_> {
    /// What an instruction reads of the parameters, if it is a load of the whole of a register from a place that is known.
    fn place(&self, inst: &Inst) -> Option<ParamPlace> {
        let Op::Load { access, offset } = inst.op else { return None };
        let is_plain = access.space == StateSpace::ParamEntry && access.order == Order::Weak && access.count == 1;
        let ([dst], [Val::Reg(address), ..]) = (&inst.dst[..], &inst.src[..]) else { return None };
        let is_whole = matches!(access.bits, 32 | 64) && self.f.regs[dst.idx()].bits() == u32::from(access.bits);
        if !is_plain || !is_whole || inst.guarded {
            return None;
        }
        let [(b, i)] = self.writers[address.idx()][..] else { return None };
        match self.f.blocks[b].insts[i].op {
            Op::ParamAddr { offset: base } => {
                let offset = u32::try_from(i64::from(base) + offset).ok()?;
                Some(ParamPlace { offset, bits: access.bits })
            }
            _ => None,
        }
    }

    /// The parameters that it is computed from whether a loop goes on; `None` if something else is read for that.
    fn of_turns(&self, l: &Loop) -> Option<BTreeSet<ParamPlace>> {
        let mut places = BTreeSet::new();
        let (mut seen, mut work) = (BTreeSet::new(), Vec::new());
        for b in &l.blocks {
            let term = &self.f.blocks[*b].term;
            if let Term::Branch { cond, .. } = term
                && term.successors().iter().any(|s| !l.contains(s.idx()))
            {
                work.push(*cond);
            }
        }
        while let Some(v) = work.pop() {
            let Val::Reg(r) = v else { continue };
            if !seen.insert(r) {
                continue;
            }
            let writers = &self.writers[r.idx()];
            if writers.is_empty() || seen.len() > MOST_ORIGINS {
                return None;
            }
            for (b, i) in writers {
                let inst = &self.f.blocks[*b].insts[*i];
                match (self.place(inst), inst.op) {
                    (Some(place), _) => _ = places.insert(place),
                    (None, Op::Pure(_)) => work.extend(inst.src.iter().copied()),
                    (None, _) => return None,
                }
            }
        }
        Some(places)
    }
}
