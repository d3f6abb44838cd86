//! Between which ends a value lies in all lanes of a CTA, and what that says of comparisons.
//!
//! # The model
//! A linear value goes up by a step from warp to warp. Where the step is made of what the launch decides, so are the step and how far the last warp is from the first one, down and up
//! (*reach*): words that are written once a launch and added once a CTA.

use handloom_ir::simt::{Inst, Op, Pure, Reg, Val};
use handloom_ir::types::{Cmp, Int, Ty};
use handloom_plan::Plan;
use iced_x86::{Code, Register};

use super::courses::{ACROSS, DOWN};
use super::{FRAME_WORDS, Head, Idle, reg};
use crate::access::Access;
use crate::asm::{Label, low32};
use crate::emit::*;

const R8: Register = Register::R8;
const R9: Register = Register::R9;
const R10: Register = Register::R10;

/// How far the last warp is said to be from the first one where a step is longer than 32 bits: further than memory reaches.
const NOWHERE: i64 = 1 << 60;

/// What the ends of two values say of a comparison of them.
struct Rule {
    /// The end of the first value, and that of the second one.
    of_high: bool,
    with_high: bool,
    /// How these are to compare: `Lt`, `Le`, `Gt` or `Ge`.
    cmp: Cmp,
    /// What is known then: bit 0 for all, bit 1 for none.
    bit: u32,
}

/// All that ends say of a comparison.
fn rules(cmp: Cmp) -> [Rule; 2] {
    let high = |cmp, bit| Rule { of_high: true, with_high: false, cmp, bit };
    let low = |cmp, bit| Rule { of_high: false, with_high: true, cmp, bit };
    match cmp {
        Cmp::Lt => [high(Cmp::Lt, 1), low(Cmp::Ge, 2)],
        Cmp::Le => [high(Cmp::Le, 1), low(Cmp::Gt, 2)],
        Cmp::Gt => [low(Cmp::Gt, 1), high(Cmp::Le, 2)],
        Cmp::Ge => [low(Cmp::Ge, 1), high(Cmp::Lt, 2)],
        _ => {
            let apart = if cmp == Cmp::Eq { 2 } else { 1 };
            [high(Cmp::Lt, apart), low(Cmp::Gt, apart)]
        }
    }
}

/// What a comparison compares with.
#[derive(Clone, Copy)]
enum Bound {
    /// Numbers between two ends.
    Between(Register, Register),
    Number(i32),
}

/// How far the highest address of lanes is from the lowest one: the sum of these.
#[derive(Clone, Copy)]
pub(super) struct Distance {
    number: i32,
    word: Option<u32>,
    /// From CTA to CTA of the row.
    row: i32,
}

impl Head {
    /// Words for the reach of linear values whose step the launch decides.
    pub(super) fn give_reaches(&mut self, plan: &Plan) {
        for &(b, i) in &self.insts {
            let inst = &plan.func.blocks[b].insts[i];
            let is_linear = |r: Reg| self.linear[r.idx()].is_some();
            let Some(d) = inst.dst.first().copied().filter(|d| is_linear(*d)) else { continue };
            // A factor that is not linear counts by its value.
            let is_factor = matches!(inst.op, Op::Pure(Pure::Mul(_) | Pure::MulWide(_)));
            let is_known = |r: Reg| match self.linear[r.idx()] {
                Some(l) => l.known().is_some() || l.reach.is_some(),
                None => !is_factor || self.courses[r.idx()].is_some_and(|c| !c.by_cta),
            };
            let is_launched = inst.src.iter().filter_map(|v| reg(*v)).all(is_known);
            if let Some(l) = self.linear[d.idx()].as_mut().filter(|l| is_launched && l.known().is_none()) {
                l.reach = Some(FRAME_WORDS + 8 * self.words);
                self.words += 3;
            }
        }
    }

