//! Atomics of full copies by all lanes: one after the other without a loop in shared memory, and folded to one operation where nobody reads the
//! old values of a single location.
//!
//! Folding is sound: that all lanes of a warp come one directly after the other is one of the orders that the model allows. All addresses are tested
//! before the first lane has an effect.

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::{AtomOp, StateSpace, Ty};
use handloom_plan::analysis::shape::{LANES, PACKS};

use super::rep::{Rep, width};
use super::{Emit, FULL};

impl Emit<'_, '_> {
    /// An atomic that is done inline and has no guard; `false` where it is better done in a loop over lanes.
    pub(crate) fn atomic_of_all(&mut self, inst: &Inst, a: AtomAccess, offset: i64) -> bool {
        // Functions that wait note what each lane changed.
        if inst.guarded || self.plan.tells_dirty {
            return false;
        }
        let addr = self.rep(inst.src[0]);
        let one_place = matches!(&addr, Rep::Affine(s, _) if s.is_uniform());
        let folds = one_place && inst.dst.is_empty() && fold_of(a.op).is_some();
        if !folds && a.space != StateSpace::Shared {
            return false;
        }
        let mem = self.mem_op(inst);
        let aty = self.ty(mem.class.address);
        let rows = self.rows(&addr, aty);
        let tested = if folds { &rows[..1] } else { &rows[..] };
        let bad = match (a.space, aty) {
            (StateSpace::Shared, Ty::B32) => self.refuse_shared(&mem, tested),
            (StateSpace::Shared, _) => None,
            (_, _) => Some(self.refuse_rows(&mem, tested)),
        };
        let Some(bad) = bad else { return false };
        let data: Vec<Rep> = inst.operands()[1..].iter().map(|v| self.clean(*v)).collect();
        let shared = mem.is_shared().then(|| self.shared_base());
        let (cold, go, join) = (self.cold_block(), self.b.create_block(), self.b.create_block());
        // What both sides need is made in front of the branch.
        let ways: Vec<Vec<Value>> = data.iter().map(|r| self.operand(r, mem.ty)).collect();
        let held: Vec<Rep> = data.iter().zip(&ways).map(|(r, v)| held(r, v)).collect();
        let on = self.on_line();
        self.b.ins().brif(bad, cold, &[], go, &[]);
        self.b.switch_to_block(cold);
        let all = self.i32(FULL);
        let out = self.access_at_site(mem.site, &mem, inst, (&Rep::Rows(rows.clone()), &held), all, &[]);
        let args: Vec<clif::BlockArg> = self.flatten(&out, mem.ty).into_iter().map(Into::into).collect();
        self.b.ins().jump(join, &args);
        self.b.switch_to_block(go);
        let mut results = Vec::new();
        if folds {
            let x = self.fold(a, &ways[0], mem.ty);
            let host = self.lane_address(&rows, 0, 0, aty, shared);
            let host = self.moved(host, offset);
            self.atomic_word(a, host, x, None, mem.ty);
        } else {
            for (p, row) in rows.iter().enumerate() {
                let mut old = Vec::with_capacity(LANES);
                let offsets = self.offsets(*row);
                for (l, at) in offsets.into_iter().enumerate() {
                    let at = self.moved(at, offset);
                    let host = shared.map_or(at, |base| self.b.ins().iadd(base, at));
                    let x = self.operand_of(&ways[0], p, l, mem.ty);
                    let y = ways.get(1).map(|w| self.operand_of(w, p, l, mem.ty));
                    old.push(self.atomic_word(a, host, x, y, mem.ty));
                }
                if !inst.dst.is_empty() {
                    results.extend(self.gather(&old, mem.ty));
                }
            }
        }
        let args: Vec<clif::BlockArg> = results.iter().map(|v| (*v).into()).collect();
        for v in &results {
            let t = self.b.func.dfg.value_type(*v);
            self.b.append_block_param(join, t);
        }
        self.b.ins().jump(join, &args);
        self.rejoin(join, on);
        if let [d] = inst.dst[..] {
            let rows = self.b.block_params(join).to_vec();
            self.set(d, Rep::Rows(rows));
        }
        true
    }

