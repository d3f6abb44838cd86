//! One run of the head for several CTAs of a row of the grid, or of a column where the launch goes by those.
//!
//! # The model
//! Where all that depends on `%ctaid` goes up by an even step from CTA to CTA of a row (`steps`), the head may be asked about the CTA that
//! begins and a number of those behind it (the word [`ROW`]): ends of values are then those of all these CTAs. If it decides everything that it could, the next CTAs add
//! their steps to the words that somebody reads, and the bits stay; where all of them go by gangs alone and have no shared memory, they follow each other with nothing else
//! between them (the word [`BATCH`]). Else the head runs for the CTA alone. Mostly it is the first or the last CTA of a row of the grid that stands in the way: it goes alone from then on
//! (the word [`RIMS`]), or else the next CTA tries a row half as long.

use std::mem::offset_of;

use handloom_ir::simt::{Inst, Reg, Val};
use handloom_ir::types::Ty;
use handloom_plan::Plan;
use handloom_plan::abi::CtaCtx;
use handloom_plan::analysis::cfg::Set;
use iced_x86::{Code, Register};

use super::{DECIDED, FRAME_WORDS, Head, Rise, Row, Step, reg};
use crate::asm::{Label, Mem};
use crate::emit::*;

/// The most CTAs that one run of the head is for, without the first.
const MOST: u32 = 63;
/// Fewer than so many are not worth a run that may be in vain.
const LEAST: u32 = 2;
/// CTAs that go alone where rows of all lengths were tried in vain.
const ALONE: u32 = 64;

/// How many CTAs behind the one that begins the head is asked about.
const ROW: u32 = 0;
/// CTAs that it has decided about and that have not begun.
const LEFT: u32 = 1;
/// CTAs before a row is tried again.
const BACK: u32 = 2;
/// How many a row may have: half as many after one that was tried in vain, twice as many after another.
const LIMIT: u32 = 3;
/// Of those that have not begun, the ones that the runtime's numbers count already.
const BATCH: u32 = 4;
/// Which ends of rows of the grid are not asked about with others: the bits below.
const RIMS: u32 = 5;
const FIRST: i32 = 1;
const LAST: i32 = 2;

impl Row {
    /// By how much a value goes up from CTA to CTA; `None` if it does not.
    pub(super) fn rise(&self, r: Reg) -> Option<Rise> {
        if let Some(word) = self.words_of[r.idx()] {
            return Some(Rise::Word(word));
        }
        match self.along.as_ref().or(self.down.as_ref())?.of(r) {
            Step::Number(0) | Step::Launched => None,
            Step::Number(n) => Some(Rise::Number(n)),
        }
    }

    fn word(&self, n: u32) -> Mem {
        ctx(FRAME_WORDS + 8 * (self.words + n))
    }

    pub(super) fn row(&self) -> Mem {
        self.word(ROW)
    }
}

impl Head {
    /// Whether all that differs between CTAs goes up evenly, and how: along a row, and down a column where no loop makes what is done once a CTA small.
    pub(super) fn find_row(&mut self, plan: &Plan) -> Option<Row> {
        let f = &plan.func;
        let along = self.steps_along(plan, 0);
        let down = if plan.facts.cfg.loops.is_empty() { self.steps_along(plan, 1) } else { None };
        let words_of = self.words_of_steps(along.as_ref(), down.as_ref());
        let mut checks = Vec::new();
        for c in [&along, &down].into_iter().flatten().flat_map(|s| &s.checks) {
            if !checks.contains(c) {
                checks.push(*c);
            }
        }
        let mut row = Row { along, down, words_of, checks, rising: Vec::new(), words: self.words };
        if row.along.is_none() && row.down.is_none() {
            return None;
        }
        self.words += 6;
        let own = f.blocks.iter().flat_map(|b| &b.insts).filter(|i| !self.has(i) && !self.is_linear(i));
        let mut read = Set::new(f.regs.len());
        let ends = f.blocks.iter().flat_map(|b| b.term.sources());
        own.flat_map(|i| i.src.clone()).chain(ends).filter_map(reg).for_each(|r| {
            read.add(r.idx());
        });
        for r in read.iter() {
            let Some(step) = row.rise(Reg(r as u32)) else { continue };
            let groups = plan.facts.class[r].shape().map_or(1, |s| s.groups() as u32);
            let words = match (self.same[r], self.linear[r]) {
                (Some(at), _) => at..at + 8,
                (None, Some((at, _))) => at..at + 8 * groups,
                (None, None) => continue,
            };
            row.rising.extend(words.step_by(8).map(|at| (at, f.regs[r], step)));
        }
        Some(row)
    }

