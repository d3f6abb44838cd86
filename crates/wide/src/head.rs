//! What is done once a CTA instead of once a warp: values that all warps share, tests of addresses, and guards.
//!
//! # The model
//! Most integers of a kernel are functions of parameters, of `%ctaid` and of the number of the warp, and of nothing else. Those that do not depend on the
//! warp (*same*) are computed in the *head*, a subroutine that runs when a CTA begins and whenever the code is entered, and lie in words of the stack.
//! Of those that go up by an even step from warp to warp, or along ranks of warps and from one rank to the next (*linear*), the head knows the value in warp 0 and the steps, hence the
//! lowest and the highest of the whole CTA. So it decides once
//!
//! - that a 32-bit value which is extended to 64 bits does not wrap in any lane: the code that follows rests on it, and a CTA where it
//!   does not hold leaves with `Deopt` before anything has happened;
//! - that all accesses through an address are in bounds, in all turns of a loop where it rises (`rising`), or that a comparison holds in all lanes or in none: a bit of
//!   [`DECIDED`] for each. Where the bit is not set, each warp tests by itself.

mod code;
mod courses;
mod ends;
mod fixed;
mod known;
mod lanes;
mod rims;
mod rises;
mod row;
mod sums;
mod tables;

use handloom_ir::simt::{Inst, Op, Pure, Reg, Term, Val};
use handloom_ir::types::{Cmp, Int, Sreg, StateSpace, Ty};
use handloom_plan::Plan;
use handloom_plan::access::{AccessClass, Kind};
use handloom_plan::analysis::classes::Class;
use handloom_plan::analysis::shape::{self, May};
use iced_x86::Register;
use smallvec::SmallVec;

pub(crate) use self::courses::testable;
use self::courses::{ACROSS, Course, DOWN, Ranks, Steps, courses, tid_steps};
pub(crate) use self::row::MOST_OF_STRIP;
use crate::access::{Access, is_of_elements, reg};
use crate::asm::Label;
use crate::climbing::Climb;
use crate::rising::{Rising, Turns};
use crate::table::has_scalar_code;

/// Bits of what was decided.
pub(crate) const DECIDED: Register = Register::R14D;

/// Words of the stack that a head may use.
const MOST_WORDS: u32 = 600;

/// Offsets from here on are of words of the stack, not of a context.
pub(crate) const FRAME_WORDS: u32 = 1 << 28;

/// Accesses that are tested together.
struct Group {
    key: (Reg, StateSpace, Kind, i64),
    /// The value that the head knows: the address, or the first value of one that rises.
    from: Reg,
    /// The offsets between which accesses are of the group.
    low: i64,
    high: i64,
    /// What is added to the lowest and to the highest address of all lanes to find the ends of what is accessed: `low` and `high`, or less where some do nothing (`lanes`, `tables`).
    begin: i64,
    end: i64,
    bit: u32,
    /// The block whose guard all of them are behind, if it writes down the lanes that go (`rims`).
    rim: Option<usize>,
    /// The site of the first that was emitted, with what it is.
    first: Option<Access>,
}

impl Group {
    /// Whether an access through its address is of its kind.
    fn has(&self, class: &AccessClass) -> bool {
        (class.space, class.kind, class.bytes()) == (self.key.1, self.key.2, self.key.3)
    }

    /// Whether what is decided about the group says that an access through its address, of its kind, is right.
    fn covers(&self, class: &AccessClass) -> bool {
        is_of_elements(class) && (self.low..=self.high).contains(&class.offset)
    }
}

/// A branch on comparisons of linear values.
#[derive(Clone, Copy)]
pub(crate) struct Guard {
    /// The first of the instructions that are done for the branch alone, at the end of the block.
    pub(crate) from: usize,
    /// The predicate.
    cond: Reg,
    /// The bits that say that it holds in all lanes, and in none.
    pub(crate) bits: (u32, u32),
    /// The lanes of each warp that do what is guarded: see `lanes`.
    lanes: Option<Table>,
}

/// A predicate that guards accesses.
#[derive(Clone)]
struct Known {
    cond: Reg,
    /// What makes it, by block and instruction, in order.
    insts: Vec<(usize, usize)>,
    /// The bits that say that it holds in all lanes, and in none.
    bits: (u32, u32),
}

