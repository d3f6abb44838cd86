//! One run of the head for several CTAs of a row of the grid.
//!
//! # The model
//! Where all that depends on `%ctaid` goes up by an even step from CTA to CTA of a row, and these steps are constants, the head may be asked about the CTA that
//! begins and a number of those behind it (the word [`ROW`]): ends of values are then those of all these CTAs. If it decides everything that it could, the next CTAs add
//! their steps to the words that somebody reads, and the bits stay; where all of them go by gangs alone and have no shared memory, they follow each other with nothing else
//! between them (the word [`BATCH`]). Else the head runs for the CTA alone, and the next one tries a row half as long: mostly it is the first
//! or the last CTA of a row that stands in the way.
//!
//! Where a short row stands in its own way by guards alone, as the rows of a small picture do, whose first and last CTA are at its rim, all else is decided for the row, and each of its CTAs
//! asks for its own guards: a part of the head, which writes down lanes (the word [`PARTED`]).

use std::mem::offset_of;

use handloom_ir::simt::{Inst, Op, Pure, Reg, Val};
use handloom_ir::types::{Int, Sreg, Ty};
use handloom_plan::Plan;
use handloom_plan::abi::CtaCtx;
use handloom_plan::analysis::cfg::Set;
use iced_x86::{Code, Register};

use super::{DECIDED, FRAME_WORDS, Guard, Head, Row, reg};
use crate::asm::{Label, Mem};
use crate::emit::*;

/// The most CTAs that one run of the head is for, without the first.
const MOST: u32 = 63;
/// Fewer than so many are not worth a run that may be in vain.
const LEAST: u32 = 2;
/// CTAs that go alone where rows of all lengths were tried in vain: as many as of the shortest row at first, then twice as many each time, up to this.
const ALONE: u32 = 64;
/// The most CTAs, without the first, whose guards are asked for one by one: of more, most are away from a rim.
const MOST_PARTED: u32 = 7;

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
/// Whether each CTA of the row asks for its own guards.
const PARTED: u32 = 5;
/// How many CTAs go alone when rows have been tried in vain once more.
const WAIT: u32 = 6;
/// How far the end of a strip is behind its first CTA.
const STRIP: u32 = 7;
/// Whether the first and the last CTA of a row go alone, as they are at a rim.
const RIMS: u32 = 8;
/// The first of the words of addresses of a strip.
const ADDRESSES: u32 = 9;
/// How many of these there are.
pub(crate) const MOST_OF_STRIP: usize = 32;

/// CTAs that have not begun, at least, for a strip.
const LEAST_OF_STRIP: u32 = 1;

impl Row {
    /// The step of a register.
    pub(super) fn step(&self, r: Reg) -> i32 {
        self.steps[r.idx()].unwrap_or(0)
    }

    fn word(&self, n: u32) -> Mem {
        ctx(FRAME_WORDS + 8 * (self.words + n))
    }

    pub(super) fn row(&self) -> Mem {
        self.word(ROW)
    }

    pub(super) fn parted(&self) -> Mem {
        self.word(PARTED)
    }
}

impl Head {
    /// Whether all that differs between CTAs goes up evenly, and how.
    pub(super) fn find_row(&mut self, plan: &Plan, guards: Label) -> Option<Row> {
        let f = &plan.func;
        let mut steps: Vec<Option<i32>> = vec![None; f.regs.len()];
        let mut checks = Vec::new();
        let is_by_cta = |r: Reg| self.courses[r.idx()].is_some_and(|c| c.by_cta);
        for &(b, i) in &self.insts {
            let inst = &f.blocks[b].insts[i];
            if !is_by_cta(inst.dst[0]) {
                continue;
            }
            let of = |v: Val| reg(v).and_then(|r| steps[r.idx()]).unwrap_or(0);
            let step = i32::try_from(row_step(inst, &of)?).ok()?;
            if let Op::Pure(Pure::Ext { signed, .. } | Pure::MulWide(Int { signed, .. })) = inst.op {
                let rising = inst.src.iter().filter(|v| of(**v) != 0);
                checks.extend(rising.map(|v| (*v, signed)));
            }
            inst.dst.iter().for_each(|d| steps[d.idx()] = Some(step));
        }
        let uneven = |g: &super::Group| steps[g.from.idx()].is_some_and(|s| i64::from(s) % g.key.3 != 0);
        if steps.iter().all(Option::is_none) || self.groups.iter().any(uneven) {
            return None;
        }
        let mut rising = Vec::new();
        let own = f.blocks.iter().flat_map(|b| &b.insts).filter(|i| !self.has(i) && !self.is_linear(i));
        let mut read = Set::new(f.regs.len());
        let ends = f.blocks.iter().flat_map(|b| b.term.sources());
        own.flat_map(|i| i.src.clone()).chain(ends).filter_map(reg).for_each(|r| {
            read.add(r.idx());
        });
        for (r, step) in steps.iter().enumerate() {
            let Some(step) = step.filter(|s| *s != 0) else { continue };
            if !read.has(r) {
                continue;
            }
            let groups = plan.facts.class[r].shape().map_or(1, |s| s.groups() as u32);
            let words = match (self.same[r], self.linear[r]) {
                (Some(at), _) => at..at + 8,
                (None, Some(l)) => l.base..l.base + 8 * groups,
                (None, None) => continue,
            };
            rising.extend(words.step_by(8).map(|at| (at, f.regs[r], step)));
        }
        let words = self.words;
        self.words += ADDRESSES + MOST_OF_STRIP as u32;
        let guards = self.has_parts(plan).then_some(guards);
        Some(Row { steps, checks, rising, words, guards })
    }

