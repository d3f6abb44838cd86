//! Copies, constants and equal values, in one walk.
//!
//! The walk goes in block order, so the definition of a value is met before its uses. Each instruction gets the final names of its sources,
//! is folded, and is then looked for among the instructions met so far: an equal one whose block dominates this one has the value.
//! Addresses lose their constant part to the offset of the access. Constants and values that a register with several definitions
//! holds are known to the end of the block.

use handloom_ir::simt::*;
use handloom_ir::types::{Order, StateSpace, Ty, Varies};

use super::fold::{Definition, Folded, canonical, fold};
use super::values::Values;
use crate::graph::{Dominators, Edges};
use handloom_diag::hash::FastMap;
use smallvec::smallvec;

/// Simplifies an ordered function. Control flow stays, but for branches on constants and on negated predicates.
pub fn simplify(f: &mut Function) {
    let preds = Edges::into_blocks(f);
    let doms = Dominators::of(f, &preds);
    let values = Values::of(f, &doms);
    let n = f.regs.len();
    let mut blocks = std::mem::take(&mut f.blocks);
    let mut walk = Walk {
        types: &f.regs,
        doms: &doms,
        values: &values,
        names: (0..n as u32).map(|i| Val::Reg(Reg(i))).collect(),
        defs: vec![None; n],
        held: vec![None; n],
        made: FastMap::default(),
        block: 0,
    };
    for (b, block) in blocks.iter_mut().enumerate() {
        walk.block = b;
        block.insts.retain_mut(|i| walk.instruction(i));
        walk.end(&mut block.term);
    }
    f.blocks = blocks;
}

/// Sources of an op in a table: at most four.
type Sources = [Option<Val>; 4];

/// A definition: the op, and its sources where they are constants and values.
#[derive(Clone, Copy)]
struct Def {
    op: Pure,
    src: [Val; 4],
    n: usize,
}

struct Walk<'a> {
    types: &'a [Ty],
    doms: &'a Dominators,
    values: &'a Values,
    /// What each value is called in the end.
    names: Vec<Val>,
    defs: Vec<Option<Def>>,
    /// What a register with several definitions holds at this point of the block of that number.
    held: Vec<Option<(usize, Val)>>,
    /// Instructions met, with their first result.
    made: FastMap<(Op, Sources), Reg>,
    block: usize,
}

