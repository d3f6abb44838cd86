//! Functions that count what they do, for compiled code of counted launches.
//!
//! Before the passes, each access gets an op in front of it that counts it, and each [`Op::Mark`] becomes one that passes keep. So what is counted does not depend on
//! what they merge and remove. Behind them the marks of a block become one counter of the block, since all lanes that begin a block come to its end.

use std::collections::HashMap;

use handloom_ir::simt::*;
use handloom_ir::types::StateSpace;
use smallvec::smallvec;

/// What a load, store or atomic touches.
fn touch_of(op: Op) -> Option<Touch> {
    let plain = |does, access: Access, offset: i64| {
        let element = u32::from(access.bits / 8);
        let wanted = access.elements & u8::MAX >> (8 - access.count.clamp(1, 8));
        if wanted == 0 {
            return None;
        }
        let (first, end) = (wanted.trailing_zeros(), 8 - wanted.leading_zeros());
        let offset = offset.wrapping_add(i64::from(first * element));
        Some(Touch { space: access.space, does, bytes: (end - first) * element, offset })
    };
    match op {
        Op::Load { access, offset } => plain(Does::Load, access, offset),
        Op::Store { access, offset } => plain(Does::Store, access, offset),
        Op::Atom { access, offset } | Op::Red { access, offset } => {
            let bytes = access.ty.bytes() * u32::from(access.count);
            Some(Touch { space: access.space, does: Does::Atomic, bytes, offset })
        }
        _ => None,
    }
}

/// Puts an op in front of each access that counts it, and makes marks last.
pub(crate) fn insert(f: &mut Function, level: Counting) {
    for block in &mut f.blocks {
        let old = std::mem::take(&mut block.insts);
        for mut inst in old {
            if inst.op == Op::Mark {
                inst.op = Op::Count(Count::Mark);
            }
            if level == Counting::All
                && let (Some(touch), Some(address)) = (touch_of(inst.op), inst.src.first())
            {
                let src = [*address].into_iter().chain(inst.guard()).collect();
                let op = Op::Count(Count::Access { at: 0, site: 0, touch });
                block.insts.push(Inst { op, dst: smallvec![], src, guarded: inst.guarded, span: inst.span });
            }
            block.insts.push(inst);
        }
    }
}

/// Makes counters of what is to be counted in a function.
pub(crate) fn number(f: &mut Function, counts: &mut Counts) {
    let defs = Definitions::of(f);
    let insts = f.blocks.iter().map(|b| defs.count(b, counts)).collect::<Vec<_>>();
    for (block, insts) in f.blocks.iter_mut().zip(insts) {
        block.insts = insts;
    }
}

/// The ops of registers that are written in one place.
struct Definitions {
    ops: Vec<Option<(Op, Option<Val>)>>,
    only: Vec<bool>,
}

impl Definitions {
    fn of(f: &Function) -> Definitions {
        let (mut ops, mut n) = (vec![None; f.regs.len()], vec![0_u32; f.regs.len()]);
        for block in &f.blocks {
            for inst in &block.insts {
                for d in &inst.dst {
                    ops[d.idx()] = Some((inst.op, inst.src.first().copied()));
                    n[d.idx()] += 1;
                }
            }
            block.term.result().iter().for_each(|d| n[d.idx()] += 2);
        }
        Definitions { ops, only: n.into_iter().map(|n| n == 1).collect() }
    }

    /// What a register that is written in one place is made by.
    fn op(&self, r: Reg) -> Option<(Op, Option<Val>)> {
        self.ops[r.idx()].filter(|_| self.only[r.idx()])
    }

    /// Whether a guard is the condition of a branch; `false` if it is the opposite of it.
    fn asks(&self, cond: Val, guard: Reg) -> Option<bool> {
        let Val::Reg(c) = cond else { return None };
        if !self.only[c.idx()] || !self.only[guard.idx()] {
            return None;
        }
        let is_not = |a: Reg, b: Reg| matches!(self.op(a), Some((Op::Pure(Pure::Not(_)), Some(v))) if v == Val::Reg(b));
        match c == guard {
            true => Some(true),
            false => (is_not(guard, c) || is_not(c, guard)).then_some(false),
        }
    }

    fn is_param(&self, address: Val) -> bool {
        matches!(address, Val::Reg(r) if matches!(self.op(r), Some((Op::ParamAddr { .. }, _))))
    }

    /// The instructions of a block with its counters.
    fn count(&self, block: &Block, counts: &mut Counts) -> Vec<Inst> {
        let mut of = CountedBlock { at: counts.words, ..CountedBlock::default() };
        let mut words = counts.words + Counts::BLOCK;
        let mut take = |n: u32| {
            let at = words;
            words += n;
            at
        };
        let mut out: Vec<Inst> = Vec::with_capacity(block.insts.len() + 1);
        let mut first: Vec<Inst> = Vec::new();
        let mut statements = 0;
        // Guards that were counted, until they are written again.
        let mut known: HashMap<Reg, u32> = HashMap::new();
        for inst in &block.insts {
            inst.dst.iter().for_each(|d| _ = known.remove(d));
            let span = inst.span;
            let new = |op, src| Inst { op: Op::Count(op), dst: smallvec![], src, guarded: false, span };
            match inst.op {
                Op::Count(Count::Mark) => {
                    statements += 1;
                    match inst.guard() {
                        None | Some(Val::Imm(1, _)) => of.plain.push(span),
                        Some(Val::Imm(..)) => of.idle.push(span),
                        Some(guard @ Val::Reg(r)) => {
                            let asked = match block.term {
                                Term::Branch { cond, then, otherwise } if then != otherwise => self.asks(cond, r),
                                _ => None,
                            };
                            let at = match (asked.filter(|_| span == block.term_span), known.get(&r)) {
                                (Some(then), _) => {
                                    let at = take(Counts::GUARD);
                                    first.push(new(Count::Branch { at, then }, smallvec![]));
                                    at
                                }
                                (None, Some(at)) => *at,
                                (None, None) => {
                                    let at = take(Counts::GUARD);
                                    out.push(new(Count::Guard { at }, smallvec![guard]));
                                    known.insert(r, at);
                                    at
                                }
                            };
                            of.guarded.push((at, span));
                        }
                    }
                }
                Op::Count(Count::Access { touch, .. }) => {
                    let is_param = touch.space == StateSpace::ParamEntry && self.is_param(inst.src[0]);
                    if is_param && !inst.guarded {
                        of.params.push((touch, span));
                    } else {
                        let (at, site) = (take(2 * Counts::ACCESS), counts.accesses.len() as u32);
                        counts.accesses.push((at, span, touch));
                        out.push(Inst { op: Op::Count(Count::Access { at, site, touch }), ..inst.clone() });
                    }
                }
                _ => out.push(inst.clone()),
            }
        }
        if statements == 0 && of.params.is_empty() {
            counts.words = if out.iter().any(|i| matches!(i.op, Op::Count(_))) { words } else { counts.words };
            return out;
        }
        counts.words = words;
        let op = Op::Count(Count::Block { at: of.at, statements });
        let span = block.insts.first().map_or(block.term_span, |i| i.span);
        first.insert(0, Inst { op, dst: smallvec![], src: smallvec![], guarded: false, span });
        counts.blocks.push(of);
        first.append(&mut out);
        first
    }
}