    /// Whether all that CTAs of a row are asked for one by one is which lanes guards let go on, and that can be written down.
    fn has_parts(&self, plan: &Plan) -> bool {
        let is_written = |(b, g): (usize, &Guard)| g.lanes.is_some_and(|t| !t.is_known) && self.idle[b].is_none();
        let has_some = self.guards_by_cta(plan).next().is_some();
        let is_known = self.known.iter().any(|k| self.is_by_cta(k.insts(plan)));
        has_some && self.guards_by_cta(plan).all(is_written) && !is_known
    }

    /// Guards that differ between CTAs, with their blocks.
    fn guards_by_cta<'h>(&'h self, plan: &'h Plan) -> impl Iterator<Item = (usize, &'h Guard)> {
        let guards = self.guards.iter().enumerate().filter_map(|(b, g)| Some((b, g.as_ref()?)));
        guards.filter(|(b, g)| self.is_by_cta(&plan.func.blocks[*b].insts[g.from..]))
    }

    /// The bits of guards that differ between CTAs.
    pub(super) fn bits_of_guards(&self, plan: &Plan) -> u32 {
        self.guards_by_cta(plan).fold(0, |m, (_, g)| m | g.bits.0 | g.bits.1)
    }

    /// The word of strips, if there are rows of CTAs that may be decided about.
    pub(crate) fn word_of_strips(&self) -> Option<Mem> {
        self.row.as_ref().map(|row| row.word(STRIP))
    }

    /// The first of the words of addresses of a strip.
    pub(crate) fn words_of_addresses(&self) -> Option<u32> {
        self.row.as_ref().map(|row| FRAME_WORDS + 8 * (row.words + ADDRESSES))
    }

    /// The step of an address from CTA to CTA of a row; 0 if it has none, or none is known.
    pub(crate) fn row_step(&self, r: Reg) -> i32 {
        self.row.as_ref().map_or(0, |row| row.step(r))
    }

    /// Bits of accesses, and the lower bits of guards, that a run of the head can set for a CTA.
    fn hoped_for(&self, plan: &Plan) -> (u32, u32) {
        let accesses = self.groups.iter().filter(|g| g.first.is_some()).fold(0, |m, g| m | g.bit);
        let guards = self.guards_by_cta(plan).map(|(_, g)| g.bits.0);
        let known = self.known.iter().filter(|k| self.is_by_cta(k.insts(plan))).map(|k| k.bits.0);
        (accesses, guards.chain(known).fold(0, |m, g| m | g))
    }
}

