//! What is done once a CTA instead of once a warp: values that all warps share, tests of addresses, and guards.
//!
//! # The model
//! Most integers of a kernel are functions of parameters, of `%ctaid` and of the number of the warp, and of nothing else. Those that do not depend on the
//! warp (*same*) are computed in the *head*, a subroutine that runs when a CTA begins and whenever the code is entered, and lie in words of the stack.
//! Of those that go up by an even step from warp to warp (*linear*), the head knows the value in warp 0 and the step, hence the lowest and the
//! highest of the whole CTA. So it decides once
//!
//! - that a 32-bit value which is extended to 64 bits does not wrap in any lane: the code that follows rests on it, and a CTA where it
//!   does not hold leaves with `Deopt` before anything has happened;
//! - that all accesses through an address are in bounds, or that a comparison holds in all lanes or in none: a bit of [`DECIDED`] for each. Where the
//!   bit is not set, each warp tests by itself.

use handloom_ir::simt::{Function, Inst, LaunchShape, Op, Pure, Reg, Term, Val, shape_constant};
use handloom_ir::types::{Cmp, Int, Order, Sreg, StateSpace, Ty};
use handloom_plan::Plan;
use handloom_plan::access::{AccessClass, Kind};
use handloom_plan::analysis::cfg::Set;
use handloom_plan::analysis::classes::Class;
use handloom_plan::analysis::shape::{self, Shape};
use iced_x86::{Code, Register};

use crate::access::{Access, Limits};
use crate::alloc::Place;
use crate::asm::{Label, low32};
use crate::emit::*;
use crate::scalar::has_scalar_code;

/// Bits of what was decided.
pub(crate) const DECIDED: Register = Register::R14D;

/// Words of the stack that a head may use.
const MOST_WORDS: u32 = 600;

/// Offsets from here on are of words of the stack, not of a context.
pub(crate) const FRAME_WORDS: u32 = 1 << 28;

/// How a value depends on what is not a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Course {
    /// It differs between warps, by an even step.
    is_linear: bool,
    /// It differs between CTAs.
    by_cta: bool,
}

/// Accesses that are tested together.
struct Group {
    key: (Reg, StateSpace, Kind, i64),
    low: i64,
    high: i64,
    bit: u32,
    /// The site of the first that was emitted, with what it is.
    first: Option<Access>,
}

/// A branch on comparisons of linear values.
#[derive(Clone, Copy)]
pub(crate) struct Guard {
    /// The first of the instructions that are done for the branch alone, at the end of the block.
    pub(crate) from: usize,
    /// The predicate.
    cond: Reg,
    /// The bits that say that it holds in all lanes, and in none.
    bits: (u32, u32),
}

/// What the head of a function does.
pub(crate) struct Head {
    /// By register: whether it is computed in the head.
    courses: Vec<Option<Course>>,
    /// By register: the word of one that is the same in all warps.
    pub(crate) same: Vec<Option<u32>>,
    /// By register: of one that is linear, the words of its value in warp 0 and of its step.
    linear: Vec<Option<(u32, u32)>>,
    /// Blocks and instructions that the head computes, in order.
    insts: Vec<(usize, usize)>,
    /// Values that code rests on not to wrap, read as signed or not.
    checks: Vec<(Val, bool)>,
    /// Values whose steps are those of 64 bits only if they do not wrap.
    exact: Vec<(Val, bool)>,
    groups: Vec<Group>,
    /// By block.
    guards: Vec<Option<Guard>>,
    /// Words of the stack in use.
    words: u32,
    /// Words for one predicate inside another.
    spare: u32,
    bits: u32,
    label: Label,
}

/// The registers of a function that a head may test.
pub(crate) fn testable(f: &Function, launch: &LaunchShape) -> Set {
    let courses = courses(f, launch, &n_definitions(f));
    let mut set = Set::new(f.regs.len());
    courses.iter().enumerate().filter(|(_, c)| c.is_some()).for_each(|(r, _)| {
        set.add(r);
    });
    set
}

fn n_definitions(f: &Function) -> Vec<u32> {
    let mut n = vec![0; f.regs.len()];
    for b in &f.blocks {
        b.insts.iter().flat_map(|i| &i.dst).chain(b.term.result().iter()).for_each(|d| n[d.idx()] += 1);
    }
    n
}

