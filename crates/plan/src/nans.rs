//! Which registers may hold a NaN that is not canonical.

use handloom_diag::hash::FastMap;
use handloom_ir::simt::*;
use handloom_ir::types::Ty;
use smallvec::SmallVec;

use crate::analysis::classes::{Class, Facts};
use crate::ways::{Way, way};

/// Whether the result of an op is one of its sources as it is.
pub(crate) fn hands_on(op: Pure) -> bool {
    matches!(op, Pure::Mov(Ty::B32 | Ty::B64) | Pure::Select(Ty::B32 | Ty::B64))
}

/// Registers that hold float results only, whose NaNs become canonical where their bits are used.
pub fn loose(f: &Function, facts: &Facts) -> Vec<bool> {
    let mut loose = vec![true; f.regs.len()];
    let mut seen = vec![false; f.regs.len()];
    // By register, those that may be handed on what it holds.
    let mut heirs: FastMap<usize, SmallVec<[usize; 2]>> = FastMap::default();
    for (b, block) in f.blocks.iter().enumerate() {
        for inst in &block.insts {
            let op = if let Op::Pure(p) = inst.op { Some((p, p.facts())) } else { None };
            let by_op = op.is_some_and(|(_, facts)| facts.is_loose);
            // A number that is no NaN stays what it is, so where others are results of floats it makes no difference.
            let is_number = matches!((inst.op, inst.src.as_slice()),
                (Op::Pure(Pure::Mov(ty)), [Val::Imm(x, _)]) if !is_nan(*x, ty));
            let hands_on = op.is_some_and(|(p, _)| hands_on(p)) && !inst.src.iter().any(is_nan_number);
            for d in &inst.dst {
                seen[d.idx()] |= by_op;
                let may_get = (is_number || hands_on) && facts.class[d.idx()] == Class::Varying;
                loose[d.idx()] &= by_op || may_get;
                for v in inst.src.iter().filter(|_| hands_on && may_get) {
                    if let Val::Reg(r) = v {
                        heirs.entry(r.idx()).or_default().push(d.idx());
                    }
                }
            }
            let is_loose = |v: &Val| matches!(v, Val::Reg(r) if loose[r.idx()]);
            let takes_loose = op.is_some_and(|(_, facts)| facts.takes_loose && facts.is_loose);
            if !facts.masked.has(b) || takes_loose || !inst.src.iter().any(is_loose) {
                continue;
            }
            // Masked copies hand rows to routines as they are.
            let consts: SmallVec<[Option<u64>; 4]> = inst.src.iter().map(|_| None).collect();
            let never: SmallVec<[bool; 4]> = inst.src.iter().map(|_| false).collect();
            if !op.is_some_and(|(p, _)| matches!(way(p, &consts, &never), Way::Vector(_))) {
                for v in &inst.src {
                    if let Val::Reg(r) = v {
                        loose[r.idx()] = false;
                    }
                }
            }
        }
        if let Some(d) = block.term.result() {
            loose[d.idx()] = false;
        }
    }
    // Who may get bits of another kind is none of them.
    let is_value = |r: &usize| f.regs[*r] != Ty::P;
    let mut work: Vec<usize> = (0..loose.len()).filter(|r| !loose[*r]).filter(is_value).collect();
    while let Some(r) = work.pop() {
        for d in heirs.get(&r).map_or([].as_slice(), SmallVec::as_slice) {
            if std::mem::replace(&mut loose[*d], false) {
                work.push(*d);
            }
        }
    }
    let mut work: Vec<usize> = (0..loose.len()).filter(|r| loose[*r] && seen[*r]).collect();
    while let Some(r) = work.pop() {
        for d in heirs.get(&r).map_or([].as_slice(), SmallVec::as_slice) {
            if loose[*d] && !std::mem::replace(&mut seen[*d], true) {
                work.push(*d);
            }
        }
    }
    loose.iter_mut().zip(seen).for_each(|(loose, seen)| *loose &= seen);
    if loose.contains(&true) {
        let read = bits_read(f, facts, &loose);
        loose.iter_mut().zip(read).for_each(|(loose, read)| *loose &= read < 2);
    }
    loose
}

/// By register of some: how often its bits are used wherever it is made. What is read so more than once is made canonical once.
fn bits_read(f: &Function, facts: &Facts, of: &[bool]) -> Vec<u32> {
    // By block: the first of those that follow each other without a branch.
    let mut first: Vec<usize> = (0..f.blocks.len()).collect();
    for (b, block) in f.blocks.iter().enumerate() {
        if let Term::Jump(next) = block.term
            && facts.cfg.preds[next.idx()].len() == 1
            && next.idx() > b
        {
            first[next.idx()] = first[b];
        }
    }
    let mut made: Vec<Option<usize>> = vec![None; f.regs.len()];
    let mut read = vec![0; f.regs.len()];
    for (b, block) in f.blocks.iter().enumerate() {
        for inst in &block.insts {
            let here = |r: &usize| of[*r] && made[*r] == Some(first[b]);
            let from = inst.src.iter().filter_map(|v| if let Val::Reg(r) = v { Some(r.idx()) } else { None });
            let mut from_here = from.filter(here).peekable();
            if from_here.peek().is_some() && !matches!(inst.op, Op::Pure(p) if p.facts().takes_loose || hands_on(p)) {
                from_here.for_each(|r| read[r] += 1);
            }
            inst.dst.iter().for_each(|d| made[d.idx()] = Some(first[b]));
        }
    }
    read
}

/// Whether a value is a number that is a NaN.
fn is_nan_number(v: &Val) -> bool {
    matches!(v, Val::Imm(x, ty) if is_nan(*x, *ty))
}

/// Whether bits of a type are a NaN of a float of its width.
fn is_nan(x: u64, ty: Ty) -> bool {
    match ty {
        Ty::P => false,
        Ty::B16 => true,
        Ty::B32 => f32::from_bits(x as u32).is_nan(),
        Ty::B64 => f64::from_bits(x).is_nan(),
    }
}
