//! Instructions of full copies: all 32 lanes together, packs side by side.

use std::mem::offset_of;
use std::rc::Rc;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::trap::TrapKind;
use handloom_ir::types::*;
use handloom_plan::abi::*;
use handloom_plan::access::AccessClass;
use handloom_plan::analysis::shape::{self as shapes, Arg, LANES, PACKS, Shape};
use handloom_plan::layout::Home;
use handloom_plan::order::{AccessOrder, FenceOrder};
use handloom_plan::ways::{Way, scalar, way};

use super::lanes::Lanes;
use super::rep::{Compare, Logic, Rep, scalar_type, vector_type, width};
use super::vector::Source;
use super::{Emit, FULL};

impl Emit<'_, '_> {
    /// Number of definitions of a register.
    pub(crate) fn n_defs(&self, r: Reg) -> usize {
        self.plan.def_count[r.idx()] as usize
    }

    /// The op that defines a register, if there is only one definition.
    pub(crate) fn origin(&self, r: Reg) -> Option<Op> {
        self.plan.origins[r.idx()]
    }

    /// One instruction of a full copy.
    pub(crate) fn full_inst(&mut self, b: usize, i: usize) {
        let f = self.f;
        let inst = &f.blocks[b].insts[i];
        self.n_scratch_used = 0;
        match inst.op {
            Op::Pure(p) => self.full_pure(inst, p, self.facts.may_test(b, i)),
            Op::Sreg(s) => {
                let rep = self.sreg_rep(s);
                self.set(inst.dst[0], rep);
            }
            Op::SymAddr(_) | Op::SharedAddr(_) | Op::ParamAddr { .. } | Op::SlotAddr(_) | Op::ArgAddr { .. } => {
                let rep = self.address(inst.op);
                self.set(inst.dst[0], rep);
            }
            Op::Cvta { space: StateSpace::SharedCluster, .. } | Op::Stack(_) => self.full_by_routine(inst),
            Op::Cvta { space, to_space } => self.cvta(inst, space, to_space),
            Op::Load { .. } | Op::Store { .. } => {
                let order = AccessClass::of(inst).filter(AccessClass::is_inline_in_full);
                let order = order.map(|a| a.order_inline(&self.opt.host));
                self.fence_if(order == Some(AccessOrder::FenceBefore));
                self.verify_at(b, i);
                self.full_access(inst);
                self.fence_if(order == Some(AccessOrder::FenceAfter));
            }
            Op::Atom { .. } | Op::Red { .. } | Op::IsSpace(_) => self.full_by_routine(inst),
            Op::Fence { order, scope } => self.fence(order, scope),
            Op::Shfl(_)
            | Op::Vote(_)
            | Op::Match { .. }
            | Op::Redux { .. }
            | Op::Matrix(_)
            | Op::Elect
            | Op::BarWarp => {
                self.full_sync(inst);
            }
            Op::Activemask => {
                let all = self.i32(FULL);
                self.set(inst.dst[0], Rep::Affine(Shape::constant(FULL as u64), vec![all]));
            }
            Op::Builtin(which) => self.full_builtin(which, inst),
            Op::Nanosleep | Op::Hint => {}
        }
    }

