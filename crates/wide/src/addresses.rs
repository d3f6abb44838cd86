//! Accesses that the head may have decided about: no tests where they are done, and addresses that stay in general registers.
//!
//! # The model
//! Where a bit of the head says that an access is right in all of the CTA, nothing is left of its tests but a look at the bit. Where it does not, tests in
//! code after all blocks come back to the same place (*elsewhere*), or go to the routine.
//!
//! The address of the first lane of a group stays in a general register until the block ends or somebody writes that register ([`Asm::is_written`](crate::asm::Asm::is_written) knows): other
//! accesses through the same address are at distances from it. Code that comes back makes those registers anew.
//!
//! Addresses of 32 bits are not cut to their width here: where the head decided, none wraps, and the tests elsewhere send those that do to the routine.

use std::mem::offset_of;

use handloom_ir::simt::{Inst, Op, Reg, Term, Val};
use handloom_ir::types::{StateSpace, Ty};
use handloom_plan::abi::{CtaCtx, SiteCache};
use handloom_plan::access::Kind;
use iced_x86::{Code, Register};

use crate::access::{Access, Against, Elsewhere, Held, Limits, Runs, Tester};
use crate::asm::{Mem, low32};
use crate::emit::*;
use crate::head::DECIDED;
use crate::indices::TURNS_AHEAD_OF_ALL;
use crate::table::constant;

/// Registers that hold addresses: those that few instructions write come first.
const HOLDERS: [Register; 6] = [Register::RDI, Register::R8, Register::R11, Register::R9, Register::RSI, Register::RCX];

const R9: Register = Register::R9;

/// How many CTAs ahead data is asked for.
const CTAS_AHEAD: i32 = 4;