impl Walk<'_> {
    /// Works on one instruction; false if it is to go.
    fn instruction(&mut self, i: &mut Inst) -> bool {
        i.src.iter_mut().for_each(|s| *s = self.current(*s));
        // Statements that no lane acts at are counted too.
        if let Some(Val::Imm(guard, _)) = i.guard().filter(|_| i.op != Op::Count(Count::Mark)) {
            if guard == 0 {
                return false;
            }
            i.src.pop();
            i.guarded = false;
        }
        if let Op::Pure(op) = i.op
            && i.dst.len() == 1
        {
            return self.pure(i, op);
        }
        if let Op::Cvta { space, .. } = i.op
            && !matches!(space, StateSpace::Shared | StateSpace::SharedCluster)
            && self.ty(i.src[0]) == Ty::B64
        {
            // Only shared memory has addresses of its own.
            return self.becomes(i, i.src[0]);
        }
        self.move_offset(i);
        if is_repeatable(i)
            && let Some(key) = self.key(i)
        {
            if let Some(found) = self.find(&key, i.dst[0]) {
                return self.becomes(i, Val::Reg(found));
            }
            self.remember(key, i.dst[0]);
        }
        self.forget(i);
        true
    }

    fn pure(&mut self, i: &mut Inst, mut op: Pure) -> bool {
        loop {
            canonical(&mut op, &mut i.src);
            match fold(op, &i.src, |v| self.definition(v)) {
                None => break,
                Some(Folded::Value(v)) => return self.becomes(i, v),
                Some(Folded::Op(simpler, src)) => {
                    op = simpler;
                    i.src = src;
                }
            }
        }
        i.op = Op::Pure(op);
        let dst = i.dst[0];
        if let Some(key) = self.key(i) {
            if let Some(found) = self.find(&key, i.dst[0]) {
                return self.becomes(i, Val::Reg(found));
            }
            if self.values.is_value(dst) {
                let mut src = [Val::Imm(0, Ty::P); 4];
                src[..i.src.len()].copy_from_slice(&i.src);
                self.defs[dst.idx()] = Some(Def { op, src, n: i.src.len() });
            }
            self.remember(key, dst);
        }
        self.forget(i);
        true
    }

    /// The result of an instruction is a value that is known.
    fn becomes(&mut self, i: &mut Inst, v: Val) -> bool {
        let dst = i.dst[0];
        let fixed = self.values.is_fixed(v);
        if fixed && self.values.is_value(dst) {
            self.names[dst.idx()] = v;
            return false;
        }
        if v == Val::Reg(dst) {
            return false;
        }
        i.op = Op::Pure(Pure::Mov(self.types[dst.idx()]));
        i.src = smallvec![v];
        i.guarded = false;
        if !self.values.is_value(dst) {
            self.held[dst.idx()] = fixed.then_some((self.block, v));
        }
        true
    }

    fn current(&self, v: Val) -> Val {
        let Val::Reg(r) = v else { return v };
        match self.held[r.idx()] {
            Some((b, held)) if b == self.block => held,
            _ => self.names[r.idx()],
        }
    }

    fn ty(&self, v: Val) -> Ty {
        match v {
            Val::Reg(r) => self.types[r.idx()],
            Val::Imm(_, ty) => ty,
        }
    }

    fn forget(&mut self, i: &Inst) {
        i.dst.iter().for_each(|d| self.held[d.idx()] = None);
    }

    fn definition(&self, v: Val) -> Option<Definition<'_>> {
        let Val::Reg(r) = v else { return None };
        self.defs[r.idx()].as_ref().map(|d| (d.op, &d.src[..d.n]))
    }

    /// What makes two instructions equal; none if a source may change between them.
    fn key(&self, i: &Inst) -> Option<(Op, Sources)> {
        if i.src.len() > 4 || !i.src.iter().all(|s| self.values.is_fixed(*s)) {
            return None;
        }
        let mut src = [None; 4];
        src.iter_mut().zip(&i.src).for_each(|(k, s)| *k = Some(*s));
        Some((i.op, src))
    }

    fn find(&self, key: &(Op, Sources), dst: Reg) -> Option<Reg> {
        let found = *self.made.get(key).filter(|r| self.types[r.idx()] == self.types[dst.idx()])?;
        self.values.block(found).filter(|&b| self.doms.dominates(b, self.block)).map(|_| found)
    }

    fn remember(&mut self, key: (Op, Sources), dst: Reg) {
        if self.values.is_value(dst) {
            self.made.insert(key, dst);
        }
    }

    /// `[x + c] + offset` becomes `[x] + (offset + c)`. Only for addresses of 64 bits: a shared offset of 32 bits may wrap.
    fn move_offset(&self, i: &mut Inst) {
        let (Op::Load { offset, .. }
        | Op::Store { offset, .. }
        | Op::Atom { offset, .. }
        | Op::Red { offset, .. }
        | Op::Count(Count::Access { touch: Touch { offset, .. }, .. })) = &mut i.op
        else {
            return;
        };
        while let Some((Pure::Add(Ty::B64), &[base, Val::Imm(c, _)])) = self.definition(i.src[0]) {
            let Some(sum) = offset.checked_add(c.cast_signed()) else { return };
            *offset = sum;
            i.src[0] = base;
        }
    }

    fn end(&mut self, term: &mut Term) {
        term.map_sources(|v| self.current(v));
        if let Term::Branch { cond, then, otherwise } = term {
            while let Some((Pure::Not(_), &[p])) = self.definition(*cond) {
                *cond = p;
                std::mem::swap(then, otherwise);
            }
        }
    }
}

/// Whether an instruction has the same results each time, wherever a lane executes it.
pub(super) fn is_repeatable(i: &Inst) -> bool {
    if let Op::Load { access, .. } = i.op {
        return !i.guarded && access.count == 1 && is_read_only(&access);
    }
    if let Op::Sreg(s) = i.op {
        return s.varies() != Varies::InTime;
    }
    i.op.is_value() && i.dst.len() == 1
}

/// Whether nobody can write what a load reads while the launch runs.
pub(super) fn is_read_only(access: &Access) -> bool {
    matches!(access.space, StateSpace::Const | StateSpace::ParamEntry) && access.order == Order::Weak
}
