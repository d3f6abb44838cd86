//! The variables that addresses are made from, as far as the text of a function says: what the interpreter follows while it runs (its `traces`), by the
//! same rules.
//!
//! Where ways that meet disagree, nothing is known, and who must know asks the interpreter.

use handloom_ir::simt::{Block, Function, Inst, Op, Pure, SlotId, SymId, Val};

/// A variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variable {
    /// Of the module.
    Symbol(SymId),
    /// In the frame of the function.
    Slot(SlotId),
}

/// What a register holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trace {
    /// No address of a variable.
    None,
    /// The address of a variable, or of a place at some distance.
    Of(Variable),
    /// Something that was computed from such addresses and is told of no more.
    Mixed,
    /// Different things at different times.
    Unknown,
}

impl Trace {
    fn join(self, other: Trace) -> Trace {
        if self == other { self } else { Trace::Unknown }
    }
}

/// By block and instruction: what the first source holds, which is the address of an access.
pub fn traces_of_addresses(f: &Function) -> Vec<Vec<Trace>> {
    let starts = at_starts(f);
    let of_block = |(block, start): (&Block, &Option<Vec<Trace>>)| {
        let mut now = start.clone().unwrap_or_else(|| vec![Trace::None; f.regs.len()]);
        let address = |inst: &Inst| {
            let held = inst.src.first().map_or(Trace::None, |v| of_source(&now, *v));
            step(&mut now, inst);
            held
        };
        block.insts.iter().map(address).collect()
    };
    f.blocks.iter().zip(&starts).map(of_block).collect()
}

/// What each register holds where a block begins; `None` for blocks that nobody comes to.
fn at_starts(f: &Function) -> Vec<Option<Vec<Trace>>> {
    let mut starts = vec![None; f.blocks.len()];
    // What nobody writes is zero.
    let Some(first) = starts.first_mut() else { return starts };
    *first = Some(vec![Trace::None; f.regs.len()]);
    let mut work = vec![0];
    while let Some(b) = work.pop() {
        let Some(mut now) = starts[b].clone() else { continue };
        let block = &f.blocks[b];
        block.insts.iter().for_each(|inst| step(&mut now, inst));
        if let Some(r) = block.term.result() {
            now[r.idx()] = Trace::None;
        }
        for next in block.term.successors() {
            match &mut starts[next.idx()] {
                there @ None => {
                    *there = Some(now.clone());
                    work.push(next.idx());
                }
                Some(there) => {
                    let mut changed = false;
                    for (old, new) in there.iter_mut().zip(&now) {
                        let joined = old.join(*new);
                        changed |= joined != *old;
                        *old = joined;
                    }
                    if changed {
                        work.push(next.idx());
                    }
                }
            }
        }
    }
    starts
}

/// What registers hold after an instruction.
fn step(now: &mut [Trace], inst: &Inst) {
    let Some((first, rest)) = inst.dst.split_first() else { return };
    // A guarded op leaves its results in some lanes; only accesses have guards, and what they read is no address of a variable.
    let new = of_result(now, inst);
    now[first.idx()] = if inst.guarded { now[first.idx()].join(new) } else { new };
    rest.iter().for_each(|r| now[r.idx()] = if inst.guarded { now[r.idx()].join(Trace::None) } else { Trace::None });
}

/// What a source holds.
fn of_source(all: &[Trace], v: Val) -> Trace {
    match v {
        Val::Reg(r) => all[r.idx()],
        Val::Imm(..) => Trace::None,
    }
}

/// What the first result of an op holds.
fn of_result(all: &[Trace], inst: &Inst) -> Trace {
    let op = match inst.op {
        Op::SymAddr(sym) | Op::SharedAddr(sym) => return Trace::Of(Variable::Symbol(sym)),
        Op::SlotAddr(slot) => return Trace::Of(Variable::Slot(slot)),
        Op::Cvta { .. } | Op::IsSpace(_) => None,
        Op::Pure(op) => Some(op),
        _ => return Trace::None,
    };
    let of: Vec<Trace> = inst.src.iter().map(|v| of_source(all, *v)).collect();
    if let Some(Pure::Select(_)) = op {
        return of[1].join(of[2]);
    }
    if of.contains(&Trace::Unknown) {
        return Trace::Unknown;
    }
    let mut some = of.iter().filter(|t| **t != Trace::None);
    let (Some(one), None) = (some.next(), some.next()) else {
        return if of.iter().all(|t| *t == Trace::None) { Trace::None } else { Trace::Mixed };
    };
    match op {
        None if matches!(inst.op, Op::Cvta { .. }) => *one,
        Some(Pure::And(ty)) => match inst.src[usize::from(of[0] != Trace::None)] {
            Val::Imm(mask, _) if !mask & ty.mask() < 4096 => *one,
            Val::Imm(..) => Trace::Mixed,
            Val::Reg(_) => Trace::Unknown,
        },
        Some(Pure::Sub(_)) if of[0] == *one => *one,
        Some(Pure::Mov(_) | Pure::Ext { .. } | Pure::Add(_) | Pure::Or(_)) => *one,
        _ => Trace::Mixed,
    }
}