/// The step of what an instruction of the head makes, from CTA to CTA of a row.
fn row_step(inst: &Inst, of: &dyn Fn(Val) -> i32) -> Option<i64> {
    let step = |i: usize| i64::from(of(inst.src[i]));
    let constant = |i: usize| crate::table::constant(inst.src[i]);
    let is_short = |ty: Ty| ty == Ty::B32;
    let cut = |short: bool, n: i64| if short { i64::from(n as i32) } else { n };
    Some(match inst.op {
        Op::Sreg(Sreg::Ctaid(0)) => 1,
        _ if inst.src.iter().all(|v| of(*v) == 0) => 0,
        Op::Cvta { .. } => step(0),
        Op::Pure(Pure::Mov(Ty::B32 | Ty::B64)) => step(0),
        Op::Pure(Pure::Ext { bits: 32, from: Ty::B32, to: Ty::B64, .. }) => step(0),
        Op::Pure(Pure::Ext { bits: 32, from: Ty::B64, to: Ty::B32, .. }) => step(0),
        Op::Pure(Pure::Add(ty @ (Ty::B32 | Ty::B64))) => cut(is_short(ty), step(0) + step(1)),
        Op::Pure(Pure::Sub(ty @ (Ty::B32 | Ty::B64))) => cut(is_short(ty), step(0) - step(1)),
        Op::Pure(Pure::Shl(ty @ (Ty::B32 | Ty::B64))) => {
            let by = constant(1).filter(|by| *by < 32)?;
            cut(is_short(ty), step(0) << by)
        }
        Op::Pure(Pure::Mul(ty @ (Ty::B32 | Ty::B64))) => {
            let (k, by) = if let Some(by) = constant(1) { (0, by) } else { (1, constant(0)?) };
            let by = if is_short(ty) { i64::from(by as u32 as i32) } else { by.cast_signed() };
            cut(is_short(ty), step(k).checked_mul(by)?)
        }
        Op::Pure(Pure::MulWide(Int { ty: Ty::B32, signed })) => {
            let (k, by) = if let Some(by) = constant(1) { (0, by) } else { (1, constant(0)?) };
            step(k) * if signed { i64::from(by as u32 as i32) } else { i64::from(by as u32) }
        }
        _ => return None,
    })
}