fn courses(f: &Function, launch: &LaunchShape, defs: &[u32]) -> Vec<Option<Course>> {
    let mut of: Vec<Option<Course>> = vec![None; f.regs.len()];
    let mut params: Vec<Option<u32>> = vec![None; f.regs.len()];
    let warp_ops = f.blocks.iter().flat_map(|b| &b.insts).filter(|i| i.op.is_warp_sync());
    // Lanes that are parked find their operands in the context.
    let kept: Vec<Reg> = warp_ops.flat_map(|i| &i.src).filter_map(|v| reg(*v)).collect();
    loop {
        let mut changed = false;
        for inst in f.blocks.iter().flat_map(|b| &b.insts) {
            let is_alone = inst.dst.iter().all(|d| defs[d.idx()] == 1 && !kept.contains(d));
            let is_new = inst.dst.first().is_some_and(|d| of[d.idx()].is_none());
            if !is_alone || !is_new || inst.guarded {
                continue;
            }
            if let (Op::ParamAddr { offset }, [d]) = (inst.op, inst.dst.as_slice()) {
                params[d.idx()] = Some(offset);
            }
            let source = |v: &Val| match v {
                Val::Imm(..) => Some(Course { is_linear: false, by_cta: false }),
                Val::Reg(r) => of[r.idx()],
            };
            if let Some(c) = course(f, inst, launch, &source, &params) {
                inst.dst.iter().for_each(|d| of[d.idx()] = Some(c));
                changed = true;
            }
        }
        if !changed {
            return of;
        }
    }
}

fn reg(v: Val) -> Option<Reg> {
    match v {
        Val::Reg(r) => Some(r),
        Val::Imm(..) => None,
    }
}

fn course(
    f: &Function,
    inst: &Inst,
    launch: &LaunchShape,
    source: &dyn Fn(&Val) -> Option<Course>,
    params: &[Option<u32>],
) -> Option<Course> {
    let constant = Course { is_linear: false, by_cta: false };
    let linear = Course { is_linear: true, by_cta: false };
    match inst.op {
        Op::Sreg(s) if shape_constant(s, launch).is_some() => Some(constant),
        Op::Sreg(Sreg::Ctaid(0..3)) => Some(Course { is_linear: false, by_cta: true }),
        Op::Sreg(Sreg::Nctaid(0..3) | Sreg::DynamicSmemSize | Sreg::Laneid) => Some(constant),
        Op::Sreg(Sreg::Warpid) => Some(linear),
        Op::Sreg(Sreg::Tid(i @ 0..3)) => tid_step(i, launch).map(|step| if step == 0 { constant } else { linear }),
        Op::ParamAddr { .. } | Op::SymAddr(_) | Op::SharedAddr(_) => Some(constant),
        Op::Cvta { space, .. } if space != StateSpace::SharedCluster => source(&inst.src[0]),
        Op::Load { .. } => {
            let class = AccessClass::of(inst)?;
            let offset = params[reg(class.address)?.idx()]?;
            let at = i64::from(offset).checked_add(class.offset)?;
            let fits = class.space == StateSpace::ParamEntry
                && class.order == Order::Weak
                && !class.is_single
                && class.wants_all()
                && at >= 0
                && at + class.bytes() <= i64::from(f.param_bytes)
                && at % class.bytes() == 0;
            fits.then_some(constant)
        }
        Op::Pure(op) if inst.dst.len() == 1 => {
            let sources: Vec<Course> = inst.src.iter().map(source).collect::<Option<_>>()?;
            let values: Vec<Option<u64>> = inst.src.iter().map(|v| crate::scalar::constant(*v)).collect();
            if !has_scalar_code(op, &values) {
                return None;
            }
            let by_cta = sources.iter().any(|s| s.by_cta);
            let n_linear = sources.iter().filter(|s| s.is_linear).count();
            let is_linear = match op {
                _ if n_linear == 0 => false,
                Pure::Mov(Ty::B32 | Ty::B64) | Pure::Add(Ty::B32 | Ty::B64) | Pure::Sub(Ty::B32 | Ty::B64) => true,
                Pure::Mul(Ty::B32 | Ty::B64) if n_linear == 1 => true,
                Pure::MulWide(Int { ty: Ty::B32, .. }) if n_linear == 1 => true,
                Pure::Shl(ty @ (Ty::B32 | Ty::B64)) if values[1]? < u64::from(ty.bits()) => true,
                Pure::Ext { bits: 32, from: Ty::B32, to: Ty::B64, .. } => true,
                Pure::Ext { bits: 32, from: Ty::B64, to: Ty::B32, .. } => true,
                _ => return None,
            };
            Some(Course { is_linear, by_cta })
        }
        _ => None,
    }
}

/// The step of a component of `%tid` of lane 0 from warp to warp; `None` if it is not even.
fn tid_step(i: u8, launch: &LaunchShape) -> Option<i64> {
    let [nx, ny, nz] = launch.ntid;
    let rows = |n: u32| (nz == 1).then_some(i64::from(n));
    match i {
        _ if launch.ntid[usize::from(i)] == 1 => Some(0),
        0 if nx == nx * ny * nz => Some(32),
        0 if nx == 32 || nx < 32 && 32u32.is_multiple_of(nx) && nx.is_multiple_of(4) => Some(0),
        1 if nx == 32 => rows(1),
        1 if nx < 32 && 32u32.is_multiple_of(nx) && nx.is_multiple_of(4) => rows(32 / nx),
        _ => None,
    }
}