/// Warps from one on that do nothing in a turn: a guard at its start sends them to its end.
#[derive(Clone, Copy)]
pub(crate) struct Idle {
    /// The word that holds how many do something.
    pub(crate) word: u32,
    /// The block whose barrier they come to; `None` for the end.
    pub(crate) barrier: Option<usize>,
    /// They are those where the first lane is at least the bound, not just above it.
    from_equal: bool,
}

/// How values go up from CTA to CTA.
struct Row {
    /// By register: its step; `None` of what does not differ between CTAs.
    steps: Vec<Option<i32>>,
    /// Values that must not wrap in all of the row, read as signed or not, as their steps are those of longer ones.
    checks: Vec<(Val, bool)>,
    /// Words that somebody reads, with their steps.
    rising: Vec<(u32, Ty, i32)>,
    /// Words of its own: see `row`.
    words: u32,
    /// The subroutine for the guards of one CTA of the row, where these may be decided about one by one.
    guards: Option<Label>,
}

/// What accesses of shared memory at constant addresses need.
#[derive(Clone, Copy)]
struct Fixed {
    bit: u32,
    /// The end of the last byte.
    end: u32,
}

/// The lanes of each warp that do what a guard guards, as words of the stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Table {
    /// The first of them.
    pub(crate) words: u32,
    /// The bit that says that they hold that.
    pub(crate) bit: u32,
    /// Whether the shape of the launch decides them: what is guarded is right for these lanes, and need not be for others (`tables`).
    pub(crate) is_known: bool,
}

/// The lanes that do what a guard guards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Going {
    /// Those of the only warp that does something in the turn.
    Known(u32),
    /// By warp.
    Written(Table),
}

/// A linear value.
#[derive(Clone, Copy)]
struct Linear {
    /// The words of its value in warp 0, by group of lanes.
    base: u32,
    /// The words of its steps.
    steps: Steps<u32>,
    /// The steps that are constants.
    numbers: Steps<Option<i64>>,
    /// Where the launch decides the others: three words of how far the lowest value of all warps is from that of warp 0, how far the highest, and how far these are from each other.
    reach: Option<u32>,
}

impl Linear {
    /// Its steps, if both are constants.
    fn known(&self) -> Option<Steps<i64>> {
        Some([self.numbers[ACROSS]?, self.numbers[DOWN]?])
    }
}

/// A step that a gang asked for.
struct KnownStep {
    of: Reg,
    way: usize,
    /// Its word.
    at: u32,
    /// The word to read it from.
    word: u32,
}

/// How far a value is from that of another warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Apart {
    /// A constant.
    pub(crate) number: i32,
    /// Words of the head, times numbers.
    pub(crate) words: Steps<Option<(u32, i32)>>,
}

/// How far something goes up in a loop.
struct Rise {
    turns: Turns,
    step: Val,
    /// The word that says it.
    word: u32,
}

/// What the head of a function does.
pub(crate) struct Head {
    ranks: Ranks,
    /// By register: whether it is computed in the head.
    courses: Vec<Option<Course>>,
    /// By register: the word of one that is the same in all warps.
    pub(crate) same: Vec<Option<u32>>,
    /// By register.
    linear: Vec<Option<Linear>>,
    /// By register: whether it is linear and needs words in the context only where somebody asks for them.
    lean: Vec<bool>,
    /// Steps that gangs asked for.
    steps_known: Vec<KnownStep>,
    /// Blocks and instructions that the head computes, in order.
    insts: Vec<(usize, usize)>,
    /// Values that code rests on not to wrap, read as signed or not.
    checks: Vec<(Val, bool)>,
    /// Sums that code rests on not to wrap in any turn of a loop.
    climbs: Vec<Climb>,
    /// The word that is not 0 where one of them wraps in all CTAs.
    broken: Option<u32>,
    /// How far what rises and what climbs goes.
    distances: Vec<Rise>,
    groups: Vec<Group>,
    /// Addresses that go up in loops by what the launch decides.
    rising: Vec<Rising>,
    /// Accesses at constant addresses.
    fixed: Option<Fixed>,
    /// By block.
    guards: Vec<Option<Guard>>,
    known: Vec<Known>,
    /// By block that ends in such a guard: the lanes of each warp that a guard of thread numbers and constants lets go on.
    tables: Vec<Option<Vec<u32>>>,
    /// By block that a turn starts at.
    idle: Vec<Option<Idle>>,
    /// Words of the stack in use.
    words: u32,
    /// Words for one predicate inside another.
    spare: u32,
    bits: u32,
    label: Label,
    of_launch: Label,
    /// How it is done once for several CTAs.
    row: Option<Row>,
}