    /// Addresses that the contexts hold.
    pub(crate) fn address(&mut self, op: Op) -> Rep {
        let stride = self.facts.local_stride;
        let by_lane = |base: Value| {
            let mut s = Shape { stride, ..Shape::UNIFORM };
            (0..PACKS).for_each(|p| s.off[p] = stride * 4 * p as i64);
            Rep::Affine(s, vec![base])
        };
        match op {
            Op::SymAddr(s) | Op::SharedAddr(s) => {
                let table = self.cta_field(offset_of!(CtaCtx, symbols));
                let v = self.b.ins().load(types::I64, Self::trusted(), table, s.0 as i32 * 8);
                Rep::Affine(Shape::UNIFORM, vec![v])
            }
            Op::ParamAddr { offset } => {
                let p = self.cta_field(offset_of!(CtaCtx, param));
                let v = self.b.ins().iadd_imm_s(p, i64::from(offset));
                Rep::Affine(Shape::UNIFORM, vec![v])
            }
            Op::SlotAddr(slot) => {
                let l = self.load_warp(types::I64, offset_of!(WarpCtx, local));
                let v = self.b.ins().iadd_imm_s(l, i64::from(self.plan.layout.slot_offsets[slot.idx()]));
                by_lane(v)
            }
            Op::ArgAddr { offset } => {
                let l = self.load_warp(types::I64, offset_of!(WarpCtx, args));
                let v = self.b.ins().iadd_imm_s(l, i64::from(offset));
                by_lane(v)
            }
            other => panic!("{other:?} is no address"),
        }
    }

    fn cvta(&mut self, inst: &Inst, space: StateSpace, to_space: bool) {
        let rep = self.rep(inst.src[0]);
        if space != StateSpace::Shared {
            self.set(inst.dst[0], rep);
            return;
        }
        let base = self.load_cta(types::I64, offset_of!(CtaCtx, shared_base));
        let op = if to_space { Pure::Sub(Ty::B64) } else { Pure::Add(Ty::B64) };
        let shift = Rep::Affine(Shape::UNIFORM, vec![base]);
        let out = self.pure_value(op, &[rep, shift], &[Ty::B64, Ty::B64], false);
        self.set(inst.dst[0], out.0);
    }

    /// A source whose NaNs are canonical.
    pub(crate) fn clean(&mut self, v: Val) -> Rep {
        let rep = self.rep(v);
        let Val::Reg(r) = v else { return rep };
        if !self.plan.may_hold_odd_nan[r.idx()] || self.cleaned.contains(&r) {
            return rep;
        }
        let rep = self.canonical_rep(&rep, self.f.regs[r.idx()]);
        self.reps.insert(r, rep.clone());
        self.cleaned.insert(r);
        rep
    }

    pub(crate) fn canonical_rep(&mut self, rep: &Rep, ty: Ty) -> Rep {
        let float = if ty == Ty::B64 { Float::F64 } else { Float::F32 };
        match rep {
            Rep::Affine(s, base) => {
                let t = vector_type(ty);
                let base = base
                    .iter()
                    .map(|v| {
                        let x = self.b.ins().scalar_to_vector(t, *v);
                        let c = self.canonical(x, float);
                        self.b.ins().extractlane(c, 0)
                    })
                    .collect();
                Rep::Affine(*s, base)
            }
            Rep::Rows(rows) => Rep::Rows(rows.iter().map(|v| self.canonical(*v, float)).collect()),
            Rep::Logic(_) => rep.clone(),
        }
    }

    fn full_pure(&mut self, inst: &Inst, op: Pure, may_test: bool) {
        let args: Vec<Rep> = inst
            .src
            .iter()
            .map(|v| {
                let keeps = matches!(op, Pure::Mov(_)) && self.plan.may_hold_odd_nan[inst.dst[0].idx()];
                if op.facts().takes_loose || keeps { self.rep(*v) } else { self.clean(*v) }
            })
            .collect();
        let tys: Vec<Ty> = inst.src.iter().map(|v| self.ty(*v)).collect();
        let consts: Vec<Option<u64>> = inst.src.iter().map(|v| constant(*v)).collect();
        let (first, second) = self.pure_values(op, &args, &tys, &consts, may_test);
        let d = inst.dst[0];
        let first = if op.facts().is_loose && !self.plan.may_hold_odd_nan[d.idx()] {
            self.canonical_rep(&first, self.f.regs[d.idx()])
        } else {
            first
        };
        self.cleaned.remove(&d);
        self.set(d, first);
        if let Some(d2) = inst.dst.get(1) {
            let second = second.unwrap_or(Rep::Affine(Shape::UNIFORM, vec![]));
            self.set(*d2, second);
        }
    }

