//! Masked copies: some lanes of a warp execute a block.
//!
//! Values that are the same for all lanes, or affine, are computed once as scalars. The rest is deferred and then done in a loop over the packs
//! that have lanes; results that live on are blended into their rows. Memory ops are loops of their own ([`super::lanes`]) or join that
//! loop; warp-level ops are done by routines on rows.

use std::mem::offset_of;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::abi::*;
use handloom_plan::access::AccessClass;
use handloom_plan::analysis::shape::{PACKS, Shape};
use handloom_plan::deferral::{Deferral, deferral};
use handloom_plan::layout::{Home, WORD_SLOTS};
use handloom_plan::order::AccessOrder;
use handloom_plan::ways::{Way, way};

use super::Emit;
use super::lanes::Lanes;
use super::rep::{Rep, vector_type, width};
use super::sreg;
use super::vector::Source;
use super::whole::constant;

/// A value op that waits for the loop over packs.
struct Deferred {
    inst: usize,
    /// Operands that are scalars; `None`: in a row, or made by an earlier op of the loop.
    scalars: Vec<Option<(Shape, Vec<Value>)>>,
    /// How a value op is done; nothing for other ops, which join the loop.
    way: Option<Way>,
    /// A load: where pack 0 reads.
    from: Option<Value>,
}

impl Deferred {
    /// Whether the routine does it instead of the loop.
    fn by_routine(&self) -> bool {
        matches!(self.way, Some(Way::Routine))
    }
}

/// A scalar operand prepared for the loop.
enum Prepared {
    /// The vectors for every pack.
    Vectors(Vec<Value>),
    /// Words of the packs' first lanes in scratch memory, and the stride.
    Words(u32, i64),
}

/// What one turn of the loop knows.
struct Turn {
    /// Context plus 16 bytes for each pack before this one.
    row32: Value,
    /// Context plus 32 bytes for each pack before this one.
    row64: Value,
    /// Context plus 8 bytes for each pack before this one.
    word: Value,
    /// 16 bytes for each pack before this one.
    offset: Value,
    mask: Value,
    values: Vec<(Reg, Vec<Value>)>,
}