impl Head {
    /// Decides what the head of a function does, and moves what belongs to a guard alone to the end of its block. `None`: nothing. `may_rest`: the code may rest on tests, and does on those
    /// of `climbs`.
    pub(crate) fn new(plan: &mut Plan, labels: [Label; 3], may_rest: bool, climbs: Vec<Climb>) -> Option<Head> {
        let f = &plan.func;
        if !f.is_entry || plan.options.is_callee {
            return None;
        }
        let n = f.regs.len();
        let launch = plan.facts.shape;
        let ranks = Ranks::of(f, &launch);
        let mut head = Head {
            ranks,
            courses: courses(f, &launch, ranks, &plan.def_count),
            same: vec![None; n],
            linear: vec![None; n],
            lean: vec![false; n],
            steps_known: Vec::new(),
            insts: Vec::new(),
            checks: Vec::new(),
            climbs,
            broken: None,
            distances: Vec::new(),
            groups: Vec::new(),
            rising: Vec::new(),
            fixed: None,
            guards: vec![None; f.blocks.len()],
            known: Vec::new(),
            tables: vec![None; f.blocks.len()],
            idle: vec![None; f.blocks.len()],
            words: 0,
            spare: 0,
            bits: 0,
            label: labels[0],
            of_launch: labels[1],
            row: None,
        };
        head.keep_those_with_words(plan, may_rest);
        for inst in f.blocks.iter().flat_map(|b| &b.insts) {
            if let Op::Pure(op) = inst.op
                && plan.facts.is_tested(inst)
                && inst.dst.iter().all(|d| matches!(plan.facts.class[d.idx()], Class::Affine(_)))
            {
                let args: SmallVec<[_; 3]> = inst.src.iter().map(|v| plan.facts.arg(*v)).collect();
                if let Some((k, signed)) = shape::pure(op, &args, May { test: true, flip: true }).and_then(|r| r.check)
                {
                    head.checks.push((inst.src[k], signed));
                }
            }
        }
        head.find_rising(plan);
        head.find_groups(plan);
        head.find_fixed(plan);
        for b in 0..plan.func.blocks.len() {
            head.guards[b] = head.guard(plan, b);
        }
        head.find_known(plan);
        head.give_words(plan);
        head.leave_known_with_words(plan);
        head.give_lanes(plan);
        head.find_lean(plan);
        for b in 0..plan.func.blocks.len() {
            head.idle[b] = head.find_idle(plan, b);
        }
        head.give_known_lanes(plan);
        head.leave_out_idle(plan);
        head.find_rims(plan);
        head.row = head.find_row(plan, labels[2]);
        Some(head)
    }

    /// Leaves only what is affine and made of what is left, without what rests on a test that it does not wrap from warp to warp where that may not be.
    fn keep_those_with_words(&mut self, plan: &Plan, may_rest: bool) {
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
                    let is_longer =
                        matches!(inst.op, Op::Pure(Pure::MulWide(_) | Pure::Ext { from: Ty::B32, to: Ty::B64, .. }));
                    // Of those cut out of numbers of threads, lane 0 is known.
                    let is_cut = c.is_linear && matches!(inst.op, Op::Pure(Pure::And(_) | Pure::Shr(_)));
                    let fits = fits && !(is_cut && plan.facts.class[d.idx()].shape().is_none_or(|s| s.groups() > 1));
                    // A product goes up alike in all lanes where its other factor is one number.
                    let is_product = c.is_linear && matches!(inst.op, Op::Pure(Pure::Mul(_) | Pure::MulWide(_)));
                    let is_one = |v: &Val| plan.facts.arg(*v).shape.is_some_and(|s| s.is_uniform());
                    let is_linear = |v: &Val| self.course_of(*v).is_some_and(|c| c.is_linear);
                    let fits = fits && !(is_product && inst.src.iter().any(|v| !is_linear(v) && !is_one(v)));
                    if !fits || !from || c.is_linear && is_longer && !may_rest || inst.src.iter().any(is_odd) {
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
            Val::Imm(x, _) => Some(Course::constant(x)),
            Val::Reg(r) => self.courses[r.idx()],
        }
    }