    /// A value op on values without constants.
    pub(crate) fn pure_value(&mut self, op: Pure, args: &[Rep], tys: &[Ty], may_test: bool) -> (Rep, Option<Rep>) {
        self.pure_values(op, args, tys, &vec![None; args.len()], may_test)
    }

    /// A value op: by scalars where the shape allows, as vectors, or by the routine.
    pub(crate) fn pure_values(
        &mut self,
        op: Pure,
        args: &[Rep],
        tys: &[Ty],
        consts: &[Option<u64>],
        may_test: bool,
    ) -> (Rep, Option<Rep>) {
        if let Some(out) = self.pure_scalar(op, args, tys, consts, may_test) {
            return out;
        }
        if let (Pure::ICmp(cmp, int), [Rep::Affine(sa, a), Rep::Affine(sb, b)]) = (op, args)
            && (sa.is_uniform() || sb.is_uniform())
        {
            let c = Compare { cmp, int, a: (*sa, a.clone()), b: (*sb, b.clone()) };
            return (Rep::Logic(Rc::new(Logic::Compare(Box::new(c)))), None);
        }
        if let Some(l) = logic_of(op, args) {
            return (Rep::Logic(Rc::new(l)), None);
        }
        let uniform: Vec<bool> = args.iter().map(is_uniform).collect();
        let way = match way(op, consts, &uniform) {
            Way::Vector(way) => way,
            Way::Routine => return self.pure_by_routine(op, args, tys),
        };
        let sources: Vec<Source> = args
            .iter()
            .zip(consts)
            .map(|(r, c)| Source {
                constant: *c,
                scalar: match r {
                    Rep::Affine(s, base) if s.is_uniform() => Some(base[0]),
                    _ => None,
                },
            })
            .collect();
        let rows: Vec<Vec<Value>> = args.iter().zip(tys).map(|(r, t)| self.rows(r, *t)).collect();
        let (mut one, mut two) = (Vec::new(), Vec::new());
        for p in 0..PACKS {
            let packs: Vec<Vec<Value>> = rows
                .iter()
                .zip(tys)
                .map(|(r, t)| {
                    let w = width(*t);
                    r[p * w..(p + 1) * w].to_vec()
                })
                .collect();
            let (x, y) = self.vector_op(way, &packs, &sources);
            one.extend(x);
            two.extend(y);
        }
        (Rep::Rows(one), if two.is_empty() { None } else { Some(Rep::Rows(two)) })
    }

    /// The op on scalars, once for each group of the result's shape.
    pub(crate) fn pure_scalar(
        &mut self,
        op: Pure,
        args: &[Rep],
        tys: &[Ty],
        consts: &[Option<u64>],
        may_test: bool,
    ) -> Option<(Rep, Option<Rep>)> {
        let affine: Vec<(Shape, Vec<Value>)> = args
            .iter()
            .map(|r| match r {
                Rep::Affine(s, b) => Some((*s, b.clone())),
                Rep::Rows(_) | Rep::Logic(_) => None,
            })
            .collect::<Option<_>>()?;
        let shapes: Vec<Arg> =
            affine.iter().zip(consts).map(|((s, _), c)| Arg { shape: Some(*s), value: *c }).collect();
        let result = shapes::pure(op, &shapes, may_test)?;
        if let Some((k, signed)) = result.check {
            self.test_wrap(&affine[k], signed);
        }
        let (ty, second) = op.results();
        let mut base = Vec::new();
        let mut carry = Vec::new();
        for g in 0..result.shape.groups() {
            let p = result.shape.first(g);
            let at: Vec<Value> = affine.iter().zip(tys).map(|(a, t)| self.first_lane(a, p, *t)).collect();
            match scalar(op) {
                Some(way) if second.is_none() => base.push(self.scalar_op(way, &at)),
                _ => {
                    let (x, y) = self.scalar_by_vector(op, &at, tys, consts, ty, second)?;
                    base.push(x);
                    carry.extend(y);
                }
            }
        }
        let two = second.map(|_| Rep::Affine(Shape::UNIFORM, carry));
        Some((Rep::Affine(result.shape, base), two))
    }