impl Head {
    /// Decides what the head of a function does, and moves what belongs to a guard alone to the end of its block. `None`: nothing.
    pub(crate) fn new(plan: &mut Plan, label: Label) -> Option<Head> {
        let f = &plan.func;
        if !f.is_entry || plan.options.is_callee {
            return None;
        }
        let n = f.regs.len();
        let launch = plan.facts.shape;
        let mut head = Head {
            courses: courses(f, &launch, &plan.def_count),
            same: vec![None; n],
            linear: vec![None; n],
            insts: Vec::new(),
            checks: Vec::new(),
            exact: Vec::new(),
            groups: Vec::new(),
            guards: vec![None; f.blocks.len()],
            words: 0,
            spare: 0,
            bits: 0,
            label,
        };
        head.keep_those_with_words(plan);
        for inst in f.blocks.iter().flat_map(|b| &b.insts) {
            if let Op::Pure(op) = inst.op
                && plan.facts.is_tested(inst)
                && inst.dst.iter().all(|d| matches!(plan.facts.class[d.idx()], Class::Affine(_)))
            {
                let args: Vec<_> = inst.src.iter().map(|v| plan.facts.arg(*v)).collect();
                if let Some((k, signed)) = shape::pure(op, &args, true).and_then(|r| r.check) {
                    head.checks.push((inst.src[k], signed));
                }
            }
        }
        head.find_groups(plan);
        for b in 0..plan.func.blocks.len() {
            head.guards[b] = head.guard(plan, b);
        }
        head.give_words(plan);
        Some(head)
    }

    /// Leaves only what is affine and made of what is left.
    fn keep_those_with_words(&mut self, plan: &Plan) {
        loop {
            let mut changed = false;
            for inst in plan.func.blocks.iter().flat_map(|b| &b.insts) {
                for d in &inst.dst {
                    let Some(c) = self.courses[d.idx()] else { continue };
                    let fits = match plan.facts.class[d.idx()] {
                        Class::Affine(s) => (s.groups() <= 4) && (c.is_linear || s.groups() == 1),
                        Class::Unknown | Class::Varying => false,
                    };
                    let is_odd = |v: &Val| reg(*v).is_some_and(|r| plan.may_hold_odd_nan[r.idx()]);
                    let from = inst.src.iter().filter_map(|v| reg(*v)).all(|r| self.courses[r.idx()].is_some());
                    if !fits || !from || inst.src.iter().any(is_odd) {
                        inst.dst.iter().for_each(|d| self.courses[d.idx()] = None);
                        changed = true;
                    }
                }
            }
            if !changed {
                return;
            }
        }
    }

    fn course_of(&self, v: Val) -> Option<Course> {
        match v {
            Val::Imm(..) => Some(Course { is_linear: false, by_cta: false }),
            Val::Reg(r) => self.courses[r.idx()],
        }
    }

    fn find_groups(&mut self, plan: &Plan) {
        use StateSpace::{Const, Generic, Global, Shared};
        for inst in plan.func.blocks.iter().flat_map(|b| &b.insts) {
            let Some((class, r)) = AccessClass::of(inst).and_then(|c| Some((c, reg(c.address)?))) else { continue };
            let Class::Affine(s) = plan.facts.class[r.idx()] else { continue };
            let bytes = class.bytes();
            let fits = matches!(class.kind, Kind::Load | Kind::Store)
                && matches!(class.space, Global | Generic | Shared | Const)
                && class.order == Order::Weak
                && !class.is_single
                && class.wants_all()
                && self.courses[r.idx()].is_some()
                && s.is_regular(bytes)
                && class.offset % bytes == 0
                && i32::try_from(class.offset).is_ok();
            if !fits {
                continue;
            }
            let key = (r, class.space, class.kind, bytes);
            match self.groups.iter_mut().find(|g| g.key == key) {
                Some(g) => (g.low, g.high) = (g.low.min(class.offset), g.high.max(class.offset)),
                None if self.bits < 20 => {
                    let bit = 1 << self.bits;
                    self.bits += 1;
                    self.groups.push(Group { key, low: class.offset, high: class.offset, bit, first: None });
                }
                None => {}
            }
        }
    }

    /// Whether a comparison is one that the head may decide.
    fn decides(&self, plan: &Plan, inst: &Inst) -> bool {
        let Op::Pure(op) = inst.op else { return false };
        let known = |v: &Val| self.course_of(*v).is_some();
        match op {
            Pure::ICmp(cmp, Int { ty: Ty::B32, .. }) => {
                use Cmp::*;
                let counts = inst.src.iter().filter(|v| self.course_of(**v).is_some_and(|c| c.is_linear)).count();
                let by_lane = |v: &&Val| plan.facts.arg(**v).shape.is_some_and(|s| !s.is_uniform());
                let fits = counts + inst.src.iter().filter(by_lane).count() > 0;
                matches!(cmp, Lt | Le | Gt | Ge | Eq | Ne) && inst.src.iter().all(known) && fits
            }
            Pure::And(Ty::P) | Pure::Or(Ty::P) | Pure::Not(Ty::P) => true,
            _ => false,
        }
    }