    fn find_groups(&mut self, plan: &Plan) {
        use StateSpace::{Const, Generic, Global, Shared};
        for inst in plan.func.blocks.iter().flat_map(|b| &b.insts) {
            let Some((class, r)) = AccessClass::of(inst).and_then(|c| Some((c, reg(c.address)?))) else { continue };
            let from = self.rises(r).and_then(|x| reg(x.first)).unwrap_or(r);
            let (Class::Affine(_), Class::Affine(s)) = (plan.facts.class[r.idx()], plan.facts.class[from.idx()]) else {
                continue;
            };
            let bytes = class.bytes();
            let fits = is_of_elements(&class)
                && matches!(class.space, Global | Generic | Shared | Const)
                && self.courses[from.idx()].is_some()
                && s.is_regular(bytes);
            if !fits {
                continue;
            }
            let key = (r, class.space, class.kind, bytes);
            match self.groups.iter_mut().find(|g| g.key == key) {
                Some(g) => (g.low, g.high) = (g.low.min(class.offset), g.high.max(class.offset)),
                None if self.bits < 20 => {
                    let bit = 1 << self.bits;
                    self.bits += 1;
                    let at = class.offset;
                    self.groups.push(Group {
                        key,
                        from,
                        low: at,
                        high: at,
                        begin: at,
                        end: at,
                        bit,
                        rim: None,
                        first: None,
                    });
                }
                None => {}
            }
        }
    }

    /// Whether a comparison is one that the head may decide: also one of what is the same in all lanes, beside others.
    fn decides(&self, plan: &Plan, inst: &Inst) -> bool {
        const FAR: i64 = 1 << 40;
        let Op::Pure(op) = inst.op else { return false };
        // Lanes lie so near each other that ends of 64 bits do not wrap unseen.
        let is_near = |s: shape::Shape| (0..s.groups()).map(|g| s.span(g)).all(|(lo, hi)| lo > -FAR && hi < FAR);
        let known = |v: &Val| self.course_of(*v).is_some() && plan.facts.arg(*v).shape.is_none_or(is_near);
        match op {
            Pure::ICmp(cmp, Int { ty: Ty::B32 | Ty::B64, .. }) => {
                use Cmp::*;
                matches!(cmp, Lt | Le | Gt | Ge | Eq | Ne) && inst.src.iter().all(known)
            }
            Pure::And(Ty::P) | Pure::Or(Ty::P) | Pure::Not(Ty::P) => true,
            _ => false,
        }
    }