impl Emit<'_, '_> {
    /// The masked copy of block `b` for the lanes of `m`.
    pub(crate) fn emit_masked(&mut self, b: usize, m: Value) {
        self.reps.clear();
        self.written.clear();
        self.cleaned.clear();
        self.in_row.clear();
        self.verified.clear();
        self.end_line();
        self.held.clear();
        self.mask = Some(m);
        let f = self.f;
        let block = &f.blocks[b];
        let mut waiting: Vec<Deferred> = Vec::new();
        let mut synced = false;
        for (i, inst) in block.insts.iter().enumerate() {
            self.set_loc(b, i);
            if self.masked_scalar(b, i, inst, m) {
                continue;
            }
            match deferral(inst.op) {
                Deferral::Waits => {
                    let scalars: Vec<_> = inst.src.iter().map(|v| self.scalar_source(*v)).collect();
                    let way = match inst.op {
                        Op::Pure(op) => {
                            let consts: Vec<Option<u64>> = inst.src.iter().map(|v| constant(*v)).collect();
                            let uniform: Vec<bool> =
                                scalars.iter().map(|s| s.as_ref().is_some_and(|(s, _)| s.is_uniform())).collect();
                            Some(way(op, &consts, &uniform))
                        }
                        _ => None,
                    };
                    waiting.push(Deferred { inst: i, scalars, way, from: None });
                    inst.dst.iter().for_each(|d| self.now_in_row(*d));
                }
                // Neighbouring words are read in the loop, together with what is done to them.
                Deferral::Load
                    if AccessClass::of(inst).is_some_and(|a| {
                        !a.is_guarded
                            && a.order_inline(&self.opt.host) == AccessOrder::Plain
                            && self.scalar_source(a.address).is_some_and(|(s, _)| a.is_by_words(&s))
                    }) =>
                {
                    self.n_scratch_used = 0;
                    let address = (self.lanes_of(inst.src[0]), self.ty(inst.src[0]));
                    let mem = self.mem_op(inst);
                    // What waits may still read the old value of the row that the routine would write.
                    let reads_old = waiting.iter().any(|w| {
                        let other = &block.insts[w.inst];
                        other.src.contains(&Val::Reg(inst.dst[0])) || other.dst.contains(&inst.dst[0])
                    });
                    if reads_old {
                        self.flush_waiting(b, &mut waiting, m, None);
                    }
                    let row = self.row_offset(inst.dst[0]);
                    let from = self.begin_load(inst, &mem, address, row, m);
                    waiting.push(Deferred { inst: i, scalars: vec![], way: None, from: Some(from) });
                    inst.dst.iter().for_each(|d| self.now_in_row(*d));
                }
                Deferral::Load | Deferral::Memory => {
                    self.flush_waiting(b, &mut waiting, m, None);
                    self.masked_memory(inst, m);
                    if matches!(inst.op, Op::Store { .. }) {
                        self.tell_dirty();
                    }
                }
                Deferral::Builtin(which) => {
                    self.flush_waiting(b, &mut waiting, m, None);
                    self.n_scratch_used = 0;
                    let src = self.row_or_scalar(inst.src[0]);
                    let site = self.tables.builtins.len();
                    self.tables.builtins.push((which, src, inst.span));
                    let ok = self.routine(Routine::Builtin, site, m, None, None);
                    let go = self.b.create_block();
                    self.return_unless(ok, go);
                    self.b.switch_to_block(go);
                    self.tell_dirty();
                }
                Deferral::Fence(order, scope) => {
                    self.flush_waiting(b, &mut waiting, m, None);
                    self.fence(order, scope);
                }
                Deferral::Sync => {
                    self.flush_waiting(b, &mut waiting, m, None);
                    self.masked_sync(b, inst, m);
                    synced = true;
                }
                Deferral::Nothing => {}
                Deferral::Scalar => panic!("{:?} is a scalar", inst.op),
            }
        }
        self.set_loc(b, block.insts.len());
        let cond = match (&block.term, self.facts.diverges[b]) {
            (Term::Branch { cond: Val::Reg(r), .. }, true) => Some(*r),
            _ => None,
        };
        let taken = self.flush_waiting(b, &mut waiting, m, cond);
        if !synced {
            self.masked_write_back(b, m);
        }
        self.masked_term(b, m, taken);
        self.mask = None;
    }

    /// The value of a register is in its row from here on.
    fn now_in_row(&mut self, r: Reg) {
        self.reps.remove(&r);
        self.written.retain(|w| *w != r);
        self.in_row.insert(r);
    }

    /// A source as scalars, if it is uniform or affine here.
    pub(crate) fn scalar_source(&mut self, v: Val) -> Option<(Shape, Vec<Value>)> {
        if let Val::Reg(r) = v {
            let known = matches!(self.reps.get(&r), Some(Rep::Affine(..)));
            let by_class =
                matches!(self.plan.layout.homes[r.idx()], Some(Home::Words(_)) | None) && !self.in_row.contains(&r);
            if !known && !by_class {
                return None;
            }
        }
        match self.rep(v) {
            Rep::Affine(s, base) => Some((s, base)),
            Rep::Rows(_) | Rep::Logic(_) => None,
        }
    }