    /// The ends of a value in all lanes of a CTA, if the shape of the launch decides them: as 64-bit numbers, `Some(None)` where one of 32 bits wraps.
    fn known_ends(&self, plan: &Plan, v: Val, signed: bool) -> Option<Option<(i64, i64)>> {
        let (ends, is_short) = match v {
            Val::Imm(x, Ty::B32) if signed => ((i64::from((x as u32).cast_signed()), 0, 0), true),
            Val::Imm(x, Ty::B32) => ((i64::from(x as u32), 0, 0), true),
            Val::Imm(x, _) => ((i64::try_from(x).ok().filter(|x| *x < 1 << 61)?, 0, 0), false),
            Val::Reg(r) => {
                let (base, steps) = self.courses[r.idx()].filter(|c| !c.by_cta)?.known?;
                let shape = plan.facts.class[r.idx()].shape().filter(|s| s.groups() == 1)?;
                let (lo, hi) = shape.span(0);
                let (down, up) = self.ranks.reach(steps)?;
                ((base, lo + down, hi + up), plan.func.regs[r.idx()] != Ty::B64)
            }
        };
        let (low, high) = (ends.0 + ends.1, ends.0 + ends.2);
        let range = if signed { i64::from(i32::MIN)..=i64::from(i32::MAX) } else { 0..=i64::from(u32::MAX) };
        let fits = !is_short || range.contains(&low) && range.contains(&high);
        Some(fits.then_some((low, high)))
    }

    /// What is known of a comparison in all lanes of a CTA by the shape of the launch alone: bit 0 for all, bit 1 for none.
    pub(super) fn known_comparison(&self, plan: &Plan, inst: &Inst, cmp: Cmp, int: Int) -> Option<u32> {
        let a = self.known_ends(plan, inst.src[0], int.signed)?;
        let b = self.known_ends(plan, inst.src[1], int.signed)?;
        let (Some(a), Some(b)) = (a, b) else { return Some(0) };
        let bit = |r: &Rule| {
            let (x, y) = (if r.of_high { a.1 } else { a.0 }, if r.with_high { b.1 } else { b.0 });
            let holds = match r.cmp {
                Cmp::Lt => x < y,
                Cmp::Le => x <= y,
                Cmp::Gt => x > y,
                _ => x >= y,
            };
            if holds { r.bit } else { 0 }
        };
        match cmp {
            Cmp::Eq if (a.0, a.1) == (b.1, b.0) => Some(1),
            Cmp::Ne if (a.0, a.1) == (b.1, b.0) => Some(2),
            _ => Some(rules(cmp).iter().fold(0, |m, r| m | bit(r))),
        }
    }

    /// Whether the shape of the launch alone says that the predicate of a guard holds in some lanes of each CTA and in others not: a way that rests on either is never gone.
    pub(crate) fn always_parts(&self, plan: &Plan, b: usize) -> bool {
        let Some(guard) = self.guards[b] else { return false };
        match &plan.func.blocks[b].insts[guard.from..] {
            [inst] if let Op::Pure(Pure::ICmp(cmp, int)) = inst.op => {
                self.known_comparison(plan, inst, cmp, int) == Some(0)
            }
            _ => false,
        }
    }

    /// How many warps from the first one on do something, if the shape of the launch decides it: see [`Idle`].
    pub(super) fn known_active(&self, plan: &Plan, inst: &Inst, signed: bool, idle: Idle) -> Option<u32> {
        let n = plan.facts.shape.n_warps();
        let step = self.even_step(reg(inst.src[0])?).filter(|s| *s > 0)?;
        let a = self.known_ends(plan, inst.src[0], signed)?;
        let b = self.known_ends(plan, inst.src[1], signed)?;
        let (Some(a), Some(b)) = (a, b) else { return Some(n) };
        let room = b.0 - a.0 - i64::from(idle.from_equal);
        Some(if room < 0 { 0 } else { u32::try_from(room / step + 1).unwrap_or(u32::MAX).min(n) })
    }

    /// Whether a value is one number in all lanes of a CTA, and of those of a row that are asked about together.
    fn is_one(&self, v: Val, is_uniform: bool) -> bool {
        let in_row = |r: Reg| self.row.as_ref().is_some_and(|row| row.step(r) != 0);
        is_uniform && reg(v).is_none_or(|r| self.linear[r.idx()].is_none() && !in_row(r))
    }
}