    /// The guard at the end of a block, if the head may decide it.
    fn guard(&mut self, plan: &mut Plan, b: usize) -> Option<Guard> {
        let f = &plan.func;
        let Term::Branch { cond: Val::Reg(cond), then, otherwise } = f.blocks[b].term else { return None };
        if then == otherwise || self.bits > 28 || plan.facts.arg(Val::Reg(cond)).shape.is_some_and(|s| s.is_uniform()) {
            return None;
        }
        let insts = &f.blocks[b].insts;
        let mut slice: Vec<usize> = Vec::new();
        let mut work = vec![cond];
        while let Some(p) = work.pop() {
            let i = insts.iter().position(|i| i.dst.contains(&p))?;
            let inst = &insts[i];
            if slice.contains(&i) {
                continue;
            }
            if plan.def_count[p.idx()] != 1 || inst.guarded || !self.decides(plan, inst) {
                return None;
            }
            slice.push(i);
            if !matches!(inst.op, Op::Pure(Pure::ICmp(..))) {
                for v in &inst.src {
                    work.push(reg(*v)?);
                }
            } else if inst.src.iter().filter_map(|v| reg(*v)).any(|r| plan.def_count[r.idx()] != 1) {
                return None;
            }
        }
        // Nobody else may want them.
        let made: Vec<Reg> = slice.iter().flat_map(|i| insts[*i].dst.clone()).collect();
        let uses = |v: &Val| reg(*v).is_some_and(|r| made.contains(&r));
        for (x, block) in f.blocks.iter().enumerate() {
            let in_slice = |i: usize| x == b && slice.contains(&i);
            if block.insts.iter().enumerate().any(|(i, inst)| !in_slice(i) && inst.src.iter().any(uses))
                || (x != b && block.term.sources().iter().any(uses))
            {
                return None;
            }
        }
        let bits = (1 << self.bits, 2 << self.bits);
        self.bits += 2;
        let block = &mut plan.func.blocks[b];
        let mut rest = Vec::new();
        let mut last = Vec::new();
        for (i, inst) in std::mem::take(&mut block.insts).into_iter().enumerate() {
            if slice.contains(&i) { last.push(inst) } else { rest.push(inst) }
        }
        let from = rest.len();
        rest.append(&mut last);
        block.insts = rest;
        Some(Guard { from, cond, bits })
    }

    /// Words for all that the head computes: what is the same in all warps, and what of linear values tests want.
    fn give_words(&mut self, plan: &Plan) {
        let f = &plan.func;
        let mut wanted = Set::new(f.regs.len());
        let mut work: Vec<Reg> = self.groups.iter().map(|g| g.key.0).collect();
        work.extend(self.checks.iter().filter_map(|(v, _)| reg(*v)));
        work.extend(self.guards.iter().flatten().map(|g| g.cond));
        let all = || f.blocks.iter().enumerate().flat_map(|(b, x)| x.insts.iter().enumerate().map(move |(i, inst)| (b, i, inst)));
        while let Some(r) = work.pop() {
            if wanted.add(r.idx()) {
                let made = all().filter(|(_, _, inst)| inst.dst.contains(&r));
                work.extend(made.flat_map(|(_, _, inst)| inst.src.iter().filter_map(|v| reg(*v))));
            }
        }
        let take = |words: &mut u32, n: u32| {
            let at = FRAME_WORDS + 8 * *words;
            *words += n;
            at
        };
        // In the order of their needs.
        let mut made: Vec<(usize, usize)> = Vec::new();
        loop {
            let mut changed = false;
            for (b, i, inst) in all() {
                let Some(d) = inst.dst.first() else { continue };
                let Some(c) = self.courses[d.idx()] else { continue };
                let has = |r: Reg| self.same[r.idx()].is_some() || self.linear[r.idx()].is_some();
                let ready = inst.src.iter().filter_map(|v| reg(*v)).all(has);
                let room = self.words < MOST_WORDS;
                if has(*d) || !ready || !room || c.is_linear && !wanted.has(d.idx()) {
                    continue;
                }
                for d in &inst.dst {
                    if c.is_linear {
                        let groups = plan.facts.class[d.idx()].shape().map_or(1, |s| s.groups());
                        let base = take(&mut self.words, groups as u32);
                        let step = take(&mut self.words, 1);
                        self.linear[d.idx()] = Some((base, step));
                    } else {
                        self.same[d.idx()] = Some(take(&mut self.words, 1));
                    }
                }
                made.push((b, i));
                changed = true;
            }
            if !changed {
                break;
            }
        }
        for (b, i) in &made {
            let inst = &f.blocks[*b].insts[*i];
            let signed = match inst.op {
                Op::Pure(Pure::Ext { signed, from: Ty::B32, to: Ty::B64, .. }) => signed,
                Op::Pure(Pure::MulWide(int)) => int.signed,
                _ => continue,
            };
            let linear = inst.src.iter().filter(|v| reg(**v).is_some_and(|r| self.linear[r.idx()].is_some()));
            self.exact.extend(linear.map(|v| (*v, signed)));
        }
        self.insts = made;
        // What has no words is not tested.
        let has = |v: Val, h: &Head| reg(v).is_none_or(|r| h.same[r.idx()].is_some() || h.linear[r.idx()].is_some());
        let groups = std::mem::take(&mut self.groups);
        self.groups = groups.into_iter().filter(|g| has(Val::Reg(g.key.0), self)).collect();
        for b in 0..self.guards.len() {
            if let Some(g) = self.guards[b] {
                let compares = f.blocks[b].insts[g.from..].iter().filter(|i| matches!(i.op, Op::Pure(Pure::ICmp(..))));
                if !compares.flat_map(|i| &i.src).all(|v| has(*v, self)) {
                    self.guards[b] = None;
                }
            }
        }
        self.spare = self.words;
        self.words += 2 * 16;
    }

