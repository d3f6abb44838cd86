//! How far an address goes up in a loop: see `rising`.

use handloom_ir::simt::{Inst, Reg, Val};
use handloom_ir::types::{Cmp, Ty};
use handloom_plan::Plan;
use handloom_plan::access::AccessClass;
use iced_x86::{Code, Register};

use super::{FRAME_WORDS, Head, Rise, reg};
use crate::asm::{Label, Mem};
use crate::climbing::Climb;
use crate::emit::*;
use crate::rising::{Rising, Turns, rising};

/// Addresses that go further in a loop, in bytes as a power of two, are tested in each turn.
const FURTHEST: u32 = 46;

/// A distance that is not known: more than any other.
const NOWHERE: i64 = 1 << 62;

const R10: Register = Register::R10;

impl Head {
    /// Finds the addresses that rise by what the launch decides.
    pub(super) fn find_rising(&mut self, plan: &Plan) {
        let fits = |r: &Rising| {
            reg(r.first).is_some_and(|r| self.courses[r.idx()].is_some())
                && self.is_of_launch(plan, r.step)
                && self.counts(plan, &r.turns)
        };
        self.rising = rising(&plan.func, &plan.facts.cfg).into_iter().filter(fits).collect();
    }

    /// Whether a value is one that the launch decides.
    pub(super) fn is_of_launch(&self, plan: &Plan, v: Val) -> bool {
        let same = self.course_of(v).is_some_and(|c| !c.is_linear && !c.by_cta);
        same && plan.facts.arg(v).shape.is_some_and(|s| s.is_uniform())
    }

    /// Whether the head may count the turns of a loop.
    pub(super) fn counts(&self, plan: &Plan, turns: &Turns) -> bool {
        let is_one = |v: Val| self.is_of_launch(plan, v);
        // Which lanes meet the bound is not to be told from the ends of their counts.
        let first = if turns.cmp == Cmp::Ne { is_one(turns.first) } else { self.course_of(turns.first).is_some() };
        first && is_one(turns.bound) && is_one(turns.by)
    }

    /// Whether the head has what says how far a sum climbs.
    pub(super) fn knows_climb(&self, plan: &Plan, c: &Climb) -> bool {
        let has = |v: Val| reg(v).is_none_or(|r| self.same[r.idx()].is_some());
        self.is_of_launch(plan, c.step) && has(c.step) && self.counts(plan, &c.turns) && self.knows_turns(&c.turns)
    }

    /// What each turn of a loop adds to an address that rises.
    pub(crate) fn step_of_turn(&self, address: Reg) -> Option<Val> {
        self.rises(address).filter(|r| self.knows_rise(r)).map(|r| r.step)
    }

    /// Whether the address of an access rises.
    pub(crate) fn is_rising(&self, inst: &Inst) -> bool {
        let address = AccessClass::of(inst).and_then(|c| reg(c.address));
        address.is_some_and(|r| self.rises(r).is_some())
    }

    /// How an address rises, if it does.
    pub(super) fn rises(&self, address: Reg) -> Option<&Rising> {
        self.rising.iter().find(|r| r.address == address)
    }

    /// Whether what says how far an address rises has words.
    pub(super) fn knows_rise(&self, r: &Rising) -> bool {
        let has = |v: Val| reg(v).is_none_or(|r| self.same[r.idx()].is_some());
        has(r.step) && self.knows_turns(&r.turns)
    }

    pub(super) fn knows_turns(&self, turns: &Turns) -> bool {
        let has = |v: Val| reg(v).is_none_or(|r| self.same[r.idx()].is_some());
        let first = has(turns.first) || reg(turns.first).is_some_and(|r| self.linear[r.idx()].is_some());
        first && has(turns.bound) && has(turns.by)
    }

    /// The first value of an address that rises.
    pub(crate) fn first_value(&self, address: Reg) -> Option<Reg> {
        let rises = self.rises(address).filter(|r| self.knows_rise(r));
        rises.and_then(|r| reg(r.first)).filter(|r| self.same[r.idx()].is_some() || self.linear[r.idx()].is_some())
    }