impl Emit<'_> {
    /// The steps of linear values that the launch decides, with their reach.
    pub(super) fn launched_steps(&mut self, head: &Head) {
        let f = self.f;
        for &(b, i) in &head.insts {
            let inst = &f.blocks[b].insts[i];
            let Some(l) = inst.dst.first().and_then(|d| head.linear[d.idx()]) else { continue };
            let Some(at) = l.reach else { continue };
            self.at = (b, i);
            let [fits, too_long] = std::array::from_fn(|_| self.a.label());
            let is_long = self.f.regs[inst.dst[0].idx()] == Ty::B64;
            let unknown = || [ACROSS, DOWN].into_iter().filter(|way| l.numbers[*way].is_none());
            unknown().for_each(|way| self.step_to(head, inst, way));
            for way in unknown().filter(|_| is_long) {
                self.a.op2(Code::Movsxd_r64_rm32, RSI, ctx(l.steps[way]));
                self.a.op2(Code::Cmp_r64_rm64, RSI, ctx(l.steps[way]));
                self.a.jump(Code::Jne_rel32_64, too_long);
            }
            let mut is_first = true;
            for (way, last) in (0..).zip(head.ranks.last()) {
                if l.numbers[way].is_some_and(|n| n == 0 || last == 0) {
                    continue;
                }
                self.step_of(head, Val::Reg(inst.dst[0]), way, RAX);
                self.reach_of_step(RAX, RCX, last);
                if !is_first {
                    self.a.op2(Code::Add_r64_rm64, RCX, ctx(at));
                    self.a.op2(Code::Add_r64_rm64, RAX, ctx(at + 8));
                }
                is_first = false;
                self.store64(ctx(at), RCX);
                self.store64(ctx(at + 8), RAX);
            }
            if is_long {
                // Where a step is longer than 32 bits, the ends do not lie in one memory.
                self.a.jump(Code::Jmp_rel32_64, fits);
                self.a.bind(too_long);
                self.a.number(RAX, NOWHERE.cast_unsigned());
                self.a.number(RCX, (-NOWHERE).cast_unsigned());
                self.store64(ctx(at), RCX);
                self.store64(ctx(at + 8), RAX);
                self.a.bind(fits);
            }
            // From the lowest to the highest.
            self.a.op2(Code::Sub_r64_rm64, RAX, RCX);
            self.store64(ctx(at + 16), RAX);
        }
    }

    /// The steps of a linear value that differ between CTAs.
    pub(super) fn steps(&mut self, head: &Head, inst: &Inst) {
        let Some(l) = inst.dst.first().and_then(|d| head.linear[d.idx()]) else { return };
        for way in [ACROSS, DOWN] {
            if l.numbers[way].is_none() && l.reach.is_none() {
                self.in_rax = None;
                self.step_to(head, inst, way);
            }
        }
    }

    /// A step of a linear value, in `rax` and its word.
    fn step_to(&mut self, head: &Head, inst: &Inst, way: usize) {
        let Some(l) = inst.dst.first().and_then(|d| head.linear[d.idx()]) else { return };
        let ty = self.f.regs[inst.dst[0].idx()];
        match inst.op {
            Op::Sreg(s) => {
                let step = head.special_steps(self.plan, s).map_or(0, |steps| steps[way]);
                self.a.number(RAX, step.cast_unsigned());
            }
            Op::Cvta { .. } => self.step_of(head, inst.src[0], way, RAX),
            Op::Pure(op) => match op {
                Pure::Add(_) | Pure::Sub(_) => {
                    self.step_of(head, inst.src[0], way, RAX);
                    self.step_of(head, inst.src[1], way, RCX);
                    let code = if matches!(op, Pure::Add(_)) { Code::Add_r64_rm64 } else { Code::Sub_r64_rm64 };
                    self.a.op2(code, RAX, RCX);
                }
                Pure::Mul(_) | Pure::MulWide(_) => {
                    let is_linear = |v: Val| reg(v).is_some_and(|r| head.linear[r.idx()].is_some());
                    let (a, b) = if is_linear(inst.src[0]) { (0, 1) } else { (1, 0) };
                    self.step_of(head, inst.src[a], way, RAX);
                    self.lane_value(inst.src[b], 0, RCX);
                    if matches!(op, Pure::MulWide(Int { signed: true, .. })) {
                        self.a.op2(Code::Movsxd_r64_rm32, RCX, ECX);
                    }
                    self.a.op2(Code::Imul_r64_rm64, RAX, RCX);
                }
                Pure::Shl(_) => {
                    self.step_of(head, inst.src[0], way, RAX);
                    let by = crate::table::constant(inst.src[1]).unwrap_or(0);
                    self.a.imm8(Code::Shl_rm64_imm8, RAX, by as u32);
                }
                _ => self.step_of(head, inst.src[0], way, RAX),
            },
            _ => self.a.number(RAX, 0),
        }
        if ty == Ty::B32 {
            // A step of 32 bits is one modulo their width.
            self.a.op2(Code::Movsxd_r64_rm32, RAX, EAX);
        }
        self.store64(ctx(l.steps[way]), RAX);
    }

    pub(super) fn step_of(&mut self, head: &Head, v: Val, way: usize, to: Register) {
        match head.linear_of(v).map(|l| (l.numbers[way], l.steps[way])) {
            Some((Some(n), _)) => self.a.number(to, n.cast_unsigned()),
            Some((None, at)) => self.load64(to, ctx(at)),
            None => self.a.number(to, 0),
        }
    }

    /// The lowest value of all lanes of the CTA in `rax` and the highest in `rcx`, as 64-bit numbers; to `wraps` if a 32-bit one wraps, or the step is
    /// long (of one group the ends may lie [`NOWHERE`] from each other then). `group`: of one group of the shape; else of all of them. Uses `rdx`, `rsi`, and `r8` and `r9` for several groups.
    pub(super) fn ends(&mut self, head: &Head, v: Val, signed: bool, group: Option<usize>, wraps: Label) {
        let Some(shape) = self.shape(v) else { return };
        let is_short = self.ty(v) != Ty::B64;
        match head.known_ends(self.plan, v, signed) {
            Some(Some((low, high))) => {
                self.a.number(RAX, low.cast_unsigned());
                self.a.number(RCX, high.cast_unsigned());
                return;
            }
            Some(None) => {
                self.a.jump(Code::Jmp_rel32_64, wraps);
                return;
            }
            None => {}
        }
        let groups = group.map_or(0..shape.groups(), |g| g..g + 1);
        for (k, g) in groups.enumerate() {
            let (mut lo, mut hi) = shape.span(g);
            let (low, high) = if k == 0 { (RAX, RCX) } else { (R8, R9) };
            self.lane_value(v, shape.first_lane(g), low);
            if is_short && signed {
                self.a.op2(Code::Movsxd_r64_rm32, low, low32(low));
            }
            self.a.op2(Code::Mov_r64_rm64, high, low);
            let linear = head.linear_of(v);
            let reach = linear.and_then(|l| head.ranks.reach(l.known()?)).and_then(|(down, up)| {
                let fits = |n: i64| i32::try_from(n).is_ok();
                (fits(down) && fits(up)).then_some((down, up))
            });
            let mut moves = false;
            if let Some((down, up)) = reach {
                (lo, hi) = (lo + down, hi + up);
            } else if let Some(l) = linear {
                moves = true;
                match l.reach {
                    Some(reach) => {
                        // Steps have 32 bits. Of longer ones the ends of a group, which are to be in memory, are too far from each other.
                        for way in [ACROSS, DOWN]
                            .into_iter()
                            .filter(|w| !is_short && group.is_none() && l.numbers[*w].is_none())
                        {
                            self.a.op2(Code::Movsxd_r64_rm32, RDX, ctx(l.steps[way]));
                            self.a.op2(Code::Cmp_r64_rm64, RDX, ctx(l.steps[way]));
                            self.a.jump(Code::Jne_rel32_64, wraps);
                        }
                        self.a.op2(Code::Add_r64_rm64, low, ctx(reach));
                        self.a.op2(Code::Add_r64_rm64, high, ctx(reach + 8));
                    }
                    None => self.reach_of(head, v, (low, high), wraps),
                }
            }
            moves |= self.ends_in_row(head, v, low, high);
            for (r, by) in [(low, lo), (high, hi)] {
                self.add_number(r, by);
                // What was extended and is as it was fits.
                if is_short && (moves || by != 0) {
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

    /// Where what a group of lanes accesses begins in the CTA, or in those of a row, in `rax`, and how far from there the last access is; `None`, and no code, if the head has to find both
    /// ends. (From steps that are longer than 32 bits the distance is one that no memory has.) `ends`: what is added to the lowest and to the highest address.
    pub(super) fn begin_of_all(&mut self, head: &Head, r: Reg, group: usize, ends: (i64, i64)) -> Option<Distance> {
        let v = Val::Reg(r);
        let shape =
            self.shape(v).filter(|_| self.ty(v) == Ty::B64 && head.known_ends(self.plan, v, false).is_none())?;
        let (mut lo, mut hi) = shape.span(group);
        let mut words = None;
        if let Some(l) = head.linear[r.idx()] {
            match l.known() {
                Some(steps) => {
                    let (down, up) = head.ranks.reach(steps)?;
                    (lo, hi) = (lo.checked_add(down)?, hi.checked_add(up)?);
                }
                None => words = Some(l.reach?),
            }
        }
        (lo, hi) = (lo + ends.0, hi + ends.1);
        let number = i32::try_from(hi - lo).ok().filter(|n| *n >= 0)?;
        self.lane_value(v, shape.first_lane(group), RAX);
        if let Some(at) = words {
            self.a.op2(Code::Add_r64_rm64, RAX, ctx(at));
        }
        let row = head.row.as_ref().map_or(0, |row| row.step(r));
        if let Some(row) = head.row.as_ref().filter(|row| row.step(r) < 0) {
            self.length_of_row(row, row.step(r));
            self.a.op2(Code::Sub_r64_rm64, RAX, RDX);
        }
        self.add_number(RAX, lo);
        Some(Distance { number, word: words.map(|at| at + 16), row })
    }

    /// Tests what lies between the address in `rax` and one so far behind it by one comparison, against limits in `r8` and `r9`. Uses `rdx`, `rsi` and `r10`.
    pub(super) fn test_between(&mut self, head: &Head, x: &Access, distance: Distance) {
        let k = x.class.bytes().trailing_zeros();
        self.a.op2(Code::Sub_r64_rm64, RAX, R8);
        self.a.op2(Code::Mov_r64_rm64, R10, R9);
        if let Some(row) = head.row.as_ref().filter(|_| distance.row != 0) {
            self.length_of_row(row, distance.row);
            self.a.op2(Code::Sub_r64_rm64, R10, RDX);
        }
        if let Some(at) = distance.word {
            self.a.op2(Code::Sub_r64_rm64, R10, ctx(at));
        }
        // No allocation and none of these distances has more than 62 bits: what is left is a number with its sign.
        self.a.imm(Code::Sub_rm64_imm32, R10, distance.number);
        self.a.jump(Code::Jle_rel32_64, x.cold);
        if k > 0 {
            self.a.imm8(Code::Ror_rm64_imm8, RAX, k);
            self.a.imm8(Code::Shr_rm64_imm8, R10, k);
        }
        self.a.op2(Code::Cmp_r64_rm64, RAX, R10);
        self.a.jump(Code::Jae_rel32_64, x.cold);
    }

    /// Adds how far other warps are from the first one to two ends, where that differs between CTAs.
    fn reach_of(&mut self, head: &Head, v: Val, (low, high): (Register, Register), wraps: Label) {
        let Some(l) = head.linear_of(v) else { return };
        for (way, last) in (0..).zip(head.ranks.last()).filter(|(way, _)| l.numbers[*way] != Some(0)) {
            self.step_of(head, v, way, RDX);
            self.a.op2(Code::Movsxd_r64_rm32, RSI, EDX);
            self.a.op2(Code::Cmp_r64_rm64, RSI, RDX);
            self.a.jump(Code::Jne_rel32_64, wraps);
            self.reach_of_step(RDX, RSI, last);
            self.a.op2(Code::Add_r64_rm64, low, RSI);
            self.a.op2(Code::Add_r64_rm64, high, RDX);
        }
    }

    /// How far the last one of some warps is from the first one: up, in the register of the step, and down. One of both is zero.
    fn reach_of_step(&mut self, step: Register, down: Register, last: i64) {
        self.a.times(step, step, last as i32);
        self.up_and_down(step, down);
    }

    /// Parts a distance: how far it goes up, in its register, and how far down. One of both is zero.
    pub(super) fn up_and_down(&mut self, by: Register, down: Register) {
        self.a.op2(Code::Mov_r64_rm64, down, by);
        self.a.imm8(Code::Sar_rm64_imm8, down, 63);
        self.a.op2(Code::And_r64_rm64, down, by);
        self.a.op2(Code::Sub_r64_rm64, by, down);
    }

    /// What is known of a comparison in all lanes of the CTA, in `eax`: bit 0 for all, bit 1 for none.
    pub(super) fn decide_comparison(&mut self, head: &Head, inst: &Inst, cmp: Cmp, int: Int) {
        let [unknown, end] = std::array::from_fn(|_| self.a.label());
        let second = inst.src[1];
        let is_one = head.is_one(second, self.shape(second).is_some_and(|s| s.is_uniform()));
        let hold = |k: u32| ctx(FRAME_WORDS + 8 * (head.spare + 16 + k));
        let is_short = int.ty == Ty::B32;
        let ends = |e: &mut Self, v: Val| {
            e.ends(head, v, int.signed, None, unknown);
            if !is_short {
                e.within_62_bits(RAX, int.signed, unknown);
                e.within_62_bits(RCX, int.signed, unknown);
            }
        };
        if !is_one {
            ends(self, second);
            self.store64(hold(0), RAX);
            self.store64(hold(1), RCX);
        }
        ends(self, inst.src[0]);
        // `a` is in `rax..=rcx`, all numbers are of 33 bits, or of 63 with their sign.
        let number = crate::table::constant(second).and_then(|x| match (is_short, int.signed) {
            (true, true) => Some((x as u32).cast_signed()),
            (true, false) => i32::try_from(x as u32).ok(),
            (false, true) => i32::try_from(x.cast_signed()).ok(),
            (false, false) => i32::try_from(x).ok(),
        });
        let bound = match number {
            Some(n) => Bound::Number(n),
            None if is_one => {
                self.lane_value(second, 0, R8);
                if !is_short {
                    self.within_62_bits(R8, int.signed, unknown);
                } else if int.signed {
                    self.a.op2(Code::Movsxd_r64_rm32, R8, low32(R8));
                }
                Bound::Between(R8, R8)
            }
            None => {
                self.load64(R8, hold(0));
                self.load64(R9, hold(1));
                Bound::Between(R8, R9)
            }
        };
        self.a.number(RDX, 0);
        self.bits_of_ends(cmp, bound);
        self.a.op2(Code::Mov_r32_rm32, EAX, EDX);
        self.a.jump(Code::Jmp_rel32_64, end);
        self.a.bind_if_wanted(unknown);
        self.a.number(RAX, 0);
        self.a.bind(end);
    }

    /// Goes on only where a number of 64 bits is so short that no end of a value near it has wrapped: what is added to find ends has less than 60 bits. Uses `rdx`.
    fn within_62_bits(&mut self, r: Register, signed: bool, unknown: Label) {
        if signed {
            self.a.number(RDX, 1 << 62);
            self.a.op2(Code::Add_r64_rm64, RDX, r);
            self.a.jump(Code::Js_rel32_64, unknown);
        } else {
            self.a.op2(Code::Mov_r64_rm64, RDX, r);
            self.a.imm8(Code::Shr_rm64_imm8, RDX, 62);
            self.a.jump(Code::Jne_rel32_64, unknown);
        }
    }

    /// Sets bit 0 of `edx` if a comparison of what lies in `rax..=rcx` with a bound always holds, bit 1 if it never does.
    fn bits_of_ends(&mut self, cmp: Cmp, bound: Bound) {
        for r in rules(cmp) {
            let no = self.a.label();
            let first = if r.of_high { RCX } else { RAX };
            match bound {
                Bound::Between(low, high) => {
                    self.a.op2(Code::Cmp_r64_rm64, first, if r.with_high { high } else { low });
                }
                Bound::Number(n) => self.a.imm(Code::Cmp_rm64_imm32, first, n),
            }
            let otherwise = match r.cmp {
                Cmp::Lt => Code::Jge_rel32_64,
                Cmp::Le => Code::Jg_rel32_64,
                Cmp::Gt => Code::Jle_rel32_64,
                _ => Code::Jl_rel32_64,
            };
            self.a.jump(otherwise, no);
            self.a.imm(Code::Or_rm32_imm32, EDX, r.bit.cast_signed());
            self.a.bind(no);
        }
    }
}