    /// A uniform op without scalar form: on one pack, or by the routine for one lane.
    fn scalar_by_vector(
        &mut self,
        op: Pure,
        at: &[Value],
        tys: &[Ty],
        consts: &[Option<u64>],
        ty: Ty,
        second: Option<Ty>,
    ) -> Option<(Value, Option<Value>)> {
        if let Way::Vector(way) = way(op, consts, &vec![true; at.len()]) {
            let packs: Vec<Vec<Value>> = at.iter().zip(tys).map(|(v, t)| self.spread(*v, 0, *t)).collect();
            let sources: Vec<Source> =
                at.iter().zip(consts).map(|(v, c)| Source { constant: *c, scalar: Some(*v) }).collect();
            let (x, y) = self.vector_op(way, &packs, &sources);
            let x = self.lane0(x[0], ty);
            let y = second.map(|t| self.lane0(y[0], t));
            return Some((x, y));
        }
        self.n_scratch_used = 0;
        let src: Vec<Loc> = at
            .iter()
            .zip(tys)
            .map(|(v, t)| {
                let (off, loc) = self.scratch_row(*t);
                let word = if *t == Ty::P {
                    let w = self.b.ins().uextend(types::I32, *v);
                    self.b.ins().ineg(w)
                } else {
                    *v
                };
                self.store_warp(word, off as usize);
                loc
            })
            .collect();
        let (d, dl) = self.scratch_row(ty);
        let mut dst = vec![dl];
        let d2 = second.map(|t| {
            let (at, loc) = self.scratch_row(t);
            dst.push(loc);
            at
        });
        let site = self.tables.evals.len();
        self.tables.evals.push(EvalSite { op, dst, src });
        let one = self.i32(1);
        self.routine(Routine::Eval, site, one, None, None);
        let x = self.scalar_from(d, ty);
        let y = d2.zip(second).map(|(at, t)| self.scalar_from(at, t));
        Some((x, y))
    }

    fn scalar_from(&mut self, at: u32, ty: Ty) -> Value {
        if ty == Ty::P {
            let v = self.load_warp(types::I32, at as usize);
            return self.b.ins().icmp_imm_s(IntCC::NotEqual, v, 0);
        }
        self.load_warp(scalar_type(ty), at as usize)
    }

    fn lane0(&mut self, v: Value, ty: Ty) -> Value {
        let x = self.b.ins().extractlane(v, 0);
        if ty == Ty::P { self.b.ins().icmp_imm_s(IntCC::NotEqual, x, 0) } else { x }
    }

    /// Goes on only if no group of a 32-bit value wraps between its lanes; else the block starts over in code that assumes nothing.
    fn test_wrap(&mut self, v: &(Shape, Vec<Value>), signed: bool) {
        let (b, _) = self.at;
        for g in 0..v.0.groups() {
            let (low, high) = v.0.span(g);
            if high == low {
                continue;
            }
            let bottom = if signed { i64::from(i32::MIN) } else { 0 };
            let start = self.b.ins().iadd_imm_s(v.1[g], low - bottom);
            let last = i64::from(u32::MAX) - (high - low);
            let bad = self.b.ins().icmp_imm_s(IntCC::UnsignedGreaterThan, start, i64::from(last as u32 as i32));
            let (cold, go) = (self.cold_block(), self.b.create_block());
            let on = self.on_line();
            self.b.ins().brif(bad, cold, &[], go, &[]);
            self.b.switch_to_block(cold);
            self.start_over(b);
            self.rejoin(go, on);
        }
    }

