//! Copies, constants and equal values, in one walk.
//!
//! The walk goes in block order, so the definition of a value is met before its uses. Each instruction gets the final names of its sources,
//! is folded, and is then looked for among the instructions met so far: an equal one whose block dominates this one has the value.
//! Addresses lose their constant part to the offset of the access. Constants and values that a register with several definitions
//! holds are known to the end of the block.

use std::hash::{Hash, Hasher};

use handloom_ir::simt::*;
use handloom_ir::types::{Order, StateSpace, Ty, Varies};

use super::fold::{Definition, Folded, canonical, fold};
use super::values::Values;
use crate::graph::{Dominators, Edges};
use handloom_diag::hash::{FastHasher, FastMap};
use smallvec::smallvec;

/// Simplifies an ordered function. Control flow stays, but for branches on constants and on negated predicates.
pub fn simplify(f: &mut Function) {
    let preds = Edges::into_blocks(f);
    let doms = Dominators::of(f, &preds);
    let values = Values::of(f, &doms);
    let n = f.regs.len();
    let mut blocks = std::mem::take(&mut f.blocks);
    let n_insts = blocks.iter().map(|b| b.insts.len()).sum();
    let mut walk = Walk {
        types: &f.regs,
        doms: &doms,
        values: &values,
        names: (0..n as u32).map(|i| Val::Reg(Reg(i))).collect(),
        defs: vec![None; n],
        held: vec![None; n],
        made: Vec::with_capacity(n_insts),
        last: FastMap::with_capacity_and_hasher(n_insts, Default::default()),
        block: 0,
    };
    for (b, block) in blocks.iter_mut().enumerate() {
        walk.block = b;
        block.insts.retain_mut(|i| walk.instruction(i));
        walk.end(&mut block.term);
    }
    f.blocks = blocks;
}

/// A definition: the op, its sources, which are constants and values, and its first result, a value.
struct Made {
    op: Op,
    src: [Val; 4],
    n: usize,
    dst: Reg,
    /// The one of the same hash before it.
    before: Option<usize>,
}

struct Walk<'a> {
    types: &'a [Ty],
    doms: &'a Dominators,
    values: &'a Values,
    /// What each value is called in the end.
    names: Vec<Val>,
    /// By value, its definition.
    defs: Vec<Option<usize>>,
    /// What a register with several definitions holds at this point of the block of that number.
    held: Vec<Option<(usize, Val)>>,
    /// Definitions of values that were met, in order.
    made: Vec<Made>,
    /// By hash of op and sources: the last of them.
    last: FastMap<u64, usize>,
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
            && let Some(hash) = self.hash(i)
        {
            if let Some(found) = self.find(hash, i) {
                return self.becomes(i, Val::Reg(found));
            }
            self.remember(hash, i);
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
        if let Some(hash) = self.hash(i) {
            if let Some(found) = self.find(hash, i) {
                return self.becomes(i, Val::Reg(found));
            }
            self.remember(hash, i);
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
        let made = &self.made[self.defs[r.idx()]?];
        let Op::Pure(op) = made.op else { return None };
        Some((op, &made.src[..made.n]))
    }

    /// A hash of what makes two instructions equal; none if a source may change between them.
    fn hash(&self, i: &Inst) -> Option<u64> {
        if i.src.len() > 4 || !i.src.iter().all(|s| self.values.is_fixed(*s)) {
            return None;
        }
        let mut hasher = FastHasher::default();
        i.op.hash(&mut hasher);
        i.src.hash(&mut hasher);
        Some(hasher.finish())
    }

    /// What the last instruction that is equal to one of such a hash made, if it is there.
    fn find(&self, hash: u64, i: &Inst) -> Option<Reg> {
        let mut at = self.last.get(&hash).copied();
        while let Some(made) = at.map(|k| &self.made[k]) {
            if made.op == i.op && made.src[..made.n] == i.src[..] {
                let found = Some(made.dst).filter(|r| self.types[r.idx()] == self.types[i.dst[0].idx()])?;
                return self.values.block(found).filter(|&b| self.doms.dominates(b, self.block)).map(|_| found);
            }
            at = made.before;
        }
        None
    }

    fn remember(&mut self, hash: u64, i: &Inst) {
        let dst = i.dst[0];
        if self.values.is_value(dst) {
            let mut src = [Val::Imm(0, Ty::P); 4];
            src[..i.src.len()].copy_from_slice(&i.src);
            self.defs[dst.idx()] = Some(self.made.len());
            let before = self.last.insert(hash, self.made.len());
            self.made.push(Made { op: i.op, src, n: i.src.len(), dst, before });
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