    /// Words for how far what rises and what climbs goes.
    pub(super) fn give_rises(&mut self, plan: &Plan) {
        let rising = self.groups.iter().filter_map(|g| self.rises(g.key.0)).map(|r| (r.turns, r.step));
        let climbs = self.climbs.iter().filter(|c| self.knows_climb(plan, c)).map(|c| (c.turns, c.step));
        let mut all: Vec<(Turns, Val)> = Vec::new();
        for x in rising.chain(climbs) {
            if !all.contains(&x) {
                all.push(x);
            }
        }
        if !self.climbs.is_empty() {
            self.broken = Some(FRAME_WORDS + 8 * self.words);
            self.words += 1;
        }
        for (turns, step) in all {
            self.distances.push(Rise { turns, step, word: FRAME_WORDS + 8 * self.words });
            self.words += 1;
        }
    }

    /// The word that says how far what goes up by a step in each turn goes.
    fn distance(&self, turns: &Turns, step: Val) -> Option<Mem> {
        self.distances.iter().find(|d| (d.turns, d.step) == (*turns, step)).map(|d| ctx(d.word))
    }

    fn is_by_cta_value(&self, v: Val) -> bool {
        self.course_of(v).is_some_and(|c| c.by_cta)
    }

    /// Whether how often a loop is gone round differs between CTAs.
    pub(super) fn turns_by_cta(&self, turns: &Turns) -> bool {
        self.is_by_cta_value(turns.first)
    }

    /// Whether what says that a sum does not wrap in a loop differs between CTAs.
    pub(super) fn climbs_by_cta(&self, c: &Climb) -> bool {
        self.is_by_cta_value(c.first) || self.turns_by_cta(&c.turns)
    }
}