    /// Gives the current block back as not run.
    pub(crate) fn start_over(&mut self, b: usize) {
        let lanes = match self.mask {
            Some(m) => m,
            None => {
                if let Some(done) = self.given_up.get(&b) {
                    let done = *done;
                    self.b.ins().jump(done, &[]);
                    return;
                }
                let block = self.cold_block();
                self.given_up.insert(b, block);
                self.b.ins().jump(block, &[]);
                self.b.switch_to_block(block);
                self.i32(FULL)
            }
        };
        let held = self.load_warp(types::I32, self.pend(b));
        let all = self.b.ins().bor(held, lanes);
        self.store_warp(all, self.pend(b));
        let state = self.i32(b as i64);
        self.store_warp(state, offset_of!(WarpCtx, state));
        // Values that the blocks before this one hold in registers.
        for (r, rep) in self.held.clone() {
            if self.facts.live.entry[b].has(r.idx()) {
                self.store_home(r, &rep);
            }
        }
        self.give_back(Reason::Deopt);
    }

    fn pure_by_routine(&mut self, op: Pure, args: &[Rep], tys: &[Ty]) -> (Rep, Option<Rep>) {
        self.n_scratch_used = 0;
        let src: Vec<Loc> = args.iter().zip(tys).map(|(r, t)| self.loc_of(r, *t)).collect();
        let (ty, second) = op.results();
        let (d, dl) = self.scratch_row(ty);
        let mut dst = vec![dl];
        let d2 = second.map(|t| {
            let (at, loc) = self.scratch_row(t);
            dst.push(loc);
            (at, t)
        });
        let site = self.tables.evals.len();
        self.tables.evals.push(EvalSite { op, dst, src });
        let m = self.i32(FULL);
        self.routine(Routine::Eval, site, m, None, None);
        let one = self.read_scratch(d, ty);
        let two = d2.map(|(at, t)| self.read_scratch(at, t));
        (one, two)
    }

    /// A memory op lane by lane, for the lanes of its guard: inline or by the routine.
    fn full_by_routine(&mut self, inst: &Inst) {
        if let Op::Atom { access, offset } | Op::Red { access, offset } = inst.op
            && AccessClass::of(inst).is_some_and(|a| a.is_inline_atomic(self.opt.cluster))
        {
            if !self.atomic_of_all(inst, access, offset) {
                self.full_atomic(inst);
            }
            return;
        }
        let (src, dst, outs) = self.routine_operands(inst);
        let site = self.tables.mems.len();
        let made = self.site_of(inst, &src, dst);
        self.tables.mems.push(made);
        let mask = match inst.guard() {
            Some(g) => {
                let g = self.rep(g);
                self.bits(&g)
            }
            None => self.i32(FULL),
        };
        let ok = self.routine(Routine::Memory, site, mask, None, None);
        self.go_on_if(ok);
        for (r, at) in outs {
            let rep = self.read_scratch(at, self.f.regs[r.idx()]);
            self.set(r, rep);
        }
    }

    fn full_atomic(&mut self, inst: &Inst) {
        let mask = match inst.guard() {
            Some(g) => {
                let g = self.rep(g);
                self.bits(&g)
            }
            None => self.i32(FULL),
        };
        let outs = {
            self.n_scratch_used = 0;
            let old: Vec<Option<Rep>> = inst
                .dst
                .iter()
                .map(|d| if inst.guarded && self.n_defs(*d) > 1 { Some(self.rep(Val::Reg(*d))) } else { None })
                .collect();
            let mut outs = Vec::new();
            for (d, o) in inst.dst.iter().zip(old) {
                let ty = self.f.regs[d.idx()];
                let (at, _) = self.scratch_row(ty);
                if let Some(o) = o {
                    let rows = self.rows(&o, ty);
                    for (k, v) in rows.into_iter().enumerate() {
                        self.store_warp(v, at as usize + 16 * k);
                    }
                }
                outs.push((*d, at));
            }
            outs
        };
        let operands: Vec<(Lanes, Ty)> = inst
            .operands()
            .iter()
            .map(|v| {
                let ty = self.ty(*v);
                let rep = self.clean(*v);
                let lanes = match rep {
                    Rep::Affine(s, base) => Lanes::Affine(s, base),
                    rep => {
                        let (at, _) = self.scratch_row(ty);
                        let rows = self.rows(&rep, ty);
                        for (k, x) in rows.into_iter().enumerate() {
                            self.store_warp(x, at as usize + 16 * k);
                        }
                        Lanes::Row(at)
                    }
                };
                (lanes, ty)
            })
            .collect();
        let dst: Vec<u32> = outs.iter().map(|(_, at)| *at).collect();
        self.lanes_inline(inst, &operands, &dst, mask);
        for (r, at) in outs {
            let rep = self.read_scratch(at, self.f.regs[r.idx()]);
            self.set(r, rep);
        }
    }