    /// Does an instruction as scalars, if it can.
    fn masked_scalar(&mut self, b: usize, i: usize, inst: &Inst, m: Value) -> bool {
        match inst.op {
            Op::Pure(op) => {
                let mut args = Vec::new();
                for v in &inst.src {
                    let Some((s, base)) = self.scalar_source(*v) else { return false };
                    let loose =
                        matches!(v, Val::Reg(r) if self.plan.may_hold_odd_nan[r.idx()]) && !op.facts().takes_loose;
                    args.push(if loose { self.clean(*v) } else { Rep::Affine(s, base) });
                }
                let tys: Vec<Ty> = inst.src.iter().map(|v| self.ty(*v)).collect();
                let consts: Vec<Option<u64>> = inst.src.iter().map(|v| constant(*v)).collect();
                let may_test = self.facts.may_test(b, i);
                let Some((one, two)) = self.pure_scalar(op, &args, &tys, &consts, may_test) else { return false };
                let d = inst.dst[0];
                let one = if op.facts().is_loose && !self.plan.may_hold_odd_nan[d.idx()] {
                    self.canonical_rep(&one, self.f.regs[d.idx()])
                } else {
                    one
                };
                self.cleaned.remove(&d);
                self.set_scalar(d, one);
                if let (Some(d2), Some(two)) = (inst.dst.get(1), two) {
                    self.set_scalar(*d2, two);
                }
                true
            }
            Op::Sreg(s) => match sreg::source(s, &self.facts.shape) {
                sreg::Source::Scalar | sreg::Source::Shaped(_) => {
                    let rep = self.sreg_rep(s);
                    self.set_scalar(inst.dst[0], rep);
                    true
                }
                sreg::Source::Mask(_) | sreg::Source::Tid(_) => false,
            },
            Op::SymAddr(_) | Op::SharedAddr(_) | Op::ParamAddr { .. } | Op::SlotAddr(_) | Op::ArgAddr { .. } => {
                let rep = self.address(inst.op);
                self.set_scalar(inst.dst[0], rep);
                true
            }
            Op::Activemask => {
                self.set_scalar(inst.dst[0], Rep::Affine(Shape::UNIFORM, vec![m]));
                true
            }
            Op::Cvta { space, to_space } if space != StateSpace::SharedCluster => {
                let Some((s, base)) = self.scalar_source(inst.src[0]) else { return false };
                let rep = Rep::Affine(s, base);
                let rep = if space == StateSpace::Shared {
                    let shared = self.load_cta(types::I64, offset_of!(CtaCtx, shared_base));
                    let op = if to_space { Pure::Sub(Ty::B64) } else { Pure::Add(Ty::B64) };
                    let by = Rep::Affine(Shape::UNIFORM, vec![shared]);
                    match self.pure_scalar(op, &[rep, by], &[Ty::B64; 2], &[None, None], false) {
                        Some((r, _)) => r,
                        None => return false,
                    }
                } else {
                    rep
                };
                self.set_scalar(inst.dst[0], rep);
                true
            }
            // A parameter or constant at an address that all lanes share.
            Op::Load { .. }
                if AccessClass::of(inst).is_some_and(|a| a.is_read_only() && !a.is_guarded)
                    && self.scalar_source(inst.src[0]).is_some_and(|(s, _)| s.is_uniform()) =>
            {
                let Some((s, base)) = self.scalar_source(inst.src[0]) else { return false };
                let mem = self.mem_op(inst);
                let out = self.access_all(&mem, inst, &Rep::Affine(s, base), &[]);
                for (d, r) in inst.dst.iter().zip(out) {
                    self.set_scalar(*d, r);
                }
                true
            }
            _ => false,
        }
    }

    fn set_scalar(&mut self, r: Reg, rep: Rep) {
        self.in_row.remove(&r);
        self.set(r, rep);
    }

    /// Where a routine finds a source in a masked copy: the register's own row, or scalars.
    fn row_or_scalar(&mut self, v: Val) -> Loc {
        if let Val::Imm(..) = v {
            return self.loc(v);
        }
        match (self.scalar_source(v), v) {
            (Some((s, base)), _) => {
                let rep = if matches!(v, Val::Reg(r) if self.plan.may_hold_odd_nan[r.idx()]) {
                    self.clean(v)
                } else {
                    Rep::Affine(s, base)
                };
                let ty = self.ty(v);
                self.loc_of(&rep, ty)
            }
            (None, Val::Reg(r)) => self.row_of(r),
            (None, Val::Imm(..)) => self.loc(v),
        }
    }