impl Emit<'_> {
    /// No row has been decided about.
    pub(crate) fn begin_rows(&mut self) {
        let Some(row) = self.head.as_ref().and_then(|h| h.row.as_ref()) else { return };
        let words = [(ROW, 0), (LEFT, 0), (BACK, 0), (LIMIT, MOST), (BATCH, 0), (PARTED, 0), (WAIT, LEAST), (RIMS, 0)];
        for (m, n) in words.map(|(w, n)| (row.word(w), n)) {
            self.store_number(m, n);
        }
    }

    /// Runs the head for the CTA that begins, or for a row of them, unless that has been done. (A row that guards stand in the way of is tried without its ends once.)
    pub(super) fn begin_in_row(&mut self, row: &Row, hoped: (u32, u32), head: Label, deopt: Label) {
        let [full, attempt, parted, failed, single, go] = std::array::from_fn(|_| self.a.label());
        self.a.imm(Code::Cmp_rm32_imm32, row.word(LEFT), 0);
        self.a.jump(Code::Je_rel32_64, full);
        self.step_in_row(row);
        self.a.jump(Code::Jmp_rel32_64, go);
        self.a.bind(full);
        self.store_number(row.word(ROW), 0);
        if row.guards.is_some() {
            self.store_number(row.parted(), 0);
        }
        self.a.imm(Code::Cmp_rm32_imm32, row.word(BACK), 0);
        self.a.jump(Code::Je_rel32_64, attempt);
        self.a.imm(Code::Sub_rm32_imm32, row.word(BACK), 1);
        self.a.jump(Code::Jmp_rel32_64, single);
        self.a.bind(attempt);
        // Those that the code may go on with, as far as they are of the row.
        self.load32(EAX, cta(offset_of!(CtaCtx, nctaid)));
        self.a.op2(Code::Sub_r32_rm32, EAX, cta(offset_of!(CtaCtx, ctaid)));
        self.a.imm(Code::Sub_rm32_imm32, EAX, 1);
        let whole = self.a.label();
        self.a.imm(Code::Cmp_rm32_imm32, row.word(RIMS), 0);
        self.a.jump(Code::Je_rel32_64, whole);
        self.a.imm(Code::Cmp_rm32_imm32, cta(offset_of!(CtaCtx, ctaid)), 0);
        self.a.jump(Code::Je_rel32_64, single);
        self.a.imm(Code::Sub_rm32_imm32, EAX, 1);
        self.a.jump(Code::Jb_rel32_64, single);
        self.a.bind(whole);
        self.load32(ECX, cta(offset_of!(CtaCtx, more)));
        self.a.op2(Code::Cmp_r32_rm32, EAX, ECX);
        self.a.op2(Code::Cmova_r64_rm64, RAX, RCX);
        self.a.imm(Code::Cmp_rm32_imm32, EAX, LEAST.cast_signed());
        self.a.jump(Code::Jb_rel32_64, single);
        let try_it = self.a.label();
        self.load32(ECX, row.word(LIMIT));
        self.a.imm(Code::Cmp_rm32_imm32, ECX, LEAST.cast_signed());
        self.a.jump(Code::Jae_rel32_64, try_it);
        self.store_number(row.word(LIMIT), MOST);
        self.load32(EAX, row.word(WAIT));
        self.store32(row.word(BACK), EAX);
        self.double_up_to(row.word(WAIT), ALONE);
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
                self.a.jump(Code::Jne_rel32_64, if r == EAX { parted } else { failed });
            }
        }
        self.load32(EAX, row.word(ROW));
        self.store32(row.word(LEFT), EAX);
        self.double_up_to(row.word(LIMIT), MOST);
        self.store_number(row.word(WAIT), LEAST);
        self.a.jump(Code::Jmp_rel32_64, go);
        self.a.bind(parted);
        let long = self.a.label();
        if let Some(guards) = row.guards {
            self.load32(EAX, row.word(ROW));
            self.a.imm(Code::Cmp_rm32_imm32, EAX, MOST_PARTED.cast_signed());
            self.a.jump(Code::Ja_rel32_64, long);
            self.store32(row.word(LEFT), EAX);
            self.store_number(row.word(WAIT), LEAST);
            self.store_number(row.word(ROW), 0);
            self.store_number(row.parted(), 1);
            self.a.jump(Code::Call_rel32_64, guards);
            self.a.jump(Code::Jmp_rel32_64, go);
        }
        // Guards alone stand in the way: the first CTA of the row, the last one, or others too.
        self.a.bind(long);
        self.a.imm(Code::Xor_rm32_imm32, row.word(RIMS), 1);
        self.a.jump(Code::Je_rel32_64, failed);
        self.store_number(row.word(ROW), 0);
        self.a.jump(Code::Jmp_rel32_64, attempt);
        self.a.bind(failed);
        self.load32(EAX, row.word(ROW));
        self.a.imm8(Code::Shr_rm32_imm8, EAX, 1);
        self.store32(row.word(LIMIT), EAX);
        self.store_number(row.word(ROW), 0);
        self.a.bind(single);
        self.a.jump(Code::Call_rel32_64, head);
        self.a.op2(Code::Test_rm32_r32, EAX, EAX);
        self.a.jump(Code::Jne_rel32_64, deopt);
        self.a.bind(go);
    }

    /// Doubles a word, up to a number. Clobbers `rax` and `rcx`.
    fn double_up_to(&mut self, m: Mem, most: u32) {
        self.load32(EAX, m);
        self.a.op2(Code::Add_r32_rm32, EAX, EAX);
        self.a.number(RCX, u64::from(most));
        self.a.op2(Code::Cmp_r32_rm32, EAX, ECX);
        self.a.op2(Code::Cmova_r64_rm64, RAX, RCX);
        self.store32(m, EAX);
    }

    /// The next CTA of a row that has been decided about.
    fn step_in_row(&mut self, row: &Row) {
        self.a.imm(Code::Sub_rm32_imm32, row.word(LEFT), 1);
        self.rise_in_row(row);
    }

    fn rise_in_row(&mut self, row: &Row) {
        for (at, ty, step) in &row.rising {
            let code = if *ty == Ty::B64 { Code::Add_rm64_imm32 } else { Code::Add_rm32_imm32 };
            self.a.imm(code, ctx(*at), *step);
        }
        if let Some(guards) = row.guards {
            let all_alike = self.a.label();
            self.a.imm(Code::Cmp_rm32_imm32, row.parted(), 0);
            self.a.jump(Code::Je_rel32_64, all_alike);
            self.a.jump(Code::Call_rel32_64, guards);
            self.a.bind(all_alike);
        }
    }

    /// Goes elsewhere where CTAs of a row have guards of their own, if bits that are to stay are such.
    fn unless_parted(&mut self, row: &Row, bits: u32, elsewhere: Label) {
        let of_guards = self.head.as_ref().map_or(0, |h| h.bits_of_guards(self.plan));
        if row.guards.is_some() && bits & of_guards != 0 {
            self.a.imm(Code::Cmp_rm32_imm32, row.parted(), 0);
            self.a.jump(Code::Jne_rel32_64, elsewhere);
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
        self.test_decided(bits);
        self.a.jump(Code::Jne_rel32_64, other);
        self.unless_parted(&row, bits, other);
        self.step_in_row(&row);
        self.a.jump(Code::Jmp_rel32_64, all);
        self.a.bind(other);
        if let Some(head) = &mut self.head {
            head.row = Some(row);
        }
    }

    /// Behind a CTA that gangs alone went and that has no shared memory: the next one of a row that has been decided about starts at `all`, as all of them do one after the other. `bits`: what that rests on.
    pub(crate) fn go_on_in_batch(&mut self, all: Label, bits: u32) {
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
        self.unless_parted(&row, bits, none);
        self.store32(row.word(BATCH), EAX);
        self.take_those_left(row.word(LEFT));
        self.a.jump(Code::Jmp_rel32_64, again);
        self.a.bind(none);
        if let Some(head) = &mut self.head {
            head.row = Some(row);
        }
    }

    /// The CTAs of a row that have not begun, as many as `eax` says, go without more ado: the runtime's numbers count them already.
    fn take_those_left(&mut self, left: Mem) {
        self.store_number(left, 0);
        self.a.store(Code::Sub_rm32_r32, cta(offset_of!(CtaCtx, more)), EAX, ALL);
        self.a.store(Code::Add_rm32_r32, cta(offset_of!(CtaCtx, ctaid)), EAX, ALL);
    }

    /// Flags of whether the head has set all of some bits: zero if it has. Clobbers `eax`.
    pub(crate) fn test_decided(&mut self, bits: u32) {
        self.a.op2(Code::Mov_r32_rm32, EAX, DECIDED);
        self.a.op1(Code::Not_rm32, EAX);
        self.a.imm(Code::Test_rm32_imm32, EAX, bits.cast_signed());
    }

    /// Goes elsewhere unless enough CTAs of a row that has been decided about have not begun.
    pub(crate) fn unless_row_is_long(&mut self, elsewhere: Label) {
        let Some(left) = self.head.as_ref().and_then(|h| Some(h.row.as_ref()?.word(LEFT))) else { return };
        self.a.imm(Code::Cmp_rm32_imm32, left, LEAST_OF_STRIP.cast_signed());
        self.a.jump(Code::Jb_rel32_64, elsewhere);
    }

    /// The CTA that begins takes those behind it in the row that has been decided about along. How far the end of the last one is behind it, each being so far behind the one before, is in the
    /// word of strips.
    pub(crate) fn begin_strip(&mut self, unit: i32) {
        let words = self.head.as_ref().and_then(|h| h.row.as_ref()).map(|row| [row.word(LEFT), row.word(STRIP)]);
        let Some([left, strip]) = words else { return };
        self.load32(EAX, left);
        self.take_those_left(left);
        self.a.imm(Code::Add_rm32_imm32, EAX, 1);
        self.a.times(RAX, RAX, unit);
        self.store64(strip, RAX);
    }

    /// Widens the ends in `low` and `high` of a value to those in all CTAs of the row, if it differs between them. Uses `rdx`, `rsi`.
    pub(super) fn ends_in_row(&mut self, head: &Head, v: Val, low: Register, high: Register) -> bool {
        let Some((row, r)) = head.row.as_ref().zip(reg(v)) else { return false };
        let step = row.step(r);
        if step != 0 {
            let to = if step > 0 { high } else { low };
            self.length_of_row(row, step);
            self.a.op2(if step > 0 { Code::Add_r64_rm64 } else { Code::Sub_r64_rm64 }, to, RDX);
        }
        step != 0
    }

    /// How far a value with a step is in the last CTA of the row from where it is in the first one, in `rdx`, up or down. Uses `rsi`.
    pub(super) fn length_of_row(&mut self, row: &Row, step: i32) {
        let size = step.unsigned_abs();
        // Most products have 32 bits: one instruction.
        if size <= u32::MAX / (MOST + 1) {
            self.a.op2i(Code::Imul_r32_rm32_imm32, EDX, row.row(), size);
        } else {
            self.load32(EDX, row.row());
            self.a.number(RSI, u64::from(size));
            self.a.op2(Code::Imul_r64_rm64, RDX, RSI);
        }
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