    /// Where a routine finds a source with canonical NaNs: in its home, if that is a row which this copy has not read yet.
    fn source_loc(&mut self, v: Val) -> Loc {
        if let Val::Reg(r) = v
            && matches!(self.plan.layout.homes[r.idx()], Some(Home::Row32(_) | Home::Row64(_)))
            && !self.plan.may_hold_odd_nan[r.idx()]
            && !self.reps.contains_key(&r)
        {
            return self.row_of(r);
        }
        self.clean(v);
        self.loc(v)
    }

    /// Operands and results of a routine; results, in scratch rows, hold their old values where a guard may leave them.
    fn routine_operands(&mut self, inst: &Inst) -> (Vec<Loc>, Vec<Loc>, Vec<(Reg, u32)>) {
        self.n_scratch_used = 0;
        let src: Vec<Loc> = inst.operands().iter().map(|v| self.source_loc(*v)).collect();
        let mut dst = Vec::new();
        let mut outs = Vec::new();
        for d in &inst.dst {
            let ty = self.f.regs[d.idx()];
            let (at, loc) = self.scratch_row(ty);
            if inst.guarded && self.n_defs(*d) > 1 {
                let old = self.rep(Val::Reg(*d));
                let rows = self.rows(&old, ty);
                for (k, v) in rows.into_iter().enumerate() {
                    self.store_warp(v, at as usize + 16 * k);
                }
            }
            dst.push(loc);
            outs.push((*d, at));
        }
        (src, dst, outs)
    }

    pub(crate) fn fence(&mut self, order: Order, scope: Scope) {
        match FenceOrder::of(order, scope, &self.opt.host) {
            FenceOrder::Program => {
                self.b.ins().sequence_point();
            }
            FenceOrder::Total => {
                let at = self.b.ins().iadd_imm_s(self.cta, offset_of!(CtaCtx, fence) as i64);
                let zero = self.i64(0);
                self.b.ins().atomic_rmw(types::I64, clif::MemFlagsData::trusted(), clif::AtomicRmwOp::Or, at, zero);
            }
            FenceOrder::Instruction => self.fence_if(true),
        }
    }

    /// A fence instruction, if one is needed.
    pub(crate) fn fence_if(&mut self, needed: bool) {
        if needed {
            self.b.ins().fence();
        }
    }

    fn full_builtin(&mut self, which: Builtin, inst: &Inst) {
        let src = self.loc(inst.src[0]);
        let site = self.tables.builtins.len();
        self.tables.builtins.push((which, src, inst.span));
        let m = self.i32(FULL);
        let ok = self.routine(Routine::Builtin, site, m, None, None);
        self.go_on_if(ok);
        self.tell_dirty();
    }