    /// The step of an address from CTA to CTA of a row; 0 if it has none, or none is known.
    pub(crate) fn row_step(&self, r: Reg) -> i32 {
        match self.row.as_ref().and_then(|row| row.along.as_ref()).map(|steps| steps.of(r)) {
            Some(Step::Number(n)) => n,
            Some(Step::Launched) | None => 0,
        }
    }

    /// Bits of accesses and of lanes that are written down, and the lower bits of other guards, that a run of the head can set for a CTA.
    fn hoped_for(&self, plan: &Plan) -> (u32, u32) {
        let accesses = self.groups.iter().filter(|g| g.first.is_some()).fold(0, |m, g| m | g.bit);
        let by_cta =
            |(b, g): (usize, &Option<super::Guard>)| g.filter(|g| self.is_by_cta(&plan.func.blocks[b].insts[g.from..]));
        let guards = || self.guards.iter().enumerate().filter_map(by_cta);
        let written = guards().filter_map(|g| g.lanes).fold(0, |m, (_, bit)| m | bit);
        (accesses | written, guards().filter(|g| g.lanes.is_none()).fold(0, |m, g| m | g.bits.0))
    }
}

impl Emit<'_> {
    /// No row has been decided about.
    pub(crate) fn begin_rows(&mut self) {
        let Some(row) = self.head.as_ref().and_then(|h| h.row.as_ref()) else { return };
        for (m, n) in
            [(ROW, 0), (LEFT, 0), (BACK, 0), (LIMIT, MOST), (BATCH, 0), (RIMS, 0)].map(|(w, n)| (row.word(w), n))
        {
            self.store_number(m, n);
        }
    }

    /// No CTAs are asked about together.
    pub(super) fn go_alone(&mut self, row: &Row) {
        self.store_number(row.word(BACK), u32::MAX);
    }

    /// Goes to `apart` where CTAs are asked about together and what an instruction reads differs between them.
    pub(super) fn jump_if_apart(&mut self, row: &Row, inst: &Inst, apart: Label) {
        let together = self.a.label();
        self.a.imm(Code::Cmp_rm32_imm32, row.row(), 0);
        self.a.jump(Code::Je_rel32_64, together);
        for rise in inst.src.iter().filter_map(|v| row.rise(reg(*v)?)) {
            match rise {
                Rise::Number(_) => self.a.jump(Code::Jmp_rel32_64, apart),
                Rise::Word(word) => {
                    self.a.imm(Code::Cmp_rm32_imm32, ctx(word), 0);
                    self.a.jump(Code::Jne_rel32_64, apart);
                }
            }
        }
        self.a.bind(together);
    }

    /// Runs the head for the CTA that begins, or for a row of them, unless that has been done.
    pub(super) fn begin_in_row(&mut self, row: &Row, hoped: (u32, u32), head: Label, deopt: Label) {
        let [full, attempt, failed, single, go] = std::array::from_fn(|_| self.a.label());
        self.a.imm(Code::Cmp_rm32_imm32, row.word(LEFT), 0);
        self.a.jump(Code::Je_rel32_64, full);
        self.step_in_row(row);
        self.a.jump(Code::Jmp_rel32_64, go);
        self.a.bind(full);
        self.a.imm(Code::Cmp_rm32_imm32, row.word(BACK), 0);
        self.a.jump(Code::Je_rel32_64, attempt);
        self.a.imm(Code::Sub_rm32_imm32, row.word(BACK), 1);
        self.a.jump(Code::Jmp_rel32_64, single);
        self.a.bind(attempt);
        self.left_in_row(row, single);
        self.a.imm(Code::Cmp_rm32_imm32, EAX, LEAST.cast_signed());
        self.a.jump(Code::Jb_rel32_64, single);
        let try_it = self.a.label();
        self.load32(ECX, row.word(LIMIT));
        self.a.imm(Code::Cmp_rm32_imm32, ECX, LEAST.cast_signed());
        self.a.jump(Code::Jae_rel32_64, try_it);
        self.store_number(row.word(LIMIT), MOST);
        self.store_number(row.word(BACK), ALONE);
        self.a.jump(Code::Jmp_rel32_64, single);
        self.a.bind(try_it);
        self.a.op2(Code::Cmp_r32_rm32, EAX, ECX);
        self.a.op2(Code::Cmova_r64_rm64, RAX, RCX);
        self.store32(row.word(ROW), EAX);
        self.a.jump(Code::Call_rel32_64, head);
        self.a.op2(Code::Test_rm32_r32, EAX, EAX);
        self.a.jump(Code::Jne_rel32_64, failed);
        self.a.op2(Code::Mov_r32_rm32, EAX, DECIDED);
        self.a.imm8(Code::Shr_rm32_imm8, EAX, 1);
        self.a.op2(Code::Or_r32_rm32, EAX, DECIDED);
        for (r, bits) in [(DECIDED, hoped.0), (EAX, hoped.1)] {
            if bits != 0 {
                self.a.op2(Code::Mov_r32_rm32, ECX, r);
                self.a.imm(Code::And_rm32_imm32, ECX, bits.cast_signed());
                self.a.imm(Code::Cmp_rm32_imm32, ECX, bits.cast_signed());
                self.a.jump(Code::Jne_rel32_64, failed);
            }
        }
        self.load32(EAX, row.word(ROW));
        self.store32(row.word(LEFT), EAX);
        self.load32(EAX, row.word(LIMIT));
        self.a.op2(Code::Add_r32_rm32, EAX, EAX);
        self.a.number(RCX, u64::from(MOST));
        self.a.op2(Code::Cmp_r32_rm32, EAX, ECX);
        self.a.op2(Code::Cmova_r64_rm64, RAX, RCX);
        self.store32(row.word(LIMIT), EAX);
        self.a.jump(Code::Jmp_rel32_64, go);
        self.a.bind(failed);
        self.leave_out_rims(row, single, attempt);
        self.load32(EAX, row.word(ROW));
        self.a.imm8(Code::Shr_rm32_imm8, EAX, 1);
        self.store32(row.word(LIMIT), EAX);
        self.a.bind(single);
        self.store_number(row.word(ROW), 0);
        self.a.jump(Code::Call_rel32_64, head);
        self.a.op2(Code::Test_rm32_r32, EAX, EAX);
        self.a.jump(Code::Jne_rel32_64, deopt);
        self.a.bind(go);
    }

    /// Where the CTA is in its row of the grid, in `ecx`, and the number of the last one, in `edx`: in its column where the launch goes by those. Clobbers `eax`.
    fn place_in_row(&mut self, row: &Row) {
        let (ctaid, nctaid) = (offset_of!(CtaCtx, ctaid), offset_of!(CtaCtx, nctaid));
        if row.down.is_some() {
            self.load32(EAX, cta(offset_of!(CtaCtx, by_columns)));
            self.load32(ECX, Mem::indexed(CTA, RAX, 4, ctaid as i32));
            self.load32(EDX, Mem::indexed(CTA, RAX, 4, nctaid as i32));
        } else {
            self.load32(ECX, cta(ctaid));
            self.load32(EDX, cta(nctaid));
        }
        self.a.imm(Code::Sub_rm32_imm32, EDX, 1);
    }

    /// How many CTAs follow that may be asked about with the one that begins, in `eax`: those of its row that the code may go on with. To `single` where it is one that goes alone.
    fn left_in_row(&mut self, row: &Row, single: Label) {
        let [inner, all, in_band] = std::array::from_fn(|_| self.a.label());
        self.place_in_row(row);
        self.a.op2(Code::Test_rm32_r32, ECX, ECX);
        self.a.jump(Code::Jne_rel32_64, inner);
        self.a.imm(Code::Test_rm32_imm32, row.word(RIMS), FIRST);
        self.a.jump(Code::Jne_rel32_64, single);
        self.a.bind(inner);
        self.a.op2(Code::Sub_r32_rm32, EDX, ECX);
        self.a.jump(Code::Je_rel32_64, single);
        self.a.imm(Code::Test_rm32_imm32, row.word(RIMS), LAST);
        self.a.jump(Code::Je_rel32_64, all);
        self.a.imm(Code::Sub_rm32_imm32, EDX, 1);
        self.a.bind(all);
        if row.down.is_some() {
            // No further than to the end of the band.
            self.a.op2(Code::Test_rm32_r32, EAX, EAX);
            self.a.jump(Code::Je_rel32_64, in_band);
            self.a.op1(Code::Not_rm32, ECX);
            self.a.imm(Code::And_rm32_imm32, ECX, (CtaCtx::BAND - 1).cast_signed());
            self.a.op2(Code::Cmp_r32_rm32, EDX, ECX);
            self.a.op2(Code::Cmova_r64_rm64, RDX, RCX);
            self.a.bind(in_band);
        }
        self.load32(EAX, cta(offset_of!(CtaCtx, more)));
        self.a.op2(Code::Cmp_r32_rm32, EAX, EDX);
        self.a.op2(Code::Cmova_r64_rm64, RAX, RDX);
    }

    /// Behind a row that was tried in vain: mostly it is the first or the last CTA of a row of the grid that stands in the way. To `single` where the first one
    /// was asked about with others, and again to `attempt` where the last one was: from then on they are not. Else it goes on.
    fn leave_out_rims(&mut self, row: &Row, single: Label, attempt: Label) {
        let [inner, other] = std::array::from_fn(|_| self.a.label());
        self.place_in_row(row);
        self.a.op2(Code::Test_rm32_r32, ECX, ECX);
        self.a.jump(Code::Jne_rel32_64, inner);
        self.a.imm(Code::Or_rm32_imm32, row.word(RIMS), FIRST);
        self.a.jump(Code::Jmp_rel32_64, single);
        self.a.bind(inner);
        self.a.op2(Code::Sub_r32_rm32, EDX, ECX);
        self.a.op2(Code::Cmp_r32_rm32, EDX, row.row());
        self.a.jump(Code::Jne_rel32_64, other);
        self.a.imm(Code::Or_rm32_imm32, row.word(RIMS), LAST);
        self.a.jump(Code::Jmp_rel32_64, attempt);
        self.a.bind(other);
    }

    /// The next CTA of a row that has been decided about.
    fn step_in_row(&mut self, row: &Row) {
        self.a.imm(Code::Sub_rm32_imm32, row.word(LEFT), 1);
        self.rise_in_row(row);
    }

    /// Adds their steps to the words that somebody reads. Clobbers `rcx`.
    fn rise_in_row(&mut self, row: &Row) {
        for (at, ty, step) in &row.rising {
            let is_long = *ty == Ty::B64;
            match *step {
                Rise::Number(n) => {
                    let code = if is_long { Code::Add_rm64_imm32 } else { Code::Add_rm32_imm32 };
                    self.a.imm(code, ctx(*at), n);
                }
                Rise::Word(word) if is_long => {
                    self.load64(RCX, ctx(word));
                    self.a.store(Code::Add_rm64_r64, ctx(*at), RCX, ALL);
                }
                Rise::Word(word) => {
                    self.load32(ECX, ctx(word));
                    self.a.store(Code::Add_rm32_r32, ctx(*at), ECX, ALL);
                }
            }
        }
    }

    /// A CTA of a row that has been decided about, all of whose warps go by gangs, begins with those.
    pub(crate) fn go_on_in_row(&mut self) {
        let is_fixed = |t: &crate::turns::Chosen| (t.start == 0).then_some((t.bits, t.fixed?.1));
        let Some((bits, all)) = self.turns.as_ref().and_then(|t| t.gangs.iter().find_map(is_fixed)) else { return };
        let Some(row) = self.head.as_mut().and_then(|h| h.row.take()) else { return };
        let other = self.a.label();
        self.a.imm(Code::Cmp_rm32_imm32, row.word(LEFT), 0);
        self.a.jump(Code::Je_rel32_64, other);
        self.a.op2(Code::Mov_r32_rm32, EAX, DECIDED);
        self.a.op1(Code::Not_rm32, EAX);
        self.a.imm(Code::Test_rm32_imm32, EAX, bits.cast_signed());
        self.a.jump(Code::Jne_rel32_64, other);
        self.step_in_row(&row);
        self.a.jump(Code::Jmp_rel32_64, all);
        self.a.bind(other);
        if let Some(head) = &mut self.head {
            head.row = Some(row);
        }
    }

    /// Behind a CTA that gangs alone went and that has no shared memory: the next one of a row that has been decided about starts at `all`, as all of them do one after the other.
    pub(crate) fn go_on_in_batch(&mut self, all: Label) {
        let Some(row) = self.head.as_mut().and_then(|h| h.row.take()) else { return };
        let [first, again, none] = std::array::from_fn(|_| self.a.label());
        self.a.imm(Code::Cmp_rm32_imm32, row.word(BATCH), 0);
        self.a.jump(Code::Je_rel32_64, first);
        self.a.bind(again);
        self.a.imm(Code::Sub_rm32_imm32, row.word(BATCH), 1);
        self.rise_in_row(&row);
        self.a.jump(Code::Jmp_rel32_64, all);
        self.a.bind(first);
        self.load32(EAX, row.word(LEFT));
        self.a.op2(Code::Test_rm32_r32, EAX, EAX);
        self.a.jump(Code::Je_rel32_64, none);
        self.store32(row.word(BATCH), EAX);
        self.store_number(row.word(LEFT), 0);
        self.a.store(Code::Sub_rm32_r32, cta(offset_of!(CtaCtx, more)), EAX, ALL);
        let ctaid = offset_of!(CtaCtx, ctaid);
        if row.down.is_some() {
            self.load32(ECX, cta(offset_of!(CtaCtx, by_columns)));
            self.a.store(Code::Add_rm32_r32, Mem::indexed(CTA, RCX, 4, ctaid as i32), EAX, ALL);
        } else {
            self.a.store(Code::Add_rm32_r32, cta(ctaid), EAX, ALL);
        }
        self.a.jump(Code::Jmp_rel32_64, again);
        self.a.bind(none);
        if let Some(head) = &mut self.head {
            head.row = Some(row);
        }
    }

    /// Widens the ends in `low` and `high` of a value to those in all CTAs of the row, if it differs between them. Uses `rdx`, `rsi`.
    pub(super) fn ends_in_row(&mut self, head: &Head, v: Val, low: Register, high: Register) -> bool {
        let Some((row, r)) = head.row.as_ref().zip(reg(v)) else { return false };
        let Some(rise) = row.rise(r) else { return false };
        match rise {
            // Most products have 32 bits: one instruction.
            Rise::Number(step) => {
                let (size, to) = (step.unsigned_abs(), if step > 0 { high } else { low });
                if size <= u32::MAX / (MOST + 1) {
                    self.a.op2i(Code::Imul_r32_rm32_imm32, EDX, row.row(), size);
                } else {
                    self.load32(EDX, row.row());
                    self.a.number(RSI, u64::from(size));
                    self.a.op2(Code::Imul_r64_rm64, RDX, RSI);
                }
                self.a.op2(if step > 0 { Code::Add_r64_rm64 } else { Code::Sub_r64_rm64 }, to, RDX);
            }
            Rise::Word(word) => {
                self.load32(EDX, row.row());
                self.a.op2(Code::Imul_r64_rm64, RDX, ctx(word));
                self.up_and_down(RDX, RSI);
                self.a.op2(Code::Add_r64_rm64, low, RSI);
                self.a.op2(Code::Add_r64_rm64, high, RDX);
            }
        }
        true
    }
}

impl Emit<'_> {
    /// Runs the head.
    pub(crate) fn begin_cta(&mut self, deopt: Label) {
        let Some(mut head) = self.head.take() else { return };
        let label = head.label();
        if let Some(row) = head.row.take() {
            let hoped = head.hoped_for(self.plan);
            self.begin_in_row(&row, hoped, label, deopt);
            head.row = Some(row);
        } else {
            self.a.jump(Code::Call_rel32_64, label);
            self.a.op2(Code::Test_rm32_r32, EAX, EAX);
            self.a.jump(Code::Jne_rel32_64, deopt);
        }
        self.head = Some(head);
    }
}