impl Emit<'_> {
    /// The runs of an access that the head may have decided about, from the first lanes of each. `None`: it has tests of its own.
    pub(crate) fn decided_runs(&self, x: &Access, firsts: &[usize], reach: i64) -> Option<Runs> {
        let Val::Reg(address) = x.class.address else { return None };
        let shape = self.shape(x.class.address)?;
        if x.decided.is_none() && !x.is_proven || x.lanes != LANES {
            return None;
        }
        let mut list: Vec<(usize, i64)> = Vec::with_capacity(firsts.len());
        for &lane in firsts {
            let place = |l: usize| (shape.group_of(l), shape.delta(l));
            if !list.iter().any(|(l, _)| place(*l) == place(lane)) {
                list.push((lane, reach));
            }
        }
        let runs = Runs { shape, address, list };
        // Room for the elements behind.
        let fits = firsts.iter().all(|lane| runs.distance(x, *lane).is_some_and(|d| d.checked_add(1 << 26).is_some()));
        let groups = (0..shape.groups()).filter(|g| firsts.iter().any(|l| shape.group_of(*l) == *g)).count();
        (fits && groups <= HOLDERS.len()).then_some(runs)
    }

    /// The look at the bit.
    pub(crate) fn test_elsewhere(&mut self, x: &Access, runs: &Runs) {
        let Some(bit) = x.decided else { return };
        let (start, back) = (self.a.label(), self.a.label());
        self.a.imm(Code::Test_rm32_imm32, DECIDED, bit.cast_signed());
        self.a.jump(Code::Je_rel32_64, start);
        self.a.bind(back);
        let held = self.held();
        let runs = runs.list.clone();
        self.elsewhere.push(Elsewhere {
            start,
            back,
            x: *x,
            runs,
            joint: None,
            held,
            in_part: self.in_part,
            at: self.at,
        });
    }

    /// The element of a lane, by a register that holds the address of its group. The first lanes of all that an instruction wants are asked for before it uses any.
    pub(crate) fn run_element(&mut self, x: &Access, runs: &Runs, lane: usize) -> Mem {
        let group = runs.shape.group_of(lane);
        let shared = x.class.space == StateSpace::Shared;
        let (of, by) = self.member_of_run(runs.address);
        let wanted = |h: &Held| h.address == runs.address && h.group == group && h.shared == shared && h.of == of;
        let distance = runs.distance(x, lane).unwrap_or(0) + by;
        self.drop_written();
        if let Some(k) = self.held.iter().position(wanted) {
            // What was asked for last leaves last.
            let h = self.held.remove(k);
            self.held.push(h);
            return self.in_strip(Mem::at(h.at, distance), runs.address);
        }
        let mut h = Held { at: HOLDERS[0], address: runs.address, group, shared, of };
        let before = if self.strip.is_some() { None } else { self.one_step_before(&h) };
        // That of the warp before, if nobody asks for it any more; a free one; or that which has been held longest.
        let done = before.filter(|_| self.is_by_warp).map(|(from, _)| from.at);
        let free = || HOLDERS.into_iter().find(|r| !self.held.iter().any(|h| h.at == *r));
        h.at = done.or_else(free).unwrap_or_else(|| self.held[0].at);
        self.held.retain(|x| x.at != h.at);
        if let Some(before) = before {
            self.step_address(&h, before);
        } else if !self.hold_saved(&h) {
            let member = std::mem::replace(&mut self.member, of);
            self.a.shift(of as i32 * self.member_step);
            self.hold(h, runs.shape.first_lane(group));
            self.member = member;
            self.a.shift(member as i32 * self.member_step);
        }
        self.held.push(h);
        self.in_strip(Mem::at(h.at, distance), runs.address)
    }

    /// Asks for what a CTA further on in the row will read: where CTAs are short and wait for barriers, nobody else sees that coming. It comes to the second cache,
    /// which takes more lines at a time than the first one (Zen 4: a third of what memory gives, if it is to come to the first).
    pub(crate) fn fetch_for_row(&mut self, x: &Access, runs: &Runs, m: Mem) {
        if !self.fetches_for_row(x, runs) {
            return;
        }
        let step = self.head.as_ref().map_or(0, |h| h.row_step(runs.address));
        for line in (0..32 * x.class.bytes() as i32).step_by(64) {
            self.a.op1(Code::Prefetcht1_m8, m.behind(CTAS_AHEAD * step + line));
        }
    }

    /// Whether it does.
    pub(crate) fn fetches_for_row(&self, x: &Access, runs: &Runs) -> bool {
        let step = self.head.as_ref().map_or(0, |h| h.row_step(runs.address));
        let is_in_loop = self.plan.facts.cfg.loop_of[self.at.0].is_some();
        let waits = || self.f.blocks.iter().any(|b| matches!(b.term, Term::Barrier { .. }));
        let fits = x.class.kind == Kind::Load && x.class.space != StateSpace::Shared && step.unsigned_abs() < 1 << 16;
        step != 0 && !is_in_loop && fits && waits()
    }

    /// In a loop whose warps go in turn, asks for what a load by an address that rises reads some turns later. Uses `rdx`.
    fn fetch_for_turns(&mut self, x: &Access, runs: &Runs, m: Mem) {
        let in_turn = self.plan.facts.cfg.loop_of[self.at.0].is_some_and(|h| self.goes_in_turn(h));
        if x.class.kind != Kind::Load || !in_turn {
            return;
        }
        let Some(step) = self.head.as_ref().and_then(|h| h.step_of_turn(runs.address)) else { return };
        let by = constant(step).and_then(|n| i32::try_from(n.cast_signed() << TURNS_AHEAD_OF_ALL).ok());
        let ahead = match by {
            Some(by) if by.unsigned_abs() < 1 << 24 => m.behind(by),
            _ => {
                self.lane_value(step, 0, RDX);
                self.a.imm8(Code::Shl_rm64_imm8, RDX, TURNS_AHEAD_OF_ALL);
                m.plus(RDX)
            }
        };
        // One stream comes to the first cache (a histogram of 64 MiB has .75 of C then, and .55 to .75 else), several would push each other out of it (a sum of two in the second
        // cache takes a third longer).
        let is_stream =
            |i: &&Inst| matches!(i.op, Op::Load { .. }) && self.head.as_ref().is_some_and(|h| h.is_rising(i));
        let is_alone = self.f.blocks[self.at.0].insts.iter().filter(is_stream).count() == 1;
        let code = if is_alone { Code::Prefetcht0_m8 } else { Code::Prefetcht1_m8 };
        for line in (0..32 * x.class.bytes() as i32).step_by(64) {
            self.a.op1(code, ahead.behind(line));
        }
    }

    /// Asks for what is read later, where nobody else sees that coming.
    pub(crate) fn fetch_for_later(&mut self, x: &Access, runs: &Runs, m: Mem) {
        self.fetch_for_row(x, runs, m);
        self.fetch_for_turns(x, runs, m);
    }

    /// Makes the address that a register is to hold.
    fn hold(&mut self, h: Held, lane: usize) {
        if !self.hold_from_first(h.address, lane, h.at, h.of) {
            self.lane_value(Val::Reg(h.address), lane, h.at);
        }
        if h.shared {
            if self.ty(Val::Reg(h.address)) == Ty::B32 {
                self.in_front_too(h.at);
            }
            self.a.op2(Code::Add_r64_rm64, h.at, cta(offset_of!(CtaCtx, shared_base)));
        }
        self.a.forget_written(h.at);
    }

    /// An address of 32 bits as one of 64: of lanes that take no part, the first may stand before the memory in which the others are.
    pub(crate) fn in_front_too(&mut self, r: Register) {
        self.a.op2(Code::Movsxd_r64_rm32, r, low32(r));
    }

    /// What registers hold now.
    pub(crate) fn held(&mut self) -> Vec<Held> {
        self.drop_written();
        self.held.clone()
    }

    /// Forgets what has been written over.
    fn drop_written(&mut self) {
        let a = &self.a;
        self.held.retain(|h| !a.is_written(h.at));
    }

    /// Behind code that may be passed over, before which so much was held: what it holds anew nobody else does, nor words that it has loaded.
    pub(crate) fn hold_only(&mut self, before: &[Held]) {
        self.at_hand_words.clear();
        self.drop_written();
        self.held.retain(|h| before.contains(h));
    }

    /// Addresses that an instruction has changed are not held any more.
    pub(crate) fn drop_addresses(&mut self, changed: &[Reg]) {
        self.held.retain(|h| !changed.contains(&h.address));
    }

    /// Nothing is held from here on.
    pub(crate) fn drop_held(&mut self) {
        self.held.clear();
    }

    /// Code that comes back to where registers held addresses.
    pub(crate) fn hold_again(&mut self, held: &[Held]) {
        for h in held {
            let Some(shape) = self.shape(Val::Reg(h.address)) else { continue };
            self.hold(*h, shape.first_lane(h.group));
        }
    }

    /// The tests after all blocks.
    pub(crate) fn tests_elsewhere(&mut self) {
        for e in std::mem::take(&mut self.elsewhere) {
            (self.in_part, self.at) = (e.in_part, e.at);
            self.scratch.0 = 0;
            self.a.bind(e.start);
            if let Some((low, high, refused)) = e.joint {
                let Some(shape) = self.shape(e.x.class.address) else { continue };
                let own = Access { cold: refused, ..e.x };
                for g in 0..shape.groups() {
                    let (first, last) = shape.span(g);
                    self.lowest_of_group(&own, &shape, g, low);
                    self.ask(&own, Some(last - first + high - low));
                }
            } else {
                for (lane, reach) in &e.runs {
                    self.lane_address(&e.x, *lane);
                    // Lanes of a row that take no part may lie anywhere.
                    let by_lanes = self.in_part && *reach == 31 * e.x.class.bytes();
                    self.ask(&e.x, (!by_lanes).then_some(*reach));
                }
            }
            self.hold_again(&e.held);
            self.a.jump(Code::Jmp_rel32_64, e.back);
        }
        self.testers();
    }

    /// Asks whether elements are inside, whose first is at `rax` and the last so many bytes behind it; or those of the lanes of the block, lane 0 being at
    /// `rax`. Where they are not, the access does what it does then.
    fn ask(&mut self, x: &Access, reach: Option<i64>) {
        let against = match x.limits {
            Limits::Heap(_) if self.is_within_heap(x) => Against::Heap,
            Limits::Heap(_) => Against::Site,
            Limits::Shared => Against::Shared,
            Limits::Own => Against::Own,
            Limits::Safe => return,
        };
        let kind = (against, x.class.bytes());
        let known = self.testers.iter().position(|t| t.kind == kind);
        let k = known.unwrap_or_else(|| {
            let [by_lanes, run] = std::array::from_fn(|_| self.a.label());
            self.testers.push(Tester { kind, x: *x, by_lanes, run });
            self.testers.len() - 1
        });
        let (by_lanes, run) = (self.testers[k].by_lanes, self.testers[k].run);
        if let Some(reach) = reach {
            self.a.number(RCX, reach.cast_unsigned());
        }
        if let (Against::Site, Limits::Heap(site)) = (against, x.limits) {
            self.a.number(RDX, (site * size_of::<SiteCache>()) as u64);
        }
        self.a.call_scalar(if reach.is_some() { run } else { by_lanes });
        self.a.jump(Code::Jae_rel32_64, x.cold);
    }

    /// The code that tests ask: many accesses have the same. Carry says yes.
    fn testers(&mut self) {
        for t in std::mem::take(&mut self.testers) {
            let no = self.a.label();
            let x = Access { cold: no, ..t.x };
            let k = x.class.bytes().trailing_zeros();
            if self.a.is_wanted(t.by_lanes) {
                self.a.bind(t.by_lanes);
                self.a.op2(Code::Tzcnt_r32_rm32, ECX, LANES);
                self.a.op2(Code::Bsr_r32_rm32, Register::ESI, LANES);
                self.a.op2(Code::Sub_r32_rm32, Register::ESI, ECX);
                for r in [ECX, Register::ESI] {
                    self.a.imm8(Code::Shl_rm32_imm8, r, k);
                }
                self.a.op2(Code::Add_r64_rm64, RAX, RCX);
                self.a.op2(Code::Mov_r32_rm32, ECX, Register::ESI);
            }
            self.a.bind(t.run);
            if t.kind.0 == Against::Site {
                self.load64(R9, cta(offset_of!(CtaCtx, sites)));
                self.load64(Register::R8, Mem::indexed(R9, RDX, 1, 0));
                self.load64(R9, Mem::indexed(R9, RDX, 1, 8));
            } else {
                self.limits(&x);
            }
            self.a.op2(Code::Sub_r64_rm64, R9, RCX);
            self.a.jump(Code::Jb_rel32_64, no);
            if k > 0 {
                self.a.imm8(Code::Shr_rm64_imm8, R9, k);
            }
            self.set_to_unit(&x, RAX);
            self.a.op2(Code::Cmp_r64_rm64, RDX, R9);
            self.a.op0(Code::Retnq);
            self.a.bind(no);
            // No carry.
            self.a.op2(Code::Test_rm32_r32, EAX, EAX);
            self.a.op0(Code::Retnq);
        }
    }
}