    /// A warp-level op by all lanes: inline where the member mask is known to name them all.
    fn full_sync(&mut self, inst: &Inst) {
        let everyone = inst.src.last().and_then(|v| constant(*v)) == Some(FULL as u64);
        match inst.op {
            Op::BarWarp if everyone => return,
            Op::Vote(mode) if everyone => {
                let p = self.rep(inst.src[0]);
                let bits = self.bits(&p);
                let any = |e: &mut Self| e.b.ins().icmp_imm_s(IntCC::NotEqual, bits, 0);
                let all = |e: &mut Self| e.b.ins().icmp_imm_s(IntCC::Equal, bits, i64::from(FULL as u32 as i32));
                let v = match mode {
                    VoteMode::Ballot => bits,
                    VoteMode::All => all(self),
                    VoteMode::Any => any(self),
                    VoteMode::Uni => {
                        let (x, y) = (all(self), any(self));
                        let none = self.b.ins().bxor_imm_s(y, 1);
                        self.b.ins().bor(x, none)
                    }
                };
                self.set(inst.dst[0], Rep::Affine(Shape::UNIFORM, vec![v]));
                return;
            }
            Op::Shfl(mode) if everyone => {
                if let (Some(lane), Some(clamp)) = (constant(inst.src[1]), constant(inst.src[2])) {
                    self.shuffle_lanes(inst, mode, lane as u32, clamp as u32);
                    return;
                }
            }
            _ => {}
        }
        let (src, dst, outs) = self.routine_operands(inst);
        let site = self.plan.sites.number(self.at.0) as usize;
        self.tables.syncs[site].full = Some(Operands { src, dst });
        let (m, copy) = (self.i32(FULL), self.i64(CopyKind::Full as i64));
        let ok = self.routine(Routine::Sync, site, m, Some(copy), None);
        let (go, stuck) = (self.b.create_block(), self.cold_block());
        let on = self.on_line();
        self.b.ins().brif(ok, go, &[], stuck, &[]);
        self.b.switch_to_block(stuck);
        // All live lanes are here, so nobody can come whom they wait for.
        self.trap(TrapKind::Deadlock, inst.span, None);
        self.rejoin(go, on);
        for (r, at) in outs {
            let rep = self.read_scratch(at, self.f.regs[r.idx()]);
            self.set_fetched(r, rep);
        }
    }

    /// `shfl` with a constant lane and clamp: every lane's source is known.
    fn shuffle_lanes(&mut self, inst: &Inst, mode: ShflMode, lane: u32, clamp: u32) {
        let value = self.clean(inst.src[0]);
        let from: Vec<(u32, bool)> = (0..32).map(|l| shfl_source(mode, l, lane, clamp)).collect();
        let rows = self.rows(&value, Ty::B32);
        let mut out = Vec::with_capacity(PACKS);
        for p in 0..PACKS {
            let lanes: Vec<u32> = (0..LANES).map(|l| from[p * LANES + l].0).collect();
            let mut packs: Vec<u32> = lanes.iter().map(|l| l / 4).collect();
            packs.sort_unstable();
            packs.dedup();
            let v = if packs.len() <= 2 {
                let (a, b) = (packs[0], packs[packs.len() - 1]);
                let pick = |l: u32| if l / 4 == a { (l % 4) as u8 } else { 4 + (l % 4) as u8 };
                let order: [u8; 4] = std::array::from_fn(|i| pick(lanes[i]));
                if order == [0, 1, 2, 3] {
                    rows[a as usize]
                } else {
                    self.shuffle32(rows[a as usize], rows[b as usize], order)
                }
            } else {
                let parts: Vec<Value> =
                    lanes.iter().map(|l| self.b.ins().extractlane(rows[(l / 4) as usize], (l % 4) as u8)).collect();
                self.gather(&parts, Ty::B32)[0]
            };
            out.push(v);
        }
        self.set(inst.dst[0], Rep::Rows(out));
        if let Some(d) = inst.dst.get(1) {
            let rows = (0..PACKS)
                .map(|p| {
                    let lanes = std::array::from_fn(|l| if from[p * LANES + l].1 { u32::MAX } else { 0 });
                    self.vector_const32(lanes)
                })
                .collect();
            self.set(*d, Rep::Rows(rows));
        }
    }