    /// The row of a register: its home, or its place among the rows of the block's own values.
    pub(crate) fn row_of(&self, r: Reg) -> Loc {
        let at = match self.plan.layout.homes[r.idx()] {
            Some(Home::Row32(at) | Home::Row64(at)) => at,
            _ => self.plan.layout.temp_rows[r.idx()],
        };
        assert!(at != 0, "{r:?} has no row at {:?}", self.at);
        if self.f.regs[r.idx()] == Ty::B64 { Loc::Row64(at) } else { Loc::Row32(at) }
    }

    fn row_offset(&self, r: Reg) -> u32 {
        match self.row_of(r) {
            Loc::Row32(at) | Loc::Row64(at) => at,
            other => panic!("{r:?} has {other:?} for a row at {}", self.here()),
        }
    }

    /// Offset of the row of a register of at most 32 bits.
    pub(crate) fn word_row(&self, r: Reg) -> u32 {
        match self.row_of(r) {
            Loc::Row32(at) => at,
            other => panic!("{r:?} has {other:?} for a row of words at {}", self.here()),
        }
    }

    /// A source as lanes, its NaNs canonical.
    fn lanes_of(&mut self, v: Val) -> Lanes {
        match (self.scalar_source(v), v) {
            (Some((s, base)), _) => match self.clean_scalar(v) {
                Some((s, base)) => Lanes::Affine(s, base),
                None => Lanes::Affine(s, base),
            },
            (None, Val::Reg(r)) => Lanes::Row(self.row_offset(r)),
            (None, Val::Imm(x, ty)) => {
                let c = self.scalar_const(x, ty);
                Lanes::Affine(Shape::constant(x), vec![c])
            }
        }
    }

    fn clean_scalar(&mut self, v: Val) -> Option<(Shape, Vec<Value>)> {
        match self.clean(v) {
            Rep::Affine(s, base) => Some((s, base)),
            Rep::Rows(_) | Rep::Logic(_) => None,
        }
    }

    fn masked_memory(&mut self, inst: &Inst, m: Value) {
        self.n_scratch_used = 0;
        let mask = match inst.guard() {
            Some(g) => {
                let bits = self.masked_bits(g);
                self.b.ins().band(bits, m)
            }
            None => m,
        };
        let inline = match inst.op {
            Op::IsSpace(_) | Op::Cvta { .. } | Op::Stack(_) => false,
            _ => AccessClass::of(inst).is_some_and(|a| a.is_inline_by_lane() || a.is_inline_atomic(self.opt.cluster)),
        };
        if inline {
            let order = AccessClass::of(inst).map(|a| a.order_inline(&self.opt.host));
            let operands: Vec<(Lanes, Ty)> = inst.operands().iter().map(|v| (self.lanes_of(*v), self.ty(*v))).collect();
            let dst: Vec<u32> = inst.dst.iter().map(|d| self.row_offset(*d)).collect();
            self.fence_if(order == Some(AccessOrder::FenceBefore));
            self.lanes_inline(inst, &operands, &dst, mask);
            self.fence_if(order == Some(AccessOrder::FenceAfter));
        } else {
            let src: Vec<Loc> = inst.operands().iter().map(|v| self.row_or_scalar(*v)).collect();
            let dst: Vec<Loc> = inst.dst.iter().map(|d| self.row_of(*d)).collect();
            let site = self.tables.mems.len();
            let made = self.site_of(inst, &src, dst);
            self.tables.mems.push(made);
            let ok = self.routine(Routine::Memory, site, mask, None, None);
            let go = self.b.create_block();
            self.return_unless(ok, go);
            self.b.switch_to_block(go);
        }
        inst.dst.iter().for_each(|d| self.now_in_row(*d));
    }

    /// A memory op that is done inline, by the lanes of a mask.
    pub(crate) fn lanes_inline(&mut self, inst: &Inst, operands: &[(Lanes, Ty)], dst: &[u32], mask: Value) {
        match inst.op {
            Op::Load { .. } | Op::Store { .. } => {
                let mem = self.mem_op(inst);
                self.lane_access(inst, &mem, operands, dst, mask);
            }
            Op::Atom { access, offset } | Op::Red { access, offset } => {
                self.lane_atomic(inst, access, offset, operands, dst, mask);
            }
            other => panic!("{other:?} is no memory op"),
        }
    }

