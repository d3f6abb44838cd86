//! Loads and stores.
//!
//! Addresses are tested before anything happens: a uniform one alone, neighbouring ones by their ends, others as vectors. What a test refuses is done by the
//! routine, which knows all rules, in code after all blocks; it comes back with the results. Neighbouring elements are read and written as vectors
//! under a mask; `scattered` does the others.

use std::mem::{offset_of, size_of};

use handloom_ir::simt::{Inst, Op, Reg, Val};
use handloom_ir::types::{Order, StateSpace, Ty};
use handloom_plan::Bounds;
use handloom_plan::abi::{CtaCtx, Routine, SiteCache, WarpCtx};
use handloom_plan::access::{AccessClass, Kind, Own};
use iced_x86::{Code, Register};

use crate::access::{Access, Folded, Form, Limits, Member, Runs};
use crate::alloc::{Place, n_parts};
use crate::asm::{Label, Mem, Out, low32};
use crate::emit::*;
use crate::head::Going;
use crate::once::Called;
use crate::values::{is_wide, load_code, store_code};

const R8: Register = Register::R8;
const R9: Register = Register::R9;
const R10: Register = Register::R10;
const R11: Register = Register::R11;

impl Emit<'_> {
    /// The lanes of the block whose guard holds; where there are none, it goes to `skip`.
    pub(crate) fn takers(&mut self, inst: &Inst, skip: Label) -> Register {
        match inst.guard() {
            None => LANES,
            Some(g) => {
                let g = self.src(g);
                self.bits(&g);
                self.a.op2(Code::And_r32_rm32, EAX, LANES);
                self.a.op2(Code::Mov_r32_rm32, TAKERS, EAX);
                self.a.jump(Code::Je_rel32_64, skip);
                TAKERS
            }
        }
    }

    /// A load, a store or an atomic.
    pub(crate) fn access(&mut self, inst: &Inst) {
        let skip = self.a.label();
        let lanes = self.takers(inst, skip);
        let comes_back = match self.inline(inst) {
            Some((class, limits)) => self.plain(inst, class, limits, lanes, skip),
            None => {
                self.memory_routine(inst, lanes, None);
                false
            }
        };
        if comes_back { self.a.bind(skip) } else { self.a.bind_if_wanted(skip) }
    }

    /// What a load or store is tested against, if it is done here.
    fn inline(&mut self, inst: &Inst) -> Option<(AccessClass, Limits)> {
        use StateSpace::{Const, Generic, Global, Local, ParamFunc, Shared};
        let class = AccessClass::of(inst)?;
        let plain = match class.kind {
            Kind::Load | Kind::Store => {
                !class.is_single
                    && class.wants_all()
                    && (class.order == Order::Weak || self.is_plain_strong(inst, &class))
            }
            Kind::Atomic(..) => crate::atomic::is_inline(&class, self.plan) && self.results_vary(inst),
        };
        let n_scalars = inst.dst.iter().filter(|d| matches!(self.place(**d), Place::Words(_))).count();
        if !plain || (n_scalars != 0 && n_scalars != inst.dst.len()) {
            return None;
        }
        let short = self.ty(class.address) != Ty::B64;
        let limits = if self.is_safe(&class) {
            Limits::Safe
        } else {
            match class.space {
                Global | Const | Generic => Limits::Heap(self.mem_site(inst, &[], vec![])),
                Shared => Limits::Shared,
                Local | ParamFunc if class.own() == Own::Always => Limits::Own,
                _ => return None,
            }
        };
        // Other spaces have host addresses.
        (!short || limits == Limits::Shared).then_some((class, limits))
    }

    /// Whether an address needs no test: parameters and frame slots at constant offsets.
    fn is_safe(&self, class: &AccessClass) -> bool {
        let Val::Reg(r) = class.address else { return false };
        if class.space == StateSpace::Local && self.elements.holds(class) {
            return true;
        }
        // Of strong accesses the space is found out first: some are traps.
        if class.order.is_strong() {
            return false;
        }
        let bytes = class.bytes();
        match self.plan.origin(r).map(|inst| inst.op) {
            Some(Op::ParamAddr { offset }) => {
                let at = i64::from(offset).wrapping_add(class.offset);
                class.space == StateSpace::ParamEntry
                    && at >= 0
                    && at + bytes <= i64::from(self.f.param_bytes)
                    && at % bytes == 0
            }
            Some(Op::SlotAddr(slot)) => {
                let s = self.f.slots[slot.idx()];
                // An atomic on local memory is a trap.
                !matches!(class.kind, Kind::Atomic(..))
                    && matches!(class.space, StateSpace::Local | StateSpace::Generic)
                    && class.offset >= 0
                    && class.offset + bytes <= i64::from(s.size)
                    && class.offset % bytes == 0
                    && i64::from(s.align) % bytes == 0
            }
            _ => false,
        }
    }

    /// Says whether code after all blocks comes back to `done`.
    fn plain(&mut self, inst: &Inst, class: AccessClass, limits: Limits, lanes: Register, done: Label) -> bool {
        let site = match limits {
            Limits::Heap(site) => Some(site),
            Limits::Safe | Limits::Shared | Limits::Own => None,
        };
        let joint = match limits {
            Limits::Heap(_) | Limits::Shared if !self.in_part => self.joints.get(&self.at.1).copied(),
            Limits::Heap(_) | Limits::Shared | Limits::Safe | Limits::Own => None,
        };
        let (mut x, form, scalars) = self.kind_of_access(inst, class, limits, lanes);
        let (cold, is_atomic) = (x.cold, matches!(class.kind, Kind::Atomic(..)));
        if scalars || form != Form::Scattered {
            let head = self.head.as_ref().filter(|_| limits == Limits::Shared);
            let fixed = head.and_then(|h| h.fixed(inst)).map(|(_, bit)| bit);
            x.decided = fixed.or_else(|| self.decided_access(&x));
        } else if self.is_of_part(&x) && self.form_for_all(inst, class) != Form::Scattered {
            // Gangs do it for all lanes, and ask the head.
            self.decided_access(&x);
        }
        self.note_limits(joint, limits);
        if let Some(member) = joint {
            if let Some((low, high)) = member.test {
                let runs = self.runs(inst, &x, form, scalars);
                self.prove(&x, runs.as_ref(), low, high, site);
                x.is_proven = true;
            } else if self.proven.contains(&member.first) {
                // Its site is the one of the first.
                if site.is_some() {
                    self.tables.mems.pop();
                }
                x.is_proven = true;
            }
        }
        if x.is_proven {
            (x.limits, x.decided) = (Limits::Safe, None);
        }
        let runs = self.runs(inst, &x, form, scalars);
        let mut called = None;
        if let Some(runs) = &runs {
            if !x.is_proven {
                self.test_elsewhere(&x, runs);
            }
            if self.folds.contains_key(&self.at.1) && x.is_proven && !scalars {
                if form == Form::Row {
                    let (m, _) = self.part_of_run(&x, runs, form, 0);
                    self.fetch_for_later(&x, runs, m);
                }
                self.folded.push(Folded { reg: inst.dst[0], x, runs: runs.clone(), form });
            } else {
                self.tested(inst, &x, runs, scalars, form);
            }
        } else if scalars {
            self.load_words(inst, &x);
        } else {
            match form {
                Form::Same if is_atomic && self.is_folded(inst, &x) => self.folded_atomic(inst, &x),
                Form::Same if is_atomic => self.atomics_at_one(inst, &x),
                Form::Same if class.kind == Kind::Store => self.store_same(inst, &x),
                Form::Same => self.load_same(inst, &x),
                Form::Row | Form::Tuples(32) => {
                    if x.limits != Limits::Safe {
                        let skip = self.around_tests(&x);
                        if self.in_part || lanes != LANES {
                            self.limits(&x);
                            self.lane_address(&x, 0);
                            self.test_row(&x);
                        } else {
                            self.limits_of_run(&x, 31 * x.class.bytes());
                            self.lane_address(&x, 0);
                            self.test_start(&x, RAX);
                        }
                        self.after_tests(skip);
                    }
                    if x.may_skip() || x.limits == Limits::Safe {
                        self.lane_address(&x, 0);
                    }
                    self.row(inst, &x);
                }
                Form::Scattered if self.is_late_sum(&x) => self.late_sum(inst, &x),
                Form::Scattered => called = self.scattered(inst, &x),
                _ => self.of_all(inst, &x, form),
            }
        }
        // An atomic looks whether it changed anything.
        self.tell_store(inst);
        if x.limits != Limits::Safe {
            let (in_part, at) = (self.in_part, self.at);
            if runs.is_none() {
                self.drop_held();
            }
            let held = self.held();
            self.cold.push(Cold { start: cold, back: done, inst: inst.clone(), site, called, in_part, at, held });
            true
        } else {
            self.a.bind_if_wanted(cold);
            false
        }
    }

    /// Notes what an access is tested against: those of a joint test against what the first of them is. What other copies of the access find, under a mask or one by one, is for
    /// that test too.
    pub(crate) fn note_limits(&mut self, joint: Option<Member>, limits: Limits) {
        let (b, i) = self.at;
        let tested = joint.and_then(|m| self.limits_of.get(&(b, m.first))).copied().unwrap_or(limits);
        let twins = self.twins.entry((b, i)).or_default();
        match (limits, tested) {
            (_, Limits::Heap(site)) if !self.in_part && twins.1.is_none() => twins.1 = Some(site),
            (Limits::Heap(site), _) => twins.0.push(site),
            _ => {}
        }
        let is_tested = matches!(tested, Limits::Heap(_) | Limits::Shared);
        if is_tested && (!self.in_part || !self.limits_of.contains_key(&(b, i))) {
            self.limits_of.insert((b, i), tested);
        }
    }

    /// What is decided about an access before its tests: where its lanes lie, and whether its results are scalars.
    pub(crate) fn kind_of_access(
        &mut self,
        inst: &Inst,
        class: AccessClass,
        limits: Limits,
        lanes: Register,
    ) -> (Access, Form, bool) {
        let ty = match class.bits {
            8 | 16 => Ty::B16,
            32 => Ty::B32,
            _ => Ty::B64,
        };
        let cold = self.a.label();
        let short = self.ty(class.address) != Ty::B64;
        let x = Access { class, limits, lanes, cold, ty, short, is_proven: false, decided: None };
        let (is_load, is_atomic) = (class.kind == Kind::Load, matches!(class.kind, Kind::Atomic(..)));
        let scalars = is_load && inst.dst.iter().all(|d| !matches!(self.place(*d), Place::Vectors(_) | Place::Row(_)));
        let form = match self.shape(class.address) {
            // Each lane has local memory of its own.
            Some(s) if s.is_uniform() && limits != Limits::Own => Form::Same,
            _ if is_atomic => Form::Scattered,
            // A vector move of the host tears no element. Those under masks may be slow, and are rare.
            Some(s) if class.order.is_strong() => {
                let is_row = class.count == 1 && s.is_linear() && s.stride == i64::from(x.size());
                if is_row && !self.in_part && lanes == LANES { Form::Row } else { Form::Scattered }
            }
            None if class.order.is_strong() => Form::Scattered,
            Some(s) => self.form_of(s, &x),
            None => Form::Scattered,
        };
        (x, form, scalars)
    }

    /// Where the lanes of an access lie if all of them do it.
    pub(crate) fn form_for_all(&mut self, inst: &Inst, class: AccessClass) -> Form {
        let was = std::mem::replace(&mut self.in_part, false);
        let (_, form, _) = self.kind_of_access(inst, class, Limits::Safe, LANES);
        self.in_part = was;
        form
    }

    /// Where an access finds its elements, if the head may have decided about it.
    pub(crate) fn runs(&self, inst: &Inst, x: &Access, form: Form, scalars: bool) -> Option<Runs> {
        let shape = self.shape(x.class.address)?;
        let n_parts = n_parts(x.ty);
        let n = 32 / n_parts;
        let by_part: Vec<usize> = (0..n_parts).map(|q| q * n).collect();
        if !matches!(x.class.kind, Kind::Load | Kind::Store)
            || matches!(x.limits, Limits::Safe | Limits::Own) && !x.is_proven
        {
            return None;
        }
        if scalars {
            let (of, _) = inst.dst.iter().find_map(|d| self.words(*d))?;
            let firsts: Vec<usize> = (0..of.groups()).map(|g| of.first_lane(g)).collect();
            return self.decided_runs(x, &firsts, 0);
        }
        match form {
            Form::Same if x.class.bits >= 32 || x.class.kind == Kind::Store => self.decided_runs(x, &[0], 0),
            Form::Row => self.decided_runs(x, &[0], 31 * i64::from(x.size())),
            Form::Tuples(run) => {
                let firsts: Vec<usize> = (0..32).step_by(run.into()).collect();
                self.decided_runs(x, &firsts, (i64::from(run) - 1) * x.class.bytes())
            }
            Form::Parts => self.decided_runs(x, &by_part, (n as i64 - 1) * i64::from(x.size())),
            Form::Halves => self.decided_runs(x, &[0, 8, 16, 24], 7 * i64::from(x.size())),
            Form::HalfBands => self.decided_runs(x, &[0, 8, 16, 24], 0),
            Form::Strided(shape) => self.runs_of_strides(x, &shape),
            Form::Bands if (0..32).all(|l| by_part.iter().any(|p| shape.delta(*p) == shape.delta(l))) => {
                self.decided_runs(x, &by_part, 0)
            }
            Form::Same | Form::Bands | Form::Scattered => None,
        }
    }

    /// An access whose tests are made elsewhere.
    pub(crate) fn tested(&mut self, inst: &Inst, x: &Access, runs: &Runs, scalars: bool, form: Form) {
        let n_parts = n_parts(x.ty);
        if scalars {
            let Some((of, _)) = inst.dst.iter().find_map(|d| self.words(*d)) else { return };
            for g in 0..of.groups() {
                let m = self.run_element(x, runs, of.first_lane(g));
                for (e, d) in (0..).zip(&inst.dst) {
                    if let Some((_, at)) = self.words(*d) {
                        self.load_scalar_at(x, m.behind(e * x.size()));
                        self.store64(ctx(at + 8 * g as u32), RDX);
                    }
                }
            }
            return;
        }
        let mut last = None;
        for q in 0..n_parts {
            match form {
                Form::Row => {
                    let (m, _) = self.part_of_run(x, runs, form, q);
                    if q == 0 {
                        self.fetch_for_later(x, runs, m);
                    }
                    self.move_part(inst, x, q, m);
                }
                Form::Parts => {
                    let (m, _) = self.part_of_run(x, runs, form, q);
                    // What the part before read.
                    if last != Some(m) || x.class.kind != Kind::Load || !self.take_part_before(inst, x, q) {
                        self.move_part(inst, x, q, m);
                    }
                    last = Some(m);
                }
                Form::Tuples(_) => {
                    let at = self.chunks_of_run(x, runs, q);
                    if q == 0 {
                        self.fetch_for_later(x, runs, at[0]);
                    }
                    self.tuples(inst, x, q, &at, true);
                }
                Form::Halves | Form::HalfBands => {
                    let at = [2 * q, 2 * q + 1].map(|h| self.run_element(x, runs, 8 * h));
                    if form == Form::Halves {
                        self.move_halves(inst, x, q, at);
                    } else {
                        self.half_bands(inst, x, q, at);
                    }
                }
                Form::Strided(_) => self.strided_of_run(inst, x, runs, q),
                Form::Same if x.class.kind == Kind::Store => {
                    if q == 0 {
                        let m = self.run_element(x, runs, 0);
                        match self.going {
                            Some(Going::Known(1)) => self.store_first(inst, x, m),
                            _ => self.store_one(inst, x, m),
                        }
                    }
                }
                Form::Bands if x.class.kind == Kind::Store => {
                    let (m, _) = self.part_of_run(x, runs, form, q);
                    self.store_last(inst, x, q, m);
                }
                Form::Same | Form::Bands | Form::Scattered => {
                    for (e, d) in (0..).zip(&inst.dst) {
                        let (m, _) = self.part_of_run(x, runs, form, q);
                        self.spread_part(*d, q, m.behind(e * x.size()), x);
                    }
                }
            }
        }
    }

    /// Where a part of an access lies, and whether it is one element for all lanes of it.
    pub(crate) fn part_of_run(&mut self, x: &Access, runs: &Runs, form: Form, q: usize) -> (Mem, bool) {
        let n = 32 / n_parts(x.ty);
        match form {
            Form::Row => (self.run_element(x, runs, 0).behind((q * n) as i32 * x.size()), false),
            Form::Parts => (self.run_element(x, runs, q * n), false),
            Form::Same => (self.run_element(x, runs, 0), true),
            Form::Tuples(_) | Form::Strided(_) | Form::Halves | Form::HalfBands => {
                (self.run_element(x, runs, q * n), false)
            }
            Form::Bands | Form::Scattered => (self.run_element(x, runs, q * n), true),
        }
    }

    /// Whether one vector may do for both of a register: only value ops of this block read it.
    pub(crate) fn may_be_alike(&self, d: Reg) -> bool {
        !self.in_part
            && self.plan.def_count[d.idx()] == 1
            && !self.places.is_own[d.idx()]
            && !self.plan.may_hold_odd_nan[d.idx()]
            && self.uses.is_by_vectors(d)
    }

    /// Gives sources that one vector does for a second one, where a result takes the first: its first part is done before its second part reads it.
    pub(crate) fn part_alike(&mut self, inst: &Inst) {
        self.apart.clear();
        for v in &inst.src {
            let Val::Reg(r) = *v else { continue };
            let Place::Vectors(vectors) = self.place(r) else { continue };
            let takes = |d: &Reg| {
                let n = n_parts(self.f.regs[d.idx()]);
                matches!(self.place(*d), Place::Vectors(of) if of[..n].contains(&vectors[0]))
            };
            if self.alike.contains(&r) && !self.apart.contains(&r) && inst.dst.iter().any(takes) {
                self.a.op2(load_code(self.ty(*v)), zmm(vectors[1]), zmm(vectors[0]));
                self.apart.push(r);
            }
        }
    }

    /// Whether what registers hold stays over an instruction: accesses look after it themselves.
    pub(crate) fn keeps_addresses(&self, inst: &Inst) -> bool {
        matches!(inst.op, Op::Pure(_) | Op::Sreg(_) | Op::Load { .. } | Op::Store { .. }) && !inst.guarded
    }

    /// Whether only a part of the warp may do an access.
    pub(crate) fn is_of_part(&self, x: &Access) -> bool {
        self.in_part || x.lanes != LANES
    }

    /// The address of a lane, with the access's offset, in `rax`.
    pub(crate) fn lane_address(&mut self, x: &Access, lane: usize) {
        if let Some((indexed, shape)) = self.by_indexed.take() {
            self.indexed_address(&indexed, lane);
            self.by_indexed = Some((indexed, shape));
        } else {
            self.lane_value(x.class.address, lane, RAX);
        }
        if x.short {
            if x.class.offset != 0 {
                let by = (x.class.offset.cast_unsigned() as u32).cast_signed();
                self.a.imm(Code::Add_rm32_imm32, EAX, by);
            }
            if self.is_of_part(x) {
                self.in_front_too(RAX);
            }
        } else {
            self.add_number(RAX, x.class.offset);
        }
    }

    /// Whether an access is tested against the heap. (Constants do not lie there.)
    pub(crate) fn is_within_heap(&self, x: &Access) -> bool {
        let is_contained = self.plan.options.bounds == Bounds::Contained && x.class.space != StateSpace::Const;
        matches!(x.limits, Limits::Heap(_)) && is_contained
    }

    /// Base in `r8` and limit in `r9` of a test of one access: an aligned distance below the limit is right.
    pub(crate) fn limits(&mut self, x: &Access) {
        let bytes = x.class.bytes() as i32;
        match x.limits {
            Limits::Safe => {}
            Limits::Heap(_) if self.is_within_heap(x) => {
                // The heap ends at a page.
                self.load64(R8, cta(offset_of!(CtaCtx, heap_low)));
                self.load64(R9, cta(offset_of!(CtaCtx, heap_high)));
                self.a.op2(Code::Sub_r64_rm64, R9, R8);
            }
            Limits::Heap(site) => self.limits_of_site(site),
            Limits::Shared => {
                self.a.number(R8, 0);
                self.load64(R9, cta(offset_of!(CtaCtx, shared_size)));
                self.a.imm(Code::Sub_rm64_imm32, R9, bytes);
                self.a.jump(Code::Jb_rel32_64, x.cold);
                self.a.imm(Code::And_rm64_imm32, R9, -bytes);
                self.a.imm(Code::Add_rm64_imm32, R9, bytes);
            }
            Limits::Own => {
                self.load64(R8, warp(offset_of!(WarpCtx, window)));
                let stride = self.plan.facts.local_stride * if self.elements.are_apart() { 32 } else { 1 };
                let units = (stride - x.class.bytes()).div_euclid(x.class.bytes()) + 1;
                self.a.number(R9, (units.max(0) * x.class.bytes()).cast_unsigned());
            }
        }
    }

    /// As [`limits`](Self::limits) for runs of so many bytes from the first element to the last: elements are counted from the base in `r8`, and `r9` says below
    /// which one a run may start.
    pub(crate) fn limits_of_run(&mut self, x: &Access, reach: i64) {
        self.limits(x);
        if reach > 0 {
            match i32::try_from(reach) {
                Ok(reach) => self.a.imm(Code::Sub_rm64_imm32, R9, reach),
                Err(_) => {
                    self.a.number(R10, reach.cast_unsigned());
                    self.a.op2(Code::Sub_r64_rm64, R9, R10);
                }
            }
            self.a.jump(Code::Jb_rel32_64, x.cold);
        }
        let k = x.class.bytes().trailing_zeros();
        if k > 0 {
            self.a.imm8(Code::Shr_rm64_imm8, R9, k);
        }
    }

    /// Tests the first element of a run, at the address in a register. Uses `rdx`.
    pub(crate) fn test_start(&mut self, x: &Access, at: Register) {
        self.set_to_unit(x, at);
        self.a.op2(Code::Cmp_r64_rm64, RDX, R9);
        self.a.jump(Code::Jae_rel32_64, x.cold);
    }

    /// The number of elements from the base in `r8` to an address, in `rdx`: a large one if it is not of whole elements.
    pub(crate) fn set_to_unit(&mut self, x: &Access, at: Register) {
        self.a.op2(Code::Mov_r64_rm64, RDX, at);
        self.a.op2(Code::Sub_r64_rm64, RDX, R8);
        let k = x.class.bytes().trailing_zeros();
        if k > 0 {
            // Low bits of a misaligned address become high ones.
            self.a.imm8(Code::Ror_rm64_imm8, RDX, k);
        }
    }

    /// The allocation that a site hit last, as [`limits`](Self::limits).
    fn limits_of_site(&mut self, site: usize) {
        self.limits_in(Mem::at(R9, (site * size_of::<SiteCache>()) as i32));
    }

    /// The same of a place in the table of caches, which is in `r9`.
    pub(crate) fn limits_in(&mut self, cache: Mem) {
        self.load64(R9, cta(offset_of!(CtaCtx, sites)));
        self.load64(R8, cache);
        self.load64(R9, cache.behind(8));
    }

    /// Tests the address in `rax` against `limits`; `aligned`: whether its alignment is known. Uses `rdx` and `r10`.
    pub(crate) fn test(&mut self, x: &Access, at: Register, aligned: bool) {
        let k = x.class.bytes().trailing_zeros();
        if k == 0 || aligned {
            self.a.op2(Code::Mov_r64_rm64, RDX, at);
            self.a.op2(Code::Sub_r64_rm64, RDX, R8);
            self.a.op2(Code::Cmp_r64_rm64, RDX, R9);
        } else {
            self.set_to_unit(x, at);
            self.a.op2(Code::Mov_r64_rm64, R10, R9);
            self.a.imm8(Code::Shr_rm64_imm8, R10, k);
            self.a.op2(Code::Cmp_r64_rm64, RDX, R10);
        }
        self.a.jump(Code::Jae_rel32_64, x.cold);
    }

    /// Makes a host address of the one in a register.
    pub(crate) fn host(&mut self, x: &Access, r: Register) {
        if x.class.space == StateSpace::Shared {
            self.a.op2(Code::Add_r64_rm64, r, cta(offset_of!(CtaCtx, shared_base)));
        }
    }

    /// An element of a scalar load, to `rdx`.
    fn load_scalar(&mut self, x: &Access, at: Register, e: i32) {
        self.load_scalar_at(x, Mem::at(at, e * x.size()));
    }

    fn load_scalar_at(&mut self, x: &Access, m: Mem) {
        match x.class.bits {
            8 => self.a.op2(Code::Movzx_r32_rm8, EDX, m),
            16 => self.a.op2(Code::Movzx_r32_rm16, EDX, m),
            32 => self.load32(EDX, m),
            _ => self.load64(RDX, m),
        }
    }

    /// A load whose results are scalars.
    fn load_words(&mut self, inst: &Inst, x: &Access) {
        let Some((shape, _)) = inst.dst.iter().find_map(|d| self.words(*d)) else { return };
        if x.limits != Limits::Safe {
            let skip = self.around_tests(x);
            self.limits(x);
            for g in 0..shape.groups() {
                self.lane_address(x, shape.first_lane(g));
                self.test(x, RAX, false);
            }
            self.after_tests(skip);
        }
        for g in 0..shape.groups() {
            if shape.groups() > 1 || x.limits == Limits::Safe || x.may_skip() {
                self.lane_address(x, shape.first_lane(g));
            }
            self.host(x, RAX);
            for (e, d) in (0..).zip(&inst.dst) {
                if let Some((_, at)) = self.words(*d) {
                    self.load_scalar(x, RAX, e);
                    self.store64(ctx(at + 8 * g as u32), RDX);
                }
            }
        }
    }

    /// Tests the one place that all lanes access; its address as the host sees it is in `rax` then.
    pub(crate) fn one_place(&mut self, x: &Access) {
        let skip = self.around_tests(x);
        if x.limits != Limits::Safe {
            self.lane_address(x, 0);
            self.limits(x);
            self.test_place(x);
        }
        self.after_tests(skip);
        self.lane_address(x, 0);
        self.host(x, RAX);
    }

    /// All lanes read one place.
    fn load_same(&mut self, inst: &Inst, x: &Access) {
        self.one_place(x);
        self.spread_place(inst, x);
    }

    /// What lies at the place of the host in `rax`, for all lanes.
    pub(crate) fn spread_place(&mut self, inst: &Inst, x: &Access) {
        if x.class.bits >= 32 {
            for (e, d) in (0..).zip(&inst.dst) {
                for q in 0..n_parts(x.ty) {
                    self.spread_part(*d, q, Mem::at(RAX, e * x.size()), x);
                }
            }
            return;
        }
        self.a.op2(Code::Mov_r64_rm64, R8, RAX);
        for (e, d) in (0..).zip(&inst.dst) {
            self.load_scalar(x, R8, e);
            let t = zmm(4);
            if is_wide(x.ty) {
                self.a.op2(Code::EVEX_Vpbroadcastq_zmm_k1z_r64, t, RDX);
            } else {
                self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, t, EDX);
            }
            for q in 0..n_parts(x.ty) {
                self.put(*d, q, t, x.lanes);
            }
        }
    }

    /// Writes a part of a result for some lanes.
    pub(crate) fn put(&mut self, d: Reg, q: usize, from: Register, lanes: Register) {
        let ty = self.f.regs[d.idx()];
        match self.place(d) {
            Place::Vectors(_) if lanes == LANES => {
                let out = self.out(d, q);
                self.a.op2(load_code(ty), out, from);
            }
            Place::Vectors(v) => {
                let mask = self.lanes_mask(lanes, ty, q);
                self.a.op2(load_code(ty), Out::masked(zmm(v[q]), mask), from);
            }
            Place::Row(at) => {
                let mask =
                    if lanes == LANES && !self.places.is_own[d.idx()] { ALL } else { self.lanes_mask(lanes, ty, q) };
                self.a.store(store_code(ty), ctx(at + 64 * q as u32), from, mask);
            }
            Place::Nowhere | Place::Mask(_) | Place::Flags(_) | Place::Words(_) => {}
        }
    }

    /// Tests elements that follow each other through the warp: the address of lane 0 is in `rax`, and the limits are known.
    pub(crate) fn test_row(&mut self, x: &Access) {
        let stride = x.class.bytes() as i32;
        if self.is_of_part(x) {
            // Lanes that take no part may lie anywhere.
            let lanes = x.lanes;
            self.a.op2(Code::Tzcnt_r32_rm32, ECX, lanes);
            self.a.op2(Code::Bsr_r32_rm32, Register::ESI, lanes);
            let by = stride.cast_unsigned().min(8);
            for (lane, aligned) in [(RCX, false), (RSI, true)] {
                if stride > 8 {
                    self.a.imm8(Code::Shl_rm32_imm8, low32(lane), stride.trailing_zeros() - 3);
                }
                self.a.op2(Code::Lea_r64_m, R11, Mem::indexed(RAX, lane, by, 0));
                self.test(x, R11, aligned);
            }
        } else {
            self.test(x, RAX, false);
            self.a.op2(Code::Lea_r64_m, R11, Mem::at(RAX, 31 * stride));
            self.test(x, R11, true);
        }
    }

    /// Elements that follow each other through the warp, from the address in `rax` on.
    pub(crate) fn row(&mut self, inst: &Inst, x: &Access) {
        let stride = x.size();
        let n = 32 / n_parts(x.ty) as i32;
        self.host(x, RAX);
        self.a.op2(Code::Mov_r64_rm64, R8, RAX);
        if x.class.count > 1 {
            self.row_of_tuples(inst, x, R8);
            return;
        }
        for q in 0..n_parts(x.ty) {
            self.move_part(inst, x, q, Mem::at(R8, q as i32 * n * stride));
        }
    }

    /// A part of a load or store of neighbours. Clobbers `eax`.
    pub(crate) fn move_part(&mut self, inst: &Inst, x: &Access, q: usize, m: Mem) {
        if let Some(Going::Known(lanes)) = self.going
            && lanes != u32::MAX
        {
            self.move_some(inst, x, q, m, lanes);
            return;
        }
        if x.class.kind == Kind::Load {
            self.load_part(inst.dst[0], q, m, x);
            return;
        }
        let s = self.clean_src(inst.src[1]);
        let r = self.reg(&s, q, 4);
        let mask = self.lanes_mask(x.lanes, x.ty, q);
        let code = match x.class.bits {
            8 => Code::EVEX_Vpmovdb_xmmm128_k1z_zmm,
            16 => Code::EVEX_Vpmovdw_ymmm256_k1z_zmm,
            _ => store_code(x.ty),
        };
        self.a.store(code, m, r, mask);
    }

    pub(crate) fn load_part(&mut self, d: Reg, q: usize, m: Mem, x: &Access) {
        let code = match x.class.bits {
            8 => Code::EVEX_Vpmovzxbd_zmm_k1z_xmmm128,
            16 => Code::EVEX_Vpmovzxwd_zmm_k1z_ymmm256,
            _ => load_code(x.ty),
        };
        let mask = self.lanes_mask(x.lanes, x.ty, q);
        match self.place(d) {
            Place::Vectors(v) => {
                if x.lanes == LANES {
                    self.nothing_first(d, v[q], mask);
                }
                self.a.op2(code, Out::masked(zmm(v[q]), mask), m);
            }
            Place::Row(at) => {
                // Lanes outside of the mask are not read: they may lie outside of memory.
                self.a.op2(code, Out::masked(zmm(7), mask), m);
                let own = self.places.is_own[d.idx()] || x.lanes != LANES;
                self.a.store(store_code(x.ty), ctx(at + 64 * q as u32), zmm(7), if own { mask } else { ALL });
            }
            Place::Nowhere | Place::Mask(_) | Place::Flags(_) | Place::Words(_) => {}
        }
    }

    /// The code after all blocks: accesses that tests refused.
    pub(crate) fn cold_code(&mut self) {
        for c in std::mem::take(&mut self.cold) {
            (self.in_part, self.at) = (c.in_part, c.at);
            self.scratch.0 = 0;
            self.a.bind(c.start);
            let lanes = if c.inst.guarded { TAKERS } else { LANES };
            if let Some(Called { site, back }) = c.called {
                self.routine(Routine::Memory, site, lanes);
                self.go_on_if_right();
                self.a.jump(Code::Jmp_rel32_64, back);
                continue;
            }
            self.memory_routine(&c.inst, lanes, c.site);
            self.hold_again(&c.held);
            self.a.jump(Code::Jmp_rel32_64, c.back);
        }
    }

    /// `cvta` of addresses that vary.
    pub(crate) fn cvta(&mut self, inst: &Inst, space: StateSpace, to_space: bool) {
        let s = self.src(inst.src[0]);
        let d = inst.dst[0];
        for q in 0..4 {
            let out = self.out(d, q);
            if space == StateSpace::Shared {
                let r = self.reg(&s, q, 0);
                let by = cta(offset_of!(CtaCtx, shared_base)).spread();
                let code = if to_space {
                    Code::EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64
                } else {
                    Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64
                };
                self.a.op3(code, out, r, by);
            } else {
                let r = self.rm(&s, q, 0);
                self.copy(Ty::B64, out, r);
            }
            self.commit(d, q);
        }
    }
}