    /// The site of an op that the memory routine does, which finds the address where it wraps at its own width.
    pub(crate) fn site_of(&mut self, inst: &Inst, src: &[Loc], dst: Vec<Loc>) -> MemSite {
        let (addr, rest) = match (src, inst.src.first()) {
            ([addr, rest @ ..], Some(v)) => (self.address_loc(*addr, self.ty(*v)), rest),
            _ => (Loc::Imm(0), src),
        };
        MemSite { op: inst.op, addr, src: rest.to_vec(), dst, span: inst.span }
    }

    /// Raises a trap of code's own, by the lanes of a mask (all if none).
    pub(crate) fn trap(&mut self, kind: TrapKind, span: handloom_diag::Span, lanes: Option<Value>) {
        self.trap_at(TrapSite { kind, span, index: None }, lanes);
    }

    /// The same for a branch by an index that has no target.
    pub(crate) fn trap_of_index(
        &mut self,
        span: handloom_diag::Span,
        index: &Rep,
        targets: usize,
        lanes: Option<Value>,
    ) {
        self.n_scratch_used = 0;
        let at = self.loc_of(index, Ty::B32);
        self.trap_at(TrapSite { kind: TrapKind::BadCall, span, index: Some((at, targets)) }, lanes);
    }

    fn trap_at(&mut self, trap: TrapSite, lanes: Option<Value>) {
        let site = self.tables.traps.len();
        self.tables.traps.push(trap);
        let lanes = match lanes {
            Some(m) => m,
            None => self.i32(FULL),
        };
        self.leave(Stop::Trap(TrapSource::Site { site: site as u32, lanes }));
    }
}

/// Source lane of a `shfl` and whether it is in range.
///
/// # PTX ISA
/// Data Movement and Conversion Instructions: shfl.sync.
pub(crate) fn shfl_source(mode: ShflMode, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (b, clamp, segment) = (b & 31, c & 31, c >> 8 & 31);
    let last = (lane & segment) | (clamp & !segment);
    let first = lane & segment;
    let (j, ok) = match mode {
        ShflMode::Up => {
            let j = lane as i32 - b as i32;
            (j, j >= last as i32)
        }
        ShflMode::Down => {
            let j = lane + b;
            (j as i32, j <= last)
        }
        ShflMode::Bfly => {
            let j = lane ^ b;
            (j as i32, j <= last)
        }
        ShflMode::Idx => {
            let j = first | (b & !segment);
            (j as i32, j <= last)
        }
    };
    if ok { (j as u32 & 31, true) } else { (lane, false) }
}

/// A Boolean op on predicates that were not needed as lanes yet.
fn logic_of(op: Pure, args: &[Rep]) -> Option<Logic> {
    if !args.iter().any(|a| matches!(a, Rep::Logic(_))) {
        return None;
    }
    let part = |i: usize| match &args[i] {
        Rep::Logic(l) => Some(Rc::clone(l)),
        Rep::Affine(s, base) if s.is_uniform() => Some(Rc::new(Logic::Uniform(base[0]))),
        Rep::Affine(..) | Rep::Rows(_) => None,
    };
    match op {
        Pure::And(Ty::P) => Some(Logic::And(part(0)?, part(1)?)),
        Pure::Or(Ty::P) => Some(Logic::Or(part(0)?, part(1)?)),
        Pure::Not(Ty::P) => Some(Logic::Not(part(0)?)),
        _ => None,
    }
}

/// The value of a constant source.
pub(crate) fn constant(v: Val) -> Option<u64> {
    match v {
        Val::Imm(x, ty) => Some(x & ty.mask()),
        Val::Reg(_) => None,
    }
}

pub(crate) fn is_uniform(r: &Rep) -> bool {
    matches!(r, Rep::Affine(s, _) if s.is_uniform())
}