    /// Bits of a predicate in a masked copy (lanes outside the mask are anything).
    pub(crate) fn masked_bits(&mut self, v: Val) -> Value {
        if let Some((s, base)) = self.scalar_source(v) {
            return self.bits(&Rep::Affine(s, base));
        }
        let Val::Reg(r) = v else { panic!("{v:?} is no scalar at {}", self.here()) };
        let at = self.word_row(r);
        let rows: Vec<Value> = (0..PACKS).map(|p| self.load_warp(types::I32X4, at as usize + 16 * p)).collect();
        self.bits_of_rows(&rows)
    }

    fn masked_sync(&mut self, b: usize, inst: &Inst, m: Value) {
        self.n_scratch_used = 0;
        let src: Vec<Loc> = inst.src.iter().map(|v| self.row_or_scalar(*v)).collect();
        let dst: Vec<Loc> = inst.dst.iter().map(|d| self.row_of(*d)).collect();
        inst.dst.iter().for_each(|d| self.now_in_row(*d));
        self.masked_write_back(b, m);
        let site = self.plan.sites.number(b) as usize;
        self.tables.syncs[site].masked = Some(Operands { src, dst });
        let copy = self.i64(CopyKind::Masked as i64);
        let done = self.routine(Routine::Sync, site, m, Some(copy), None);
        let (go, look) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(done, go, &[], look, &[]);
        self.b.switch_to_block(look);
        // Lanes that others waited for may be anywhere: look from the start.
        let first = self.prologue[0];
        self.b.ins().jump(first, &[]);
        self.b.switch_to_block(go);
    }

    /// Does what waits. Gives the bits of `cond` if it was made in the last loop.
    fn flush_waiting(&mut self, b: usize, waiting: &mut Vec<Deferred>, m: Value, cond: Option<Reg>) -> Option<Value> {
        let items = std::mem::take(waiting);
        let mut bits = None;
        let mut i = 0;
        while i < items.len() {
            if items[i].by_routine() {
                self.eval_masked(b, &items[i], m);
                i += 1;
                continue;
            }
            let end = (i..items.len()).find(|k| items[*k].by_routine()).unwrap_or(items.len());
            let wanted = if end == items.len() { cond } else { None };
            bits = self.pack_loop(b, &items[i..end], m, wanted);
            i = end;
        }
        bits
    }

    fn eval_masked(&mut self, b: usize, item: &Deferred, m: Value) {
        let f = self.f;
        let inst = &f.blocks[b].insts[item.inst];
        let Op::Pure(op) = inst.op else { panic!("{:?} is no value op and waits for a routine", inst.op) };
        self.n_scratch_used = 0;
        let src: Vec<Loc> = inst
            .src
            .iter()
            .zip(&item.scalars)
            .map(|(v, s)| match (s, v) {
                (Some(_), Val::Imm(..)) => self.loc(*v),
                (Some((s, base)), _) => {
                    let ty = self.ty(*v);
                    let rep = Rep::Affine(*s, base.clone());
                    let loose = matches!(v, Val::Reg(r) if self.plan.may_hold_odd_nan[r.idx()]);
                    let rep = if loose { self.canonical_rep(&rep, ty) } else { rep };
                    self.loc_of(&rep, ty)
                }
                (None, Val::Reg(r)) => self.row_of(*r),
                (None, Val::Imm(..)) => self.loc(*v),
            })
            .collect();
        let dst: Vec<Loc> = inst.dst.iter().map(|d| self.row_of(*d)).collect();
        let site = self.tables.evals.len();
        self.tables.evals.push(EvalSite { op, dst, src });
        self.routine(Routine::Eval, site, m, None, None);
    }

    /// Whether a register is read behind instruction `i` of block `b`, or lives on.
    fn read_later(&self, b: usize, i: usize, r: Reg) -> bool {
        if self.facts.live.exit[b].has(r.idx()) {
            return true;
        }
        let block = &self.f.blocks[b];
        let is = |v: &Val| *v == Val::Reg(r);
        block.insts[i + 1..].iter().any(|x| x.src.iter().any(is)) || block.term.sources().iter().any(is)
    }