    /// Whether all that the code rests on is tested here.
    pub(crate) fn is_whole(&self) -> bool {
        let has = |v: Val| reg(v).is_none_or(|r| self.same[r.idx()].is_some() || self.linear[r.idx()].is_some());
        self.checks.iter().all(|(v, _)| has(*v))
    }

    /// Whether the code rests on a test.
    pub(crate) fn rests(&self) -> bool {
        !self.checks.is_empty()
    }

    /// Bytes of the stack.
    pub(crate) fn bytes(&self) -> i32 {
        (8 * self.words).next_multiple_of(16).cast_signed()
    }

    /// Whether an instruction is done in the head alone.
    pub(crate) fn has(&self, inst: &Inst) -> bool {
        !inst.dst.is_empty() && inst.dst.iter().all(|d| self.same[d.idx()].is_some())
    }

    /// The subroutine.
    pub(crate) fn label(&self) -> Label {
        self.label
    }

    /// The guard of a block whose own instructions begin at `i`.
    pub(crate) fn guard_at(&self, b: usize, i: usize) -> Option<Guard> {
        self.guards[b].filter(|g| g.from == i)
    }
}

const R8: Register = Register::R8;
const R9: Register = Register::R9;

impl Emit<'_> {
    /// The bit of an access that the head may decide about.
    pub(crate) fn decided_access(&mut self, x: &Access) -> Option<u32> {
        let Val::Reg(r) = x.class.address else { return None };
        let key = (r, x.class.space, x.class.kind, x.class.bytes());
        if !matches!(x.limits, Limits::Heap(_) | Limits::Shared) {
            return None;
        }
        let g = self.head.as_mut()?.groups.iter_mut().find(|g| g.key == key)?;
        let fits = x.class.offset >= g.low && x.class.offset <= g.high && x.class.order == Order::Weak;
        if !fits || x.class.is_single || !x.class.wants_all() {
            return None;
        }
        g.first.get_or_insert(*x);
        Some(g.bit)
    }

    /// Before the instructions of a guard: where the head decided about it, they are passed over. Returns labels for the two ways on.
    pub(crate) fn pass_guard(&mut self, b: usize, guard: Guard) -> (Label, Label) {
        let (yes, no) = (self.a.label(), self.a.label());
        self.a.imm(Code::Test_rm32_imm32, DECIDED, guard.bits.0.cast_signed());
        self.a.jump(Code::Jne_rel32_64, yes);
        self.a.imm(Code::Test_rm32_imm32, DECIDED, guard.bits.1.cast_signed());
        self.a.jump(Code::Jne_rel32_64, no);
        if let [inst] = &self.f.blocks[b].insts[guard.from..] {
            self.decide_in_warp(inst, yes, no);
        }
        (yes, no)
    }

    /// A comparison of an affine value with a uniform one, by the ends of the warp.
    fn decide_in_warp(&mut self, inst: &Inst, yes: Label, no: Label) {
        let Op::Pure(Pure::ICmp(cmp, int)) = inst.op else { return };
        let shapes = [0, 1].map(|i| self.shape(inst.src[i]));
        let (Some(s), Some(t)) = (shapes[0], shapes[1]) else { return };
        let is_plain = |s: &Shape| s.groups() == 1 && s.no_wrap(32, int.signed);
        if !t.is_uniform() || !is_plain(&s) {
            return;
        }
        let (lo, hi) = s.span(0);
        let (Ok(lo), Ok(hi)) = (i32::try_from(lo), i32::try_from(hi)) else { return };
        // The end where it is hardest, and the one where it is easiest.
        let (hard, easy, all, none) = match (cmp, int.signed) {
            (Cmp::Lt, true) => (hi, lo, Code::Jl_rel32_64, Code::Jge_rel32_64),
            (Cmp::Lt, false) => (hi, lo, Code::Jb_rel32_64, Code::Jae_rel32_64),
            (Cmp::Le, true) => (hi, lo, Code::Jle_rel32_64, Code::Jg_rel32_64),
            (Cmp::Le, false) => (hi, lo, Code::Jbe_rel32_64, Code::Ja_rel32_64),
            (Cmp::Gt, true) => (lo, hi, Code::Jg_rel32_64, Code::Jle_rel32_64),
            (Cmp::Gt, false) => (lo, hi, Code::Ja_rel32_64, Code::Jbe_rel32_64),
            (Cmp::Ge, true) => (lo, hi, Code::Jge_rel32_64, Code::Jl_rel32_64),
            (Cmp::Ge, false) => (lo, hi, Code::Jae_rel32_64, Code::Jb_rel32_64),
            _ => return,
        };
        self.lane_value(inst.src[0], 0, RAX);
        self.lane_value(inst.src[1], 0, RCX);
        for (by, jump, to) in [(hard, all, yes), (easy, none, no)] {
            self.a.op2(Code::Lea_r32_m, EDX, crate::asm::Mem::at(RAX, by));
            self.a.op2(Code::Cmp_r32_rm32, EDX, ECX);
            self.a.jump(jump, to);
        }
    }

    /// The subroutine: not zero in `eax` if the code does not hold for this CTA.
    pub(crate) fn emit_head(&mut self) {
        let Some(head) = self.head.take() else { return };
        self.a.bind(head.label);
        // The return address is below the words: it is kept in a register that nothing here uses.
        self.a.op1(Code::Pop_r64, Register::R13);
        (self.in_part, self.in_head) = (false, true);
        let was = self.places.of.clone();
        for (r, l) in head.linear.iter().enumerate() {
            if let Some((base, _)) = l {
                self.places.of[r] = Place::Words(*base);
            }
        }
        let f = self.f;
        for &(b, i) in &head.insts {
            self.at = (b, i);
            self.scratch.0 = 0;
            let inst = &f.blocks[b].insts[i];
            self.head_inst(inst);
            self.step(&head, inst);
        }
        let [broken, none, end] = std::array::from_fn(|_| self.a.label());
        for (v, signed) in &head.checks {
            self.ends(&head, *v, *signed, None, broken);
        }
        self.a.number(Register::R15, 0);
        for (v, signed) in &head.exact {
            self.ends(&head, *v, *signed, None, none);
        }
        for (b, guard) in head.guards.iter().enumerate() {
            if let Some(guard) = guard {
                self.decide(&head, b, *guard);
            }
        }
        for g in &head.groups {
            self.decide_bounds(&head, g);
        }
        self.a.bind(none);
        self.a.op2(Code::Mov_r32_rm32, DECIDED, Register::R15D);
        self.a.number(RAX, 0);
        self.a.jump(Code::Jmp_rel32_64, end);
        self.a.bind(broken);
        self.a.number(RAX, 1);
        self.a.bind(end);
        self.a.op1(Code::Jmp_rm64, Register::R13);
        self.places.of = was;
        self.in_head = false;
        self.head = Some(head);
    }

    /// A value of the head, as it is in warp 0.
    fn head_inst(&mut self, inst: &Inst) {
        match inst.op {
            Op::Pure(op) => self.scalar_op(inst, op),
            Op::Sreg(s) => self.scalar_sreg(inst.dst[0], s),
            Op::Cvta { space, to_space } => self.scalar_cvta(inst, space, to_space),
            Op::Load { .. } => self.access(inst),
            op => self.address(inst.dst[0], op),
        }
    }

    /// The step of a linear value.
    fn step(&mut self, head: &Head, inst: &Inst) {
        let Some((_, to)) = inst.dst.first().and_then(|d| head.linear[d.idx()]) else { return };
        let ty = self.f.regs[inst.dst[0].idx()];
        match inst.op {
            Op::Sreg(Sreg::Warpid) => self.a.number(RAX, 1),
            Op::Sreg(Sreg::Tid(i)) => {
                let step = tid_step(i, &self.plan.facts.shape).unwrap_or(0);
                self.a.number(RAX, step.cast_unsigned());
            }
            Op::Cvta { .. } => self.step_of(head, inst.src[0], RAX),
            Op::Pure(op) => match op {
                Pure::Add(_) | Pure::Sub(_) => {
                    self.step_of(head, inst.src[0], RAX);
                    self.step_of(head, inst.src[1], RCX);
                    let code = if matches!(op, Pure::Add(_)) { Code::Add_r64_rm64 } else { Code::Sub_r64_rm64 };
                    self.a.op2(code, RAX, RCX);
                }
                Pure::Mul(_) | Pure::MulWide(_) => {
                    let is_linear = |v: Val| reg(v).is_some_and(|r| head.linear[r.idx()].is_some());
                    let (a, b) = if is_linear(inst.src[0]) { (0, 1) } else { (1, 0) };
                    self.step_of(head, inst.src[a], RAX);
                    self.lane_value(inst.src[b], 0, RCX);
                    if matches!(op, Pure::MulWide(Int { signed: true, .. })) {
                        self.a.op2(Code::Movsxd_r64_rm32, RCX, ECX);
                    }
                    self.a.op2(Code::Imul_r64_rm64, RAX, RCX);
                }
                Pure::Shl(_) => {
                    self.step_of(head, inst.src[0], RAX);
                    let by = crate::scalar::constant(inst.src[1]).unwrap_or(0);
                    self.a.imm8(Code::Shl_rm64_imm8, RAX, by as u32);
                }
                _ => self.step_of(head, inst.src[0], RAX),
            },
            _ => self.a.number(RAX, 0),
        }
        if ty == Ty::B32 {
            // A step of 32 bits is one modulo their width.
            self.a.op2(Code::Movsxd_r64_rm32, RAX, EAX);
        }
        self.store64(ctx(to), RAX);
    }

    fn step_of(&mut self, head: &Head, v: Val, to: Register) {
        match reg(v).and_then(|r| head.linear[r.idx()]) {
            Some((_, at)) => self.load64(to, ctx(at)),
            None => self.a.number(to, 0),
        }
    }

    /// The lowest value of all lanes of the CTA in `rax` and the highest in `rcx`, as 64-bit numbers; to `wraps` if a 32-bit one wraps, or the step is
    /// long. `group`: of one group of the shape; else of all of them. Uses `rdx`, `rsi`.
    fn ends(&mut self, head: &Head, v: Val, signed: bool, group: Option<usize>, wraps: Label) {
        let Some(shape) = self.shape(v) else { return };
        let is_short = self.ty(v) != Ty::B64;
        let last = i64::from(self.plan.facts.shape.ntid.iter().product::<u32>().div_ceil(32)) - 1;
        let groups = group.map_or(0..shape.groups(), |g| g..g + 1);
        for (k, g) in groups.enumerate() {
            let (lo, hi) = shape.span(g);
            let (low, high) = if k == 0 { (RAX, RCX) } else { (R8, R9) };
            self.lane_value(v, shape.first(g), low);
            if is_short && signed {
                self.a.op2(Code::Movsxd_r64_rm32, low, low32(low));
            }
            self.a.op2(Code::Mov_r64_rm64, high, low);
            let is_linear = reg(v).is_some_and(|r| head.linear[r.idx()].is_some());
            if is_linear {
                self.step_of(head, v, RDX);
                self.a.op2(Code::Movsxd_r64_rm32, RSI, EDX);
                self.a.op2(Code::Cmp_r64_rm64, RSI, RDX);
                self.a.jump(Code::Jne_rel32_64, wraps);
                self.a.op2i(Code::Imul_r64_rm64_imm32, RDX, RDX, last as u32);
                // Down or up.
                let up = self.a.label();
                self.a.op2(Code::Test_rm64_r64, RDX, RDX);
                self.a.op2(Code::Mov_r64_rm64, RSI, RDX);
                // Flags stay.
                self.a.imm(Code::Mov_rm64_imm32, RDX, 0);
                self.a.jump(Code::Jns_rel32_64, up);
                self.a.op2(Code::Xchg_rm64_r64, RSI, RDX);
                self.a.bind(up);
                self.a.op2(Code::Add_r64_rm64, low, RDX);
                self.a.op2(Code::Add_r64_rm64, high, RSI);
            }
            for (r, by) in [(low, lo), (high, hi)] {
                self.add_number(r, by);
                if is_short {
                    if signed {
                        self.a.op2(Code::Movsxd_r64_rm32, RDX, low32(r));
                    } else {
                        self.a.op2(Code::Mov_r32_rm32, EDX, low32(r));
                    }
                    self.a.op2(Code::Cmp_r64_rm64, RDX, r);
                    self.a.jump(Code::Jne_rel32_64, wraps);
                }
            }
            if k > 0 {
                self.a.op2(Code::Cmp_r64_rm64, R8, RAX);
                self.a.op2(Code::Cmovl_r64_rm64, RAX, R8);
                self.a.op2(Code::Cmp_r64_rm64, R9, RCX);
                self.a.op2(Code::Cmovg_r64_rm64, RCX, R9);
            }
        }
    }

    /// Sets the bits of a guard.
    fn decide(&mut self, head: &Head, b: usize, guard: Guard) {
        let f = self.f;
        let insts = &f.blocks[b].insts[guard.from..];
        let word = |k: usize| ctx(FRAME_WORDS + 8 * (head.spare + k as u32));
        if insts.len() > 16 {
            return;
        }
        // In the order of the block: each has a word with bit 0 for all lanes and bit 1 for none.
        let of = |v: Val| insts.iter().position(|i| reg(v).is_some_and(|r| i.dst.contains(&r)));
        for (k, inst) in insts.iter().enumerate() {
            match inst.op {
                Op::Pure(Pure::ICmp(cmp, int)) => self.decide_comparison(head, inst, cmp, int),
                Op::Pure(op) => {
                    let Some(a) = of(inst.src[0]) else { return };
                    self.load32(EAX, word(a));
                    if let Some(b) = inst.src.get(1).and_then(|v| of(*v)) {
                        // All of `and` is all of both, none is none of either; `or` is the other way.
                        let (all, none) = if matches!(op, Pure::And(_)) { (1, 2) } else { (2, 1) };
                        self.load32(ECX, word(b));
                        self.a.op2(Code::Mov_r32_rm32, EDX, EAX);
                        self.a.op2(Code::And_r32_rm32, EAX, ECX);
                        self.a.imm(Code::And_rm32_imm32, EAX, all);
                        self.a.op2(Code::Or_r32_rm32, EDX, ECX);
                        self.a.imm(Code::And_rm32_imm32, EDX, none);
                        self.a.op2(Code::Or_r32_rm32, EAX, EDX);
                    } else {
                        self.a.op2(Code::Mov_r32_rm32, ECX, EAX);
                        self.a.imm8(Code::Shr_rm32_imm8, ECX, 1);
                        self.a.op2(Code::Add_r32_rm32, EAX, EAX);
                        self.a.imm(Code::And_rm32_imm32, EAX, 2);
                        self.a.op2(Code::Or_r32_rm32, EAX, ECX);
                    }
                }
                _ => return,
            }
            self.store64(word(k), RAX);
        }
        let Some(cond) = of(Val::Reg(guard.cond)) else { return };
        self.load32(EAX, word(cond));
        self.a.imm8(Code::Shl_rm32_imm8, EAX, guard.bits.0.trailing_zeros());
        self.a.op2(Code::Or_r32_rm32, Register::R15D, EAX);
    }

    /// What is known of a comparison in all lanes of the CTA, in `eax`.
    fn decide_comparison(&mut self, head: &Head, inst: &Inst, cmp: Cmp, int: Int) {
        let [unknown, end] = std::array::from_fn(|_| self.a.label());
        let hold = |k: u32| ctx(FRAME_WORDS + 8 * (head.spare + 16 + k));
        self.ends(head, inst.src[1], int.signed, None, unknown);
        self.store64(hold(0), RAX);
        self.store64(hold(1), RCX);
        self.ends(head, inst.src[0], int.signed, None, unknown);
        self.load64(R8, hold(0));
        self.load64(R9, hold(1));
        // `a` is in `rax..=rcx`, `b` in `r8..=r9`, all of them numbers of 33 bits.
        let bits = |e: &mut Self, first: Register, second: Register, code: Code, bit: u32| {
            let no = e.a.label();
            e.a.op2(Code::Cmp_r64_rm64, first, second);
            e.a.jump(code, no);
            e.a.imm(Code::Or_rm32_imm32, EDX, bit.cast_signed());
            e.a.bind(no);
        };
        self.a.number(RDX, 0);
        let (lo, hi, lo2, hi2) = (RAX, RCX, R8, R9);
        match cmp {
            Cmp::Lt => {
                bits(self, hi, lo2, Code::Jge_rel32_64, 1);
                bits(self, lo, hi2, Code::Jl_rel32_64, 2);
            }
            Cmp::Le => {
                bits(self, hi, lo2, Code::Jg_rel32_64, 1);
                bits(self, lo, hi2, Code::Jle_rel32_64, 2);
            }
            Cmp::Gt => {
                bits(self, lo, hi2, Code::Jle_rel32_64, 1);
                bits(self, hi, lo2, Code::Jg_rel32_64, 2);
            }
            Cmp::Ge => {
                bits(self, lo, hi2, Code::Jl_rel32_64, 1);
                bits(self, hi, lo2, Code::Jge_rel32_64, 2);
            }
            Cmp::Eq | Cmp::Ne => {
                let apart = if cmp == Cmp::Eq { 2 } else { 1 };
                bits(self, hi, lo2, Code::Jge_rel32_64, apart);
                bits(self, lo, hi2, Code::Jle_rel32_64, apart);
            }
            _ => {}
        }
        self.a.op2(Code::Mov_r32_rm32, EAX, EDX);
        self.a.jump(Code::Jmp_rel32_64, end);
        self.a.bind(unknown);
        self.a.number(RAX, 0);
        self.a.bind(end);
    }

    /// Sets the bit of a group of accesses if all of them are right.
    fn decide_bounds(&mut self, head: &Head, g: &Group) {
        let Some(first) = &g.first else { return };
        let Some(shape) = self.shape(first.class.address) else { return };
        let failed = self.a.label();
        let x = Access { cold: failed, ..*first };
        let bytes = x.class.bytes();
        if bytes > 1 && reg(x.class.address).is_some_and(|r| head.linear[r.idx()].is_some()) {
            self.step_of(head, x.class.address, RAX);
            self.a.imm(Code::Test_rm32_imm32, EAX, (bytes - 1) as i32);
            self.a.jump(Code::Jne_rel32_64, failed);
        }
        for group in 0..shape.groups() {
            self.ends(head, x.class.address, false, Some(group), failed);
            self.add_number(RAX, g.low);
            self.add_number(RCX, g.high);
            self.limits(&x);
            self.test(&x, RAX, false);
            self.test(&x, RCX, false);
        }
        self.a.imm(Code::Or_rm32_imm32, Register::R15D, g.bit.cast_signed());
        self.a.bind(failed);
    }

    /// Runs the head.
    pub(crate) fn begin_cta(&mut self, deopt: Label) {
        let Some(head) = &self.head else { return };
        let label = head.label();
        self.a.jump(Code::Call_rel32_64, label);
        self.a.op2(Code::Test_rm32_r32, EAX, EAX);
        self.a.jump(Code::Jne_rel32_64, deopt);
    }
}