    /// Four 32-bit offsets as 64-bit scalars: two at a time leave the vector.
    fn offsets(&mut self, row: Value) -> [Value; LANES] {
        let pairs = self.bitcast(row, types::I64X2);
        let mut all = [row; LANES];
        for (h, two) in all.chunks_mut(2).enumerate() {
            let pair = self.b.ins().extractlane(pairs, h as u8);
            let low = self.b.ins().ireduce(types::I32, pair);
            two[0] = self.b.ins().uextend(types::I64, low);
            two[1] = self.b.ins().ushr_imm_s(pair, 32);
        }
        all
    }

    /// A scalar for all lanes, or rows.
    fn operand(&mut self, rep: &Rep, ty: Ty) -> Vec<Value> {
        match rep {
            Rep::Affine(s, base) if s.is_uniform() => base[..1].to_vec(),
            Rep::Affine(..) | Rep::Rows(_) | Rep::Logic(_) => self.rows(rep, ty),
        }
    }

    fn operand_of(&mut self, operand: &[Value], p: usize, l: usize, ty: Ty) -> Value {
        if let [x] = operand {
            return *x;
        }
        if width(ty) == 2 {
            self.b.ins().extractlane(operand[2 * p + l / 2], (l % 2) as u8)
        } else {
            self.b.ins().extractlane(operand[p], l as u8)
        }
    }

    /// One value that does to a location what those of all lanes do.
    fn fold(&mut self, a: AtomAccess, operand: &[Value], ty: Ty) -> Value {
        let Some(fold) = fold_of(a.op) else { return operand[0] };
        if let [x] = *operand {
            return match fold {
                // 32 times the same.
                Fold::Sum => self.b.ins().ishl_imm_s(x, 5),
                Fold::Xor => self.b.ins().bxor(x, x),
                Fold::And | Fold::Or | Fold::Least | Fold::Most => x,
            };
        }
        let signed = a.ty.is_signed();
        let wide_order = ty == Ty::B64 && matches!(fold, Fold::Least | Fold::Most);
        let mut rest: Vec<Value> = if wide_order {
            // The host has no such op on vectors.
            (0..PACKS * LANES).map(|i| self.operand_of(operand, i / LANES, i % LANES, ty)).collect()
        } else {
            let mut all = operand[0];
            for v in &operand[1..] {
                all = self.combine(fold, signed, all, *v);
            }
            (0..LANES / width(ty)).map(|l| self.b.ins().extractlane(all, l as u8)).collect()
        };
        while rest.len() > 1 {
            rest =
                rest.chunks(2).map(|c| if let [x, y] = *c { self.combine(fold, signed, x, y) } else { c[0] }).collect();
        }
        rest[0]
    }

    fn combine(&mut self, fold: Fold, signed: bool, x: Value, y: Value) -> Value {
        match fold {
            Fold::Sum => self.b.ins().iadd(x, y),
            Fold::And => self.b.ins().band(x, y),
            Fold::Or => self.b.ins().bor(x, y),
            Fold::Xor => self.b.ins().bxor(x, y),
            Fold::Least if signed => self.b.ins().smin(x, y),
            Fold::Least => self.b.ins().umin(x, y),
            Fold::Most if signed => self.b.ins().smax(x, y),
            Fold::Most => self.b.ins().umax(x, y),
        }
    }
}

/// How the values of many lanes become one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fold {
    Sum,
    And,
    Or,
    Xor,
    Least,
    Most,
}

fn fold_of(op: AtomOp) -> Option<Fold> {
    match op {
        AtomOp::Add => Some(Fold::Sum),
        AtomOp::And => Some(Fold::And),
        AtomOp::Or => Some(Fold::Or),
        AtomOp::Xor => Some(Fold::Xor),
        AtomOp::Min => Some(Fold::Least),
        AtomOp::Max => Some(Fold::Most),
        AtomOp::Exch | AtomOp::Cas | AtomOp::Inc | AtomOp::Dec | AtomOp::Step => None,
    }
}

/// An operand as the routine takes it, of values that are made already.
fn held(rep: &Rep, values: &[Value]) -> Rep {
    match rep {
        Rep::Affine(s, base) if s.is_uniform() => Rep::Affine(*s, base.clone()),
        Rep::Affine(..) | Rep::Rows(_) | Rep::Logic(_) => Rep::Rows(values.to_vec()),
    }
}