    fn pack_loop(&mut self, b: usize, items: &[Deferred], m: Value, cond: Option<Reg>) -> Option<Value> {
        let f = self.f;
        let block = &f.blocks[b];
        // Scalars for every turn.
        let mut words_used = 0;
        let mut prepared: Vec<Vec<Option<Prepared>>> = Vec::new();
        for item in items {
            let inst = &block.insts[item.inst];
            let list = item
                .scalars
                .iter()
                .zip(&inst.src)
                .map(|(s, v)| {
                    let (s, base) = s.as_ref()?;
                    let ty = self.ty(*v);
                    Some(self.prepare(s, base, ty, &mut words_used))
                })
                .collect();
            prepared.push(list);
        }
        let (head, body, next, exit) =
            (self.b.create_block(), self.b.create_block(), self.b.create_block(), self.b.create_block());
        let index = self.b.append_block_param(head, types::I64);
        let rest = self.b.append_block_param(head, types::I32);
        let acc = self.b.append_block_param(head, types::I32);
        let acc_next = self.b.append_block_param(next, types::I32);
        let acc_exit = self.b.append_block_param(exit, types::I32);
        let (none, (start, lanes)) = (self.i32(0), self.first_pack(m));
        self.b.ins().jump(head, &[start.into(), lanes.into(), none.into()]);
        self.b.switch_to_block(head);
        let nibble = self.b.ins().band_imm_s(rest, 15);
        self.b.ins().brif(nibble, body, &[], next, &[acc.into()]);
        self.b.switch_to_block(body);
        let mask = self.mask_of_nibble(nibble);
        let offset = self.b.ins().ishl_imm_s(index, 4);
        let row32 = self.b.ins().iadd(self.warp, offset);
        let row64 = self.b.ins().iadd(row32, offset);
        let byte8 = self.b.ins().ishl_imm_s(index, 3);
        let word = self.b.ins().iadd(self.warp, byte8);
        let mut turn = Turn { row32, row64, word, offset, mask, values: Vec::new() };
        for (item, ready) in items.iter().zip(&prepared) {
            self.turn_inst(&block.insts[item.inst], item, ready, &mut turn);
        }
        let last = items[items.len() - 1].inst;
        let values = std::mem::take(&mut turn.values);
        for (k, (r, v)) in values.iter().enumerate() {
            // Only the last value of a register counts.
            if values[k + 1..].iter().any(|x| x.0 == *r) || !self.read_later(b, last, *r) {
                continue;
            }
            let old = self.load_turn_row(&turn, *r);
            let new = self.blend(turn.mask, v, &old);
            self.store_turn_row(&turn, *r, &new);
        }
        let made = cond.and_then(|c| values.iter().rev().find(|x| x.0 == c).map(|x| x.1[0]));
        let acc_body = match made {
            Some(c) => {
                let both = self.b.ins().band(c, turn.mask);
                let bits = self.b.ins().vhigh_bits(types::I32, both);
                let by = self.b.ins().ishl_imm_s(index, 2);
                let by = self.b.ins().ireduce(types::I32, by);
                let bits = self.b.ins().ishl(bits, by);
                self.b.ins().bor(acc, bits)
            }
            None => acc,
        };
        self.b.ins().jump(next, &[acc_body.into()]);
        self.b.switch_to_block(next);
        let index2 = self.b.ins().iadd_imm_s(index, 1);
        let rest2 = self.b.ins().ushr_imm_s(rest, 4);
        self.b.ins().brif(rest2, head, &[index2.into(), rest2.into(), acc_next.into()], exit, &[acc_next.into()]);
        self.b.switch_to_block(exit);
        made.map(|_| acc_exit)
    }