impl Emit<'_> {
    /// Writes how far what goes up in loops is from its first value in the last turn, for those loops whose turns differ between CTAs or the others: [`NOWHERE`] if that is not known. Uses
    /// `rax`, `rcx`, `rdx`, `rsi`, and `r8` to `r10`.
    pub(super) fn find_rises(&mut self, head: &Head, by_cta: bool) {
        for d in head.distances.iter().filter(|d| head.turns_by_cta(&d.turns) == by_cta) {
            let [unknown, known] = std::array::from_fn(|_| self.a.label());
            self.last_turn(head, &d.turns, unknown);
            self.lane_value(d.step, 0, RCX);
            if self.ty(d.step) != Ty::B64 {
                self.a.op2(Code::Movsxd_r64_rm32, RCX, ECX);
            }
            self.a.op2(Code::Imul_r64_rm64, RAX, RCX);
            self.a.jump(Code::Jo_rel32_64, unknown);
            self.a.op2(Code::Mov_r64_rm64, RDX, RAX);
            self.a.imm8(Code::Sar_rm64_imm8, RDX, FURTHEST);
            self.a.imm(Code::Add_rm64_imm32, RDX, 1);
            self.a.imm(Code::Cmp_rm64_imm32, RDX, 1);
            self.a.jump(Code::Jbe_rel32_64, known);
            self.a.bind(unknown);
            self.a.number(RAX, NOWHERE.cast_unsigned());
            self.a.bind(known);
            self.store64(ctx(d.word), RAX);
        }
    }

    /// To `failed` if it is not known how far an address rises, or it does so by no multiple of an access's bytes.
    pub(super) fn rise(&mut self, head: &Head, r: &Rising, bytes: i64, failed: Label) {
        match head.distance(&r.turns, r.step) {
            Some(distance) => self.is_somewhere(distance, failed),
            None => self.a.jump(Code::Jmp_rel32_64, failed),
        }
        match crate::table::constant(r.step) {
            Some(step) if step.cast_signed() % bytes == 0 => {}
            _ if bytes == 1 => {}
            _ => {
                self.lane_value(r.step, 0, RCX);
                self.a.imm(Code::Test_rm32_imm32, ECX, (bytes - 1) as i32);
                self.a.jump(Code::Jne_rel32_64, failed);
            }
        }
    }

    /// To `failed` if a distance is not known; else it is in `rdx`. Uses `rsi`.
    fn is_somewhere(&mut self, distance: Mem, failed: Label) {
        self.load64(RDX, distance);
        self.a.op2(Code::Mov_r64_rm64, RSI, RDX);
        self.a.imm8(Code::Sar_rm64_imm8, RSI, NOWHERE.trailing_zeros());
        self.a.imm(Code::Cmp_rm64_imm32, RSI, 1);
        self.a.jump(Code::Je_rel32_64, failed);
    }

    /// Tests what climbs: that for which all CTAs are alike when the launch begins, which leaves a word for them.
    pub(super) fn climbs(&mut self, head: &Head, by_cta: bool, broken: Label) {
        let Some(told) = head.broken.map(ctx) else { return };
        let failed = self.a.label();
        if by_cta {
            self.a.imm(Code::Cmp_rm32_imm32, told, 0);
            self.a.jump(Code::Jne_rel32_64, broken);
        } else {
            self.store_number(told, 1);
        }
        for climb in head.climbs.iter().filter(|c| head.climbs_by_cta(c) == by_cta) {
            self.climb(head, climb, if by_cta { broken } else { failed });
        }
        if !by_cta {
            self.store_number(told, 0);
            self.a.bind_if_wanted(failed);
        }
    }

    /// Goes to `broken` where a sum of 32 bits wraps in a turn of its loop. Uses `rax`, `rcx`, `rdx`, `rsi`, and `r8` and `r9`.
    pub(super) fn climb(&mut self, head: &Head, c: &Climb, broken: Label) {
        let Some(distance) = head.distance(&c.turns, c.step) else { return self.a.jump(Code::Jmp_rel32_64, broken) };
        self.ends(head, c.first, c.signed, None, broken);
        self.is_somewhere(distance, broken);
        self.ends_at_distance(Some(c.signed), broken);
    }

    /// Adds the distance in `rdx`, up or down, to two ends in `rax` and `rcx`; to `wraps` if one of 32 bits, which is read as signed or not, wraps. Uses `rdx`, `rsi`.
    fn ends_at_distance(&mut self, short: Option<bool>, wraps: Label) {
        self.up_and_down(RDX, RSI);
        self.a.op2(Code::Add_r64_rm64, RAX, RSI);
        self.a.op2(Code::Add_r64_rm64, RCX, RDX);
        let Some(signed) = short else { return };
        for (r, low) in [(RAX, EAX), (RCX, ECX)] {
            if signed {
                self.a.op2(Code::Movsxd_r64_rm32, RDX, low);
            } else {
                self.a.op2(Code::Mov_r32_rm32, EDX, low);
            }
            self.a.op2(Code::Cmp_r64_rm64, RDX, r);
            self.a.jump(Code::Jne_rel32_64, wraps);
        }
    }

    /// Adds how far an address rises to its ends in the first turn, in `rax` and `rcx`; to `wraps` if one of 32 bits wraps. Uses `rdx`, `rsi`.
    pub(super) fn ends_of_rise(&mut self, head: &Head, r: &Rising, is_short: bool, wraps: Label) {
        let Some(distance) = head.distance(&r.turns, r.step) else { return self.a.jump(Code::Jmp_rel32_64, wraps) };
        self.load64(RDX, distance);
        self.ends_at_distance(is_short.then_some(false), wraps);
    }

    /// The number of the last turn of a loop, in `rax`, the first being 0, of the lanes that have most; to `unknown` if the count wraps. Uses `rcx`, `rdx`, `rsi`, and `r8` to `r10`.
    fn last_turn(&mut self, head: &Head, turns: &Turns, unknown: Label) {
        let number = turns.number();
        let rises = number.is_none_or(|by| by > 0);
        let is_long = self.ty(turns.first) == Ty::B64;
        self.ends(head, turns.first, turns.signed, None, unknown);
        if rises {
            self.a.op2(Code::Mov_r64_rm64, RCX, RAX);
        }
        self.count_of_all(turns.bound, turns.signed, RAX, EAX);
        if is_long {
            // Neither these nor their distance wrap.
            for r in [RAX, RCX] {
                self.a.op2(Code::Mov_r64_rm64, RDX, r);
                self.a.imm8(Code::Sar_rm64_imm8, RDX, 61);
                if turns.signed {
                    self.a.imm(Code::Add_rm64_imm32, RDX, 1);
                    self.a.imm(Code::Cmp_rm64_imm32, RDX, 1);
                    self.a.jump(Code::Ja_rel32_64, unknown);
                } else {
                    self.a.jump(Code::Jne_rel32_64, unknown);
                }
            }
        }
        match number {
            Some(by) if is_long => self.a.number(R10, u64::from(by.unsigned_abs())),
            Some(_) => {}
            None => {
                self.count_of_all(turns.by, true, R10, Register::R10D);
                self.a.op2(Code::Lea_r64_m, RDX, Mem::at(R10, -1));
                self.a.imm8(Code::Shr_rm64_imm8, RDX, 31);
                self.a.jump(Code::Jne_rel32_64, unknown);
            }
        }
        let short = number.filter(|_| !is_long);
        if turns.cmp == Cmp::Ne {
            // It meets the bound, if it does so at all, after this distance modulo the width.
            if !rises {
                self.a.op2(Code::Xchg_rm64_r64, RAX, RCX);
            }
            let equal = self.a.label();
            let code = if is_long { Code::Sub_r64_rm64 } else { Code::Sub_r32_rm32 };
            self.a.op2(code, if is_long { RAX } else { EAX }, if is_long { RCX } else { ECX });
            self.a.jump(Code::Je_rel32_64, if turns.is_guarded { equal } else { unknown });
            self.divide_by(short);
            self.a.op2(Code::Test_rm64_r64, RDX, RDX);
            self.a.jump(Code::Jne_rel32_64, unknown);
            self.a.imm(Code::Sub_rm64_imm32, RAX, 1);
            self.a.bind_if_wanted(equal);
            return;
        }
        // The last count that another turn follows.
        match turns.cmp {
            Cmp::Lt => self.a.imm(Code::Sub_rm64_imm32, RAX, 1),
            Cmp::Gt => self.a.imm(Code::Add_rm64_imm32, RAX, 1),
            _ => {}
        }
        for r in [RAX, RCX] {
            if is_long {
                break;
            }
            self.a.op2(Code::Mov_r64_rm64, RDX, r);
            match number {
                Some(by) => self.a.imm(Code::Add_rm64_imm32, RDX, by),
                None => self.a.op2(Code::Add_r64_rm64, RDX, R10),
            }
            if turns.signed {
                self.a.op2(Code::Movsxd_r64_rm32, RSI, EDX);
            } else {
                self.a.op2(Code::Mov_r32_rm32, Register::ESI, EDX);
            }
            self.a.op2(Code::Cmp_r64_rm64, RSI, RDX);
            self.a.jump(Code::Jne_rel32_64, unknown);
        }
        if !rises {
            self.a.op2(Code::Xchg_rm64_r64, RAX, RCX);
        }
        self.a.op2(Code::Sub_r64_rm64, RAX, RCX);
        // One turn is gone round in any case.
        self.a.op2(Code::Mov_r64_rm64, RDX, RAX);
        self.a.imm8(Code::Sar_rm64_imm8, RDX, 63);
        self.a.op1(Code::Not_rm64, RDX);
        self.a.op2(Code::And_r64_rm64, RAX, RDX);
        self.divide_by(short);
    }

    /// What all lanes have of a count, as a number of 64 bits.
    fn count_of_all(&mut self, v: Val, signed: bool, to: Register, low: Register) {
        self.lane_value(v, 0, to);
        if self.ty(v) == Ty::B64 {
            return;
        }
        if signed {
            self.a.op2(Code::Movsxd_r64_rm32, to, low);
        } else {
            self.a.op2(Code::Mov_r32_rm32, low, low);
        }
    }

    /// Divides what is in `rax` by the size of a number, or by what is in `r10`; the rest is in `rdx`.
    fn divide_by(&mut self, number: Option<i32>) {
        match number {
            Some(by) => self.divide(by.unsigned_abs()),
            None => {
                self.a.op2(Code::Xor_r32_rm32, EDX, EDX);
                self.a.op1(Code::Div_rm64, R10);
            }
        }
    }
}