    /// The guard at the end of a block, if the head may decide it.
    fn guard(&mut self, plan: &mut Plan, b: usize) -> Option<Guard> {
        let f = &plan.func;
        let Term::Branch { cond: Val::Reg(cond), then, otherwise } = f.blocks[b].term else { return None };
        let is_uniform = plan.facts.arg(Val::Reg(cond)).shape.is_some_and(|s| s.is_uniform());
        if then == otherwise || self.bits > 28 || is_uniform && !Head::guards_little(plan, b) {
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
        let by_warps = |i: &usize| insts[*i].src.iter().any(|v| self.course_of(*v).is_some_and(|c| c.is_linear));
        if is_uniform && !slice.iter().any(by_warps) {
            return None;
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
        // They are decided by what they compare, not computed.
        made.iter().for_each(|d| self.courses[d.idx()] = None);
        let bits = (1 << self.bits, 2 << self.bits);
        self.bits += 2;
        let from = plan.put_last(b, &slice);
        Some(Guard { from, cond, bits, lanes: None })
    }

    /// Words for all that the head computes: what is the same in all warps, and what of linear values tests want.
    fn give_words(&mut self, plan: &Plan) {
        let f = &plan.func;
        let all = || {
            f.blocks.iter().enumerate().flat_map(|(b, x)| x.insts.iter().enumerate().map(move |(i, inst)| (b, i, inst)))
        };
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
                if has(*d) || !ready || !room {
                    continue;
                }
                for d in &inst.dst {
                    if c.is_linear {
                        let groups = plan.facts.class[d.idx()].shape().map_or(1, |s| s.groups());
                        let base = take(&mut self.words, groups as u32);
                        let numbers = [ACROSS, DOWN].map(|way| self.constant_step(plan, inst, way));
                        let word = |n: Option<i64>| if n.is_none() { take(&mut self.words, 1) } else { 0 };
                        let steps = numbers.map(word);
                        self.linear[d.idx()] = Some(Linear { base, steps, numbers, reach: None });
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
            for v in linear {
                if !self.checks.contains(&(*v, signed)) {
                    self.checks.push((*v, signed));
                }
            }
        }
        self.insts = made;
        self.give_reaches(plan);
        // What has no words is not tested.
        let has = |v: Val, h: &Head| reg(v).is_none_or(|r| h.same[r.idx()].is_some() || h.linear[r.idx()].is_some());
        let groups = std::mem::take(&mut self.groups);
        let rises = |g: &Group, h: &Head| h.rises(g.key.0).is_none_or(|r| h.knows_rise(r));
        self.groups = groups.into_iter().filter(|g| has(Val::Reg(g.from), self) && rises(g, self)).collect();
        for b in 0..self.guards.len() {
            if let Some(g) = self.guards[b] {
                let compares = f.blocks[b].insts[g.from..].iter().filter(|i| matches!(i.op, Op::Pure(Pure::ICmp(..))));
                if !compares.flat_map(|i| &i.src).all(|v| has(*v, self)) {
                    self.guards[b] = None;
                }
            }
        }
        self.give_rises(plan);
        self.spare = self.words;
        self.words += 2 * 16;
    }

    /// A step of a value that is made of ones with words, if it is a constant.
    fn constant_step(&self, plan: &Plan, inst: &Inst, way: usize) -> Option<i64> {
        let of = |v: Val| self.linear_of(v).map_or(Some(0), |l| l.numbers[way]);
        let value = |i: usize| crate::table::constant(inst.src[i]);
        let step = match inst.op {
            Op::Sreg(s) => self.special_steps(plan, s)?[way],
            Op::Pure(Pure::And(_) | Pure::Shr(_)) => self.courses[inst.dst[0].idx()]?.known?.1[way],
            Op::Pure(Pure::Add(_)) => of(inst.src[0])?.wrapping_add(of(inst.src[1])?),
            Op::Pure(Pure::Sub(_)) => of(inst.src[0])?.wrapping_sub(of(inst.src[1])?),
            Op::Pure(Pure::Shl(_)) => of(inst.src[0])?.wrapping_shl(value(1)? as u32),
            Op::Pure(op @ (Pure::Mul(_) | Pure::MulWide(_))) => {
                let (by, step) = match (value(0), value(1)) {
                    (_, Some(by)) => (by, of(inst.src[0])?),
                    (Some(by), _) => (by, of(inst.src[1])?),
                    // One of both is the same in all warps.
                    (None, None) if inst.src.iter().all(|v| of(*v) == Some(0)) => return Some(0),
                    (None, None) => return None,
                };
                let is_signed = matches!(op, Pure::MulWide(Int { signed: true, .. }));
                let by = if is_signed { i64::from(by as u32 as i32) } else { by.cast_signed() };
                step.wrapping_mul(by)
            }
            _ => of(inst.src[0])?,
        };
        let is_short = plan.func.regs[inst.dst[0].idx()] == Ty::B32;
        Some(if is_short { i64::from(step as i32) } else { step })
    }

    /// Finds linear values that are wanted as addresses and in scalars alone.
    fn find_lean(&mut self, plan: &Plan) {
        let f = &plan.func;
        let mut lean: Vec<bool> = self.linear.iter().map(Option::is_some).collect();
        for (b, block) in f.blocks.iter().enumerate() {
            for (i, inst) in block.insts.iter().enumerate() {
                let is_affine = |d: &Reg| matches!(plan.facts.class[d.idx()], Class::Affine(_));
                let is_odd = |v: &Val| reg(*v).is_some_and(|r| plan.may_hold_odd_nan[r.idx()]);
                let is_guard = self.guards[b].is_some_and(|g| i >= g.from);
                let by_scalars = match inst.op {
                    Op::Pure(op) => {
                        let is_one = inst.dst.len() == 1 && inst.dst.iter().all(is_affine);
                        is_one && has_scalar_code(op, &inst.src) && !inst.src.iter().any(is_odd)
                    }
                    _ => false,
                };
                if self.has(inst) || self.is_linear(inst) || is_guard || by_scalars {
                    continue;
                }
                let is_access =
                    matches!(inst.op, Op::Load { .. } | Op::Store { .. } | Op::Atom { .. } | Op::Red { .. });
                let wanted = inst.src.iter().skip(usize::from(is_access));
                wanted.filter_map(|v| reg(*v)).for_each(|r| lean[r.idx()] = false);
            }
            block.term.sources().iter().filter_map(|v| reg(*v)).for_each(|r| lean[r.idx()] = false);
        }
        self.lean = lean;
    }

    /// Whether there is no code for an instruction.
    fn is_nothing(&self, inst: &Inst) -> bool {
        self.has(inst) || self.is_linear(inst) && inst.dst.iter().all(|d| self.lean[d.idx()])
    }

    /// Which warps do nothing if a turn starts at a block.
    fn find_idle(&mut self, plan: &Plan, b: usize) -> Option<Idle> {
        let f = &plan.func;
        let guard = self.guards[b]?;
        let (before, slice) = f.blocks[b].insts.split_at(guard.from);
        let ([inst], Term::Branch { then, otherwise, .. }) = (slice, &f.blocks[b].term) else { return None };
        let Op::Pure(Pure::ICmp(cmp, Int { ty: Ty::B32, .. })) = inst.op else { return None };
        let a = reg(inst.src[0])?;
        let rises = self.even_step(a).is_some_and(|n| n > 0);
        // One number, in all warps and all lanes.
        let is_one = plan.facts.arg(inst.src[1]).shape.is_some_and(|s| s.is_uniform());
        let is_same = is_one && reg(inst.src[1]).is_none_or(|r| self.same[r.idx()].is_some());
        let one_group = plan.facts.arg(inst.src[0]).shape.is_some_and(|s| s.groups() == 1);
        if !rises || !is_same || !one_group || !before.iter().all(|i| self.is_nothing(i)) {
            return None;
        }
        // Those above the bound do not go into the guarded block.
        let (to, from_equal) = match cmp {
            Cmp::Gt | Cmp::Ne => (*then, false),
            Cmp::Ge => (*then, true),
            Cmp::Le | Cmp::Eq => (*otherwise, false),
            Cmp::Lt => (*otherwise, true),
            _ => return None,
        };
        let end = &f.blocks[to.idx()];
        if plan.facts.masked.has(to.idx()) || !end.insts.iter().all(|i| self.is_nothing(i)) {
            return None;
        }
        let barrier = match end.term {
            Term::Barrier { .. } => Some(to.idx()),
            Term::Ret | Term::Exit if f.is_entry => None,
            _ => return None,
        };
        let word = FRAME_WORDS + 8 * self.words;
        self.words += 1;
        Some(Idle { word, barrier, from_equal })
    }

    /// Which warps do nothing in a turn that starts at a block.
    pub(crate) fn idle(&self, b: usize) -> Option<Idle> {
        self.idle[b]
    }

    /// Whether all that the code rests on is tested here.
    pub(crate) fn is_whole(&self, plan: &Plan) -> bool {
        let has = |v: Val| reg(v).is_none_or(|r| self.same[r.idx()].is_some() || self.linear[r.idx()].is_some());
        self.checks.iter().all(|(v, _)| has(*v))
            && self.climbs.iter().all(|c| has(c.first) && self.knows_climb(plan, c))
    }

    /// Whether the code rests on a test.
    pub(crate) fn rests(&self) -> bool {
        !self.checks.is_empty() || !self.climbs.is_empty()
    }

    /// Bytes of the stack.
    pub(crate) fn bytes(&self) -> i32 {
        (8 * self.words).next_multiple_of(16).cast_signed()
    }

    /// Whether an instruction is done in the head alone.
    pub(crate) fn has(&self, inst: &Inst) -> bool {
        !inst.dst.is_empty() && inst.dst.iter().all(|d| self.same[d.idx()].is_some())
    }

    /// Whether a block ends in a guard.
    pub(crate) fn has_guard(&self, b: usize) -> bool {
        self.guards[b].is_some()
    }

    /// The guard that a block ends in.
    pub(crate) fn guard_of(&self, b: usize) -> Option<Guard> {
        self.guards[b]
    }

    /// The bit of accesses through an address, if one was emitted that it covers and the access is another such.
    pub(crate) fn bit_of(&self, class: &AccessClass, address: Reg) -> Option<u32> {
        let key = (address, class.space, class.kind, class.bytes());
        let g = self.groups.iter().find(|g| g.key == key)?;
        (g.first.is_some() && g.covers(class)).then_some(g.bit)
    }

    /// What is known of a linear value.
    fn linear_of(&self, v: Val) -> Option<&Linear> {
        self.linear[reg(v)?.idx()].as_ref()
    }

    /// The steps of a special register that is linear.
    fn special_steps(&self, plan: &Plan, s: Sreg) -> Option<Steps<i64>> {
        match s {
            Sreg::Warpid => Some(self.ranks.in_order(1)),
            Sreg::Tid(i) => tid_steps(i, &plan.facts.shape, self.ranks),
            _ => None,
        }
    }

    /// The step of a value from each warp to the next, if it is a constant and the same for all.
    fn even_step(&self, r: Reg) -> Option<i64> {
        let [across, down] = self.linear[r.idx()]?.known()?;
        let is_even = self.ranks.across == 1 || self.ranks.down == 1 || down == across * i64::from(self.ranks.across);
        is_even.then_some(if self.ranks.across == 1 { down } else { across })
    }

    /// Whether a register is the same in all warps of a CTA.
    pub(crate) fn is_same_in_warps(&self, r: Reg) -> bool {
        self.same[r.idx()].is_some() || self.linear[r.idx()].is_some_and(|l| l.numbers == [Some(0); 2])
    }

    /// How much more a value is in one warp of a gang than in another one, by their places in the gang. Values of 32 bits that are addresses do not wrap. `None` also where constants are
    /// too large.
    pub(crate) fn apart(&self, r: Reg, from: usize, to: usize) -> Option<Apart> {
        if self.same[r.idx()].is_some() {
            return Some(Apart { number: 0, words: [None; 2] });
        }
        let l = self.linear[r.idx()]?;
        let (a, b) = (self.ranks.place(from), self.ranks.place(to));
        let (mut number, mut words) = (0_i64, [None; 2]);
        for way in [ACROSS, DOWN] {
            let n = b[way] - a[way];
            match l.numbers[way] {
                _ if n == 0 => {}
                Some(step) => number = number.checked_add(step.checked_mul(n)?)?,
                None => words[way] = Some((l.steps[way], i32::try_from(n).ok()?)),
            }
        }
        let number = i32::try_from(number).ok().filter(|by| by.unsigned_abs() < 1 << 24)?;
        Some(Apart { number, words })
    }

    /// Whether a value is as far from warp to warp everywhere.
    pub(crate) fn goes_evenly(&self, r: Reg) -> bool {
        self.ranks.across == 1 && self.apart(r, 0, 1).is_some()
    }

    /// The warps of a gang, before one of them, from which a value may be a constant away: the first one, those of its rank and of its file.
    pub(crate) fn neighbours(&self, member: usize) -> [usize; 3] {
        let file = member % self.ranks.across as usize;
        [0, member - file, file]
    }

    /// The words that hold how much more a linear value is from warp to warp, as far as that is no constant.
    fn step_words(&self, r: Reg) -> impl Iterator<Item = u32> {
        let l = self.linear[r.idx()];
        l.into_iter()
            .flat_map(|l| [ACROSS, DOWN].into_iter().filter(move |w| l.numbers[*w].is_none()).map(move |w| l.steps[w]))
    }

    /// Whether the result of an instruction is linear.
    pub(crate) fn is_linear(&self, inst: &Inst) -> bool {
        !inst.dst.is_empty() && inst.dst.iter().all(|d| self.linear[d.idx()].is_some())
    }

    /// How many warps before a warp of a gang the one stands that is in the same place of the rank before.
    pub(crate) fn warps_of_rank(&self) -> usize {
        self.ranks.across as usize
    }

    /// Whether the words of a linear result are in the context only where somebody asks for them.
    pub(crate) fn is_lean(&self, inst: &Inst) -> bool {
        inst.dst.iter().all(|d| self.lean[d.idx()])
    }

    /// The subroutine for what differs between CTAs.
    pub(crate) fn label(&self) -> Label {
        self.label
    }

    /// The subroutine that runs when the code is entered.
    pub(crate) fn of_launch(&self) -> Label {
        self.of_launch
    }

    /// Whether some comparison is of a value that differs between CTAs.
    fn is_by_cta<'i>(&self, insts: impl IntoIterator<Item = &'i Inst>) -> bool {
        insts.into_iter().flat_map(|i| &i.src).any(|v| self.course_of(*v).is_some_and(|c| c.by_cta))
    }

    /// The guard of a block whose own instructions begin at `i`.
    pub(crate) fn guard_at(&self, b: usize, i: usize) -> Option<Guard> {
        self.guards[b].filter(|g| g.from == i)
    }
}