    fn prepare(&mut self, s: &Shape, base: &[Value], ty: Ty, words_used: &mut u32) -> Prepared {
        if s.is_uniform() {
            return Prepared::Vectors(self.spread(base[0], 0, ty));
        }
        let at = self.plan.layout.words + 64 * *words_used;
        *words_used += 1;
        assert!(*words_used <= WORD_SLOTS, "out of words at {:?}", self.at);
        for p in 0..PACKS {
            let first = self.first_lane(&(*s, base.to_vec()), p, ty);
            let w = self.as_word(first, ty);
            self.store_warp(w, at as usize + 8 * p);
        }
        Prepared::Words(at, s.stride)
    }

    fn turn_source(&mut self, v: Val, ready: Option<&Prepared>, turn: &Turn) -> Vec<Value> {
        let ty = self.ty(v);
        match (ready, v) {
            (Some(Prepared::Vectors(x)), _) => x.clone(),
            (Some(Prepared::Words(at, stride)), _) => {
                let t = super::rep::scalar_type(ty);
                let first = self.b.ins().load(t, Self::trusted(), turn.word, *at as i32);
                self.spread(first, *stride, ty)
            }
            (None, Val::Reg(r)) => match turn.values.iter().rev().find(|x| x.0 == r) {
                Some((_, v)) => v.clone(),
                None => self.load_turn_row(turn, r),
            },
            (None, Val::Imm(x, ty)) => {
                let c = self.scalar_const(x, ty);
                self.spread(c, 0, ty)
            }
        }
    }

    fn load_turn_row(&mut self, turn: &Turn, r: Reg) -> Vec<Value> {
        let ty = self.f.regs[r.idx()];
        let at = self.row_offset(r) as i32;
        let t = vector_type(ty);
        let base = if ty == Ty::B64 { turn.row64 } else { turn.row32 };
        (0..width(ty) as i32).map(|h| self.b.ins().load(t, Self::trusted(), base, at + 16 * h)).collect()
    }

    fn store_turn_row(&mut self, turn: &Turn, r: Reg, v: &[Value]) {
        let at = self.row_offset(r) as i32;
        let base = if v.len() == 2 { turn.row64 } else { turn.row32 };
        for (h, x) in v.iter().enumerate() {
            self.b.ins().store(Self::trusted(), *x, base, at + 16 * h as i32);
        }
    }

    fn turn_inst(&mut self, inst: &Inst, item: &Deferred, ready: &[Option<Prepared>], turn: &mut Turn) {
        match inst.op {
            Op::Pure(op) => {
                let mut packs = Vec::new();
                let mut sources = Vec::new();
                for (k, v) in inst.src.iter().enumerate() {
                    let mut x = self.turn_source(*v, ready[k].as_ref(), turn);
                    let keeps = matches!(op, Pure::Mov(_)) && self.plan.may_hold_odd_nan[inst.dst[0].idx()];
                    if let Val::Reg(r) = v
                        && self.plan.may_hold_odd_nan[r.idx()]
                        && !op.facts().takes_loose
                        && !keeps
                    {
                        let ty = if self.f.regs[r.idx()] == Ty::B64 { Float::F64 } else { Float::F32 };
                        x = x.into_iter().map(|y| self.canonical(y, ty)).collect();
                    }
                    packs.push(x);
                    let scalar = item.scalars[k].as_ref().filter(|(s, _)| s.is_uniform()).map(|(_, b)| b[0]);
                    sources.push(Source { constant: constant(*v), scalar });
                }
                let Some(Way::Vector(way)) = item.way else { panic!("{op:?} in a loop over packs") };
                let (mut one, two) = self.vector_op(way, &packs, &sources);
                let d = inst.dst[0];
                if op.facts().is_loose && !self.plan.may_hold_odd_nan[d.idx()] {
                    let ty = if self.f.regs[d.idx()] == Ty::B64 { Float::F64 } else { Float::F32 };
                    one = one.into_iter().map(|y| self.canonical(y, ty)).collect();
                }
                turn.values.push((d, one));
                if let Some(d2) = inst.dst.get(1) {
                    turn.values.push((*d2, two));
                }
            }
            Op::Cvta { space, to_space } => {
                let x = self.turn_source(inst.src[0], ready[0].as_ref(), turn);
                let y = if space == StateSpace::Shared {
                    let base = self.load_cta(types::I64, offset_of!(CtaCtx, shared_base));
                    let by = self.b.ins().splat(types::I64X2, base);
                    x.into_iter()
                        .map(|v| if to_space { self.b.ins().isub(v, by) } else { self.b.ins().iadd(v, by) })
                        .collect()
                } else {
                    x
                };
                turn.values.push((inst.dst[0], y));
            }
            Op::Load { .. } => {
                let Some(from) = item.from else { panic!("a load without its address") };
                let at = self.b.ins().iadd(from, turn.offset);
                let v = self.b.ins().load(types::I32X4, Self::device(), at, 0);
                turn.values.push((inst.dst[0], vec![v]));
            }
            Op::Sreg(s) => {
                let v = match sreg::source(s, &self.facts.shape) {
                    sreg::Source::Mask(n) => {
                        let at = self.b.ins().iadd(self.pool_ptr, turn.offset);
                        let d = super::POOL_LANEMASKS as i32 + 128 * n as i32;
                        self.b.ins().load(types::I32X4, Self::trusted(), at, d)
                    }
                    sreg::Source::Tid(i) => {
                        let lane = self.b.ins().ushr_imm_s(turn.offset, 2);
                        let lane = self.b.ins().ireduce(types::I32, lane);
                        self.tid_pack(i, lane)
                    }
                    sreg::Source::Scalar | sreg::Source::Shaped(_) => panic!("{s:?} is a scalar"),
                };
                turn.values.push((inst.dst[0], vec![v]));
            }
            other => panic!("{other:?} in a loop over packs"),
        }
    }

    /// Writes scalars that live on to their homes; into rows for the lanes of `m` only.
    fn masked_write_back(&mut self, b: usize, m: Value) {
        let mut regs = std::mem::take(&mut self.written);
        regs.sort_unstable();
        regs.dedup();
        let mut rows: Vec<(Reg, Rep)> = Vec::new();
        for r in regs {
            if !self.facts.live.exit[b].has(r.idx()) {
                continue;
            }
            let Some(rep) = self.reps.get(&r).cloned() else { continue };
            match self.plan.layout.homes[r.idx()] {
                Some(Home::Words(_)) => self.store_home(r, &rep),
                Some(Home::Row32(_) | Home::Row64(_)) => rows.push((r, rep)),
                None => {}
            }
        }
        if rows.is_empty() {
            return;
        }
        let masks = self.rows_of_bits(m);
        let Rep::Rows(masks) = masks else { panic!("a mask of lanes that is {masks:?} at {}", self.here()) };
        for (r, rep) in rows {
            let ty = self.f.regs[r.idx()];
            let new = self.rows(&rep, ty);
            let at = self.row_offset(r) as usize;
            let (w, t) = (width(ty), vector_type(ty));
            for p in 0..PACKS {
                let old: Vec<Value> = (0..w).map(|h| self.load_warp(t, at + 16 * (p * w + h))).collect();
                let v = self.blend(masks[p], &new[p * w..(p + 1) * w], &old);
                for (h, x) in v.into_iter().enumerate() {
                    self.store_warp(x, at + 16 * (p * w + h));
                }
            }
        }
    }

    /// Adds lanes to a block's pending ones.
    pub(crate) fn add_pending(&mut self, block: usize, lanes: Value) {
        let old = self.load_warp(types::I32, self.pend(block));
        let new = self.b.ins().bor(old, lanes);
        self.store_warp(new, self.pend(block));
    }

    /// After a masked block: to the lowest block that may hold lanes.
    pub(crate) fn go_on(&mut self, b: usize, back: Option<(usize, Value)>) {
        let next = self.next_pendable(b);
        let Some((header, lanes)) = back else {
            self.b.ins().jump(next, &[]);
            return;
        };
        let again: clif::Block = self.b.create_block();
        self.b.ins().brif(lanes, again, &[], next, &[]);
        self.b.switch_to_block(again);
        self.stop_check(header);
        let p = self.prologue[header];
        self.b.ins().jump(p, &[]);
    }
}
